"""Base classes and functions shared by all estimators of windows.

They validate parameters, seed the random state, convert ``X`` to Windows with the channels of the
model, and compare the preprocessing of windows.
"""

import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

import mne
import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state, validation
from skorch.callbacks import Callback, LRScheduler

from braindecode_pars._common import checks, computing, findings, model_files, settings, training
from braindecode_pars._common.findings import Finding
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
    """Return a rule that also accepts a string such as "auto"."""
    return checks.ParameterRule(
        f"{text!r}, or {rule.text}",
        (*rule.kinds, str),
        lambda value: value == text if isinstance(value, str) else rule.is_valid(value),
    )


def _or_none(text: str, *kinds: type) -> checks.ParameterRule:
    """Return a rule that accepts an instance of one of the types, or None."""
    return checks.optional(checks.instance(text, *kinds))


#: Rules of the parameters by name. Parameters without a rule are checked where they are used.
RULES = {
    **settings.RULES,
    **parsnet.RULES,
    **dict.fromkeys(_COUNTS, checks.integer(1)),
    **dict.fromkeys(("label_smoothing", "drop_prob"), checks.proportion()),
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
    "recenter": checks.optional(checks.choice(checks.AUTO, "subject")),
    **{f"pretrain_{name}": settings.RULES[name] for name in ("epochs", "max_steps", "minutes")},
    "finetune_epochs": checks.optional(checks.integer(1)),
    "finetune_warmup": checks.optional(checks.proportion()),
    "freeze_encoder": _text_or(checks.AUTO, checks.boolean()),
    "head_epochs": _text_or(checks.AUTO, checks.integer(0)),
    "encoder_lr_factor": _text_or(
        checks.AUTO,
        checks.ParameterRule(
            "a number of at least 0, or a pair of positive numbers",
            (Real, tuple, list),
            lambda value: (
                0 <= float(value) < math.inf
                if isinstance(value, Real)
                else len(value) == 2 and preprocessing.are_positive(value)
            ),
        ),
    ),
    "unlabeled_label": checks.ParameterRule(
        "a single label other than NaN (mark unlabeled windows with a number such as -1 instead), "
        "'auto' or None",
        (Hashable, bool),
        lambda value: value is None or pd.isna(value) is not True,
    ),
    "class_weight": _text_or("balanced", _or_none("a dict", dict)),
    "validation": _text_or(labels.SPLIT, checks.proportion()),
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
            "a pair of increasing frequencies in Hz",
            (tuple, list),
            lambda band: len(band) == 2 and preprocessing.are_positive(band) and band[0] < band[1],
        )
    ),
    "loss": checks.choice("mse", "huber"),
    "device": checks.instance("the name of a device, or a torch.device", str, torch.device),
    "verbose": checks.instance("an integer", int, bool, np.integer),
    "checkpoint_dir": _or_none("a path", str, os.PathLike),
}


def check_estimator(estimator: BaseEstimator) -> None:
    """Validate the parameters of an estimator before it reads windows or trains a network.

    If ``checkpoint_dir`` is set, this folder is created.

    Raises
    ------
    TypeError, ValueError
        If the value of a parameter is not accepted. The message contains the names of the estimator
        and of the parameter, the accepted values and the received value.
    OSError
        If ``checkpoint_dir`` cannot be created.
    """
    values = vars(estimator)
    rules = {**RULES, **getattr(estimator, "_own_rules", {})}
    checks.check_parameters(values, rules, type(estimator).__name__)
    check_random_state(values.get("random_state"))
    preprocessing.Preprocessing.of(values.get("preprocessing"))
    make_augmentation(values.get("augmentation"))
    has_schedule = values.get("finetune_warmup") is not None
    _check_callbacks("callbacks", values, has_schedule, bool(values.get("validation")))
    _check_callbacks("pretrain_callbacks", values, True, False)
    if values.get("continue_pretraining") and None in (values["encoder"], values["pretext"]):
        raise ValueError(
            "continue_pretraining=True requires a pretrained encoder and a pretext task, got "
            f"encoder={values['encoder']!r} and pretext={values['pretext']!r}. Pass both, or use "
            "continue_pretraining=False."
        )
    if (folder := values.get("checkpoint_dir")) is not None:  # an invalid path fails early
        folder = Path(folder).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        model_files.check_may_save(folder, model_files.ENCODER)


