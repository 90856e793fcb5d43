"""Preprocess recordings as in the PARS paper: channels, sampling rate, filters (appendix A.3).

MNE does not store all preprocessing steps in the measurement info. Therefore,
:func:`filter_and_resample` and :func:`set_reference` add their steps to the measurement info, from
which :func:`~braindecode_pars.windows.recorded_steps.recorded` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import mne
import numpy as np

from braindecode_pars._common.channel_names import match_channels, other_system
from braindecode_pars._common.checks import check_positive, format_list
from braindecode_pars.windows import marks
from braindecode_pars.windows.preprocessing import AVERAGE
from braindecode_pars.windows.recorded_steps import remember_steps, rename_channels

#: Channels shared by all corpora of Temple University Hospital.
COMMON_CHANNELS = (
    *("Fp1", "Fp2", "F3", "F4", "F7", "F8", "Fz", "C3", "C4", "Cz"),
    *("P3", "P4", "Pz", "O1", "O2", "T3", "T4", "T5", "T6"),
)

#: Default sampling rate in Hz to which recordings are resampled, as in the PARS paper.
SFREQ = 200.0


def pick_electrodes(raw: mne.io.BaseRaw, wanted: Sequence[str]) -> mne.io.BaseRaw:
    """Pick channels by electrode names, in the requested order, and rename them.

    Channel names are matched as in the estimators of this package: the channel ``EEG FP1-REF``
    matches the electrode ``Fp1``, and ``T7`` matches ``T3``.

    Parameters
    ----------
    raw : Raw
        Recording; changed in place.
    wanted : sequence of str
        Electrode names, in upper or lower case.

    Returns
    -------
    Raw
        The same object as ``raw``.

    Raises
    ------
    ValueError
        If no channel matches an electrode, or if several channels match and none has exactly the
        requested name.

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
    chosen = find_electrodes(wanted, raw.ch_names)
    raw.pick(chosen, verbose="error").reorder_channels(chosen)
    rename_channels(raw, dict(zip(chosen, wanted, strict=True)))
    raw.set_channel_types(dict.fromkeys(wanted, "eeg"), verbose="error")
    return raw


def find_electrodes(wanted: Sequence[str], ch_names: Sequence[str]) -> list[str]:
    """Return the channel of each electrode, in the order of ``wanted``.

    Parameters
    ----------
    wanted : sequence of str
        Electrode names, in upper or lower case.
    ch_names : sequence of str
        Channels of the recording.

    Raises
    ------
    ValueError
        If no channel matches an electrode, or if several channels match and none has exactly the
        requested name.
    """
    indices = match_channels(wanted, ch_names)
    missing = [name for name, index in zip(wanted, indices, strict=True) if index is None]
    if missing:
        raise ValueError(
            f"{len(missing)} of {len(wanted)} requested channels ({format_list(missing)}) are "
            "missing, or match several channels of the recording. Usable channels of the "
            f"recording: {format_list(ch_names) or 'none'}. Exclude the recording, or request "
            "other channels (channels=, --channel)."
            f"{other_system(wanted, ch_names)}"
        )
    return [ch_names[index] for index in indices if index is not None]


def check_filters(
    *,
    sfreq: float | None = None,
    low: float | None = None,
    high: float | None = None,
    mains: float | None = None,
) -> None:
    """Validate the arguments of :func:`filter_and_resample`, before a recording is opened.

    Parameters
    ----------
    sfreq : float | None
        New sampling rate in Hz. If None, the sampling rate is not changed.
    low, high : float | None
        Cutoff frequencies of the high-pass (``low``) and the low-pass filter (``high``) in Hz. If
        None, the filter is omitted.
    mains : float | None
        Frequency of the notch filter in Hz. If None, there is no notch filter.

    Raises
    ------
    TypeError
        If an argument is not a number.
    ValueError
        If a frequency is not positive, or if ``low`` is not less than ``high``. (If ``low`` is
        greater, MNE would apply a band-stop filter.)

    Examples
    --------
    >>> from braindecode_pars.recordings.preparation import check_filters
    >>> check_filters(sfreq=128, low=0.5, high=45)
    """
    frequencies = dict(sfreq=sfreq, low=low, high=high, mains=mains)
    check_positive(**{name: value for name, value in frequencies.items() if value is not None})
    if low is not None and high is not None and low >= high:
        raise ValueError(f"low must be less than high, got low={low:g} Hz and high={high:g} Hz.")


