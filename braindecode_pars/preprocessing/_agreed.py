"""What the preprocessing of several recordings has in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from braindecode_pars.preprocessing._preprocessing import FIELDS, WORDS, Preprocessing, text_of

__all__ = ["agreed", "counted", "disagreements"]


def agreed(found: Iterable[Preprocessing | None]) -> Preprocessing:
    """Return the entries that are the same in all descriptions; others are unknown.

    Parameters
    ----------
    found : iterable of Preprocessing | None
        Descriptions; None stands for an unknown one.

    Returns
    -------
    Preprocessing
        The entries that are known in all descriptions, and equal.

    Examples
    --------
    >>> from braindecode_pars.preprocessing import Preprocessing
    >>> from braindecode_pars.preprocessing._agreed import agreed
    >>> print(agreed([Preprocessing(sfreq=100, notch=[50]), Preprocessing(sfreq=100, notch=[60])]))
    sampling rate 100 Hz
    """
    each = [each or Preprocessing() for each in found]
    values = {name: {getattr(one, name) for one in each} for name in FIELDS}
    return Preprocessing(**{name: v.pop() for name, v in values.items() if len(v) == 1})


def disagreements(found: Counter[Preprocessing | None]) -> list[str]:
    """Return a phrase for each entry that is known to differ.

    Parameters
    ----------
    found : Counter of Preprocessing | None
        Number of windows of each description.

    Returns
    -------
    list of str
        Such as "band 0.3-75 Hz in 20 windows, 0.5-40 Hz in 4 windows".
    """
    phrases = []
    for name in FIELDS:
        counts: Counter[Any] = Counter()
        for each, n in found.items():
            counts[getattr(each, name, None)] += n
        counts.pop(None, None)
        if len(counts) > 1:
            values = [f"{text_of(name, v)} in {n} windows" for v, n in counts.most_common(4)]
            phrases.append(f"{WORDS[name]} {', '.join(values)}{', ...' if len(counts) > 4 else ''}")
    return phrases


def counted(found: Iterable[Preprocessing | None]) -> Counter[Preprocessing | None]:
    """Count equal descriptions; many windows share one object, which is looked at once."""
    objects, numbers = {}, Counter()
    for each in found:
        objects[id(each)] = each
        numbers[id(each)] += 1
    counts: Counter[Preprocessing | None] = Counter()
    for number, n in numbers.items():
        counts[objects[number]] += n
    return counts
