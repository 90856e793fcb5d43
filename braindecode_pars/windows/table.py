"""Windows of any source as one value: a table of recordings, a table of windows, and readers.

A subset is a selection of rows, and labels, subjects or splits are columns. Only the tables are in
memory: a reader gives the samples of a window when they are asked for.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, islice
from typing import Any, ClassVar, Self, TypeAlias

import mne
import numpy as np
import pandas as pd
import torch

from braindecode_pars._common import channel_names, checks, subjects

#: Reads crops: (numbers of signals, first samples, length) -> float32 (n_signals, length), in volts
ReadCrops = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


@dataclass(frozen=True, eq=False)
class ItemReader:
    """Windows that are the items of an array, a list or a dataset; they are checked when read.

    Attributes
    ----------
    source : Any
        ``source[item]`` is a window, a tuple that begins with one, or an Epochs of one window.
    """

    source: Any
    checked: ClassVar[bool] = False

    @property
    def key(self) -> Hashable:
        if isinstance(self.source, np.ndarray):  # views of the same memory are equal
            return self.source.ctypes.data, self.source.shape, self.source.strides
        return id(self.source)

    def read(self, positions: np.ndarray, items: np.ndarray, montage: "Montage") -> list:
        """Return windows, of these numbers for messages, as float32 copies after checks."""
        windows = []
        for i, item in zip(positions.tolist(), items.tolist(), strict=True):
            window = self.source[item]
            # The samples alone: without the label, out of a one-window Epochs
            if isinstance(window, tuple) or (
                isinstance(window, list) and window and np.ndim(window[0]) == 2
            ):
                window = window[0]
            if isinstance(window, mne.BaseEpochs):
                window = window.get_data(copy=False)[0]
            window = plain_array(window)
            if window.dtype.kind not in "iuf":
                raise ValueError(
                    f"Window {i} has dtype {window.dtype}; EEG samples must be real numbers."
                )
            if window.ndim != 2 or 0 in window.shape:
                raise ValueError(
                    f"Window {i} has shape {window.shape}, which is not (n_chans, n_times)."
                )
            if montage.rows is not None:
                if len(window) != montage.n_rows:
                    raise ValueError(
                        f"Window {i} has {len(window)} rows, but its recording has "
                        f"{montage.n_rows} channels; pick channels in the recording instead of by "
                        "name."
                    )
                window = window[montage.rows]
            # A copy, because torch accepts neither negative strides nor read-only memory.
            with np.errstate(over="ignore"):  # values too large for float32 become inf
                window = np.array(window, dtype=np.float32, order="C")
            finite = np.isfinite(window).all(axis=1)  # (n_chans,)
            if not finite.all():
                known = montage.names if len(montage.names) == len(window) else range(len(window))
                bad = [str(known[c]) for c in np.flatnonzero(~finite)]
                raise ValueError(
                    f"Window {i} contains NaN or infinite samples in channel "
                    f"{checks.format_list(bad, 5)}; repair it."
                )
            windows.append(window)
        return windows


@dataclass(frozen=True, eq=False)
class SignalReader:
    """Windows of continuous signals on disk, which are known to be finite.

    The base of a recording is the number of the signal that is its first channel; the others
    follow. The item of a window is its first sample.

    Attributes
    ----------
    crops : callable
        Function that reads crops of signals, such as ``SignalStore.crops``.
    """

    crops: ReadCrops
    checked: ClassVar[bool] = True

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


#: What reads the samples of windows. ``key`` is equal for readers of the same samples, ``checked``
#: says whether windows are known to be finite, with ``stop - start`` samples.
Reader: TypeAlias = ItemReader | SignalReader


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
    is_picked : bool
        Whether the channels to read have been chosen, by type or by name.
    """

    chs_info: list[dict] | None = None
    bads: frozenset[str] = frozenset()
    rows: np.ndarray | None = None
    n_rows: int | None = None
    is_picked: bool = False

    @classmethod
    def of(cls, chs_info: list[dict], bads: Sequence[str] = ()) -> Self:
        """Return the montage that reads all of these channels."""
        return cls(channel_names.with_types(chs_info), frozenset(bads), n_rows=len(chs_info))

    @cached_property
    def names(self) -> list[str]:
        """Names of the channels; empty when unknown."""
        return [ch["ch_name"] for ch in self.chs_info or ()]

    @property
    def n_chans(self) -> int | None:
        """Number of channels that are read; None when unknown."""
        return self.n_rows if self.rows is None else len(self.rows)

    @property
    def key(self) -> Hashable:
        """Value that is equal for recordings with the same channels."""
        kinds = tuple(ch.get("kind") for ch in self.chs_info or ())
        rows = None if self.rows is None else tuple(self.rows)
        return self.chs_info is None, tuple(self.names), kinds, self.bads, rows, self.n_rows

    def pick(self, positions: Sequence[int], chs_info: list[dict] | None = None) -> Self:
        """Return the montage with the channels at these positions, in this order.

        ``chs_info`` describes the picked channels; None keeps their own descriptions.
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
    """Windows with what is known of them. Reading window ``i`` reads only that window.

    It is the ``X`` of scikit-learn: an integer gives the samples of a window, float32 of shape
    (n_chans, n_times); a slice, a mask or an array of numbers gives these windows, unread.

    Attributes
    ----------
    recordings : pandas.DataFrame
        One row a recording: ``corpus``, ``subject``, ``session``, ``split`` (None or NaN where
        unknown; subjects of several corpora begin with the corpus), ``sfreq`` in Hz (NaN where
        unknown), ``channels`` (a :class:`Montage`), ``preprocessing`` (None where unknown),
        ``reader``, and ``base``, the number of the recording in its reader.
    table : pandas.DataFrame
        One row a window: ``recording`` (row of ``recordings``), ``item`` (its number in the
        reader), ``start`` and ``stop`` in samples of the recording (-1 where unknown), ``label``
        where there are any, and other metadata as they came.
    label_dtype : numpy.dtype | None
        Data type of labels that are text in the dataset; a table has objects for them.
    label_names : mapping of str to label | None
        Label of each name of a class, where the data have names.

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
        """Shape as an array: (n_windows, n_chans, n_times), from which braindecode builds a model.

        It is (n_windows,) where windows differ in their shape, or it is unknown before reading.
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
        """Return all windows in memory, shape (n_windows, n_chans, n_times)."""
        return np.array([*self], dtype=dtype)

    def take(self, positions: Any) -> Self:
        """Return the windows at the given positions, in the given order."""
        return replace(self, table=self.table.iloc[np.asarray(positions)])

    # Columns -----------------------------------------------------------------------------------

    @cached_property
    def _recording(self) -> np.ndarray:
        return self.table["recording"].to_numpy()

    @cached_property
    def _used(self) -> tuple[np.ndarray, np.ndarray]:
        """Recordings that have a window, as their first windows come; which of them each has."""
        place, used = pd.factorize(self._recording)
        return used, place

    def places(self) -> Iterator[tuple]:
        """Yield where each window is read: windows with the same place have the same samples."""
        keys = np.fromiter((reader.key for reader in self.recordings["reader"]), object)
        columns = keys[self._recording], self.column("base"), self.table["item"]
        return zip(*(column.tolist() for column in columns), strict=True)

    def column(self, name: str) -> np.ndarray:
        """Return an entry of each window's recording, shape (n_windows,)."""
        return self.recordings[name].to_numpy()[self._recording]

    def _spread_to_windows(self, values: Sequence[Any]) -> np.ndarray | None:
        """Return an entry for each window of values of all recordings; None when none is known."""
        used, place = self._used
        entries = [values[recording] for recording in used.tolist()]
        return None if pd.isna(np.fromiter(entries, object)).all() else as_column(entries)[place]

    @cached_property
    def y(self) -> np.ndarray | None:
        """Labels, shape (n_windows,); None without any."""
        if "label" not in self.table:
            return None
        labels = self.table["label"].to_numpy(copy=True)  # columns are read-only, unlike labels
        return labels if self.label_dtype is None else labels.astype(self.label_dtype)

    @property
    def labels(self) -> np.ndarray:
        """Labels of windows that have them, shape (n_windows,)."""
        if (y := self.y) is None:
            raise ValueError("The windows have no labels.")
        return y

    @cached_property
    def subjects(self) -> np.ndarray | None:
        """Subject of each window, None or NaN where unknown; None when all are."""
        return self._spread_to_windows(self.recordings["subject"].tolist())

    @property
    def splits(self) -> np.ndarray | None:
        """Split of each window's recording, such as "train"; None when there are none."""
        return self._spread_to_windows(self.recordings["split"].tolist())

    @cached_property
    def has_subject(self) -> np.ndarray:
        """Whether the subject of each window is known, shape (n_windows,)."""
        return is_name(self.recordings["subject"].to_numpy())[self._recording]

    @property
    def groups(self) -> np.ndarray | None:
        """Subjects, if every window has one: a window without may be of any subject."""
        return self.subjects if self.has_subject.all() else None

    @property
    def corpus_subjects(self) -> np.ndarray | None:
        """Subjects with their corpus in front where it is known, if every window has a subject."""
        if self.groups is None:
            return None
        names = (self.recordings[name].tolist() for name in ("corpus", "subject"))
        return self._spread_to_windows([*map(subjects.in_corpus, *names)])

    @property
    def sfreq(self) -> float | None:
        """Sampling rate in Hz; None when unknown."""
        known = self.recordings["sfreq"].dropna()
        return None if known.empty else float(known.iloc[0])

    def with_labels(self, y: np.ndarray, names: Mapping[str, Any] | None = None) -> Self:
        """Return the windows with other labels, and with the label of each name."""
        # Text is an object in a table; several labels of one window stay together.
        dtype = y.dtype if y.ndim == 1 and y.dtype.kind in "US" else None
        plain = y.ndim == 1 and y.dtype.kind in "biuf"
        table = self.table.assign(label=y if plain else objects(list(y)))
        return replace(self, table=table, label_dtype=dtype, label_names=names)

    def with_subjects(self, subjects: np.ndarray) -> Self:
        """Return the windows with other subjects; a recording of several has a row for each."""
        numbers, first = divided([self._recording, subjects])
        recordings = self.recordings.iloc[self._recording[first]].reset_index(drop=True)
        recordings = recordings.assign(subject=objects(subjects[first].tolist()))
        return replace(self, recordings=recordings, table=self.table.assign(recording=numbers))

    # Channels ----------------------------------------------------------------------------------

    @cached_property
    def montages(self) -> list[Montage]:
        """Different montages, in the order of their first windows."""
        return self.recordings["channels"].iloc[self._used[0]].unique().tolist()

    @cached_property
    def montage_numbers(self) -> np.ndarray:
        """Number of each window's montage, shape (n_windows,)."""
        of_recording, _ = pd.factorize(self.recordings["channels"].to_numpy())
        return pd.factorize(of_recording[self._recording])[0]

    @property
    def chs_info(self) -> list[dict] | None:
        """Channels, as in ``mne.Info["chs"]``.

        None when unknown; empty when recordings differ in their channels or in the order of the
        channels.
        """
        names = {None if m.chs_info is None else tuple(m.names) for m in self.montages}
        if len(names) > 1:
            return []
        return self.montages[0].chs_info if self.montages else None

    def montage_of(self, i: int) -> Montage:
        """Return the channels of window ``i``."""
        return self.montages[self.montage_numbers[i]]

    def with_montages(self, montages: Sequence[Montage]) -> Self:
        """Return the windows with other channels: one montage for each of ``montages``."""
        new = {id(old): montage for old, montage in zip(self.montages, montages, strict=True)}
        column = [new.get(id(montage), montage) for montage in self.recordings["channels"]]
        return replace(self, recordings=self.recordings.assign(channels=objects(column)))

    # Samples -----------------------------------------------------------------------------------

    @cached_property
    def shapes(self) -> np.ndarray | None:
        """Number of channels and samples of each window, int of shape (n_windows, 2).

        None when windows have to be read to know that, and whether they are finite.
        """
        if not all(reader.checked for reader in self.recordings["reader"].iloc[self._used[0]]):
            return None
        n_chans = np.array([montage.n_chans for montage in self.montages], dtype=int)
        lengths = self.table["stop"].to_numpy() - self.table["start"].to_numpy()
        return np.column_stack([n_chans[self.montage_numbers], lengths])

    @cached_property
    def _where(self) -> tuple[np.ndarray, ...]:
        """Reader, base, item and length of each window; windows of one number are read at once."""
        lengths = self.table["stop"].to_numpy() - self.table["start"].to_numpy()
        of_recording, _ = pd.factorize(self.recordings["reader"].to_numpy())
        numbers, _ = divided([of_recording[self._recording], self.montage_numbers, lengths])
        items = self.table["item"].to_numpy()
        return self.column("reader"), self.column("base"), items, lengths, numbers

    def read(self, positions: Sequence[int] | np.ndarray) -> np.ndarray | list[np.ndarray]:
        """Return the samples of some windows, float32.

        Windows of one store with the same channels and length are read in one call, as an array of
        shape (n, n_chans, n_times). Others are a list of arrays.

        Raises
        ------
        ValueError
            When a window has no samples of two dimensions, or contains NaN or infinite samples.
        """
        positions = np.asarray(positions)
        readers, bases, items, lengths, numbers = (column[positions] for column in self._where)
        if (numbers != numbers[0]).any():
            return [self.read([i])[0] for i in positions.tolist()]
        reader, montage = readers[0], self.montage_of(positions[0])
        if isinstance(reader, ItemReader):
            return reader.read(positions, items, montage)
        return reader.read(bases, items, int(lengths[0]), montage)

    def read_crops(
        self, positions: np.ndarray, channels: np.ndarray, starts: np.ndarray, n_times: int
    ) -> np.ndarray:
        """Return a crop of one channel of each of some windows of stores, shape (n, n_times)."""
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
        """Read the windows in order, as float32 arrays of shape (<= batch_size, n_chans, n_times).

        With ``any_montage``, windows of different montages may have different shapes, and a batch
        contains windows of one montage.

        Raises
        ------
        ValueError
            When two windows have different shapes.
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
        """Return the length of the shortest window; read all windows if ``shapes`` is None."""
        self.check_not_empty()
        if self.shapes is not None:
            return int(self.shapes[:, 1].min())
        return min(window.shape[1] for window in self)

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
            When there is no window, a window has another shape, or contains NaN or infinite
            samples. The message names the first such window.
        """
        self.check_not_empty()
        shapes = self.shapes
        if shapes is None:
            shapes = np.array([batch.shape[1:] for batch in self.batches(64)])
        # The first window that differs; window 0 if none does.
        i = int((shapes != shapes[0]).any(axis=1).argmax())
        first, other = (tuple(shapes[j].tolist()) for j in (0, i))
        _check_shape(i, other, first)
        return first

    def read_by(self, source: Any) -> Self:
        """Return the windows with other samples: ``source[i]`` is window ``i``, as picked."""
        picked = [replace(m, rows=None, n_rows=m.n_chans) for m in self.montages]
        readers = objects([ItemReader(source)] * len(self.recordings))
        recordings = self.with_montages(picked).recordings.assign(reader=readers)
        table = self.table.assign(item=np.arange(len(self)))
        return replace(self, recordings=recordings, table=table)

    def check_not_empty(self) -> None:
        """Raise a ValueError when there is no window."""
        if len(self) == 0:
            raise ValueError("There are no windows: the dataset has length 0.")


