"""Run a study: check the data, plan the comparison, score all methods, and report the result."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from braindecode_pars._common import checks, files, training
from braindecode_pars._common.findings import Collected, collected, identity_of
from braindecode_pars.evaluation.controls import describe_controls
from braindecode_pars.study import study_design, study_results, study_scores
from braindecode_pars.study.data_check import DataCheck, StudyData, check_data
from braindecode_pars.study.study_design import DRAWS, FORMAT, METRIC, Settings, StudyPlan
from braindecode_pars.study.study_methods import TASKS, StudyStep
from braindecode_pars.study.study_results import Study

__all__ = ["Study", "study"]

#: Minimum number of seconds between two updates of the report while the study runs.
REPORT_INTERVAL = 20.0


def study(
    windows_ds: Any,
    methods: Mapping[str, BaseEstimator] | None = None,
    *,
    effort: str = "default",
    tasks: Sequence[str] = TASKS,
    encoders: Mapping[str, Any] | None = None,
    n_train_subjects: int | None = None,
    draws: int = DRAWS,
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

    First, the dataset is checked, for example for confounds. If the check finds a problem that
    prevents a study, no model is trained, and the returned ``Study`` contains the reason.

    The primary comparison is specified in advance. It compares two encoders: one is pretrained on
    this dataset, and the other undergoes sham pretraining (the same training, but each window gets
    the targets of another window, so there is nothing to learn). On the frozen features of each
    encoder, a linear probe (linear classifier) is trained with the labels of a few subjects, and
    the two linear probes are scored on the test subjects. Neither pretraining nor sham pretraining
    uses recordings of the test subjects.

    The subjects are divided into two folds. By default, each encoder is pretrained three times in
    each fold, with different seeds, and for each of these pretrained encoders, a linear probe is
    trained on each of twelve draws (random subsets of labeled subjects). The test of the difference
    treats subjects, draws and pretraining seeds as crossed random effects.

    If pretraining scores significantly higher than sham pretraining, it is also compared with a
    baseline without pretraining that is specified in advance, and control analyses show which
    signal properties the improvement depends on.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        Labeled windows, with ``subject`` in the description of each recording. Subjects without
        labels are used only for pretraining.
    methods : dict of str to estimator | None
        Additional classifiers by name. The classifiers are trained on windows and scored as
        additional baselines.
    effort : "quick" | "default" | "thorough"
        Extent of the study:

        - "quick": The primary comparison and the baselines, with a small maximum number of
          pretraining steps.
        - "default": In addition to "quick", further pretext tasks, the bundled encoders, the
          feature ensemble (:class:`~braindecode_pars.FewLabelsClassifier`), networks and control
          analyses, with more pretraining steps.
        - "thorough": In addition to "default", published networks such as EEGNet, twice as many
          pretraining seeds, all control analyses, and the most pretraining steps.
    tasks : sequence of str
        Names of the pretext tasks. The first task is used in the primary comparison.
    encoders : dict of str to path, name or fitted estimator | None
        Encoders pretrained on other data, by name. If None, the encoder ``small``, which is bundled
        with the package, is used. If the windows have a duration of at least 20 s, the bundled
        encoder ``pars-sleep`` is also used.
    n_train_subjects : int | None
        Number of labeled subjects in a draw. The default, None, depends on the dataset. If each
        subject has windows of only one class, a draw has 2 subjects per class, or 1 per class if
        there are too few subjects. Otherwise, a draw has 4 subjects, or fewer if a fold has fewer
        than 12 training subjects.
    draws : int
        Number of draws of labeled subjects in each fold. The number must be even.
    minutes : float | None
        Maximum number of minutes for which each encoder is pretrained. If None, 5 for
        ``effort="quick"``, 8 for "default" and 60 for "thorough".
    only : sequence of str
        Names of the methods, or of the groups of methods, to run. The groups are "primary",
        "baselines", "tasks", "bundled", "ensemble", "networks", "controls" and "published". If
        empty, all groups that ``effort`` includes are run.
    without : sequence of str
        Names of the methods, or of the groups of methods, to exclude.
    in_spite_of : sequence of str
        If ``("confounds",)``, the study is run even if the classes are confounded with the site,
        corpus, channels, reference or sampling rate of the recordings. By default, the study stops
        in this case.
    dataset : str
        Name of the dataset in the report.
    unlabeled_label
        Label of unlabeled windows, as in :func:`~braindecode_pars.evaluation.label_efficiency`.
    out : path | None
        Folder for the results. The files ``report.html``, ``scores.csv``, ``levels.csv`` and
        ``study.json`` are updated while the study runs. At the end, the recommended classifier is
        saved in the subfolder ``model``. To resume an interrupted study, repeat the same call. If
        None, no files are written.
    n_jobs : int | None
        Number of processes. If None, the number of physical cores, or 1 if CUDA is available.
    verbose : int
        Verbosity level. If 1, a progress bar is shown.

    Returns
    -------
    Study
        Scores, comparisons, answers in sentences, and the recommended method.

    Raises
    ------
    ValueError
        If an argument is out of range, if a name is unknown, if there are too few subjects for
        ``n_train_subjects``, or if the folder ``out`` contains files that are not from a study.

    Examples
    --------
    Two subjects are too few, so the study stops before any method is scored:

    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import study
    >>> result = study(datasets.mental_arithmetic(["Subject00", "Subject01"]))
    >>> len(result.scores), bool(result.check.stops)
    (0, True)
    >>> result = study(datasets.mental_arithmetic(), effort="quick")  # doctest: +SKIP
    >>> print(*result.answers, sep="\n")  # doctest: +SKIP
    >>> result.report("study.html")  # doctest: +SKIP
    """
    settings = Settings(effort, tasks, encoders, n_train_subjects, draws, minutes, only, without)
    study_design.check_settings(settings, out, methods)
    data = StudyData.of(windows_ds)
    check = check_data(data, in_spite_of=in_spite_of)
    if check.stops:
        return unanswered(dataset, check, out)
    with tempfile.TemporaryDirectory(prefix="braindecode-pars-study-") as temporary:
        plan = study_design.plan_study(
            data,
            check,
            settings,
            methods,
            out=temporary if out is None else out,
            dataset=dataset,
            unlabeled_label=unlabeled_label,
        )
        return run_study(plan, save=out is not None, n_jobs=n_jobs, verbose=verbose)


