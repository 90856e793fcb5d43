"""Windows of the recordings of a store; labelled ones are recordings of a braindecode dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import EEGWindowsDataset

from braindecode_pars._common.channel_names import is_other_kind
from braindecode_pars.recordings.preprocessing import Preprocessing
from braindecode_pars.signal_store.index import Labels, StoredRecording
from braindecode_pars.windows.door import windows_of
from braindecode_pars.windows.table import Montage, ReadCrops, SignalReader, Windows


def store_windows(
    recordings: pd.DataFrame,
    crops: ReadCrops,
    sfreq: float,
    n_times: int,
    preprocessings: Sequence[Preprocessing],
) -> Windows:
    """Return consecutive windows of all recordings; an incomplete last window is dropped.

    Parameters
    ----------
    recordings : pandas.DataFrame
        Table ``recordings`` of the store.
    crops : callable
        Method ``crops`` of the store.
    sfreq : float
        Sampling rate in Hz.
    n_times : int
        Length of a window in samples.
    preprocessings : sequence of Preprocessing
        Preprocessing of each recording.
    """
    reader = SignalReader(crops)
    montages = {
        names: Montage.of(info_of(names, sfreq)["chs"])
        for names in map(tuple, recordings["ch_names"])
    }
    seconds = n_times / sfreq
    rows = [
        dict(
            corpus=row.corpus,
            subject=row.subject,
            split=row.split,
            sfreq=sfreq,
            channels=montages[tuple(row.ch_names)],
            preprocessing=replace(prepared, window_seconds=seconds),
            reader=reader,
            base=row.first_signal,
        )
        for row, prepared in zip(recordings.itertuples(), preprocessings, strict=True)
    ]
    counts = recordings["n_times"].to_numpy() // n_times
    numbers = np.repeat(np.arange(len(counts)), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)  # windows of earlier recordings
    starts = (np.arange(len(before)) - before) * n_times
    return windows_of(rows, recording=numbers, item=starts, start=starts, stop=starts + n_times)


def info_of(ch_names: Sequence[str], sfreq: float) -> mne.Info:
    """Return the measurement info of stored channels.

    Channels of type "eeg" with the name of another signal are not stored. A stored one had another
    type, such as "seeg", for which the name does not count.
    """
    kinds = ["seeg" if is_other_kind(name) else "eeg" for name in ch_names]
    return mne.create_info(list(ch_names), sfreq, kinds)


class StoredSignals(NamedTuple):
    """Where the windows of a recording lie in a store; changed ones are not read from there.

    Attributes
    ----------
    reader : SignalReader | None
        Reader of the store; None where windows go through braindecode.
    base : int
        Number of the signal that is the first channel.
    info : mne.Info
        Channels and sampling rate.
    preprocessing : Preprocessing
        What was done to the recording.
    """

    reader: SignalReader | None
    base: int
    info: mne.Info
    preprocessing: Preprocessing


class StoredRaw(mne.io.BaseRaw):
    """A stored recording as a Raw of MNE, whose samples are read when they are used.

    Parameters
    ----------
    crops : callable
        Method ``crops`` of the store.
    first_signal : int
        Number of the signal that is the first channel; the others follow.
    info : mne.Info
        Channels and sampling rate.
    n_times : int
        Length in samples.
    """

    def __init__(self, crops: ReadCrops, first_signal: int, info: mne.Info, n_times: int):
        extras = [dict(crops=crops, first_signal=first_signal)]
        super().__init__(
            info,
            last_samps=[n_times - 1],
            filenames=[None],
            raw_extras=extras,
            orig_format="single",
            verbose="error",
        )

    def _read_segment_file(
        self,
        data: np.ndarray,
        idx: slice | np.ndarray,
        fi: int,
        start: int,
        stop: int,
        cals: np.ndarray,
        mult: np.ndarray | None,
    ) -> None:
        """Read samples into ``data``; MNE asks for channels, or for projections of all of them."""
        extras = self._raw_extras[fi]
        signals = extras["first_signal"] + np.arange(extras["orig_nchan"])[idx]
        samples = extras["crops"](signals, np.full(len(signals), start), stop - start)
        data[:] = samples if mult is None else mult @ samples

    def shows(self, crops: ReadCrops, first_signal: int, info: mne.Info, n_times: int) -> bool:
        """Whether its samples and channels are still these of the store."""
        extras = self._raw_extras[0]
        return (
            not self.preload
            and (extras["crops"], extras["first_signal"]) == (crops, first_signal)
            and (self.first_samp, self.n_times) == (0, n_times)
            and not self.info["bads"]
            and not any(projection["active"] for projection in self.info["projs"])
            and _have_equal_channels(self.info, info)
        )


class StoredWindowsDataset(EEGWindowsDataset):
    """Labelled windows of one recording of a store, read from its memory map.

    Created by :meth:`SignalStore.labelled_windows
    <braindecode_pars.signal_store.SignalStore.labelled_windows>`. It is used like every
    :class:`braindecode.datasets.EEGWindowsDataset`: items are ``(window, label, crop_inds)``, and
    ``raw`` is the whole recording. A pickle of it contains the path of the store, not the samples.

    Parameters
    ----------
    recording : StoredRecording
        The recording.
    labels : Labels
        Its windows.
    crops : callable
        Method ``crops`` of the store.
    first_signal : int
        Number of the signal that is its first channel.
    sfreq : float
        Sampling rate in Hz.
    """

    def __init__(
        self,
        recording: StoredRecording,
        labels: Labels,
        crops: ReadCrops,
        first_signal: int,
        sfreq: float,
    ):
        metadata = pd.DataFrame(
            {
                "i_window_in_trial": labels.number,
                "i_start_in_trial": labels.start,
                "i_stop_in_trial": labels.stop,
                "target": list(labels.label),
            }
        )
        super().__init__(None, metadata, dict(recording.description))
        self.recording = recording
        self.crops = crops
        self.first_signal = first_signal
        self.sfreq = sfreq

    _raw: mne.io.BaseRaw | None  # of the base class

    @property
    def info(self) -> mne.Info:
        """Channels of the windows, with the positions that they had when they were stored."""
        positions = {name: tuple(p) for name, p in self.recording.positions.items()}
        return _located(tuple(self.recording.ch_names), self.sfreq, tuple(positions.items()))

    @property
    def raw(self) -> mne.io.BaseRaw:
        """The whole recording; its samples are read when they are used."""
        if self._raw is None:
            info, n_times = self.info.copy(), self.recording.n_times
            self._raw = StoredRaw(self.crops, self.first_signal, info, n_times)
        return self._raw

    @raw.setter
    def raw(self, raw: mne.io.BaseRaw | None) -> None:
        EEGWindowsDataset.raw.fset(self, raw)

    @property
    def is_changed(self) -> bool:
        """Whether windows are no longer those of the store, such as after a filter."""
        raw = self._raw
        if self.transform is not None or self.return_ch_pos:
            return True
        if raw is None:
            return False
        stored = self.crops, self.first_signal, self.info, self.recording.n_times
        return not (isinstance(raw, StoredRaw) and raw.shows(*stored))

    def stored_signals(self) -> StoredSignals:
        """Return where the windows lie in the store, for ``as_windows``."""
        if self.is_changed:
            return StoredSignals(None, 0, self.raw.info, Preprocessing())
        reader = SignalReader(self.crops)
        return StoredSignals(reader, self.first_signal, self.info, self.recording.prepared)

    def __getitem__(self, index: int) -> tuple:
        if self.is_changed:
            return super().__getitem__(index)
        number, start, stop = self.crop_inds[index].tolist()
        signals = self.first_signal + np.arange(len(self.recording.ch_names))
        window = self.crops(signals, np.full(len(signals), start), stop - start)
        return window, self.y[index], [number, start, stop]

    def __getstate__(self) -> dict[str, Any]:
        # The Raw is made again where it is needed, except for one that the user changed.
        return {**super().__getstate__(), "_raw": self._raw if self.is_changed else None}


def _have_equal_channels(info: mne.Info, other: mne.Info) -> bool:
    """Whether names, types and positions of channels are equal."""
    names, other_names = (
        [(ch["ch_name"], ch["kind"]) for ch in each["chs"]] for each in (info, other)
    )
    if names != other_names:
        return False
    own, others = ([ch["loc"] for ch in each["chs"]] for each in (info, other))
    return np.array_equal(own, others, equal_nan=True)


@lru_cache(maxsize=256)
def _located(
    ch_names: tuple[str, ...], sfreq: float, positions: tuple[tuple[str, tuple[float, ...]], ...]
) -> mne.Info:
    """Return the measurement info of recordings with the same channels and positions."""
    info = info_of(ch_names, sfreq)
    for ch in info["chs"]:
        ch["loc"][:3] = dict(positions).get(ch["ch_name"], (np.nan,) * 3)
    return info
