"""Convert every supported input to :class:`Windows`, without reading samples.

Channels, preprocessing and class names are taken from the metadata of MNE and braindecode.
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
from braindecode_pars.windows.preprocessing import Preprocessing
from braindecode_pars.windows.recorded_steps import recorded
from braindecode_pars.windows.table import (
    ItemReader,
    Montage,
    Reader,
    Windows,
    as_column,
    factorize_rows,
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
    """Convert any supported input to Windows, without reading samples.

    Parameters
    ----------
    X : Any
        Input, one of

        - a braindecode windows dataset;
        - a torch Subset or ConcatDataset of windows datasets, or a skorch SliceDataset;
        - an mne.Epochs;
        - a list of datasets, Windows or Epochs, which are concatenated;
        - a list of windows, or of tuples whose first element is a window;
        - an array or a tensor of shape (n_windows, n_chans, n_times);
        - a SignalStore (continuous recordings stored on disk), or the windows of a SignalStore.
    y, groups : array-like or DataFrame of one column, shape (n_windows,) | None
        Labels (``y``) and subjects (``groups``), which replace the labels and subjects of ``X``. If
        None, the labels and subjects of ``X`` are used. In an mne.Epochs, the labels are the event
        codes, and the subjects are the column ``subject`` of the metadata, if this column exists.
    sfreq : float | None
        Sampling rate in Hz. Only needed if ``X`` does not contain the sampling rate.
    n_times : int | None
        Number of samples per window, required if ``X`` is a SignalStore and otherwise ignored. The
        store is cut into windows for pretraining, without its validation and test subjects.

    Returns
    -------
    Windows
        The windows, with all known labels, subjects and metadata.

    Raises
    ------
    TypeError
        If the type of ``X`` is not supported.
    ValueError
        If the length of ``y`` or ``groups`` differs from the number of windows, if recordings have
        different sampling rates, if ``sfreq`` differs from the sampling rate of the data, or if
        ``X`` is a SignalStore and ``n_times`` is None.
    """
    if is_continuous(X):
        if n_times is None:
            raise ValueError(
                f"X is a {type(X).__name__}, which contains continuous signals, but windows are "
                "required. Cut X into windows of n_times samples, for example with "
                "store.windows(n_times). If the function that you called has an argument n_times, "
                "you can set it instead."
            )
        X = X.without_held_out().windows(n_times)
    windows = X if isinstance(X, Windows) else _table(_part_of(X))
    if sfreq is not None:
        remedy = "omit sfreq, or resample the recordings"
        checks.check_same_rate(
            windows.sfreq, sfreq, "The recordings are", "sfreq is set to", remedy
        )
        windows = replace(windows, recordings=windows.recordings.assign(sfreq=float(sfreq)))
    if y is not None:
        labels, names = _column(y, len(windows), "y"), windows.label_names
        if names is not None and windows.y is not None:
            # The class names are kept only if y agrees with the labels of the dataset in all
            # windows whose label in y has a name. In all other windows, y may differ from the
            # labels of the dataset, for example because y marks the windows as unlabeled.
            named_labels = [*names.values()]
            pairs = zip(windows.y.tolist(), labels.tolist(), strict=True)
            names = names if all(old == new for old, new in pairs if new in named_labels) else None
        windows = windows.with_labels(labels, names)
    if groups is not None:
        windows = windows.with_subjects(subject_column(groups, len(windows)))
    return windows


def windows_of(recordings: list[dict[str, Any]], **columns: np.ndarray) -> Windows:
    """Create Windows from dicts with the rows of its ``recordings``, and columns of its ``table``.

    Both tables are described in :class:`~braindecode_pars.windows.Windows`.
    """
    return _table(_part(recordings, columns))


def is_continuous(X: Any) -> bool:
    """Whether an input, such as a SignalStore, contains continuous signals instead of windows."""
    return callable(getattr(X, "windows", None))


# Readers of each type of input ------------------------------------------------------------------


class _Part(NamedTuple):
    """Recordings and windows of one input, before they are converted to the two tables.

    Attributes
    ----------
    recordings : list of dict
        Rows of the table of recordings.
    columns : dict of str to ndarray
        Columns of the table of windows.
    names : mapping of str to label | None
        Maps each class name to its label.
    """

    recordings: list[dict[str, Any]]
    columns: dict[str, np.ndarray]
    names: Mapping[str, Any] | None = None


#: Columns of the two tables. Metadata columns with these names do not replace them.
_COLUMNS = {"recording", "item", "start", "stop", "label", "subject", "split"}
#: Metadata columns of braindecode that are stored under a different name.
_RENAMED = {"i_start_in_trial", "i_stop_in_trial", "target"}


def _part(
    recordings: list[dict[str, Any]],
    columns: dict[str, np.ndarray],
    metadata: pd.DataFrame | None = None,
    names: Mapping[str, Any] | None = None,
) -> _Part:
    """Create a _Part from recordings, columns of the table of windows, and metadata.

    Without the columns ``recording``, ``start`` and ``stop``, all windows belong to the first
    recording, and their start and stop are unknown. Metadata that are not stored elsewhere become
    additional columns.
    """
    n = len(columns["item"])
    unknown = np.full(n, -1)
    defaults = dict(recording=np.zeros(n, int), item=unknown, start=unknown, stop=unknown)
    fields = {} if metadata is None else {str(name): metadata[name].to_numpy() for name in metadata}
    extra = {name: values for name, values in fields.items() if name not in _COLUMNS | _RENAMED}
    return _Part(recordings, defaults | extra | columns, names)


def _items_of(X: Any, columns: Mapping[str, np.ndarray]) -> _Part:
    """Return a _Part with the windows ``X[0]``, ``X[1]``, ... of an input without metadata."""
    if isinstance(X, np.ndarray) and X.ndim != 3:
        raise ValueError(
            f"X has shape {X.shape}, but must have shape (n_windows, n_chans, n_times). To pass a "
            "single window, use X[np.newaxis]."
        )
    return _part([dict(reader=ItemReader(X))], {"item": np.arange(len(X)), **columns})


def _part_of(X: Any) -> _Part:
    """Return the recordings and windows of an input, with their metadata."""
    match X:
        case Windows():
            columns = {str(name): X.table[name].to_numpy() for name in X.table}
            labels = {} if X.y is None else {"label": X.y}
            return _Part(X.recordings.to_dict("records"), columns | labels, X.label_names)
        case np.ndarray() | torch.Tensor():
            return _items_of(plain_array(X), {})
        case mne.BaseEpochs():
            return _read_epochs(X)
        case EEGWindowsDataset() | WindowsDataset():
            return _read_recording(X)
        case RawDataset() | mne.io.BaseRaw():
            raise TypeError(
                "X contains continuous recordings, but windows are expected. Cut the recordings "
                "into windows first, for example with mne.make_fixed_length_epochs or "
                "braindecode.preprocessing.create_fixed_length_windows."
            )
        case SliceDataset() | Subset():
            return _read_subset(X)
        case ConcatDataset():
            return _read_concat(X)
        case Sequence() if not isinstance(X, str):
            return _read_list(X)
        case Dataset() if hasattr(X, "__len__"):
            return _items_of(X, {})
    raise TypeError(
        f"X is a {type(X).__name__}, which is not supported. Pass a braindecode windows dataset, "
        "the X returned by as_sklearn, a list of windows, an mne.Epochs, an array of shape "
        "(n_windows, n_chans, n_times), or the result of SignalStore.windows(n_times)."
    )


def _read_epochs(X: mne.BaseEpochs) -> _Part:
    if not X.preload:
        X = X.copy().load_data()  # a copy, so that the Epochs of the caller are not changed
    sfreq = float(X.info["sfreq"])
    recording = dict(
        reader=ItemReader(X.get_data(copy=False)),
        sfreq=sfreq,
        channels=Montage.of(X.info["chs"], X.info["bads"]),
        preprocessing=replace(recorded(X.info), window_seconds=len(X.times) / sfreq),
    )
    # The table of recordings has one row per subject and split in the metadata.
    table = pd.DataFrame(index=range(len(X))) if X.metadata is None else X.metadata
    fields = {name: table[name].to_numpy() for name in ("subject", "split") if name in table}
    numbers, first = factorize_rows([np.zeros(len(X)), *fields.values()])
    rows = [recording | {name: values[i] for name, values in fields.items()} for i in first]
    columns = dict(recording=numbers, item=np.arange(len(X)), label=X.events[:, 2])
    return _part(rows, columns, table, X.event_id)


def _read_recording(X: EEGWindowsDataset | WindowsDataset) -> _Part:
    """Return the windows of a braindecode dataset of one recording."""
    _, start, stop = X.crop_inds.T
    is_epochs = isinstance(X, WindowsDataset)
    source = X.windows if is_epochs else X.raw
    n_times = [len(source.times)] if is_epochs else np.unique(stop - start).tolist()
    info = source.info
    if hasattr(source, "stored_row"):  # a recording in a SignalStore
        known = source.stored_row(X.transform is not None or X.return_ch_pos)
    else:
        # Preprocessing steps that braindecode recorded. The effect of a transform is unknown,
        # because it is applied when windows are read.
        step_attributes = ("raw_preproc_kwargs", "window_preproc_kwargs")
        steps = [step for name in step_attributes for step in getattr(X, name, None) or ()]
        steps += [] if X.transform is None else [{"fn": "the dataset.transform"}]
        known = dict(preprocessing=recorded(info, steps))
    sfreq = float(info["sfreq"])
    seconds = n_times[0] / sfreq if len(n_times) == 1 else None
    description = {} if (stored_description := X.description) is None else stored_description
    corpus = description.get("corpus")
    has_labels = X.targets_from == "metadata"
    # If targets are not in the metadata, braindecode reads them from channels of type "misc".
    # These channels are not signals.
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
    # braindecode stores the arguments of the functions that created the windows. The last argument
    # "mapping" is the mapping of names to the current labels.
    cuts = reversed(getattr(X, "window_kwargs", None) or [])
    mappings = (arguments.get("mapping") for _, arguments in cuts)
    mapping = next((m for m in mappings if isinstance(m, Mapping) and m), {})
    names = {str(name): label for name, label in mapping.items()} or None
    return _part([recording], columns | {"label": as_column(X.y)}, X.metadata, names)


def _read_concat(X: ConcatDataset) -> _Part:
    part = _joined([_part_of(dataset) for dataset in X.datasets])
    # braindecode applies target_transform when it reads a window. The labels in the table are read
    # without their windows, so target_transform is applied here.
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
            f"The indices of the subset have dtype {indices.dtype}, but must be integers. To "
            "select windows with a boolean mask, pass np.flatnonzero(mask) as indices."
        )
    chosen = {name: values[indices.astype(int)] for name, values in part.columns.items()}
    part = part._replace(columns=chosen)
    return _as_changed_by(X, part, Subset.__getitem__, SliceDataset.__getitem__)


def _as_changed_by(X: Dataset, part: _Part, *unchanged: Any) -> _Part:
    """Read windows with ``X[i]`` if the class of ``X`` overrides ``__getitem__``."""
    if type(X).__getitem__ in unchanged:
        return part
    recordings = [recording | {"reader": ItemReader(X)} for recording in part.recordings]
    items = np.arange(len(part.columns["item"]))
    return part._replace(recordings=recordings, columns=part.columns | {"item": items})


def _read_list(X: Sequence) -> _Part:
    """Return the windows of a list. The type of the first item determines how the list is read."""
    first: Any = X[0] if len(X) else None
    if isinstance(first, mne.BaseEpochs | mne.io.BaseRaw | Dataset | Windows):
        # When scikit-learn indexes Epochs, the result is a list of Epochs.
        return _joined([_part_of(item) for item in X])
    # Tuples (window, label, ...), as returned by the datasets of braindecode.
    is_labeled = isinstance(first, tuple) and len(first) > 1
    return _items_of(X, {"label": as_column([item[1] for item in X])} if is_labeled else {})


# From parts to the two tables -------------------------------------------------------------------


def _joined(parts: list[_Part]) -> _Part:
    """Concatenate parts. If a column is missing in a part, it is None for the part's windows."""
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
            # Without this, NumPy would convert numbers to strings: subject 1 to subject "1".
            arrays = [values.astype(object) for values in arrays]
        columns[name] = np.concatenate(arrays)
    columns["recording"] += np.repeat(np.cumsum(n_recordings) - n_recordings, lengths)
    recordings = [recording for part in parts for recording in part.recordings]
    return _Part(recordings, columns, joined_labels_by_name(part.names for part in parts))


