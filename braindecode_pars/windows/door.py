"""What is known of windows without reading signals: one short function for each type of source.

Windows of signals on disk know where they lie, so that a batch of them is read in one call.
Channels and names of labels are those in the records of braindecode and MNE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any

import mne
import numpy as np
import pandas as pd
import torch
from braindecode.datasets import EEGWindowsDataset, RawDataset, WindowsDataset
from skorch.helper import SliceDataset
from torch import Tensor
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, default_collate

from braindecode_pars._common.checks import warn_user
from braindecode_pars.recordings.preprocessing import Preprocessing, recorded

ACCEPTED = (
    "a braindecode windows dataset, as_sklearn's X, a list of windows, an mne.Epochs, an array of "
    "shape (n_windows, n_chans, n_times) or a SignalStore's windows(n_times)"
)


@dataclass(frozen=True)
class Description:
    """Metadata of windows; None where unknown.

    Attributes
    ----------
    source : Any
        The windows: ``source[i]`` is window ``i``, or a tuple that begins with it.
    n_windows : int
        Number of windows.
    y, groups, corpora, splits : ndarray, shape (n_windows,) | None
        Labels, subjects, corpora, and the split of each window, such as "train".
    sfreqs : Counter of float
        Sampling rates in Hz, with the number of recordings of each.
    channels : Channels | None
        Channels of each window.
    preprocessings : ndarray of Preprocessing, shape (n_windows,) | None
        Preprocessing of each window's recording, None where unknown.
    shapes : ndarray of int, shape (n_windows, 2) | None
        Number of channels and samples of each window. It is given only when all samples are known
        to be finite.
    stored : StoredSignals | None
        Position of each window in the signals of a store, if all are of one store. ``shapes`` and
        ``channels`` are then given too.
    labels_by_name : mapping of str to label | None
        Label of each name of a class.
    """

    source: Any
    n_windows: int
    y: np.ndarray | None = None
    groups: np.ndarray | None = None
    corpora: np.ndarray | None = None
    sfreqs: Counter = field(default_factory=Counter)
    channels: Channels | None = None
    preprocessings: np.ndarray | None = None
    shapes: np.ndarray | None = None
    splits: np.ndarray | None = None
    stored: StoredSignals | None = None
    labels_by_name: Mapping[str, Any] | None = None


@singledispatch
def describe(X: Any) -> Description:
    """Return the metadata of windows. Other sources are added with ``describe.register``.

    Parameters
    ----------
    X : Any
        Source of windows.

    Returns
    -------
    Description
        Metadata of all windows of the source.

    Raises
    ------
    TypeError
        When the type of ``X`` is not supported.
    ValueError
        When the type is supported, but the content of ``X`` is not.
    """
    raise TypeError(f"X is a {type(X).__name__}; it must be {ACCEPTED}.")


# A str is a Sequence too, but never a list of windows.
describe.register(str, describe.dispatch(object))


@describe.register(np.ndarray)
@describe.register(torch.Tensor)
def _(X: np.ndarray | torch.Tensor) -> Description:
    if X.ndim != 3:
        raise ValueError(
            f"X has shape {tuple(X.shape)}; windows have shape (n_windows, n_chans, n_times)."
        )
    X = plain_array(X)
    if X.dtype.kind not in "iuf":
        raise ValueError(f"X has dtype {X.dtype}; EEG samples must be real numbers.")
    return Description(X, len(X))


@describe.register(mne.BaseEpochs)
def _(X: mne.BaseEpochs) -> Description:
    if not X.preload:
        X = X.copy().load_data()  # a copy, so that the Epochs of the user are not changed
    metadata = {} if X.metadata is None else X.metadata
    return Description(
        X.get_data(copy=False),
        len(X),
        y=X.events[:, 2],
        groups=metadata["subject"].to_numpy() if "subject" in metadata else None,
        splits=metadata["split"].to_numpy() if "split" in metadata else None,
        sfreqs=Counter([float(X.info["sfreq"])]),
        channels=Channels.of_recording(len(X), X.info["chs"], X.info["bads"]),
        preprocessings=_repeated(_recorded_of_epochs(X), len(X)),
        labels_by_name=X.event_id,
    )


def _recorded_of_epochs(X: mne.BaseEpochs) -> Preprocessing:
    seconds = len(X.times) / float(X.info["sfreq"])
    return replace(recorded(X.info), window_seconds=seconds)


@describe.register(Sequence)
def _(X: Sequence) -> Description:
    if len(X) == 0:
        return Description(X, 0)
    # The first item shows which kind of list it is.
    first = X[0]
    if isinstance(first, mne.BaseEpochs):
        return _describe_single_epochs(X)
    if isinstance(first, Dataset):
        raise ValueError(
            f"X is a list of {type(first).__name__}; join them with braindecode's "
            "BaseConcatDataset([...])."
        )
    # Tuples (window, label, ...), as braindecode's datasets return them.
    if isinstance(first, (tuple, list)) and len(first) > 1 and np.ndim(first[0]) == 2:
        for i, item in enumerate(X):
            if not isinstance(item, (tuple, list)) or len(item) != len(first):
                raise ValueError(
                    f"Item {i} of X is a {type(item).__name__}, item 0 is a tuple of {len(first)}; "
                    "all items must have the same type and length."
                )
        return Description(X, len(X), y=as_column([item[1] for item in X]))
    if np.ndim(first) != 2 and not (isinstance(first, tuple) and np.ndim(first[0]) == 2):
        raise ValueError(
            f"X is a list whose first item has shape {np.shape(first)}; its items must be windows "
            "of shape (n_chans, n_times), or tuples that begin with a window."
        )
    return Description(X, len(X))


def _describe_single_epochs(items: Sequence) -> Description:
    """Describe a list of one-window mne.Epochs, as scikit-learn makes by indexing an Epochs."""
    for i, item in enumerate(items):
        if not isinstance(item, mne.BaseEpochs) or len(item) != 1:
            found = f"an Epochs of {len(item)} windows" if hasattr(item, "events") else repr(item)
            raise ValueError(
                f"Item {i} is {found}; each Epochs in a list must have one window. Join longer "
                "ones with mne.concatenate_epochs."
            )
    return _join(items, [describe(item) for item in items])


@describe.register(Dataset)
def _(X: Dataset) -> Description:
    try:
        return Description(X, len(X))
    except TypeError:
        raise TypeError(
            f"X is a {type(X).__name__} without a length; it must be {ACCEPTED}."
        ) from None


@describe.register(SliceDataset)
def _(X: SliceDataset) -> Description:
    return _select(X, describe(X.dataset), X.indices_)


@describe.register(Subset)
def _(X: Subset) -> Description:
    return _select(X, describe(X.dataset), X.indices)


@describe.register(ConcatDataset)
def _(X: ConcatDataset) -> Description:
    joined = _join(X, [describe(part) for part in X.datasets])
    # braindecode applies a target_transform when it reads a window; here it is applied to labels.
    target_transform = getattr(X, "target_transform", None)
    if target_transform is None or joined.y is None:
        return joined
    y = as_column([target_transform(label) for label in joined.y])
    return replace(joined, y=y, labels_by_name=None)


@describe.register(EEGWindowsDataset)
@describe.register(WindowsDataset)
def _(X: EEGWindowsDataset | WindowsDataset) -> Description:
    return describe_recording(X, (X.raw if isinstance(X, EEGWindowsDataset) else X.windows).info)


def describe_recording(
    X: EEGWindowsDataset | WindowsDataset,
    info: mne.Info,
    preprocessing: Preprocessing | None = None,
) -> Description:
    """Describe the windows of a recording with these channels and this preprocessing.

    Without ``preprocessing``, it is read from the records of MNE and braindecode.
    """
    n_times = _length_of(X)
    if preprocessing is None:
        preprocessing = _recorded_of(X, info)
    if n_times is not None:
        seconds = n_times / float(info["sfreq"])
        preprocessing = replace(preprocessing, window_seconds=seconds)
    chs_info = info["chs"]
    has_target_channels = X.targets_from != "metadata"
    if has_target_channels:
        # braindecode takes targets from channels of type "misc"; they are not signals.
        misc = mne.io.constants.FIFF.FIFFV_MISC_CH
        chs_info = [ch for ch in chs_info if ch["kind"] != misc]
    description = {} if X.description is None else X.description
    subject, corpus, split = map(description.get, ("subject", "corpus", "split"))
    return Description(
        X,
        len(X),
        y=None if has_target_channels else as_column(X.y),
        groups=None if subject is None else np.full(len(X), subject),
        corpora=None if pd.isna(corpus) else np.full(len(X), str(corpus), object),
        splits=None if split is None else np.full(len(X), split, object),
        sfreqs=Counter([float(info["sfreq"])]),
        channels=Channels.of_recording(len(X), chs_info, info["bads"]),
        preprocessings=_repeated(preprocessing, len(X)),
        labels_by_name=None if has_target_channels else labels_by_name(X),
    )


def _recorded_of(X: EEGWindowsDataset | WindowsDataset, info: mne.Info) -> Preprocessing:
    """Read the preprocessing of the windows of a recording from their records."""
    steps = [
        *(getattr(X, "raw_preproc_kwargs", None) or ()),
        *(getattr(X, "window_preproc_kwargs", None) or ()),
        # A function that changes windows when they are read: its effect is unknown.
        *([{"fn": "the dataset.transform"}] if X.transform is not None else ()),
    ]
    return recorded(info, steps)


def _length_of(X: EEGWindowsDataset | WindowsDataset) -> int | None:
    """Return the length of the windows in samples; None if it differs."""
    if isinstance(X, WindowsDataset):
        return len(X.windows.times)
    lengths = np.unique(np.diff(np.asarray(X.crop_inds)[:, 1:], axis=1))
    return int(lengths[0]) if len(lengths) == 1 else None


def _repeated(preprocessing: Preprocessing, n_windows: int) -> np.ndarray:
    return np.full(n_windows, preprocessing, object)


@describe.register(RawDataset)
def _(X: RawDataset) -> Description:
    raise TypeError(
        "The dataset contains continuous recordings; cut them into windows first, for example "
        "with braindecode.preprocessing.create_fixed_length_windows."
    )


def _select(source: Any, whole: Description, indices: Any) -> Description:
    """Describe a subset of a source."""
    indices = np.asarray(indices)
    if len(indices) and not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(
            f"The subset has {indices.dtype} indices; they must be integers. For a boolean mask, "
            "use np.flatnonzero(mask)."
        )
    indices = indices.astype(int)
    return replace(
        whole,
        source=source,
        n_windows=len(indices),
        y=None if whole.y is None else whole.y[indices],
        groups=None if whole.groups is None else whole.groups[indices],
        corpora=None if whole.corpora is None else whole.corpora[indices],
        splits=None if whole.splits is None else whole.splits[indices],
        channels=None if whole.channels is None else whole.channels.take(indices),
        preprocessings=None if whole.preprocessings is None else whole.preprocessings[indices],
        shapes=None if whole.shapes is None else whole.shapes[indices],
        stored=None if whole.stored is None else whole.stored.take(indices),
    )


def _join(source: Any, parts: list[Description]) -> Description:
    """Describe a concatenation of sources."""
    shapes = [part.shapes for part in parts]
    return Description(
        source,
        sum(part.n_windows for part in parts),
        y=_join_columns(parts, "y"),
        groups=_join_columns(parts, "groups"),
        corpora=_join_columns(parts, "corpora"),
        splits=_join_columns(parts, "splits"),
        sfreqs=sum((part.sfreqs for part in parts), Counter()),
        channels=_join_channels(parts),
        preprocessings=_join_columns(parts, "preprocessings"),
        shapes=None if any(known is None for known in shapes) else np.concatenate(shapes),
        stored=StoredSignals.join([part.stored for part in parts]),
        labels_by_name=joined_labels_by_name(part.labels_by_name for part in parts),
    )


def _join_columns(parts: list[Description], name: str) -> np.ndarray | None:
    """Join labels, subjects and the like; windows of a part without them get None."""
    columns = [getattr(part, name) for part in parts]
    if all(column is None for column in columns):
        return None
    known = [
        np.full(part.n_windows, None, object) if column is None else column
        for part, column in zip(parts, columns, strict=True)
    ]
    if len({column.dtype.kind for column in known}) > 1:
        # NumPy would convert numbers to strings, so subject 1 would become subject "1".
        known = [column.astype(object) for column in known]
    return np.concatenate(known)


def _join_channels(parts: list[Description]) -> Channels | None:
    """Join channels; those of a part without names are unknown."""
    if all(part.channels is None for part in parts):
        return None
    return Channels.join([part.channels or Channels.of_recording(part.n_windows) for part in parts])


def plain_array(values: Any) -> np.ndarray:
    """Convert a tensor, masked array or list to an array; masked samples become NaN."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        if values.layout is not torch.strided:
            values = values.to_dense()
        # NumPy has no bfloat16.
        values = values.float() if values.is_floating_point() else values
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        values = values.astype(np.float32).filled(np.nan)
    return np.asarray(values)


