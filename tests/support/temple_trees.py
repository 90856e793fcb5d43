"""Write EDF recordings in the format of the Temple University corpora."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import edfio
import numpy as np

ELECTRODES = (
    *("FP1", "FP2", "F3", "F4", "C3", "C4", "P3", "P4", "O1", "O2", "F7", "F8"),
    *("T3", "T4", "T5", "T6", "A1", "A2", "FZ", "CZ", "PZ"),
)


def level(electrode: str) -> float:
    """Return the amplitude of the 10 Hz oscillation in µV; each electrode has a different one."""
    return 10.0 + 2 * ELECTRODES.index(electrode)


def write_recording(
    file: Path,
    *,
    sfreq: float = 250,
    seconds: float = 62,
    reference: str = "REF",
    drop: Iterable[str] = (),
    names: dict[str, str] | None = None,
    seed: int | None = None,
) -> Path:
    """Write a 10 Hz oscillation and 60 Hz line noise to every electrode, and channels without EEG.

    If a seed is passed, noise is added to every electrode.
    """
    rng = np.random.default_rng(seed)
    noise = 0 if seed is None else 10
    times = np.arange(round(seconds * sfreq)) / sfreq
    line_noise = 30 * np.sin(2 * np.pi * 60 * times)
    signals = [edfio.EdfSignal(line_noise, sfreq, label="PHOTIC-REF", physical_dimension="uV")]
    for electrode in ELECTRODES:
        if electrode not in drop:
            wave = level(electrode) * np.sin(2 * np.pi * 10 * times) + line_noise
            wave += noise * rng.standard_normal(len(times))
            label = f"EEG {(names or {}).get(electrode, electrode)}-{reference}"
            signals.append(edfio.EdfSignal(wave, sfreq, label=label, physical_dimension="uV"))
    for label in (f"EEG EKG1-{reference}", "EMG-REF"):
        signals.append(
            edfio.EdfSignal(500 * line_noise, sfreq, label=label, physical_dimension="uV")
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    edfio.Edf(signals).write(file)
    return file


def annotate(file: Path, rows: list[tuple], ending: str = "csv_bi") -> None:
    """Write the annotations of a recording of TUSZ; rows are (channel, start, stop, label)."""
    lines = [
        "# version = csv_v1.0.0",
        f"# bname = {file.stem}",
        "# duration = 302.0000 secs",
        "# montage_file = $NEDC_NFC/lib/nedc_eas_default_montage.txt",
        "#",
        "channel,start_time,stop_time,label,confidence",
        *(f"{name},{start:.4f},{stop:.4f},{label},1.0000" for name, start, stop, label in rows),
    ]
    file.with_suffix(f".{ending}").write_text("\n".join(lines) + "\n")


def truncate(file: Path) -> None:
    """Remove the last third of a file, as after an interrupted copy."""
    content = file.read_bytes()
    file.write_bytes(content[: len(content) * 2 // 3])
