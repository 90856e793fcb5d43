"""What the headers of recordings tell before they are read: the channels of all, and the mains.

A method compares the channels of a window, and an average is over all of them. So they are decided
once, for all recordings: the electrodes of the scalp that all share.
"""

import logging
from collections.abc import Mapping, Sequence

import mne
import numpy as np
import pandas as pd
from scipy.signal import welch

from braindecode_pars._common import channel_names, checks
from braindecode_pars.recordings.loading import table_text

log = logging.getLogger(__name__)

#: Largest share of recordings that may be left out for the sake of the channels of the others.
_FEW = 0.25


def shared_channels(
    infos: Mapping[str, mne.Info], *, average: bool = False, verbose: int = 1
) -> tuple[list[str], bool]:
    """Choose the channels of recordings: the electrodes of the scalp that all of them have.

    Names of one electrode count as the same, whatever their reference and order are. Channels that
    are marked as bad are missing. Where fewer channels are electrodes of the 10-05 system than have
    other names, as in caps with numbers, all EEG channels are chosen from. Recordings without half
    of the channels that most have are not asked, if they are at most a quarter of all.

    Parameters
    ----------
    infos : mapping of str to mne.Info
        Measurement info of each recording, by its name.
    average : bool
        Whether their average becomes the reference. Pairs of electrodes, such as ``Fpz-Cz``, are
        then chosen only where there are no single ones.
    verbose : int
        Whether to log what is left out, if it is no electrode.

    Returns
    -------
    names : list of str
        Their names in the first recording that has all of them, in its order.
    are_all : bool
        Whether no recording has other EEG channels beside.

    Raises
    ------
    ValueError
        When the recordings share no channel.

    Warns
    -----
    UserWarning
        With a table of the channels that are left out, when a recording lacks an electrode of
        others, or when type and name of a channel contradict each other.

    Examples
    --------
    >>> import mne
    >>> from braindecode_pars.recordings.first_look import shared_channels
    >>> names = {"a.edf": ["C3-LE", "T3-LE", "A2-A1"], "b.edf": ["T7", "C3", "ECG"]}
    >>> infos = {file: mne.create_info(each, 100.0, "misc") for file, each in names.items()}
    >>> for info in infos.values():
    ...     for ch in info["chs"][:2]:
    ...         ch["kind"] = mne.io.constants.FIFF.FIFFV_EEG_CH
    >>> shared_channels(infos, verbose=0)
    (['C3-LE', 'T3-LE'], True)
    """
    keys = channel_names.channel_keys(*(info["ch_names"] for info in infos.values()))
    rows = []
    for i, (info, of_info) in enumerate(zip(infos.values(), keys, strict=True)):
        names = channel_names.system_names(info["ch_names"])
        for ch, name, key in zip(info["chs"], names, of_info, strict=True):
            why = channel_names.why_no_electrode({**ch, "ch_name": name})
            is_good = channel_names.is_eeg(ch) and ch["ch_name"] not in info["bads"]
            rows.append((i, key, ch["ch_name"], why, is_good))
    table = pd.DataFrame(rows, columns=["recording", "key", "name", "why", "is_good"])
    channels = table.drop_duplicates("key").set_index("key")
    # Which recordings have which channels, shape (n_keys, n_recordings)
    good = table[table["is_good"]]
    has = pd.crosstab(good["key"], good["recording"]) > 0
    has = has.reindex(index=channels.index, columns=range(len(infos)), fill_value=False)
    usual = has.mean(axis=1) >= 0.5
    wanted = channels["why"] == ""
    if not average or not (wanted & usual).any():
        wanted |= channels["why"] == channel_names.PAIR
    unnamed = (channels["why"] == channel_names.UNKNOWN) & ~channels.index.str.contains("-")
    if (wanted & usual).sum() <= (unnamed & usual).sum():
        wanted = has.any(axis=1)
    # Recordings that would cost most channels, and the channels of the others
    n_usual = has[wanted & usual].sum()
    odd = n_usual < (wanted & usual).sum() / 2
    odd &= odd.mean() <= _FEW
    shared = wanted & has.loc[:, ~odd].all(axis=1)
    exclusions = _table_of_channels(table, channels["why"].where(~wanted, ""), shared, len(infos))
    if not shared.any():
        raise ValueError(
            f"The {len(infos)} recordings have no EEG channel in common. Name those to use in "
            f"channels= (--channel), or leave recordings out."
            f"{channel_names.other_system(*(info['ch_names'] for info in infos.values()))} "
            f"They have:{exclusions}"
        )
    shared_rows = table[(table["recording"] == int(odd.argmin())) & table["key"].map(shared)]
    names, n = shared_rows["name"].tolist(), len(infos)
    some = f"{n - odd.sum()} of {n} recordings" if odd.any() else f"The {n} recordings"
    text = (
        f"{some} share {len(names)} channel{'s' if len(names) != 1 else ''}: "
        f"{checks.format_list(names, 20)}"
        f"{'; their average is the reference' if average else ''}. "
        f"Left out:{exclusions}"
    )
    if (wanted & ~shared).any() or (channels["why"] == channel_names.NAME_CONTRADICTS_TYPE).any():
        checks.warn_user(text)
    elif exclusions and verbose:
        log.info(text)
    return names, not has[~shared].any(axis=None)


