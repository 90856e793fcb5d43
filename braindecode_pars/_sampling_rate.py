"""The one comparison of sampling rates."""

from __future__ import annotations

import math

__all__ = ["check_same_rate", "is_same_rate"]


def is_same_rate(one: float | None, other: float | None) -> bool:
    """Whether two sampling rates in Hz agree up to rounding; None is unknown, and agrees."""
    return one is None or other is None or math.isclose(one, other, rel_tol=1e-5)


def check_same_rate(
    sfreq: float | None, expected: float | None, what: str, expected_of: str
) -> None:
    """Refuse signals of another sampling rate.

    Parameters
    ----------
    sfreq, expected : float | None
        Rates in Hz; None where one is unknown, and then nothing is compared.
    what, expected_of : str
        What has these rates, for the message: "These windows are", "the model".

    Raises
    ------
    ValueError
        When both are known and differ, with both rates.
    """
    if not is_same_rate(sfreq, expected):
        raise ValueError(
            f"{what} sampled at {sfreq:g} Hz, {expected_of} at {expected:g} Hz; resample to "
            f"{expected:g} Hz."
        )
