"""Base class of all estimators of windows: what they read, and the random state of their fits.

Labelled and unlabelled windows are separated, and their preprocessing is compared with that of the
model. Electrode positions are used where they are known.
"""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from torch import Tensor

from braindecode_pars._common.checks import check_same_rate, warn_user
from braindecode_pars._common.computing import find_device
from braindecode_pars._common.seeding import random_stream
from braindecode_pars.models import PARSNet
from braindecode_pars.models.electrodes import electrode_positions
from braindecode_pars.pretrained.cards import EncoderCard
from braindecode_pars.pretrained.saved import load_encoder
from braindecode_pars.recordings.preprocessing import (
    FIELDS,
    Difference,
    Preprocessing,
    agreed,
    counted,
    differences,
    disagreements,
)
from braindecode_pars.windows.amplitudes import warn_of_amplitudes
from braindecode_pars.windows.door import as_windows
from braindecode_pars.windows.labels import (
    check_class_labels,
    check_weights,
    class_names,
    split_unlabeled,
)
from braindecode_pars.windows.picking import pick_as_fitted, pick_eeg, pick_for_fit
from braindecode_pars.windows.table import Montage, Windows


class WindowsEstimator(BaseEstimator):
    """A scikit-learn estimator whose X are windows of any supported type."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = False  # a windows dataset contains its own labels
        return tags

    def __sklearn_clone__(self) -> WindowsEstimator:
        # scikit-learn also clones parameters, so a fitted ``encoder`` would become unfitted.
        encoder = vars(self).get("encoder")
        if encoder is None:
            return BaseEstimator.__sklearn_clone__(self)
        without_encoder = copy.copy(self)
        without_encoder.encoder = None
        cloned = BaseEstimator.__sklearn_clone__(without_encoder)
        cloned.encoder = encoder
        return cloned

    def _given_card(self) -> EncoderCard | None:
        """Card of the encoder in the parameter ``encoder``, before any fit.

        None without one, or when it cannot be read: the fit raises the error.
        """
        encoder = getattr(self, "encoder", None)
        if encoder is None:
            return None
        try:
            return load_encoder(encoder).card
        except (OSError, TypeError, ValueError):
            return None


@contextmanager
def fresh_fit(estimator: BaseEstimator) -> Iterator[None]:
    """Delete the fitted attributes of an earlier fit, and those of this fit if it fails.

    After Ctrl-C, the fitted attributes are kept.
    """
    _delete_fitted_attributes(estimator)
    try:
        yield
    except Exception:  # not KeyboardInterrupt
        _delete_fitted_attributes(estimator)
        raise


def _delete_fitted_attributes(estimator: BaseEstimator) -> None:
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


class Seeds(NamedTuple):
    """One seed per stage of a fit, so that no stage changes the random draws of another."""

    split: int
    pretraining: int
    augmentation: int


@contextmanager
def seeded_fit(estimator: Any) -> Iterator[Seeds]:
    """Let the draws inside follow ``random_state``; torch's global state stays unchanged.

    The nets of a fit draw from this state by themselves; other draws need ``with drawing():``.
    Estimators with the same ``random_state`` hold out the same subjects.
    """
    model, *parts = check_random_state(estimator.random_state).randint(2**31, size=4).tolist()
    with random_stream(model, find_device(estimator.device)):
        yield Seeds(*parts)


class LabeledWindows(NamedTuple):
    """The windows that ``fit`` of a classifier receives.

    Attributes
    ----------
    all : Windows
        All windows.
    labeled : Windows
        Labelled windows. Each label is encoded as its index in ``classes``.
    unlabeled : Windows | None
        Unlabelled windows; None when there are none.
    classes : ndarray, shape (n_classes,)
        Sorted labels.
    class_names : dict of label to str | None
        Name of each class, where the data have names.
    """

    all: Windows
    labeled: Windows
    unlabeled: Windows | None
    classes: np.ndarray
    class_names: dict[Any, str] | None


def read_windows(
    estimator: Any, X: Any, y: Any, groups: Any, *, any_montage: bool = False
) -> Windows:
    """Return the windows of ``fit`` as Windows, after checks and with the picked channels."""
    windows = as_windows(X, y, groups, rate_given(estimator))
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
        windows = windows.with_weights(check_weights(sample_weight, len(windows)))
    labeled, unlabeled = split_unlabeled(windows, estimator.unlabeled_label)
    classes, codes = _encode_labels(labeled.labels)
    names = class_names(classes, labeled.label_names)
    return LabeledWindows(windows, labeled.with_labels(codes), unlabeled, classes, names)


def read_further(estimator: Any, unlabeled: Any, sfreq: float | None) -> Windows:
    """Return the further windows for pretraining, after checks.

    Of the channels that the user listed, none may be there: all EEG channels are used then.
    """
    windows = as_windows(unlabeled, n_times=estimator.n_times_)
    if len(windows) == 0:
        raise ValueError("unlabeled contains no windows; pass None instead.")
    check_same_rate(windows.sfreq, sfreq, "The unlabelled windows are", "the others")
    if estimator.channels is None:
        windows = pick_eeg(windows)
    else:
        windows = pick_as_fitted(windows, estimator.chs_info_, any_montage=True)
    warn_of_amplitudes(windows)
    return windows


def read_to_predict(
    estimator: Any, X: Any, *, any_montage: bool = False, groups: Any = None
) -> Windows:
    """Return windows for a fitted model as Windows, after checks and with its channels."""
    windows = as_windows(X, groups=groups)
    windows.check_not_empty()
    check_same_rate(windows.sfreq, estimator.sfreq_, "These windows are", "the model")
    windows = pick_as_fitted(windows, estimator.chs_info_, any_montage=any_montage)
    warn_of_amplitudes(windows)
    beginning = "These windows were prepared otherwise than those of fit"
    warn_of_differences(estimator.preprocessing_, windows, beginning, FIELDS)
    return windows


def batches(
    windows: Windows, patch_size: int, device: torch.device, batch_size: int = 64
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


#: Entries that matter to an encoder: it normalises each window, and sees one channel at a time. A
#: notch filter is not one: 50 and 60 Hz are the mains of two countries.
OF_ENCODERS = ("band", "reference")


def rate_given(estimator: Any) -> float | None:
    """Return the sampling rate in Hz among the parameters of an estimator; None without one.

    Raises
    ------
    ValueError
        When ``sfreq`` and ``preprocessing`` have different rates.
    """
    given = Preprocessing.of(estimator.preprocessing).sfreq
    whose = "The recordings of the argument preprocessing are", "the argument sfreq is"
    check_same_rate(given, estimator.sfreq, *whose, "leave one of them out")
    return given if estimator.sfreq is None else estimator.sfreq


def preprocessing_of(estimator: Any, windows: Windows) -> Preprocessing:
    """Return the preprocessing of the windows of ``fit``: what is given, else what they tell.

    Parameters
    ----------
    estimator : estimator
        Estimator with the parameter ``preprocessing`` and the attributes ``sfreq_``, ``n_times_``
        and ``chs_info_``.
    windows : Windows
        Windows of ``fit``.

    Warns
    -----
    UserWarning
        When the recordings were prepared differently, or otherwise than ``preprocessing`` states.
    """
    found = counted_preprocessing(windows)
    differing = disagreements(found)
    if differing:
        warn_user(
            f"The recordings were prepared differently: {'; '.join(differing)}. Prepare all of "
            "them alike, so that no difference between them is one of their filters."
        )
    sfreq, names = estimator.sfreq_, [ch["ch_name"] for ch in estimator.chs_info_ or ()]
    told = replace(
        agreed(found),
        sfreq=sfreq,
        channels=tuple(names) or None,
        window_seconds=None if sfreq is None else estimator.n_times_ / sfreq,
    )
    given = Preprocessing.of(estimator.preprocessing)
    wrong = differences(given, told)
    if wrong:
        warn_user(
            "The argument preprocessing contradicts the records of the windows, and is used: "
            f"{_listed(wrong, 'in the argument')}. Correct the argument, or leave this entry out."
        )
    return replace(
        told, **{name: value for name, value in vars(given).items() if value is not None}
    )


def warn_of_encoder(trained: Preprocessing, found: Preprocessing) -> None:
    """Warn when the windows of ``fit`` have another band or reference than those of an encoder."""
    differing = [each for each in differences(trained, found) if each.name in OF_ENCODERS]
    if differing:
        warn_user(
            "The windows were prepared otherwise than the recordings that the encoder was "
            f"pretrained on: {_listed(differing, 'in pretraining')}. {_advice(differing)}"
        )


def counted_preprocessing(windows: Windows) -> Counter[Preprocessing | None]:
    """Return the number of windows of each preprocessing."""
    return counted(windows.column("preprocessing"))


def warn_of_differences(
    trained: Preprocessing, windows: Windows, beginning: str, names: Collection[str]
) -> None:
    """Warn once when windows differ in some of these entries from those of ``fit``."""
    counts: Counter[Difference] = Counter()
    for found, n in counted_preprocessing(windows).items():
        for each in differences(trained, found or Preprocessing()):
            counts[each] += n if each.name in names else 0
    some = {
        each: "" if n == len(windows) else f" ({n} of {len(windows)} windows)"
        for each, n in counts.items()
        if n
    }
    if some:
        phrases = "; ".join(f"{each}{share}" for each, share in some.items())
        warn_user(f"{beginning}: {phrases}. {_advice(list(some))}")


def _listed(found: list[Difference], where: str) -> str:
    return "; ".join(str(each).replace("in training", where) for each in found)


def _advice(found: list[Difference]) -> str:
    """Return what to do about differences: prepare again, or do not trust the model."""
    lost = [each for each in found if each.repair is None]
    if not lost:
        return "Prepare the recordings as in training, before cutting windows."
    names = ", ".join(dict.fromkeys(each.name for each in lost))
    return (
        f"Prepare the recordings as in training. For the {names}, start from the original "
        "recordings: what a filter or a reference has removed cannot be restored."
    )


log = logging.getLogger(__name__)


def needs_one_montage(estimator: BaseEstimator) -> bool:
    """Return whether the training windows must have the same channels.

    Positions ask for it, and so do the means of a subject, which are those of each channel.
    ``electrode_position="auto"`` does not: windows of different channels are accepted, and the
    model then gets no positions.
    """
    has_positions = estimator.electrode_position not in (False, "auto")
    return has_positions or estimator.head != "attention" or estimator.recenter is not None


def has_electrode_code(estimator: BaseEstimator, chs_info: list[dict] | None) -> bool:
    """Return whether a code of the electrode position is added to the tokens.

    Parameters
    ----------
    estimator : PARSClassifier
        Estimator with the parameters ``electrode_position`` and ``verbose``.
    chs_info : list of dict | None
        Channels of the training windows. None when they are unknown, empty when they differ.

    Returns
    -------
    bool
        With ``"auto"``, whether the position of at least one channel is known. The log says so.

    Raises
    ------
    ValueError
        When ``electrode_position`` is True, and channels have no names or recordings have
        different channels.
    """
    if estimator.electrode_position != "auto":
        if estimator.electrode_position:
            _check_named(chs_info)
        return bool(estimator.electrode_position)
    n_known = _n_known(chs_info or [])
    if chs_info and n_known:
        found = f"on: {n_known} of {len(chs_info)} channels are known electrodes"
    elif chs_info:
        found = f"off: no channel ({chs_info[0]['ch_name']}, ...) is a known electrode"
    else:
        found = f"off: the windows have {_not_named(chs_info)}"
    if estimator.verbose:
        log.info("electrode_position='auto' is %s.", found)
    return n_known > 0


def warn_of_unknown_electrodes(windows: Windows, n_chans: int) -> None:
    """Warn of windows to predict in which no electrode position is known.

    ``n_chans`` is the number of channels of the fit. Windows without channel names are assumed to
    have the channels of the fit, if they have as many.
    """
    reasons: dict[str, int] = {}  # reason -> number of windows
    for number, montage in enumerate(windows.montages):
        of_montage = np.flatnonzero(windows.montage_numbers == number)
        if reason := _why_unknown(windows, int(of_montage[0]), montage, n_chans):
            reasons[reason] = reasons.get(reason, 0) + len(of_montage)
    for reason, n in reasons.items():
        warn_user(f"No electrode position is known in {n} of {len(windows)} windows: {reason}")


def positions_for(module: PARSNet, chs_info: list[dict] | None, n_chans: int) -> dict[str, Any]:
    """Return the arguments of ``module.forward`` that locate the channels of a batch.

    Empty when the module needs none: it uses no positions, or those of its own channels.
    """
    if module.positions is None or (chs_info is None and n_chans == len(module.positions)):
        return {}
    if chs_info is None:
        return {"pos": torch.full((n_chans, 3), torch.nan)}
    return {"chs_info": chs_info}


def _why_unknown(windows: Windows, i: int, montage: Montage, n_chans: int) -> str | None:
    """Return why no electrode position of window ``i`` is known; None when one is."""
    if montage.chs_info is None:
        found = len(windows[i])
        if found == n_chans:
            return None
        return f"they have {found} channels without names, and the model was fitted on {n_chans}."
    if _n_known(montage.chs_info):
        return None
    return (
        f"none of their channels ({montage.names[0]}, ...) is an electrode of the 10-05 system or "
        "has a location; rename them, or set a montage."
    )


def _check_named(chs_info: list[dict] | None) -> None:
    if not chs_info:
        raise ValueError(
            "electrode_position=True needs channel names, with the same names and order in every "
            f"recording; these windows have {_not_named(chs_info)}."
        )


def _not_named(chs_info: list[dict] | None) -> str:
    return "no channel names" if chs_info is None else "different montages"


def _n_known(chs_info: list[dict]) -> int:
    """Return how many channels have a known position."""
    return int(np.isfinite(electrode_positions(chs_info)).all(axis=1).sum())
