"""Behind ``fit`` and ``study``: what can be done with own labeled recordings."""

import json
import shlex
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars import PARSClassifier, baselines, datasets
from braindecode_pars._common import model_files
from braindecode_pars.baselines.few_labels import FewLabelsClassifier
from braindecode_pars.cli.terminal import print_frame, show, values
from braindecode_pars.datasets import any_source
from braindecode_pars.estimators import transformers, windows_estimator
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.signal_store.index import is_store
from braindecode_pars.study import data_check, study_design, study_plan, study_scores
from braindecode_pars.study.study import Study, number_of_processes, run_study, unanswered
from braindecode_pars.windows import convert, labels, preprocessing


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
    """Read, train, save, and print what was done and what to do next.

    Parameters
    ----------
    folder : str
        Source of labeled windows, as in ``datasets.load``.
    out : Path
        Folder of the model.
    encoder : str | None
        Encoder to fine-tune, or of the vote.
    method : str
        Pretext task, ``"scratch"``, or ``"few-labels"`` for a FewLabelsClassifier.
    reading : dict
        Arguments of ``datasets.load``.
    settings : mapping
        Arguments of the classifier.
    overwrite : bool
        Whether to replace a model.
    """
    is_folder = Path(folder).is_dir() and not is_store(folder)
    if not is_folder and "channels" in reading:  # of windows that are cut already
        settings = {**settings, "channels": reading.pop("channels")}
    reading = _with_classes(folder, reading)
    clf: FewLabelsClassifier | PARSClassifier
    arguments = {"random_state": 0, "verbose": 1, **settings}
    if method == "few-labels":
        clf = FewLabelsClassifier(**{**settings, **({"encoder": encoder} if encoder else {})})
    elif encoder:
        clf = PARSClassifier(encoder=encoder, **arguments)
    else:
        (clf,) = baselines.make_methods([method], **arguments).values()
    # Before hours of reading and training.
    windows_estimator.check_estimator(clf)
    kind, place = type(clf).__name__, out.expanduser()
    model_files.check_may_save(place, kind)
    if model_files.kinds_in(place) and not overwrite:
        raise ValueError(
            f"{out} contains a saved {kind}; pass another folder, or --overwrite to replace it."
        )
    if clf.encoder is not None and is_folder:
        reading = _as_encoder(clf.encoder) | reading
    windows = datasets.load(folder, **reading)
    n_subjects = _describe(folder, windows)
    began = time.perf_counter()
    clf.fit(windows)
    minutes = n_subjects * (time.perf_counter() - began) / 60
    clf.save(out)
    if isinstance(clf, FewLabelsClassifier) and clf.recenter_:
        _warn_of_centering(clf, windows.datasets)
    show(
        f"Written to {out}: a classifier, trained on all of the above. Predict other recordings:\n"
        f"  braindecode-pars predict {shlex.quote(str(out))} RECORDING --out predictions"
    )
    if n_subjects == 1:
        show(
            "All windows are of one subject, so that nothing can tell how good it is on other "
            "people. Label recordings of more people."
        )
        return
    of_method = [f"--encoder {shlex.quote(encoder)}"] if encoder else []
    if method == "few-labels" or not encoder:
        of_method.append(f"--method {method}")
    if method == "few-labels":  # every method is given what this one was
        settings = {name: value for name, value in settings.items() if name != "recenter"}
        settings |= {"subject_centering": True} if clf.recenter_ else {}
    show(
        "How good it is on people that it has not seen is not known yet: scores of the recordings "
        f"above say nothing about it. Hold out each of the {n_subjects} subjects in turn, in about "
        f"{max(minutes, 1):.0f} min here:\n"
        f"  braindecode-pars evaluate leave-one-subject-out --dataset {shlex.quote(folder)} "
        f"{' '.join(of_method)} --method band-power {_as_options('--load', reading)}"
        f"{_as_options('--set', settings)}--out {shlex.quote(f'{out}-evaluation')}\n"
        "Or find out whether pretraining helps on them: braindecode-pars study takes the same "
        "folder and options of reading, and announces its minutes before it begins."
    )


