"""Container of windows: a table of recordings, a table of windows, and lazy readers of samples.

Labels, subjects and splits are columns of the tables. To take a subset of the windows, rows are
selected. Only the tables are in memory: the samples of a window are read on access.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, islice
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
import torch

from braindecode_pars._common import channel_names, checks, subjects

#: Function that reads crops. Its arguments are the indices of the signals, the index of the first
#: sample of each crop, and the number of samples per crop. It returns a float32 array of shape
#: (n_crops, n_times), in volts.
ReadCrops = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


@dataclass(frozen=True, eq=False)
class ItemReader:
    """Reader of windows that are items of an array, a list or a dataset.

    Each window is checked when it is read.

    Attributes
    ----------
    source : Any
        ``source[item]`` is a window, or a tuple whose first element is a window.
    """

    source: Any

    @property
    def key(self) -> Hashable:
        if isinstance(self.source, np.ndarray):  # views of the same memory are equal
            return self.source.ctypes.data, self.source.shape, self.source.strides
        return id(self.source)

    def read(self, positions: np.ndarray, items: np.ndarray, montage: "Montage") -> list:
        """Read and check windows.

        Parameters
        ----------
        positions : ndarray of int, shape (n_windows,)
            Indices of the windows, which are shown in error messages.
        items : ndarray of int, shape (n_windows,)
            Indices in ``source``.
        montage : Montage
            Channels to read.

        Returns
        -------
        list of ndarray, shape (n_chans, n_times)
            Windows as float32 copies.

        Raises
        ------
        ValueError
            If a window is not two-dimensional, is not numeric, or contains NaN or infinite values.
        """
        pairs = zip(positions.tolist(), items.tolist(), strict=True)
        return [_checked_window(i, self.source[item], montage) for i, item in pairs]


def _checked_window(i: int, window: Any, montage: "Montage") -> np.ndarray:
    """Return the picked channels of window ``i`` as a float32 copy, see :meth:`ItemReader.read`."""
    if isinstance(window, tuple):  # (window, label, ...)
        window = window[0]
    window = plain_array(window)
    if window.dtype.kind not in "iuf" or window.ndim != 2 or 0 in window.shape:
        raise ValueError(
            f"Window {i} has shape {window.shape} and dtype {window.dtype}, but must contain real "
            "numbers and have shape (n_chans, n_times), with at least one channel and one sample."
        )
    if montage.rows is not None:
        if len(window) != montage.n_rows:
            raise ValueError(
                f"Window {i} has {len(window)} rows, but its recording has {montage.n_rows} "
                "channels, so channels cannot be selected by name. If a transform of the dataset "
                "selects channels, remove it and pick the channels before creating windows."
            )
        window = window[montage.rows]
    # Copied because torch does not accept negative strides or read-only memory.
    with np.errstate(over="ignore"):  # values too large for float32 become infinite
        window = np.array(window, dtype=np.float32, order="C")
    if not np.isfinite(window).all():
        finite = np.isfinite(window).all(axis=1)  # (n_chans,)
        names = montage.names if len(montage.names) == len(window) else range(len(window))
        bad = [str(names[channel]) for channel in np.flatnonzero(~finite)]
        raise ValueError(
            f"Window {i} contains NaN or infinite samples (channel {checks.format_list(bad, 5)}). "
            "Interpolate the affected channels, or exclude the window."
        )
    return window


@dataclass(frozen=True, eq=False)
class SignalReader:
    """Reader of windows from the continuous signals in a SignalStore.

    The signals are not checked when they are read, because they were checked when the store was
    written. ``read`` receives two numbers for each window: the base of its recording and its item.
    The base is the index of the signal of the first channel in the store; the signals of the other
    channels have the subsequent indices. The item is the index of the first sample of the window.

    Attributes
    ----------
    crops : callable
        Function that reads crops of signals, such as ``SignalStore.crops``.
    """

    crops: ReadCrops

    @property
    def key(self) -> Hashable:
        return self.crops

    def read(
        self, bases: np.ndarray, items: np.ndarray, n_times: int, montage: "Montage"
    ) -> np.ndarray:
        rows = np.arange(montage.n_rows or 0) if montage.rows is None else montage.rows
        signals = bases[:, None] + rows
        starts = np.repeat(items, signals.shape[1])
        return self.crops(signals.ravel(), starts, n_times).reshape(*signals.shape, n_times)


#: Reader of the samples of windows. Readers of the same samples have equal attributes ``key``.
Reader: TypeAlias = ItemReader | SignalReader


@dataclass(frozen=True, eq=False)
class Montage:
    """Channels of the windows of one or more recordings.

    Attributes
    ----------
    chs_info : list of dict | None
        Channels that are read, as in ``mne.Info["chs"]``. None if the channels are unknown.
    bads : frozenset of str
        Names of the channels that are marked as bad.
    rows : ndarray of int, shape (n_chans,) | None
        Rows (channels) of the window in its source that are read, in this order. If None, all rows
        are read.
    n_rows : int | None
        Number of rows (channels) of the window in its source. None if unknown.
    is_picked : bool
        Whether channels were picked by type or by name.
    """

    chs_info: list[dict] | None = None
    bads: frozenset[str] = frozenset()
    rows: np.ndarray | None = None
    n_rows: int | None = None
    is_picked: bool = False

    @classmethod
    def of(cls, chs_info: list[dict], bads: Sequence[str] = ()) -> Self:
        """Create a montage that reads all channels."""
        return cls(channel_names.with_types(chs_info), frozenset(bads), n_rows=len(chs_info))

    @cached_property
    def names(self) -> list[str]:
        """Names of the channels. An empty list if the channels are unknown."""
        return [ch["ch_name"] for ch in self.chs_info or ()]

    @cached_property
    def positions(self) -> np.ndarray | None:
        """Electrode positions in meters, shape (n_chans, 3); None if the channels are unknown."""
        return channel_names.electrode_positions(self.chs_info) if self.chs_info else None

    @property
    def n_chans(self) -> int | None:
        """Number of channels that are read; None if unknown."""
        return self.n_rows if self.rows is None else len(self.rows)

    @property
    def key(self) -> Hashable:
        """Hashable key. Recordings with the same channels have equal keys."""
        kinds = tuple(ch.get("kind") for ch in self.chs_info or ())
        rows = None if self.rows is None else tuple(self.rows)
        return self.chs_info is None, tuple(self.names), kinds, self.bads, rows, self.n_rows

    def pick(self, positions: Any, chs_info: list[dict] | None = None) -> Self:
        """Return a montage with the channels at the given indices (``positions``), in this order.

        ``chs_info`` replaces the channel info of the picked channels. If None, the info is not
        changed.
        """
        descriptions = self.chs_info or []
        chosen = np.asarray(positions, dtype=int)
        if chs_info is None:
            chs_info = [descriptions[i] for i in chosen]
        if self.rows is None and np.array_equal(chosen, np.arange(len(descriptions))):
            return replace(self, chs_info=chs_info, is_picked=True)
        rows = chosen if self.rows is None else self.rows[chosen]
        return replace(self, chs_info=chs_info, rows=rows, is_picked=True)


@dataclass(frozen=True, eq=False)
class Windows(Sequence):
    """Windows of EEG with labels, subjects and other metadata, read from their source on access.

    Windows can be used as ``X`` in scikit-learn. Indexing with an integer reads one window, and
    returns it as a float32 array of shape (n_chans, n_times). Indexing with a slice, a boolean mask
    or an array of integers returns a subset of the windows without reading samples.

    Attributes
    ----------
    recordings : pandas.DataFrame
        One row per recording, with the columns ``corpus``, ``subject``, ``session`` and ``split``
        (None or NaN if unknown), ``sfreq`` in Hz (NaN if unknown), ``channels`` (a
        :class:`Montage`), ``preprocessing`` (a
        :class:`~braindecode_pars.windows.preprocessing.Preprocessing`), ``reader`` (an object that
        reads the samples), and ``base`` (for a recording in a SignalStore, the index of the signal
        of its first channel; 0 for all other recordings). If there are several corpora, the names
        of the subjects begin with the name of their corpus.
    table : pandas.DataFrame
        One row per window, with the columns ``recording`` (row in ``recordings``), ``item`` (index
        of the window in its dataset, list or array or, in a SignalStore, index of its first
        sample), ``start`` and ``stop`` in samples of the recording (-1 if unknown), ``label`` if
        there are labels, and other metadata of the dataset.
    label_dtype : numpy.dtype | None
        Data type of the labels if they are strings, because the table stores strings as objects.
        None for other labels.
    label_names : mapping of str to label | None
        Maps each class name to its label. None if the dataset has no class names.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> X, y, groups = as_sklearn(datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2))
    >>> X.shape, X[0].shape, X[groups == 2].shape
    ((24, 2, 3000), (2, 3000), (12, 2, 3000))
    >>> X.recordings["subject"].tolist(), X.table.loc[1, ["start", "stop"]].tolist()
    ([1, 2], [3000, 6000])
    """

    recordings: pd.DataFrame
    table: pd.DataFrame
    label_dtype: np.dtype | None = None
    label_names: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"Windows(n_windows={len(self)}, n_recordings={len(self._used[0])})"

    def __len__(self) -> int:
        return len(self.table)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (n_windows, n_chans, n_times), which braindecode uses to build a model.

        If windows differ in shape, or if a window would have to be read to determine its shape, the
        value is (n_windows,).
        """
        lengths = self.table["stop"].to_numpy() - self.table["start"].to_numpy()
        sizes = [*{montage.n_chans or 0 for montage in self.montages}, *np.unique(lengths).tolist()]
        return (len(self), *sizes) if len(sizes) == 2 and min(sizes) > 0 else (len(self),)

    @property
    def ndim(self) -> int:
        """Number of dimensions of :attr:`shape`."""
        return len(self.shape)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):  # scikit-learn's X[indices, ...]
            key = key[0]
        if isinstance(key, int | np.integer):
            return self.read([range(len(self))[key]])[0]
        return self.take(np.arange(len(self))[key])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Read all windows into an array of shape (n_windows, n_chans, n_times)."""
        return np.array([*self], dtype=dtype)

    def take(self, positions: Any) -> Self:
        """Return a subset: the windows at the given indices (``positions``), in this order."""
        return replace(self, table=self.table.iloc[np.asarray(positions)])

    # Columns -----------------------------------------------------------------------------------

    @cached_property
    def _recording(self) -> np.ndarray:
        return self.table["recording"].to_numpy()

    @cached_property
    def _used(self) -> tuple[np.ndarray, np.ndarray]:
        """Recordings that have windows, and the recording of each window.

        The first array contains row indices of ``recordings``, in the order of their first windows.
        The second array contains, for each window, the position of its recording in the first
        array.
        """
        place, used = pd.factorize(self._recording)
        return used, place

    def places(self) -> Iterator[tuple]:
        """Yield a key for each window. Windows with equal keys have the same samples."""
        keys = np.fromiter((reader.key for reader in self.recordings["reader"]), object)
        columns = keys[self._recording], self.column("base"), self.table["item"]
        return zip(*(column.tolist() for column in columns), strict=True)

    def column(self, name: str) -> np.ndarray:
        """Return the values of a column of ``recordings`` for each window, shape (n_windows,)."""
        return self.recordings[name].to_numpy()[self._recording]

    def _repeat_for_windows(self, values: Sequence[Any]) -> np.ndarray | None:
        """Repeat the value of each recording for its windows. Return None if no value is known."""
        used, place = self._used
        entries = [values[recording] for recording in used.tolist()]
        return None if pd.isna(np.fromiter(entries, object)).all() else as_column(entries)[place]

    @cached_property
    def y(self) -> np.ndarray | None:
        """Label of each window, shape (n_windows,). None if there are no labels."""
        if "label" not in self.table:
            return None
        labels = self.table["label"].to_numpy(copy=True)  # copied, because columns are read-only
        return labels if self.label_dtype is None else labels.astype(self.label_dtype)

    @property
    def labels(self) -> np.ndarray:
        """Label of each window, shape (n_windows,). Raises a ValueError if there are no labels."""
        if (y := self.y) is None:
            raise ValueError(
                "The windows have no labels. Pass the labels as y, or pass a windows dataset with "
                "targets. To learn without labels, use PARSEmbedder."
            )
        return y

    @cached_property
    def subjects(self) -> np.ndarray | None:
        """Subject of each window (None or NaN if unknown). None if all subjects are unknown."""
        return self._repeat_for_windows(self.recordings["subject"].tolist())

    @property
    def splits(self) -> np.ndarray | None:
        """Split of each window, such as "train" or "valid". None if all splits are unknown."""
        return self._repeat_for_windows(self.recordings["split"].tolist())

    @cached_property
    def has_subject(self) -> np.ndarray:
        """Whether the subject of each window is known, shape (n_windows,)."""
        return is_name(self.recordings["subject"].to_numpy())[self._recording]

    @property
    def groups(self) -> np.ndarray | None:
        """Subject of each window. None if the subject of any window is unknown."""
        return self.subjects if self.has_subject.all() else None

    @property
    def corpus_subjects(self) -> np.ndarray | None:
        """Subject of each window, with its corpus as prefix; None if any subject is unknown.

        Subjects of recordings without a corpus have no prefix.
        """
        if self.groups is None:
            return None
        names = (self.recordings[name].tolist() for name in ("corpus", "subject"))
        return self._repeat_for_windows([*map(subjects.in_corpus, *names)])

    @cached_property
    def sfreq(self) -> float | None:
        """Sampling rate in Hz; None if unknown."""
        known = self.recordings["sfreq"].dropna()
        return None if known.empty else float(known.iloc[0])

    def with_labels(self, y: np.ndarray, names: Mapping[str, Any] | None = None) -> Self:
        """Return a copy with other labels and class names, without copying samples."""
        # The table stores strings as objects, and several labels of a window as one object.
        dtype = y.dtype if y.ndim == 1 and y.dtype.kind in "US" else None
        plain = y.ndim == 1 and y.dtype.kind in "biuf"
        table = self.table.assign(label=y if plain else objects(list(y)))
        return replace(self, table=table, label_dtype=dtype, label_names=names)

    def with_subjects(self, subjects: np.ndarray) -> Self:
        """Return a copy with other subjects, without copying samples.

        If a recording contains windows of several subjects, it is split into one row of
        ``recordings`` per subject.
        """
        numbers, first = factorize_rows([self._recording, subjects])
        recordings = self.recordings.iloc[self._recording[first]].reset_index(drop=True)
        recordings = recordings.assign(subject=objects(subjects[first].tolist()))
        return replace(self, recordings=recordings, table=self.table.assign(recording=numbers))

    # Channels ----------------------------------------------------------------------------------

    @cached_property
    def montages(self) -> list[Montage]:
        """Distinct montages of the windows, in the order of their first windows."""
        return pd.unique(self.recordings["channels"].to_numpy()[self._used[0]]).tolist()

    @cached_property
    def montage_numbers(self) -> np.ndarray:
        """Index of the montage of each window in ``montages``, shape (n_windows,)."""
        of_recording, _ = pd.factorize(self.recordings["channels"].to_numpy())
        return pd.factorize(of_recording[self._recording])[0]

    @property
    def chs_info(self) -> list[dict] | None:
        """Channels, as in ``mne.Info["chs"]``.

        None if the channels are unknown; an empty list if recordings differ in their channels or in
        the channel order.
        """
        names = {None if m.chs_info is None else tuple(m.names) for m in self.montages}
        if len(names) > 1:
            return []
        return self.montages[0].chs_info if self.montages else None

    def montage_of(self, i: int) -> Montage:
        """Return the montage of window ``i``."""
        return self.montages[self.montage_numbers[i]]

    def with_montages(self, montages: Sequence[Montage]) -> Self:
        """Return a copy in which ``montages[i]`` replaces ``self.montages[i]`` for every i."""
        new = {id(old): montage for old, montage in zip(self.montages, montages, strict=True)}
        column = [new.get(id(montage), montage) for montage in self.recordings["channels"]]
        return replace(self, recordings=self.recordings.assign(channels=objects(column)))

    # Samples -----------------------------------------------------------------------------------

    @cached_property
    def stored_shapes(self) -> np.ndarray:
        """Number of channels and samples of the windows of a SignalStore, shape (n_windows, 2).

        Zero for windows that are not in a SignalStore: such a window must be read to determine its
        shape.
        """
        n_chans = np.array([montage.n_chans or 0 for montage in self.montages])
        lengths = self.table["stop"].to_numpy() - self.table["start"].to_numpy()
        shapes = np.column_stack([n_chans[self.montage_numbers], lengths])
        readers = self.recordings["reader"]
        is_stored = np.array([isinstance(reader, SignalReader) for reader in readers], dtype=bool)
        return np.where(is_stored[self._recording][:, None], shapes, 0)

    @property
    def shapes(self) -> np.ndarray | None:
        """Number of channels and samples of each window, int of shape (n_windows, 2).

        None if any window would have to be read to determine its shape.
        """
        return self.stored_shapes if self.stored_shapes.all() else None

    @cached_property
    def _where(self) -> tuple[np.ndarray, ...]:
        """Reader, base, item, length and batch number of each window, as five arrays.

        Windows with the same batch number can be read in one call.
        """
        lengths = self.table["stop"].to_numpy() - self.table["start"].to_numpy()
        of_recording, _ = pd.factorize(self.recordings["reader"].to_numpy())
        numbers, _ = factorize_rows([of_recording[self._recording], self.montage_numbers, lengths])
        items = self.table["item"].to_numpy()
        return self.column("reader"), self.column("base"), items, lengths, numbers

    def read(self, positions: Sequence[int] | np.ndarray) -> np.ndarray | list[np.ndarray]:
        """Read the samples of the windows at the given indices (``positions``), as float32.

        Windows of a SignalStore that have the same channels and length are read in one call, and
        returned as an array of shape (n_windows, n_chans, n_times). All other windows are returned
        as a list of arrays.

        Raises
        ------
        ValueError
            If a window is not two-dimensional, or contains NaN or infinite samples.
        """
        positions = np.asarray(positions)
        readers, bases, items, lengths, numbers = (column[positions] for column in self._where)
        if (numbers != numbers[0]).any():
            parts = np.split(positions, np.flatnonzero(np.diff(numbers)) + 1)
            return [window for part in parts for window in self.read(part)]
        reader, montage = readers[0], self.montage_of(positions[0])
        if isinstance(reader, ItemReader):
            return reader.read(positions, items, montage)
        return reader.read(bases, items, int(lengths[0]), montage)

    def read_crops(
        self, positions: np.ndarray, channels: np.ndarray, starts: np.ndarray, n_times: int
    ) -> np.ndarray:
        """Read one single-channel crop from each of several windows of a SignalStore.

        Parameters
        ----------
        positions, channels, starts : ndarray of int, shape (n_crops,)
            Index of the window, index of the channel in the picked channels, and index of the first
            sample in the window.
        n_times : int
            Number of samples per crop.

        Returns
        -------
        ndarray of float32, shape (n_crops, n_times)
            The crops.
        """
        readers, bases, items, *_ = (column[positions] for column in self._where)
        chosen = [self.montage_of(i).rows for i in positions.tolist()]
        pairs = zip(chosen, channels.tolist(), strict=True)
        signals = bases + [channel if rows is None else rows[channel] for rows, channel in pairs]
        crops = np.empty((len(positions), n_times), dtype=np.float32)
        for reader in dict.fromkeys(readers.tolist()):
            is_read = readers == reader
            crops[is_read] = reader.crops(signals[is_read], (items + starts)[is_read], n_times)
        return crops

    def batches(self, batch_size: int, *, any_montage: bool = False) -> Iterator[np.ndarray]:
        """Yield the windows in order, as float32 arrays with at most ``batch_size`` windows.

        The arrays have shape (n_windows_in_batch, n_chans, n_times). If ``any_montage`` is True,
        windows of different montages may differ in shape, and each batch contains windows of a
        single montage.

        Raises
        ------
        ValueError
            If two windows differ in shape although they must have the same shape.
        """
        numbers = (self.montage_numbers if any_montage else np.zeros(len(self), int)).tolist()
        shapes: dict[int, tuple[int, ...]] = {}
        for number, positions in groupby(range(len(self)), key=numbers.__getitem__):
            while span := [*islice(positions, batch_size)]:
                batch = self.read(span)
                shape = shapes.setdefault(number, batch[0].shape)
                for i, window in zip(span, batch, strict=True):
                    _check_shape(i, window.shape, shape)
                yield batch if isinstance(batch, np.ndarray) else np.stack(batch)

    def shortest(self) -> int:
        """Return the number of samples of the shortest window. This may read all windows."""
        self.check_not_empty()
        if self.shapes is not None:
            return int(self.shapes[:, 1].min())
        return min(window.shape[1] for window in self)

    def check(self) -> tuple[int, int]:
        """Check that all samples are finite and that all windows have the same shape.

        All windows are read once, unless their shapes are known because they come from a
        SignalStore, whose samples were checked when it was created.

        Returns
        -------
        n_chans, n_times : int
            Shape of every window.

        Raises
        ------
        ValueError
            If there are no windows, if windows differ in shape, or if a window contains NaN or
            infinite samples. The message names the first invalid window.
        """
        self.check_not_empty()
        shapes = self.shapes
        if shapes is None:
            shapes = np.array([batch.shape[1:] for batch in self.batches(64)])
        # The first window that differs in shape from window 0, or window 0 if all shapes are equal.
        i = int((shapes != shapes[0]).any(axis=1).argmax())
        first, other = (tuple(shapes[j].tolist()) for j in (0, i))
        _check_shape(i, other, first)
        return first

    def read_by(self, source: Any) -> Self:
        """Return a copy with other samples: window ``i`` is read from ``source[i]``.

        ``source`` contains only the picked channels.
        """
        picked = [replace(m, rows=None, n_rows=m.n_chans) for m in self.montages]
        readers = objects([ItemReader(source)] * len(self.recordings))
        recordings = self.with_montages(picked).recordings.assign(reader=readers)
        table = self.table.assign(item=np.arange(len(self)))
        return replace(self, recordings=recordings, table=table)

    def check_not_empty(self) -> None:
        """Raise a ValueError if there are no windows."""
        if len(self) == 0:
            raise ValueError("There are no windows: X has length 0. Pass at least one window.")


def _check_shape(i: int, shape: tuple[int, ...], first: tuple[int, ...]) -> None:
    if shape != first:
        raise ValueError(
            f"Window {i} has shape {shape}, but window 0 has shape {first}. All windows must have "
            "the same shape: use the same channels and window length in all recordings."
        )


def factorize_rows(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return an integer code for each distinct row of values, and the first row with each code.

    Codes are assigned in the order in which the rows first occur.

    Parameters
    ----------
    columns : sequence of ndarray, shape (n_rows,)
        Columns of the rows.

    Returns
    -------
    codes : ndarray of int, shape (n_rows,)
        Code of each row.
    first : ndarray of int, shape (n_codes,)
        Index of the first row with each code.
    """
    numbers = np.zeros(len(columns[0]), dtype=int)
    for column in columns:
        codes, unique_values = pd.factorize(column, use_na_sentinel=False)
        numbers = pd.factorize(numbers * len(unique_values) + codes)[0]
    return numbers, np.unique(numbers, return_index=True)[1]


