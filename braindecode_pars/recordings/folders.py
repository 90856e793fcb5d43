"""Search a folder for recordings and the files that belong to them, and report unused files."""

import glob
import re
from contextlib import suppress
from itertools import chain
from pathlib import Path
from statistics import median

from braindecode_pars._common import checks
from braindecode_pars.recordings import label_files, search, side_tables

#: Extensions of unsupported recording formats. Some of these recordings are folders.
_OTHER_ENDINGS = (
    *(".gdf", ".cnt", ".mff", ".nwb", ".eeg", ".rec", ".ahdr", ".nedf", ".cdt", ".lay", ".trc"),
    *(".xdf", ".mefd", ".nxe", ".e"),
)
#: File names of recordings in any format, and of archives and incomplete downloads of recordings,
#: such as P01.edf.bz2 and P01.edf.part.
_RECORDING = re.compile(
    rf"({'|'.join(map(re.escape, (*search.ENDINGS, *_OTHER_ENDINGS)))})([\W_].*)?$", re.IGNORECASE
)
#: Files of at least this size in bytes are reported if they are not read, regardless of their
#: extension. If the median size of the recordings is smaller, that size is used instead.
_LARGE = 1_000_000
#: Endings of the BIDS tables that are read.
_TABLES = tuple(f"_{name}.tsv" for name in side_tables.TABLES)
#: Folders of a BIDS dataset that may contain copies of its recordings.
_COPIES = {"derivatives", "sourcedata", "code", "stimuli"}


def recordings_below(root: Path) -> list[Path]:
    """List the recordings in a folder and all its subfolders, including unreadable recordings.

    Folders of a BIDS dataset that may contain copies of recordings, such as ``derivatives``, are
    excluded.

    Parameters
    ----------
    root : Path
        Folder to search.

    Returns
    -------
    list of Path
        Paths of the recordings, sorted.

    Raises
    ------
    FileNotFoundError
        If ``root`` is not a folder, or contains no recording.
    ValueError
        If two header files refer to the same signal file.

    Warns
    -----
    UserWarning
        If the folder contains files that probably belong to the dataset, but are not read. These
        are files that are named like a recording, but contain epochs, for example, or have a format
        that is not supported; large files (at least the median size of the recordings, or at least
        one megabyte); and BIDS tables whose names match no recording.

        If a header file refers to signal files with a different name.
    """
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is not a folder. Pass the folder of the recordings.")
    files = [f for f in search.list_files(root) if not _is_copy(f, root)]
    known = [file for file in files if file.name.lower().endswith(search.ENDINGS)]
    recordings = [file for file in known if search.is_recording(file)]
    search.check_signal_files(recordings)
    parts = [search.signal_files(recording) for recording in recordings]
    sizes = [max(map(_size, files)) for files in parts]
    large = min(_LARGE, max(median(sizes or [_LARGE]), 1))
    named = [file for file in files if _RECORDING.search(file.name)]  # includes other formats
    used_files = {file.absolute() for file in chain(*parts)}
    for recording in named:
        with suppress(ValueError):  # ambiguous tables raise this error when the recording is read
            used_files.update(map(Path.absolute, _tables_and_labels(recording)))
    # Files whose names begin with the name or the BIDS entities of a recording belong to it.
    starts = {str(file.with_name(f"{file.stem}.")) for file in recordings}
    starts |= {str(file).removesuffix(f"eeg{file.suffix}") for file in recordings}
    # The name of a BIDS table may match no recording, as sub-01_run-01_events.tsv in a folder with
    # sub-01_run-1_eeg.edf. Such tables are reported.
    with_tables = {folder for file in named for folder in file.parents}
    unread = [
        file.relative_to(root).as_posix()
        for file in files
        if file.absolute() not in used_files
        and (
            _RECORDING.search(file.name)
            or _size(file) >= large
            or (file.parent in with_tables and file.name.endswith(_TABLES))
        )
        and not any(str(file)[: end.end()] in starts for end in re.finditer("[._]", str(file)))
        and file.suffix.lower() != ".hea"  # header of several segments
    ]
    text = (
        f"Files in {root} that are not read ({len(unread)}): "
        f"{checks.format_list(unread, max_items=8) or 'none'}. Only continuous recordings "
        f"({', '.join(search.ENDINGS)}) and BIDS tables whose names match a recording are read. If "
        "any of these files are needed: unpack archives; rename EDF files with another extension, "
        "such as .rec, to .edf; save annotations as a table; or, if MNE supports the format of a "
        "file, convert it with mne.io.read_raw(file).save('P01_raw.fif')."
    )
    if not recordings:
        raise FileNotFoundError(f"{root} contains no recording. {text}")
    if unread:
        checks.warn_user(text)
    return recordings


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def _is_copy(file: Path, root: Path) -> bool:
    """Return whether a file is in a BIDS folder that may contain copies, such as derivatives."""
    above = (part for part in file.relative_to(root).parents if part.name in _COPIES)
    return any(
        (beside := root / part.parent).joinpath("dataset_description.json").exists()
        or any(beside.glob("sub-*/"))
        for part in above
    )


def _tables_and_labels(recording: Path) -> list[Path]:
    """Return the BIDS tables and the label files of a recording."""
    sources = (find(recording) for find, _ in label_files.LABEL_SOURCES)
    return [*side_tables.tables_beside(recording), *filter(None, sources)]


def files_beside(recording: Path) -> list[Path]:
    """List a recording and all files that belong to it: signals, BIDS tables and labels.

    Returns
    -------
    list of Path
        The recording and its files, sorted by path.

    Examples
    --------
    ``a.csv_bi`` contains the labels of ``a.edf``. ``ab.edf`` is another recording:

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
    return sorted(file for file in files if file.exists())  # without broken links
