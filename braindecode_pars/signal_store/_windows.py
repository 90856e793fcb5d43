"""Windows of the recordings of a store, read when they are indexed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import mne
import numpy as np
import pandas as pd
from torch.utils.data import Dataset

from braindecode_pars._channel_names import is_other_kind
from braindecode_pars.windows._channels import Channels
from braindecode_pars.windows._describe import Description, describe

__all__ = ["StoreWindows", "StoredWindow"]


class StoreWindows(Dataset):
    """Consecutive windows of all recordings of a store; an incomplete last window is dropped.

    Created by :meth:`SignalStore.windows <braindecode_pars.signal_store.SignalStore.windows>`.
    Items are float32 arrays of shape (n_chans, n_times), in volts.

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

    Attributes
    ----------
    shapes : ndarray of int, shape (n_windows, 2)
        Number of channels and samples of each window, known without reading.
    subjects : ndarray of object, shape (n_windows,)
        Subject of each window; None when unknown.

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
        self._counts = counts
        self._stops = np.cumsum(counts)  # number of windows up to and including each recording
        self._n_chans = recordings["ch_names"].map(len).to_numpy()
        self._first_signal = recordings["first_signal"].to_numpy()
        # Subject and shape of each window, from the table and without reading.
        self.subjects = np.repeat(recordings["subject"].to_numpy(dtype=object), counts)
        self.shapes = np.column_stack(
            [np.repeat(self._n_chans, counts), np.full(len(self.subjects), n_times)]
        )

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, i: int) -> np.ndarray:
        return self.lazy_window(i)[:]

    def lazy_window(self, i: int) -> StoredWindow:
        """Return a view of a window. Indexing the view reads only the indexed samples.

        Parameters
        ----------
        i : int
            Number of the window.

        Returns
        -------
        StoredWindow
            View of the window: ``view[channels, start:stop]`` reads samples, float32 in volts.

        Raises
        ------
        IndexError
            When there is no window ``i``.
        """
        if not -len(self) <= i < len(self):
            raise IndexError(f"Window {i} was requested; there are {len(self)} windows.")
        i %= len(self)
        # The recording of the window, and the number of windows before this recording.
        recording = int(np.searchsorted(self._stops, i, side="right"))
        before = self._stops[recording - 1] if recording else 0
        return StoredWindow(
            self.crops,
            int(self._first_signal[recording]),
            int(i - before) * self.n_times,
            (int(self._n_chans[recording]), self.n_times),
        )

    @property
    def channels(self) -> Channels:
        """Channels of each window; a store contains signals of the brain only."""
        infos: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        parts = []
        for names, n_windows in zip(self.recordings["ch_names"], self._counts, strict=True):
            names = tuple(names)
            if names not in infos:
                # Channels of type "eeg" with the name of another signal are not stored. A stored
                # one had another type, such as "seeg", for which the name does not count.
                kinds = ["seeg" if is_other_kind(name) else "eeg" for name in names]
                infos[names] = mne.create_info(list(names), self.sfreq, kinds)["chs"]
            parts.append(Channels.of_recording(n_windows, infos[names]))
        return Channels.join(parts)


class StoredWindow:
    """View of a window on disk: ``window[channels, start:stop]`` reads only these samples.

    Attributes
    ----------
    shape : tuple of int
        Shape of the window, (n_chans, n_times).
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
        # Read the interval without its step, then apply the step.
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
        channels=X.channels,
        shapes=X.shapes,
    )
