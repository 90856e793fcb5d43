"""The subjects of the files in a folder, and an error where their names do not tell them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any

from braindecode_pars._subjects import known_subject_of_path, normalized, subject_of_path

__all__ = ["Subject", "check_first_folders", "check_one_person_each", "subject_finder"]

#: Subject of a file: a function of its path, or a regular expression of one group.
Subject = Callable[[Any], Any] | str | None

#: What numbers the recordings of one person at the end of a name, and the regular expression that
#: finds the person before it. Other names, such as SC4001E0 and SC4002E0, show no such rule.
_COUNTS = (
    # anna_night1, P07-run-2
    (
        r"(?P<person>.+)[ _-](?P<what>session|sess|ses|night|run|rec|visit|day|block)[ _-]?\d+",
        r"(?i)([^/]+)[ _-]{what}[ _-]?\d",
    ),
    # S001R03, of PhysioNet
    (r"(?P<person>[A-Za-z]+\d+)(?P<what>R)\d+", r"(?i)([A-Z]+\d+){what}\d"),
    # Subject00_1; the person has a number of its own, and the recording one digit
    (r"(?P<person>.*\d.*)(?P<what>[_-])\d", r"([^/]+){what}\d"),
)
_ENDING = r"([_-](raw|eeg|psg))?"

#: At most so many first folders for at least so many recordings are no names of subjects.
_FEW_SUBJECTS, _MANY_RECORDINGS = 2, 10

_WHERE_TO_PASS = (
    "Pass it as --subject, as --load subject= of evaluate, or in Python as subject=, which may "
    "also be a function of the path."
)


def subject_finder(subject: Subject) -> Callable[[Any], Any]:
    """Return a function that finds the subject in the path of a file.

    Parameters
    ----------
    subject : callable | str | None
        Such a function, which is returned as it is; a regular expression that is searched for in
        the path, of which one group is the subject; or None for
        :func:`~braindecode_pars._subjects.subject_of_path`.

    Returns
    -------
    callable
        Function of a path relative to the folder of all recordings.

    Raises
    ------
    TypeError
        When ``subject`` is something else.
    ValueError
        When the text is no regular expression with one group. The function raises it when it
        finds no subject.

    Examples
    --------
    >>> from pathlib import PurePath
    >>> from braindecode_pars.recordings._whose_files import subject_finder
    >>> subject_finder(r"(S\\d+)R")(PurePath("day1/S001R03.edf"))
    'S001'
    """
    if subject is None:
        return subject_of_path
    if callable(subject):
        return subject
    if not isinstance(subject, str):
        raise TypeError(
            f"subject must be a function of a path, a regular expression or None, got {subject!r}."
        )
    expression = _with_one_group(subject)

    def find(file: PurePath) -> str:
        found = expression.search(normalized(file.as_posix()))
        if found is None or not found[1]:
            raise ValueError(
                f"The pattern of the subject, {subject!r}, finds no subject in {file}."
            )
        return found[1]

    return find


def _with_one_group(pattern: str) -> re.Pattern[str]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(
            f"The pattern {pattern!r} of the subject is not a regular expression: {error}."
        ) from error
    if expression.groups != 1:
        raise ValueError(
            f"The pattern {pattern!r} of the subject has {expression.groups} groups; put "
            "parentheses around the subject only."
        )
    return expression


def check_one_person_each(paths: Iterable[PurePath]) -> None:
    """Check that names of files or folders do not number several recordings of one person.

    Only names that would be taken for subjects as they are are checked: not those of BIDS, and not
    those of files in a folder for each subject.

    Parameters
    ----------
    paths : iterable of PurePath
        Paths of recordings relative to the folder that contains all. Those whose subject is unclear
        are left out here.

    Raises
    ------
    ValueError
        When two names are obviously of one person, such as Subject00_1 and Subject00_2. The message
        has the argument that decides.

    Examples
    --------
    >>> from pathlib import PurePath
    >>> from braindecode_pars.recordings._whose_files import check_one_person_each
    >>> check_one_person_each([PurePath("SC4001E0.edf"), PurePath("SC4002E0.edf")])
    """
    people: dict[str, tuple[str, PurePath]] = {}
    for path in paths:
        name = _guessed(path)
        found = None if name is None else _person(name)
        if name is None or found is None:
            continue
        person, pattern = found
        first, other = people.setdefault(person, (name, path))
        if first != name:
            apart = r"^([^/]+)/" if len(path.parts) > 1 else r"([^/]+)\."
            raise ValueError(
                f"{other} and {path} look like two recordings of one person, {person}. State the "
                f"subject by a regular expression with one group: '{pattern}' makes them one "
                f"person, '{apart}' two. {_WHERE_TO_PASS}"
            )


def check_first_folders(root: PurePath, paths: Iterable[PurePath]) -> None:
    """Check that first folders such as ``edf`` or ``train`` are not taken for subjects.

    Parameters
    ----------
    root : PurePath
        Folder that contains all recordings, for the error message.
    paths : iterable of PurePath
        Paths of recordings relative to this folder.

    Raises
    ------
    ValueError
        When one or two first folders would be the subjects of ten or more recordings.

    Examples
    --------
    >>> from pathlib import PurePath
    >>> from braindecode_pars.recordings._whose_files import check_first_folders
    >>> check_first_folders(PurePath("data"), [PurePath("anna/night1.edf")])
    """
    guesses = [(path, _guessed(path)) for path in paths if len(path.parts) > 1]
    guesses = [(path, name) for path, name in guesses if name is not None]
    subjects = list(dict.fromkeys(name for _, name in guesses))
    if len(subjects) > _FEW_SUBJECTS or len(guesses) < _MANY_RECORDINGS:
        return
    which = "one subject" if len(subjects) == 1 else "two subjects"
    raise ValueError(
        f"{len(guesses)} recordings in {root} would be of {which}, {' and '.join(subjects)}, the "
        f"name of their first folder, such as {guesses[0][0].as_posix()}. State the subject by a "
        "regular expression with one group: '([^/]+)/[^/]+$' for the folder of a file, '^([^/]+)/' "
        f"for the first folder. {_WHERE_TO_PASS}"
    )


def _guessed(path: PurePath) -> str | None:
    """Return the name that is taken for the subject, if the path has no known layout."""
    try:
        return subject_of_path(path) if known_subject_of_path(path) is None else None
    except ValueError:
        return None


def _person(name: str) -> tuple[str, str] | None:
    """Return the person in a name that numbers recordings, and the pattern that finds it."""
    for rule, pattern in _COUNTS:
        found = re.fullmatch(rule + _ENDING, name, re.IGNORECASE)
        if found:
            return found["person"], pattern.replace("{what}", found["what"])
    return None
