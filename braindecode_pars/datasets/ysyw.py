"""Sleep stages from "You Snooze You Win", the PhysioNet/CinC Challenge 2018 (1.0.0)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import mne
import numpy as np
import wfdb
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars.electrodes import template_montage
from braindecode_pars.recordings.cutting import event_windows, fixed_windows
from braindecode_pars.recordings.loading import Recording, choose_subjects, read_corpus
from braindecode_pars.recordings.preparation import (
    SFREQ,
    SLEEP_STAGES,
    filter_and_resample,
    pick_electrodes,
)
from braindecode_pars.recordings.readers import read_wfdb
from braindecode_pars.recordings.splits import split_subjects

__all__ = ["CARD", "CHANNELS", "load", "recordings"]

#: Distributed against the mastoid of the other side: F3-M2, F4-M1 and so on.
CHANNELS = ("F3", "F4", "C3", "C4", "O1", "O2")

#: What the corpus is, and what :func:`load` makes of it.
CARD: dict[str, Any] = dict(
    name="YSYW",
    version="1.0.0",
    licence="ODC-BY-1.0",
    address="https://physionet.org/content/challenge-2018/1.0.0/",
    subjects=1983,
    channels=len(CHANNELS),
    sfreq=SFREQ,
    classes=SLEEP_STAGES,
    reference="Ghassemi et al. 2018, Computing in Cardiology 45; "
    "Goldberger et al. 2000, Circulation 101(23)",
)

WINDOW_SECONDS = 30.0
_NAME = re.compile(r"(tr|te)\d\d-\d{4}\.mat")
_PARTS = {"labeled": ("train", "valid", "test"), "pretraining": ("unlabeled", "train")}


def recordings(path: str | Path, *, split_seed: int = 0) -> list[Recording]:
    """Find recordings and say which split they are in, without opening them.

    Parameters
    ----------
    path : path
        The folder that holds ``training`` and ``test``; one of them is enough.
    split_seed : int
        The labelled subjects that are there (``tr...``) are divided by it: 60 % are "train", 20 %
        "valid" and 20 % "test". Other subjects in the folder make another division.

    Returns
    -------
    list of Recording
        Descriptions hold ``subject``, the name of the record, such as "tr03-0005" (everybody was
        recorded once), and ``split``, which is "unlabeled" for the records ``te...``: those that
        the challenge calls its test set were published without stages.

    Raises
    ------
    FileNotFoundError
        When there is none.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "test", "te03-0094", "te03-0094.mat")
    ...     file.parent.mkdir(parents=True)
    ...     file.touch()
    ...     [recording] = datasets.ysyw.recordings(folder)
    >>> recording.description
    {'subject': 'te03-0094', 'split': 'unlabeled'}
    """
    folder = Path(path).expanduser()
    files = [
        file
        for part in ("training", "test")
        for file in sorted(folder.glob(f"{part}/t*/t*.mat"))
        if _NAME.fullmatch(file.name)
    ]
    if not files:
        raise FileNotFoundError(
            f"{path} holds no recording of the challenge; expected files such as "
            f"{folder / 'training/tr03-0005/tr03-0005.mat'} with .hea and .arousal beside them."
        )
    labelled = [file.stem for file in files if file.stem.startswith("tr")]
    splits = split_subjects(labelled, {"train": 0.6, "valid": 0.2, "test": 0.2}, split_seed)
    return [
        Recording(file, dict(subject=file.stem, split=splits.get(file.stem, "unlabeled")))
        for file in files
    ]


def load(
    path: str | Path,
    subjects: Iterable[str] | None = None,
    *,
    part: str = "labeled",
    split_seed: int = 0,
    n_jobs: int = 1,
    cache: str | Path | None = None,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Read 30-second windows of six channels at 200 Hz, 0.3 to 75 Hz, without 60 Hz.

    A stage lasts from its annotation to the next one, the last stage for one window, as in
    braindecode. What comes before the first stage and what is called undefined has no label.

    Parameters
    ----------
    path : path
        The folder that holds ``training`` and ``test``.
    subjects : iterable of str | None
        Names of records, such as "tr03-0005"; None means all that are there and in the part. Who
        is in which split depends on everybody who is there, not on this choice.
    part : "labeled" | "pretraining"
        Windows with stages, of training, validation and test subjects; or windows of whole nights
        with target -1, of unlabelled and training subjects only.
    split_seed : int
        As in :func:`recordings`.
    n_jobs, cache, on_error, verbose
        See :func:`~braindecode_pars.recordings.loading.read_corpus`.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Volts. Targets are the places in ``CARD["classes"]``; descriptions hold ``subject`` and
        ``split``.

    Raises
    ------
    FileNotFoundError
        When the folder or a subject has no recording.
    ValueError
        When a recording is damaged, lacks a channel or its stages, naming it, or when a subject
        that was asked for does not belong to the part, such as a test subject to pretraining.

    Notes
    -----
    Files are read with wfdb, and only the six channels of them:
    :class:`braindecode.datasets.SleepPhysionetChallenge2018` downloads what is not there, beginning
    with its list of records, and numbers people instead of naming their records.

    The paper's own counts disagree: 60/20/20 of 994 are 596, 199 and 199 subjects, but it
    fine-tunes on up to 657, tests on 117, and has 200 validation subjects in the ablation; the 989
    unlabelled and 596 training subjects are 1,585, of whom it pretrains on 1,386 (table) or 1,396
    (text). What its appendix A.3 describes is what is done here.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> datasets.ysyw.CARD["classes"]
    ('W', 'N1', 'N2', 'N3', 'R')
    >>> labelled = datasets.ysyw.load("challenge-2018/1.0.0")  # doctest: +SKIP
    >>> training = labelled.split("split")["train"]  # doctest: +SKIP
    >>> nights = datasets.ysyw.load("challenge-2018/1.0.0", part="pretraining")  # doctest: +SKIP
    """
    if part not in _PARTS:
        raise ValueError(f"part must be 'labeled' or 'pretraining', got {part!r}.")
    named = None if subjects is None or isinstance(subjects, str) else list(subjects)
    chosen = choose_subjects(
        recordings(path, split_seed=split_seed), subjects if named is None else named, path
    )
    return read_corpus(
        _of_part(chosen, part, asked_for=named is not None),
        partial(_read, part=part),
        dict(corpus=CARD["name"], version=CARD["version"], part=part),
        n_jobs=n_jobs,
        cache=cache,
        on_error=on_error,
        verbose=verbose,
    )


