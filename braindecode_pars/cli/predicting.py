"""Behind ``predict``: find recordings, predict one after another, keep results, and summarize them.

A result that is there is never replaced, unless the user asks for it. The summary is written anew
from all results in the folder: time in each class, sleep statistics, findings.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from braindecode_pars import PARSClassifier, __version__
from braindecode_pars._common import checks, files, model_files, subjects, training
from braindecode_pars.baselines.few_labels import FewLabelsClassifier
from braindecode_pars.cli.terminal import print_frame, show
from braindecode_pars.predictions.recording import (
    check_transitions,
    class_texts,
    prepare_recording,
    rescale_signals,
    usable_starts,
    windows_from,
)
from braindecode_pars.predictions.results import (
    MARK,
    MINUTES,
    Results,
    read_record,
    write_summary,
)
from braindecode_pars.recordings import folders, label_files, loading, readers, search

Classifier: TypeAlias = FewLabelsClassifier | PARSClassifier


def predict_recordings(
    model: str,
    paths: Sequence[Path],
    out: Path,
    *,
    device: str,
    overwrite: bool,
    adapt: dict[str, Any] | None = None,
    **options: Any,
) -> int:
    """Predict recordings, and write and print a summary; return how many could not be predicted.

    Parameters
    ----------
    model : str
        Folder of a saved classifier, or its name on the Hugging Face Hub.
    paths : sequence of Path
        Recordings, and folders of recordings.
    out : Path
        Folder of the results.
    device : str
        Device of the model.
    overwrite : bool
        Whether to replace results of another state of a recording, another model or other options.
    adapt : dict | None
        Whether the model is adapted to each recording before: ``labels``, a table or None, its
        ``column`` of labels, and ``classes``, the class of each label, or empty for labels that
        are classes of the model.
    **options
        ``overlap``, ``smooth`` and ``rescale`` of ``predict_raw``.

    Raises
    ------
    ValueError, OSError
        When there is no such model, no recording, or when the folder has other content. Without
        ``overwrite``, when a file would be replaced; nothing is written then. A recording that
        cannot be predicted is a row of the summary.
    """
    targets = find_recordings(paths)
    with warnings.catch_warnings():
        # Parameters of another fit, which this command does not make.
        warnings.filterwarnings("ignore", "These parameters are not saved", UserWarning)
        is_vote = model_files.FEW_LABELS in model_files.kinds_in(model_files.model_folder(model))
        clf = (FewLabelsClassifier if is_vote else PARSClassifier).load(model, device=device)
    if options["smooth"]:
        check_transitions(clf)
    if expected := getattr(clf, "expected_score_", None):
        show(
            "Expected {metric} for a new subject: {score:.2f} (95 % prediction interval {low:.2f} "
            "to {high:.2f}).".format(**expected)
        )
    weights = model_files.model_folder(model) / model_files.MODEL_FILES[model_files.CLASSIFIER][0]
    settings = dict(model=files.checksum_of_file(weights), **options, version=__version__)
    stretches: Mapping[Path, Any] = {}
    if adapt is not None:
        if not hasattr(clf, "adapt"):
            raise ValueError(f"{model} cannot be adapted; only a model of fit --few-labels can.")
        labels = adapt["labels"]
        settings["adapt"] = {**adapt, "labels": labels and files.checksum_of_file(Path(labels))}
        stretches = _stretches(labels, adapt["column"], targets)
    mark = out / MARK
    files.check_may_write(out, "predictions", is_ours=read_record(mark) is not None)
    busy = f"{out} is used by another process; wait, or pass another folder."
    with files.locked(out, busy):
        if not mark.exists():
            files.write_checked(mark, {"command": "braindecode-pars predict"})
        everything = [Results(file, out / target, settings) for file, target in targets.items()]
        todo = [results for results in everything if not results.finished(overwrite=overwrite)]
        problems: dict[str, str] = {}
        bar = training.ProgressBar(todo, desc="predicting", unit=" recordings")
        try:
            for results in bar:
                adaptation = (adapt["classes"], stretches.get(results.recording)) if adapt else None
                if problem := _predict(clf, results, options, bar, adaptation):
                    problems[str(results.path.relative_to(out))] = problem
        finally:  # also after Ctrl-C
            bar.close()
            table, file = write_summary(out, problems, overwrite=overwrite)
    if file.name != "summary.csv":
        show(f"summary.csv was changed, so the summary is {file.name} (--overwrite replaces both).")
    show_summary(table, file, len(targets), len(targets) - len(todo))
    return len(problems)


def _predict(
    clf: Classifier, results: Results, options: dict[str, Any], bar: Any, adapt: tuple | None
) -> str | None:
    """Predict a recording and write its results; return why it failed, else None.

    Warnings and the factor of its amplitudes are printed with the name of the recording.
    """
    name = results.recording.name
    try:
        state = results.state()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            if adapt is not None:
                clf, basis = adapted_to(clf, results.recording, *adapt, rescale=options["rescale"])
                bar.write(f"{name}: adapted to {basis}.", file=sys.stderr)
            frame = clf.predict_raw(results.recording, **options)
        if factor := frame.attrs["findings"].get("rescaled_by"):
            text = f"{name}: multiplied by {factor:.3g}, to the amplitudes of the training."
            bar.write(text, file=sys.stderr)
        for message in dict.fromkeys(str(warning.message) for warning in caught):
            bar.write(f"{name}: {message}", file=sys.stderr)
        results.write(frame, state)
    except Exception as error:  # one recording does not end the others, whatever its reader raises
        problem = str(error) or type(error).__name__
        bar.write(f"{name} failed: {problem}", file=sys.stderr)
        return problem
    return None


def _stretches(labels: str | None, column: str, recordings: Collection[Path]) -> dict[Path, Any]:
    """Return the labeled stretches of recordings in a table, which may have others, too."""
    if labels is None:
        return {}
    table = loading.read_table(labels, Path())
    if "file" not in table:
        raise ValueError(f"{labels} has no column 'file'; it has {checks.format_list([*table])}.")
    named = label_files.files_named(table, recordings, labels)
    table = table[[file is not None for file in named]]
    if table.empty:
        raise ValueError(f"{labels} has no row of {checks.format_list([*map(str, recordings)])}.")
    labeled_files = label_files.labels_of_files(table, Path(), [*recordings], column) or ()
    return {entry.file: entry.segments for entry in labeled_files}


def adapted_to(
    clf: Any, file: Path, classes: Mapping[str, str], stretches: Any = None, *, rescale: bool
) -> tuple[Any, str]:
    """Return a classifier that is adapted to one recording, and what it was given of it.

    Parameters
    ----------
    clf : fitted classifier
        Classifier with a method ``adapt``.
    file : Path
        The recording.
    classes : mapping of str to str
        Class of each label; empty if the labels are those of the model.
    stretches : Any
        Labeled stretches of a table, instead of annotations.
    rescale : bool
        As in ``predict_raw``.
    """
    raw, name = readers.open_recording(file)
    recording, length = prepare_recording(raw, name, clf), clf.n_times_
    if rescale:
        rescale_signals(recording, clf)
    known = {text: i for i, text in enumerate(class_texts(clf))}
    notes = label_files.annotations_of(file, raw, stretches)
    texts = [classes.get(text, "") if classes else text for text in notes.description]
    first = np.rint(notes.onset * recording.sfreq).astype(int)
    stop = np.rint((notes.onset + notes.duration) * recording.sfreq).astype(int)
    # A label without a duration is of the window that begins with it, as in fit.
    is_mark = (notes.duration == 0) & np.isin(texts, [*known]) & (first >= 0)
    stop = np.where(is_mark, first + length, stop)
    marks = first[is_mark & (stop <= recording.signals.shape[1])]
    starts = usable_starts(recording, length)
    starts = np.union1d(starts, marks[recording.may_use(marks, length)])
    codes = np.full(len(starts), -1)
    for text, begin, end in zip(texts, first, stop, strict=True):
        codes[(starts >= begin) & (starts + length <= end)] = known.get(text, -1)
    counts = {text: int(np.sum(codes == i)) for text, i in known.items()}
    labels, basis = None, "its windows without labels"
    if np.count_nonzero([*counts.values()]) > 1:  # one class tells nothing of the other
        labels = np.array([*clf.classes_.tolist(), -1], object)[codes]
        counts_text = checks.format_list([f"{n} {text}" for text, n in counts.items()])
        basis = f"its windows with labels ({counts_text}), which are predicted too"
    windows = windows_from(recording, starts, length)
    return clf.adapt(windows, labels), basis


def show_summary(table: pd.DataFrame, file: Path, n_found: int, n_before: int) -> None:
    """Print the time in each class, what a user looks at first, and what was written.

    Parameters
    ----------
    table : DataFrame
        The summary in ``file``.
    file : Path
        File of the summary.
    n_found : int
        Number of recordings of this command.
    n_before : int
        Number of those that had been predicted before.
    """
    minutes = [name for name in table if str(name).startswith(MINUTES)]
    headings = {
        "recording": "recording",
        **{name: f"{name.removeprefix(MINUTES)} (min)" for name in minutes},
        "SE": "sleep efficiency (%)",
        "SOL": "sleep latency (min)",
        "windows_not_predicted": "not predicted",
        "n_findings": "findings",
        "problem": "problem",
    }
    shown = [name for name in headings if name in table and table[name].notna().any()]
    # Why a recording failed would make the table wider than a terminal.
    failed = table["problem"].where(table["problem"].isna(), "failed")
    cells = table.assign(problem=failed)[shown].round(1).astype(object)
    header = [headings[name] for name in shown]
    print_frame(cells.where(cells.notna(), "").map(str), header=header)
    n_failed = int(table["problem"].notna().sum())
    if n_before:
        show(f"{n_before} of {n_found} recordings had been predicted before.")
    if n_failed:
        show(
            f"{n_failed} of {n_found} recordings could not be predicted; the column problem of "
            f"{file} says why."
        )
    rows = table.to_dict("records")
    seen = [r["recording"] for r in rows if "subject_in_training" in str(r.get("findings"))]
    if seen:
        show(
            f"{len(seen)} of {len(table)} recordings have the name of a person that the model was "
            "trained on: if it is the same, they tell nothing about new people: "
            f"{checks.format_list(seen)}."
        )
    if n_failed < n_found:
        show(
            f"Written to {file.parent}: {file.name}, which names the findings, and for each "
            "predicted recording a table (_predictions.csv), events (_events.tsv), a figure "
            "(_hypnodensity.png) and a page to scroll along (_hypnodensity.html). Probabilities "
            "are not calibrated: on people outside the training they are often too near 0 and 1."
        )


def find_recordings(paths: Iterable[Path]) -> dict[Path, Path]:
    """Return recordings, and where the results of each belong below a folder.

    Parameters
    ----------
    paths : iterable of Path
        Files, and folders with recordings at any depth. A file that does not exist is kept, so that
        the others are predicted.

    Returns
    -------
    dict of Path to Path
        For each recording, its name without ending; in a folder that was searched, with the folders
        above it.

    Raises
    ------
    FileNotFoundError
        When a folder has no recording.
    ValueError
        When two recordings would have the same results, or two headers name one file of signals.
    """
    targets: dict[Path, Path] = {}
    paths = [path.expanduser() for path in paths]
    search.check_signal_files(path for path in paths if path.is_file())
    for path in paths:
        below = {path: Path(path.name)}
        if path.is_dir():
            below = {file: file.relative_to(path) for file in folders.recordings_below(path)}
        for file, target in below.items():
            name = subjects.without_ending(target.name)
            targets.setdefault(file.absolute(), target.with_name(name))
    seen: dict[Path, Path] = {}
    for file, target in targets.items():
        if (first := seen.setdefault(target, file)) != file:
            together = "pass the folder that contains both, or " * (file.parent != first.parent)
            raise ValueError(
                f"{first} and {file} would have the same results, {target}_predictions.csv; "
                f"{together}predict them into different folders."
            )
    return targets
