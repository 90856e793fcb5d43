"""Windows of any source as one lazy dataset with labels, subjects and channels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import mne
import numpy as np
import pandas as pd
from sklearn.utils import column_or_1d
from torch.utils.data import Dataset

from braindecode_pars._common.checks import check_same_rate, is_same_rate
from braindecode_pars._common.subjects import in_corpus, normalized
from braindecode_pars.windows.door import (
    Channels,
    Montage,
    StoredBatch,
    StoredSignals,
    as_column,
    describe,
    names_still_hold,
    plain_array,
)


@dataclass(frozen=True, eq=False)
class WindowSet(Dataset):
    """Windows with their metadata. Reading item ``i`` reads only that window.

    Attributes
    ----------
    source : Any
        Source of the windows: ``source[j]`` is a window or a tuple that begins with a window.
    indices : ndarray of int, shape (n_windows,)
        Items of the source that belong to this set.
    y : ndarray, shape (n_windows,) | None
        Labels.
    subjects : ndarray, shape (n_windows,) | None
        Subjects; None or NaN for a window whose subject is unknown. In windows of several corpora,
        names begin with the corpus: subject 1 of two corpora is two people.
    corpora : ndarray, shape (n_windows,) | None
        Corpus of each window, None where unknown.
    sfreq : float | None
        Sampling rate in Hz.
    channels : Channels | None
        Channels of each window, and which of them are read; None when unknown.
    shapes : ndarray of int, shape (n_windows, 2) | None
        Number of channels and samples of each window, when all samples are known to be finite.
        None when the windows have to be read to find out.
    splits : ndarray, shape (n_windows,) | None
        Entry ``split`` of the description of each window's recording, such as "train"; None or NaN
        where there is none.
    stored : StoredSignals | None
        Position of each window in the signals of a store, from which whole batches are read; None
        for other sources.
    preprocessings : ndarray of Preprocessing, shape (n_windows,) | None
        Preprocessing of each window's recording, None where unknown.
    labels_by_name : mapping of str to label | None
        Label of each name of a class, where the data have names.
    weights : ndarray of float, shape (n_windows,) | None
        Weight of each window in the loss; None when all have the same.
    """

    source: Any
    indices: np.ndarray
    y: np.ndarray | None = None
    subjects: np.ndarray | None = None
    corpora: np.ndarray | None = field(default=None, repr=False)
    sfreq: float | None = None
    channels: Channels | None = field(default=None, repr=False)
    shapes: np.ndarray | None = field(default=None, repr=False)
    splits: np.ndarray | None = field(default=None, repr=False)
    stored: StoredSignals | None = field(default=None, repr=False)
    preprocessings: np.ndarray | None = field(default=None, repr=False)
    labels_by_name: Mapping[str, Any] | None = field(default=None, repr=False)
    weights: np.ndarray | None = field(default=None, repr=False)

    @property
    def is_stored(self) -> bool:
        """Whether all windows are of one store."""
        return self.stored is not None

    @property
    def known(self) -> np.ndarray:
        """Whether the subject of each window is known, shape (n_windows,)."""
        if self.subjects is None:
            return np.zeros(len(self), dtype=bool)
        return ~(_missing(self.subjects) | _blank(self.subjects))

    @property
    def groups(self) -> np.ndarray | None:
        """Subjects, if every window has one: a window without may be of any subject."""
        return self.subjects if self.subjects is not None and self.known.all() else None

    @property
    def people(self) -> np.ndarray | None:
        """Subjects with their corpus in front where it is known, if every window has a subject."""
        return _with_corpora(self.groups, self.corpora)

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def chs_info(self) -> list[dict] | None:
        """Channels, as in ``mne.Info["chs"]``.

        None when unknown; empty when recordings differ in their channels or in the order of the
        channels.
        """
        return None if self.channels is None else self.channels.chs_info

    def montage_of(self, i: int) -> Montage:
        """Return the channels of window ``i``."""
        if self.channels is None:
            return Montage()
        return self.channels.montages[self.channels.of_window[i]]

    def __getitem__(self, i: int) -> tuple[np.ndarray, Any]:
        """Return window ``i``, float32 of shape (n_chans, n_times), and its label, or 0 if unknown.

        Raises
        ------
        ValueError
            When the window is not two-dimensional, or contains NaN or infinite samples.
        """
        window = self._stored_windows(np.array([i]))[0] if self.is_stored else self._window(i)
        return window, 0 if self.y is None else self.y[i]

    def __getitems__(self, positions: Sequence[int]) -> list[tuple[np.ndarray, Any]]:
        """Return several windows with their labels; torch's DataLoader reads a batch with it."""
        positions = np.asarray(positions)
        if not self.is_stored or not self._are_alike(positions):
            return [self[int(i)] for i in positions]
        y = np.zeros(len(positions), int) if self.y is None else self.y[positions]
        return StoredBatch(self._stored_windows(positions), y)

    def _are_alike(self, positions: np.ndarray) -> bool:
        """Whether some windows of a store have the same channels and length."""
        montages, lengths = self.channels.of_window[positions], self.shapes[positions, 1]
        return bool((montages == montages[:1]).all() and (lengths == lengths[:1]).all())

    def _stored_windows(self, positions: np.ndarray) -> np.ndarray:
        """Read windows of one montage and length from the store, which are known to be finite."""
        montage, n_times = self.montage_of(positions[0]), int(self.shapes[positions[0], 1])
        rows = np.arange(montage.n_rows) if montage.rows is None else montage.rows
        return self.stored.read(positions, rows, n_times)

    def _window(self, i: int) -> np.ndarray:
        """Read window ``i`` from a source of any kind, and check it."""
        # The samples alone: without the label, out of a one-window Epochs.
        window = self.source[int(self.indices[i])]
        if isinstance(window, tuple) or (isinstance(window, list) and np.ndim(window[0]) == 2):
            window = window[0]
        if isinstance(window, mne.BaseEpochs):
            window = window.get_data(copy=False)[0]
        window = plain_array(window)
        if window.dtype.kind not in "iuf":
            raise ValueError(
                f"Window {i} has dtype {window.dtype}; EEG samples must be real numbers."
            )
        if window.ndim != 2:
            raise ValueError(
                f"Window {i} has shape {window.shape}; a window has shape (n_chans, n_times)."
            )
        montage = self.montage_of(i)
        if montage.rows is not None:
            _check_n_rows(i, window.shape[0], montage)
            window = window[montage.rows]
        # A copy, because torch accepts neither negative strides nor read-only memory.
        with np.errstate(over="ignore"):  # values too large for float32 become inf, checked below
            window = np.array(window, dtype=np.float32, order="C")
        self._check_finite(i, window)
        return window

    def lazy_window(self, i: int) -> Any:
        """Return a view of window ``i`` that reads only indexed samples, if it is of a store."""
        if not self.is_stored:
            return self[i][0]
        montage = self.montage_of(i)
        view = self.stored.view(i, (montage.n_rows, int(self.shapes[i, 1])))
        return view if montage.rows is None else PickedView(view, montage.rows)

    def _check_finite(self, i: int, window: np.ndarray) -> None:
        finite = np.isfinite(window).all(axis=1)  # (n_chans,)
        if finite.all():
            return
        # Channels are named where possible, and numbered otherwise.
        bad = np.flatnonzero(~finite)
        known = self.montage_of(i).names or ()
        names = [known[c] for c in bad] if len(known) == len(window) else bad.tolist()
        raise ValueError(
            f"Window {i} contains NaN or infinite samples in channel"
            f"{'s' if len(bad) > 1 else ''} {', '.join(map(str, names[:5]))}"
            f"{' and more' if len(bad) > 5 else ''}; remove or repair it first."
        )

    def take(self, positions: np.ndarray) -> WindowSet:
        """Return the windows at the given positions, in the given order."""
        positions = np.asarray(positions)
        return replace(
            self,
            indices=self.indices[positions],
            y=None if self.y is None else self.y[positions],
            subjects=None if self.subjects is None else self.subjects[positions],
            corpora=None if self.corpora is None else self.corpora[positions],
            channels=None if self.channels is None else self.channels.take(positions),
            shapes=None if self.shapes is None else self.shapes[positions],
            splits=None if self.splits is None else self.splits[positions],
            stored=None if self.stored is None else self.stored.take(positions),
            preprocessings=None if self.preprocessings is None else self.preprocessings[positions],
            weights=None if self.weights is None else self.weights[positions],
        )

    def with_montages(self, montages: Iterable[Montage]) -> WindowSet:
        """Return the windows with other channels: one montage for each of ``channels.montages``."""
        channels = self.channels.replaced(montages)
        shapes = self.shapes
        if shapes is not None:
            # Sources that know the shapes know the number of rows of a window too.
            n_chans = [m.n_rows if m.rows is None else len(m.rows) for m in channels.montages]
            known = np.array([-1 if n is None else n for n in n_chans])[channels.of_window]
            shapes = np.column_stack([np.where(known < 0, shapes[:, 0], known), shapes[:, 1]])
        return replace(self, channels=channels, shapes=shapes)

    def batches(self, batch_size: int, *, any_montage: bool = False) -> Iterator[np.ndarray]:
        """Read the windows in order, as float32 arrays of shape (<= batch_size, n_chans, n_times).

        With ``any_montage``, windows of different montages may have different shapes, and a batch
        contains windows of one montage.

        Raises
        ------
        ValueError
            When two windows have different shapes.
        """
        shapes: dict[int, tuple[int, ...]] = {}
        for start, stop, montage in self._spans(batch_size, any_montage):
            items = self.__getitems__(range(start, stop))
            batch = [window for window, _ in items]
            shape = shapes.setdefault(montage, batch[0].shape)
            if 0 in shape:
                raise ValueError(f"The windows have shape {shape}, so they have no samples.")
            for i, window in enumerate(batch, start):
                _check_shape(i, window.shape, shape)
            yield items.windows if isinstance(items, StoredBatch) else np.stack(batch)

    def _spans(self, batch_size: int, any_montage: bool) -> Iterator[tuple[int, int, int]]:
        """Yield first window, last window + 1 and montage of each batch."""
        numbers = np.zeros(len(self), dtype=int)
        if any_montage and self.channels is not None:
            numbers = self.channels.of_window
        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(self)]
        for first, last in pairwise(edges):
            for start in range(first, last, batch_size):
                yield start, min(start + batch_size, last), int(numbers[start])

    def shortest(self) -> int:
        """Return the length of the shortest window; read all windows if ``shapes`` is None."""
        if self.shapes is not None:
            return int(self.shapes[:, 1].min())
        shapes = [self[i][0].shape for i in range(len(self))]
        for i, shape in enumerate(shapes):
            if 0 in shape:
                raise ValueError(f"Window {i} has shape {shape}, so it has no samples.")
        return min(n_times for _, n_times in shapes)

    def check(self) -> tuple[int, int]:
        """Check that all windows are finite and have the same shape.

        The windows are read once if ``shapes`` is None.

        Returns
        -------
        n_chans, n_times : int
            Shape of every window.

        Raises
        ------
        ValueError
            When a window has another shape, or contains NaN or infinite samples. The message names
            the first such window.
        """
        self.check_not_empty()
        if self.shapes is not None:
            # The first window that differs; window 0 if none does.
            i = (self.shapes != self.shapes[0]).any(axis=1).argmax()
            first, other = (tuple(self.shapes[j].tolist()) for j in (0, i))
            _check_shape(i, other, first)
            return first
        for batch in self.batches(64):
            shape = batch.shape[1:]
        return shape

    def check_not_empty(self) -> None:
        """Check that there is at least one window.

        Raises
        ------
        ValueError
            When there is no window.
        """
        if len(self) == 0:
            raise ValueError("There are no windows: the dataset has length 0.")