def filter_and_resample(
    raw: mne.io.BaseRaw,
    *,
    sfreq: float = SFREQ,
    low: float | None = 0.3,
    high: float | None = 75.0,
    mains: float | None = 60.0,
) -> mne.io.BaseRaw:
    """Resample a recording, then apply a band-pass and a notch filter.

    The defaults are those of the PARS paper (appendix A.3).

    Parameters
    ----------
    raw : Raw
        Preloaded recording; changed in place.
    sfreq : float
        New sampling rate in Hz.
    low, high : float | None
        Cutoff frequencies of the high-pass (``low``) and the low-pass FIR filter (``high``) in Hz.
        If None, the filter is omitted. ``high`` is ignored if it is at or above the new Nyquist
        frequency.
    mains : float | None
        Frequency of the notch filter that removes line noise, in Hz. If None, no notch filter is
        applied. A frequency at or above the new Nyquist frequency is ignored.

    Returns
    -------
    Raw
        The same object as ``raw``.

    Raises
    ------
    ValueError
        If samples are NaN or infinite. The message contains the names of the channels.

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
    check_finite_samples(raw.ch_names, raw.get_data())
    apply_steps(raw, steps)
    remember_steps(raw, steps)
    return raw


def check_finite_samples(names: Sequence[str], signals: np.ndarray) -> None:
    """Check that all samples of a recording are finite; filters would spread NaN and infinity.

    Parameters
    ----------
    names : sequence of str
        Names of the channels.
    signals : ndarray, shape (n_chans, n_times)
        Samples of the channels.

    Raises
    ------
    ValueError
        If samples are NaN or infinite. The message contains the names of the channels.
    """
    bad = np.array(names)[~np.isfinite(signals).all(axis=1)]
    if len(bad):
        raise ValueError(
            f"the recording contains samples that are NaN or infinite, in {', '.join(bad)}. "
            "Replace these samples, or exclude the channels."
        )


def apply_steps(raw: mne.io.BaseRaw, steps: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Resample and filter a preloaded recording in place; filters do not cross gaps.

    Parameters
    ----------
    raw : Raw
        Preloaded recording; changed in place.
    steps : iterable of (str, mapping)
        Steps to apply. Each step is the name of a method of Raw (``"resample"``, ``"filter"`` or
        ``"notch_filter"``), and its keyword arguments. Each segment between two gaps is filtered
        separately; the whole recording is resampled at once.
    """
    for name, kwargs in steps:
        with _gaps_marked(raw) as gap:
            skip = {} if name == "resample" else dict(skip_by_annotation=gap)
            getattr(raw, name)(**kwargs, **skip, verbose="error")


@contextmanager
def _gaps_marked(raw: mne.io.BaseRaw) -> Iterator[str]:
    """Mark all gaps with annotations of the same description, so that MNE filters around them.

    The existing annotations of gaps are not sufficient: some of them last as long as the samples
    that were removed, so MNE would leave out recorded samples after the gap for this duration.
    """
    gap, annotations, start = "braindecode_pars gap", raw.annotations, 0
    for first, stop in [*marks.continuous_segments(raw), (raw.n_times, 0)]:
        if first > 0 and start < raw.n_times:
            duration = (first - start) / raw.info["sfreq"]
            annotations.append(start / raw.info["sfreq"] + raw.first_time, duration, gap)
        start = stop
    try:
        yield gap
    finally:
        annotations.delete(np.flatnonzero(annotations.description == gap))


def set_reference(raw: mne.io.BaseRaw, reference: str | Sequence[str]) -> mne.io.BaseRaw:
    """Re-reference a recording to the average of its channels or to selected channels.

    Parameters
    ----------
    raw : Raw
        Preloaded recording; changed in place.
    reference : "average" | sequence of str
        New reference, as in :meth:`mne.io.Raw.set_eeg_reference`.

    Returns
    -------
    Raw
        The same object as ``raw``.

    Raises
    ------
    ValueError
        If the recording has only one EEG channel, and this channel would be the reference.

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
        raise ValueError(
            f"the recording has only one EEG channel, {good[0]}, which would be zero after "
            "re-referencing to itself. Use reference=None, or more channels."
        )
    raw.set_eeg_reference(reference, verbose="error")
    remember_steps(raw, [("set_eeg_reference", dict(ref_channels=reference))])
    return raw
