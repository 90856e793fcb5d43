"""Base class of all estimators of windows, and the random state of their fits."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state

from braindecode_pars.pretrained import EncoderCard, load_encoder
from braindecode_pars.training._seeding import random_stream

__all__ = ["Seeds", "WindowsEstimator", "fresh_fit", "seeded_fit"]


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
def seeded_fit(random_state: Any, device: torch.device) -> Iterator[Seeds]:
    """Let the draws inside follow ``random_state``; torch's global state stays unchanged.

    The nets of a fit draw from this state by themselves; other draws need ``with drawing():``.
    Estimators with the same ``random_state`` hold out the same subjects.
    """
    model, *parts = check_random_state(random_state).randint(2**31, size=4).tolist()
    with random_stream(model, device):
        yield Seeds(*parts)
