"""Run folds: fit on the training windows, predict the test windows, save and score the result.

A warning that occurs in several folds is shown once. Folds that run in parallel are distributed
over the GPUs.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length
from sklearn.utils.parallel import Parallel, delayed

from braindecode_pars._common import checks, computing, files, tables, training
from braindecode_pars._common.findings import collected, warn_once
from braindecode_pars._common.names import METRICS
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.estimators.windows_classifier import LabelPredictor
from braindecode_pars.estimators.windows_estimator import parameter_of_last, parameters_called
from braindecode_pars.evaluation import cache, leaks
from braindecode_pars.evaluation.metrics import (
    PROBABILITY_METRICS,
    checked_labels,
    saved_probabilities,
    score_predictions,
    undefined_because,
)
from braindecode_pars.evaluation.splitting import Corpus, Fold, with_seed
from braindecode_pars.pretext import base

# The random state of torch is global to the process, so folds in threads of the same process run
# sequentially.
_ONE_AT_A_TIME = threading.RLock()


class FoldError(RuntimeError):
    """Error while training or scoring a fold (one fit with its training and test windows).

    The message contains the fold, the original error, and the number of finished folds. If a
    protocol was called with ``out``, finished folds remain in this folder: after you have corrected
    the error, the same call resumes from them.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import FoldError, leave_one_subject_out
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> try:  # a classifier of feature vectors cannot be fitted on windows
    ...     leave_one_subject_out({"SVC": SVC()}, windows, verbose=0)
    ... except FoldError as error:
    ...     str(error).split(" failed")[0]
    'SVC, subject 1, n_train_subjects=1, seed=0'
    """


#: Function that prepares unfinished folds before they run, see :func:`run_folds`.
Prepare = Callable[[list[Fold], Mapping[str, Corpus], ResultsFolder], list[Fold]]


def run_folds(
    folds: Sequence[Fold],
    corpora: Mapping[str, Corpus],
    *,
    metrics: Sequence[str],
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    prepare: Prepare | None = None,
) -> pd.DataFrame:
    """Fit and score all folds of an evaluation, and resume from finished folds.

    A fold is one fit with its training and test windows. Folds run in parallel processes, or on the
    backend of :func:`joblib.parallel_config` (such as Dask or Ray). Folds in the same process run
    sequentially, because torch's random state is global to the process. For estimators with
    ``device="auto"``, the GPUs of the machine are divided among the processes. The result depends
    neither on the process in which a fold runs nor on the order in which folds finish.

    Parameters
    ----------
    folds : sequence of Fold
        Folds, in the order of the result.
    corpora : dict of str to Corpus
        Windows by dataset name, which is the attribute ``dataset`` of the folds.
    metrics : sequence of str
        Names of metrics, see :func:`~braindecode_pars.evaluation.score_predictions`.
    out : path | None
        Folder for the results. The true labels, predicted labels and probabilities of each finished
        fold are saved in ``cache/*.json``. Saved folds are not run again; delete ``cache`` to run
        all folds again. At the end, the scores are saved in ``scores.csv``.
    n_jobs : int | None
        Number of folds to run in parallel. If None, the number that ``parallel_config`` sets, or 1.
    verbose : int
        Verbosity; 1 shows a progress bar.
    prepare : callable | None
        Function that is called with the unfinished folds, the corpora and the folder for the
        results. It returns the folds that are run in place of the unfinished folds, for example
        with a shared encoder. If None, the unfinished folds are run.

    Returns
    -------
    pandas.DataFrame
        Scores, with the columns of :func:`~braindecode_pars.evaluation.leave_one_subject_out` and a
        column for each setting that an ablation varies.

    Raises
    ------
    FoldError
        If a fit fails. Finished folds remain in ``out``.
    ValueError
        If ``out`` contains results that were computed with different data or settings.

    Warns
    -----
    UserWarning
        If a saved fold is run again, because its file is damaged or was edited. If the folds of a
        method are not saved, because a parameter such as a lambda cannot be compared between calls.
        If a score is undefined. If an encoder was pretrained on a test subject, or its training
        subjects are unknown. Warnings that are issued inside folds, for example about unused
        channels, are shown at the end: each distinct warning once, with the number of folds that
        issued it.

    Examples
    --------
    Train on the first half of each recording and test on the second half:

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> from braindecode_pars.evaluation.folds import Corpus
    >>> from braindecode_pars.evaluation.folds import Fold, run_folds
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.4, n_chans=2)
    >>> corpus = Corpus.of(windows, "sleep", unlabeled_label=-1)
    >>> band_power = make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression())
    >>> folds = []
    >>> for subject in corpus.subjects:
    ...     train, test = np.split(corpus.rows_of([subject]), 2)
    ...     folds.append(
    ...         Fold(
    ...             protocol="half a recording",
    ...             dataset="sleep",
    ...             method="log band power",
    ...             n_train_subjects=1,
    ...             seed=0,
    ...             estimator=band_power,
    ...             train=train,
    ...             test=test,
    ...             test_subjects=[subject],
    ...         )
    ...     )
    >>> corpora = {"sleep": corpus}
    >>> scores = run_folds(folds, corpora, metrics=["accuracy"], verbose=0)
    >>> scores[["protocol", "subject", "metric"]].to_numpy().tolist()
    [['half a recording', 1, 'accuracy'], ['half a recording', 2, 'accuracy']]
    """
    n_processes = "a number of processes, or -1 for all cores"
    rule = checks.ParameterRule(n_processes, (int, np.integer), lambda number: number != 0)
    checks.optional(rule).check("n_jobs", n_jobs)
    rows: dict[int, list[dict[str, Any]]] = {}
    seen: list[Mapping[str, Any]] = [{}] * len(folds)

    def score(i: int, result: Mapping[str, Any]) -> None:
        rows[i] = scored(folds[i], result, metrics, corpora[folds[i].dataset].n_classes)
        seen[i] = result["seen"]

    # Read the finished folds
    folder = cache.NO_FOLDER
    if out is not None:
        folder = cache.open_folder(out, cache.settings_of(folds, corpora))
    saved_as = [cache.file_of(fold, folder) for fold in folds]
    for i, (fold, file) in enumerate(zip(folds, saved_as, strict=True)):
        saved = folder.get(file) if file else None
        if saved is not None and saved.get("key") == files.as_read(fold.key):
            score(i, saved)
    unfinished = {i: fold for i, fold in enumerate(folds) if i not in rows}
    # Warn of leaks before the first fit, if an estimator has a pretrained encoder with a card
    warned = leaks.warn_before_fit(folds, corpora)
    # Run the unfinished folds
    if prepare is not None:
        prepared = prepare([*unfinished.values()], corpora, folder)
        unfinished = dict(zip(unfinished, prepared, strict=True))
    jobs = [(i, fold, corpora[fold.dataset]) for i, fold in unfinished.items()]
    description = folds[0].protocol.replace("_", " ")
    bar = training.ProgressBar(
        total=len(folds), initial=len(rows), desc=description, unit=" fits", disable=not verbose
    )
    warnings_of_folds: list[list[tuple]] = []
    try:
        with bar:
            for i, result, fold_warnings in _finished(jobs, n_jobs):
                if file := saved_as[i]:
                    folder.put(file, result)
                score(i, result)
                warnings_of_folds.append(fold_warnings)
                bar.set_postfix(subject=folds[i].subject, method=folds[i].method)
                bar.update()
    except FoldError as error:
        where = "not saved, because out is None" if out is None else f"saved in {out}"
        error.args = (f"{error} {len(rows)} of {len(folds)} folds are finished and {where}.",)
        raise
    finally:
        warn_once(warnings_of_folds)
    # Collect the table
    scores = tables.table_of_scores([row for i in range(len(folds)) for row in rows[i]])
    if out is not None:
        files.replace_file(folder.path / "scores.csv", scores.to_csv(index=False))
    # Warn of undefined scores, and of test subjects in the pretraining data
    warn_of_undefined(scores)
    leaks.warn_of_leaks([(fold.method, seen[i]) for i, fold in enumerate(folds)], warned)
    return scores


def _finished(
    jobs: Sequence[tuple[int, Fold, Corpus]], n_jobs: int | None
) -> Iterator[tuple[int, dict[str, Any], list[tuple]]]:
    """Run folds, and yield the number, result and warnings of each fold when it is finished."""
    n_parallel = max(1, min(joblib.effective_n_jobs(n_jobs), len(jobs)))
    backend, _ = joblib.parallel.get_active_backend()
    # Some backends, such as Ray, return all results at the end.
    has_generator = n_parallel == 1 or backend.supports_return_generator
    return_as = "generator_unordered" if has_generator else "list"
    parallel = Parallel(n_jobs=n_jobs, batch_size=1, return_as=return_as)
    registered_tasks = base.custom_tasks()
    yield from parallel(delayed(_run)(*job, n_parallel, registered_tasks) for job in jobs)


def _run(
    i: int, fold: Fold, corpus: Corpus, n_parallel: int, tasks: dict[str, Any]
) -> tuple[int, dict[str, Any], list[tuple]]:
    """Run one fold, which may be in a worker process.

    The warnings are returned, because warnings of a worker process would be lost.
    """
    # Divide the GPUs among the processes. joblib, Dask and Ray limit the threads of a process.
    n_gpus = torch.cuda.device_count()
    device = f"cuda:{i % n_gpus}" if n_parallel > 1 and n_gpus > 1 else checks.AUTO
    fold_warnings: list[tuple] = []
    try:
        with _ONE_AT_A_TIME, collected(fold_warnings):
            base.register_tasks(tasks)
            return i, _fit_and_predict(fold, corpus, device), fold_warnings
    except Exception as error:
        warn_once([fold_warnings])  # the warnings may explain the error
        reason = f"{type(error).__name__}: {str(error).strip().rstrip('.')}"
        raise FoldError(f"{fold} failed with {reason}.") from error


def _fit_and_predict(fold: Fold, corpus: Corpus, device: str) -> dict[str, Any]:
    """Fit the estimator of a fold and predict; return values that can be saved as JSON."""
    estimator = with_seed(clone(fold.estimator), fold.seed)
    for name, value in (("device", device), ("unlabeled_label", corpus.unlabeled_label)):
        args = parameters_called(name, estimator)
        autos = [full for full, old in args.items() if isinstance(old, str) and old == checks.AUTO]
        estimator.set_params(**dict.fromkeys(autos, value))
    train = np.union1d(fold.train, fold.valid) if len(fold.valid) else fold.train
    if corpus.unlabeled_label not in parameters_called("unlabeled_label", estimator).values():
        train = train[corpus.labeled[train]]
    # The seed is for estimators without a random_state, such as skorch networks. It is shared,
    # because a hyperparameter search may start threads.
    with computing.seeded(fold.seed, _device_of(estimator), is_shared=True):
        fitted = estimator.fit(corpus.X[train], corpus.y[train])
        predicted, probabilities = labels_and_probabilities(fitted, corpus.X[fold.test])
    predicted = checked_labels(predicted, "predicted")
    check_consistent_length(fold.test, predicted)
    if corpus.unlabeled_label is not None and corpus.unlabeled_label in predicted.tolist():
        raise ValueError(
            f"A window was predicted as {corpus.unlabeled_label!r}, which is the label of "
            "unlabeled windows. Pass a different unlabeled_label, or unlabeled_label=None if all "
            "windows are labeled."
        )
    classes, columns = saved_probabilities(fitted, probabilities, len(fold.test))
    labels: list[list] = [corpus.y[fold.test].tolist(), predicted.tolist(), classes]
    # Convert all labels to text, unless JSON can represent all of them.
    if not all(isinstance(label, (bool, int, float, str)) for column in labels for label in column):
        labels = [list(map(str, column)) for column in labels]
    parts = [*leaks.estimators_in(fitted)]
    used_data = [getattr(part, "test_subject_data_", tables.TestSubjectData.NONE) for part in parts]
    most_data = max(fold.test_subject_data, *used_data, key=[*tables.TestSubjectData].index)
    names_with_corpus = corpus.corpus_subjects_of(fold.test_subjects)
    return {
        "key": fold.key,
        "true": labels[0],
        "predicted": labels[1],
        "probabilities": {"classes": labels[2], **columns},
        "subjects": [str(subject) for subject in corpus.groups[fold.test].tolist()],
        "seen": leaks.find_leaked_subjects(fitted, names_with_corpus),
        "test_subject_data": str(most_data),
    }


def labels_and_probabilities(fitted: Any, windows: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Predict the labels and, if the classifier has ``predict_proba``, the probabilities.

    Without ``predict_proba``, the probabilities are None. Features are computed only once for both:
    a pipeline transforms the windows once, and an estimator of this package predicts both at once.
    """
    cls = type(fitted)
    if cls is Pipeline and len(fitted.steps) > 1:
        return labels_and_probabilities(fitted[-1], fitted[:-1].transform(windows))
    if not hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict(windows)), None
    parent, methods = LabelPredictor, ("predict", "predict_proba")
    # Predict both at once, unless a subclass overrides one of the two methods
    if isinstance(fitted, parent) and all(getattr(cls, n) is getattr(parent, n) for n in methods):
        return fitted._predictions(windows)
    return np.asarray(fitted.predict(windows)), np.asarray(fitted.predict_proba(windows))


def _device_of(estimator: BaseEstimator) -> Any:
    """Return the device of the last component of an estimator that has a parameter ``device``."""
    # A parameter with this name is not always a torch device. If the device is invalid, fit raises
    # the error.
    with suppress(ValueError):
        return computing.find_device(parameter_of_last("device", estimator) or checks.AUTO)
    return "cpu"


def scored(
    fold: Fold, result: Mapping[str, Any], metrics: Sequence[str], n_classes: int
) -> list[dict[str, Any]]:
    """Compute the scores of a fold from its labels and probabilities.

    The rows do not contain the labels and probabilities, because those of hundreds of folds of a
    large corpus would not fit into memory.

    Parameters
    ----------
    fold : Fold
        Fold whose labels and probabilities are in ``result``.
    result : mapping
        Labels and probabilities, as saved in the file of the fold.
    metrics : sequence of str
        Names of metrics.
    n_classes : int
        Number of classes of the dataset, for the chance level.

    Returns
    -------
    list of dict
        A row of the scores for each subject and metric, with the reason if a score is undefined.
    """
    # Convert to arrays once per fold, because a fold can have many subjects.
    subjects, true, predicted = (np.asarray(result[n]) for n in ("subjects", "true", "predicted"))
    saved, rows = result["probabilities"], []
    probabilities = np.array(saved["columns"]).T if "columns" in saved else None
    # Folds of earlier versions have the entry "access".
    used_data = tables.TestSubjectData(result.get("test_subject_data") or result["access"])
    of_fold = fold.key | dict(test_subject_data=str(used_data))
    if fold.encoder_parameters is not None:
        of_fold["encoder_parameters"] = fold.encoder_parameters
    for subject in [*fold.test_subjects, *([tables.POOLED] if fold.pooled else [])]:
        is_tested = subjects == str(subject) if subject != tables.POOLED else slice(None)
        of_subject = None if probabilities is None else probabilities[is_tested]
        for metric in metrics:
            chance = METRICS[metric].chance_level(n_classes)
            row = of_fold | dict(subject=subject, metric=metric, chance=chance, value=float("nan"))
            reason = saved.get("missing") if metric in PROBABILITY_METRICS else None
            reason = reason or undefined_because(true[is_tested], metric, saved["classes"])
            if reason:
                row["why"] = reason
            else:
                labels = true[is_tested], predicted[is_tested]
                options: Any = dict(probabilities=of_subject, classes=saved["classes"])
                row["value"] = score_predictions(*labels, metric, **options)
            rows.append(row)
    return rows


def warn_of_undefined(scores: pd.DataFrame) -> None:
    """Issue a warning if any score is undefined, with the reason for the first undefined score."""
    undefined = scores.dropna(subset="why") if "why" in scores else scores.head(0)
    for _, score in undefined.head(1).iterrows():
        checks.warn_user(
            f"{len(undefined)} of {len(scores)} scores are undefined (NaN), for example "
            f"{score['metric']} of subject {score['subject']}: {score['why']}. The column 'why' of "
            "the scores contains the reason for each undefined score."
        )
