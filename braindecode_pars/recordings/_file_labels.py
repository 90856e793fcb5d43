"""Labels of a recording that come from outside of it: of the whole recording, or of stretches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import mne

from braindecode_pars.recordings.loading import Recording
from braindecode_pars.storage._checksum import checksum_of

__all__ = ["FileLabels", "LabelledFile", "Stretch", "checksum_of_labels", "to_annotations"]


class Stretch(NamedTuple):
    """A labelled stretch of a recording.

    Attributes
    ----------
    onset : float | None
        Start in seconds from the first sample; None for the whole recording.
    duration : float | None
        Length in seconds; None for one window from the onset.
    label : str
        Label.
    """

    onset: float | None
    duration: float | None
    label: str


class FileLabels(NamedTuple):
    """Labelled stretches of a file, and its subject; None if the labels do not name it."""

    stretches: tuple[Stretch, ...]
    subject: Any = None


@dataclass(frozen=True)
class LabelledFile(Recording):
    """A recording, not yet opened, with labelled stretches."""

    stretches: tuple[Stretch, ...] = ()


def checksum_of_labels(
    labels: Mapping[Path, FileLabels], classes: Mapping[str, str], root: Path
) -> str:
    """Return a checksum of the labels of all files, for the settings of a cache."""
    rows = sorted((f.relative_to(root).as_posix(), one.stretches) for f, one in labels.items())
    return checksum_of(json.dumps([rows, list(classes.items())]).encode())


def to_annotations(
    stretches: Iterable[Stretch], classes: Mapping[str, str], raw: mne.io.BaseRaw, seconds: float
) -> mne.Annotations:
    """Return the stretches as annotations of a recording, with the names of their classes.

    Parameters
    ----------
    stretches : iterable of Stretch
        Labels of the recording.
    classes : mapping of str to str
        Class of each label that is used.
    raw : Raw
        The recording.
    seconds : float
        Length of a window, which a stretch without a duration lasts.

    Returns
    -------
    Annotations
        Onsets in seconds from the first sample.

    Raises
    ------
    ValueError
        When a stretch ends after the recording.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings._file_labels import Stretch, to_annotations
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 6000)), info, verbose="error")
    >>> stretches = [Stretch(30, None, "2")]
    >>> print(*to_annotations(stretches, {"2": "N2"}, raw, 30.0).description)
    N2
    """
    length = raw.n_times / raw.info["sfreq"]
    rows = []
    for onset, duration, label in stretches:
        start = 0.0 if onset is None else onset
        lasts = (length if onset is None else seconds) if duration is None else duration
        # A file may end by a rounded sample before its last label.
        if start + lasts > length + 1.5 / raw.info["sfreq"]:
            raise ValueError(
                f"its label {label!r} at {start:g} s ends at {start + lasts:g} s, but the "
                f"recording has {length:g} s; correct its times, or remove it."
            )
        if label in classes:
            rows.append((start, lasts, classes[label]))
    onsets, durations, labels = zip(*rows, strict=True) if rows else ((), (), ())
    return mne.Annotations(onsets, durations, labels)
