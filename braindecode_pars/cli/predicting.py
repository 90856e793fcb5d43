"""Behind ``predict``: find recordings, predict one after another, keep results, and summarise them.

Results that are finished are kept. The summary has time in each class, sleep statistics, findings.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
from rich.console import Console

from braindecode_pars import FewLabelsClassifier, PARSClassifier, __version__, plotting
from braindecode_pars._common.checks import listed
from braindecode_pars._common.files import (
    as_read,
    check_may_write,
    checksum_of,
    checksum_of_file,
    locked,
    plain,
    read_checked,
    replace_file,
    write_checked,
    written_aside,
)
from braindecode_pars._common.model_files import (
    CLASSIFIER,
    FEW_LABELS,
    MODEL_FILES,
    kinds_in,
    model_folder,
)
from braindecode_pars._common.progress import ProgressBar
from braindecode_pars._common.subjects import without_ending
from braindecode_pars._common.tables import SMOOTHED_LABEL
from braindecode_pars.cli.terminal import make_console, print_table
from braindecode_pars.estimators.predict_raw import check_transitions
from braindecode_pars.plotting.style import save_figure
from braindecode_pars.predictions import (
    are_stages,
    has_bids_entities,
    sleep_statistics,
    smoothed,
    to_bids_events,
)
from braindecode_pars.recordings.readers import ENDINGS
from braindecode_pars.recordings.search import (
    files_beside,
    is_recording,
    list_files,
    why_unreadable,
)

Classifier: TypeAlias = FewLabelsClassifier | PARSClassifier


def predict_recordings(
    model: str,
    paths: Sequence[Path],
    out: Path,
    *,
    overlap: float,
    device: str,
    overwrite: bool = False,
    smooth: bool = False,
    rescale: bool = False,
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
    overlap, smooth, rescale
        As in ``predict_raw``.
    device : str
        Device of the model.
    overwrite : bool
        Whether to replace results that were changed by hand or are of other recordings.

    Raises
    ------
    ValueError, OSError
        When there is no such model, no recording, or when the folder has other content. Without
        ``overwrite``, when results would be lost; nothing is written then. A recording that cannot
        be predicted is a row of the summary.
    """
    found = find_recordings(paths)
    with warnings.catch_warnings():
        # Parameters of another fit, which this command does not make.
        warnings.filterwarnings("ignore", "These parameters are not saved", UserWarning)
        is_vote = FEW_LABELS in kinds_in(model_folder(model))
        clf = (FewLabelsClassifier if is_vote else PARSClassifier).load(model, device=device)
    if smooth:
        check_transitions(clf)
    weights = model_folder(model) / MODEL_FILES[CLASSIFIER][0]
    options = dict(overlap=overlap, smooth=smooth, rescale=rescale)
    settings = dict(model=checksum_of_file(weights), **options, version=__version__)
    summary = Summary(out)
    rows: list[dict[str, Any]] = []
    with prediction_folder(out):
        if not overwrite:
            summary.check({str(target) for target in found.values()})
        everything = [Results(file, out / target, settings) for file, target in found.items()]
        finished = [_finished(results, overwrite) for results in everything]
        tasks = list(zip(found.values(), everything, finished, strict=True))
        bar = ProgressBar(tasks, desc="predicting", unit=" recordings")
        try:
            for target, results, row in bar:
                if row is None:
                    row = _predict(clf, results, options, bar)
                else:
                    row = {**row, "problem": None}
                rows.append({"recording": str(target), **row})
        finally:  # also after Ctrl-C
            bar.close()
            if rows:
                table = summary_table(rows)
                summary.write(table.round(3).to_csv(index=False))
    console = make_console()
    show_summary(console, table)
    n_failed = int(table["problem"].notna().sum())
    if n_failed:
        console.print(
            f"{n_failed} of {len(table)} recordings could not be predicted; the column problem of "
            f"{summary.file} says why."
        )
    seen = [row["recording"] for row in rows if "subject_in_training" in row.get("findings", "")]
    if seen:
        console.print(
            f"{len(seen)} of {len(table)} recordings have the name of a person that the model was "
            f"trained on: if it is the same, they tell nothing about new people: {listed(seen)}."
        )
    if n_failed < len(table):
        console.print(
            f"Written to {out}: summary.csv, which names the findings, and for each predicted "
            "recording a table (_predictions.csv), events (_events.tsv), a figure "
            "(_hypnodensity.png) and a page to scroll along (_hypnodensity.html)."
        )
    return n_failed


def _finished(results: Results, overwrite: bool) -> dict[str, Any] | None:
    try:
        return results.finished(overwrite=overwrite)
    except OSError:  # predicting it fails in the same way, and is then a row of the summary
        return None


