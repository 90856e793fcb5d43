"""Prepare a recording as those that a model was trained on.

Its channels are matched by electrode, or are the difference of two channels, and get the reference
of the training where it can be computed. The missing steps follow, one channel after another, so
that no copy of a night is made. Flat and clipped samples are found before.
:func:`prepare_as_trained` does all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import mne
import numpy as np
from scipy.signal import resample

from braindecode_pars._common.channel_names import (
    electrode_name,
    electrode_pair,
    is_eeg,
    is_eeg_by_type,
    match_channels,
    other_system,
    with_types,
)
from braindecode_pars._common.checks import check_same_rate, format_list
from braindecode_pars.recordings import preparation
from braindecode_pars.windows import marks, recorded_steps
from braindecode_pars.windows.picking import Derivation, find_channels
from braindecode_pars.windows.preprocessing import (
    AS_RECORDED,
    AVERAGE,
    CHANGED,
    Difference,
    Preprocessing,
    differences,
    missing_steps,
)


def preprocessed_signals(
    raw: mne.io.BaseRaw,
    derivations: Sequence[Derivation],
    sfreq: float,
    preprocessing: Preprocessing,
) -> np.ndarray:
    """Compute channels of a recording, resampled, filtered (if they are EEG) and scaled.

    As in :func:`~braindecode_pars.recordings.preparation.filter_and_resample`, filters end at gaps.
    The recording itself is not changed. In addition to the returned array, a few copies of one
    channel are needed in memory.

    Parameters
    ----------
    raw : Raw
        Continuous recording, in volts.
    derivations : sequence of Derivation
        Channels to compute.
    sfreq : float
        New sampling rate in Hz.
    preprocessing : Preprocessing
        The filters to apply (``band``, ``notch``) and the factor of the signals (``scale``); the
        reference is that of the derivations. Frequencies at or above the Nyquist frequency of the
        new rate need no filter.

    Returns
    -------
    ndarray of float32, shape (n_chans, n_times)
        Signals. Sample ``k`` is at ``k / sfreq`` seconds, up to one sample.

    Raises
    ------
    ValueError
        When samples are NaN or infinite. The message names the channel.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.windows.preprocessing import Preprocessing
    >>> from braindecode_pars.windows.picking import Derivation
    >>> from braindecode_pars.recordings.as_trained import preprocessed_signals
    >>> info = mne.create_info(["C3", "M2"], 256.0, "eeg")
    >>> raw = mne.io.RawArray(np.ones((2, 2560)), info, verbose="error")
    >>> c3 = Derivation("C3-M2", "C3", ("M2",))
    >>> preprocessed_signals(raw, [c3], 100.0, Preprocessing(band=(None, 35.0))).shape
    (1, 1000)
    """

    def read(name: str, reference: np.ndarray | float = 0.0) -> np.ndarray:
        # Not raw[name], which makes an array of the times, too
        signal = raw.get_data([raw.ch_names.index(name)], verbose="error")[0]
        signal -= reference
        return signal

    low, high = preprocessing.band or (None, None)
    high = high if high is not None and high < sfreq / 2 else None
    band = dict(l_freq=low, h_freq=high, method=preprocessing.filter or "fir")
    notch = [freq for freq in preprocessing.notch or () if freq < sfreq / 2]
    filters: list[tuple[str, dict[str, Any]]] = [("filter", band)]
    filters += [("notch_filter", dict(freqs=freq)) for freq in notch]
    gaps = marks.marks_of(raw)  # also of channels that are not used
    gaps = mne.Annotations(gaps.onset, gaps.duration, gaps.description)
    references = {d.reference for d in derivations if d.reference}
    means = {names: sum(map(read, names)) / len(names) for names in references}
    signals = []
    for derivation in derivations:
        # Nothing else refers to the signal at the old rate, so that its memory is soon free.
        reference = means.get(derivation.reference, 0.0)
        signal = resampled(read(derivation.channel, reference), sfreq, raw.info["sfreq"])[None]
        info = mne.create_info([derivation.name], sfreq, "eeg")
        channel = mne.io.RawArray(signal, info, verbose="error")
        channel.set_annotations(gaps, verbose="error")
        preparation.apply_steps(channel, filters if derivation.is_eeg else ())
        signals.append(np.float32(channel.get_data()[0] * (preprocessing.scale or 1.0)))
        del signal, channel  # before the next channel is read
    return np.stack(signals)


#: Smallest number of electrodes of an average of which others may be missing.
_MANY = 4


def rereferenced(
    derivation: Derivation, reference: str | None, eeg: Sequence[str], names: Sequence[str]
) -> Derivation | None:
    """Return a channel with the reference of the model.

    A bipolar or computed channel, one that has the reference by its name, and one that is not EEG
    stay as they are.

    Parameters
    ----------
    derivation : Derivation
        Channel of the recording.
    reference : str | None
        As in :class:`~braindecode_pars.windows.preprocessing.Preprocessing`: ``"average"``,
        electrodes separated by commas, ``"as recorded"``, or None or ``"changed"`` when it is
        unknown.
    eeg : sequence of str
        EEG channels of the recording, of which ``"average"`` is the mean.
    names : sequence of str
        All channels of the recording.

    Returns
    -------
    Derivation | None
        The channel. None when the recording cannot have this reference: an electrode is missing, or
        has another reference. Of an average of named electrodes, half and at least four must be
        there. The average is that of the channels with the same reference.

    Examples
    --------
    >>> from braindecode_pars.windows.picking import Derivation
    >>> from braindecode_pars.recordings.as_trained import rereferenced
    >>> c3 = Derivation("C3", "C3")
    >>> names = ["C3", "A1", "A2"]
    >>> rereferenced(c3, "M1, M2", names, names).formula
    'C3 - mean of A1, A2'
    >>> rereferenced(c3, "Cz", names, names) is None
    True
    """
    channel, old_reference = derivation.channel, electrode_pair(derivation.channel)[1]
    if reference in (None, AS_RECORDED, CHANGED) or derivation.reference or not derivation.is_eeg:
        return derivation
    wanted = reference.split(", ")
    has_it = old_reference == ("AVG" if reference == AVERAGE else electrode_pair(reference)[0])
    if _is_bipolar(channel) or (old_reference is not None and has_it):
        return derivation
    if reference == AVERAGE:  # of channels with one reference: A2-A1 is none of them
        others = [n for n in eeg if not _is_bipolar(n) and electrode_pair(n)[1] == old_reference]
        return replace(derivation, reference=tuple(others)) if len(others) > 1 else None
    if set(wanted) <= set(names):
        others = wanted
    else:
        single = [name for name in names if not _is_bipolar(name)]
        others = [single[i] for i in match_channels(wanted, single) if i is not None]
    are_like = all(electrode_pair(name)[1] == old_reference for name in others)
    is_enough = len(others) >= min(len(wanted), max(_MANY, len(wanted) / 2))
    is_right = is_enough and (are_like or channel in others)
    return replace(derivation, reference=tuple(others)) if is_right else None


def _is_bipolar(channel: str) -> bool:
    return "-" in electrode_name(channel)


def resampled(signal: np.ndarray, sfreq: float, old_sfreq: float) -> np.ndarray:
    """Resample a signal in the frequency domain, as :func:`mne.filter.resample` with "auto".

    The Fourier transforms are in single precision, without the mean of the signal; those of MNE are
    in double precision.

    Parameters
    ----------
    signal : ndarray of float64, shape (n_times,)
        Signal without gaps.
    sfreq, old_sfreq : float
        New and old sampling rate in Hz.

    Returns
    -------
    ndarray of float64, shape (n_new,)
        The signal at the new rate; ``n_new`` is ``n_times * sfreq / old_sfreq``, rounded. As in
        MNE, the first sample and the length of the padded signal are rounded to half a sample each.
        A signal whose length stays the same is returned as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.recordings.as_trained import resampled
    >>> sine = np.sin(2 * np.pi * 4 * np.arange(256) / 256)
    >>> expected = np.sin(2 * np.pi * 4 * np.arange(100) / 100)
    >>> bool(np.abs(resampled(sine, 100.0, 256.0) - expected).max() < 0.02)
    True
    """
    ratio = sfreq / old_sfreq
    n_times, n_final = len(signal), max(round(ratio * len(signal)), 1)
    if n_times == n_final:
        return signal
    # Pad to a power of two, at least a hundred samples on both sides of a long signal.
    n_padded = 2 ** math.ceil(math.log2(n_times + 2 * min(n_times // 8, 100)))
    before, n_new = (n_padded - n_times) // 2, max(round(ratio * n_padded), 1)
    mean = signal.mean()
    # Reflect it at its first and last point, once, with zeros beyond; in single precision.
    beyond = np.array([before, n_padded - n_times - before])
    reflected = beyond.clip(max=n_times - 1)
    padded = np.subtract(signal, mean, out=np.empty(n_times, np.float32), casting="same_kind")
    del signal  # it may be the largest array
    padded = np.pad(padded, reflected, "reflect", reflect_type="odd")
    padded = np.pad(padded, beyond - reflected, constant_values=-mean)
    first = round(ratio * before)
    return resample(padded, n_new)[first : first + n_final].astype(np.float64) + mean


#: Shortest time in seconds without a change that counts as flat; converters with a low resolution
#: repeat a value for a shorter time.
_FLAT = 1.0
#: Fewest equal samples at an end of the range that count as clipped; a peak may have two.
_CLIPPED = 3


class FlatClippedDuration(NamedTuple):
    """Time in which a channel does not change.

    Attributes
    ----------
    flat : float
        Seconds in stretches of at least a second with one and the same value.
    clipped : float
        Seconds in which at least three samples after one another are the largest or the smallest
        value of the channel.
    """

    flat: float
    clipped: float


def flat_clipped_durations(
    raw: mne.io.BaseRaw, names: Iterable[str]
) -> dict[str, FlatClippedDuration]:
    """Return the time in which channels of a recording are flat or clipped.

    It is looked for in the recording itself: a filter or a reference hides it.

    Parameters
    ----------
    raw : Raw
        Continuous recording. Gaps do not count.
    names : iterable of str
        Channels of the recording.

    Returns
    -------
    dict of str to FlatClippedDuration
        Time of each channel in seconds.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.as_trained import flat_clipped_durations
    >>> wave = np.sin(np.arange(1000) / 9)
    >>> signals = np.stack([np.where(np.arange(1000) < 300, 0, wave), wave.clip(-0.5, 0.5)])
    >>> info = mne.create_info(["C3", "C4"], 100.0, "eeg")
    >>> times = flat_clipped_durations(mne.io.RawArray(signals, info, verbose="error"), ["C3", "C4"])
    >>> times["C3"], times["C4"].flat, times["C4"].clipped > 5
    (FlatClippedDuration(flat=3.0, clipped=0.0), 0.0, True)
    """
    stretches, sfreq = marks.continuous_segments(raw), float(raw.info["sfreq"])
    times = {}
    for name in names:
        channel = raw.ch_names.index(name)
        parts = []
        for start, stop in stretches:
            # Not raw[name, start:stop], which makes an array of the times, too.
            samples = raw.get_data([channel], start, stop, verbose="error")[0]
            parts.append((*_runs(samples), [samples.min(), samples.max()]))
        if not parts:
            times[name] = FlatClippedDuration(0.0, 0.0)
            continue
        values, lengths, ends = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        low, high = ends.min(), ends.max()
        clipped = ((values == low) | (values == high)) & (low < high)
        flat = ~clipped & (lengths >= _FLAT * sfreq)
        times[name] = FlatClippedDuration(
            *(float(lengths[which].sum() / sfreq) for which in (flat, clipped))
        )
    return times


def flat_clipped_channels(raw: mne.io.BaseRaw, names: Iterable[str]) -> list[str]:
    """Return the channels that are flat or clipped in more than a quarter of a recording."""
    times = flat_clipped_durations(raw, names).items()
    return [name for name, time in times if time.flat + time.clipped > raw.duration / 4]


def _runs(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and lengths of the runs of at least three equal samples."""
    equal = np.flatnonzero(samples[1:] == samples[:-1])  # sample i and the next are equal
    first = equal[np.diff(equal, prepend=-2) > 1]
    last = equal[np.diff(equal, append=len(samples) + 1) > 1]
    lengths = last - first + 2
    long = lengths >= _CLIPPED
    return samples[first[long]], lengths[long]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A recording with the signals that a model receives.

    Attributes
    ----------
    raw : Raw
        The recording, unchanged.
    name : str
        Name of the recording.
    missing : list of str
        Channels of the model that the recording does not have.
    found : list of Derivation
        How the other channels of the model are found or computed.
    not_rereferenced : list of Derivation
        Those that do not have the reference of the model.
    differences : list of Difference
        What differs from the training and was not repaired.
    sfreq : float
        Sampling rate of the signals in Hz.
    signals : ndarray of float32, shape (n_found, n_times)
        Signals of the channels that were found, preprocessed.
    chs_info : list of dict
        These channels, as in ``mne.Info["chs"]``, with the names of the model.
    """

    raw: mne.io.BaseRaw
    name: str
    missing: list[str]
    found: list[Derivation]
    not_rereferenced: list[Derivation]
    differences: list[Difference]
    sfreq: float
    signals: np.ndarray
    chs_info: list[dict]

    @property
    def channels(self) -> list[str]:
        """Channels of the recording that are used."""
        used = (name for d in self.found for name in (d.channel, *d.reference))
        return list(dict.fromkeys(used))

    def may_use(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Whether each window has neither a gap nor a "BAD" annotation, shape (n_windows,)."""
        may = np.zeros(len(starts), dtype=bool)
        for stretch in marks.usable_segments(self.raw, set(self.channels)):
            first, stop = (round(i * self.sfreq / self.raw.info["sfreq"]) for i in stretch)
            may |= (starts >= first) & (starts + length <= stop)
        return may


