"""Base classes of all estimators of windows: what they read, their random state, and predictions.

Windows are read at the door, with the channels of the model and labels as codes. Labels,
probabilities and scores follow from the logits of a subclass.
"""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import mne
import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import check_scoring
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from braindecode_pars._common.checks import check_same_rate, listed, warn_user
from braindecode_pars._common.computing import find_device
from braindecode_pars._common.seeding import random_stream, seeded
from braindecode_pars._common.settings import WEIGHT_DECAY
from braindecode_pars._common.training import history_frame
from braindecode_pars.estimators.parameters import check_estimator
from braindecode_pars.estimators.predict_raw import predict_raw
from braindecode_pars.estimators.transitions import Transitions
from braindecode_pars.models import PARSNet
from braindecode_pars.recordings.cutting import are_good, is_bad
from braindecode_pars.recordings.preprocessing import (
    AS_RECORDED,
    FIELDS,
    Difference,
    Preprocessing,
    agreed,
    counted,
    differences,
    disagreements,
)
from braindecode_pars.windows.amplitudes import warn_of_amplitudes, warn_of_another_unit
from braindecode_pars.windows.door import as_windows
from braindecode_pars.windows.labels import (
    check_class_labels,
    check_weights,
    names_of_classes,
    where_labelled,
)
from braindecode_pars.windows.once import checked_once
from braindecode_pars.windows.picking import pick_as_fitted, pick_for_fit
from braindecode_pars.windows.table import Windows


