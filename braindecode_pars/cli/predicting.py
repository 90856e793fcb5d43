"""Behind ``predict``: find recordings, predict one after another, keep results, and summarise them.

A result that is there is never replaced, unless the user asks for it. The summary is written anew
from all results in the folder: time in each class, sleep statistics, findings.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from braindecode_pars import (
    FewLabelsClassifier,
    PARSClassifier,
    __version__,
    plotting,
    predictions,
)
from braindecode_pars._common import checks, files, model_files, subjects, tables, training
from braindecode_pars.cli.terminal import print_frame, show
from braindecode_pars.estimators import predict_raw
from braindecode_pars.recordings import label_files, loading, readers, search

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
    found = find_recordings(paths)
    with warnings.catch_warnings():
        # Parameters of another fit, which this command does not make.
        warnings.filterwarnings("ignore", "These parameters are not saved", UserWarning)
        is_vote = model_files.FEW_LABELS in model_files.kinds_in(model_files.model_folder(model))
        clf = (FewLabelsClassifier if is_vote else PARSClassifier).load(model, device=device)
    if options["smooth"]:
        predict_raw.check_transitions(clf)
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
        stretches = _stretches(labels, adapt["column"], found)
    mark = out / _MARK
    files.check_may_write(out, "predictions", is_ours=_content(mark) is not None)
    busy = f"{out} is used by another process; wait, or pass another folder."
    with files.locked(out, busy):
        if not mark.exists():
            files.write_checked(mark, {"command": "braindecode-pars predict"})
        everything = [Results(file, out / target, settings) for file, target in found.items()]
        todo = [results for results in everything if not results.finished(overwrite=overwrite)]
        problems: dict[str, str] = {}
        bar = training.ProgressBar(todo, desc="predicting", unit=" recordings")
        try:
            for results in bar:
                given = (adapt["classes"], stretches.get(results.recording)) if adapt else None
                if problem := _predict(clf, results, options, bar, given):
                    problems[str(results.path.relative_to(out))] = problem
        finally:  # also after Ctrl-C
            bar.close()
            summary_file, summary = write_summary(out, problems, overwrite=overwrite)
    show_summary(summary_file, summary, len(found), len(found) - len(todo))
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
                clf, told = adapted_to(clf, results.recording, *adapt, rescale=options["rescale"])
                bar.write(f"{name}: adapted to {told}.", file=sys.stderr)
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
    """Return the labelled stretches of recordings in a table, which may have others, too."""
    if labels is None:
        return {}
    table = loading.read_table(labels, Path())
    if "file" not in table:
        raise ValueError(f"{labels} has no column 'file'; it has {checks.listed([*table])}.")
    named = label_files.files_named(table, recordings, labels)
    table = table[[file is not None for file in named]]
    if table.empty:
        raise ValueError(f"{labels} has no row of {checks.listed([*map(str, recordings)])}.")
    found = label_files.labels_of_files(table, Path(), [*recordings], column) or ()
    return {each.file: each.stretches for each in found}


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
        Labelled stretches of a table, instead of annotations.
    rescale : bool
        As in ``predict_raw``.
    """
    raw, name = readers.open_recording(file)
    recording, length = predict_raw.prepare_recording(raw, name, clf), clf.n_times_
    if rescale:
        predict_raw.rescale_signals(recording, clf)
    known = {text: i for i, text in enumerate(predict_raw.class_texts(clf))}
    notes = label_files.annotations_of(file, raw, stretches)
    texts = [classes.get(text, "") if classes else text for text in notes.description]
    first = np.rint(notes.onset * recording.sfreq).astype(int)
    stop = np.rint((notes.onset + notes.duration) * recording.sfreq).astype(int)
    # A label without a duration is of the window that begins with it, as in fit.
    is_mark = (notes.duration == 0) & np.isin(texts, [*known]) & (first >= 0)
    stop = np.where(is_mark, first + length, stop)
    marks = first[is_mark & (stop <= recording.signals.shape[1])]
    starts = predict_raw.usable_starts(recording, length)
    starts = np.union1d(starts, marks[recording.may_use(marks, length)])
    codes = np.full(len(starts), -1)
    for text, begin, end in zip(texts, first, stop, strict=True):
        codes[(starts >= begin) & (starts + length <= end)] = known.get(text, -1)
    counts = {text: int(np.sum(codes == i)) for text, i in known.items()}
    labels, told = None, "its windows without labels"
    if np.count_nonzero([*counts.values()]) > 1:  # one class tells nothing of the other
        labels = np.array([*clf.classes_.tolist(), -1], object)[codes]
        each = checks.listed([f"{n} {text}" for text, n in counts.items()])
        told = f"its windows with labels ({each}), which are predicted too"
    windows = predict_raw.windows_from(recording, starts, length)
    return clf.adapt(windows, labels), told


