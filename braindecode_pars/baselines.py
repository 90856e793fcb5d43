"""Classifiers for comparisons, by name: pretext tasks, braindecode networks, band power."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars.estimators import NetworkClassifier, PARSClassifier
from braindecode_pars.evaluation import LogBandPower
from braindecode_pars.pretext import PRETEXT_TASKS

__all__ = ["METHODS", "make_methods"]

_NETWORKS = {"eegnet": "EEGNet", "shallow": "ShallowFBCSPNet"}

_TASKS = ("pars", "mae", "spectral", "mp3", "droppos", "joint")

#: Method names that :func:`make_methods` accepts.
METHODS = (*_TASKS, "scratch", *_NETWORKS, "band-power")


def make_methods(
    names: Iterable[str] = ("pars", "mae", "mp3", "droppos", "scratch", "eegnet", "band-power"),
    *,
    encoder: str | Path | None = None,
    **settings: Any,
) -> dict[str, BaseEstimator]:
    """Return classifiers with the same training budget, for ``evaluation.compare``.

    Parameters
    ----------
    names : iterable of str
        Method names from :data:`METHODS`. The name of a pretext task pretrains on the training
        windows in every fit. ``"scratch"`` is the same model without pretraining. ``"eegnet"``
        and ``"shallow"`` (ShallowFBCSPNet) are braindecode networks with the same fine-tuning.
        ``"band-power"`` is log band power with logistic regression.
    encoder : path | str | None
        Pretrained encoder. It adds a method ``"pretrained"``.
    **settings
        Arguments of :class:`~braindecode_pars.PARSClassifier`. Those that
        :class:`~braindecode_pars.estimators.NetworkClassifier` also has (``finetune_epochs``,
        ``validation``, ...) apply to both.

    Returns
    -------
    dict of str to estimator
        Unfitted classifiers. The keys are the names shown in tables and figures.

    Raises
    ------
    ValueError
        When a method or a setting is unknown.

    Examples
    --------
    >>> from braindecode_pars.baselines import make_methods
    >>> list(make_methods(["pars", "scratch", "band-power"], finetune_epochs=5))
    ['PARS', 'scratch', 'band power']
    """
    names = list(dict.fromkeys(names))
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise ValueError(f"Unknown method {unknown[0]!r}; known are {', '.join(METHODS)}.")
    accepted = PARSClassifier().get_params()
    unknown = [name for name in settings if name not in accepted]
    if unknown:
        raise ValueError(
            f"PARSClassifier has no parameter {unknown[0]!r}; its parameters are "
            f"{', '.join(accepted)}."
        )
    settings = {"verbose": 0, **settings}
    methods = dict(_method(name, settings) for name in names)
    if encoder is not None:
        methods["pretrained"] = PARSClassifier(encoder=encoder, **settings)
    return methods


def _method(name: str, settings: dict[str, Any]) -> tuple[str, BaseEstimator]:
    if name in PRETEXT_TASKS:
        return PRETEXT_TASKS[name].__name__, PARSClassifier(name, **settings)
    if name == "scratch":
        return name, PARSClassifier(None, **settings)
    if name == "band-power":
        classifier = LogisticRegression(max_iter=1000)
        return "band power", make_pipeline(LogBandPower(), StandardScaler(), classifier)
    known = inspect.signature(NetworkClassifier).parameters
    shared = {key: value for key, value in settings.items() if key in known}
    return _NETWORKS[name], NetworkClassifier(_NETWORKS[name], **shared)
