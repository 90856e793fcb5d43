"""Lazy views over braindecode windows: nothing is copied until it is read."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import torch
from skorch.helper import SliceDataset
from torch import Tensor
from torch.utils.data import Dataset

from braindecode_pars.labels import labels_of
from braindecode_pars.window_set import as_window_set

__all__ = ["SingleChannelWindows", "as_sklearn"]


class SingleChannelWindows(Dataset):
    """A random channel and a random crop of every window, for pretraining (section 2.5).

    Montages may differ from recording to recording: one example is one channel.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Any dataset whose items are windows, shape (n_chans, n_times), or tuples that begin with
        one, such as braindecode's windows datasets.
    n_times : int | None
        Samples of the crop. None means the length of the first window.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import TensorDataset
    >>> from braindecode_pars.windows import SingleChannelWindows
    >>> signal, _ = SingleChannelWindows(TensorDataset(torch.randn(8, 6, 300)), n_times=200)[0]
    >>> signal.shape
    torch.Size([200])
    """

    def __init__(self, dataset: Dataset, n_times: int | None = None):
        if len(dataset) == 0:
            raise ValueError("There are no windows: the dataset has length 0.")
        if n_times is not None and (not isinstance(n_times, Integral) or n_times < 1):
            raise ValueError(f"n_times must be a positive number of samples, got {n_times!r}.")
        self.dataset = dataset
        self.n_times = n_times if n_times is not None else self._window(0).shape[-1]

    def _window(self, index: int) -> Any:
        item = self.dataset[index]
        return item[0] if isinstance(item, (tuple, list)) else item

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """One signal (n_times,) as float32, and the 0 that skorch takes for "no target".

        The draws come from torch's global generator.
        """
        window = self._window(index)
        slack = window.shape[-1] - self.n_times
        if slack < 0:
            raise ValueError(
                f"Window {index} has {window.shape[-1]} samples, crops of {self.n_times} were "
                "asked for; pass the shortest window's length as n_times."
            )
        channel = torch.randint(window.shape[0], ()).item()
        start = torch.randint(slack + 1, ()).item()
        crop = window[channel, start : start + self.n_times]
        if isinstance(crop, np.ndarray):
            crop = crop.copy()  # torch takes neither negative strides nor read-only memory
        signal = torch.as_tensor(crop, dtype=torch.float32)
        if not signal.isfinite().all():
            raise ValueError(
                f"Window {index} holds NaN or infinite samples in channel {channel}; drop or "
                "repair it first."
            )
        return signal, 0


def as_sklearn(windows_ds: Dataset) -> tuple[SliceDataset, np.ndarray, np.ndarray]:
    """View a braindecode windows dataset as the ``X, y, groups`` of scikit-learn.

    Parameters
    ----------
    windows_ds : BaseConcatDataset | EEGWindowsDataset | WindowsDataset | torch Subset of these
        Windows with targets in their metadata and ``subject`` in their description.

    Returns
    -------
    X : skorch.helper.SliceDataset, shape (n_windows,)
        Indexing it with an array gives a smaller view. It keeps the recordings behind it, and
        with them sampling rate, channel names and subjects.
    y : ndarray, shape (n_windows,)
        Targets.
    groups : ndarray, shape (n_windows,)
        Subjects.

    Raises
    ------
    ValueError
        When targets or subjects are missing.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2, sfreq=100)
    >>> X, y, groups = as_sklearn(windows)
    >>> X.shape, y.shape, sorted(set(groups.tolist()))
    ((24,), (24,), [1, 2])
    """
    windows = as_window_set(windows_ds)
    y = labels_of(windows)
    if windows.groups is None:
        raise ValueError(
            "The recordings' descriptions have no entry 'subject'; add it with "
            "windows_ds.set_description({'subject': [...]}) so that people can be held out."
        )
    return SliceDataset(windows_ds), y, windows.groups
