"""Behind ``fit`` and ``study``: what can be done with own labelled recordings."""

import json
import shlex
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars import FewLabelsClassifier, PARSClassifier, baselines, datasets
from braindecode_pars._common import model_files
from braindecode_pars.cli.terminal import print_frame, show, values
from braindecode_pars.estimators import transformers, windows_estimator
from braindecode_pars.evaluation import data_check, study_plan, study_report
from braindecode_pars.evaluation.study import run_study, unanswered
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.recordings import preprocessing
from braindecode_pars.windows import door, labels


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
        Source of labelled windows, as in ``datasets.load``.
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
    is_folder = Path(folder).is_dir() and not datasets.is_store(folder)
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
        _warn_of_centring(clf, windows.datasets)
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
    found = dict(zip(("low", "high"), card.preprocessing.band or (), strict=False))
    return found if card.sfreq is None else found | {"sfreq": card.sfreq}


def _with_classes(folder: str, reading: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of reading: of a sample, --class names classes, not annotations."""
    if Path(folder).exists() or not isinstance(reading.get("labels"), Mapping):
        return reading
    others = {name: value for name, value in reading.items() if name != "labels"}
    return others | {"classes": reading["labels"]}


def _describe(folder: str, windows: Any) -> int:
    """Print what was read, and return the number of subjects."""
    read = door.as_windows(windows)
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
    for finding in data_check.check_origin(windows):
        show(f"Warning: {finding.text}")
    return n_subjects


def _warn_of_centring(clf: FewLabelsClassifier, recordings: Sequence[Any]) -> None:
    """Print why ``predict``, which centres a recording alone, may be wrong or refuse it."""
    remedy = "to predict a recording alone, fit with --set recenter=null"
    if clf.one_class_recordings_:
        show(
            "Warning: Each recording has one class, and the mean over all recordings of a subject "
            f"was subtracted. The mean of one recording removes its class: {remedy}."
        )
    lengths = [each.raw.n_times // clf.n_times_ for each in recordings if hasattr(each, "raw")]
    if short := [n for n in lengths if n < transformers.MIN_WINDOWS]:
        show(
            f"Warning: {len(short)} of {len(lengths)} recordings have fewer than "
            f"{transformers.MIN_WINDOWS} windows, such as {min(short)}, and predict refuses such: "
            f"cut shorter windows, or {remedy}."
        )


def _as_options(name: str, given: Mapping[str, Any]) -> str:
    """Return values as options KEY=VALUE of a shell."""
    options = ""
    for key, value in given.items():
        is_plain = isinstance(value, str) and values([f"{key}={value}"], name)[key] == value
        options += f"{name} {shlex.quote(f'{key}={value if is_plain else json.dumps(value)}')} "
    return options


def study_folder(
    folder: str,
    out: Path,
    reading: dict[str, Any],
    encoders: dict[str, str],
    tasks: Sequence[str] | None,
    draws: int,
    *,
    plan_only: bool,
) -> None:
    """Look at recordings, plan and run a study, and print each step and the answer.

    Parameters
    ----------
    folder : str
        Source of labelled windows, as in ``datasets.load``.
    out : Path
        Folder of the study.
    reading : dict
        Arguments of ``datasets.load``.
    encoders : dict of str to str
        Encoders by name; without any, those of a study.
    tasks : sequence of str | None
        Pretext tasks; None means those of a study.
    draws : int
        Number of draws of labelled people.
    plan_only : bool
        Whether to stop after the plan.
    """
    tasks = tasks or study_plan.TASKS
    study_plan.check_study(draws, tasks, out)
    if is_folder := Path(folder).is_dir() and not datasets.is_store(folder):
        first = next(iter(encoders.values()), "small")
        # What cannot be used is left out, and listed in the report.
        reading = {"on_error": "warn"} | _as_encoder(first) | reading
        n_jobs = reading.get("n_jobs")
    else:
        n_jobs = reading.pop("n_jobs", None)  # what is stored is not read in parallel
    reading = _with_classes(folder, reading)
    with warnings.catch_warnings(record=True) as caught:
        windows = datasets.load(folder, **reading)
    for each in caught:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    said = [str(each.message) for each in caught]
    show("Looking at the recordings, and timing each method on a few windows.")
    name = datasets.title(folder).replace("_", " ")
    check = data_check.check_data(windows)
    if is_folder:  # which windows of a store or a sample cannot change
        told = preprocessing.counted(door.as_windows(windows).column("preprocessing"))
        differing = load_encoder(first).card.differences(preprocessing.agreed(told))
        for each in differing:
            show(f"Encoder {first}: {each}. {windows_estimator.advice([each])}")
    about = dict(
        command=f"braindecode-pars {shlex.join(sys.argv[1:])}",
        warnings=[text for text in said if text not in {each.text for each in check.findings}],
    )
    print_frame(pd.DataFrame(check.facts.items()), "found", 2, header=False)
    if len(check.classes):
        print_frame(check.classes)
    for finding in check.findings:
        if finding.text not in said:
            show(f"{finding.kind.capitalize()}: {finding.text}")
    if check.stops:
        found = replace(unanswered(check, name, out), about=about)
        show(f"{found.answer}\nWritten to {found.report(out)}.")
        return
    compared: dict[str, Any] = dict(encoders=encoders or None, tasks=tasks, draws=draws)
    planned = study_plan.plan_study(windows, check, dataset=name, out=out, **compared)
    _show_plan(planned)
    if plan_only:
        show("Nothing was run. Leave --plan-only out to run it.")
        return
    _show_study(run_study(replace(planned, about=planned.about | about), n_jobs=n_jobs), out)


def _show_plan(planned: Any) -> None:
    """Print what is run and what is left out, and the minutes that it takes."""
    plan = planned.plan
    runs = plan[plan["left_out"] == ""].drop(columns=["given", "left_out"])
    runs = runs.assign(
        method=runs["method"].map(study_report.short_name),
        people=[", ".join(map(str, people)) for people in runs["people"]],
        minutes=["< 0.1" if m < 0.1 else f"{m:.1f}".replace("nan", "-") for m in runs["minutes"]],
    )
    print_frame(runs, "plan", 2)
    _show_left_out(plan)
    for sentence in planned.about["left_out"]:
        show(sentence)
    show(
        f"About {plan['minutes'].sum():.0f} min here, and the controls. Gains of "
        f"{planned.detectable:.3f} can be found if scores vary as in rest or arithmetic."
    )


def _show_study(found: Any, out: Path) -> None:
    """Print the scores and the answer of a study, and where they are written."""
    if len(found.scores):
        levels = found.levels.assign(mean=found.levels["mean"].map("{:.3f}".format))
        order = found.plan["method"][found.plan["left_out"] == ""]
        wide = levels.pivot(index="method", columns="n_train_subjects", values="mean")
        shown = wide.loc[order].fillna("").rename(study_report.short_name).add_suffix(" people")
        metric = found.metric.replace("_", " ")
        print_frame(shown.reset_index(), f"mean {metric} by number of labelled people")
    if found.people is not None:
        people = found.people
        print_frame(
            people.assign(method=people["method"].map(study_report.short_name)), "by person"
        )
    _show_left_out(found.plan)
    show("\n".join([f"\n{found.answer}", *found.doubts]))
    show(f"Written to {found.report(out)}, with scores.csv, tests.csv and study.json.")
    if model := found.about.get("model"):
        own, chance = found.levels[found.levels["method"] == model], 1 / len(found.check.classes)
        is_above = (own["p_holm"] < study_report.LEVEL) & (own["mean"] > chance)
        caveat = "" if is_above.any() else ", which is not above chance level here"
        show(
            f"{model}{caveat}, trained on all labelled people, predicts others:\n"
            f"  braindecode-pars predict {shlex.quote(str(out / 'model'))} RECORDING "
            "--out predictions"
        )


def _show_left_out(plan: pd.DataFrame) -> None:
    for _, row in plan[plan["left_out"] != ""].iterrows():
        show(f"Left out: {study_report.short_name(row['method'])}: {row['left_out'].rstrip('.')}.")
