"""What fits cost: parameters, steps, tokens and operations, of one fit or of several methods.

A fit is started up to its first step of fine-tuning, where its operations are counted.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone
from skorch.callbacks import Callback
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset

from braindecode_pars._common.checks import boolean
from braindecode_pars._common.computing import Count, count_steps
from braindecode_pars._common.seeding import seeded
from braindecode_pars._common.subjects import subject_key
from braindecode_pars._common.training import default_epochs, steps_in_epoch
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators.encoder_start import (
    check_rate_of_encoder,
    encoder_sizes,
    needs_pretraining,
    patch_size_of,
)
from braindecode_pars.estimators.fine_tuning import FineTuningNet
from braindecode_pars.estimators.parameters import check_parameters
from braindecode_pars.estimators.windows_estimator import LabeledWindows, read_labeled, read_windows
from braindecode_pars.models import embed_signals
from braindecode_pars.pretext.base import PRETEXT_TASKS, make_task
from braindecode_pars.pretrained.saved import load_encoder
from braindecode_pars.pretraining import EPOCHS, STEPS
from braindecode_pars.windows import as_sklearn
from braindecode_pars.windows.table import Windows


class TrainingCost(NamedTuple):
    """What a fit costs.

    Attributes
    ----------
    parameters : int
        Number of weights that are trained, in pretraining or in fine-tuning. Decoders of pretext
        tasks, which are discarded, do not count.
    pretraining_steps : float
        Number of steps of pretraining, also of the earlier one of a given encoder; NaN when that
        is unknown.
    finetuning_steps : int
        Number of steps of fine-tuning.
    tokens : float
        Number of tokens that the encoder receives in all these steps. For dropped channels this is
        the expected number. NaN when it is unknown, or when the network has no tokens.
    flops : float
        Number of floating-point operations of matrix products and convolutions in all these steps,
        forwards and backwards; NaN when it is unknown.

    Examples
    --------
    >>> from braindecode_pars import PARSClassifier, datasets
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> cost = PARSClassifier(None, finetune_epochs=2, channel_drop_prob=0).training_cost(windows)
    >>> cost.finetuning_steps, cost.tokens  # 2 epochs of 24 windows of 2 channels of 30 patches
    (2, 2880.0)
    """

    parameters: int
    pretraining_steps: float
    finetuning_steps: int
    tokens: float
    flops: float


def encoder_size(estimator: BaseEstimator, X: Any, groups: Any = None) -> int:
    """Return the number of parameters of the encoder that ``fit`` would use on these windows."""
    return _n_parameters(_encoder(estimator, _read(estimator, X, groups)))


def classifier_cost(estimator: BaseEstimator, X: Any, y: Any, groups: Any) -> TrainingCost:
    """Return the cost of a fit of a PARSClassifier."""
    first = first_step(estimator, X, y, groups)
    module, epochs = first.net.module_, first.net.max_epochs
    frozen = _frozen_epochs(estimator, epochs)
    with seeded(0):
        steps, earlier = _given_encoder(estimator)
        counts = [earlier]
        if needs_pretraining(estimator):
            windows = _labeled(estimator, X, y, groups)
            n_windows = len(first.windows) + _n_unlabeled(windows, first.windows)
            n_times = windows.all.check()[1]
            own_steps, own = _pretraining(estimator, module.encoder, n_times, n_windows)
            steps, counts = steps + own_steps, [*counts, own]
        counts.append(_fine_tuning(first, frozen, is_trained=False))
        counts.append(_fine_tuning(first, epochs - frozen, is_trained=True))
    parameters = _n_parameters(module)
    if steps == 0 and frozen == epochs:  # a random encoder that is never trained
        parameters -= _n_parameters(module.encoder)
    return TrainingCost(parameters, steps, epochs * first.n_steps, *_sum(counts))


def embedder_cost(estimator: BaseEstimator, X: Any, groups: Any) -> TrainingCost:
    """Return the cost of a fit of a PARSEmbedder, and of embedding its windows once."""
    windows = _read(estimator, X, groups)
    n_chans, n_times = windows.check()
    with seeded(0):
        encoder = _encoder(estimator, windows)
        steps, earlier = _given_encoder(estimator)
        counts = [earlier]
        if needs_pretraining(estimator):
            own_steps, own = _pretraining(estimator, encoder, n_times, len(windows))
            steps, counts = steps + own_steps, [*counts, own]

        def embed(n_windows: int) -> None:
            with torch.no_grad():
                embed_signals(encoder, torch.randn(n_windows * n_chans, n_times), estimator.layer)

        counts.append(count_steps(embed, encoder, 0, len(windows)))
    parameters = 0 if steps == 0 else _n_parameters(encoder)
    return TrainingCost(parameters, steps, 0, *_sum(counts))


def network_cost(estimator: BaseEstimator, X: Any, y: Any, groups: Any) -> TrainingCost:
    """Return the cost of a fit of a NetworkClassifier."""
    net, windows, n_steps = first_step(estimator, X, y, groups)
    with seeded(0):
        step = _supervised_step(net.module_.train(), *windows.check())
        sizes = net.max_epochs * n_steps, net.max_epochs * len(windows)
        flops = count_steps(step, None, *sizes).flops
    return TrainingCost(_n_parameters(net.module_), 0, sizes[0], math.nan, flops)


def _read(estimator: BaseEstimator, X: Any, groups: Any) -> Windows:
    check_parameters(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_windows(estimator, X, None, groups, any_montage=True)


def _encoder(estimator: BaseEstimator, windows: Windows) -> PatchEncoder:
    """Return an encoder of the size that ``fit`` would use; its weights do not matter."""
    if estimator.encoder is not None:
        pretrained = load_encoder(estimator.encoder)
        check_rate_of_encoder(windows.sfreq, pretrained.card)
        return copy.deepcopy(pretrained.encoder).cpu()
    with warnings.catch_warnings(), seeded(0):
        warnings.simplefilter("ignore")
        sfreq, n_times = windows.sfreq, windows.check()[1]
        patch_size, _ = patch_size_of(None, estimator.patch_seconds, sfreq, n_times, "")
        return PatchEncoder(patch_size, **encoder_sizes(estimator))


def _labeled(estimator: BaseEstimator, X: Any, y: Any, groups: Any) -> LabeledWindows:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_labeled(estimator, X, y, groups, any_montage=True)


def _n_unlabeled(windows: LabeledWindows, train: Windows) -> int:
    """Return the number of unlabelled windows to pretrain on: not those of held-out subjects."""
    if windows.unlabeled is None:
        return 0
    labeled, trained, others = map(_subjects, (windows.labeled, train, windows.unlabeled))
    held_out = set(labeled) - set(trained)
    return sum(subject not in held_out for subject in others)


def _subjects(windows: Windows) -> list[str]:
    if windows.groups is None:
        return [""] * len(windows)
    return list(map(subject_key, windows.groups.tolist()))


def _given_encoder(estimator: BaseEstimator) -> tuple[float, Count]:
    """Return steps and cost of the pretraining of a given encoder; NaN when they are unknown."""
    if estimator.encoder is None:
        return 0, Count(0, 0)
    encoder, card, _ = load_encoder(estimator.encoder)
    return _of_card(copy.deepcopy(encoder).cpu(), asdict(card))


def _of_card(encoder: PatchEncoder, card: Mapping[str, Any]) -> tuple[float, Count]:
    if card.get("subjects") == [] and card.get("task") is None:  # never pretrained
        return 0, Count(0, 0)
    n_times, n_steps, n_examples = (
        card.get(f"n_{name}") for name in ("times", "steps", "examples")
    )
    if None in (n_times, n_steps, n_examples) or card.get("task") not in PRETEXT_TASKS:
        return math.nan, Count(math.nan, math.nan)
    step = _pretraining_step(encoder, card["task"], card["task_params"], n_times)
    done = count_steps(step, encoder, n_steps, n_examples)
    if card.get("continued_from") is None:
        return n_steps, done
    steps_before, before = _of_card(encoder, card["continued_from"])
    return steps_before + n_steps, _sum([before, done])


def _pretraining(
    estimator: BaseEstimator, encoder: PatchEncoder, n_times: int, n_windows: int
) -> tuple[int, Count]:
    """Return steps and cost of the pretraining in a fit."""
    steps_per_epoch = math.ceil(n_windows / estimator.pretrain_batch_size)
    epochs = estimator.pretrain_epochs
    if epochs is None:
        epochs = default_epochs(EPOCHS, STEPS, steps_per_epoch, "Pretraining")
    n_steps = epochs * steps_per_epoch
    encoder = copy.deepcopy(encoder)
    step = _pretraining_step(encoder, estimator.pretext, estimator.pretext_params, n_times)
    return n_steps, count_steps(step, encoder, n_steps, epochs * n_windows)


def _pretraining_step(
    encoder: PatchEncoder, task: Any, task_params: dict[str, Any] | None, n_times: int
) -> Callable[[int], None]:
    task = make_task(task, n_times=n_times, encoder=encoder, task_params=task_params)
    criterion = task.criterion()

    def step(n_windows: int) -> None:
        criterion(*task(torch.randn(n_windows, task.n_times))).backward()

    return step


def _fine_tuning(first: FirstStep, epochs: int, *, is_trained: bool) -> Count:
    """Return the cost of epochs with a trained or a frozen encoder, without dropped channels."""
    if epochs == 0:
        return Count(0, 0)
    module = copy.deepcopy(first.net.module_).train()
    module.encoder.requires_grad_(is_trained)
    n_chans, n_times = first.windows.check()
    # Dropped channels are not encoded. One is always kept, so this share is the expected one.
    dropped, module.channel_drop_prob = module.channel_drop_prob, 0.0
    share = (n_chans * (1 - dropped) + dropped**n_chans) / n_chans

    def encode(n_windows: int) -> None:
        features = embed_signals(module.encoder, torch.randn(n_windows * n_chans, n_times))
        if is_trained:
            features.sum().backward()

    sizes = epochs * first.n_steps, epochs * len(first.windows)
    step = _supervised_step(module, n_chans, n_times)
    whole, encoder = (count_steps(run, module.encoder, *sizes) for run in (step, encode))
    return Count(share * whole.tokens, whole.flops - (1 - share) * encoder.flops)


def _supervised_step(module: nn.Module, n_chans: int, n_times: int) -> Callable[[int], None]:
    """Return a step of training on noise, as a function of the number of windows."""
    recentres = getattr(module, "recenter", None) is not None

    def step(n_windows: int) -> None:
        labels = torch.zeros(n_windows, dtype=torch.long)
        subjects = {"subjects": labels} if recentres else {}
        logits = module(torch.randn(n_windows, n_chans, n_times), **subjects)
        cross_entropy(logits, labels).backward()

    return step


def _frozen_epochs(estimator: BaseEstimator, epochs: int) -> int:
    if estimator.freeze_encoder or estimator.encoder_lr_factor == 0:
        return epochs
    return min(int(estimator.head_epochs), epochs)


def _n_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _sum(counts: list[Count]) -> Count:
    return Count(*map(sum, zip(*counts, strict=True)))


#: Parameters that would take time or write files before that step.
_QUICK = dict(pretrain_epochs=0, checkpoint_dir=None, compile=False, device="cpu", verbose=0)


class FirstStep(NamedTuple):
    """What a fit would begin to train.

    Attributes
    ----------
    net : FineTuningNet
        Initialised net.
    windows : Windows
        Training windows.
    n_steps : int
        Number of steps in an epoch.
    """

    net: FineTuningNet
    windows: Windows
    n_steps: int


class _Ready(Exception):  # noqa: N818 it is no error
    """A fit has come to its first step of fine-tuning."""

    def __init__(self, first_step: FirstStep):
        self.first_step = first_step


class _BeforeTraining(Callback):
    """End a fit before its first step."""

    def on_train_begin(self, net: FineTuningNet, X: Any = None, **kwargs: Any) -> None:
        raise _Ready(FirstStep(net, getattr(X, "windows", X), steps_in_epoch(net, X)))


def first_step(estimator: BaseEstimator, X: Any, y: Any, groups: Any) -> FirstStep:
    """Return net and training windows of a fit, which ends before it trains.

    The fit itself holds out windows and builds the network, so that both are those of a real fit.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        As the fit.
    """
    params = estimator.get_params(deep=False)
    quick = {name: value for name, value in _QUICK.items() if name in params}
    fitted = clone(estimator).set_params(**quick, callbacks=[_BeforeTraining()])
    try:
        with warnings.catch_warnings():  # the real fit warns
            warnings.simplefilter("ignore")
            fitted.fit(X, y, groups=groups)
    except _Ready as ready:
        return ready.first_step
    raise AssertionError("a fit notifies its callbacks before it trains")


#: Columns of a cost table and their types; missing values are allowed in all.
_COLUMNS = {
    "parameters": "Int64",
    "pretraining_steps": "Int64",
    "finetuning_steps": "Int64",
    "tokens": "Float64",
    "flops": "Float64",
}


def cost_table(estimators: Mapping[str, BaseEstimator], windows_ds: Dataset) -> pd.DataFrame:
    """Return what one fit of each method on these windows costs, without training.

    Methods with more parameters, steps or operations are not compared on equal terms. The numbers
    belong beside their scores.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name.
    windows_ds : BaseConcatDataset
        Labelled training windows with ``subject`` in the descriptions.

    Returns
    -------
    pandas.DataFrame
        One row for each method, with the columns ``method``, ``parameters`` (weights that are
        trained), ``pretraining_steps``, ``finetuning_steps``, ``tokens`` (that the encoder receives
        in all steps) and ``flops`` (floating-point operations of matrix products and convolutions
        in all steps, forwards and backwards). The earlier pretraining of a given encoder counts.
        Missing values are unknown, or do not apply: band power has none of these numbers. A
        classifier behind an encoder, such as the logistic regression of a probe, does not count.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        As the ``fit`` of the methods, before they train.

    Notes
    -----
    The estimators of this package have a method ``training_cost(X, y, groups=...)``. One of your
    own is in the table if it has this method, which returns an object with these columns as
    attributes.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.baselines import make_methods
    >>> from braindecode_pars.evaluation import cost_table
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> epochs = dict(pretrain_epochs=3, finetune_epochs=30)
    >>> methods = make_methods(["pars", "scratch", "band-power"], **epochs)
    >>> costs = cost_table(methods, windows)
    >>> costs[["method", "pretraining_steps", "finetuning_steps"]]
           method  pretraining_steps  finetuning_steps
    0        PARS                  3                30
    1     scratch                  0                30
    2  band power               <NA>              <NA>
    """
    X, y, groups = as_sklearn(windows_ds)
    rows = []
    for method, estimator in estimators.items():
        part = _part_with("training_cost", estimator)
        cost = None if part is None else part.training_cost(X, y, groups=groups)
        rows.append({"method": method, **{name: getattr(cost, name, None) for name in _COLUMNS}})
    return pd.DataFrame(rows, columns=["method", *_COLUMNS]).astype(_COLUMNS)


def check_equal_sizes(
    estimators: Mapping[str, BaseEstimator], X: Any, equal_sizes: bool = True
) -> None:
    """Check that the encoders of all methods have the same number of parameters.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name.
    X : windows
        Windows that they are to be trained on.
    equal_sizes : bool
        Whether there is anything to check.

    Raises
    ------
    TypeError
        When ``equal_sizes`` is not True or False.
    ValueError
        When they have not; the message has both numbers.
    """
    boolean().check("equal_sizes", equal_sizes)
    parts = {name: _part_with("n_encoder_parameters", e) for name, e in estimators.items()}
    parts = {name: part for name, part in parts.items() if part is not None}
    if not equal_sizes or len(parts) < 2:
        return
    sizes = {name: part.n_encoder_parameters(X) for name, part in parts.items()}
    one, other = min(sizes, key=sizes.get), max(sizes, key=sizes.get)
    if sizes[one] < sizes[other]:
        raise ValueError(
            f"The encoder of {other} has {sizes[other]:,} parameters, that of {one} only "
            f"{sizes[one]:,}; a difference of their scores would not show what pretraining does. "
            "Give both the same embed_dim, num_layers, num_heads, mlp_dim, tokenizer and "
            "patch_seconds, as make_methods(encoder=...) does, or pass equal_sizes=False."
        )


def _part_with(method: str, estimator: BaseEstimator) -> Any:
    """Return the estimator, or the first one inside it, that has a method of this name."""
    parts = (estimator, *estimator.get_params().values())
    return next((part for part in parts if hasattr(part, method)), None)
