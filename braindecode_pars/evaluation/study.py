"""Does pretraining on these recordings help? Check, plan, run, and compare."""

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

from braindecode_pars._common import files, training
from braindecode_pars.estimators import FewLabelsClassifier
from braindecode_pars.evaluation import (
    data_check,
    study_design,
    study_plan,
    study_scores,
    study_tests,
)
from braindecode_pars.evaluation.controls import (
    UNCHANGED,
    control_gains,
    describe_controls,
)
from braindecode_pars.evaluation.study_design import Method, StudyPlan, StudyStep
from braindecode_pars.evaluation.study_results import GAIN, Recommendation, Study
from braindecode_pars.windows import labels

__all__ = ["Study", "study"]

log = logging.getLogger(__name__)

#: A pretraining has learned if its held-out loss is below this proportion of that of its sham.
LEARNED = training.AT_CHANCE
#: Reason if a step failed, and texts of its warnings.
Outcome = tuple[str | None, list[str]]
#: Minimum number of seconds between two versions of the report while the study runs.
REPORT_INTERVAL = 20.0
#: Seconds between two looks at the worker processes.
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
    r"""Find out whether pretraining on these recordings helps to classify their windows.

    The data are checked first, and the study ends with the reason if it cannot have an answer. The
    primary comparison is fixed beforehand: a linear probe of an encoder that was pretrained on the
    subjects who are not tested, minus the same after a sham pretraining, which has the targets of
    other windows, so that nothing can be learned. In each of two folds there are three pretrainings
    and twelve draws of labeled subjects; subjects, draws and pretrainings are random factors of the
    test. If pretraining helps, it is compared with a baseline that is named beforehand, and control
    analyses show which property of the signals it uses.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        Labeled windows with ``subject`` in the descriptions; also of subjects without labels.
    methods : dict of str to estimator | None
        Further classifiers of windows, which take part as baselines.
    effort : "quick" | "default" | "thorough"
        Quick: the primary comparison and the baselines, with short pretrainings. Default: also
        further tasks, bundled encoders, an ensemble, and networks. Thorough: longer pretrainings,
        and published networks.
    tasks : sequence of str
        Pretext tasks; the first one is that of the primary comparison.
    encoders : dict of str to path, name or fitted estimator | None
        Encoders that were pretrained on other data. If None, ``small`` and, for windows of 20 s or
        more, ``pars-sleep``.
    n_train_subjects : int | None
        Number of labeled subjects. If None, four, or as many as can be dealt into three disjoint
        sets; where each subject has one class, two of each class, or one.
    draws : int
        Number of draws of labeled subjects.
    minutes : float | None
        Maximum number of minutes of a pretraining. If None, 5, 8 or 60, by the effort.
    only, without : sequence of str
        Groups ("primary", "baselines", "tasks", "bundled", "ensemble", "networks", "controls",
        "published") or names of methods that alone take part, or do not.
    in_spite_of : sequence of str
        ``"confounds"``: continue although the classes follow the site, the channels, the reference
        or the sampling rate of the recordings.
    dataset : str
        Name of the recordings in the report.
    unlabeled_label
        As in :func:`~braindecode_pars.evaluation.label_efficiency`.
    out : path | None
        Folder for all results: ``report.html`` and ``scores.csv``, which are written while the
        study runs, ``study.json``, and ``model``, the recommended classifier. After an interruption
        the same call continues.
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
        When an argument is out of range, a name is unknown, there are fewer subjects than
        ``n_train_subjects`` needs, or ``out`` has something else.

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
    study_plan.check_study(effort, draws, tasks, minutes, out)
    check = data_check.check_data(windows_ds, in_spite_of=in_spite_of)
    if check.stops:
        return unanswered(dataset, check, out)
    place: Any = nullcontext(out)
    if out is None:
        place = tempfile.TemporaryDirectory(prefix="braindecode-pars-study-")
    with place as folder:
        plan = study_plan.plan_study(
            windows_ds,
            check,
            methods,
            out=folder,
            effort=effort,
            tasks=tasks,
            encoders=encoders,
            n_train_subjects=n_train_subjects,
            draws=draws,
            minutes=minutes,
            only=only,
            without=without,
            dataset=dataset,
            unlabeled_label=unlabeled_label,
        )
        return run_study(plan, save=out is not None, n_jobs=n_jobs, verbose=verbose)


def unanswered(dataset: str, check: data_check.DataCheck, out: str | Path | None) -> Study:
    """Return the study of recordings that cannot have an answer, and write its report."""
    result = Study(dataset, study_design.METRIC, check)
    if out is not None:
        folder = Path(out).expanduser()
        content = study_design.FORMAT | {"answers": result.answers}
        files.replace_file(folder / "study.json", files.to_json(content))
        result.report(folder)
    return result


def run_study(
    plan: StudyPlan, *, save: bool = True, n_jobs: int | None = None, verbose: int = 1
) -> Study:
    """Run all steps; with ``save``, write the report after each of them, and the model."""
    writer = _Writer(plan, save)
    try:
        for step, reason, texts in run_steps(plan, plan.steps, n_jobs, verbose):
            writer.add(step, reason, texts)
    finally:  # also after Ctrl-C
        result = writer.write(writer.result())
    if plan.controls and result.primary is not None and result.primary.outcome == GAIN:
        steps = control_steps(plan)
        for _ in run_steps(plan, steps, n_jobs, verbose):
            pass
        table = primary_control_gains(plan, steps)
        result = replace(result, controls=table, control_notes=[describe_controls(table)])
    if (chosen := result.recommendation) is not None:
        folder = save_model(plan, chosen) if save else None
        result = replace(
            result,
            confusion=confusion_of(result, plan),
            recommendation=replace(chosen, folder=folder),
        )
    return writer.write(result)


class _Writer:
    """Write scores, values and report of a study into its folder, also while it runs."""

    def __init__(self, plan: StudyPlan, save: bool):
        self.plan = plan
        self.save = save
        self.failures: dict[str, str] = {}
        self.warnings = dict.fromkeys(plan.about.get("warnings", []))
        self.written = 0.0

    def add(self, step: StudyStep, reason: str | None, texts: Sequence[str]) -> None:
        """Keep the reason of a failure and warnings, and write what is finished now and then."""
        if reason:
            self.failures[step.name] = reason
        self.warnings |= dict.fromkeys(texts)
        if time.monotonic() - self.written > REPORT_INTERVAL:
            self.write(self.result())
            self.written = time.monotonic()

    def result(self) -> Study:
        """Return the study of all steps that are finished, with the warnings of all."""
        result = assemble(self.plan, self.failures)
        return replace(result, about=result.about | {"warnings": list(self.warnings)})

    def write(self, result: Study) -> Study:
        """Write a study, finished or not, and return it."""
        if self.save:
            comparisons = {
                name: asdict(comparison)
                for name in ("primary", "initialization", "baseline")
                if (comparison := getattr(result, name)) is not None
            }
            chosen = result.recommendation
            content = study_design.FORMAT | dict(
                answers=result.answers,
                comparisons=comparisons,
                recommendation=None if chosen is None else asdict(chosen),
                about=result.about,
            )
            folder = self.plan.folder
            for name in ("scores", "levels"):
                table = getattr(result, name)
                files.replace_file(folder / f"{name}.csv", table.to_csv(index=False))
            files.replace_file(folder / "study.json", files.to_json(content))
            result.report(folder)
        return result


def run_steps(
    plan: StudyPlan, steps: Sequence[StudyStep], n_jobs: int | None, verbose: int
) -> Iterator[tuple[StudyStep, str | None, list[str]]]:
    """Run the steps side by side; yield each with the reason if it failed, and its warnings.

    Networks begin with encoders of the primary comparison, so they wait for it.
    """
    n_jobs = number_of_processes(n_jobs)
    bar = training.ProgressBar(total=len(steps), desc="study", disable=not verbose)
    first = [step for step in steps if step.group in ("baselines", "primary")]
    others = [step for step in steps if step not in first]
    run = _run_here if n_jobs == 1 else _run_side_by_side
    with bar:
        for part in (first, others):
            for step, outcome in run(part, plan, n_jobs, bar):
                bar.update()
                yield step, *outcome


def number_of_processes(n_jobs: int | None) -> int:
    """Return the number of processes of a study; None is one for each core, or one with CUDA."""
    if n_jobs is None:
        n_jobs = 1 if torch.cuda.is_available() else joblib.cpu_count(only_physical_cores=True)
    return int(joblib.effective_n_jobs(n_jobs))


def _run_here(
    steps: Sequence[StudyStep], plan: StudyPlan, n_jobs: int, bar: training.ProgressBar
) -> Iterator[tuple[StudyStep, Outcome]]:
    for step in steps:
        bar.set_postfix_str(step.name)
        yield step, _attempt(step, plan, bar.set_postfix_str)


def _attempt(step: StudyStep, plan: StudyPlan, report: study_scores.Report) -> Outcome:
    """Run a step; return the reason if it fails, and its warnings.

    That a training has not converged, or learned nothing, is in its table.
    """
    reason = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            study_scores.run_step(step, plan, report)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
    kinds = [(str(warning.message), warning.category) for warning in caught]
    return reason, [text for text, kind in kinds if not issubclass(kind, ConvergenceWarning)]


#: The plan in a worker process.
_WORKER: dict[str, Any] = {}


def _start_worker(plan: StudyPlan, n_threads: int) -> None:
    """Prepare a worker: Ctrl-C is for the main process, which then ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(n_threads)
    _WORKER["plan"] = plan


