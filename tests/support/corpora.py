"""Write small copies of the paper's six corpora, in their formats and with noise as signals.

The folder names are the names in docs/guide/reproduce.rst.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from support.challenge_records import write as write_record
from support.ear_nights import write as write_night
from support.edf_files import write_edf_records
from support.temple_trees import annotate, write_recording

#: Electrode names of PhysioNet-MI, as written in its files.
_ROWS = [("Fc", "531z246"), ("C", "531z246"), ("Cp", "531z246"), ("Af", "73z48")]
_ROWS += [
    ("F", "7531z2468"),
    ("Ft", "78"),
    ("T", "78"),
    ("T", ("9", "10")),
    ("Tp", "78"),
    ("P", "7531z2468"),
]
_ROWS += [("Po", "73z48"), ("O", "1z2")]
ELECTRODES = ["Fp1.", "Fpz.", "Fp2.", "Iz.."]
ELECTRODES += [f"{row}{place}".ljust(4, ".") for row, places in _ROWS for place in places]


def write_corpora(root: Path) -> None:
    """Write all six corpora into folders with their published names."""
    write_tueg(root / "tuh_eeg/v2.0.1")
    write_ysyw(root / "challenge-2018/1.0.0")
    write_tuab(root / "tuh_eeg_abnormal/v3.0.1")
    write_tusz(root / "tuh_eeg_seizure/v2.0.3")
    write_eesm17(root / "ds004348/1.0.5")
    write_physionet_mi(root / "eegmmidb/1.0.0")


def write_tueg(root: Path) -> None:
    """Write six subjects, including one subject of TUAB and one subject of TUSZ."""
    for seed, subject in enumerate(("aaaaaaaa", "aaaaaaab", "aaaaaaac", "aaaaaaad", *_SHARED)):
        name = f"edf/000/{subject}/s001_2015_12_30/01_tcp_ar/{subject}_s001_t000.edf"
        write_recording(root / name, seconds=62, seed=seed)


_SHARED = ("aaaaaaba", "aaaaaaca")


def write_ysyw(root: Path) -> None:
    """Write ten subjects with sleep stages, and two subjects without."""
    for number in range(1, 11):
        write_record(root, f"tr03-{number:04d}", seconds=330)
    for number in (11, 12):
        write_record(root, f"te03-{number:04d}", seconds=95)


def write_tuab(root: Path) -> None:
    """Write five subjects of each class to ``train``, and two of each class to ``eval``."""
    for seed in range(14):
        label, folder = ("normal", "abnormal")[seed % 2], "train" if seed < 10 else "eval"
        subject = f"aaaaaab{chr(ord('a') + seed)}"
        name = f"edf/{folder}/{label}/01_tcp_ar/{subject}_s001_t000.edf"
        write_recording(root / name, seconds=62, seed=seed)


def write_tusz(root: Path) -> None:
    """Write six subjects to ``train``, two to ``dev`` and two to ``eval``, each with a seizure."""
    for seed in range(10):
        folder = "train" if seed < 6 else "dev" if seed < 8 else "eval"
        subject = f"aaaaaac{chr(ord('a') + seed)}"
        name = f"edf/{folder}/{subject}/s001_2003/01_tcp_ar/{subject}_s001_t000.edf"
        file = write_recording(root / name, seconds=62, seed=seed)
        annotate(
            file, [("TERM", 0, 40, "bckg"), ("TERM", 40, 55, "seiz"), ("TERM", 55, 62, "bckg")]
        )


def write_eesm17(root: Path) -> None:
    """Write three subjects with all five sleep stages."""
    for number in (1, 2, 3):
        write_night(root, f"{number:03d}", seed=number)


def write_physionet_mi(root: Path) -> None:
    """Write subjects of all three splits, with two recordings each and all four classes."""
    for subject in (1, 2, 3, 71, 72, 90, 91):
        for run in (4, 6):
            rng = np.random.default_rng(100 * subject + run)
            cues = {4 * i: ("T0", "T1", "T0", "T2")[i % 4] for i in range(8)}
            texts = {start: f"+{start}\x154\x14{name}" for start, name in cues.items()}
            file = root / f"S{subject:03d}/S{subject:03d}R{run:02d}.edf"
            file.parent.mkdir(parents=True, exist_ok=True)
            write_edf_records(
                file,
                rng.normal(0, 20, (64, 34 * 160)),
                range(34),
                sfreq=160,
                labels=ELECTRODES,
                texts=texts,
                kind="EDF+C",
            )
