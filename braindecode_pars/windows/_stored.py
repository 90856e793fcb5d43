"""Windows of signals on disk: where they lie, so that a batch of them is read in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

__all__ = ["ReadCrops", "StoredBatch", "StoredSignals", "StoredWindow", "WindowLoader"]

#: Reads crops: (numbers of signals, first samples, length) -> float32 (n_signals, length), in volts
ReadCrops = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


@dataclass(frozen=True, eq=False)
class StoredSignals:
    """Position of each window in the signals of a store.

    Attributes
    ----------
    crops : callable
        Function that reads crops of signals, such as ``SignalStore.crops``.
    first_signal : ndarray of int, shape (n_windows,)
        Number of the signal that is the first channel of each window; the others follow.
    start : ndarray of int, shape (n_windows,)
        First sample of each window in its signals.
    """

    crops: ReadCrops
    first_signal: np.ndarray
    start: np.ndarray

    @classmethod
    def join(cls, parts: Sequence[StoredSignals | None]) -> StoredSignals | None:
        """Return the positions of a concatenation of windows; None if not all are of one store."""
        first = parts[0] if parts else None
        if first is None or any(part is None or part.crops != first.crops for part in parts):
            return None
        return cls(
            first.crops,
            np.concatenate([part.first_signal for part in parts]),
            np.concatenate([part.start for part in parts]),
        )

    def take(self, positions: Any) -> StoredSignals:
        """Return the positions of some windows."""
        return replace(self, first_signal=self.first_signal[positions], start=self.start[positions])

    def read(self, positions: np.ndarray, rows: np.ndarray, n_times: int) -> np.ndarray:
        """Read some windows of one length.

        Parameters
        ----------
        positions : ndarray of int, shape (batch,)
            Numbers of windows.
        rows : ndarray of int, shape (n_chans,)
            Channels to read, in this order.
        n_times : int
            Length of the windows in samples.

        Returns
        -------
        ndarray of float32, shape (batch, n_chans, n_times)
            Windows in volts.
        """
        signals = self.first_signal[positions, None] + rows
        starts = np.repeat(self.start[positions], len(rows))
        return self.crops(signals.ravel(), starts, n_times).reshape(*signals.shape, n_times)

    def view(self, i: int, shape: tuple[int, int]) -> StoredWindow:
        """Return a view of window ``i``, of shape (n_chans, n_times)."""
        return StoredWindow(self.crops, int(self.first_signal[i]), int(self.start[i]), shape)


class StoredBatch(list):
    """A list of windows with their labels that were read as one array.

    Parameters
    ----------
    windows : ndarray of float32, shape (batch, n_chans, n_times)
        The windows.
    y : ndarray, shape (batch,)
        Their labels.
    """

    def __init__(self, windows: np.ndarray, y: np.ndarray):
        super().__init__(zip(windows, y, strict=True))
        self.windows = windows
        self.y = y


class WindowLoader(DataLoader):
    """A DataLoader of windows that does not copy batches of a store; for others it is torch's."""

    def __init__(self, dataset: Dataset, **arguments: Any):
        super().__init__(dataset, **{"collate_fn": _collate, **arguments})


def _collate(items: list[tuple[np.ndarray, Any]]) -> list[Tensor]:
    """Return windows and labels as two tensors, as torch's ``default_collate`` does.

    A batch that was read as one array is not copied.
    """
    if isinstance(items, StoredBatch) and items.y.dtype.kind in "iuf":
        return [torch.from_numpy(items.windows), torch.from_numpy(items.y)]
    return default_collate(items)


class StoredWindow:
    """View of a window on disk: ``window[channels, start:stop]`` reads only these samples.

    Attributes
    ----------
    shape : tuple of int
        Shape of the window, (n_chans, n_times).
    """

    def __init__(self, crops: ReadCrops, first_signal: int, start: int, shape: tuple[int, int]):
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
