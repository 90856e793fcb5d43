"""One pretrained encoder on several datasets (table 1 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator
from torch.utils.data import Dataset

from braindecode_pars.evaluation._arguments import check_arguments
from braindecode_pars.evaluation._splitting import given_split, make_folds, splitter
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
    unlabeled_label: Any = -1,
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> pd.DataFrame:
    """Fine-tune and test the same estimators on several datasets, each with its given split.

    The paper's transfer learning (section 3, table 1).

    All subjects who are not for testing are trained on; an estimator splits its own validation
    subjects off them.

    Parameters
    ----------
    estimators : dict of str to estimator
        For example ``{"PARS": PARSClassifier(encoder="run1/"), "scratch":
        PARSClassifier(None)}``. Encoders want the sampling rate they were pretrained at, so
        resample all datasets to one.
    datasets : dict of str to BaseConcatDataset
        Labelled windows with ``subject`` in the descriptions.
    cv : dict of str to cross-validator | None
        By dataset: divides the subjects, as in
        :func:`~braindecode_pars.evaluation.label_efficiency`. A dataset that is not named here
        uses ``test_subjects``.
    test_subjects : dict of str to sequence | None
        By dataset. A dataset that is not named here takes the recordings whose description
        ``split`` is ``"test"``.
    seeds : sequence of int
        Of every ``random_state``.
    metrics, unlabeled_label, out, n_jobs, verbose
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`; a later run in ``out``
        may add datasets, seeds and methods.

    Returns
    -------
    pandas.DataFrame
        A row for each dataset, seed, method, test subject and metric, and one over all test
        windows, with the subject ``"all"``. The paper reports mean and standard deviation of
        these over seeds (``summarize(scores, over="seeds")``).

    Raises
    ------
    TypeError
        When ``datasets`` or ``test_subjects`` is not a dict.
    ValueError
        When a dataset has nobody to test, or ``test_subjects`` names one that is not there.
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
    ...     {"chance": make_pipeline(LogBandPower(), DummyClassifier())},
    ...     {"nights": nights},
    ...     test_subjects={"nights": [3]},
    ...     metrics=["accuracy"],
    ...     verbose=0,
    ... )
    >>> scores["subject"].tolist()[:2], sorted(set(scores["seed"]))
    ([3, 'all'], [0, 1, 2, 3, 4])
    """
    check_arguments(estimators, metrics, seeds, n_jobs)
    if not isinstance(datasets, Mapping) or len(datasets) == 0:
        raise TypeError(
            f"datasets is a dict of names and windows datasets, at least one, got a "
            f"{type(datasets).__name__}"
            + (" that is empty." if isinstance(datasets, Mapping) else ".")
        )
    cvs = _by_dataset("cv", cv, datasets)
    tested = _by_dataset("test_subjects", test_subjects, datasets)
    corpora, folds = {}, []
    for name, windows_ds in datasets.items():
        corpora[name] = corpus = Corpus.of(windows_ds, name, unlabeled_label)
        chosen, cv_here = tested.get(name), cvs.get(name)
        default = given_split(windows_ds, corpus, chosen) if cv_here is None else None
        split = splitter(corpus, cv_here, default, test_subjects=chosen)
        folds += make_folds("transfer", estimators, corpus, split, seeds)
    return run_folds(
        folds, corpora, metrics=metrics, out=out, n_jobs=n_jobs, verbose=verbose
    ).scores


def _by_dataset(
    argument: str, given: Mapping[str, Any] | None, datasets: Mapping[str, Dataset]
) -> Mapping[str, Any]:
    """What an argument says of each dataset; nothing where it is None."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{argument} is a {type(given).__name__}; give a dict with the names of datasets."
        )
    for name in given:
        if name not in datasets:
            raise ValueError(
                f"{argument} names the dataset {name!r}; there are {', '.join(datasets)}."
            )
    return given
