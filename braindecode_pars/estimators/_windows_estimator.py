"""What every estimator of windows is to scikit-learn, and how its fits begin and fail."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state

from braindecode_pars.training._seeding import seeded

__all__ = ["Seeds", "WindowsEstimator", "fresh_fit", "seeded_fit"]


class WindowsEstimator(BaseEstimator):
    """An estimator that takes windows of any source."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = False  # a windows dataset carries its own
        return tags

    def __sklearn_clone__(self) -> WindowsEstimator:
        # scikit-learn would clone an estimator or net given as ``encoder`` into an unfitted one.
        given = vars(self).get("encoder")
        if given is None:
            return BaseEstimator.__sklearn_clone__(self)
        without = copy.copy(self)
        without.encoder = None
        twin = BaseEstimator.__sklearn_clone__(without)
        twin.encoder = given
        return twin


@contextmanager
def fresh_fit(estimator: BaseEstimator) -> Iterator[None]:
    """Drop what an earlier fit has learned; a fit that fails leaves nothing behind.

    Ctrl-C keeps what was learned until then.
    """
    _forget(estimator)
    try:
        yield
    except Exception:
        _forget(estimator)
        raise


def _forget(estimator: BaseEstimator) -> None:
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


class Seeds(NamedTuple):
    """Seeds of the parts of a fit, so that no part changes what another draws."""

    split: int
    pretraining: int
    augmentation: int


@contextmanager
def seeded_fit(random_state: Any, device: torch.device) -> Iterator[Seeds]:
    """Make everything random inside follow ``random_state``, and restore torch's global state.

    Estimators with the same ``random_state`` hold out the same subjects.
    """
    model, *parts = check_random_state(random_state).randint(2**31, size=4).tolist()
    with seeded(model, device):
        yield Seeds(*parts)
