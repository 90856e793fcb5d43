"""Design of a study: folds, draws of labeled subjects, methods and steps."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from braindecode_pars import pretrained
from braindecode_pars._common import checks, names, subjects
from braindecode_pars.baselines import make_methods
from braindecode_pars.estimators import PARSClassifier, PARSEmbedder, transformers
from braindecode_pars.evaluation import cache, splitting
from braindecode_pars.evaluation.controls import CONTROLS, UNCHANGED
from braindecode_pars.pretext import base
from braindecode_pars.pretrained import cards
from braindecode_pars.study import data_check

#: Pretext tasks of a study. The first task is used in the primary comparison.
TASKS = ("pars", "features")
#: Number of folds of subjects. Each subject is tested once in every draw.
N_FOLDS = 2
#: Number of draws (random subsets of labeled subjects) in each fold.
DRAWS = 12
#: Maximum number of labeled subjects in a draw.
MAX_LABELED = 4
#: Maximum proportion of subjects that are excluded so that the remaining subjects can be centered.
MAX_LEFT_OUT = 0.2
#: Minimum number of channels for the tangent space to be the baseline specified in advance.
MIN_CHANNELS_OF_TANGENT_SPACE = 8
#: Minimum duration of a window for which the bundled sleep encoder is included, in seconds.
SLEEP_SECONDS = 20
#: Maximum number of steps of the task "features", whose loss falls from the first step.
FEATURES_STEPS = 200
#: Number of epochs of published networks. With fewer epochs, they do not learn.
PUBLISHED_EPOCHS = 15
#: Smallest relevant improvement, in balanced accuracy.
RELEVANT_DIFFERENCE = 0.02
#: Metric of all scores, as computed by ``study_scores.count_predictions``.
METRIC = "balanced_accuracy"
#: Format version in study.json.
FORMAT = {"study": 2}
#: Name of the pretraining with the targets of other windows.
SHAM = "sham pretraining"
#: Name of the encoder without pretraining.
RANDOM = "random initialization"
#: Name of the baseline specified in advance for few channels.
HAND_CRAFTED = "hand-crafted features"
#: Name of the baseline specified in advance for many channels.
TANGENT = "Riemannian tangent space"
#: Additional data of methods that are pretrained on this dataset.
UNLABELED = "unlabeled windows of all subjects except the test subjects"
#: Additional data of encoders that were pretrained on other data.
OTHER_SUBJECTS = "recordings of other subjects"
#: Additional data of subject-centered features.
TEST_SUBJECT = "unlabeled windows of the test subject"


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


GROUPS = ("baselines", "primary", "tasks", "bundled", "ensemble", "networks", "controls")
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


@dataclass(frozen=True)
class Method:
    """Method that is scored in a study.

    Attributes
    ----------
    name : str
        Name in tables and figures. It is unique together with ``pretraining``.
    kind : str
        "pretrained", "sham", "random", "baseline", "bundled", "ensemble" or "network".
    views : tuple of str
        Feature sets of :class:`~braindecode_pars.FewLabelsClassifier`, each with a linear
        classifier. Empty if the method has an ``estimator``.
    encoder : str | None
        Encoder pretrained on other data. None for an encoder that is trained in the study.
    task : str | None
        Pretext task of an encoder that is pretrained on this dataset.
    pretraining : int
        Seed of the pretraining or of the random initialization.
    estimator : estimator | None
        Classifier of windows, which is trained in every draw.
    references : tuple of str
        Names of the methods with which the method is compared.
    additional_data : str
        Data that the method uses in addition to the labeled subjects.
    """

    name: str
    kind: str
    views: tuple[str, ...] = ()
    encoder: str | None = None
    task: str | None = None
    pretraining: int = 0
    estimator: BaseEstimator | None = field(default=None, compare=False)
    references: tuple[str, ...] = ()
    additional_data: str = ""

    @cached_property
    def digest(self) -> str:
        """Digest of the classifier, encoder or pretext task.

        It is random if the estimator cannot be described, so that its scores are never reused.
        """
        estimator: Any = self.estimator
        if estimator is None:
            estimator = PARSEmbedder(self.task, encoder=self.encoder)
        try:
            return cache.digest(cache.describe_estimator(estimator))
        except ValueError as error:
            checks.warn_user(
                f"The scores of method {self.name!r} cannot be reused in later calls: {error}."
            )
            return secrets.token_hex(6)


@dataclass(frozen=True)
class StudyStep:
    """Unit of work of a study: it runs in one process, and is repeated if it was interrupted.

    If ``fold`` is None, the step scores all folds. ``control`` names the control signal; the
    default is the recorded signal.
    """

    name: str
    group: str
    methods: tuple[Method, ...]
    fold: int | None = None
    control: str = UNCHANGED

    @property
    def slug(self) -> str:
        """Name of the step in file names."""
        return "".join(c if c.isalnum() else "-" for c in self.name.lower())

    @cached_property
    def digest(self) -> str:
        """Digest of the methods of the step."""
        return cache.digest([method.digest for method in self.methods])


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
        Number of draws of labeled subjects.
    by_subject : bool
        Whether each subject has one class.
    is_centered : bool
        Whether methods are also scored with subject-centered features.
    left_out : dict of str to int
        Number of labeled windows of each subject that has too few windows for centering.
    """

    corpus: splitting.Corpus
    folds: list[tuple[np.ndarray, np.ndarray]]
    n_labeled: int
    n_sets: int
    n_draws: int
    by_subject: bool
    is_centered: bool
    left_out: dict[str, int]

    @cached_property
    def class_of(self) -> pd.Series:
        """Class of each labeled subject, or 0 if classes vary within subjects."""
        classes = main_classes(self.corpus)
        return classes if self.by_subject else pd.Series(0, classes.index)

    def labeled_rows(self, fold: int, draw: int) -> np.ndarray:
        """Return the windows of the labeled subjects of a draw."""
        train, _ = self.folds[fold]
        labeled = train[self.corpus.labeled[train]]
        pool = self.corpus.subjects_of(labeled)
        class_of = self.class_of.to_dict()
        drawn = splitting.draw_subjects(pool, self.n_labeled, draw, class_of, self.n_sets)
        return np.intersect1d(labeled, self.corpus.rows_of(drawn))


