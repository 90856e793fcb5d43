"""Design of a study: who is tested and who is labeled, the methods, and the steps."""

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
from braindecode_pars._common import checks, subjects
from braindecode_pars.baselines import make_methods
from braindecode_pars.estimators import PARSClassifier, PARSEmbedder, transformers
from braindecode_pars.evaluation import cache, splitting
from braindecode_pars.evaluation.controls import CONTROLS, UNCHANGED
from braindecode_pars.pretext import base
from braindecode_pars.pretrained import cards
from braindecode_pars.study import data_check

#: Pretext tasks that are pretrained in a study; the first one is that of the primary comparison.
TASKS = ("pars", "features")
#: Folds of subjects; each subject is tested once in every draw.
N_FOLDS = 2
#: Random subsets of labeled subjects in each fold, and maximum number of subjects in one of them.
DRAWS, MAX_LABELED = 12, 4
#: Largest proportion of subjects that may be left out so that the others can be centered.
MAX_LEFT_OUT = 0.2
#: Number of channels from which the tangent space is the baseline that is named beforehand.
MIN_CHANNELS_OF_TANGENT_SPACE = 8
#: Duration of a window in seconds from which the bundled encoder of sleep takes part.
SLEEP_SECONDS = 20
#: Maximum number of steps of the task "features", whose loss falls from the first step on.
FEATURES_STEPS = 200
#: Epochs of published networks, which learn nothing in fewer.
PUBLISHED_EPOCHS = 15
#: Smallest gain that is worth a pretraining, in balanced accuracy.
WORTHWHILE_GAIN = 0.02
#: Metric of all scores, as ``study_scores.count_predictions`` computes it, and format of the JSON.
METRIC, FORMAT = "balanced_accuracy", {"study": 2}
#: Names of the methods that the task of the primary comparison is compared with.
SHAM, RANDOM = "sham pretraining", "random initialization"
HAND_CRAFTED, TANGENT = "hand-crafted features", "Riemannian tangent space"
UNLABELED = "unlabeled windows of all subjects who are not tested"
OTHER_SUBJECTS = "recordings of other subjects"
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
        Groups of methods that take part.
    n_pretrainings : int
        Pretrainings of the first task, and random initializations, in each fold; further tasks have
        one less.
    controls : tuple of str
        Control analyses of a gain.
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
    """Choices of a study, as the arguments of :func:`~braindecode_pars.evaluation.study`."""

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
    """A method of a study.

    Attributes
    ----------
    name : str
        Name in tables and figures, unique together with ``pretraining``.
    kind : str
        "pretrained", "sham", "random", "baseline", "bundled", "ensemble" or "network".
    views : tuple of str
        Feature sets of :class:`~braindecode_pars.FewLabelsClassifier`, each with a linear
        classifier; empty for an ``estimator``.
    encoder : str | None
        Bundled or given encoder; None for one that is trained in the study.
    task : str | None
        Pretext task of an encoder that is pretrained in the study.
    pretraining : int
        Seed of the pretraining or of the random initialization.
    estimator : estimator | None
        Classifier of windows, which is trained in each fit.
    references : tuple of str
        Names of the methods that it is compared with.
    additional_data : str
        Data that it uses in addition to the labeled subjects.
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

        It is random if the estimator has no description, so that no other study uses its scores.
        """
        described: Any = self.estimator
        if described is None:
            described = PARSEmbedder(self.task, encoder=self.encoder)
        try:
            return cache.digest(cache.describe_estimator(described))
        except ValueError as error:
            checks.warn_user(f"{self.name} is scored again in every call, because {error}.")
            return secrets.token_hex(6)


@dataclass(frozen=True)
class StudyStep:
    """A part of a study that runs in one process, and is repeated as a whole if interrupted.

    It is for one fold or, with None, for all, on the signals of a control analysis or unchanged
    ones.
    """

    name: str
    group: str
    methods: tuple[Method, ...]
    fold: int | None = None
    control: str = UNCHANGED

    @property
    def slug(self) -> str:
        """Name of the step as a part of file names."""
        return "".join(c if c.isalnum() else "-" for c in self.name.lower())

    @cached_property
    def digest(self) -> str:
        """Digest of its methods."""
        return cache.digest([method.digest for method in self.methods])


