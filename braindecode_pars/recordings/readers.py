"""Readers for EDF, BDF, FIF and WFDB files; signals that are not EEG are marked by their labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import mne
import wfdb

from braindecode_pars._channel_names import is_other_kind

__all__ = ["read_edf", "read_recording", "read_wfdb"]

#: Units of voltage in WFDB headers, in volts.
VOLTS = {"V": 1.0, "mV": 1e-3, "uV": 1e-6}


def read_recording(file: Path) -> mne.io.BaseRaw:
    """Read an EDF, BDF, FIF or WFDB recording into memory.

    EDF, BDF and WFDB files do not store channel types. The type is derived from the label, such as
    "EEG Fp1" or "ECG". Signals that are not EEG get the channel type "misc". A signal whose label
    does not show its type is assumed to be EEG.

    Parameters
    ----------
    file : Path
        Path that ends with ``.edf``, ``.bdf``, ``.fif``, ``.fif.gz`` or ``.hea``.

    Returns
    -------
    mne.io.BaseRaw
        Preloaded recording.

    Raises
    ------
    ValueError
        When the file is damaged or truncated, or when a WFDB record contains no voltages.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.readers import read_recording
    >>> info = mne.create_info(["C3"], 250.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 500)), info, verbose="error")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "P01_raw.fif")
    ...     _ = raw.save(file, verbose=False)
    ...     read_recording(file).ch_names
    ['C3']
    """
    suffix = file.suffix.lower()
    if suffix == ".edf":
        return _mark_other_kinds(read_edf(file))
    if suffix == ".hea":
        return _mark_other_kinds(read_wfdb(file))
    with _short_errors():
        if suffix == ".bdf":
            raw = mne.io.read_raw_bdf(file, preload=True, verbose="warning")
            return _mark_other_kinds(raw)
        return mne.io.read_raw_fif(file, preload=True, verbose="error")


def read_edf(file: Path) -> mne.io.BaseRaw:
    """Read an EDF or EDF+ file into memory, and check that it is not truncated.

    Parameters
    ----------
    file : Path
        Path of the file.

    Returns
    -------
    mne.io.BaseRaw
        Preloaded recording.

    Raises
    ------
    ValueError
        When the file is damaged or truncated.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.readers import read_edf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "night.edf")
    ...     _ = file.write_bytes(b"0       half a header")
    ...     try:
    ...         read_edf(file)
    ...     except ValueError as error:
    ...         print(str(error)[:28])
    it is damaged or truncated (
    """
    with _short_errors():
        return mne.io.read_raw_edf(file, preload=True, verbose="warning")


def read_wfdb(file: Path, wanted: Callable[[str], bool] | None = None) -> mne.io.BaseRaw:
    """Read the voltages of a WFDB record into memory.

    Parameters
    ----------
    file : Path
        A file of the record, with any ending.
    wanted : callable | None
        Function that receives the name of a signal and returns whether to read it. If it selects
        no signal, all signals are read. None reads all voltages and ignores signals in other units.

    Returns
    -------
    mne.io.BaseRaw
        Preloaded recording, in volts.

    Raises
    ------
    ValueError
        When the record is damaged, when a selected signal is not a voltage, or when no signal is a
        voltage.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import wfdb
    >>> from braindecode_pars.recordings.readers import read_wfdb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wfdb.wrsamp("night", 100, ["uV", "NU"], ["C3", "flow"], np.ones((500, 2)),
    ...                 fmt=["16", "16"], write_dir=folder)
    ...     read_wfdb(Path(folder, "night.hea")).ch_names
    ['C3']
    """
    # Read the selected signals.
    record = str(file.with_suffix(""))  # wfdb expects a path without ending
    with _short_errors():
        names = None
        if wanted is not None:
            names = [name for name in wfdb.rdheader(record).sig_name if wanted(name)]
        read = wfdb.rdrecord(record, channel_names=names or None)
    # Keep voltages only.
    volts = [i for i, unit in enumerate(read.units) if unit in VOLTS]
    other_units = sorted(set(read.units) - set(VOLTS))
    if (names and other_units) or not volts:
        raise ValueError(f"its signals are in {', '.join(other_units)}, not in {', '.join(VOLTS)}.")
    scale = [[VOLTS[read.units[i]]] for i in volts]
    info = mne.create_info([read.sig_name[i] for i in volts], float(read.fs), "eeg")
    return mne.io.RawArray(read.p_signal.T[volts] * scale, info, verbose="error")


def _mark_other_kinds(raw: mne.io.BaseRaw) -> mne.io.BaseRaw:
    """Set the type of channels that are not EEG to "misc", by their labels."""
    # If some labels begin with "EEG", as EDF+ requires ("EEG Fp1"), the other signals are not EEG.
    eeg = [name for name in raw.ch_names if name.upper().startswith("EEG")]
    others = [name for name in raw.ch_names if is_other_kind(name) or (eeg and name not in eeg)]
    kinds = dict.fromkeys(others, "misc")
    return raw.set_channel_types(kinds, on_unit_change="ignore", verbose="error")


@contextmanager
def _short_errors() -> Iterator[None]:
    """Convert any error of a reader to a short ValueError; the caller adds the name of the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # MNE only warns when an EDF file is truncated.
            warnings.filterwarnings("error", "Number of records from the header")
            yield
    except Exception as error:
        raise ValueError(
            f"it is damaged or truncated ({error}); remove it and download it again."
        ) from error
