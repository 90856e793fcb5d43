"""The command ``study``: look, plan, run, and tell."""

from __future__ import annotations

import shlex
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braindecode_pars.cli.fitting import READING, as_encoder, reading_of
from braindecode_pars.cli.terminal import (
    pairs,
    print_frame,
    report_failures,
    show,
    with_options,
)

if TYPE_CHECKING:
    import pandas as pd

    from braindecode_pars.evaluation.study_plan import Planned


@with_options(READING, reading_of)
def study(
    folder: str,
    *,
    out: Path,
    encoder: list[str] | None = None,
    task: list[str] | None = None,
    draws: int = 6,
    plan_only: bool = False,
    given: dict[str, Any],
) -> None:
    """Find out whether pretraining helps on labelled recordings, and write a report.

    An interrupted study goes on with the same command. --class and --channel may be repeated.

    Options
    -------
    folder : FOLDER
        Folder of labelled recordings, a BIDS data set, or a store with labels. sleep and
        mental_arithmetic are samples in the package.
    out : STUDY
        Folder of the study.
    encoder : NAME=FOLDER
        Encoder to compare instead of small and noise.
    task
        Pretext task to pretrain with on the people who are not tested. Default: pars and features.
    draws
        Draws of labelled people; networks have a quarter of them.
    plan_only
        Look, plan and stop.
    """
    kept = f"What is finished is kept in {out}; run the same command to go on."
    with report_failures(kept):
        import pandas as pd

        from braindecode_pars import datasets
        from braindecode_pars.cli.evaluation_report import title
        from braindecode_pars.evaluation.data_check import check_data
        from braindecode_pars.evaluation.study import run_study, unanswered
        from braindecode_pars.evaluation.study_plan import TASKS, check_study, plan_study
        from braindecode_pars.signal_store.index import is_store

        check_study(draws, task or TASKS, out)
        reading = reading_of(given)
        encoders = dict(pairs(encoder, "--encoder", "NAME=FOLDER")) or None
        if Path(folder).is_dir() and not is_store(folder):
            first = next(iter((encoders or {"small": "small"}).values()))
            # What cannot be used is left out, and listed in the report.
            reading = {"on_error": "warn"} | as_encoder(first) | reading
        else:
            reading.pop("n_jobs", None)  # what is stored is not read in parallel
        with warnings.catch_warnings(record=True) as caught:
            windows = datasets.load(folder, **reading)
        for each in caught:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
        show("Looking at the recordings, and timing each method on a few windows.")
        name = title(folder).replace("_", " ")
        check = check_data(windows)
        about = dict(
            command=f"braindecode-pars {shlex.join(sys.argv[1:])}",
            warnings=[str(each.message) for each in caught],
        )
        print_frame(pd.DataFrame(check.facts.items()), "found", 2, header=False)
        if len(check.classes):
            print_frame(check.classes)
        for finding in check.findings:
            show(f"{finding.kind.capitalize()}: {finding.text}")
        if check.stops:
            found = replace(unanswered(check, name, out), about=about)
            show(f"{found.answer}\nWritten to {found.report(out)}.")
            return
        compared: dict[str, Any] = dict(encoders=encoders, tasks=task or TASKS, draws=draws)
        planned = plan_study(windows, check, dataset=name, out=out, **compared)
        _show_plan(planned)
        if plan_only:
            show("Nothing was run. Leave --plan-only out to run it.")
            return
        planned = replace(planned, about=planned.about | about)
        found = run_study(planned, n_jobs=given.get("n_jobs"))
        if len(found.scores):
            levels = found.levels.assign(mean=found.levels["mean"].map("{:.3f}".format))
            order = found.plan["method"][found.plan["left_out"] == ""]
            wide = levels.pivot(index="method", columns="n_train_subjects", values="mean")
            shown = wide.loc[order].fillna("").rename(_short).add_suffix(" people").reset_index()
            metric = found.metric.replace("_", " ")
            print_frame(shown, f"mean {metric} by number of labelled people")
        if found.people is not None:
            print_frame(found.people.assign(method=found.people["method"].map(_short)), "by person")
        _show_left_out(found.plan)
        show("\n".join([f"\n{found.answer}", *found.doubts]))
        show(f"Written to {found.report(out)}, with scores.csv, tests.csv and study.json.")
        if found.about.get("model"):
            show(
                f"{found.about['model']}, trained on all labelled people, predicts others:\n"
                f"  braindecode-pars predict {shlex.quote(str(out / 'model'))} RECORDING "
                "--out predictions"
            )


def _show_plan(planned: Planned) -> None:
    table = planned.plan
    runs = table[table["left_out"] == ""].drop(columns=["given", "left_out"])
    runs = runs.assign(
        people=[", ".join(map(str, people)) for people in runs["people"]],
        minutes=["< 0.1" if m < 0.1 else f"{m:.1f}".replace("nan", "-") for m in runs["minutes"]],
        method=runs["method"].map(_short),
    )
    print_frame(runs, "plan", 2)
    _show_left_out(table)
    for sentence in planned.about["left_out"]:
        show(sentence)
    show(
        f"About {table['minutes'].sum():.0f} minutes here, and the controls. Gains of "
        f"{planned.detectable:.3f} can be found if scores vary as in rest or arithmetic."
    )


def _show_left_out(plan: pd.DataFrame) -> None:
    for _, row in plan[plan["left_out"] != ""].iterrows():
        show(f"Left out: {_short(row['method'])}: {row['left_out'].rstrip('.')}.")


def _short(method: str) -> str:
    from braindecode_pars.baselines import CENTRED

    return method.replace(CENTRED, ", centred")
