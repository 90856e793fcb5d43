"""Implementation of the commands ``fit`` and ``study``."""

import json
import shlex
import sys
import time
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars import PARSClassifier, baselines, datasets
from braindecode_pars._common import model_files
from braindecode_pars._common.findings import Collected, collected
from braindecode_pars.baselines.few_labels import FewLabelsClassifier
from braindecode_pars.cli.terminal import print_frame, show
from braindecode_pars.datasets import any_source
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.signal_store.index import is_store
from braindecode_pars.study import data_check, study_design, study_scores
from braindecode_pars.study.data_check import StudyData
from braindecode_pars.study.study import Study, number_of_processes, run_study, unanswered
from braindecode_pars.windows import preprocessing


def fit_folder(
    folder: str,
    out: Path,
    encoder: str | None,
    method: str,
    reading: dict[str, Any],
    settings: Mapping[str, Any],
    *,
    overwrite: bool,
) -> None:
    """Load recordings, train and save a classifier, and print commands for the next steps.

    Parameters
    ----------
    folder : str
        Source of labeled windows, as in ``datasets.load``.
    out : Path
        Folder in which the model is saved.
    encoder : str | None
        Pretrained encoder to fine-tune, or frozen encoder of a FewLabelsClassifier. If None, a
        network is trained as specified by ``method``, and a FewLabelsClassifier uses its default
        encoder.
    method : str
        Pretext task with which a network is pretrained, ``"scratch"`` for a network without
        pretraining, or ``"few-labels"`` for a FewLabelsClassifier.
    reading : dict
        Arguments of ``datasets.load``.
    settings : mapping
        Arguments of the classifier.
    overwrite : bool
        Whether to replace an existing model.
    """
    is_folder = Path(folder).is_dir() and not is_store(folder)
    if not is_folder and "channels" in reading:  # the model selects channels of existing windows
        settings = {**settings, "channels": reading.pop("channels")}
    clf: FewLabelsClassifier | PARSClassifier
    arguments = {"random_state": 0, "verbose": 1, **settings}
    if method == "few-labels":
        clf = FewLabelsClassifier(**{**settings, **({"encoder": encoder} if encoder else {})})
    elif encoder:
        clf = PARSClassifier(encoder=encoder, **arguments)
    else:
        (clf,) = baselines.make_methods([method], **arguments).values()
    # Check settings and folder before recordings are read and models are trained for hours.
    windows_estimator.check_estimator(clf)
    kind, model_folder = type(clf).__name__, out.expanduser()
    model_files.check_may_save(model_folder, kind)
    if model_files.kinds_in(model_folder) and not overwrite:
        raise ValueError(
            f"The folder {out} (--out) already contains a saved {kind}. Pass another folder, or "
            "pass --overwrite to replace the model."
        )
    if clf.encoder is not None and is_folder:
        reading = _as_encoder(clf.encoder) | reading
    windows = datasets.load(folder, **reading)
    data = StudyData.of(windows)
    _show_check(data_check.check_data(data, in_spite_of=["confounds"]), ("warning", "note"))
    n_subjects = pd.Series(data.windows.groups).nunique()
    start = time.perf_counter()
    clf.fit(windows)
    minutes = n_subjects * (time.perf_counter() - start) / 60
    clf.save(out)
    show(f"The model was trained on all labeled windows and saved to {out}.")
    show("To predict other recordings, run:")
    _show_predict_command(out)
    if n_subjects == 1:
        show("To estimate the accuracy on other subjects, label recordings of more subjects.")
        return
    if method == "few-labels":  # in the evaluation, center the features of all methods or of none
        settings = {name: value for name, value in settings.items() if name != "recenter"}
        settings |= {"subject_centering": True} if clf.recenter_ else {}
    methods = ["--encoder", encoder] if encoder else []
    if method == "few-labels" or not encoder:
        methods += ["--method", method]
    evaluate = [
        *("evaluate", "leave-one-subject-out", "--dataset", folder, *methods),
        *("--method", "band-power", *_as_options("--load", reading)),
        *(*_as_options("--set", settings), "--out", f"{out}-evaluation"),
    ]
    show(
        "To estimate the accuracy on new subjects with leave-one-subject-out cross-validation, run "
        f"this command (about {max(minutes, 1):.0f} min on this machine):\n  braindecode-pars "
        f"{shlex.join(evaluate)}"
    )