def unanswered(dataset: str, check: DataCheck, out: str | Path | None) -> Study:
    """Write and return the result of a study that the data check prevents.

    Parameters
    ----------
    dataset : str
        Name of the dataset in the report.
    check : DataCheck
        Result of the data check, with findings of level "stop".
    out : path | None
        Folder for the results. If None, no files are written.
    """
    result = Study(dataset, METRIC, check)
    write(result, None if out is None else Path(out).expanduser())
    return result


def run_study(
    plan: StudyPlan, *, save: bool = True, n_jobs: int | None = None, verbose: int = 1
) -> Study:
    """Run all steps of a plan, and return the result of the study.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    save : bool
        Whether to write the report while the study runs, and to save the recommended model at the
        end. If False, only the scores and encoders are stored.
    n_jobs : int | None
        Number of processes, as in :func:`study`.
    verbose : int
        Verbosity level. If 1, a progress bar is shown.

    Returns
    -------
    Study
        Result of the study.
    """
    folder = plan.folder if save else None
    n_jobs = number_of_processes(n_jobs)
    failures: dict[str, str] = {}
    texts: dict[Any, str] = {text: text for text in plan.about.get("warnings", [])}
    written = 0.0
    try:
        for ended in run_steps(plan, plan.steps, n_jobs, verbose):
            if ended.error:
                failures[ended.step.name] = ended.error
            for warning in ended.warnings:
                texts.setdefault(identity_of(*warning), str(warning[0]))
            plan.about["warnings"] = [*dict.fromkeys(texts.values())]
            if time.monotonic() - written > REPORT_INTERVAL:
                write(study_results.assemble(plan, failures), folder)
                written = time.monotonic()
    finally:  # also after Ctrl-C
        result = study_results.assemble(plan, failures)
        write(result, folder)
    if plan.control_steps and result.has_gain:
        ended_steps = list(run_steps(plan, plan.control_steps, n_jobs, verbose))
        notes = [f"{x.step.name}: failed ({x.error})." for x in ended_steps if x.error]
        gains = study_results.primary_control_gains(plan)
        if gains is not None:
            notes = [describe_controls(gains), *notes]
        result = replace(result, controls=gains, control_notes=notes)
    if (chosen := result.recommendation) is not None:
        confusion = study_results.confusion_of(result.scores, chosen, plan.design)
        chosen = replace(chosen, folder=study_scores.save_model(plan, chosen) if save else None)
        result = replace(result, confusion=confusion, recommendation=chosen)
    write(result, folder)
    return result