def _work(step: StudyStep, progress_file: Path) -> Outcome:
    outcome = _attempt(step, _WORKER["plan"], lambda text: files.replace_file(progress_file, text))
    progress_file.unlink(missing_ok=True)
    return outcome


def _run_side_by_side(
    steps: Sequence[StudyStep], plan: StudyPlan, n_jobs: int, bar: training.ProgressBar
) -> Iterator[tuple[StudyStep, Outcome]]:
    """Run steps in worker processes; the bar shows what the trainings report."""
    n_threads = max(1, joblib.cpu_count() // n_jobs)
    progress = plan.folder / "progress"
    progress.mkdir(parents=True, exist_ok=True)
    executor = get_reusable_executor(
        n_jobs, initializer=_start_worker, initargs=(plan, n_threads), reuse=False
    )
    waiting = list(steps)
    running: dict[Any, StudyStep] = {}
    try:
        while waiting or running:
            # With more steps than processes, loky does not end quietly after Ctrl-C.
            while waiting and len(running) < n_jobs:
                step = waiting.pop(0)
                running[executor.submit(_work, step, progress / f"{step.slug}.txt")] = step
            for future in [future for future in running if future.done()]:
                yield running.pop(future), future.result()
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
    status, tables = [], []
    for step in plan.steps:
        file = study_scores.scores_file(step, plan)
        if file.exists():
            tables.append(pd.read_csv(file, dtype={"subject": str}))
        status.append("finished" if file.exists() else failures.get(step.name, "to come"))
    result = Study(
        dataset=plan.dataset,
        metric=study_design.METRIC,
        check=plan.check,
        plan=pd.DataFrame(
            dict(
                step=[step.name for step in plan.steps],
                methods=[", ".join(m.name for m in step.methods) for step in plan.steps],
                minutes=plan.minutes,
                status=status,
                is_primary=[step.group == "primary" for step in plan.steps],
            )
        ),
        methods=_table_of_methods(plan, failures),
        pretrainings=_table_of_pretrainings(plan),
        about=plan.about,
    )
    # A method whose steps are not all finished has no scores for some subjects.
    pending = {
        method.name
        for step, state in zip(plan.steps, status, strict=True)
        for method in step.methods
        if state != "finished"
    }
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"method": []})
    table = table[~table["method"].isin(pending)]
    if table.empty:
        return result
    scores = study_tests.Scores(table, plan.design)
    levels = scores.levels()
    finished = {*table["method"]}
    pairs = dict.fromkeys(
        (method.name, reference)
        for step in plan.steps
        if step.group != "primary"
        for method in step.methods
        for reference in method.references
        if {method.name, reference} <= finished
    )
    result = replace(
        result,
        scores=table,
        levels=levels,
        secondary=scores.secondary(list(pairs)),
        recommendation=scores.recommend(levels),
        decisions=decisions_of(table, plan) if plan.design.by_subject else None,
    )
    return _with_primary(result, scores, plan)


