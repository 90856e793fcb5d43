"""Write recordings in the format of UCDDB: EDF files named ``.rec``, and files of stage codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

#: Labels of the signals, in the order of the published files.
SIGNALS = ("Lefteye", "RightEye", "EMG", "C3A2", "C4A1", "ECG", "SpO2", "Sound", "Flow")
#: One code per 30 seconds: W, artifact, REM, stages 1 to 4, indeterminate, unknown code, W.
CODES = (0, 6, 1, 2, 3, 4, 5, 7, 8, 0)
#: Amplitude of C3 and C4 in each unit that the files may have; without a unit, it is near 1.
AMPLITUDE = {"": 0.5, "mV": 0.05, "uV": 50.0}


def write(
    root: Path,
    subject: str,
    codes=CODES,
    signals=SIGNALS,
    unit: str = "",
    n_seconds: int | None = None,
) -> Path:
    """Write 10 Hz oscillations and 50 Hz line noise to all signals, doubled in C4A1."""
    n_seconds = 30 * len(codes or CODES) + 1 if n_seconds is None else n_seconds
    t = np.arange(128 * n_seconds) / 128
    waves = np.sin(2 * np.pi * 10 * t) + np.sin(2 * np.pi * 50 * t)
    largest = 10 * AMPLITUDE[unit]
    amplitudes = {"C4A1": 2 * AMPLITUDE[unit]}
    x = np.stack([amplitudes.get(name, AMPLITUDE[unit]) * waves for name in signals])
    digital = np.rint(x / largest * 32767).astype("<i2")
    n = len(signals)
    units = ["%" if name == "SpO2" else unit for name in signals]
    columns = [
        (16, list(signals)),
        (80, [""] * n),
        (8, units),
        *((8, [limit] * n) for limit in (f"{-largest:g}", f"{largest:g}", "-32767", "32767")),
        (80, [""] * n),
        (8, ["128"] * n),
        (32, [""] * n),
    ]
    start = [
        "0",
        "X",
        "X",
        "01.01.02",
        "00.00.00",
        str(256 * (n + 1)),
        "",
        str(n_seconds),
        "1",
        str(n),
    ]
    widths = (8, 80, 80, 8, 8, 8, 44, 8, 8, 4)
    header = "".join(text.ljust(width) for text, width in zip(start, widths, strict=True))
    header += "".join(text.ljust(width) for width, column in columns for text in column)
    records = digital.reshape(n, n_seconds, 128).transpose(1, 0, 2)
    root.mkdir(parents=True, exist_ok=True)
    file = root / f"{subject}.rec"
    file.write_bytes(header.encode("latin-1") + records.tobytes())
    if codes is not None:
        lines = "".join(f"{code}\n" for code in codes)
        (root / f"{subject}_stage.txt").write_text(lines, encoding="utf-8")
    return file
