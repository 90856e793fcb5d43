"""The door: every kind of windows becomes one table, without reading the windows.

Channels, preprocessing and names of labels are those in the records of braindecode and MNE.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import mne
import numpy as np
import pandas as pd
import torch
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset, RawDataset, WindowsDataset
from sklearn.utils import column_or_1d
from skorch.helper import SliceDataset
from torch.utils.data import ConcatDataset, Dataset, Subset

from braindecode_pars._common import checks, subjects
from braindecode_pars.windows.recorded_steps import recorded
from braindecode_pars.windows.table import (
    ItemReader,
    Montage,
    Reader,
    Windows,
    as_column,
    divided,
    is_name,
    objects,
    plain_array,
)


def as_windows(
    X: Any,
    y: Any = None,
    groups: Any = None,
    sfreq: float | None = None,
    n_times: int | None = None,
) -> Windows:
    """Return any supported source of windows as Windows, without reading the windows.

    Parameters
    ----------
    X : Any
        Source of windows: a braindecode windows dataset, a torch Subset or ConcatDataset of these,
        a skorch SliceDataset, an mne.Epochs, a list of datasets or Epochs, which are joined, a list
        of windows or tuples, an array, or a SignalStore or its windows.
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
    Windows
        The windows with what is known of them.

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
                f"A {type(X).__name__} has windows of any length; pass n_times where it is an "
                "argument, or windows of n_times samples, such as store.windows(n_times)."
            )
        X = X.without_held_out().windows(n_times)
    windows = X if isinstance(X, Windows) else _table(_part_of(X))
    if sfreq is not None:
        remedy = "leave sfreq out, or resample them"
        checks.check_same_rate(windows.sfreq, sfreq, "The recordings are", "sfreq= is", remedy)
        windows = replace(windows, recordings=windows.recordings.assign(sfreq=float(sfreq)))
    if y is not None:
        labels, names = _column(y, len(windows), "y"), windows.label_names
        if names is not None and windows.y is not None:
            # Names hold for other labels too, if every window whose given label has a name also
            # has this label in the dataset. Windows may be marked as unlabeled.
            named = [*names.values()]
            pairs = zip(windows.y.tolist(), labels.tolist(), strict=True)
            names = names if all(old == new for old, new in pairs if new in named) else None
        windows = windows.with_labels(labels, names)
    if groups is not None:
        windows = windows.with_subjects(subject_column(groups, len(windows)))
    return windows


def windows_of(recordings: list[dict[str, Any]], **columns: np.ndarray) -> Windows:
    """Return windows from a dict for each recording and columns, as in the tables of Windows."""
    return _table(_part(recordings, columns))


def is_continuous(X: Any) -> bool:
    """Whether a source, such as a SignalStore, has to be cut into windows first."""
    return callable(getattr(X, "windows", None))


# Windows of each kind of source -----------------------------------------------------------------


class _Part(NamedTuple):
    """Some recordings with their windows: a row of the table each, and the columns of the other."""

    recordings: list[dict[str, Any]]
    columns: dict[str, np.ndarray]
    names: Mapping[str, Any] | None = None


#: Columns of the two tables, and braindecode's columns that become some of them.
_OWN = {"recording", "item", "start", "stop", "label", "subject", "split"} | {
    *("i_start_in_trial", "i_stop_in_trial", "target")
}


def _part(
    recordings: list[dict[str, Any]],
    columns: dict[str, np.ndarray],
    metadata: pd.DataFrame | None = None,
    names: Mapping[str, Any] | None = None,
) -> _Part:
    """Return windows of one recording that lie anywhere in it, unless ``columns`` say more.

    Metadata that have no place of their own become further columns.
    """
    n = len(columns["item"])
    unknown = np.full(n, -1)
    fixed = dict(recording=np.zeros(n, int), item=unknown, start=unknown, stop=unknown)
    fields = {} if metadata is None else {str(name): metadata[name].to_numpy() for name in metadata}
    others = {name: values for name, values in fields.items() if name not in _OWN}
    return _Part(recordings, fixed | others | columns, names)


