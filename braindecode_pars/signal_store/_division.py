"""Division of the recordings of a corpus into parts, which several machines store."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from braindecode_pars._parameters import integer
from braindecode_pars.signal_store._sources import Source
from braindecode_pars.storage._checksum import checksum_of

__all__ = ["Part", "check_part", "checksum_of_sources", "missing_parts", "recordings_of_part"]


class Part(NamedTuple):
    """A part of a division, as a store remembers it.

    Attributes
    ----------
    number, n_parts : int
        Number of the part, from 1, and number of parts.
    n_recordings : int
        Number of recordings in all parts, including those that cannot be stored.
    recordings : str
        Checksum of all these recordings; see :func:`checksum_of_sources`.
    """

    number: int
    n_parts: int
    n_recordings: int
    recordings: str = ""

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Part | None:
        """Return the part in the settings of a store; None for a store of all recordings."""
        entries = settings.get("part")
        return None if entries is None else cls(**entries)


def check_part(part: Any) -> tuple[int, int] | None:
    """Return the number of a part and the number of parts; None for all recordings.

    Raises
    ------
    TypeError
        When ``part`` is not two integers.
    ValueError
        When a number is below 1, or the number of the part is above that of parts.

    Examples
    --------
    >>> from braindecode_pars.signal_store._division import check_part
    >>> check_part((3, 8))
    (3, 8)
    """
    if part is None:
        return None
    if not isinstance(part, (tuple, list)) or len(part) != 2:
        raise TypeError(
            "part must be None or a tuple of two integers, such as (3, 8) for the third of eight "
            f"parts, got {part!r}."
        )
    for name, number in zip(("The number of the part", "The number of parts"), part, strict=True):
        integer(1).check(name, number)
    number, n_parts = map(int, part)
    if number > n_parts:
        raise ValueError(f"part is {number} of {n_parts}; parts are numbered from 1 to {n_parts}.")
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


def checksum_of_sources(sources: Iterable[Source]) -> str:
    """Return a checksum that tells one list of recordings from another, without reading them.

    It is the same on machines that have copies of the files at other places, with other times, or
    only the files of their own part: the path in its folder identifies a file. A recording of a
    dataset has only a number as its name, so its subject, length, channels, rate and labels count.

    Parameters
    ----------
    sources : iterable of Source
        Recordings of all parts.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    known = [
        [source.name]
        if isinstance(source.origin, Path)
        else [source.name, source.description.get("subject"), source.state]
        for source in sources
    ]
    return checksum_of(json.dumps(known).encode())


def missing_parts(parts: Iterable[Part]) -> list[str]:
    """Return a phrase for each division of which parts are missing.

    Examples
    --------
    >>> from braindecode_pars.signal_store._division import Part, missing_parts
    >>> missing_parts([Part(1, 4, 90), Part(4, 4, 90), Part(1, 1, 7)])
    ['2, 3 of the 4 parts of 90 recordings']
    """
    found: dict[tuple[int, int, str], set[int]] = defaultdict(set)
    for part in parts:
        found[part.n_parts, part.n_recordings, part.recordings].add(part.number)
    phrases = []
    for (n_parts, n_recordings, _), numbers in found.items():
        absent = [str(n) for n in range(1, n_parts + 1) if n not in numbers]
        if absent:
            phrases.append(
                f"{', '.join(absent)} of the {n_parts} parts of {n_recordings:,} recordings"
            )
    return phrases
