"""A folder of own labelled recordings, also a BIDS data set, as windows.

The label of a window is the annotation that it lies in: one of the file (EDF+, FIF, BrainVision,
EEGLAB), or one of the table ``_events.tsv`` beside it, as BIDS has it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars._parameters import check_positive
from braindecode_pars._subjects import subject_of_path
from braindecode_pars.recordings._gaps import is_gap
from braindecode_pars.recordings._search import list_files
from braindecode_pars.recordings.cutting import event_windows
from braindecode_pars.recordings.loading import Recording, choose_subjects, read_corpus
from braindecode_pars.recordings.preparation import SFREQ, check_filters, filter_and_resample
from braindecode_pars.recordings.readers import read_recording
from braindecode_pars.recordings.splits import set_splits

__all__ = ["load", "recordings"]

log = logging.getLogger(__name__)

#: Formats of :func:`~braindecode_pars.recordings.readers.read_recording`, and others of BIDS.
_OURS = (".edf", ".bdf", ".fif", ".fif.gz", ".hea")
_OF_MNE = (".vhdr", ".set")
#: Folders of a BIDS data set that repeat its recordings.
_COPIES = ("derivatives", "sourcedata", "code", "stimuli")


def recordings(path: str | Path) -> list[Recording]:
    """Return the recordings in a folder, without opening the files.

    Parameters
    ----------
    path : path
        Folder of recordings (.edf, .bdf, .fif, .hea, .vhdr or .set), at any depth. The folders
        ``derivatives`` and ``sourcedata`` of a BIDS data set are left out.

    Returns
    -------
    list of Recording
        The description has ``subject``: the BIDS label, else the first folder, else the name of
        the file.

    Raises
    ------
    FileNotFoundError
        When the folder does not exist or contains no recording.
    ValueError
        When it is unclear which subject a recording is of.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "sub-01", "eeg", "sub-01_task-rest_eeg.edf")
    ...     file.parent.mkdir(parents=True)
    ...     file.touch()
    ...     [recording] = datasets.folder.recordings(folder)
    >>> recording.subject
    '01'
    """
    root = Path(path).expanduser()
    files = list_files(root, lambda name: name.lower().endswith((*_OURS, *_OF_MNE)))
    if (root / "dataset_description.json").is_file():
        files = [file for file in files if file.relative_to(root).parts[0] not in _COPIES]
    if not files:
        raise FileNotFoundError(
            f"{root} contains no recording; expected files that end with "
            f"{', '.join((*_OURS, *_OF_MNE))}."
        )
    found = []
    for file in files:
        try:
            found.append(Recording(file, {"subject": subject_of_path(file.relative_to(root))}))
        except ValueError as error:
            raise ValueError(f"{file} cannot be used: {error}") from error
    return found


def load(
    path: str | Path,
    subjects: Iterable[str] | None = None,
    *,
    labels: Sequence[str] | Mapping[str, int] | None = None,
    window_seconds: float = 30.0,
    sfreq: float = SFREQ,
    low: float | None = 0.3,
    high: float | None = 75.0,
    mains: float | None = 60.0,
    splits: Mapping[str, str] | str | Path | None = None,
    n_jobs: int = 1,
    cache: str | Path | None = None,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Return labelled windows of the EEG channels of all recordings in a folder.

    An annotation is cut into windows that do not overlap; one without a duration gives the window
    that starts with it. Other parts of a recording are not used. Of a BIDS data set, the labels are
    the column ``trial_type`` of ``_events.tsv``, the types of channels are those of
    ``_channels.tsv``, and a column ``split`` of ``participants.tsv`` becomes the split.

    Parameters
    ----------
    path : path
        Folder of recordings, see :func:`recordings`.
    subjects : iterable of str | None
        Subjects to read; None reads all.
    labels : list of str | mapping of str to int | None
        Descriptions of the annotations that are labels, in the order of the targets 0, 1, ...; or a
        target for each description. None uses all annotations that are as long as a window, or,
        if there are none, all without a duration; targets are in alphabetical order. Annotations
        that begin with "BAD" or "EDGE" are never labels.
    window_seconds : float
        Length of a window in seconds.
    sfreq, low, high, mains
        As in :func:`~braindecode_pars.recordings.preparation.filter_and_resample`.
    splits : mapping | path | None
        As in :func:`~braindecode_pars.recordings.splits.set_splits`.
    n_jobs, cache, on_error, verbose
        As in :func:`~braindecode_pars.recordings.loading.read_corpus`.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Signals in volts. Descriptions have ``subject``, and ``split`` where it is known.

    Raises
    ------
    FileNotFoundError
        When the folder contains no recording, or no recording of a requested subject.
    ValueError
        When a recording is damaged, when no annotation is a label, or when no label is as long as a
        window.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> windows = datasets.folder.load("my-bids", window_seconds=4)  # doctest: +SKIP
    """
    check_filters(sfreq=sfreq, low=low, high=high, mains=mains)
    check_positive(window_seconds=window_seconds)
    chosen = choose_subjects(recordings(path), subjects, path)
    targets = _targets(labels, chosen, window_seconds)
    settings = dict(window_seconds=window_seconds, sfreq=sfreq, low=low, high=high, mains=mains)
    windows = read_corpus(
        chosen,
        partial(_read, targets=targets, **settings),
        dict(corpus="own folder", labels=targets, **settings),
        n_jobs=n_jobs,
        cache=cache,
        on_error=on_error,
        verbose=verbose,
    )
    splits = _listed_splits(Path(path).expanduser()) if splits is None else splits
    return windows if splits is None else set_splits(windows, splits)


