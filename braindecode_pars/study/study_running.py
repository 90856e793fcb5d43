"""Run the steps of a study in one or several processes, with a progress bar."""

from __future__ import annotations

import shutil
import signal
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import torch
from joblib.externals.loky import get_reusable_executor
from sklearn.exceptions import ConvergenceWarning

from braindecode_pars._common import files, training
from braindecode_pars._common.findings import Collected, collected
from braindecode_pars.study import study_scores
from braindecode_pars.study.study_design import StudyPlan
from braindecode_pars.study.study_methods import StudyStep

#: Maximum time between two checks of the worker processes, in seconds.
POLL_INTERVAL = 0.5


class StepResult(NamedTuple):
    """Step that ended, its error (empty if it succeeded), and its warnings."""

    step: StudyStep
    error: str
    warnings: list[Collected]


def run_steps(
    plan: StudyPlan, steps: Sequence[StudyStep], n_jobs: int, verbose: int
) -> Iterator[StepResult]:
    """Run the unfinished steps, and yield the result of each step when it ends.

    Steps whose scores are already stored are skipped. Networks run after the primary comparison,
    because they start from its encoders.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    steps : sequence of StudyStep
        Steps of the plan, or control analyses.
    n_jobs : int
        Number of processes.
    verbose : int
        Verbosity; 1 shows a progress bar.
    """
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
    """Return the number of processes. If None, one per physical core, or one with CUDA."""
    if n_jobs is None:
        n_jobs = 1 if torch.cuda.is_available() else joblib.cpu_count(only_physical_cores=True)
    return int(joblib.effective_n_jobs(n_jobs))


def _run_sequentially(
    steps: Sequence[StudyStep], plan: StudyPlan, n_jobs: int, bar: training.ProgressBar
) -> Iterator[StepResult]:
    for step in steps:
        bar.set_postfix_str(step.name)
        yield _attempt(step, plan, bar.set_postfix_str)


def _attempt(step: StudyStep, plan: StudyPlan, report: study_scores.Report) -> StepResult:
    """Run a step, and return its error and its warnings.

    Warnings about trainings that did not converge or learn are omitted, because the table of
    pretrainings contains the losses.
    """
    reason = ""
    caught: list[Collected] = []
    with collected(caught):
        warnings.simplefilter("always", UserWarning)
        try:
            study_scores.run_step(step, plan, report)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
    caught = [warning for warning in caught if not issubclass(warning[1], ConvergenceWarning)]
    return StepResult(step, reason, caught)


#: The plan in a worker process.
_WORKER: dict[str, Any] = {}


def _start_worker(plan: StudyPlan, n_threads: int) -> None:
    """Initialize a worker process. Workers ignore Ctrl-C, because the main process ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(n_threads)
    _WORKER["plan"] = plan


def _run_in_worker(step: StudyStep, progress_file: Path) -> StepResult:
    result = _attempt(step, _WORKER["plan"], lambda text: files.replace_file(progress_file, text))
    progress_file.unlink(missing_ok=True)
    return result


def _run_in_parallel(
    steps: Sequence[StudyStep], plan: StudyPlan, n_jobs: int, bar: training.ProgressBar
) -> Iterator[StepResult]:
    """Run steps in worker processes; the progress bar shows the reports of the trainings."""
    n_threads = max(1, joblib.cpu_count() // n_jobs)
    progress = plan.folder / "progress"
    progress.mkdir(parents=True, exist_ok=True)
    executor = get_reusable_executor(
        n_jobs, timeout=None, initializer=_start_worker, initargs=(plan, n_threads), reuse=False
    )
    waiting = list(steps)
    running: set[Future[StepResult]] = set()
    finished: set[Future[StepResult]] = set()
    try:
        while waiting or running or finished:
            # If more steps than processes are submitted, loky prints errors after Ctrl-C.
            while waiting and len(running) < n_jobs:
                step = waiting.pop(0)
                running.add(executor.submit(_run_in_worker, step, progress / f"{step.slug}.txt"))
            # The report is written while the next steps run.
            yield from (future.result() for future in finished)
            finished, running = wait(running, POLL_INTERVAL, return_when=FIRST_COMPLETED)
            texts = []
            for file in sorted(progress.glob("*.txt")):
                with suppress(FileNotFoundError):  # the step has just ended
                    texts.append(file.read_text())
            bar.set_postfix_str("; ".join(texts))
    finally:
        executor.shutdown(wait=True, kill_workers=bool(running))
        shutil.rmtree(progress)
