"""Recordings of a store as Raws of MNE, of which its labelled windows are cut."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import mne
import numpy as np

from braindecode_pars._common.channel_names import is_other_kind
from braindecode_pars.recordings.preprocessing import Preprocessing
from braindecode_pars.signal_store.index import StoredRecording
from braindecode_pars.windows.table import ReadCrops, SignalReader


@lru_cache(maxsize=256)
def info_of(ch_names: tuple[str, ...], sfreq: float) -> mne.Info:
    """Return the measurement info of stored channels, without positions.

    Channels of type "eeg" with the name of another signal are not stored. A stored one had another
    type, such as "seeg", for which the name does not count.
    """
    kinds = ["seeg" if is_other_kind(name) else "eeg" for name in ch_names]
    return mne.create_info(list(ch_names), sfreq, kinds)


class StoredRaw(mne.io.BaseRaw):
    """A stored recording as a Raw of MNE, whose samples are read when they are used.

    The estimators read its windows from the store, a batch at a time, as long as it is not changed.
    A pickle of it contains the path of the store, not the samples.

    Parameters
    ----------
    recording : StoredRecording
        The recording.
    crops : callable
        Method ``crops`` of the store.
    first_signal : int
        Number of the signal that is the first channel; the others follow.
    sfreq : float
        Sampling rate in Hz.
    """

    def __init__(
        self, recording: StoredRecording, crops: ReadCrops, first_signal: int, sfreq: float
    ):
        info = info_of(tuple(recording.ch_names), sfreq).copy()
        for ch in info["chs"]:
            ch["loc"][:3] = recording.positions.get(ch["ch_name"], np.nan)
        super().__init__(
            info,
            last_samps=[recording.n_times - 1],
            filenames=[None],
            raw_extras=[dict(crops=crops, first_signal=first_signal)],
            orig_format="single",
            verbose="error",
        )
        self._preprocessing = recording.preprocessing
        self._first_state = self._state

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
    def _state(self) -> tuple:
        """What changes when the samples or channels are no longer those of the store."""
        info = self.info
        is_projected = any(projection["active"] for projection in info["projs"])
        channels = [(ch["ch_name"], ch["kind"], ch["loc"].tobytes()) for ch in info["chs"]]
        times = self.first_samp, self.n_times
        return self.preload, times, tuple(info["bads"]), is_projected, channels

    def stored_row(self, is_changed: bool) -> dict[str, Any]:
        """Return what the row of this recording tells of the store.

        What was done to changed windows is unknown, and they are not read from the store.
        """
        if is_changed or self._state != self._first_state:
            return dict(preprocessing=Preprocessing())
        extras = self._raw_extras[0]
        return dict(
            reader=SignalReader(extras["crops"]),
            base=extras["first_signal"],
            preprocessing=Preprocessing.of(self._preprocessing),
        )