def _items_of(X: Any, columns: dict[str, np.ndarray] | None = None) -> _Part:
    """Return the windows ``X[0]``, ``X[1]``, ..., of which nothing else is known."""
    if isinstance(X, np.ndarray) and X.ndim != 3:
        raise ValueError(f"X has shape {X.shape}; windows have (n_windows, n_chans, n_times).")
    return _part([dict(reader=ItemReader(X))], {"item": np.arange(len(X)), **(columns or {})})


def _part_of(X: Any) -> _Part:
    """Return what is known of the windows of a source."""
    match X:
        case Windows():
            columns = {str(name): X.table[name].to_numpy() for name in X.table}
            labels = {} if X.y is None else {"label": X.y}
            return _Part(X.recordings.to_dict("records"), columns | labels, X.label_names)
        case np.ndarray() | torch.Tensor():
            return _items_of(plain_array(X))
        case mne.BaseEpochs():
            return _read_epochs(X)
        case EEGWindowsDataset() | WindowsDataset():
            return _read_recording(X)
        case RawDataset() | mne.io.BaseRaw():
            raise TypeError(
                "X contains continuous recordings; cut them into windows first, for example with "
                "mne.make_fixed_length_epochs or braindecode's create_fixed_length_windows."
            )
        case SliceDataset() | Subset():
            return _read_subset(X)
        case ConcatDataset():
            return _read_concat(X)
        case Sequence() if not isinstance(X, str):
            return _read_list(X)
        case Dataset() if hasattr(X, "__len__"):
            return _items_of(X)
    raise TypeError(
        f"X is a {type(X).__name__}; it must be a braindecode windows dataset, as_sklearn's X, a "
        "list of windows, an mne.Epochs, an array of shape (n_windows, n_chans, n_times) or a "
        "SignalStore's windows(n_times)."
    )


def _read_epochs(X: mne.BaseEpochs) -> _Part:
    if not X.preload:
        X = X.copy().load_data()  # a copy, so that the Epochs of the user are not changed
    sfreq = float(X.info["sfreq"])
    recording = dict(
        reader=ItemReader(X.get_data(copy=False)),
        sfreq=sfreq,
        channels=Montage.of(X.info["chs"], X.info["bads"]),
        preprocessing=replace(recorded(X.info), window_seconds=len(X.times) / sfreq),
    )
    # One row of the table of recordings for each subject and split in the metadata.
    table = pd.DataFrame(index=range(len(X))) if X.metadata is None else X.metadata
    fields = {name: table[name].to_numpy() for name in ("subject", "split") if name in table}
    numbers, first = divided([np.zeros(len(X)), *fields.values()])
    rows = [recording | {name: values[i] for name, values in fields.items()} for i in first]
    columns = dict(recording=numbers, item=np.arange(len(X)), label=X.events[:, 2])
    return _part(rows, columns, table, X.event_id)


def _read_recording(X: EEGWindowsDataset | WindowsDataset) -> _Part:
    """Return the windows of a recording of braindecode, in memory, in a file or in a store."""
    _, start, stop = X.crop_inds.T
    is_epochs = isinstance(X, WindowsDataset)
    source = X.windows if is_epochs else X.raw
    n_times = [len(source.times)] if is_epochs else np.unique(stop - start).tolist()
    info = source.info
    if hasattr(source, "stored_row"):  # a recording of a store
        known = source.stored_row(X.transform is not None or X.return_ch_pos)
    else:
        # What braindecode has recorded; the effect of a transform when windows are read is unknown.
        step_attributes = ("raw_preproc_kwargs", "window_preproc_kwargs")
        steps = [step for name in step_attributes for step in getattr(X, name, None) or ()]
        steps += [] if X.transform is None else [{"fn": "the dataset.transform"}]
        known = dict(preprocessing=recorded(info, steps))
    sfreq = float(info["sfreq"])
    seconds = n_times[0] / sfreq if len(n_times) == 1 else None
    description = {} if (stored_description := X.description) is None else stored_description
    corpus = description.get("corpus")
    has_labels = X.targets_from == "metadata"
    # braindecode takes other targets from channels of type "misc"; they are not signals.
    misc = mne.io.constants.FIFF.FIFFV_MISC_CH
    signals = [ch for ch in info["chs"] if has_labels or ch["kind"] != misc]
    recording = {name: description.get(name) for name in ("subject", "session", "split")} | dict(
        corpus=None if pd.isna(corpus) else str(corpus),
        sfreq=sfreq,
        channels=Montage.of(signals, info["bads"]),
    )
    recording |= {"reader": ItemReader(X), **known}
    recording["preprocessing"] = replace(known["preprocessing"], window_seconds=seconds)
    items = start if "reader" in known else np.arange(len(X))
    columns = dict(item=items, start=start, stop=stop)
    if not has_labels:
        return _part([recording], columns, X.metadata)
    # braindecode records the functions that cut windows, with their arguments. The last mapping
    # counts.
    cuts = reversed(getattr(X, "window_kwargs", None) or [])
    mappings = (arguments.get("mapping") for _, arguments in cuts)
    mapping = next((m for m in mappings if isinstance(m, Mapping) and m), {})
    names = {str(name): label for name, label in mapping.items()} or None
    return _part([recording], columns | {"label": as_column(X.y)}, X.metadata, names)


