"""Names of subjects: when two names mean one person, and which subject a file's path names.

Two rules, since two mistakes are possible:

- Comparisons that keep test subjects out of training (leak warnings, exclusion, held-out windows)
  use :func:`subject_key`, which is the same for all spellings of a name. When in doubt, two names
  are one person, so that a test subject is rather excluded too often than trained on.
  :class:`SeenSubjects` is the rule for the cards of encoders: a subject is a corpus and a name, and
  where the corpus of a number is unknown, nothing is claimed.
- Splits and scores use the names as they are, and never merge two names. Names in one data set that
  have the same key are reported by :func:`warn_of_similar_names`.

In both, a name has one Unicode form: macOS writes "ö" as two characters, other systems as one.

A name may begin with its corpus, as in ``tueg:aaaaaaaa``, so that subject 1 of two corpora is two
people. A name without a corpus may be of any. Corpora with people in common are compared as one.
"""

import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from braindecode_pars._common.checks import format_list, warn_user
from braindecode_pars._common.names import RECIPES

#: Endings of recordings, which are not a part of a name.
_ENDING = re.compile(r"\.(edf|bdf|hea|fif(\.gz)?|vhdr|set)$", re.IGNORECASE)

#: Label of a subject in BIDS, in the name of a folder or file.
_BIDS_LABEL = re.compile(r"(?:^|_)sub-([^_]+)")

#: Name of a recording in the corpora of Temple University.
_TEMPLE_NAME = re.compile(r"([a-z]{8}|\d{8})_s\d{3}_t\d{3}\.edf", re.IGNORECASE)

#: Names of recordings in other public corpora, without the ending.
_PUBLIC_NAMES = {
    "physionet_mi": re.compile(r"(S\d{3})R\d{2}"),
    "ucddb": re.compile(r"(ucddb\d{3})"),
}

#: Public corpora: those of the recipes.
CORPORA = tuple(RECIPES)

#: Corpora with subjects in common: all are parts of the corpus of Temple University Hospital.
_FAMILIES: dict[str | None, str] = {
    corpus.name: flag for corpus in RECIPES.values() for flag in corpus.flags
}

#: A number as the name of a subject, with the corpus in front as in ucddb002.
_NUMBER = re.compile(
    rf"(?:(?P<corpus>{'|'.join(CORPORA)})|s|sub|subj|subject)?[ _-]?(?P<number>[0-9]+)(?:\.0+)?"
)

#: Corpus and name, such as "tueg:aaaaaaaa".
_QUALIFIED = re.compile(r"(?P<corpus>[^:]+):(?P<name>.+)")


#: Characters without a width, such as a byte-order mark, a joiner or a soft hyphen.
_NO_WIDTH = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def normalized(subject: Any) -> Any:
    """Return a name in one Unicode form (NFC), without characters of no width.

    Other values are returned as they are.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import normalized
    >>> [*map(normalized, ("Jo\u0308rg", "\ufeffP\u200b1", 7))]
    ['Jörg', 'P1', 7]
    """
    if not isinstance(subject, str):
        return subject
    return unicodedata.normalize("NFC", _NO_WIDTH.sub("", subject))


def visible(text: str) -> str:
    """Return a text in one Unicode form and case, without characters that cannot be seen."""
    seen = (char for char in normalized(text) if unicodedata.category(char) != "Cf")
    return "".join(seen).casefold()


