"""Inspect recordings before they are read: find their shared channels and the line frequency.

All windows must have the same channels, and an average reference must be computed from the same
channels in all recordings. Therefore, the scalp electrodes shared by all recordings are selected
before the first recording is read.
"""

import logging
from collections.abc import Mapping, Sequence

import mne
import numpy as np
import pandas as pd
from scipy.signal import welch

from braindecode_pars._common import channel_names, checks
from braindecode_pars.recordings import channel_facts, loading

log = logging.getLogger(__name__)

#: Recordings with too few channels are ignored in the selection of channels if they make up at most
#: this proportion of all recordings.
_MAX_IGNORED = 0.25


def shared_channels(
    infos: Mapping[str, mne.Info], *, average: bool = False, verbose: int = 1
) -> tuple[list[str], bool]:
    """Select the scalp electrodes shared by all recordings.

    Different names of the same electrode, such as ``T3`` and ``T7``, are equivalent. The reference
    in a name and the order of the channels do not matter. Channels that are marked as bad count as
    missing. If most channels do not have names of the 10-05 system, as in caps with numbered
    electrodes, all EEG channels shared by the recordings are selected.

    A few recordings with a different montage do not reduce the selection. A channel is usual if at
    least half of the recordings contain it. A recording with fewer than half of the usual channels
    is ignored in the selection, unless more than a quarter of the recordings would be ignored.

    Parameters
    ----------
    infos : mapping of str to mne.Info
        Measurement info of each recording, by file name.
    average : bool
        Whether the recordings will be re-referenced to the average of the selected channels. If
        True, bipolar channels such as ``Fpz-Cz`` are selected only if there are no other channels.
    verbose : int
        If 1, log the excluded channels, unless they are already listed in a warning. If 0, log
        nothing.

    Returns
    -------
    names : list of str
        Selected channels, with the names and in the order of the first recording that is not
        ignored.
    are_all : bool
        Whether every EEG channel of the recordings is selected.

    Raises
    ------
    ValueError
        If the recordings share no channel.

    Warns
    -----
    UserWarning
        If an electrode is excluded because it is missing in some recordings, or if a channel has
        the type EEG but the name of another signal. The message contains a table of excluded
        channels.

    Examples
    --------
    The first two channels of each recording have the type EEG. T3 and T7 are the same electrode:

    >>> import mne
    >>> from braindecode_pars.recordings.first_look import shared_channels
    >>> ch_names = {"a.edf": ["C3-LE", "T3-LE", "A2-A1"], "b.edf": ["T7", "C3", "ECG"]}
    >>> infos = {file: mne.create_info(names, 100.0, "misc") for file, names in ch_names.items()}
    >>> for info in infos.values():
    ...     for ch in info["chs"][:2]:
    ...         ch["kind"] = mne.io.constants.FIFF.FIFFV_EEG_CH
    >>> shared_channels(infos, verbose=0)
    (['C3-LE', 'T3-LE'], True)
    """
    keys = channel_names.channel_keys(*(info["ch_names"] for info in infos.values()))
    rows = []
    for i, (info, info_keys) in enumerate(zip(infos.values(), keys, strict=True)):
        names = channel_names.system_names(info["ch_names"])
        good_eeg = channel_facts.good_eeg(info["chs"], info["bads"])
        for ch, name, key in zip(info["chs"], names, info_keys, strict=True):
            why = channel_names.why_no_electrode({**ch, "ch_name": name})
            rows.append((i, key, ch["ch_name"], why, ch["ch_name"] in good_eeg))
    table = pd.DataFrame(rows, columns=["recording", "key", "name", "why", "is_good"])
    channels = table.drop_duplicates("key").set_index("key")
    # Whether a recording contains a channel, shape (n_keys, n_recordings)
    good = table[table["is_good"]]
    has_channel = pd.crosstab(good["key"], good["recording"]) > 0
    has_channel = has_channel.reindex(
        index=channels.index, columns=range(len(infos)), fill_value=False
    )
    usual = has_channel.mean(axis=1) >= 0.5
    wanted = channels["why"] == ""
    if not average or not (wanted & usual).any():
        wanted |= channels["why"] == channel_names.PAIR
    unnamed = (channels["why"] == channel_names.UNKNOWN) & ~channels.index.str.contains("-")
    if (wanted & usual).sum() <= (unnamed & usual).sum():
        wanted = has_channel.any(axis=1)
    # Ignore recordings with few of the usual channels. Select the channels shared by all others.
    n_usual = has_channel[wanted & usual].sum()
    is_ignored = n_usual < (wanted & usual).sum() / 2
    is_ignored &= is_ignored.mean() <= _MAX_IGNORED
    shared = wanted & has_channel.loc[:, ~is_ignored].all(axis=1)
    exclusions = _table_of_channels(table, channels["why"].where(~wanted, ""), shared, len(infos))
    if not shared.any():
        raise ValueError(
            f"No EEG channel is shared by all recordings (number of recordings: {len(infos)}). "
            "Exclude the recordings whose channels differ from those of most recordings, or pass "
            "the channels to use (channels=, --channel). A recording without one of these channels "
            "then raises an error, or is skipped with on_error='warn'."
            f"{channel_names.other_system(*(info['ch_names'] for info in infos.values()))} "
            f"Channels of the recordings:{exclusions}"
        )
    shared_rows = table[(table["recording"] == int(is_ignored.argmin())) & table["key"].map(shared)]
    names = shared_rows["name"].tolist()
    text = (
        f"Using the {len(names)} channel{'s' if len(names) != 1 else ''} shared by "
        f"{(~is_ignored).sum()} of {len(infos)} recordings: {checks.format_list(names, 20)}"
        f"{' (re-referenced to the average of these channels)' if average else ''}. "
        f"Excluded channels:{exclusions}"
    )
    if (wanted & ~shared).any() or (channels["why"] == channel_names.NAME_CONTRADICTS_TYPE).any():
        checks.warn_user(text)
    elif exclusions and verbose:
        log.info(text)
    return names, not has_channel[~shared].any(axis=None)