class PickedView:
    """View of some rows of a lazy window: ``view[channels, start:stop]`` reads only these.

    Parameters
    ----------
    view : Any
        Lazy window.
    rows : ndarray of int, shape (n_chans,)
        Rows of the window.
    """

    def __init__(self, view: Any, rows: np.ndarray):
        self.view = view
        self.rows = rows
        self.shape = (len(rows), *view.shape[1:])

    def __getitem__(self, key: Any) -> np.ndarray:
        channels, times = key if isinstance(key, tuple) else (key, slice(None))
        return self.view[self.rows[channels], times]


def _check_n_rows(i: int, n_rows: int, montage: Montage) -> None:
    """Check that the rows of a window are the channels of its recording."""
    if n_rows != montage.n_rows:
        raise ValueError(
            f"Window {i} has {n_rows} rows, but its recording has {montage.n_rows} channels, so "
            "channels cannot be picked by name; pick them in the recording instead."
        )


def _check_shape(i: int, shape: tuple[int, ...], first: tuple[int, ...]) -> None:
    if shape != first:
        raise ValueError(
            f"Window {i} has shape {shape}, window 0 has {first}; all windows must have the same "
            "shape (n_chans, n_times)."
        )


def is_continuous(X: Any) -> bool:
    """Whether a source, such as a SignalStore, has to be cut into windows first."""
    return callable(getattr(X, "windows", None))


