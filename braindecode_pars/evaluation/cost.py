"""What the fits of methods cost: parameters, steps, tokens and operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator
from torch.utils.data import Dataset

from braindecode_pars._parameters import boolean
from braindecode_pars.windows import as_sklearn

__all__ = ["cost_table"]

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
