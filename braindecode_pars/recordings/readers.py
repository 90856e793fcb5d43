"""Readers of files: EDF, BDF, FIF and WFDB, with what is not EEG marked by its label."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import mne
import wfdb

__all__ = ["read_edf", "read_recording", "read_wfdb"]

#: Units of voltages in WFDB headers, in volts.
VOLTS = {"V": 1.0, "mV": 1e-3, "uV": 1e-6}

#: Other kinds of signals, as EDF+ abbreviates them.
_OTHER_KIND = re.compile(r"(ECG|EKG|EMG|EOG|ERG|MEG|MCG|Temp|Resp|SaO2|Light|Sound)\b", re.I)


def read_recording(file: Path) -> mne.io.BaseRaw:
    """Read an EDF, BDF, FIF or WFDB recording into memory.

    EDF, BDF and WFDB tell EEG from other signals by labels at most, such as "EEG Fp1" and "ECG".
    Signals of another kind get the channel type "misc"; a signal without a telling label is taken
    for EEG.

    Parameters
    ----------
    file : Path
        Ends in ``.edf``, ``.bdf``, ``.fif``, ``.fif.gz`` or ``.hea``.

    Returns
    -------
    mne.io.BaseRaw
        Preloaded.

    Raises
    ------
    ValueError
        When the file is damaged or truncated, or a WFDB record holds no voltages.

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
    with _damage_named():
        if suffix == ".bdf":
            raw = mne.io.read_raw_bdf(file, preload=True, verbose="warning")
            return _mark_other_kinds(raw)
        return mne.io.read_raw_fif(file, preload=True, verbose="error")


def read_edf(file: Path) -> mne.io.BaseRaw:
    """Read an EDF or EDF+ file into memory; one that is shorter than its header says is refused.

    Parameters
    ----------
    file : Path
        The file.

    Returns
    -------
    mne.io.BaseRaw
        Preloaded.

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
    with _damage_named():
        return mne.io.read_raw_edf(file, preload=True, verbose="warning")


def read_wfdb(file: Path, wanted: Callable[[str], bool] | None = None) -> mne.io.BaseRaw:
    """Read the voltages of a WFDB record into memory.

    Parameters
    ----------
    file : Path
        A file of the record, with any ending.
    wanted : callable | None
        Whether a signal is read, from its name; where none is wanted, all are. None reads every
        voltage and leaves out signals of other units.

    Returns
    -------
    mne.io.BaseRaw
        Volts.

    Raises
    ------
    ValueError
        When the record is damaged, a wanted signal is not a voltage, or no signal is.

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
    record = str(file.with_suffix(""))
    with _damage_named():
        names = None
        if wanted is not None:
            names = [name for name in wfdb.rdheader(record).sig_name if wanted(name)]
        read = wfdb.rdrecord(record, channel_names=names or None)
    volts = [i for i, unit in enumerate(read.units) if unit in VOLTS]
    other_units = sorted(set(read.units) - set(VOLTS))
    if (names and other_units) or not volts:
        raise ValueError(f"its signals are in {', '.join(other_units)}, not in {', '.join(VOLTS)}.")
    scale = [[VOLTS[read.units[i]]] for i in volts]
    info = mne.create_info([read.sig_name[i] for i in volts], float(read.fs), "eeg")
    return mne.io.RawArray(read.p_signal.T[volts] * scale, info, verbose="error")


def _mark_other_kinds(raw: mne.io.BaseRaw) -> mne.io.BaseRaw:
    """Set the type of what is not EEG to "misc", by labels.

    Where some labels say EEG, as EDF+ wants it ("EEG Fp1"), the others are of something else.
    """
    said = [name for name in raw.ch_names if name.upper().startswith("EEG")]
    others = [
        name for name in raw.ch_names if (name not in said if said else _OTHER_KIND.match(name))
    ]
    kinds = dict.fromkeys(others, "misc")
    return raw.set_channel_types(kinds, on_unit_change="ignore", verbose="error")


@contextmanager
def _damage_named() -> Iterator[None]:
    """Whatever a reader fails with becomes one sentence; the caller knows which file it is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", "Number of records from the header")
            yield
    except Exception as error:
        raise ValueError(
            f"it is damaged or truncated ({error}); remove it and fetch it again."
        ) from error
