"""Collect the ConvergenceWarnings of a training, for several test files."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning


def convergence_warnings(function, *arguments, **named) -> list[str]:
    """Call a function, and return the messages of its ConvergenceWarnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments, **named)
    return [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
