"""What every protocol is made of: train on these windows, predict those, keep the answer."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils.parallel import Parallel, delayed
from tqdm.auto import tqdm

from braindecode_pars._columns import POOLED, SCORES
from braindecode_pars.evaluation.folds._corpus import Corpus
from braindecode_pars.evaluation.folds._curves import curves_frame, history_of
from braindecode_pars.evaluation.folds._encoder_origin import leak_sentences, seen_before
from braindecode_pars.evaluation.folds._fingerprint import (
    describe_corpus,
    describe_estimator,
    digest,
    digest_array,
)
from braindecode_pars.evaluation.folds._fold_store import FoldStore
from braindecode_pars.evaluation.metrics import score_predictions, undefined_because
from braindecode_pars.storage._json import plain

__all__ = ["Fold", "FoldError", "Run", "run_folds"]

# torch's random state and number of threads belong to the process.
_ONE_AT_A_TIME = threading.RLock()


class FoldError(RuntimeError):
    """A fold that could not be trained or scored; says which, and what is kept.

    Finished folds stay in ``out``, and the same call goes on from there.

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


@dataclass(frozen=True, eq=False)
class Fold:
    """One fit and its test.

    Attributes
    ----------
    protocol, dataset, method : str
        For the columns of these names.
    n_train_subjects : int
        Subjects with labels that are trained on, with those that an estimator validates on.
    seed : int
        For every ``random_state``, and torch's random state.
    estimator : estimator
        Unfitted; cloned and seeded before it is fitted.
    train, test : ndarray of int
        Indices of windows.
    test_subjects : list
        Subjects of the test windows, in the order of the rows.
    pooled : bool
        Whether there is a row over all test windows together.
    varied : dict
        Further columns.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from braindecode_pars.evaluation.folds import Fold
    >>> fold = Fold(
    ...     protocol="leave_one_subject_out",
    ...     dataset="nights",
    ...     method="chance",
    ...     n_train_subjects=2,
    ...     seed=0,
    ...     estimator=DummyClassifier(),
    ...     train=np.arange(48),
    ...     test=np.arange(48, 72),
    ...     test_subjects=[3],
    ... )
    >>> print(fold)
    chance on nights, subject 3, 2 training subjects, seed 0
    """

    protocol: str
    dataset: str
    method: str
    n_train_subjects: int
    seed: int
    estimator: BaseEstimator
    train: np.ndarray
    test: np.ndarray
    test_subjects: list
    pooled: bool = False
    varied: dict[str, Any] = field(default_factory=dict)

    @property
    def subject(self) -> Any:
        """The only test subject; ``"all"`` with a pooled row; else the names of all of them."""
        if self.pooled:
            return POOLED
        several = len(self.test_subjects) > 1
        return ", ".join(map(str, self.test_subjects)) if several else self.test_subjects[0]

    @property
    def key(self) -> dict[str, Any]:
        """All columns but metric and value."""
        return {name: getattr(self, name) for name in SCORES[:-2]} | self.varied

    def __str__(self) -> str:
        where = f"{self.method} on {self.dataset}" if self.dataset else self.method
        who = "" if self.subject == POOLED else f", subject {self.subject}"
        return f"{where}{who}, {self.n_train_subjects} training subjects, seed {self.seed}"


class Run(NamedTuple):
    """What a protocol has found, a tuple of two.

    Attributes
    ----------
    scores : DataFrame
        Columns those of every protocol and the varied settings.
    curves : DataFrame
        Losses by epoch of the estimators that keep a ``history_``: the fold's columns, ``phase``,
        ``epoch``, ``train_loss``, ``valid_loss``, ``train_loss_relative`` (to chance).

    Examples
    --------
    >>> from braindecode_pars.evaluation.folds import Run
    >>> Run._fields
    ('scores', 'curves')
    """

    scores: pd.DataFrame
    curves: pd.DataFrame