def _listed_splits(root: Path) -> Path | None:
    """Return the file participants.tsv, if it has a column "split"."""
    file = root / "participants.tsv"
    has_splits = file.is_file() and "split" in pd.read_csv(file, sep="\t", nrows=0)
    return file if has_splits else None


def _targets(
    labels: Sequence[str] | Mapping[str, int] | None, chosen: list[Recording], seconds: float
) -> dict[str, int]:
    """Return the target of each label; without given labels, find them in all recordings."""
    if isinstance(labels, Mapping):
        return dict(labels)
    if isinstance(labels, str):
        raise ValueError(f"labels is the text {labels!r}; give a list of labels, [{labels!r}].")
    if labels is None:
        labels = _found_labels(chosen, seconds)
        log.info("The labels are %s, with the targets 0, 1, ...", ", ".join(labels))
    return {str(label): target for target, label in enumerate(labels)}


def _found_labels(chosen: list[Recording], seconds: float) -> list[str]:
    long, instant = set(), set()
    for recording in chosen:
        for one in _annotations_of(recording.file):
            name = str(one["description"])
            if is_gap(name) or name.upper().startswith(("BAD", "EDGE")):
                continue
            if one["duration"] == 0:
                instant.add(name)
            elif one["duration"] >= seconds - 1e-6:
                long.add(name)
    if not long and not instant:
        raise ValueError(
            f"No annotation of {len(chosen)} recordings is as long as a window of {seconds:g} s, "
            "or without a duration; pass a shorter window_seconds, annotate the recordings, or "
            "add tables _events.tsv as in BIDS."
        )
    return sorted(long or instant)


def _read(
    recording: Recording, *, targets: Mapping[str, int], window_seconds: float, **filters: float
) -> EEGWindowsDataset | None:
    """Read one recording: its EEG channels, and the windows within its labels."""
    file = recording.file
    raw = _open(file)
    annotations = _annotations_of(file)
    gaps = [i for i, name in enumerate(raw.annotations.description) if is_gap(name)]
    kept = raw.annotations[gaps] if gaps else None
    # An annotation without a duration lasts for one window.
    annotations.duration[annotations.duration == 0] = window_seconds
    raw.set_annotations(annotations, verbose="error")
    if kept is not None:
        raw.set_annotations(raw.annotations + kept, verbose="error")
    if not mne.pick_types(raw.info, eeg=True, exclude=()).size:
        raise ValueError(f"it has no EEG channel; its channels are {', '.join(raw.ch_names)}.")
    raw.pick("eeg", exclude=(), verbose="error")
    filter_and_resample(raw, **filters)
    return event_windows(raw, targets, window_seconds)


def _open(file: Path) -> mne.io.BaseRaw:
    """Open a recording, with the types of channels that BIDS lists beside it."""
    if not file.name.lower().endswith(_OF_MNE):
        raw = read_recording(file)
    else:
        raw = mne.io.read_raw(file, preload=True, verbose="error")
    table = _beside(file, "channels")
    if table is not None:
        channels = pd.read_csv(table, sep="\t", dtype=str).set_index("name")
        channels = channels.reindex(raw.ch_names)
        others = channels.index[channels["type"].notna() & (channels["type"].str.upper() != "EEG")]
        kinds = dict.fromkeys(others, "misc")
        raw.set_channel_types(kinds, on_unit_change="ignore", verbose="error")
        if "status" in channels:
            raw.info["bads"] = channels.index[channels["status"] == "bad"].tolist()
    return raw


def _annotations_of(file: Path) -> mne.Annotations:
    """Return the annotations of a recording, in seconds from its first sample."""
    table = _beside(file, "events")
    if table is None:
        return _own_annotations(file)
    events = pd.read_csv(table, sep="\t", dtype={"trial_type": str})
    absent = [name for name in ("onset", "trial_type") if name not in events]
    if absent:
        raise ValueError(f"{table} has no column {absent[0]!r}.")
    events = events.dropna(subset=["trial_type"])
    durations = events["duration"] if "duration" in events else np.zeros(len(events))
    durations = pd.to_numeric(durations, errors="coerce").fillna(0)  # "n/a"
    return mne.Annotations(events["onset"], durations, events["trial_type"])


def _own_annotations(file: Path) -> mne.Annotations:
    if file.suffix.lower() == ".hea":  # WFDB annotations have no duration and mean heart beats
        return mne.Annotations([], [], [])
    try:
        found = mne.read_annotations(file)
    except (ValueError, OSError, RuntimeError):  # reading the recording raises the full message
        return mne.Annotations([], [], [])
    onsets = found.onset - (_first_time(file) if found.orig_time is not None else 0)
    return mne.Annotations(onsets, found.duration, found.description)


def _first_time(file: Path) -> float:
    """Return the time of the first sample; only FIF files may begin later than their clock."""
    is_fif = file.name.lower().endswith((".fif", ".fif.gz"))
    return mne.io.read_raw_fif(file, verbose="error").first_time if is_fif else 0.0


def _beside(file: Path, suffix: str) -> Path | None:
    """Return the table of BIDS beside a recording, such as sub-01_task-rest_events.tsv."""
    stem = re.sub(r"_i?eeg$", "", file.name.split(".")[0])
    table = file.with_name(f"{stem}_{suffix}.tsv")
    return table if table.is_file() else None
