"""Plan a study: choose design and methods, and estimate the duration of each step."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from timeit import timeit
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from braindecode_pars._common import checks, files, model_files, names
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.estimators import PARSEmbedder, transformers, windows_estimator
from braindecode_pars.evaluation import cache, splitting
from braindecode_pars.study import study_design, study_scores
from braindecode_pars.study.data_check import DataCheck, StudyData
from braindecode_pars.study.study_design import Design, Effort, Settings, StudyPlan
from braindecode_pars.study.study_methods import (
    Method,
    StudyStep,
    choose_steps,
    make_control_steps,
    make_steps,
    usable_encoders,
)

#: Maximum number of windows to estimate the duration of features and fits.
TIMED_WINDOWS = 64
#: Number of windows to estimate the duration of a pretraining step.
TIMED_TRAINING_WINDOWS = 96


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

    The estimate takes about half a minute. The other arguments are those of
    :func:`~braindecode_pars.evaluation.study`. ``check`` must not contain findings that stop a
    study.
    """
    corpus = splitting.Corpus.of(data.windows, dataset, unlabeled_label)
    effort = settings.limits
    design = study_design.make_design(
        corpus,
        by_subject=check.by_subject,
        n_labeled=settings.n_train_subjects,
        n_draws=settings.draws,
    )
    encoders, excluded = usable_encoders(settings.encoders, corpus)
    all_steps = make_steps(
        design.n_chans, settings.tasks, encoders, methods or {}, effort.n_pretrainings
    )
    steps = choose_steps(all_steps, effort.groups, settings.only, settings.without)
    rows = [(step.name, step.group, ", ".join(m.name for m in step.methods)) for step in steps]
    table = pd.DataFrame(rows, columns=["step", "group", "methods"])
    table["minutes"] = estimate_minutes(steps, design, effort)
    folder = Path(out).expanduser()
    files.replace_file(folder / "study.json", files.to_json(study_design.FORMAT))
    about = _describe(settings, design, effort)
    about["left_out"] = [*excluded, *_excluded_from_centering(design)]
    controls = make_control_steps(steps, effort.controls)
    return StudyPlan(dataset, check, design, effort, steps, controls, table, folder, about)


def _describe(settings: Settings, design: Design, effort: Effort) -> dict[str, Any]:
    """Return the entries of ``Study.about`` that are known before the study runs."""
    # All settings that the scores of a step depend on, so that a folder never mixes two settings
    dependencies = (
        settings.draws,
        design.n_labeled,
        design.left_out,
        dict(max_steps=effort.max_steps, max_minutes=effort.minutes),
        study_design.FEATURES_STEPS,
    )
    data = cache.describe_corpus(design.corpus)
    labeled = f"{design.n_labeled} labeled subject{'s' * (design.n_labeled > 1)}"
    return dict(
        digest=cache.digest(data, dependencies, cache.versions()),
        n_labeled_subjects=design.n_labeled,
        design=(
            f"{len(design.folds)} folds of subjects; in each fold, {settings.draws} draws of "
            f"{labeled} ({design.n_sets} disjoint sets in each shuffle of the training subjects) "
            f"and {effort.n_pretrainings} pretrainings"
        ),
        pretraining=(
            "until the held-out loss stops decreasing; maximum "
            f"{effort.max_steps:,} steps and {effort.minutes:g} minutes; sham pretraining has the "
            "same number of steps"
        ),
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
            "per subject. These subjects have fewer labeled windows, and are not scored: "
            f"{checks.format_list(counts, max_items=20)}. Their windows are used for pretraining, "
            "without labels."
        )
    elif not (design.is_centered or design.by_subject):
        yield (
            "Subject-wise centering was skipped: too many subjects have fewer than "
            f"{transformers.MIN_WINDOWS} labeled windows."
        )


