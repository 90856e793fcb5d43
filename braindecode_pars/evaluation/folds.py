"""Run folds: fit on the training windows, predict the test windows, save and score the result.

Warnings of folds are shown once for a protocol. Test subjects that an encoder was trained on are
found. Folds that run in parallel are spread over the GPUs.
"""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed
from torch import nn
from tqdm.auto import tqdm

from braindecode_pars._common.checks import warn_user
from braindecode_pars._common.computing import find_device
from braindecode_pars._common.files import plain
from braindecode_pars._common.seeding import seeded, torch_seeded
from braindecode_pars._common.subjects import SubjectKeys
from braindecode_pars._common.tables import POOLED, SCORES, loss_columns
from braindecode_pars.evaluation.cache import (
    FoldStore,
    describe_corpus,
    describe_estimator,
    digest,
    digest_array,
    on_device,
    parameters_called,
    with_seed,
)
from braindecode_pars.evaluation.corpus import Corpus
from braindecode_pars.evaluation.metrics import (
    predictions,
    saved_probabilities,
    score_rows,
    scored,
    undefined_sentence,
)
from braindecode_pars.windows.labels import AUTO

# torch's random state and number of threads are global to the process, so folds that run in
# threads of one process must not run at the same time. This is not the lock of the random draws,
# which a fold may have to leave free for fits in other threads, see _torch_seed. It comes first.
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


