"""When two entries name one person."""

from __future__ import annotations

from typing import Any

__all__ = ["subject_key"]


def subject_key(subject: Any) -> str:
    """One name for each person: 7 of a table, "7" of a file's name and "007" of BIDS are one."""
    name = str(subject)
    return str(int(name)) if name.isascii() and name.isdigit() else name