def _check_callbacks(
    parameter: str, values: dict[str, Any], has_schedule: bool, has_validation: bool
) -> None:
    """Check that callbacks are compatible with the learning rate schedule and the validation.

    The built-in schedule would overwrite the learning rate of a scheduler in every step. Without
    validation windows, there is no validation loss to monitor.
    """
    for entry in values.get(parameter) or ():
        callback = entry[1] if isinstance(entry, tuple) else entry
        callback = callback() if isinstance(callback, type) else callback
        beginning = f"{parameter} contains {type(callback).__name__}"
        if not isinstance(callback, Callback):
            raise TypeError(
                f"{beginning}, which is not a skorch callback. Pass skorch callbacks, or tuples "
                "(name, callback)."
            )
        if has_schedule and isinstance(callback, LRScheduler):
            raise ValueError(
                f"{beginning}, which conflicts with the built-in learning rate schedule. Remove "
                "this callback. In fine-tuning, you can keep it if you turn off the built-in "
                "schedule with finetune_warmup=None."
            )
        monitored = getattr(callback, "monitor", None)
        if isinstance(monitored, str) and "valid" in monitored and not has_validation:
            raise ValueError(
                f"{beginning}, which monitors {monitored}, but there is no validation loss. "
                "Monitor train_loss instead. In fine-tuning, you can also hold out validation "
                "subjects, for example with validation=0.2."
            )


def parameters_called(name: str, estimator: BaseEstimator) -> dict[str, Any]:
    """Return all parameters of an estimator and its components that have the given name.

    The keys of the dict are full names, such as ``svc__C`` for the name "C" in a pipeline. The
    parameters of an ``encoder`` are excluded, because the encoder is already fitted.
    """
    return {
        full: value
        for full, value in estimator.get_params().items()
        if full.split("__")[-1] == name and "encoder" not in full.split("__")[:-1]
    }


def parameter_of_last(name: str, estimator: BaseEstimator) -> Any:
    """Return the value of a parameter of an estimator, or of the last component that has it.

    None if neither the estimator nor a component has a parameter called ``name``.
    """
    values = parameters_called(name, estimator)
    return values.get(name, next(reversed(values.values()), None))


@contextmanager
def fresh_fit(estimator: BaseEstimator) -> Iterator[None]:
    """Context manager for ``fit``: delete the fitted attributes of the previous fit.

    If the new fit fails, its fitted attributes are deleted as well. After Ctrl-C, they are kept.
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
    """Seeds of the stages of a fit: the random numbers of a stage do not depend on other stages."""

    split: int
    pretraining: int
    augmentation: int


@contextmanager
def seeded_fit(estimator: Any) -> Iterator[Seeds]:
    """Context manager for ``fit``: validate parameters, delete the previous fit, and set seeds.

    The seeds are drawn from ``random_state`` of the estimator. Estimators with the same
    ``random_state`` therefore hold out the same subjects for validation. The context yields the
    seeds. The global random state of torch is restored at the end.
    """
    check_estimator(estimator)
    device = computing.find_device(estimator.device)
    model, *parts = check_random_state(estimator.random_state).randint(2**31, size=4).tolist()
    with fresh_fit(estimator), computing.seeded(model, device):
        yield Seeds(*parts)


#: Values of parameters in a fit without training, which avoid slow steps and written files.
_QUICK = dict(checkpoint_dir=None, compile=False, device="cpu", verbose=0, callbacks=None)


@contextmanager
def without_training(estimator: Any) -> Iterator[tuple[Any, Seeds]]:
    """Context manager to run ``fit`` up to the training, on a copy of the estimator.

    The context yields an unfitted copy of the estimator, and the seeds of the fit. In the context,
    no files are written and no warnings are issued. The random state of torch is restored at the
    end.
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
    """Convert the data passed to ``fit`` to Windows that contain only the channels to use.

    Raises
    ------
    ValueError
        If there are no windows, or if the parameters ``sfreq`` and ``preprocessing`` contain
        different sampling rates.
    """
    rate, sfreq = preprocessing.Preprocessing.of(estimator.preprocessing).sfreq, estimator.sfreq
    whose = "According to preprocessing=, X is", "according to sfreq=, at"
    checks.check_same_rate(rate, sfreq, *whose, "correct one of the two arguments")
    windows = convert.as_windows(X, y, groups, rate if sfreq is None else sfreq)
    windows.check_not_empty()
    return picking.pick_for_fit(windows, estimator.channels, any_montage=any_montage)


