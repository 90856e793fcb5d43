"""The seed of a fold in an estimator."""

from __future__ import annotations

from sklearn.base import BaseEstimator

__all__ = ["with_seed"]


def with_seed(estimator: BaseEstimator, seed: int) -> BaseEstimator:
    """Set every ``random_state`` among the parameters of an estimator, in place.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from braindecode_pars.evaluation.folds._seed import with_seed
    >>> with_seed(LogisticRegression(), 3)
    LogisticRegression(random_state=3)
    """
    names = [
        name
        for name in estimator.get_params()
        # An estimator passed as ``encoder`` is fitted already; its seed must not change.
        if name.split("__")[-1] == "random_state" and "encoder" not in name.split("__")
    ]
    estimator.set_params(**dict.fromkeys(names, int(seed)))  # FrozenEstimator returns None
    return estimator