def _with_primary(result: Study, scores: study_tests.Scores, plan: StudyPlan) -> Study:
    """Return the study with the comparisons that were fixed beforehand, as far as they ran."""
    finished = {*result.scores["method"]}
    names = [m.name for step in plan.steps if step.group == "primary" for m in step.methods]
    if not names or not {names[0], study_design.SHAM} <= finished:
        return result
    primary = scores.compare(names[0], study_design.SHAM)
    table = result.pretrainings
    losses = table[table["task"] == plan.task].groupby("is_sham")["held_out_loss"].mean()
    result = replace(
        result, primary=primary, has_learned=bool(losses[False] < LEARNED * losses[True])
    )
    if study_design.RANDOM in finished:
        result = replace(result, initialization=scores.compare(names[0], study_design.RANDOM))
    baseline = study_design.baseline_name(len(plan.design.corpus.X[0]))
    if baseline in finished:
        is_tested = primary.outcome == GAIN and result.has_learned
        comparison = scores.compare(names[0], baseline, is_tested=is_tested)
        result = replace(result, baseline=comparison)
    return result


def _table_of_methods(plan: StudyPlan, failures: Mapping[str, str]) -> pd.DataFrame:
    rows = {}
    for step in plan.steps:
        for method in step.methods:
            reason = failures.get(step.name, "")
            centered = (False, True) if method.views and plan.design.is_centered else (False,)
            for is_centered in centered:
                row = dict(method=method.name, is_centered=is_centered, kind=method.kind)
                data = [method.additional_data] if method.additional_data else []
                data += [study_design.TEST_SUBJECT] if is_centered else []
                row |= dict(additional_data="; ".join(data), left_out=reason)
                rows[method.name, is_centered] = row
    return pd.DataFrame(rows.values())


