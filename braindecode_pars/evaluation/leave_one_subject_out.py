"""Score estimators on people they have never seen, one person at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator
from torch.utils.data import Dataset

from braindecode_pars.evaluation._subjects import score_subjects

__all__ = ["leave_one_subject_out"]


def leave_one_subject_out(
    estimators: Mapping[str, BaseEstimator],
    windows_ds: Dataset,
    *,
    metrics: Sequence[str] = ("kappa", "balanced_accuracy"),
    seeds: Sequence[int] = (0,),
    dataset: str = "",
    unlabeled_label: Any = -1,
    test_subjects: Sequence | None = None,
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> pd.DataFrame:
    """Train on all subjects but one, score on that one, for every subject.

    So the paper does with EESM17 (section 3, table 1 and figure 8), and reports mean and standard
    deviation over subjects: :func:`~braindecode_pars.evaluation.summarize`. Internal validation is
    the estimator's own business and happens inside the training fold; PARSClassifier holds out
    subjects of that fold, a fifth of them by default, neither pretrains nor trains on them, and
    restores the state with the lowest loss on them.

    Parameters
    ----------
    estimators : dict of str to estimator
        By method name. Cloned for every fold.
    windows_ds : BaseConcatDataset
        Labelled windows with ``subject`` in the descriptions.
    metrics : sequence of str
        See :func:`~braindecode_pars.evaluation.score_predictions`.
    seeds : sequence of int
        Every ``random_state`` of an estimator is set to each of them in turn.
    dataset : str
        Name for the column ``dataset``.
    unlabeled_label : hashable
        Windows with this label are never scored, and trained on only by estimators that have a
        parameter ``unlabeled_label`` of this value, as PARSClassifier does for pretraining.
    test_subjects : sequence | None
        Whom to leave out in turn; None means everybody. The others are always trained on.
    out : path | None
        Folder that keeps every finished fold, so that an interrupted run goes on where it was,
        also with more seeds, methods or test subjects; see
        :func:`~braindecode_pars.evaluation.folds.run_folds`.
    n_jobs : int | None
        Folds at a time, in processes; None means 1, or what ``joblib.parallel_config`` says.
    verbose : int
        1 shows a progress bar over folds.

    Returns
    -------
    pandas.DataFrame
        One row for each method, subject, seed and metric, with the columns ``protocol``,
        ``dataset``, ``method``, ``subject`` (who was left out), ``n_train_subjects``, ``seed``,
        ``metric`` and ``value``. What is not defined is NaN, with its reason in
        ``scores.attrs["undefined"]``.

    Raises
    ------
    TypeError
        When ``estimators`` is not a dict of classifiers.
    ValueError
        When there are fewer than two subjects, one has no labelled window, or ``out`` holds
        results of other settings.
    FoldError
        When a fit fails.

    Warns
    -----
    UserWarning
        When a score is undefined, and when an encoder was pretrained on a test subject.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import LogBandPower, leave_one_subject_out
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> band_power = make_pipeline(LogBandPower(), LogisticRegression(max_iter=1000))
    >>> scores = leave_one_subject_out({"band power": band_power}, windows, verbose=0)
    >>> len(scores), scores["subject"].tolist()
    (6, [1, 1, 2, 2, 3, 3])
    """
    return score_subjects(
        "leave_one_subject_out",
        estimators,
        windows_ds,
        metrics=metrics,
        seeds=seeds,
        dataset=dataset,
        unlabeled_label=unlabeled_label,
        test_subjects=test_subjects,
        out=out,
        n_jobs=n_jobs,
        verbose=verbose,
    )