def write(result: Study, folder: Path | None) -> None:
    """Write the result files of a finished or unfinished study, unless ``folder`` is None.

    Parameters
    ----------
    result : Study
        Result of the study so far.
    folder : Path | None
        Folder for ``report.html``, ``study.json``, ``scores.csv`` and ``levels.csv``.
    """
    if folder is None:
        return
    pairs = {name: getattr(result, name) for name in ("primary", "initialization", "baseline")}
    content = FORMAT | dict(
        answers=result.answers,
        comparisons={name: asdict(pair) for name, pair in pairs.items() if pair},
        recommendation=asdict(result.recommendation) if result.recommendation else None,
        about=result.about,
    )
    files.replace_file(folder / "study.json", files.to_json(content))
    for name, table in {"scores": result.scores, "levels": result.levels}.items():
        if len(table):
            files.replace_file(folder / f"{name}.csv", table.to_csv(index=False))
    result.report(folder)


# Steps --------------------------------------------------------------------------------------------


class StepResult(NamedTuple):
    """Finished or failed step, with its error message (empty if it succeeded) and its warnings."""

    step: StudyStep
    error: str
    warnings: list[Collected]


def number_of_processes(n_jobs: int | None) -> int:
    """Return the number of processes. The default is one per physical core, or 1 with CUDA."""
    if n_jobs is None:
        n_jobs = 1 if torch.cuda.is_available() else joblib.cpu_count(only_physical_cores=True)
    return int(joblib.effective_n_jobs(n_jobs))


def run_steps(
    plan: StudyPlan, steps: Sequence[StudyStep], n_jobs: int, verbose: int
) -> Iterator[StepResult]:
    """Run the unfinished steps, and yield the result of each step when it ends.

    Steps whose scores are already stored are skipped. Networks are trained after the primary
    comparison, because they are initialized with the encoders of the primary comparison.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    steps : sequence of StudyStep
        Steps to run: ``plan.steps`` or ``plan.control_steps``.
    n_jobs : int
        Number of processes.
    verbose : int
        Verbosity level. If 1, a progress bar is shown.

    Yields
    ------
    StepResult
        Step, in the order in which the steps end, with its error message and its warnings.
    """
    steps = [step for step in steps if not study_scores.scores_file(step, plan).exists()]
    initial_steps = [step for step in steps if step.group in ("baselines", "primary")]
    later_steps = [step for step in steps if step not in initial_steps]
    parallel = joblib.Parallel(
        n_jobs, batch_size=1, pre_dispatch="n_jobs", return_as="generator_unordered"
    )
    with training.ProgressBar(total=len(steps), desc="study", disable=not verbose) as bar:
        for group in (initial_steps, later_steps):
            for result in parallel(joblib.delayed(_attempt)(step, plan) for step in group):
                bar.update()
                yield result


def _attempt(step: StudyStep, plan: StudyPlan) -> StepResult:
    """Run a step, and return its error and its warnings.

    Warnings that a model did not converge or did not learn are omitted, because the report has a
    table with the losses.
    """
    error_text = ""
    caught: list[Collected] = []
    # Outliers are not reported again, because the data check of the study has reported them.
    with collected(caught), checks.quiet("outlier_recordings", "outlier_channels"):
        warnings.simplefilter("always", UserWarning)
        try:
            study_scores.run_step(step, plan)
        except Exception as error:
            error_text = f"{type(error).__name__}: {error}"
    caught = [warning for warning in caught if not issubclass(warning[1], ConvergenceWarning)]
    return StepResult(step, error_text, caught)
