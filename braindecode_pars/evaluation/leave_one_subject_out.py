"""Scores of each held-out subject: train on all other subjects, test on this one."""

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
    unlabeled_label: Any = "auto",
    test_subjects: Sequence | None = None,
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    equal_sizes: bool = True,
) -> pd.DataFrame:
    """Hold out each subject in turn: train on all other subjects and score on this one.

    The paper uses this protocol for EESM17 (section 3, table 1 and figure 8). It reports mean and
    standard deviation over subjects, see :func:`~braindecode_pars.evaluation.summarize`.

    An estimator splits its validation data off the training subjects of the fold.
    ``PARSClassifier(validation=0.2)`` holds out a fifth of these subjects, neither pretrains nor
    trains on them, and restores the weights with the lowest validation loss.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name. Each fold fits a clone.
    windows_ds : BaseConcatDataset
        Labelled windows with ``subject`` in the descriptions.
    metrics : sequence of str
        Names of metrics, see :func:`~braindecode_pars.evaluation.score_predictions`.
    seeds : sequence of int
        Random seeds. Every fold is run once for each seed, with every ``random_state`` of the
        estimator set to it.
    dataset : str
        Value of the column ``dataset``.
    unlabeled_label : hashable | None
        Label of unlabelled windows. These windows are never scored. Only estimators with a
        parameter ``unlabeled_label`` of the same value or ``"auto"`` receive them for training;
        PARSClassifier uses them for pretraining. ``"auto"`` means -1, as in scikit-learn, and
        warns when there are such windows; -1 means the same without a warning. With None every
        window is labelled, so that -1 is a class like any other.
    test_subjects : sequence | None
        Subjects to hold out in turn; None means all. Every fold trains on all subjects but the
        held-out one.
    out : path | None
        Folder for finished folds. The same call resumes an interrupted run, also with more seeds,
        methods or test subjects; see :func:`~braindecode_pars.evaluation.folds.run_folds`.
    n_jobs : int | None
        Number of folds to run in parallel processes. None means 1, or the setting of
        ``joblib.parallel_config``. Processes use different GPUs where there are several and
        ``device`` is "auto".
    verbose : int
        Verbosity; 1 shows a progress bar over folds.
    equal_sizes : bool
        Whether methods whose encoders have different numbers of parameters are refused. False
        compares them as they are; :func:`~braindecode_pars.evaluation.cost_table` shows the
        numbers.

    Returns
    -------
    pandas.DataFrame
        One row for each method, subject, seed and metric, with the columns ``protocol``,
        ``dataset``, ``method``, ``subject`` (the held-out subject), ``n_train_subjects``, ``seed``,
        ``metric`` and ``value``. An undefined score is NaN; ``scores.attrs["undefined"]`` contains
        the reason.

    Raises
    ------
    TypeError
        When ``estimators`` is not a dict of classifiers.
    ValueError
        When there are fewer than two subjects, a subject has no labelled window, ``out``
        contains results of other settings, or the encoders of two methods have different sizes.
    FoldError
        When a fit fails.

    Warns
    -----
    UserWarning
        When a score is undefined, when an encoder was pretrained on a test subject, and when the
        training subjects of an encoder are unknown.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import LogBandPower, leave_one_subject_out
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> band_power = make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression())
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
        equal_sizes=equal_sizes,
    )
