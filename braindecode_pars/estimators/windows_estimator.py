"""What all estimators of windows share: accepted parameters, random state, and reading of windows.

Windows are read at the door, with the channels of the model and labels as codes.
"""

import math
import os
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import mne
import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, check_random_state, validation
from skorch.callbacks import Callback, LRScheduler

from braindecode_pars._common import checks, computing, model_files, settings, training
from braindecode_pars.encoder import TOKENIZERS
from braindecode_pars.estimators.augmentation import make_augmentation
from braindecode_pars.models import parsnet
from braindecode_pars.pretext.base import PretextTask
from braindecode_pars.windows import (
    Windows,
    amplitudes,
    convert,
    labels,
    marks,
    picking,
    preprocessing,
    table,
)

_COUNTS = (
    *("embed_dim", "num_layers", "num_heads", "mlp_dim", "min_windows"),
    *("pretrain_batch_size", "finetune_batch_size"),
)


def _text_or(text: str, rule: checks.ParameterRule) -> checks.ParameterRule:
    """Return a rule that also accepts a text such as "auto"."""
    return checks.ParameterRule(
        f"{text!r}, or {rule.text}",
        (*rule.kinds, str),
        lambda value: value == text if isinstance(value, str) else rule.holds(value),
    )


def _or_none(text: str, *kinds: type) -> checks.ParameterRule:
    """Return a rule for an instance of one of the types, or None."""
    return checks.optional(checks.instance(text, *kinds))


def _is_pair(pair: Any) -> bool:
    return len(pair) == 2 and preprocessing.are_positive(pair)


#: Parameter name -> rule. Parameters without a rule are checked where they are used.
RULES = {
    **settings.RULES,
    **parsnet.RULES,
    **dict.fromkeys(_COUNTS, checks.integer(1)),
    **dict.fromkeys(("label_smoothing", "drop_prob"), checks.share()),
    **dict.fromkeys(("pretrain_lr", "finetune_lr", "segment_seconds"), checks.positive()),
    **dict.fromkeys(("C", "gradient_clip", "prior_strength"), checks.optional(checks.positive())),
    **dict.fromkeys(("continue_pretraining", "running", "rescale"), checks.boolean()),
    **dict.fromkeys(
        ("callbacks", "pretrain_callbacks"), _or_none("a list of skorch callbacks", list)
    ),
    "pretext": _or_none("a pretext task, its name or its class", str, type, PretextTask),
    "pretext_params": _or_none("a dict of arguments", dict),
    "preprocessing": _or_none("a Preprocessing, or a dict", preprocessing.Preprocessing, dict),
    "channels": _or_none("a list of channel names", list, tuple),
    "tokenizer": checks.choice(*TOKENIZERS),
    "head": checks.choice(checks.AUTO, *parsnet.HEADS),
    "recenter": checks.optional(checks.choice(checks.AUTO, "subject")),
    **{f"pretrain_{name}": settings.RULES[name] for name in ("epochs", "max_steps", "minutes")},
    "finetune_epochs": checks.optional(checks.integer(1)),
    "finetune_warmup": checks.optional(checks.share()),
    "freeze_encoder": _text_or(checks.AUTO, checks.boolean()),
    "head_epochs": _text_or(checks.AUTO, checks.integer(0)),
    "encoder_lr_factor": _text_or(
        checks.AUTO,
        checks.ParameterRule(
            "a number of 0 or more, or two positive numbers",
            (Real, tuple, list),
            lambda value: (
                0 <= float(value) < math.inf if isinstance(value, Real) else _is_pair(value)
            ),
        ),
    ),
    "unlabeled_label": checks.ParameterRule(
        "one label, 'auto' or None, not NaN (replace it, for example by -1)",
        (Hashable, bool),
        lambda value: value is None or pd.isna(value) is not True,
    ),
    "class_weight": _text_or("balanced", _or_none("a dict", dict)),
    "validation": _text_or(labels.SPLIT, checks.share()),
    "transformer": checks.ParameterRule(
        "a transformer of windows, such as LogBandPower()",
        (object,),
        lambda value: hasattr(value, "transform") and not isinstance(value, type),
    ),
    "pooling": checks.choice(checks.AUTO, "channels", "mean_std", "mean"),
    "layer": checks.instance("an integer", Integral),
    "power": checks.choice("both", "absolute", "relative"),
    "band": checks.optional(
        checks.ParameterRule(
            "two increasing frequencies in Hz",
            (tuple, list),
            lambda band: _is_pair(band) and band[0] < band[1],
        )
    ),
    "loss": checks.choice("mse", "huber"),
    "device": checks.instance("the name of a device, or a torch.device", str, torch.device),
    "random_state": checks.ParameterRule(
        "an integer of at least 0, a numpy.random.RandomState, or None",
        (int, np.integer, np.random.RandomState, NoneType),
        lambda value: not isinstance(value, (int, np.integer)) or 0 <= int(value) < 2**32,
    ),
    "verbose": checks.instance("an integer", int, bool, np.integer),
    "checkpoint_dir": _or_none("a path", str, os.PathLike),
}


