"""Write recordings in the format of EESM17: a BIDS folder with the file names of ds004348."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import mne
import numpy as np

#: Channel names of the recordings; the package does not use ELB1 and ERB1.
CHANNELS = ["F3", "C3", "O1", "A1", "LOC", "CHIN12", "OSAT"]
CHANNELS += ["ERB1", "ERK", "ELE", "ELA", "ELB", "ERE", "ELG", "ERI", "ERB", "ELK", "ERA", "ELI"]
CHANNELS += ["ERG", "ELB1"]
#: Stage codes: 1 to 5 are W, R, N1, N2, N3; windows with codes 7 and 8 are excluded.
SCORING = ("1", "1", "7", "3", "4", "5", "8", "2")
LIGHTS_OFF = 41.0  # onset of the event "Lights Off", in seconds


def volts(names: list[str], sfreq: float, seconds: float) -> np.ndarray:
    """Return 10 Hz oscillations and 50 Hz line noise; each channel has a different amplitude."""
    t = np.arange(round(seconds * sfreq)) / sfreq
    waves = 40e-6 * np.sin(2 * np.pi * 10 * t) + 30e-6 * np.sin(2 * np.pi * 50 * t)
    return np.stack([waves * level(name) for name in names])


def level(name: str) -> float:
    """Return the relative amplitude of a channel, which is different for each channel."""
    return 1 + CHANNELS.index(name) / 20 if name in CHANNELS else 1.0


def write(
    root: Path,
    subject: str,
    scoring=SCORING,
    *,
    names: list[str] = CHANNELS,
    sfreq: float = 200.0,
    seconds: float = 300.0,
    first: float = 0.0,
    column: str = "staging",
    gaps: dict[str, slice] | None = None,
    task: str = "sleep",
    seed: int | None = None,
) -> Path:
    """Write a recording as published on OpenNeuro: a ``.set`` file and its BIDS sidecar files.

    If a seed is passed, noise is added to every channel.
    """
    folder = root / f"sub-{subject}" / "ses-001" / "eeg"
    folder.mkdir(parents=True, exist_ok=True)
    (root / "dataset_description.json").write_text(
        json.dumps({"Name": "EESM17", "BIDSVersion": "1.4.0", "License": "CC0"})
    )
    participants = "".join(f"sub-{i:03d}\tn/a\n" for i in range(1, 10))
    (root / "participants.tsv").write_text(f"participant_id\tage\n{participants}")

    # Signals
    samples = volts(names, sfreq, seconds)
    if seed is not None:
        samples += np.random.default_rng(seed).normal(0, 1e-5, samples.shape)
    for name, gap in (gaps or {}).items():
        samples[names.index(name), gap] = np.nan
    raw = mne.io.RawArray(samples, mne.create_info(names, sfreq, "eeg"), verbose="error")
    stem = f"sub-{subject}_ses-001_task-{task}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MNE warns about missing positions
        mne.export.export_raw(folder / f"{stem}_eeg.set", raw, overwrite=True, verbose="error")

    # Sidecar files: channels, description, events, scoring
    types = {"LOC": "EOG", "CHIN12": "EMG", "OSAT": "MISC"}
    rows = "".join(f"{name}\t{types.get(name, 'EEG')}\tmicroV\n" for name in names)
    (folder / f"{stem}_channels.tsv").write_text(f"name\ttype\tunits\n{rows}")
    (folder / f"{stem}_eeg.json").write_text(
        json.dumps({"TaskName": task, "SamplingFrequency": sfreq, "PowerLineFrequency": 50})
    )
    end = LIGHTS_OFF + 30 * len(SCORING)
    (folder / f"{stem}_events.tsv").write_text(
        f"onset\tduration\ttrial_type\n{LIGHTS_OFF}\t0\tLights Off\n{end}\t0\tLights On\n"
    )
    if scoring is not None:
        lines = [f"{first + 30 * i}\t30\t{stage}\n" for i, stage in enumerate(scoring)]
        (folder / f"{stem}_acq-scoring_events.tsv").write_text(
            f"onset\tduration\t{column}\n" + "".join(lines)
        )
    return folder / f"{stem}_eeg.set"
