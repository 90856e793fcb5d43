"""Scores of each held-out subject; shared by leave_one_subject_out and compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator
from torch.utils.data import Dataset

from braindecode_pars.evaluation._arguments import check_arguments
from braindecode_pars.evaluation._splitting import make_folds, one_subject_out, splitter
from braindecode_pars.evaluation.cost import check_equal_sizes
from braindecode_pars.evaluation.folds import Corpus, run_folds

__all__ = ["score_subjects"]


def score_subjects(
    protocol: str,
    estimators: Mapping[str, BaseEstimator],
    windows_ds: Dataset,
    *,
    metrics: Sequence[str],
    seeds: Sequence[int],
    dataset: str,
    unlabeled_label: Any,
    test_subjects: Sequence | None,
    out: str | Path | None,
    n_jobs: int | None,
    verbose: int,
    cv: Any = None,
    equal_sizes: bool = True,
) -> pd.DataFrame:
    """Train on some subjects and score each held-out subject.

    Parameters
    ----------
    protocol : str
        Value of the column ``protocol``.
    cv : int | cross-validator | iterable | None
        Cross-validator that divides the subjects. None holds out one subject at a time, each of
        ``test_subjects``.
    estimators, windows_ds, metrics, seeds, dataset, unlabeled_label, test_subjects, out, n_jobs, \
verbose, equal_sizes
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`.

    Returns
    -------
    pandas.DataFrame
        Tidy scores, as in :func:`~braindecode_pars.evaluation.leave_one_subject_out`.
    """
    check_arguments(estimators, metrics, seeds, n_jobs)
    corpus = Corpus.of(windows_ds, dataset, unlabeled_label)
    check_equal_sizes(estimators, corpus.X, equal_sizes)
    default = one_subject_out(corpus, test_subjects) if cv is None else None
    split = splitter(corpus, cv, default, test_subjects=test_subjects)
    folds = make_folds(protocol, estimators, corpus, split, seeds)
    return run_folds(
        folds, {dataset: corpus}, metrics=metrics, out=out, n_jobs=n_jobs, verbose=verbose
    ).scores
