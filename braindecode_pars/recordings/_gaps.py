"""Gaps in recordings: time that was not recorded, although the samples follow each other."""

from __future__ import annotations

import re

import mne

__all__ = ["continuous_stretches", "is_gap", "split_at_gaps"]

#: Annotations for a gap: of MNE between concatenated recordings and for a pause within a FIF file,
#: whose samples are zeros, and of EEGLAB.
_GAP = re.compile(r"(bad |edge )?boundary|edge|bad_acq_skip", re.IGNORECASE)


def is_gap(description: str) -> bool:
    """Whether the description of an annotation marks a gap.

    Examples
    --------
    >>> from braindecode_pars.recordings._gaps import is_gap
    >>> is_gap("EDGE boundary"), is_gap("BAD_ACQ_SKIP"), is_gap("BAD blink")
    (True, True, False)
    """
    return _GAP.match(description) is not None


def continuous_stretches(raw: mne.io.BaseRaw) -> list[tuple[int, int]]:
    """Return the parts of a recording between its gaps.

    A gap is marked by an annotation: "EDGE boundary" or "BAD boundary"
    (:func:`mne.concatenate_raws`, and discontinuous EDF files that this package reads),
    "BAD_ACQ_SKIP" (FIF files), or "boundary" (EEGLAB).

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
    gaps = sorted(
        (
            round((annotation["onset"] - raw.first_time) * sfreq),
            round((annotation["onset"] - raw.first_time + annotation["duration"]) * sfreq),
        )
        for annotation in raw.annotations
        if is_gap(annotation["description"])
    )
    stretches, position, end = [], 0, int(raw.n_times)
    for start, stop in [*gaps, (end, end)]:
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
