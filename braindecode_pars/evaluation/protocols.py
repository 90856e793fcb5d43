"""Evaluation protocols of the PARS paper: leave-one-subject-out, label efficiency, transfer.

Each protocol trains on some subjects, tests on held-out subjects, and returns the scores as one
tidy DataFrame. Label efficiency reproduces figure 3 of the paper, and transfer reproduces table 1.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from braindecode_pars import paper
from braindecode_pars._common import checks, files, names, training
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.baselines.methods import check_equal_sizes
from braindecode_pars.estimators import PARSClassifier
from braindecode_pars.evaluation import cache, folds, splitting
from braindecode_pars.evaluation.splitters import (
    LabeledSubjects,
    LeaveOneSubjectOut,
    Splitter,
    make_folds,
)
from braindecode_pars.pretrained import load_encoder

#: Names of the pretext tasks in the paper's table 1, in the order of the table.
PAPER_TASKS = {
    task.attribute: task.name
    for task in sorted(names.TASKS.values(), key=lambda task: task.name == "pars")  # PARS is last
    if "paper" in task.flags
}


def leave_one_subject_out(
    estimators: Mapping[str, BaseEstimator],
    windows_ds: Any,
    *,
    cv: Any = None,
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
    """Leave-one-subject-out cross-validation: hold out each subject, train on all other subjects.

    The PARS paper uses this protocol for the dataset EESM17 (section 3, table 1 and figure 8). The
    paper reports the mean and the standard deviation over subjects, which
    :func:`~braindecode_pars.evaluation.summarize` computes, but no statistical tests.
    :func:`~braindecode_pars.evaluation.paired_tests` tests the differences between methods with the
    corrected resampled t-test over subjects, also for several seeds.
    :func:`~braindecode_pars.evaluation.describe_differences` describes the results of the tests in
    sentences. ``compare`` is an alias of this function.

    An estimator that needs validation data takes them from the training subjects of the fold. For
    example, ``PARSClassifier(validation=0.2)`` uses 20 % of the training subjects for validation
    only, and restores the weights with the lowest validation loss.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name. A clone of the estimator is fitted in each fold.
    windows_ds : BaseConcatDataset
        Labeled windows, with ``subject`` in the descriptions of the recordings.
    cv : int | scikit-learn cross-validator | iterable of index pairs | None
        Cross-validator that splits by subject, such as ``GroupKFold(5)``. An integer is the number
        of folds; a subject is never split between folds. If None, one subject is held out per fold.
    metrics : sequence of str
        Names of metrics, see :func:`~braindecode_pars.evaluation.score_predictions`.
    seeds : sequence of int
        Random seeds. Each fold is run once per seed, with every ``random_state`` of the estimator
        set to the seed.
    dataset : str
        Name of the dataset, for the column ``dataset`` of the scores.
    unlabeled_label : hashable | None
        Label of unlabeled windows, which are never scored. ``"auto"`` means -1, as in scikit-learn,
        with a warning if windows have the label -1; pass -1 to avoid this warning. If None, every
        window is labeled, and -1 is an ordinary class. Unlabeled windows are passed for training
        only to estimators whose own parameter ``unlabeled_label`` is the same label or ``"auto"``;
        PARSClassifier uses them for pretraining.
    test_subjects : sequence | None
        Subjects to hold out in turn; cannot be combined with ``cv``. If None, all subjects. Every
        fold trains on all subjects that are not held out in this fold.
    out : path | None
        Folder for finished folds. If a run was interrupted, the same call resumes it. A later call
        may add seeds, methods or test subjects; see
        :func:`~braindecode_pars.evaluation.folds.run_folds`.
    n_jobs : int | None
        Number of folds to run in parallel processes. If None, the number that
        ``joblib.parallel_config`` sets, or 1. If several GPUs are available and ``device`` of the
        estimators is "auto", the processes are distributed over the GPUs.
    verbose : int
        Verbosity; 1 shows a progress bar over folds.
    equal_sizes : bool
        Whether to raise an error if the encoders of the methods have different numbers of
        parameters. If False, encoders of different sizes are allowed, and the scores have a column
        ``encoder_parameters``, which :func:`~braindecode_pars.evaluation.score_table` shows.

    Returns
    -------
    pandas.DataFrame
        One row for each method, subject, seed and metric, with the columns:

        - ``protocol``: "leave_one_subject_out", or "compare" if ``cv`` is passed;
        - ``dataset``, ``method``, ``subject`` (held-out subject), ``n_train_subjects``, ``seed``,
          ``metric``;
        - ``value``: score, NaN if it is undefined;
        - ``test_subject_data``: which data of the test subject the method uses besides the
          predicted window: "none", "past unlabeled", "all unlabeled" or "labeled";
        - ``chance``: chance level of the metric, NaN if it is unknown;
        - ``why`` (only if any score is undefined): reason why the score is undefined.

    Raises
    ------
    TypeError
        If ``estimators`` is not a dict of classifiers.
    ValueError
        If there are fewer than two subjects, or a test subject has no labeled window. If ``out``
        contains results computed with different settings. If ``equal_sizes`` is True and the
        encoders of two methods have different sizes.
    FoldError
        If a fit fails.

    Warns
    -----
    UserWarning
        If a score is undefined, if an encoder was pretrained on a test subject, or if the training
        subjects of an encoder are unknown.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import (
    ...     LogBandPower, describe_differences, leave_one_subject_out, paired_tests
    ... )
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> methods = {
    ...     "log band power": make_pipeline(
    ...         LogBandPower(), StandardScaler(), LogisticRegression(C=0.1)
    ...     ),
    ...     "chance level": make_pipeline(LogBandPower(), DummyClassifier()),
    ... }
    >>> tests = paired_tests(leave_one_subject_out(methods, windows, verbose=0))
    >>> int(tests["n_subjects"].item()), tests["test"].item()
    (3, 'corrected')
    >>> describe_differences(tests).split(":")[0]
    'Difference in kappa between log band power and chance level'
    """
    shared = Shared(metrics, seeds, unlabeled_label, out, n_jobs, verbose, equal_sizes)
    splitter: Splitter = LeaveOneSubjectOut(test_subjects)
    if cv is not None:
        splitter = LabeledSubjects(cv=cv, test_subjects=test_subjects)
    return run_protocol(estimators, {dataset: (windows_ds, splitter)}, shared)


compare = leave_one_subject_out


def label_efficiency(
    estimators: Mapping[str, BaseEstimator],
    windows_ds: Any,
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
    """Measure label efficiency: scores for increasing numbers of labeled subjects.

    All methods and numbers of labeled subjects are scored on the same test subjects. For each seed,
    the subjects available for training are put in a random order, which is the same for all
    methods. A fit with ``n`` labeled subjects is trained on the first ``n`` subjects in this order,
    so that smaller training sets are subsets of larger training sets. The PARS paper uses this
    protocol in section 3 and figure 3.

    A dataset can have fixed splits: the entry ``split`` in the description of a recording is
    ``"train"``, ``"valid"`` or ``"test"``. With ``PARSClassifier(validation="split")``, as in the
    paper, a fit is trained on ``n`` subjects and validated on all subjects of split ``"valid"``. No
    method is trained on these validation subjects, and estimators without ``validation="split"`` do
    not receive them.

    If no estimator has ``validation="split"``, a fit receives the labels of only ``n`` subjects,
    and an estimator takes its validation subjects from these ``n`` subjects (20 % of them with
    ``validation=0.2``). Subjects of split ``"valid"`` are then drawn for training like subjects of
    split ``"train"``.

    Subjects without any labeled window are passed to every fit, because estimators can pretrain on
    their windows.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name. With ``PARSClassifier(encoder=...)``, all fits start from the
        same pretrained encoder.
    windows_ds : BaseConcatDataset
        Labeled windows, with ``subject`` in the descriptions of the recordings.
    n_train_subjects : sequence of int
        Numbers of labeled training subjects (in the paper, from 10 to 657).
    cv : int | scikit-learn cross-validator | iterable of index pairs | None
        Cross-validator that splits by subject, such as ``GroupKFold(5)``. An integer is the number
        of folds; a subject is never split between folds. If None, ``test_subjects`` are held out.
    test_subjects : sequence | None
        Held-out subjects. If None, the subjects whose recordings have ``"test"`` as ``split`` in
        their description. No fit is trained on subjects of split ``"test"``.
    train_subjects : sequence | None
        Subjects from which the training subjects are drawn. If None, all subjects that are not
        tested.
    seeds : sequence of int
        Seeds of the random draws of labeled subjects and of every ``random_state``.
    metrics, dataset, unlabeled_label, out, n_jobs, verbose, equal_sizes
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`. A later run with the same
        ``out`` may add values of ``n_train_subjects``, seeds and methods.

    Returns
    -------
    pandas.DataFrame
        One row for each number of training subjects, seed, method, test subject and metric, with
        the columns of :func:`~braindecode_pars.evaluation.leave_one_subject_out`. Without ``cv``,
        there are additional rows with the subject ``"all"``, whose score is computed over the
        windows of all test subjects together. The paper shows the mean and the standard deviation
        of these additional rows over seeds (``summarize(scores, over="seeds")``).

    Raises
    ------
    ValueError
        If a value of ``n_train_subjects`` is larger than the number of available training
        subjects. If there are no test subjects. If a subject is both a training and a test subject.
    FoldError
        If a fit fails.

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
    ...     {"log band power": band_power},
    ...     windows,
    ...     n_train_subjects=[1, 3],
    ...     test_subjects=[4],
    ...     seeds=[0, 1],
    ...     metrics=["kappa"],
    ...     verbose=0,
    ... )
    >>> summarize(scores, over="seeds")[["n_train_subjects", "n"]]  # n: number of seeds
       n_train_subjects  n
    0                 1  2
    1                 3  2
    """
    splitting.check_list("n_train_subjects", n_train_subjects, checks.integer(1))
    subjects: Any = dict(test_subjects=test_subjects, train_subjects=train_subjects)
    splitter = LabeledSubjects(n_train_subjects, cv=cv, seeds=seeds, **subjects)
    shared = Shared(metrics, seeds, unlabeled_label, out, n_jobs, verbose, equal_sizes)
    return run_protocol(estimators, {dataset: (windows_ds, splitter)}, shared)


def transfer(
    estimators: Mapping[str, BaseEstimator],
    datasets: Mapping[str, Any],
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
    """Evaluate transfer learning: fine-tune and test the same estimators on several datasets.

    This protocol reproduces the transfer learning experiment of the PARS paper (section 3, table
    1). Each dataset has its own training and test subjects. Every fit receives all subjects that it
    does not test, and an estimator takes its validation subjects from them. If an estimator is a
    ``PARSClassifier(validation="split")``, as in the paper, its validation subjects are the
    subjects of split ``"valid"`` (entry ``split`` in the descriptions of the recordings). No other
    method is then trained on the subjects of split ``"valid"``, either.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name, for example ``{"PARS": PARSClassifier(encoder="run1/"), "from
        scratch": PARSClassifier(None)}``. Resample all datasets to the sampling rate at which the
        encoder was pretrained.
    datasets : dict of str to BaseConcatDataset
        Labeled windows by dataset name, with ``subject`` in the descriptions of the recordings.
    cv : dict of str to cross-validator | None
        Cross-validators by dataset name, as in
        :func:`~braindecode_pars.evaluation.label_efficiency`. For a dataset without an entry,
        ``test_subjects`` are held out.
    test_subjects : dict of str to sequence | None
        Test subjects by dataset name. For a dataset without an entry, the subjects whose recordings
        have ``"test"`` as ``split`` in their description.
    seeds : sequence of int
        Seeds of every ``random_state``.
    metrics, unlabeled_label, out, n_jobs, verbose, equal_sizes
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`. A later run with the same
        ``out`` may add datasets, seeds and methods.

    Returns
    -------
    pandas.DataFrame
        One row for each dataset, seed, method, test subject and metric, with the columns of
        :func:`~braindecode_pars.evaluation.leave_one_subject_out`. For a dataset without ``cv``,
        there are additional rows with the subject ``"all"``, whose score is computed over the
        windows of all test subjects together. The paper reports the mean and the standard deviation
        of these additional rows over seeds (``summarize(scores, over="seeds")``).

    Raises
    ------
    TypeError
        If ``datasets``, ``cv`` or ``test_subjects`` is not a dict.
    ValueError
        If a dataset has no test subjects, or ``cv`` or ``test_subjects`` has an entry for an
        unknown dataset.
    FoldError
        If a fit fails.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import LogBandPower, transfer
    >>> sleep = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> scores = transfer(
    ...     {"chance level": make_pipeline(LogBandPower(), DummyClassifier())},
    ...     {"sleep": sleep},
    ...     test_subjects={"sleep": [3]},
    ...     metrics=["accuracy"],
    ...     verbose=0,
    ... )
    >>> scores["subject"].tolist()[:2], sorted(set(scores["seed"]))
    ([3, 'all'], [0, 1, 2, 3, 4])
    """
    rule = checks.ParameterRule("a non-empty dict of windows datasets by name", (Mapping,), bool)
    rule.check("datasets", datasets)
    by_dataset = checks.optional(checks.instance("a dict with dataset names as keys", Mapping))
    by_dataset.check("cv", cv)
    by_dataset.check("test_subjects", test_subjects)
    cv, test_subjects = cv or {}, test_subjects or {}
    if unknown := {*cv, *test_subjects} - {*datasets}:
        raise ValueError(
            f"cv or test_subjects has an entry for the unknown dataset {min(unknown)!r}. Use the "
            f"keys of datasets: {', '.join(datasets)}."
        )
    split: dict[str, tuple[Any, Splitter]] = {
        name: (windows_ds, _Transfer(cv=cv.get(name), test_subjects=test_subjects.get(name)))
        for name, windows_ds in datasets.items()
    }
    shared = Shared(metrics, seeds, unlabeled_label, out, n_jobs, verbose, equal_sizes)
    return run_protocol(estimators, split, shared)


class _Transfer(LabeledSubjects):
    """Splitter of one of the datasets of :func:`transfer`."""

    protocol = "transfer"


def evaluate(
    estimators: Mapping[str, BaseEstimator],
    windows_ds: Any,
    splitter: Any,
    *,
    metrics: Sequence[str] = ("kappa", "balanced_accuracy"),
    seeds: Sequence[int] = (0,),
    dataset: str = "",
    unlabeled_label: Any = "auto",
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    equal_sizes: bool = True,
) -> pd.DataFrame:
    """Train and score methods with any splitter or scikit-learn cross-validator.

    A splitter divides the windows into training and test windows.
    :func:`~braindecode_pars.evaluation.leave_one_subject_out` and
    :func:`~braindecode_pars.evaluation.label_efficiency` are equivalent to this function with the
    splitters ``LeaveOneSubjectOut`` and ``LabeledSubjects``. Use this function for calibration with
    labeled windows of the test subject (``LabeledWindows``), for within-subject cross-validation
    (``WithinSubject``), or for your own cross-validator.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name. A clone of the estimator is fitted in each split.
    windows_ds : BaseConcatDataset
        Labeled windows, with ``subject`` in the descriptions of the recordings.
    splitter : splitter | cross-validator | int | iterable of index pairs
        :class:`~braindecode_pars.evaluation.LeaveOneSubjectOut`,
        :class:`~braindecode_pars.evaluation.LabeledSubjects`,
        :class:`~braindecode_pars.evaluation.LabeledWindows`,
        :class:`~braindecode_pars.evaluation.WithinSubject`, or a cross-validator that splits by
        subject. An integer is the number of folds, and a subject is never split between folds.
    seeds : sequence of int
        Seeds of every ``random_state``. If the splitter is a ``LabeledSubjects`` that draws
        subjects, the seeds of the splitter are used instead.
    metrics, dataset, unlabeled_label, out, n_jobs, verbose, equal_sizes
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`.

    Returns
    -------
    pandas.DataFrame
        Table as returned by :func:`~braindecode_pars.evaluation.leave_one_subject_out`. With
        ``LabeledWindows``, there is an additional column ``n_windows`` or ``minutes`` (amount of
        labeled data of the test subject); with ``WithinSubject``, a column ``block`` (index of the
        tested time block or recording of the subject).

    Raises
    ------
    TypeError
        If ``estimators`` is not a dict of classifiers.
    ValueError
        If the splitter cannot split the windows.
    FoldError
        If a fit fails.

    Examples
    --------
    Compare no calibration with calibration on two labeled windows per class of the test subject:

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import LabeledWindows, LogBandPower, evaluate
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.3, n_chans=2)
    >>> pipeline = make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression())
    >>> scores = evaluate(
    ...     {"log band power": pipeline},
    ...     windows,
    ...     LabeledWindows([0, 2]),
    ...     metrics=["kappa"],
    ...     verbose=0,
    ... )
    >>> scores[["subject", "n_windows"]].to_numpy().tolist()
    [[1, 0], [1, 2], [2, 0], [2, 2], [3, 0], [3, 2]]
    """
    if not isinstance(splitter, Splitter):  # a scikit-learn cross-validator, split by subject
        splitter = LabeledSubjects(cv=splitter)
    shared = Shared(metrics, seeds, unlabeled_label, out, n_jobs, verbose, equal_sizes)
    return run_protocol(estimators, {dataset: (windows_ds, splitter)}, shared)


class Shared(NamedTuple):
    """Arguments shared by all protocols."""

    metrics: Sequence[str]
    seeds: Sequence[int]
    unlabeled_label: Any
    out: str | Path | None
    n_jobs: int | None
    verbose: int
    equal_sizes: bool


def run_protocol(
    estimators: Mapping[str, BaseEstimator],
    datasets: Mapping[str, tuple[Any, Splitter]],
    shared: Shared,
    varied: Mapping[str, dict[str, Any]] | None = None,
    prepare: folds.Prepare | None = None,
) -> pd.DataFrame:
    """Split each dataset with its splitter, fit and score all estimators; return the scores.

    ``datasets`` maps names to pairs of a windows dataset and its splitter. The other arguments are
    described in :func:`~braindecode_pars.evaluation.splitters.make_folds` and
    :func:`~braindecode_pars.evaluation.folds.run_folds`.

    Every protocol passes through these functions::

        splitting.Corpus.of         returns the windows of a dataset, with labels and subjects
        splitters.make_folds        returns a Fold for each split of the splitter, seed and method
        folds.run_folds             runs the folds and returns the table of scores:
          cache.open_folder         opens the results folder (cache.file_of: file of a fold)
          leaks.warn_before_fit     warns if the metadata of an encoder list a test subject
          folds._fit_and_predict    fits one fold; returns labels and probabilities to save
          folds.scored              computes the scores of a fold from labels and probabilities
          leaks.warn_of_leaks       warns if a fitted encoder was trained on a test subject
    """
    metrics, seeds, unlabeled_label, out, n_jobs, verbose, equal_sizes = shared
    # Check the arguments before anything is trained.
    splitting.check_arguments(estimators, metrics, seeds)
    corpora, jobs = {}, []
    for name, (windows_ds, splitter) in datasets.items():
        corpora[name] = corpus = splitting.Corpus.of(windows_ds, name, unlabeled_label)
        corpus.check_duplicates()
        sizes = check_equal_sizes(estimators, corpus.X, equal_sizes)
        jobs += make_folds(estimators, corpus, splitter, seeds, varied, sizes)
    return folds.run_folds(
        jobs, corpora, metrics=metrics, out=out, n_jobs=n_jobs, verbose=verbose, prepare=prepare
    )


# Comparison of pretext tasks, as in the paper's table 1 ------------------------------------------


def reproduce(
    windows_ds: Any,
    out: str | Path,
    *,
    epochs: int = 50,
    n_train_subjects: int = 4,
    seeds: Sequence[int] = range(3),
    verbose: int = 1,
    **settings: Any,
) -> pd.DataFrame:
    """Reproduce the comparison of pretext tasks in the PARS paper (table 1).

    The pretext tasks (tasks for pretraining without labels) MAE, MP3, DropPos and PARS are compared
    with each other, with a random encoder (not pretrained), and with training from scratch.

    The subjects, sorted by name, are alternately assigned to two halves. For each pretext task, an
    encoder is pretrained on the windows of one half, without their labels, and then frozen. The
    encoder size and the number of pretraining steps are the same for all tasks. The subjects of the
    other half are divided into two test sets, which are tested separately. The labeled training
    subjects are drawn at random from all subjects that are not in the test set, and are the same
    for all methods. Then the two halves are swapped, so that every subject is tested once.
    Pretraining, random choice of the labeled subjects, and training are repeated for each seed.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        Labeled windows, with ``subject`` in the descriptions of the recordings.
    out : path
        Folder for ``scores.csv``, encoders and finished fits. If a run was interrupted, the same
        call resumes it.
    epochs : int
        Number of pretraining epochs.
    n_train_subjects : int
        Number of labeled training subjects.
    seeds : sequence of int
        Seeds of all random draws.
    verbose : int
        Verbosity; 1 shows progress bars.
    **settings
        Further arguments of :class:`~braindecode_pars.PARSClassifier`, for all methods.

    Returns
    -------
    pandas.DataFrame
        Table as returned by :func:`~braindecode_pars.evaluation.label_efficiency`, with an
        additional column ``pretraining_loss``: the final loss of the pretraining, divided by the
        chance-level loss (below 1 is better than chance). NaN for methods without pretraining.

    Raises
    ------
    ValueError
        If there are too few subjects, or if ``out`` contains files of other programs.
    FoldError
        If a fit fails.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import reproduce
    >>> scores = reproduce(datasets.sleep(), "table-1")  # doctest: +SKIP
    """
    corpus = splitting.Corpus.of(windows_ds, "", "auto")
    subjects, folder = sorted(corpus.subjects, key=str), Path(out).expanduser()
    if len(subjects) < 4 or 3 * len(subjects) // 4 < n_train_subjects:
        raise ValueError(
            "reproduce() holds out a quarter of the subjects per fold, so it requires at least 4 "
            "subjects, and n_train_subjects can be at most three quarters of their number. Got "
            f"{len(subjects)} subjects and n_train_subjects={n_train_subjects}. Add subjects, or "
            "use a smaller n_train_subjects."
        )
    ResultsFolder(folder, "a reproduction", marks=("reproduction/",)).check()
    settings = {"verbose": 0, **settings}
    content = cache.describe_corpus(corpus), epochs, sorted(settings.items())
    cache_dir = folder / "reproduction" / cache.digest(*content)

    tables = []
    for seed, half in product(map(int, seeds), (0, 1)):
        run = f"half{half}-seed{seed}"
        pretraining_subjects, test_subjects = subjects[half::2], subjects[1 - half :: 2]
        windows = corpus.X[corpus.rows_of(pretraining_subjects)]
        frozen: dict[str, Any] = dict(freeze_encoder=True, **settings)
        methods = {"from scratch": PARSClassifier(None, **settings)}
        methods["random encoder, head trained"] = PARSClassifier(None, **frozen)
        losses: dict[str, float | None] = {}
        for name, task in training.ProgressBar(
            PAPER_TASKS.items(), f"pretraining {run}", disable=not verbose
        ):
            encoder = cache_dir / f"{task}-{run}"
            if not (encoder / "encoder.json").exists():
                params: Any = _pretraining_of(task) | settings
                params |= dict(pretrain_epochs=epochs, random_state=seed)
                with checks.quiet():  # do not log losses, because they are in the table
                    PARSClassifier(task, **params).pretrained(windows).save(encoder)
            losses[f"{name}, head trained"] = load_encoder(encoder).card.loss_relative
            methods[f"{name}, head trained"] = PARSClassifier(encoder=str(encoder), **frozen)
        tests = [corpus.rows_of(part) for part in (test_subjects[::2], test_subjects[1::2])]
        cv = [(np.setdiff1d(np.arange(len(corpus.y)), test), test) for test in tests]
        design: dict[str, Any] = dict(n_train_subjects=[n_train_subjects], cv=cv, seeds=[seed])
        design |= dict(metrics=["kappa", "balanced_accuracy"], out=cache_dir / run, verbose=verbose)
        scores = label_efficiency(methods, windows_ds, **design)
        tables.append(scores.assign(pretraining_loss=scores["method"].map(losses)))
    all_scores = pd.concat(tables, ignore_index=True)
    files.replace_file(folder / "scores.csv", all_scores.to_csv(index=False))
    return all_scores


def _pretraining_of(task: str) -> dict[str, Any]:
    """Return the settings with which :func:`reproduce` pretrains on a pretext task."""
    pretext_params = paper.CLASSIFIER["pretext_params"] if task == "pars" else None
    return dict(pretrain_batch_size=64, pretrain_lr=4e-3, pretext_params=pretext_params)
