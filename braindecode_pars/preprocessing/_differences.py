"""Differences between the preprocessing of a model's recordings and of others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from braindecode_pars._channel_names import electrode_pair, match_channels
from braindecode_pars.preprocessing._preprocessing import (
    AS_RECORDED,
    AVERAGE,
    FIELDS,
    WORDS,
    Preprocessing,
    text_of,
)

__all__ = ["Difference", "differences", "is_same_reference"]

#: Relative difference of frequencies and lengths that is ignored.
_TOLERANCE = 0.01


@dataclass(frozen=True)
class Difference:
    """An entry of the preprocessing that differs between a model and a recording.

    Attributes
    ----------
    name : str
        Name of the entry, such as "band".
    trained, found : Any
        Value of the model, and of the recording.
    repair : str | None
        What makes the recording like those of the model, such as "filter"; None if nothing can.

    Examples
    --------
    >>> from braindecode_pars.preprocessing import Difference
    >>> print(Difference("band", (0.3, 75.0), (0.5, 40.0), None))
    band 0.5-40 Hz, but 0.3-75 Hz in training
    """

    name: str
    trained: Any
    found: Any
    repair: str | None = None

    def __str__(self) -> str:
        trained, found = (text_of(self.name, value) for value in (self.trained, self.found))
        return f"{WORDS[self.name]} {found}, but {trained} in training"


def differences(trained: Preprocessing, found: Preprocessing) -> list[Difference]:
    """Compare the preprocessing of a model's recordings with that of other ones.

    What is unknown on either side is no difference.

    Parameters
    ----------
    trained : Preprocessing
        Preprocessing of the recordings that the model was trained on.
    found : Preprocessing
        Preprocessing of a recording, or of windows, to predict.

    Returns
    -------
    list of Difference
        What differs. It can be repaired in the recording when

        - the sampling rate is another one (``"resample"``);
        - its band is wider than that of the model (``"filter"``), and no edge is narrower;
        - a notch filter of the model is missing (``"notch_filter"``). Notch filters above the band
          of either do not count;
        - the reference is one that can be computed from its channels (``"set_eeg_reference"``);
        - the signals have another factor (``"rescale"``), channels another order (``"pick"``), or
          windows another length (``"cut"``).

    Examples
    --------
    >>> from braindecode_pars.preprocessing import Preprocessing, differences
    >>> trained = Preprocessing(sfreq=100.0, band=(0.3, 35.0), notch=[])
    >>> for each in differences(trained, Preprocessing(sfreq=256.0, band=(0.5, None))):
    ...     print(each, "|", each.repair)
    sampling rate 256 Hz, but 100 Hz in training | resample
    band from 0.5 Hz, but 0.3-35 Hz in training | None
    """
    differing = _band_difference(trained, found), *_others(trained, found)
    return sorted(filter(None, differing), key=lambda each: FIELDS.index(each.name))


def _others(trained: Preprocessing, found: Preprocessing) -> Iterator[Difference]:
    """Yield the differences of all entries but the band."""
    for name, repair in _differing(trained, found):
        values = getattr(trained, name), getattr(found, name)
        if None not in values:
            yield Difference(name, *values, repair)


def _differing(trained: Preprocessing, found: Preprocessing) -> Iterator[tuple[str, str | None]]:
    """Yield name and repair of each entry that differs; also of unknown ones."""
    if _differ(trained.sfreq, found.sfreq):
        yield "sfreq", "resample"
    missing, further = _compare_notches(trained, found)
    if missing or further:
        yield "notch", None if further else "notch_filter"
    if not is_same_reference(trained.reference, found.reference):
        yield "reference", _reference_repair(trained, found)
    if _differ(trained.scale, found.scale):
        yield "scale", "rescale"
    absent, reordered = _compare_channels(trained.channels, found.channels)
    if absent or reordered:
        yield "channels", None if absent else "pick"
    if _differ(trained.window_seconds, found.window_seconds):
        yield "window_seconds", "cut"


def is_same_reference(one: str | None, other: str | None) -> bool:
    """Whether two references are the same electrodes, in any order: "A1, A2" and "M2, M1".

    Examples
    --------
    >>> from braindecode_pars.preprocessing._differences import is_same_reference
    >>> is_same_reference("A1, A2", "M2, M1"), is_same_reference("A1, A2", "average")
    (True, False)
    """
    if one is None or other is None:
        return one is other
    first, second = ({electrode_pair(name) for name in each.split(",")} for each in (one, other))
    return first == second


def _differ(one: float | None, other: float | None) -> bool:
    known = one is not None and other is not None
    return known and not math.isclose(one, other, rel_tol=_TOLERANCE)


def _top(each: Preprocessing) -> float:
    """Return the highest frequency that signals can have: at most half the sampling rate."""
    high = None if each.band is None else each.band[1]
    nyquist = math.inf if each.sfreq is None else each.sfreq / 2
    return min(nyquist, math.inf if high is None else high)


def _band_difference(trained: Preprocessing, found: Preprocessing) -> Difference | None:
    """Compare the bands. A low sampling rate can take away a part of the band, too."""
    if trained.band is None:
        return None
    low, high = trained.band
    top, found_top = _top(trained), _top(found)
    is_lower = found_top < top * (1 - _TOLERANCE)
    if found.band is None:
        return Difference("band", (low, top), (None, found_top)) if is_lower else None
    found_low = found.band[0]
    if is_lower:
        return Difference("band", (low, top), (found_low, found_top))
    if not math.isclose(low or 0, found_low or 0, rel_tol=_TOLERANCE):
        is_narrower = (found_low or 0) > (low or 0)
        return Difference("band", trained.band, found.band, None if is_narrower else "filter")
    # Without a low-pass filter in training, resampling takes away what is above.
    is_higher = high is not None and found_top > high * (1 + _TOLERANCE)
    return Difference("band", trained.band, found.band, "filter") if is_higher else None


def _compare_notches(
    trained: Preprocessing, found: Preprocessing
) -> tuple[list[float], list[float]]:
    """Return notch frequencies that the recording lacks, and those that only it has."""
    top = min(_top(trained), _top(found))

    def lacking(those: Preprocessing, others: Preprocessing) -> list[float]:
        freqs = [freq for freq in those.notch or () if freq < top]
        return [f for f in freqs if not any(math.isclose(f, o) for o in others.notch or ())]

    return lacking(trained, found), lacking(found, trained)


def _reference_repair(trained: Preprocessing, found: Preprocessing) -> str | None:
    """Return how the reference of the model can be computed, if it can."""
    if trained.reference in (None, AS_RECORDED):
        return None
    needed = trained.channels
    if trained.reference != AVERAGE:
        needed = tuple(trained.reference.split(", "))
    absent, _ = _compare_channels(needed, found.channels)
    return None if absent else "set_eeg_reference"


def _compare_channels(
    trained: tuple[str, ...] | None, found: tuple[str, ...] | None
) -> tuple[bool, bool]:
    """Return whether electrodes are absent, and whether they are in another order."""
    if trained is None or found is None:
        return False, False
    places = match_channels(list(trained), list(found))
    present = [place for place in places if place is not None]
    return len(present) < len(places), present != sorted(present)