#: Row in the table of recordings for a recording without metadata.
_UNKNOWN: dict[str, Any] = {
    **dict.fromkeys(("corpus", "subject", "session", "split", "sfreq")),
    **dict(preprocessing=Preprocessing(), channels=Montage(), base=0),
}


def _table(part: _Part) -> Windows:
    """Create Windows from recordings and columns."""
    # Recordings without windows are dropped, so that their sampling rate and corpus are ignored.
    used, numbers = np.unique(part.columns["recording"], return_inverse=True)
    rows: list[dict[str, Any]] = [_UNKNOWN | part.recordings[i] for i in used]
    several_corpora = len({row["corpus"] for row in rows}) > 1
    named = is_name(np.fromiter((row["subject"] for row in rows), object))
    readers: dict[Any, Reader] = {}
    montages: dict[Any, Montage] = {}
    for row, has_name in zip(rows, named.tolist(), strict=True):
        # Equal readers and montages become one object, so that one call can read windows of
        # several recordings.
        row["reader"] = readers.setdefault(row["reader"].key, row["reader"])
        row["channels"] = montages.setdefault(row["channels"].key, row["channels"])
        corpus = row["corpus"] if several_corpora and has_name else None
        row["subject"] = subjects.in_corpus(corpus, subjects.normalized(row["subject"]))
        # Convert NumPy scalars to Python numbers, which are JSON serializable.
        row |= {name: value.item() for name, value in row.items() if isinstance(value, np.generic)}
    values = {name: [row[name] for row in rows] for name in [*_UNKNOWN, "reader"]}
    # Typed here, because DataFrame.astype would take most of the time of this function.
    typed = dict(sfreq=np.array(values["sfreq"], float), base=np.array(values["base"], np.int64))
    recordings = pd.DataFrame({name: objects(column) for name, column in values.items()} | typed)
    counts = recordings["sfreq"].value_counts()
    if not all(checks.is_same_rate(rate, counts.index[0]) for rate in counts.index):
        rates = ", ".join(f"{rate:g} Hz ({n})" for rate, n in counts.items())
        raise ValueError(
            f"The recordings have different sampling rates: {rates} (number of recordings in "
            "parentheses). Resample all recordings to the same rate before creating windows."
        )
    columns = {**part.columns, "recording": numbers}
    labels = columns.pop("label", None)
    windows = Windows(recordings, pd.DataFrame(columns))
    return windows if labels is None else windows.with_labels(labels, part.names)


