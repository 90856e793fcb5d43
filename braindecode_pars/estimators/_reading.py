"""Read the windows of the estimators: labelled, unlabelled, and windows to predict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from braindecode_pars._sampling_rate import check_same_rate
from braindecode_pars.estimators._preprocessing import rate_given, warn_of_differences
from braindecode_pars.windows._amplitudes import warn_of_amplitudes
from braindecode_pars.windows._class_names import class_names
from braindecode_pars.windows._labels import check_class_labels, split_unlabeled
from braindecode_pars.windows._picking import pick_as_fitted, pick_eeg, pick_for_fit
from braindecode_pars.windows._sample_weight import check_weights
from braindecode_pars.windows._window_set import WindowSet, as_window_set

__all__ = [
    "LabeledWindows",
    "batches",
    "check_finite",
    "read_labeled",
    "read_to_predict",
    "read_unlabeled",
    "read_windows",
]


class LabeledWindows(NamedTuple):
    """The windows that ``fit`` of a classifier receives.

    Attributes
    ----------
    all : WindowSet
        All windows.
    labeled : WindowSet
        Labelled windows. Each label is encoded as its index in ``classes``.
    unlabeled : WindowSet | None
        Unlabelled windows; None when there are none.
    classes : ndarray, shape (n_classes,)
        Sorted labels.
    class_names : dict of label to str | None
        Name of each class, where the data have names.
    """

    all: WindowSet
    labeled: WindowSet
    unlabeled: WindowSet | None
    classes: np.ndarray
    class_names: dict[Any, str] | None


def read_windows(
    estimator: Any, X: Any, y: Any, groups: Any, *, any_montage: bool = False
) -> WindowSet:
    """Return the windows of ``fit`` as a WindowSet, after checks and with the picked channels."""
    windows = as_window_set(X, y, groups, rate_given(estimator))
    windows.check_not_empty()
    return pick_for_fit(windows, estimator.channels, any_montage=any_montage)


def read_labeled(
    estimator: Any,
    X: Any,
    y: Any,
    groups: Any,
    *,
    any_montage: bool = False,
    sample_weight: Any = None,
) -> LabeledWindows:
    """Return the windows of ``fit`` of a classifier, after checks and with the picked channels."""
    windows = read_windows(estimator, X, y, groups, any_montage=any_montage)
    if sample_weight is not None:
        windows = replace(windows, weights=check_weights(sample_weight, len(windows)))
    labeled, unlabeled = split_unlabeled(windows, estimator.unlabeled_label)
    classes, codes = _encode_labels(labeled.y)
    # replace copies: the caller's WindowSet keeps its own labels.
    names = class_names(classes, labeled.labels_by_name)
    return LabeledWindows(windows, replace(labeled, y=codes), unlabeled, classes, names)


def read_unlabeled(
    unlabeled: Any, n_times: int, sfreq: float | None, chs_info: list[dict] | None = None
) -> WindowSet | None:
    """Return the further windows for pretraining, after checks; None when there are none.

    ``chs_info`` are the channels that the user listed, None for all EEG channels. Windows that have
    none of the listed channels keep all their EEG channels.
    """
    if unlabeled is None:
        return None
    windows = as_window_set(unlabeled, n_times=n_times)
    if len(windows) == 0:
        raise ValueError("unlabeled contains no windows; pass None instead.")
    check_same_rate(windows.sfreq, sfreq, "The unlabelled windows are", "the others")
    if chs_info is None:
        windows = pick_eeg(windows)
    else:
        windows = pick_as_fitted(windows, chs_info, any_montage=True)
    warn_of_amplitudes(windows)
    return windows


def read_to_predict(
    estimator: Any, X: Any, *, any_montage: bool = False, groups: Any = None
) -> WindowSet:
    """Return windows for a fitted model as a WindowSet, after checks and with its channels."""
    windows = as_window_set(X, groups=groups)
    windows.check_not_empty()
    check_same_rate(windows.sfreq, estimator.sfreq_, "These windows are", "the model")
    windows = pick_as_fitted(windows, estimator.chs_info_, any_montage=any_montage)
    warn_of_amplitudes(windows)
    warn_of_differences(estimator.preprocessing_, windows)
    return windows


def batches(
    windows: WindowSet, patch_size: int, device: torch.device, batch_size: int = 64
) -> Iterator[Tensor]:
    """Yield the windows in order, as tensors (<= batch_size, n_chans, n_times) on a device.

    All windows of a batch have the same montage.
    """
    for batch in windows.batches(batch_size, any_montage=True):
        if batch.shape[-1] < patch_size:
            raise ValueError(
                f"A window of {batch.shape[-1]} samples is shorter than the model's patch of "
                f"{patch_size} samples."
            )
        yield torch.from_numpy(batch).to(device)


def check_finite(output: Tensor) -> Tensor:
    """Return the output of a model. Raise a ValueError when it is not finite."""
    if not torch.isfinite(output).all():
        raise ValueError(
            "The output of the model is not finite because its training diverged; fit again with "
            "a lower learning rate."
        )
    return output


def _encode_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes, and the index of every label in them."""
    check_class_labels(y)
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"Labels of different types cannot be sorted: {error}.") from error
    if len(classes) < 2:
        # scikit-learn's estimator checks expect "one class" in the message.
        raise ValueError(
            f"All labels are {classes.tolist()[0]!r}, which is one class; a classifier needs at "
            "least two classes."
        )
    return classes, codes
