"""Run folds: fit on the training windows, predict the test windows, save and score the result.

Warnings of folds are shown once for a protocol. Folds that run in parallel are spread over GPUs.
"""

import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.parallel import Parallel, delayed

from braindecode_pars._common import checks, computing, files, subjects, tables, training
from braindecode_pars._common.names import METRICS
from braindecode_pars.estimators.windows_estimator import LabelPredictor, parameters_called
from braindecode_pars.evaluation import cache
from braindecode_pars.evaluation.metrics import (
    PROBABILITY_METRICS,
    checked_labels,
    saved_probabilities,
    score_predictions,
    undefined_because,
)
from braindecode_pars.evaluation.splitting import Corpus, Fold, with_seed
from braindecode_pars.pretext import base
from braindecode_pars.pretrained.cards import warn_unknown_corpora
from braindecode_pars.windows import Windows

# torch's random state and number of threads are global to the process, so folds in threads of one
# process run one after another.
_ONE_AT_A_TIME = threading.RLock()


class FoldError(RuntimeError):
    """Error in the training or scoring of a fold.

    The message names the fold and the finished folds. These stay in ``out``, and the same call
    resumes from there.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import FoldError, leave_one_subject_out
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> try:  # a classifier of vectors does not take windows
    ...     leave_one_subject_out({"SVC": SVC()}, windows, verbose=0)
    ... except FoldError as error:
    ...     print(str(error).split(" failed")[0])
    SVC, subject 1, 1 training subjects, seed 0
    """

    #: Method that failed, and the error in short.
    method: str | None = None
    reason: str = ""

    @classmethod
    def of(cls, what: Any, error: Exception, method: str | None = None) -> Self:
        """Return the error of a fold, or of another part of a study, that an exception ended."""
        reason = f"{type(error).__name__}: {str(error).strip().rstrip('.')}"
        failed = cls(f"{what} failed with {reason}.")
        failed.method, failed.reason = method, reason
        return failed


