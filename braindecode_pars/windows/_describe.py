"""Metadata of windows, collected without reading signals: one short function per source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any

import mne
import numpy as np
import pandas as pd
import torch
from braindecode.datasets import EEGWindowsDataset, RawDataset, WindowsDataset
from skorch.helper import SliceDataset
from torch.utils.data import ConcatDataset, Dataset, Subset

from braindecode_pars.preprocessing import Preprocessing
from braindecode_pars.preprocessing._recorded import recorded
from braindecode_pars.windows._channels import Channels
from braindecode_pars.windows._class_names import joined_labels_by_name, labels_by_name
from braindecode_pars.windows._stored import StoredSignals

__all__ = ["Description", "as_column", "describe", "describe_recording", "plain_array"]

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