def make_design(
    corpus: splitting.Corpus,
    *,
    by_subject: bool,
    n_labeled: int | None = None,
    n_draws: int = DRAWS,
) -> Design:
    """Divide the subjects into two folds, and choose the number of labeled subjects.

    The training subjects of a fold are divided into disjoint sets, so that draws are independent.
    If ``n_labeled`` is None, there are at least three sets of at most four subjects. If each
    subject has one class, a set has two subjects of each class, or one.

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
    pools = [train[labeled[train]] for train, _ in folds]
    size, n_classes = min(len(corpus.subjects_of(pool)) for pool in pools), 1
    if by_subject:
        class_of = main_classes(corpus)
        n_classes = class_of.nunique()
        per_class = min(class_of[corpus.subjects_of(pool)].value_counts().min() for pool in pools)
        size = int(per_class) * n_classes
    if n_labeled is None:
        n_max = max(MAX_LABELED, 2 * n_classes) if by_subject else MAX_LABELED
        n_labeled = max(n_classes, min(n_max, size // 3) // n_classes * n_classes)
    n_possible = size // n_labeled
    if n_possible < 2:
        raise ValueError(
            f"n_train_subjects is {n_labeled}, but the {size} training subjects of a fold must be "
            f"divided into at least two disjoint sets. Use n_train_subjects={size // 2} or fewer."
        )
    n_sets = max(k for k in range(1, n_possible + 1) if n_draws % k == 0)
    return Design(corpus, folds, n_labeled, n_sets, n_draws, by_subject, is_centered, left_out)


def main_classes(corpus: splitting.Corpus) -> pd.Series:
    """Return the most frequent class of each labeled subject."""
    y, subjects = corpus.y[corpus.labeled], corpus.groups[corpus.labeled]
    return pd.Series(y).groupby(subjects).agg(lambda labels: labels.mode()[0])


def folds_of(corpus: splitting.Corpus, *, by_subject: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Divide the labeled subjects into folds. Unlabeled windows are in every training set."""
    labeled = np.flatnonzero(corpus.labeled)
    _, codes = np.unique(corpus.groups[labeled].astype(str), return_inverse=True)
    kind = StratifiedGroupKFold if by_subject else GroupKFold
    folds = []
    splitter = kind(N_FOLDS, shuffle=True, random_state=0)
    for _, test in splitter.split(labeled, corpus.y[labeled], codes):
        tested = corpus.rows_of(corpus.groups[labeled[test]].tolist())
        folds.append((np.setdiff1d(np.arange(len(corpus.y)), tested), labeled[test]))
    return folds


def task_label(task: str) -> str:
    """Return the name of a pretext task in tables: PARS, MAE, features, or its class name."""
    name = base.find_task(task).__name__
    return name if name.lower() == task.lower() else task.rpartition(":")[2]


