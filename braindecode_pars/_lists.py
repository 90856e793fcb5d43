"""Lists of names in sentences."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["listed"]


def listed(texts: Sequence[str], most: int = 10) -> str:
    """Return texts separated by commas: the first ones, and how many more there are.

    Examples
    --------
    >>> from braindecode_pars._lists import listed
    >>> listed(["C3", "C4"]), listed(["C3", "C4", "Fz"], most=2)
    ('C3, C4', 'C3, C4 and 1 more')
    """
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
