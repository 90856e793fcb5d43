"""The files that a recording consists of, and the subject of each recording.

For files that cannot be read there is a reason. Names that do not show subjects are an error.
"""

import os
import re
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from itertools import combinations, pairwise
from pathlib import Path, PurePath
from typing import Any

import mne
import wfdb

from braindecode_pars._common import checks, subjects

#: Endings of the names of recordings that are read, in lower case.
ENDINGS = (".edf", ".bdf", ".fif", ".fif.gz", ".hea", ".vhdr", ".set")
#: Endings of recordings that are folders, in formats that are not read.
_FOLDERS = (".mff", ".mefd")
#: What MNE makes of a recording, by the end of its name.
_MADE_OF_RECORDINGS = re.compile(
    r"[-_](epo|ave|eve|annot|cov|ica|proj|trans|fwd|inv|src|bem|sol)(-\d+)?\.fif(\.gz)?$",
    re.IGNORECASE,
)
#: Endings of files of signals and markers that a header names.
_SIGNALS = (".eeg", ".vmrk", ".fdt", ".dat", ".mat")
#: Tables of BIDS beside a recording that are read.
TABLES = ("events", "channels")


def has_only_annotations(file: Path) -> bool:
    """Whether an EDF or BDF file has annotations and no signals."""
    if file.suffix.lower() in (".edf", ".bdf"):
        with suppress(OSError, ValueError), file.open("rb") as stream:
            n_signals = int(stream.read(256)[252:])
            labels = {stream.read(16).strip() for _ in range(n_signals)}
            return bool(labels) and labels <= {b"EDF Annotations", b"BDF Annotations"}
    return False


def list_files(root: Path, wanted: Callable[[str], bool]) -> list[Path]:
    """Return the files below a folder, in the order of their paths; a dead link is one of them.

    Hidden files and folders are left out. Links to folders outside ``root`` are followed; those
    into a folder that is searched are not, since its files are found under their own path.

    Parameters
    ----------
    root : Path
        Folder to search, at any depth.
    wanted : callable
        Function that receives the name of a file and returns whether it is wanted.

    Raises
    ------
    PermissionError
        When a folder may not be listed: files of unknown subjects would be missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.search import list_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.edf", "a.edf", "a.txt", ".c.edf"):
    ...         Path(folder, name).touch()
    ...     [file.name for file in list_files(Path(folder), lambda name: name.endswith(".edf"))]
    ['a.edf', 'b.edf']
    """
    wanted_files: list[Path] = []

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for folder, folders, files in os.walk(root, onerror=refuse, followlinks=True):
        files += [name for name in folders if name.lower().endswith(_FOLDERS)]
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and not name.lower().endswith(_FOLDERS)
            and not ((path := Path(folder, name)).is_symlink() and _leads_back(path, root))
        ]
        wanted_files += [Path(folder, name) for name in files if wanted(name) and name[0] != "."]
    return sorted(wanted_files)


def _leads_back(link: Path, root: Path) -> bool:
    """Whether a link leads into a folder above it, below ``root``, or to one that contains it."""
    target = link.resolve()
    above = [folder.resolve() for folder in link.parents if folder.is_relative_to(root)]
    return any(target.is_relative_to(real) or real.is_relative_to(target) for real in above)


