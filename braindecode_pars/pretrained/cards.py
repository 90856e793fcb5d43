"""The card of a pretrained encoder: what it was trained on, and its page for the Hub.

The page, ``README.md``, is made of the description in a model file and of ``model_card.md``.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
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

#: Entries of ``about`` that a shared encoder has, too: about corpora, not about subjects.
SHARED_FACTS = (
    *("name", "description", "license", "attribution", "corpora", "band", "reference"),
    *("channels", "date", "n_subjects", "n_finetune_subjects"),
)

#: Entries that matter to an encoder: it normalizes each window, and sees one channel at a time. A
#: notch filter is not one: 50 and 60 Hz are the mains of two countries.
OF_ENCODERS = ("band", "reference")
#: Fewest channels whose average is one reference to an encoder, whatever channels they are.
_MANY = 16


@dataclass
class EncoderCard:
    """Training data and pretext task of a pretrained encoder.

    Evaluation warns when a test subject is on the card. Estimators raise an error when windows
    have another sampling rate.

    Attributes
    ----------
    sfreq : float | None
        Sampling rate of the training windows in Hz; None when it is unknown.
    task : str | None
        Name of the pretext task; None without pretraining, or when the task is unknown.
    task_params : dict
        Arguments of the task that differ from its defaults.
    subjects : list | None
        Subjects used for pretraining, as ``corpus:name`` where the corpus is known; empty when
        there were none; None when they are unknown. A subject without a corpus may be of any, but
        not a number, which is in many corpora. A shared encoder has no names, see
        :meth:`without_names`.
    finetune_subjects : list | None
        Subjects used for fine-tuning afterwards; None when they are unknown.
    n_windows, epochs : int
        Number of windows and of epochs of pretraining.
    n_times, n_steps, n_examples : int | None
        Number of samples in a crop, number of training steps, and number of crops in all of them;
        None when they are unknown. The cost of pretraining is computed from them.
    loss_relative : float | None
        Last training loss of pretraining, relative to chance.
    held_out_loss_relative : float | None
        The same on held-out subjects, where it was measured.
    sham : bool
        Whether the targets were those of other windows, so that nothing could be learned.
    continued_from : dict | None
        Card of the encoder that this pretraining continued with, as a dict; None for a new
        encoder. ``subjects`` also contains the subjects of that card.
    preprocessing : Preprocessing
        Preprocessing of the recordings, as far as it is known and the same for all. It has no
        channels: an encoder sees one at a time.
    about : dict of str to Any
        Facts that training does not know, for those who use the encoder; empty by default. The
        encoders in the package have the entries below.
    versions : dict of str to str
        Versions of the packages that trained the encoder.

    Notes
    -----
    Entries of ``about`` in the encoders of the package, all in the types of JSON:

    - ``name``, ``description``: its name, and a sentence.
    - ``license``, ``attribution``: license, and a list of what to cite.
    - ``corpora``, ``people``: lists of the corpora and of a text on the people of each.
    - ``band``, ``reference``, ``channels``: lower and upper edge of the band-pass in Hz, the
      reference, and a list of the channels.
    - ``held_out``: ``loss_relative`` on the held-out ``people``, and ``parts``,
      ``n_crops`` and ``seed`` of ``docs/experiments/held_out_loss.py``.
    - ``date``, ``command``, ``machine``: when, how and where it was trained.
    - ``n_subjects``, ``n_finetune_subjects``: numbers of the subjects that a shared encoder does
      not name.
    - ``audit``: a list of what its features hold, before any fine-tuning. Each entry has the
      ``recordings``, when and where it was ``measured``, and the columns of a ``table`` from
      :func:`~braindecode_pars.evaluation.audit_encoder`, with a row for each property.

    An encoder that continues has an ``about`` of its own; the earlier one is in
    ``continued_from``.

    Examples
    --------
    >>> from braindecode_pars.pretrained import EncoderCard
    >>> card = EncoderCard(sfreq=200.0, task="pars", subjects=["P01", "P02"])
    >>> sorted(card.seen_subjects)
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
            name: version(name) for name in ("braindecode_pars", "braindecode", "torch")
        }
    )

    @property
    def seen_subjects(self) -> set:
        """All known training subjects, of pretraining and of fine-tuning."""
        return {*(self.subjects or ()), *(self.finetune_subjects or ())}

    def differences(self, found: Preprocessing) -> list[Difference]:
        """Compare band and reference of the training with those of other recordings.

        Parameters
        ----------
        found : Preprocessing
            Preprocessing of windows or of a store.

        Returns
        -------
        list of Difference
            As from :func:`~braindecode_pars.windows.preprocessing.differences`. The averages of
            many channels are one reference.

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
            if preprocessing.reference and len(preprocessing.reference.split(",")) >= _MANY
            else preprocessing
            for preprocessing in (self.preprocessing, found)
        ]
        return [entry for entry in differences(*pair) if entry.name in OF_ENCODERS]

    def without_names(self) -> Self:
        """Return this card without the names of people, for those who get the encoder.

        Subjects are unknown on it: ``None``, so that evaluation warns that it cannot tell whether a
        test subject was in the training. ``about`` says how many there were, and which public
        corpora they are of. An encoder without training subjects stays one.

        Of ``about``, only entries that describe corpora and preprocessing are kept, not ``people``,
        ``held_out``, ``command``, ``machine`` or entries of your own. The texts of the kept
        entries are not changed: check that they contain no names.

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
        """Return this card as the continuation of an earlier one.

        Parameters
        ----------
        before : EncoderCard
            Card of the encoder before this pretraining.

        Returns
        -------
        EncoderCard
            This card with the subjects of both, and with the earlier one as ``continued_from``.
        """
        return replace(
            self,
            subjects=unique_subjects(self.subjects, before.subjects),
            finetune_subjects=before.finetune_subjects,
            continued_from=asdict(before),
        )


