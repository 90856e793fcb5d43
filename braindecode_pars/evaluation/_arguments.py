"""Checks of the arguments that all protocols share, before anything is trained."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from numbers import Integral
from typing import Any

from sklearn.base import BaseEstimator

from braindecode_pars._subjects import normalized
from braindecode_pars.evaluation.metrics import METRICS

__all__ = ["check_arguments", "check_subjects", "in_order"]


def check_arguments(
    estimators: Mapping[str, BaseEstimator],
    metrics: Sequence[str],
    seeds: Sequence[int],
    n_jobs: int | None,
) -> None:
    """Check the arguments that all protocols share.

    Raises
    ------
    TypeError
        When the estimators are not a mapping of names to classifiers.
    ValueError
        When there are no estimators, metrics or seeds, one is given twice or is unknown, or
        ``n_jobs`` is 0.
    """
    if not isinstance(estimators, Mapping):
        raise TypeError(
            f"estimators is a {type(estimators).__name__}; give a dict of method names and "
            "estimators."
        )
    if isinstance(metrics, str):
        raise TypeError(f"metrics is the text {metrics!r}; give a list of names, [{metrics!r}].")
    for name, given, content in (("metrics", metrics, "names"), ("seeds", seeds, "integers")):
        if not isinstance(given, Sized) or not isinstance(given, Iterable):
            raise TypeError(f"{name} must be a list of {content}, got {given!r}.")
    for name, given in (("estimators", estimators), ("metrics", metrics), ("seeds", seeds)):
        if len(given) == 0:
            raise ValueError(f"{name} is empty; there would be nothing to report.")
    for method, estimator in estimators.items():
        _check_estimator(method, estimator)
    _check_metrics(metrics)
    _check_seeds(seeds)
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be a number of processes, -1 for one on each core, or None, got "
            f"{n_jobs!r}."
        )


def _check_metrics(metrics: Sequence[str]) -> None:
    for metric in metrics:
        if not isinstance(metric, str) or metric not in METRICS:
            raise ValueError(f"Unknown metric {metric!r}; known are {', '.join(METRICS)}.")
    _check_unique("metrics", metrics)


def _check_seeds(seeds: Sequence[int]) -> None:
    for seed in seeds:
        if not isinstance(seed, Integral) or seed < 0:
            raise ValueError(f"seeds are whole numbers from 0, got {seed!r}.")
    _check_unique("seeds", seeds)


def _check_unique(name: str, given: Sequence) -> None:
    if len(set(given)) < len(given):
        raise ValueError(f"{name} has an entry twice: {', '.join(map(str, given))}.")


def _check_estimator(method: str, estimator: Any) -> None:
    if not isinstance(method, str):
        raise TypeError(f"A method's name is text, got {method!r}.")
    if isinstance(estimator, type):
        raise TypeError(
            f"{method} is the class {estimator.__name__}; give an instance, {estimator.__name__}()."
        )
    missing = [n for n in ("fit", "predict", "get_params") if not hasattr(estimator, n)]
    if missing:
        raise TypeError(
            f"{method} is a {type(estimator).__name__} without {' and '.join(missing)}; give a "
            "scikit-learn classifier."
        )


def check_subjects(asked: Iterable, there: Iterable, name: str) -> list:
    """Return the requested subjects as a list.

    Raises
    ------
    TypeError
        When one cannot be a subject.
    ValueError
        When there are none, one is given twice, or one is not in the data.
    """
    if isinstance(asked, str):
        raise ValueError(f"{name} is the string {asked!r}; give a list of subjects.")
    asked, there = [normalized(subject) for subject in asked], list(there)
    if not asked:
        raise ValueError(f"{name} is empty; name at least one subject, or leave it out.")
    unhashable = [subject for subject in asked if not isinstance(subject, Hashable)]
    if unhashable:
        raise TypeError(f"{name} contains {unhashable[0]!r}, which cannot be a subject.")
    if len(set(asked)) < len(asked):
        raise ValueError(f"{name} has a subject twice: {', '.join(map(str, asked))}.")
    absent = [subject for subject in asked if subject not in there]
    if absent:
        raise ValueError(
            f"{name} has subject{'s' if len(absent) > 1 else ''} "
            f"{', '.join(map(repr, absent))}, not in the data, whose subjects are "
            f"{', '.join(map(repr, there[:20]))}{', ...' if len(there) > 20 else ''}."
        )
    return asked


def in_order(subjects: Iterable) -> list:
    """Return every subject once, sorted; by text where they are of several types."""
    unique = list(dict.fromkeys(subjects))
    try:
        return sorted(unique)
    except TypeError:
        return sorted(unique, key=str)