def cut_to_train(X: Any, n_times: int) -> Dataset:
    """Return windows of a continuous source, without people of its validation and test splits."""
    return X.without_held_out().windows(n_times)


def as_window_set(
    X: Any,
    y: Any = None,
    groups: Any = None,
    sfreq: float | None = None,
    n_times: int | None = None,
) -> WindowSet:
    """Return any supported source of windows as a WindowSet, without reading the windows.

    Parameters
    ----------
    X : Any
        Source of windows: a braindecode windows dataset, a torch Subset or ConcatDataset of these,
        a skorch SliceDataset, a list of tuples or of one-window Epochs, an mne.Epochs, an array, or
        a SignalStore or its windows.
    y, groups : array-like or DataFrame of one column, shape (n_windows,) | None
        Labels and subjects. They replace those of ``X``. The labels of an mne.Epochs are its event
        codes; its subjects are the column ``subject`` of its metadata, if there is one.
    sfreq : float | None
        Sampling rate in Hz, for windows without a known rate.
    n_times : int | None
        Length in samples of the windows into which a SignalStore is cut, to pretrain on; people of
        its validation and test splits are left out.

    Returns
    -------
    WindowSet
        The windows with their metadata.

    Raises
    ------
    TypeError
        When ``X`` is none of the above.
    ValueError
        When lengths differ, when recordings have different sampling rates, when ``sfreq`` is not
        the sampling rate of the data, or when a SignalStore is given without ``n_times``.
    """
    if is_continuous(X):
        if n_times is None:
            raise ValueError(
                f"A {type(X).__name__} contains continuous recordings; pass windows of it: "
                "store.windows(n_times)."
            )
        X = cut_to_train(X, n_times)
    windows = X if isinstance(X, WindowSet) else _describe(X)
    if sfreq is not None:
        check_same_rate(
            windows.sfreq,
            sfreq,
            "The recordings are",
            "the argument sfreq is",
            remedy="leave sfreq out, or resample the recordings",
        )
        windows = replace(windows, sfreq=float(sfreq))
    if y is not None:
        windows = _labelled(windows, _column(y, len(windows), "y"))
    if groups is not None:
        subjects = _one_spelling(_column(groups, len(windows), "groups"))
        windows = replace(windows, subjects=subjects)
    return windows