# Labels and subjects as columns -----------------------------------------------------------------


def _column(values: Any, n_windows: int, name: str) -> np.ndarray:
    """Convert labels or subjects to an array, and check that there is one entry per window."""
    is_list = isinstance(values, Sequence) and not isinstance(values, str)
    if not is_list and not hasattr(values, "__array__"):  # for example a dict
        raise ValueError(
            f"{name} must be an array or a list with one entry for each of the {n_windows} "
            f"windows, got {values!r}."
        )
    values = as_column(values)
    if values.shape == (n_windows, 1):
        values = column_or_1d(values, warn=True)
    if values.shape != (n_windows,):
        raise ValueError(
            f"{name} must have one entry per window, that is, shape ({n_windows},), got shape "
            f"{values.shape}."
        )
    return values


def subject_column(groups: Any, n_windows: int) -> np.ndarray:
    """Convert ``groups`` to an array with the subject of each window, with normalized Unicode.

    Raises
    ------
    ValueError
        If ``groups`` does not have one entry per window, or if a subject is missing.
    """
    column = _column(groups, n_windows, "groups")
    if not (known := is_name(column)).all():
        raise ValueError(
            f"groups must contain the subject of every window, but is None, NaN or an empty name "
            f"for {(~known).sum()} of {n_windows} windows. Add the missing subjects, or omit "
            "windows without a subject."
        )
    return as_column([*map(subjects.normalized, column.tolist())])


def joined_labels_by_name(parts: Iterable[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Merge the mappings of class names to labels of several recordings.

    A recording may contain only some of the classes.

    Returns
    -------
    dict of str to label | None
        Maps the class names of all recordings to their labels. None if there are no class names, or
        if a name has different labels in different recordings.

    Warns
    -----
    UserWarning
        If a name has different labels in different recordings.
    """
    joined: dict[str, Any] = {}
    for part in parts:
        for name, label in (part or {}).items():
            if joined.setdefault(name, label) != label:
                checks.warn_user(
                    f"The class name {name!r} has the label {joined[name]!r} in some recordings "
                    f"and {label!r} in other recordings, so class names are not used. Create the "
                    "windows of all recordings with the same mapping of class names to labels."
                )
                return None
    return joined or None
