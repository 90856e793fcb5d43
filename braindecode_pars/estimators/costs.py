"""What fits cost: parameters, steps, tokens and operations, of one fit or of several methods.

The windows and the network are those of the fit, which is not started. The operations are those of
its steps on noise.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd
import torch
from sklearn.base import BaseEstimator
from skorch import NeuralNet
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset

from braindecode_pars._common.checks import boolean
from braindecode_pars._common.computing import Count, count_steps, n_parameters, training_step
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators.encoder_start import EncoderStart
from braindecode_pars.estimators.fine_tuning import frozen_epochs, steps_of_fine_tuning
from braindecode_pars.models import PARSNet, embed_signals
from braindecode_pars.pretext.base import PRETEXT_TASKS, make_task
from braindecode_pars.pretrained.cards import EncoderCard, read_card
from braindecode_pars.pretraining import default_epochs_of
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


def fine_tuning_cost(
    start: EncoderStart, net: NeuralNet, train: Windows, n_windows: int
) -> TrainingCost:
    """Return the cost of a fit of a PARSClassifier or a PARSRegressor.

    Parameters
    ----------
    start : EncoderStart
        The encoder at the start of the fit.
    net : FineTuningNet | RegressionNet
        Initialised net.
    train : Windows
        Windows of fine-tuning.
    n_windows : int
        Number of windows of pretraining.
    """
    estimator, module, epochs = start.estimator, net.module_, net.max_epochs
    n_steps = steps_of_fine_tuning(net, train)
    n_frozen = int(min(frozen_epochs(estimator.fine_tuning_), epochs))
    steps, counts = _pretraining(start, module.encoder, n_windows)
    for n, is_trained in ((n_frozen, False), (epochs - n_frozen, True)):
        counts.append(_fine_tuning(module, train, n, n * n_steps, is_trained=is_trained))
    parameters = n_parameters(module)
    if steps == 0 and n_frozen == epochs:  # a random encoder that is never trained
        parameters -= n_parameters(module.encoder)
    return TrainingCost(parameters, steps, epochs * n_steps, *_sum(counts))


def embedder_cost(start: EncoderStart, windows: Windows) -> TrainingCost:
    """Return the cost of a fit of a PARSEmbedder, and of embedding its windows once."""
    n_chans, n_times = windows.check()
    encoder = PatchEncoder(**start.sizes)
    steps, counts = _pretraining(start, encoder, len(windows))

    def embed(n_windows: int) -> None:
        with torch.no_grad():
            signals = torch.randn(n_windows * n_chans, n_times)
            embed_signals(encoder, signals, start.estimator.layer)

    counts.append(count_steps(embed, encoder, 0, len(windows)))
    parameters = 0 if steps == 0 else n_parameters(encoder)
    return TrainingCost(parameters, steps, 0, *_sum(counts))


def network_cost(net: NeuralNet, train: Windows) -> TrainingCost:
    """Return the cost of a fit of a NetworkClassifier."""
    step = _supervised_step(net.module_.train(), *train.check())
    n_steps = net.max_epochs * steps_of_fine_tuning(net, train)
    flops = count_steps(step, None, n_steps, net.max_epochs * len(train)).flops
    trained = sum(p.numel() for p in net.module_.parameters() if p.requires_grad)
    return TrainingCost(trained, 0, n_steps, math.nan, flops)


def _pretraining(
    start: EncoderStart, encoder: PatchEncoder, n_windows: int
) -> tuple[float, list[Count]]:
    """Return steps and costs of the earlier pretraining of a given encoder, and of that in fit."""
    encoder = copy.deepcopy(encoder)
    steps, counts = 0.0, [Count(0, 0)]
    if start.given is not None:
        steps, earlier = _of_card(encoder, start.given.card)
        counts.append(earlier)
    if start.is_pretrained:
        settings = start.settings
        epochs = settings.epochs
        if epochs is None:
            epochs = default_epochs_of(settings, n_windows)
        own_steps = epochs * math.ceil(n_windows / settings.batch_size)
        step = training_step(start.make_task(encoder))
        steps += own_steps
        counts.append(count_steps(step, encoder, own_steps, epochs * n_windows))
    return steps, counts


def _of_card(encoder: PatchEncoder, card: EncoderCard) -> tuple[float, Count]:
    if card.subjects == [] and card.task is None:  # never pretrained
        return 0, Count(0, 0)
    told: Any = card
    try:
        given = dict(n_times=told.n_times, task_params=told.task_params, sfreq=told.sfreq)
        task = make_task(PRETEXT_TASKS[told.task], encoder=encoder, **given)
        done = count_steps(training_step(task), encoder, told.n_steps, told.n_examples)
    except (KeyError, TypeError, ValueError):  # the card does not tell a task, or a number
        return math.nan, Count(math.nan, math.nan)
    if card.continued_from is None:
        return told.n_steps, done
    steps_before, before = _of_card(encoder, read_card(card.continued_from))
    return steps_before + told.n_steps, _sum([before, done])


def _fine_tuning(
    module: PARSNet, train: Windows, epochs: int, n_steps: int, *, is_trained: bool
) -> Count:
    """Return the cost of epochs with a trained or a frozen encoder, without dropped channels."""
    if epochs == 0:
        return Count(0, 0)
    module = copy.deepcopy(module).train()
    module.encoder.requires_grad_(is_trained)
    n_chans, n_times = train.check()
    # Dropped channels are not encoded. One is always kept, so this share is the expected one.
    dropped, module.channel_drop_prob = module.channel_drop_prob, 0.0
    share = (n_chans * (1 - dropped) + dropped**n_chans) / n_chans

    def encode(n_windows: int) -> None:
        features = embed_signals(module.encoder, torch.randn(n_windows * n_chans, n_times))
        if is_trained:
            features.sum().backward()

    sizes = n_steps, epochs * len(train)
    step = _supervised_step(module, n_chans, n_times)
    whole, encoder = (count_steps(run, module.encoder, *sizes) for run in (step, encode))
    return Count(share * whole.tokens, whole.flops - (1 - share) * encoder.flops)


def _supervised_step(module: nn.Module, n_chans: int, n_times: int) -> Callable[[int], None]:
    """Return a step of training on noise, as a function of the number of windows."""

    def step(n_windows: int) -> None:
        labels = torch.zeros(n_windows, dtype=torch.long)
        cross_entropy(module(torch.randn(n_windows, n_chans, n_times)), labels).backward()

    return step


def _sum(counts: list[Count]) -> Count:
    return Count(*map(sum, zip(*counts, strict=True)))


#: Columns of a cost table and their types; missing values are allowed in all.
_COLUMNS = dict(zip(TrainingCost._fields, 3 * ["Int64"] + 2 * ["Float64"], strict=True))


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
) -> dict[str, int]:
    """Check that the encoders of all methods have the same number of parameters.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name.
    X : windows
        Windows that they are to be trained on.
    equal_sizes : bool
        Whether different numbers are refused.

    Returns
    -------
    dict of str to int
        Number of each method with an encoder, where they differ; empty where they are equal.

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
    if len(parts) < 2:
        return {}
    sizes = {name: part.n_encoder_parameters(X) for name, part in parts.items()}
    one, other = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    if sizes[one] < sizes[other] and equal_sizes:
        raise ValueError(
            f"The encoder of {other} has {sizes[other]:,} parameters, that of {one} only "
            f"{sizes[one]:,}; give both the same sizes, tokenizer and patch_seconds, as "
            "make_methods(encoder=...) does, or pass equal_sizes=False (--unequal-sizes)."
        )
    return sizes if sizes[one] < sizes[other] else {}


def _part_with(method: str, estimator: BaseEstimator) -> Any:
    """Return the estimator, or the first one inside it, that has a method of this name."""
    parts = (estimator, *estimator.get_params().values())
    return next((part for part in parts if hasattr(part, method)), None)
