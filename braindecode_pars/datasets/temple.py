"""Common code for the Temple University corpora: names, channels, preparation and splits."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import mne

from braindecode_pars._common.channel_names import match_channels
from braindecode_pars.recordings import loading, preparation, readers, search

#: File name of a recording in all corpora: subject, session, and number within the session.
#: Names of subjects are digits in releases until 2022, and letters in later ones.
FILE = r"(?P<subject>[a-z]{8}|\d{8})_s(?P<session>\d+)_t(?P<token>\d+)\.edf$"


def find(
    path: str | Path, corpus: str, layouts: Iterable[str], example: str
) -> list[loading.Recording]:
    """Find recordings by their paths, without opening them.

    Parameters
    ----------
    path : path
        Folder that contains the recordings, at any depth.
    corpus : str
        Name of the recipe, for the description of the recordings.
    layouts : iterable of str
        Regular expressions for the end of a recording's path, with slashes. Each ends with
        :data:`FILE`. The named groups become the description of the recording; session and token
        of :data:`FILE` become integers.
    example : str
        Example of a recording's path in the corpus, for the error message.

    Returns
    -------
    list of Recording
        Recordings in the order of their paths.

    Raises
    ------
    FileNotFoundError
        When the folder contains no recording of the corpus.
    PermissionError
        When a folder may not be listed.
    """
    # A file belongs to the corpus if its path matches one of the layouts.
    folder = Path(path).expanduser()
    patterns = [re.compile(layout) for layout in layouts]
    recordings = []
    for file in search.list_files(folder, lambda name: name.endswith(".edf")):
        # Layouts name folders of the corpus, and the given path may be one of these folders.
        where = file.absolute().as_posix()
        match = next((m for pattern in patterns if (m := pattern.search(where))), None)
        if match:
            groups = {"subject": match["subject"], "corpus": corpus, **match.groupdict()}
            numbers = {name: int(match[name]) for name in ("session", "token")}
            recordings.append(loading.Recording(file, groups | numbers))
    if not recordings:
        raise FileNotFoundError(f"{folder} contains no recording such as {example}.")
    return recordings


def subjects_in(folder: str | Path) -> set[str]:
    """Return the subjects of all recordings below a folder, in any layout.

    Raises
    ------
    FileNotFoundError
        When the folder does not exist or contains no recording.
    PermissionError
        When a folder may not be listed.
    """
    folder = Path(folder).expanduser()
    files = search.list_files(folder, lambda name: re.match(FILE, name) is not None)
    subjects = {file.name.partition("_")[0] for file in files}
    if not subjects:
        raise FileNotFoundError(
            f"{folder} {'contains no recording' if folder.is_dir() else 'does not exist'}; "
            "expected a folder with files such as aaaaaaaa_s001_t000.edf, at any depth."
        )
    return subjects


def prepare(file: Path, channels: Sequence[str]) -> mne.io.BaseRaw:
    """Read a recording and prepare it: channels, 200 Hz, band-pass 0.3 to 75 Hz, notch 60 Hz.

    The signals are in volts.

    Raises
    ------
    ValueError
        When the file is damaged, or does not contain all channels.
    """
    raw = readers.read_edf(file, lambda name: match_channels([name], channels) != [None])
    return preparation.filter_and_resample(preparation.pick_electrodes(raw, channels), mains=60.0)


def divide(
    recordings: Iterable[loading.Recording],
    split_of_folder: Mapping[str, str],
    seed: int,
    subjects: Iterable[str] | None = None,
    path: str | Path = "",
) -> list[loading.Recording]:
    """Add a ``split`` to the description of each recording, then choose subjects.

    Parameters
    ----------
    recordings : iterable of Recording
        Recordings with an entry ``folder`` in their description, the corpus' own division.
    split_of_folder : mapping of str to str
        Split of all recordings in a folder, by folder. The subjects of other folders are divided
        at random into 80 % train and 20 % valid.
    seed : int
        Seed of the random division, which does not depend on the chosen subjects.
    subjects : iterable of str | None
        Subjects to keep; None keeps all.
    path : path
        Folder of the recordings, for the error message.

    Returns
    -------
    list of Recording
        The recordings with an entry ``split`` in their description.

    Raises
    ------
    FileNotFoundError
        When a subject has no recording.
    ValueError
        When a subject is in several splits, unlike in the published corpora. The message names the
        subjects and their splits.
    """
    recordings = list(recordings)
    undivided = {r.subject for r in recordings if r.description["folder"] not in split_of_folder}
    drawn = loading.split_subjects(undivided, {"train": 0.8, "valid": 0.2}, seed)
    divided = []
    for recording in recordings:
        split = split_of_folder.get(recording.description["folder"]) or drawn[recording.subject]
        divided.append(replace(recording, description={**recording.description, "split": split}))
    chosen = loading.choose_subjects(divided, subjects, path)
    splits: dict[str, set[str]] = {}
    for recording in chosen:
        splits.setdefault(recording.subject, set()).add(recording.description["split"])
    shared = [f"{s} ({' and '.join(sorted(f))})" for s, f in splits.items() if len(f) > 1]
    if shared:
        raise ValueError(
            f"Subjects are in several splits: {', '.join(shared)}. Test subjects would be training "
            "subjects too; exclude these subjects with `subjects`, or remove one of their folders."
        )
    return chosen