def find_named(
    path: str | Path, pattern: re.Pattern, what: str, example: str
) -> list[tuple[Path, re.Match]]:
    """Find recordings whose names tell what they are, in whichever folders they are.

    Parameters
    ----------
    path : path
        Folder to search, at any depth.
    pattern : re.Pattern
        Regular expression of a whole name, such as ``S(\\d{3})R(\\d{2})\\.edf``.
    what, example : str
        What a folder without them contains ("no night"), and a name, for the error message.

    Returns
    -------
    list of (Path, re.Match)
        Files and the matches of their names, in the order of the names.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When two files have the same name.

    Examples
    --------
    >>> import re, tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.search import find_named
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "S007R04.edf").touch()
    ...     pattern = re.compile(r"S(\\d{3})R(\\d{2})\\.edf")
    ...     [(file, match)] = find_named(folder, pattern, "no run", "S001R04.edf")
    >>> file.name, match.groups()
    ('S007R04.edf', ('007', '04'))
    """
    files = list_files(Path(path).expanduser(), lambda name: bool(pattern.fullmatch(name)))
    files.sort(key=lambda file: file.name)
    for first, file in pairwise(files):
        if first.name == file.name:
            raise ValueError(
                f"{path} has two recordings with the name {file.name}: {first} and {file}. Pass a "
                "folder that has one of them."
            )
    named_files = [(file, match) for file in files if (match := pattern.fullmatch(file.name))]
    if not named_files:
        raise FileNotFoundError(f"{path} contains {what}; expected files such as {example}.")
    return named_files


def is_recording(file: Path) -> bool:
    """Whether a file is a recording of its own, not a part of another one or made of it.

    A file that cannot be opened is one, so that reading it reports it.
    """
    if file.name.lower().endswith(".hea"):
        # The header of a multi-segment record, "name/n_segments ...", is skipped: each segment
        # has a header of its own.
        with suppress(OSError):
            return "/" not in (file.read_text(errors="replace").split() or [""])[0]
        return True
    if _MADE_OF_RECORDINGS.search(file.name) or has_only_annotations(file):
        return False
    # A FIF file may be a later part of a split recording, which MNE reads with the first one:
    # name-1.fif follows name.fif, and split-02 follows split-01.
    firsts = {
        re.sub(r"-[1-9]\d*(\.fif(\.gz)?)$", r"\1", file.name),
        re.sub(r"_split-(\d+)_", lambda part: f"_split-{1:0{len(part[1])}}_", file.name),
    }
    # Names may look alike by chance.
    has_next = any(names_part(file.with_name(name), 2) for name in firsts - {file.name})
    return not (has_next and names_part(file, 1))


def names_part(file: Path, role: int) -> bool:
    """Whether a file is a part of a FIF recording, and names the part before (1) or after it (2).

    That is the tag 115 of such a file, the role of the other part.
    """
    if file.name.endswith((".fif", ".fif.gz")):
        # Of many types; reading it raises the full message.
        with suppress(Exception), warnings.catch_warnings(action="ignore"):
            return f" = [{role}]" in mne.io.show_fiff(file, tag=115)
    return False


#: What a file begins with that stands for content elsewhere, and how to get that.
_POINTERS = {b"version https://git-lfs": "git lfs pull", b"annex/objects/": "datalad get"}


def why_unreadable(file: Path) -> str | None:
    """Return the reason why a path is not a file that can be opened; None if it is one."""
    if file.is_symlink() and not file.exists():
        return "it is a link to a file that does not exist; download the file first (datalad get)."
    if not file.exists():
        return "it does not exist."
    if not file.is_file():
        return "it is not a file."
    if file.stat().st_size < 1024:  # as large as a pointer may be
        with suppress(OSError):  # reading it raises the full message
            start = file.read_bytes()
            for mark, command in _POINTERS.items():
                if mark in start[:200]:
                    return f"its content is not here; download it first ({command})."
    header, *parts = signal_files(file)
    for part in parts if file == header else ():
        if problem := why_unreadable(part):
            return f"its header names the file {part.name}, and {problem}"
    return None


def signal_files(file: Path) -> list[Path]:
    """Return the header of a recording and the files of signals and markers that it names.

    The file is the header, or one of signals.
    """
    header = header_of(file)
    if not header.is_file() or not header.name.endswith(ENDINGS[2:]):  # of several files
        return [header]
    state = header.stat()
    try:
        named = _named_files(header, state.st_mtime_ns, state.st_size)
    except Exception as error:  # of many types; reading the recording raises the full message
        named = [Path(name)] if (name := getattr(error, "filename", None)) else []
    return [header, *named]


