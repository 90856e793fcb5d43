"""The door: every kind of windows becomes one table, without reading the windows.

Channels, preprocessing and names of labels are those in the records of braindecode and MNE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import mne
import numpy as np
import pandas as pd
import torch
from braindecode.datasets import (
    BaseConcatDataset,
    EEGWindowsDataset,
    RawDataset,
    WindowsDataset,
)
from sklearn.utils import column_or_1d
from skorch.helper import SliceDataset
from torch.utils.data import ConcatDataset, Dataset, Subset

from braindecode_pars._common.checks import check_same_rate, is_same_rate, warn_user
from braindecode_pars._common.subjects import in_corpus, normalized
from braindecode_pars.recordings.preprocessing import recorded
from braindecode_pars.windows.table import (
    ItemReader,
    Montage,
    Reader,
    Windows,
    as_column,
    divided,
    is_name,
    label_column,
    object_array,
    objects,
    plain_array,
)

ACCEPTED = (
    "a braindecode windows dataset, as_sklearn's X, a list of windows, an mne.Epochs, an array of "
    "shape (n_windows, n_chans, n_times) or a SignalStore's windows(n_times)"
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
                f"A {type(X).__name__} contains continuous recordings; pass windows of it: "
                "store.windows(n_times)."
            )
        X = cut_to_train(X, n_times)
    windows = X if isinstance(X, Windows) else _table(_joined(_parts(X)))
    if sfreq is not None:
        whose = "The recordings are", "the argument sfreq is"
        remedy = "leave sfreq out, or resample the recordings"
        check_same_rate(windows.sfreq, sfreq, *whose, remedy=remedy)
        windows = replace(windows, recordings=windows.recordings.assign(sfreq=float(sfreq)))
    if y is not None:
        labels, names = _column(y, len(windows), "y"), windows.label_names
        if names and not names_still_hold(names, windows.y, labels):
            names = None
        windows = windows.with_labels(labels, names)
    if groups is not None:
        windows = windows.with_subjects(_one_spelling(_column(groups, len(windows), "groups")))
    return windows


def windows_of(recordings: list[dict[str, Any]], **columns: np.ndarray) -> Windows:
    """Return windows from a dict for each recording and columns, as in the tables of Windows."""
    return _table(_Part(recordings, columns))


def is_continuous(X: Any) -> bool:
    """Whether a source, such as a SignalStore, has to be cut into windows first."""
    return callable(getattr(X, "windows", None))


def cut_to_train(X: Any, n_times: int) -> Windows:
    """Return windows of a continuous source, without people of its validation and test splits."""
    return X.without_held_out().windows(n_times)


# What each kind of source tells -----------------------------------------------------------------


class _Part(NamedTuple):
    """Some recordings with their windows: a row of the table each, and the columns of the other."""

    recordings: list[dict[str, Any]]
    columns: dict[str, np.ndarray]
    names: Mapping[str, Any] | None = None


def _part(
    reader: Reader,
    items: np.ndarray,
    recording: Mapping[str, Any] | None = None,
    columns: Mapping[str, np.ndarray] | None = None,
    names: Mapping[str, Any] | None = None,
) -> _Part:
    """Return the windows of one recording."""
    fixed = dict(recording=np.zeros(len(items), dtype=int), item=items)
    return _Part([{"reader": reader, **(recording or {})}], {**fixed, **(columns or {})}, names)


def _parts(X: Any) -> list[_Part]:
    """Return what is known of the windows of a source."""
    for kinds, read in _KINDS:
        if isinstance(X, kinds):
            return read(X)
    return _unknown(X)


def _again(X: Windows) -> list[_Part]:
    columns = {str(name): X.windows[name].to_numpy() for name in X.windows}
    if X.y is not None:
        columns["label"] = X.y
    return [_Part(X.recordings.to_dict("records"), columns, X.label_names)]


def _of_array(X: np.ndarray | torch.Tensor) -> list[_Part]:
    if X.ndim != 3:
        raise ValueError(
            f"X has shape {tuple(X.shape)}; windows have shape (n_windows, n_chans, n_times)."
        )
    X = plain_array(X)
    if X.dtype.kind not in "iuf":
        raise ValueError(f"X has dtype {X.dtype}; EEG samples must be real numbers.")
    return [_part(ItemReader(X), np.arange(len(X)))]


def _of_epochs(X: mne.BaseEpochs) -> list[_Part]:
    if not X.preload:
        X = X.copy().load_data()  # a copy, so that the Epochs of the user are not changed
    seconds = len(X.times) / float(X.info["sfreq"])
    recording = dict(
        reader=ItemReader(X.get_data(copy=False)),
        sfreq=float(X.info["sfreq"]),
        channels=Montage.of(X.info["chs"], X.info["bads"]),
        preprocessing=replace(recorded(X.info), window_seconds=seconds),
    )
    # Subjects and splits in the metadata: a row for each of them.
    table = pd.DataFrame(index=range(len(X))) if X.metadata is None else X.metadata
    told = {name: table[name].to_numpy() for name in ("subject", "split") if name in table}
    known = [
        object_array([None if pd.isna(value) else value for value in values.tolist()])
        for values in told.values()
    ]
    numbers, first = divided([np.zeros(len(X)), *known])
    rows = [{**recording, **{name: values[i] for name, values in told.items()}} for i in first] or [
        recording
    ]
    columns = dict(recording=numbers, item=np.arange(len(X)), label=X.events[:, 2])
    return [_Part(rows, {**_other_metadata(table), **columns}, X.event_id)]


def _of_recording(X: EEGWindowsDataset | WindowsDataset) -> list[_Part]:
    """Return the windows of a recording of braindecode, in memory, in a file or in a store."""
    reader: Reader = ItemReader(X)
    base, items = 0, np.arange(len(X))
    stored = X.stored_signals() if hasattr(X, "stored_signals") else None
    if stored is None:
        info = (X.raw if isinstance(X, EEGWindowsDataset) else X.windows).info
        preprocessing = recorded(info, _steps_of(X))
    else:
        info, preprocessing = stored.info, stored.preprocessing
        if stored.reader is not None:
            reader, base, items = stored.reader, stored.base, X.crop_inds[:, 1]
    sfreq, n_times = float(info["sfreq"]), _length_of(X)
    if n_times is not None:
        preprocessing = replace(preprocessing, window_seconds=n_times / sfreq)
    told = X.description
    description = {} if told is None else told
    corpus = description.get("corpus")
    recording = {name: description.get(name) for name in ("subject", "session", "split")} | dict(
        base=base,
        corpus=None if pd.isna(corpus) else str(corpus),
        sfreq=sfreq,
        preprocessing=preprocessing,
    )
    columns = {**_other_metadata(X.metadata), "start": X.crop_inds[:, 1], "stop": X.crop_inds[:, 2]}
    if X.targets_from == "metadata":
        columns["label"] = as_column(X.y)
        recording["channels"] = Montage.of(info["chs"], info["bads"])
        return [_part(reader, items, recording, columns, labels_by_name(X))]
    # braindecode takes targets from channels of type "misc"; they are not signals.
    misc = mne.io.constants.FIFF.FIFFV_MISC_CH
    signals = [ch for ch in info["chs"] if ch["kind"] != misc]
    recording["channels"] = Montage.of(signals, info["bads"])
    return [_part(reader, items, recording, columns)]


def _steps_of(X: EEGWindowsDataset | WindowsDataset) -> list:
    """Return what braindecode has recorded of the preprocessing of a recording."""
    return [
        *(getattr(X, "raw_preproc_kwargs", None) or ()),
        *(getattr(X, "window_preproc_kwargs", None) or ()),
        # A function that changes windows when they are read: its effect is unknown.
        *([{"fn": "the dataset.transform"}] if X.transform is not None else ()),
    ]


def _length_of(X: EEGWindowsDataset | WindowsDataset) -> int | None:
    """Return the length of the windows in samples; None if it differs."""
    if isinstance(X, WindowsDataset):
        return len(X.windows.times)
    lengths = np.unique(X.crop_inds[:, 2] - X.crop_inds[:, 1])
    return int(lengths[0]) if len(lengths) == 1 else None


#: Columns of the two tables, and braindecode's columns that become some of them.
_OWN = {"recording", "item", "start", "stop", "label", "weight", "subject", "split"} | {
    *("i_start_in_trial", "i_stop_in_trial", "target")
}


def _other_metadata(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the columns of metadata that have no place of their own."""
    return {str(name): table[name].to_numpy() for name in table if str(name) not in _OWN}


