"""How many labelled people a method needs (figure 3 of the paper)."""

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
    unlabeled_label: Any = -1,
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> pd.DataFrame:
    """Train on few and on many subjects, score on the same test subjects (section 3, figure 3).

    Each seed is a new random order of the subjects, the same for all methods; ``n`` training
    subjects are the first ``n`` of it, so the points of one curve are nested. Those are all the
    labels a fit gets to see: an estimator splits its own validation subjects off them
    (PARSClassifier a fifth), and recordings of split ``"valid"`` may be drawn like those of
    split ``"train"``. Subjects without any label go along with every fit, for estimators that
    pretrain.

    Parameters
    ----------
    estimators : dict of str to estimator
        By method name; with ``PARSClassifier(encoder=...)`` an encoder is pretrained only once.
    windows_ds : BaseConcatDataset
        Labelled windows with ``subject`` in the descriptions.
    n_train_subjects : sequence of int
        The paper has numbers from 10 to 657.
    cv : int | scikit-learn cross-validator | iterable of index pairs | None
        Divides the subjects, such as ``GroupKFold(5)``; an integer is a number of folds of whole
        subjects. None uses ``test_subjects``.
    test_subjects : sequence | None
        None takes the recordings whose description ``split`` is ``"test"``; such are never
        trained on.
    train_subjects : sequence | None
        Whom to draw from; None means everybody else.
    seeds : sequence of int
        Of the draws and of every ``random_state``.
    metrics, dataset, unlabeled_label, out, n_jobs, verbose
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`; a later run in ``out``
        may add numbers of subjects, seeds and methods.

    Returns
    -------
    pandas.DataFrame
        A row for each number, seed, method, test subject and metric, and one over all test
        windows, with the subject ``"all"``: that is what the paper draws, as mean and standard
        deviation over seeds (``summarize(scores, over="seeds")``).

    Raises
    ------
    ValueError
        When more training subjects are asked for than there are, nobody is there to test, or a
        subject is on both sides.
    FoldError
        When a fit fails.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import (
    ...     LogBandPower, label_efficiency, summarize
    ... )
    >>> windows = datasets.simulated.sleep(n_subjects=4, hours=0.2, n_chans=2)
    >>> band_power = make_pipeline(LogBandPower(), LogisticRegression(max_iter=1000))
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
    default = None
    if cv is None:
        default = given_split(windows_ds, corpus, test_subjects, train_subjects)
    split = splitter(
        corpus, cv, default, test_subjects=test_subjects, train_subjects=train_subjects
    )
    numbers = list(n_train_subjects)
    folds = make_folds("label_efficiency", estimators, corpus, split, seeds, numbers)
    return run_folds(
        folds, {dataset: corpus}, metrics=metrics, out=out, n_jobs=n_jobs, verbose=verbose
    ).scores


def check_numbers(n_train_subjects: Sequence[int]) -> None:
    """Raise ValueError where these are no numbers of subjects, or none, or one comes twice."""
    numbers = [] if isinstance(n_train_subjects, (Integral, str)) else list(n_train_subjects)
    counts = all(isinstance(n, Integral) and n > 0 for n in numbers)
    if not numbers or not counts or len(set(numbers)) < len(numbers):
        raise ValueError(
            "n_train_subjects is a list of different numbers of subjects, for example "
            f"[10, 50, 100], got {n_train_subjects!r}."
        )
