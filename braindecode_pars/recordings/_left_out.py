"""Channels of a recording that are not used: remember them, and count them by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mne

from braindecode_pars._channel_names import signal_kind

__all__ = ["channels_left_out", "count_left_out", "remember_left_out"]

#: Kinds in the order and words of a sentence, and how many names of a kind it shows.
_KINDS = {kind: kind for kind in ("ECG", "EOG", "EMG", "respiration", "other")}
_KINDS["EEG"] = "EEG that is bad or not chosen"
_SHOWN = 4

#: Our entry in ``info["temp"]``.
_ENTRY = "braindecode_pars_left_out"


def remember_left_out(raw: mne.io.BaseRaw, kinds: Mapping[str, str]) -> None:
    """Remember channels of a file that a reader leaves out, in ``raw.info["temp"]``.

    Parameters
    ----------
    raw : Raw
        Recording; its ``info`` is changed in place.
    kinds : mapping of str to str
        Name of the channel -> its kind, as from ``signal_kind``.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings._left_out import channels_left_out, remember_left_out
    >>> raw = mne.io.RawArray(np.zeros((1, 9)), mne.create_info(["C3"], 1.0, "eeg"), verbose=False)
    >>> remember_left_out(raw, {"Chin": "EMG"})
    >>> channels_left_out(raw)
    {'Chin': 'EMG'}
    """
    raw.info["temp"] = {**_temporary(raw), _ENTRY: {**channels_left_out(raw), **kinds}}


def channels_left_out(raw: mne.io.BaseRaw, used: Sequence[str] | None = None) -> dict[str, str]:
    """Return the channels of a recording that are not used, with their kinds.

    Parameters
    ----------
    raw : Raw
        Recording.
    used : sequence of str | None
        Names of the channels of ``raw`` that are used; None means all.

    Returns
    -------
    dict of str to str
        Kind by name: the channels that :func:`remember_left_out` got, then those of ``raw`` that
        are not in ``used``.
    """
    unused = [] if used is None else [ch for ch in raw.info["chs"] if ch["ch_name"] not in used]
    remembered = _temporary(raw).get(_ENTRY, {})
    return {**remembered, **{ch["ch_name"]: signal_kind(ch) for ch in unused}}


def _temporary(raw: mne.io.BaseRaw) -> dict[str, Any]:
    """Return the entry of ``info`` that MNE keeps for others; it is never written to a file."""
    found = raw.info.get("temp")
    return found if isinstance(found, dict) else {}


def count_left_out(left_out: Iterable[Mapping[str, str]]) -> str | None:
    """Return a line that counts channels by kind; None when there are none.

    Parameters
    ----------
    left_out : iterable of mapping
        Result of :func:`channels_left_out` for each recording.

    Examples
    --------
    >>> from braindecode_pars.recordings._left_out import count_left_out
    >>> count_left_out([{"ECG": "ECG", "E1-M2": "EOG", "E2-M1": "EOG"}, {"EKG1": "ECG"}, {}])
    'Channels left out of 2 of 3 recordings: 2 ECG (ECG, EKG1), 2 EOG (E1-M2, E2-M1).'
    """
    recordings = list(left_out)
    counts = dict.fromkeys(_KINDS, 0)
    names: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for recording in recordings:
        for name, kind in recording.items():
            counts[kind] += 1
            if name not in names[kind]:
                names[kind].append(name)
    phrases = [f"{n} {_KINDS[kind]} ({_listed(names[kind])})" for kind, n in counts.items() if n]
    if not phrases:
        return None
    n_with = sum(map(bool, recordings))
    return f"Channels left out of {n_with} of {len(recordings)} recordings: {', '.join(phrases)}."


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
