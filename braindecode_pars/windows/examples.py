"""Torch datasets of windows with labels, and of random crops with one or several channels.

The module also contains :func:`as_sklearn`, which converts a braindecode windows dataset to X, y
and groups for scikit-learn.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from braindecode_pars._common.checks import integer, optional
from braindecode_pars.windows import amplitudes, convert, labels, picking, table


class Examples(torch.utils.data.Dataset):
    """Torch dataset of pairs ``(window, label)``. If the windows have no labels, the label is 0.

    Parameters
    ----------
    windows : Windows
        Windows, with or without labels.
    """

    def __init__(self, windows: table.Windows):
        self.windows = windows
        self.y = np.zeros(len(windows), dtype=int) if windows.y is None else windows.y

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, i: int) -> tuple[np.ndarray, Any]:
        return self.windows[i], self.y[i]

    def __getitems__(self, positions: Sequence[int]) -> list[tuple[Any, Any]]:
        """Return several examples. The DataLoader of torch calls this method to read a batch."""
        return [*zip(self.windows.read(positions), self.y[np.asarray(positions)], strict=True)]


class SingleChannelWindows(torch.utils.data.Dataset):
    """Dataset of random single-channel crops for pretraining (section 2.5 of the paper).

    The dataset has one item per window. Each time an item is read, one channel of the window and
    one crop (a random excerpt of ``n_times`` samples) are drawn at random. Reading an item twice
    therefore gives two different crops; they are drawn with the global random generator of torch.
    An item is a tuple ``(signal, 0)``. The signal is float32 of shape (n_times,); the 0 is a
    placeholder for the target, which skorch expects. Recordings may have different montages,
    because each item contains a single channel.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset | SignalStore | list of these
        One corpus, or a list of corpora. A corpus is a dataset whose items are windows of shape
        (n_chans, n_times), or tuples whose first element is a window, as in the windows datasets of
        braindecode. A corpus may also be a SignalStore (continuous recordings stored on disk),
        which is cut into windows of ``n_times`` samples; only the crops are read from disk. Bad
        channels, and channels that are not EEG according to their MNE channel type or name, are
        excluded with a warning.
    n_times : int | None
        Number of samples per crop. If None, a crop has the length of the first window. With several
        corpora, a crop has the length of the shortest of their first windows. ``n_times`` is
        required if all corpora are SignalStores.

    Attributes
    ----------
    n_times : int
        Number of samples per crop.
    sfreq : float | None
        Sampling rate in Hz. None if unknown.

    Raises
    ------
    ValueError
        If a dataset is empty, if sampling rates differ, if ``n_times`` is not positive, or if
        ``n_times`` is None but required. Reading an item also raises this error if its window is
        shorter than a crop, or contains NaN or infinite samples.

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

    #: Whether the items of the dataset are examples for a pretext task instead of whole windows.
    has_examples = True

    def __init__(
        self,
        dataset: torch.utils.data.Dataset | Sequence[torch.utils.data.Dataset],
        n_times: int | None = None,
    ):
        optional(integer(1)).check("n_times", n_times, type(self).__name__)
        # A list contains either corpora, or windows, or tuples (window, label, ...).
        inputs: list[Any] = [dataset]
        if isinstance(dataset, list | tuple) and dataset:
            first = dataset[0]
            is_window = isinstance(first, list | tuple) or getattr(first, "ndim", 0) == 2
            inputs = inputs if is_window else [*dataset]
        inputs = [x if convert.is_continuous(x) else convert.as_windows(x) for x in inputs]
        known = [corpus for corpus in inputs if isinstance(corpus, table.Windows)]
        lengths = [n_times] if n_times else [windows[:1].shortest() for windows in known]
        corpora, sizes = [], []
        for corpus in inputs:
            # The recordings of a SignalStore are cut into windows with the length of a crop.
            windows = convert.as_windows(corpus, n_times=min(lengths, default=None))
            windows.check_not_empty()
            if not all(montage.is_picked for montage in windows.montages):
                windows = picking.pick_eeg(windows)
                amplitudes.warn_of_amplitudes(windows)
            sizes += [montage.n_chans or len(windows[0]) for montage in windows.montages]
            # The corpora may have different classes.
            unlabeled = windows.table.drop(columns="label", errors="ignore")
            corpora.append(replace(windows, table=unlabeled, label_names=None))
        self.windows = convert.as_windows(corpora) if len(corpora) > 1 else corpora[0]
        self.n_times = min(lengths)
        self.sfreq = self.windows.sfreq
        self._max_chans = max(sizes)

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Draw a crop from a window, and return it with the target 0."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[torch.Tensor, int]]:
        """Draw a crop from each of several windows. Crops of a SignalStore are read in one call."""
        n_times = self.n_times
        drawn: list[tuple[int, int, list[int]]] = []
        crops: list[Any] = []
        for i in (range(len(self))[index] for index in indices):
            n_chans, length = self.windows.stored_shapes[i].tolist()
            samples = None
            if not n_chans:  # the shape of the window is unknown, so the window must be read
                samples = self.windows[i]
                n_chans, length = samples.shape
            if length < n_times:
                raise ValueError(
                    f"Window {i} has only {length} samples, but crops have n_times={n_times} "
                    f"samples. Set n_times to at most {length}."
                )
            channels = self._draw_channels(n_chans)
            start = int(torch.randint(length - n_times + 1, ()))
            drawn.append((i, start, channels))
            crops.append(None if samples is None else samples[channels, start : start + n_times])
        if unread := [place for place, crop in enumerate(crops) if crop is None]:
            n_drawn = [len(drawn[place][2]) for place in unread]
            rows, starts = np.repeat([drawn[place][:2] for place in unread], n_drawn, axis=0).T
            chosen = np.concatenate([drawn[place][2] for place in unread])
            stacked = self.windows.read_crops(rows, chosen, starts, n_times)
            read = np.split(stacked, np.cumsum(n_drawn)[:-1])
            for place, crop in zip(unread, read, strict=True):
                crops[place] = crop
        return [
            (self._example(crop, channels, self.windows.montage_of(i)), 0)
            for (i, _, channels), crop in zip(drawn, crops, strict=True)
        ]

    def _draw_channels(self, n_chans: int) -> list[int]:
        """Draw the channels of a crop, as indices of the channels of the window."""
        return [int(torch.randint(n_chans, ()))]

    def _example(self, crop: np.ndarray, channels: list[int], montage: table.Montage) -> Any:
        """Convert a crop of the drawn channels, shape (n_drawn, n_times), to an example."""
        return torch.from_numpy(np.array(crop[0]))


