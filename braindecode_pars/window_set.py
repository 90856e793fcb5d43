"""Whatever a user calls windows, as one lazy dataset that knows where they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import mne
import numpy as np
import pandas as pd
import torch
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset, RawDataset, WindowsDataset
from sklearn.utils import column_or_1d
from skorch.helper import SliceDataset
from torch.utils.data import ConcatDataset, Dataset, Subset

from braindecode_pars.signal_store.store import SignalStore
from braindecode_pars.signal_store.windows import StoreWindows

__all__ = ["WindowSet", "as_window_set"]

ACCEPTED = (
    "a braindecode windows dataset, as_sklearn's X, a list of windows, an mne.Epochs, an array of "
    "shape (n_windows, n_chans, n_times) or a SignalStore's windows(n_times)"
)


@dataclass(eq=False)
class WindowSet(Dataset):
    """Windows with what is known of them. Reading item ``i`` reads that window and no other.

    Attributes
    ----------
    source : Any
        What the user gave; ``source[j]`` is a window or a tuple that begins with one.
    indices : ndarray of int, shape (n_windows,)
        Which items of the source belong to this set.
    y : ndarray, shape (n_windows,) | None
        Labels.
    groups : ndarray, shape (n_windows,) | None
        Subjects.
    sfreq : float | None
        Sampling rate in Hz.
    chs_info : list of dict | None
        As in ``mne.Info["chs"]``; None where there are none, empty where
        recordings differ in their channels or the order of them.
    shapes : ndarray of int, shape (n_windows, 2) | None
        Channels and samples of each window, where all are known to be finite; None where they
        have to be read for that.
    """

    source: Any
    indices: np.ndarray
    y: np.ndarray | None = None
    groups: np.ndarray | None = None
    sfreq: float | None = None
    chs_info: list[dict] | None = field(default=None, repr=False)
    shapes: np.ndarray | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, i: int) -> tuple[np.ndarray, Any]:
        """Window ``i`` as float32 (n_chans, n_times), and its label (0 when there are none).

        Raises
        ------
        ValueError
            When the window is not two-dimensional or holds NaN or infinite samples.
        """
        window = self.source[int(self.indices[i])]
        if isinstance(window, tuple) or (isinstance(window, list) and np.ndim(window[0]) == 2):
            window = window[0]
        if isinstance(window, mne.BaseEpochs):
            window = window.get_data(copy=False)[0]
        window = _plain_array(window)
        if window.dtype.kind not in "iuf":
            raise ValueError(
                f"Window {i} holds {window.dtype} values; EEG samples are real numbers."
            )
        if window.ndim != 2:
            raise ValueError(
                f"Window {i} has shape {window.shape}; a window has shape (n_chans, n_times)."
            )
        # A copy: torch takes neither negative strides nor read-only memory.
        with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and named so
            window = np.array(window, dtype=np.float32, order="C")
        finite = np.isfinite(window).all(axis=1)
        if not finite.all():
            bad = np.flatnonzero(~finite)
            known = len(self.chs_info or ()) == len(window)
            named = [self.chs_info[c]["ch_name"] for c in bad] if known else bad.tolist()
            raise ValueError(
                f"Window {i} holds NaN or infinite samples in channel"
                f"{'s' if len(bad) > 1 else ''} {', '.join(map(str, named[:5]))}"
                f"{' and more' if len(bad) > 5 else ''}; drop or repair it first."
            )
        return window, 0 if self.y is None else self.y[i]

    def take(self, positions: np.ndarray) -> WindowSet:
        """The windows at these positions, in this order."""
        positions = np.asarray(positions)
        return replace(
            self,
            indices=self.indices[positions],
            y=None if self.y is None else self.y[positions],
            groups=None if self.groups is None else self.groups[positions],
            shapes=None if self.shapes is None else self.shapes[positions],
        )

    def batches(self, batch_size: int) -> Iterator[np.ndarray]:
        """Read the windows in order, as float32 arrays (<= batch_size, n_chans, n_times).

        Raises
        ------
        ValueError
            When two windows have different shapes.
        """
        shape = None
        for start in range(0, len(self), batch_size):
            batch = [self[i][0] for i in range(start, min(start + batch_size, len(self)))]
            shape = shape or batch[0].shape
            if 0 in shape:
                raise ValueError(f"Windows have shape {shape}; there are no samples in them.")
            for i, window in enumerate(batch, start):
                _refuse_another_shape(i, window.shape, shape)
            yield np.stack(batch)

    def shortest(self) -> int:
        """Samples of the shortest window. All must be finite, and are read once to see that."""
        if self.shapes is not None:
            return int(self.shapes[:, 1].min())
        shapes = [self[i][0].shape for i in range(len(self))]
        for i, shape in enumerate(shapes):
            if 0 in shape:
                raise ValueError(f"Window {i} has shape {shape}; there are no samples in it.")
        return min(n_times for _, n_times in shapes)

    def check(self) -> tuple[int, int]:
        """See that all windows are finite and of one shape, reading each once if need be.

        Returns
        -------
        n_chans, n_times : int

        Raises
        ------
        ValueError
            Naming the first window that differs or holds bad samples.
        """
        if len(self) == 0:
            raise ValueError("There are no windows: the dataset has length 0.")
        if self.shapes is not None:
            other = (self.shapes != self.shapes[0]).any(axis=1).argmax()
            first, another = (tuple(self.shapes[i].tolist()) for i in (0, other))
            _refuse_another_shape(other, another, first)
            return first
        for batch in self.batches(64):
            shape = batch.shape[1:]
        return shape


def _refuse_another_shape(i: int, shape: tuple[int, ...], first: tuple[int, ...]) -> None:
    if shape != first:
        raise ValueError(
            f"Window {i} has shape {shape}, window 0 has {first}; all windows need the same "
            "channels and length (n_chans, n_times)."
        )


@dataclass
class _Facts:
    """What a source says of its windows; None where it does not say."""

    n_windows: int
    y: np.ndarray | None = None
    groups: np.ndarray | None = None
    sfreqs: Counter = field(default_factory=Counter)
    chs_info: list[dict] | None = None
    shapes: np.ndarray | None = None


def as_window_set(
    X: Any,
    y: Any = None,
    groups: Any = None,
    sfreq: float | None = None,
    n_times: int | None = None,
) -> WindowSet:
    """Describe windows without reading them.

    Parameters
    ----------
    X : Any
        A braindecode windows dataset, a torch Subset or ConcatDataset of these, a skorch
        SliceDataset, a list of tuples or of one-window Epochs, an mne.Epochs, an array, or a
        SignalStore or its windows.
    y, groups : array-like, shape (n_windows,) | None
        Labels and subjects; they win over what ``X`` says. An mne.Epochs says its event codes
        and, if there is one, the column ``subject`` of its metadata.
    sfreq : float | None
        Sampling rate in Hz, for windows that do not carry one.
    n_times : int | None
        Samples of the windows that a SignalStore is cut into.

    Raises
    ------
    TypeError
        When X is none of the above.
    ValueError
        When lengths differ, recordings have different sampling rates, or ``sfreq`` contradicts
        the data; when a SignalStore is given without ``n_times``.
    """
    if isinstance(X, SignalStore):
        if n_times is None:
            raise ValueError(
                "A SignalStore holds continuous recordings; give windows of it, "
                "store.windows(n_times)."
            )
        X = X.windows(n_times)
    if isinstance(X, WindowSet):
        windows = X
    else:
        source, facts = _describe(X)
        if len(facts.sfreqs) > 1:
            found = ", ".join(f"{rate:g} Hz ({n})" for rate, n in facts.sfreqs.most_common())
            raise ValueError(
                f"The recordings have different sampling rates: {found}. Resample them to one "
                "before windowing, for example with braindecode's Preprocessor('resample', "
                "sfreq=...)."
            )
        windows = WindowSet(
            source,
            np.arange(facts.n_windows),
            facts.y,
            # Subjects that are not there for every window are not known.
            None if facts.groups is None or _some_missing(facts.groups) else facts.groups,
            next(iter(facts.sfreqs), None),
            facts.chs_info,
            facts.shapes,
        )
    if sfreq is not None:
        if windows.sfreq is not None and not np.isclose(windows.sfreq, sfreq):
            raise ValueError(
                f"sfreq={sfreq:g} Hz was given, but the recordings say {windows.sfreq:g} Hz; leave "
                "sfreq out or resample the recordings."
            )
        windows = replace(windows, sfreq=float(sfreq))
    if y is not None:
        windows = replace(windows, y=_column(y, len(windows), "y"))
    if groups is not None:
        windows = replace(windows, groups=_column(groups, len(windows), "groups"))
    return windows


def _column(values: Any, n_windows: int, name: str) -> np.ndarray:
    if np.ndim(values) == 0:
        raise ValueError(f"{name} is {values!r}; {n_windows} windows need one entry each.")
    values = _as_column(values)
    if values.shape == (n_windows, 1):
        values = column_or_1d(values, warn=True)
    if _some_missing(values):
        raise ValueError(
            f"{name} holds None or NaN; give every window an entry"
            + (", or mark unlabelled ones with unlabeled_label." if name == "y" else ".")
        )
    if values.shape != (n_windows,):
        raise ValueError(
            f"{name} has shape {values.shape}; {n_windows} windows need one entry each, shape "
            f"({n_windows},)."
        )
    return values


def _some_missing(values: np.ndarray) -> bool:
    """Whether an entry is None, NaN or pandas' NA."""
    return bool(np.any(pd.isna(values.astype(object))))


