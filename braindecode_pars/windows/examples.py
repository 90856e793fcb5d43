"""Windows as examples for torch: with their labels, or as random crops of one or all channels.

Also the windows of a dataset as the X, y and groups of scikit-learn.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from braindecode_pars._common.channel_names import electrode_positions
from braindecode_pars._common.checks import check_parameters, check_same_rate, integer, optional
from braindecode_pars.windows import amplitudes, convert, labels, picking, table


class Examples(torch.utils.data.Dataset):
    """Windows with their labels, ``(window, label)``; the label is 0 where there are none.

    Parameters
    ----------
    windows : Windows
        The windows.
    """

    def __init__(self, windows: table.Windows):
        self.windows = windows
        self.y = np.zeros(len(windows), dtype=int) if windows.y is None else windows.y

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, i: int) -> tuple[np.ndarray, Any]:
        return self.windows[i], self.y[i]

    def __getitems__(self, positions: Sequence[int]) -> list[tuple[Any, Any]]:
        """Return several examples; torch's DataLoader reads a batch with it."""
        return Batch(self.windows.read(positions), self.y[np.asarray(positions)])


class Batch(list):
    """A list of examples; windows that were read as one array are kept as one."""

    def __init__(self, windows: np.ndarray | list[np.ndarray], y: np.ndarray):
        super().__init__(zip(windows, y, strict=True))
        self.windows = windows
        self.y = y


def _collate(items: list[tuple[np.ndarray, Any]]) -> list[torch.Tensor]:
    """Return windows and labels as two tensors, as torch's ``default_collate`` does."""
    match items:
        case Batch(windows=np.ndarray() as windows, y=y) if y.dtype.kind in "iuf":
            return [torch.from_numpy(windows), torch.from_numpy(y)]
    return torch.utils.data.default_collate(items)


class WindowLoader(torch.utils.data.DataLoader):
    """A DataLoader that does not copy batches that were read as one array."""

    def __init__(self, dataset: torch.utils.data.Dataset, **arguments: Any):
        super().__init__(dataset, **{"collate_fn": _collate, **arguments})


class SingleChannelWindows(torch.utils.data.Dataset):
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

    Attributes
    ----------
    n_times : int
        Length of a crop in samples.
    sfreq : float | None
        Sampling rate in Hz; None when unknown.

    Raises
    ------
    ValueError
        When a dataset is empty, when sampling rates differ, or when ``n_times`` is not positive or
        is missing for a SignalStore alone. Also when an item is read whose window is shorter than a
        crop or contains NaN or infinite samples.

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

    #: Marks a dataset whose items are examples of a pretext task, not windows.
    has_examples = True

    def __init__(
        self,
        dataset: torch.utils.data.Dataset | Sequence[torch.utils.data.Dataset],
        n_times: int | None = None,
    ):
        check_parameters({"n_times": n_times}, {"n_times": optional(integer(1))}, "Crops")
        # A list has corpora, or windows, alone or as (window, label, ...).
        inputs: list[Any] = [dataset]
        if isinstance(dataset, list | tuple) and dataset:
            item = dataset[0]
            item = item[0] if isinstance(item, list | tuple) and item else item
            is_window = isinstance(item, np.ndarray | torch.Tensor) and item.ndim == 2
            inputs = inputs if is_window else [*dataset]
        # Recordings of a store are cut into windows of the length of a crop.
        inputs = [
            corpus if convert.is_continuous(corpus) else convert.as_windows(corpus)
            for corpus in inputs
        ]
        known = [corpus for corpus in inputs if isinstance(corpus, table.Windows)]
        lengths = [n_times] if n_times else [windows[:1].shortest() for windows in known]
        corpora = [
            convert.as_windows(corpus, n_times=min(lengths, default=None)) for corpus in inputs
        ]
        rates = [corpus.sfreq for corpus in corpora if corpus.sfreq is not None]
        for rate in rates:
            check_same_rate(rate, rates[0], "A corpus is", "another one")
        self.corpora = []
        for corpus in corpora:
            corpus.check_not_empty()
            is_picked = all(montage.is_picked for montage in corpus.montages)
            self.corpora.append(corpus if is_picked else picking.pick_eeg(corpus))
            if not is_picked:
                amplitudes.warn_of_amplitudes(self.corpora[-1])
        self.n_times = min(lengths)
        self.sfreq = rates[0] if rates else None
        self._starts = [0, *np.cumsum([len(corpus) for corpus in corpora]).tolist()]

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Draw one signal, float32 of shape (n_times,), and return it with the target 0."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[torch.Tensor, int]]:
        """Draw one signal for each index; crops of a store are read in one call."""
        drawn: list[Any] = [None] * len(indices)
        unread: dict[int, list[tuple[int, ...]]] = {}
        for place, index in enumerate(indices):
            index = range(len(self))[index]
            corpus = bisect_right(self._starts, index) - 1
            i = index - self._starts[corpus]
            windows = self.corpora[corpus]
            samples = None
            if windows.shapes is None:  # a window of unknown shape is read to draw from it
                samples = windows[i]
                n_chans, length = samples.shape
            else:
                n_chans, length = windows.shapes[i].tolist()
            if length < self.n_times:
                raise ValueError(
                    f"Window {i} has {length} samples, a crop {self.n_times}; use a lower n_times."
                )
            channels = self._draw_channels(n_chans)
            start = int(torch.randint(length - self.n_times + 1, ()))
            crop = None
            if samples is None:
                of_crop = [(place, i, channel, start) for channel in channels]
                unread.setdefault(corpus, []).extend(of_crop)
            else:
                crop = samples[channels, start : start + self.n_times]
            drawn[place] = crop, channels, windows.montage_of(i)
        for corpus, rows_of in unread.items():
            places, rows, chosen, starts = np.array(rows_of).T
            crops = self.corpora[corpus].read_crops(rows, chosen, starts, self.n_times)
            ends = np.flatnonzero(np.diff(places)) + 1
            for place, crop in zip(
                dict.fromkeys(places.tolist()), np.split(crops, ends), strict=True
            ):
                drawn[place] = crop, *drawn[place][1:]
        return [(self._example(*parts), 0) for parts in drawn]

    def _draw_channels(self, n_chans: int) -> list[int]:
        """Draw the channels of a crop."""
        return [int(torch.randint(n_chans, ()))]

    def _example(self, crop: np.ndarray, channels: list[int], montage: table.Montage) -> Any:
        """Return an example of a crop, float32 (n_drawn, n_times)."""
        return torch.from_numpy(np.array(crop[0]))