def _table_of_channels(table: pd.DataFrame, why: pd.Series, shared: pd.Series, n: int) -> str:
    """Return the channels that are left out, in how many recordings they are, and why."""
    unshared_rows = table[~table["key"].map(shared)]
    of_key = unshared_rows.groupby("key", sort=False).agg(
        name=("name", "first"), n=("recording", "nunique"), good=("is_good", "sum")
    )
    of_key["why"] = why[of_key.index]
    lacking = [f"missing or marked as bad in {n - good}" for good in of_key["good"]]
    of_key["why"] = of_key["why"].where(of_key["why"] != "", lacking)
    groups = []
    for (count, reason), part in of_key.groupby(["n", "why"], sort=False):
        names = checks.format_list(channel_names.odd_first(part["name"]), 8)
        groups.append((names, f"in {count} of {n} recordings", reason))
    return table_text(groups)


#: Frequencies of the mains in Hz.
MAINS = (50.0, 60.0)
#: Recordings in which they are looked for, and seconds of each.
N_LOOKED_AT, _SECONDS = 10, 30.0
#: Decibels above the neighboring frequencies from which a peak is plain, and below which there is
#: none.
_PLAIN, _NONE = 10.0, 3.0


def line_noise_peaks(raw: mne.io.BaseRaw) -> dict[float, float]:
    """Return how far the power at the frequencies of the mains is above that of their neighbors.

    Parameters
    ----------
    raw : Raw
        Recording, of which half a minute is read.

    Returns
    -------
    dict of float to float
        Decibels at 50 and 60 Hz, the median of the EEG channels; without frequencies that the
        recording does not have.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.first_look import line_noise_peaks
    >>> noise = np.random.default_rng(0).normal(size=(1, 6000))
    >>> noise += np.sin(2 * np.pi * 50 * np.arange(6000) / 200)
    >>> raw = mne.io.RawArray(noise, mne.create_info(["C3"], 200.0, "eeg"), verbose="error")
    >>> {mains: round(peak, -1) for mains, peak in line_noise_peaks(raw).items()}
    {50.0: 20.0, 60.0: 0.0}
    """
    sfreq, middle = raw.info["sfreq"], raw.n_times // 2
    start, stop = (round(middle + side * _SECONDS / 2 * sfreq) for side in (-1, 1))
    eeg = [i for i, ch in enumerate(raw.info["chs"]) if channel_names.is_eeg(ch)]
    signals = raw.get_data(eeg, max(start, 0), min(stop, raw.n_times), verbose="error")
    freqs, power = welch(signals, sfreq, nperseg=min(round(4 * sfreq), signals.shape[1]))
    power = power[power.min(axis=1) > 0]  # without flat channels
    peaks = {}
    for mains in MAINS:
        away = np.abs(freqs - mains)
        beside = power[:, (away >= 2) & (away <= 6)]
        if mains + 2 < sfreq / 2 and beside.size:
            ratio = power[:, away <= 0.5].max(axis=1) / np.median(beside, axis=1)
            peaks[mains] = float(10 * np.log10(np.median(ratio)))
    return peaks


def warn_of_line_frequency(
    found: Sequence[Mapping[float, float]], mains: float, sfreq: float
) -> None:
    """Warn if most recordings have the mains at another frequency than that of the notch filter.

    Parameters
    ----------
    found : sequence of dict
        What :func:`line_noise_peaks` returned for some recordings.
    mains : float
        Frequency of the notch filter in Hz.
    sfreq : float
        New sampling rate in Hz. What it cannot have needs no filter.

    Examples
    --------
    >>> from braindecode_pars.recordings.first_look import warn_of_line_frequency
    >>> warn_of_line_frequency([{50.0: 1.2, 60.0: 25.0}], mains=60.0, sfreq=200.0)
    """
    for other in MAINS:
        plain = [p.get(other, 0) > _PLAIN and p.get(mains, 0) < _NONE for p in found]
        if other != mains and other < sfreq / 2 and sum(plain) > len(plain) / 2:
            checks.warn_user(
                f"The spectrum has a peak at {other:g} Hz in {sum(plain)} of {len(plain)} "
                f"recordings that were looked at, and none at {mains:g} Hz, where the notch filter "
                f"is. The mains seem to have {other:g} Hz: pass mains={other:g} "
                f"(--mains {other:g})."
            )
