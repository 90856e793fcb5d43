"""Windows of any source as one lazy dataset, with what is known of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import mne
import numpy as np
import pandas as pd
from sklearn.utils import column_or_1d
from torch.utils.data import Dataset

from braindecode_pars._sampling_rate import check_same_rate, is_same_rate
from braindecode_pars.windows._describe import describe, plain_array

__all__ = ["WindowSet", "as_window_set", "is_continuous"]


@dataclass(frozen=True, eq=False)
class WindowSet(Dataset):
    """Windows with what is known of them. Reading item ``i`` reads that window and no other.

    Attributes
    ----------
    source : Any
        What the user gave; ``source[j]`` is a window or a tuple that begins with one.
    indices : ndarray of int, shape (n_windows,)
        Items of the source that belong to this set.
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
        window = plain_array(window)
        if window.dtype.kind not in "iuf":
            raise ValueError(
                f"Window {i} holds {window.dtype} values; EEG samples are real numbers."
            )
        if window.ndim != 2:
            raise ValueError(
                f"Window {i} has shape {window.shape}; a window has shape (n_chans, n_times)."
            )
        # A copy: torch takes neither negative strides nor read-only memory.
        with np.errstate(over="ignore"):  # too large for float32 becomes infinite, caught below
            window = np.array(window, dtype=np.float32, order="C")
        self._check_finite(i, window)
        return window, 0 if self.y is None else self.y[i]

    def lazy_window(self, i: int) -> Any:
        """Window ``i``, of which only what is indexed is read, where the source has such views."""
        has_views = hasattr(self.source, "lazy_window")
        return self.source.lazy_window(int(self.indices[i])) if has_views else self[i][0]

    def _check_finite(self, i: int, window: np.ndarray) -> None:
        finite = np.isfinite(window).all(axis=1)
        if finite.all():
            return
        bad = np.flatnonzero(~finite)
        known = len(self.chs_info or ()) == len(window)
        named = [self.chs_info[c]["ch_name"] for c in bad] if known else bad.tolist()
        raise ValueError(
            f"Window {i} holds NaN or infinite samples in channel"
            f"{'s' if len(bad) > 1 else ''} {', '.join(map(str, named[:5]))}"
            f"{' and more' if len(bad) > 5 else ''}; drop or repair it first."
        )

    def take(self, positions: np.ndarray) -> WindowSet:
        """Select the windows at these positions, in this order."""
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
                raise ValueError(f"Windows have shape {shape}; they hold no samples.")
            for i, window in enumerate(batch, start):
                _check_shape(i, window.shape, shape)
            yield np.stack(batch)

    def shortest(self) -> int:
        """Samples of the shortest window. Each is read once, unless all are known to be finite."""
        if self.shapes is not None:
            return int(self.shapes[:, 1].min())
        shapes = [self[i][0].shape for i in range(len(self))]
        for i, shape in enumerate(shapes):
            if 0 in shape:
                raise ValueError(f"Window {i} has shape {shape}; it holds no samples.")
        return min(n_times for _, n_times in shapes)

    def check(self) -> tuple[int, int]:
        """Check that all windows are finite and of one shape, reading each once if need be.

        Returns
        -------
        n_chans, n_times : int

        Raises
        ------
        ValueError
            Naming the first window that differs or holds bad samples.
        """
        self.check_not_empty()
        if self.shapes is not None:
            other = (self.shapes != self.shapes[0]).any(axis=1).argmax()
            first, another = (tuple(self.shapes[i].tolist()) for i in (0, other))
            _check_shape(other, another, first)
            return first
        for batch in self.batches(64):
            shape = batch.shape[1:]
        return shape

    def check_not_empty(self) -> None:
        """Refuse a set without windows.

        Raises
        ------
        ValueError
            When its length is 0.
        """
        if len(self) == 0:
            raise ValueError("There are no windows: the dataset has length 0.")


def _check_shape(i: int, shape: tuple[int, ...], first: tuple[int, ...]) -> None:
    if shape != first:
        raise ValueError(
            f"Window {i} has shape {shape}, window 0 has {first}; all windows need the same "
            "channels and length (n_chans, n_times)."
        )


def is_continuous(X: Any) -> bool:
    """Whether a source is still to be cut into windows, as a SignalStore is."""
    return callable(getattr(X, "windows", None))


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
        Labels and subjects, instead of those that ``X`` says. An mne.Epochs says its event codes
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
    if is_continuous(X):
        if n_times is None:
            raise ValueError(
                f"A {type(X).__name__} holds continuous recordings; give windows of it, "
                "store.windows(n_times)."
            )
        X = X.windows(n_times)
    windows = X if isinstance(X, WindowSet) else _describe(X)
    if sfreq is not None:
        check_same_rate(windows.sfreq, sfreq, "The recordings are", "the argument sfreq is")
        windows = replace(windows, sfreq=float(sfreq))
    if y is not None:
        windows = replace(windows, y=_column(y, len(windows), "y"))
    if groups is not None:
        windows = replace(windows, groups=_column(groups, len(windows), "groups"))
    return windows


def _describe(X: Any) -> WindowSet:
    said = describe(X)
    known = said.groups is not None and not _some_missing(said.groups)
    return WindowSet(
        said.source,
        np.arange(said.n_windows),
        said.y,
        # One window without a subject makes the subjects unknown.
        said.groups if known else None,
        _one_rate(said.sfreqs),
        said.chs_info,
        said.shapes,
    )


def _one_rate(sfreqs: Counter) -> float | None:
    """The sampling rate that all recordings have."""
    first = next(iter(sfreqs), None)
    if not all(is_same_rate(rate, first) for rate in sfreqs):
        found = ", ".join(f"{rate:g} Hz ({n})" for rate, n in sfreqs.most_common())
        raise ValueError(
            f"The recordings have different sampling rates: {found}. Resample them to one "
            "before windowing, for example with braindecode's Preprocessor('resample', "
            "sfreq=...)."
        )
    return first


def _column(values: Any, n_windows: int, name: str) -> np.ndarray:
    """Labels or subjects that the user gave, one for each window."""
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
    """Convert to an array; entries of mixed types keep their types."""
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
