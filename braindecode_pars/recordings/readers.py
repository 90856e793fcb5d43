"""Readers for EDF, BDF, WFDB and files of MNE; signals that are not EEG are marked by labels."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import mne
import numpy as np
import wfdb

from braindecode_pars._common import channel_names, checks
from braindecode_pars.recordings.search import is_recording, list_files, why_unreadable

#: Endings of the names of files that :func:`read_recording` reads, in lower case.
ENDINGS = (".edf", ".bdf", ".fif", ".fif.gz", ".hea")

#: Units of voltage in WFDB headers, in volts.
VOLTS = {"V": 1.0, "mV": 1e-3, "uV": 1e-6}

#: Spellings of these units in EDF and BDF files; MNE takes any other unit as volts.
_EDF_VOLTS = (*VOLTS, "\u00b5V", "\u03bcV", "\x83\xcaV")

#: Units of other quantities, such as oxygen saturation and pulse: such a signal is not EEG.
_OTHER_UNITS = {
    *("%", "bpm", "BPM", "1/min", "Hz", "s", "ms", "deg", "dB", "lux", "g", "m/s^2", "NU"),
    *("degC", "DegC", "degF", "C", "K", "mmHg", "cmH2O", "Pa", "kPa", "mbar", "Ohm", "kOhm"),
    *("l", "L", "ml", "mL", "l/min", "L/min", "l/s", "L/s", "ml/s", "Boolean"),
}


def recordings_below(root: Path) -> list[Path]:
    """Return the recordings below a folder, also those that cannot be opened."""
    files = list_files(root, lambda name: name.lower().endswith(ENDINGS))
    return [file for file in files if why_unreadable(file) or is_recording(file)]


def read_recording(file: Path, *, preload: bool = True) -> mne.io.BaseRaw:
    """Read a recording of EDF, BDF, WFDB, or another format of MNE into memory.

    EDF, BDF and WFDB files do not store channel types. The type is derived from the label, such as
    "EEG Fp1" or "ECG", and from the unit: a signal in percent is not EEG. Signals that are not EEG
    get the channel type "misc"; "bio" if there is no EEG, since a recording of "misc" alone has no
    types. A signal whose label does not show its type is assumed to be EEG.

    Parameters
    ----------
    file : Path
        Path that ends with ``.edf``, ``.bdf``, ``.hea``, or as a file that :func:`mne.io.read_raw`
        reads, such as ``.fif``.
    preload : bool
        Whether to read the signals. Without them, those of a WFDB record are zeros.

    Returns
    -------
    mne.io.BaseRaw
        The recording, preloaded or only with its header.

    Raises
    ------
    ValueError
        When the file is missing, damaged or truncated, when the unit of an EEG signal is unknown or
        missing, or when a WFDB record contains no voltages.

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
    if suffix in (".edf", ".bdf"):
        raw, units = _read_edf(file, preload=preload)
        _mark_other_kinds(raw, units)
        eeg = mne.pick_types(raw.info, eeg=True, exclude=())
        _check_voltages({name: units[name] for name in np.array(raw.ch_names)[eeg]})
        return raw
    if suffix == ".hea":
        return _mark_other_kinds(read_wfdb(file, preload=preload))
    with short_errors():
        return mne.io.read_raw(file, preload=preload, verbose="error")


def read_edf(file: Path, wanted: Callable[[str], bool] | None = None) -> mne.io.BaseRaw:
    """Read an EDF, EDF+ or BDF file into memory, and check that it is complete and in volts.

    Parameters
    ----------
    file : Path
        Path of the file.
    wanted : callable | None
        Function that receives the name of a signal and returns whether it is used, so that it must
        be a voltage. None means all signals. All signals are read.

    Returns
    -------
    mne.io.BaseRaw
        Preloaded recording, in volts.

    Raises
    ------
    ValueError
        When the file is missing, damaged or truncated, when it has gaps (EDF+D), or when the unit
        of a wanted signal is not V, mV or uV.

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
    ...         print(str(error)[:35])
    it is damaged, truncated or missing
    """
    raw, units = _read_edf(file)
    _check_voltages({name: units[name] for name in raw.ch_names if wanted is None or wanted(name)})
    return raw