def _as_options(name: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return arguments as words of a command line: ``name KEY=VALUE`` for each argument."""
    options = [f"{key}={json.dumps(value)}" for key, value in arguments.items()]
    return [word for option in options for word in (name, option)]


def _as_encoder(encoder: str) -> dict[str, Any]:
    """Return the sampling rate and the frequency band of the pretraining data of an encoder.

    Values that the encoder card does not contain are omitted.
    """
    card = load_encoder(encoder).card
    settings = dict(zip(("low", "high"), card.preprocessing.band or (), strict=False))
    return settings if card.sfreq is None else settings | {"sfreq": card.sfreq}


def _show_check(check: data_check.DataCheck, levels: Collection[str]) -> None:
    """Print the results of a data check: properties of the data, classes, and findings.

    Findings whose level is not in ``levels`` are not printed.
    """
    print_frame(pd.DataFrame(check.facts.items()), "data check", 2, header=False)
    if len(check.classes):
        print_frame(check.classes)
    for finding in check.findings:
        if finding.level in levels:
            show(f"{finding.level.capitalize()}: {finding.text}")


#: Classes of bundled datasets in the command study, if not all classes are used. For the dataset
#: sleep, these are two sleep stages that are difficult to distinguish.
SAMPLE_CLASSES = {"sleep": dict(classes=["Sleep stage 3", "Sleep stage 4"])}


def study_folder(
    folder: str, out: Path, reading: dict[str, Any], options: dict[str, Any], *, plan_only: bool
) -> None:
    """Check recordings, plan and run a study, and print the plan, the scores and the conclusions.

    Parameters
    ----------
    folder : str
        Source of labeled windows, as in ``datasets.load``.
    out : Path
        Folder for the results of the study.
    reading : dict
        Further arguments of ``datasets.load``.
    options : dict
        Arguments of :func:`~braindecode_pars.evaluation.study`.
    plan_only : bool
        Whether to only check the data and print the plan.
    """
    in_spite_of = options.pop("in_spite_of", ())
    settings = study_design.Settings(**options)
    study_design.check_settings(settings, out)
    encoder = next(iter((settings.encoders or {"small": "small"}).values()))
    is_folder = Path(folder).is_dir() and not is_store(folder)
    n_jobs = reading.get("n_jobs")
    if is_folder:  # exclude recordings that cannot be read, and list them in the report
        reading = {"on_error": "warn"} | _as_encoder(encoder) | reading
    else:  # existing windows are not read in parallel
        reading.pop("n_jobs", None)
    reading = SAMPLE_CLASSES.get(folder, {}) | reading
    caught: list[Collected] = []
    with collected(caught):
        windows = datasets.load(folder, **reading)
    for message, category, file, line in caught:
        warnings.warn_explicit(message, category, file, line)
    name = any_source.title(folder).replace("_", " ")
    data = StudyData.of(windows)
    check = data_check.check_data(data, in_spite_of=in_spite_of)
    # Print preprocessing mismatches with the first encoder. They are not printed for quick studies,
    # which do not use this encoder, and for stores and bundled datasets, whose preprocessing cannot
    # be changed.
    if is_folder and settings.effort != "quick":
        recorded = preprocessing.agreed(data.windows.recordings["preprocessing"])
        differences = load_encoder(encoder).card.differences(recorded)
        for difference in differences:
            advice = windows_estimator.advice([difference])
            show(f"Preprocessing mismatch with encoder {encoder}: {difference}. {advice}")
    _show_check(check, ("stop", "warning", "note"))
    if check.stops:
        show("\n".join(unanswered(name, check, out).answers))
        show(f"Report written to {out / 'report.html'}.")
        return
    show("Pretraining on a few windows, to estimate the run time ...")
    plan = study_design.plan_study(data, check, settings, out=out, dataset=name, unlabeled_label=-1)
    plan.about["command"] = f"braindecode-pars {shlex.join(sys.argv[1:])}"
    plan.about["warnings"] = [str(message) for message, *_ in caught]
    _show_plan(plan, n_jobs)
    if plan_only:
        show("The study was not run. To run it, omit --plan-only.")
        return
    _show_study(run_study(plan, n_jobs=n_jobs), out)


def _show_plan(plan: study_design.StudyPlan, n_jobs: int | None) -> None:
    """Print the methods of a plan, with their numbers of steps, and the estimated run time."""
    groups = plan.table.groupby(["group", "methods"], sort=False, as_index=False)
    table = groups.agg(steps=("step", "size"), minutes=("minutes", lambda m: m.sum(skipna=False)))
    print_frame(table.round(1), "plan (minutes: estimated duration of pretraining on one core)", 2)
    for reason in plan.about["left_out"]:
        show(f"Note: {reason}")
    is_finished = [study_scores.scores_file(step, plan).exists() for step in plan.steps]
    if any(is_finished):
        show(f"{sum(is_finished)} of {len(is_finished)} steps are already finished.")
    minutes = plan.table["minutes"][~np.array(is_finished)]
    n_processes = number_of_processes(n_jobs)
    total = max(1.0, minutes.sum() / n_processes, minutes.max())
    has_controls = any(step.methods for step in plan.control_steps)
    controls = " and control analyses" if has_controls else ""
    show(
        f"{plan.about['design']}.\nEstimated run time on this machine: at least {total:.0f} min "
        f"(processes: {n_processes}), plus the time for the final training of the recommended "
        f"method{controls}. Pretraining ends earlier if the loss on held-out subjects stops "
        "decreasing."
    )


def _show_study(result: Study, out: Path) -> None:
    """Print the scores and conclusions of a study, and the names of the written files."""
    if len(result.levels):
        columns = ["method", "is_centered", "mean", "ci_low", "ci_high"]
        table = result.levels[columns].rename(columns={"is_centered": "subject-centered"})
        table["subject-centered"] = table["subject-centered"].map({True: "yes", False: ""})
        metric = result.metric.replace("_", " ")
        title = f"{metric} after training on {result.n_labeled} labeled subjects"
        print_frame(table.round(3), f"{title} (mean and uncorrected 95 % CI)", 2)
    show("\n".join(["", *result.answers]))
    show(f"Report written to {out / 'report.html'}, next to scores.csv, levels.csv and study.json.")
    if result.recommendation is not None and result.recommendation.folder:
        show(
            f"The recommended method, {result.recommendation.method}, was trained on all labeled "
            "subjects. To predict other recordings with this model, run:"
        )
        _show_predict_command(out / "model")


def _show_predict_command(model: Path) -> None:
    show(f"  braindecode-pars predict {shlex.quote(str(model))} RECORDING --out predictions")