def check_estimator(estimator: BaseEstimator) -> None:
    """Check the parameters of an estimator, before windows are read or a net is trained.

    The folder ``checkpoint_dir`` is created.

    Raises
    ------
    TypeError, ValueError
        When a value is not accepted. The message contains the estimator, the parameter, the
        accepted values and the received value.
    """
    values = vars(estimator)
    rules = {**RULES, **getattr(estimator, "_own_rules", {})}
    checks.check_parameters(values, rules, type(estimator).__name__)
    preprocessing.Preprocessing.of(values.get("preprocessing"))
    make_augmentation(values.get("augmentation"))
    warmup, validation = values.get("finetune_warmup"), values.get("validation")
    _check_callbacks(values, "callbacks", "pass finetune_warmup=None", warmup, validation)
    _check_callbacks(values, "pretrain_callbacks", "pass pretrain_lr", "always", None)
    if values.get("continue_pretraining") and None in (values["encoder"], values["pretext"]):
        raise ValueError(
            "continue_pretraining=True needs an encoder and a pretext task; got "
            f"encoder={values['encoder']!r} and pretext={values['pretext']!r}."
        )
    if (folder := values.get("checkpoint_dir")) is not None:  # a wrong path fails before training
        folder = Path(folder).expanduser()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"checkpoint_dir cannot be created: {error}.") from error
        model_files.check_may_save(folder, model_files.ENCODER)


def _check_callbacks(
    values: dict[str, Any], parameter: str, remedy: str, schedule: Any, validation: Any
) -> None:
    """Check that no callback of a training needs what it has not.

    With a ``schedule``, the rate of a scheduler would be replaced in every step; without
    ``validation``, there is no validation loss.
    """
    for entry in values.get(parameter) or ():
        callback = entry[1] if isinstance(entry, tuple) and len(entry) == 2 else entry
        callback_class = callback if isinstance(callback, type) else type(callback)
        what = f"{parameter} contains {callback_class.__name__}"
        if not issubclass(callback_class, Callback):
            raise TypeError(f"{what}; pass skorch callbacks, alone or as (name, callback).")
        if schedule is not None and issubclass(callback_class, LRScheduler):
            raise ValueError(f"{what}, but every step has a learning rate already; {remedy}.")
        monitored = getattr(callback() if callback is callback_class else callback, "monitor", None)
        if not validation and isinstance(monitored, str) and "valid" in monitored:
            raise ValueError(
                f"{what}, which monitors {monitored}, but there are no validation windows; "
                "monitor train_loss, or hold some out for fine-tuning with validation=0.2."
            )


class WindowsEstimator(BaseEstimator):
    """A scikit-learn estimator whose X are windows of any supported type."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = False  # a windows dataset contains its own labels
        return tags


class LabelPredictor(ClassifierMixin, WindowsEstimator):
    """A classifier with ``classes_`` that reads windows once, for labels and probabilities."""

    unlabeled_label: Any

    # With scikit-learn's metadata routing, groups reach the predictions, for subject-wise
    # centering.
    __metadata_request__score = {"groups": True}  # noqa: RUF012
    __metadata_request__predict = {"groups": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"groups": True}  # noqa: RUF012

    @abstractmethod
    def _predictions(self, X: Any, groups: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return labels, shape (n_windows,), and probabilities, (n_windows, n_classes)."""

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

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> float:
        """Return the accuracy on the labeled windows.

        For another score, call a scorer of scikit-learn on windows that all have labels:
        ``get_scorer("balanced_accuracy")(clf, X, y)``.

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

        Returns
        -------
        float
            Accuracy between 0 and 1.

        Raises
        ------
        ValueError
            When windows, labels or weights are malformed, or when no window is labeled.
        """
        validation.check_is_fitted(self)
        windows = convert.as_windows(X, y, groups)
        labeled, y, sample_weight = labels.to_score(
            windows, self.unlabeled_label, self.classes_, sample_weight
        )
        # All windows are predicted, because the mean of a subject includes unlabeled windows.
        return float(np.average(self.predict(windows)[labeled] == y, weights=sample_weight))


