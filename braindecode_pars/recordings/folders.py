"""Search of a folder for recordings, with the files that belong to each of them.

Files that are not read are listed.
"""

import glob
import re
from contextlib import suppress
from itertools import chain
from pathlib import Path
from statistics import median

from braindecode_pars._common import checks
from braindecode_pars.recordings import label_files, search

#: Endings of recordings in formats that are not read, of which some are folders.
_OTHER_ENDINGS = (
    *(".gdf", ".cnt", ".mff", ".nwb", ".eeg", ".rec", ".ahdr", ".nedf", ".cdt", ".lay", ".trc"),
    *(".xdf", ".mefd", ".nxe", ".e"),
)
#: Names of recordings, also in archives and of unfinished downloads: P01.edf.bz2, P01.edf.part.
_RECORDING = re.compile(
    rf"({'|'.join(map(re.escape, (*search.ENDINGS, *_OTHER_ENDINGS)))})([\W_].*)?$", re.IGNORECASE
)
#: A file of as many bytes is named if it is not read, whatever its ending.
_LARGE = 1_000_000
#: Folders of a BIDS data set that repeat its recordings.
_COPIES = {"derivatives", "sourcedata", "code", "stimuli"}


def recordings_below(root: Path) -> list[Path]:
    """Return the recordings below a folder, also those that cannot be opened.

    Folders of a BIDS data set that repeat its recordings, such as ``derivatives``, are left out.

    Raises
    ------
    FileNotFoundError
        When ``root`` is no folder, or has no recording.
    ValueError
        When two headers name the same file of signals.

    Warns
    -----
    UserWarning
        Once, with the number of files that are not read: those with the name of a recording, such
        as epochs and other formats, and those as large as the median recording or a megabyte. When
        a header names files of another name.
    """
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is not a folder; pass the folder of the recordings.")
    files = [f for f in search.list_files(root, lambda name: True) if not _is_copy(f, root)]
    known = [file for file in files if file.name.lower().endswith(search.ENDINGS)]
    recordings = [file for file in known if search.is_recording(file)]
    search.check_signal_files(recordings)
    parts = [search.signal_files(recording) for recording in recordings]
    sizes = [max(map(_size, files)) for files in parts]
    large = min(_LARGE, max(median(sizes or [_LARGE]), 1))
    named = [file for file in files if _RECORDING.search(file.name)]  # also in other formats
    read = {file.absolute() for file in chain(*parts)}
    for recording in named:
        with suppress(ValueError):  # of two tables; reading the recording raises it
            read.update(map(Path.absolute, _tables_and_labels(recording)))
    # Files of the name of a recording belong to it; as do those of its entities in BIDS.
    starts = {str(file.with_name(f"{file.stem}.")) for file in recordings}
    starts |= {str(file).removesuffix(f"eeg{file.suffix}") for file in recordings}
    unread = [
        file.relative_to(root).as_posix()
        for file in files
        if file.absolute() not in read
        and (_RECORDING.search(file.name) or _size(file) >= large)
        and not any(str(file)[: end.end()] in starts for end in re.finditer("[._]", str(file)))
        and file.suffix.lower() != ".hea"  # of several segments, which have their own
    ]
    text = (
        f"{root} has {len(unread)} files that are not read: {checks.format_list(unread, max_items=8)}. Read "
        f"are continuous recordings ({', '.join(search.ENDINGS)}). Unpack archives, rename EDF "
        "files with another ending, such as .rec, to .edf, and write annotations as a table; "
        "convert other formats that MNE reads with mne.io.read_raw(file).save('P01_raw.fif')."
    )
    if not recordings:
        text = text if unread else f"no file ends with {', '.join(search.ENDINGS)}."
        raise FileNotFoundError(f"{root} contains no recording: {text}")
    if unread:
        checks.warn_user(text)
    # Such as sub-01_run-01_events.tsv beside sub-01_run-1_eeg.edf
    above = {folder for file in named for folder in file.parents if folder.is_relative_to(root)}
    tables = {t for name in search.TABLES for folder in above for t in folder.glob(f"*_{name}.tsv")}
    if others := sorted(t.relative_to(root).as_posix() for t in tables if t.absolute() not in read):
        checks.warn_user(
            f"{root} has tables that belong to no recording by their names, and are not read: "
            f"{checks.format_list(others, max_items=8)}. Give them the names of their recordings."
        )
    return recordings


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def _is_copy(file: Path, root: Path) -> bool:
    """Whether a file is in a folder of copies, beside the folders of subjects."""
    above = (part for part in file.relative_to(root).parents if part.name in _COPIES)
    return any(
        (beside := root / part.parent).joinpath("dataset_description.json").exists()
        or any(beside.glob("sub-*/"))
        for part in above
    )


def _tables_and_labels(recording: Path) -> list[Path]:
    """Return the tables of BIDS for a recording, and the other files of its labels."""
    sources = (find(recording) for find, _ in label_files.LABEL_SOURCES)
    return [*search.tables_beside(recording), *filter(None, sources)]


def files_beside(recording: Path) -> list[Path]:
    """Return a recording and the files of its samples and labels, by their names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.folders import files_beside
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.edf", "a.csv_bi", "ab.edf"):
    ...         Path(folder, name).touch()
    ...     [file.name for file in files_beside(Path(folder, "a.edf"))]
    ['a.csv_bi', 'a.edf']
    """
    names = [f"{glob.escape(recording.stem)}.*"]
    # In BIDS, sub-01_task-sleep_events.tsv annotates sub-01_task-sleep_eeg.set.
    if recording.stem.endswith("_eeg"):
        names.append(f"{glob.escape(recording.stem.removesuffix('_eeg'))}_*")
    files = {file for name in names for file in recording.parent.glob(name)}
    files.update(search.signal_files(recording), _tables_and_labels(recording))
    return sorted(file for file in files if file.exists())  # skips dead links