def run_folds(
    folds: Sequence[Fold],
    corpora: Mapping[str, Corpus],
    *,
    metrics: Sequence[str],
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> Run:
    """Fit and score every fold that is not finished yet.

    Folds run in separate processes, or wherever :func:`joblib.parallel_config` sends them (Dask,
    Ray); those that meet in one process take turns, because torch's random state belongs to the
    process. Torch's threads are divided among the processes. Which folds run where, and in
    which order they finish, does not change the result.

    Parameters
    ----------
    folds : sequence of Fold
        In the order of the result.
    corpora : dict of str to Corpus
        By the name in the folds' ``dataset``.
    metrics : sequence of str
        See :func:`~braindecode_pars.evaluation.score_predictions`.
    out : path | None
        Folder for ``folds/*.json`` (every fold as it is finished: scores, true and predicted
        labels, losses by epoch), ``settings.json``, and at the end ``scores.csv`` and, where
        estimators keep a history, ``curves.csv``. Folds that lie there are not run again.
    n_jobs : int | None
        Folds at a time; None means 1, or what ``parallel_config`` says.
    verbose : int
        1 shows a progress bar.

    Returns
    -------
    Run
        The scores, and the losses by epoch.

    Raises
    ------
    FoldError
        When a fit fails; finished folds stay in ``out``.
    ValueError
        When ``out`` holds results of other settings.

    Warns
    -----
    UserWarning
        When a score is undefined, and when an encoder was pretrained on a test subject.

    Examples
    --------
    Train on the first half of each night, and test on the second:

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> from braindecode_pars.evaluation.folds import Corpus
    >>> from braindecode_pars.evaluation.folds import Fold, run_folds
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.4, n_chans=2)
    >>> corpus = Corpus.of(windows, "nights", unlabeled_label=-1)
    >>> band_power = make_pipeline(LogBandPower(), LogisticRegression(max_iter=1000))
    >>> folds = []
    >>> for subject in corpus.subjects:
    ...     train, test = np.split(corpus.windows_of([subject]), 2)
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
    >>> run = run_folds(folds, corpora, metrics=["accuracy"], verbose=0)
    >>> run.scores[["protocol", "subject", "metric"]].to_numpy().tolist()
    [['half a night', 1, 'accuracy'], ['half a night', 2, 'accuracy']]
    """
    store, files = _open(folds, corpora, out)
    results = [None if file is None else store.read(file) for file in files]
    missing = [i for i, result in enumerate(results) if result is None]
    bar = tqdm(
        total=len(folds),
        initial=len(folds) - len(missing),
        desc=folds[0].protocol.replace("_", " "),
        unit=" fits",
        disable=not verbose,
    )
    with bar:
        try:
            for i, result in _finished(missing, folds, corpora, metrics, store, files, n_jobs, bar):
                results[i] = result
                if store is not None and not files[i].exists():  # the worker's disk was another
                    store.write(files[i], result)
                bar.update()
        except FoldError as error:
            raise FoldError(f"{error} {_what_is_kept(store, files)}") from error
    run = _collect(folds, results, metrics)
    if store is not None:
        store.write_table("scores.csv", run.scores)
        if len(run.curves):
            store.write_table("curves.csv", run.curves)
    if undefined := run.scores.attrs["undefined"]:
        warnings.warn(_undefined_sentence(undefined), stacklevel=3)
    for sentence in leak_sentences(_seen(folds, results)):
        warnings.warn(sentence, stacklevel=3)
    return run


def _what_is_kept(store: FoldStore | None, files: Sequence[Path | None]) -> str:
    if store is None:
        return "Nothing is kept; out= names a folder that keeps finished folds."
    n_done = sum(file.exists() for file in files)
    return (
        f"{n_done} of {len(files)} folds are finished; they stay in {store.folder} and are not "
        "repeated."
    )


def _open(
    folds: Sequence[Fold],
    corpora: Mapping[str, Corpus],
    out: str | Path | None,
) -> tuple[FoldStore | None, list[Path | None]]:
    """The folder of results, and the file of each fold in it."""
    if out is None:
        return None, [None] * len(folds)
    methods: dict[str, dict] = {}
    for fold in folds:
        if fold.method not in methods:
            methods[fold.method] = describe_estimator(fold.estimator)
    datasets = {name: describe_corpus(corpus) for name, corpus in corpora.items()}
    settings = {"protocol": folds[0].protocol, "datasets": datasets, "methods": methods}
    store = FoldStore.open(out, settings)
    files = [
        store.file_of(
            _plain_key(fold),
            digest(
                datasets[fold.dataset],
                methods[fold.method],
                digest_array(fold.train),
                digest_array(fold.test),
            ),
        )
        for fold in folds
    ]
    return store, files


def _finished(
    missing: Sequence[int],
    folds: Sequence[Fold],
    corpora: Mapping[str, Corpus],
    metrics: Sequence[str],
    store: FoldStore | None,
    files: Sequence[Path | None],
    n_jobs: int | None,
    bar: tqdm,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and result of each fold as it comes in."""
    asked = {} if n_jobs is None else {"n_jobs": n_jobs}
    n_parallel = max(1, min(joblib.effective_n_jobs(n_jobs), len(missing)))
    n_threads = max(1, joblib.cpu_count() // n_parallel)
    backend, _ = joblib.parallel.get_active_backend()
    # Ray's backend hands everything back at the end; its workers have written it by then.
    one_by_one = n_parallel == 1 or backend.supports_return_generator
    parallel = Parallel(
        **asked, batch_size=1, return_as="generator_unordered" if one_by_one else "list"
    )

    def tasks() -> Iterator[Any]:
        for i in missing:
            bar.set_postfix(subject=folds[i].subject, method=folds[i].method)
            corpus = corpora[folds[i].dataset]
            yield delayed(_run)(i, folds[i], corpus, metrics, store, files[i], n_threads)

    yield from parallel(tasks())


def _run(
    i: int,
    fold: Fold,
    corpus: Corpus,
    metrics: Sequence[str],
    store: FoldStore | None,
    file: Path | None,
    n_threads: int,
) -> tuple[int, dict[str, Any]]:
    """Fit and score one fold, on whatever machine this is."""
    try:
        with _ONE_AT_A_TIME, _threads(n_threads), _torch_seed(fold.seed):
            result = _fit_and_score(fold, corpus, metrics)
    except Exception as error:
        raise FoldError(f"{fold} failed with {type(error).__name__}: {_sentence(error)}") from error
    if store is not None and file.parent.is_dir():
        store.write(file, result)
    return i, result


def _sentence(error: Exception) -> str:
    return f"{str(error).strip().rstrip('.')}."


def _fit_and_score(fold: Fold, corpus: Corpus, metrics: Sequence[str]) -> dict[str, Any]:
    """What is written to disk: plain numbers and text."""
    start = time.perf_counter()
    estimator = _with_seed(clone(fold.estimator), fold.seed)
    train = fold.train
    if not _takes_unlabeled(estimator, corpus.unlabeled_label):
        train = train[corpus.labeled[train]]
    fitted = estimator.fit(corpus.X[train], corpus.y[train])
    predicted = np.asarray(fitted.predict(corpus.X[fold.test])).tolist()
    if corpus.unlabeled_label in predicted:
        raise ValueError(
            f"it predicts {corpus.unlabeled_label!r}, which marks windows without a label."
        )
    true, predicted = _plain_labels(corpus.y[fold.test].tolist(), predicted)
    result = {
        "key": _plain_key(fold),
        "true": true,
        "predicted": predicted,
        "subjects": [str(subject) for subject in corpus.groups[fold.test].tolist()],
    }
    seen = seen_before(fitted, fold.test_subjects)
    rows = [
        row | {"subject": plain(row["subject"])} | ({"value": None} if "undefined" in row else {})
        for row in _rows(fold, result, metrics)
    ]
    return result | {
        "rows": rows,
        "seen": seen | {"subjects": [str(subject) for subject in seen["subjects"]]},
        "history": history_of(fitted),
        "seconds": round(time.perf_counter() - start, 3),
    }


def _rows(fold: Fold, result: Mapping[str, Any], metrics: Sequence[str]) -> Iterator[dict]:
    """Subject, metric, value and, where there is none, the reason."""
    true, predicted = np.asarray(result["true"]), np.asarray(result["predicted"])
    subjects = np.asarray(result["subjects"])
    for subject in [*fold.test_subjects, *([POOLED] if fold.pooled else [])]:
        windows = np.ones(len(true), bool) if subject == POOLED else subjects == str(subject)
        for metric in metrics:
            row = {
                "subject": subject,
                "metric": metric,
                "value": score_predictions(true[windows], predicted[windows], metric),
            }
            reason = undefined_because(true[windows], metric)
            yield row | ({"undefined": reason} if reason else {})


def _collect(folds: Sequence[Fold], results: Sequence[dict], metrics: Sequence[str]) -> Run:
    """The tables, in the order of the folds."""
    rows, undefined = [], []
    for fold, result in zip(folds, results, strict=True):
        for row in _rows(fold, result, metrics):
            reason = row.pop("undefined", None)
            whole = {**fold.key, **row}
            rows.append(whole)
            if reason:
                undefined.append({name: whole[name] for name in SCORES[:-1]} | {"reason": reason})
    varied = dict.fromkeys(name for fold in folds for name in fold.varied)
    scores = pd.DataFrame(rows, columns=[*SCORES, *varied])
    scores.attrs["undefined"] = undefined
    return Run(scores, curves_frame(folds, results))


def _seen(folds: Sequence[Fold], results: Sequence[dict]) -> dict[str, list[dict]]:
    """Who was pretrained on, in all folds of each method."""
    seen: dict[str, list] = {}
    for fold, result in zip(folds, results, strict=True):
        seen.setdefault(fold.method, []).append(result["seen"])
    return seen


def _undefined_sentence(undefined: Sequence[Mapping[str, Any]]) -> str:
    whom = list(dict.fromkeys(f"{row['metric']} of {row['subject']}" for row in undefined))
    more = f" and {len(whom) - 5} more" if len(whom) > 5 else ""
    return (
        f"{len(undefined)} scores are undefined and NaN ({', '.join(whom[:5])}{more}): for "
        f"{undefined[0]['subject']}, {undefined[0]['reason']}; scores.attrs['undefined'] lists all."
    )


def _plain_key(fold: Fold) -> dict[str, Any]:
    return {name: plain(value) for name, value in fold.key.items()}


def _plain_labels(*columns: Sequence) -> list[list]:
    """Labels as JSON keeps them; all as text where it would not."""
    labels = [label for column in columns for label in column]
    kept = all(isinstance(label, (bool, int, float, str)) for label in labels)
    return [list(column) if kept else [str(label) for label in column] for column in columns]


def _with_seed(estimator: BaseEstimator, seed: int) -> BaseEstimator:
    names = [
        name
        for name in estimator.get_params()
        # An estimator given as ``encoder`` is the user's own, fitted already.
        if name.split("__")[-1] == "random_state" and "encoder" not in name.split("__")
    ]
    return estimator.set_params(**dict.fromkeys(names, int(seed)))


def _takes_unlabeled(estimator: BaseEstimator, label: Any) -> bool:
    """Whether it has a parameter ``unlabeled_label``, and this is its value."""
    params = estimator.get_params().items()
    return any(name.split("__")[-1] == "unlabeled_label" and v == label for name, v in params)


@contextmanager
def _torch_seed(seed: int) -> Iterator[None]:
    """For estimators that have no random_state, such as skorch's."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


@contextmanager
def _threads(n_threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)
