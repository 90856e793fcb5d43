"""Comparison of subjects' names."""

from __future__ import annotations

from typing import Any

__all__ = ["subject_key"]


def subject_key(subject: Any) -> str:
    """Return the same string for the same subject: 7, "7" and the BIDS label "007" give "7"."""
    name = str(subject)
    return str(int(name)) if name.isascii() and name.isdigit() else name
