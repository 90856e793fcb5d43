"""Preprocess a recording like the training data of a model.

:func:`prepare_as_trained` selects the channels of the model by electrode, or computes them as the
difference of two channels of the recording. If possible, it re-references them to the reference of
the training data. Then, it applies the preprocessing steps of the training data that have not been
applied to the recording yet. Channels are processed one at a time, to avoid a copy of the whole
recording. :func:`flat_clipped_durations` detects flat and clipped segments in the unprocessed
recording.
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
    is_eeg_by_type,
    match_channels,
    other_system,
    with_types,
)
from braindecode_pars._common.checks import check_same_rate, format_list
from braindecode_pars.recordings import channel_facts, preparation
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
    """Compute channels from a recording, then resample, filter and scale their signals.

    Only EEG channels are filtered. As in
    :func:`~braindecode_pars.recordings.preparation.filter_and_resample`, each segment between two
    gaps is filtered separately. The recording is not changed. In addition to the returned array,
    memory is required only for a few copies of one channel.

    Parameters
    ----------
    raw : Raw
        Continuous recording, in volts.
    derivations : sequence of Derivation
        Channels to compute. A Derivation consists of a channel of the recording and, optionally,
        the channels whose mean is subtracted from it (the new reference).
    sfreq : float
        New sampling rate in Hz.
    preprocessing : Preprocessing
        Filters to apply (``band``, ``notch``) and scaling factor of the signals (``scale``). The
        entry ``reference`` is ignored: references are defined by ``derivations``. Low-pass and
        notch filters at or above the new Nyquist frequency are ignored.

    Returns
    -------
    ndarray of float32, shape (n_chans, n_times)
        Signals, one row per derivation. The time of sample ``k`` is ``k / sfreq`` seconds. Because
        of rounding in resampling, this time has an error of up to one sample.

    Raises
    ------
    ValueError
        If samples are NaN or infinite. The message contains the name of the channel.

    Examples
    --------
    C3 minus M2, resampled from 256 Hz (2560 samples) to 100 Hz:

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
        # raw[name] would also create an array of the times.
        signal = raw.get_data([raw.ch_names.index(name)], verbose="error")[0]
        signal -= reference
        return signal

    low, high = preprocessing.band or (None, None)
    high = high if high is not None and high < sfreq / 2 else None
    filters: list[tuple[str, dict[str, Any]]] = []
    if low is not None or high is not None:
        method = preprocessing.filter or "fir"
        filters.append(("filter", dict(l_freq=low, h_freq=high, method=method)))
    notch = [freq for freq in preprocessing.notch or () if freq < sfreq / 2]
    filters += [("notch_filter", dict(freqs=freq)) for freq in notch]
    gaps = marks.marks_of(raw)  # includes annotations of unused channels
    gaps = mne.Annotations(gaps.onset, gaps.duration, gaps.description)
    references = {d.reference for d in derivations if d.reference}
    means = {names: sum(map(read, names)) / len(names) for names in references}
    n_times = _n_resampled(raw.n_times, sfreq, raw.info["sfreq"])
    signals = np.empty((len(derivations), n_times), np.float32)
    for derivation, preprocessed in zip(derivations, signals, strict=True):
        # Keep no reference to the signal at the old sampling rate, so that its memory is freed.
        reference = means.get(derivation.reference, 0.0)
        signal = resampled(read(derivation.channel, reference), sfreq, raw.info["sfreq"])
        preparation.check_finite_samples([derivation.name], signal[None])
        if filters and derivation.is_eeg:
            info = mne.create_info([derivation.name], sfreq, "eeg")
            channel = mne.io.RawArray(signal[None], info, verbose="error")
            channel.set_annotations(gaps, verbose="error")
            preparation.apply_steps(channel, filters)
            (signal,) = channel.get_data()
            del channel  # before the next channel is read
        scale = preprocessing.scale or 1.0
        np.multiply(signal, scale, out=preprocessed, casting="same_kind")
        del signal
    return signals


