"""Write the result files of predicted recordings, and the summary of a folder of results.

Each recording has several result files. The last file that is written is a JSON record, which
contains the settings, the findings and the row of the recording in the summary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars._common import checks, files, sleep_stages, tables
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.plotting import style
from braindecode_pars.predictions import night, night_figures
from braindecode_pars.recordings import folders

#: Name of the file that marks a folder of predictions.
MARK = "predictions.json"
#: Name of the summary of a folder of predictions.
SUMMARY = "summary.csv"
#: Suffix of the JSON record of a recording.
RECORD = "_predictions.json"
#: Prefix of the columns with the number of minutes in each class.
MINUTES = "minutes_"
#: Entities of BIDS names such as sub-01_ses-1_task-sleep_run-2, with alphanumeric labels.
_BIDS_ENTITIES = re.compile(
    r"sub-[A-Za-z0-9]+(_ses-[A-Za-z0-9]+)?_task-[A-Za-z0-9]+(_[a-z]+-[A-Za-z0-9]+)*"
)
#: Entries of ``frame.attrs["findings"]`` that are not findings about the recording.
NOT_FINDINGS = ("windows", "windows_not_predicted", "expected_score")


@dataclass(frozen=True)
class Results:
    """Result files of a predicted recording.

    Attributes
    ----------
    recording : Path
        File of the recording.
    folder : ResultsFolder
        Folder of the predictions of all recordings.
    target : Path
        Path relative to the folder, from which the names of the result files are derived, as in
        :attr:`files`.
    settings : mapping
        Settings that the predictions depend on. The values must be supported by JSON.
    """

    recording: Path
    folder: ResultsFolder
    target: Path
    settings: Mapping[str, Any]

    @property
    def path(self) -> Path:
        """Path from which the names of the result files are derived, including the folder."""
        return self.folder.path / self.target

    @property
    def files(self) -> dict[str, Path]:
        """Path of each result file; the record is the last entry."""
        name = self.path.name
        # If the recording has a BIDS name, the events file has the name of a BIDS derivative.
        stem = re.sub(r"_(i?eeg|meg)$", "", name)
        if _BIDS_ENTITIES.fullmatch(stem):
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
        """Whether all result files exist, for the current recording and the current settings.

        Raises
        ------
        ValueError
            If ``overwrite`` is False, and there are result files that are incomplete, were computed
            with different settings, or were computed before the recording was changed.
        """
        try:
            state = self.state()
        except OSError:  # the prediction will raise the same error, which the summary contains
            return False
        existing = [file for file in self.files.values() if file.exists()]
        record = self.folder.get(f"{self.target}{RECORD}")
        changes = files.changed_settings(record.get("of", {}), state) if record else []
        if record is not None and not changes and len(existing) == len(self.files):
            return True
        if existing and not overwrite:
            reason = "the results are incomplete: at least one of their files is missing or damaged"
            if changes:
                changed = checks.format_list(changes, max_items=3)
                reason = f"it was computed with different settings or files: {changed}"
            raise ValueError(
                f"{existing[0]} already exists, but {reason}. Choose a different --out folder, or "
                "pass --overwrite to replace the results."
            )
        return False

    def state(self) -> dict[str, Any]:
        """Return everything that the results depend on: settings, and sizes and times of files."""
        states = {file.name: file.stat() for file in folders.files_beside(self.recording)}
        sizes = {name: [state.st_size, state.st_mtime_ns] for name, state in states.items()}
        return files.as_read({**self.settings, "files": sizes})

    def write(self, frame: pd.DataFrame, state: Mapping[str, Any]) -> None:
        """Write all result files of predictions. If an error occurs, no file is written.

        If the predictions are smoothed, the CSV table also contains the raw predictions.

        Parameters
        ----------
        frame : DataFrame
            Table of predictions.
        state : dict
            Return value of :meth:`state`, called before the recording was read. If the recording
            changes while it is read, :meth:`finished` therefore detects the change later.
        """
        with files.written_aside(self.path.parent) as aside:
            new = {kind: aside / file.name for kind, file in self.files.items()}
            frame.round(6).to_csv(new["table"], index=False)
            night.to_bids_events(_final(frame), new["events"])
            axes = night_figures.hypnodensity(_final(frame))
            axes[0].set_title(frame.attrs.get("recording", ""), loc="left", size=10)
            style.save_figure(axes[0], new["figure"], dpi=120)
            night_figures.night_page(_final(frame), new["page"])
            # The record is the last file that is moved, so that it exists only with all others.
            record = {
                "recording": str(self.recording),
                "of": state,
                "findings": frame.attrs.get("findings", {}),
                "row": summary_row(frame),
            }
            files.write_checked(new["record"], record)


def _final(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the smoothed predictions if available, otherwise the raw predictions."""
    return night.smoothed(frame) if tables.SMOOTHED_LABEL in frame else frame


def summary_row(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the row of a recording in the summary. All values can be written as JSON.

    Parameters
    ----------
    frame : DataFrame
        Predictions of a recording, as returned by ``predict_raw`` of a classifier.

    Returns
    -------
    dict of str to Any
        Number of windows, number of minutes in each class, sleep statistics (if the classes are
        sleep stages), and number and names of the findings. If the table contains smoothed
        predictions, they are used instead of the raw predictions.
    """
    frame, classes = _final(frame), frame.attrs["classes"]
    minutes = frame.groupby("label")["duration"].sum() / 60
    findings = [name for name in frame.attrs.get("findings", {}) if name not in NOT_FINDINGS]
    row = {
        "windows": len(frame),
        "windows_not_predicted": int(frame["label"].isna().sum()),
        **{f"{MINUTES}{name}": float(minutes.get(name, 0)) for name in classes},
        **(night.sleep_statistics(frame) if sleep_stages.are_stages(classes) else {}),
        "n_findings": len(findings),
        "findings": ", ".join(findings),
    }
    return {name: files.plain(value) for name, value in row.items()}


def write_summary(folder: ResultsFolder, problems: Mapping[str, str]) -> pd.DataFrame:
    """Write the summary of a folder, with one row per recording, including failed recordings.

    Parameters
    ----------
    folder : ResultsFolder
        Folder of the predictions.
    problems : mapping of str to str
        Error message of each recording that could not be predicted, by the name of the recording.

    Returns
    -------
    DataFrame
        The table that was written.
    """
    rows: dict[str, dict[str, Any]] = {name: {} for name in problems}
    for file in folder.path.rglob(f"*{RECORD}"):
        name = str(file.relative_to(folder.path))
        if row := (folder.get(name) or {}).get("row"):
            rows.setdefault(name.removesuffix(RECORD), row)
    table = pd.DataFrame([{"recording": name, **rows[name]} for name in sorted(rows)])
    counts = table.columns.intersection(["windows", "windows_not_predicted", "n_findings"])
    # Keep integers, even if values of a failed recording are missing.
    table[counts] = table[counts].astype("Int64")
    table["problem"] = [problems.get(name) for name in sorted(rows)]
    files.replace_file(folder.path / SUMMARY, table.round(3).to_csv(index=False))
    return table
