"""Find gaps and bad segments of a continuous recording from its annotations.

MNE marks gaps with annotations: "EDGE boundary" and "BAD boundary" between concatenated recordings,
and "BAD_ACQ_SKIP" where the acquisition was interrupted. All other annotations that begin with
"BAD" mark bad segments.
"""

import re
from collections.abc import Collection
from typing import Literal

import mne
import numpy as np


def are_good(raw: mne.io.BaseRaw, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Return which windows of a recording overlap neither a gap nor a bad segment.

    Parameters
    ----------
    raw : Raw
        Continuous recording. Annotations that apply only to bad channels are ignored.
    starts, stops : ndarray of int, shape (n_windows,)
        Index of the first sample of each window, and index of the sample after its last sample.

    Returns
    -------
    ndarray of bool, shape (n_windows,)
        True for windows without a gap or bad segment.

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
    for first, stop in usable_segments(raw, set(raw.ch_names) - set(raw.info["bads"])):
        good |= (starts >= first) & (stops <= stop)
    return good


#: Annotation texts that mark gaps: MNE ("EDGE boundary", "BAD boundary", "BAD_ACQ_SKIP"), EEGLAB
#: ("boundary", or the number -99), and BrainVision ("New Segment/", also at the start of a file).
#: Some programs write the type of the marker first, as in "Comment/BAD boundary".
_GAP = re.compile(
    r"((comment|stimulus)/ *)?((bad|edge)?[ _-]*boundary( event)?|bad[ _-]acq[ _-]skip.*)"
    r"|(comment/ *)?edge(?![a-z]).*|new segment(/.*)?|-99(\.0*)?",
    re.IGNORECASE,
)


_BAD = re.compile(r"(comment/ *)?bad", re.IGNORECASE)


def kind_of_text(text: str) -> Literal["label", "bad", "gap"]:
    """Classify the text of an annotation or event as a gap, a bad segment, or a label.

    As in MNE, texts that begin with "bad" (in any case) mark bad segments, unless they mark a gap.
    The prefix "Comment/" of BrainVision files is ignored. Gaps are marked by the texts listed in
    :func:`continuous_segments`, or by -99, the code of a boundary in EEGLAB.

    Returns
    -------
    "gap" | "bad" | "label"
        Kind of the text. Every text that marks neither a gap nor a bad segment is a label.

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
    """Return the annotations of a recording that mark gaps and bad segments.

    The returned onsets are relative to the first sample of the recording.
    """
    marks = raw.annotations
    marks = marks[[kind_of_text(text) != "label" for text in marks.description]]
    return mne.Annotations(
        marks.onset - raw.first_time, marks.duration, marks.description, ch_names=marks.ch_names
    )


def continuous_segments(raw: mne.io.BaseRaw) -> list[tuple[int, int]]:
    """Split a recording at its gaps into continuous segments.

    Gaps are marked by annotations: "EDGE boundary" or "BAD boundary"
    (:func:`mne.concatenate_raws`), "BAD_ACQ_SKIP" (FIF files), "boundary" (EEGLAB), or "New
    Segment/" (BrainVision), see :func:`kind_of_text`. If the annotation of a gap begins with "BAD",
    the samples within its duration were filled in instead of recorded, and are excluded. All other
    gaps lie between two samples, and the duration of their annotation is ignored: in EEGLAB files,
    it is the duration of the removed data.

    Parameters
    ----------
    raw : Raw
        Continuous recording.

    Returns
    -------
    list of (int, int)
        For each segment, the index of its first sample, and the index of the sample after its last
        sample.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.windows.marks import continuous_segments
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> parts = [mne.io.RawArray(np.zeros((1, n)), info, verbose="error") for n in (500, 300)]
    >>> continuous_segments(mne.concatenate_raws(parts, verbose="error"))
    [(0, 500), (500, 800)]
    """

    return _segments_between(_gaps(raw), int(raw.n_times))


def _gaps(raw: mne.io.BaseRaw) -> list[tuple[int, int]]:
    """Return, for each gap, the index of its first sample and of the first sample after it.

    The two indices are equal if the gap lies between two samples.
    """
    gaps = []
    for annotation in raw.annotations:
        if kind_of_text(annotation["description"]) == "gap":
            onset = annotation["onset"] - raw.first_time
            is_filled = _BAD.match(annotation["description"].strip())
            times = np.array([onset, onset + annotation["duration"] if is_filled else onset])
            # In EEGLAB files, the onset is half a sample before the first sample after the gap.
            start, stop = np.floor(times * raw.info["sfreq"] + 0.5 + 1e-6).astype(int).tolist()
            gaps.append((start, stop))
    return gaps


def _segments_between(excluded: list[tuple[int, int]], n_times: int) -> list[tuple[int, int]]:
    """Return the segments between excluded intervals. An interval of length 0 splits a segment."""
    segments, position = [], 0
    for start, stop in [*sorted(excluded), (n_times, n_times)]:
        if min(start, n_times) > position:
            segments.append((position, min(start, n_times)))
        position = max(position, stop)
    return segments


def usable_segments(raw: mne.io.BaseRaw, channels: Collection[str]) -> list[tuple[int, int]]:
    """Return the segments of a recording that contain neither gaps nor bad segments.

    Parameters
    ----------
    raw : Raw
        Continuous recording.
    channels : collection of str
        Names of the channels that are used. Annotations that apply only to other channels are
        ignored.

    Returns
    -------
    list of (int, int)
        For each segment, the index of its first sample, and the index of the sample after its last
        sample.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.windows.marks import usable_segments
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 1000)), info, verbose="error")
    >>> raw = raw.set_annotations(mne.Annotations([2, 7], [1, 1], ["bad blink", "N2"]))
    >>> usable_segments(raw, ["C3"])
    [(0, 200), (300, 1000)]
    """
    sfreq = raw.info["sfreq"]
    bad = []
    for annotation in raw.annotations:
        bad_channels = annotation.get("ch_names", ())
        if kind_of_text(annotation["description"]) == "bad" and (
            not bad_channels or not set(bad_channels).isdisjoint(channels)
        ):
            onset = annotation["onset"] - raw.first_time
            start, stop = (round(time * sfreq) for time in (onset, onset + annotation["duration"]))
            bad.append((start, max(stop, start + 1)))  # at least one sample
    return _segments_between([*_gaps(raw), *bad], int(raw.n_times))
