"""Preprocessing of the paper: channels, sampling rate and filters (appendix A.3).

MNE's info does not tell every step. So what is done here is remembered in it, for
:func:`~braindecode_pars.windows.recorded_steps.recorded`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import mne
import numpy as np

from braindecode_pars._common.channel_names import (
    is_eeg,
    is_eeg_by_type,
    match_channels,
    other_system,
)
from braindecode_pars._common.checks import check_positive, format_list, instance, warn_user
from braindecode_pars.windows import marks
from braindecode_pars.windows.preprocessing import AVERAGE
from braindecode_pars.windows.recorded_steps import remember_steps, rename_channels

#: Channels that all corpora of Temple University have.
COMMON_CHANNELS = (
    *("Fp1", "Fp2", "F3", "F4", "F7", "F8", "Fz", "C3", "C4", "Cz"),
    *("P3", "P4", "Pz", "O1", "O2", "T3", "T4", "T5", "T6"),
)

#: Sampling rate in Hz to which all recordings are resampled.
SFREQ = 200.0


def pick_electrodes(raw: mne.io.BaseRaw, wanted: Sequence[str]) -> mne.io.BaseRaw:
    """Pick the channels of electrodes, in the given order, and rename them to the electrodes.

    Channels are matched as in the estimators: ``EEG FP1-REF`` is of ``Fp1``, and ``T7`` of ``T3``.

    Parameters
    ----------
    raw : Raw
        Recording; changed in place.
    wanted : sequence of str
        Names of electrodes, in upper or lower case.

    Returns
    -------
    Raw
        The given recording.

    Raises
    ------
    ValueError
        When an electrode has no channel, or several whose names are other ones.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.preparation import pick_electrodes
    >>> info = mne.create_info(["EEG C4-REF", "EEG C3-REF", "EKG"], 200.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((3, 400)), info, verbose="error")
    >>> pick_electrodes(raw, ["C3", "C4"]).ch_names
    ['C3', 'C4']
    """
    for name in wanted:
        instance("a list of names", str).check("wanted", name)
    places = dict(zip(wanted, match_channels(wanted, raw.ch_names), strict=True))
    missing = [name for name, place in places.items() if place is None]
    if missing:
        raise ValueError(
            f"channel {', '.join(missing)} missing, or not the only one of its electrode; the "
            f"recording has {', '.join(raw.ch_names)}.{other_system(wanted, raw.ch_names)}"
        )
    chosen = {raw.ch_names[place]: name for name, place in places.items() if place is not None}
    # Pick, order, rename, and mark as EEG.
    raw.pick(list(chosen), verbose="error").reorder_channels(list(chosen))
    rename_channels(raw, chosen)
    raw.set_channel_types(dict.fromkeys(wanted, "eeg"), verbose="error")
    return raw


def drop_other_signals(raw: mne.io.BaseRaw) -> mne.io.BaseRaw:
    """Drop the channels that are not EEG by type or name, such as ECG, EOG and EMG.

    Parameters
    ----------
    raw : Raw
        Recording; changed in place.

    Returns
    -------
    Raw
        The given recording.

    Raises
    ------
    ValueError
        When no channel is EEG.

    Warns
    -----
    UserWarning
        When a channel is EEG by its type and not by its name.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.preparation import drop_other_signals
    >>> info = mne.create_info(["C3", "EOG left"], 200.0, ["eeg", "eog"])
    >>> drop_other_signals(mne.io.RawArray(np.zeros((2, 400)), info, verbose="error")).ch_names
    ['C3']
    """
    eeg = [ch["ch_name"] for ch in raw.info["chs"] if is_eeg(ch)]
    if not eeg:
        raise ValueError(f"it has no EEG channel, only {', '.join(raw.ch_names)}.")
    warn_of_other_names(raw.info["chs"])
    return raw.pick(eeg, verbose="error")


def warn_of_other_names(chs: Iterable[Mapping[str, Any]]) -> None:
    """Warn of channels, as in ``mne.Info["chs"]``, that are EEG by their type and not by name."""
    others = [ch["ch_name"] for ch in chs if is_eeg_by_type(ch) and not is_eeg(ch)]
    if others:
        warn_user(
            f"{format_list(others)}: EEG by the type and another signal by the name, and not used. "
            "Rename an EEG channel, or set the type of the others."
        )


def check_filters(
    *,
    sfreq: float | None = None,
    low: float | None = None,
    high: float | None = None,
    mains: float | None = None,
) -> None:
    """Check the arguments of :func:`filter_and_resample` before a recording is opened.

    Parameters
    ----------
    sfreq : float | None
        New sampling rate in Hz; None keeps the rate of the recording.
    low, high, mains : float | None
        Edges of the band-pass and frequency of the notch filter in Hz; None for none.

    Raises
    ------
    TypeError
        When an argument is not a number.
    ValueError
        When a frequency is not positive, or ``low`` is not less than ``high``: MNE would apply a
        band-stop filter instead.

    Examples
    --------
    >>> from braindecode_pars.recordings.preparation import check_filters
    >>> check_filters(sfreq=128, low=0.5, high=45)
    """
    frequencies = dict(sfreq=sfreq, low=low, high=high, mains=mains)
    check_positive(**{name: value for name, value in frequencies.items() if value is not None})
    if low is not None and high is not None and low >= high:
        raise ValueError(f"low={low:g} Hz must be less than high={high:g} Hz.")


def filter_and_resample(
    raw: mne.io.BaseRaw,
    *,
    sfreq: float = SFREQ,
    low: float | None = 0.3,
    high: float | None = 75.0,
    mains: float | None = 60.0,
) -> mne.io.BaseRaw:
    """Resample a recording and apply a band-pass and a notch filter (appendix A.3).

    Parameters
    ----------
    raw : Raw
        Preloaded recording; changed in place.
    sfreq : float
        New sampling rate in Hz.
    low, high : float | None
        Edges of the FIR band-pass in Hz; None for no edge. An upper edge at or above the Nyquist
        frequency is ignored.
    mains : float | None
        Frequency of the notch filter in Hz; None for no notch filter. A frequency at or above the
        Nyquist frequency is ignored.

    Returns
    -------
    Raw
        The given recording.

    Raises
    ------
    ValueError
        When samples are NaN or infinite. The message names the channels.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.preparation import filter_and_resample
    >>> info = mne.create_info(["C3"], 250.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 60 * 250)), info, verbose="error")
    >>> filter_and_resample(raw, mains=50.0).get_data().shape
    (1, 12000)
    """
    steps: list[tuple[str, dict[str, Any]]] = []
    if raw.info["sfreq"] != sfreq:
        steps.append(("resample", dict(sfreq=sfreq)))
    nyquist = sfreq / 2
    high = high if high is not None and high < nyquist else None
    steps.append(("filter", dict(l_freq=low, h_freq=high)))
    if mains is not None and mains < nyquist:
        steps.append(("notch_filter", dict(freqs=mains)))
    apply_steps(raw, steps)
    remember_steps(raw, steps)
    return raw


def apply_steps(raw: mne.io.BaseRaw, steps: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Resample and filter a preloaded recording in place; filters end at its gaps.

    Parameters
    ----------
    raw : Raw
        Preloaded recording.
    steps : iterable of (str, mapping)
        ``"resample"``, ``"filter"`` or ``"notch_filter"``, and the arguments of this method.

    Raises
    ------
    ValueError
        When samples are NaN or infinite. The message names the channels.
    """
    bad = np.array(raw.ch_names)[~np.isfinite(raw.get_data()).all(axis=1)]
    if len(bad):
        raise ValueError(f"channel {', '.join(bad)} contains NaN or infinite samples.")
    for name, kwargs in steps:
        with _gaps_marked(raw) as gap:
            skip = {} if name == "resample" else dict(skip_by_annotation=gap)
            getattr(raw, name)(**kwargs, **skip, verbose="error")


