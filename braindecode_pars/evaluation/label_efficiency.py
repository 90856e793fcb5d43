"""Label efficiency: scores against the number of labelled subjects (figure 3 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator
from torch.utils.data import Dataset

from braindecode_pars.evaluation._arguments import check_arguments
from braindecode_pars.evaluation._splitting import given_split, make_folds, splitter
from braindecode_pars.evaluation.cost import check_equal_sizes
from braindecode_pars.evaluation.folds import Corpus, run_folds

__all__ = ["label_efficiency"]


def label_efficiency(
    estimators: Mapping[str, BaseEstimator],
    windows_ds: Dataset,
    *,
    n_train_subjects: Sequence[int],
    cv: Any = None,
    test_subjects: Sequence | None = None,
    train_subjects: Sequence | None = None,
    seeds: Sequence[int] = range(5),
    metrics: Sequence[str] = ("kappa", "f1", "balanced_accuracy"),
    dataset: str = "",
    unlabeled_label: Any = "auto",
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    equal_sizes: bool = True,
) -> pd.DataFrame:
    """Score methods trained on increasing numbers of labelled subjects (section 3, figure 3).

    All scores are of the same test subjects. For each seed the training subjects are shuffled,
    in the same order for all methods, and a fit with ``n`` training subjects uses the first ``n``.
    Smaller training sets are therefore contained in larger ones.

    With ``PARSClassifier(validation="split")``, as in the paper, ``n`` subjects are trained on, and
    all subjects of split ``"valid"`` come beside them: every such fit is validated on the same
    subjects, which no method is trained on. Estimators without ``validation="split"`` never see
    them. Otherwise a fit receives no labels of other subjects: an estimator splits its validation
    subjects off these ``n`` subjects (``validation=0.2``: a fifth), and subjects of split
    ``"valid"`` are drawn like those of split ``"train"``. Subjects without labels are part of
    every fit, for estimators that pretrain.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name. With ``PARSClassifier(encoder=...)`` the encoder is pretrained
        once and shared by all fits.
    windows_ds : BaseConcatDataset
        Labelled windows with ``subject`` in the descriptions.
    n_train_subjects : sequence of int
        Numbers of labelled training subjects (the paper: from 10 to 657).
    cv : int | scikit-learn cross-validator | iterable of index pairs | None
        Cross-validator that divides the subjects, such as ``GroupKFold(5)``; an integer is the
        number of folds of whole subjects. None uses ``test_subjects``.
    test_subjects : sequence | None
        Subjects to test on; None means those whose recordings have ``"test"`` as ``split`` in
        their description. The latter are never trained on.
    train_subjects : sequence | None
        Subjects to draw the training subjects from; None means all that are not tested.
    seeds : sequence of int
        Seeds of the random draws and of every ``random_state``.
    metrics, dataset, unlabeled_label, out, n_jobs, verbose, equal_sizes
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`. A later run with the same
        ``out`` may add numbers of subjects, seeds and methods.

    Returns
    -------
    pandas.DataFrame
        One row for each number of training subjects, seed, method, test subject and metric. An
        additional row with the subject ``"all"`` is computed over the windows of all test subjects;
        the paper shows the mean and standard deviation of these rows over seeds
        (``summarize(scores, over="seeds")``).

    Raises
    ------
    ValueError
        When a value of ``n_train_subjects`` is larger than the number of available training
        subjects, there are no test subjects, or a subject is both a training and a test subject.
    FoldError
        When a fit fails.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import (
    ...     LogBandPower, label_efficiency, summarize
    ... )
    >>> windows = datasets.simulated.sleep(n_subjects=4, hours=0.2, n_chans=2)
    >>> band_power = make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression())
    >>> scores = label_efficiency(
    ...     {"band power": band_power},
    ...     windows,
    ...     n_train_subjects=[1, 3],
    ...     test_subjects=[4],
    ...     seeds=[0, 1],
    ...     metrics=["kappa"],
    ...     verbose=0,
    ... )
    >>> summarize(scores, over="seeds")[["n_train_subjects", "n"]]
       n_train_subjects  n
    0                 1  2
    1                 3  2
    """
    check_arguments(estimators, metrics, seeds, n_jobs)
    check_numbers(n_train_subjects)
    corpus = Corpus.of(windows_ds, dataset, unlabeled_label)
    check_equal_sizes(estimators, corpus.X, equal_sizes)
    default = None
    if cv is None:
        default = given_split(corpus, test_subjects, train_subjects)
    split = splitter(
        corpus, cv, default, test_subjects=test_subjects, train_subjects=train_subjects
    )
    numbers = list(n_train_subjects)
    folds = make_folds("label_efficiency", estimators, corpus, split, seeds, numbers)
    return run_folds(
        folds, {dataset: corpus}, metrics=metrics, out=out, n_jobs=n_jobs, verbose=verbose
    ).scores


def check_numbers(n_train_subjects: Sequence[int]) -> None:
    """Check that ``n_train_subjects`` is a non-empty list of different positive integers."""
    numbers = [] if isinstance(n_train_subjects, (Integral, str)) else list(n_train_subjects)
    counts = all(isinstance(n, Integral) and n > 0 for n in numbers)
    if not numbers or not counts or len(set(numbers)) < len(numbers):
        raise ValueError(
            "n_train_subjects must be a list of different numbers of subjects, for example "
            f"[10, 50, 100], got {n_train_subjects!r}."
        )