def objects(values: Sequence[Any]) -> Any:
    """Convert values to a pandas column of Python objects, without a conversion of their types."""
    return pd.Index(np.fromiter(values, object), dtype=object, tupleize_cols=False)


def as_column(values: Any) -> np.ndarray:
    """Convert labels or subjects to an array. Values of mixed types keep their types."""
    if hasattr(values, "columns"):  # a DataFrame: iterating over it would give column names
        return np.asarray(values.squeeze(axis=1))
    if hasattr(values, "dtype"):  # array, tensor, Series
        return plain_array(values)
    # NumPy would convert mixed types to strings, and tuples to a second dimension.
    values = list(values)
    kinds = {type(value) for value in values}
    have_one_type = len(kinds) == 1 and tuple not in kinds
    if have_one_type or all(np.isscalar(v) and not isinstance(v, str) for v in values):
        return np.asarray(values)
    return np.fromiter(values, object)


def known_column(name: str, values: Any) -> np.ndarray:
    """Convert values to an array with :func:`as_column`, and check that no value is missing.

    Raises
    ------
    ValueError
        If a value is missing (None or NaN).
    """
    column = as_column(values)
    if n_missing := int(pd.isna(column).sum()):
        raise ValueError(
            f"Values are missing (None or NaN) in {n_missing} of {len(column)} rows of {name}. "
            "Remove the rows with missing values, or add the values."
        )
    return column


#: Strings that mean a missing value: "n/a" in BIDS, and "nan" and "none", which result from
#: converting a column with missing values to strings.
_NO_NAME = {"", "n/a", "nan", "none"}


def is_name(values: np.ndarray) -> np.ndarray:
    """Return which values are names: not None or NaN, and not a string such as "n/a" or ""."""
    blank = [isinstance(v, str) and v.strip().casefold() in _NO_NAME for v in values.tolist()]
    return ~(pd.isna(values.astype(object)) | np.array(blank, dtype=bool))


def plain_array(values: Any) -> np.ndarray:
    """Convert a tensor or a list to a NumPy array.

    Raises
    ------
    ValueError
        If values are masked, because the mask would be lost.
    """
    if np.ma.is_masked(values):
        raise ValueError(
            f"{int(np.ma.count_masked(values))} of {np.size(values)} values of the masked array "
            "are masked, but masks are not supported. Remove windows with masked values, or "
            "replace masked labels with None."
        )
    return np.asarray(values.detach().cpu() if isinstance(values, torch.Tensor) else values)