def usable_encoders(
    encoders: Mapping[str, Any] | None, corpus: splitting.Corpus
) -> tuple[dict[str, Any], list[str]]:
    """Return the usable encoders, and the reasons for which encoders were excluded.

    An encoder is excluded if it requires another sampling rate, or if its pretraining data include
    subjects of this dataset. If ``encoders`` is None, they are ``small`` and, for windows as long
    as in sleep staging, ``pars-sleep``. If a corpus is unknown, a warning lists the subjects on
    which an encoder may have been pretrained.
    """
    if encoders is None:
        is_sleep = corpus.X[0].shape[1] >= SLEEP_SECONDS * (corpus.X.sfreq or np.inf)
        rows = names.ENCODERS.items()
        encoders = {name: name for name, row in rows if is_sleep or not row.is_for_sleep}
    usable, reasons, usable_cards = {}, [], {}
    for name, encoder in encoders.items():
        card = pretrained.load_encoder(encoder).card
        seen = subjects.SeenSubjects(card.seen_subjects)
        n_seen = sum(subject in seen for subject in corpus.corpus_subjects.values())
        if card.sfreq not in (None, corpus.X.sfreq):
            reasons.append(
                f"Encoder {name!r} requires a sampling rate of {card.sfreq:g} Hz, but the windows "
                f"have {corpus.X.sfreq:g} Hz. Load the recordings with sfreq={card.sfreq:g}."
            )
        elif n_seen:
            reasons.append(
                f"Encoder {name!r} was pretrained on {n_seen} of the subjects of this dataset "
                "(data leakage)."
            )
        else:
            usable[name], usable_cards[name] = encoder, [card]
    cards.warn_unknown_corpora(usable_cards, corpus.corpus_subjects.values())
    return usable, reasons


def step_limit(task: str, max_steps: int) -> int:
    """Return the maximum number of steps of a pretraining with a task."""
    return min(max_steps, FEATURES_STEPS) if task == "features" else max_steps


def baseline_name(n_chans: int) -> str:
    """Return the baseline that is specified in advance for a number of channels."""
    return TANGENT if n_chans >= MIN_CHANNELS_OF_TANGENT_SPACE else HAND_CRAFTED


def make_steps(
    n_chans: int,
    tasks: Sequence[str],
    encoders: Mapping[str, Any],
    further: Mapping[str, BaseEstimator],
    n_pretrainings: int = 3,
) -> list[StudyStep]:
    """Return all steps of a study in the order in which they are run.

    The baselines are first, because they take seconds, followed by the primary comparison.

    Parameters
    ----------
    n_chans : int
        Number of channels. With one channel, the tangent space is omitted.
    tasks : sequence of str
        Pretext tasks. The first task is used in the primary comparison and by the networks.
    encoders : mapping of str to encoder
        Encoders pretrained on other data.
    further : mapping of str to estimator
        Additional baselines of the user.
    n_pretrainings : int
        Number of pretrainings of the first task in each fold. Further tasks have one less.

    Raises
    ------
    ValueError
        If two methods have the same name.
    """
    steps = [
        *_baseline_steps(n_chans, further),
        *_pretraining_steps(tasks[0], "primary", n_pretrainings),
        *(step for t in tasks[1:] for step in _pretraining_steps(t, "tasks", n_pretrainings - 1)),
        *_bundled_steps(n_chans, encoders),
        *_network_steps(n_chans, tasks[0]),
    ]
    names = [step.methods[0].name.lower() for step in steps if step.fold is None]
    if repeated := [name for name in further if names.count(name.lower()) > 1]:
        raise ValueError(
            f"methods contains the name {repeated[0]!r}, which another method of the study has. "
            "Rename it."
        )
    return steps


def _pretraining_steps(task: str, group: str, n_pretrainings: int) -> Iterator[StudyStep]:
    """Yield steps of a pretraining and its sham, and a random encoder in the primary group."""
    name = f"{task_label(task)} pretraining"
    sham = SHAM if group == "primary" else f"{SHAM} of {task_label(task)}"
    for seed in range(n_pretrainings):
        shared: dict[str, Any] = dict(views=("encoder",), pretraining=seed)
        trained = shared | dict(task=task, additional_data=UNLABELED)
        methods = [
            Method(name, "pretrained", references=(sham, RANDOM), **trained),
            Method(sham, "sham", **trained),
        ]
        if group == "primary":
            methods.append(Method(RANDOM, "random", **shared))
        for fold in range(N_FOLDS):
            yield StudyStep(f"{name} {seed + 1}, fold {fold + 1}", group, tuple(methods), fold)


def _baseline_steps(n_chans: int, further: Mapping[str, BaseEstimator]) -> Iterator[StudyStep]:
    views = {"log band power": "band_power", HAND_CRAFTED: "hand_crafted"}
    if n_chans > 1:
        views[TANGENT] = "tangent_space"
    for name, view in views.items():
        yield StudyStep(name, "baselines", (Method(name, "baseline", (view,)),))
    for name, estimator in further.items():
        yield StudyStep(name, "baselines", (Method(name, "baseline", estimator=estimator),))


