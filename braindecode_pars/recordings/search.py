"""Find the files of each recording in a folder, and derive the subject from the file path.

:func:`why_unreadable` returns the reason why a file cannot be read.
:func:`check_guessed_subjects` raises an error if the subjects derived from the paths are probably
wrong.
"""

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

import mne
import wfdb

from braindecode_pars._common import checks, subjects

#: File extensions of supported recording formats, in lower case.
ENDINGS = (".edf", ".bdf", ".fif", ".fif.gz", ".hea", ".vhdr", ".set")
#: Extensions of folders that contain one recording, in unsupported formats.
_FOLDER_ENDINGS = (".mff", ".mefd")
#: File names of data that were computed from a recording with MNE, such as epochs and averages.
_DERIVED_FILES = re.compile(
    r"[-_](epo|ave|eve|annot|cov|ica|proj|trans|fwd|inv|src|bem|sol)(-\d+)?\.fif(\.gz)?$",
    re.IGNORECASE,
)
#: Extensions of signal and marker files that a header file refers to.
_SIGNAL_ENDINGS = (".eeg", ".vmrk", ".fdt", ".dat", ".mat")


def has_only_annotations(file: Path) -> bool:
    """Return whether an EDF or BDF file contains annotations but no signals."""
    if file.suffix.lower() in (".edf", ".bdf"):
        with suppress(OSError, ValueError), file.open("rb") as stream:
            n_signals = int(stream.read(256)[252:])
            labels = {stream.read(16).strip() for _ in range(n_signals)}
            return bool(labels) and labels <= {b"EDF Annotations", b"BDF Annotations"}
    return False


def list_files(root: Path) -> list[Path]:
    """List the files in a folder and all its subfolders, sorted by path.

    Broken links are included. Hidden files and hidden folders are excluded. Links to folders
    outside ``root`` are followed. Links to folders inside ``root`` are not followed, because the
    files in these folders are already listed under their own paths.

    Parameters
    ----------
    root : Path
        Folder to search, at any depth.

    Returns
    -------
    list of Path
        Paths of the files.

    Raises
    ------
    PermissionError
        If a folder cannot be listed. Skipping it would omit recordings without notice.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.search import list_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.edf", "a.edf", "a.txt", ".c.edf"):
    ...         Path(folder, name).touch()
    ...     [file.name for file in list_files(Path(folder))]
    ['a.edf', 'a.txt', 'b.edf']
    """
    paths: list[Path] = []

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for folder, folders, files in os.walk(root, onerror=refuse, followlinks=True):
        files += [name for name in folders if name.lower().endswith(_FOLDER_ENDINGS)]
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and not name.lower().endswith(_FOLDER_ENDINGS)
            and not ((path := Path(folder, name)).is_symlink() and _leads_back(path, root))
        ]
        paths += [Path(folder, name) for name in files if not name.startswith(".")]
    return sorted(paths)


def _leads_back(link: Path, root: Path) -> bool:
    """Return whether a link in ``root`` points into ``root``, or to a folder that contains it."""
    target = link.resolve()
    parents = [folder.resolve() for folder in link.parents if folder.is_relative_to(root)]
    return any(target.is_relative_to(real) or real.is_relative_to(target) for real in parents)


def is_recording(file: Path) -> bool:
    """Return whether a file is a recording that can be passed to a reader.

    False for later parts of a recording that was split into several files, and for files that were
    computed from a recording, such as epochs. True for a file that cannot be opened, so that an
    attempt to read it reports the error.
    """
    if file.name.lower().endswith(".hea"):
        # Skip the header of a multi-segment record, which begins with "name/n_segments": each
        # segment has a separate header.
        with suppress(OSError):
            return "/" not in (file.read_text(errors="replace").split() or [""])[0]
        return True
    return not (
        _DERIVED_FILES.search(file.name) or has_only_annotations(file) or is_later_part(file)
    )


