"""The card of a pretrained encoder: what it was trained on, and how it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from typing import Any, NamedTuple

from braindecode_pars._common.model_files import ENTRIES, LoadReport
from braindecode_pars._common.subjects import NO_SUBJECT, hide_subjects, new_salt, salt_of
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.recordings.preprocessing import (
    AVERAGE,
    Difference,
    Preprocessing,
    differences,
)

#: Entries of ``about`` that are kept when an encoder is shared: on corpora, not on people.
SHARED_FACTS = (
    *("name", "description", "licence", "attribution", "corpora", "band", "reference"),
    *("channels", "date"),
)

#: Entries that matter to an encoder: it normalises each window, and sees one channel at a time. A
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
        Arguments of the task that the user passed.
    subjects : list | None
        Subjects used for pretraining, as ``corpus:name`` where the corpus is known; empty when
        there were none, as with synthetic signals; None when they are unknown. A subject without a
        corpus may be of any. The names of a shared encoder are salted hashes, see
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
    - ``licence``, ``attribution``: licence, and a list of what to cite.
    - ``corpora``, ``people``: lists of the corpora and of a text on the people of each.
    - ``band``, ``reference``, ``channels``: lower and upper edge of the band-pass in Hz, the
      reference, and a list of the channels.
    - ``held_out``: ``loss_relative`` on the held-out ``people``, and ``parts``,
      ``n_crops`` and ``seed`` of ``docs/experiments/held_out_loss.py``.
    - ``date``, ``command``, ``machine``: when, how and where it was trained.
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
            As from :func:`~braindecode_pars.recordings.preprocessing.differences`. The averages of
            many channels are one reference.

        Examples
        --------
        >>> from braindecode_pars.pretrained import load_encoder
        >>> from braindecode_pars.recordings.preprocessing import Preprocessing
        >>> card = load_encoder("small").card
        >>> print(*card.differences(Preprocessing(reference="as recorded")))
        reference as recorded, but average in training
        """
        pair = [
            replace(each, reference=AVERAGE)
            if each.reference and len(each.reference.split(",")) >= _MANY
            else each
            for each in (self.preprocessing, found)
        ]
        return [each for each in differences(*pair) if each.name in OF_ENCODERS]

    def without_names(self) -> EncoderCard:
        """Return this card without the names of people, for those who get the encoder.

        Subjects become salted hashes, such as ``physionet_mi:scrypt$salt$hash``; a public corpus
        stays readable, and any other one becomes a hash too. The number of subjects can still be
        counted. Evaluation recognises its own test subjects on the card, since it hashes their
        names with the salt. So can everybody who has a name, or a list of names to try: about five
        milliseconds of one core for each. Subject numbers are such a list. Hashes are therefore no
        anonymisation. With ``subjects=None`` the card has none, and evaluation warns that the
        subjects are unknown.

        Of ``about``, only entries that describe corpora and preprocessing are kept, not ``people``,
        ``held_out``, ``command``, ``machine`` or entries of your own. The texts of the kept
        entries are not changed: check that they contain no names.

        Returns
        -------
        EncoderCard
            A new card. Hashes of an earlier card, such as those of an encoder that this one
            continues, stay as they are.

        Examples
        --------
        >>> from braindecode_pars.pretrained import EncoderCard
        >>> card = EncoderCard(subjects=["anna", "physionet_mi:S007"]).without_names()
        >>> [subject.partition("$")[0] for subject in card.subjects]
        ['physionet_mi:scrypt', 'scrypt']
        """
        # A subject that is hidden already has a salt: a person has one hash.
        salts = (salt_of(str(name).rpartition(":")[2]) for name in self.seen_subjects)
        return self._hidden(min(filter(None, salts), default=None) or new_salt())

    def _hidden(self, salt: str) -> EncoderCard:
        def hidden(names: list | None) -> list | None:
            return None if names is None else hide_subjects(names, salt)

        before = self.continued_from
        return replace(
            self,
            subjects=hidden(self.subjects),
            finetune_subjects=hidden(self.finetune_subjects),
            continued_from=None if before is None else asdict(read_card(before)._hidden(salt)),
            about={key: value for key, value in self.about.items() if key in SHARED_FACTS},
        )

    def continues(self, before: EncoderCard) -> EncoderCard:
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


def unknown_card(owner: Any) -> EncoderCard:
    """Return the card of a model without a card. A PARSNet may have a sampling rate."""
    sfreq = getattr(owner, "_sfreq", None)
    return EncoderCard(sfreq=sfreq, subjects=None, finetune_subjects=None)


def fine_tuned_card(
    card: EncoderCard, sfreq: float | None, *people: Iterable | None
) -> EncoderCard:
    """Return the card of an encoder after a fit on labels of further people."""
    subjects = unique_subjects(card.finetune_subjects, *people)
    return replace(card, sfreq=sfreq, finetune_subjects=subjects)


def read_card(described: dict[str, Any]) -> EncoderCard:
    """Return a card from JSON.

    Raises
    ------
    TypeError, ValueError
        When an entry is unknown, or preprocessing is not accepted.
    """
    card = EncoderCard(**described)
    card.preprocessing = Preprocessing.of(card.preprocessing)
    for name in ("subjects", "finetune_subjects"):
        subjects = getattr(card, name)
        if subjects is not None:  # JSON stores tuples as lists
            setattr(card, name, [tuple(s) if isinstance(s, list) else s for s in subjects])
    return card


def card_of(kind: str, description: Mapping[str, Any]) -> EncoderCard:
    """Return the card in the description of a model file."""
    # That of a fine-tuned encoder is an entry of its estimator.
    entries = {**description.get(ENTRIES.get(kind, ""), {}), **description}
    return read_card(entries["pretraining"])


def unique_subjects(*groups: Iterable | None) -> list | None:
    """Return the sorted subjects of several sets of windows; None when some are unknown."""
    subjects: set[Any] = set()
    for group in groups:
        if group is None:
            return None
        subjects.update(s.item() if hasattr(s, "item") else s for s in group)  # NumPy scalars
    subjects.discard(NO_SUBJECT)
    # Sorting by type first allows mixed types.
    return sorted(subjects, key=lambda subject: (str(type(subject)), subject))