#: File that marks a folder of predictions.
_MARK = "predictions.json"


#: Ending of the record of a recording, which is written last and describes its results.
_RECORD = "_predictions.json"


@dataclass(frozen=True)
class Results:
    """The results of one recording.

    Attributes
    ----------
    recording : Path
        File of the recording.
    path : Path
        Path of the results, to which endings are added.
    settings : mapping
        All that predictions depend on besides the recording, as values that JSON supports.
    """

    recording: Path
    path: Path
    settings: Mapping[str, Any]

    @property
    def files(self) -> dict[str, Path]:
        """File of each result, the record last."""
        name = self.path.name
        # Events are a derivative of BIDS if the recording has such a name.
        stem = re.sub(r"_(i?eeg|meg)$", "", name)
        if predictions.has_bids_entities(stem):
            stem = f"{stem}_desc-predicted"
        else:
            stem = f"of-{name}" if name.startswith("sub-") else name
        names = {
            "table": f"{name}_predictions.csv",
            "events": f"{stem}_events.tsv",
            "columns": f"{stem}_events.json",
            "figure": f"{name}_hypnodensity.png",
            "page": f"{name}_hypnodensity.html",
            "record": f"{name}{_RECORD}",
        }
        return {kind: self.path.with_name(file) for kind, file in names.items()}

    def finished(self, *, overwrite: bool = False) -> bool:
        """Whether all results are there, of the recording as it is and with these settings.

        Raises
        ------
        ValueError
            Without ``overwrite``, when anything else is in their place.
        """
        try:
            state = self.state()
        except OSError:  # predicting it fails in the same way, and is then a row of the summary
            return False
        there = [file for file in self.files.values() if file.exists()]
        record = _content(self.files["record"])
        if record is not None and "row" not in record:  # killed while the files were moved
            return False
        is_whole = record is not None and len(there) == len(self.files)
        changes = files.changed_settings(record.get("of", {}), state) if record else []
        if is_whole and not changes:
            return True
        if there and not overwrite:
            of = record["recording"] if record else "an unknown recording"
            why = checks.listed(changes, most=3) or "its record or another of its files is missing"
            raise ValueError(
                f"{there[0]} exists and is of {of}, predicted otherwise ({why}); pass another "
                "folder, or --overwrite to replace it."
            )
        return False

    def state(self) -> dict[str, Any]:
        """Return all that the results depend on: settings, and sizes and times of the files."""
        states = {file.name: file.stat() for file in search.files_beside(self.recording)}
        sizes = {name: [state.st_size, state.st_mtime_ns] for name, state in states.items()}
        return files.as_read({**self.settings, "files": sizes})

    def write(self, frame: pd.DataFrame, state: Mapping[str, Any]) -> None:
        """Write all results of predictions, or none.

        Of predictions that are smoothed, the table and the page also have the raw ones.

        Parameters
        ----------
        frame : DataFrame
            Predictions.
        state : dict
            :meth:`state` before the recording was read. If it is copied meanwhile, the results are
            then those of an earlier state, and not finished.
        """
        with files.written_aside(self.path.parent) as aside:
            new = {kind: aside / file.name for kind, file in self.files.items()}
            frame.round(6).to_csv(new["table"], index=False)
            predictions.to_bids_events(_final(frame), new["events"])
            axes = plotting.hypnodensity(_final(frame))
            axes[0].set_title(frame.attrs.get("recording", ""), loc="left", size=10)
            plotting.style.save_figure(axes[0], new["figure"], dpi=120)
            plotting.night_page(frame, new["page"])
            record = {"recording": str(self.recording), "of": state}
            findings = frame.attrs.get("findings", {})
            files.write_checked(
                new["record"], {**record, "findings": findings, "row": summary_row(frame)}
            )
            # If the process is killed while files are moved, this record tells whose they are.
            files.write_checked(self.files["record"], record)