def prepare_as_trained(
    raw: mne.io.BaseRaw,
    name: str,
    trained: Preprocessing,
    sfreq: float,
    chs_info: Sequence[dict] | None,
    *,
    preprocess: bool = True,
) -> Prepared:
    """Find the channels of a model in a recording, and preprocess them as the model expects.

    Parameters
    ----------
    raw : Raw
        Continuous recording; it is not changed.
    name : str
        Name of the recording.
    trained : Preprocessing
        Preprocessing of the recordings that the model was trained on.
    sfreq : float
        Sampling rate of the model in Hz.
    chs_info : sequence of dict | None
        Channels of the model; None for one without names, which takes all EEG channels.
    preprocess : bool
        Whether to preprocess. With False, the samples are used as they are.

    Returns
    -------
    Prepared
        The signals with their channels.

    Raises
    ------
    ValueError
        When no channel of the model is found, when samples are NaN or infinite, or when another
        sampling rate is not to be changed.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.as_trained import prepare_as_trained
    >>> from braindecode_pars.windows.preprocessing import Preprocessing
    >>> noise = np.random.default_rng(0).normal(size=(2, 2560))
    >>> raw = mne.io.RawArray(noise, mne.create_info(["T7", "C3"], 256.0, "eeg"), verbose="error")
    >>> wanted = mne.create_info(["C3", "T3", "Oz"], 100.0, "eeg")["chs"]
    >>> prepared = prepare_as_trained(raw, "night", Preprocessing(), 100.0, wanted)
    >>> prepared.signals.shape, [ch.formula for ch in prepared.found], prepared.missing
    ((2, 1000), ['C3', 'T7'], ['Oz'])
    """
    if not preprocess:
        remedy = "resample to {expected:g} Hz, or omit preprocess=False"
        check_same_rate(
            raw.info["sfreq"], sfreq, "This recording is", "the model was trained", remedy
        )
    # Compare the preprocessing.
    had, trained = recorded_steps.recorded(raw.info), replace(trained, sfreq=sfreq)
    names = [name for name in raw.ch_names if name not in raw.info["bads"]]
    eeg = [ch for ch in with_types(raw.info["chs"]) if ch["ch_name"] in names and is_eeg(ch)]
    eeg_names = [ch["ch_name"] for ch in eeg]
    if had.reference == CHANGED and len(eeg_names) > 1:
        first = raw.n_times // 2
        block = raw.get_data(eeg_names, first, first + 1000, verbose="error")
        if np.abs(block.mean(axis=0)).max() < 1e-4 * block.std():  # up to the precision of a file
            had = replace(had, reference=AVERAGE)
    differing = [diff for diff in differences(trained, had) if not (preprocess and diff.repair)]
    if (trained.reference, had.reference) == (AVERAGE, CHANGED):
        # Channels of an earlier average may be missing, so that another one is not the same.
        differing.append(Difference("reference", AVERAGE, CHANGED))
    to_apply = missing_steps(trained, had) if preprocess else Preprocessing()
    # Find the channels.
    chosen = chs_info or eeg
    wanted = [ch["ch_name"] for ch in chosen]
    pairs = zip(find_channels(wanted, names, compute=preprocess), chosen, strict=True)
    places = [(replace(d, is_eeg=is_eeg_by_type(ch)), ch) for d, ch in pairs if d is not None]
    if not places:
        raise ValueError(
            f"The recording has none of the channels of the model ({format_list(wanted) or 'EEG'}); it "
            f"has {format_list(raw.ch_names)} (marked as bad: {format_list(raw.info['bads']) or 'none'})."
            + (
                other_system(wanted, names)
                or " Rename them with raw.rename_channels if they are the same electrodes."
            )
        )
    if not chs_info:
        preparation.warn_of_other_names(raw.info["chs"])
    derived = [derivation for derivation, _ in places]
    changed = [rereferenced(d, to_apply.reference, eeg_names, names) for d in derived]
    failed = [d for d, after in zip(derived, changed, strict=True) if after is None]
    if len({after.reference for after in changed if after and after.reference}) > 1:
        failed = derived  # C3-M2 and C4-M1
    # All or none: a model compares its channels.
    used_channels = derived if failed else [after for after in changed if after]
    return Prepared(
        raw=raw,
        name=name,
        missing=[name for name in wanted if name not in {d.name for d in used_channels}],
        found=used_channels,
        not_rereferenced=failed,
        differences=differing,
        sfreq=sfreq,
        signals=preprocessed_signals(raw, used_channels, sfreq, to_apply),
        chs_info=[ch for _, ch in places],
    )
