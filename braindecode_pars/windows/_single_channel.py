"""Random crops of random channels: what pretraining sees of windows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from braindecode_pars._sampling_rate import is_same_rate
from braindecode_pars.windows._window_set import as_window_set, is_continuous

__all__ = ["SingleChannelWindows"]


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
        ``n_times``; or several of them, one for each corpus. Of a SignalStore only the crops are
        read.
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

    #: Items are signals of one channel, not windows.
    is_single_channel = True

    def __init__(
        self,
        dataset: Dataset | Sequence[Dataset],
        n_times: int | None = None,
        *,
        balance: bool = False,
    ):
        corpora = list(dataset) if isinstance(dataset, (list, tuple)) else [dataset]
        if n_times is not None and (not isinstance(n_times, Integral) or n_times < 1):
            raise ValueError(f"n_times must be a positive number of samples, got {n_times!r}.")
        corpora = _cut(corpora, n_times)
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
            _check_one_rate(corpora)
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
    """A window; a view of it, where the corpus can read less than the whole."""
    if hasattr(corpus, "lazy_window"):
        return corpus.lazy_window(index)
    item = corpus[index]
    return item[0] if isinstance(item, (tuple, list)) else item


def _first_length(corpus: Dataset) -> int:
    return _window_of(corpus, 0).shape[-1]


def _cut(corpora: list[Any], n_times: int | None) -> list[Dataset]:
    """Cut continuous recordings into windows that are as long as a crop."""
    if n_times is None and any(map(is_continuous, corpora)):
        others = [corpus for corpus in corpora if not is_continuous(corpus)]
        if not others:
            raise ValueError(
                f"A {type(corpora[0]).__name__} holds continuous recordings; pass n_times, the "
                "samples of a window."
            )
        n_times = min(_first_length(corpus) for corpus in others)
    return [corpus.windows(n_times) if is_continuous(corpus) else corpus for corpus in corpora]


def _check_one_rate(corpora: list[Dataset]) -> None:
    rates = [as_window_set(corpus).sfreq for corpus in corpora]
    known = [rate for rate in rates if rate is not None]
    if not all(is_same_rate(rate, known[0]) for rate in known):
        found = ", ".join("unknown" if rate is None else f"{rate:g} Hz" for rate in rates)
        raise ValueError(f"The corpora have different sampling rates: {found}; resample them.")
