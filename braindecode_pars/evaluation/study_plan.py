"""Plan of a study: its steps with their expected duration."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from braindecode_pars._common import checks, files
from braindecode_pars.estimators import PARSEmbedder, linear_probe, transformers
from braindecode_pars.evaluation import cache, data_check, splitting, study_design, study_scores
from braindecode_pars.evaluation.study_design import Design, Method, StudyPlan, StudyStep
from braindecode_pars.pretext import base


def plan_study(
    windows_ds: Any,
    check: data_check.DataCheck,
    methods: Mapping[str, BaseEstimator] | None = None,
    *,
    out: str | Path,
    effort: str = "default",
    tasks: Sequence[str] = study_design.TASKS,
    encoders: Mapping[str, Any] | None = None,
    n_train_subjects: int | None = None,
    draws: int = study_design.DRAWS,
    minutes: float | None = None,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    dataset: str = "recordings",
    unlabeled_label: Any = "auto",
) -> StudyPlan:
    """Choose design and methods, and estimate the duration in about half a minute.

    The arguments are those of :func:`~braindecode_pars.evaluation.study`; ``check`` has no stops.
    """
    extent = study_design.EFFORTS[effort]
    corpus = splitting.Corpus.of(windows_ds, dataset, unlabeled_label)
    design = study_design.make_design(
        corpus, by_subject=check.by_subject, n_labeled=n_train_subjects, n_draws=draws
    )
    usable, reasons = study_design.usable_encoders(encoders, corpus)
    every = list(
        study_design.make_steps(
            len(corpus.X[0]), tasks, usable, methods or {}, extent.n_pretrainings
        )
    )
    steps = study_design.choose_steps(every, extent.groups, only, without)
    limits: dict[str, Any] = dict(max_steps=extent.max_steps, max_minutes=minutes or extent.minutes)
    # What the scores of a step depend on, so that a folder never mixes two settings
    settings = (draws, design.n_labeled, design.left_out, limits, study_design.FEATURES_STEPS)
    digest = cache.digest(cache.describe_corpus(corpus), settings, cache.versions())
    about: dict[str, Any] = dict(
        digest=digest,
        n_labeled_subjects=design.n_labeled,
        design=(
            f"{len(design.folds)} folds of subjects; {draws} draws of {design.n_labeled} labeled "
            f"subjects, dealt into {design.n_sets} disjoint sets; "
            f"{extent.n_pretrainings} pretrainings. Networks have {design.n_sets} draws"
        ),
        pretraining=(
            f"until the held-out loss no longer falls, at most {extent.max_steps:,} steps and "
            f"{limits['max_minutes']:g} minutes; the sham has the same number of steps"
        ),
        regularization="C of each linear classifier is chosen on its labeled subjects",
        effort=effort,
        seeds="0, 1, ... of draws and pretrainings; 0 of the folds",
        versions=cache.versions(),
        date=time.strftime("%Y-%m-%d"),
        left_out=reasons,
    )
    if design.left_out:
        names = [f"{subject} ({n})" for subject, n in design.left_out.items()]
        reasons.append(
            f"Subjects with fewer than {transformers.MIN_WINDOWS} labeled windows, which centering "
            f"requires; their windows are used without labels: {checks.listed(names, most=20)}."
        )
    elif not (design.is_centered or design.by_subject):
        reasons.append(
            "Subject-centered features: too many subjects have fewer than "
            f"{transformers.MIN_WINDOWS} labeled windows."
        )
    folder = Path(out).expanduser()
    files.replace_file(folder / "study.json", files.to_json(study_design.FORMAT))
    return StudyPlan(
        dataset=dataset,
        check=check,
        design=design,
        steps=steps,
        minutes=estimate_minutes(steps, design, extent.max_steps),
        controls=extent.controls if "controls" in {*(only or extent.groups)} - {*without} else (),
        folder=folder,
        about=about,
        **limits,
    )


def check_study(
    effort: str, draws: int, tasks: Sequence[str], minutes: float | None, out: str | Path | None
) -> None:
    """Check the arguments of a study, and that its folder has nothing else, before all else."""
    checks.choice(*study_design.EFFORTS).check("effort", effort)
    # Disjoint sets come in equal numbers from each shuffle, so that their variance can be estimated
    checks.Rule("an even number", (int,), lambda n: n > 0 and n % 2 == 0).check("draws", draws)
    checks.optional(checks.positive()).check("minutes", minutes)
    splitting.check_list("tasks", tasks, checks.instance("names of pretext tasks", str))
    for task in tasks:
        base.find_task(task)
    if out is not None:
        folder = Path(out).expanduser()
        files.check_may_write(folder, "a study", is_ours=(folder / "study.json").is_file())


# Duration -----------------------------------------------------------------------------------------

#: Windows on which features are timed, and on which steps of a pretraining are.
TIMED_WINDOWS, TIMED_TRAINING_WINDOWS = 16, 96


def estimate_minutes(steps: Sequence[StudyStep], design: Design, max_steps: int) -> list[float]:
    """Return the expected minutes of each step on one core; NaN where a network is trained.

    Steps of a pretraining, features and a linear fit are timed on few windows, and multiplied by
    their numbers in the study.
    """
    seconds: dict[tuple, tuple[float, float]] = {}
    minutes = []
    for step in steps:
        total = 0.0
        for method in step.methods:
            key = (method.views, method.encoder, method.task)
            if key not in seconds:
                seconds[key] = _seconds_of(method, design, max_steps)
            before, features = seconds[key]
            total += before + features
        minutes.append(total / 60)
    return minutes


def _seconds_of(method: Method, design: Design, max_steps: int) -> tuple[float, float]:
    """Return the seconds of a pretraining, and of the features with all fits of a method."""
    if method.estimator is not None:
        return math.nan, math.nan
    corpus, rows = design.corpus, design.labeled_rows(0, 0)
    few = corpus.X[rows[:TIMED_WINDOWS]]
    pretraining = 0.0
    if method.task is not None:
        windows = corpus.X[np.arange(min(len(corpus.X), TIMED_TRAINING_WINDOWS))]
        n_steps = math.ceil(len(windows) / PARSEmbedder.pretrain_batch_size)
        with warnings.catch_warnings(action="ignore"):  # nothing can be learned in so few steps
            durations = [
                _duration(PARSEmbedder(method.task, pretrain_epochs=n, verbose=0).fit, windows)
                for n in (1, 1, 4)
            ]
        pretraining = max(0.0, durations[2] - durations[1]) / (3 * n_steps)
        pretraining *= study_design.step_limit(method.task, max_steps)
    encoder = method.encoder or PARSEmbedder(None, verbose=0).fit(few)
    features = study_scores.features_of(method, few, encoder)
    again = _duration(study_scores.features_of, method, few, encoder)
    n_features = sum(math.prod(values.shape[1:]) for values in features.values())
    labels = corpus.y[rows]
    noise = np.random.default_rng(0).normal(size=(len(rows), n_features))
    folds = linear_probe.folds_by_subject(pd.factorize(corpus.groups[rows])[0], labels)
    unfitted = linear_probe.logistic_regression(None, "balanced")
    fit = _duration(linear_probe.fit_searched, unfitted, noise, labels, folds)
    n_fits = design.n_draws * (1 + design.is_centered) * len(design.folds)
    if method.encoder is None and "encoder" in method.views:  # an encoder for each fold
        n_fits //= len(design.folds)
    return pretraining, again / len(few) * corpus.labeled.sum() + fit * n_fits


def _duration(function: Callable[..., Any], *arguments: Any) -> float:
    begin = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begin