def header_of(file: Path) -> Path:
    """Return the header that names a file of signals; the file itself if there is none."""
    if file.suffix.lower() not in _SIGNALS:
        return file
    headers = [path for path in file.parent.glob("*") if path.suffix in (".vhdr", ".set", ".hea")]
    headers.sort(key=lambda path: path.stem != file.stem)  # that of its name is read first
    return next((header for header in headers if file in signal_files(header)), file)


@lru_cache(maxsize=100_000)
def _named_files(header: Path, *state: int) -> list[Path]:
    """Return the files that a header names; it is read once in each of its states."""
    named: Iterable[Any]
    if header.suffix == ".hea":
        named = getattr(wfdb.rdheader(str(header.with_suffix(""))), "file_name", None) or ()
    else:
        named = [*mne.io.read_raw(header, verbose="error").filenames]
        if header.suffix == ".vhdr":  # MNE does not return the name of the file of markers
            marks = re.search(rb"(?im)^MarkerFile\s*=\s*(.+?)\s*$", header.read_bytes())
            named += [os.fsdecode(marks[1])] if marks else []
    places = (os.path.relpath(header.parent / name, header.parent) for name in named)
    paths = [header.parent / place for place in dict.fromkeys(places)]
    # Without the markers that it names, MNE reads those of its own name, and says so.
    return [p for p in paths if p != header and (p.suffix != ".vmrk" or os.path.lexists(p))]


def check_signal_files(recordings: Iterable[Path]) -> None:
    """Check that each file of signals or markers is named by one header, of the same name.

    Raises
    ------
    ValueError
        When two headers name one file: one of them was copied or renamed.

    Warns
    -----
    UserWarning
        When a header names only files of another name.
    """
    headers: dict[str, Path] = {}
    renamed = []
    for recording in recordings:
        header, *parts = signal_files(recording)
        if header.suffix not in (".vhdr", ".set", ".hea"):  # the parts of a FIF file name others
            continue
        for part in parts:
            first = headers.setdefault(os.path.abspath(part), recording)
            if first != recording:
                raise ValueError(
                    f"{first} and {recording} both name the file {part.name}. Correct the name in "
                    "the header that was copied or renamed, or remove this header."
                )
        others = [part.name for part in parts if part.stem != header.stem]
        # The signals of a WFDB record may be in several files.
        if others and (header.suffix != ".hea" or len(others) == len(parts)):
            renamed.append(f"{recording.name} ({checks.format_list(others)})")
    if renamed:
        checks.warn_user(
            f"{len(renamed)} headers name files of another name, which are read: "
            f"{checks.format_list(renamed, max_items=8)}. Check that they belong together."
        )


def tables_beside(recording: Path) -> list[Path]:
    """Return the tables of BIDS for a recording that are read, see :func:`table_beside`."""
    return [table for name in TABLES if (table := table_beside(recording, name))]


def table_beside(recording: Path, suffix: str) -> Path | None:
    """Return the table of BIDS for a recording, such as sub-01_task-rest_events.tsv.

    It has the name of the recording; or, by the inheritance principle of BIDS, its name states a
    part of what that of the recording does, and it is in the same folder or one above, up to the
    folder of the data set. That of the nearest folder counts, and there the one that states most.

    Raises
    ------
    ValueError
        When a folder has two that state the same number of things.
    """
    stem = re.sub(r"_(i?eeg|meg)$", "", subjects.without_ending(recording.name))
    table = recording.with_name(f"{stem}_{suffix}.tsv")
    entities = {part for part in stem.split("_") if "-" in part}
    if os.path.lexists(table) or not stem.startswith("sub-"):
        return table if os.path.lexists(table) else None  # a dead link is one
    folder = recording.parent.absolute()
    while True:
        tables = [*folder.glob(f"*_{suffix}.tsv"), *folder.glob(f"{suffix}.tsv")]
        parts = {path: {*path.name.split("_")[:-1]} for path in tables}
        almost = sorted(path for path, pairs in parts.items() if _plain(pairs) <= _plain(entities))
        stated = {path: len(pairs) for path, pairs in parts.items() if pairs <= entities}
        matches = [path for path in almost if stated.get(path) == max(stated.values(), default=0)]
        if len(matches) != 1 and almost:
            raise ValueError(
                f"{' and '.join(map(str, matches or almost))} may belong to {recording.name}; keep "
                f"or rename one, or give the recording its own table, {table.name}."
            )
        if matches:
            return matches[0]
        if not re.match(r"sub-|ses-|i?eeg$|meg$", folder.name):
            return None
        folder = folder.parent


