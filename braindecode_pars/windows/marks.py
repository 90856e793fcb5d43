"""Gaps and bad times of a continuous recording, marked by its annotations.

Gaps are marked by annotations of MNE: "EDGE boundary" and "BAD boundary" between concatenated
recordings, "BAD_ACQ_SKIP" for a pause. Annotations that begin with "BAD" mark bad times.
"""

import re
from collections.abc import Collection
from typing import Literal

import mne
import numpy as np


def are_good(raw: mne.io.BaseRaw, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Return which windows have no gap and overlap no annotation that begins with "BAD".

    Parameters
    ----------
    raw : Raw
        Continuous recording. Annotations of channels that it marks as bad do not count.
    starts, stops : ndarray of int, shape (n_windows,)
        First sample of each window, and the one after its last.

    Returns
    -------
    ndarray of bool, shape (n_windows,)
        True for a good window.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.windows.marks import are_good
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 1000)), info, verbose="error")
    >>> raw = raw.set_annotations(mne.Annotations([2], [1], ["BAD_blink"]))
    >>> are_good(raw, np.array([0, 200]), np.array([200, 400])).tolist()
    [True, False]
    """
    good = np.zeros(len(starts), dtype=bool)
    for first, stop in usable_stretches(raw, set(raw.ch_names) - set(raw.info["bads"])):
        good |= (starts >= first) & (stops <= stop)
    return good


#: Texts of gaps: of MNE ("EDGE boundary", "BAD boundary", "BAD_ACQ_SKIP"), of EEGLAB ("boundary",
#: -99 as a number), and of BrainVision ("New Segment/", which it has at the start, too). Writers
#: put the kind of a marker before them, as in "Comment/BAD boundary".
_GAP = re.compile(
    r"((comment|stimulus)/ *)?((bad|edge)?[ _-]*boundary( event)?|bad[ _-]acq[ _-]skip.*)"
    r"|(comment/ *)?edge(?![a-z]).*|new segment(/.*)?|-99(\.0*)?",
    re.IGNORECASE,
)


_BAD = re.compile(r"(comment/ *)?bad", re.IGNORECASE)


def kind_of_text(text: str) -> Literal["label", "bad", "gap"]:
    """Return what the text of an annotation, or of an event in a table, says of its time.

    As in MNE, a time is bad whose text begins with "bad". A gap is between the samples before and
    those after its first one.

    Examples
    --------
    >>> from braindecode_pars.windows.marks import kind_of_text
    >>> [kind_of_text(text) for text in ("Sleep stage W", "Comment/BAD_blink", "feedback/bad")]
    ['label', 'bad', 'label']
    >>> {kind_of_text(text) for text in ("EDGE boundary", "Boundary", "-99", "BAD_ACQ_SKIP")}
    {'gap'}
    """
    if _GAP.fullmatch(text.strip()):
        return "gap"
    return "bad" if _BAD.match(text.strip()) else "label"


def marks_of(raw: mne.io.BaseRaw) -> mne.Annotations:
    """Return the gaps and bad times of a recording; onsets are in seconds from its first sample."""
    marks = raw.annotations
    marks = marks[[kind_of_text(text) != "label" for text in marks.description]]
    return mne.Annotations(
        marks.onset - raw.first_time, marks.duration, marks.description, ch_names=marks.ch_names
    )


def continuous_stretches(raw: mne.io.BaseRaw) -> list[tuple[int, int]]:
    """Return the parts of a recording between its gaps.

    A gap is marked by an annotation: "EDGE boundary" or "BAD boundary"
    (:func:`mne.concatenate_raws`), "BAD_ACQ_SKIP" (FIF files), "boundary" (EEGLAB), or
    "New Segment/" (BrainVision), see :func:`kind_of_text`. Only those that begin with "BAD" span
    samples; EEGLAB's have the duration of what was removed.

    Parameters
    ----------
    raw : Raw
        Continuous recording.

    Returns
    -------
    list of (int, int)
        First sample of each part, and the sample after its last. Samples within a gap, which are
        not recorded but filled in, belong to no part.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.windows.marks import continuous_stretches
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> parts = [mne.io.RawArray(np.zeros((1, n)), info, verbose="error") for n in (500, 300)]
    >>> continuous_stretches(mne.concatenate_raws(parts, verbose="error"))
    [(0, 500), (500, 800)]
    """

    def sample(seconds: float) -> int:
        # EEGLAB has a gap half a sample before the first one after it.
        return int(np.floor(seconds * raw.info["sfreq"] + 0.5 + 1e-6))

    gaps = []
    for annotation in raw.annotations:
        if kind_of_text(annotation["description"]) == "gap":
            onset = annotation["onset"] - raw.first_time
            is_filled = _BAD.match(annotation["description"].strip())
            missing = annotation["duration"] if is_filled else 0.0
            gaps.append((sample(onset), sample(onset + missing)))
    stretches, position, end = [], 0, int(raw.n_times)
    for start, stop in [*sorted(gaps), (end, end)]:
        if start > position:
            stretches.append((position, start))
        position = max(position, stop)
    return stretches


def usable_stretches(raw: mne.io.BaseRaw, channels: Collection[str]) -> list[tuple[int, int]]:
    """Return the parts of a recording without gaps and without annotations that begin with "BAD".

    Parameters
    ----------
    raw : Raw
        Continuous recording.
    channels : collection of str
        Channels that are used. An annotation of other channels only does not count.

    Returns
    -------
    list of (int, int)
        First sample of each part, and the sample after its last.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.windows.marks import usable_stretches
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 1000)), info, verbose="error")
    >>> raw = raw.set_annotations(mne.Annotations([2, 7], [1, 1], ["bad blink", "N2"]))
    >>> usable_stretches(raw, ["C3"])
    [(0, 200), (300, 1000)]
    """
    sfreq = raw.info["sfreq"]
    bad = []
    for annotation in raw.annotations:
        of = annotation.get("ch_names", ())
        if kind_of_text(annotation["description"]) == "bad" and (
            not of or not set(of).isdisjoint(channels)
        ):
            onset = annotation["onset"] - raw.first_time
            start, stop = (round(time * sfreq) for time in (onset, onset + annotation["duration"]))
            bad.append((start, max(stop, start + 1)))  # a moment is one sample
    stretches = continuous_stretches(raw)
    for first, last in bad:
        # The parts of each stretch before and after the bad time remain.
        parts = ((a, min(b, first), max(a, last), b) for a, b in stretches)
        pairs = [pair for a, b, c, d in parts for pair in ((a, b), (c, d))]
        stretches = [(start, stop) for start, stop in pairs if start < stop]
    return stretches