def _labelled(windows: WindowSet, y: np.ndarray) -> WindowSet:
    """Return the windows with other labels, and with their names if these still hold."""
    names = windows.labels_by_name
    if names and not names_still_hold(names, windows.y, y):
        names = None
    return replace(windows, y=y, labels_by_name=names)


def _describe(X: Any) -> WindowSet:
    found = describe(X)
    return WindowSet(
        found.source,
        np.arange(found.n_windows),
        found.y,
        _subjects(found.groups, found.corpora),
        found.corpora,
        _one_rate(found.sfreqs),
        found.channels,
        found.shapes,
        found.splits,
        found.stored,
        found.preprocessings,
        labels_by_name=found.labels_by_name,
    )


def _subjects(names: np.ndarray | None, corpora: np.ndarray | None) -> np.ndarray | None:
    """Return names in one spelling, with the corpus in front if there are several corpora."""
    if names is None:
        return None
    names = _one_spelling(names)
    if corpora is None or len(set(corpora.tolist())) == 1:
        return names
    unknown = _missing(names) | _blank(names)
    return np.where(unknown, names, _with_corpora(names, corpora))


def _with_corpora(names: np.ndarray | None, corpora: np.ndarray | None) -> np.ndarray | None:
    if names is None or corpora is None:
        return names
    pairs = zip(corpora.tolist(), names.tolist(), strict=True)
    return _object_array([in_corpus(corpus, name) for corpus, name in pairs])