#: What may be done with the folds that are not finished before they run, see :func:`run_folds`.
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
    """Fit and score every fold that is not finished yet.

    Folds run in parallel processes, or on the backend of :func:`joblib.parallel_config` (such as
    Dask or Ray). Folds in the same process run one after another, because torch's random state is
    global to the process. Torch's threads are divided among the processes, and so are the GPUs of a
    machine, for estimators with ``device="auto"``. The result depends
    neither on the process that a fold runs in nor on the order in which folds finish.

    Parameters
    ----------
    folds : sequence of Fold
        Folds, in the order of the result.
    corpora : dict of str to Corpus
        Windows by dataset name, which is the ``dataset`` of the folds.
    metrics : sequence of str
        Names of metrics, see :func:`~braindecode_pars.evaluation.score_predictions`.
    out : path | None
        Folder for the results. Each finished fold is saved in ``cache/*.json`` (true and predicted
        labels, probabilities) and is not run again; delete ``cache`` to compute
        everything again. The folder also contains, at the end, ``scores.csv``.
    n_jobs : int | None
        Number of folds to run in parallel. None means 1, or the setting of ``parallel_config``.
    verbose : int
        Verbosity; 1 shows a progress bar.
    prepare : callable | None
        Function that takes the folds that are not finished, the corpora and the folder of the
        results, and returns these folds as they are to be run, as with an encoder that they share.

    Returns
    -------
    pandas.DataFrame
        Scores, with the columns that all protocols return and a column for each setting that an
        ablation varies.

    Raises
    ------
    FoldError
        When a fit fails. Finished folds stay in ``out``.
    ValueError
        When ``out`` contains results of other data or settings.

    Warns
    -----
    UserWarning
        When a saved fold is damaged or was edited, so that it is run again; when the folds of a
        method are not stored, because a parameter such as a lambda cannot be compared with that of
        another call; at the end, once for
        each warning of the folds, with their number, such as that of channels that are not used;
        when a score is undefined, when an
        encoder was pretrained on a test subject, and when the training subjects of an encoder are
        unknown.

    Examples
    --------
    Train on the first half of each night and test on the second half:

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> from braindecode_pars.evaluation.folds import Corpus
    >>> from braindecode_pars.evaluation.folds import Fold, run_folds
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.4, n_chans=2)
    >>> corpus = Corpus.of(windows, "nights", unlabeled_label=-1)
    >>> band_power = make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression())
    >>> folds = []
    >>> for subject in corpus.subjects:
    ...     train, test = np.split(corpus.rows_of([subject]), 2)
    ...     folds.append(
    ...         Fold(
    ...             protocol="half a night",
    ...             dataset="nights",
    ...             method="band power",
    ...             n_train_subjects=1,
    ...             seed=0,
    ...             estimator=band_power,
    ...             train=train,
    ...             test=test,
    ...             test_subjects=[subject],
    ...         )
    ...     )
    >>> corpora = {"nights": corpus}
    >>> scores = run_folds(folds, corpora, metrics=["accuracy"], verbose=0)
    >>> scores[["protocol", "subject", "metric"]].to_numpy().tolist()
    [['half a night', 1, 'accuracy'], ['half a night', 2, 'accuracy']]
    """
    # Read the finished folds
    estimators = {fold.method: fold.estimator for fold in folds}
    store = None
    if out is not None:
        datasets = {name: cache.describe_corpus(corpus) for name, corpus in corpora.items()}
        store = cache.FoldStore.open(
            out, protocol=folds[0].protocol, datasets=datasets, methods=_described(estimators)
        )
    places = [None if store is None else store.file_of(fold) for fold in folds]
    results = _read_finished(folds, places, metrics)
    missing = [i for i in range(len(folds)) if i not in results]
    # Warn before the first fit, where the encoder that is given has a card.
    names = [fold.method for fold in folds]
    warned = warn_of_leaks(names, seen_by_given(folds, corpora, estimators))
    # Run the other folds
    if prepare is not None:
        ready = prepare([folds[i] for i in missing], corpora, store)
        prepared = dict(zip(missing, ready, strict=True))
        folds = [prepared.get(i, fold) for i, fold in enumerate(folds)]
    jobs = [(i, folds[i], corpora[folds[i].dataset], places[i]) for i in missing]
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
            for i, result, of_fold in _finished(jobs, n_jobs, bar):
                results[i] = scored(folds[i], result, metrics)
                # A worker on another machine may have no access to the folder.
                if (file := places[i]) is not None and not file.exists():
                    files.write_checked(file, result)
                bar.update()
                warnings_of_folds.append(of_fold)
    except FoldError as error:
        saved = "not saved without out=" if store is None else f"saved in {store.folder}"
        error.args = (f"{error} {len(results)} of {len(folds)} folds are finished and {saved}.",)
        raise
    finally:
        warn_once(warnings_of_folds)
    # Collect the tables
    in_order = [results[i] for i in range(len(folds))]
    n_classes = {
        name: len(set(corpus.y[corpus.labeled].tolist())) for name, corpus in corpora.items()
    }
    rows = [row for result in in_order for row in result["rows"]]
    for row in rows:
        row["chance"] = METRICS[row["metric"]].chance_level(n_classes[row["dataset"]])
    scores = tables.table_of_scores(rows, [name for fold in folds for name in fold.varied])
    if store is not None:
        files.replace_file(store.folder / "scores.csv", scores.to_csv(index=False))
    # Warn of undefined scores, and of test subjects in the pretraining
    warn_of_undefined(scores)
    warn_of_leaks(names, [result["seen"] for result in in_order], warned)
    return scores


def _described(estimators: Mapping[str, BaseEstimator]) -> dict[str, dict[str, Any]]:
    """Return the description of each method; warn of those whose fits are not stored."""
    described, reasons = {}, []
    for name, estimator in estimators.items():
        try:
            described[name] = cache.describe_estimator(estimator)
        except ValueError as error:
            reasons.append(f"{name} ({error})")
    if reasons:
        checks.warn_user(
            f"The fits of {', '.join(reasons)} are not stored, and run again in every call. In the "
            "parameters, use functions and classes of a module instead."
        )
    return described


def _read_finished(
    folds: Sequence[Fold], places: Sequence[Path | None], metrics: Sequence[str]
) -> dict[int, dict[str, Any]]:
    """Return the scores of each saved fold by its number; damaged files are removed."""
    results = {}
    refused = []
    for i, file in enumerate(places):
        if file is not None and file.exists():
            try:
                result = files.read_checked(file)
                if result["key"] != files.as_read(folds[i].key):
                    raise ValueError(f"{file} has the result of another fold.")
                results[i] = scored(folds[i], result, metrics)
            except ValueError as error:
                refused.append(str(error))
                file.unlink()
    if refused:
        checks.warn_user(f"{len(refused)} saved folds are run again: {' '.join(refused[:5])}")
    return results