def parameters_called(name: str, estimator: BaseEstimator) -> dict[str, Any]:
    """Return the parameters of this name of an estimator and its parts, such as ``svc__C``.

    Those of an estimator that is passed as ``encoder`` do not count, because it is fitted already.
    """
    return {
        full: value
        for full, value in estimator.get_params().items()
        if full.split("__")[-1] == name and "encoder" not in full.split("__")[:-1]
    }


def parameter_of_last(name: str, estimator: BaseEstimator) -> Any:
    """Return the estimator's own parameter of this name, else that of its last part with one."""
    values = parameters_called(name, estimator)
    return values.get(name, next(reversed(values.values()), None))


@contextmanager
def fresh_fit(estimator: BaseEstimator) -> Iterator[None]:
    """Delete the fitted attributes of an earlier fit, and those of this fit if it fails.

    After Ctrl-C, the fitted attributes are kept.
    """
    _delete_fitted_attributes(estimator)
    try:
        with computing.usual_torch():
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
    """Check the parameters, forget an earlier fit, and let the draws follow ``random_state``.

    torch's global state is afterwards what it was. Estimators with the same ``random_state`` hold
    out the same subjects.
    """
    check_estimator(estimator)
    device = computing.find_device(estimator.device)
    model, *parts = check_random_state(estimator.random_state).randint(2**31, size=4).tolist()
    with fresh_fit(estimator), computing.seeded(model, device):
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
    with warnings.catch_warnings(), computing.seeded(0), seeded_fit(unfitted) as seeds:
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
    rate, sfreq = preprocessing.Preprocessing.of(estimator.preprocessing).sfreq, estimator.sfreq
    whose = "The recordings of the argument preprocessing are", "the argument sfreq is"
    checks.check_same_rate(rate, sfreq, *whose, "leave one of them out")
    windows = convert.as_windows(X, y, groups, rate if sfreq is None else sfreq)
    windows.check_not_empty()
    return picking.pick_for_fit(windows, estimator.channels, any_montage=any_montage)


#: Length in seconds above which windows may be continuous recordings, and the sampling rate in Hz
#: that is assumed for it where it is unknown.
_LONGEST, _HIGHEST_RATE = 300.0, 500.0


def remember_windows(estimator: Any, windows: Windows) -> None:
    """Check the windows of ``fit``, and set their shape and channels.

    In the context of :func:`features_computed_once`, each window is read once for that.
    """
    names = tuple(ch["ch_name"] for ch in windows.chs_info or ())
    shapes = computed_once(
        lambda: ("shape", names),
        windows,
        lambda subset: {"shape": np.tile(subset.check(), (len(subset), 1))},
    )["shape"]
    # Windows of several fits may differ in shape: the check names the window.
    n_chans, n_times = windows.check() if (shapes != shapes[0]).any() else shapes[0].tolist()
    estimator.n_chans_, estimator.n_times_ = n_chans, n_times
    estimator.chs_info_ = windows.chs_info
    seconds = n_times / (windows.sfreq or _HIGHEST_RATE)
    if seconds > _LONGEST:
        checks.warn_user(
            f"The windows have {n_times} samples, {seconds:.0f} s or more. Cut continuous "
            "recordings into windows first, such as mne.make_fixed_length_epochs(raw, 10)."
        )
    amplitudes.warn_of_amplitudes(windows)
    # Windows of braindecode that overlap annotations that begin with "BAD"
    n_bad = 0
    for number, reader in enumerate(windows.recordings["reader"]):
        raw = getattr(getattr(reader, "source", None), "raw", None)
        texts = raw.annotations.description if isinstance(raw, mne.io.BaseRaw) else ()
        if any(marks.kind_of_text(text) == "bad" for text in texts):
            rows = windows.table[windows.table["recording"] == number]
            n_bad += int(
                np.sum(~marks.are_good(raw, rows["start"].to_numpy(), rows["stop"].to_numpy()))
            )
    if n_bad:
        checks.warn_user(
            f'{n_bad} of {len(windows)} windows overlap annotations that begin with "BAD" or gaps. '
            "Leave them out: cut the windows with use_mne_epochs=True in braindecode's function."
        )