class Pretrained(NamedTuple):
    """An encoder, its card and its load report, as returned by :func:`load_encoder`.

    Attributes
    ----------
    encoder : PatchEncoder
        Encoder: a new one when loaded from a folder, otherwise the encoder of the object itself.
    card : EncoderCard
        Training data and pretext task of the encoder.
    report : LoadReport | None
        Tensors that were loaded; None when the source was an object.

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
    """Say once which test subjects encoders may have seen, if a corpus were the same.

    Parameters
    ----------
    cards : mapping of str to iterable of EncoderCard
        Cards of the encoders of each method.
    test_subjects : iterable
        Test subjects, with their corpus in front where it is known.

    Warns
    -----
    UserWarning
        When a test subject has the number of a training subject, and a corpus is unknown.
    """
    seen = {name: [s for card in cards[name] for s in card.seen_subjects] for name in cards}
    keys = {name: SeenSubjects(subjects) for name, subjects in seen.items()}
    pairs = [(n, str(whole(s))) for s in test_subjects for n in keys if keys[n].may_have(s)]
    if pairs:
        methods, names = ([*dict.fromkeys(column)] for column in zip(*pairs, strict=True))
        corpora = checks.format_list(public_corpora(s for name in methods for s in seen[name]))
        checks.warn_user(
            f"The corpus of the test subjects {checks.format_list(names)} is unknown, and the encoder "
            f"of {checks.format_list(methods)} was pretrained on subjects with the same numbers. Scores "
            f"of subjects of {corpora or 'its corpus'} are not held-out scores."
        )


def unknown_card(owner: Any) -> EncoderCard:
    """Return the card of a model without a card. A PARSNet may have a sampling rate."""
    sfreq = getattr(owner, "_sfreq", None)
    return EncoderCard(sfreq=sfreq, subjects=None, finetune_subjects=None)


def fine_tuned_card(
    card: EncoderCard, sfreq: float | None, *subject_lists: Iterable | None
) -> EncoderCard:
    """Return the card of an encoder after a fit on labels of further subjects."""
    subjects = unique_subjects(card.finetune_subjects, *subject_lists)
    # The number on a shared card is that of the earlier fine-tuning.
    about = {name: value for name, value in card.about.items() if name != "n_finetune_subjects"}
    return replace(card, sfreq=sfreq, finetune_subjects=subjects, about=about)


def read_card(described: dict[str, Any]) -> EncoderCard:
    """Return a card from JSON.

    Raises
    ------
    TypeError, ValueError
        When an entry is unknown, or preprocessing is not accepted.
    """
    card = EncoderCard(**described)
    if "licence" in card.about:  # its name in earlier versions
        card.about = {"license" if k == "licence" else k: v for k, v in card.about.items()}
    card.preprocessing = Preprocessing.of(card.preprocessing)
    for name in ("subjects", "finetune_subjects"):
        subjects = getattr(card, name)
        # Up to version 0.2.0, a shared encoder had salted hashes of names.
        if subjects is None or any("scrypt$" in str(subject) for subject in subjects):
            setattr(card, name, None)
        else:  # JSON stores tuples as lists
            setattr(card, name, [tuple(s) if isinstance(s, list) else s for s in subjects])
    return card


def card_of(kind: str, description: Mapping[str, Any]) -> EncoderCard:
    """Return the card in the description of a model file."""
    # The card of a fine-tuned encoder is in the entry of its estimator.
    entries = {**description.get(model_files.ENTRIES.get(kind, ""), {}), **description}
    return read_card(entries["pretraining"])


def unique_subjects(*groups: Iterable | None) -> list | None:
    """Return the sorted subjects of several sets of windows; None when some are unknown."""
    subjects: set[Any] = set()
    for group in groups:
        if group is None:
            return None
        subjects.update(s.item() if hasattr(s, "item") else s for s in group)  # NumPy scalars
    # Sorting by type first allows mixed types.
    return sorted(subjects, key=lambda subject: (str(type(subject)), subject))


#: Licenses by the identifiers of the Hub.
_LICENSES = (
    *("apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "gpl-3.0", "lgpl-3.0", "agpl-3.0"),
    *("cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0"),
    *("odc-by", "odbl", "pddl"),
)
#: Entries of ``about`` that have a place of their own in the template.
_PLACED = {*SHARED_FACTS, "held_out", "audit"} - {"date"}


def model_card(
    kind: str,
    description: Mapping[str, Any],
    *,
    source: str = "FOLDER",
) -> str:
    """Return the text of a model card.

    Parameters
    ----------
    kind : str
        Kind of the model.
    description : mapping
        Description in the model file.
    source : str
        Where the model can be loaded from, for the example.

    Returns
    -------
    str
        Markdown with a header in YAML: ``library_name``, ``tags`` and ``pipeline_tag``, and
        ``license`` where it is known.

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
    # The card of a classifier or regressor is that of its encoder.
    facts = card.about
    model_facts = {} if kind in model_files.PREDICTORS else facts
    page = dict(
        kind=kind,
        header=_header(kind, card.task, model_facts.get("license")),
        title=model_facts.get("name", f"{kind} for EEG"),
        about=model_facts.get("description"),
        source=source,
        card=card,
        facts=facts,
        classes=_classes(estimator),
        people={
            "Pretraining": _corpus_subjects(card.subjects, facts.get("n_subjects")),
            "Fine-tuning": _corpus_subjects(
                card.finetune_subjects, facts.get("n_finetune_subjects")
            ),
        },
        corpora=dict.fromkeys([*facts.get("corpora", ()), *public_corpora(card.seen_subjects)]),
        encoder=_encoder(card, description.get("encoder", {})),
        license=model_facts.get("license"),
        license_of_encoder=facts.get("license") if kind in model_files.PREDICTORS else None,
        text_of=text_of,
        preprocessing=_preprocessing(description, estimator, card),
    )
    template = jinja2.Template(
        Path(__file__).with_name("model_card.md").read_text(encoding="utf-8"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return template.render(page)


def _header(kind: str, task: str | None, license_name: str | None) -> dict[str, Any]:
    entries: dict[str, Any] = {"library_name": "braindecode_pars"}
    if license_name:
        # The Hub accepts only these characters in a name of a license; the text has all of it.
        name = re.sub(r"[^a-z0-9.]+", "-", license_name.lower()).strip("-")
        name = {"odc-by-1.0": "odc-by"}.get(name, name)
        is_known = name in _LICENSES
        entries |= {"license": name} if is_known else {"license": "other", "license_name": name}
    tags = ["eeg", "braindecode", "self-supervised-learning", kind]
    entries["tags"] = [*tags, task] if task else tags
    # The Hub has no task of classifying signals.
    entries["pipeline_tag"] = "other" if kind in model_files.PREDICTORS else "feature-extraction"
    return entries


def _classes(estimator: Mapping[str, Any]) -> list[str]:
    """Return labels, with the names of their classes in brackets."""
    labels = [str(label) for label in estimator.get("classes", {}).get("values", ())]
    names = map(str, estimator.get("class_names") or labels)
    pairs = zip(labels, names, strict=True)
    return [label if name == label else f"{label} ({name})" for label, name in pairs]


def _corpus_subjects(subjects: list | None, number: int | None) -> str:
    """Return the number of subjects, with their names where the card has them."""
    if subjects is None and number is None:
        return "subjects that are unknown"
    n = len(subjects) if subjects is not None else number
    text = f"{n or 'no'} subject{'' if n == 1 else 's'}"
    return f"{text} ({', '.join(map(str, subjects))})" if subjects else text


def _preprocessing(
    description: Mapping[str, Any], estimator: Mapping[str, Any], card: EncoderCard
) -> dict[str, Any]:
    """Return what is known, of the estimator before that of its encoder."""
    about = {name: card.about[name] for name in FIELDS if card.about.get(name) is not None}
    known = about | card.preprocessing.known() | estimator.get("preprocessing", {})
    windows, network = estimator.get("windows", {}), description.get("network", {})
    known["sfreq"] = sfreq = windows.get("sfreq") or card.sfreq or known.get("sfreq")
    n_times = network.get("n_times") or windows.get("n_times") or card.n_times
    if sfreq and n_times:
        known["window_seconds"] = n_times / sfreq
    names = windows.get("ch_names") or [ch["ch_name"] for ch in network.get("chs_info") or ()]
    return dict.fromkeys(FIELDS) | {"channels": names} | known


def _encoder(card: EncoderCard, config: Mapping[str, Any]) -> dict[str, str]:
    """Return what is known of an encoder and of its pretraining, by name."""
    before = card.continued_from
    facts = {
        "task": card.task and " ".join([card.task, *_given(card.task_params)]),
        "architecture": ", ".join(_given(config)),
        "continued from": before and f"an encoder of the task {before['task']}",
        "versions": ", ".join(f"{name} {version}" for name, version in card.versions.items()),
        **{name: value for name, value in card.about.items() if name not in _PLACED},
    }
    return {
        name: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in facts.items()
        if value
    }


def _given(arguments: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in arguments.items()]
