"""Windows as examples: random crops of single channels, or X, y and groups for scikit-learn."""

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

from braindecode_pars._common.checks import is_same_rate
from braindecode_pars.windows.labels import labels_of
from braindecode_pars.windows.picking import pick_eeg
from braindecode_pars.windows.table import WindowSet, as_window_set, cut_to_train, is_continuous


class SingleChannelWindows(Dataset):
    """Dataset of single-channel crops, one from each window, for pretraining (section 2.5).

    Reading an item draws one channel and one crop of a window at random. An item is a tuple of the
    signal, float32 of shape (n_times,), and 0, because skorch expects a target. The random draws
    use torch's global generator, so reading an item twice gives two different crops. Montages may
    differ between recordings, because an example is one channel.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset | SignalStore | list of these
        One corpus, or a list of corpora. A corpus is a dataset whose items are windows of shape
        (n_chans, n_times), or tuples that begin with a window, as in braindecode's windows
        datasets. A corpus may also be a SignalStore, which is cut into windows of ``n_times``
        samples; only the crops are read from disk. Channels that are marked as bad, and channels
        that are not EEG by their MNE type or their name, are not drawn, and a warning names them.
    n_times : int | None
        Length of a crop in samples. None means the length of the first window; with several
        corpora, the shortest of these lengths. A SignalStore alone needs a number.
    balance : bool
        Whether several corpora give the same number of examples each. If True, each window of the
        largest corpus gives one example per pass, and windows of smaller corpora are repeated.
        Split off validation windows before, because the copies of a window would end up on both
        sides of a later split. If False, each window gives one example.

    Attributes
    ----------
    n_times : int
        Length of a crop in samples.

    Raises
    ------
    ValueError
        When a dataset is empty, when sampling rates differ, when ``n_times`` is not positive or is
        missing for a SignalStore alone, or when ``balance`` is True with one corpus. Also when an
        item is read whose window is shorter than a crop or contains NaN or infinite samples.

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

    #: Marks a dataset whose items are signals of one channel, not windows.
    is_single_channel = True

    def __init__(
        self,
        dataset: Dataset | Sequence[Dataset],
        n_times: int | None = None,
        *,
        balance: bool = False,
    ):
        # Corpora of windows; recordings of a store are cut into windows.
        is_several = isinstance(dataset, (list, tuple)) and not _is_list_of_windows(dataset)
        corpora = list(dataset) if is_several else [dataset]
        if n_times is not None and (not isinstance(n_times, Integral) or n_times < 1):
            raise ValueError(f"n_times must be a positive number of samples, got {n_times!r}.")
        corpora = [_eeg_only(corpus) for corpus in _cut(corpora, n_times)]
        lengths = [len(corpus) for corpus in corpora]
        if not all(lengths):
            which = f"dataset {lengths.index(0)}" if len(lengths) > 1 else "the dataset"
            raise ValueError(f"There are no windows: {which} has length 0.")
        if balance and len(corpora) < 2:
            raise ValueError("balance=True needs several corpora; pass them as a list of datasets.")
        # Windows are numbered through all corpora.
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

    def _window_number(self, index: int) -> int:
        """Return the number of the window from which item ``index`` is drawn."""
        if not self.balance:
            return index
        # Balanced items alternate between the corpora; short corpora start again.
        turn, corpus = divmod(index, len(self._lengths))
        return self._starts[corpus] + turn % self._lengths[corpus]

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """Draw one signal, float32 of shape (n_times,), and return it with the target 0."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"Item {index} was requested; there are {len(self)} items.")
        index = self._window_number(index % len(self))
        window = self._window(index)
        slack = window.shape[-1] - self.n_times
        if slack < 0:
            raise ValueError(
                f"Window {index} has {window.shape[-1]} samples, but a crop has {self.n_times}; "
                "pass the length of the shortest window as n_times."
            )
        # The channel and the start of the crop are random.
        channel = torch.randint(window.shape[0], ()).item()
        start = torch.randint(slack + 1, ()).item()
        crop = window[channel, start : start + self.n_times]
        if isinstance(crop, np.ndarray):
            crop = crop.copy()  # torch accepts neither negative strides nor read-only memory
        signal = torch.as_tensor(crop, dtype=torch.float32)
        if not signal.isfinite().all():
            raise ValueError(
                f"Window {index} contains NaN or infinite samples in channel {channel}; remove or "
                "repair it first."
            )
        return signal, 0


