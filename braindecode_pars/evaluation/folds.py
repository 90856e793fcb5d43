"""Run folds: fit on the training windows, predict the test windows, save and score the result.

Warnings of folds are shown once per protocol. Parallel folds are distributed over the GPUs.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import joblib
import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.parallel import Parallel, delayed

from braindecode_pars._common import checks, computing, files, tables, training
from braindecode_pars._common.findings import collected, warn_once
from braindecode_pars._common.names import METRICS
from braindecode_pars.estimators.windows_classifier import LabelPredictor
from braindecode_pars.estimators.windows_estimator import parameters_called
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
from braindecode_pars.windows import Windows

# The random state and number of threads of torch are global to the process, so folds in threads of
# the same process run sequentially.
_ONE_AT_A_TIME = threading.RLock()


class FoldError(RuntimeError):
    """Error while training or scoring a fold.

    The message contains the fold and the number of finished folds. Finished folds remain in
    ``out``, and the same call resumes from them.

    Attributes
    ----------
    key : dict
        Fold: ``protocol``, ``dataset``, ``method``, ``subject``, ``n_train_subjects``, ``seed``,
        and the settings that an ablation varies.
    method : str | None
        Method that failed.
    reason : str
        Type and message of the error.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import FoldError, leave_one_subject_out
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> try:  # a classifier of feature vectors cannot be fitted on windows
    ...     leave_one_subject_out({"SVC": SVC()}, windows, verbose=0)
    ... except FoldError as error:
    ...     error.method, error.key["subject"], error.key["seed"]
    ('SVC', 1, 0)
    """

    key: Mapping[str, Any] = MappingProxyType({})
    reason: str = ""

    @classmethod
    def of(cls, fold: Fold, error: Exception) -> Self:
        """Return the FoldError of a fold whose fit raised ``error``."""
        reason = f"{type(error).__name__}: {str(error).strip().rstrip('.')}"
        fold_error = cls(f"{fold} failed with {reason}.")
        fold_error.key, fold_error.reason = fold.key, reason
        return fold_error

    @property
    def method(self) -> str | None:
        """Method that failed."""
        return self.key.get("method")


#: Function that prepares unfinished folds before they run, see :func:`run_folds`.
Prepare = Callable[[list[Fold], Mapping[str, Corpus], cache.FoldStore | None], list[Fold]]


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
    """Fit and score all folds, and resume from finished folds.

    Folds run in parallel processes, or on the backend of :func:`joblib.parallel_config` (such as
    Dask or Ray). Folds in the same process run sequentially, because torch's random state is global
    to the process. The torch threads are divided among the processes. For estimators with
    ``device="auto"``, the GPUs of the machine are divided as well. The result does not depend on
    the process in which a fold runs, or on the order in which folds finish.

    Parameters
    ----------
    folds : sequence of Fold
        Folds, in the order of the result.
    corpora : dict of str to Corpus
        Windows by dataset name. The ``dataset`` of each fold is one of these names.
    metrics : sequence of str
        Names of metrics, see :func:`~braindecode_pars.evaluation.score_predictions`.
    out : path | None
        Folder for the results. Each finished fold is saved in ``cache/*.json`` (true and predicted
        labels, probabilities) and is not run again; delete ``cache`` to recompute all folds. At the
        end, the scores are saved in ``scores.csv``.
    n_jobs : int | None
        Number of folds to run in parallel. If None, 1, unless ``parallel_config`` sets another
        number.
    verbose : int
        Verbosity; 1 shows a progress bar.
    prepare : callable | None
        Function that is called with the unfinished folds, the corpora and the folder of the
        results. It returns the folds to run, for example with a shared encoder.

    Returns
    -------
    pandas.DataFrame
        Scores, with the columns that all protocols return and a column for each setting that an
        ablation varies.

    Raises
    ------
    FoldError
        If a fit fails. Finished folds remain in ``out``.
    ValueError
        If ``out`` contains results of other data or settings.

    Warns
    -----
    UserWarning
        If a saved fold is damaged or was edited, and is therefore run again. If the folds of a
        method are not saved, because a parameter such as a lambda cannot be compared between calls.
        If a score is undefined, if an encoder was pretrained on a test subject, or if the training
        subjects of an encoder are unknown. If folds issue warnings, for example about unused
        channels: each distinct warning is shown once, at the end, with the number of folds that
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
    results: dict[int, dict[str, Any]] = {}

    def score(i: int, result: Mapping[str, Any]) -> None:
        results[i] = scored(folds[i], result, metrics, corpora[folds[i].dataset].n_classes)

    # Read the finished folds
    store = None if out is None else _open_store(out, folds, corpora)
    places = [None if store is None else store.file_of(fold) for fold in folds]
    _read_finished(folds, places, score)
    unfinished = {i: fold for i, fold in enumerate(folds) if i not in results}
    # Warn before the first fit, if the estimator has a pretrained encoder with a card
    methods = [fold.method for fold in folds]
    warned = leaks.warn_of_leaks(methods, leaks.leaked_subjects_before_fit(folds, corpora))
    # Run the unfinished folds
    if prepare is not None:
        prepared = prepare([*unfinished.values()], corpora, store)
        unfinished = dict(zip(unfinished, prepared, strict=True))
    jobs = [(i, fold, corpora[fold.dataset], places[i]) for i, fold in unfinished.items()]
    bar = training.ProgressBar(
        total=len(folds),
        initial=len(results),
        desc=folds[0].protocol.replace("_", " "),
        unit=" fits",
        disable=not verbose,
    )
    warnings_of_folds: list[list[tuple]] = []
    try:
        with bar:
            for i, result, fold_warnings in _finished(jobs, n_jobs, bar):
                score(i, result)
                # A worker on another machine may have no access to the folder.
                if (file := places[i]) is not None and not file.exists():
                    files.write_checked(file, result)
                bar.update()
                warnings_of_folds.append(fold_warnings)
    except FoldError as error:
        saved = "not saved, because out is None" if store is None else f"saved in {store.folder}"
        error.args = (f"{error} {len(results)} of {len(folds)} folds are finished and {saved}.",)
        raise
    finally:
        warn_once(warnings_of_folds)
    # Collect the table
    in_order = [results[i] for i in range(len(folds))]
    rows = [row for result in in_order for row in result["rows"]]
    scores = tables.table_of_scores(rows, [name for fold in folds for name in fold.varied])
    if store is not None:
        files.replace_file(store.folder / "scores.csv", scores.to_csv(index=False))
    # Warn of undefined scores, and of test subjects in the pretraining
    warn_of_undefined(scores)
    leaks.warn_of_leaks(methods, [result["seen"] for result in in_order], warned)
    return scores


def _open_store(
    out: str | Path, folds: Sequence[Fold], corpora: Mapping[str, Corpus]
) -> cache.FoldStore:
    """Open a folder of results, and warn of methods whose folds are not saved."""
    datasets = {name: cache.describe_corpus(corpus) for name, corpus in corpora.items()}
    methods, reasons = {}, []
    for name, estimator in {fold.method: fold.estimator for fold in folds}.items():
        try:
            methods[name] = cache.describe_estimator(estimator)
        except ValueError as error:
            reasons.append(f"{name} ({error})")
    if reasons:
        checks.warn_user(
            f"The parameters of {', '.join(reasons)} cannot be compared between calls, so the "
            "folds of these methods are not saved in out and run again in every call. As "
            "parameters of an estimator, use only functions and classes that are defined in a "
            "module."
        )
    settings = dict(protocol=folds[0].protocol, datasets=datasets, methods=methods)
    return cache.FoldStore.open(out, settings)


def _read_finished(
    folds: Sequence[Fold],
    places: Sequence[Path | None],
    score: Callable[[int, Mapping[str, Any]], None],
) -> None:
    """Score the saved folds, and delete files that are damaged or cannot be scored."""
    errors = []
    for i, file in enumerate(places):
        if file is not None and file.exists():
            try:
                result = files.read_checked(file)
                if result["key"] != files.as_read(folds[i].key):
                    raise ValueError(f"{file} contains the result of another fold.")
                score(i, result)
            except ValueError as error:
                if file.is_dir():  # folders are not deleted
                    raise
                errors.append(str(error))
                file.unlink()
    if errors:
        checks.warn_user(
            f"{len(errors)} saved folds cannot be used and are run again: {' '.join(errors[:5])}"
        )


def _finished(
    jobs: Sequence[tuple[int, Fold, Corpus, Path | None]],
    n_jobs: int | None,
    bar: training.ProgressBar,
) -> Iterator[tuple[int, dict[str, Any], list[tuple]]]:
    """Run folds, and yield the number, result and warnings of each fold when it is finished."""
    n_parallel = max(1, min(joblib.effective_n_jobs(n_jobs), len(jobs)))
    backend, _ = joblib.parallel.get_active_backend()
    # Some backends, such as Ray, return all results at the end. No result is lost if they fail,
    # because the workers save each finished fold.
    has_generator = n_parallel == 1 or backend.supports_return_generator
    return_as = "generator_unordered" if has_generator else "list"
    parallel = Parallel(n_jobs=n_jobs, batch_size=1, return_as=return_as)
    registered_tasks = base.custom_tasks()

    def started() -> Iterator[Any]:
        for i, fold, corpus, file in jobs:
            bar.set_postfix(subject=fold.subject, method=fold.method)
            yield delayed(_run)(i, fold, corpus, file, n_parallel, registered_tasks)

    yield from parallel(started())


def _run(
    i: int, fold: Fold, corpus: Corpus, file: Path | None, n_parallel: int, tasks: dict[str, Any]
) -> tuple[int, dict[str, Any], list[tuple]]:
    """Run one fold in a worker, and save it if the worker has access to the folder.

    The warnings are returned, because warnings of a worker process would be lost.
    """
    # Divide the GPUs and torch's threads among the processes.
    n_gpus = torch.cuda.device_count()
    device = f"cuda:{i % n_gpus}" if n_parallel > 1 and n_gpus > 1 else checks.AUTO
    fold_warnings: list[tuple] = []
    try:
        with _ONE_AT_A_TIME, ExitStack() as after, collected(fold_warnings):
            n_threads = torch.get_num_threads()
            after.callback(torch.set_num_threads, n_threads)
            torch.set_num_threads(max(1, min(n_threads, joblib.cpu_count() // n_parallel)))
            base.register_tasks(tasks)
            result = _fit_and_predict(fold, corpus, device)
    except Exception as error:
        warn_once([fold_warnings])  # the warnings may explain the error
        raise FoldError.of(fold, error) from error
    if file is not None and file.parent.is_dir():
        files.write_checked(file, result)
    return i, result, fold_warnings


def _fit_and_predict(fold: Fold, corpus: Corpus, device: str) -> dict[str, Any]:
    """Fit and predict a fold; return numbers and text that can be saved as JSON."""
    estimator = with_seed(clone(fold.estimator), fold.seed)
    for name, value in (("device", device), ("unlabeled_label", corpus.unlabeled_label)):
        args = parameters_called(name, estimator)
        autos = [full for full, old in args.items() if isinstance(old, str) and old == checks.AUTO]
        estimator.set_params(**dict.fromkeys(autos, value))
    train = np.union1d(fold.train, fold.valid) if len(fold.valid) else fold.train
    unlabeled_labels = parameters_called("unlabeled_label", estimator).values()
    if corpus.unlabeled_label not in unlabeled_labels:
        train = train[corpus.labeled[train]]
    # For estimators without a random_state, such as skorch networks. A search may start threads.
    with computing.seeded(fold.seed, _device_of(estimator), is_shared=True):
        fitted = estimator.fit(corpus.X[train], corpus.y[train])
        predicted, probabilities = labels_and_probabilities(fitted, corpus.X[fold.test])
    predicted = _checked_predictions(predicted, len(fold.test), corpus.unlabeled_label)
    classes, columns = saved_probabilities(fitted, probabilities, len(fold.test))
    labels: list[list] = [corpus.y[fold.test].tolist(), predicted.tolist(), classes]
    # Convert all labels to text, unless JSON can represent all of them.
    if not all(isinstance(label, (bool, int, float, str)) for column in labels for label in column):
        labels = [list(map(str, column)) for column in labels]
    used_data = [
        getattr(part, "test_subject_data_", tables.TestSubjectData.NONE)
        for part in leaks.estimators_in(fitted)
    ]
    names_with_corpus = corpus.corpus_subjects_of(fold.test_subjects)
    return {
        "key": fold.key,
        "true": labels[0],
        "predicted": labels[1],
        "probabilities": {"classes": labels[2], **columns},
        "subjects": [str(subject) for subject in corpus.groups[fold.test].tolist()],
        "seen": leaks.find_leaked_subjects(fitted, names_with_corpus),
        "test_subject_data": str(
            max(fold.test_subject_data, *used_data, key=[*tables.TestSubjectData].index)
        ),
    }


def _checked_predictions(predicted: Any, n_windows: int, unlabeled_label: Any) -> np.ndarray:
    """Return the predicted labels as an array, if there is one class label per window."""
    predicted = checked_labels(predicted, "predicted")
    if len(predicted) != n_windows:
        raise ValueError(
            f"predict returned {len(predicted)} labels, expected {n_windows} (one per window)."
        )
    if unlabeled_label is not None and unlabeled_label in predicted.tolist():
        raise ValueError(
            f"predict returned {unlabeled_label!r}, the label of unlabeled windows. Pass "
            "another unlabeled_label, or unlabeled_label=None if all windows are labeled."
        )
    return predicted


def labels_and_probabilities(fitted: Any, windows: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Predict labels, and probabilities if available, reading the windows only once.

    A pipeline or a linear probe transforms the windows once, and its last step predicts labels and
    probabilities.
    """
    cls = type(fitted)
    if cls is Pipeline and len(fitted.steps) > 1:
        return labels_and_probabilities(fitted[-1], fitted[:-1].transform(windows))
    if not hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict(windows)), None
    parent, methods = LabelPredictor, ("predict", "predict_proba")
    # Unless a subclass overrides one of the two methods
    if isinstance(fitted, parent) and all(getattr(cls, n) is getattr(parent, n) for n in methods):
        return fitted._predictions(windows)
    if isinstance(windows, Windows) and windows.shapes is None:  # not windows of a signal store
        windows = windows.read_by([*windows])
    return np.asarray(fitted.predict(windows)), np.asarray(fitted.predict_proba(windows))


def _device_of(estimator: BaseEstimator) -> Any:
    """Return the first device of an estimator that is not the CPU, or "cpu"."""
    devices = []
    for value in parameters_called("device", estimator).values():
        # A parameter of this name need not be a torch device; otherwise, fit raises the error.
        with suppress(ValueError):
            devices.append(computing.find_device(value))
    devices = devices or [computing.find_device(checks.AUTO)]
    return next((device for device in devices if device.type != "cpu"), "cpu")


def scored(
    fold: Fold, result: Mapping[str, Any], metrics: Sequence[str], n_classes: int
) -> dict[str, Any]:
    """Return the scores of a fold, without its labels and probabilities.

    The labels and probabilities of hundreds of folds of a large corpus would not fit into memory.

    Parameters
    ----------
    fold : Fold
        Fold.
    result : mapping
        Labels and probabilities, as saved in the file of the fold.
    metrics : sequence of str
        Names of metrics.
    n_classes : int
        Number of classes of the dataset, for the chance level.

    Returns
    -------
    dict
        Entry ``rows``: a row of the scores for each subject and metric, with the reason if a score
        is undefined. Entry ``seen``: leaked test subjects, as in ``result``.
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
        is_pooled = subject == tables.POOLED
        windows = slice(None) if is_pooled else np.flatnonzero(subjects == str(subject))
        columns = None if probabilities is None else probabilities[windows]
        for metric in metrics:
            chance = METRICS[metric].chance_level(n_classes)
            row = of_fold | dict(subject=subject, metric=metric, chance=chance, value=float("nan"))
            reason = undefined_because(true[windows], metric, saved["classes"])
            if metric in PROBABILITY_METRICS:
                reason = saved.get("missing", reason)
            if reason:
                row["why"] = reason
            else:
                row["value"] = score_predictions(
                    *(true[windows], predicted[windows], metric),
                    probabilities=columns,
                    classes=saved["classes"],
                )
            rows.append(row)
    return {"seen": result["seen"], "rows": rows}


def warn_of_undefined(scores: pd.DataFrame) -> None:
    """Warn of undefined scores, if there are any, with each reason once."""
    if "why" not in scores:
        return
    undefined = scores[scores["why"].notna()]
    names = undefined["metric"] + " of subject " + undefined["subject"].astype(str)
    reasons = [
        f"{checks.format_list([*group.unique()], max_items=5)}: {reason}"
        for reason, group in names.groupby(undefined["why"], sort=False)
    ]
    beginning = "1 score is" if len(undefined) == 1 else f"{len(undefined)} scores are"
    checks.warn_user(
        f"{beginning} undefined (NaN). {'; '.join(reasons[:3])}. See the column 'why' of the "
        "scores for all reasons."
    )
