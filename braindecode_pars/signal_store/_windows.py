"""Windows of the recordings of a store, read when they are indexed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import mne
import numpy as np
import pandas as pd
from torch.utils.data import Dataset

from braindecode_pars._channel_names import is_other_kind
from braindecode_pars.preprocessing import Preprocessing
from braindecode_pars.windows._channels import Channels
from braindecode_pars.windows._describe import Description, describe
from braindecode_pars.windows._stored import ReadCrops, StoredSignals, StoredWindow

__all__ = ["StoreWindows", "info_of"]


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
    preprocessings : sequence of Preprocessing | None
        Preprocessing of each recording; None if unknown.

    Attributes
    ----------
    shapes : ndarray of int, shape (n_windows, 2)
        Number of channels and samples of each window, known without reading.
    subjects : ndarray of object, shape (n_windows,)
        Subject of each window; None when unknown.
    splits : ndarray of object, shape (n_windows,)
        Split of each window, such as "train"; None where the recording has none.

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
        crops: ReadCrops,
        sfreq: float,
        n_times: int,
        preprocessings: Sequence[Preprocessing] | None = None,
    ):
        counts = recordings["n_times"].to_numpy() // n_times
        self.recordings = recordings
        self.sfreq = sfreq
        self._counts = counts
        # Subject, split, shape and position of each window, from the table and without reading.
        self.subjects = np.repeat(recordings["subject"].to_numpy(dtype=object), counts)
        self.splits = np.repeat(recordings["split"].to_numpy(dtype=object), counts)
        n_chans = np.repeat(recordings["ch_names"].map(len).to_numpy(), counts)
        self.shapes = np.column_stack([n_chans, np.full(len(n_chans), n_times)])
        before = np.repeat(np.cumsum(counts) - counts, counts)  # windows of earlier recordings
        first_signal = np.repeat(recordings["first_signal"].to_numpy(), counts)
        starts = (np.arange(len(before)) - before) * n_times
        self.stored = StoredSignals(crops, first_signal, starts)
        prepared = np.full(len(counts), None, object)
        if preprocessings is not None:
            prepared[:] = preprocessings
        self.preprocessings = np.repeat(prepared, counts)

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
        return self.stored.view(i, tuple(self.shapes[i].tolist()))

    @property
    def channels(self) -> Channels:
        """Channels of each window; a store contains signals of the brain only."""
        infos: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        parts = []
        for names, n_windows in zip(self.recordings["ch_names"], self._counts, strict=True):
            names = tuple(names)
            if names not in infos:
                infos[names] = info_of(names, self.sfreq)["chs"]
            parts.append(Channels.of_recording(n_windows, infos[names]))
        return Channels.join(parts)


def info_of(ch_names: Sequence[str], sfreq: float) -> mne.Info:
    """Return the measurement info of stored channels.

    Channels of type "eeg" with the name of another signal are not stored. A stored one had another
    type, such as "seeg", for which the name does not count.
    """
    kinds = ["seeg" if is_other_kind(name) else "eeg" for name in ch_names]
    return mne.create_info(list(ch_names), sfreq, kinds)


@describe.register(StoreWindows)
def _(X: StoreWindows) -> Description:
    return Description(
        X,
        len(X),
        groups=X.subjects,
        sfreqs=Counter({X.sfreq: len(X)}),
        channels=X.channels,
        preprocessings=X.preprocessings,
        shapes=X.shapes,
        splits=X.splits if any(split is not None for split in X.splits) else None,
        stored=X.stored,
    )
