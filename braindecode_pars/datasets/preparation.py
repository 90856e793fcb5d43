"""The paper's common preprocessing (appendix A.3), and what every reader of files needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path

import mne
import numpy as np
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset, RawDataset
from braindecode.preprocessing import create_fixed_length_windows, create_windows_from_events

__all__ = [
    "COMMON_CHANNELS",
    "SFREQ",
    "SLEEP_STAGES",
    "VOLTS",
    "check_positive",
    "event_windows",
    "filter_and_resample",
    "fixed_windows",
    "left_out_sentence",
    "pick_electrodes",
    "read_edf",
]

#: The channels that the corpora of Temple University share.
COMMON_CHANNELS = (
    *("Fp1", "Fp2", "F3", "F4", "F7", "F8", "Fz", "C3", "C4", "Cz"),
    *("P3", "P4", "Pz", "O1", "O2", "T3", "T4", "T5", "T6"),
)

#: Sampling rate that everything is brought to, in Hz.
SFREQ = 200.0

#: Classes of the sleep corpora, in the order of the targets 0 to 4.
SLEEP_STAGES = ("W", "N1", "N2", "N3", "R")


#: Units of voltages in WFDB headers, in volts.
VOLTS = {"V": 1.0, "mV": 1e-3, "uV": 1e-6}


def left_out_sentence(left_out: Sequence[str], n_recordings: int) -> str:
    """Which recordings were left out and why, twenty of them at most."""
    more = f" And {len(left_out) - 20} more." if len(left_out) > 20 else ""
    shown = " ".join(left_out[:20])
    return f"{len(left_out)} of {n_recordings} recordings were left out. {shown}{more}"


def check_positive(**numbers: float) -> None:
    """Refuse what no recording could be read with, before one is opened.

    Raises
    ------
    ValueError
        For the first that is not a positive number.
    """
    for name, number in numbers.items():
        if not isinstance(number, Real) or not number > 0:
            raise ValueError(f"{name} must be a positive number, got {number!r}.")


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
    >>> from braindecode_pars.datasets.preparation import read_edf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "night.edf")
    ...     _ = file.write_bytes(b"0       half a header")
    ...     try:
    ...         read_edf(file)
    ...     except ValueError as error:
    ...         print(str(error)[:28])
    it is damaged or truncated (
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", "Number of records from the header")
            return mne.io.read_raw_edf(file, preload=True, verbose="warning")
    except Exception as error:
        raise ValueError(
            f"it is damaged or truncated ({error}); remove it and fetch it again."
        ) from error


def pick_electrodes(
    raw: mne.io.BaseRaw, wanted: Sequence[str], electrode: Callable[[str], str]
) -> mne.io.BaseRaw:
    """Keep the wanted channels, in the wanted order and under the wanted names.

    Parameters
    ----------
    raw : Raw
        Changed in place.
    wanted : sequence of str
        Names of electrodes; capital letters do not matter.
    electrode : callable
        From a channel's name in the file to the electrode behind it.

    Returns
    -------
    Raw
        The same.

    Raises
    ------
    ValueError
        When electrodes are missing, or one is there twice.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.datasets.preparation import pick_electrodes
    >>> info = mne.create_info(["EEG C4-REF", "EEG C3-REF", "EKG"], 200.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((3, 400)), info, verbose="error")
    >>> pick_electrodes(raw, ["C3", "C4"], lambda name: name[4:6]).ch_names
    ['C3', 'C4']
    """
    found: dict[str, list[str]] = {}
    for name in raw.ch_names:
        found.setdefault(electrode(name).upper(), []).append(name)
    missing = [name for name in wanted if name.upper() not in found]
    if missing:
        raise ValueError(
            f"channel{'s' if len(missing) > 1 else ''} {', '.join(missing)} missing; it has "
            f"{', '.join(raw.ch_names)}."
        )
    twice = [names for name in wanted if len(names := found[name.upper()]) > 1]
    if twice:
        raise ValueError(f"several channels are of one electrode: {', '.join(twice[0])}.")
    chosen = {found[name.upper()][0]: name for name in wanted}
    raw.pick(list(chosen), verbose="error").reorder_channels(list(chosen))
    raw.rename_channels(chosen, verbose="error")
    raw.set_channel_types(dict.fromkeys(wanted, "eeg"), verbose="error")
    return raw


def filter_and_resample(
    raw: mne.io.BaseRaw,
    *,
    sfreq: float = SFREQ,
    low: float | None = 0.3,
    high: float | None = 75.0,
    mains: float | None = 60.0,
) -> mne.io.BaseRaw:
    """Resample, band-pass and notch a recording in memory, in place (appendix A.3).

    Parameters
    ----------
    raw : Raw
        Preloaded; changed in place.
    sfreq : float
        Sampling rate to bring it to, in Hz.
    low, high : float | None
        Edges of the FIR band-pass in Hz; a high one that the sampling rate cannot hold is left
        out.
    mains : float | None
        Frequency of the notch in Hz; None for none.

    Returns
    -------
    Raw
        The same.

    Raises
    ------
    ValueError
        When samples are NaN or infinite, naming the channel.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.datasets.preparation import filter_and_resample
    >>> info = mne.create_info(["C3"], 250.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 60 * 250)), info, verbose="error")
    >>> filter_and_resample(raw, mains=50.0).get_data().shape
    (1, 12000)
    """
    bad = ~np.isfinite(raw.get_data()).all(axis=1)
    if bad.any():
        names = [name for name, is_bad in zip(raw.ch_names, bad, strict=True) if is_bad]
        raise ValueError(f"channel {', '.join(names)} holds NaN or infinite samples.")
    if raw.info["sfreq"] != sfreq:
        raw.resample(sfreq, verbose="error")
    nyquist = sfreq / 2
    raw.filter(low, high if high is not None and high < nyquist else None, verbose="error")
    if mains is not None and mains < nyquist:
        raw.notch_filter(mains, verbose="error")
    return raw


def fixed_windows(
    raw: mne.io.BaseRaw,
    seconds: float = 30.0,
    target: Callable[[np.ndarray, np.ndarray], np.ndarray] | int = -1,
    *,
    stride_seconds: float | None = None,
) -> EEGWindowsDataset | None:
    """Cut a recording into windows of one length; a rest at the end is dropped.

    Parameters
    ----------
    raw : Raw
        What is cut.
    seconds : float
        Length of a window.
    target : int | callable
        Of all windows, or from their first and last times in seconds, shape (n_windows,) each, to
        their targets. -1 is "without a label" to the estimators.
    stride_seconds : float | None
        From one window to the next; None lets them follow one another.

    Returns
    -------
    EEGWindowsDataset | None
        None where the recording is shorter than a window.

    Raises
    ------
    ValueError
        When ``stride_seconds`` is not positive.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.datasets.preparation import fixed_windows
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 7500)), info, verbose="error")
    >>> windows = fixed_windows(raw, seconds=30, target=1)
    >>> len(windows), windows[0][0].shape, windows[0][1]
    (2, (1, 3000), 1)
    """
    length = round(seconds * raw.info["sfreq"])
    stride = length if stride_seconds is None else round(stride_seconds * raw.info["sfreq"])
    if stride < 1:
        raise ValueError(f"stride_seconds must be positive, got {stride_seconds}.")
    if raw.n_times < length:
        return None
    (windows,) = create_fixed_length_windows(
        BaseConcatDataset([RawDataset(raw, {})]),
        window_size_samples=length,
        window_stride_samples=stride,
        on_last_window="drop",
        verbose="error",
    ).datasets
    metadata = windows.metadata.copy()
    start = metadata["i_start_in_trial"].to_numpy() / raw.info["sfreq"]
    metadata["target"] = target(start, start + seconds) if callable(target) else target
    return EEGWindowsDataset(raw, metadata, {})


def event_windows(
    raw: mne.io.BaseRaw, mapping: Mapping[str, int], seconds: float = 30.0
) -> EEGWindowsDataset | None:
    """Cut annotated stretches into windows that follow one another.

    Parameters
    ----------
    raw : Raw
        Its annotations say where the stretches are and how long.
    mapping : mapping of str to int
        From an annotation to the target; stretches with other annotations are left out.
    seconds : float
        Length of a window.

    Returns
    -------
    EEGWindowsDataset | None
        None where no stretch is as long as a window.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.datasets.preparation import event_windows
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 9000)), info, verbose="error")
    >>> stages = mne.Annotations([0, 60, 80], [60, 20, 10], ["N2", "N3", "none"])
    >>> raw = raw.set_annotations(stages)
    >>> windows = event_windows(raw, {"N2": 3, "N3": 4}, seconds=10)
    >>> [target for _, target, _ in windows]
    [3, 3, 3, 3, 3, 3, 4, 4]
    """
    length = round(seconds * raw.info["sfreq"])
    # One that is shorter than a window would end the reading.
    keep = [
        i
        for i, annotation in enumerate(raw.annotations)
        if annotation["description"] in mapping and annotation["duration"] >= seconds - 1e-6
    ]
    if not keep:
        return None
    raw.set_annotations(raw.annotations[keep], verbose="error")
    found = set(raw.annotations.description)
    (windows,) = create_windows_from_events(
        BaseConcatDataset([RawDataset(raw, {})]),
        window_size_samples=length,
        window_stride_samples=length,
        on_last_window="drop",
        mapping={name: mapping[name] for name in found},
        verbose="error",
    ).datasets
    return windows