def _read_edf(file: Path, *, preload: bool = True) -> tuple[mne.io.BaseRaw, dict[str, str]]:
    """Read an EDF or BDF file, and the unit of each channel."""
    read = mne.io.read_raw_bdf if file.suffix.lower() == ".bdf" else mne.io.read_raw_edf
    with short_errors():
        try:
            raw = read(file, preload=preload, verbose="warning")
        except Exception as error:  # MNE raises no other class
            if "encoding" not in str(error):
                raise
            raw = read(file, preload=preload, encoding="latin1", verbose="warning")
        units, has_gaps = units_and_gaps(file, raw.info["sfreq"])
    if has_gaps:
        raise ValueError(
            "it is discontinuous (EDF+D) with gaps, which MNE does not read. Convert it to "
            "continuous files, for example with EDFbrowser."
        )
    return raw, dict(zip(raw.ch_names, units, strict=True))


_ANNOTATIONS = ("EDF Annotations", "BDF Annotations")

#: Start of a data record in seconds, at the beginning of its first annotation signal.
_ONSET = re.compile(rb"([+-]\d+\.?\d*)\x14")

#: Start times are written with few decimals; a smaller difference in seconds is no gap.
_RESOLUTION = 1e-3


def units_and_gaps(file: Path, sfreq: float) -> tuple[list[str], bool]:
    """Return the units of the signals of an EDF or BDF file, and whether it has gaps.

    Parameters
    ----------
    file : Path
        The file.
    sfreq : float
        Sampling rate in Hz. Records that are apart by more than a sample have a gap between them.

    Returns
    -------
    units : list of str
        Units (physical dimensions) of MNE's channels: without those of annotation signals.
    has_gaps : bool
        Whether the file is discontinuous, and records are apart.

    Raises
    ------
    ValueError, TypeError
        When a number in the header is invalid, or the time of a record cannot be read.
    """
    with file.open("rb") as stream:
        start = stream.read(256).decode("latin-1")
        n_signals = int(start[252:256])
        rest = stream.read(256 * n_signals).decode("latin-1")

    def column(first: int, width: int) -> list[str]:
        # The entries of all signals follow each other; ``first`` counts the bytes before.
        begin = first * n_signals
        entries = (rest[begin + i * width : begin + (i + 1) * width] for i in range(n_signals))
        return [entry.split("\x00")[0].strip() for entry in entries]

    is_annotation = [label in _ANNOTATIONS for label in column(0, 16)]
    units = [unit for unit, other in zip(column(96, 8), is_annotation, strict=True) if not other]
    if start[192:197] not in ("EDF+D", "BDF+D"):
        return units, False
    # The first annotation signal of each record begins with its time.
    widths = np.array([int(n) for n in column(216, 8)]) * (3 if start[192] == "B" else 2)
    place = is_annotation.index(True)
    stop, width = widths[: place + 1].sum(), widths.sum()
    content = np.memmap(file, np.uint8, "r", offset=int(start[184:192]))
    records = content[: len(content) // width * width].reshape(-1, width)
    texts = [record[stop - widths[place] : stop].tobytes() for record in records]
    onsets = np.array([float(_ONSET.match(text)[1]) for text in texts])  # type: ignore[index]
    expected = onsets[0] + float(start[244:252]) * np.arange(len(onsets))
    return units, bool((np.abs(onsets - expected) > max(_RESOLUTION, 1 / sfreq)).any())


def _check_voltages(units: dict[str, str]) -> None:
    """Check that EEG signals of an EDF file have a unit that MNE converts to volts."""
    wrong = {name: unit for name, unit in units.items() if unit not in _EDF_VOLTS}
    if wrong:
        shown = [f"{name} ({unit or 'no unit'})" for name, unit in wrong.items()]
        raise ValueError(
            f"its signal {checks.listed(shown, most=5)} must be in uV, mV or V to be read as EEG; "
            "correct the header, or read it with mne.io.read_raw_edf(file, units='uV') and use the "
            "Raw."
        )


def read_wfdb(
    file: Path, wanted: Callable[[str], bool] | None = None, *, preload: bool = True
) -> mne.io.BaseRaw:
    """Read the voltages of a WFDB record into memory.

    Parameters
    ----------
    file : Path
        A file of the record, with any ending.
    wanted : callable | None
        Function that receives the name of a signal and returns whether to read it. None reads all
        voltages and ignores signals of other quantities, such as percent.
    preload : bool
        Whether to read the signals, which are zeros otherwise.

    Returns
    -------
    mne.io.BaseRaw
        Preloaded recording, in volts.

    Raises
    ------
    ValueError
        When the record is missing or damaged, when ``wanted`` selects no signal, when a selected
        signal is not a voltage, when the unit of another signal is unknown, or when no signal is a
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
    with short_errors():
        header = wfdb.rdheader(record)
        found = header.sig_name or []
    names = None if wanted is None else [name for name in found if wanted(name)]
    if names == []:
        raise ValueError(f"it has none of the wanted signals, only {', '.join(found)}.")
    with short_errors():
        read = wfdb.rdrecord(record, channel_names=names) if preload else header
    # Keep voltages only. A signal in an unknown unit may be EEG, unless its label shows otherwise.
    volts = [i for i, unit in enumerate(read.units) if unit in VOLTS]
    refused = {
        unit
        for name, unit in zip(read.sig_name, read.units, strict=True)
        if unit not in VOLTS
        and not (
            wanted is None and volts and (unit in _OTHER_UNITS or channel_names.is_other_kind(name))
        )
    }
    if refused:
        raise ValueError(
            f"its signals are in {', '.join(sorted(refused))}, not {', '.join(VOLTS)}."
        )
    scale = [[VOLTS[read.units[i]]] for i in volts]
    info = mne.create_info([read.sig_name[i] for i in volts], float(read.fs), "eeg")
    zeros = np.zeros((len(volts), header.sig_len))
    return mne.io.RawArray(
        read.p_signal.T[volts] * scale if preload else zeros, info, verbose="error"
    )


def _mark_other_kinds(
    raw: mne.io.BaseRaw, units: Mapping[str, str] | None = None
) -> mne.io.BaseRaw:
    """Set the type of channels that are not EEG to "misc", by their labels and units."""
    # If some labels begin with "EEG", as EDF+ requires ("EEG Fp1"), the other signals are not EEG.
    eeg = [name for name in raw.ch_names if name.upper().startswith("EEG")] or raw.ch_names
    others = [name for name in raw.ch_names if channel_names.is_other_kind(name) or name not in eeg]
    others += [name for name, unit in (units or {}).items() if unit in _OTHER_UNITS]
    # Where all channels are "misc", it means that nothing is known of them.
    kind = "misc" if set(others) < set(raw.ch_names) else "bio"
    kinds = dict.fromkeys(others, kind)
    return raw.set_channel_types(kinds, on_unit_change="ignore", verbose="error")


@contextmanager
def short_errors() -> Iterator[None]:
    """Convert any error of a reader to a short ValueError; the caller adds the name of the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # MNE only warns when an EDF file is truncated.
            warnings.filterwarnings("error", "Number of records from the header")
            yield
    except Exception as error:
        raise ValueError(f"it is damaged, truncated or missing: {error}.") from error


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
        When a Raw is of a discontinuous file with gaps, which MNE does not read.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.readers import open_recording
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 100)), info, verbose="error")
    >>> open_recording(raw)[1]
    'recording'
    """
    if isinstance(raw, mne.io.BaseRaw):
        files = [Path(file) for file in raw.filenames if file is not None]
        edf = [file for file in files if file.suffix.lower() in (".edf", ".bdf") and file.is_file()]
        if gaps := [each.name for each in edf if units_and_gaps(each, raw.info["sfreq"])[1]]:
            checks.warn_user(
                f"{gaps[0]} is discontinuous (EDF+D) with gaps, and MNE reads it without them: "
                "windows may span a gap, and times after it are too early."
            )
        return raw, files[0].name if files else "recording"
    if not isinstance(raw, (str, PathLike)):
        raise TypeError(f"raw must be an mne.io.Raw or a path, got a {type(raw).__name__}.")
    file = Path(raw).expanduser()
    try:
        if problem := why_unreadable(file):
            raise ValueError(problem)
        if not file.name.lower().endswith(ENDINGS):
            raise ValueError(
                f"its name does not end as that of a recording, with {', '.join(ENDINGS)}; read it "
                "with mne.io.read_raw and pass the Raw."
            )
        return read_recording(file), file.name
    except ValueError as error:
        raise ValueError(f"{file} cannot be used: {error}") from error
