"""A continuous recording as the windows of a fitted model: its channels, rate, filters and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import mne
import numpy as np

from braindecode_pars._channel_names import is_eeg, is_eeg_by_type, match_channels
from braindecode_pars._lists import listed
from braindecode_pars._sampling_rate import check_same_rate
from braindecode_pars.preprocessing import Difference, Preprocessing, differences
from braindecode_pars.preprocessing._recorded import recorded
from braindecode_pars.recordings._derivations import Derivation, find_derivations
from braindecode_pars.recordings._gaps import usable_stretches
from braindecode_pars.recordings._held_samples import HeldTime, held_time
from braindecode_pars.recordings._missing_steps import missing_steps
from braindecode_pars.recordings._referencing import rereferenced
from braindecode_pars.recordings._signals import new_sample, preprocessed_signals
from braindecode_pars.windows._channels import Channels
from braindecode_pars.windows._window_set import WindowSet

__all__ = ["RecordingToPredict", "prepare_recording"]


@dataclass(frozen=True, eq=False)
class RecordingToPredict:
    """A recording with the signals that a model receives.

    Attributes
    ----------
    raw : Raw
        The recording, unchanged.
    name : str
        Name of the recording.
    wanted : list of str
        Channels of the model; all EEG channels of the recording when those are unknown.
    derivations : list of (Derivation | None)
        How each wanted channel is found or computed; None for a missing one.
    not_rereferenced : list of Derivation
        Those that do not have the reference of the model.
    trained : Preprocessing
        Preprocessing of the recordings that the model was trained on.
    applied : Preprocessing
        What was applied to the recording.
    differences : list of Difference
        What differs from the training and was not repaired.
    sfreq : float
        Sampling rate of the signals in Hz.
    signals : ndarray of float32, shape (n_found, n_times)
        Signals of the channels that were found, preprocessed.
    chs_info : list of dict
        These channels, as in ``mne.Info["chs"]``, with the names of the model.
    usable : list of (int, int)
        Parts of the signals without gaps and "BAD" annotations: first sample, last + 1.
    """

    raw: mne.io.BaseRaw
    name: str
    wanted: list[str]
    derivations: list[Derivation | None]
    not_rereferenced: list[Derivation]
    trained: Preprocessing
    applied: Preprocessing
    differences: list[Difference]
    sfreq: float
    signals: np.ndarray
    chs_info: list[dict]
    usable: list[tuple[int, int]]

    @property
    def found(self) -> list[Derivation]:
        """The derivations of the signals."""
        return [derivation for derivation in self.derivations if derivation is not None]

    @cached_property
    def held(self) -> dict[str, HeldTime]:
        """Time in which the used channels of the recording are flat or clipped."""
        names = dict.fromkeys(name for d in self.found for name in d.channels)
        return held_time(self.raw, names)

    @property
    def n_times(self) -> int:
        """Number of samples of the signals."""
        return self.signals.shape[1]

    def may_predict(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Whether each window is in a usable part as a whole, shape (n_windows,)."""
        may = np.zeros(len(starts), dtype=bool)
        for first, stop in self.usable:
            may |= (starts >= first) & (starts + length <= stop)
        return may

    def windows(self, starts: np.ndarray, length: int) -> WindowSet:
        """Return the windows that begin at some samples; each is copied when it is read."""
        n = len(starts)
        return WindowSet(
            Cuts(self.signals, starts, length),
            np.arange(n),
            subjects=np.full(n, self.name, object),  # one recording is of one subject
            sfreq=self.sfreq,
            channels=Channels.of_recording(n, self.chs_info),
        )


class Cuts(Sequence):
    """Windows of continuous signals, shape (n_chans, n_times), as views."""

    def __init__(self, signals: np.ndarray, starts: np.ndarray, length: int):
        self.signals = signals
        self.starts = starts
        self.length = length

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, i: int) -> np.ndarray:
        return self.signals[:, self.starts[i] : self.starts[i] + self.length]