def _read_concat(X: ConcatDataset) -> _Part:
    part = _joined([_part_of(dataset) for dataset in X.datasets])
    # braindecode applies a target_transform when it reads a window; here it is applied to labels.
    change = getattr(X, "target_transform", None)
    if change is not None and "label" in part.columns:
        original_labels = part.columns["label"].tolist()
        labels = as_column([None if label is None else change(label) for label in original_labels])
        part = part._replace(columns=part.columns | {"label": labels}, names=None)
    return _as_changed_by(X, part, ConcatDataset.__getitem__, BaseConcatDataset.__getitem__)


def _read_subset(X: SliceDataset | Subset) -> _Part:
    part = _part_of(X.dataset)
    indices = np.asarray(X.indices_ if isinstance(X, SliceDataset) else X.indices)
    if len(indices) and indices.dtype.kind not in "iu":
        raise ValueError(
            f"The subset has {indices.dtype} indices; they must be integers. For a boolean mask, "
            "use np.flatnonzero(mask)."
        )
    chosen = {name: values[indices.astype(int)] for name, values in part.columns.items()}
    part = part._replace(columns=chosen)
    return _as_changed_by(X, part, Subset.__getitem__, SliceDataset.__getitem__)


def _as_changed_by(X: Dataset, part: _Part, *unchanged: Any) -> _Part:
    """Return the windows as a dataset reads them whose class may change its items."""
    if type(X).__getitem__ in unchanged:
        return part
    recordings = [recording | {"reader": ItemReader(X)} for recording in part.recordings]
    items = np.arange(len(part.columns["item"]))
    return part._replace(recordings=recordings, columns=part.columns | {"item": items})


def _read_list(X: Sequence) -> _Part:
    """Return the windows of a list; its first item shows which kind of list it is."""
    first: Any = X[0] if len(X) else None
    if isinstance(first, mne.BaseEpochs | mne.io.BaseRaw | Dataset):
        # scikit-learn makes lists of Epochs
        return _joined([_part_of(item) for item in X])
    is_tuple = isinstance(first, tuple | list) and len(first) > 1 and np.ndim(first[0]) == 2
    if not is_tuple:
        return _items_of(X)
    # Tuples (window, label, ...), as braindecode's datasets return them.
    for i, item in enumerate(X):
        if not isinstance(item, tuple | list) or len(item) != len(first):
            raise ValueError(
                f"Item {i} of X is a {type(item).__name__}, unlike item 0, a tuple of {len(first)}."
            )
    return _items_of(X, {"label": as_column([item[1] for item in X])})


# From parts to the two tables -------------------------------------------------------------------


def _joined(parts: list[_Part]) -> _Part:
    """Join parts; windows of a part without a column get None there."""
    if len(parts) == 1:
        return parts[0]
    lengths = [len(part.columns["item"]) for part in parts]
    n_recordings = [len(part.recordings) for part in parts]
    columns = {}
    for name in dict.fromkeys(name for part in parts for name in part.columns):
        arrays = [
            part.columns[name] if name in part.columns else np.full(n, None)
            for part, n in zip(parts, lengths, strict=True)
        ]
        if len({values.dtype.kind for values in arrays}) > 1:
            # NumPy would convert numbers to strings, so subject 1 would become subject "1".
            arrays = [values.astype(object) for values in arrays]
        columns[name] = np.concatenate(arrays)
    columns["recording"] += np.repeat(np.cumsum(n_recordings) - n_recordings, lengths)
    recordings = [recording for part in parts for recording in part.recordings]
    return _Part(recordings, columns, joined_labels_by_name(part.names for part in parts))