def whole(value: Any) -> Any:
    """Return a whole float, as pandas has in a column with missing values, as an int."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def without_ending(file: str) -> str:
    """Return the name or path of a recording without its ending, such as .edf or .fif.gz.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import without_ending
    >>> without_ending("day1/P01.v2.fif.gz"), without_ending("P01.v2")
    ('day1/P01.v2', 'P01.v2')
    """
    return _ENDING.sub("", file)


def subject_key(subject: Any) -> str:
    """Return the same string for all spellings of a subject's name.

    The number 7, the float 7.0 (as pandas writes it in a column with missing values), "7", the BIDS
    label "007", the folder "sub-007" and the names "S007" and "Subject07", as PhysioNet writes
    them, have the key "7". Upper and lower case do not count, and neither do blanks at the ends. A
    corpus in front of the name stays, also in "ucddb007".

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
    """Return the name of a subject with its corpus in front.

    Parameters
    ----------
    corpus : str | None
        Corpus: the name of its recipe. None leaves the name as it is.
    subject : Any
        Subject. One with this corpus is left as it is.

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
    """Subjects that others are compared with: ``subject in keys`` is whether it may be one of them.

    Two names may be of one person when their keys without corpus are the same, and their corpora
    too, or one has none. The corpora of the Temple hospital have people in common.

    Parameters
    ----------
    subjects : iterable
        Names, with or without their corpus.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import SubjectKeys
    >>> seen = SubjectKeys(["physionet_mi:S002", 3, "tueg:aaaaaaaa"])
    >>> "physionet_mi:2" in seen, 2 in seen, "eegmat:2" in seen, "eegmat:3" in seen
    (True, True, False, True)
    >>> "tuab:aaaaaaaa" in seen
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
    """Training subjects of encoders: ``subject in seen`` is whether the subject may be one of them.

    A number, such as 1, "s01" or "sub-01", is in many corpora: without a corpus it is only equal to
    a number without a corpus, and :meth:`may_have` is whether the unknown corpus may be that of a
    training subject. Other names are compared as in :class:`SubjectKeys`.

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
        """Whether the subject would be a training subject if an unknown corpus were the same."""
        return subject not in self and super().__contains__(subject)


def public_corpora(subjects: Iterable) -> list[str]:
    """Return the public corpora in front of names, sorted.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import public_corpora
    >>> public_corpora(["physionet_mi:7", "study:Berta", 7])
    ['physionet_mi']
    """
    return sorted({corpus for corpus, _ in map(_parts, subjects) if corpus in CORPORA})


def _parts(subject: Any) -> tuple[str | None, Any]:
    """Return the corpus, in lower case, and the name without it."""
    match = _QUALIFIED.fullmatch(subject) if isinstance(subject, str) else None
    return (normalized(match["corpus"]).casefold(), match["name"]) if match else (None, subject)


def _key(subject: Any) -> tuple[str | None, str]:
    """Return the corpus, or the family of corpora with subjects in common, and the name's key."""
    corpus, raw_name = _parts(subject)
    name = visible(str(raw_name)).strip().removeprefix("sub-")
    if match := _NUMBER.fullmatch(name):
        corpus, name = corpus or match["corpus"], str(int(match["number"]))
    return _FAMILIES.get(corpus, corpus), name


def warn_of_similar_names(subjects: Iterable) -> None:
    """Warn when different names have the same key; a split counts them as different subjects.

    Parameters
    ----------
    subjects : iterable
        Names in one data set.

    Warns
    -----
    UserWarning
        When two names may be one person. The message contains the names.

    Examples
    --------
    >>> from braindecode_pars._common.subjects import warn_of_similar_names
    >>> warn_of_similar_names(["01", "02", "P1"])
    """
    by_key: dict[str, list] = {}
    for subject in dict.fromkeys(subjects):
        by_key.setdefault(_key(subject)[1], []).append(subject)
    similar = []
    for names in by_key.values():
        # Names of different corpora are not alike.
        others = (SubjectKeys(names[:i] + names[i + 1 :]) for i in range(len(names)))
        alike = [repr(name) for name, keys in zip(names, others, strict=True) if name in keys]
        similar += [" and ".join(alike)] if alike else []
    if similar:
        warn_user(
            "Names that may be of one person count as different subjects, and one may be tested "
            f"after training on another: {format_list(similar, most=5)}; give one person one name."
        )


def subject_of_path(path: PurePath) -> str:
    """Return the subject of a recording from its path.

    The subject is that of :func:`known_subject_of_path`, else the name of the first folder, else
    the name of the file.

    Parameters
    ----------
    path : PurePath
        Path of the file relative to the folder that contains all recordings.

    Returns
    -------
    str
        Subject.

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
    """Return the subject of a recording of a public corpus by its name, with the corpus in front.

    None if the name is not one of PhysioNet's corpora of imagined movement and sleep apnea.

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
    """Return the subject of a recording if its path has one of three known layouts.

    - BIDS: the label of a folder ``sub-<label>``, else that of the file's name. It ends at the next
      underscore.
    - Corpora of Temple University: ``aaaaaaaa`` of ``aaaaaaaa_s001_t000.edf``, in any folder.
    - Challenges of PhysioNet, with a folder for each record and a record for each subject:
      ``tr03-0005`` of ``tr03-0005/tr03-0005.hea``.

    Parameters
    ----------
    path : PurePath
        Path of the file relative to the folder that contains all recordings.

    Returns
    -------
    str | None
        Subject; None for another layout.

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
    """Return what may be the subject of a recording by its path, whose folders may be of anything.

    Parameters
    ----------
    path : PurePath
        Path of the file.

    Returns
    -------
    list of str
        That of :func:`known_subject_of_path` or :func:`public_subject`, if there is one, else the
        names of the two folders above the file, that of the file, and its beginnings before a
        blank, ``_``, ``-`` or dot.

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
