"""``fit`` and ``study``: what can be done with own labelled recordings."""

from __future__ import annotations

import json
import shlex
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars._common.checks import names_file
from braindecode_pars.cli import terminal

METHODS = (
    *("pars", "mae", "spectral", "features", "mp3", "droppos", "joint"),
    *("pars_space_time", "features_space_time", "spectral_space_time", "joint_space_time"),
    "scratch",
)


def reading_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``datasets.folder.load`` among given options.

    Options
    -------
    labels
        Table of files or subjects, such as participants.tsv. Default: annotations.
    label_column
        Column of the table with the labels.
    classes
        Label to use, such as 'Sleep stage W=W'. Default: all.
    subject
        Pattern of the subject in the path of a file, as in store.
    window_seconds
        Length of a window in seconds. Default: 30, or that of all labels if it is shorter.
    sfreq
        Sampling rate in Hz. Default: the encoder's, or 200.
    low
        Lower edge of the band in Hz. Default: the encoder's, or 0.3.
    high
        Upper edge of the band in Hz. Default: the encoder's, or 75.
    mains
        Frequency of the notch in Hz. Default: 60.
    reference
        New reference: average, of the channels that are used. Default: the recordings' own.
    channels
        EEG channel to use; the average is over those. Default: all scalp electrodes that all
        recordings share.
    n_jobs
        Number of processes. Default: 1.
    on_error
        raise, or warn and skip a recording. Default: raise, in study warn.
    """
    reading = dict(given)
    if "classes" in reading:
        found = [text.rpartition("=")[::2] for text in reading.pop("classes")]
        by_label = {label or name: name for label, name in found}
        reading["classes" if "labels" in reading else "labels"] = by_label
    return reading


#: Types of the options of reading, and of training.
READING: dict[str, Any] = {
    **dict.fromkeys(("window_seconds", "sfreq", "low", "high", "mains"), float),
    **dict(n_jobs=terminal.JOBS, classes=Annotated[list[str], typer.Option("--class")]),
    "channels": Annotated[list[str], typer.Option("--channel")],
}
_TRAINING: dict[str, Any] = dict(
    settings=terminal.SETTINGS,
    random_state=Annotated[int, typer.Option("--seed")],
    device=str,
)


@terminal.with_options(READING | _TRAINING, reading_of)
def fit(
    folder: str,
    *,
    out: Path,
    overwrite: bool = False,
    few_labels: bool = False,
    encoder: str | None = None,
    method: str | None = None,
    given: dict[str, Any],
) -> None:
    """Train a classifier on labelled recordings. The command predict uses it.

    --class, --channel and --set may be repeated.

    Options
    -------
    folder : FOLDER
        Folder of labelled recordings, a BIDS data set, or a store with labels. sleep and
        mental_arithmetic are samples in the package.
    out : MODEL
        Folder for the model.
    overwrite
        Replace a model in --out.
    few_labels
        Fit a FewLabelsClassifier, for fewer than about twenty people: a frozen encoder, the tangent
        space and band power vote. In seconds, without training a network.
    encoder
        Encoder to fine-tune: a folder, a name such as small, or a model id. With --few-labels it is
        small by default, and stays as it is.
    method
        Without an encoder: task to pretrain on, pars, mae, spectral, features, mp3, droppos, joint,
        pars_space_time, features_space_time, spectral_space_time, joint_space_time, FILE.py:CLASS;
        or scratch. Default: pars.
    settings
        KEY=VALUE: argument of PARSClassifier, or FewLabelsClassifier.
    random_state
        Seed of all random draws. Default: 0.
    device
        Device: auto, cpu, cuda or mps. Default: auto.
    """
    if method is not None and encoder is not None:
        raise typer.BadParameter("--method is for a new encoder; leave it or --encoder out.")
    for name, value in (("--method", method), ("--seed", given.get("random_state"))):
        if few_labels and value is not None:  # a vote has neither
            raise typer.BadParameter(
                f"{name} is for training a network; leave it or --few-labels out."
            )
    method = "few-labels" if few_labels else method or "pars"
    if not few_labels and method not in METHODS and not names_file(method):
        raise typer.BadParameter(f"Unknown method {method!r}; known are {', '.join(METHODS)}.")
    with terminal.report_failures("Nothing was written."):
        chosen = {name: given.pop(name) for name in _TRAINING if name in given}
        chosen |= terminal.values(chosen.pop("settings", None), "--set")
        _fit(folder, out, encoder, method, reading_of(given), chosen, overwrite=overwrite)


def _fit(
    folder: str,
    out: Path,
    encoder: str | None,
    method: str,
    reading: dict[str, Any],
    settings: Mapping[str, Any],
    *,
    overwrite: bool,
) -> None:
    """Read, train, save, and print what was done and what to do next."""
    from braindecode_pars import FewLabelsClassifier, PARSClassifier, baselines, datasets
    from braindecode_pars._common import model_files
    from braindecode_pars.estimators import windows_estimator

    is_folder = Path(folder).is_dir() and not datasets.is_store(folder)
    if not is_folder and "channels" in reading:  # of windows that are cut already
        settings = {**settings, "channels": reading.pop("channels")}
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
        reading = as_encoder(clf.encoder) | reading
    windows = datasets.load(folder, **reading)
    n_subjects = _describe(folder, windows)
    began = time.perf_counter()
    clf.fit(windows)
    minutes = n_subjects * (time.perf_counter() - began) / 60
    clf.save(out)
    terminal.show(
        f"Written to {out}: a classifier, trained on all of the above. Predict other recordings:\n"
        f"  braindecode-pars predict {shlex.quote(str(out))} RECORDING --out predictions"
    )
    if n_subjects == 1:
        terminal.show(
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
    terminal.show(
        "How good it is on people that it has not seen is not known yet: scores of the recordings "
        f"above say nothing about it. Hold out each of the {n_subjects} subjects in turn, in about "
        f"{max(minutes, 1):.0f} min here:\n"
        f"  braindecode-pars evaluate leave-one-subject-out --dataset {shlex.quote(folder)} "
        f"{' '.join(of_method)} --method band-power {_options('--load', reading)}"
        f"{_options('--set', settings)}--out {shlex.quote(f'{out}-evaluation')}\n"
        "Or find out whether pretraining helps on them: braindecode-pars study takes the same "
        "folder and options of reading, and announces its minutes before it begins."
    )


def as_encoder(encoder: str) -> dict[str, Any]:
    """Return sampling rate and band of the recordings of an encoder, as far as they are known."""
    from braindecode_pars.pretrained import load_encoder

    card = load_encoder(encoder).card
    found = dict(zip(("low", "high"), card.preprocessing.band or (), strict=False))
    return found if card.sfreq is None else found | {"sfreq": card.sfreq}


def _describe(folder: str, windows: Any) -> int:
    """Print what was read, and return the number of subjects."""
    import pandas as pd

    from braindecode_pars.evaluation import data_check
    from braindecode_pars.windows import door, labels

    read = door.as_windows(windows)
    table = pd.DataFrame({"class": read.labels, "subject": read.groups})
    n_subjects = table["subject"].nunique()
    n_chans, n_times = windows[0][0].shape
    terminal.show(
        f"{folder}: {len(windows.datasets)} recordings of {n_subjects} subjects; {len(read)} "
        f"windows of {n_times / read.sfreq:g} s, {n_chans} channels at {read.sfreq:g} Hz."
    )
    counts = table.groupby("class")["subject"].agg(windows="size", subjects="nunique")
    names = labels.names_of_classes(counts.index.to_numpy(), read.label_names) or {}
    terminal.print_frame(counts.rename(index=names).reset_index())
    for finding in data_check.check_origin(windows):
        terminal.show(f"Warning: {finding.text}")
    return n_subjects


def _options(name: str, given: Mapping[str, Any]) -> str:
    """Return values as options KEY=VALUE of a shell."""
    texts = {
        k: v
        if isinstance(v, str) and terminal.values([f"{k}={v}"], name)[k] == v
        else json.dumps(v)
        for k, v in given.items()
    }
    return "".join(f"{name} {shlex.quote(f'{key}={text}')} " for key, text in texts.items())


def _load(folder: str, reading: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return windows, and the warnings while they were read, which are shown."""
    from braindecode_pars import datasets

    with warnings.catch_warnings(record=True) as caught:
        windows = datasets.load(folder, **reading)
    for each in caught:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return windows, [str(each.message) for each in caught]