def _check_shape(i: int, shape: tuple[int, ...], first: tuple[int, ...]) -> None:
    if shape != first:
        raise ValueError(
            f"Window {i} has shape {shape}, window 0 has {first}; all must have the same shape."
        )


def divided(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Number the different rows of some columns, in order; return also where each is first."""
    numbers = np.zeros(len(columns[0]), dtype=int)
    for column in columns:
        codes, unique_values = pd.factorize(column, use_na_sentinel=False)
        numbers = pd.factorize(numbers * len(unique_values) + codes)[0]
    return numbers, np.unique(numbers, return_index=True)[1]


def objects(values: Sequence[Any]) -> Any:
    """Return values as a column of Python objects: pandas changes text, None and whole numbers."""
    return pd.Index(np.fromiter(values, object), dtype=object, tupleize_cols=False)


def as_column(values: Any) -> np.ndarray:
    """Convert labels or subjects to an array; entries of mixed types keep their types.

    Masked entries become None.
    """
    if hasattr(values, "columns"):  # a DataFrame; iterating over it would give names of columns
        return np.asarray(values.squeeze(axis=1))
    if np.ma.is_masked(values):
        filled = np.ma.getdata(values).astype(object)
        filled[np.ma.getmaskarray(values)] = None
        return filled
    if hasattr(values, "dtype"):  # array, tensor, Series
        return plain_array(values)
    # NumPy would convert mixed entries to strings, and tuples to a second dimension.
    values = list(values)
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and tuple not in kinds:
        try:
            return np.asarray(values)
        except ValueError:  # lists of different lengths
            return np.fromiter(values, object)
    simple = all(np.isscalar(value) and not isinstance(value, str) for value in values)
    return np.asarray(values) if simple else np.fromiter(values, object)


def known_column(name: str, values: Any) -> np.ndarray:
    """Return values as an array, see :func:`as_column`.

    Raises
    ------
    ValueError
        If a value is missing (None or NaN).
    """
    column = as_column(values)
    if n_missing := int(pd.isna(column).sum()):
        raise ValueError(
            f"{name}: {n_missing} missing values of {len(column)} (None or NaN). Leave these rows "
            "out."
        )
    return column


#: "nan" and "none" are what a missing value becomes when a column is converted to strings.
_NO_NAME = {"", "n/a", "nan", "none"}


def is_name(values: np.ndarray) -> np.ndarray:
    """Whether each entry names something: it is not missing, and no "n/a" as in BIDS."""
    blank = [isinstance(v, str) and v.strip().casefold() in _NO_NAME for v in values.tolist()]
    return ~(pd.isna(values.astype(object)) | np.array(blank, dtype=bool))


def plain_array(values: Any) -> np.ndarray:
    """Convert a tensor, masked array or list to an array; masked samples become NaN."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        # NumPy has no bfloat16.
        values = values.float() if values.is_floating_point() else values
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        values = np.ma.filled(values.astype(np.float32), np.nan)
    return np.asarray(values)
