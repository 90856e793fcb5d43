"""Transfer: the same pretrained encoder on several datasets (table 1 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator
from torch.utils.data import Dataset

from braindecode_pars.evaluation._arguments import check_arguments
from braindecode_pars.evaluation._splitting import given_split, make_folds, splitter
from braindecode_pars.evaluation.cost import check_equal_sizes
from braindecode_pars.evaluation.folds import Corpus, run_folds

__all__ = ["transfer"]


def transfer(
    estimators: Mapping[str, BaseEstimator],
    datasets: Mapping[str, Dataset],
    *,
    cv: Mapping[str, Any] | None = None,
    test_subjects: Mapping[str, Sequence] | None = None,
    seeds: Sequence[int] = range(5),
    metrics: Sequence[str] = ("kappa", "balanced_accuracy"),
    unlabeled_label: Any = "auto",
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    equal_sizes: bool = True,
) -> pd.DataFrame:
    """Fine-tune and test the same estimators on several datasets.

    This protocol reproduces the paper's transfer learning (section 3, table 1). Each dataset has
    its own training and test subjects. Every fit trains on all subjects that are not tested; an
    estimator splits its validation subjects off them. With ``PARSClassifier(validation="split")``
    the validation subjects are those of split ``"valid"``, as in the paper, and no method is
    trained on them.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name, for example
        ``{"PARS": PARSClassifier(encoder="run1/"), "scratch": PARSClassifier(None)}``. An encoder
        requires the sampling rate of its pretraining, so resample all datasets to it.
    datasets : dict of str to BaseConcatDataset
        Labelled windows by dataset name, with ``subject`` in the descriptions.
    cv : dict of str to cross-validator | None
        Cross-validators by dataset name, as in
        :func:`~braindecode_pars.evaluation.label_efficiency`. A dataset without an entry uses
        ``test_subjects``.
    test_subjects : dict of str to sequence | None
        Test subjects by dataset name. A dataset without an entry uses the subjects whose recordings
        have ``"test"`` as ``split`` in their description.
    seeds : sequence of int
        Seeds of every ``random_state``.
    metrics, unlabeled_label, out, n_jobs, verbose, equal_sizes
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`. A later run with the same
        ``out`` may add datasets, seeds and methods.

    Returns
    -------
    pandas.DataFrame
        One row for each dataset, seed, method, test subject and metric. An additional row with the
        subject ``"all"`` is computed over the windows of all test subjects; the paper reports the
        mean and standard deviation of these rows over seeds (``summarize(scores, over="seeds")``).

    Raises
    ------
    TypeError
        When ``datasets``, ``cv`` or ``test_subjects`` is not a dict.
    ValueError
        When a dataset has no test subjects, or ``cv`` or ``test_subjects`` has an entry for an
        unknown dataset.
    FoldError
        When a fit fails.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import LogBandPower, transfer
    >>> nights = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> scores = transfer(
    ...     {"chance level": make_pipeline(LogBandPower(), DummyClassifier())},
    ...     {"nights": nights},
    ...     test_subjects={"nights": [3]},
    ...     metrics=["accuracy"],
    ...     verbose=0,
    ... )
    >>> scores["subject"].tolist()[:2], sorted(set(scores["seed"]))
    ([3, 'all'], [0, 1, 2, 3, 4])
    """
    # Check the arguments before anything is trained.
    check_arguments(estimators, metrics, seeds, n_jobs)
    if not isinstance(datasets, Mapping) or len(datasets) == 0:
        empty = "an empty " if isinstance(datasets, Mapping) else "a "
        raise TypeError(
            "datasets must be a dict of names and windows datasets with at least one entry, got "
            f"{empty}{type(datasets).__name__}."
        )
    cvs = _by_dataset("cv", cv, datasets)
    tested = _by_dataset("test_subjects", test_subjects, datasets)
    # Split each dataset by itself.
    corpora, folds = {}, []
    for name, windows_ds in datasets.items():
        corpora[name] = corpus = Corpus.of(windows_ds, name, unlabeled_label)
        check_equal_sizes(estimators, corpus.X, equal_sizes)
        test, cv_of_dataset = tested.get(name), cvs.get(name)
        default = given_split(corpus, test) if cv_of_dataset is None else None
        split = splitter(corpus, cv_of_dataset, default, test_subjects=test)
        folds += make_folds("transfer", estimators, corpus, split, seeds)
    return run_folds(
        folds, corpora, metrics=metrics, out=out, n_jobs=n_jobs, verbose=verbose
    ).scores


def _by_dataset(
    argument: str, given: Mapping[str, Any] | None, datasets: Mapping[str, Dataset]
) -> Mapping[str, Any]:
    """Check an argument with one entry per dataset; None becomes an empty dict."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{argument} is a {type(given).__name__}; pass a dict with the names of datasets."
        )
    for name in given:
        if name not in datasets:
            raise ValueError(
                f"{argument} has an entry for the unknown dataset {name!r}; datasets are "
                f"{', '.join(datasets)}."
            )
    return given