def read_to_predict(
    estimator: Any, X: Any, *, any_montage: bool = False, groups: Any = None
) -> Windows:
    """Return windows for a fitted model as Windows, after checks and with its channels."""
    windows = convert.as_windows(X, groups=groups)
    windows.check_not_empty()
    checks.check_same_rate(windows.sfreq, estimator.sfreq_, "These windows are", "the model")
    windows = picking.pick_as_fitted(windows, estimator.chs_info_, any_montage=any_montage)
    if estimator.chs_info_ is None or windows.montage_of(0).chs_info is None:
        # Arrays have no channel names, so only the shape can be compared.
        n_chans, n_times = windows[0].shape
        if any_montage and estimator.chs_info_ is None and n_chans != estimator.n_chans_:
            checks.warn_user(
                f"The windows have {n_chans} channels, those of fit had {estimator.n_chans_}. Pass "
                "the same channels in the same order."
            )
        warn_of_length(estimator, n_times)
    amplitudes.warn_of_amplitudes(windows)
    amplitudes.warn_of_another_unit(windows, getattr(estimator, "amplitudes_", None))
    beginning = "These windows were prepared otherwise than those of fit"
    warn_of_differences(estimator.preprocessing_, windows, beginning, preprocessing.FIELDS)
    return windows


def batches(
    windows: Windows, patch_size: int, device: torch.device, batch_size: int = 64
) -> Iterator[tuple[torch.Tensor, table.Montage]]:
    """Yield the windows in order, as tensors (<= batch_size, n_chans, n_times) on a device.

    All windows of a batch have the montage that is yielded with it.
    """
    n_read = 0
    for batch in windows.batches(batch_size, any_montage=True):
        if batch.shape[-1] < patch_size:
            raise ValueError(
                f"A window of {batch.shape[-1]} samples is shorter than a patch of {patch_size}."
            )
        yield torch.from_numpy(batch).to(device), windows.montage_of(n_read)
        n_read += len(batch)


def warn_of_length(estimator: Any, n_times: int) -> None:
    """Warn of windows of another length than those of ``fit``."""
    if n_times != estimator.n_times_:
        checks.warn_user(
            f"The windows have {n_times} samples, those of fit had {estimator.n_times_}; cut alike."
        )


def check_n_chans(estimator: Any, n_chans: int) -> None:
    """Check the number of channels of windows whose channels have no names to be matched by."""
    if n_chans != (fitted := estimator.n_chans_):
        raise ValueError(f"The windows have {n_chans} channels, those of fit had {fitted}.")


def check_finite(output: torch.Tensor) -> torch.Tensor:
    """Return the output of a model. Raise a ValueError when it is not finite."""
    if not torch.isfinite(output).all():
        raise ValueError(
            "The output of the model is not finite because its training diverged; fit again with a "
            "lower learning rate."
        )
    return output


