"""Plan of a study: its steps with their expected duration."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from timeit import timeit
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from braindecode_pars._common import checks, files, model_files
from braindecode_pars.baselines import linear_probe
from braindecode_pars.estimators import PARSEmbedder, transformers
from braindecode_pars.evaluation import cache, splitting
from braindecode_pars.study import data_check, study_design, study_scores
from braindecode_pars.study.study_design import (
    Design,
    Effort,
    Method,
    Settings,
    StudyPlan,
    StudyStep,
)


def plan_study(
    windows_ds: Any,
    check: data_check.DataCheck,
    settings: Settings,
    methods: Mapping[str, BaseEstimator] | None = None,
    *,
    out: str | Path,
    dataset: str = "recordings",
    unlabeled_label: Any = "auto",
) -> StudyPlan:
    """Choose design and methods, and estimate the duration in about half a minute.

    The arguments are those of :func:`~braindecode_pars.evaluation.study`; ``check`` has no stops.
    """
    effort = study_design.EFFORTS[settings.effort]
    effort = replace(effort, minutes=settings.minutes or effort.minutes)
    corpus = splitting.Corpus.of(windows_ds, dataset, unlabeled_label)
    design = study_design.make_design(
        corpus,
        by_subject=check.by_subject,
        n_labeled=settings.n_train_subjects,
        n_draws=settings.draws,
    )
    encoders, reasons = study_design.usable_encoders(settings.encoders, corpus)
    every = study_design.make_steps(
        len(corpus.X[0]), settings.tasks, encoders, methods or {}, effort.n_pretrainings
    )
    steps = study_design.choose_steps(every, effort.groups, settings.only, settings.without)
    chosen = {name.lower() for name in settings.only or effort.groups}
    if "controls" not in chosen - {name.lower() for name in settings.without}:
        effort = replace(effort, controls=())
    # What the scores of a step depend on, so that a folder never mixes two settings
    limits = dict(max_steps=effort.max_steps, max_minutes=effort.minutes)
    used = (settings.draws, design.n_labeled, design.left_out, limits, study_design.FEATURES_STEPS)
    is_network = [method.kind == "network" for step in steps for method in step.methods]
    networks = f". Networks have {design.n_sets} draws" if any(is_network) else ""
    labeled = f"{design.n_labeled} labeled subject{'s' * (design.n_labeled > 1)}"
    about: dict[str, Any] = dict(
        digest=cache.digest(cache.describe_corpus(corpus), used, cache.versions()),
        n_labeled_subjects=design.n_labeled,
        design=(
            f"{len(design.folds)} folds of subjects; {settings.draws} draws of {labeled}, dealt "
            f"into {design.n_sets} disjoint sets; {effort.n_pretrainings} pretrainings{networks}"
        ),
        pretraining=(
            f"until the held-out loss no longer falls, at most {effort.max_steps:,} steps and "
            f"{effort.minutes:g} minutes; the sham has the same number of steps"
        ),
        regularization="C of each linear classifier is chosen on its labeled subjects",
        effort=settings.effort,
        seeds="0, 1, ... of draws and pretrainings; 0 of the folds",
        versions=cache.versions(),
        date=time.strftime("%Y-%m-%d"),
        left_out=reasons,
    )
    if design.left_out:
        names = [f"{subject} ({n})" for subject, n in design.left_out.items()]
        reasons.append(
            f"Subjects with fewer than {transformers.MIN_WINDOWS} labeled windows, which centering "
            f"requires; their windows are used without labels: {checks.format_list(names, max_items=20)}."
        )
    elif not (design.is_centered or design.by_subject):
        reasons.append(
            "Subject-centered features: too many subjects have fewer than "
            f"{transformers.MIN_WINDOWS} labeled windows."
        )
    folder = Path(out).expanduser()
    files.replace_file(folder / "study.json", files.to_json(study_design.FORMAT))
    minutes = estimate_minutes(steps, design, effort)
    return StudyPlan(dataset, check, design, effort, steps, minutes, folder, about)


def check_settings(
    settings: Settings, out: str | Path | None, methods: Mapping[str, BaseEstimator] | None = None
) -> None:
    """Check the arguments of a study, and that its folder has nothing else, before all else."""
    checks.choice(*study_design.EFFORTS).check("effort", settings.effort)
    # Disjoint sets come in equal numbers from each shuffle, so that their variance can be estimated
    is_even = checks.ParameterRule("an even number", (int,), lambda n: n > 0 and n % 2 == 0)
    is_even.check("draws", settings.draws)
    checks.optional(checks.positive()).check("minutes", settings.minutes)
    splitting.check_list("tasks", settings.tasks, checks.instance("names of pretext tasks", str))
    # Several channels and all bundled encoders have all methods that a study may have.
    encoders = {"small": "small", "pars-sleep": "pars-sleep", **(settings.encoders or {})}
    every = study_design.make_steps(2, settings.tasks, encoders, methods or {})
    groups = study_design.EFFORTS[settings.effort].groups
    study_design.choose_steps(every, groups, settings.only, settings.without)
    if out is not None:
        folder = Path(out).expanduser()
        files.check_may_write(folder, "a study", is_ours=(folder / "study.json").is_file())
        kinds = model_files.kinds_in(model := folder / "model")
        described: Any = model_files.read_model(model).description if kinds else {}
        if kinds and "expected_score" not in described.get(model_files.ENTRIES.get(kinds[0]), ()):
            raise ValueError(
                f"{model} contains a {kinds[0]} of no study, which would be replaced. Move it away."
            )


# Duration -----------------------------------------------------------------------------------------

#: Windows on which features are timed, and on which steps of a pretraining are.
TIMED_WINDOWS, TIMED_TRAINING_WINDOWS = 16, 96


def estimate_minutes(steps: Sequence[StudyStep], design: Design, effort: Effort) -> list[float]:
    """Return the expected minutes of each step on one core; NaN where a network is trained.

    Steps of a pretraining, features and a linear fit are timed on few windows, and multiplied by
    their numbers in the study.
    """
    seconds: dict[tuple, float] = {}
    minutes = []
    for step in steps:
        keys = [(method.views, method.encoder, method.task) for method in step.methods]
        for key, method in zip(keys, step.methods, strict=True):
            if key not in seconds:
                with warnings.catch_warnings(action="ignore"):  # the steps have them, too
                    seconds[key] = _seconds_of(method, design, effort)
        minutes.append(sum(seconds[key] for key in keys) / 60)
    return minutes


def _seconds_of(method: Method, design: Design, effort: Effort) -> float:
    """Return the seconds of the pretraining, the features and all fits of a method."""
    if method.estimator is not None:
        return math.nan
    corpus, rows = design.corpus, design.labeled_rows(0, 0)
    few = corpus.X[rows[:TIMED_WINDOWS]]
    pretraining = 0.0
    if method.task is not None:
        windows = corpus.X[np.arange(min(len(corpus.X), TIMED_TRAINING_WINDOWS))]
        n_steps = math.ceil(len(windows) / PARSEmbedder.pretrain_batch_size)
        fits = [
            partial(PARSEmbedder(method.task, pretrain_epochs=n, verbose=0).fit, windows)
            for n in (1, 1, 4)
        ]
        _, short, long = (timeit(fit, number=1) for fit in fits)
        of_step = max(0.0, long - short) / (3 * n_steps)
        limit = study_design.step_limit(method.task, effort.max_steps)
        pretraining = min(of_step * limit, 60 * effort.minutes)
    encoder = method.encoder or PARSEmbedder(None, verbose=0).fit(few)
    features = study_scores.features_of(method, few, encoder)
    again = timeit(partial(study_scores.features_of, method, few, encoder), number=1)
    n_features = sum(math.prod(values.shape[1:]) for values in features.values())
    labels = corpus.y[rows]
    noise = np.random.default_rng(0).normal(size=(len(rows), n_features))
    folds = linear_probe.folds_by_subject(pd.factorize(corpus.groups[rows])[0], labels)
    unfitted = linear_probe.logistic_regression(None, "balanced")
    fit = timeit(partial(linear_probe.fit_searched, unfitted, noise, labels, folds), number=1)
    n_fits = design.n_draws * (1 + design.is_centered) * len(design.folds)
    if method.encoder is None and "encoder" in method.views:  # an encoder for each fold
        n_fits //= len(design.folds)
    return pretraining + again / len(few) * corpus.labeled.sum() + fit * n_fits
