"""Shared functions for the Temple University corpora: file names, preprocessing and splits."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import mne
import pandas as pd

from braindecode_pars._common.channel_names import match_channels
from braindecode_pars.recordings import loading, preparation, readers, search

#: Regular expression for the file name of a recording in all corpora of Temple University: subject,
#: session, and number within the session (token). Subject identifiers consist of digits in releases
#: until 2022, and of letters in later releases.
FILE = r"(?P<subject>[a-z]{8}|\d{8})_s(?P<session>\d+)_t(?P<token>\d+)\.edf"


def find(path: str | Path, corpus: str, example: str, *layouts: str) -> list[loading.Recording]:
    """List the files whose folder matches a layout of a corpus and whose name matches :data:`FILE`.

    The parameters are those of :func:`~braindecode_pars.recordings.loading.find_recordings`, but
    ``layouts`` match only the folders, without the file name.
    """
    layouts = tuple(layout + FILE for layout in layouts)
    numbers = dict(session=int, token=int)
    return loading.find_recordings(path, corpus, example, *layouts, convert=numbers)


def subjects_in(folder: str | Path) -> set[str]:
    """Return the subjects of all recordings in a folder and its subfolders, from the file names.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist or contains no recording.
    PermissionError
        If a folder cannot be listed.
    """
    folder = Path(folder).expanduser()
    matches = (re.fullmatch(FILE, file.name) for file in search.list_files(folder))
    subjects = {match["subject"] for match in matches if match}
    if not subjects:
        raise FileNotFoundError(
            f"{folder} {'contains no recording' if folder.is_dir() else 'does not exist'}. "
            "Pass a folder with files such as aaaaaaaa_s001_t000.edf in any subfolder."
        )
    return subjects


def prepare(file: Path, channels: Sequence[str]) -> mne.io.BaseRaw:
    """Read and preprocess a recording: pick channels, 200 Hz, band-pass 0.3-75 Hz, notch 60 Hz.

    Parameters
    ----------
    file : Path
        EDF file of the recording.
    channels : sequence of str
        Electrodes to pick, in this order.

    Returns
    -------
    Raw
        Preloaded recording in volts.

    Raises
    ------
    ValueError
        If the file is damaged, or a channel is missing.
    """
    raw = readers.read_edf(file, lambda name: match_channels([name], channels) != [None])
    return preparation.filter_and_resample(preparation.pick_electrodes(raw, channels), mains=60.0)


def divide(
    recordings: Sequence[loading.Recording], split_of_folder: Mapping[str, str], seed: int
) -> list[loading.Recording]:
    """Assign each recording to a training, validation or test split.

    Parameters
    ----------
    recordings : list of Recording
        Recordings with an entry ``folder`` in the description, such as "train" or "eval".
    split_of_folder : mapping of str to str
        Split of each folder. The subjects in folders without an entry are randomly divided into
        80 % "train" and 20 % "valid".
    seed : int
        Seed of the random division.

    Returns
    -------
    list of Recording
        Recordings with an entry ``split`` in the description.

    Raises
    ------
    ValueError
        If a subject would be in several splits. The message contains the subjects and their splits.
        This does not occur in the published corpora.
    """
    undivided = {r.subject for r in recordings if r.description["folder"] not in split_of_folder}
    random_splits = loading.split_subjects(undivided, {"train": 0.8, "valid": 0.2}, seed)
    divided = []
    for recording in recordings:
        folder = recording.description["folder"]
        split = split_of_folder.get(folder) or random_splits[recording.subject]
        divided.append(recording.described(split=split))
    splits = pd.DataFrame([r.description for r in divided]).groupby("subject")["split"].unique()
    overlapping = [f"{s} ({' and '.join(sorted(f))})" for s, f in splits.items() if len(f) > 1]
    if overlapping:
        raise ValueError(
            f"Some subjects are in more than one split, so training and test data would overlap: "
            f"{', '.join(overlapping)}. Remove the recordings of each of these subjects from all "
            "splits but one."
        )
    return divided
