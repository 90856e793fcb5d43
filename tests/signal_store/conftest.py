"""Recordings of several montages, lengths and formats, written as real files."""

from __future__ import annotations

from pathlib import Path

import edfio
import mne
import numpy as np
import pytest
import wfdb
from braindecode.datasets import BaseConcatDataset, RawDataset

SFREQ = 100


def signals(seed: int, n_chans: int, seconds: float, sfreq: float = SFREQ) -> np.ndarray:
    """Noise in volts; each channel has its own amplitude and offset."""
    rng = np.random.default_rng(seed)
    levels = 1e-5 * (1 + np.arange(n_chans))[:, None]
    return levels * (rng.standard_normal((n_chans, round(seconds * sfreq))) + seed)


def raw_of(values: np.ndarray, names=None, kinds="eeg", sfreq: float = SFREQ) -> mne.io.RawArray:
    names = names or [f"E{i}" for i in range(len(values))]
    return mne.io.RawArray(values, mne.create_info(names, sfreq, kinds), verbose="error")


def write_edf(file: Path, values: np.ndarray, names, sfreq: float = SFREQ) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    one, several = (
        (edfio.BdfSignal, edfio.Bdf) if file.suffix == ".bdf" else (edfio.EdfSignal, edfio.Edf)
    )
    channels = [
        one(1e6 * channel, sfreq, label=name, physical_dimension="uV")
        for name, channel in zip(names, values, strict=True)
    ]
    several(channels).write(file)


def write_fif(file: Path, raw: mne.io.BaseRaw) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    raw.save(file, fmt="single", verbose="error")


@pytest.fixture
def make_raw():
    """Make a recording: ``make_raw(seed, n_chans, seconds, names=None, kinds="eeg")``."""

    def make(seed, n_chans=2, seconds=4.0, *, sfreq=SFREQ, **info):
        return raw_of(signals(seed, n_chans, seconds, sfreq), sfreq=sfreq, **info)

    return make


@pytest.fixture
def make_edf():
    """Write two seconds: ``make_edf(file, labels)``."""
    return lambda file, labels: write_edf(file, signals(0, len(labels), 2), labels)


@pytest.fixture(scope="session")
def recordings() -> BaseConcatDataset:
    """Four recordings of three subjects: 3, 2, 5 and 3 channels, 30, 20, 40 and 9 seconds."""
    made = [
        raw_of(signals(1, 3, 30), ["C3", "C4", "ECG"], ["eeg", "eeg", "ecg"]),
        raw_of(signals(2, 2, 20), ["C3", "C4"]),
        raw_of(signals(3, 5, 40), ["Fz", "Cz", "Pz", "O1", "O2"]),
        raw_of(signals(4, 3, 9), ["Fz", "Cz", "Pz"]),
    ]
    made[2].info["bads"] = ["O2"]
    subjects = [1, 2, "anna", 1]
    return BaseConcatDataset(
        [
            RawDataset(raw, dict(subject=s, age=30 + i))
            for i, (raw, s) in enumerate(zip(made, subjects, strict=True))
        ]
    )


@pytest.fixture(scope="session")
def written(tmp_path_factory) -> tuple[Path, dict[str, np.ndarray]]:
    """A folder of files, and the expected signals of each file in volts."""
    root = tmp_path_factory.mktemp("tree")
    edf, fif, hea, lone = (
        signals(i, n, s) for i, n, s in ((1, 4, 20), (2, 4, 33), (3, 3, 25), (4, 2, 12))
    )
    write_edf(root / "sub-07/ses-1/eeg/sub-07_ses-1_eeg.edf", edf, ["Fz", "Cz", "Pz", "Oz"])
    write_fif(
        root / "anna/night_raw.fif",
        raw_of(fif, ["C3", "C4", "STI", "ECG"], ["eeg", "eeg", "stim", "ecg"]),
    )
    (root / "b").mkdir()
    wfdb.wrsamp(
        "r01",
        fs=SFREQ,
        units=["uV", "%", "mV"],
        sig_name=["F3-M2", "SaO2", "F4-M1"],
        p_signal=(hea * [[1e6], [1], [1e3]]).T,
        fmt=["16"] * 3,
        write_dir=str(root / "b"),
    )
    write_edf(root / "lone.EDF", lone, ["C3", "C4"])
    write_edf(root / "b" / "r02.bdf", lone[::-1], ["C3", "C4"])
    (root / "notes.txt").write_text("not a recording")
    (root / "._lone.edf").write_text("a hidden file of macOS")
    return root, {
        "anna/night_raw.fif": fif[:2],
        "b/r01.hea": hea[[0, 2]],
        "b/r02.bdf": lone[::-1],
        "lone.EDF": lone,
        "sub-07/ses-1/eeg/sub-07_ses-1_eeg.edf": edf,
    }


@pytest.fixture
def tree(written) -> Path:
    return written[0]
