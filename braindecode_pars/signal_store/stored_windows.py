"""Labelled windows of a store, as recordings of a braindecode dataset."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import EEGWindowsDataset

from braindecode_pars._common.channel_names import is_other_kind
from braindecode_pars.recordings.preprocessing import Preprocessing
from braindecode_pars.signal_store.index import StoredRecording
from braindecode_pars.windows.table import ReadCrops, SignalReader


@lru_cache(maxsize=256)
def info_of(
    ch_names: tuple[str, ...],
    sfreq: float,
    positions: tuple[tuple[str, tuple[float, ...]], ...] = (),
) -> mne.Info:
    """Return the measurement info of stored channels, with their positions where known.

    Channels of type "eeg" with the name of another signal are not stored. A stored one had another
    type, such as "seeg", for which the name does not count.
    """
    kinds = ["seeg" if is_other_kind(name) else "eeg" for name in ch_names]
    info = mne.create_info(list(ch_names), sfreq, kinds)
    for ch in info["chs"]:
        ch["loc"][:3] = dict(positions).get(ch["ch_name"], (np.nan,) * 3)
    return info


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

    @property
    def state(self) -> tuple:
        """What changes when the samples or channels are no longer those of the store."""
        info = self.info
        is_projected = any(projection["active"] for projection in info["projs"])
        channels = [(ch["ch_name"], ch["kind"], ch["loc"].tobytes()) for ch in info["chs"]]
        times = self.first_samp, self.n_times
        return self.preload, times, tuple(info["bads"]), is_projected, channels


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
    labels : DataFrame
        Its windows, as of :func:`~.index.labels_of`.
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
        labels: pd.DataFrame,
        crops: ReadCrops,
        first_signal: int,
        sfreq: float,
    ):
        super().__init__(None, labels, dict(recording.description))
        self.recording = recording
        self.crops = crops
        self.first_signal = first_signal
        self.sfreq = sfreq

    _raw: mne.io.BaseRaw | None  # of the base class
    _own: StoredRaw | None = None  # the Raw of the store
    _state: tuple = ()  # and its state at first

    @property
    def info(self) -> mne.Info:
        """Channels of the windows, with the positions that they had when they were stored."""
        positions = {name: tuple(p) for name, p in self.recording.positions.items()}
        return info_of(tuple(self.recording.ch_names), self.sfreq, tuple(positions.items()))

    @EEGWindowsDataset.raw.getter
    def raw(self) -> mne.io.BaseRaw:
        """The whole recording; its samples are read when they are used."""
        if self._raw is None:
            info, n_times = self.info.copy(), self.recording.n_times
            self._raw = self._own = StoredRaw(self.crops, self.first_signal, info, n_times)
            self._state = self._own.state
        return self._raw

    @property
    def is_changed(self) -> bool:
        """Whether windows are no longer those of the store, such as after a filter."""
        if self.transform is not None or self.return_ch_pos:
            return True
        own = self._own
        return self._raw is not own or (own is not None and own.state != self._state)

    def stored_row(self) -> tuple[mne.Info, dict[str, Any]]:
        """Return the channels, and what the row of this recording tells of the store.

        Changed windows are not read from the store, and what was done to them is unknown.
        """
        if self.is_changed:
            return self.raw.info, dict(preprocessing=Preprocessing())
        reader, prepared = SignalReader(self.crops), self.recording.prepared
        return self.info, dict(reader=reader, base=self.first_signal, preprocessing=prepared)

    def __getstate__(self) -> dict[str, Any]:
        # The Raw is made again where it is needed, except for one that the user changed.
        raws = {} if self.is_changed else dict(_raw=None, _own=None)
        return {**super().__getstate__(), **raws}