def _of_concat(X: ConcatDataset) -> list[_Part]:
    parts = [part for dataset in X.datasets for part in _parts(dataset)]
    # braindecode applies a target_transform when it reads a window; here it is applied to labels.
    change = getattr(X, "target_transform", None)
    if change is not None:
        parts = [
            part
            if "label" not in part.columns
            else part._replace(
                columns=part.columns | {"label": as_column([*map(change, part.columns["label"])])},
                names=None,
            )
            for part in parts
        ]
    if type(X).__getitem__ in (ConcatDataset.__getitem__, BaseConcatDataset.__getitem__):
        return parts
    return [_read_by(X, _joined(parts))]


def _read_by(X: Dataset, part: _Part) -> _Part:
    """Return the windows as a dataset that changes its items reads them."""
    recordings = [{**recording, "reader": ItemReader(X)} for recording in part.recordings]
    columns = part.columns | {"item": np.arange(len(part.columns["item"]))}
    return part._replace(recordings=recordings, columns=columns)


def _of_list(X: Sequence) -> list[_Part]:
    """Return the windows of a list; its first item shows which kind of list it is."""
    if len(X) == 0:
        return [_part(ItemReader(X), np.arange(0))]
    first = X[0]
    if isinstance(first, mne.BaseEpochs):  # scikit-learn makes them by indexing an Epochs
        for i, item in enumerate(X):
            if not isinstance(item, mne.BaseEpochs) or len(item) != 1:
                found = f"an Epochs of {len(item)} windows" if hasattr(item, "events") else item
                raise ValueError(
                    f"Item {i} is {found!s}; each Epochs in a list must have one window. Join "
                    "longer ones with mne.concatenate_epochs."
                )
        return [part for item in X for part in _of_epochs(item)]
    if isinstance(first, Dataset):
        raise ValueError(
            f"X is a list of {type(first).__name__}; join them with braindecode's "
            "BaseConcatDataset([...])."
        )
    # Tuples (window, label, ...), as braindecode's datasets return them.
    if isinstance(first, tuple | list) and len(first) > 1 and np.ndim(first[0]) == 2:
        for i, item in enumerate(X):
            if not isinstance(item, tuple | list) or len(item) != len(first):
                raise ValueError(
                    f"Item {i} of X is a {type(item).__name__}, item 0 is a tuple of {len(first)}; "
                    "all items must have the same type and length."
                )
        label = as_column([item[1] for item in X])
        return [_part(ItemReader(X), np.arange(len(X)), columns={"label": label})]
    if np.ndim(first) != 2 and not (isinstance(first, tuple) and np.ndim(first[0]) == 2):
        raise ValueError(
            f"X is a list whose first item has shape {np.shape(first)}; its items must be windows "
            "of shape (n_chans, n_times), or tuples that begin with a window."
        )
    return [_part(ItemReader(X), np.arange(len(X)))]


