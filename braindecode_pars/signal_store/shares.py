"""Shares of corpora in the examples of pretraining."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from braindecode_pars._common.checks import instance, positive


def check_shares(shares: Mapping[str, Any], corpora: Collection[str]) -> dict[str, float]:
    """Return shares as floats, and check that each corpus has one, or none has.

    Parameters
    ----------
    shares : mapping of str to float
        Share by name of the corpus. Only their ratios count.
    corpora : collection of str
        Names of the corpora in the store.

    Raises
    ------
    TypeError, ValueError
        When a share is not a positive number, or when names differ.
    """
    instance("a dict of shares by name", Mapping).check("shares", shares)
    if shares and set(shares) != set(corpora):
        known = ", ".join(corpora) or "no corpora of recipes"
        raise ValueError(f"shares has {', '.join(map(str, shares))}, but the store has {known}.")
    for name, share in shares.items():
        positive().check(f"The share of {name}", share)
    return {name: float(share) for name, share in shares.items()}


def windows_of_a_pass(n_windows: Mapping[str, int], shares: Mapping[str, float]) -> dict[str, int]:
    r"""Return how many windows of each corpus a pass over the data has.

    The corpus with the fewest windows for its share gives each of them once; the others give a part
    of theirs, so that the numbers are in the ratio of the shares:
    :math:`m_c = \mathrm{round}(s_c \min_k n_k / s_k)`.

    Parameters
    ----------
    n_windows : mapping of str to int
        Number of windows :math:`n_c` of each corpus, at least 1.
    shares : mapping of str to float
        Share :math:`s_c` of each corpus.

    Returns
    -------
    dict of str to int
        Number of windows :math:`m_c`, at least 1 and at most :math:`n_c`.

    Examples
    --------
    >>> from braindecode_pars.signal_store.shares import windows_of_a_pass
    >>> windows_of_a_pass({"tueg": 3_000_000, "ysyw": 756_563}, {"tueg": 1.0, "ysyw": 1.0})
    {'tueg': 756563, 'ysyw': 756563}
    """
    unit = min((n / shares[name] for name, n in n_windows.items()), default=0.0)
    return {name: min(n, max(1, round(unit * shares[name]))) for name, n in n_windows.items()}