#: Fewest channels that are drawn of a window that has more, and the most.
FEWEST, MOST = 8, 32


class AllChannelWindows(SingleChannelWindows):
    """Dataset of crops of several channels, one from each window, for pretraining.

    Reading an item draws one crop of a window, and a random part of its channels: 8 or more, in
    random order. An item is a dict and 0. The dict has the signals, ``x``, float32 of shape
    (n_chans, n_times), the positions of their electrodes in meters in the head frame, ``positions``
    of shape (n_chans, 3), NaN where unknown, and ``keep``, bool of shape (n_chans,). Montages may
    differ: all examples have as many channels as the largest montage, at most 32, and ``keep`` is
    False for those that are missing, whose signal is zero.

    Parameters
    ----------
    dataset, n_times
        As in :class:`SingleChannelWindows`.

    Attributes
    ----------
    n_chans : int
        Number of channels of an example, missing ones included.
    n_times, sfreq
        As in :class:`SingleChannelWindows`.

    Raises
    ------
    ValueError
        As :class:`SingleChannelWindows`.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.windows import AllChannelWindows
    >>> examples = AllChannelWindows(datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2))
    >>> example, _ = examples[0]
    >>> {name: tuple(part.shape) for name, part in example.items()}
    {'x': (2, 3000), 'positions': (2, 3), 'keep': (2,)}
    """

    def __init__(
        self,
        dataset: torch.utils.data.Dataset | Sequence[torch.utils.data.Dataset],
        n_times: int | None = None,
    ):
        super().__init__(dataset, n_times)
        sizes = [
            montage.n_chans or len(corpus[0])
            for corpus in self.corpora
            for montage in corpus.montages
        ]
        self.n_chans = min(max(sizes), MOST)
        # One entry per montage. The corpora refer to the montages, so that no id() is reused.
        self._positions: dict[int, np.ndarray] = {
            id(montage): electrode_positions(montage.chs_info)
            for corpus in self.corpora
            for montage in corpus.montages
            if montage.chs_info
        }

    def _draw_channels(self, n_chans: int) -> list[int]:
        most = min(n_chans, self.n_chans)
        n_drawn = int(torch.randint(min(FEWEST, most), most + 1, ()))
        return torch.randperm(n_chans)[:n_drawn].tolist()

    def _example(self, crop: np.ndarray, channels: list[int], montage: table.Montage) -> Any:
        x, positions = (
            torch.zeros(self.n_chans, self.n_times),
            torch.full((self.n_chans, 3), torch.nan),
        )
        x[: len(crop)] = torch.from_numpy(np.array(crop))
        known = self._positions.get(id(montage))
        if known is not None:
            positions[: len(crop)] = torch.from_numpy(known[channels])
        return {"x": x, "positions": positions, "keep": torch.arange(self.n_chans) < len(crop)}


def as_sklearn(
    windows_ds: torch.utils.data.Dataset,
) -> tuple[table.Windows, np.ndarray, np.ndarray]:
    """Return a braindecode windows dataset as the ``X, y, groups`` of scikit-learn.

    Parameters
    ----------
    windows_ds : BaseConcatDataset | EEGWindowsDataset | WindowsDataset | torch Subset of these
        Windows with targets in their metadata and ``subject`` in their description.

    Returns
    -------
    X : Windows, shape (n_windows, n_chans, n_times)
        The windows; no signal is read yet. A slice, a mask or an array of numbers gives fewer
        windows, and one number the samples of a window. Sampling rate, channel names and subjects
        of the recordings are kept.
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

    Notes
    -----
    Samples have the unit of the dataset, which is volts in MNE. The estimators of this package
    scale them; a plain network, such as ``EEGClassifier("EEGNet")``, needs microvolts,
    ``1e6 * np.asarray(X)``, and is at chance in volts.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> X, y, groups = as_sklearn(windows)
    >>> X.shape, y.shape, sorted(set(groups.tolist()))
    ((24, 2, 3000), (24,), [1, 2])
    """
    windows = convert.as_windows(windows_ds)
    y = labels.labels_of(windows)
    if windows.groups is None:
        n_unknown = (~windows.has_subject).sum()
        raise ValueError(
            f"The recordings of {n_unknown} of {len(windows)} windows have no entry 'subject', "
            "which is needed to hold out subjects; add it with "
            "windows_ds.set_description({'subject': [...]})."
        )
    return windows, y.copy(), windows.groups.copy()
