"""What MNE does not tell about EDF and BDF files: units of the signals, and gaps between records.

A discontinuous file (EDF+D, BDF+D) may have gaps between its data records. MNE reads the records as
if they followed each other, so that a file with gaps is refused. The format is that of Kemp and
Olivan 2003 (Clin Neurophysiol 114:1755-1761).
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

_ANNOTATIONS = ("EDF Annotations", "BDF Annotations")

#: Start of a data record in seconds, at the beginning of its first annotation signal.
_ONSET = re.compile(rb"([+-]\d+\.?\d*)\x14")

#: Start times are written with few decimals; a smaller difference in seconds is no gap.
_RESOLUTION = 1e-3


def units_and_gaps(file: Path, sfreq: float) -> tuple[list[str], bool]:
    """Return the units of the signals of an EDF or BDF file, and whether it has gaps.

    Parameters
    ----------
    file : Path
        The file.
    sfreq : float
        Sampling rate in Hz. Records that are apart by more than a sample have a gap between them.

    Returns
    -------
    units : list of str
        Units (physical dimensions) of MNE's channels: without those of annotation signals.
    has_gaps : bool
        Whether the file is discontinuous, and records are apart.

    Raises
    ------
    ValueError, TypeError
        When a number in the header is invalid, or the time of a record cannot be read.
    """
    with file.open("rb") as stream:
        start = stream.read(256).decode("latin-1")
        n_signals = int(start[252:256])
        rest = stream.read(256 * n_signals).decode("latin-1")

    def column(first: int, width: int) -> list[str]:
        # The entries of all signals follow each other; ``first`` counts the bytes before.
        begin = first * n_signals
        entries = (rest[begin + i * width : begin + (i + 1) * width] for i in range(n_signals))
        return [entry.split("\x00")[0].strip() for entry in entries]

    is_annotation = [label in _ANNOTATIONS for label in column(0, 16)]
    units = [unit for unit, other in zip(column(96, 8), is_annotation, strict=True) if not other]
    if start[192:197] not in ("EDF+D", "BDF+D"):
        return units, False
    # The first annotation signal of each record begins with its time.
    widths = np.array([int(n) for n in column(216, 8)]) * (3 if start[192] == "B" else 2)
    place = is_annotation.index(True)
    stop, width = widths[: place + 1].sum(), widths.sum()
    content = np.memmap(file, np.uint8, "r", offset=int(start[184:192]))
    records = content[: len(content) // width * width].reshape(-1, width)
    texts = [record[stop - widths[place] : stop].tobytes() for record in records]
    onsets = np.array([float(_ONSET.match(text)[1]) for text in texts])  # type: ignore[index]
    expected = onsets[0] + float(start[244:252]) * np.arange(len(onsets))
    return units, bool((np.abs(onsets - expected) > max(_RESOLUTION, 1 / sfreq)).any())