def _table_of_pretrainings(plan: StudyPlan) -> pd.DataFrame:
    """Return how the pretrainings ended, those of the primary comparison first."""
    columns = ["task", "is_sham", "fold", "seed", "n_steps", "held_out_loss", "reason"]
    records = [
        study_scores.record_of(method, plan, step.fold)
        for step in sorted(plan.steps, key=lambda step: step.group != "primary")
        for method in step.methods
        if method.task is not None and method.kind != "network"
    ]
    rows = [files.read_json(file) for file in records if file.exists()]
    return pd.DataFrame(rows, columns=columns).sort_values("is_sham", kind="stable")


def confusion_of(result: Study, plan: StudyPlan) -> pd.DataFrame:
    """Return true and predicted classes of the recommended method, a row for each prediction."""
    chosen = result.recommendation
    assert chosen is not None
    rows = result.scores[result.scores["method"] == chosen.method]
    rows = rows[rows["is_centered"] == chosen.is_centered]
    names = ordered_class_names(plan)
    pairs = [
        (true, predicted, int(rows[f"n_{i}_{j}"].sum()))
        for i, true in enumerate(names)
        for j, predicted in enumerate(names)
    ]
    counts = [count for *_, count in pairs]
    columns = {"true": [true for true, *_ in pairs], "predicted": [p for _, p, _ in pairs]}
    return pd.DataFrame({name: np.repeat(values, counts) for name, values in columns.items()})