@terminal.with_options(READING, reading_of)
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
    with terminal.report_failures(kept):
        import pandas as pd

        from braindecode_pars import datasets
        from braindecode_pars.evaluation import data_check, study_plan, study_report
        from braindecode_pars.evaluation.study import run_study, unanswered

        tasks = task or study_plan.TASKS
        study_plan.check_study(draws, tasks, out)
        reading = reading_of(given)
        encoders = dict(terminal.pairs(encoder, "--encoder", "NAME=FOLDER")) or None
        if Path(folder).is_dir() and not datasets.is_store(folder):
            first = next(iter((encoders or {"small": "small"}).values()))
            # What cannot be used is left out, and listed in the report.
            reading = {"on_error": "warn"} | as_encoder(first) | reading
        else:
            reading.pop("n_jobs", None)  # what is stored is not read in parallel
        windows, said = _load(folder, reading)
        terminal.show("Looking at the recordings, and timing each method on a few windows.")
        name = datasets.title(folder).replace("_", " ")
        check = data_check.check_data(windows)
        about = dict(
            command=f"braindecode-pars {shlex.join(sys.argv[1:])}",
            warnings=[text for text in said if text not in {each.text for each in check.findings}],
        )
        terminal.print_frame(pd.DataFrame(check.facts.items()), "found", 2, header=False)
        if len(check.classes):
            terminal.print_frame(check.classes)
        for finding in check.findings:
            if finding.text not in said:
                terminal.show(f"{finding.kind.capitalize()}: {finding.text}")
        if check.stops:
            found = replace(unanswered(check, name, out), about=about)
            terminal.show(f"{found.answer}\nWritten to {found.report(out)}.")
            return
        compared: dict[str, Any] = dict(encoders=encoders, tasks=tasks, draws=draws)
        planned = study_plan.plan_study(windows, check, dataset=name, out=out, **compared)
        short = study_report.short_name
        _show_plan(planned, planned.plan.assign(method=planned.plan["method"].map(short)))
        if plan_only:
            terminal.show("Nothing was run. Leave --plan-only out to run it.")
            return
        planned = replace(planned, about=planned.about | about)
        found = run_study(planned, n_jobs=given.get("n_jobs"))
        if len(found.scores):
            levels = found.levels.assign(mean=found.levels["mean"].map("{:.3f}".format))
            order = found.plan["method"][found.plan["left_out"] == ""]
            wide = levels.pivot(index="method", columns="n_train_subjects", values="mean")
            shown = wide.loc[order].fillna("").rename(short).add_suffix(" people").reset_index()
            metric = found.metric.replace("_", " ")
            terminal.print_frame(shown, f"mean {metric} by number of labelled people")
        if found.people is not None:
            people = found.people.assign(method=found.people["method"].map(short))
            terminal.print_frame(people, "by person")
        _show_left_out(found.plan.assign(method=found.plan["method"].map(short)))
        terminal.show("\n".join([f"\n{found.answer}", *found.doubts]))
        terminal.show(f"Written to {found.report(out)}, with scores.csv, tests.csv and study.json.")
        if found.about.get("model"):
            terminal.show(
                f"{found.about['model']}, trained on all labelled people, predicts others:\n"
                f"  braindecode-pars predict {shlex.quote(str(out / 'model'))} RECORDING "
                "--out predictions"
            )


def _show_plan(planned: Any, table: Any) -> None:
    runs = table[table["left_out"] == ""].drop(columns=["given", "left_out"])
    runs = runs.assign(
        people=[", ".join(map(str, people)) for people in runs["people"]],
        minutes=["< 0.1" if m < 0.1 else f"{m:.1f}".replace("nan", "-") for m in runs["minutes"]],
    )
    terminal.print_frame(runs, "plan", 2)
    _show_left_out(table)
    for sentence in planned.about["left_out"]:
        terminal.show(sentence)
    terminal.show(
        f"About {table['minutes'].sum():.0f} minutes here, and the controls. Gains of "
        f"{planned.detectable:.3f} can be found if scores vary as in rest or arithmetic."
    )


def _show_left_out(table: Any) -> None:
    for _, row in table[table["left_out"] != ""].iterrows():
        terminal.show(f"Left out: {row['method']}: {row['left_out'].rstrip('.')}.")
