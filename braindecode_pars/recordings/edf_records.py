"""What MNE does not tell about EDF and BDF files: units of the signals, and gaps between records.

A discontinuous file (EDF+D, BDF+D) may have gaps between its data records. MNE reads the records as
if they followed each other, so that a file with gaps is refused. The format is that of Kemp and
Olivan 2003 (Clin Neurophysiol 114:1755-1761).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_ANNOTATIONS = ("EDF Annotations", "BDF Annotations")

#: Start of a data record in seconds, at the beginning of its first annotation signal.
_ONSET = re.compile(rb"([+-]\d+\.?\d*)\x14")

#: Start times are written with few decimals; a smaller difference in seconds is no gap.
_RESOLUTION = 1e-3


@dataclass(frozen=True)
class EdfRecords:
    """Header of an EDF or BDF file.

    Attributes
    ----------
    file : Path
        The file.
    n_bytes : int
        Length of the header in bytes.
    discontinuous : bool
        Whether there may be gaps between data records.
    seconds : float
        Duration of a data record in seconds.
    labels, units : list of str
        Labels and units (physical dimensions) of the signals, including annotation signals.
    widths : ndarray of int, shape (n_signals,)
        Bytes of each signal in a data record.
    """

    file: Path
    n_bytes: int
    discontinuous: bool
    seconds: float
    labels: list[str]
    units: list[str]
    widths: np.ndarray

    @classmethod
    def read(cls, file: Path) -> EdfRecords:
        """Read the header; an invalid number raises a ValueError."""
        with file.open("rb") as stream:
            start = stream.read(256).decode("latin-1")
            n_signals = int(start[252:256])
            rest = stream.read(256 * n_signals).decode("latin-1")

        def column(first: int, width: int) -> list[str]:
            # The entries of all signals follow each other; ``first`` counts the bytes before.
            begin = first * n_signals
            entries = (rest[begin + i * width : begin + (i + 1) * width] for i in range(n_signals))
            return [entry.split("\x00")[0].strip() for entry in entries]

        n_samples = np.array([int(n) for n in column(216, 8)])
        return cls(
            file,
            n_bytes=int(start[184:192]),
            discontinuous=start[192:197] in ("EDF+D", "BDF+D"),
            seconds=float(start[244:252]),
            labels=column(0, 16),
            units=column(96, 8),
            widths=n_samples * (3 if file.suffix.lower() == ".bdf" else 2),
        )

    @property
    def units_of_signals(self) -> list[str]:
        """Units without those of annotation signals, in the order of MNE's channels."""
        both = zip(self.labels, self.units, strict=True)
        return [unit for label, unit in both if label not in _ANNOTATIONS]

    def has_gaps(self, sfreq: float) -> bool:
        """Whether records are apart by more than a sample; unreadable times raise an error."""
        if not self.discontinuous:
            return False
        i = [label in _ANNOTATIONS for label in self.labels].index(True)
        stop, width = self.widths[: i + 1].sum(), self.widths.sum()
        content = np.memmap(self.file, np.uint8, "r", offset=self.n_bytes)
        records = content[: len(content) // width * width].reshape(-1, width)
        texts = [record[stop - self.widths[i] : stop].tobytes() for record in records]
        onsets = np.array([float(_ONSET.match(text)[1]) for text in texts])  # type: ignore[index]
        expected = onsets[0] + self.seconds * np.arange(len(onsets))
        return bool((np.abs(onsets - expected) > max(_RESOLUTION, 1 / sfreq)).any())
