"""Run a study: check the data, plan the comparison, score all methods, and report the result."""

from __future__ import annotations

import logging
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from joblib.externals.loky import get_reusable_executor
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from braindecode_pars._common import files, model_files, training
from braindecode_pars._common.findings import Collected, collected, identity_of
from braindecode_pars._common.names import METRICS
from braindecode_pars.baselines.few_labels import FewLabelsClassifier
from braindecode_pars.evaluation.controls import (
    UNCHANGED,
    control_gains,
    describe_controls,
)
from braindecode_pars.study import data_check, study_design, study_plan, study_scores, study_tests
from braindecode_pars.study.study_design import Method, StudyPlan, StudyStep
from braindecode_pars.study.study_results import Recommendation, Study
from braindecode_pars.windows import labels

__all__ = ["Study", "study"]

log = logging.getLogger(__name__)

#: Held-out loss of the pretraining relative to its sham, below which the task counts as learned.
LEARNED = training.AT_CHANCE
#: Reason of the failure of a step (None if it succeeded), and its warnings.
Outcome = tuple[str | None, list[Collected]]
#: Minimum time between two updates of the report while the study runs, in seconds.
REPORT_INTERVAL = 20.0
#: Time between two checks of the worker processes, in seconds.
POLL_INTERVAL = 0.5