def _plain(entities: Iterable[str]) -> set[str]:
    """Return entities of BIDS without zeros in front and upper case: Run-01 as run-1."""
    return {re.sub(r"-0+(?=\d)", "-", entity).casefold() for entity in entities}


#: Subject of a file: a function of its path, or a regular expression of one group.
Subject = Callable[[Any], Any] | str | None

#: What numbers the recordings of one person at the end of a name. Other names, such as SC4001E0 and
#: SC4002E0, show no such rule.
_COUNTS = (
    # anna_night1, P07-run-2
    r"(?P<person>.+)(?P<what>[ _-](session|sess|ses|night|run|rec|visit|day|block)[ _-]?)\d+",
    r"(?P<person>[A-Za-z]+\d+)(?P<what>R)\d+",  # S001R03, of PhysioNet
    r"(?P<person>.*\d.*)(?P<what>[_-])\d",  # Subject00_1; the recording has one digit
)
_ENDING = r"([_-](raw|eeg|psg))?"
#: What may be said of a recording at the end of a name, such as "closed".
_WORD = r"(?P<person>.+?)[ _-](?P<what>[A-Za-z]+)"

#: At most so many first folders for at least so many recordings are no names of subjects.
_FEW_SUBJECTS, _MANY_RECORDINGS = 2, 10

_WHERE_TO_PASS = (
    "Pass it as --subject, as --load subject= of evaluate, or in Python as subject=, which may "
    "also be a function of the path."
)