def _predict(
    clf: Classifier, results: Results, options: dict[str, Any], bar: ProgressBar
) -> dict[str, Any]:
    """Predict a recording, and return its row of the summary.

    Warnings and the factor of its amplitudes are printed with the name of the recording.
    """
    name = results.recording.name
    try:
        state = results.state()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            frame = clf.predict_raw(results.recording, **options)
        if factor := frame.attrs["findings"].get("rescaled_by"):
            text = f"{name}: multiplied by {factor:.3g}, to the amplitudes of the training."
            bar.write(text, file=sys.stderr)
        for message in dict.fromkeys(str(warning.message) for warning in caught):
            bar.write(f"{name}: {message}", file=sys.stderr)
        row = summary_row(frame)
        results.write(frame, row, state)
        return {**row, "problem": None}
    except Exception as error:  # one recording does not end the others, whatever its reader raises
        problem = str(error) or type(error).__name__
        bar.write(f"{name} failed: {problem}", file=sys.stderr)
        return {"problem": problem}


@contextmanager
def prediction_folder(folder: Path) -> Iterator[None]:
    """Hold a folder of predictions; no other process can write into it meanwhile.

    Raises
    ------
    ValueError
        When the folder contains anything else.
    OSError
        When it cannot be written, or another process writes into it.
    """
    mark = folder / _MARK
    check_may_write(folder, "predictions", is_ours=_content(mark) is not None)
    with locked(folder, f"{folder} is used by another process; wait, or pass another folder."):
        if not mark.exists():
            write_checked(mark, {"command": "braindecode-pars predict"})
        yield


#: File that marks a folder of predictions, and has the checksums of its summary.
_MARK = "predictions.json"


@dataclass(frozen=True)
class Summary:
    """The file ``summary.csv`` in a folder of predictions."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "summary.csv"

    def check(self, recordings: Collection[str]) -> None:
        """Check that no row of other recordings, and no change by hand, would be lost.

        Raises
        ------
        ValueError
            When there would be.
        """
        if not self.file.exists():
            return
        mark = _content(self.folder / _MARK) or {}
        if checksum_of_file(self.file) not in mark.get("summaries", ()):
            raise ValueError(f"{self.file} {_CHANGED}")
        rows = pd.read_csv(self.file, dtype=str, keep_default_na=False)["recording"]
        others = [name for name in rows if name not in recordings]
        if others:
            raise ValueError(
                f"{self.file} has {len(others)} recordings that this command does not predict "
                f"({listed(others, most=3)}); pass them too, or another folder, or --overwrite to "
                "replace it."
            )

    def write(self, content: str) -> None:
        """Replace the summary; its checksum is known first, also if the process is killed."""
        mark = _content(self.folder / _MARK) or {}
        before = [checksum_of_file(self.file)] if self.file.exists() else []
        summaries = [*before, checksum_of(content.encode())]
        write_checked(self.folder / _MARK, {**mark, "summaries": summaries})
        replace_file(self.file, content)


#: What to do with a file that would be lost.
_REMEDY = "move it, or pass another folder, or --overwrite to replace it."
_CHANGED = f"may have been changed since it was predicted; {_REMEDY}"


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

    def _file(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    @property
    def record(self) -> Path:
        """The file that is written last; it describes the others."""
        return self._file("_predictions.json")

    @property
    def _events(self) -> Path:
        """The events file: a derivative of BIDS if the recording has such a name."""
        name = self.path.name
        stem = re.sub(r"_(i?eeg|meg)$", "", name)
        if has_bids_entities(stem):
            name = f"{stem}_desc-predicted"
        elif name.startswith("sub-"):
            name = f"of-{name}"
        return self.path.with_name(f"{name}_events.tsv")

    def finished(self, *, overwrite: bool = False) -> dict[str, Any] | None:
        """Return the row of the summary of finished results; None if there are none.

        Raises
        ------
        ValueError
            Without ``overwrite``, when files in their place are of another recording, of other
            programs, or were changed after they were written.
        """
        record, state = _content(self.record), self.state()
        if record is None:
            names = ("_predictions.csv", "_hypnodensity.png", "_hypnodensity.html")
            files = [*map(self._file, names), self._events, self._events.with_suffix(".json")]
            there = [file for file in files if file.exists()]
            if there and not overwrite:
                # With a damaged record, it is unknown whether they were changed.
                what = _CHANGED if self.record.exists() else f"is not of this command; {_REMEDY}"
                raise ValueError(f"{there[0]} {what}")
            return None
        written = {self.record.with_name(name): was for name, was in record["files"].items()}
        there = [file for file in written if file.is_file()]
        changed = [file for file in there if checksum_of_file(file) != written[file]]
        if changed and not overwrite:
            raise ValueError(f"{changed[0]} {_CHANGED}")
        if record["recording"]["files"] != state["files"]:
            path = record["recording"]["path"]
            if path != state["path"] and not overwrite:
                raise ValueError(
                    f"{self.record} is of another recording, {path}; predict this one into another "
                    "folder, or pass --overwrite to replace it."
                )
            return None
        is_same = record["settings"] == as_read(self.settings) and not changed
        return record["row"] if is_same and len(there) == len(written) else None

    def state(self) -> dict[str, Any]:
        """Return sizes and times of a recording and of the files that belong to it."""
        states = {file.name: file.stat() for file in files_beside(self.recording)}
        files = {name: [state.st_size, state.st_mtime_ns] for name, state in states.items()}
        return as_read({"path": str(self.recording), "files": files})

    def write(self, frame: pd.DataFrame, row: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Write all results of predictions, or none.

        Of predictions that are smoothed, the table and the page also have the raw ones.

        Parameters
        ----------
        frame : DataFrame
            Predictions.
        row : dict
            Row of the summary, as values that JSON supports.
        state : dict
            :meth:`state` before the recording was read. If it is copied meanwhile, the results are
            then those of an earlier state, and not finished.
        """
        with written_aside(self.path.parent) as aside:
            frame.round(6).to_csv(aside / self._file("_predictions.csv").name, index=False)
            to_bids_events(_final(frame), aside / self._events.name)
            _draw(_final(frame), aside / self._file("_hypnodensity.png").name)
            plotting.night_page(frame, aside / self._file("_hypnodensity.html").name)
            content = {
                "recording": state,
                "settings": dict(self.settings),
                "findings": frame.attrs.get("findings", {}),
                "row": dict(row),
                "files": {file.name: checksum_of_file(file) for file in aside.iterdir()},
            }
            write_checked(aside / self.record.name, as_read(content))


