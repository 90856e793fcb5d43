"""The paper's protocols: leave one subject out, label efficiency, transfer, and its table 1.

Each trains on some subjects, tests on others, and returns one tidy DataFrame. Label efficiency is
figure 3 of the paper, transfer is table 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from braindecode_pars import paper
from braindecode_pars._common import checks, files, names, training
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

#: Pretext tasks of table 1, in its order.
PAPER_TASKS = {
    task.attribute: task.name
    for task in sorted(names.TASKS.values(), key=lambda task: task.name == "pars")  # last, as there
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
    """Hold out each subject in turn: train on all other subjects and score on this one.

    The paper uses this protocol for EESM17 (section 3, table 1 and figure 8). It reports mean and
    standard deviation over subjects, see :func:`~braindecode_pars.evaluation.summarize`, and no
    tests. :func:`~braindecode_pars.evaluation.paired_tests` tests the differences between methods,
    with the corrected t-test over subjects, also where there are several seeds, and
    :func:`~braindecode_pars.evaluation.describe_differences` summarizes the tests in sentences.
    ``compare`` is another name of this function.

    An estimator splits its validation data off the training subjects of the fold.
    ``PARSClassifier(validation=0.2)`` holds out a fifth of these subjects, neither pretrains nor
    trains on them, and restores the weights with the lowest validation loss.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name. Each fold fits a clone.
    windows_ds : BaseConcatDataset
        Labeled windows with ``subject`` in the descriptions.
    cv : int | scikit-learn cross-validator | iterable of index pairs | None
        Cross-validator that divides the subjects, such as ``GroupKFold(5)``; an integer is the
        number of folds of whole subjects. None holds out one subject at a time.
    metrics : sequence of str
        Names of metrics, see :func:`~braindecode_pars.evaluation.score_predictions`.
    seeds : sequence of int
        Random seeds. Every fold is run once for each seed, with every ``random_state`` of the
        estimator set to it.
    dataset : str
        Value of the column ``dataset``.
    unlabeled_label : hashable | None
        Label of unlabeled windows. These windows are never scored. Only estimators with a
        parameter ``unlabeled_label`` of the same value or ``"auto"`` receive them for training;
        PARSClassifier uses them for pretraining. ``"auto"`` means -1, as in scikit-learn, and
        warns when there are such windows; -1 means the same without a warning. With None every
        window is labeled, so that -1 is a class like any other.
    test_subjects : sequence | None
        Subjects to hold out in turn; None means all. Every fold trains on all subjects but the
        held-out one.
    out : path | None
        Folder for finished folds. The same call resumes an interrupted run, also with more seeds,
        methods or test subjects; see :func:`~braindecode_pars.evaluation.folds.run_folds`.
    n_jobs : int | None
        Number of folds to run in parallel processes. None means 1, or the setting of
        ``joblib.parallel_config``. Processes use different GPUs where there are several and
        ``device`` is "auto".
    verbose : int
        Verbosity; 1 shows a progress bar over folds.
    equal_sizes : bool
        Whether methods whose encoders have different numbers of parameters are refused. False
        compares them as they are. The scores then have a column ``encoder_parameters``, and
        :func:`~braindecode_pars.evaluation.score_table` shows it.

    Returns
    -------
    pandas.DataFrame
        One row for each method, subject, seed and metric, with the columns ``protocol`` (with
        ``cv`` "compare"), ``dataset``, ``method``, ``subject`` (the held-out subject),
        ``n_train_subjects``, ``seed``, ``metric``, ``value``, ``test_subject_data`` (what the method uses of
        the test subject) and ``chance`` (chance level of the metric, NaN where it is unknown). If
        a score is undefined, and so NaN, a column ``why`` has the reason.

    Raises
    ------
    TypeError
        When ``estimators`` is not a dict of classifiers.
    ValueError
        When there are fewer than two subjects, a subject has no labeled window, ``out``
        contains results of other settings, or the encoders of two methods have different sizes.
    FoldError
        When a fit fails.

    Warns
    -----
    UserWarning
        When a score is undefined, when an encoder was pretrained on a test subject, and when the
        training subjects of an encoder are unknown.

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
    >>> describe_differences(tests).split(" (")[0]
    'Not established in kappa: log band power and chance level'
    """
    shared = Shared(metrics, seeds, unlabeled_label, out, n_jobs, verbose, equal_sizes)
    splitter: Splitter = LeaveOneSubjectOut(test_subjects)
    if cv is not None:
        splitter = LabeledSubjects(cv=cv, test_subjects=test_subjects)
    return run_protocol(splitter.protocol, estimators, {dataset: (windows_ds, splitter)}, shared)


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
    """Score methods trained on increasing numbers of labeled subjects (section 3, figure 3).

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
        Labeled windows with ``subject`` in the descriptions.
    n_train_subjects : sequence of int
        Numbers of labeled training subjects (the paper: from 10 to 657).
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
    ...     {"log band power": band_power},
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
    splitting.check_list("n_train_subjects", n_train_subjects, checks.integer(1))
    subjects: Any = dict(test_subjects=test_subjects, train_subjects=train_subjects)
    splitter = LabeledSubjects(n_train_subjects, cv=cv, seeds=seeds, **subjects)
    shared = Shared(metrics, seeds, unlabeled_label, out, n_jobs, verbose, equal_sizes)
    return run_protocol("label_efficiency", estimators, {dataset: (windows_ds, splitter)}, shared)


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
    """Fine-tune and test the same estimators on several datasets.

    This protocol reproduces the paper's transfer learning (section 3, table 1). Each dataset has
    its own training and test subjects. Every fit trains on all subjects that are not tested; an
    estimator splits its validation subjects off them. With ``PARSClassifier(validation="split")``
    the validation subjects are those of split ``"valid"``, as in the paper, and no method is
    trained on them.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name, for example ``{"PARS": PARSClassifier(encoder="run1/"), ...}``.
        An encoder requires the sampling rate of its pretraining, so resample all datasets to it.
    datasets : dict of str to BaseConcatDataset
        Labeled windows by dataset name, with ``subject`` in the descriptions.
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
    if not isinstance(datasets, Mapping) or len(datasets) == 0:
        raise TypeError(
            "datasets must be a dict of names and windows datasets with at least one entry, got a "
            f"{type(datasets).__name__}."
        )
    is_by_name = checks.optional(checks.instance("a dict with the names of datasets", Mapping))
    for argument, by_dataset in (("cv", cv), ("test_subjects", test_subjects)):
        is_by_name.check(argument, by_dataset)
        if unknown := [name for name in by_dataset or () if name not in datasets]:
            names = ", ".join(datasets)
            raise ValueError(f"{argument} has the unknown dataset {unknown[0]!r}; use {names}.")

    cv, test_subjects = cv or {}, test_subjects or {}
    split: dict[str, tuple[Any, Splitter]] = {
        name: (windows_ds, LabeledSubjects(cv=cv.get(name), test_subjects=test_subjects.get(name)))
        for name, windows_ds in datasets.items()
    }
    shared = Shared(metrics, seeds, unlabeled_label, out, n_jobs, verbose, equal_sizes)
    return run_protocol("transfer", estimators, split, shared)


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
    """Score methods on the test windows of any splitter.

    The other protocols are this function with one of the splitters each.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name. Each round fits a clone.
    windows_ds : BaseConcatDataset
        Labeled windows with ``subject`` in the descriptions.
    splitter : splitter | cross-validator | int | iterable of index pairs
        :class:`~braindecode_pars.evaluation.LeaveOneSubjectOut`,
        :class:`~braindecode_pars.evaluation.LabeledSubjects`,
        :class:`~braindecode_pars.evaluation.LabeledWindows`,
        :class:`~braindecode_pars.evaluation.WithinSubject`, or a cross-validator that divides
        whole subjects.
    seeds : sequence of int
        Seeds of every ``random_state``. The draws of ``LabeledSubjects`` have their own, which
        its estimators get, too.
    metrics, dataset, unlabeled_label, out, n_jobs, verbose, equal_sizes
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`.

    Returns
    -------
    pandas.DataFrame
        Table as from :func:`~braindecode_pars.evaluation.leave_one_subject_out`, with a column for
        what the splitter varies: ``n_windows`` or ``minutes`` of the test subject, or ``block``.

    Raises
    ------
    TypeError
        When ``estimators`` is not a dict of classifiers.
    ValueError
        As the splitter does.
    FoldError
        When a fit fails.

    Examples
    --------
    A new person without labels, and with the first two windows of each class:

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
    if not isinstance(splitter, Splitter):  # one of scikit-learn divides whole subjects
        splitter = LabeledSubjects(cv=splitter)
    shared = Shared(metrics, seeds, unlabeled_label, out, n_jobs, verbose, equal_sizes)
    return run_protocol(splitter.protocol, estimators, {dataset: (windows_ds, splitter)}, shared)


class Shared(NamedTuple):
    """Arguments that all protocols have in common."""

    metrics: Sequence[str]
    seeds: Sequence[int]
    unlabeled_label: Any
    out: str | Path | None
    n_jobs: int | None
    verbose: int
    equal_sizes: bool


def run_protocol(
    protocol: str,
    estimators: Mapping[str, BaseEstimator],
    datasets: Mapping[str, tuple[Any, Splitter]],
    shared: Shared,
    varied: Mapping[str, dict[str, Any]] | None = None,
    prepare: folds.Prepare | None = None,
) -> pd.DataFrame:
    """Split each dataset by its own splitter, train and score.

    The arguments are those of :func:`~braindecode_pars.evaluation.splitters.make_folds` and
    :func:`~braindecode_pars.evaluation.folds.run_folds`.
    """
    metrics, seeds, unlabeled_label, out, n_jobs, verbose, equal_sizes = shared
    # Check the arguments before anything is trained.
    splitting.check_arguments(estimators, metrics, seeds, n_jobs, out)
    corpora, jobs = {}, []
    for name, (windows_ds, splitter) in datasets.items():
        corpora[name] = corpus = splitting.Corpus.of(windows_ds, name, unlabeled_label)
        corpus.check_copies()
        sizes = check_equal_sizes(estimators, corpus.X, equal_sizes)
        for fold in make_folds(protocol, estimators, corpus, splitter, seeds, varied):
            jobs.append(replace(fold, encoder_parameters=sizes.get(fold.method)))
    return folds.run_folds(
        jobs, corpora, metrics=metrics, out=out, n_jobs=n_jobs, verbose=verbose, prepare=prepare
    )


# The comparison of the paper's table 1 ------------------------------------------------------------


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
    """Compare MAE, MP3, DropPos and PARS with training from scratch on held-out subjects.

    Every other subject, in the order of the names, is in one half. An encoder of each task is
    pretrained on one half without labels, with the same sizes and numbers of steps, and frozen. The
    other half is tested, in two parts; the labeled subjects are drawn from all who are not tested,
    and are the same for all methods. Then the halves change places, so that every subject is tested
    once. A seed is a whole repetition, of the pretraining, the draw and the fine-tuning.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        Labeled windows with ``subject`` in the descriptions.
    out : path
        Folder for ``scores.csv``, and for encoders and finished fits: the same call resumes.
    epochs : int
        Number of epochs of each pretraining.
    n_train_subjects : int
        Number of labeled subjects.
    seeds : sequence of int
        Seeds of all random draws.
    verbose : int
        Verbosity; 1 shows progress bars.
    **settings
        Arguments of :class:`~braindecode_pars.PARSClassifier` for all methods.

    Returns
    -------
    pandas.DataFrame
        Table as from :func:`~braindecode_pars.evaluation.label_efficiency`, with a further column
        ``pretraining_loss``: the last loss of the encoder's pretraining relative to chance.

    Raises
    ------
    ValueError
        When there are too few subjects, or ``out`` contains other files.
    FoldError
        When a fit fails.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import reproduce
    >>> scores = reproduce(datasets.sleep(), "table-1")  # doctest: +SKIP
    """
    corpus = splitting.Corpus.of(windows_ds, "", "auto")
    subjects, place = sorted(corpus.subjects, key=str), Path(out).expanduser()
    if len(subjects) < 4 or 3 * len(subjects) // 4 < n_train_subjects:
        raise ValueError(
            f"{len(subjects)} subjects are too few: a quarter is tested at a time, and "
            f"{n_train_subjects} of the others have labels."
        )
    files.check_may_write(place, "a reproduction", is_ours=(place / "reproduction").is_dir())
    settings = {"verbose": 0, **settings}
    content = cache.describe_corpus(corpus), epochs, sorted(settings.items())
    cache_dir = place / "reproduction" / cache.digest(*content)

    tables = []
    for seed, half in product(map(int, seeds), (0, 1)):
        run = f"half{half}-seed{seed}"
        seen, unseen = subjects[half::2], subjects[1 - half :: 2]
        losses: dict[str, float | None] = {}
        frozen: dict[str, Any] = dict(freeze_encoder=True, **settings)
        methods = {"from scratch": PARSClassifier(None, **settings)}
        methods["random encoder, head trained"] = PARSClassifier(None, **frozen)
        for name, task in training.ProgressBar(
            PAPER_TASKS.items(), f"pretraining {run}", disable=not verbose
        ):
            folder = cache_dir / f"{task}-{run}"
            if not (folder / "encoder.json").exists():
                # Those of the published table: PARS as in the paper, and steps of 64 windows.
                params = paper.CLASSIFIER["pretext_params"] if task == "pars" else None
                usual: Any = dict(pretrain_batch_size=64, pretrain_lr=4e-3, pretext_params=params)
                usual |= dict(settings, pretrain_epochs=epochs, random_state=seed)
                with checks.quiet():  # of losses, which are in the table
                    windows = corpus.X[corpus.rows_of(seen)]
                    PARSClassifier(task, **usual).pretrained(windows).save(folder)
            losses[f"{name}, head trained"] = load_encoder(folder).card.loss_relative
            methods[f"{name}, head trained"] = PARSClassifier(encoder=str(folder), **frozen)
        tests = [corpus.rows_of(part) for part in (unseen[::2], unseen[1::2])]
        cv = [(np.setdiff1d(np.arange(len(corpus.y)), test), test) for test in tests]
        design: dict[str, Any] = dict(n_train_subjects=[n_train_subjects], cv=cv, seeds=[seed])
        design |= dict(metrics=["kappa", "balanced_accuracy"], out=cache_dir / run, verbose=verbose)
        scores = label_efficiency(methods, windows_ds, **design)
        tables.append(scores.assign(pretraining_loss=scores["method"].map(losses)))
    all_scores = pd.concat(tables, ignore_index=True)
    files.replace_file(place / "scores.csv", all_scores.to_csv(index=False))
    return all_scores