def _window_of(corpus: Dataset, index: int) -> Any:
    """Return a window, or a lazy view of it when the corpus has such views."""
    if hasattr(corpus, "lazy_window"):
        return corpus.lazy_window(index)
    item = corpus[index]
    return item[0] if isinstance(item, (tuple, list)) else item


def _first_length(corpus: Dataset) -> int:
    return _window_of(corpus, 0).shape[-1]


def _is_list_of_windows(items: Sequence[Any]) -> bool:
    """Whether a list has windows, alone or as (window, label, ...), and not datasets of windows."""
    first = items[0] if items else None
    if isinstance(first, (tuple, list)) and first:
        first = first[0]
    return isinstance(first, (np.ndarray, Tensor)) and first.ndim == 2


def _cut(corpora: list[Any], n_times: int | None) -> list[Dataset]:
    """Cut continuous recordings into windows of the length of a crop, without held-out people."""
    if n_times is None and any(map(is_continuous, corpora)):
        others = [corpus for corpus in corpora if not is_continuous(corpus)]
        if not others:
            raise ValueError(
                f"A {type(corpora[0]).__name__} contains continuous recordings; pass n_times, the "
                "number of samples of a window."
            )
        n_times = min(_first_length(corpus) for corpus in others)
    return [cut_to_train(c, n_times) if is_continuous(c) else c for c in corpora]


def _eeg_only(corpus: Dataset) -> Dataset:
    """Return a view without channels that are bad or not EEG, if there are any."""
    if isinstance(corpus, WindowSet):  # its channels are picked already
        return corpus
    windows = as_window_set(corpus)
    picked = pick_eeg(windows)
    has_other_channels = picked.channels is not None and any(
        montage.rows is not None for montage in picked.channels.montages
    )
    return picked if has_other_channels or picked.is_stored else corpus


def _check_one_rate(corpora: list[Dataset]) -> None:
    rates = [as_window_set(corpus).sfreq for corpus in corpora]
    known = [rate for rate in rates if rate is not None]
    if not all(is_same_rate(rate, known[0]) for rate in known):
        found = ", ".join("unknown" if rate is None else f"{rate:g} Hz" for rate in rates)
        raise ValueError(f"The corpora have different sampling rates: {found}; resample them.")


def as_sklearn(windows_ds: Dataset) -> tuple[SliceDataset, np.ndarray, np.ndarray]:
    """Return a braindecode windows dataset as the ``X, y, groups`` of scikit-learn.

    Parameters
    ----------
    windows_ds : BaseConcatDataset | EEGWindowsDataset | WindowsDataset | torch Subset of these
        Windows with targets in their metadata and ``subject`` in their description.

    Returns
    -------
    X : skorch.helper.SliceDataset, shape (n_windows,)
        View of the windows; no signal is read yet. Indexing it with an array gives a smaller view.
        The view keeps the sampling rate, channel names and subjects of its recordings.
    y : ndarray, shape (n_windows,)
        Targets.
    groups : ndarray, shape (n_windows,)
        Subjects.

    Raises
    ------
    TypeError
        When ``windows_ds`` contains continuous recordings, or is not a dataset.
    ValueError
        When targets are missing, when the subject of any window is missing, or when sampling
        rates differ.

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
        n_known = int(windows.known.sum())
        found = "The descriptions of the recordings"
        if n_known:
            found = f"{n_known} windows have a subject, but the recordings of another "
            found += f"{len(windows) - n_known}"
        raise ValueError(
            f"{found} have no entry 'subject', which is needed to hold out subjects; add it with "
            "windows_ds.set_description({'subject': [...]})."
        )
    return SliceDataset(windows_ds), y, windows.groups
