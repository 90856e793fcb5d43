"""Compare names of subjects across spellings and corpora, and infer subjects from file paths.

Names are compared by two rules, because there are two possible errors:

- Two spellings of one subject are treated as two subjects. This may cause data leakage (training on
  test subjects). Where leakage must be avoided, names are therefore compared with
  :func:`subject_key`, which ignores the spelling: in warnings, when subjects are excluded, and when
  windows are held out. If it is unclear whether two names belong to the same subject, they are
  treated as the same subject. There is one exception: if a number without a corpus, such as "01",
  is in the list of training subjects of an encoder, it does not match subject 1 of a named corpus,
  see :class:`SeenSubjects`.
- Two subjects are merged into one. To avoid this, splits and scores use the names without changes.
  :func:`warn_of_similar_names` reports names in a dataset that have the same key.

In both cases, names are converted to the same Unicode form: macOS stores "ö" as two characters,
other systems store it as one character.

A name may begin with its corpus, as in ``tueg:aaaaaaaa``. Subject 1 of one corpus and subject 1 of
another corpus are therefore different subjects. A name without a corpus may belong to any corpus.
Corpora that share subjects are treated as one corpus.
"""

import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from braindecode_pars._common.checks import format_list, warn_user
from braindecode_pars._common.names import RECIPES

#: File extensions of recordings, which are not part of the name of a recording.
_ENDING = re.compile(r"\.(edf|bdf|hea|fif(\.gz)?|vhdr|set)$", re.IGNORECASE)

#: BIDS label of a subject in the name of a folder or file.
_BIDS_LABEL = re.compile(r"(?:^|_)sub-([^_]+)")

#: File name of a recording in the corpora of Temple University Hospital.
_TEMPLE_NAME = re.compile(r"([a-z]{8}|\d{8})_s\d{3}_t\d{3}\.edf", re.IGNORECASE)

#: File names of recordings in other public corpora, without the extension.
_PUBLIC_NAMES = {
    "physionet_mi": re.compile(r"(S\d{3})R\d{2}"),
    "ucddb": re.compile(r"(ucddb\d{3})"),
}

#: Public corpora, that is, corpora with a recipe.
CORPORA = tuple(RECIPES)

#: Family of each corpus that shares subjects with other corpora. All of these corpora are parts of
#: the corpus of Temple University Hospital.
_FAMILIES: dict[str | None, str] = {
    corpus.name: flag for corpus in RECIPES.values() for flag in corpus.flags
}

#: Name of a subject that is a number, optionally after a prefix: "sub", or a corpus (ucddb002).
_NUMBER = re.compile(
    rf"(?:(?P<corpus>{'|'.join(CORPORA)})|s|sub|subj|subject)?[ _-]?(?P<number>[0-9]+)(?:\.0+)?"
)

#: Name of a subject with its corpus, such as "tueg:aaaaaaaa".
_QUALIFIED = re.compile(r"(?P<corpus>[^:]+):(?P<name>.+)")