#: Minimum number of channels per crop, if the window has at least as many channels.
MIN_CHANNELS = 8
#: Maximum number of channels per crop.
MAX_CHANNELS = 32


class AllChannelWindows(SingleChannelWindows):
    """Dataset of random multi-channel crops for pretraining.

    The dataset has one item per window. Each time an item is read, one crop (a random excerpt of
    ``n_times`` samples) of the window is drawn, together with a random subset of its channels in
    random order. The subset contains 8 to 32 channels, or all channels if the window has fewer than
    8. An item is a tuple ``(dict, 0)``; the 0 is a placeholder for the target, which skorch
    expects. The dict contains

    - ``x``, float32 of shape (n_chans, n_times): the signals;
    - ``positions``, float32 of shape (n_chans, 3): the electrode positions in meters in the head
      coordinate frame of MNE, NaN if unknown;
    - ``keep``, bool of shape (n_chans,): True for drawn channels, False for rows that are padded
      with zeros.

    Recordings may have different montages. All items have the same number of rows: the number of
    channels of the largest montage, but at most 32.

    Parameters
    ----------
    dataset, n_times
        As in :class:`SingleChannelWindows`.

    Attributes
    ----------
    n_chans : int
        Number of channels (rows) of an item, including rows that are padded with zeros.
    n_times, sfreq
        As in :class:`SingleChannelWindows`.

    Raises
    ------
    ValueError
        As in :class:`SingleChannelWindows`.

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
        self.n_chans = min(self._max_chans, MAX_CHANNELS)

    def _draw_channels(self, n_chans: int) -> list[int]:
        maximum = min(n_chans, self.n_chans)
        n_drawn = int(torch.randint(min(MIN_CHANNELS, maximum), maximum + 1, ()))
        return torch.randperm(n_chans)[:n_drawn].tolist()

    def _example(self, crop: np.ndarray, channels: list[int], montage: table.Montage) -> Any:
        x = torch.zeros(self.n_chans, self.n_times)
        positions = torch.full((self.n_chans, 3), torch.nan)
        x[: len(crop)] = torch.from_numpy(np.array(crop))
        if montage.positions is not None:
            positions[: len(crop)] = torch.from_numpy(montage.positions[channels])
        return {"x": x, "positions": positions, "keep": torch.arange(self.n_chans) < len(crop)}


def as_sklearn(
    windows_ds: torch.utils.data.Dataset,
) -> tuple[table.Windows, np.ndarray, np.ndarray]:
    """Convert a braindecode windows dataset to ``X, y, groups`` for scikit-learn.

    Parameters
    ----------
    windows_ds : BaseConcatDataset | EEGWindowsDataset | WindowsDataset | torch Subset of these
        Windows dataset with targets in its metadata, and with ``subject`` in the description of
        every recording.

    Returns
    -------
    X : Windows, shape (n_windows, n_chans, n_times)
        Windows, whose samples are read on access. Indexing with a slice, a boolean mask or an array
        of integers returns a subset of the windows. Indexing with an integer returns the samples of
        one window. The sampling rate, channel names and subjects of the recordings are included.
    y : ndarray, shape (n_windows,)
        Target of each window.
    groups : ndarray, shape (n_windows,)
        Subject of each window.

    Raises
    ------
    TypeError
        If ``windows_ds`` contains continuous recordings, or is not a dataset.
    ValueError
        If targets are missing, if the subject of any window is missing, or if recordings have
        different sampling rates.

    Notes
    -----
    Samples have the unit of the dataset, which is volts for MNE recordings. The estimators of this
    package scale the samples internally. Other networks, such as ``EEGClassifier("EEGNet")``,
    require microvolts: pass ``1e6 * np.asarray(X)``. With signals in volts, such networks perform
    at chance level.

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
            f"The subject of {n_unknown} of {len(windows)} windows is unknown, because the "
            "description of the recording has no entry 'subject'. Add the subject of every "
            "recording with windows_ds.set_description({'subject': [...]})."
        )
    return windows, y.copy(), windows.groups.copy()
