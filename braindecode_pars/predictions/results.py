"""The files of a predicted recording, and the summary of a folder of them.

The record of a recording is written last and describes its results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars._common import checks, files, sleep_stages, tables
from braindecode_pars.plotting import style
from braindecode_pars.predictions import night, night_figures
from braindecode_pars.recordings import folders

#: File that marks a folder of predictions.
MARK = "predictions.json"
#: Ending of the record of a recording.
RECORD = "_predictions.json"
#: Beginning of columns with the time in a class.
MINUTES = "minutes_"
#: Counts of a frame, which are no findings about the recording.
COUNTS = ("windows", "windows_not_predicted")


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
        if night.has_bids_entities(stem):
            stem = f"{stem}_desc-predicted"
        else:
            stem = f"of-{name}" if name.startswith("sub-") else name
        names = {
            "table": f"{name}_predictions.csv",
            "events": f"{stem}_events.tsv",
            "columns": f"{stem}_events.json",
            "figure": f"{name}_hypnodensity.png",
            "page": f"{name}_hypnodensity.html",
            "record": f"{name}{RECORD}",
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
        record = read_record(self.files["record"])
        if record is not None and "row" not in record:  # killed while the files were moved
            return False
        is_whole = record is not None and len(there) == len(self.files)
        changes = files.changed_settings(record.get("of", {}), state) if record else []
        if is_whole and not changes:
            return True
        if there and not overwrite:
            of = record["recording"] if record else "an unknown recording"
            why = (
                checks.format_list(changes, max_items=3)
                or "its record or another of its files is missing"
            )
            raise ValueError(
                f"{there[0]} exists and is of {of}, predicted otherwise ({why}); pass another "
                "folder, or --overwrite to replace it."
            )
        return False

    def state(self) -> dict[str, Any]:
        """Return all that the results depend on: settings, and sizes and times of the files."""
        states = {file.name: file.stat() for file in folders.files_beside(self.recording)}
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
            night.to_bids_events(_final(frame), new["events"])
            axes = night_figures.hypnodensity(_final(frame))
            axes[0].set_title(frame.attrs.get("recording", ""), loc="left", size=10)
            style.save_figure(axes[0], new["figure"], dpi=120)
            night_figures.night_page(frame, new["page"])
            record = {"recording": str(self.recording), "of": state}
            findings = frame.attrs.get("findings", {})
            files.write_checked(
                new["record"], {**record, "findings": findings, "row": summary_row(frame)}
            )
            # If the process is killed while files are moved, this record tells whose they are.
            files.write_checked(self.files["record"], record)


def _final(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the smoothed predictions where there are any, else the predictions."""
    return night.smoothed(frame) if tables.SMOOTHED_LABEL in frame else frame


def read_record(record: Path) -> dict[str, Any] | None:
    """Return the content of a record; None if there is none, or it is damaged."""
    try:
        return files.read_checked(record)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


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
    not_findings = (*COUNTS, "expected_score")
    findings = [name for name in frame.attrs.get("findings", {}) if name not in not_findings]
    row = {
        "windows": len(frame),
        "windows_not_predicted": int(frame["label"].isna().sum()),
        **{f"{MINUTES}{name}": float(minutes.get(name, 0)) for name in classes},
        **(night.sleep_statistics(frame) if sleep_stages.are_stages(classes) else {}),
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
    for file in folder.rglob(f"*{RECORD}"):
        if row := (read_record(file) or {}).get("row"):
            rows.setdefault(str(file.relative_to(folder)).removesuffix(RECORD), row)
    table = pd.DataFrame([{"recording": name, **rows[name]} for name in sorted(rows)])
    counts = table.columns.intersection([*COUNTS, "n_findings"])
    table[counts] = table[counts].astype("Int64")  # integers also beside a row that failed
    table["problem"] = [problems.get(name) for name in sorted(rows)]

    text, mark = table.round(3).to_csv(index=False), folder / MARK
    written = read_record(mark) or {}
    ours = written.get("summaries", [])
    names = chain(["summary.csv", "summary_new.csv"], (f"summary_new{n}.csv" for n in count(2)))
    for file in (folder / name for name in names):
        if overwrite or not file.exists() or files.checksum_of(file.read_bytes()) in ours:
            break
    # The former ones are ours, too, if the process is killed in between.
    ours = [*ours, files.checksum_of(text.encode())]
    files.write_checked(mark, {**written, "summaries": ours[-5:]})
    files.replace_file(file, text)
    if file.name == "summary.csv":
        for old in folder.glob("summary_new*.csv"):
            if overwrite or files.checksum_of(old.read_bytes()) in ours:
                old.unlink()
    return table, file
