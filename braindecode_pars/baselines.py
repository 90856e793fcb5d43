"""Ready classifiers to compare, by name: pretext tasks, braindecode networks, band power."""

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

#: Names that :func:`make_methods` knows.
METHODS = ("pars", "mae", "mp3", "droppos", "joint", "scratch", *_NETWORKS, "band-power")


def make_methods(
    names: Iterable[str] = ("pars", "mae", "mp3", "droppos", "scratch", "eegnet", "band-power"),
    *,
    encoder: str | Path | None = None,
    **settings: Any,
) -> dict[str, BaseEstimator]:
    """Classifiers by method name, all with the same training budget, for ``evaluation.compare``.

    Parameters
    ----------
    names : iterable of str
        Of :data:`METHODS`: the pretext tasks, each pretrained in every fit on the training
        windows; ``"scratch"``, the same model without pretraining; ``"eegnet"`` and
        ``"shallow"`` (ShallowFBCSPNet), braindecode's networks under the same fine-tuning; and
        ``"band-power"`` with logistic regression.
    encoder : path | str | None
        A pretrained encoder, which becomes one more method ``"pretrained"``.
    **settings
        Arguments of :class:`~braindecode_pars.PARSClassifier`; those that
        :class:`~braindecode_pars.estimators.NetworkClassifier` has too (``finetune_epochs``,
        ``validation``, ...) hold for both.

    Returns
    -------
    dict of str to estimator
        Unfitted, by the name that tables and figures show.

    Raises
    ------
    ValueError
        For a method or a setting that is not known.

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
    taken = PARSClassifier().get_params()
    foreign = [name for name in settings if name not in taken]
    if foreign:
        raise ValueError(f"PARSClassifier has no {foreign[0]!r}; it has {', '.join(taken)}.")
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