def check_fit_windows(windows: Windows) -> tuple[int, int]:
    """Validate the windows of ``fit``, and return the number of channels and of samples.

    Within :func:`features_computed_once`, repeated fits read each window only once for this check.
    """
    names = tuple(ch["ch_name"] for ch in windows.chs_info or ())
    shapes = computed_once(
        lambda: ("shape", names),
        windows,
        lambda subset: {"shape": np.tile(subset.check(), (len(subset), 1))},
    )["shape"]
    # Shapes that were cached in several fits may differ. In this case, windows.check raises an
    # error with the number of the window.
    n_chans, n_times = windows.check() if (shapes != shapes[0]).any() else shapes[0].tolist()
    amplitudes.warn_of_amplitudes(windows)
    # In braindecode datasets, windows that overlap with "BAD" annotations are not rejected.
    n_bad = 0
    readers = windows.recordings["reader"].tolist()
    for number, rows in windows.table.groupby("recording"):
        raw = getattr(getattr(readers[number], "source", None), "raw", None)
        if isinstance(raw, mne.io.BaseRaw):
            good = marks.are_good(raw, rows["start"].to_numpy(), rows["stop"].to_numpy())
            n_bad += int(np.sum(~good))
    if n_bad:
        findings.warn(Finding("bad_windows", dict(n=n_bad, n_windows=len(windows))))
    return n_chans, n_times


def read_to_predict(
    estimator: Any, X: Any, *, any_montage: bool = False, groups: Any = None
) -> Windows:
    """Convert the windows to predict to Windows with the channels of ``fit``, and validate them."""
    windows = convert.as_windows(X, groups=groups)
    windows.check_not_empty()
    checks.check_same_rate(
        windows.sfreq, estimator.sfreq_, "These windows are", "the model was trained at"
    )
    windows = picking.pick_as_fitted(windows, estimator.chs_info_, any_montage=any_montage)
    if estimator.chs_info_ is None or windows.montage_of(0).chs_info is None:
        # Arrays have no channel names, so only the shape can be compared.
        n_chans, n_times = windows[0].shape
        if any_montage and estimator.chs_info_ is None and n_chans != estimator.n_chans_:
            checks.warn_user(
                f"X has {n_chans} channels per window, but {type(estimator).__name__} was fitted "
                f"on windows with {estimator.n_chans_} channels. Pass the same channels in the "
                "same order as in fit."
            )
        warn_of_length(estimator, n_times)
    amplitudes.warn_of_amplitudes(windows)
    amplitudes.warn_of_unit_mismatch(windows, getattr(estimator, "amplitudes_", None))
    beginning = "Preprocessing of these windows differs from the training data"
    warn_of_differences(estimator.preprocessing_, windows, beginning, preprocessing.FIELDS)
    return windows


def batches(
    windows: Windows, patch_size: int, device: torch.device, batch_size: int = 64
) -> Iterator[tuple[torch.Tensor, table.Montage]]:
    """Yield batches of windows in order, each with the montage (channels) of its windows.

    A batch is a tensor of shape (batch, n_chans, n_times) on the device. All windows of a batch
    have the same montage.
    """
    n_read = 0
    for batch in windows.batches(batch_size, any_montage=True):
        parsnet.check_length(batch.shape[-1], patch_size)
        yield torch.from_numpy(batch).to(device), windows.montage_of(n_read)
        n_read += len(batch)


def warn_of_length(estimator: Any, n_times: int) -> None:
    """Warn if the length of the windows differs from the length of the windows of ``fit``."""
    if n_times != estimator.n_times_:
        checks.warn_user(
            f"X has {n_times} samples per window, but {type(estimator).__name__} was fitted on "
            f"windows with {estimator.n_times_} samples. Create windows of the same length as in "
            "fit."
        )