#: A recording of which nothing is known.
_UNKNOWN: dict[str, Any] = {
    **dict.fromkeys(("corpus", "subject", "session", "split", "sfreq", "preprocessing")),
    **dict(channels=Montage(), base=0),
}


def _table(part: _Part) -> Windows:
    """Return the two tables of some windows."""
    # Recordings without a window are left out: their rate and corpus must not count.
    used, numbers = np.unique(part.columns["recording"], return_inverse=True)
    rows: list[dict[str, Any]] = [_UNKNOWN | part.recordings[i] for i in used]
    several_corpora = len({row["corpus"] for row in rows}) > 1
    named = is_name(np.fromiter((row["subject"] for row in rows), object))
    readers: dict[Any, Reader] = {}
    montages: dict[Any, Montage] = {}
    for row, has_name in zip(rows, named.tolist(), strict=True):
        # Equal readers and montages become one object, so that one call reads several recordings.
        row["reader"] = readers.setdefault(row["reader"].key, row["reader"])
        row["channels"] = montages.setdefault(row["channels"].key, row["channels"])
        corpus = row["corpus"] if several_corpora and has_name else None
        row["subject"] = subjects.in_corpus(corpus, subjects.normalized(row["subject"]))
        # Numbers of Python, which JSON takes, with their shorter ``repr``
        row |= {name: value.item() for name, value in row.items() if isinstance(value, np.generic)}
    recordings = pd.DataFrame(
        {name: objects([row[name] for row in rows]) for name in [*_UNKNOWN, "reader"]}
    )
    recordings = recordings.astype({"sfreq": float, "base": np.int64})
    counts = recordings["sfreq"].value_counts()
    if not all(checks.is_same_rate(rate, counts.index[0]) for rate in counts.index):
        rates = ", ".join(f"{rate:g} Hz ({n})" for rate, n in counts.items())
        raise ValueError(
            f"The recordings have different sampling rates: {rates}; resample them before you cut "
            "windows."
        )
    columns = {**part.columns, "recording": numbers}
    labels = columns.pop("label", None)
    windows = Windows(recordings, pd.DataFrame(columns))
    return windows if labels is None else windows.with_labels(labels, part.names)


# Labels and subjects as columns -----------------------------------------------------------------


def _column(values: Any, n_windows: int, name: str) -> np.ndarray:
    """Convert labels or subjects to one array, and check that each window has an entry."""
    is_list = isinstance(values, Sequence) and not isinstance(values, str)
    if not is_list and not hasattr(values, "__array__"):  # such as a dict: its keys are no labels
        raise ValueError(f"{name} is {values!r}; it must have {n_windows} entries, one per window.")
    values = as_column(values)
    if values.shape == (n_windows, 1):
        values = column_or_1d(values, warn=True)
    if values.shape != (n_windows,):
        raise ValueError(
            f"{name} has shape {values.shape}; it must have one entry per window: ({n_windows},)."
        )
    return values


def subject_column(groups: Any, n_windows: int) -> np.ndarray:
    """Return the subject of each window in one Unicode form, shape (n_windows,).

    Raises
    ------
    ValueError
        When there is not one for each window, or a subject is missing.
    """
    column = _column(groups, n_windows, "groups")
    if not (known := is_name(column)).all():
        raise ValueError(
            f"groups contains None or NaN for {(~known).sum()} of {n_windows} windows; every "
            "window needs a subject."
        )
    return as_column([*map(subjects.normalized, column.tolist())])


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
                checks.warn_user(
                    f"{name!r} is label {joined[name]!r} in some recordings and {label!r} in "
                    "others, so classes have no names; cut all recordings with the same mapping."
                )
                return None
    return joined or None
