"""Gaps in recordings: time that was not recorded, although the samples follow each other."""

from __future__ import annotations

from collections.abc import Collection

import mne

__all__ = ["continuous_stretches", "is_gap", "split_at_gaps", "usable_stretches"]

#: MNE's annotation for a pause within a FIF file. The samples of its duration are zeros.
_FILLED_IN = "BAD_ACQ_SKIP"

#: Annotations at the first sample after a gap: of MNE between concatenated recordings, of EEGLAB,
#: whose duration is that of removed samples, which are not in the file, and of BrainVision, which
#: has one at the start, too.
_BOUNDARIES = {"BAD boundary", "EDGE boundary", "boundary", "New Segment/"}


def is_gap(description: str) -> bool:
    """Whether the description of an annotation marks a gap.

    Examples
    --------
    >>> from braindecode_pars.recordings._gaps import is_gap
    >>> is_gap("EDGE boundary"), is_gap("BAD_ACQ_SKIP"), is_gap("BAD blink")
    (True, True, False)
    """
    return description == _FILLED_IN or description in _BOUNDARIES


def continuous_stretches(raw: mne.io.BaseRaw) -> list[tuple[int, int]]:
    """Return the parts of a recording between its gaps.

    A gap is marked by an annotation: "EDGE boundary" or "BAD boundary"
    (:func:`mne.concatenate_raws`, and discontinuous EDF files that this package reads),
    "BAD_ACQ_SKIP" (FIF files), "boundary" (EEGLAB), or "New Segment/" (BrainVision). Only
    "BAD_ACQ_SKIP" spans samples.

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
    >>> from braindecode_pars.recordings._gaps import continuous_stretches
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> parts = [mne.io.RawArray(np.zeros((1, n)), info, verbose="error") for n in (500, 300)]
    >>> continuous_stretches(mne.concatenate_raws(parts, verbose="error"))
    [(0, 500), (500, 800)]
    """
    sfreq = raw.info["sfreq"]
    gaps = []
    for annotation in raw.annotations:
        if is_gap(annotation["description"]):
            onset = annotation["onset"] - raw.first_time
            missing = annotation["duration"] if annotation["description"] == _FILLED_IN else 0.0
            gaps.append((round(onset * sfreq), round((onset + missing) * sfreq)))
    stretches, position, end = [], 0, int(raw.n_times)
    for start, stop in [*sorted(gaps), (end, end)]:
        if start > position:
            stretches.append((position, start))
        position = max(position, stop)
    return stretches


def split_at_gaps(raw: mne.io.BaseRaw) -> list[mne.io.BaseRaw]:
    """Split a recording at its gaps; a recording without gaps is returned as it is.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings._gaps import split_at_gaps
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> parts = [mne.io.RawArray(np.zeros((1, n)), info, verbose="error") for n in (500, 300)]
    >>> joined = mne.concatenate_raws(parts, verbose="error")
    >>> [int(part.n_times) for part in split_at_gaps(joined)]
    [500, 300]
    """
    stretches = continuous_stretches(raw)
    if stretches == [(0, raw.n_times)]:
        return [raw]
    times = raw.times
    return [
        raw.copy().crop(times[start], times[stop - 1], verbose="error") for start, stop in stretches
    ]


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
    >>> from braindecode_pars.recordings._gaps import usable_stretches
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
        if _is_bad(annotation["description"]) and (not of or not set(of).isdisjoint(channels)):
            onset = annotation["onset"] - raw.first_time
            start, stop = (round(time * sfreq) for time in (onset, onset + annotation["duration"]))
            bad.append((start, max(stop, start + 1)))  # a moment is one sample
    stretches = continuous_stretches(raw)
    for bad_stretch in bad:
        stretches = [part for stretch in stretches for part in _without(stretch, bad_stretch)]
    return stretches


def _is_bad(description: str) -> bool:
    """Whether MNE would reject the time of an annotation; gaps have functions of their own."""
    return description.upper().startswith("BAD") and not is_gap(description)


def _without(stretch: tuple[int, int], bad: tuple[int, int]) -> list[tuple[int, int]]:
    """Return what is left of a stretch: nothing, one part or two."""
    parts = [(stretch[0], min(stretch[1], bad[0])), (max(stretch[0], bad[1]), stretch[1])]
    return [(start, stop) for start, stop in parts if start < stop]
