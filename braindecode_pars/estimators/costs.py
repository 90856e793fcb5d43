"""What fits cost: parameters and steps, of one fit or of several methods.

The windows and the network are those of the fit, which is not started.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
from sklearn.base import BaseEstimator
from skorch import NeuralNet
from torch.utils.data import Dataset

from braindecode_pars._common import checks, computing
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators.encoder_start import EncoderStart
from braindecode_pars.estimators.fine_tuning import frozen_epochs, steps_of_fine_tuning
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

    Examples
    --------
    >>> from braindecode_pars import PARSClassifier, datasets
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> cost = PARSClassifier(None, finetune_epochs=2, channel_drop_prob=0).training_cost(windows)
    >>> cost.pretraining_steps, cost.finetuning_steps  # 2 epochs of 24 windows
    (0, 2)
    """

    parameters: int
    pretraining_steps: float
    finetuning_steps: int


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
    module, epochs = net.module_, net.max_epochs
    steps = _steps_of_pretraining(start, n_windows)
    parameters = computing.n_parameters(module)
    if steps == 0 and frozen_epochs(start.estimator.fine_tuning_) >= epochs:
        parameters -= computing.n_parameters(module.encoder)  # a random one that is never trained
    return TrainingCost(parameters, steps, epochs * steps_of_fine_tuning(net, train))


def embedder_cost(start: EncoderStart, windows: Windows) -> TrainingCost:
    """Return the cost of a fit of a PARSEmbedder."""
    steps = _steps_of_pretraining(start, len(windows))
    return TrainingCost(
        computing.n_parameters(PatchEncoder(**start.sizes)) if steps else 0, steps, 0
    )


def network_cost(net: NeuralNet, train: Windows) -> TrainingCost:
    """Return the cost of a fit of a NetworkClassifier."""
    trained = sum(p.numel() for p in net.module_.parameters() if p.requires_grad)
    return TrainingCost(trained, 0, net.max_epochs * steps_of_fine_tuning(net, train))


def _steps_of_pretraining(start: EncoderStart, n_windows: int) -> float:
    """Return the steps of the earlier pretraining of a given encoder and of that in ``fit``."""
    steps = 0 if start.given is None else _steps_of_card(start.given.card)
    if not start.is_pretrained:
        return steps
    settings = start.settings
    epochs = settings.epochs
    if epochs is None:
        epochs = default_epochs_of(settings, n_windows)
    return steps + epochs * math.ceil(n_windows / settings.batch_size)


def _steps_of_card(card: EncoderCard) -> float:
    if card.subjects == [] and card.task is None:  # never pretrained
        return 0
    steps = math.nan if card.n_steps is None else card.n_steps
    return steps + (_steps_of_card(read_card(card.continued_from)) if card.continued_from else 0)


#: Columns of a cost table and their types; missing values are allowed in all.
_COLUMNS = dict.fromkeys(TrainingCost._fields, "Int64")


def cost_table(estimators: Mapping[str, BaseEstimator], windows_ds: Dataset) -> pd.DataFrame:
    """Return what one fit of each method on these windows costs, without training.

    Methods with more parameters or steps are not compared on equal terms. The numbers belong beside
    their scores.

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
        trained), ``pretraining_steps`` and ``finetuning_steps``. The earlier pretraining of a given
        encoder counts. Missing values are unknown, or do not apply: band power has none of these
        numbers. A classifier behind an encoder, such as the logistic regression of a probe, does
        not count.

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
    checks.boolean().check("equal_sizes", equal_sizes)
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
