"""A recording that is given as a Raw or as a path."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import mne

from braindecode_pars._warnings import warn_user
from braindecode_pars.recordings._edf_records import EdfRecords
from braindecode_pars.recordings._gaps import is_gap
from braindecode_pars.recordings._search import why_unreadable
from braindecode_pars.recordings.readers import ENDINGS, read_recording

__all__ = ["open_recording"]


def open_recording(raw: Any) -> tuple[mne.io.BaseRaw, str]:
    """Return a recording and its name, that of its file where there is one.

    Parameters
    ----------
    raw : Raw | path
        Continuous recording, which is returned as it is, or a file to read.

    Returns
    -------
    raw : Raw
        The recording.
    name : str
        Name of the file, without its folder; ``"recording"`` for a Raw without a file.

    Raises
    ------
    TypeError
        When ``raw`` is neither.
    ValueError
        When the file does not exist, is not a recording, may not be read, or is damaged.

    Warns
    -----
    UserWarning
        When a Raw is of a discontinuous file, whose gaps MNE does not read.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings._opening import open_recording
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 100)), info, verbose="error")
    >>> open_recording(raw)[1]
    'recording'
    """
    if isinstance(raw, mne.io.BaseRaw):
        files = [Path(file) for file in raw.filenames if file is not None]
        _warn_of_hidden_gaps(raw, files)
        return raw, files[0].name if files else "recording"
    if not isinstance(raw, (str, PathLike)):
        raise TypeError(
            f"raw is a {type(raw).__name__}; it must be an mne.io.Raw or the path of a recording."
        )
    file = Path(raw).expanduser()
    try:
        return _read(file), file.name
    except ValueError as error:
        raise ValueError(f"{file} cannot be used: {error}") from error


def _warn_of_hidden_gaps(raw: mne.io.BaseRaw, files: list[Path]) -> None:
    """MNE reads the records of a discontinuous file as if they followed each other."""
    edf = [file for file in files if file.suffix.lower() in (".edf", ".bdf") and file.is_file()]
    gaps = [file.name for file in edf if EdfRecords.read(file).discontinuous]
    if gaps and not any(map(is_gap, raw.annotations.description)):
        warn_user(
            f"{gaps[0]} is a discontinuous EDF+ file, which MNE reads without its gaps: "
            "windows may span them, and times after them are too early. Pass the path of the file "
            "instead."
        )


def _read(file: Path) -> mne.io.BaseRaw:
    problem = why_unreadable(file)
    if problem is not None:
        raise ValueError(problem)
    if not file.name.lower().endswith(ENDINGS):
        raise ValueError(
            f"its name does not end as that of a recording, with {', '.join(ENDINGS)}; read it "
            "with mne.io.read_raw and pass the Raw."
        )
    return read_recording(file)