@dataclass(frozen=True, eq=False)
class Design:
    """Who is tested, and who is labeled.

    Attributes
    ----------
    corpus : Corpus
        The windows; those of subjects who are left out are unlabeled.
    folds : list of (ndarray, ndarray)
        Training windows of each fold, labeled or not, and its test windows.
    n_labeled, n_sets, n_draws : int
        Labeled subjects of a draw, disjoint sets of one shuffle, and draws.
    by_subject : bool
        Whether each subject has one class.
    is_centered : bool
        Whether methods are scored with subject-centered features, too.
    left_out : dict of str to int
        Subjects with too few windows for centering, and their numbers of windows.
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
        """Class of each labeled subject, by subject; 0 where classes vary within subjects."""
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
    """Divide the subjects into two folds, and choose how many are labeled.

    Subjects are dealt into disjoint sets, so that draws are independent of each other: at least
    three, of at most four subjects. Where each subject has one class, a set has two of each class,
    or one.

    Raises
    ------
    ValueError
        When the training subjects of a fold do not suffice for two sets of ``n_labeled``.
    """
    counts = pd.Series(corpus.groups[corpus.labeled]).value_counts()
    few = counts[counts < transformers.MIN_WINDOWS]
    is_centered = not by_subject and len(few) <= MAX_LEFT_OUT * len(counts)
    left_out = {str(subject): int(n) for subject, n in few.items()} if is_centered else {}
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
        most = max(MAX_LABELED, 2 * n_classes) if by_subject else MAX_LABELED
        n_labeled = max(n_classes, min(most, size // 3) // n_classes * n_classes)
    n_possible = size // n_labeled
    if n_possible < 2:
        raise ValueError(
            f"n_train_subjects is {n_labeled}, but the {size} training subjects of a fold must "
            f"make two disjoint sets. Use {size // 2} or fewer."
        )
    n_sets = max(k for k in range(1, n_possible + 1) if n_draws % k == 0)
    return Design(corpus, folds, n_labeled, n_sets, n_draws, by_subject, is_centered, left_out)


def main_classes(corpus: splitting.Corpus) -> pd.Series:
    """Return the most frequent class of each labeled subject, since few may have several."""
    y, subjects = corpus.y[corpus.labeled], corpus.groups[corpus.labeled]
    return pd.Series(y).groupby(subjects).agg(lambda labels: labels.mode()[0])


def folds_of(corpus: splitting.Corpus, *, by_subject: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Divide the labeled subjects into folds; unlabeled windows are in every training set."""
    labeled = np.flatnonzero(corpus.labeled)
    _, codes = np.unique(corpus.groups[labeled].astype(str), return_inverse=True)
    kind = StratifiedGroupKFold if by_subject else GroupKFold
    folds = []
    splitter = kind(N_FOLDS, shuffle=True, random_state=0)
    for _, test in splitter.split(labeled, corpus.y[labeled], codes):
        tested = corpus.rows_of(corpus.groups[labeled[test]].tolist())
        folds.append((np.setdiff1d(np.arange(len(corpus.y)), tested), labeled[test]))
    return folds


def shown_task(task: str) -> str:
    """Return the name of a pretext task in tables: PARS, MAE, features, or its class in a file."""
    name = base.find_task(task).__name__
    return name if name.lower() == task.lower() else task.rpartition(":")[2]


def usable_encoders(
    encoders: Mapping[str, Any] | None, corpus: splitting.Corpus
) -> tuple[dict[str, Any], list[str]]:
    """Return the encoders that fit the windows and saw none of the subjects, and why not others.

    None means ``small`` and, for windows as long as in sleep staging, ``pars-sleep``. One warning
    says which subjects an encoder may have seen, where a corpus is unknown.
    """
    if encoders is None:
        is_sleep = corpus.X[0].shape[1] >= SLEEP_SECONDS * (corpus.X.sfreq or np.inf)
        encoders = {name: name for name in ("small", *["pars-sleep"] * is_sleep)}
    usable, reasons, usable_cards = {}, [], {}
    for name, encoder in encoders.items():
        card = pretrained.load_encoder(encoder).card
        seen = subjects.SeenSubjects(card.seen_subjects)
        n_seen = sum(subject in seen for subject in corpus.corpus_subjects.values())
        if card.sfreq not in (None, corpus.X.sfreq):
            reasons.append(
                f"Encoder {name}: it requires {card.sfreq:g} Hz, but the windows have "
                f"{corpus.X.sfreq:g} Hz. Read the recordings with sfreq={card.sfreq:g}."
            )
        elif n_seen:
            reasons.append(f"Encoder {name}: it was pretrained on {n_seen} of the subjects.")
        else:
            usable[name], usable_cards[name] = encoder, [card]
    cards.warn_unknown_corpora(usable_cards, corpus.corpus_subjects.values())
    return usable, reasons


def step_limit(task: str, max_steps: int) -> int:
    """Return the maximum number of steps of a pretraining with a task."""
    return min(max_steps, FEATURES_STEPS) if task == "features" else max_steps


def baseline_name(n_chans: int) -> str:
    """Return the baseline that is named beforehand for a number of channels."""
    return TANGENT if n_chans >= MIN_CHANNELS_OF_TANGENT_SPACE else HAND_CRAFTED