def _bundled_steps(n_chans: int, encoders: Mapping[str, Any]) -> Iterator[StudyStep]:
    for name, encoder in encoders.items():
        has_no_subjects = pretrained.load_encoder(encoder).card.subjects == []
        method = Method(
            f"{name} (pretrained on other data)",
            "bundled",
            views=("encoder",),
            encoder=encoder,
            references=(RANDOM,),
            additional_data="" if has_no_subjects else OTHER_SUBJECTS,
        )
        yield StudyStep(method.name, "bundled", (method,))
    if "small" in encoders:
        ensemble = Method(
            "feature ensemble",
            "ensemble",
            views=("encoder", *["tangent_space"] * (n_chans > 1), "band_power"),
            encoder=encoders["small"],
            references=(baseline_name(n_chans),),
            additional_data=OTHER_SUBJECTS,
        )
        yield StudyStep(ensemble.name, "ensemble", (ensemble,))


def _network_steps(n_chans: int, task: str) -> Iterator[StudyStep]:
    """Yield steps of networks: from scratch, fine-tuned with equal settings, and published."""
    settings: dict[str, Any] = dict(head="auto", head_epochs=0, encoder_lr_factor=1.0, verbose=0)
    scratch = Method("from scratch", "network", estimator=PARSClassifier(None, **settings))
    fine_tuned = Method(
        f"{task_label(task)}, fine-tuned",
        "network",
        task=task,
        estimator=PARSClassifier(None, **settings),
        references=(scratch.name,),
        additional_data=UNLABELED,
    )
    for fold in range(N_FOLDS):
        yield StudyStep(f"networks, fold {fold + 1}", "networks", (scratch, fine_tuned), fold)
    names = ["eegnet", *["shallow"] * (n_chans > 1)]
    for name, estimator in make_methods(names, finetune_epochs=PUBLISHED_EPOCHS).items():
        yield StudyStep(name, "published", (Method(name, "network", estimator=estimator),))


def choose_steps(
    steps: Sequence[StudyStep],
    groups: Collection[str],
    only: Collection[str] = (),
    without: Collection[str] = (),
) -> list[StudyStep]:
    """Return the steps with the selected methods.

    Parameters
    ----------
    steps : sequence of StudyStep
        All steps.
    groups : collection of str
        Groups of the effort, which are used if ``only`` is empty.
    only : collection of str
        Groups or names of methods to run, case-insensitive.
    without : collection of str
        Groups or names of methods to exclude, case-insensitive.

    Raises
    ------
    ValueError
        If a name is unknown, no method is selected, or a sham is selected without its pretraining.
    """
    known = {*GROUPS, "published", *(m.name for step in steps for m in step.methods)}
    lower = {name.lower(): name for name in known}
    if unknown := [name for name in (*only, *without) if name.lower() not in lower]:
        raise ValueError(
            f"only and without got unknown names: {checks.format_list(unknown)}. Use names of "
            f"groups or methods: {', '.join(sorted(known))}."
        )
    wanted, unwanted = ({lower[name.lower()] for name in names} for names in (only, without))
    chosen = []
    for step in steps:
        names = {method: {step.group, method.name} for method in step.methods}
        methods = [m for m in names if names[m] & (wanted or {*groups}) and not names[m] & unwanted]
        chosen += [replace(step, methods=tuple(methods))] if methods else []
    if not chosen:
        raise ValueError(
            "No method is selected by only and without. Select at least one method; the group "
            "'controls' requires the group 'primary'."
        )
    for kinds in ([method.kind for method in step.methods] for step in chosen):
        if "sham" in kinds and "pretrained" not in kinds:
            raise ValueError(
                f"The method {SHAM!r} requires the pretraining of which it is the control, because "
                "both have the same number of steps. Select both, or neither."
            )
    return chosen


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
        Limits of a pretraining, and control analyses.
    steps : list of StudyStep
        Steps in the order in which they are run.
    minutes : list of float
        Expected duration of each step on one core, in minutes; NaN if it was not estimated.
    folder : Path
        Folder of the study.
    about : dict
        Entries that the report lists by name: versions, seeds, digest of the data.
    """

    dataset: str
    check: data_check.DataCheck
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
    def primary(self) -> Method | None:
        """The pretraining of the primary comparison, or None if it is not selected."""
        methods = (m for step in self.steps if step.group == "primary" for m in step.methods)
        return next((method for method in methods if method.kind == "pretrained"), None)

    @property
    def digest(self) -> str:
        """Digest of the data and the design, which identifies the results in the folder."""
        return str(self.about["digest"])
