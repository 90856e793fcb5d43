"""Methods that a study compares, and the steps in which these methods are scored."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from braindecode_pars import pretrained
from braindecode_pars._common import checks, names
from braindecode_pars.baselines import make_methods
from braindecode_pars.estimators import PARSClassifier, PARSEmbedder
from braindecode_pars.evaluation import cache, leaks, splitting
from braindecode_pars.evaluation.controls import UNCHANGED
from braindecode_pars.pretext import base
from braindecode_pars.pretrained import cards

#: Pretext tasks of a study. The first task is used in the primary comparison.
TASKS = ("pars", "features")
#: Groups of methods that ``effort="default"`` includes. "controls" are the control analyses.
GROUPS = ("baselines", "primary", "tasks", "bundled", "ensemble", "networks", "controls")
#: Number of folds of subjects. Each subject is a test subject in one fold.
N_FOLDS = 2
#: Minimum number of channels for which the tangent space is the baseline specified in advance.
MIN_CHANNELS_OF_TANGENT_SPACE = 8
#: Minimum duration of a window, in seconds, for which the bundled encoder pars-sleep is included.
SLEEP_SECONDS = 20
#: Number of epochs for which published networks are trained. With fewer, they do not learn.
PUBLISHED_EPOCHS = 15
#: Name of the encoder that is pretrained in the same way, but each window has the targets of
#: another window.
SHAM = "sham pretraining"
#: Name of the encoder without pretraining.
RANDOM = "random initialization"
#: Name of the baseline that is specified in advance if there are few channels.
HAND_CRAFTED = "hand-crafted features"
#: Name of the baseline that is specified in advance if there are many channels.
TANGENT = "Riemannian tangent space"


@dataclass(frozen=True)
class Method:
    """Method that a study scores.

    Attributes
    ----------
    name : str
        Name of the method in tables and figures. Methods with the same name differ in
        ``pretraining``.
    kind : str
        "pretrained", "sham", "random", "baseline", "bundled", "ensemble" or "network".
    views : tuple of str
        Names of the feature sets, as in :class:`~braindecode_pars.FewLabelsClassifier`. A separate
        linear classifier is trained on each feature set. Empty if the method has an ``estimator``.
    encoder : str | None
        Encoder that was pretrained on other data. None if the encoder is trained in the study, or
        if the method does not use an encoder.
    task : str | None
        Pretext task with which the encoder is pretrained on this dataset. None if the method does
        not pretrain an encoder.
    pretraining : int
        Seed of pretraining or of the random initialization.
    estimator : estimator | None
        Classifier that is trained on the windows of each draw of labeled subjects. None if the
        method has ``views``.
    references : tuple of str
        Names of the methods to which this method is compared.
    """

    name: str
    kind: str
    views: tuple[str, ...] = ()
    encoder: str | None = None
    task: str | None = None
    pretraining: int = 0
    estimator: BaseEstimator | None = field(default=None, compare=False)
    references: tuple[str, ...] = ()

    @property
    def additional_data(self) -> str:
        """Data that the method uses in addition to the windows of the labeled subjects."""
        if self.task is not None:
            return "unlabeled windows of all subjects except the test subjects"
        return "" if self.encoder is None else "pretraining data of the encoder"

    @cached_property
    def digest(self) -> str:
        """Digest of the classifier, encoder or pretext task, which identifies stored scores.

        If no digest can be computed for a parameter of the classifier, the digest is random, so
        that stored scores are not reused.
        """
        estimator: Any = self.estimator
        if estimator is None:
            estimator = PARSEmbedder(self.task, encoder=self.encoder)
        try:
            return cache.digest(cache.describe_estimator(estimator))
        except ValueError as error:
            checks.warn_user(
                f"The scores of the method {self.name!r} are not reused if the study is repeated, "
                f"because its estimator cannot be identified: {error}."
            )
            return secrets.token_hex(6)


@dataclass(frozen=True)
class StudyStep:
    """Step of a study: methods that are scored together, in one process.

    If a step is interrupted, it starts again from the beginning.

    Attributes
    ----------
    name : str
        Name of the step.
    group : str
        Group of methods, such as "primary".
    methods : tuple of Method
        Methods that are scored.
    fold : int | None
        Index of the fold in which the methods are scored. If None, the methods are scored in all
        folds.
    control : str
        Name of the control signal on which the methods are scored. By default, the methods are
        scored on the recorded signals.
    """

    name: str
    group: str
    methods: tuple[Method, ...]
    fold: int | None = None
    control: str = UNCHANGED


def make_steps(
    n_chans: int,
    tasks: Sequence[str],
    encoders: Mapping[str, Any],
    further: Mapping[str, BaseEstimator],
    n_pretrainings: int = 3,
) -> list[StudyStep]:
    """Return all steps of a study in the order in which they are run.

    The first steps score the baselines, which takes seconds. The next steps are the primary
    comparison.

    Parameters
    ----------
    n_chans : int
        Number of channels. With one channel, the tangent space is omitted.
    tasks : sequence of str
        Pretext tasks. The first task is used in the primary comparison and by the networks.
    encoders : mapping of str to encoder
        Encoders pretrained on other data, by name.
    further : mapping of str to estimator
        Additional baselines from the user, by name.
    n_pretrainings : int
        Number of encoders that are pretrained with the first task in each fold. For each further
        task, one encoder fewer is pretrained.

    Returns
    -------
    list of StudyStep
        All steps; :func:`choose_steps` selects from them.

    Raises
    ------
    ValueError
        If two methods have the same name.
    """
    baselines = {"log band power": "band_power", HAND_CRAFTED: "hand_crafted"}
    networks = ["eegnet"]
    if n_chans > 1:
        baselines[TANGENT] = "tangent_space"
        networks.append("shallow")
    published = make_methods(networks, finetune_epochs=PUBLISHED_EPOCHS)
    steps = [
        *(_step("baselines", name, "baseline", (view,)) for name, view in baselines.items()),
        *(_step("baselines", name, "baseline", estimator=clf) for name, clf in further.items()),
        *_pretraining_steps(tasks[0], "primary", n_pretrainings),
        *(step for t in tasks[1:] for step in _pretraining_steps(t, "tasks", n_pretrainings - 1)),
        *_bundled_steps(n_chans, encoders),
        *_network_steps(tasks[0]),
        *(_step("published", name, "network", estimator=clf) for name, clf in published.items()),
    ]
    names = [step.methods[0].name.lower() for step in steps if step.fold is None]
    if repeated := [name for name in further if names.count(name.lower()) > 1]:
        raise ValueError(
            f"The name {repeated[0]!r} in methods is already the name of another method of the "
            "study. Use a different name."
        )
    return steps


def _step(
    group: str, name: str, kind: str, views: tuple[str, ...] = (), **fields: Any
) -> StudyStep:
    """Return a step with a single method, which is scored in all folds."""
    return StudyStep(name, group, (Method(name, kind, views, **fields),))


def _pretraining_steps(task: str, group: str, n_pretrainings: int) -> Iterator[StudyStep]:
    """Yield the steps that compare pretraining with sham pretraining.

    Each step has one seed and one fold. In the group "primary", a random encoder is also compared.
    """
    name = f"{task_label(task)} pretraining"
    sham = SHAM if group == "primary" else f"{SHAM} of {task_label(task)}"
    for seed in range(n_pretrainings):
        shared: dict[str, Any] = dict(views=("encoder",), pretraining=seed)
        methods = [
            Method(name, "pretrained", task=task, references=(sham, RANDOM), **shared),
            Method(sham, "sham", task=task, **shared),
        ]
        if group == "primary":
            methods.append(Method(RANDOM, "random", **shared))
        for fold in range(N_FOLDS):
            yield StudyStep(f"{name} {seed + 1}, fold {fold + 1}", group, tuple(methods), fold)


def _bundled_steps(n_chans: int, encoders: Mapping[str, Any]) -> Iterator[StudyStep]:
    for name, encoder in encoders.items():
        yield _step(
            "bundled",
            f"{name} (pretrained on other data)",
            "bundled",
            ("encoder",),
            encoder=encoder,
            references=(RANDOM,),
        )
    if "small" in encoders:
        yield _step(
            "ensemble",
            "feature ensemble",
            "ensemble",
            ("encoder", *["tangent_space"] * (n_chans > 1), "band_power"),
            encoder=encoders["small"],
            references=(baseline_name(n_chans),),
        )


def _network_steps(task: str) -> Iterator[StudyStep]:
    """Yield the steps of networks: trained from scratch, and fine-tuned with the same settings."""
    classifier = PARSClassifier(None, head="auto", head_epochs=0, encoder_lr_factor=1.0, verbose=0)
    scratch = Method("from scratch", "network", estimator=classifier)
    fine_tuned = Method(
        f"{task_label(task)}, fine-tuned",
        "network",
        task=task,
        estimator=classifier,
        references=(scratch.name,),
    )
    for fold in range(N_FOLDS):
        yield StudyStep(f"networks, fold {fold + 1}", "networks", (scratch, fine_tuned), fold)


def task_label(task: str) -> str:
    """Return the name of a pretext task in tables, such as PARS, MAE or features."""
    name = base.find_task(task).__name__
    return name if name.lower() == task.lower() else task.rpartition(":")[2]


def baseline_name(n_chans: int) -> str:
    """Return the name of the baseline that is specified in advance for a number of channels."""
    return TANGENT if n_chans >= MIN_CHANNELS_OF_TANGENT_SPACE else HAND_CRAFTED


def choose_steps(
    steps: Sequence[StudyStep],
    groups: Collection[str],
    only: Collection[str] = (),
    without: Collection[str] = (),
) -> list[StudyStep]:
    """Return the steps that contain selected methods, with only these methods.

    Parameters
    ----------
    steps : sequence of StudyStep
        All steps.
    groups : collection of str
        Groups of methods to run if ``only`` is empty.
    only : collection of str
        Names of methods or of groups of methods to run, case-insensitive.
    without : collection of str
        Names of methods or of groups of methods to exclude, case-insensitive.

    Returns
    -------
    list of StudyStep
        Steps with at least one selected method.

    Raises
    ------
    ValueError
        If a name is unknown, or if no method is selected.
    """
    known = {*GROUPS, "published", *(m.name for step in steps for m in step.methods)}
    lower_case = {name.lower() for name in known}
    if unknown := [name for name in (*only, *without) if name.lower() not in lower_case]:
        raise ValueError(
            f"only= or without= contains unknown names: {checks.format_list(unknown)}. Use the "
            f"following names of methods or of groups of methods: {', '.join(sorted(known))}."
        )
    wanted, unwanted = ({name.lower() for name in names} for names in (only or groups, without))
    chosen = []
    for step in steps:
        names_of = {method: {step.group, method.name.lower()} for method in step.methods}
        methods = [m for m, names in names_of.items() if names & wanted and not names & unwanted]
        if methods:
            chosen.append(replace(step, methods=tuple(methods)))
    if not chosen:
        raise ValueError(
            "No method is selected by only= and without=. Select at least one method. The control "
            "analyses (group 'controls') require the group 'primary': to run them, select both "
            "groups."
        )
    return chosen


def make_control_steps(steps: Sequence[StudyStep], controls: Sequence[str]) -> list[StudyStep]:
    """Return the steps that repeat the primary comparison on control signals.

    The first step repeats the primary comparison on the recorded signals, for comparison.

    Parameters
    ----------
    steps : sequence of StudyStep
        Steps of the study, including the primary comparison.
    controls : sequence of str
        Names of the control analyses.

    Returns
    -------
    list of StudyStep
        Steps; empty if there are no control analyses.
    """
    primary = [m for step in steps if step.group == "primary" for m in step.methods]
    methods = tuple(dict.fromkeys(m for m in primary if m.kind in ("pretrained", "sham")))
    return [
        StudyStep(f"control {name}", "controls", methods, control=name)
        for name in (UNCHANGED, *controls)
        if controls
    ]


def usable_encoders(
    encoders: Mapping[str, Any] | None, corpus: splitting.Corpus
) -> tuple[dict[str, Any], list[str]]:
    """Select the encoders that a study can use, and explain why other encoders are excluded.

    An encoder is excluded if it requires a different sampling rate than the sampling rate of the
    windows, or if it was pretrained on subjects of this dataset. If it is unknown from which corpus
    (public collection of recordings) this dataset or the pretraining data of an encoder come, a
    warning lists the subjects of this dataset on which the encoder may have been pretrained.

    Parameters
    ----------
    encoders : mapping of str to encoder | None
        Encoders to check, by name. If None, the bundled encoder ``small`` is checked and, if the
        windows have a duration of at least 20 s, also the bundled encoder ``pars-sleep``.
    corpus : Corpus
        Windows of the study.

    Returns
    -------
    usable : dict of str to encoder
        Encoders that can be used, by name.
    reasons : list of str
        For each excluded encoder, a message with the reason.
    """
    if encoders is None:
        is_sleep = corpus.X[0].shape[1] >= SLEEP_SECONDS * (corpus.X.sfreq or np.inf)
        rows = names.ENCODERS.items()
        encoders = {name: name for name, row in rows if is_sleep or "sleep" not in row.flags}
    usable, reasons, usable_cards = {}, [], {}
    for name, encoder in encoders.items():
        card = pretrained.load_encoder(encoder).card
        n_seen = len(leaks.leaked_subjects_on_cards([card], corpus.corpus_subjects))
        if card.sfreq not in (None, corpus.X.sfreq):
            reasons.append(
                f"Encoder {name!r} was excluded, because it requires a sampling rate of "
                f"{card.sfreq:g} Hz, but the windows are sampled at {corpus.X.sfreq:g} Hz. To "
                f"include the encoder, load the recordings with sfreq={card.sfreq:g}."
            )
        elif n_seen:
            reasons.append(
                f"Encoder {name!r} was excluded, because it was pretrained on {n_seen} of the "
                "subjects of this dataset (data leakage)."
            )
        else:
            usable[name], usable_cards[name] = encoder, [card]
    cards.warn_unknown_corpora(usable_cards, corpus.corpus_subjects.values())
    return usable, reasons