def normalized(subject: Any) -> Any:
    """Convert a name to the Unicode form NFC, and remove invisible characters.

    An example of an invisible character is a byte-order mark. Values that are not strings are
    returned unchanged.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import normalized
    >>> [*map(normalized, ("Jo\u0308rg", "\ufeffP\u200b1", 7))]
    ['Jörg', 'P1', 7]
    """
    if not isinstance(subject, str) or subject.isascii():
        return subject
    visible_characters = (char for char in subject if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFC", "".join(visible_characters))


def visible(text: str) -> str:
    """Convert a text to a form for comparisons: see :func:`normalized`, and in lower case."""
    return normalized(text).casefold()


def whole(value: Any) -> Any:
    """Convert a float without a fractional part to int. Other values are returned unchanged.

    In pandas, integers become such floats if their column has missing values.
    """
    return int(value) if isinstance(value, float) and value.is_integer() else value


def without_ending(file: str) -> str:
    """Return the name or path of a recording without its extension, such as .edf or .fif.gz.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import without_ending
    >>> without_ending("day1/P01.v2.fif.gz"), without_ending("P01.v2")
    ('day1/P01.v2', 'P01.v2')
    """
    return _ENDING.sub("", file)


def subject_key(subject: Any) -> str:
    """Return a key that is the same for all spellings of the name of a subject.

    For example, all of these names have the key "7": 7, 7.0 (in a pandas column with missing
    values), "7", "007" (BIDS label), "sub-007", "S007" and "Subject07". After other prefixes,
    leading zeros are kept: "P07" and "P7" have different keys. Keys do not depend on case, or on
    leading and trailing white space. If the name contains a corpus, as in "physionet_mi:S007" or
    "ucddb007", the corpus is part of the key.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import subject_key
    >>> {subject_key(subject) for subject in (7, 7.0, "7", "007", "sub-007", "S007", "Subject07")}
    {'7'}
    >>> subject_key("P07"), subject_key("P7"), subject_key("physionet_mi:S007")
    ('p07', 'p7', 'physionet_mi:7')
    """
    corpus, name = _key(subject)
    return name if corpus is None else f"{corpus}:{name}"


def in_corpus(corpus: str | None, subject: Any) -> Any:
    """Add the name of the corpus as a prefix to the name of a subject.

    Parameters
    ----------
    corpus : str | None
        Name of the corpus. If None, the name of the subject is not changed.
    subject : Any
        Name of the subject. If it already begins with the corpus, it is not changed.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import in_corpus
    >>> in_corpus("physionet_mi", 7), in_corpus("tueg", "tueg:aaaaaaaa"), in_corpus(None, 7)
    ('physionet_mi:7', 'tueg:aaaaaaaa', 7)
    """
    if corpus is None or _parts(subject)[0] == normalized(corpus).casefold():
        return subject
    return f"{corpus}:{normalized(whole(subject))}"


class SubjectKeys:
    """Set of subjects: ``subject in keys`` is True if the subject may be in the set.

    Two names may belong to the same subject if both of these conditions hold: their keys without
    the corpus are equal (see :func:`subject_key`), and their corpora are equal or at least one
    corpus is unknown. The corpora of Temple University Hospital are treated as one corpus, because
    they share subjects.

    Parameters
    ----------
    subjects : iterable
        Names of subjects, with or without their corpus.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import SubjectKeys
    >>> seen = SubjectKeys(["physionet_mi:S002", 3, "tueg:aaaaaaaa"])
    >>> "physionet_mi:2" in seen, 2 in seen, "eegmat:2" in seen
    (True, True, False)
    >>> "eegmat:3" in seen  # the corpus of subject 3 is unknown, so it may be eegmat
    True
    >>> "tuab:aaaaaaaa" in seen  # tuab and tueg share subjects
    True
    """

    def __init__(self, subjects: Iterable):
        self._corpora: dict[str, set[str | None]] = {}
        for corpus, name in map(_key, subjects):
            self._corpora.setdefault(name, set()).add(corpus)

    def __contains__(self, subject: Any) -> bool:
        corpus, name = _key(subject)
        corpora = self._corpora.get(name, set())
        return bool(corpora) and (corpus is None or not corpora.isdisjoint({corpus, None}))


class SeenSubjects(SubjectKeys):
    """Set of training subjects of an encoder, with strict matching of numbers without a corpus.

    ``subject in seen`` is True if the subject is in the set. Names are compared as in
    :class:`SubjectKeys`, except for numbers. Numbers such as 1, "s01" or "sub-01" occur in many
    corpora. Therefore, a number without a corpus matches only the same number without a corpus.
    :meth:`may_have` returns whether an unknown corpus is the only reason why a subject does not
    match.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import SeenSubjects
    >>> seen = SeenSubjects(["physionet_mi:1", 2, "tueg:aaaaaaaa"])
    >>> "s01" in seen, "physionet_mi:S001" in seen, "s02" in seen, "aaaaaaaa" in seen
    (False, True, True, True)
    >>> seen.may_have("s01"), seen.may_have("eegmat:1"), seen.may_have("s03")
    (True, False, False)
    """

    def __contains__(self, subject: Any) -> bool:
        corpus, name = _key(subject)
        if name.isdecimal():
            return corpus in self._corpora.get(name, ())
        return super().__contains__(subject)

    def may_have(self, subject: Any) -> bool:
        """Whether an unknown corpus is the only reason why the subject is not in the set."""
        return subject not in self and super().__contains__(subject)


def public_corpora(subjects: Iterable) -> list[str]:
    """Return the public corpora that occur as prefixes of subject names, sorted.

    A corpus is public if :mod:`braindecode_pars.datasets` contains a function that reads it.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import public_corpora
    >>> public_corpora(["physionet_mi:7", "study:Berta", 7])
    ['physionet_mi']
    """
    return sorted({corpus for corpus, _ in map(_parts, subjects) if corpus in CORPORA})


def _parts(subject: Any) -> tuple[str | None, Any]:
    """Split a name into its corpus (in lower case; None if unknown) and the rest of the name."""
    match = _QUALIFIED.fullmatch(subject) if isinstance(subject, str) else None
    return (normalized(match["corpus"]).casefold(), match["name"]) if match else (None, subject)


def _key(subject: Any) -> tuple[str | None, str]:
    """Return the corpus and the key of the name of a subject.

    If several corpora share subjects, the name of their family is returned as corpus.
    """
    corpus, raw_name = _parts(subject)
    name = visible(str(raw_name)).strip().removeprefix("sub-")
    if match := _NUMBER.fullmatch(name):
        corpus, name = corpus or match["corpus"], str(int(match["number"]))
    return _FAMILIES.get(corpus, corpus), name


def warn_of_similar_names(subjects: Iterable) -> None:
    """Warn if different names may belong to the same subject, such as "01" and "S1".

    Splits treat different names as different subjects, so two names of a subject may cause data
    leakage.

    Parameters
    ----------
    subjects : iterable
        Names of the subjects in a dataset.

    Warns
    -----
    UserWarning
        If two names have the same key (:func:`subject_key`), which ignores leading zeros and
        prefixes such as "S" and "sub-". The message contains these names. Names with different
        corpora are not compared.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import warn_of_similar_names
    >>> warn_of_similar_names(["01", "02", "P1"])  # no warning, because "P" is not ignored
    """
    by_key: dict[str, list] = {}
    for subject in dict.fromkeys(subjects):
        by_key.setdefault(_key(subject)[1], []).append(subject)
    similar = []
    for names in by_key.values():
        # The same name in different corpora belongs to different subjects.
        pairs = ((a, b) for a in names for b in names if a is not b)
        similar_names = [*dict.fromkeys(repr(a) for a, b in pairs if a in SubjectKeys([b]))]
        similar += [" and ".join(similar_names)] if similar_names else []
    if similar:
        warn_user(
            "Some subject names may belong to the same subject: "
            f"{format_list(similar, max_items=5)}. These names are treated as different subjects, "
            "so training and test data may contain the same subject. Use the same name in all "
            "recordings of a subject."
        )


def subject_of_path(path: PurePath) -> str:
    """Infer the subject of a recording from its path.

    If the layout of folders is known, the result of :func:`known_subject_of_path` is returned.
    Otherwise, the name of the top-level folder is returned, or the file name without its extension
    if there is no folder.

    Parameters
    ----------
    path : PurePath
        Path of the file relative to the folder that contains all recordings.

    Returns
    -------
    str
        Name of the subject.

    Examples
    --------
    >>> from pathlib import PurePath
    >>> from braindecode_pars._common.subjects import subject_of_path
    >>> subject_of_path(PurePath("sub-Jörg/ses-1/eeg/sub-Jörg_ses-1_eeg.edf"))
    'Jörg'
    >>> subject_of_path(PurePath("anna/night.edf"))
    'anna'
    """
    known = known_subject_of_path(path)
    if known is not None:
        return known
    *folders, file = (normalized(part) for part in path.parts)
    return folders[0] if folders else without_ending(file)


def public_subject(file: str) -> str | None:
    """Infer the corpus and the subject of a recording of a public corpus from the file name.

    The file names of two PhysioNet corpora are recognized: ``physionet_mi`` (motor imagery) and
    ``ucddb`` (sleep apnea). For all other file names, None is returned.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import public_subject
    >>> public_subject("S001R04.edf"), public_subject("s001.edf")
    ('physionet_mi:S001', None)
    """
    stem = without_ending(file)
    for corpus, pattern in _PUBLIC_NAMES.items():
        if match := pattern.fullmatch(stem):
            return f"{corpus}:{match[1]}"
    return None


def known_subject_of_path(path: PurePath) -> str | None:
    """Infer the subject of a recording from its path, for three known layouts of folders.

    - BIDS: the label in a folder name ``sub-<label>``, or in the file name if there is no such
      folder. The label ends at the next underscore.
    - Corpora of Temple University Hospital: ``aaaaaaaa`` in the file name
      ``aaaaaaaa_s001_t000.edf``, in any folder.
    - PhysioNet challenges, with one folder per recording and one recording per subject:
      ``tr03-0005`` in ``tr03-0005/tr03-0005.hea``.

    Parameters
    ----------
    path : PurePath
        Path of the file relative to the folder that contains all recordings.

    Returns
    -------
    str | None
        Name of the subject. None if the layout is unknown.

    Examples
    --------
    >>> from pathlib import PurePath
    >>> from braindecode_pars._common.subjects import known_subject_of_path
    >>> known_subject_of_path(PurePath("edf/train/aaaaaaab/s001_2003/aaaaaaab_s001_t000.edf"))
    'aaaaaaab'
    >>> known_subject_of_path(PurePath("training/tr03-0005/tr03-0005.hea"))
    'tr03-0005'
    """
    *folders, file = (normalized(part) for part in path.parts)
    stem = without_ending(file)
    for name in (*folders, stem):
        if match := _BIDS_LABEL.search(name):
            return match[1]
    if temple := _TEMPLE_NAME.fullmatch(file):
        return temple[1]
    is_record = path.suffix.lower() == ".hea" and folders[-1:] == [stem]
    return stem if is_record else None


def possible_subjects(path: PurePath) -> list[str]:
    """Return possible names of the subject of a recording, inferred from the path.

    Parameters
    ----------
    path : PurePath
        Path of the file.

    Returns
    -------
    list of str
        If the layout of folders or the file name is known, only the result of
        :func:`known_subject_of_path` or :func:`public_subject`. Otherwise, the names of the two
        innermost folders, the file name without its extension, and each beginning of the file name
        that ends before a space, ``_``, ``-`` or dot.

    Examples
    --------
    >>> from pathlib import PurePath
    >>> from braindecode_pars._common.subjects import possible_subjects
    >>> possible_subjects(PurePath("data/sub-01_eeg.edf")), possible_subjects(PurePath("P01/a.edf"))
    (['01'], ['P01', 'a'])
    """
    known = known_subject_of_path(path) or public_subject(path.name)
    *folders, file = (normalized(part) for part in path.parts)
    stem = without_ending(file)
    beginnings = [stem[: match.start()] for match in re.finditer(r"[ _.-]", stem)]
    return [*folders[-2:], stem, *beginnings] if known is None else [known]
