"""Design of a study: settings, test subjects, draws of labeled subjects, and the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from braindecode_pars.estimators import transformers
from braindecode_pars.evaluation import splitting
from braindecode_pars.evaluation.controls import CONTROLS, UNCHANGED
from braindecode_pars.study.data_check import DataCheck
from braindecode_pars.study.study_methods import GROUPS, N_FOLDS, TASKS, Method, StudyStep
from braindecode_pars.windows import labels

#: Number of draws (random subsets of labeled subjects) in each fold.
DRAWS = 12
#: Maximum number of labeled subjects in a draw.
MAX_LABELED = 4
#: Maximum proportion of subjects that are excluded so that the remaining subjects can be centered.
MAX_LEFT_OUT = 0.2
#: Maximum number of pretraining steps of the task "features". Its loss decreases from the first
#: step on, so that few steps suffice.
FEATURES_STEPS = 200
#: Metric of all scores, as computed by ``study_scores.count_predictions``.
METRIC = "balanced_accuracy"
#: Format version in study.json.
FORMAT = {"study": 2}
#: Name of the folder of the recommended classifier, in the folder of the study.
MODEL_FOLDER = "model"


@dataclass(frozen=True)
class Effort:
    """Extent of a study.

    Attributes
    ----------
    max_steps : int
        Maximum number of steps of a pretraining.
    minutes : float
        Maximum number of minutes of a pretraining.
    groups : tuple of str
        Groups of methods that are run.
    n_pretrainings : int
        Number of pretrainings of the first task, and of random initializations, in each fold.
        Further tasks have one pretraining less.
    controls : tuple of str
        Control analyses, which are run after a significant improvement.
    """

    max_steps: int
    minutes: float
    groups: tuple[str, ...]
    n_pretrainings: int = 3
    controls: tuple[str, ...] = ("slow", "phase", "order", "labels")

    def step_limit(self, task: str) -> int:
        """Return the maximum number of steps of a pretraining with a task."""
        return min(self.max_steps, FEATURES_STEPS) if task == "features" else self.max_steps


EFFORTS = {
    "quick": Effort(400, 5.0, GROUPS[:2]),
    "default": Effort(1_000, 8.0, GROUPS),
    "thorough": Effort(5_000, 60.0, (*GROUPS, "published"), 6, CONTROLS),
}


@dataclass(frozen=True)
class Settings:
    """Settings of a study: arguments of :func:`~braindecode_pars.evaluation.study`."""

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
        """Effort with the chosen maximum duration, and only with selected control analyses."""
        effort = EFFORTS[self.effort]
        chosen = {name.lower() for name in self.only or effort.groups}
        has_controls = "controls" in chosen - {name.lower() for name in self.without}
        minutes = self.minutes or effort.minutes
        return replace(effort, minutes=minutes, controls=effort.controls if has_controls else ())


@dataclass(frozen=True, eq=False)
class Design:
    """Test subjects and labeled subjects of a study.

    Attributes
    ----------
    corpus : Corpus
        All windows. The windows of subjects in ``left_out`` are unlabeled.
    folds : list of (ndarray, ndarray)
        For each fold, the training windows (labeled and unlabeled) and the test windows.
    n_labeled : int
        Number of labeled subjects in a draw.
    n_sets : int
        Number of disjoint sets of labeled subjects in one shuffle of the training subjects.
    n_draws : int
        Number of draws of labeled subjects in each fold.
    by_subject : bool
        Whether each subject has one class.
    class_of : Series
        Class of each labeled subject, or 0 if classes vary within subjects.
    is_centered : bool
        Whether methods are also scored with subject-centered features.
    left_out : dict of str to int
        Number of labeled windows by subject, for subjects with too few windows for centering.
    """

    corpus: splitting.Corpus
    folds: list[tuple[np.ndarray, np.ndarray]]
    n_labeled: int
    n_sets: int
    n_draws: int
    by_subject: bool
    class_of: pd.Series
    is_centered: bool
    left_out: dict[str, int]

    @property
    def n_chans(self) -> int:
        """Number of channels."""
        return len(self.corpus.X[0])

    @cached_property
    def classes(self) -> np.ndarray:
        """Sorted labels of the classes."""
        return np.unique(self.corpus.y[self.corpus.labeled])

    @property
    def class_names(self) -> list[str]:
        """Names of the classes in the order of their labels."""
        names = labels.names_of_classes(self.classes, self.corpus.X.label_names) or {}
        return [str(names.get(label, label)) for label in self.classes.tolist()]

    @cached_property
    def labeled_corpus(self) -> splitting.Corpus:
        """The labeled windows, which are scored."""
        columns = ("X", "y", "groups", "splits", "labeled")
        selected = {name: getattr(self.corpus, name)[self.corpus.labeled] for name in columns}
        return replace(self.corpus, **selected)

    def centerings(self, method: Method) -> tuple[bool, ...]:
        """Return whether a method is scored without, or also with, subject-centered features."""
        return (False, True) if method.views and self.is_centered else (False,)

    def labeled_rows(self, fold: int, draw: int) -> np.ndarray:
        """Return the indices of the labeled windows in a draw of labeled subjects."""
        train, _ = self.folds[fold]
        pool = self.corpus.subjects_of(train[self.corpus.labeled[train]])
        class_of = self.class_of.to_dict()
        drawn = splitting.draw_subjects(pool, self.n_labeled, draw, class_of, self.n_sets)
        rows = self.corpus.rows_of(drawn)
        return rows[self.corpus.labeled[rows]]

    def positions(self, rows: np.ndarray) -> np.ndarray:
        """Return the positions of labeled windows, given by their indices, in labeled_corpus."""
        return np.searchsorted(np.flatnonzero(self.corpus.labeled), rows)


def make_design(
    corpus: splitting.Corpus,
    *,
    by_subject: bool,
    n_labeled: int | None = None,
    n_draws: int = DRAWS,
) -> Design:
    """Divide the subjects into two folds, and choose the number of labeled subjects.

    The training subjects of a fold are shuffled, and divided into disjoint sets of ``n_labeled``
    subjects. Each set is one draw, so that the draws of a shuffle have no subject in common.

    If ``n_labeled`` is None, a set has four subjects, or fewer if there are too few subjects for
    three such sets. If each subject has one class, a set has two subjects per class, or one per
    class if there are too few subjects.

    Raises
    ------
    ValueError
        If a fold has too few training subjects for two disjoint sets of ``n_labeled`` subjects.
    """
    counts = pd.Series(corpus.groups[corpus.labeled]).value_counts()
    too_few = counts[counts < transformers.MIN_WINDOWS]
    is_centered = not by_subject and len(too_few) <= MAX_LEFT_OUT * len(counts)
    left_out = {str(subject): int(n) for subject, n in too_few.items()} if is_centered else {}
    labeled = corpus.labeled & ~np.isin(corpus.groups.astype(str), list(left_out))
    corpus = replace(corpus, labeled=labeled)
    folds = folds_of(corpus, by_subject=by_subject)
    # If classes vary within subjects, all subjects form one class.
    y, subjects = corpus.y[labeled], corpus.groups[labeled]
    y_of_subject = pd.Series(y if by_subject else 0, range(len(y))).groupby(subjects)
    class_of = y_of_subject.agg(lambda classes: classes.mode()[0])  # the most frequent class
    n_classes = class_of.nunique()
    pools = [class_of[corpus.subjects_of(train[labeled[train]])] for train, _ in folds]
    size = n_classes * int(min(pool.value_counts().min() for pool in pools))
    if n_labeled is None:
        n_max = max(MAX_LABELED, 2 * n_classes)
        n_labeled = max(n_classes, min(n_max, size // 3) // n_classes * n_classes)
    n_possible = size // n_labeled
    if n_possible < 2:
        raise ValueError(
            f"n_train_subjects is {n_labeled}, but the {size} training subjects of a fold must be "
            f"divided into at least two disjoint sets. Use n_train_subjects={size // 2} or fewer."
        )
    n_sets = max(k for k in range(1, n_possible + 1) if n_draws % k == 0)
    return Design(
        corpus, folds, n_labeled, n_sets, n_draws, by_subject, class_of, is_centered, left_out
    )


def folds_of(corpus: splitting.Corpus, *, by_subject: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Divide the labeled subjects into folds, and return training and test windows of each fold.

    The test windows are the labeled windows of the test subjects. The training windows are all
    windows of all other subjects, including the unlabeled windows.
    """
    labeled = np.flatnonzero(corpus.labeled)
    _, codes = np.unique(corpus.groups[labeled].astype(str), return_inverse=True)
    kind = StratifiedGroupKFold if by_subject else GroupKFold
    folds = []
    splitter = kind(N_FOLDS, shuffle=True, random_state=0)
    for _, test in splitter.split(labeled, corpus.y[labeled], codes):
        tested = corpus.rows_of(corpus.groups[labeled[test]].tolist())
        folds.append((np.setdiff1d(np.arange(len(corpus.y)), tested), labeled[test]))
    return folds


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
        Limits of a pretraining, groups of methods, and control analyses.
    steps : list of StudyStep
        Steps in the order in which they are run.
    minutes : list of float
        Expected duration of each step on one core, in minutes; NaN if it was not estimated.
    folder : Path
        Folder of the study.
    about : dict
        Entries that the report lists by name, such as versions and the digest of the data.
    """

    dataset: str
    check: DataCheck
    design: Design
    effort: Effort
    steps: list[StudyStep]
    minutes: list[float]
    folder: Path
    about: dict[str, Any]

    @property
    def table(self) -> pd.DataFrame:
        """One row per step: ``step``, ``group``, ``methods`` and ``minutes``."""
        rows = [(s.name, s.group, ", ".join(m.name for m in s.methods)) for s in self.steps]
        table = pd.DataFrame(rows, columns=["step", "group", "methods"])
        return table.assign(minutes=self.minutes)

    @property
    def primary_methods(self) -> list[Method]:
        """Pretrainings and sham pretrainings of the primary comparison."""
        methods = (m for step in self.steps if step.group == "primary" for m in step.methods)
        return list(dict.fromkeys(m for m in methods if m.kind in ("pretrained", "sham")))

    @property
    def primary(self) -> Method | None:
        """The pretraining of the primary comparison, or None if it is not selected."""
        return next((m for m in self.primary_methods if m.kind == "pretrained"), None)

    @property
    def control_steps(self) -> list[StudyStep]:
        """Control analyses of the primary comparison."""
        methods = tuple(self.primary_methods)
        return [
            StudyStep(f"control {name}", "controls", methods, control=name)
            for name in (UNCHANGED, *self.effort.controls)
        ]

    @property
    def digest(self) -> str:
        """Digest of the data and the design, which identifies the results in the folder."""
        return str(self.about["digest"])