def is_later_part(file: Path) -> bool:
    """Return whether a FIF file is a later part of a recording that was split into several files.

    MNE reads later parts together with the first part.
    """
    if file.name.endswith((".fif", ".fif.gz")):
        # MNE raises many types of errors; reading the recording raises the full message.
        with suppress(Exception), warnings.catch_warnings(action="ignore"):
            # The FIF tag 115 is 1 if the file refers to its previous part.
            return " = [1]" in mne.io.show_fiff(file, tag=115)
    return False


#: Texts in pointer files of Git LFS and git-annex, which replace files that are not downloaded yet.
_POINTERS = (b"version https://git-lfs", b"annex/objects/")


def why_unreadable(file: Path) -> str | None:
    """Return why a file cannot be opened: missing, not downloaded, or not a file. Otherwise None.

    The signal files of a header file are checked as well. Damaged files are not detected.
    """
    if not os.path.lexists(file):
        return "the file does not exist."
    is_pointer = not file.exists()  # a broken link, as in git-annex
    if file.is_file() and file.stat().st_size < 1024:
        with suppress(OSError):  # reading the recording raises the full message
            content = file.read_bytes()
            is_pointer = any(mark in content for mark in _POINTERS)
    if is_pointer:
        return (
            "the file is a link or a pointer to content that has not been downloaded. Download it "
            "first, for example with datalad get or git lfs pull."
        )
    if not file.is_file():
        return "the path is not a file."
    header, *parts = signal_files(file)
    for part in parts if file == header else ():
        if problem := why_unreadable(part):
            return f"the header refers to {part.name}, which cannot be read: {problem}"
    return None


def signal_files(file: Path) -> list[Path]:
    """Return the header file of a recording, and the signal and marker files that it refers to.

    ``file`` is the header file, or one of the files that it refers to. For formats without a header
    file, such as EDF, only ``file`` is returned.
    """
    header = header_of(file)
    if not header.is_file() or not header.name.endswith(ENDINGS[2:]):  # one file
        return [header]
    stat = header.stat()
    try:
        parts = _referenced_files(header, stat.st_mtime_ns, stat.st_size)
    except Exception as error:  # of many types; reading the recording raises the full message
        parts = [Path(name)] if (name := getattr(error, "filename", None)) else []
    return [header, *parts]


def header_of(file: Path) -> Path:
    """Return the header file that refers to a signal file; the file itself if there is none."""
    if file.suffix.lower() not in _SIGNAL_ENDINGS:
        return file
    headers = [path for path in file.parent.glob("*") if path.suffix in (".vhdr", ".set", ".hea")]
    headers.sort(key=lambda path: path.stem != file.stem)  # the header of the same name first
    return next((header for header in headers if file in signal_files(header)), file)


@lru_cache(maxsize=100_000)
def _referenced_files(header: Path, *version: int) -> list[Path]:
    """Return the files that a header refers to; ``version`` is only used as key of the cache."""
    names: Iterable[Any]
    if header.suffix == ".hea":
        names = getattr(wfdb.rdheader(str(header.with_suffix(""))), "file_name", None) or ()
    else:
        names = [*mne.io.read_raw(header, verbose="error").filenames]
        if header.suffix == ".vhdr":  # MNE does not return the name of the marker file
            marker_file = re.search(rb"(?im)^MarkerFile\s*=\s*(.+?)\s*$", header.read_bytes())
            names += [os.fsdecode(marker_file[1])] if marker_file else []
    relative_paths = (os.path.relpath(header.parent / name, header.parent) for name in names)
    paths = [header.parent / path for path in dict.fromkeys(relative_paths)]
    # If the marker file does not exist, MNE warns and reads the marker file with the name of the
    # header instead.
    return [p for p in paths if p != header and (p.suffix != ".vmrk" or os.path.lexists(p))]


