"""Scores of several classifiers on the same held-out subjects, for paired tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator
from torch.utils.data import Dataset

from braindecode_pars.evaluation._arguments import check_arguments
from braindecode_pars.evaluation._subjects import score_subjects

__all__ = ["compare"]


def compare(
    estimators: Mapping[str, BaseEstimator],
    windows_ds: Dataset,
    *,
    cv: Any = None,
    metrics: Sequence[str] = ("kappa", "balanced_accuracy"),
    seeds: Sequence[int] = (0,),
    dataset: str = "",
    unlabeled_label: Any = "auto",
    test_subjects: Sequence | None = None,
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    equal_sizes: bool = True,
) -> pd.DataFrame:
    """Score at least two classifiers on the same held-out subjects.

    By default the folds are those of :func:`~braindecode_pars.evaluation.leave_one_subject_out`.
    :func:`~braindecode_pars.evaluation.paired_tests` tests the differences between the methods, and
    :func:`~braindecode_pars.evaluation.describe_differences` summarises the tests in sentences.
    The paper reports no such tests.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name, at least two.
    cv : int | scikit-learn cross-validator | iterable of index pairs | None
        Cross-validator that divides the subjects, such as ``GroupKFold(5)``; an integer is the
        number of folds of whole subjects. None holds out one subject at a time.
    windows_ds, metrics, seeds, dataset, unlabeled_label, test_subjects, out, n_jobs, verbose, \
equal_sizes
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`.

    Returns
    -------
    pandas.DataFrame
        Table as from :func:`~braindecode_pars.evaluation.leave_one_subject_out`, with
        ``"compare"`` in the column ``protocol``.

    Raises
    ------
    ValueError
        When there is only one classifier, and in the cases of
        :func:`~braindecode_pars.evaluation.leave_one_subject_out`.
    FoldError
        When a fit fails.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import (
    ...     LogBandPower, compare, describe_differences, paired_tests
    ... )
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> methods = {
    ...     "band power": make_pipeline(
    ...         LogBandPower(), StandardScaler(), LogisticRegression(C=0.1)
    ...     ),
    ...     "chance level": make_pipeline(LogBandPower(), DummyClassifier()),
    ... }
    >>> tests = paired_tests(compare(methods, windows, verbose=0))
    >>> int(tests["n_subjects"].item()), float(tests["p"].item())
    (3, 0.25)
    >>> "no difference could have been significant" in describe_differences(tests)
    True
    """
    check_arguments(estimators, metrics, seeds, n_jobs)
    if len(estimators) < 2:
        raise ValueError(
            f"compare needs at least two classifiers, got only {', '.join(estimators)}; use "
            "leave_one_subject_out to score one."
        )
    return score_subjects(
        "compare",
        estimators,
        windows_ds,
        cv=cv,
        metrics=metrics,
        seeds=seeds,
        dataset=dataset,
        unlabeled_label=unlabeled_label,
        test_subjects=test_subjects,
        out=out,
        n_jobs=n_jobs,
        verbose=verbose,
        equal_sizes=equal_sizes,
    )
