"""Write recordings as Temple University distributes them: EDF, channel labels, extra channels."""

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
    """How many microvolts the 10 Hz oscillation of an electrode has, each its own."""
    return 10.0 + 2 * ELECTRODES.index(electrode)


def write_recording(
    file: Path,
    *,
    sfreq: float = 250,
    seconds: float = 62,
    reference: str = "REF",
    drop: Iterable[str] = (),
    names: dict[str, str] | None = None,
) -> Path:
    """10 Hz of each electrode's own level and 60 Hz mains, among channels of other kinds."""
    times = np.arange(round(seconds * sfreq)) / sfreq
    mains = 30 * np.sin(2 * np.pi * 60 * times)
    signals = [edfio.EdfSignal(mains, sfreq, label="PHOTIC-REF", physical_dimension="uV")]
    for electrode in ELECTRODES:
        if electrode not in drop:
            wave = level(electrode) * np.sin(2 * np.pi * 10 * times) + mains
            label = f"EEG {(names or {}).get(electrode, electrode)}-{reference}"
            signals.append(edfio.EdfSignal(wave, sfreq, label=label, physical_dimension="uV"))
    for label in (f"EEG EKG1-{reference}", "EMG-REF"):
        signals.append(edfio.EdfSignal(500 * mains, sfreq, label=label, physical_dimension="uV"))
    file.parent.mkdir(parents=True, exist_ok=True)
    edfio.Edf(signals).write(file)
    return file


def truncate(file: Path) -> None:
    """Leave out the last third, as an interrupted copy does."""
    content = file.read_bytes()
    file.write_bytes(content[: len(content) * 2 // 3])
