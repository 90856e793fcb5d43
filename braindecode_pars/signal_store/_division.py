"""Division of the recordings of a corpus into parts, which several machines store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

from braindecode_pars.signal_store._sources import Source

__all__ = ["Part", "check_part", "missing_parts", "recordings_of_part"]


class Part(NamedTuple):
    """A part of a division, as a store remembers it.

    Attributes
    ----------
    number, n_parts : int
        Number of the part, from 1, and number of parts.
    n_recordings : int
        Number of recordings in all parts, including those that cannot be stored.
    """

    number: int
    n_parts: int
    n_recordings: int

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Part | None:
        """Return the part in the settings of a store; None for a store of all recordings."""
        entries = settings.get("part")
        return None if entries is None else cls(**entries)


def check_part(part: Any) -> tuple[int, int] | None:
    """Return the number of a part and the number of parts; None for all recordings.

    Raises
    ------
    ValueError
        When ``part`` is not two integers, of which the first is at least 1 and at most the second.

    Examples
    --------
    >>> from braindecode_pars.signal_store._division import check_part
    >>> check_part((3, 8))
    (3, 8)
    """
    if part is None:
        return None
    is_pair = isinstance(part, Sequence) and not isinstance(part, str) and len(part) == 2
    if not is_pair or not all(isinstance(number, Integral) for number in part):
        raise ValueError(
            "part must be None or two integers, such as (3, 8) for the third of eight parts, got "
            f"{part!r}."
        )
    number, n_parts = map(int, part)
    if not 1 <= number <= n_parts:
        raise ValueError(
            f"part is {number} of {n_parts}; parts are numbered from 1 to {n_parts}."
            if n_parts > 0
            else f"part is {number} of {n_parts}; there is at least one part."
        )
    return number, n_parts


def recordings_of_part(sources: list[Source], number: int, n_parts: int) -> list[Source]:
    """Return the recordings of one part: consecutive ones, of equal numbers but for one.

    Parameters
    ----------
    sources : list of Source
        All recordings, in an order that is the same on every machine.
    number, n_parts : int
        Number of the part, from 1, and number of parts.

    Raises
    ------
    ValueError
        When there are fewer recordings than parts.
    """
    n = len(sources)
    if n < n_parts:
        raise ValueError(f"{n} recordings cannot be divided into {n_parts} parts; use fewer parts.")
    return sources[n * (number - 1) // n_parts : n * number // n_parts]


def missing_parts(parts: Iterable[Part]) -> list[str]:
    """Return a phrase for each division of which parts are missing.

    Examples
    --------
    >>> from braindecode_pars.signal_store._division import Part, missing_parts
    >>> missing_parts([Part(1, 4, 90), Part(4, 4, 90), Part(1, 1, 7)])
    ['2, 3 of the 4 parts of 90 recordings']
    """
    found: dict[tuple[int, int], set[int]] = defaultdict(set)
    for part in parts:
        found[part.n_parts, part.n_recordings].add(part.number)
    phrases = []
    for (n_parts, n_recordings), numbers in found.items():
        absent = [str(n) for n in range(1, n_parts + 1) if n not in numbers]
        if absent:
            phrases.append(
                f"{', '.join(absent)} of the {n_parts} parts of {n_recordings:,} recordings"
            )
    return phrases