def _final(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the smoothed predictions where there are any, else the predictions."""
    return predictions.smoothed(frame) if tables.SMOOTHED_LABEL in frame else frame


def _content(record: Path) -> dict[str, Any] | None:
    """Return the content of a record; None if there is none, or it is damaged."""
    try:
        return files.read_checked(record)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


_MINUTES = "minutes_"
#: Counts of a frame, which are no findings about the recording.
_COUNTS = ("windows", "windows_not_predicted")


def summary_row(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the row of one recording, as values that JSON supports.

    Parameters
    ----------
    frame : DataFrame
        Predictions of a recording, as from ``predict_raw``.

    Returns
    -------
    dict of str to Any
        Counts of windows, minutes in each class, for sleep stages the sleep statistics, and number
        and names of the findings. Where predictions are smoothed, these are counted.
    """
    frame, classes = _final(frame), frame.attrs["classes"]
    minutes = frame.groupby("label")["duration"].sum() / 60
    not_findings = (*_COUNTS, "expected_score")
    findings = [name for name in frame.attrs.get("findings", {}) if name not in not_findings]
    row = {
        "windows": len(frame),
        "windows_not_predicted": int(frame["label"].isna().sum()),
        **{f"{_MINUTES}{name}": float(minutes.get(name, 0)) for name in classes},
        **(predictions.sleep_statistics(frame) if predictions.are_stages(classes) else {}),
        "n_findings": len(findings),
        "findings": ", ".join(findings),
    }
    return {name: files.plain(value) for name, value in row.items()}


def write_summary(
    folder: Path, problems: Mapping[str, str], *, overwrite: bool = False
) -> tuple[pd.DataFrame, Path]:
    """Write a row for each recording with results in a folder, and for each that failed now.

    It is beside summaries that the user has changed, unless they may be replaced.
    """
    rows: dict[str, dict[str, Any]] = {name: {} for name in problems}
    for file in folder.rglob(f"*{_RECORD}"):
        if row := (_content(file) or {}).get("row"):
            rows.setdefault(str(file.relative_to(folder)).removesuffix(_RECORD), row)
    table = pd.DataFrame([{"recording": name, **rows[name]} for name in sorted(rows)])
    counts = table.columns.intersection([*_COUNTS, "n_findings"])
    table[counts] = table[counts].astype("Int64")  # integers also beside a row that failed
    table["problem"] = [problems.get(name) for name in sorted(rows)]

    text, mark = table.round(3).to_csv(index=False), folder / _MARK
    written = _content(mark) or {}
    ours = written.get("summaries", [])
    names = chain(["summary.csv", "summary_new.csv"], (f"summary_new{n}.csv" for n in count(2)))
    for file in (folder / name for name in names):
        if overwrite or not file.exists() or files.checksum_of(file.read_bytes()) in ours:
            break
        show(f"{file} was changed, so it is kept (--overwrite replaces it).")
    # The former ones are ours, too, if the process is killed in between.
    ours = [*ours, files.checksum_of(text.encode())]
    files.write_checked(mark, {**written, "summaries": ours[-5:]})
    files.replace_file(file, text)
    if file.name == "summary.csv":
        for old in folder.glob("summary_new*.csv"):
            if overwrite or files.checksum_of(old.read_bytes()) in ours:
                old.unlink()
    return table, file


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
    minutes = [name for name in table if str(name).startswith(_MINUTES)]
    headings = {
        "recording": "recording",
        **{name: f"{name.removeprefix(_MINUTES)} (min)" for name in minutes},
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
            f"{checks.listed(seen)}."
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
    found: dict[Path, Path] = {}
    paths = [path.expanduser() for path in paths]
    search.check_signal_files(path for path in paths if path.is_file())
    for path in paths:
        below = {path: Path(path.name)}
        if path.is_dir():
            below = {file: file.relative_to(path) for file in search.recordings_below(path)}
        for file, target in below.items():
            name = subjects.without_ending(target.name)
            found.setdefault(file.absolute(), target.with_name(name))
    seen: dict[Path, Path] = {}
    for file, target in found.items():
        if (first := seen.setdefault(target, file)) != file:
            together = "pass the folder that contains both, or " * (file.parent != first.parent)
            raise ValueError(
                f"{first} and {file} would have the same results, {target}_predictions.csv; "
                f"{together}predict them into different folders."
            )
    return found