def check_n_chans(estimator: Any, n_chans: int) -> None:
    """Check that windows without channel names have as many channels as the windows of ``fit``."""
    if n_chans != (n_fitted := estimator.n_chans_):
        raise ValueError(
            f"X has {n_chans} channels per window, but {type(estimator).__name__} was fitted on "
            f"windows with {n_fitted} channels. Select the same channels as in fit."
        )


def check_finite(output: torch.Tensor) -> torch.Tensor:
    """Return the output of a model; raise a ValueError if it contains NaN or infinity."""
    if not torch.isfinite(output).all():
        raise ValueError(
            "The output of the model is not finite (NaN or infinity), probably because training "
            "diverged. Refit with a lower learning rate."
        )
    return output


def preprocessing_of(
    estimator: Any, windows: Windows, sfreq: float | None, n_times: int
) -> preprocessing.Preprocessing:
    """Return how the windows passed to ``fit`` were preprocessed.

    The metadata of the windows describe this. Entries of the parameter ``preprocessing`` of the
    estimator take precedence.

    Parameters
    ----------
    estimator : estimator
        Estimator with the parameter ``preprocessing``.
    windows : Windows
        Windows of ``fit``.
    sfreq : float | None
        Sampling rate of the windows in Hz; None if unknown.
    n_times : int
        Number of samples in a window.

    Warns
    -----
    UserWarning
        If the preprocessing differs between recordings, or if ``preprocessing`` contradicts the
        metadata that is stored with the windows.
    """
    counts = Counter(windows.column("preprocessing"))
    most_common, _ = counts.most_common(1)[0]
    beginning = "Preprocessing differs between the recordings of X"
    entries = preprocessing.FIELDS
    warn_of_differences(most_common, windows, beginning, entries, expected_in="in other recordings")
    names = tuple(ch["ch_name"] for ch in windows.chs_info or ())
    recorded = replace(
        preprocessing.agreed(counts),
        sfreq=sfreq,
        channels=names or None,
        window_seconds=None if sfreq is None else n_times / sfreq,
    )
    argument = preprocessing.Preprocessing.of(estimator.preprocessing)
    contradictions = [
        entry.text("in the argument")
        for entry in preprocessing.differences(argument, recorded)
        # "as recorded" contradicts no argument: the data may have been re-referenced before saving.
        if entry.actual != preprocessing.AS_RECORDED
    ]
    if contradictions:
        checks.warn_user(
            "preprocessing= contradicts the preprocessing that is stored with the windows "
            f"({'; '.join(contradictions)}). The values in the argument are used. Correct them, or "
            "remove these entries from the argument to use the stored values."
        )
    known = {name: value for name, value in vars(argument).items() if value is not None}
    merged = replace(recorded, **known)
    preprocessing.warn_of_average(merged.reference, names)
    return merged


def warn_of_differences(
    expected: preprocessing.Preprocessing,
    windows: Windows,
    beginning: str,
    names: Collection[str],
    *,
    expected_in: str = "in training",
) -> None:
    """Issue one warning if the preprocessing of windows differs from the expected preprocessing.

    Only the entries in ``names`` are compared. The text of the warning starts with ``beginning``
    and states where each expected value is from (``expected_in``).
    """
    counts: Counter[preprocessing.Difference] = Counter()
    for actual, n in Counter(windows.column("preprocessing")).items():
        differing = preprocessing.differences(expected, actual)
        counts.update({entry: n for entry in differing if entry.name in names})
    if counts:
        values = dict(
            beginning=beginning,
            differences=[entry.text(expected_in) for entry in counts],
            counts=[*counts.values()],
            n_windows=len(windows),
            advice=advice(counts, f"preprocessing used {expected_in}"),
        )
        findings.warn(Finding("preprocessing_of_windows", values))


