"""The table of labelled windows beside the samples of a store, ``windows.csv``."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars.signal_store._labels import Labels
from braindecode_pars.storage._checksum import checksum_of

__all__ = ["WINDOWS", "LabelWriter", "check_labels", "cut_off_labels", "read_labels"]

WINDOWS = "windows.csv"
#: Onset and duration are in seconds, as in the events of BIDS. Split and fold are those of the
#: recording's description, for the reader of the table.
_COLUMNS = ("recording", "onset", "duration", "label", "split", "fold", "i_window_in_trial")
_KINDS = {"bool": lambda text: text == "True", "int": int, "float": float, "str": str}
_HEADER = (",".join(_COLUMNS) + "\n").encode()


class LabelWriter:
    """Append windows to the table of a store. Nothing is written until a recording has labels.

    Parameters
    ----------
    folder : Path
        Folder of the store.
    described : mapping
        Entry ``labels`` of the index. What is in the table beyond it is overwritten.
    """

    def __init__(self, folder: Path, described: Mapping[str, Any]):
        self.table = folder / WINDOWS
        self.described = dict(described) or dict(n_windows=0, n_bytes=0, kind=None)
        self._hash = hashlib.blake2b(digest_size=8)
        self._hash.update(check_labels(folder, described))

    def add(
        self, pieces: Mapping[str, Labels], description: Mapping[str, Any], sfreq: float
    ) -> None:
        """Append the windows of a recording, permanent after the next commit.

        Parameters
        ----------
        pieces : mapping of str to Labels
            Windows of each piece of the recording, by the name of the piece in the store.
        description : mapping
            Description of the recording, with ``split`` and ``fold`` if it has them.
        sfreq : float
            Sampling rate of the store in Hz.

        Raises
        ------
        ValueError
            When the labels are of another type than those before.
        """
        kinds = {type(value).__name__ for piece in pieces.values() for value in piece.label}
        if not kinds:
            return
        kinds |= {self.described["kind"]} - {None}
        if len(kinds) > 1:
            raise ValueError(
                f"The labels of {next(iter(pieces))} and of the recordings before it are of "
                f"different types ({', '.join(sorted(kinds))}); give all windows labels of one "
                "type."
            )
        header = b"" if self.described["n_bytes"] else _HEADER
        rows = [
            row for name, piece in pieces.items() for row in _rows(name, piece, description, sfreq)
        ]
        self._write(header + _as_csv(rows))
        self.described["kind"] = kinds.pop()
        self.described["n_windows"] += len(rows)

    def _write(self, content: bytes) -> None:
        """Write after the last complete recording; on an error, nothing counts as written."""
        mode = "r+b" if self.table.exists() else "wb"
        with self.table.open(mode) as file:
            file.seek(self.described["n_bytes"])
            file.write(content)
            file.truncate()
        self._hash.update(content)
        self.described["n_bytes"] += len(content)

    def commit(self) -> dict[str, Any]:
        """Make all windows permanent, and return the entry ``labels`` of the index."""
        if not self.described["n_windows"]:
            self.table.unlink(missing_ok=True)  # of a call that was killed at the beginning
            return {}
        with self.table.open("r+b") as file:
            file.truncate(self.described["n_bytes"])  # cuts off what a full disk left
            os.fsync(file.fileno())
        return {**self.described, "checksum": self._hash.hexdigest()}


def _rows(name: str, labels: Labels, description: Mapping[str, Any], sfreq: float) -> list[tuple]:
    split, fold = (description.get(key, "") for key in ("split", "fold"))
    onset, duration = labels.start / sfreq, (labels.stop - labels.start) / sfreq
    columns = onset.tolist(), duration.tolist(), labels.label, labels.number.tolist()
    return [
        (name, seconds, length, label, split, fold, number)
        for seconds, length, label, number in zip(*columns, strict=True)
    ]


def _as_csv(rows: list[tuple]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def cut_off_labels(folder: Path, described: Mapping[str, Any]) -> None:
    """Remove windows that the index does not describe, after a failed extension of a store."""
    table = folder / WINDOWS
    if not described:
        table.unlink(missing_ok=True)
    else:
        os.truncate(table, described["n_bytes"])


def check_labels(folder: Path, described: Mapping[str, Any]) -> bytes:
    """Return the table of a store, compared with the checksum in the index.

    Raises
    ------
    FileNotFoundError
        When the table is missing.
    ValueError
        When the table was altered.
    """
    table = folder / WINDOWS
    if not described:
        return b""
    if not table.is_file():
        raise FileNotFoundError(
            f"{table} is missing; the store has {described['n_windows']} labelled windows. Copy it "
            "again, or create the store again."
        )
    with table.open("rb") as file:
        content = file.read(described["n_bytes"])  # another process may be extending it
    if checksum_of(content) != described["checksum"]:
        raise ValueError(
            f"{table} was altered: its content does not match its checksum. Copy it again, or "
            "create the store again."
        )
    return content


def read_labels(folder: Path, described: Mapping[str, Any], sfreq: float) -> dict[str, Labels]:
    """Return the windows of each recording of a store that has some, by name.

    Raises
    ------
    FileNotFoundError, ValueError
        As :func:`check_labels`.
    """
    content = check_labels(folder, described)
    if not content:
        return {}
    types = dict(recording=str, label=str, split=str, fold=str)
    # The csv module quotes a text with "\n", but not one with a lone "\r".
    table = pd.read_csv(
        io.BytesIO(content), dtype=types, keep_default_na=False, lineterminator="\n"
    )
    start = np.rint(table["onset"].to_numpy(float) * sfreq).astype(int)
    stop = start + np.rint(table["duration"].to_numpy(float) * sfreq).astype(int)
    number, names = table["i_window_in_trial"].to_numpy(int), table["recording"].to_numpy()
    convert = _KINDS[described["kind"]]
    label = [convert(text) for text in table["label"]]
    # The windows of a recording follow each other.
    edges = np.flatnonzero(np.r_[True, names[1:] != names[:-1], True]).tolist()
    return {
        names[first]: Labels(
            start[first:last], stop[first:last], tuple(label[first:last]), number[first:last]
        )
        for first, last in pairwise(edges)
    }