def _finished(
    jobs: Sequence[tuple[int, Fold, Corpus, Path | None]],
    n_jobs: int | None,
    bar: training.ProgressBar,
) -> Iterator[tuple[int, dict[str, Any], list[tuple]]]:
    """Run the folds of some jobs; yield the number, result and warnings of each finished one."""
    n_parallel = max(1, min(joblib.effective_n_jobs(n_jobs), len(jobs)))
    backend, _ = joblib.parallel.get_active_backend()
    # Some backends, such as Ray's, return all results at the end. Nothing is lost by that, because
    # the workers save each finished fold.
    one_by_one = n_parallel == 1 or backend.supports_return_generator
    return_as = "generator_unordered" if one_by_one else "list"
    parallel = Parallel(n_jobs=n_jobs, batch_size=1, return_as=return_as)
    own_tasks = base.own_tasks()

    def started() -> Iterator[Any]:
        for i, fold, corpus, file in jobs:
            bar.set_postfix(subject=fold.subject, method=fold.method)
            yield delayed(_run)(i, fold, corpus, file, n_parallel, own_tasks)

    yield from parallel(started())


def _run(
    i: int, fold: Fold, corpus: Corpus, file: Path | None, n_parallel: int, tasks: dict[str, Any]
) -> tuple[int, dict[str, Any], list[tuple]]:
    """Run one fold in a worker, and save it if the worker has access to the folder.

    The warnings are returned, because those of a worker process would be lost.
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
            base.know_tasks(tasks)
            result = _fit_and_predict(fold, corpus, device)
    except Exception as error:
        warn_once([fold_warnings])  # they may explain it
        raise FoldError.of(fold, error, fold.method) from error
    if file is not None and file.parent.is_dir():
        files.write_checked(file, result)
    return i, result, fold_warnings


def _fit_and_predict(fold: Fold, corpus: Corpus, device: str) -> dict[str, Any]:
    """Return the result of a fold as numbers and text that can be saved as JSON."""
    estimator = with_seed(clone(fold.estimator), fold.seed)
    for name, value in (("device", device), ("unlabeled_label", corpus.unlabeled_label)):
        args = parameters_called(name, estimator)
        autos = [full for full, old in args.items() if isinstance(old, str) and old == checks.AUTO]
        estimator.set_params(**dict.fromkeys(autos, value))
    train = np.union1d(fold.train, fold.valid) if len(fold.valid) else fold.train
    unlabeled_labels = parameters_called("unlabeled_label", estimator).values()
    if corpus.unlabeled_label not in unlabeled_labels:
        train = train[corpus.labeled[train]]
    # For estimators without a random_state, such as skorch's nets; a search may start threads
    with computing.seeded(fold.seed, _device_of(estimator), is_shared=True):
        fitted = estimator.fit(corpus.X[train], corpus.y[train])
        predicted, probabilities = labels_and_probabilities(fitted, corpus.X[fold.test])
    predicted = checked_labels(predicted, "predicted")
    if len(predicted) != len(fold.test):
        raise ValueError(f"it predicts {len(predicted)} labels for {len(fold.test)} windows.")
    if corpus.unlabeled_label is not None and corpus.unlabeled_label in predicted.tolist():
        raise ValueError(
            f"it predicts {corpus.unlabeled_label!r}, the label of unlabeled windows; pass "
            "another unlabeled_label."
        )
    classes, columns = saved_probabilities(fitted, probabilities, len(fold.test))
    labels: list[list] = [corpus.y[fold.test].tolist(), predicted.tolist(), classes]
    # All labels become text unless JSON can represent every one.
    if not all(isinstance(label, (bool, int, float, str)) for column in labels for label in column):
        labels = [list(map(str, column)) for column in labels]
    seen = seen_before(fitted, corpus.corpus_subjects_of(fold.test_subjects))
    of_parts = [
        getattr(part, "test_subject_data_", tables.TestSubjectData.NONE)
        for part in _estimators_in(fitted)
    ]
    return {
        "key": fold.key,
        "true": labels[0],
        "predicted": labels[1],
        "probabilities": {"classes": labels[2], **columns},
        "subjects": [str(subject) for subject in corpus.groups[fold.test].tolist()],
        "seen": seen,
        "test_subject_data": str(
            max(fold.test_subject_data, *of_parts, key=[*tables.TestSubjectData].index)
        ),
    }


def labels_and_probabilities(fitted: Any, windows: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return labels, and probabilities if the estimator predicts them; windows are read once.

    A pipeline or a linear probe transforms the windows once, and its last step predicts twice.
    """
    cls = type(fitted)
    if cls is Pipeline and len(fitted.steps) > 1:
        return labels_and_probabilities(fitted[-1], fitted[:-1].transform(windows))
    if not hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict(windows)), None
    parent, same = LabelPredictor, ("predict", "predict_proba")
    if isinstance(fitted, parent) and all(getattr(cls, n) is getattr(parent, n) for n in same):
        return fitted._predictions(windows)  # not where a subclass predicts otherwise
    if isinstance(windows, Windows) and windows.shapes is None:  # not those of a store
        windows = windows.read_by([*windows])
    return np.asarray(fitted.predict(windows)), np.asarray(fitted.predict_proba(windows))


