"""Windows of the recordings of a store, read when they are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import mne
import numpy as np
import pandas as pd
from torch.utils.data import Dataset

from braindecode_pars.windows._describe import Description, describe

__all__ = ["StoreWindows", "StoredWindow"]


class StoreWindows(Dataset):
    """Windows that follow one another in every recording; a rest at the end is left out.

    What :meth:`SignalStore.windows <braindecode_pars.signal_store.SignalStore.windows>` returns.
    Items are float32 arrays of shape (n_chans, n_times), in volts.

    Parameters
    ----------
    recordings : pandas.DataFrame
        As the store's ``recordings``.
    crops : callable
        The store's method ``crops``.
    sfreq : float
        Sampling rate in Hz.
    n_times : int
        Samples of a window.

    Attributes
    ----------
    shapes : ndarray of int, shape (n_windows, 2)
        Channels and samples of each window, known without reading.
    subjects : ndarray of object, shape (n_windows,)
        Whom each window is of; None where that is not known.

    Examples
    --------
    >>> import tempfile
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.signal_store import SignalStore
    >>> nights = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SignalStore.create(folder, nights, verbose=0)
    ...     windows = store.windows(n_times=1000)
    ...     window = windows[0]
    >>> len(windows), window.shape, windows.subjects[[0, -1]].tolist()
    (72, (3, 1000), [1, 2])
    """

    def __init__(
        self,
        recordings: pd.DataFrame,
        crops: Callable[[np.ndarray, np.ndarray, int], np.ndarray],
        sfreq: float,
        n_times: int,
    ):
        counts = recordings["n_times"].to_numpy() // n_times
        self.recordings = recordings
        self.crops = crops
        self.sfreq = sfreq
        self.n_times = n_times
        self._stops = np.cumsum(counts)
        self._n_chans = recordings["ch_names"].map(len).to_numpy()
        self._first_signal = recordings["first_signal"].to_numpy()
        self.subjects = np.repeat(recordings["subject"].to_numpy(dtype=object), counts)
        self.shapes = np.column_stack(
            [np.repeat(self._n_chans, counts), np.full(len(self.subjects), n_times)]
        )

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, i: int) -> np.ndarray:
        return self.lazy_window(i)[:]

    def lazy_window(self, i: int) -> StoredWindow:
        """Look at a window, of which only what is indexed is read.

        Parameters
        ----------
        i : int
            Number of the window.

        Returns
        -------
        StoredWindow
            ``view[channels, start:stop]`` reads these samples, float32 in volts; it has a
            ``shape``.
        """
        if not -len(self) <= i < len(self):
            raise IndexError(f"Window {i} of {len(self)}.")
        i %= len(self)
        recording = int(np.searchsorted(self._stops, i, side="right"))
        before = self._stops[recording - 1] if recording else 0
        return StoredWindow(
            self.crops,
            int(self._first_signal[recording]),
            int(i - before) * self.n_times,
            (int(self._n_chans[recording]), self.n_times),
        )

    @property
    def chs_info(self) -> list[dict[str, Any]]:
        """As in ``mne.Info["chs"]``; empty where recordings differ in their channels."""
        montages = set(map(tuple, self.recordings["ch_names"]))
        if len(montages) > 1:
            return []
        return mne.create_info(list(*montages), self.sfreq, "eeg")["chs"]


class StoredWindow:
    """A window that is still on the disk: ``window[channels, start:stop]`` reads that alone.

    Attributes
    ----------
    shape : tuple of int
        (n_chans, n_times)
    """

    def __init__(
        self,
        crops: Callable[[np.ndarray, np.ndarray, int], np.ndarray],
        first_signal: int,
        start: int,
        shape: tuple[int, int],
    ):
        self.crops = crops
        self.first_signal = first_signal
        self.start = start
        self.shape = shape

    def __getitem__(self, key: Any) -> np.ndarray:
        channels, times = key if isinstance(key, tuple) else (key, slice(None))
        start, stop, step = times.indices(self.shape[1])
        signals = self.first_signal + np.arange(self.shape[0])[channels]
        starts = np.full(np.shape(signals), self.start + start)
        crops = self.crops(np.atleast_1d(signals), np.atleast_1d(starts), stop - start)
        return crops[..., ::step].reshape(*np.shape(signals), -1)


@describe.register(StoreWindows)
def _(X: StoreWindows) -> Description:
    return Description(
        X,
        len(X),
        groups=X.subjects,
        sfreqs=Counter({X.sfreq: len(X)}),
        chs_info=X.chs_info,
        shapes=X.shapes,
    )