def prepare_recording(
    raw: mne.io.BaseRaw,
    name: str,
    sfreq: float,
    length: int,
    chs_info: list[dict] | None,
    trained: Preprocessing,
    *,
    preprocess: bool = True,
) -> RecordingToPredict:
    """Find the channels of a model in a recording, and preprocess them as the model expects.

    Parameters
    ----------
    raw : Raw
        Continuous recording; it is not changed.
    name : str
        Name of the recording.
    sfreq : float
        Sampling rate of the model in Hz.
    length : int
        Samples of a window; shorter parts between gaps are not prepared.
    chs_info : list of dict | None
        Channels of the model, as in ``mne.Info["chs"]``; None or empty when they are unknown.
    trained : Preprocessing
        Preprocessing of the recordings that the model was trained on.
    preprocess : bool
        Whether to preprocess. With False, the samples are used as they are.

    Returns
    -------
    RecordingToPredict
        The signals with their channels.

    Raises
    ------
    ValueError
        When no channel of the model is found, when samples are NaN or infinite, or when another
        sampling rate is not to be changed.
    """
    if not preprocess:
        check_same_rate(
            raw.info["sfreq"],
            sfreq,
            "This recording is",
            "the model",
            remedy="resample to {expected:g} Hz, or leave preprocess=False out",
        )
    # Compare the preprocessing.
    had, trained = recorded(raw.info), replace(trained, sfreq=sfreq)
    differing = [each for each in differences(trained, had) if not (preprocess and each.repair)]
    applied = missing_steps(trained, had) if preprocess else Preprocessing()
    # Find the channels.
    names = [name for name in raw.ch_names if name not in raw.info["bads"]]
    eeg = [ch for ch in raw.info["chs"] if ch["ch_name"] in names and is_eeg(ch)]
    chs_info = chs_info or eeg
    wanted = [ch["ch_name"] for ch in chs_info]
    derivations = find_derivations(wanted, names, compute=preprocess)
    if derivations.count(None) == len(wanted):
        raise ValueError(_nothing_found(wanted, raw))
    derivations = [
        derivation and replace(derivation, is_eeg=is_eeg_by_type(ch))
        for derivation, ch in zip(derivations, chs_info, strict=True)
    ]
    derivations, not_rereferenced = _with_reference(
        derivations, applied.reference, [ch["ch_name"] for ch in eeg], names
    )
    # Read and preprocess them.
    found = [derivation for derivation in derivations if derivation is not None]
    used = {channel for derivation in found for channel in derivation.channels}
    return RecordingToPredict(
        raw=raw,
        name=name,
        wanted=wanted,
        derivations=derivations,
        not_rereferenced=not_rereferenced,
        trained=trained,
        applied=applied,
        differences=differing,
        sfreq=sfreq,
        signals=preprocessed_signals(raw, found, sfreq, applied, shortest=length),
        chs_info=[ch for ch, d in zip(chs_info, derivations, strict=True) if d is not None],
        usable=[
            (new_sample(start, raw, sfreq), new_sample(stop, raw, sfreq))
            for start, stop in usable_stretches(raw, used)
        ],
    )


def _with_reference(
    derivations: Sequence[Derivation | None],
    reference: str | None,
    eeg: Sequence[str],
    found: Sequence[str],
) -> tuple[list[Derivation | None], list[Derivation]]:
    """Return the channels with the reference of the model, and those that cannot have it."""
    changed = [d and rereferenced(d, reference, eeg, found) for d in derivations]
    failed = [
        before
        for before, after in zip(derivations, changed, strict=True)
        if before is not None and after is None
    ]
    if len({after.reference for after in changed if after and after.reference}) > 1:
        failed = [before for before in derivations if before is not None]  # C3-M2 and C4-M1
    # All or none: a model compares its channels.
    return (list(derivations) if failed else changed), failed


def _nothing_found(wanted: Sequence[str], raw: Any) -> str:
    bads = raw.info["bads"]
    if bads and any(place is not None for place in match_channels(wanted, bads)):
        return (
            f"All channels of the model that the recording has are marked as bad ({listed(bads)}); "
            "remove those from raw.info['bads'] that are good."
        )
    marked = f" (marked as bad: {listed(bads)})" if bads else ""
    if not wanted:
        return f"The recording has no EEG channel, only {listed(raw.ch_names)}{marked}."
    return (
        f"The recording has none of the channels of the model ({listed(wanted)}), only "
        f"{listed(raw.ch_names)}{marked}; rename its channels with raw.rename_channels if they are "
        "the same electrodes."
    )