def _of_subset(X: SliceDataset | Subset) -> list[_Part]:
    part = _joined(_parts(X.dataset))
    if isinstance(X, SliceDataset):
        return [_selected(part, X.indices_)]
    part = _selected(part, X.indices)
    return [part if type(X).__getitem__ is Subset.__getitem__ else _read_by(X, part)]


def _of_dataset(X: Dataset) -> list[_Part]:
    try:
        n_windows = len(X)  # type: ignore[arg-type]  # torch does not ask for a length
    except TypeError:
        raise TypeError(
            f"X is a {type(X).__name__} without a length; it must be {ACCEPTED}."
        ) from None
    return [_part(ItemReader(X), np.arange(n_windows))]


def _continuous(X: RawDataset) -> list[_Part]:
    raise TypeError(
        "The dataset contains continuous recordings; cut them into windows first, for example "
        "with braindecode.preprocessing.create_fixed_length_windows."
    )


def _unknown(X: Any) -> list[_Part]:
    raise TypeError(f"X is a {type(X).__name__}; it must be {ACCEPTED}.")


#: The first kind that fits counts: a text is a sequence too, and a concatenation a dataset.
_KINDS: list[tuple[Any, Callable[[Any], list[_Part]]]] = [
    (Windows, _again),
    ((np.ndarray, torch.Tensor), _of_array),
    (mne.BaseEpochs, _of_epochs),
    ((EEGWindowsDataset, WindowsDataset), _of_recording),
    (RawDataset, _continuous),
    ((SliceDataset, Subset), _of_subset),
    (ConcatDataset, _of_concat),
    (str, _unknown),
    (Sequence, _of_list),
    (Dataset, _of_dataset),
]


# From parts to the two tables -------------------------------------------------------------------


def _selected(part: _Part, indices: Any) -> _Part:
    """Return the windows at some positions."""
    indices = np.asarray(indices)
    if len(indices) and not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(
            f"The subset has {indices.dtype} indices; they must be integers. For a boolean mask, "
            "use np.flatnonzero(mask)."
        )
    chosen = {name: values[indices.astype(int)] for name, values in part.columns.items()}
    return part._replace(columns=chosen)