def _table_of_channels(table: pd.DataFrame, why: pd.Series, shared: pd.Series, n: int) -> str:
    """Format a table of excluded channels: names, number of recordings with them, and reason."""
    unshared_rows = table[~table["key"].map(shared)]
    channels = unshared_rows.groupby("key", sort=False).agg(
        name=("name", "first"), n=("recording", "nunique"), good=("is_good", "sum")
    )
    channels["why"] = why[channels.index]
    missing = [f"missing or marked as bad in {n - good} of {n}" for good in channels["good"]]
    channels["why"] = channels["why"].where(channels["why"] != "", missing)
    groups = []
    for (count, reason), group in channels.groupby(["n", "why"], sort=False):
        names = checks.format_list(channel_names.odd_first(group["name"]), 8)
        groups.append((names, f"in {count} of {n} recordings", reason))
    return loading.table_text(groups)


#: Possible line frequencies in Hz.
LINE_FREQUENCIES = (50.0, 60.0)
#: Approximate maximum number of recordings that are inspected for line noise.
N_INSPECTED_RECORDINGS = 10
#: Duration in seconds of the segment of a recording that is inspected.
_SECONDS = 30.0
#: Minimum power of a spectral peak relative to neighboring frequencies, in decibels.
_PEAK = 10.0
#: If the power relative to neighboring frequencies is lower than this, there is no spectral peak.
#: In decibels.
_NO_PEAK = 3.0


def line_noise_peaks(raw: mne.io.BaseRaw) -> dict[float, float]:
    """Measure line noise: spectral power at 50 and 60 Hz relative to neighboring frequencies.

    Parameters
    ----------
    raw : Raw
        Recording. Only the 30 seconds in the middle are read.

    Returns
    -------
    dict of float to float
        Power at 50 Hz and at 60 Hz relative to neighboring frequencies, in decibels: the median
        over EEG channels. Frequencies above the Nyquist frequency, or at most 2 Hz below it, are
        omitted.

    Examples
    --------
    A sine of 50 Hz in white noise; the power in decibels is rounded to tens:

    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.first_look import line_noise_peaks
    >>> noise = np.random.default_rng(0).normal(size=(1, 6000))
    >>> noise += np.sin(2 * np.pi * 50 * np.arange(6000) / 200)
    >>> raw = mne.io.RawArray(noise, mne.create_info(["C3"], 200.0, "eeg"), verbose="error")
    >>> {freq: round(peak, -1) for freq, peak in line_noise_peaks(raw).items()}
    {50.0: 20.0, 60.0: 0.0}
    """
    sfreq, middle = raw.info["sfreq"], raw.n_times // 2
    start, stop = (round(middle + side * _SECONDS / 2 * sfreq) for side in (-1, 1))
    eeg = channel_facts.good_eeg(raw.info["chs"], bads=())
    # Indices, because MNE would take a channel name such as "eeg" for a channel type.
    places = [raw.ch_names.index(name) for name in eeg]
    signals = raw.get_data(places, max(start, 0), min(stop, raw.n_times), verbose="error")
    freqs, power = welch(signals, sfreq, nperseg=min(round(4 * sfreq), signals.shape[1]))
    power = power[power.min(axis=1) > 0]  # without flat channels
    peaks = {}
    for line_freq in LINE_FREQUENCIES:
        distance = np.abs(freqs - line_freq)
        neighbors = power[:, (distance >= 2) & (distance <= 6)]
        if line_freq + 2 < sfreq / 2 and neighbors.size:
            ratio = power[:, distance <= 0.5].max(axis=1) / np.median(neighbors, axis=1)
            peaks[line_freq] = float(10 * np.log10(np.median(ratio)))
    return peaks


def warn_of_line_frequency(
    peaks: Sequence[Mapping[float, float]], mains: float, sfreq: float
) -> None:
    """Warn if most recordings have line noise at a frequency other than that of the notch filter.

    Parameters
    ----------
    peaks : sequence of dict
        Results of :func:`line_noise_peaks` for the inspected recordings.
    mains : float
        Frequency of the notch filter in Hz.
    sfreq : float
        Sampling rate after preprocessing, in Hz. Line frequencies at or above its Nyquist frequency
        are ignored.

    Examples
    --------
    No warning, because the line noise is at the frequency of the notch filter:

    >>> from braindecode_pars.recordings.first_look import warn_of_line_frequency
    >>> warn_of_line_frequency([{50.0: 1.2, 60.0: 25.0}], mains=60.0, sfreq=200.0)
    """
    for other in LINE_FREQUENCIES:
        has_peak = [p.get(other, 0) > _PEAK and p.get(mains, 0) < _NO_PEAK for p in peaks]
        if other != mains and other < sfreq / 2 and sum(has_peak) > len(has_peak) / 2:
            checks.warn_user(
                f"Line noise appears to be at {other:g} Hz: {sum(has_peak)} of {len(has_peak)} "
                f"inspected recordings have a spectral peak at {other:g} Hz and none at {mains:g} "
                f"Hz, the frequency of the notch filter. Pass mains={other:g} (--mains {other:g})."
            )