def _as_encoder(encoder: str) -> dict[str, Any]:
    """Return sampling rate and band of the recordings of an encoder, as far as they are known."""
    card = load_encoder(encoder).card
    settings = dict(zip(("low", "high"), card.preprocessing.band or (), strict=False))
    return settings if card.sfreq is None else settings | {"sfreq": card.sfreq}


def _with_classes(folder: str, reading: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of reading: of a sample, --class names classes, not annotations."""
    if Path(folder).exists() or not isinstance(reading.get("labels"), Mapping):
        return reading
    others = {name: value for name, value in reading.items() if name != "labels"}
    return others | {"classes": reading["labels"]}


def _describe(folder: str, windows: Any) -> int:
    """Print what was read, and return the number of subjects."""
    read = convert.as_windows(windows)
    table = pd.DataFrame({"class": read.labels, "subject": read.groups})
    n_subjects = table["subject"].nunique()
    n_chans, n_times = windows[0][0].shape
    show(
        f"{folder}: {len(windows.datasets)} recordings of {n_subjects} subjects; {len(read)} "
        f"windows of {n_times / read.sfreq:g} s, {n_chans} channels at {read.sfreq:g} Hz."
    )
    counts = table.groupby("class")["subject"].agg(windows="size", subjects="nunique")
    names = labels.names_of_classes(counts.index.to_numpy(), read.label_names) or {}
    print_frame(counts.rename(index=names).reset_index())
    for finding in data_check.check_confounds(windows):
        show(f"Warning: {finding.text}")
    return n_subjects


def _warn_of_centering(clf: FewLabelsClassifier, recordings: Sequence[Any]) -> None:
    """Print why ``predict``, which centers a recording alone, may be wrong or refuse it."""
    remedy = "to predict a recording alone, fit with --set recenter=null"
    if clf.one_class_recordings_:
        show(
            "Warning: Each recording has one class, and the mean over all recordings of a subject "
            f"was subtracted. The mean of one recording removes its class: {remedy}."
        )
    lengths = [part.raw.n_times // clf.n_times_ for part in recordings if hasattr(part, "raw")]
    if short := [n for n in lengths if n < transformers.MIN_WINDOWS]:
        show(
            f"Warning: {len(short)} of {len(lengths)} recordings have fewer than "
            f"{transformers.MIN_WINDOWS} windows, such as {min(short)}, and predict refuses such: "
            f"cut shorter windows, or {remedy}."
        )


def _as_options(name: str, arguments: Mapping[str, Any]) -> str:
    """Return values as options KEY=VALUE of a shell."""
    options = ""
    for key, value in arguments.items():
        is_plain = isinstance(value, str) and values([f"{key}={value}"], name)[key] == value
        options += f"{name} {shlex.quote(f'{key}={value if is_plain else json.dumps(value)}')} "
    return options


#: Question of a sample of the package, if it has several classes: the hard one of the paper.
SAMPLE_QUESTIONS = {"sleep": dict(classes=["Sleep stage 3", "Sleep stage 4"])}


def study_folder(
    folder: str, out: Path, reading: dict[str, Any], options: dict[str, Any], *, plan_only: bool
) -> None:
    """Check recordings, plan and run a study, and print each step and the answers.

    Parameters
    ----------
    folder : str
        Source of labeled windows, as in ``datasets.load``.
    out : Path
        Folder of the study.
    reading : dict
        Arguments of ``datasets.load``.
    options : dict
        Arguments of :func:`~braindecode_pars.evaluation.study`.
    plan_only : bool
        Whether to stop after the plan.
    """
    in_spite_of = options.pop("in_spite_of", ())
    settings = study_design.Settings(**options)
    study_plan.check_settings(settings, out)
    first = next(iter((settings.encoders or {"small": "small"}).values()))
    if is_folder := Path(folder).is_dir() and not is_store(folder):
        # Recordings that cannot be used are left out, and listed in the report.
        reading = {"on_error": "warn"} | _as_encoder(first) | reading
        n_jobs = reading.get("n_jobs")
    else:
        n_jobs = reading.pop("n_jobs", None)  # what is stored is not read in parallel
    reading = SAMPLE_QUESTIONS.get(folder, {}) | _with_classes(folder, reading)
    with warnings.catch_warnings(record=True) as caught:
        windows = datasets.load(folder, **reading)
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    name = any_source.title(folder).replace("_", " ")
    check = data_check.check_data(windows, in_spite_of=in_spite_of)
    # A quick study has no bundled encoder, and the windows of a store or a sample cannot change
    if is_folder and settings.effort != "quick":
        recorded = preprocessing.counted(convert.as_windows(windows).column("preprocessing"))
        differences = load_encoder(first).card.differences(preprocessing.agreed(recorded))
        for difference in differences:
            show(f"Encoder {first}: {difference}. {windows_estimator.advice([difference])}")
    print_frame(pd.DataFrame(check.facts.items()), "data check", 2, header=False)
    if len(check.classes):
        print_frame(check.classes)
    for finding in check.findings:
        show(f"{finding.kind.capitalize()}: {finding.text}")
    if check.stops:
        show("\n".join(unanswered(name, check, out).answers))
        show(f"Written to {out / 'report.html'}.")
        return
    show("Estimating the duration on a few windows.")
    plan = study_plan.plan_study(
        windows, check, settings, out=out, dataset=name, unlabeled_label=-1
    )
    plan.about["command"] = f"braindecode-pars {shlex.join(sys.argv[1:])}"
    plan.about["warnings"] = [str(warning.message) for warning in caught]
    _show_plan(plan, n_jobs)
    if plan_only:
        show("Nothing was run. Omit --plan-only to run it.")
        return
    _show_study(run_study(plan, n_jobs=n_jobs), out)


def _show_plan(plan: study_design.StudyPlan, n_jobs: int | None) -> None:
    """Print the steps and methods, and the minutes that they take."""
    groups = plan.table.groupby(["group", "methods"], sort=False, as_index=False)
    table = groups.agg(steps=("step", "size"), minutes=("minutes", lambda m: m.sum(skipna=False)))
    print_frame(table.round(1), "plan (minutes of one core)", 2)
    for reason in plan.about["left_out"]:
        show(f"Left out: {reason}")
    is_finished = [study_scores.scores_file(step, plan).exists() for step in plan.steps]
    if any(is_finished):
        show(f"{sum(is_finished)} of {len(is_finished)} steps are already finished.")
    minutes = plan.table["minutes"][~np.array(is_finished)]
    n_processes = number_of_processes(n_jobs)
    total = max(1.0, minutes.sum() / n_processes, minutes.max())
    beginning = "At least" if minutes.isna().any() else "About"
    controls = ""
    if plan.effort.controls and plan.primary:
        controls = "control analyses, which follow a gain, and "
    show(
        f"{plan.about['design']}.\n{beginning} {total:.0f} min with {n_processes} "
        f"process{'es' * (n_processes > 1)}, without {controls}the final training of the "
        "recommended method. Pretraining ends early if its held-out loss no longer falls."
    )


def _show_study(result: Study, out: Path) -> None:
    """Print the scores and the answers of a study, and where they are written."""
    if len(result.levels):
        columns = ["method", "is_centered", "mean", "ci_low", "ci_high"]
        table = result.levels[columns].rename(columns={"is_centered": "subject-centered"})
        table["subject-centered"] = table["subject-centered"].map({True: "yes", False: ""})
        metric = result.metric.replace("_", " ")
        print_frame(table.round(3), f"{metric} with {result.n_labeled} labeled subjects", 1)
    show("\n".join(["", *result.answers]))
    show(f"Written to {out / 'report.html'}, with scores.csv, levels.csv and study.json.")
    if result.recommendation is not None and result.recommendation.folder:
        show(
            f"{result.recommendation.method}, trained on all labeled subjects, predicts others:\n"
            f"  braindecode-pars predict {shlex.quote(str(out / 'model'))} RECORDING "
            "--out predictions"
        )
