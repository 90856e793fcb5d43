"""Warnings of folds: each is shown once for a protocol, not once for each fold and process."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sklearn.exceptions import ConvergenceWarning

__all__ = ["FoldWarning", "collected", "warn_once"]

#: Folds have different windows, so that these counts differ where the cause is one.
_COUNTS = re.compile(r"\b\d+ of \d+ windows")

#: So do the losses and steps in warnings of trainings that may have learned nothing.
_NUMBERS = re.compile(r"\d[\d,.]*")


class FoldWarning(NamedTuple):
    """A warning in a form that can be sent between processes.

    Attributes
    ----------
    text : str
        Text of the warning.
    category : type
        Class of the warning.
    filename, lineno : str, int
        Line that the warning points to.
    """

    text: str
    category: type[Warning]
    filename: str
    lineno: int

    @property
    def key(self) -> tuple:
        """Value that is equal for the same warning of different folds."""
        varies = _NUMBERS if issubclass(self.category, ConvergenceWarning) else _COUNTS
        return varies.sub("", self.text), self.category

    def show(self) -> None:
        """Issue the warning, under the filters of this process."""
        warnings.warn_explicit(self.text, self.category, self.filename, self.lineno)


@contextmanager
def collected() -> Iterator[list[FoldWarning]]:
    """Collect the warnings inside, in a list that is filled at the end.

    A filter that turns warnings into errors does so inside. After an error, the warnings are shown,
    because they may explain it.
    """
    found: list[FoldWarning] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            yield found
    except BaseException:
        for warning in _plain(caught):
            warning.show()
        raise
    found += _plain(caught)


def _plain(caught: Iterable[warnings.WarningMessage]) -> list[FoldWarning]:
    return [FoldWarning(str(w.message), w.category, w.filename, w.lineno) for w in caught]


def warn_once(found: Iterable[FoldWarning], shown: set[tuple]) -> None:
    """Show the warnings whose keys are not among ``shown``, and add these."""
    for warning in found:
        if warning.key not in shown:
            shown.add(warning.key)
            warning.show()
