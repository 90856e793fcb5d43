"""Write recordings in the format of the PhysioNet Challenge 2018 (YSYW)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import wfdb

#: Channels in the order of the published headers.
SIGNALS = ("F3-M2", "F4-M1", "C3-M2", "C4-M1", "O1-M2", "O2-M1", "E1-M2", "Chin1-Chin2")
SIGNALS += ("ABD", "CHEST", "AIRFLOW", "SaO2", "ECG")
#: Annotations of a recording of six minutes: onset in seconds, and text.
NOTES = (
    (10, "undefined"),
    (40, "W"),
    (75, "(arousal_rera"),
    (82, "arousal_rera)"),
    (100, "N1"),
    (130, "(resp_hypopnea"),
    (150, "resp_hypopnea)"),
    (160, "N2"),
    (190, "undefined"),
    (220, "N3"),
    (280, "R"),
)


def microvolts(seconds: int, sfreq: int, seed: int) -> np.ndarray:
    """Return 10 Hz oscillations and 60 Hz line noise, shape (n_times, n_signals).

    The amplitude differs between channels.
    """
    t = np.arange(seconds * sfreq) / sfreq
    waves = 40 * np.sin(2 * np.pi * 10 * t) + 30 * np.sin(2 * np.pi * 60 * t)
    noise = np.random.default_rng(seed).normal(0, 2, (len(t), len(SIGNALS)))
    return waves[:, None] * (1 + np.arange(len(SIGNALS)) / 10) + noise


def write(
    root: Path,
    subject: str,
    notes=NOTES,
    *,
    sfreq: int = 200,
    seconds: int = 360,
    names=SIGNALS,
    unit: str = "uV",
) -> Path:
    """Write a recording as a MATLAB 4 file, as published; WFDB skips its 24-byte header."""
    folder = root / ("training" if subject.startswith("tr") else "test") / subject
    folder.mkdir(parents=True)
    samples = np.round(microvolts(seconds, sfreq, int(subject[-4:]))).astype("<i2")
    header = np.array([30, len(names), len(samples), 0, 4], dtype="<i4").tobytes() + b"val\0"
    (folder / f"{subject}.mat").write_bytes(header + samples.tobytes())

    # Header
    lines = [f"{subject} {len(names)} {sfreq} {len(samples)}"]
    lines += [
        f"{subject}.mat 16+24 1/{unit} 16 0 {first} 0 0 {name}"
        for first, name in zip(samples[0], names, strict=True)
    ]
    (folder / f"{subject}.hea").write_text("\n".join(lines) + "\n")

    # Annotations of labeled subjects
    if subject.startswith("tr"):
        (folder / f"{subject}-arousal.mat").touch()  # published, but not read
        if notes is not None:
            seconds_of_notes, texts = zip(*notes, strict=True)
            wfdb.wrann(
                subject,
                "arousal",
                np.array(seconds_of_notes) * sfreq,
                symbol=['"'] * len(texts),
                aux_note=list(texts),
                write_dir=str(folder),
            )
    return folder / f"{subject}.mat"
