"""Write folders of small EEG recordings, without problems or with confounds and other problems.

Each function writes one minute of four channels per subject, and returns the arguments of
:func:`braindecode_pars.datasets.folder.load` for the folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd

CHANNELS = ["Fz", "C3", "C4", "Pz"]
#: Arguments of ``load`` for all folders.
LOADING: dict[str, Any] = dict(window_seconds=5, sfreq=100.0, low=0.5, high=40.0, verbose=0)


def recording(seed: int, rhythm: np.ndarray | float, sfreq: float = 100.0) -> mne.io.RawArray:
    """Return one minute of noise with a rhythm of a constant or changing frequency (Hz)."""
    rng = np.random.default_rng(seed)
    times = np.arange(round(60 * sfreq)) / sfreq
    noise = 1e-5 * rng.normal(size=(len(CHANNELS), len(times)))
    phases = rng.uniform(0, 2 * np.pi, (len(CHANNELS), 1))
    signal = noise + 6e-6 * np.sin(2 * np.pi * rhythm * times + phases)
    return mne.io.RawArray(signal, mne.create_info(CHANNELS, sfreq, "eeg"), verbose="error")


def blocks(seed: int, sfreq: float = 100.0) -> mne.io.RawArray:
    """Return blocks of ten seconds with eyes closed (10 Hz rhythm) or eyes open (20 Hz rhythm)."""
    order = ["open", "closed"] * 3 if seed % 2 else ["closed", "open"] * 3
    rhythm = [10.0 if name == "closed" else 20.0 for name in order]
    raw = recording(seed, np.repeat(rhythm, round(10 * sfreq)), sfreq)
    return raw.set_annotations(mne.Annotations(10.0 * np.arange(6), [10.0] * 6, order))


def _save(root: Path, subject: int, raw: mne.io.BaseRaw) -> None:
    folder = root / f"sub-{subject:02d}" / "eeg"
    folder.mkdir(parents=True)
    raw.save(folder / f"sub-{subject:02d}_task-rest_eeg.fif", verbose="error")


def good(root: Path, n_subjects: int = 12) -> dict[str, Any]:
    """Write subjects with eyes open and closed, in blocks of ten seconds; no problems."""
    for subject in range(n_subjects):
        _save(root, subject, blocks(subject))
    return LOADING


def classes_of_sites(root: Path) -> dict[str, Any]:
    """Write patients with a slower rhythm from one site, and healthy subjects from another site."""
    participants = []
    for subject in range(8):
        is_patient = subject % 2 == 1
        _save(root, subject, recording(subject, 7.0 if is_patient else 10.0))
        diagnosis, site = ("patient", "Lyon") if is_patient else ("healthy", "Graz")
        participants.append((f"sub-{subject:02d}", site, diagnosis))
    table = pd.DataFrame(participants, columns=["participant_id", "site", "diagnosis"])
    table.to_csv(root / "participants.tsv", sep="\t", index=False)
    return LOADING | dict(labels="participants.tsv", label_column="diagnosis")


def mixed_files(root: Path) -> dict[str, Any]:
    """Write six subjects; reference and sampling rate differ between files, but not by class."""
    for subject in range(6):
        raw = blocks(subject, sfreq=(100.0, 128.0)[subject % 2])
        if subject % 3 == 0:
            raw.set_eeg_reference("average", verbose="error")
        _save(root, subject, raw)
    return LOADING


def two_layouts(root: Path) -> dict[str, Any]:
    """Write patients and healthy subjects; most healthy subjects have two additional channels."""
    labels = []
    for subject in range(8):
        is_patient = subject % 2 == 1
        raw = recording(subject, 7.0 if is_patient else 10.0)
        if not is_patient and subject < 6:
            inputs = raw.copy().pick(CHANNELS[:2]).apply_function(lambda x: 15 * x)
            inputs.rename_channels({"Fz": "EEG 23A-23R", "C3": "EEG 24A-24R"})
            raw.add_channels([inputs])
        labels.append((f"sub-{subject:02d}", "patient" if is_patient else "healthy"))
        _save(root, subject, raw)
    table = pd.DataFrame(labels, columns=["participant_id", "diagnosis"])
    table.to_csv(root / "participants.tsv", sep="\t", index=False)
    label_kwargs = dict(labels="participants.tsv", label_column="diagnosis")
    return LOADING | label_kwargs | dict(reference="average")