def check_settings(
    settings: Settings, out: str | Path | None, methods: Mapping[str, BaseEstimator] | None = None
) -> None:
    """Raise an error if an argument of a study is invalid, or its folder contains other files."""
    checks.choice(*study_design.EFFORTS).check("effort", settings.effort)
    # Each shuffle yields the same number of disjoint sets, so that their variance can be estimated
    is_even = checks.ParameterRule("an even number", (int,), lambda n: n > 0 and n % 2 == 0)
    is_even.check("draws", settings.draws)
    checks.optional(checks.positive()).check("minutes", settings.minutes)
    splitting.check_list("tasks", settings.tasks, checks.instance("names of pretext tasks", str))
    # With several channels and all bundled encoders, the list contains every possible method.
    encoders = {**{name: name for name in names.ENCODERS}, **(settings.encoders or {})}
    all_steps = make_steps(2, settings.tasks, encoders, methods or {})
    choose_steps(all_steps, settings.limits.groups, settings.only, settings.without)
    if out is not None:
        folder = Path(out).expanduser()
        ResultsFolder(folder, "a study", marks=("study.json",)).check()
        _check_model_folder(folder / study_design.MODEL_FOLDER)


def _check_model_folder(folder: Path) -> None:
    """Check that a folder contains no model, or only a model that was saved by a study."""
    for kind in model_files.kinds_in(folder):
        description = model_files.read_model(folder).description
        if "expected_score" not in description.get(model_files.ENTRIES.get(kind, ""), ()):
            raise ValueError(
                f"{folder} contains a {kind} that was not saved by a study. The study would "
                "overwrite it. Move this model, or choose another output folder."
            )


# Duration -----------------------------------------------------------------------------------------


def estimate_minutes(steps: Sequence[StudyStep], design: Design, effort: Effort) -> list[float]:
    """Return the expected duration of each step on one core, in minutes.

    Some pretraining steps, and one fit on a few windows with its predictions, are timed. The
    durations are multiplied by the numbers of steps, windows and fits in the study. The duration is
    NaN for networks and for classifiers of the user.
    """
    methods = {(m.views, m.encoder, m.task): m for step in steps for m in step.methods}
    with warnings.catch_warnings(action="ignore"):  # the steps give the same warnings
        seconds = {key: _seconds_of(m, design, effort) for key, m in methods.items()}
    return [sum(seconds[m.views, m.encoder, m.task] for m in step.methods) / 60 for step in steps]


def _seconds_of(method: Method, design: Design, effort: Effort) -> float:
    """Return the expected duration of pretraining, features and all fits of a method in seconds."""
    if method.estimator is not None:
        return math.nan
    seconds = 0.0
    if method.task is not None:
        windows = design.corpus.X[:TIMED_TRAINING_WINDOWS]
        n_steps = math.ceil(len(windows) / PARSEmbedder.pretrain_batch_size)
        # The first fit is not used, because it includes one-time costs.
        embedders = (PARSEmbedder(method.task, pretrain_epochs=n, verbose=0) for n in (1, 1, 4))
        _, short, long = (timeit(partial(e.fit, windows), number=1) for e in embedders)
        seconds_per_step = max(0.0, long - short) / (3 * n_steps)
        seconds += min(seconds_per_step * effort.step_limit(method.task), 60 * effort.minutes)
    labeled, draws = design.labeled, design.folds[0].draws
    train = draws[0]
    timed = np.random.default_rng(0).permutation(train)[:TIMED_WINDOWS]
    encoder = method.encoder or PARSEmbedder(None, verbose=0).fit(labeled.X[:1])
    classifier = study_scores.classifier_of(method, design, encoder, is_centered=False)
    fit = partial(study_scores.predict, classifier, labeled.X, labeled.y, timed, timed)
    fit()  # one-time costs
    with windows_estimator.features_computed_once():
        first, again = (timeit(fit, number=1) for _ in range(2))
    seconds += max(0.0, first - again) * len(labeled.X) / len(timed)
    n_fits = len(draws) * (1 + design.is_centered) * len(design.folds)
    if method.encoder is None and "encoder" in method.views:  # an encoder for each fold
        n_fits //= len(design.folds)
    return seconds + again * len(train) / len(timed) * n_fits
