"""Lazy views over braindecode windows: nothing is copied until it is read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from skorch.helper import SliceDataset
from torch import Tensor
from torch.utils.data import Dataset

from braindecode_pars.labels import labels_of
from braindecode_pars.signal_store.store import SignalStore
from braindecode_pars.signal_store.windows import StoreWindows
from braindecode_pars.window_set import as_window_set

__all__ = ["SingleChannelWindows", "as_sklearn"]


class SingleChannelWindows(Dataset):
    """A random channel and a random crop of every window, for pretraining (section 2.5).

    Montages may differ from recording to recording: one example is one channel. Items are tuples
    of a signal, float32 of shape (n_times,), and the 0 that skorch takes for "no target". The
    draws come from torch's global generator, so each reading of an item is another example.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset | SignalStore | list of these
        Any dataset whose items are windows, shape (n_chans, n_times), or tuples that begin with
        one, such as braindecode's windows datasets; a SignalStore, which is cut into windows of
        ``n_times``; or several of them, one for each corpus. Of a SignalStore's windows nothing
        but the crop is read.
    n_times : int | None
        Samples of the crop. None means the length of the first window, in the corpus where that
        is shortest, and is not enough for a SignalStore alone.
    balance : bool
        With several corpora, give as many examples of each, however large they are: every window
        of the largest once, those of the others again and again. Hold windows out before, not
        after, or the repeated ones are on both sides. Otherwise every window is one example.

    Attributes
    ----------
    n_times : int
        Samples of a crop.

    Raises
    ------
    ValueError
        When a dataset is empty, sampling rates differ, ``n_times`` is not positive or is needed
        and not given, and when ``balance`` is asked for with one corpus. On reading an item: when
        its window is shorter than a crop, or holds NaN or infinite samples.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import TensorDataset
    >>> from braindecode_pars.windows import SingleChannelWindows
    >>> windows = TensorDataset(torch.randn(8, 6, 300))
    >>> examples = SingleChannelWindows(windows, n_times=200)
    >>> signal, _ = examples[0]
    >>> len(examples), signal.shape
    (8, torch.Size([200]))
    """

    def __init__(
        self,
        dataset: Dataset | SignalStore | Sequence[Dataset | SignalStore],
        n_times: int | None = None,
        *,
        balance: bool = False,
    ):
        corpora = list(dataset) if isinstance(dataset, (list, tuple)) else [dataset]
        if n_times is not None and (not isinstance(n_times, Integral) or n_times < 1):
            raise ValueError(f"n_times must be a positive number of samples, got {n_times!r}.")
        corpora = _cut_stores(corpora, n_times)
        lengths = [len(corpus) for corpus in corpora]
        if not all(lengths):
            which = f"dataset {lengths.index(0)}" if len(lengths) > 1 else "the dataset"
            raise ValueError(f"There are no windows: {which} has length 0.")
        if balance and len(corpora) < 2:
            raise ValueError(
                "balance=True is for several corpora; give them as a list of datasets."
            )
        self.corpora = corpora
        self.balance = balance
        self._lengths = lengths
        self._starts = [0, *np.cumsum(lengths).tolist()[:-1]]
        if len(corpora) > 1:
            _refuse_several_rates(corpora)
        self.n_times = n_times or min(_first_length(corpus) for corpus in corpora)

    def _window(self, index: int) -> Any:
        corpus = bisect_right(self._starts, index) - 1
        return _window_of(self.corpora[corpus], index - self._starts[corpus])

    def __len__(self) -> int:
        n_corpora = len(self._lengths)
        return n_corpora * max(self._lengths) if self.balance else sum(self._lengths)

    def _place(self, index: int) -> int:
        """Which window item ``index`` is taken from: the corpora take turns where balanced."""
        if not self.balance:
            return index
        turn, corpus = divmod(index, len(self._lengths))
        return self._starts[corpus] + turn % self._lengths[corpus]

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """One signal (n_times,) as float32, and 0."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"Item {index} of {len(self)}.")
        index = self._place(index % len(self))
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


def _window_of(corpus: Dataset, index: int) -> Any:
    """A window, which one of a store is not read for."""
    if isinstance(corpus, StoreWindows):
        return corpus.view(index)
    item = corpus[index]
    return item[0] if isinstance(item, (tuple, list)) else item


def _first_length(corpus: Dataset) -> int:
    return _window_of(corpus, 0).shape[-1]


def _cut_stores(corpora: list[Any], n_times: int | None) -> list[Dataset]:
    """Windows of every corpus; those of a store are as long as a crop."""
    if n_times is None and any(isinstance(corpus, SignalStore) for corpus in corpora):
        others = [corpus for corpus in corpora if not isinstance(corpus, SignalStore)]
        if not others:
            raise ValueError(
                "A SignalStore holds continuous recordings; pass n_times, the samples of a window."
            )
        n_times = min(_first_length(corpus) for corpus in others)
    return [
        corpus.windows(n_times) if isinstance(corpus, SignalStore) else corpus for corpus in corpora
    ]


def _refuse_several_rates(corpora: list[Dataset]) -> None:
    rates = [as_window_set(corpus).sfreq for corpus in corpora]
    if len({rate for rate in rates if rate is not None}) > 1:
        told = ", ".join("unknown" if rate is None else f"{rate:g} Hz" for rate in rates)
        raise ValueError(f"The corpora have different sampling rates: {told}. Resample them first.")


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
    TypeError
        When the dataset holds continuous recordings, or is none at all.
    ValueError
        When targets or subjects are missing, or sampling rates differ.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
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
