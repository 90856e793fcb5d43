"""What the corpora of Temple University share: names of files and channels, preparation, splits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import mne

from braindecode_pars.recordings.loading import Recording
from braindecode_pars.recordings.preparation import filter_and_resample, pick_electrodes
from braindecode_pars.recordings.readers import read_edf
from braindecode_pars.recordings.splits import split_subjects

__all__ = [
    "FILE",
    "check_no_shared_subjects",
    "divide",
    "electrode",
    "find",
    "prepare",
    "subjects_in",
]

#: A recording's name, the same in all corpora: subject, session, and number within the session.
#: Subjects were numbers until 2022 and are letters since.
FILE = r"(?P<subject>[a-z]{8}|\d{8})_s(?P<session>\d+)_t(?P<token>\d+)\.edf$"

_CHANNEL = re.compile(r"(?:EEG )?(?P<electrode>\w+?)(?:-(?:REF|LE|AR))?(?:-\d+)?")
_OLD_NAMES = {"T7": "T3", "T8": "T4", "P7": "T5", "P8": "T6"}


def electrode(channel: str) -> str:
    """The electrode behind a channel, in capital letters and by its name of the 10-20 system.

    A bipolar channel has none and keeps its name.

    Examples
    --------
    >>> from braindecode_pars.recordings._temple import electrode
    >>> electrode("EEG FP1-REF"), electrode("EEG T7-LE"), electrode("EEG A1-REF")
    ('FP1', 'T3', 'A1')
    >>> electrode("C3-P3")
    'C3-P3'
    """
    name = channel.strip().upper()
    # MNE appends -0, -1, ... to names that a file has twice.
    if match := _CHANNEL.fullmatch(name):
        name = match["electrode"]
    return _OLD_NAMES.get(name, name)


def find(path: str | Path, layouts: Iterable[str], example: str) -> list[Recording]:
    """Find recordings by their names, without opening them.

    Parameters
    ----------
    path : path
        Any folder above the recordings.
    layouts : iterable of str
        Regular expressions for the end of a recording's path, :data:`FILE` among them, with
        slashes. Their named groups are the description; the numbers of :data:`FILE` as numbers.
    example : str
        A recording's path as the corpus has it, for the error.

    Returns
    -------
    list of Recording
        In the order of their paths.

    Raises
    ------
    FileNotFoundError
        When there is none.
    """
    folder = Path(path).expanduser()
    patterns = [re.compile(layout) for layout in layouts]
    found = []
    for file in sorted(folder.rglob("*.edf")):
        # Absolute, since path may be a folder within the corpus.
        where = file.absolute().as_posix()
        match = next((m for pattern in patterns if (m := pattern.search(where))), None)
        if match:
            found.append(Recording(file, dict(_plain(match.groupdict()))))
    if not found:
        raise FileNotFoundError(
            f"{folder} holds no recording of this corpus; expected files such as {example}."
        )
    return found


def _plain(groups: Mapping[str, str]) -> Iterator[tuple[str, str | int]]:
    yield "subject", groups["subject"]
    for name, value in groups.items():
        if name != "subject":
            yield name, int(value) if name in ("session", "token") else value


def subjects_in(folder: str | Path) -> set[str]:
    """Subjects of whom any recording lies below a folder, in whatever layout.

    Raises
    ------
    FileNotFoundError
        When the folder is not there or holds no recording.
    """
    folder = Path(folder).expanduser()
    names = (re.match(FILE, file.name) for file in folder.rglob("*.edf"))
    subjects = {name["subject"] for name in names if name}
    if not subjects:
        raise FileNotFoundError(
            f"{folder} {'holds no recording' if folder.is_dir() else 'is not there'}; expected a "
            "folder with files such as aaaaaaaa_s001_t000.edf somewhere below it."
        )
    return subjects


def prepare(file: Path, channels: Sequence[str]) -> mne.io.BaseRaw:
    """Read a recording: wanted channels, 200 Hz, band-pass 0.3 to 75 Hz, 60 Hz notch; volts.

    Raises
    ------
    ValueError
        When the file is damaged or lacks one of the channels.
    """
    return filter_and_resample(pick_electrodes(read_edf(file), channels, electrode), mains=60.0)


def divide(recordings: Iterable[Recording], given: Mapping[str, str], seed: int) -> list[Recording]:
    """Describe every recording by a ``split``: as given, or 80 % train and 20 % valid by subject.

    Parameters
    ----------
    recordings : iterable of Recording
        Described by ``folder``, the corpus' own division.
    given : mapping of str to str
        From a folder to the split of all that is in it. The subjects of other folders are
        divided.
    seed : int
    """
    recordings = list(recordings)
    rest = {recording.subject for recording in recordings if _folder(recording) not in given}
    drawn = split_subjects(rest, {"train": 0.8, "valid": 0.2}, seed)
    return [
        replace(
            recording,
            description={
                **recording.description,
                "split": given.get(_folder(recording)) or drawn[recording.subject],
            },
        )
        for recording in recordings
    ]


def _folder(recording: Recording) -> str:
    return recording.description["folder"]


def check_no_shared_subjects(recordings: Iterable[Recording]) -> None:
    """Raise where a subject is in several splits, as none of the published corpora has it.

    Raises
    ------
    ValueError
        Naming the subjects and their splits.
    """
    splits: dict[str, set[str]] = {}
    for recording in recordings:
        splits.setdefault(recording.subject, set()).add(recording.description["split"])
    shared = {subject: found for subject, found in splits.items() if len(found) > 1}
    if shared:
        named = ", ".join(f"{s} ({' and '.join(sorted(found))})" for s, found in shared.items())
        raise ValueError(
            f"Subjects are in several splits: {named}. Scores would be of people trained on; "
            "leave these subjects out through `subjects`, or remove one of their folders."
        )