@dataclass(frozen=True, eq=False)
class Fold:
    """One fit with its training and test windows.

    Attributes
    ----------
    protocol, dataset, method : str
        Values of the columns of these names.
    n_train_subjects : int
        Number of labelled training subjects. It includes the validation subjects that the estimator
        splits off them, but not those of ``valid``.
    seed : int
        Seed of every ``random_state`` and of torch's random state.
    estimator : estimator
        Unfitted estimator. A clone with this seed is fitted.
    train, test : ndarray of int
        Indices of the training and test windows.
    test_subjects : list
        Subjects of the test windows, in the order of the rows.
    valid : ndarray of int
        Indices of the fixed validation windows, which an estimator with ``validation="split"`` is
        given together with the training windows.
    pretrain : ndarray of int
        Indices of the windows that a pretraining for several folds may use: the training windows
        before subjects are drawn, without those of validation subjects and of split "test".
    pooled : bool
        Whether the scores get a row over all test windows together.
    varied : dict
        Additional columns and their values.

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
    valid: np.ndarray = field(default_factory=lambda: np.array([], dtype=int))
    pretrain: np.ndarray = field(default_factory=lambda: np.array([], dtype=int))
    pooled: bool = False
    varied: dict[str, Any] = field(default_factory=dict)

    @property
    def subject(self) -> Any:
        """Test subject; ``"all"`` with a pooled row; the joined names of several subjects."""
        if self.pooled:
            return POOLED
        several = len(self.test_subjects) > 1
        return ", ".join(map(str, self.test_subjects)) if several else self.test_subjects[0]

    @property
    def key(self) -> dict[str, Any]:
        """Values of all columns except ``metric`` and ``value``."""
        return {name: getattr(self, name) for name in SCORES[:-2]} | self.varied

    def __str__(self) -> str:
        where = f"{self.method} on {self.dataset}" if self.dataset else self.method
        subject = "" if self.subject == POOLED else f", subject {self.subject}"
        return f"{where}{subject}, {self.n_train_subjects} training subjects, seed {self.seed}"


class Run(NamedTuple):
    """Results of a protocol.

    Attributes
    ----------
    scores : DataFrame
        Tidy scores, with the columns of every protocol and one column for each varied setting.
    curves : DataFrame
        Losses by epoch of the estimators with a ``history_``. The columns are those of the fold,
        ``phase``, ``epoch``, ``train_loss``, ``valid_loss`` and ``train_loss_relative`` (training
        loss relative to chance).

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
        Folder for the results. Each finished fold is saved in ``cache/*.json`` (scores, true and
        predicted labels, probabilities, losses by epoch) and is not run again; delete ``cache`` to
        compute everything again. The folder also contains, at the end, ``scores.csv`` and, when
        estimators have a ``history_``, ``curves.csv``.
    n_jobs : int | None
        Number of folds to run in parallel. None means 1, or the setting of ``parallel_config``.
    verbose : int
        Verbosity; 1 shows a progress bar.

    Returns
    -------
    Run
        The scores, and the losses by epoch.

    Raises
    ------
    FoldError
        When a fit fails. Finished folds stay in ``out``.
    ValueError
        When ``out`` contains results of other data or settings.

    Warns
    -----
    UserWarning
        When a saved fold is damaged or was edited, so that it is run again; once for each warning
        of the folds, such as that of channels that are not used; when a score is undefined, when an
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
    # Read the finished folds
    store, files = _open(folds, corpora, out)
    results, refused = _read_finished(folds, corpora, metrics, files)
    if refused:
        warn_user(_refused_sentence(refused))
    missing = [i for i in range(len(folds)) if i not in results]
    # Warn before the first fit, where the encoder that is given has a card.
    announced = _warn_of_leaks(folds, _seen_by_given(folds, corpora))
    # Run the other folds
    bar = tqdm(
        total=len(folds),
        initial=len(folds) - len(missing),
        desc=folds[0].protocol.replace("_", " "),
        unit=" fits",
        disable=not verbose,
    )
    shown: set[tuple] = set()
    with bar:
        try:
            for i, result, found in _finished(missing, folds, corpora, metrics, files, n_jobs, bar):
                results[i] = scored(folds[i], result, metrics)
                # A worker on another machine may have no access to the folder.
                file = files[i]
                if file is not None and (i in refused or not file.exists()):
                    FoldStore.write(file, result)
                bar.update()
                warn_once(found, shown)
        except FoldError as error:
            raise FoldError(f"{error} {_finished_sentence(store, files)}") from error
    # Collect the tables
    in_order = [results[i] for i in range(len(folds))]
    run = _collect(folds, in_order)
    if store is not None:
        store.write_table("scores.csv", run.scores)
        if len(run.curves):
            store.write_table("curves.csv", run.curves)
    # Warn of undefined scores, and of test subjects in the pretraining
    if undefined := run.scores.attrs["undefined"]:
        warn_user(undefined_sentence(undefined))
    _warn_of_leaks(folds, [result["seen"] for result in in_order], announced)
    return run


def _finished_sentence(store: FoldStore | None, files: Sequence[Path | None]) -> str:
    if store is None:
        return "Finished folds are not saved; pass out= to save them in a folder."
    n_done = sum(file is not None and file.exists() for file in files)
    return (
        f"{n_done} of {len(files)} folds are finished and saved in {store.folder}; they are not "
        "run again."
    )


def _open(
    folds: Sequence[Fold],
    corpora: Mapping[str, Corpus],
    out: str | Path | None,
) -> tuple[FoldStore | None, list[Path | None]]:
    """Open the folder of results; return it with the file of each fold."""
    if out is None:
        return None, [None] * len(folds)
    # Settings of the run
    methods: dict[str, dict] = {}
    for fold in folds:
        if fold.method not in methods:
            methods[fold.method] = describe_estimator(fold.estimator)
    datasets = {name: describe_corpus(corpus) for name, corpus in corpora.items()}
    settings = {"protocol": folds[0].protocol, "datasets": datasets, "methods": methods}
    store = FoldStore.open(out, settings)
    # A fold's file name contains a digest of everything that its result depends on.
    files: list[Path | None] = [
        store.file_of(
            _plain_key(fold),
            digest(
                datasets[fold.dataset],
                methods[fold.method],
                digest_array(fold.train),
                digest_array(fold.test),
                *([digest_array(fold.valid)] if len(fold.valid) else []),
            ),
        )
        for fold in folds
    ]
    return store, files


def _read_finished(
    folds: Sequence[Fold],
    corpora: Mapping[str, Corpus],
    metrics: Sequence[str],
    files: Sequence[Path | None],
) -> tuple[dict[int, dict[str, Any]], dict[int, str]]:
    """Return the scores of each saved fold, and the reasons why files are not used, by fold."""
    results, refused = {}, {}
    for i, (fold, file) in enumerate(zip(folds, files, strict=True)):
        try:
            result = None if file is None else FoldStore.read(file)
            if file is not None and result is not None:
                _check_windows(result, fold, corpora[fold.dataset], file)
                results[i] = scored(fold, result, metrics)
        except ValueError as error:
            refused[i] = str(error)
    return results, refused


def _check_windows(result: Mapping[str, Any], fold: Fold, corpus: Corpus, file: Path) -> None:
    """Check that a saved result is of the test windows: their subjects, labels and number."""
    true, subjects = ([str(v) for v in c[fold.test].tolist()] for c in (corpus.y, corpus.groups))
    is_same = (list(map(str, result["true"])), result["subjects"]) == (true, subjects)
    columns = [result["predicted"], *result["probabilities"].get("columns", [])]
    if not is_same or any(len(column) != len(true) for column in columns):
        raise ValueError(f"{file} is of other test windows.")


def _refused_sentence(refused: Mapping[int, str]) -> str:
    reasons = list(refused.values())
    more = f" And {len(reasons) - 5} more." if len(reasons) > 5 else ""
    runs = "saved fold is" if len(reasons) == 1 else "saved folds are"
    return f"{len(reasons)} {runs} not used, but run again: {' '.join(reasons[:5])}{more}"


def _finished(
    missing: Sequence[int],
    folds: Sequence[Fold],
    corpora: Mapping[str, Corpus],
    metrics: Sequence[str],
    files: Sequence[Path | None],
    n_jobs: int | None,
    bar: tqdm,
) -> Iterator[tuple[int, dict[str, Any], list[FoldWarning]]]:
    """Run the missing folds; yield the number, result and warnings of each finished fold."""
    # Divide torch's threads among the processes.
    given_jobs = {} if n_jobs is None else {"n_jobs": n_jobs}
    n_parallel = max(1, min(joblib.effective_n_jobs(n_jobs), len(missing)))
    n_threads = max(1, joblib.cpu_count() // n_parallel)
    backend, _ = joblib.parallel.get_active_backend()
    # Some backends, such as Ray's, return all results at the end. Nothing is lost by that, because
    # the workers save each finished fold.
    one_by_one = n_parallel == 1 or backend.supports_return_generator
    parallel = Parallel(
        **given_jobs, batch_size=1, return_as="generator_unordered" if one_by_one else "list"
    )

    def tasks() -> Iterator[Any]:
        for i in missing:
            bar.set_postfix(subject=folds[i].subject, method=folds[i].method)
            corpus = corpora[folds[i].dataset]
            yield delayed(_run)(i, folds[i], corpus, metrics, files[i], n_threads, n_parallel)

    yield from parallel(tasks())


def _run(
    i: int,
    fold: Fold,
    corpus: Corpus,
    metrics: Sequence[str],
    file: Path | None,
    n_threads: int,
    n_parallel: int,
) -> tuple[int, dict[str, Any], list[FoldWarning]]:
    """Fit and score one fold in a worker, and save it if the worker has access to the folder.

    The warnings are returned, because those of a worker process would be lost.
    """
    fold = _placed(fold, i, n_parallel)
    try:
        with _ONE_AT_A_TIME, _threads(n_threads), _torch_seed(fold), collected() as found:
            result = _fit_and_score(fold, corpus, metrics)
    except Exception as error:
        raise FoldError(f"{fold} failed with {type(error).__name__}: {_sentence(error)}") from error
    if file is not None and file.parent.is_dir():
        FoldStore.write(file, result)
    return i, result, found


def _sentence(error: Exception) -> str:
    return f"{str(error).strip().rstrip('.')}."


def _fit_and_score(fold: Fold, corpus: Corpus, metrics: Sequence[str]) -> dict[str, Any]:
    """Return the result of a fold as numbers and text that can be saved as JSON."""
    start = time.perf_counter()
    # Fit
    estimator = with_seed(clone(fold.estimator), fold.seed)
    _set_unlabeled_label(estimator, corpus.unlabeled_label)
    train = np.union1d(fold.train, fold.valid) if len(fold.valid) else fold.train
    if not _takes_unlabeled(estimator, corpus.unlabeled_label):
        train = train[corpus.labeled[train]]
    fitted = estimator.fit(corpus.X[train], corpus.y[train])
    # Predict
    labels, probabilities = predictions(fitted, corpus.X[fold.test])
    predicted = labels.tolist()
    if corpus.unlabeled_label is not None and corpus.unlabeled_label in predicted:
        raise ValueError(
            f"it predicts {corpus.unlabeled_label!r}, the label of unlabelled windows; pass "
            "another unlabeled_label."
        )
    classes, columns = saved_probabilities(fitted, probabilities, len(fold.test))
    # Score
    true, predicted, classes = _plain_labels(corpus.y[fold.test].tolist(), predicted, classes)
    result = {
        "key": _plain_key(fold),
        "true": true,
        "predicted": predicted,
        "probabilities": {"classes": classes, **columns},
        "subjects": [str(subject) for subject in corpus.groups[fold.test].tolist()],
    }
    seen = seen_before(fitted, corpus.people_of(fold.test_subjects))
    rows = [
        row | {"subject": plain(row["subject"])} | ({"value": None} if "undefined" in row else {})
        for row in score_rows(fold, result, metrics)
    ]
    return result | {
        "rows": rows,
        "seen": seen | {"subjects": [str(subject) for subject in seen["subjects"]]},
        "history": history_of(fitted),
        "seconds": round(time.perf_counter() - start, 3),
    }


def _collect(folds: Sequence[Fold], results: Sequence[dict]) -> Run:
    """Make the tables of scores and losses, in the order of the folds."""
    rows, undefined = [], []
    for fold, result in zip(folds, results, strict=True):
        for row in result["rows"]:
            full_row = {**fold.key, **row}
            reason = full_row.pop("undefined", None)
            rows.append(full_row)
            if reason:
                undefined.append(
                    {name: full_row[name] for name in SCORES[:-1]} | {"reason": reason}
                )
    varied = dict.fromkeys(name for fold in folds for name in fold.varied)
    scores = pd.DataFrame(rows, columns=[*SCORES, *varied])
    scores.attrs["undefined"] = undefined
    return Run(scores, curves_frame(folds, results))


def _warn_of_leaks(
    folds: Sequence[Fold], seen: Sequence[Mapping[str, Any]], announced: Sequence[str] = ()
) -> list[str]:
    """Warn of test subjects that encoders have seen, unless it was announced."""
    by_method: dict[str, list] = {}
    for fold, of_fold in zip(folds, seen, strict=True):
        by_method.setdefault(fold.method, []).append(of_fold)
    sentences = [sentence for sentence in leak_sentences(by_method) if sentence not in announced]
    for sentence in sentences:
        warn_user(sentence)
    return sentences


def _seen_by_given(folds: Sequence[Fold], corpora: Mapping[str, Corpus]) -> list[dict[str, Any]]:
    """Return the test subjects of each fold on the cards of the encoders that it is given."""
    estimators = {id(fold.estimator): fold.estimator for fold in folds}
    cards = {key: given_cards(estimator) for key, estimator in estimators.items()}
    return [
        {
            "subjects": [
                str(subject)
                for subject in seen_by(
                    cards[id(fold.estimator)],
                    corpora[fold.dataset].people_of(fold.test_subjects),
                )
            ],
            "unknown": False,
        }
        for fold in folds
    ]


def _plain_key(fold: Fold) -> dict[str, Any]:
    return {name: plain(value) for name, value in fold.key.items()}


def _plain_labels(*columns: Sequence) -> list[list]:
    """Labels for JSON; all labels become text unless JSON can represent every one."""
    labels = [label for column in columns for label in column]
    plain_types = all(isinstance(label, (bool, int, float, str)) for label in labels)
    return [list(column) if plain_types else [str(label) for label in column] for column in columns]


def _set_unlabeled_label(estimator: BaseEstimator, label: Any) -> None:
    """Set every ``unlabeled_label`` that is "auto" to the label of the corpus, in place."""
    labels = parameters_called("unlabeled_label", estimator)
    names = [name for name, value in labels.items() if isinstance(value, str) and value == AUTO]
    estimator.set_params(**dict.fromkeys(names, label))


def _takes_unlabeled(estimator: BaseEstimator, label: Any) -> bool:
    """Whether the estimator has a parameter ``unlabeled_label`` with this value."""
    return label in parameters_called("unlabeled_label", estimator).values()


def _torch_seed(fold: Fold) -> AbstractContextManager[None]:
    """Seed torch for estimators without a ``random_state``, such as skorch's nets.

    They draw from the global generators at any time, so that no fit with a seed may draw in another
    thread until they are done. Estimators with a ``random_state`` or ``n_jobs`` may themselves fit
    with a seed in other threads, as in a callback or a grid search. These would then wait forever,
    so such an estimator does not hold the lock.
    """
    fits_in_threads = any(parameters_called(n, fold.estimator) for n in ("random_state", "n_jobs"))
    seeding = torch_seeded if fits_in_threads else seeded
    return seeding(int(fold.seed), _device_of(fold.estimator))


def _device_of(estimator: BaseEstimator) -> torch.device:
    """Return the device that an estimator draws on; without a parameter for it, the usual one."""
    devices = []
    for value in parameters_called("device", estimator).values():
        # Not every parameter of this name is for torch; the fit complains if it should have been.
        with suppress(ValueError):
            devices.append(find_device(value))
    devices = devices or [find_device("auto")]
    return next((device for device in devices if device.type != "cpu"), devices[0])


def _placed(fold: Fold, number: int, n_parallel: int) -> Fold:
    """Return a fold whose ``device="auto"`` is one of several GPUs, when folds run in parallel."""
    n_gpus = torch.cuda.device_count()
    if n_parallel == 1 or n_gpus < 2:
        return fold
    return replace(fold, estimator=on_device(fold.estimator, f"cuda:{number % n_gpus}"))


@contextmanager
def _threads(n_threads: int) -> Iterator[None]:
    n_before = torch.get_num_threads()
    torch.set_num_threads(min(n_before, n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(n_before)


#: Folds have different windows, so that these counts differ where the cause is one.
_COUNTS = re.compile(r"\b\d+ of \d+ windows")

#: So do the losses and steps in warnings of trainings that may have learned nothing.
_NUMBERS = re.compile(r"\d[\d,.]*")


class FoldWarning(NamedTuple):
    """A warning in a form that can be sent between processes.

    Attributes
    ----------
    text : str
        Text of the warning.
    category : type
        Class of the warning.
    filename, lineno : str, int
        Line that the warning points to.
    """

    text: str
    category: type[Warning]
    filename: str
    lineno: int

    @property
    def key(self) -> tuple:
        """Value that is equal for the same warning of different folds."""
        varies = _NUMBERS if issubclass(self.category, ConvergenceWarning) else _COUNTS
        return varies.sub("", self.text), self.category

    def show(self) -> None:
        """Issue the warning, under the filters of this process."""
        warnings.warn_explicit(self.text, self.category, self.filename, self.lineno)


@contextmanager
def collected() -> Iterator[list[FoldWarning]]:
    """Collect the warnings inside, in a list that is filled at the end.

    A filter that turns warnings into errors does so inside. After an error, the warnings are shown,
    because they may explain it.
    """
    found: list[FoldWarning] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            yield found
    except BaseException:
        for warning in _plain(caught):
            warning.show()
        raise
    found += _plain(caught)


def _plain(caught: Iterable[warnings.WarningMessage]) -> list[FoldWarning]:
    return [FoldWarning(str(w.message), w.category, w.filename, w.lineno) for w in caught]


def warn_once(found: Iterable[FoldWarning], shown: set[tuple]) -> None:
    """Show the warnings whose keys are not among ``shown``, and add these."""
    for warning in found:
        if warning.key not in shown:
            shown.add(warning.key)
            warning.show()


def history_of(fitted: Any) -> list[dict[str, Any]] | None:
    """Return the rows of the first ``history_`` inside an estimator, or None without one.

    NaN becomes None, because JSON has no NaN.
    """
    for part in parts_of(fitted):
        history = getattr(part, "history_", None)
        if isinstance(history, list):  # skorch's own history is a list, and has one phase
            history = pd.DataFrame([{"phase": "training", **row} for row in history])
        if isinstance(history, pd.DataFrame):
            losses = loss_columns(history)
            kept = [name for name in history if name in ("phase", "epoch", *losses)]
            return [
                {name: None if pd.isna(value) else value for name, value in row.items()}
                for row in history[kept].to_dict(orient="records")
            ]
    return None


def curves_frame(folds: Sequence[Any], results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Collect the losses of all folds in one table, with one row for each fold and epoch.

    The columns are those of the folds, ``phase``, ``epoch`` and the losses.
    """
    rows = [
        {**fold.key, **epoch}
        for fold, result in zip(folds, results, strict=True)
        for epoch in result["history"] or ()
    ]
    keys = list(dict.fromkeys(name for fold in folds for name in fold.key))
    losses = loss_columns({name for row in rows for name in row})
    curves = pd.DataFrame(rows, columns=[*keys, "phase", "epoch", *losses])
    # None from JSON becomes NaN.
    return curves.astype(dict.fromkeys(losses, float))


#: Attributes that contain one estimator, in searches and wrappers.
_INNER = ("best_estimator_", "estimator_", "transformer_")


def given_cards(estimator: BaseEstimator) -> list[Any]:
    """Return the cards of the encoders that the parts of an unfitted estimator are given."""
    parts = [estimator, *estimator.get_params().values()]
    cards = [part._given_card() for part in parts if hasattr(part, "_given_card")]
    return [card for card in cards if card is not None]


def seen_by(cards: Iterable[Any], people: Mapping[Any, Any]) -> list:
    """Return the test subjects on some cards; ``people`` has their names with the corpus."""
    seen = SubjectKeys(subject for card in cards for subject in card.seen_subjects)
    return [subject for subject, person in people.items() if person in seen]


def seen_before(fitted: Any, people: Mapping[Any, Any]) -> dict[str, Any]:
    """Find the test subjects that the encoders inside a fitted estimator were trained on.

    Parameters
    ----------
    fitted : estimator
        Fitted estimator.
    people : mapping
        Names of the test subjects, with and without their corpus.

    Returns
    -------
    dict
        Entry ``subjects``: these test subjects. Entry ``unknown``: whether the training subjects
        of an encoder are unknown.
    """
    parts = list(parts_of(fitted))
    cards = [part.encoder_card_ for part in parts if hasattr(part, "encoder_card_")]
    return {
        "subjects": seen_by(cards, people),
        "unknown": any(None in (card.subjects, card.finetune_subjects) for card in cards)
        or any(map(_has_unknown_encoder, parts)),
    }


def _has_unknown_encoder(part: Any) -> bool:
    """Whether a skorch net has an encoder that may have seen other subjects than those of its fit.

    Its network is an instance, which may have been trained before, or a callback pretrains it on
    further windows.
    """
    module = getattr(part, "module", None)
    given = isinstance(module, nn.Module) and hasattr(module, "encoder")
    callbacks = [callback for _, callback in getattr(part, "callbacks_", ())]
    return given or any(getattr(cb, "unlabeled", None) is not None for cb in callbacks)


def leak_sentences(seen: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return warnings from the results of :func:`seen_before` for the folds of each method."""
    sentences = []
    for method, folds in seen.items():
        if any(fold["unknown"] for fold in folds):
            sentences.append(
                f"The training subjects of the encoder of {method} are unknown; they may include "
                "test subjects."
            )
        leaked = list(dict.fromkeys(subject for fold in folds for subject in fold["subjects"]))
        if leaked:
            sentences.append(
                f"{method} was pretrained on windows of test subject"
                f"{'s' if len(leaked) > 1 else ''} {', '.join(map(str, leaked))}. Its scores of "
                "these subjects are not held-out scores, unless another dataset used the same "
                "names for different subjects; then name the corpus of the recordings with an "
                "entry 'corpus' in their descriptions. Use the name on the encoder's card if it is "
                "the same corpus."
            )
    return sentences


def parts_of(fitted: Any) -> Iterator[Any]:
    """Yield an estimator and all estimators inside it, as in pipelines and searches."""
    yield fitted
    # Pipeline, FeatureUnion, ColumnTransformer, CalibratedClassifierCV; then searches and ensembles
    inner = [part for _, part in getattr(fitted, "steps", [])]
    inner += [part for _, part in getattr(fitted, "transformer_list", [])]
    inner += [part for _, part, _ in getattr(fitted, "transformers_", [])]
    inner += [part.estimator for part in getattr(fitted, "calibrated_classifiers_", [])]
    inner += [getattr(fitted, name, None) for name in _INNER]
    inner += list(getattr(fitted, "estimators_", []))
    for part in inner:
        if part is not None:
            yield from parts_of(part)
