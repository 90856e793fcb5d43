"""The files of predictions in a folder: which recordings are finished, and their results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd

from braindecode_pars import plotting
from braindecode_pars.predictions._bids_events import has_bids_entities, to_bids_events
from braindecode_pars.recordings._search import files_beside
from braindecode_pars.storage._atomic import locked, written_aside
from braindecode_pars.storage._checked_json import read_checked, write_checked
from braindecode_pars.storage._checksum import checksum_of_file
from braindecode_pars.storage._folder import check_may_write
from braindecode_pars.storage._json import as_read

__all__ = ["Results", "prediction_folder"]

_MARK = "predictions.json"


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
        write_checked(mark, {"command": "braindecode-pars predict"})
        yield


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
    def record(self) -> Path:
        """The file that is written last; it describes the others."""
        return self._file("_predictions.json")

    def _file(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    @property
    def _events(self) -> Path:
        """The events file: a derivative of BIDS if the recording has such a name."""
        name = re.sub(r"_(i?eeg|meg)$", "", self.path.name)
        if has_bids_entities(name):
            return self.path.with_name(f"{name}_desc-predicted_events.tsv")
        name = self.path.name
        return self.path.with_name(f"{'of-' * name.startswith('sub-')}{name}_events.tsv")

    def finished(self) -> dict[str, Any] | None:
        """Return the row of the summary of finished results; None if there are none.

        Raises
        ------
        ValueError
            When files in their place are of another recording, or of other programs.
        """
        record = _content(self.record)
        if record is None:
            self._check_free()
            return None
        earlier = record.get("recording", {})
        state = self.state()
        if earlier.get("files") != state["files"]:
            if earlier.get("path") != state["path"] and "path" in earlier:
                raise ValueError(
                    f"{self.record} is of another recording, {earlier['path']}; predict this one "
                    "into another folder."
                )
            return None
        if record.get("settings") != as_read(self.settings):
            return None
        return record.get("row") if self._are_whole(record.get("files", {})) else None

    def _check_free(self) -> None:
        if self.record.exists():  # damaged, but ours
            return
        names = ("_predictions.csv", "_hypnodensity.png")
        files = [*map(self._file, names), self._events, self._events.with_suffix(".json")]
        for file in files:
            if file.exists():
                raise ValueError(
                    f"{file} exists and is not of this command; move it, or pass another folder."
                )

    def _are_whole(self, checksums: Mapping[str, str]) -> bool:
        files = {self.record.with_name(name): expected for name, expected in checksums.items()}
        return all(
            file.is_file() and checksum_of_file(file) == expected
            for file, expected in files.items()
        )

    def state(self) -> dict[str, Any]:
        """Return sizes and times of a recording and of the files that belong to it."""
        states = {file.name: file.stat() for file in files_beside(self.recording)}
        files = {name: [state.st_size, state.st_mtime_ns] for name, state in states.items()}
        return as_read({"path": str(self.recording), "files": files})

    def write(self, frame: pd.DataFrame, row: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Write all results of predictions, or none.

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
            to_bids_events(frame, aside / self._events.name)
            _draw(frame, aside / self._file("_hypnodensity.png").name)
            content = {
                "recording": state,
                "settings": dict(self.settings),
                "findings": frame.attrs.get("findings", {}),
                "row": dict(row),
                "files": {file.name: checksum_of_file(file) for file in aside.iterdir()},
            }
            write_checked(aside / self.record.name, as_read(content))


def _draw(frame: pd.DataFrame, file: Path) -> None:
    axes = plotting.hypnodensity(frame)
    axes[0].set_title(frame.attrs.get("recording", ""), loc="left", size=10)
    axes[0].figure.savefig(file, dpi=120)
    plt.close(axes[0].figure)


def _content(record: Path) -> dict[str, Any] | None:
    """Return the content of a record; None if there is none, or it is damaged."""
    try:
        return read_checked(record)
    except (FileNotFoundError, ValueError):
        return None
