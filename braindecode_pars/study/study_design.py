"""Plan a study: settings, test subjects, draws of labeled subjects, and steps with durations."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from timeit import timeit
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from braindecode_pars import pretrained
from braindecode_pars._common import checks, files, model_files, names
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.estimators import PARSEmbedder, transformers
from braindecode_pars.evaluation import cache, splitting
from braindecode_pars.evaluation.controls import CONTROLS
from braindecode_pars.study import study_methods
from braindecode_pars.study.data_check import DataCheck, StudyData
from braindecode_pars.study.study_methods import GROUPS, TASKS, StudyStep
from braindecode_pars.windows import labels

#: Number of draws (random subsets of labeled subjects) in each fold.
DRAWS = 12
#: Maximum number of labeled subjects in a draw.
MAX_LABELED = 4
#: Maximum proportion of subjects that may be excluded because they have too few windows for
#: subject-wise centering. If more subjects have too few windows, subject-wise centering is skipped.
MAX_LEFT_OUT = 0.2
#: Maximum number of pretraining steps for the task "features". A small number suffices, because the
#: loss decreases from the first step.
FEATURES_STEPS = 200
#: Number of windows to estimate the duration of a pretraining step.
TIMED_TRAINING_WINDOWS = 96
#: Metric of all scores. It is computed by ``study_scores.count_predictions``.
METRIC = "balanced_accuracy"
#: Format version in study.json.
FORMAT = {"study": 2}
#: Name of the subfolder with the recommended classifier, in the folder of the study.
MODEL_FOLDER = "model"


@dataclass(frozen=True)
class Effort:
    """Extent of a study.

    Attributes
    ----------
    max_steps : int
        Maximum number of steps for which an encoder is pretrained.
    minutes : float
        Maximum number of minutes for which an encoder is pretrained.
    groups : tuple of str
        Groups of methods that are run.
    n_pretrainings : int
        Number of encoders that are pretrained in each fold with the first task, each with a
        different seed. The same number of random encoders is scored. With each of the other tasks,
        one encoder fewer is pretrained.
    controls : tuple of str
        Names of the control analyses, which are run only after a significant improvement.
    """

    max_steps: int
    minutes: float
    groups: tuple[str, ...]
    n_pretrainings: int = 3
    controls: tuple[str, ...] = ("slow", "phase", "order", "labels")

    def step_limit(self, task: str) -> int:
        """Return the maximum number of steps for which an encoder is pretrained with a task.

        The limit may be lower for the task "features" than for other tasks.
        """
        return min(self.max_steps, FEATURES_STEPS) if task == "features" else self.max_steps


EFFORTS = {
    "quick": Effort(400, 5.0, GROUPS[:2]),
    "default": Effort(1_000, 8.0, GROUPS),
    "thorough": Effort(5_000, 60.0, (*GROUPS, "published"), 6, CONTROLS),
}


@dataclass(frozen=True)
class Settings:
    """Settings of a study, which are arguments of :func:`~braindecode_pars.evaluation.study`."""

    effort: str = "default"
    tasks: Sequence[str] = TASKS
    encoders: Mapping[str, Any] | None = None
    n_train_subjects: int | None = None
    draws: int = DRAWS
    minutes: float | None = None
    only: Sequence[str] = ()
    without: Sequence[str] = ()

    @property
    def limits(self) -> Effort:
        """Extent of the study: ``effort``, changed by ``minutes``, ``only`` and ``without``."""
        effort = EFFORTS[self.effort]
        chosen = {name.lower() for name in self.only or effort.groups}
        has_controls = "controls" in chosen - {name.lower() for name in self.without}
        minutes = self.minutes or effort.minutes
        return replace(effort, minutes=minutes, controls=effort.controls if has_controls else ())


class StudyFold(NamedTuple):
    """Indices of the windows for pretraining, training and testing in one fold of subjects.

    Attributes
    ----------
    pretraining : ndarray of int
        Indices into ``Design.corpus`` of the windows of all subjects except the test subjects.
    draws : list of ndarray of int
        For each draw (random subset) of labeled subjects, indices of the training windows into
        ``Design.labeled``.
    test : ndarray of int
        Indices into ``Design.labeled`` of the test windows.
    """

    pretraining: np.ndarray
    draws: list[np.ndarray]
    test: np.ndarray


@dataclass(frozen=True, eq=False)
class Design:
    """Test subjects and labeled subjects of a study.

    Attributes
    ----------
    corpus : Corpus
        All windows, labeled and unlabeled. The windows of subjects in ``left_out`` are unlabeled.
    labeled : Corpus
        Labeled windows, on which the methods are trained and scored.
    classes : dict
        Name of the class of each label, in the order of the labels.
    folds : list of StudyFold
        Folds of subjects. Each labeled subject is a test subject in one fold.
    n_labeled : int
        Number of labeled subjects in a draw.
    n_sets : int
        Number of disjoint draws that result from one shuffle of the training subjects.
    by_subject : bool
        Whether at least 90 % of the labeled subjects have windows of one class only. If False, the
        classes vary within subjects.
    class_of : Series
        Class of each labeled subject, which is its most frequent label. If ``by_subject`` is False,
        0 for all subjects.
    is_centered : bool
        Whether methods are also scored with subject-wise centering of the features.
    left_out : dict of str to int
        Subjects that are excluded from scoring because they have too few labeled windows for
        subject-wise centering, with the number of labeled windows of each.
    """

    corpus: splitting.Corpus
    labeled: splitting.Corpus
    classes: dict[Any, str]
    folds: list[StudyFold]
    n_labeled: int
    n_sets: int
    by_subject: bool
    class_of: pd.Series
    is_centered: bool
    left_out: dict[str, int]

    @property
    def n_chans(self) -> int:
        """Number of channels."""
        return len(self.corpus.X[0])


def make_design(
    corpus: splitting.Corpus,
    *,
    by_subject: bool,
    n_labeled: int | None = None,
    n_draws: int = DRAWS,
) -> Design:
    """Divide the subjects into two folds, and draw labeled subjects from the training subjects.

    In each fold, the training subjects are shuffled and divided into disjoint sets of ``n_labeled``
    subjects. Each set is one draw, so draws from the same shuffle have no subject in common. The
    training subjects are shuffled again until there are ``n_draws`` draws.

    Parameters
    ----------
    corpus : Corpus
        All windows, labeled and unlabeled.
    by_subject : bool
        Whether the labeled subjects have windows of one class only, see :class:`Design`.
    n_labeled : int | None
        Number of labeled subjects in a draw. If None and ``by_subject`` is True, a draw has two
        subjects per class, or one subject per class if there are too few subjects. If None and
        ``by_subject`` is False, a draw has four subjects, or fewer if a fold has fewer than 12
        training subjects.
    n_draws : int
        Number of draws in each fold.

    Returns
    -------
    Design
        Test subjects, draws of labeled subjects, and windows of both.

    Raises
    ------
    ValueError
        If a fold has too few training subjects for two disjoint sets of ``n_labeled`` subjects.
    """
    counts = pd.Series(corpus.groups[corpus.labeled]).value_counts()
    too_few = counts[counts < transformers.MIN_WINDOWS]
    is_centered = not by_subject and len(too_few) <= MAX_LEFT_OUT * len(counts)
    left_out = {str(subject): int(n) for subject, n in too_few.items()} if is_centered else {}
    is_labeled = corpus.labeled & ~np.isin(corpus.groups.astype(str), list(left_out))
    corpus = replace(corpus, labeled=is_labeled)
    columns = ("X", "y", "groups", "splits", "labeled")
    labeled = replace(corpus, **{name: getattr(corpus, name)[is_labeled] for name in columns})
    # If classes vary within subjects, all subjects form one class.
    y_of_subject = pd.Series(labeled.y if by_subject else 0, range(len(labeled.y)))
    # The class of a subject is the most frequent class of the windows.
    class_of = y_of_subject.groupby(labeled.groups).agg(lambda classes: classes.mode()[0])
    n_classes = class_of.nunique()

    splitter = (StratifiedGroupKFold if by_subject else GroupKFold)(
        study_methods.N_FOLDS, shuffle=True, random_state=0
    )
    _, codes = np.unique(labeled.groups.astype(str), return_inverse=True)
    splits = list(splitter.split(codes, labeled.y, codes))
    pools = [labeled.subjects_of(train) for train, _ in splits]
    size = n_classes * min(int(class_of[pool].value_counts().min()) for pool in pools)
    if n_labeled is None:
        n_max = max(MAX_LABELED, 2 * n_classes)
        n_labeled = max(n_classes, min(n_max, size // 3) // n_classes * n_classes)
    n_possible = size // n_labeled
    if n_possible < 2:
        raise ValueError(
            f"n_train_subjects={n_labeled} is too large. In each fold, the labeled training "
            "subjects are divided into at least two disjoint sets of this size, but one fold has "
            f"only {size} labeled training subjects{' (balanced classes)' if by_subject else ''}. "
            f"Use n_train_subjects={size // 2} or fewer, or add labeled subjects."
        )
    n_sets = max(k for k in range(1, n_possible + 1) if n_draws % k == 0)

    folds = []
    for pool, (_, test) in zip(pools, splits, strict=True):
        drawn = [
            splitting.draw_subjects(pool, n_labeled, draw, class_of.to_dict(), n_sets)
            for draw in range(n_draws)
        ]
        # Pretraining uses no windows of the test subjects, not even unlabeled windows.
        tested = corpus.rows_of(labeled.groups[test].tolist())
        pretraining = np.setdiff1d(np.arange(len(corpus.y)), tested)
        folds.append(StudyFold(pretraining, [labeled.rows_of(d) for d in drawn], test))
    class_labels = np.unique(labeled.y)
    class_names = labels.names_of_classes(class_labels, corpus.X.label_names) or {}
    return Design(
        corpus,
        labeled,
        classes={label: str(class_names.get(label, label)) for label in class_labels.tolist()},
        folds=folds,
        n_labeled=n_labeled,
        n_sets=n_sets,
        by_subject=by_subject,
        class_of=class_of,
        is_centered=is_centered,
        left_out=left_out,
    )


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """Plan of a study: data check, design and steps.

    Attributes
    ----------
    dataset : str
        Name of the dataset.
    check : DataCheck
        Result of the data check.
    design : Design
        Test subjects and labeled subjects.
    effort : Effort
        Limits of pretraining, such as the maximum number of steps.
    steps : list of StudyStep
        Steps in the order in which they are run.
    control_steps : list of StudyStep
        Control analyses of the primary comparison, which are run only after a significant
        improvement.
    table : DataFrame
        One row per step. The columns are ``step``, ``group``, ``methods`` and ``minutes``, the
        expected duration of pretraining on one core (NaN if it was not estimated).
    folder : Path
        Folder of the study.
    about : dict
        Entries that the report lists by name, such as versions. The entry ``digest`` depends on the
        data and the design, and identifies the results in the folder.
    """

    dataset: str
    check: DataCheck
    design: Design
    effort: Effort
    steps: list[StudyStep]
    control_steps: list[StudyStep]
    table: pd.DataFrame
    folder: Path
    about: dict[str, Any]


def plan_study(
    data: StudyData,
    check: DataCheck,
    settings: Settings,
    methods: Mapping[str, BaseEstimator] | None = None,
    *,
    out: str | Path,
    dataset: str = "recordings",
    unlabeled_label: Any = "auto",
) -> StudyPlan:
    """Choose the design and the methods of a study, and estimate its duration.

    Estimating the duration takes a few seconds per pretext task.

    Parameters
    ----------
    data : StudyData
        Labeled windows, with tables of recordings and windows.
    check : DataCheck
        Result of the data check. It must not contain findings of level "stop".
    settings : Settings
        Settings of the study.
    methods, out, dataset, unlabeled_label
        Further arguments of :func:`~braindecode_pars.evaluation.study`.

    Returns
    -------
    StudyPlan
        Design, steps and estimated durations.
    """
    corpus = splitting.Corpus.of(data.windows, dataset, unlabeled_label)
    effort = settings.limits
    design = make_design(
        corpus,
        by_subject=check.by_subject,
        n_labeled=settings.n_train_subjects,
        n_draws=settings.draws,
    )
    encoders, excluded = study_methods.usable_encoders(settings.encoders, corpus)
    all_steps = study_methods.make_steps(
        design.n_chans, settings.tasks, encoders, methods or {}, effort.n_pretrainings
    )
    steps = study_methods.choose_steps(all_steps, effort.groups, settings.only, settings.without)
    rows = [(step.name, step.group, ", ".join(m.name for m in step.methods)) for step in steps]
    table = pd.DataFrame(rows, columns=["step", "group", "methods"])
    table["minutes"] = estimate_minutes(steps, design, effort)
    folder = Path(out).expanduser()
    files.replace_file(folder / "study.json", files.to_json(FORMAT))
    about = _describe(settings, design, effort, steps)
    about["left_out"] = [*excluded, *_excluded_from_centering(design)]
    controls = study_methods.make_control_steps(steps, effort.controls)
    return StudyPlan(dataset, check, design, effort, steps, controls, table, folder, about)


def _describe(
    settings: Settings, design: Design, effort: Effort, steps: Sequence[StudyStep]
) -> dict[str, Any]:
    """Return the entries of ``Study.about`` that are known before the study runs."""
    limits = dict(max_steps=effort.max_steps, max_minutes=effort.minutes)
    # The digest includes all settings on which scores depend, so scores from different settings are
    # never mixed in a folder.
    dependencies = (settings.draws, design.n_labeled, design.left_out, limits, FEATURES_STEPS)
    data = cache.describe_corpus(design.corpus)
    is_network = [method.kind == "network" for step in steps for method in step.methods]
    networks = f". Networks use {design.n_sets} draws" if any(is_network) else ""
    labeled = f"{design.n_labeled} labeled subject{'s' * (design.n_labeled > 1)}"
    return dict(
        digest=cache.digest(data, dependencies, cache.versions()),
        n_labeled_subjects=design.n_labeled,
        design=(
            f"{len(design.folds)} folds of subjects. Each fold has {settings.draws} draws of "
            f"{labeled} ({design.n_sets} disjoint draws from each shuffle of the training "
            f"subjects) and {effort.n_pretrainings} pretraining seeds{networks}"
        ),
        pretraining=limits,
        effort=settings.effort,
        versions=cache.versions(),
        date=time.strftime("%Y-%m-%d"),
    )


def _excluded_from_centering(design: Design) -> Iterator[str]:
    """Yield the reason why subjects are excluded, or why subject-wise centering is skipped."""
    if design.left_out:
        counts = [f"{subject} ({n} windows)" for subject, n in design.left_out.items()]
        yield (
            f"Subject-wise centering requires at least {transformers.MIN_WINDOWS} labeled windows "
            "per subject. The following subjects have fewer labeled windows and are not scored: "
            f"{checks.format_list(counts, max_items=20)}. The windows of these subjects are used "
            "only for pretraining, without their labels."
        )
    elif not (design.is_centered or design.by_subject):
        yield (
            f"Subject-wise centering was skipped, because more than {100 * MAX_LEFT_OUT:g} % of "
            f"the labeled subjects have fewer than {transformers.MIN_WINDOWS} labeled windows."
        )


def check_settings(
    settings: Settings, out: str | Path | None, methods: Mapping[str, BaseEstimator] | None = None
) -> None:
    """Raise an error if an argument is invalid, or if ``out`` is neither empty nor a study folder.

    Parameters
    ----------
    settings : Settings
        Settings of the study.
    out : path | None
        Folder for the results, which may contain an unfinished study. A model in the subfolder
        ``model`` must have been saved by a study.
    methods : mapping of str to estimator | None
        Additional classifiers by name.
    """
    checks.choice(*EFFORTS).check("effort", settings.effort)
    # The number of draws must be even, so that every shuffle can have at least two disjoint draws,
    # from which the variance of draws is estimated.
    is_even = checks.ParameterRule("an even number", (int,), lambda n: n > 0 and n % 2 == 0)
    is_even.check("draws", settings.draws)
    checks.optional(checks.positive()).check("minutes", settings.minutes)
    splitting.check_list("tasks", settings.tasks, checks.instance("names of pretext tasks", str))
    for encoder in (settings.encoders or {}).values():
        pretrained.load_encoder(encoder)
    # These steps include every possible method: n_chans is larger than 1, and all bundled encoders
    # are included.
    encoders = {**{name: name for name in names.ENCODERS}, **(settings.encoders or {})}
    all_steps = study_methods.make_steps(2, settings.tasks, encoders, methods or {})
    study_methods.choose_steps(all_steps, settings.limits.groups, settings.only, settings.without)
    if out is not None:
        folder = Path(out).expanduser()
        ResultsFolder(folder, "a study", marks=("study.json",)).check()
        _check_model_folder(folder / MODEL_FOLDER)


def _check_model_folder(folder: Path) -> None:
    """Check that a folder contains no model, or only a model that was saved by a study."""
    for kind in model_files.kinds_in(folder):
        description = model_files.read_model(folder).description
        if "expected_score" not in description.get(model_files.ENTRIES.get(kind, ""), ()):
            raise ValueError(
                f"{folder} contains a {kind} that was not saved by a study, and that this study "
                f"would overwrite. Move the {kind} elsewhere, or pass a different output folder."
            )


# Duration -----------------------------------------------------------------------------------------


def estimate_minutes(steps: Sequence[StudyStep], design: Design, effort: Effort) -> list[float]:
    """Estimate how many minutes pretraining takes in each step, on one core.

    The estimate is NaN for steps in which no encoder is pretrained, including steps of networks.

    Parameters
    ----------
    steps : sequence of StudyStep
        Steps of the study.
    design : Design
        Design, which contains the windows for pretraining.
    effort : Effort
        Limits of pretraining.

    Returns
    -------
    list of float
        Number of minutes of each step.
    """
    tasks_of_steps = [
        [method.task for method in step.methods if method.task and method.kind != "network"]
        for step in steps
    ]
    with warnings.catch_warnings(action="ignore"):  # the steps of the study issue the same warnings
        seconds = {
            task: _seconds_of(task, design, effort)
            for task in {*chain.from_iterable(tasks_of_steps)}
        }
    return [
        sum(seconds[task] for task in tasks) / 60 if tasks else math.nan for tasks in tasks_of_steps
    ]


def _seconds_of(task: str, design: Design, effort: Effort) -> float:
    """Time some pretraining steps with a task, and estimate the seconds that pretraining takes."""
    windows = design.corpus.X[:TIMED_TRAINING_WINDOWS]
    n_steps = math.ceil(len(windows) / PARSEmbedder.pretrain_batch_size)
    # The duration of the first fit is ignored, because it includes one-time costs.
    embedders = (PARSEmbedder(task, pretrain_epochs=n, verbose=0) for n in (1, 1, 4))
    _, short, long = (timeit(partial(e.fit, windows), number=1) for e in embedders)
    seconds_per_step = max(0.0, long - short) / (3 * n_steps)
    return min(seconds_per_step * effort.step_limit(task), 60 * effort.minutes)