def _one_spelling(subjects: np.ndarray) -> np.ndarray:
    """Give names the same Unicode form everywhere; numbers are not changed."""
    if subjects.dtype.kind not in "OU":
        return subjects
    names = [normalized(subject) for subject in subjects.tolist()]
    return np.asarray(names) if subjects.dtype.kind == "U" else _object_array(names)


def _one_rate(sfreqs: Counter) -> float | None:
    """Return the common sampling rate, None if unknown."""
    first = next(iter(sfreqs), None)
    if not all(is_same_rate(rate, first) for rate in sfreqs):
        found = ", ".join(f"{rate:g} Hz ({n})" for rate, n in sfreqs.most_common())
        raise ValueError(
            f"The recordings have different sampling rates: {found}. Resample them to one rate "
            "before you cut windows, for example with braindecode's Preprocessor('resample', "
            "sfreq=...)."
        )
    return first


def _column(values: Any, n_windows: int, name: str) -> np.ndarray:
    """Convert labels or subjects to one array, and check that each window has an entry."""
    if _is_single(values):
        raise ValueError(
            f"{name} is {values!r}; it must have one entry for each of {n_windows} windows."
        )
    if hasattr(values, "columns"):  # a DataFrame; iterating over it would give names of columns
        values = _only_column(values, name)
    values = as_column(values)
    if values.shape == (n_windows, 1):
        values = column_or_1d(values, warn=True)
    if _missing(values).any():
        raise ValueError(
            f"{name} contains None or NaN; every window needs an entry."
            + (" Mark unlabelled windows with unlabeled_label." if name == "y" else "")
        )
    if values.shape != (n_windows,):
        raise ValueError(
            f"{name} has shape {values.shape}; it must have one entry for each window, shape "
            f"({n_windows},)."
        )
    return values


def _is_single(values: Any) -> bool:
    """Whether the values are one label, not one for each window."""
    try:
        return np.ndim(values) == 0
    except ValueError:  # lists of different lengths
        return False


def _only_column(frame: Any, name: str) -> Any:
    """Return the column of a DataFrame with one column."""
    columns = list(frame.columns)
    if len(columns) != 1:
        shown = ", ".join(map(str, columns[:5])) + (", ..." if len(columns) > 5 else "")
        raise ValueError(
            f"{name} is a DataFrame with {len(columns)} columns ({shown}); pass one column, such "
            f"as {name}[{columns[0] if columns else 'label'!r}]."
        )
    return frame[columns[0]]


#: "nan" and "none" are what a missing value becomes when a column is converted to strings.
_NO_NAME = {"", "n/a", "nan", "none"}


def _missing(values: np.ndarray) -> np.ndarray:
    """Whether each entry is None, NaN or pandas' NA."""
    return pd.isna(values.astype(object))


def _blank(values: np.ndarray) -> np.ndarray:
    """Whether each entry is an empty text or stands for a missing value, as "n/a" does in BIDS."""
    return np.array(
        [isinstance(v, str) and v.strip().casefold() in _NO_NAME for v in values.tolist()],
        dtype=bool,
    )


def _object_array(values: list) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