def advice(
    differing: Collection[preprocessing.Difference], data: str = "preprocessing used in training"
) -> str:
    """Return a sentence that says how to correct a preprocessing mismatch.

    If a difference cannot be corrected in these recordings, the sentence says to start from the
    original recordings. ``data`` is the phrase for the expected preprocessing.
    """
    irreversible = dict.fromkeys(entry.name for entry in differing if entry.repair is None)
    if not irreversible:
        # Without a hint if an average reference was computed over the channels shared by all
        # recordings.
        lacking = preprocessing.AVERAGE, preprocessing.AS_RECORDED
        is_average = any((entry.expected, entry.actual) == lacking for entry in differing)
        hint = " (use reference='average', or --reference average)" if is_average else ""
        return f"Apply the {data} to these recordings before creating windows{hint}."
    return (
        f"Apply the {data} to the original recordings instead, because filtering and "
        f"re-referencing cannot be undone (affected: {', '.join(irreversible)})."
    )


def fitted_history(estimator: Any) -> pd.DataFrame:
    """Losses of pretraining and fine-tuning, one row per epoch.

    The columns are

    - ``phase``: ``"pretraining"`` or ``"fine-tuning"``.
    - ``epoch``: number of the epoch.
    - ``train_loss``, ``valid_loss``: training loss and validation loss. With validation, the fitted
      model has the weights of the epoch with the lowest validation loss.
    - ``train_loss_relative``: relative loss, that is, the training loss divided by the chance-level
      loss (below 1 is better than chance).
    - ``train_loss_relative_NAME``: relative loss of the part NAME of a pretext task with several
      losses.

    A value is NaN if the phase of the row does not compute this loss.
    :func:`~braindecode_pars.plotting.training_curves` plots this table.
    """
    validation.check_is_fitted(estimator)
    phases = {"pretraining": getattr(estimator, "pretraining_history_", ())}
    if hasattr(estimator, "net_"):
        phases["fine-tuning"] = estimator.net_.history
    return training.history_frame(phases)


# Cache of window features -------------------------------------------------------------------------
#
# A label-efficiency comparison fits the same methods on many random subsets of the same windows. If
# only the classifier is trained, as on band power or on the features of a frozen encoder, the
# features of a window are the same in every fit.

Features = dict[str, np.ndarray]

#: Cached features, by the key of the computation and by window; and references to the windows.
_FEATURES: ContextVar[tuple[dict[Hashable, dict[tuple, Any]], list[Windows]] | None] = ContextVar(
    "features", default=None
)


@contextmanager
def features_computed_once() -> Iterator[None]:
    """Context manager that caches window features, so that repeated fits compute them only once.

    Use it for repeated fits on the windows of one dataset in one process, as in cross-validation,
    parameter searches, and evaluations with many draws (random subsets of labeled subjects). The
    cache contains the features of pretrained encoders (:class:`~braindecode_pars.PARSEmbedder`,
    :class:`~braindecode_pars.FewLabelsClassifier`) and features without an encoder, such as
    :class:`~braindecode_pars.evaluation.LogBandPower`. The features remain in memory until the
    context ends. Features computed within and outside of the context may differ by rounding errors.
    Worker processes (``n_jobs``) do not share the cache. Do not modify windows in place within the
    context.

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
    """Return the features of windows, from the cache of :func:`features_computed_once` if possible.

    Parameters
    ----------
    make_key : callable
        Function that returns a hashable key of the computation. The features of a window must
        depend only on this key and on the window.
    windows : Windows
        Windows that contain only the channels to use.
    compute : callable
        Function that computes features of Windows, and returns arrays by name with one row for each
        window.
    """
    cache = _FEATURES.get()
    if cache is None or not len(windows):
        return compute(windows)
    rows_by_key, cached_windows = cache
    rows = rows_by_key.setdefault(make_key(), {})
    lengths = (windows.table["stop"] - windows.table["start"]).tolist()
    keys = [montage.key for montage in windows.montages]
    channels = [keys[i] for i in windows.montage_numbers.tolist()]
    places = list(zip(windows.places(), lengths, channels, strict=True))
    missing = [i for i, place in enumerate(places) if place not in rows]
    if missing:
        try:
            features = compute(windows.take(missing))
        except ValueError:
            compute(windows)  # raises the error with the number of the window in X
            raise
        for n, i in enumerate(missing):
            rows[places[i]] = {name: values[n] for name, values in features.items()}
        # Windows are identified by memory addresses. Keep a reference to the windows, so that an
        # address is not reused.
        cached_windows.append(windows)
    return {name: np.stack([rows[p][name] for p in places]) for name in rows[places[0]]}