def check_signal_files(recordings: Iterable[Path]) -> None:
    """Check that each signal or marker file belongs to one header file, with the same name.

    Parameters
    ----------
    recordings : iterable of Path
        Recordings. Formats without a header file are ignored.

    Raises
    ------
    ValueError
        If two header files refer to the same file, because one of them was copied or renamed.

    Warns
    -----
    UserWarning
        If a header file refers to files with a different name.
    """
    headers: dict[str, Path] = {}
    renamed = []
    for recording in recordings:
        header, *parts = signal_files(recording)
        if header.suffix not in (".vhdr", ".set", ".hea"):  # FIF parts refer to each other
            continue
        for part in parts:
            first = headers.setdefault(os.path.abspath(part), recording)
            if first != recording:
                raise ValueError(
                    f"{first} and {recording} both refer to the file {part.name}. One of these "
                    "headers was probably copied or renamed: correct the name in it, or remove it."
                )
        differently_named = [part.name for part in parts if part.stem != header.stem]
        # The signals of a WFDB record may be in several files.
        if differently_named and (header.suffix != ".hea" or len(differently_named) == len(parts)):
            renamed.append(f"{recording.name} ({checks.format_list(differently_named)})")
    if renamed:
        checks.warn_user(
            f"Some header files ({len(renamed)}) refer to signal or marker files with a different "
            f"name: {checks.format_list(renamed, max_items=8)}. The files named in the header "
            "files are read. Check that they are the right files."
        )


#: How to derive the subject from a path: a function of the path, or a regular expression with one
#: group. If None, the subject is guessed.
Subject = Callable[[Any], Any] | str | None

_COUNTED = "session|sess|ses|night|run|rec|visit|day|block"
#: Patterns of names that end with the number of a recording or with a condition. If several names
#: have the same beginning and different endings, they are probably recordings of one subject. The
#: number after each pattern is the minimum number of subjects that must have the same set of
#: endings. No rule covers names such as SC4001E0 and SC4002E0, which also belong to one subject.
_NAME_RULES = (
    # anna_night1, P07-run-2
    (rf"(?P<subject>.+)(?P<ending>[ _-]({_COUNTED})[ _-]?\d+)", 1),
    (r"(?P<subject>[A-Z]+\d+)(?P<ending>R\d+)", 1),  # S001R03, of PhysioNet
    (r"(?P<subject>.*\d.*)(?P<ending>[_-]\d)", 1),  # Subject00_1; the number has one digit
    (r"(?P<subject>.+?)(?P<ending>[ _-][A-Z]+)", 2),  # P01_open and P01_closed, P02_open and ...
)
_SUFFIX = r"([_-](raw|eeg|psg))?"

#: If many recordings are in only a few top-level folders, the folder names are not used as
#: subjects: maximum number of these folders.
_MAX_FOLDERS = 2
#: Minimum number of recordings for the same rule.
_MIN_RECORDINGS = 10

_WHERE_TO_PASS = (
    "Pass the regular expression with --subject (command evaluate: --load subject=), or in Python "
    "as the argument subject, which may also be a function of the path."
)


def compile_pattern(argument: str, pattern: str) -> re.Pattern:
    """Compile a regular expression that the user passed as an argument.

    Parameters
    ----------
    argument : str
        Name of the argument in error messages.
    pattern : str
        Regular expression.

    Raises
    ------
    ValueError
        If the text is not a valid regular expression.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(
            f"{argument} must be a valid regular expression, got {pattern!r} (error: {error})."
        ) from error


def subject_finder(subject: Subject) -> Callable[[Any], Any]:
    """Return a function that derives the subject from the path of a file.

    Parameters
    ----------
    subject : callable | str | None
        A function, which is returned unchanged; or a regular expression that is searched for in
        the path and whose only group matches the subject. If None, the subject is guessed with
        :func:`~braindecode_pars._common.subjects.subject_of_path`.

    Returns
    -------
    callable
        Function of the path of a file, relative to the folder of all recordings.

    Raises
    ------
    TypeError
        If ``subject`` has an unsupported type.
    ValueError
        If ``subject`` is not a valid regular expression, or does not have exactly one group. The
        returned function also raises a ValueError, if the regular expression does not match a path.

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
    expression = compile_pattern("subject", subject)
    if expression.groups != 1:
        raise ValueError(
            f"subject={subject!r} has {expression.groups} groups, expected 1. Put parentheses only "
            "around the part of the regular expression that matches the subject."
        )

    def find(file: PurePath) -> str:
        match = expression.search(subjects.normalized(file.as_posix()))
        if match is None or not match[1]:
            raise ValueError(
                f"subject={subject!r} does not match the path {file}. Change the regular "
                "expression so that its group matches the subject in every path."
            )
        return match[1]

    return find