def _device_of(estimator: BaseEstimator) -> Any:
    """Return where an estimator computes: its first device that is not the CPU, if it has one."""
    devices = []
    for value in parameters_called("device", estimator).values():
        # Not every parameter of this name is for torch; the fit complains if it should have been.
        with suppress(ValueError):
            devices.append(computing.find_device(value))
    devices = devices or [computing.find_device(checks.AUTO)]
    return next((device for device in devices if device.type != "cpu"), "cpu")


def scored(fold: Fold, result: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
    """Return what the tables need of the result in a fold's file, without labels.

    The predictions of hundreds of folds of a large corpus would fill the memory.

    Returns
    -------
    dict
        Entry ``rows``: a row of the scores for each subject and metric, with the reason where a
        score is undefined. Entry ``seen`` as in the file.
    """
    # Arrays of the whole fold once, because a fold may have many subjects.
    subjects, true, predicted = (np.asarray(result[n]) for n in ("subjects", "true", "predicted"))
    saved, rows = result["probabilities"], []
    probabilities = np.array(saved["columns"]).T if "columns" in saved else None
    for subject in [*fold.test_subjects, *([tables.POOLED] if fold.pooled else [])]:
        is_pooled = subject == tables.POOLED
        windows = slice(None) if is_pooled else np.flatnonzero(subjects == str(subject))
        columns = None if probabilities is None else probabilities[windows]
        of_columns = dict(probabilities=columns, classes=saved["classes"])
        for metric in metrics:
            row = fold.key | dict(
                test_subject_data=result["test_subject_data"], subject=subject, metric=metric
            )
            if fold.encoder_parameters is not None:
                row["encoder_parameters"] = fold.encoder_parameters
            reason = undefined_because(true[windows], metric, saved["classes"])
            if metric in PROBABILITY_METRICS:
                reason = saved.get("missing", reason)
            if reason:
                rows.append(row | dict(value=float("nan"), why=reason))
            else:
                value = score_predictions(true[windows], predicted[windows], metric, **of_columns)
                rows.append(row | dict(value=value))
    return {"seen": result["seen"], "rows": rows}


def warn_of_undefined(scores: pd.DataFrame) -> None:
    """Warn of the scores that are undefined, if any, with each reason once."""
    if "why" not in scores:
        return
    undefined = scores[scores["why"].notna()]
    names = (undefined["metric"] + " of " + undefined["subject"].astype(str)).groupby(
        undefined["why"], sort=False
    )
    reasons = [
        f"{checks.format_list([*of.unique()], max_items=5)}: {reason}" for reason, of in names
    ]
    number = "1 score is" if len(undefined) == 1 else f"{len(undefined)} scores are"
    which = "; ".join(reasons[:3])
    checks.warn_user(
        f"{number} undefined and NaN. {which}. The column 'why' of the scores has each reason."
    )


#: Folds have different windows, so that these counts differ where the cause is one.
_COUNTS = re.compile(r"\b\d+ of \d+ windows")

#: So do the losses and steps in warnings of trainings that may have learned nothing.
_NUMBERS = re.compile(r"\d[\d,.]*")


@contextmanager
def collected(fold_warnings: list[tuple]) -> Iterator[None]:
    """Add the warnings inside to a list, as arguments of ``warnings.warn_explicit``.

    They can be sent between processes. A filter that turns warnings into errors does so inside.
    """
    with warnings.catch_warnings(record=True) as caught:
        try:
            yield
        finally:
            fold_warnings += [(str(w.message), w.category, w.filename, w.lineno) for w in caught]


def warn_once(of_folds: Sequence[Sequence[tuple]]) -> None:
    """Show each kind of warning of some folds once, with the number of folds that have it."""
    kinds: dict[tuple, list[tuple]] = {}
    for fold_warnings in of_folds:
        of_fold: dict[tuple, tuple] = {}
        for text, category, *where in fold_warnings:
            varies = _NUMBERS if issubclass(category, ConvergenceWarning) else _COUNTS
            of_fold.setdefault((varies.sub("", text), category), (text, category, *where))
        for kind, warning in of_fold.items():
            kinds.setdefault(kind, []).append(warning)
    for (text, *where), *others in kinds.values():
        number = f"In {1 + len(others)} of {len(of_folds)} folds: " if len(of_folds) > 1 else ""
        warnings.warn_explicit(number + text, *where)


# Test subjects that an encoder has seen -----------------------------------------------------------


def seen_by_given(
    folds: Sequence[Fold], corpora: Mapping[str, Corpus], estimators: Mapping[str, BaseEstimator]
) -> list[dict[str, Any]]:
    """Return the test subjects of each fold on the cards of the encoders that it is given."""
    cards: dict[str, list[Any]] = {}
    for method, estimator in estimators.items():
        parts = [estimator, *estimator.get_params().values()]
        encoder_cards = [
            part._pretrained_card() for part in parts if hasattr(part, "_pretrained_card")
        ]
        cards[method] = [card for card in encoder_cards if card is not None]
    by_fold = [corpora[fold.dataset].corpus_subjects_of(fold.test_subjects) for fold in folds]
    tested = dict.fromkeys(name for tests in by_fold for name in tests.values())
    warn_unknown_corpora(cards, tested)
    seen = [seen_by(cards[fold.method], tests) for fold, tests in zip(folds, by_fold, strict=True)]
    return [{"subjects": names, "unknown": False} for names in seen]


def seen_by(cards: Iterable[Any], names_with_corpus: Mapping[Any, Any]) -> list[str]:
    """Return the test subjects on some cards; the mapping has their names with the corpus."""
    seen = subjects.SeenSubjects(subject for card in cards for subject in card.seen_subjects)
    return [str(subject) for subject, full_name in names_with_corpus.items() if full_name in seen]


def seen_before(fitted: Any, names_with_corpus: Mapping[Any, Any]) -> dict[str, Any]:
    """Find the test subjects that the encoders inside a fitted estimator were trained on.

    Parameters
    ----------
    fitted : estimator
        Fitted estimator.
    names_with_corpus : mapping
        Names of the test subjects, with and without their corpus.

    Returns
    -------
    dict
        Entry ``subjects``: these test subjects. Entry ``unknown``: whether the training subjects
        of an encoder are unknown.
    """
    parts = list(_estimators_in(fitted))
    cards = [part.encoder_card_ for part in parts if hasattr(part, "encoder_card_")]
    unknown = any(None in (card.subjects, card.finetune_subjects) for card in cards)
    for part in parts:  # a skorch net may have a network that was trained before ...
        module = getattr(part, "module", None)
        unknown |= isinstance(module, torch.nn.Module) and hasattr(module, "encoder")
        for _, callback in getattr(part, "callbacks_", ()):  # ... or pretrain on further windows
            unknown |= getattr(callback, "unlabeled", None) is not None
    return {"subjects": seen_by(cards, names_with_corpus), "unknown": unknown}


def warn_of_leaks(
    methods: Sequence[str], seen: Sequence[Mapping[str, Any]], warned: Sequence[str] = ()
) -> list[str]:
    """Warn of test subjects that encoders have seen, each method once; return the sentences.

    Parameters
    ----------
    methods : sequence of str
        Method of each fit.
    seen : sequence of dict
        Result of :func:`seen_before` for each fit.
    warned : sequence of str
        Sentences that were shown before.
    """
    sentences = []
    for method in dict.fromkeys(methods):
        of_method = [result for name, result in zip(methods, seen, strict=True) if name == method]
        if any(result["unknown"] for result in of_method):
            sentences.append(
                f"The training subjects of the encoder of {method} are unknown; they may include "
                "test subjects."
            )
        if leaked := dict.fromkeys(name for result in of_method for name in result["subjects"]):
            sentences.append(
                f"{method} was pretrained on windows of test subjects {', '.join(leaked)}; their "
                "scores are not held-out scores. If they are other people of the same names, give "
                "the recordings 'corpus' in their descriptions: the name on the encoder's card, if "
                "it is the same corpus."
            )
    for sentence in sentences:
        if sentence not in warned:
            checks.warn_user(sentence)
    return sentences


def _estimators_in(fitted: Any) -> Iterator[Any]:
    """Yield an estimator and all estimators inside it, as in pipelines and searches."""
    yield fitted
    # Pipeline, FeatureUnion, ColumnTransformer, CalibratedClassifierCV; then searches and ensembles
    inner = [part for _, part in getattr(fitted, "steps", [])]
    inner += [part for _, part in getattr(fitted, "transformer_list", [])]
    inner += [part for _, part, _ in getattr(fitted, "transformers_", [])]
    inner += [part.estimator for part in getattr(fitted, "calibrated_classifiers_", [])]
    names = ("best_estimator_", "estimator_", "final_estimator_", "transformer_", "classifier_")
    inner += [getattr(fitted, name, None) for name in names]
    inner += list(getattr(fitted, "estimators_", []))
    for part in inner:
        if part is not None:
            yield from _estimators_in(part)