def make_steps(
    n_chans: int,
    tasks: Sequence[str],
    encoders: Mapping[str, Any],
    further: Mapping[str, BaseEstimator],
    n_pretrainings: int = 3,
) -> list[StudyStep]:
    """Return all steps of a study in their order.

    Baselines are the first, since they take seconds, and then the primary comparison.

    Parameters
    ----------
    n_chans : int
        Number of channels; with a single one, there is no tangent space.
    tasks : sequence of str
        Pretext tasks; the first one is that of the primary comparison, and of the networks.
    encoders : mapping of str to encoder
        Encoders that were pretrained on other data.
    further : mapping of str to estimator
        Baselines of the user.
    n_pretrainings : int
        Pretrainings of the first task in each fold; further tasks have one less.

    Raises
    ------
    ValueError
        When two methods have one name.
    """
    steps = [
        *_baseline_steps(n_chans, further),
        *_pretraining_steps(tasks[0], "primary", n_pretrainings),
        *(step for t in tasks[1:] for step in _pretraining_steps(t, "tasks", n_pretrainings - 1)),
        *_bundled_steps(n_chans, encoders),
        *_network_steps(n_chans, tasks[0]),
    ]
    names = [step.methods[0].name.lower() for step in steps if step.fold is None]
    if twice := [name for name in further if names.count(name.lower()) > 1]:
        raise ValueError(f"Two methods are called {twice[0]!r}. Give one of them another name.")
    return steps


def _pretraining_steps(task: str, group: str, n_pretrainings: int) -> Iterator[StudyStep]:
    """Yield a pretraining and its sham, in the primary group also a random initialization."""
    name = f"{shown_task(task)} pretraining"
    sham = SHAM if group == "primary" else f"{SHAM} of {shown_task(task)}"
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
    """Yield a network from scratch and one that is fine-tuned in the same way, in each fold."""
    alike: dict[str, Any] = dict(head="auto", head_epochs=0, encoder_lr_factor=1.0, verbose=0)
    scratch = Method("from scratch", "network", estimator=PARSClassifier(None, **alike))
    tuned = Method(
        f"{shown_task(task)}, fine-tuned",
        "network",
        task=task,
        estimator=PARSClassifier(None, **alike),
        references=(scratch.name,),
        additional_data=UNLABELED,
    )
    for fold in range(N_FOLDS):
        yield StudyStep(f"networks, fold {fold + 1}", "networks", (scratch, tuned), fold)
    names = ["eegnet", *["shallow"] * (n_chans > 1)]
    for name, estimator in make_methods(names, finetune_epochs=PUBLISHED_EPOCHS).items():
        yield StudyStep(name, "published", (Method(name, "network", estimator=estimator),))


def choose_steps(
    steps: Sequence[StudyStep],
    groups: Collection[str],
    only: Collection[str] = (),
    without: Collection[str] = (),
) -> list[StudyStep]:
    """Return the steps with the methods that take part.

    Parameters
    ----------
    steps : sequence of StudyStep
        All steps.
    groups : collection of str
        Groups of the effort, where ``only`` does not choose others.
    only, without : collection of str
        Names of groups or methods, in any case.

    Raises
    ------
    ValueError
        When a name is unknown, nothing is left, or a sham is without its pretraining.
    """
    known = {*GROUPS, "published", *(m.name for step in steps for m in step.methods)}
    lower = {name.lower(): name for name in known}
    if unknown := [name for name in (*only, *without) if name.lower() not in lower]:
        raise ValueError(
            f"{checks.format_list(unknown)} is no method of this study. Use names of groups or methods: "
            f"{', '.join(sorted(known))}."
        )
    wanted, unwanted = ({lower[name.lower()] for name in names} for names in (only, without))
    chosen = []
    for step in steps:
        names = {method: {step.group, method.name} for method in step.methods}
        methods = [m for m in names if names[m] & (wanted or {*groups}) and not names[m] & unwanted]
        chosen += [replace(step, methods=tuple(methods))] if methods else []
    if not chosen:
        raise ValueError("No method is left. Change only or without; controls need primary.")
    for kinds in ([method.kind for method in step.methods] for step in chosen):
        if "sham" in kinds and "pretrained" not in kinds:
            raise ValueError(f"{SHAM} needs the pretraining whose steps it has. Choose both.")
    return chosen


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """A study that can be run.

    Attributes
    ----------
    dataset : str
        Name of the recordings.
    check : DataCheck
        Findings about the recordings.
    design : Design
        Who is tested and who is labeled.
    effort : Effort
        Limits of a pretraining, and control analyses of a gain.
    steps : list of StudyStep
        The steps in their order.
    minutes : list of float
        Expected minutes of each step on one core; NaN if they were not estimated.
    folder : Path
        Folder of the study.
    about : dict
        Name and value of what the report lists: versions, seeds, digest of the data.
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
        """A row for each step: ``step``, ``group``, ``methods`` and ``minutes``."""
        rows = [(s.name, s.group, ", ".join(m.name for m in s.methods)) for s in self.steps]
        table = pd.DataFrame(rows, columns=["step", "group", "methods"])
        return table.assign(minutes=self.minutes)

    @property
    def primary(self) -> Method | None:
        """The pretraining of the primary comparison; None if it does not take part."""
        methods = (m for step in self.steps if step.group == "primary" for m in step.methods)
        return next((method for method in methods if method.kind == "pretrained"), None)

    @property
    def digest(self) -> str:
        """Digest of the data and the design, which results in the folder belong to."""
        return str(self.about["digest"])