def _joined(parts: list[_Part]) -> _Part:
    """Join parts; windows of a part without a column get None there."""
    if len(parts) == 1:
        return parts[0]
    lengths = [len(part.columns["item"]) for part in parts]
    before = np.cumsum([0, *(len(part.recordings) for part in parts)])
    names = dict.fromkeys(name for part in parts for name in part.columns)
    columns = {}
    for name in names:
        found = [part.columns.get(name) for part in parts]
        known = [
            np.full(n, None, object) if v is None else v
            for v, n in zip(found, lengths, strict=True)
        ]
        if name == "recording":
            known = [values + first for values, first in zip(known, before[:-1], strict=True)]
        elif len({values.dtype.kind for values in known}) > 1:
            # NumPy would convert numbers to strings, so subject 1 would become subject "1".
            known = [values.astype(object) for values in known]
        columns[name] = np.concatenate(known) if known else np.zeros(0, dtype=int)
    recordings = [recording for part in parts for recording in part.recordings]
    return _Part(
        recordings,
        columns or dict(recording=np.zeros(0, int), item=np.zeros(0, int)),
        joined_labels_by_name(part.names for part in parts),
    )


def _table(part: _Part) -> Windows:
    """Return the two tables of some windows."""
    # Recordings without a window are left out: their rate and corpus must not count.
    used, numbers = np.unique(part.columns["recording"], return_inverse=True)
    rows, columns = [part.recordings[i] for i in used], {**part.columns, "recording": numbers}
    _check_one_rate(row.get("sfreq") for row in rows)
    recordings = pd.DataFrame(index=range(len(rows)))
    for name in ("corpus", "subject", "session", "split", "preprocessing"):
        recordings[name] = objects([_plain(row.get(name)) for row in rows])
    recordings["subject"] = objects(_subjects(recordings).tolist())
    recordings["sfreq"] = [row.get("sfreq") or np.nan for row in rows]
    # Equal readers and montages are one object: a batch of several recordings is then one call.
    readers: dict[Any, Reader] = {}
    montages: dict[Any, Montage] = {}
    channels = [row.get("channels") or Montage() for row in rows]
    recordings["reader"] = objects([readers.setdefault(r["reader"].key, r["reader"]) for r in rows])
    recordings["channels"] = objects([montages.setdefault(m.key, m) for m in channels])
    recordings["base"] = np.array([row.get("base", 0) for row in rows], dtype=np.int64)

    unknown = np.full(len(columns["item"]), -1)
    columns = {"start": unknown, "stop": unknown} | columns
    label_dtype = None
    if "label" in columns:
        columns["label"], label_dtype = label_column(columns["label"])
    order = dict.fromkeys(["recording", "item", "start", "stop", *columns])
    table = pd.DataFrame({name: columns[name] for name in order})
    return Windows(recordings, table, label_dtype, part.names)


def _plain(value: Any) -> Any:
    """Return a number of NumPy as one of Python, which JSON takes, with its shorter ``repr``."""
    return value.item() if isinstance(value, np.generic) else value


def _subjects(recordings: pd.DataFrame) -> np.ndarray:
    """Return names in one spelling, with the corpus in front if there are several corpora."""
    names = _one_spelling(recordings["subject"].to_numpy())
    corpora = recordings["corpus"].tolist()
    if len(set(corpora)) < 2:
        return names
    known = is_name(names).tolist()
    rows = zip(corpora, names.tolist(), known, strict=True)
    return object_array([in_corpus(corpus, n) if has_name else n for corpus, n, has_name in rows])


def _check_one_rate(rates: Iterable[float | None]) -> None:
    counts = Counter(rate for rate in rates if rate is not None and not pd.isna(rate))
    first = next(iter(counts), None)
    if not all(is_same_rate(rate, first) for rate in counts):
        found = ", ".join(f"{rate:g} Hz ({n})" for rate, n in counts.most_common())
        raise ValueError(
            f"The recordings have different sampling rates: {found}. Resample them to one rate "
            "before you cut windows, for example with braindecode's Preprocessor('resample', "
            "sfreq=...)."
        )


# Labels and subjects as columns -----------------------------------------------------------------


def _one_spelling(subjects: np.ndarray) -> np.ndarray:
    """Give names the same Unicode form everywhere; numbers are not changed."""
    if subjects.dtype.kind not in "OU":
        return subjects
    names = [normalized(subject) for subject in subjects.tolist()]
    return np.asarray(names) if subjects.dtype.kind == "U" else object_array(names)


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
    if pd.isna(values.astype(object)).any():
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
