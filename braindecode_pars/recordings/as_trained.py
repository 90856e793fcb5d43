"""Prepare a recording as those that a model was trained on.

Channels are computed from those that the recording has, the reference where it can be computed.
The missing steps follow: resampling and filters, one channel after another, so that no copy of a
night is made. Flat and clipped samples are found before. :func:`prepare_as_trained` does all of it.
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
    system_names,
    with_types,
)
from braindecode_pars._common.checks import check_same_rate, listed
from braindecode_pars.recordings import cutting, preparation
from braindecode_pars.recordings.preprocessing import (
    AS_RECORDED,
    AVERAGE,
    CHANGED,
    Difference,
    Preprocessing,
    differences,
    missing_steps,
)

#: Samples that are read at a time.
_BLOCK = 2**20


def preprocessed_signals(
    raw: mne.io.BaseRaw,
    derivations: Sequence[Derivation],
    sfreq: float,
    preprocessing: Preprocessing,
    *,
    shortest: int = 2,
) -> np.ndarray:
    """Compute channels of a recording, resampled, filtered (if they are EEG) and scaled.

    Each part between gaps is resampled and then filtered, as
    :func:`~braindecode_pars.recordings.preparation.filter_and_resample` does with a whole
    recording. The recording itself is not changed. Beside the returned array, the memory of a few
    copies of one channel is needed.

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
    shortest : int
        Samples, at the new rate, of the shortest part between gaps that is used.

    Returns
    -------
    ndarray of float32, shape (n_chans, n_times)
        Signals; zeros in gaps and in shorter parts. Sample ``k`` is at ``k / sfreq`` seconds, up to
        one sample, and up to one and a half after a gap.

    Raises
    ------
    ValueError
        When samples are NaN or infinite. The message names the channel.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.preprocessing import Preprocessing
    >>> from braindecode_pars.recordings.as_trained import Derivation
    >>> from braindecode_pars.recordings.as_trained import preprocessed_signals
    >>> info = mne.create_info(["C3", "M2"], 256.0, "eeg")
    >>> raw = mne.io.RawArray(np.ones((2, 2560)), info, verbose="error")
    >>> c3 = Derivation("C3-M2", (("C3", 1.0), ("M2", -1.0)))
    >>> preprocessed_signals(raw, [c3], 100.0, Preprocessing(band=(None, 35.0))).shape
    (1, 1000)
    """
    old_sfreq = raw.info["sfreq"]
    signals = np.zeros((len(derivations), new_sample(raw.n_times, raw, sfreq)), np.float32)
    low, high = preprocessing.band or (None, None)
    high = high if high is not None and high < sfreq / 2 else None
    is_filtered = low is not None or high is not None
    notch = [mains for mains in preprocessing.notch or () if mains < sfreq / 2]
    method = preprocessing.filter or "fir"
    in_place: dict[str, Any] = dict(copy=False, verbose="error")
    for start, stop in cutting.continuous_stretches(raw):
        first, last = (new_sample(sample, raw, sfreq) for sample in (start, stop))
        if last - first < shortest:
            continue
        references = {
            names: _weighted_sum(raw, start, stop, [(name, 1 / len(names)) for name in names])
            for names in {derivation.reference for derivation in derivations}
            if names
        }
        for row, derivation in enumerate(derivations):
            # Nothing else refers to the signal at the old rate, so that its memory is soon free.
            reference = references.get(derivation.reference)
            signal = resampled(
                _weighted_sum(raw, start, stop, derivation.weights, reference), sfreq, old_sfreq
            )
            if derivation.is_eeg and is_filtered:
                signal = mne.filter.filter_data(signal, sfreq, low, high, method=method, **in_place)
            for mains in notch if derivation.is_eeg else ():
                signal = mne.filter.notch_filter(signal, sfreq, mains, **in_place)
            out = signals[row, first : first + len(signal)]
            scale = preprocessing.scale or 1.0
            np.multiply(signal[: len(out)], scale, out=out, casting="same_kind")
            del signal  # before the next one is read at the old rate
    return signals


def new_sample(sample: int, raw: mne.io.BaseRaw, sfreq: float) -> int:
    """Return the sample at the same time after resampling, rounded as MNE rounds lengths."""
    return round(sample * sfreq / raw.info["sfreq"])


def _weighted_sum(
    raw: mne.io.BaseRaw,
    start: int,
    stop: int,
    weights: Sequence[tuple[str, float]],
    reference: np.ndarray | None = None,
) -> np.ndarray:
    """Return a sum of channels less a reference as a new array of float64, shape (n_times,)."""
    total = np.zeros(stop - start)
    for name, weight in weights:
        channel = raw.ch_names.index(name)
        for first in range(start, stop, _BLOCK):
            last = min(first + _BLOCK, stop)
            # Not raw[channel, first:last], which makes an array of the times, too.
            samples = raw.get_data([channel], first, last, verbose="error")[0]
            if not np.isfinite(samples).all():
                raise ValueError(
                    f"channel {name} contains NaN or infinite samples; repair it first."
                )
            samples *= weight
            total[first - start : last - start] += samples
    return total if reference is None else np.subtract(total, reference, out=total)


@dataclass(frozen=True)
class Derivation:
    """A weighted sum of channels of a recording.

    Attributes
    ----------
    name : str
        Name of the channel in the model.
    weights : tuple of (str, float)
        Channels of the recording, each with its weight.
    reference : tuple of str
        Channels of the recording whose mean is subtracted; empty for none.
    is_eeg : bool
        Whether it is referenced and filtered, as MNE does with EEG and not with other channels.

    Examples
    --------
    >>> from braindecode_pars.recordings.as_trained import Derivation
    >>> fpz_cz = Derivation("EEG Fpz-Cz", (("Fpz-A1", 1.0), ("Cz-A1", -1.0)))
    >>> fpz_cz.formula, fpz_cz.is_computed
    ('Fpz-A1 - Cz-A1', True)
    """

    name: str
    weights: tuple[tuple[str, float], ...]
    reference: tuple[str, ...] = ()
    is_eeg: bool = True

    @property
    def is_computed(self) -> bool:
        """Whether the channel is more than one of the recording under another name."""
        return len(self.weights) > 1 or self.weights[0][1] != 1 or bool(self.reference)

    @property
    def channels(self) -> list[str]:
        """The channels of the recording that are used."""
        return [*(name for name, _ in self.weights), *self.reference]

    @property
    def formula(self) -> str:
        """The sum as text, such as ``Fpz-A1 - Cz-A1``."""
        text = " ".join(f"{'-' if weight < 0 else '+'} {name}" for name, weight in self.weights)
        if len(self.reference) > 4:
            text += f" - mean of {len(self.reference)} channels"
        elif self.reference:
            text += f" - mean of {', '.join(self.reference)}"
        return text.removeprefix("+ ")


def find_derivations(
    wanted: Sequence[str], found: Sequence[str], *, compute: bool = True
) -> list[Derivation | None]:
    """Find or compute the channels of a model in a recording, by the names of electrodes.

    The first that is possible: a channel of the same electrode and the same reference, or of the
    same two electrodes; the same two electrodes in the other order, with the sign changed; the
    difference of two channels that have one reference; a channel of the electrode, whatever its
    reference is, as :func:`~braindecode_pars._common.channel_names.match_channels` finds it.
    Channels that name no reference are taken to have one in common.

    Parameters
    ----------
    wanted : sequence of str
        Names of the channels of the model.
    found : sequence of str
        Names of the channels of the recording.
    compute : bool
        Whether channels may be computed. With False, they are only found.

    Returns
    -------
    list of Derivation | None
        One for each wanted channel; None where it can be neither found nor computed.

    Examples
    --------
    >>> from braindecode_pars.recordings.as_trained import find_derivations
    >>> found = ["EEG C3-REF", "EEG A2-REF", "EEG Cz-Fpz", "T3"]
    >>> [d and d.formula for d in find_derivations(["C3-M2", "Fpz-Cz", "T7", "O1"], found)]
    ['EEG C3-REF - EEG A2-REF', '- EEG Cz-Fpz', 'T3', None]
    """
    pairs: dict[tuple[str, str | None], list[str]] = {}  # by electrodes, or by the reference
    for channel, own in zip(found, system_names(found), strict=True):
        pairs.setdefault(electrode_pair(own), []).append(channel)

    def one_of(first: str, second: str | None, name: str = "") -> str | None:
        # Of several channels of a pair, such as T3 and T7, only one of the same name
        names = pairs.get((first, second), [])
        same = (n for n in names if name in (n, electrode_name(n)))
        return names[0] if len(names) == 1 else next(same, None)

    derivations: list[Derivation | None] = []
    places = match_channels(wanted, found)
    for name, own, place in zip(wanted, system_names(wanted), places, strict=True):
        first, second = electrode_pair(own)
        sums: list[tuple[tuple[Any, float], ...]] = [((one_of(first, second, name), 1.0),)]
        if compute and second is not None:
            sums.append(((one_of(second, first), -1.0),))
            # One reference: None stands for the unnamed reference of all channels without one.
            one, other = electrode_name(name).partition("-")[0], name.rpartition("-")[2].upper()
            for reference in [r for electrode, r in pairs if electrode == first]:
                minus = one_of(second, reference, other), -1.0
                sums.append(((one_of(first, reference, one), 1.0), minus))
        sums.append(((None if place is None else found[place], 1.0),))
        possible = (each for each in sums if all(channel is not None for channel, _ in each))
        weights = next(possible, None)
        derivations.append(None if weights is None else Derivation(name, weights))
    return derivations


#: Fewest electrodes of an average of which others may be missing.
_MANY = 4


def rereferenced(
    derivation: Derivation, reference: str | None, eeg: Sequence[str], found: Sequence[str]
) -> Derivation | None:
    """Return a channel with the reference of the model.

    A bipolar or computed channel, one that has the reference by its name, and one that is not EEG
    stay as they are.

    Parameters
    ----------
    derivation : Derivation
        Channel of the recording.
    reference : str | None
        As in :class:`~braindecode_pars.recordings.preprocessing.Preprocessing`: ``"average"``,
        electrodes separated by commas, ``"as recorded"``, or None or ``"changed"`` when it is
        unknown.
    eeg : sequence of str
        EEG channels of the recording, of which ``"average"`` is the mean.
    found : sequence of str
        All channels of the recording.

    Returns
    -------
    Derivation | None
        The channel. None when the recording cannot have this reference: an electrode is missing, or
        has another reference. Of an average of named electrodes, half and at least four must be
        there. The average is that of the channels with the same reference.

    Examples
    --------
    >>> from braindecode_pars.recordings.as_trained import Derivation
    >>> from braindecode_pars.recordings.as_trained import rereferenced
    >>> c3 = Derivation("C3", (("C3", 1.0),))
    >>> names = ["C3", "A1", "A2"]
    >>> rereferenced(c3, "M1, M2", names, names).formula
    'C3 - mean of A1, A2'
    >>> rereferenced(c3, "Cz", names, names) is None
    True
    """
    channel = derivation.weights[0][0]
    own = electrode_pair(channel)[1]
    if reference in (None, AS_RECORDED, CHANGED) or derivation.is_computed or not derivation.is_eeg:
        return derivation
    names = tuple(reference.split(", "))
    if channel in names and set(names) <= set(found):  # the average of just these channels
        return replace(derivation, reference=names)
    wanted = system_names(reference.split(","), found)
    electrodes = [electrode_pair(name)[0] for name in wanted]
    # What a channel with this reference has after its dash, such as M2 in C3-M2; linked ears are LE
    suffix = "AVG" if reference == AVERAGE else electrodes[0] if len(electrodes) == 1 else None
    suffix = "LE" if sorted(electrodes) == ["M1", "M2"] else suffix
    if _is_bipolar(channel) or (own is not None and own == suffix):
        return derivation
    if reference == AVERAGE:  # of channels with one reference: A2-A1 is none of them
        others = [n for n in eeg if not _is_bipolar(n) and electrode_pair(n)[1] == own]
        if len(others) < 2:
            return None
    else:
        own_names = [*zip(found, system_names(found), strict=True)]
        place = {electrode_pair(n)[0]: name for name, n in own_names if not _is_bipolar(n)}
        place |= {electrode_name(n): name for name, n in own_names if not _is_bipolar(n)}
        others = [
            place.get(electrode_name(name), place.get(electrode, ""))
            for name, electrode in zip(wanted, electrodes, strict=True)
        ]
        if len(there := [name for name in others if name]) >= max(_MANY, len(others) / 2):
            others = there  # an average of many, of which some are missing
        if not all(others) or any(electrode_pair(name)[1] != own for name in others):
            return None
    return replace(derivation, reference=tuple(others))


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


class HeldTime(NamedTuple):
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


def held_time(raw: mne.io.BaseRaw, names: Iterable[str]) -> dict[str, HeldTime]:
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
    dict of str to HeldTime
        Time of each channel in seconds.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.as_trained import held_time
    >>> wave = np.sin(np.arange(1000) / 9)
    >>> signals = np.stack([np.where(np.arange(1000) < 300, 0, wave), wave.clip(-0.5, 0.5)])
    >>> info = mne.create_info(["C3", "C4"], 100.0, "eeg")
    >>> found = held_time(mne.io.RawArray(signals, info, verbose="error"), ["C3", "C4"])
    >>> found["C3"], found["C4"].flat, found["C4"].clipped > 5
    (HeldTime(flat=3.0, clipped=0.0), 0.0, True)
    """
    stretches, sfreq = cutting.continuous_stretches(raw), float(raw.info["sfreq"])
    found = {}
    for name in names:
        channel = raw.ch_names.index(name)
        parts = []
        for start, stop in stretches:
            # Not raw[name, start:stop], which makes an array of the times, too.
            samples = raw.get_data([channel], start, stop, verbose="error")[0]
            parts.append((*_runs(samples), [samples.min(), samples.max()]))
        if not parts:
            found[name] = HeldTime(0.0, 0.0)
            continue
        values, lengths, ends = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        low, high = ends.min(), ends.max()
        clipped = ((values == low) | (values == high)) & (low < high)
        flat = ~clipped & (lengths >= _FLAT * sfreq)
        found[name] = HeldTime(*(float(lengths[which].sum() / sfreq) for which in (flat, clipped)))
    return found


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
        return list(dict.fromkeys(name for each in self.found for name in each.channels))

    def may_use(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Whether each window has neither a gap nor a "BAD" annotation, shape (n_windows,)."""
        may = np.zeros(len(starts), dtype=bool)
        for stretch in cutting.usable_stretches(self.raw, set(self.channels)):
            first, stop = (new_sample(sample, self.raw, self.sfreq) for sample in stretch)
            may |= (starts >= first) & (starts + length <= stop)
        return may


def prepare_as_trained(
    raw: mne.io.BaseRaw,
    name: str,
    trained: Preprocessing,
    sfreq: float,
    chs_info: Sequence[dict] | None,
    *,
    shortest: int = 2,
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
    shortest : int
        Samples, at this rate, of the shortest part between gaps that is prepared.
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
    >>> from braindecode_pars.recordings.preprocessing import Preprocessing
    >>> noise = np.random.default_rng(0).normal(size=(2, 2560))
    >>> raw = mne.io.RawArray(noise, mne.create_info(["T7", "C3"], 256.0, "eeg"), verbose="error")
    >>> wanted = mne.create_info(["C3", "T3", "Oz"], 100.0, "eeg")["chs"]
    >>> prepared = prepare_as_trained(raw, "night", Preprocessing(), 100.0, wanted)
    >>> prepared.signals.shape, [each.formula for each in prepared.found], prepared.missing
    ((2, 1000), ['C3', 'T7'], ['Oz'])
    """
    if not preprocess:
        remedy = "resample to {expected:g} Hz, or leave preprocess=False out"
        check_same_rate(raw.info["sfreq"], sfreq, "This recording is", "the model", remedy)
    # Compare the preprocessing.
    had, trained = preparation.recorded(raw.info), replace(trained, sfreq=sfreq)
    names = [name for name in raw.ch_names if name not in raw.info["bads"]]
    eeg = [ch for ch in with_types(raw.info["chs"]) if ch["ch_name"] in names and is_eeg(ch)]
    eeg_names = [ch["ch_name"] for ch in eeg]
    if had.reference == CHANGED and len(eeg_names) > 1:
        first = raw.n_times // 2
        block = raw.get_data(eeg_names, first, first + 1000, verbose="error")
        if np.abs(block.mean(axis=0)).max() < 1e-4 * block.std():  # up to the precision of a file
            had = replace(had, reference=AVERAGE)
    differing = [each for each in differences(trained, had) if not (preprocess and each.repair)]
    if (trained.reference, had.reference) == (AVERAGE, CHANGED):
        # Channels of an earlier average may be missing, so that another one is not the same.
        differing.append(Difference("reference", AVERAGE, CHANGED))
    to_apply = missing_steps(trained, had) if preprocess else Preprocessing()
    # Find the channels.
    chosen = chs_info or eeg
    wanted = [ch["ch_name"] for ch in chosen]
    pairs = zip(find_derivations(wanted, names, compute=preprocess), chosen, strict=True)
    places = [(replace(d, is_eeg=is_eeg_by_type(ch)), ch) for d, ch in pairs if d is not None]
    if not places:
        raise ValueError(
            f"The recording has none of the channels of the model ({listed(wanted) or 'EEG'}); it "
            f"has {listed(raw.ch_names)} (marked as bad: {listed(raw.info['bads']) or 'none'})."
            + (
                other_system(wanted, names)
                or " Rename them with raw.rename_channels if they are the same electrodes."
            )
        )
    if not chs_info:
        preparation.warn_of_other_names(raw.info["chs"])
    derived = [derivation for derivation, _ in places]
    changed = [rereferenced(each, to_apply.reference, eeg_names, names) for each in derived]
    failed = [d for d, after in zip(derived, changed, strict=True) if after is None]
    if len({after.reference for after in changed if after and after.reference}) > 1:
        failed = derived  # C3-M2 and C4-M1
    # All or none: a model compares its channels.
    found = derived if failed else [after for after in changed if after]
    return Prepared(
        raw=raw,
        name=name,
        missing=[name for name in wanted if name not in {d.name for d in found}],
        found=found,
        not_rereferenced=failed,
        differences=differing,
        sfreq=sfreq,
        signals=preprocessed_signals(raw, found, sfreq, to_apply, shortest=shortest),
        chs_info=[ch for _, ch in places],
    )
