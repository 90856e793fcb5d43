"""Comparison of sampling rates."""

from __future__ import annotations

import math

__all__ = ["check_same_rate", "is_same_rate"]


def is_same_rate(one: float | None, other: float | None) -> bool:
    """Whether two sampling rates in Hz are equal up to rounding, or one is unknown (None)."""
    return one is None or other is None or math.isclose(one, other, rel_tol=1e-5)


def check_same_rate(
    sfreq: float | None,
    expected: float | None,
    what: str,
    expected_of: str,
    remedy: str = "resample to {expected:g} Hz",
) -> None:
    """Check that signals have the expected sampling rate.

    Parameters
    ----------
    sfreq, expected : float | None
        Sampling rates in Hz; None when unknown. An unknown rate passes the check.
    what, expected_of : str
        Names of the two objects with these rates, for the error message. For example "These
        windows are" and "the model".
    remedy : str
        What to do, for the error message.

    Raises
    ------
    ValueError
        When both rates are known and differ. The message contains both rates.
    """
    if not is_same_rate(sfreq, expected):
        raise ValueError(
            f"{what} sampled at {sfreq:g} Hz, {expected_of} at {expected:g} Hz; "
            f"{remedy.format(expected=expected)}."
        )