def _as_column(values: Any) -> np.ndarray:
    """One entry for each window; entries of mixed types stay what they are."""
    if hasattr(values, "dtype"):  # array, tensor, Series
        return np.asarray(values)
    values = list(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and not kinds & {tuple, list}:
        return np.asarray(values)
    simple = all(np.isscalar(value) and not isinstance(value, str) for value in values)
    return np.asarray(values) if simple else array


def _plain_array(values: Any) -> np.ndarray:
    """An array of tensors, masked arrays and lists; masked samples become NaN."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        if values.layout is not torch.strided:
            values = values.to_dense()
        # NumPy has no bfloat16.
        values = values.float() if values.is_floating_point() else values
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        values = values.astype(np.float32).filled(np.nan)
    return np.asarray(values)


def _describe(X: Any) -> tuple[Any, _Facts]:
    """What to index to read a window, and what is known of all of them."""
    if isinstance(X, mne.BaseEpochs):
        if not X.preload:
            X = X.copy().load_data()
        return X.get_data(copy=False), _describe_epochs(X)
    if isinstance(X, (np.ndarray, torch.Tensor)):
        if X.ndim != 3:
            raise ValueError(
                f"X has shape {tuple(X.shape)}; windows have shape (n_windows, n_chans, n_times)."
            )
        X = _plain_array(X)
        if X.dtype.kind not in "iuf":
            raise ValueError(f"X holds {X.dtype} values; EEG samples are real numbers.")
        return X, _Facts(len(X))
    if isinstance(X, (Dataset, SliceDataset)):
        return X, _describe_dataset(X)
    if isinstance(X, Sequence) and not isinstance(X, str):
        return X, _describe_list(X)
    raise TypeError(f"X is a {type(X).__name__}; windows are {ACCEPTED}.")


def _describe_epochs(epochs: mne.BaseEpochs) -> _Facts:
    facts = _Facts(len(epochs), y=epochs.events[:, 2], chs_info=epochs.info["chs"])
    facts.sfreqs[float(epochs.info["sfreq"])] += 1
    if epochs.metadata is not None and "subject" in epochs.metadata:
        facts.groups = epochs.metadata["subject"].to_numpy()
    return facts


def _describe_list(items: Sequence) -> _Facts:
    facts = _Facts(len(items))
    if len(items) == 0:
        return facts
    first = items[0]
    if isinstance(first, mne.BaseEpochs):
        for i, item in enumerate(items):
            if not isinstance(item, mne.BaseEpochs) or len(item) != 1:
                what = (
                    f"an Epochs of {len(item)} windows" if hasattr(item, "events") else repr(item)
                )
                raise ValueError(
                    f"Item {i} is {what}; a list of Epochs needs one window in each "
                    "(mne.concatenate_epochs makes one Epochs of all)."
                )
        return _join([_describe_epochs(item) for item in items])
    if isinstance(first, Dataset):
        raise ValueError(
            f"X is a list of {type(first).__name__}; make one dataset of them with braindecode's "
            "BaseConcatDataset([...])."
        )
    if isinstance(first, (tuple, list)) and len(first) > 1 and np.ndim(first[0]) == 2:
        for i, item in enumerate(items):
            if not isinstance(item, (tuple, list)) or len(item) != len(first):
                raise ValueError(
                    f"Item {i} of X is a {type(item).__name__}, item 0 is a tuple of {len(first)}; "
                    "all items must be of one kind."
                )
        facts.y = np.asarray([item[1] for item in items])
    elif np.ndim(first) != 2 and not (isinstance(first, tuple) and np.ndim(first[0]) == 2):
        raise ValueError(
            f"X is a list whose first item has shape {np.shape(first)}; its items must be windows "
            "(n_chans, n_times) or tuples that begin with one."
        )
    return facts


def _describe_dataset(dataset: Any) -> _Facts:
    if isinstance(dataset, SliceDataset):
        return _select(_describe_dataset(dataset.dataset), dataset.indices_)
    if isinstance(dataset, Subset):
        return _select(_describe_dataset(dataset.dataset), dataset.indices)
    if isinstance(dataset, ConcatDataset):
        facts = _join([_describe_dataset(part) for part in dataset.datasets])
        target_transform = getattr(dataset, "target_transform", None)
        if target_transform is not None and facts.y is not None:
            facts.y = np.asarray([target_transform(label) for label in facts.y])
        return facts
    if isinstance(dataset, (EEGWindowsDataset, WindowsDataset)):
        info = (dataset.raw if isinstance(dataset, EEGWindowsDataset) else dataset.windows).info
        facts = _Facts(len(dataset), chs_info=info["chs"])
        facts.sfreqs[float(info["sfreq"])] += 1
        if dataset.targets_from == "metadata":
            facts.y = np.asarray(dataset.y)
        else:
            signal_names = set(np.array(info["ch_names"])[mne.pick_types(info, misc=False)])
            facts.chs_info = [ch for ch in info["chs"] if ch["ch_name"] in signal_names]
        subject = None if dataset.description is None else dataset.description.get("subject")
        if subject is not None:
            facts.groups = np.full(len(dataset), subject)
        return facts
    if isinstance(dataset, StoreWindows):
        return _Facts(
            len(dataset),
            groups=dataset.subjects,
            sfreqs=Counter({dataset.sfreq: len(dataset)}),
            chs_info=dataset.chs_info,
            shapes=dataset.shapes,
        )
    if isinstance(dataset, (RawDataset, BaseConcatDataset)):
        raise TypeError(
            "The dataset holds continuous recordings; cut them into windows first, for example "
            "with braindecode.preprocessing.create_fixed_length_windows."
        )
    try:
        return _Facts(len(dataset))
    except TypeError:
        raise TypeError(
            f"X is a {type(dataset).__name__} of unknown length; windows are {ACCEPTED}."
        ) from None


def _select(facts: _Facts, indices: Any) -> _Facts:
    indices = np.asarray(indices)
    if len(indices) and not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(
            f"A subset is given by {indices.dtype} indices; it needs integers (of a mask, "
            "np.flatnonzero(mask))."
        )
    indices = indices.astype(int)
    return replace(
        facts,
        n_windows=len(indices),
        y=None if facts.y is None else facts.y[indices],
        groups=None if facts.groups is None else facts.groups[indices],
        shapes=None if facts.shapes is None else facts.shapes[indices],
    )


def _join(parts: list[_Facts]) -> _Facts:
    def concatenate(name: str) -> np.ndarray | None:
        columns = [getattr(part, name) for part in parts]
        if all(column is None for column in columns):
            return None
        known = [
            np.full(part.n_windows, None, object) if column is None else column
            for part, column in zip(parts, columns, strict=True)
        ]
        if len({column.dtype.kind for column in known}) > 1:
            # NumPy would make strings of numbers.
            known = [column.astype(object) for column in known]
        return np.concatenate(known)

    return _Facts(
        sum(part.n_windows for part in parts),
        concatenate("y"),
        concatenate("groups"),
        sum((part.sfreqs for part in parts), Counter()),
        parts[0].chs_info if len({_names(part.chs_info) for part in parts}) == 1 else [],
        None
        if any(part.shapes is None for part in parts)
        else np.concatenate([part.shapes for part in parts]),
    )


def _names(chs_info: list[dict] | None) -> tuple[str, ...] | None:
    return None if chs_info is None else tuple(ch["ch_name"] for ch in chs_info)