def study(
    windows_ds: Any,
    methods: Mapping[str, BaseEstimator] | None = None,
    *,
    effort: str = "default",
    tasks: Sequence[str] = study_design.TASKS,
    encoders: Mapping[str, Any] | None = None,
    n_train_subjects: int | None = None,
    draws: int = study_design.DRAWS,
    minutes: float | None = None,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    in_spite_of: Sequence[str] = (),
    dataset: str = "recordings",
    unlabeled_label: Any = "auto",
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> Study:
    r"""Study whether self-supervised pretraining improves classification on a dataset.

    The data are checked first; if they do not allow an answer, the study stops and returns the
    reason. The primary comparison is specified in advance: the score of a linear probe on an
    encoder that was pretrained on this dataset, without the test subjects, minus the score of a
    linear probe on an encoder after sham pretraining (targets of other windows), in which nothing
    can be learned. Each of two folds has three pretrainings and twelve draws of labeled subjects;
    subjects, draws and pretrainings are crossed random effects of the test. If the improvement is
    significant, the pretrained encoder is also tested against a baseline that is specified in
    advance, and control analyses show which signal properties the improvement depends on.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        Labeled windows with ``subject`` in the descriptions. It may contain subjects without
        labels, which are used for pretraining.
    methods : dict of str to estimator | None
        Further classifiers of windows, which are included as baselines.
    effort : "quick" | "default" | "thorough"
        Extent of the study. "quick" runs the primary comparison and the baselines, with short
        pretrainings. "default" adds further pretext tasks, bundled encoders, the feature ensemble
        and networks. "thorough" runs longer pretrainings, and adds published networks.
    tasks : sequence of str
        Pretext tasks. The first task is used in the primary comparison.
    encoders : dict of str to path, name or fitted estimator | None
        Encoders pretrained on other data. If None, ``small`` and, for windows of 20 s or longer,
        ``pars-sleep``.
    n_train_subjects : int | None
        Number of labeled subjects. If None, 4, or the largest number for which the training
        subjects of a fold can be divided into three disjoint sets. If each subject has one class,
        a set has two subjects of each class, or one.
    draws : int
        Number of draws (random subsets of labeled subjects). It must be even.
    minutes : float | None
        Maximum duration of a pretraining in minutes. If None, 5, 8 or 60 for the efforts "quick",
        "default" and "thorough".
    only : sequence of str
        Groups ("primary", "baselines", "tasks", "bundled", "ensemble", "networks", "controls",
        "published") or names of methods to run. If empty, all groups of the effort.
    without : sequence of str
        Groups or names of methods to exclude.
    in_spite_of : sequence of str
        ``("confounds",)`` continues although the classes are confounded with the site, channels,
        reference or sampling rate of the recordings.
    dataset : str
        Name of the dataset in the report.
    unlabeled_label
        As in :func:`~braindecode_pars.evaluation.label_efficiency`.
    out : path | None
        Folder for all results: ``report.html`` and ``scores.csv``, which are updated while the
        study runs, ``study.json``, and ``model``, the recommended classifier. The same call resumes
        an interrupted study. If None, no files are written.
    n_jobs : int | None
        Number of processes. If None, the number of cores, or 1 with CUDA.
    verbose : int
        Verbosity; 1 shows a progress bar.

    Returns
    -------
    Study

    Raises
    ------
    ValueError
        If an argument is out of range, a name is unknown, there are too few subjects for
        ``n_train_subjects``, or ``out`` contains other files.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import study
    >>> result = study(datasets.mental_arithmetic(["Subject00", "Subject01"]))  # too few subjects
    >>> len(result.scores), bool(result.check.stops)
    (0, True)
    >>> result = study(datasets.mental_arithmetic(), effort="quick")  # doctest: +SKIP
    >>> print(*result.answers, sep="\n")  # doctest: +SKIP
    >>> result.report("study.html")  # doctest: +SKIP
    """
    settings = study_design.Settings(
        effort, tasks, encoders, n_train_subjects, draws, minutes, only, without
    )
    study_plan.check_settings(settings, out, methods)
    check = data_check.check_data(windows_ds, in_spite_of=in_spite_of)
    if check.stops:
        return unanswered(dataset, check, out)
    folder_context: Any = nullcontext(out)
    if out is None:
        folder_context = tempfile.TemporaryDirectory(prefix="braindecode-pars-study-")
    with folder_context as folder:
        plan_kwargs: dict[str, Any] = dict(dataset=dataset, unlabeled_label=unlabeled_label)
        plan = study_plan.plan_study(
            windows_ds, check, settings, methods, out=folder, **plan_kwargs
        )
        return run_study(plan, save=out is not None, n_jobs=n_jobs, verbose=verbose)


def unanswered(dataset: str, check: data_check.DataCheck, out: str | Path | None) -> Study:
    """Return the study of a dataset that failed the data check, and write its report."""
    result = Study(dataset, study_design.METRIC, check)
    write(result, None if out is None else Path(out).expanduser())
    return result


def run_study(
    plan: StudyPlan, *, save: bool = True, n_jobs: int | None = None, verbose: int = 1
) -> Study:
    """Run all steps of a plan; if ``save``, also write the report and the recommended model."""
    folder = plan.folder if save else None
    failures: dict[str, str] = {}
    before: list[str] = plan.about.setdefault("warnings", [])
    of_steps: dict[tuple, str] = {}
    written = 0.0
    try:
        for step, (reason, caught) in run_steps(plan, plan.steps, n_jobs, verbose):
            if reason:
                failures[step.name] = reason
            for warning in caught:
                of_steps.setdefault(identity_of(*warning), str(warning[0]))
            plan.about["warnings"] = [*dict.fromkeys([*before, *of_steps.values()])]
            if time.monotonic() - written > REPORT_INTERVAL:
                write(assemble(plan, failures), folder)
                written = time.monotonic()
    finally:  # also after Ctrl-C
        result = assemble(plan, failures)
        write(result, folder)
    if plan.effort.controls and result.has_gain:
        steps = control_steps(plan)
        outcomes = list(run_steps(plan, steps, n_jobs, verbose))
        notes = [f"{step.name}: not run ({reason})." for step, (reason, _) in outcomes if reason]
        gains = primary_control_gains(plan, steps)
        result = replace(result, controls=gains, control_notes=[describe_controls(gains), *notes])
    if (chosen := result.recommendation) is not None:
        confusion = confusion_of(result, chosen, plan)
        chosen = replace(chosen, folder=save_model(plan, chosen) if save else None)
        result = replace(result, confusion=confusion, recommendation=chosen)
    write(result, folder)
    return result


def write(result: Study, folder: Path | None) -> None:
    """Write scores, values and report of a study, finished or not. Without a folder, do nothing."""
    if folder is None:
        return
    comparison_names = ("primary", "initialization", "baseline")
    comparisons = {name: getattr(result, name) for name in comparison_names}
    chosen = result.recommendation
    content = study_design.FORMAT | dict(
        answers=result.answers,
        comparisons={name: asdict(pair) for name, pair in comparisons.items() if pair},
        recommendation=asdict(chosen) if chosen else None,
        about=result.about,
    )
    files.replace_file(folder / "study.json", files.to_json(content))
    for name, table in {"scores": result.scores, "levels": result.levels}.items():
        if len(table):
            files.replace_file(folder / f"{name}.csv", table.to_csv(index=False))
    result.report(folder)


def run_steps(
    plan: StudyPlan, steps: Sequence[StudyStep], n_jobs: int | None, verbose: int
) -> Iterator[tuple[StudyStep, Outcome]]:
    """Run unfinished steps in parallel; yield each step with its failure reason and warnings.

    Networks start from encoders of the primary comparison, so they run after it.
    """
    n_jobs = number_of_processes(n_jobs)
    steps = [step for step in steps if not study_scores.scores_file(step, plan).exists()]
    initial_steps = [step for step in steps if step.group in ("baselines", "primary")]
    later_steps = [step for step in steps if step not in initial_steps]
    run = _run_sequentially if n_jobs == 1 else _run_in_parallel
    with training.ProgressBar(total=len(steps), desc="study", disable=not verbose) as bar:
        for group in (initial_steps, later_steps):
            for finished in run(group, plan, n_jobs, bar):
                bar.update()
                yield finished


def number_of_processes(n_jobs: int | None) -> int:
    """Return the number of processes of a study. If None, one per core, or one with CUDA."""
    if n_jobs is None:
        n_jobs = 1 if torch.cuda.is_available() else joblib.cpu_count(only_physical_cores=True)
    return int(joblib.effective_n_jobs(n_jobs))


def _run_sequentially(
    steps: Sequence[StudyStep], plan: StudyPlan, n_jobs: int, bar: training.ProgressBar
) -> Iterator[tuple[StudyStep, Outcome]]:
    for step in steps:
        bar.set_postfix_str(step.name)
        yield step, _attempt(step, plan, bar.set_postfix_str)


def _attempt(step: StudyStep, plan: StudyPlan, report: study_scores.Report) -> Outcome:
    """Run a step; return the reason of a failure, or None, and its warnings.

    Warnings that a training did not converge or learn are omitted: the table of pretrainings has
    the losses.
    """
    reason = None
    caught: list[Collected] = []
    with collected(caught):
        warnings.simplefilter("always", UserWarning)
        try:
            study_scores.run_step(step, plan, report)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
    return reason, [warning for warning in caught if not issubclass(warning[1], ConvergenceWarning)]


#: The plan in a worker process.
_WORKER: dict[str, Any] = {}


def _start_worker(plan: StudyPlan, n_threads: int) -> None:
    """Initialize a worker process. It ignores Ctrl-C, because the main process ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(n_threads)
    _WORKER["plan"] = plan


def _run_in_worker(step: StudyStep, progress_file: Path) -> Outcome:
    outcome = _attempt(step, _WORKER["plan"], lambda text: files.replace_file(progress_file, text))
    progress_file.unlink(missing_ok=True)
    return outcome


def _run_in_parallel(
    steps: Sequence[StudyStep], plan: StudyPlan, n_jobs: int, bar: training.ProgressBar
) -> Iterator[tuple[StudyStep, Outcome]]:
    """Run steps in worker processes; the progress bar shows the reports of the trainings."""
    n_threads = max(1, joblib.cpu_count() // n_jobs)
    progress = plan.folder / "progress"
    progress.mkdir(parents=True, exist_ok=True)
    executor = get_reusable_executor(
        n_jobs, timeout=None, initializer=_start_worker, initargs=(plan, n_threads), reuse=False
    )
    waiting = list(steps)
    running: dict[Any, StudyStep] = {}
    finished: list[tuple[StudyStep, Outcome]] = []
    try:
        while waiting or running or finished:
            # If more steps than processes are submitted, loky prints errors after Ctrl-C.
            while waiting and len(running) < n_jobs:
                step = waiting.pop(0)
                running[executor.submit(_run_in_worker, step, progress / f"{step.slug}.txt")] = step
            yield from finished  # the report is written while the next steps run
            done = [future for future in running if future.done()]
            finished = [(running.pop(future), future.result()) for future in done]
            texts = []
            for file in sorted(progress.glob("*.txt")):
                with suppress(FileNotFoundError):  # the step has just ended
                    texts.append(file.read_text())
            bar.set_postfix_str("; ".join(texts))
            time.sleep(POLL_INTERVAL)
    finally:
        executor.shutdown(wait=True, kill_workers=bool(running))
        shutil.rmtree(progress)


# Results ------------------------------------------------------------------------------------------


def assemble(plan: StudyPlan, failures: Mapping[str, str]) -> Study:
    """Return the study of all steps that are finished."""
    tables = [study_scores.read_scores(step, plan) for step in plan.steps]
    status = [
        failures.get(step.name, "to come") if table is None else "finished"
        for step, table in zip(plan.steps, tables, strict=True)
    ]
    steps = plan.table.assign(status=status)
    is_primary = steps.pop("group") == "primary"
    result = Study(
        dataset=plan.dataset,
        metric=study_design.METRIC,
        check=plan.check,
        plan=steps.assign(is_primary=is_primary),
        methods=_table_of_methods(plan, failures),
        pretrainings=_table_of_pretrainings(plan),
        about=plan.about,
    )
    # A method whose steps are not all finished has no scores for some subjects.
    unfinished = [s for s, table in zip(plan.steps, tables, strict=True) if table is None]
    finished = {*result.methods["method"]} - {m.name for s in unfinished for m in s.methods}
    if not finished:
        return result
    scores = pd.concat(tables, ignore_index=True)
    scores = scores[scores["method"].isin(finished)]
    scores = scores.assign(
        stratum=scores["subject"].map(plan.design.class_of.rename(index=str)),
        shuffle=scores["draw"] // plan.design.n_sets,
    )
    return _with_scores(result, scores, plan)


def _with_scores(result: Study, table: pd.DataFrame, plan: StudyPlan) -> Study:
    """Return the study with the scores of all finished methods, and their comparisons."""
    scores, finished = study_tests.Scores(table), {*table["method"]}
    levels = scores.levels()
    secondary = [m for step in plan.steps if step.group != "primary" for m in step.methods]
    pairs = dict.fromkeys((m.name, reference) for m in secondary for reference in m.references)
    result = replace(
        result,
        scores=table,
        levels=levels,
        secondary=scores.secondary([pair for pair in pairs if {*pair} <= finished]),
        recommendation=scores.recommend(levels),
        decisions=decisions_of(table) if plan.design.by_subject else None,
    )
    primary_method = plan.primary
    if primary_method is None or not {primary_method.name, study_design.SHAM} <= finished:
        return result
    name = primary_method.name
    runs = result.pretrainings[result.pretrainings["task"] == primary_method.task]
    losses = runs.groupby("is_sham")["held_out_loss"].mean()
    has_learned = bool(losses[False] < LEARNED * losses[True])
    primary = scores.compare(name, study_design.SHAM)
    result = replace(result, primary=primary, has_learned=has_learned)
    if study_design.RANDOM in finished:
        result = replace(result, initialization=scores.compare(name, study_design.RANDOM))
    baseline = study_design.baseline_name(len(plan.design.corpus.X[0]))
    if baseline in finished:
        comparison = scores.compare(name, baseline, is_tested=result.has_gain)
        result = replace(result, baseline=comparison)
    return result


def _table_of_methods(plan: StudyPlan, failures: Mapping[str, str]) -> pd.DataFrame:
    rows = []
    for step, method in ((s, method) for s in plan.steps for method in s.methods):
        for is_centered in (False, True) if method.views and plan.design.is_centered else (False,):
            data = (method.additional_data, study_design.TEST_SUBJECT * is_centered)
            row = dict(method=method.name, is_centered=is_centered, kind=method.kind)
            row["additional_data"] = "; ".join(filter(None, data))
            rows.append(row | dict(left_out=failures.get(step.name, "")))
    keys = ["method", "is_centered"]
    return pd.DataFrame(rows).groupby(keys, as_index=False, sort=False).max()


def _table_of_pretrainings(plan: StudyPlan) -> pd.DataFrame:
    """Return the table of pretrainings, starting with the primary comparison."""
    columns = ["task", "is_sham", "fold", "seed", "n_steps", "held_out_loss", "reason"]
    records = [
        study_scores.record_of(method, plan, step.fold)
        for step in sorted(plan.steps, key=lambda step: step.group != "primary")
        for method in step.methods
        if method.kind in ("pretrained", "sham")
    ]
    rows = [files.read_json(file) for file in records if file.exists()]
    return pd.DataFrame(rows, columns=columns).sort_values("is_sham", kind="stable")


def confusion_of(result: Study, chosen: Recommendation, plan: StudyPlan) -> pd.DataFrame:
    """Return true and predicted classes of the recommended method, one row per prediction."""
    rows = result.scores[result.scores["method"] == chosen.method]
    rows = rows[rows["is_centered"] == chosen.is_centered]
    pairs = pd.DataFrame(product(ordered_class_names(plan), repeat=2))
    pairs.columns = ["true", "predicted"]
    counts = rows.filter(regex=r"^n_\d").sum().astype(int)
    return pairs.loc[np.repeat(pairs.index, counts)].reset_index(drop=True)


def ordered_class_names(plan: StudyPlan) -> list[str]:
    """Return the names of the classes in the order of their labels."""
    corpus = plan.design.corpus
    classes = np.unique(corpus.y[corpus.labeled])
    names = labels.names_of_classes(classes, corpus.X.label_names) or {}
    return [str(names.get(label, label)) for label in classes.tolist()]


def decisions_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy of each method in classifying subjects by mean class probabilities.

    The columns are those of ``Study.decisions``, sorted by balanced accuracy in descending order.
    """
    probabilities = table.filter(regex=r"^p_\d").to_numpy()
    n_classes = probabilities.shape[1]
    counts = table.filter(regex=r"^n_\d").to_numpy().reshape(-1, n_classes, n_classes)
    true, predicted = counts.sum(axis=2).argmax(axis=1), probabilities.argmax(axis=1)
    rows = []
    keys = ["method", "draw", "pretraining"]
    for (method, *_), places in table.reset_index(drop=True).groupby(keys).indices.items():
        truth, decided, values = true[places], predicted[places], probabilities[places]
        values = values[:, 1] if n_classes == 2 else values
        auroc = roc_auc_score(truth, values, multi_class="ovr")
        balanced = balanced_accuracy_score(truth, decided)
        rows.append((method, (truth == decided).sum(), len(places), balanced, auroc))
    columns = ["method", "right", "subjects", "balanced_accuracy", "auroc"]
    means = pd.DataFrame(rows, columns=columns).groupby("method", as_index=False).mean()
    return means.sort_values("balanced_accuracy", ascending=False, ignore_index=True)


def control_steps(plan: StudyPlan) -> list[StudyStep]:
    """Return the steps of the control analyses of the primary comparison."""
    primary = [method for step in plan.steps if step.group == "primary" for method in step.methods]
    pairs = dict.fromkeys(method for method in primary if method.kind in ("pretrained", "sham"))
    return [
        StudyStep(f"control {name}", "controls", tuple(pairs), control=name)
        for name in (UNCHANGED, *plan.effort.controls)
    ]


def primary_control_gains(plan: StudyPlan, steps: Sequence[StudyStep]) -> pd.DataFrame:
    """Return the table of the primary difference on each control signal."""
    tables = {step.control: study_scores.read_scores(step, plan) for step in steps}
    rows = pd.concat(tables, names=["control"]).rename(columns={"draw": "seed"})
    keys = ["control", "method", "subject", "seed"]
    scores = rows.groupby(keys, sort=False)["value"].mean().reset_index()
    scores = scores.assign(
        protocol="label_efficiency",
        dataset=plan.dataset,
        n_train_subjects=plan.design.n_labeled,
        metric=study_design.METRIC,
        chance=METRICS[study_design.METRIC].chance_level(len(ordered_class_names(plan))),
    )
    return control_gains(scores, against=study_design.SHAM)


def save_model(plan: StudyPlan, chosen: Recommendation) -> str | None:
    """Train the recommended method on all labeled subjects, and save it if it has ``save``.

    If it uses an encoder pretrained on this dataset, a new encoder is pretrained on all subjects.
    """
    log.info("Training the recommended method on all labeled subjects.")
    methods = [method for step in plan.steps for method in step.methods]
    method = next(method for method in methods if method.name == chosen.method)
    source = method
    if not study_scores.needs_encoder(method):  # required by the class, but not used
        source = Method(study_design.RANDOM, "random", ("encoder",))
    encoder = study_scores.encoder_of(source, plan, None, lambda text: None)
    if method.estimator is None:
        recenter = "subject" if chosen.is_centered else None
        estimator: Any = FewLabelsClassifier(
            encoder, views=list(method.views), recenter=recenter, C=None, verbose=0
        )
    else:
        estimator = clone(method.estimator)
        if not hasattr(estimator, "save"):
            return None
        if method.task is not None:
            estimator.set_params(encoder=encoder)
    corpus = plan.design.corpus
    folder = plan.folder / "model"
    estimator.fit(corpus.X[corpus.labeled], corpus.y[corpus.labeled])
    score = {name: getattr(chosen, name) for name in ("score", "low", "high")}
    estimator.expected_score_ = dict(metric=study_design.METRIC.replace("_", " ")) | score
    if {*model_files.kinds_in(folder)} - {type(estimator).__name__}:  # from an earlier study
        shutil.rmtree(folder)
    estimator.save(folder)
    return str(folder)