def compiled(argument: str, pattern: str) -> re.Pattern:
    """Return a regular expression that is given as an argument.

    Raises
    ------
    ValueError
        When the text is none.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{argument}={pattern!r} is not a regular expression: {error}.") from error


def subject_finder(subject: Subject) -> Callable[[Any], Any]:
    """Return a function that finds the subject in the path of a file.

    Parameters
    ----------
    subject : callable | str | None
        Such a function, which is returned as it is; a regular expression that is searched for in
        the path, of which one group is the subject; or None for
        :func:`~braindecode_pars._common.subjects.subject_of_path`.

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
    >>> from braindecode_pars.recordings.search import subject_finder
    >>> subject_finder(r"(S\\d+)R")(PurePath("day1/S001R03.edf"))
    'S001'
    """
    if subject is None:
        return subjects.subject_of_path
    if callable(subject):
        return subject
    if not isinstance(subject, str):
        raise TypeError(f"subject must be a function, a pattern or None, got {subject!r}.")
    expression = compiled("subject", subject)
    if expression.groups != 1:
        raise ValueError(
            f"The pattern '{subject}' of the subject has {expression.groups} groups; put "
            "parentheses around the subject only."
        )

    def find(file: PurePath) -> str:
        match = expression.search(subjects.normalized(file.as_posix()))
        if match is None or not match[1]:
            raise ValueError(f"The pattern '{subject}' finds no subject in {file}; correct it.")
        return match[1]

    return find


def check_guessed_subjects(root: PurePath, paths: Iterable[PurePath]) -> None:
    """Check that neither first folders such as ``edf`` nor names of recordings become subjects.

    Only names that would be taken for subjects as they are are checked: not those of files in a
    folder for each subject, and those of BIDS only where two data sets have one.

    Parameters
    ----------
    root : PurePath
        Folder that contains all recordings, for the error message.
    paths : iterable of PurePath
        Paths of recordings relative to this folder.

    Raises
    ------
    ValueError
        When one or two first folders would be the subjects of ten or more recordings, or when two
        names are obviously of one person, such as Subject00_1 and Subject00_2, or P01_open and
        P01_closed if another person has both, too. When two data sets of BIDS have one name. The
        message has the argument that decides.

    Examples
    --------
    >>> from pathlib import PurePath
    >>> from braindecode_pars.recordings.search import check_guessed_subjects
    >>> check_guessed_subjects(PurePath("data"), [PurePath("anna/night1.edf")])
    """
    paths = [*paths]
    _check_data_sets(paths)
    guesses = {
        path: subjects.subject_of_path(path)
        for path in paths
        if subjects.known_subject_of_path(path) is None
    }
    below = {path.as_posix(): name for path, name in guesses.items() if len(path.parts) > 1}
    folders = sorted(set(below.values()))
    if len(folders) <= _FEW_SUBJECTS and len(below) >= _MANY_RECORDINGS:
        raise ValueError(
            f"{len(below)} recordings in {root} would be of {' and '.join(folders)} by their "
            f"first folder, such as {next(iter(below))}. State the subject by a regular "
            "expression with one group: '([^/]+)/[^/]+$' for the folder of a file, '^([^/]+)/' for "
            f"the first folder. {_WHERE_TO_PASS}"
        )
    first_recordings: dict[str, tuple[str, PurePath]] = {}
    for path, name in guesses.items():
        rules = (re.fullmatch(rule + _ENDING, name, re.IGNORECASE) for rule in _COUNTS)
        if match := next(filter(None, rules), None):
            first, other = first_recordings.setdefault(match["person"], (name, path))
            if first != name:
                what = rf"{re.escape(match['what'])}\d"
                raise _several_files_of_subject(match["person"], other, path, what)
    # The same words behind several names, as in P01_open, P01_closed, P02_open and P02_closed.
    words: dict[str, dict[str, PurePath]] = {}
    for path, name in guesses.items():
        if match := re.fullmatch(_WORD + _ENDING, name, re.IGNORECASE):
            words.setdefault(match["person"], {})[match["what"].lower()] = path
    several = [(subject, files) for subject, files in words.items() if len(files) > 1]
    for (subject, files), (_, others) in combinations(several, 2):
        if files.keys() == others.keys():
            file, other_file, *_ = files.values()
            raise _several_files_of_subject(
                subject, file, other_file, f"[ _-](?:{'|'.join(sorted(files))})"
            )


def _check_data_sets(paths: Iterable[PurePath]) -> None:
    """Check that no folder of BIDS, such as sub-01, is in two data sets."""
    of_bids: dict[str, tuple[str, PurePath]] = {}
    for path in paths:
        if match := re.match(r"((?:.+?/)??)(sub-[^/_]+)/", subjects.normalized(path.as_posix())):
            above, first = of_bids.setdefault(match[2], (match[1], path))
            if above != match[1]:
                raise ValueError(
                    f"{first} and {path} are of {match[2]} in two data sets: is it one person in "
                    "both? State the subject by a regular expression with one group: "
                    "'(?:^|/)sub-([^/_]+)/' if it is, '^((?:.+?/)??sub-[^/_]+)/' for a person of "
                    f"each data set. {_WHERE_TO_PASS}"
                )


def _several_files_of_subject(
    subject: str, first: PurePath, second: PurePath, what: str
) -> ValueError:
    return ValueError(
        f"{first} and {second} look like two recordings of one person, {subject}. State the "
        f"subject by a regular expression with one group, such as '(?i)([^/]+){what}' for "
        f"one person. {_WHERE_TO_PASS}"
    )