def _of_part(chosen: list[Recording], part: str, *, asked_for: bool) -> list[Recording]:
    inside = [r for r in chosen if r.description["split"] in _PARTS[part]]
    outside = [r for r in chosen if r.description["split"] not in _PARTS[part]]
    if outside and (asked_for or not inside):
        shown = ", ".join(f"{r.subject} ({r.description['split']})" for r in outside[:10])
        raise ValueError(
            f"The part {part!r} holds the splits {' and '.join(_PARTS[part])} only, not {shown}; "
            "leave such subjects out or ask for the other part."
        )
    return inside


def _read(recording: Recording, *, part: str) -> EEGWindowsDataset | None:
    raw = read_wfdb(recording.file, lambda name: _electrode(name) in CHANNELS)
    pick_electrodes(raw, CHANNELS, _electrode)
    raw.set_montage(template_montage(), verbose="error")
    if part == "labeled":
        raw.set_annotations(_stages(recording.file), verbose="error")
    filter_and_resample(raw, mains=60.0)
    if part == "pretraining":
        return fixed_windows(raw, WINDOW_SECONDS)
    targets = {stage: target for target, stage in enumerate(SLEEP_STAGES)}
    return event_windows(raw, targets, WINDOW_SECONDS)


def _electrode(name: str) -> str:
    return name.split("-")[0]


def _stages(file: Path) -> mne.Annotations:
    """Sleep stages; the notes on arousals and breathing that stand between them are left out."""
    if not file.with_suffix(".arousal").is_file():
        raise ValueError(
            f"it has no stages: {file.stem}.arousal is not beside it; fetch that file too, or read "
            "part='pretraining'."
        )
    # wfdb takes a note at the very first sample for a definition, so a stage there is not seen.
    notes = wfdb.rdann(str(file.with_suffix("")), "arousal")
    names = [note.strip("\x00 ") for note in notes.aux_note]
    is_stage = np.array([name in (*SLEEP_STAGES, "undefined") for name in names], dtype=bool)
    if not is_stage.any():
        raise ValueError(f"it has no stages: {file.stem}.arousal holds none of them.")
    onsets = notes.sample[is_stage] / notes.fs
    durations = np.diff(onsets, append=onsets[-1:] + WINDOW_SECONDS)
    # To the millisecond: a difference of times is not to lose a sample.
    return mne.Annotations(
        onsets, np.round(durations, 3), [n for n, keep in zip(names, is_stage, strict=True) if keep]
    )