def ordered_class_names(plan: StudyPlan) -> list[str]:
    """Return the names of the classes in the order of their labels."""
    corpus = plan.design.corpus
    classes = np.unique(corpus.y[corpus.labeled])
    names = labels.names_of_classes(classes, corpus.X.label_names) or {}
    return [str(names.get(label, label)) for label in classes.tolist()]


def decisions_of(table: pd.DataFrame, plan: StudyPlan) -> pd.DataFrame:
    """Return how well each method decides the class of subjects, by the mean of probabilities.

    The columns are those of ``Study.decisions``; the best method is the first.
    """
    n_classes = len(ordered_class_names(plan))
    counts = np.stack(
        [table[[f"n_{i}_{j}" for j in range(n_classes)]].sum(axis=1) for i in range(n_classes)]
    )
    probabilities = table[[f"p_{j}" for j in range(n_classes)]].to_numpy()
    true, predicted = counts.argmax(axis=0), probabilities.argmax(axis=1)
    rows = []
    keys = ["method", "draw", "pretraining"]
    for (method, *_), places in table.reset_index(drop=True).groupby(keys).indices.items():
        values = probabilities[places]
        auroc = roc_auc_score(
            true[places], values[:, 1] if n_classes == 2 else values, multi_class="ovr"
        )
        right = true[places] == predicted[places]
        rows.append(
            dict(
                method=method,
                right=right.sum(),
                subjects=len(places),
                balanced_accuracy=balanced_accuracy_score(true[places], predicted[places]),
                auroc=auroc,
            )
        )
    means = pd.DataFrame(rows).groupby("method", as_index=False).mean()
    return means.sort_values("balanced_accuracy", ascending=False, ignore_index=True)


def control_steps(plan: StudyPlan) -> list[StudyStep]:
    """Return the control analyses of the primary comparison, with all its pretrainings."""
    primary = [method for step in plan.steps if step.group == "primary" for method in step.methods]
    pairs = dict.fromkeys(method for method in primary if method.kind in ("pretrained", "sham"))
    return [
        StudyStep(f"control {name}", "controls", tuple(pairs), control=name)
        for name in (UNCHANGED, *plan.controls)
    ]


def primary_control_gains(plan: StudyPlan, steps: Sequence[StudyStep]) -> pd.DataFrame:
    """Return what the controls leave of the primary difference."""
    tables = []
    for step in steps:
        file = study_scores.scores_file(step, plan)
        if file.exists():
            table = pd.read_csv(file, dtype={"subject": str}).rename(columns={"draw": "seed"})
            means = table.groupby(["method", "subject", "seed"], as_index=False)["value"].mean()
            tables.append(means.assign(control=step.control))
    scores = pd.concat(tables, ignore_index=True).assign(
        protocol="label_efficiency",
        dataset=plan.dataset,
        n_train_subjects=plan.design.n_labeled,
        metric=study_design.METRIC,
    )
    scores.attrs = {"n_classes": {plan.dataset: len(ordered_class_names(plan))}}
    return control_gains(scores, against=study_design.SHAM)


def save_model(plan: StudyPlan, chosen: Recommendation) -> str | None:
    """Train the recommended method on all labeled subjects, and save it if it can be saved.

    An encoder of the study is pretrained once more, on all subjects.
    """
    log.info("Training the recommended method on all labeled subjects.")
    every = [method for step in plan.steps for method in step.methods]
    method = next(method for method in every if method.name == chosen.method)
    if study_scores.needs_encoder(method):
        encoder = study_scores.encoder_of(method, plan, None, lambda text: None)
    else:  # the class has an encoder, which these feature sets do not use
        random = Method(study_design.RANDOM, "random", ("encoder",))
        encoder = study_scores.encoder_of(random, plan, None, lambda text: None)
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
    estimator.expected_score_ = dict(
        metric=study_design.METRIC.replace("_", " "),
        score=chosen.score,
        low=chosen.low,
        high=chosen.high,
    )
    estimator.save(folder)
    return str(folder)
