"""Write EDF files that edfio cannot write: discontinuous files, and files with other units."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np


def write_edf_records(
    file: Path,
    signals: np.ndarray,
    onsets: Sequence[float],
    *,
    sfreq: int = 100,
    units: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    texts: dict[int, str] | None = None,
    kind: str = "EDF+D",
) -> Path:
    """Write signals as data records of one second each.

    Parameters
    ----------
    signals : ndarray, shape (n_chans, n_records * sfreq)
        Integers, which are also the physical values.
    onsets : sequence of float
        Start of each record in seconds.
    texts : dict of int to str | None
        Annotation of a record, by index of the record, as "+onset\\x15duration\\x14text".
    kind : "EDF+D" | "EDF+C" | "BDF+D"
        File format. BDF has 24 bits per sample, EDF 16.
    """
    n_chans, n_width = len(signals), 60  # samples of the annotation signal in a record
    n_bytes = 3 if kind[0] == "B" else 2
    labels = [*(labels or [f"E{i}" for i in range(n_chans)]), f"{kind[:3]} Annotations"]
    units = [*(units or ["uV"] * n_chans), ""]
    columns = [
        (16, labels),
        (80, [""] * (n_chans + 1)),
        (8, units),
        *((8, [limit] * (n_chans + 1)) for limit in ("-32768", "32767", "-32768", "32767")),
        (80, [""] * (n_chans + 1)),
        (8, [str(sfreq)] * n_chans + [str(n_width)]),
        (32, [""] * (n_chans + 1)),
    ]
    start = ["0", "X X X X", "Startdate X X X X", "01.01.20", "00.00.00"]
    start += [str(256 * (n_chans + 2)), kind, str(len(onsets)), "1", str(n_chans + 1)]
    widths = (8, 80, 80, 8, 8, 8, 44, 8, 8, 4)
    header = "".join(text.ljust(width) for text, width in zip(start, widths, strict=True))
    header += "".join(text.ljust(width) for width, column in columns for text in column)

    content = header.encode("latin-1")
    for i, onset in enumerate(onsets):
        values = signals[:, i * sfreq : (i + 1) * sfreq].astype("<i4")
        samples = np.frombuffer(values.tobytes(), np.uint8).reshape(-1, 4)[:, :n_bytes]
        note = f"+{onset:.10g}\x14\x14\x00"
        if texts and i in texts:
            note += f"{texts[i]}\x14\x00"
        content += samples.tobytes() + note.encode().ljust(n_width * n_bytes, b"\0")
    file.write_bytes(content)
    return file