@contextmanager
def _gaps_marked(raw: mne.io.BaseRaw) -> Iterator[str]:
    """Mark gaps by one text inside; MNE takes the duration of some for that of missing samples."""
    gap, notes, start = "braindecode_pars gap", raw.annotations, 0
    for first, stop in [*marks.continuous_segments(raw), (raw.n_times, 0)]:
        if first > 0 and start < raw.n_times:
            duration = (first - start) / raw.info["sfreq"]
            notes.append(start / raw.info["sfreq"] + raw.first_time, duration, gap)
        start = stop
    try:
        yield gap
    finally:
        notes.delete(np.flatnonzero(notes.description == gap))


def set_reference(raw: mne.io.BaseRaw, reference: str | Sequence[str]) -> mne.io.BaseRaw:
    """Reference the channels of a recording to their average, or to some of them.

    Parameters
    ----------
    raw : Raw
        Preloaded recording; changed in place.
    reference : "average" | sequence of str
        New reference, as in :meth:`mne.io.Raw.set_eeg_reference`.

    Returns
    -------
    Raw
        The given recording.

    Raises
    ------
    ValueError
        When the average is that of one channel, which would be zero.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.preparation import set_reference
    >>> info = mne.create_info(["C3", "C4"], 250.0, "eeg")
    >>> raw = mne.io.RawArray(np.array([[1.0, 1.0], [3.0, 5.0]]), info, verbose="error")
    >>> set_reference(raw, "average").get_data().tolist()
    [[-1.0, -2.0], [1.0, 2.0]]
    """
    good = np.array(raw.ch_names)[mne.pick_types(raw.info, eeg=True)]
    if len(good) == 1 and reference in (AVERAGE, [*good]):
        raise ValueError(f"its only EEG channel, {good[0]}, is zero against the average.")
    raw.set_eeg_reference(reference, verbose="error")
    remember_steps(raw, [("set_eeg_reference", dict(ref_channels=reference))])
    return raw