class WindowsEstimator(BaseEstimator):
    """A scikit-learn estimator whose X are windows of any supported type."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = False  # a windows dataset contains its own labels
        return tags

    def _check(self) -> None:
        """Check the parameters, before windows are read or a network is built."""
        check_estimator(self)


@dataclass(kw_only=True, eq=False, repr=False)
class TrainedEstimator(WindowsEstimator):
    """An estimator that trains a network; PARSClassifier describes the parameters.

    The parameters of an estimator are its fields and those of its bases.
    """

    sfreq: float | None = None
    preprocessing: Preprocessing | dict[str, Any] | None = None
    channels: list[str] | None = None
    weight_decay: float = WEIGHT_DECAY
    device: str = "auto"
    random_state: Any = None
    verbose: int = 1

    @property
    def history_(self) -> pd.DataFrame:
        """Losses, one row per epoch, over pretraining and fine-tuning.

        The columns are ``phase`` (``"pretraining"`` or ``"fine-tuning"``), ``epoch``, ``restored``,
        ``train_loss``, ``valid_loss`` and ``train_loss_relative`` (the loss relative to chance).
        ``restored`` is True for the epoch whose state the model has: that with the lowest
        validation loss, unless an ``EarlyStopping(load_best=True)`` in ``callbacks`` has restored
        another. Where it is never True, as without validation, the model has the last state. A task
        with several part losses adds a column ``train_loss_relative_NAME`` for each part.
        A value is NaN when its phase has no such loss.
        :func:`~braindecode_pars.plotting.training_curves` plots this table.
        """
        check_is_fitted(self)
        phases = {"pretraining": getattr(self, "pretraining_history_", ())}
        if hasattr(self, "net_"):
            phases["fine-tuning"] = self.net_.history
        return history_frame(phases)


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
def training(estimator: Any) -> Iterator[Seeds]:
    """Check the parameters, forget an earlier fit, and let the draws follow ``random_state``.

    The nets of a fit draw from this state by themselves; other draws need ``with drawing():``.
    torch's global state stays unchanged. Estimators with the same ``random_state`` hold out the
    same subjects.
    """
    estimator._check()
    device = find_device(estimator.device)
    model, *parts = check_random_state(estimator.random_state).randint(2**31, size=4).tolist()
    with fresh_fit(estimator), random_stream(model, device):
        yield Seeds(*parts)


#: Parameters that would take time or write files, or that a fit without training does not need.
_QUICK = dict(checkpoint_dir=None, compile=False, device="cpu", verbose=0, callbacks=None)


@contextmanager
def without_training(estimator: Any) -> Iterator[tuple[Any, Seeds]]:
    """Yield a copy of an estimator whose fit can be prepared, and the seeds of that fit.

    Nothing is written and nothing is warned of; torch's random state stays as it is.
    """
    params = estimator.get_params(deep=False)
    quick = {name: value for name, value in _QUICK.items() if name in params}
    unfitted = clone(estimator).set_params(**quick)
    with warnings.catch_warnings(), seeded(0), training(unfitted) as seeds:
        warnings.simplefilter("ignore")
        yield unfitted, seeds


def read_windows(
    estimator: Any, X: Any, y: Any = None, groups: Any = None, *, any_montage: bool = False
) -> Windows:
    """Return the windows of ``fit`` as Windows, with the picked channels.

    Raises
    ------
    ValueError
        When there are none, or ``sfreq`` and ``preprocessing`` have different rates.
    """
    given, sfreq = Preprocessing.of(estimator.preprocessing).sfreq, estimator.sfreq
    whose = "The recordings of the argument preprocessing are", "the argument sfreq is"
    check_same_rate(given, sfreq, *whose, "leave one of them out")
    windows = as_windows(X, y, groups, given if sfreq is None else sfreq)
    windows.check_not_empty()
    return pick_for_fit(windows, estimator.channels, any_montage=any_montage)


def read_labelled(
    estimator: Any, X: Any, y: Any, groups: Any, *, any_montage: bool = False
) -> Windows:
    """Return the windows of ``fit`` of a classifier, and set what their labels tell.

    That is ``classes_``, ``class_names_`` and ``transitions_``. A label is the index of its class,
    and -1 in unlabelled windows.
    """
    windows = read_windows(estimator, X, y, groups, any_montage=any_montage)
    labelled = where_labelled(windows, estimator.unlabeled_label)
    y = windows.labels[labelled]
    check_class_labels(y)
    codes = np.full(len(windows), -1)
    try:
        estimator.classes_, codes[labelled] = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"Labels of different types cannot be sorted: {error}.") from error
    if len(estimator.classes_) < 2:
        # scikit-learn's estimator checks expect "one class" in the message.
        raise ValueError(f"All labels are {y.tolist()[0]!r}, which is one class; pass two.")
    estimator.class_names_ = names_of_classes(estimator.classes_, windows.label_names)
    windows = windows.with_labels(codes)
    estimator.transitions_ = Transitions.of(
        windows[codes >= 0], estimator.classes_, estimator.class_weight
    )
    return windows


def remember_windows(estimator: Any, windows: Windows) -> None:
    """Check the windows of ``fit``, and set their shape and channels."""
    estimator.n_chans_, estimator.n_times_ = checked_once(windows)
    estimator.chs_info_ = windows.chs_info
    warn_of_amplitudes(windows)
    _warn_of_bad_times(windows)


def _warn_of_bad_times(windows: Windows) -> None:
    """Warn of windows of braindecode that overlap annotations that begin with "BAD"."""
    n_bad = 0
    for number, reader in enumerate(windows.recordings["reader"]):
        raw = getattr(getattr(reader, "source", None), "raw", None)
        if isinstance(raw, mne.io.BaseRaw) and any(map(is_bad, raw.annotations.description)):
            own = windows.table[windows.table["recording"] == number]
            n_bad += int(np.sum(~are_good(raw, own["start"].to_numpy(), own["stop"].to_numpy())))
    if n_bad:
        warn_user(
            f'{n_bad} of {len(windows)} windows overlap annotations that begin with "BAD" or gaps. '
            "Leave them out: cut the windows with use_mne_epochs=True in braindecode's function."
        )


def read_to_predict(
    estimator: Any, X: Any, *, any_montage: bool = False, groups: Any = None
) -> Windows:
    """Return windows for a fitted model as Windows, after checks and with its channels."""
    windows = as_windows(X, groups=groups)
    windows.check_not_empty()
    check_same_rate(windows.sfreq, estimator.sfreq_, "These windows are", "the model")
    windows = pick_as_fitted(windows, estimator.chs_info_, any_montage=any_montage)
    warn_of_amplitudes(windows)
    warn_of_another_unit(windows, getattr(estimator, "amplitudes_", None))
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
                f"A window of {batch.shape[-1]} samples is shorter than a patch of {patch_size}."
            )
        yield torch.from_numpy(batch).to(device)


def positions_for(module: PARSNet, chs_info: list[dict] | None, n_chans: int) -> dict[str, Any]:
    """Return the arguments of ``module.forward`` that locate the channels of a batch.

    Empty when the module needs none: it uses no positions, or those of its own channels.
    """
    if module.positions is None or (chs_info is None and n_chans == len(module.positions)):
        return {}
    if chs_info is None:
        return {"pos": torch.full((n_chans, 3), torch.nan)}
    return {"chs_info": chs_info}


def check_n_chans(estimator: Any, n_chans: int) -> None:
    """Check the number of channels of windows whose channels have no names to be matched by."""
    if n_chans != (fitted := estimator.n_chans_):
        raise ValueError(f"The windows have {n_chans} channels, those of fit had {fitted}.")


def check_finite(output: Tensor) -> Tensor:
    """Return the output of a model. Raise a ValueError when it is not finite."""
    if not torch.isfinite(output).all():
        raise ValueError(
            "The output of the model is not finite because its training diverged; fit again with a "
            "lower learning rate."
        )
    return output


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
    found = counted(windows.column("preprocessing"))
    if differing := disagreements(found):
        found_all = "; ".join(differing)
        warn_user(f"Recordings were prepared differently ({found_all}); prepare all alike.")
    sfreq, names = estimator.sfreq_, [ch["ch_name"] for ch in estimator.chs_info_ or ()]
    told = replace(
        agreed(found),
        sfreq=sfreq,
        channels=tuple(names) or None,
        window_seconds=None if sfreq is None else estimator.n_times_ / sfreq,
    )
    given = Preprocessing.of(estimator.preprocessing)
    # A reference may have been set before the recordings were read.
    if wrong := [each for each in differences(given, told) if each.found != AS_RECORDED]:
        listed_wrong = "; ".join(map(str, wrong)).replace("in training", "in the argument")
        warn_user(
            "The argument preprocessing contradicts the records of the windows, and is used: "
            f"{listed_wrong}. Correct the argument, or leave this entry out."
        )
    known = {name: value for name, value in vars(given).items() if value is not None}
    return replace(told, **known)


def warn_of_differences(
    trained: Preprocessing, windows: Windows, beginning: str, names: Collection[str]
) -> None:
    """Warn once when windows differ in some of these entries from those of ``fit``."""
    counts: Counter[Difference] = Counter()
    for found, n in counted(windows.column("preprocessing")).items():
        for each in differences(trained, found or Preprocessing()):
            counts[each] += n if each.name in names else 0
    some = {each: n for each, n in counts.items() if n}
    if some:
        shares = ["" if n == len(windows) else f" ({n} of {len(windows)})" for n in some.values()]
        phrases = "; ".join(f"{each}{share}" for each, share in zip(some, shares, strict=True))
        warn_user(f"{beginning}: {phrases}. {advice(some)}")


def advice(differing: Collection[Difference]) -> str:
    """Return what to do about differences: prepare again, or start from the originals."""
    lost = dict.fromkeys(each.name for each in differing if each.repair is None)
    if not lost:
        return "Prepare the recordings as in training, before cutting windows."
    return (
        f"Prepare the recordings as in training. For the {', '.join(lost)}, start from the "
        "original recordings: what a filter or a reference has removed cannot be restored."
    )


class WindowsClassifier(ClassifierMixin, WindowsEstimator):
    """A classifier with ``classes_`` that predicts windows and recordings from ``_logits``."""

    unlabeled_label: Any

    # With scikit-learn's metadata routing, groups that are passed reach the predictions.
    __metadata_request__score = {"groups": True, "scoring": UNUSED}  # noqa: RUF012
    __metadata_request__predict = {"groups": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"groups": True}  # noqa: RUF012
    __metadata_request__decision_function = {"groups": True}  # noqa: RUF012

    #: Windows whose predictions are returned, of those that are passed.
    _returned = slice(None)

    @property
    def _class_texts(self) -> list[str]:
        """Name of each class, or its label as text where there is none."""
        names = getattr(self, "class_names_", None) or {}
        return [str(names.get(label, label)) for label in self.classes_.tolist()]

    @abstractmethod
    def _logits(self, X: Any, groups: Any) -> Tensor:
        """Return finite logits on the CPU, shape (n_windows, n_classes)."""

    def decision_function(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the logit of each class.

        Parameters
        ----------
        X, groups
            As in ``predict_proba``.

        Returns
        -------
        ndarray of float32, shape (n_windows, n_classes) or (n_windows,)
            Logits. With two classes, the second logit minus the first: the value is positive when
            the second label in ``classes_`` is more probable.
        """
        logits = self._logits(X, groups)[self._returned].numpy()
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : windows
            Windows of any type that ``fit`` accepts. Channels are matched by name: those of ``fit``
            are used, in the order of ``fit``.

            A PARSClassifier takes windows of any length of at least one patch. When some channels
            are missing, it uses the others, as a FewLabelsClassifier does; when all are missing,
            all EEG channels. Both give a warning. A model with electrode positions uses those of
            the windows at hand, and warns when none of their channels is a known electrode; windows
            without channel names are assumed to have the channels of ``fit``.

            A FewLabelsClassifier that subtracts the mean of each subject needs all windows of a
            subject together.
        groups : array-like, shape (n_windows,) | None
            Subject of each window, for a FewLabelsClassifier; others ignore it. None uses the
            subjects of the windows.

        Returns
        -------
        ndarray of float32, shape (n_windows, n_classes)
            Probabilities; the columns are in the order of ``classes_``.

        Raises
        ------
        ValueError
            When there are no windows, when their sampling rate or their channels are not those of
            the model, when a window is too short, or when windows contain NaN. In a
            FewLabelsClassifier also when the subject of a window is needed and unknown, or has
            fewer than ten windows.
        """
        return self._predictions(X, groups)[1]

    def predict(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the most probable label of each window.

        Parameters
        ----------
        X, groups
            As in ``predict_proba``.

        Returns
        -------
        ndarray, shape (n_windows,)
            Predicted labels, in the form passed to ``fit``.
        """
        return self._predictions(X, groups)[0]

    def _predictions(self, X: Any, groups: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable labels and the probabilities; the windows are read once."""
        logits = self._logits(X, groups)[self._returned]
        return self.classes_[logits.argmax(dim=1).numpy()], logits.softmax(dim=1).numpy()

    def predict_raw(
        self,
        raw: Any,
        *,
        overlap: float = 0.0,
        preprocess: bool = True,
        smooth: bool = False,
        rescale: bool = False,
    ) -> pd.DataFrame:
        """Predict a continuous recording, window after window.

        The channels of ``fit`` are found by the names of their electrodes (``T3`` and ``T7``,
        ``A1`` and ``M1``, ``EEG C3-REF`` and ``C3`` are the same). A channel with a named
        reference, or of two electrodes, is also computed as the difference of two channels of the
        recording. Windows lie side by side from the first sample on.

        Parameters
        ----------
        raw : mne.io.Raw | path
            Continuous recording in volts, which is not changed, or an EDF, BDF, FIF or WFDB file.
        overlap : float
            Share of a window, in [0, 1), that the next window repeats. With 0, windows do not
            overlap. Otherwise further windows are predicted in between, and each row is the mean
            of the probabilities of all windows that share time with it, weighted by that time.
        preprocess : bool
            Whether the recording is resampled, referenced, filtered and scaled as the training
            recordings were, by ``preprocessing_``. With False its samples are used as they are;
            its sampling rate must then be that of the model.
        smooth : bool
            Whether the rows are also smoothed over time, by a hidden Markov model whose transitions
            are counted on the labels of ``fit``
            (:class:`~braindecode_pars.estimators.transitions.Transitions`). It is for labels with
            an order in time, such as sleep stages and seizures.
        rescale : bool
            Whether the signals are multiplied by one factor, so that their median amplitude is in
            the middle of ``amplitudes_``: for recordings of another unit or gain, as those of
            wearables.

        Returns
        -------
        pandas.DataFrame
            One row for each window from the beginning of the recording; the rest at its end that is
            shorter than a window is left out. Columns:

            - ``onset``, ``duration``: in seconds from the first sample. In a resampled recording, a
              window is off by at most one sample, and by one and a half after a gap.
            - ``label``: name of the most probable class, or the label as text. None in a window
              that is not predicted, because it contains a gap or an annotation that begins with
              "BAD".
            - ``probability_LABEL``: one column for each class, in the order of ``classes_``. NaN in
              a window that is not predicted, as in ``entropy``.
            - ``entropy``: of these probabilities, in nats.
            - ``n_chans``: number of channels of ``fit`` that the recording has. The prediction is
              that of these channels.
            - With ``smooth``, ``label_smoothed``: the window's class in the most probable sequence;
              and ``smoothed_LABEL``: probability of each class, given all windows.
              :func:`~braindecode_pars.predictions.smoothed` returns the table of these predictions
              alone.

            ``frame.attrs`` has the name of the ``recording``, the texts of the ``classes``, how the
            ``channels`` were found, and ``findings``: what makes predictions doubtful.

        Raises
        ------
        TypeError
            When ``raw`` is neither a Raw nor a path.
        ValueError
            When a file cannot be read; when the recording has none of the channels of ``fit``, or
            not all of them and the model cannot do without; when no window can be predicted; when
            samples are NaN; when the sampling rate of ``fit`` is unknown. For a
            FewLabelsClassifier that subtracts the mean of a subject, when fewer than ten windows
            can be predicted. With ``smooth``, when the model knows no transitions.

        Warns
        -----
        UserWarning
            When channels of ``fit`` are missing, and the others are used; when the recording has
            another reference, or differs in what cannot be restored; when the recordings of ``fit``
            had different bands or references, so that none is applied; when channels are flat or
            clipped for at least 1 % of the time and at least the length of a window; when
            amplitudes are far outside those of the training windows; when the subject was in the
            training, by ``subject_info["his_id"]`` of MNE or the path of the file.

        Examples
        --------
        >>> from braindecode_pars import PARSClassifier, datasets
        >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.2, n_chans=2)
        >>> clf = PARSClassifier(None, finetune_epochs=1, verbose=0).fit(windows)
        >>> frame = clf.predict_raw(windows.datasets[0].raw)
        >>> len(frame), frame["onset"][1]
        (24, np.float64(30.0))
        """
        return predict_raw(
            self, raw, overlap=overlap, preprocess=preprocess, smooth=smooth, rescale=rescale
        )

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        scoring: Any = None,
    ) -> float:
        """Return the accuracy on the labelled windows, or another score.

        Parameters
        ----------
        X : windows
            As in ``predict_proba``.
        y : array-like, shape (n_windows,) | None
            Labels; None uses the labels of the dataset. Windows with ``unlabeled_label`` are
            ignored. Windows with a label that did not occur in ``fit`` count as wrong, and a
            warning names the label.
        sample_weight : array-like, shape (n_windows,) | None
            Weight of each window.
        groups : array-like, shape (n_windows,) | None
            As in ``predict_proba``.
        scoring : str | callable | list of str | None
            Another score: the name of a scorer of scikit-learn, such as ``"balanced_accuracy"``,
            ``"roc_auc_ovr"`` or ``"neg_log_loss"``, a function ``scorer(classifier, X, y)``, or
            several names. None means accuracy.

        Returns
        -------
        float
            Accuracy between 0 and 1, or the other score; a dict for several names.

        Raises
        ------
        ValueError
            When windows, labels or weights are malformed, when no window is labelled, or when
            ``scoring`` is unknown or not defined for these labels.
        """
        check_is_fitted(self)
        given = as_windows(X, y, groups)
        labelled = np.flatnonzero(where_labelled(given, self.unlabeled_label))
        y = given.labels[labelled]
        unseen = sorted(set(y.tolist()) - set(self.classes_.tolist()), key=str)
        if unseen:
            names = listed(list(map(repr, unseen)))
            warn_user(f"No window of fit has the label {names}; windows with it count as wrong.")
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, len(given))[labelled]
            check_weights(sample_weight, len(labelled))  # those of labelled windows may all be 0
        # All windows are predicted: the mean of a subject is that of the unlabelled ones too.
        scored = copy.copy(self)
        scored._returned = labelled  # type: ignore[assignment]
        if scoring is None:
            return float(np.average(scored.predict(given) == y, weights=sample_weight))
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return check_scoring(scored, scoring)(scored, given, y, **weights)


@dataclass(kw_only=True, eq=False, repr=False)
class FineTunedEstimator(TrainedEstimator):
    """An estimator that trains ``net_`` on labelled windows."""

    finetune_epochs: int | None = None
    finetune_batch_size: int = 32
    finetune_lr: float = 1e-3
    finetune_warmup: float | None = 0.1
    gradient_clip: float | None = 1.0
    augmentation: Any = None
    validation: float | str = 0.0
    callbacks: list | None = None

    def __sklearn_is_fitted__(self) -> bool:
        # After Ctrl-C in pretraining, the net exists but its head is untrained.
        return hasattr(self, "net_") and len(self.net_.history) > 0


@dataclass(kw_only=True, eq=False, repr=False)
class LogitClassifier(WindowsClassifier, FineTunedEstimator):
    """A classifier that trains ``net_`` and predicts from its logits."""

    label_smoothing: float = 0.0
    class_weight: str | dict | None = "balanced"
    unlabeled_label: Any = "auto"