def check_guessed_subjects(root: PurePath, paths: Iterable[PurePath]) -> None:
    """Raise an error if subjects that were guessed from paths are probably wrong.

    If the layout of the folders is unknown, the subject is guessed: it is the name of the top-level
    folder, or the file name if there is no folder. Such a guess is wrong if the top-level folders
    do not correspond to subjects, or if several file names belong to one subject. For a known
    layout, such as BIDS, the only check is that no BIDS subject is in two datasets.

    Parameters
    ----------
    root : PurePath
        Folder that contains all recordings, for the error message.
    paths : iterable of PurePath
        Paths of recordings relative to ``root``.

    Raises
    ------
    ValueError
        If one or two top-level folders, such as ``edf``, would be the subjects of ten or more
        recordings. If two names obviously belong to the same subject, such as Subject00_1 and
        Subject00_2, or P01_open and P01_closed (if there are also P02_open and P02_closed). If two
        BIDS datasets contain a subject with the same name. The message suggests a value for the
        argument ``subject``.

    Examples
    --------
    One recording in a folder with the name of the subject raises no error:

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
    in_folders = {path.as_posix(): name for path, name in guesses.items() if len(path.parts) > 1}
    folders = sorted(set(in_folders.values()))
    if len(folders) <= _MAX_FOLDERS and len(in_folders) >= _MIN_RECORDINGS:
        raise ValueError(
            f"It is unclear which part of the path is the subject of {len(in_folders)} recordings "
            f"in {root}, such as {next(iter(in_folders))}. The top-level folder "
            f"({' or '.join(folders)}) is probably not the subject. Specify the subject by a "
            "regular expression with one group: '([^/]+)/[^/]+$' for the folder that contains the "
            f"file, or '^([^/]+)/' for the top-level folder. {_WHERE_TO_PASS}"
        )
    for rule, n_subjects in _NAME_RULES:
        files: dict[str, dict[str, PurePath]] = {}  # by subject and remaining file name
        endings: dict[str, set[str]] = {}  # by subject; without suffixes such as "_raw"
        for path, name in guesses.items():
            if match := re.fullmatch(rule + _SUFFIX, name, re.IGNORECASE):
                subject = match["subject"]
                files.setdefault(subject, {})[name.removeprefix(subject).lower()] = path
                endings.setdefault(subject, set()).add(match["ending"].lower())
        counts = Counter(map(frozenset, endings.values()))
        for subject, subject_files in files.items():
            if len(subject_files) > 1 and counts[frozenset(endings[subject])] >= n_subjects:
                first, second, *_ = subject_files.values()
                patterns = {re.sub(r"\d+", r"\\d+", re.escape(e)) for e in endings[subject]}
                raise ValueError(
                    f"{first} and {second} appear to be two recordings of the same subject, "
                    f"{subject}. Specify the subject by a regular expression with one group: "
                    f"'(?i)([^/]+)(?:{'|'.join(sorted(patterns))})' if they are from the same "
                    "subject, or '([^/]+)' (the first folder or the file name) if they are not. "
                    f"{_WHERE_TO_PASS}"
                )


def _check_data_sets(paths: Iterable[PurePath]) -> None:
    """Check that no BIDS subject, such as sub-01, is in two datasets."""
    datasets: dict[str, tuple[str, PurePath]] = {}
    for path in paths:
        if match := re.match(r"((?:.+?/)??)(sub-[^/_]+)/", subjects.normalized(path.as_posix())):
            dataset, first = datasets.setdefault(match[2], (match[1], path))
            if dataset != match[1]:
                raise ValueError(
                    f"Two BIDS datasets contain {match[2]}: {first} and {path}. Specify the "
                    "subject by a regular expression with one group: '(?:^|/)sub-([^/_]+)/' if "
                    "this is the same subject in both datasets, or '^((?:.+?/)??sub-[^/_]+)/' if "
                    f"these are different subjects. {_WHERE_TO_PASS}"
                )
