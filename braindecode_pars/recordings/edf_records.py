"""What MNE does not tell about EDF and BDF files: units of the signals, and times of the records.

A discontinuous file (EDF+D, BDF+D) consists of data records with gaps between them. MNE reads the
records as if they followed each other. Here their start times and annotations are read from the
annotation signals, in the format of Kemp and Olivan 2003 (Clin Neurophysiol 114:1755-1761).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import mne
import numpy as np

_ANNOTATIONS = ("EDF Annotations", "BDF Annotations")

#: A time-stamped annotation list: onset, duration, and texts.
_TAL = re.compile(rb"([+-]\d+\.?\d*)(?:\x15(\d+\.?\d*))?\x14([^\x00]*)\x00")

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

    def texts(self) -> list[bytes]:
        """Return the annotation signals of each data record.

        Raises
        ------
        ValueError
            When there is no annotation signal.
        """
        ends = np.cumsum(self.widths)
        slices = [
            slice(end - width, end)
            for label, end, width in zip(self.labels, ends, self.widths, strict=True)
            if label in _ANNOTATIONS
        ]
        if not slices:
            raise ValueError("it is discontinuous, but contains no times of its data records")
        content = np.memmap(self.file, np.uint8, "r", offset=self.n_bytes)
        records = content[: len(content) // ends[-1] * ends[-1]].reshape(-1, ends[-1])
        return [b"".join(record[part].tobytes() for part in slices) for record in records]


def mark_gaps(raw: mne.io.BaseRaw, records: EdfRecords) -> None:
    """Mark the gaps of a discontinuous file, and move its annotations to the right samples.

    A gap becomes a boundary as from :func:`mne.concatenate_raws`: annotations "BAD boundary" and
    "EDGE boundary" at the first sample after it. MNE's filters do not cross such a boundary. The
    times of other annotations in the file count the gaps, the samples in ``raw`` do not; onsets are
    therefore reduced by the gaps before them, and annotations within a gap are dropped.

    Parameters
    ----------
    raw : Raw
        The recording as MNE reads it, without gaps; changed in place.
    records : EdfRecords
        Header of the file.

    Raises
    ------
    ValueError
        When the times of the data records are missing or not in order.
    """
    found = [list(_TAL.finditer(text)) for text in records.texts()]
    if not all(found):
        raise ValueError(f"data record {list(map(bool, found)).index(False)} has no time")
    onsets = np.array([float(tals[0][1]) for tals in found])  # the first list is the record's time
    onsets, origin = onsets - onsets[0], onsets[0]
    if (np.diff(onsets) <= 0).any():
        raise ValueError("the times of its data records are not in order")

    # Stretches of records without a gap: start and stop in the file's time, and in that of raw.
    tolerance = max(_RESOLUTION, 1 / raw.info["sfreq"])
    firsts = _firsts_of_stretches(onsets, records.seconds, tolerance)
    lasts = np.r_[firsts[1:], len(onsets)] - 1
    starts, stops = onsets[firsts], onsets[lasts] + records.seconds
    stops = np.minimum(stops, np.r_[starts[1:], np.inf])
    joined_starts, joined_stops = firsts * records.seconds, (lasts + 1) * records.seconds

    def moved(times: np.ndarray) -> np.ndarray:
        knots = np.column_stack([starts, stops]).ravel()
        return np.interp(times, knots, np.column_stack([joined_starts, joined_stops]).ravel())

    annotations = _annotations(found, origin, raw.ch_names)
    begin, end = moved(annotations.onset), moved(annotations.onset + annotations.duration)
    stretch = np.searchsorted(starts, annotations.onset, side="right") - 1
    inside = (stretch >= 0) & (annotations.onset < stops[stretch])
    kept = inside | (end > begin)  # not within a gap, nor outside the recording
    raw.set_annotations(
        mne.Annotations(
            begin[kept],
            (end - begin)[kept],
            annotations.description[kept],
            ch_names=annotations.ch_names[kept],
        ),
        verbose="error",
    )
    if len(firsts) > 1:
        for description in ("BAD boundary", "EDGE boundary"):
            raw.annotations.append(joined_starts[1:], 0.0, description)


def _firsts_of_stretches(onsets: np.ndarray, seconds: float, tolerance: float) -> np.ndarray:
    """Return the first record of each stretch without a gap.

    Onsets are compared with the time since the start of the stretch, not only with the record
    before: gaps that are each shorter than the tolerance add up.
    """
    firsts = [0]
    for i, onset in enumerate(onsets):
        expected = onsets[firsts[-1]] + (i - firsts[-1]) * seconds
        if abs(onset - expected) > tolerance:
            firsts.append(i)
    return np.array(firsts)


def _annotations(
    found: list[list[re.Match]], origin: float, ch_names: list[str]
) -> mne.Annotations:
    """Return the annotations of all records, with onsets from the start of the first record."""
    annotations = mne.Annotations([], [], [])
    rows = [
        (
            float(tal[1]) - origin,
            float(tal[2] or 0),
            *_text_and_channels(text.decode("utf-8", "replace"), ch_names),
        )
        for tals in found
        for tal in tals
        for text in tal[3].split(b"\x14")
        if text
    ]
    if rows:
        onsets, durations, texts, channels = zip(*rows, strict=True)
        annotations.append(onsets, durations, texts, list(channels))
    return annotations


def _text_and_channels(text: str, ch_names: list[str]) -> tuple[str, list[str]]:
    """Split "text@@channel", as MNE reads and writes annotations of a single channel."""
    description, _, channel = text.partition("@@")
    return (description, [channel]) if channel in ch_names else (text, [])
