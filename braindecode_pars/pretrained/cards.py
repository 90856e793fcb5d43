"""Encoder cards, which describe the training data of pretrained encoders, and model cards.

A model card is the page ``README.md`` of a model on the Hugging Face Hub. It is rendered from the
description in the model file, with the template ``model_card.md``.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self

import jinja2

from braindecode_pars._common import checks, model_files
from braindecode_pars._common.model_files import LoadReport
from braindecode_pars._common.subjects import SeenSubjects, public_corpora, whole
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.windows.preprocessing import (
    AVERAGE,
    FIELDS,
    Difference,
    Preprocessing,
    differences,
    text_of,
)

#: Entries of ``about`` that are retained if an encoder is shared. They do not describe subjects.
SHARED_FACTS = (
    *("name", "description", "license", "attribution", "corpora", "band", "reference"),
    *("channels", "date", "n_subjects", "n_finetune_subjects"),
)

#: Entries of the preprocessing that are compared between the training data of an encoder and other
#: windows. Amplitudes are not compared, because signals are normalized. Channels are not compared,
#: because an encoder processes single channels. Notch filters are not compared, because the line
#: frequency differs between countries.
OF_ENCODERS = ("band", "reference")
#: Minimum number of channels of an average reference. Average references over at least this number
#: of channels are considered equal, even if they are computed from different channels.
_MIN_AVERAGE_CHANNELS = 16

#: Version of an installed package. It is cached, because each fit creates several cards.
_version = cache(version)


@dataclass
class EncoderCard:
    """Encoder card: training data, pretext task and preprocessing of a pretrained encoder.

    The card is saved together with the encoder. The evaluation protocols (the functions in
    :mod:`braindecode_pars.evaluation` that compute scores on held-out subjects) warn about data
    leakage if a test subject is listed in ``subjects`` or ``finetune_subjects`` of the card.
    Estimators raise an error if the sampling rate of windows differs from ``sfreq`` of the card.

    Attributes
    ----------
    sfreq : float | None
        Sampling rate of the training windows in Hz; None if unknown.
    task : str | None
        Name of the pretext task; None if the encoder was not pretrained, or if the task is unknown.
    task_params : dict
        Arguments of the pretext task that differ from the defaults.
    subjects : list | None
        Subjects used for pretraining, as ``corpus:name`` if the corpus is known. Empty if the
        encoder was not pretrained; None if the subjects are unknown. A name without a corpus
        matches the same name in any corpus. Numbers, such as "7", "S07" or "sub-07", are an
        exception, because they occur in many corpora: a number without a corpus matches only the
        same number without a corpus. The card of an encoder that was saved for sharing contains no
        names, see :meth:`without_names`.
    finetune_subjects : list | None
        Subjects used for fine-tuning after pretraining. Empty if the encoder was not fine-tuned;
        None if the subjects are unknown.
    n_windows, epochs : int
        Number of windows and number of epochs in pretraining.
    n_times, n_steps, n_examples : int | None
        Number of samples in a crop (the random segment of a window that is one training example),
        number of training steps, and total number of crops in these steps; None if unknown. The
        training cost is computed from these numbers.
    loss_relative : float | None
        Training loss in the last epoch of pretraining, divided by the chance-level loss (below 1 is
        better than chance). None if unknown.
    held_out_loss_relative : float | None
        Loss on held-out subjects (subjects who were not used for training) at the end of
        pretraining, divided by the chance-level loss. None if it was not computed.
    sham : bool
        Whether the encoder was trained with sham pretraining, a control condition in which each
        example has the target of another example, so that nothing can be learned.
    continued_from : dict | None
        Previous card of the encoder, as a dict, if the pretraining of an existing encoder was
        continued. ``subjects`` then includes the subjects of the previous card. None if the
        pretraining began with a new encoder.
    preprocessing : Preprocessing
        Preprocessing of the training recordings: the entries that are known and equal for all
        recordings. The channels are not included, because an encoder processes single channels.
    about : dict of str to Any
        Additional information for users of the encoder; empty by default. Bundled encoders have
        the entries below.
    versions : dict of str to str
        Versions of the packages that were used for training.

    Notes
    -----
    Bundled encoders have the following entries in ``about``, in JSON types:

    - ``name``, ``description``: name of the encoder, and a description in one sentence.
    - ``license``, ``attribution``: license, and a list of references to cite.
    - ``corpora``, ``people``: list of the corpora, and list of descriptions of their subjects.
    - ``band``, ``reference``, ``channels``: lower and upper edge of the band-pass filter in Hz, the
      reference, and a list of the channels.
    - ``held_out``: dict with the entries ``loss_relative`` (relative loss on held-out subjects),
      ``people`` (description of these subjects), ``parts`` (relative loss of each part of the
      task), ``n_crops`` (number of crops) and ``seed``, computed by
      ``docs/experiments/held_out_loss.py``.
    - ``date``, ``command``, ``machine``: date, command and machine of the training.
    - ``n_subjects``, ``n_finetune_subjects``: number of subjects, only if the encoder was saved for
      sharing, without the names of subjects.
    - ``audit``: list of probing analyses of the encoder before fine-tuning. Each entry contains
      ``recordings`` (description of the recordings), ``measured`` (date and machine) and ``table``
      (columns of the table that :func:`~braindecode_pars.evaluation.audit_encoder` returns).

    If the pretraining of an encoder is continued, the new card has a new ``about``, and
    ``continued_from`` contains the previous card with the previous ``about``.

    Examples
    --------
    >>> from braindecode_pars.pretrained import EncoderCard
    >>> card = EncoderCard(sfreq=200.0, task="pars", subjects=["P01", "P02"])
    >>> sorted(card.seen_subjects)  # subjects and finetune_subjects
    ['P01', 'P02']
    """

    sfreq: float | None = None
    task: str | None = None
    task_params: dict[str, Any] = field(default_factory=dict)
    subjects: list | None = field(default_factory=list)
    finetune_subjects: list | None = field(default_factory=list)
    n_windows: int = 0
    epochs: int = 0
    n_times: int | None = None
    n_steps: int | None = None
    n_examples: int | None = None
    loss_relative: float | None = None
    held_out_loss_relative: float | None = None
    sham: bool = False
    continued_from: dict[str, Any] | None = None
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    about: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(
        default_factory=lambda: {
            name: _version(name) for name in ("braindecode_pars", "braindecode", "torch")
        }
    )

    @property
    def seen_subjects(self) -> set:
        """Set of all known training subjects, in pretraining and in fine-tuning."""
        return {*(self.subjects or ()), *(self.finetune_subjects or ())}

    def differences(self, actual: Preprocessing) -> list[Difference]:
        """Compare the frequency band and the reference of other recordings with the training data.

        Parameters
        ----------
        actual : Preprocessing
            Preprocessing of the other recordings, from their windows or their SignalStore.

        Returns
        -------
        list of Difference
            Differences in frequency band and reference, as in
            :func:`~braindecode_pars.windows.preprocessing.differences`. Average references over at
            least 16 channels are considered equal.

        Examples
        --------
        >>> from braindecode_pars.pretrained import load_encoder
        >>> from braindecode_pars.windows.preprocessing import Preprocessing
        >>> card = load_encoder("small").card
        >>> print(*card.differences(Preprocessing(reference="as recorded")))
        reference as recorded, but average in training
        """
        pair = [
            replace(preprocessing, reference=AVERAGE)
            if preprocessing.reference
            and len(preprocessing.reference.split(",")) >= _MIN_AVERAGE_CHANNELS
            else preprocessing
            for preprocessing in (self.preprocessing, actual)
        ]
        return [entry for entry in differences(*pair) if entry.name in OF_ENCODERS]

    def without_names(self) -> Self:
        """Return a copy of this card without the names of subjects, to share the encoder.

        In the copy, ``subjects`` and ``finetune_subjects`` are None (unknown), so that the
        evaluation protocols (such as :func:`~braindecode_pars.evaluation.leave_one_subject_out`)
        warn that data leakage cannot be excluded. Empty lists remain empty, because they contain no
        names. The number of subjects, and the public corpora to which they belong, are added to
        ``about``.

        Entries of ``about`` that describe corpora and preprocessing are retained. ``people``,
        ``held_out``, ``command``, ``machine`` and other entries are removed. The texts of the
        retained entries are not modified, so check that they contain no names of subjects.

        Returns
        -------
        EncoderCard
            A new card.

        Examples
        --------
        >>> from braindecode_pars.pretrained import EncoderCard
        >>> card = EncoderCard(subjects=["anna", "physionet_mi:S007"]).without_names()
        >>> card.subjects, card.about
        (None, {'corpora': ['physionet_mi'], 'n_subjects': 2})
        """
        about = {key: value for key, value in self.about.items() if key in SHARED_FACTS}
        if corpora := public_corpora(self.seen_subjects):
            about["corpora"] = [*dict.fromkeys([*about.get("corpora", ()), *corpora])]
        names = {"n_subjects": self.subjects, "n_finetune_subjects": self.finetune_subjects}
        about |= {name: len(subjects) for name, subjects in names.items() if subjects}
        before = self.continued_from
        return replace(
            self,
            subjects=None if self.subjects else self.subjects,
            finetune_subjects=None if self.finetune_subjects else self.finetune_subjects,
            continued_from=None if before is None else asdict(read_card(before).without_names()),
            about=about,
        )

    def continues(self, before: Self) -> Self:
        """Return a copy of this card for an encoder whose pretraining was continued.

        Parameters
        ----------
        before : EncoderCard
            Card that the encoder had before its pretraining was continued.

        Returns
        -------
        EncoderCard
            Copy of this card with the pretraining subjects of both cards, the
            ``finetune_subjects`` of ``before``, and ``before`` as ``continued_from``.
        """
        return replace(
            self,
            subjects=unique_subjects(self.subjects, before.subjects),
            finetune_subjects=before.finetune_subjects,
            continued_from=asdict(before),
        )


class Pretrained(NamedTuple):
    """Result of ``load_encoder``: a pretrained encoder, its encoder card and a load report.

    Attributes
    ----------
    encoder : PatchEncoder
        Encoder. If an object with an encoder was passed to
        :func:`~braindecode_pars.pretrained.load_encoder`, this is the encoder of the object itself,
        not a copy.
    card : EncoderCard
        Encoder card, which describes the training data and the pretext task of the encoder.
    report : LoadReport | None
        Report on which tensors were loaded from a file; None if an object was passed.

    Examples
    --------
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.pretrained import load_encoder
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> pretrained = load_encoder(encoder)
    >>> pretrained.encoder is encoder, pretrained.card.subjects, pretrained.report
    (True, None, None)
    """

    encoder: PatchEncoder
    card: EncoderCard
    report: LoadReport | None


def warn_unknown_corpora(
    cards: Mapping[str, Iterable[EncoderCard]], test_subjects: Iterable
) -> None:
    """Warn of possible data leakage if subject numbers are equal and a corpus is unknown.

    Parameters
    ----------
    cards : mapping of str to iterable of EncoderCard
        Encoder cards by method.
    test_subjects : iterable
        Test subjects, as ``corpus:name`` if the corpus is known.

    Warns
    -----
    UserWarning
        If a test subject and a training subject have the same number, and the corpus of one of
        them is unknown.
    """
    seen = {name: [s for card in cards[name] for s in card.seen_subjects] for name in cards}
    keys = {name: SeenSubjects(subjects) for name, subjects in seen.items()}
    pairs = [(n, str(whole(s))) for s in test_subjects for n in keys if keys[n].may_have(s)]
    if pairs:
        methods, names = ([*dict.fromkeys(column)] for column in zip(*pairs, strict=True))
        corpora = checks.format_list(public_corpora(s for name in methods for s in seen[name]))
        checks.warn_user(
            f"Possible data leakage: the test subjects {checks.format_list(names)} have the same "
            f"numbers as training subjects in the encoder card of {checks.format_list(methods)}, "
            "and may be the same subjects, because the corpus of the test subjects or of the "
            "training subjects is unknown. If the test subjects belong to "
            f"{corpora or 'the pretraining corpus'}, their scores are not held-out scores. To "
            "distinguish the subjects, add the entry 'corpus' to the description of each recording."
        )


def unknown_card(owner: Any) -> EncoderCard:
    """Return an encoder card with unknown subjects, for a model without a card.

    The card contains the sampling rate if the model is a PARSNet with a known sampling rate.
    """
    sfreq = getattr(owner, "_sfreq", None)
    return EncoderCard(sfreq=sfreq, subjects=None, finetune_subjects=None)


def fine_tuned_card(
    card: EncoderCard, sfreq: float | None, *subject_lists: Iterable | None
) -> EncoderCard:
    """Return the card of an encoder after fine-tuning on the subjects in ``subject_lists``.

    If any list is None (unknown), ``finetune_subjects`` of the returned card is None.
    """
    subjects = unique_subjects(card.finetune_subjects, *subject_lists)
    # This number on a card that was saved for sharing refers to the previous fine-tuning.
    about = {name: value for name, value in card.about.items() if name != "n_finetune_subjects"}
    return replace(card, sfreq=sfreq, finetune_subjects=subjects, about=about)


def read_card(described: dict[str, Any]) -> EncoderCard:
    """Convert a card from JSON.

    Raises
    ------
    TypeError, ValueError
        If the card has an unknown entry or an invalid preprocessing.
    """
    card = EncoderCard(**described)
    if "licence" in card.about:  # key of earlier versions
        card.about = {"license" if k == "licence" else k: v for k, v in card.about.items()}
    card.preprocessing = Preprocessing.of(card.preprocessing)
    for name in ("subjects", "finetune_subjects"):
        subjects = getattr(card, name)
        # Up to version 0.2.0, cards that were saved for sharing contained salted hashes of names.
        if subjects is None or any("scrypt$" in str(subject) for subject in subjects):
            setattr(card, name, None)
        else:  # tuples were stored as lists in JSON
            setattr(card, name, [tuple(s) if isinstance(s, list) else s for s in subjects])
    return card


def card_of(kind: str, description: Mapping[str, Any]) -> EncoderCard:
    """Return the encoder card in the description of a model file."""
    # The card of a fine-tuned encoder is stored in the entry of its estimator, if there is one.
    entries = {**description.get(model_files.ENTRIES.get(kind, ""), {}), **description}
    return read_card(entries["pretraining"])


def unique_subjects(*groups: Iterable | None) -> list | None:
    """Return the sorted unique subjects of several groups; None if a group is unknown (None)."""
    subjects: set[Any] = set()
    for group in groups:
        if group is None:
            return None
        subjects.update(s.item() if hasattr(s, "item") else s for s in group)  # NumPy scalars
    # Subjects are sorted by type first, because values of different types cannot be compared.
    return sorted(subjects, key=lambda subject: (str(type(subject)), subject))


#: License identifiers of the Hugging Face Hub.
_LICENSES = (
    *("apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "gpl-3.0", "lgpl-3.0", "agpl-3.0"),
    *("cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0"),
    *("odc-by", "odbl", "pddl"),
)
#: Entries of ``about`` that are not rendered in the list of all other entries: the template renders
#: them in other sections, or not at all.
_PLACED = {*SHARED_FACTS, "held_out", "audit"} - {"date"}


def model_card(
    kind: str,
    description: Mapping[str, Any],
    *,
    source: str = "FOLDER",
) -> str:
    """Render the model card of a model file, for the Hugging Face Hub.

    Parameters
    ----------
    kind : str
        Kind of the model: the name of its class.
    description : mapping
        Description in the model file.
    source : str
        Folder or model id that is used in the code example.

    Returns
    -------
    str
        Markdown text with a YAML header, which contains ``library_name``, ``tags``,
        ``pipeline_tag`` and, if the license is known, ``license``.

    Examples
    --------
    >>> from braindecode_pars.pretrained.cards import model_card
    >>> described = {"pretraining": {"task": "pars", "sfreq": 100.0, "about": {}}, "encoder": {}}
    >>> print(model_card("PatchEncoder", described).split("---")[1])
    <BLANKLINE>
    library_name: "braindecode_pars"
    tags: ["eeg", "braindecode", "self-supervised-learning", "PatchEncoder", "pars"]
    pipeline_tag: "feature-extraction"
    <BLANKLINE>
    """
    estimator: Mapping[str, Any] = description.get(model_files.ENTRIES.get(kind, ""), {})
    card = card_of(kind, description)
    # The card of a classifier or regressor describes its encoder, not the model.
    facts = card.about
    model_facts = {} if kind in model_files.PREDICTORS else facts
    labels = estimator.get("classes", {}).get("values", ())
    template = jinja2.Template(
        Path(__file__).with_name("model_card.md").read_text(encoding="utf-8"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return template.render(
        kind=kind,
        is_predictor=kind in model_files.PREDICTORS,
        source=source,
        card=card,
        facts=facts,
        model_facts=model_facts,
        hub_license=_hub_license(model_facts.get("license")),
        classes=[*zip(labels, estimator.get("class_names") or labels, strict=True)],
        corpora=dict.fromkeys([*facts.get("corpora", ()), *public_corpora(card.seen_subjects)]),
        encoder_config=description.get("encoder", {}),
        other_facts={k: v for k, v in facts.items() if k not in _PLACED and v},
        text_of=text_of,
        preprocessing=_preprocessing(description, estimator, card),
    )


def _hub_license(license_name: str | None) -> dict[str, str]:
    """Return the entries for a license in the YAML header of a model card."""
    if not license_name:
        return {}
    # The Hub accepts only these characters.
    name = re.sub(r"[^a-z0-9.]+", "-", license_name.lower()).strip("-")
    name = {"odc-by-1.0": "odc-by"}.get(name, name)
    return {"license": name} if name in _LICENSES else {"license": "other", "license_name": name}


def _preprocessing(
    description: Mapping[str, Any], estimator: Mapping[str, Any], card: EncoderCard
) -> dict[str, Any]:
    """Return the known preprocessing. Entries of the estimator replace those of its encoder."""
    about = {name: card.about[name] for name in FIELDS if card.about.get(name) is not None}
    known = about | card.preprocessing.known() | estimator.get("preprocessing", {})
    windows, network = estimator.get("windows", {}), description.get("network", {})
    known["sfreq"] = sfreq = windows.get("sfreq") or card.sfreq or known.get("sfreq")
    n_times = network.get("n_times") or windows.get("n_times") or card.n_times
    if sfreq and n_times:
        known["window_seconds"] = n_times / sfreq
    names = windows.get("ch_names") or [ch["ch_name"] for ch in network.get("chs_info") or ()]
    return dict.fromkeys(FIELDS) | {"channels": names} | known