def _final(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the smoothed predictions where there are any, else the predictions."""
    return smoothed(frame) if SMOOTHED_LABEL in frame else frame


def _draw(frame: pd.DataFrame, file: Path) -> None:
    axes = plotting.hypnodensity(frame)
    axes[0].set_title(frame.attrs.get("recording", ""), loc="left", size=10)
    save_figure(axes[0], file, dpi=120)


def _content(record: Path) -> dict[str, Any] | None:
    """Return the content of a record; None if there is none, or it is damaged."""
    try:
        return read_checked(record)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


_MINUTES = "minutes_"
#: Counts of a frame that are no findings about the recording.
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
    findings = [name for name in frame.attrs.get("findings", {}) if name not in _COUNTS]
    row = {
        "windows": len(frame),
        "windows_not_predicted": int(frame["label"].isna().sum()),
        **{f"{_MINUTES}{name}": float(minutes.get(name, 0)) for name in classes},
        **(sleep_statistics(frame) if are_stages(classes) else {}),
        "n_findings": len(findings),
        "findings": ", ".join(findings),
    }
    return {name: plain(value) for name, value in row.items()}


def summary_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows of all recordings as a table, with the problem of those that failed last."""
    table = pd.DataFrame(list(rows))
    counts = table.columns.intersection([*_COUNTS, "n_findings"])
    table[counts] = table[counts].astype("Int64")  # integers also beside a row that failed
    return table[[*(name for name in table if name != "problem"), "problem"]]


def show_summary(console: Console, table: pd.DataFrame) -> None:
    """Print the time in each class, and what a user looks at first."""
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
    cells = table[shown].assign(problem=failed)[shown].map(_cell).to_numpy()
    header = [headings[name] for name in shown]
    print_table(console, cells, header, text=("recording", "problem"))


def _cell(value: Any) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)


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
    ValueError
        When a folder has no recording or cannot be searched, or two recordings would have the same
        results.
    """
    found: dict[Path, Path] = {}
    for path in (path.expanduser() for path in paths):
        alone = {path: Path(without_ending(path.name))}
        for file, target in (_in_folder(path) if path.is_dir() else alone).items():
            found.setdefault(file.absolute(), target)
    seen: dict[Path, Path] = {}
    for file, target in found.items():
        if (first := seen.setdefault(target, file)) != file:
            together = "pass the folder that contains both, or " * (file.parent != first.parent)
            raise ValueError(
                f"{first} and {file} would have the same results, {target}_predictions.csv; "
                f"{together}predict them into different folders."
            )
    return found


def _in_folder(folder: Path) -> dict[Path, Path]:
    found = list_files(folder, lambda name: name.lower().endswith(ENDINGS))
    files = [file for file in found if why_unreadable(file) or is_recording(file)]
    if not files:
        raise ValueError(
            f"{folder} contains no recording; expected files that end with {', '.join(ENDINGS)}."
        )
    return {file: file.relative_to(folder).with_name(without_ending(file.name)) for file in files}