def as_column(values: Any) -> np.ndarray:
    """Convert labels or subjects to an array; entries of mixed types keep their types."""
    if hasattr(values, "dtype"):  # array, tensor, Series
        return np.asarray(values)
    # NumPy would convert mixed entries to strings, and tuples to a second dimension.
    values = list(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and tuple not in kinds:
        try:
            return np.asarray(values)
        except ValueError:  # lists of different lengths
            return array
    simple = all(np.isscalar(value) and not isinstance(value, str) for value in values)
    return np.asarray(values) if simple else array


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


@dataclass(frozen=True, eq=False)
class Montage:
    """Channels of the windows of one or more recordings.

    Attributes
    ----------
    chs_info : list of dict | None
        Channels that are read, as in ``mne.Info["chs"]``; None when unknown.
    bads : frozenset of str
        Channels that are marked as bad.
    rows : ndarray of int, shape (n_chans,) | None
        Rows of a window in the source that are read, in this order. None reads all rows.
    n_rows : int | None
        Number of rows of a window in the source; None when unknown.
    """

    chs_info: list[dict] | None = None
    bads: frozenset[str] = frozenset()
    rows: np.ndarray | None = None
    n_rows: int | None = None

    @property
    def names(self) -> list[str] | None:
        """Names of the channels; None when unknown."""
        return None if self.chs_info is None else [ch["ch_name"] for ch in self.chs_info]

    @property
    def key(self) -> Any:
        """Value that is equal for recordings with the same channels."""
        kinds = tuple(ch.get("kind") for ch in self.chs_info or ())
        rows = None if self.rows is None else tuple(self.rows)
        return self.chs_info is None or (tuple(self.names), kinds), self.bads, rows, self.n_rows

    def pick(self, positions: Sequence[int], chs_info: list[dict] | None = None) -> Montage:
        """Return the montage with the channels at these positions, in this order.

        ``chs_info`` describes the picked channels; None keeps their own descriptions.
        """
        positions = np.asarray(positions, dtype=int)
        if chs_info is None:
            chs_info = [self.chs_info[i] for i in positions]
        if self.rows is None and np.array_equal(positions, np.arange(len(self.chs_info))):
            return replace(self, chs_info=chs_info)
        rows = positions if self.rows is None else self.rows[positions]
        return replace(self, chs_info=chs_info, rows=rows)


@dataclass(frozen=True, eq=False)
class Channels:
    """Channels of every window of a source.

    Attributes
    ----------
    montages : tuple of Montage
        Different montages, in the order of their first windows.
    of_window : ndarray of int, shape (n_windows,)
        Number of each window's montage.
    """

    montages: tuple[Montage, ...]
    of_window: np.ndarray

    @classmethod
    def of_recording(
        cls, n_windows: int, chs_info: list[dict] | None = None, bads: Iterable[str] = ()
    ) -> Channels:
        """Return the channels of windows of one recording; without ``chs_info`` unknown ones."""
        n_rows = None if chs_info is None else len(chs_info)
        montage = Montage(chs_info, frozenset(bads), n_rows=n_rows)
        return cls((montage,), np.zeros(n_windows, dtype=int))

    @classmethod
    def join(cls, parts: Sequence[Channels]) -> Channels:
        """Return the channels of a concatenation of sources."""
        number_of: dict[Any, int] = {}
        montages: list[Montage] = []
        of_window = [np.zeros(0, dtype=int)]
        for part in parts:
            numbers = []
            for montage in part.montages:
                number = number_of.setdefault(montage.key, len(montages))
                if number == len(montages):
                    montages.append(montage)
                numbers.append(number)
            if len(part.of_window):
                of_window.append(np.asarray(numbers)[part.of_window])
        return cls(tuple(montages), np.concatenate(of_window)).take(slice(None))

    def take(self, positions: Any) -> Channels:
        """Return the channels of some windows; montages without a window are left out."""
        of_window = self.of_window[positions]
        _, first, numbers = np.unique(of_window, return_index=True, return_inverse=True)
        order = np.argsort(first)  # montages in the order of their first windows
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        kept = tuple(self.montages[of_window[i]] for i in first[order])
        return Channels(kept, rank[numbers].reshape(-1))

    def replaced(self, montages: Iterable[Montage]) -> Channels:
        """Return the channels with other montages, in the same number and order."""
        return replace(self, montages=tuple(montages))

    @property
    def chs_info(self) -> list[dict] | None:
        """Channels of all windows: None when unknown, empty when they or their order differ."""
        names = {None if m.names is None else tuple(m.names) for m in self.montages}
        if len(names) > 1:
            return []
        return self.montages[0].chs_info if self.montages else None

    @property
    def counts(self) -> np.ndarray:
        """Number of windows of each montage."""
        return np.bincount(self.of_window, minlength=len(self.montages))


def labels_by_name(dataset: Any) -> dict[str, Any] | None:
    """Return the label of each name in braindecode's record of how windows were cut.

    The record is the attribute ``window_kwargs``, a list of pairs of a function and its arguments.
    Of several mappings, the last one counts. None without one.
    """
    for _, arguments in reversed(getattr(dataset, "window_kwargs", None) or []):
        mapping = arguments.get("mapping")
        if isinstance(mapping, Mapping) and mapping:
            return {str(name): label for name, label in mapping.items()}
    return None


def joined_labels_by_name(parts: Iterable[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Return the names of several recordings together; recordings may lack some of the classes.

    Warns
    -----
    UserWarning
        When a name stands for different labels. There are then no names.
    """
    joined: dict[str, Any] = {}
    for part in parts:
        for name, label in (part or {}).items():
            if joined.setdefault(name, label) != label:
                warn_user(
                    f"{name!r} is label {joined[name]!r} in some recordings and {label!r} in "
                    "others, so classes are shown as labels, without names; cut all recordings "
                    "with the same mapping."
                )
                return None
    return joined or None


def names_still_hold(labels_of_names: Mapping[str, Any], own: Any, given: np.ndarray) -> bool:
    """Whether the names of a dataset hold for other labels that are given for its windows.

    They do if every window whose given label has a name also has this label in the dataset. Windows
    may be marked as unlabelled. Labels that mean something else have no names.
    """
    if own is None or np.shape(own) != np.shape(given):
        return False
    named = list(labels_of_names.values())
    try:
        pairs = set(zip(np.asarray(own).tolist(), given.tolist(), strict=True))
    except TypeError:  # labels that are not hashable; a classifier refuses them
        return False
    return all(before == now for before, now in pairs if now in named)


def class_names(
    classes: np.ndarray, labels_of_names: Mapping[str, Any] | None
) -> dict[Any, str] | None:
    """Return the name of each class; None if none of them has one, or two would have the same.

    Several names of one label are joined, such as "Sleep stage 3 / Sleep stage 4".

    Parameters
    ----------
    classes : ndarray, shape (n_classes,)
        Labels.
    labels_of_names : mapping of str to label | None
        Label of each name.
    """
    names: dict[Any, list[str]] = {label: [] for label in classes.tolist()}
    for name, label in (labels_of_names or {}).items():
        if label in names and name != str(label):
            names[label].append(name)
    if not any(names.values()):
        return None
    texts = {label: " / ".join(found) or str(label) for label, found in names.items()}
    # The name of one class may be the label of another, which has no name.
    return texts if len(set(texts.values())) == len(texts) else None