def preprocessing_of(estimator: Any, windows: Windows) -> preprocessing.Preprocessing:
    """Return the preprocessing of the windows of ``fit``: the argument, else their records.

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
    counts = preprocessing.counted(windows.column("preprocessing"))
    if differing := preprocessing.disagreements(counts):
        text = "; ".join(differing)
        checks.warn_user(f"Recordings were prepared differently ({text}); prepare all alike.")
    sfreq, names = estimator.sfreq_, [ch["ch_name"] for ch in estimator.chs_info_ or ()]
    recorded = replace(
        preprocessing.agreed(counts),
        sfreq=sfreq,
        channels=tuple(names) or None,
        window_seconds=None if sfreq is None else estimator.n_times_ / sfreq,
    )
    argument = preprocessing.Preprocessing.of(estimator.preprocessing)
    # A reference may have been set before the recordings were read.
    if wrong := [
        entry
        for entry in preprocessing.differences(argument, recorded)
        if entry.found != preprocessing.AS_RECORDED
    ]:
        listed_wrong = "; ".join(map(str, wrong)).replace("in training", "in the argument")
        checks.warn_user(
            "The argument preprocessing contradicts the records of the windows, and is used: "
            f"{listed_wrong}. Correct the argument, or leave this entry out."
        )
    known = {name: value for name, value in vars(argument).items() if value is not None}
    merged = replace(recorded, **known)
    preprocessing.warn_of_average(merged.reference, names)
    return merged


def warn_of_differences(
    trained: preprocessing.Preprocessing, windows: Windows, beginning: str, names: Collection[str]
) -> None:
    """Warn once when windows differ in some of these entries from those of ``fit``."""
    counts: Counter[preprocessing.Difference] = Counter()
    for actual, n in preprocessing.counted(windows.column("preprocessing")).items():
        for entry in preprocessing.differences(trained, actual or preprocessing.Preprocessing()):
            counts[entry] += n if entry.name in names else 0
    some = {entry: n for entry, n in counts.items() if n}
    if some:
        shares = ["" if n == len(windows) else f" ({n} of {len(windows)})" for n in some.values()]
        phrases = "; ".join(f"{entry}{part}" for entry, part in zip(some, shares, strict=True))
        checks.warn_user(f"{beginning}: {phrases}. {advice(some)}")


def advice(differing: Collection[preprocessing.Difference]) -> str:
    """Return what to do about differences: prepare again, or start from the originals."""
    lost = dict.fromkeys(entry.name for entry in differing if entry.repair is None)
    if not lost:
        # No hint if the average was computed, over the channels shared by all recordings.
        lacking = preprocessing.AVERAGE, preprocessing.AS_RECORDED
        is_average = any((entry.trained, entry.found) == lacking for entry in differing)
        how = " (reference='average', in commands --reference average)" if is_average else ""
        return f"Prepare the recordings as in training, before cutting windows{how}."
    return (
        f"Prepare the recordings as in training. For the {', '.join(lost)}, start from the "
        "original recordings: what a filter or a reference has removed cannot be restored."
    )


def fitted_history(estimator: Any) -> pd.DataFrame:
    """Losses, one row per epoch, over pretraining and fine-tuning.

    The columns are ``phase`` (``"pretraining"`` or ``"fine-tuning"``), ``epoch``, ``restored``,
    ``train_loss``, ``valid_loss`` and ``train_loss_relative`` (the loss relative to chance).
    ``restored`` is True for the epoch whose state the model has: that with the lowest validation
    loss, unless an ``EarlyStopping(load_best=True)`` in ``callbacks`` has restored another. Where
    it is never True, as without validation, the model has the last state. A task with several part
    losses adds a column ``train_loss_relative_NAME`` for each part. A value is NaN when its phase
    has no such loss. :func:`~braindecode_pars.plotting.training_curves` plots this table.
    """
    validation.check_is_fitted(estimator)
    phases = {"pretraining": getattr(estimator, "pretraining_history_", ())}
    if hasattr(estimator, "net_"):
        phases["fine-tuning"] = estimator.net_.history
    return training.history_frame(phases)


# Features of windows that many fits need ---------------------------------------------------------
#
# A comparison with few labels fits the same methods on many draws of the same windows. Where
# nothing before a classifier is trained, as with band power or a given encoder, the features of a
# window are the same in every draw.

Features = dict[str, np.ndarray]

#: Rows of features by what computes them, by window; and the windows themselves.
_FEATURES: ContextVar[tuple[dict[Hashable, dict[tuple, Any]], list[Windows]] | None] = ContextVar(
    "features", default=None
)


@contextmanager
def features_computed_once() -> Iterator[None]:
    """Within this context, the features of a window are computed once for all fits.

    It is for repeated fits on the windows of one dataset in one process: protocols with many draws,
    cross-validation, searches. It holds for the features of a given encoder
    (:class:`~braindecode_pars.PARSEmbedder`, :class:`~braindecode_pars.FewLabelsClassifier`) and
    for those without one, such as :class:`~braindecode_pars.evaluation.LogBandPower`. They stay in
    memory until the context ends, and can differ by rounding from those without it. Worker
    processes (``n_jobs``) do not share them. Do not change windows in place within the context.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import (
    ...     LogBandPower, features_computed_once, label_efficiency
    ... )
    >>> probe = make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression(C=0.01))
    >>> with features_computed_once():
    ...     scores = label_efficiency(
    ...         {"log band power": probe},
    ...         datasets.mental_arithmetic(),
    ...         n_train_subjects=[4],
    ...         cv=4,
    ...         seeds=range(3),
    ...         verbose=0,
    ...     )
    """
    token = _FEATURES.set(({}, []))
    try:
        yield
    finally:
        _FEATURES.reset(token)


def computed_once(
    make_key: Callable[[], Hashable], windows: Windows, compute: Callable[[Windows], Features]
) -> Features:
    """Return the features of windows; in the context, those that it has are not computed.

    Parameters
    ----------
    make_key : callable
        Function that returns all that the features of a window depend on, apart from the window.
    windows : Windows
        Windows with the channels that are used.
    compute : callable
        Function of windows that returns arrays by name, with one row for each window.
    """
    computed = _FEATURES.get()
    if computed is None or not len(windows):
        return compute(windows)
    rows_of, alive = computed
    rows = rows_of.setdefault(make_key(), {})
    lengths = (windows.table["stop"] - windows.table["start"]).tolist()
    places = list(zip(windows.places(), lengths, strict=True))
    missing = [i for i, place in enumerate(places) if place not in rows]
    if missing:
        try:
            features = compute(windows.take(missing))
        except ValueError:
            compute(windows)  # its message has the number of the window among all
            raise
        for n, i in enumerate(missing):
            rows[places[i]] = {name: values[n] for name, values in features.items()}
        alive.append(windows)  # while it is, no other window can have its place
    return {name: np.stack([rows[p][name] for p in places]) for name in rows[places[0]]}