#: If the reference is an average of more than four electrodes, at least this number of them must be
#: available.
_MIN_ELECTRODES = 4


def rereferenced(
    derivation: Derivation, reference: str | None, eeg: Sequence[str], names: Sequence[str]
) -> Derivation | None:
    """Re-reference a channel to the reference of the training data.

    No signals are computed: the returned object only states how to compute the channel.

    Four kinds of channels are returned unchanged: bipolar channels, channels that are already
    computed as a difference, channels whose name contains the reference of the training data, and
    channels that are not EEG.

    Parameters
    ----------
    derivation : Derivation
        Channel to re-reference.
    reference : str | None
        Reference of the training data, as in
        :class:`~braindecode_pars.windows.preprocessing.Preprocessing`: ``"average"``, or electrodes
        separated by commas. If the training data were not re-referenced (``"as recorded"``), or
        their reference is unknown (None or ``"changed"``), the channel is returned unchanged.
    eeg : sequence of str
        EEG channels of the recording, from which the average reference is computed.
    names : sequence of str
        All channels of the recording.

    Returns
    -------
    Derivation | None
        The re-referenced channel, or None if re-referencing is impossible.

        Re-referencing to electrodes is possible if the electrodes were recorded with the same
        reference as this channel, and if enough of them are in the recording: all electrodes if the
        new reference has fewer than four, otherwise at least half of them and at least four.

        Re-referencing to ``"average"`` uses all EEG channels, except bipolar channels, that were
        recorded with the same reference as this channel. It is possible if there are at least two.

    Examples
    --------
    A1 and A2 are other names of M1 and M2. The recording does not contain Cz:

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
    new_reference = "AVG" if reference == AVERAGE else electrode_pair(reference)[0]
    if _is_bipolar(channel) or (old_reference is not None and old_reference == new_reference):
        return derivation
    if reference == AVERAGE:  # average of channels with the same reference, without A2-A1
        single = [name for name in eeg if not _is_bipolar(name)]
        electrodes = [name for name in single if electrode_pair(name)[1] == old_reference]
        return replace(derivation, reference=tuple(electrodes)) if len(electrodes) > 1 else None
    if set(wanted) <= set(names):
        electrodes = wanted
    else:
        single = [name for name in names if not _is_bipolar(name)]
        electrodes = [single[i] for i in match_channels(wanted, single) if i is not None]
    have_same_reference = all(electrode_pair(name)[1] == old_reference for name in electrodes)
    is_enough = len(electrodes) >= min(len(wanted), max(_MIN_ELECTRODES, len(wanted) / 2))
    is_possible = is_enough and (have_same_reference or channel in electrodes)
    return replace(derivation, reference=tuple(electrodes)) if is_possible else None


def _is_bipolar(channel: str) -> bool:
    return "-" in electrode_name(channel)


def resampled(signal: np.ndarray, sfreq: float, old_sfreq: float) -> np.ndarray:
    """Resample a signal in the frequency domain, like :func:`mne.filter.resample` with npad="auto".

    The mean of the signal is subtracted before resampling and added afterwards. Fourier transforms
    are computed in single precision, unlike in MNE.

    Parameters
    ----------
    signal : ndarray of float64, shape (n_times,)
        Samples of one channel. Gaps are not treated separately.
    sfreq, old_sfreq : float
        New and old sampling rate in Hz.

    Returns
    -------
    ndarray of float64, shape (n_new,)
        The resampled signal; ``n_new`` is ``n_times * sfreq / old_sfreq``, rounded. Times have an
        error of up to one sample: as in MNE, the position of the first sample and the length of the
        padded signal are each rounded to whole samples. If ``n_new`` is ``n_times``, the signal is
        returned unchanged.

    Examples
    --------
    A sine of 4 Hz, resampled from 256 Hz to 100 Hz:

    >>> import numpy as np
    >>> from braindecode_pars.recordings.as_trained import resampled
    >>> sine = np.sin(2 * np.pi * 4 * np.arange(256) / 256)
    >>> expected = np.sin(2 * np.pi * 4 * np.arange(100) / 100)
    >>> bool(np.abs(resampled(sine, 100.0, 256.0) - expected).max() < 0.02)
    True
    """
    ratio = sfreq / old_sfreq
    n_times, n_final = len(signal), _n_resampled(len(signal), sfreq, old_sfreq)
    if n_times == n_final:
        return signal
    # Pad the signal to a power of two, with at least 100 samples on both sides of a long signal.
    n_padded = 2 ** math.ceil(math.log2(n_times + 2 * min(n_times // 8, 100)))
    before, n_new = (n_padded - n_times) // 2, max(round(ratio * n_padded), 1)
    mean = signal.mean()
    # Reflect the signal once at the first and last sample; the remaining samples are zero.
    n_padding = np.array([before, n_padded - n_times - before])
    n_reflected = n_padding.clip(max=n_times - 1)
    padded = np.subtract(signal, mean, out=np.empty(n_times, np.float32), casting="same_kind")
    del signal  # free memory
    padded = np.pad(padded, n_reflected, "reflect", reflect_type="odd")
    padded = np.pad(padded, n_padding - n_reflected, constant_values=-mean)
    first = round(ratio * before)
    return resample(padded, n_new)[first : first + n_final].astype(np.float64) + mean


def _n_resampled(n_times: int, sfreq: float, old_sfreq: float) -> int:
    """Return the number of samples of a resampled signal."""
    return max(round(sfreq / old_sfreq * n_times), 1)


#: Minimum duration in seconds of a flat segment. For a shorter time, a converter with a low
#: resolution may repeat a value although the channel is not flat.
_MIN_FLAT_SECONDS = 1.0
#: Minimum number of equal consecutive samples, at the minimum or maximum of the channel, that count
#: as clipped. A peak that is not clipped may have two equal samples.
_MIN_CLIPPED_SAMPLES = 3


class FlatClippedDuration(NamedTuple):
    """Duration for which a channel is flat or clipped, in seconds.

    Attributes
    ----------
    flat : float
        Total duration of flat segments, in which the signal is constant for at least one second.
        Clipped segments are not included.
    clipped : float
        Total duration of clipped segments, in which the signal stays at the maximum or minimum of
        the channel for at least three samples.
    """

    flat: float
    clipped: float


def flat_clipped_durations(
    raw: mne.io.BaseRaw, names: Iterable[str]
) -> dict[str, FlatClippedDuration]:
    """Measure for how long each channel of a recording is flat or clipped.

    Pass the unprocessed recording: flat and clipped segments cannot be detected after filtering or
    re-referencing.

    Parameters
    ----------
    raw : Raw
        Continuous recording. Samples in gaps are ignored.
    names : iterable of str
        Channels to check.

    Returns
    -------
    dict of str to FlatClippedDuration
        Flat and clipped duration of each channel, in seconds.

    Examples
    --------
    C3 is zero during the first three seconds, and C4 is clipped at 0.5 and -0.5:

    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.as_trained import flat_clipped_durations
    >>> wave = np.sin(np.arange(1000) / 9)
    >>> signals = np.stack([np.where(np.arange(1000) < 300, 0, wave), wave.clip(-0.5, 0.5)])
    >>> info = mne.create_info(["C3", "C4"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(signals, info, verbose="error")
    >>> durations = flat_clipped_durations(raw, ["C3", "C4"])
    >>> durations["C3"], durations["C4"].flat, durations["C4"].clipped > 5
    (FlatClippedDuration(flat=3.0, clipped=0.0), 0.0, True)
    """
    sfreq, durations = float(raw.info["sfreq"]), {}
    is_recorded = np.zeros(raw.n_times, dtype=bool)
    is_followed = np.zeros(raw.n_times - 1, dtype=bool)  # by a sample of the same segment
    for start, stop in marks.continuous_segments(raw):
        is_recorded[start:stop] = True
        is_followed[start : stop - 1] = True
    for name in names:
        # raw[name] would also create an array of the times.
        samples = raw.get_data([raw.ch_names.index(name)], verbose="error")[0]
        low = samples.min(where=is_recorded, initial=np.inf)
        high = samples.max(where=is_recorded, initial=-np.inf)
        # First and last sample of each sequence of samples that are equal to the next sample
        equal = np.flatnonzero((samples[1:] == samples[:-1]) & is_followed)
        first = equal[np.diff(equal, prepend=-2) > 1]
        last = equal[np.diff(equal, append=len(samples) + 1) > 1]
        values, lengths = samples[first], last - first + 2
        is_clipped = ((values == low) | (values == high)) & (low < high)
        is_clipped &= lengths >= _MIN_CLIPPED_SAMPLES
        is_flat = ~is_clipped & (lengths >= _MIN_FLAT_SECONDS * sfreq)
        durations[name] = FlatClippedDuration(
            flat=float(lengths[is_flat].sum() / sfreq),
            clipped=float(lengths[is_clipped].sum() / sfreq),
        )
    return durations


def flat_clipped_channels(raw: mne.io.BaseRaw, names: Iterable[str]) -> list[str]:
    """Return the channels that are flat or clipped for more than a quarter of the recording.

    Parameters
    ----------
    raw : Raw
        Continuous, unprocessed recording.
    names : iterable of str
        Channels to check.
    """
    durations = flat_clipped_durations(raw, names).items()
    return [name for name, d in durations if d.flat + d.clipped > raw.duration / 4]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Recording whose signals were preprocessed for a model.

    Attributes
    ----------
    raw : Raw
        The recording as it was passed to :func:`prepare_as_trained`.
    name : str
        Name of the recording.
    missing : list of str
        Channels of the model that are missing in the recording.
    found : list of Derivation
        Channels of the model that are not missing. Each entry states how the channel is selected or
        computed from the channels of the recording.
    not_rereferenced : list of Derivation
        Channels in ``found`` that cannot be re-referenced to the reference of the training data. If
        there are any, none of the channels are re-referenced.
    differences : list of Difference
        Differences that remain between the preprocessing of the recording and the preprocessing of
        the training data.
    sfreq : float
        Sampling rate of the signals in Hz.
    signals : ndarray of float32, shape (n_chans, n_times)
        Preprocessed signals of the channels in ``found``.
    chs_info : list of dict
        The channels in ``found``, as in ``mne.Info["chs"]``, with the channel names of the model.
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
        """Channels of the recording that are used, including reference channels."""
        used = (name for d in self.found for name in (d.channel, *d.reference))
        return list(dict.fromkeys(used))

    def may_use(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Return whether each window is free of gaps and "BAD" annotations, as a boolean array.

        The windows start at the samples ``starts`` of the signals, and contain ``length`` samples.
        """
        is_usable = np.zeros(len(starts), dtype=bool)
        for segment in marks.usable_segments(self.raw, set(self.channels)):
            first, stop = (round(i * self.sfreq / self.raw.info["sfreq"]) for i in segment)
            is_usable |= (starts >= first) & (starts + length <= stop)
        return is_usable


def prepare_as_trained(
    raw: mne.io.BaseRaw,
    name: str,
    trained: Preprocessing,
    sfreq: float,
    chs_info: Sequence[dict] | None,
    *,
    preprocess: bool = True,
) -> Prepared:
    """Select the channels of a model in a recording, and preprocess them like its training data.

    Parameters
    ----------
    raw : Raw
        Continuous recording; it is not changed.
    name : str
        Name of the recording.
    trained : Preprocessing
        Preprocessing of the training data of the model.
    sfreq : float
        Sampling rate of the training data in Hz.
    chs_info : sequence of dict | None
        Channels of the model. If None, the channel names of the model are unknown, and all EEG
        channels of the recording are used.
    preprocess : bool
        Whether to preprocess the recording. If False, the samples are not changed, and the sampling
        rate of the recording must be ``sfreq``.

    Returns
    -------
    Prepared
        The preprocessed signals and their channels.

    Raises
    ------
    ValueError
        If the recording contains no channel of the model, if samples are NaN or infinite, or if
        ``preprocess`` is False and the sampling rate of the recording is not ``sfreq``.

    Examples
    --------
    T7 and T3 are two names of the same electrode. The recording contains no channel Oz:

    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.as_trained import prepare_as_trained
    >>> from braindecode_pars.windows.preprocessing import Preprocessing
    >>> noise = np.random.default_rng(0).normal(size=(2, 2560))
    >>> raw = mne.io.RawArray(noise, mne.create_info(["T7", "C3"], 256.0, "eeg"), verbose="error")
    >>> wanted = mne.create_info(["C3", "T3", "Oz"], 100.0, "eeg")["chs"]
    >>> prepared = prepare_as_trained(raw, "P01", Preprocessing(), 100.0, wanted)
    >>> prepared.signals.shape, [ch.formula for ch in prepared.found], prepared.missing
    ((2, 1000), ['C3', 'T7'], ['Oz'])
    """
    if not preprocess:
        remedy = "resample to {expected:g} Hz, or omit preprocess=False"
        check_same_rate(
            raw.info["sfreq"], sfreq, "This recording is", "the model was trained at", remedy
        )
    # Compare the preprocessing.
    actual, trained = recorded_steps.recorded(raw.info), replace(trained, sfreq=sfreq)
    names = [name for name in raw.ch_names if name not in raw.info["bads"]]
    chs = with_types(raw.info["chs"])
    eeg_names = channel_facts.good_eeg(chs, raw.info["bads"])
    if actual.reference == CHANGED and len(eeg_names) > 1:
        first = raw.n_times // 2
        block = raw.get_data(eeg_names, first, first + 1000, verbose="error")
        if np.abs(block.mean(axis=0)).max() < 1e-4 * block.std():  # up to the precision of a file
            actual = replace(actual, reference=AVERAGE)
    remaining = [d for d in differences(trained, actual) if not (preprocess and d.repair)]
    if (trained.reference, actual.reference) == (AVERAGE, CHANGED):
        # Channels of the earlier average may be missing now, so a new average may be different.
        remaining.append(Difference("reference", AVERAGE, CHANGED))
    to_apply = missing_steps(trained, actual) if preprocess else Preprocessing()
    # Select the channels.
    chosen = chs_info or [ch for ch in chs if ch["ch_name"] in eeg_names]
    wanted = [ch["ch_name"] for ch in chosen]
    pairs = zip(find_channels(wanted, names, compute=preprocess), chosen, strict=True)
    matches = [(replace(d, is_eeg=is_eeg_by_type(ch)), ch) for d, ch in pairs if d is not None]
    if not matches:
        raise ValueError(
            "The recording contains none of the channels of the model "
            f"({format_list(wanted) or 'EEG'}), only {format_list(raw.ch_names)} "
            f"(marked as bad: {format_list(raw.info['bads']) or 'none'})."
            + (
                other_system(wanted, names)
                or " If the recording contains these channels under other names, rename them with "
                "raw.rename_channels."
            )
        )
    if not chs_info:
        channel_facts.warn_of_other_names(raw.info["chs"])
    derived = [derivation for derivation, _ in matches]
    changed = [rereferenced(d, to_apply.reference, eeg_names, names) for d in derived]
    failed = [d for d, after in zip(derived, changed, strict=True) if after is None]
    if len({after.reference for after in changed if after and after.reference}) > 1:
        failed = derived  # different references, such as C3-M2 and C4-M1
    # Re-reference all channels or none of them, because models combine channels.
    used_channels = derived if failed else [after for after in changed if after]
    return Prepared(
        raw=raw,
        name=name,
        missing=[name for name in wanted if name not in {d.name for d in used_channels}],
        found=used_channels,
        not_rereferenced=failed,
        differences=remaining,
        sfreq=sfreq,
        signals=preprocessed_signals(raw, used_channels, sfreq, to_apply),
        chs_info=[ch for _, ch in matches],
    )
