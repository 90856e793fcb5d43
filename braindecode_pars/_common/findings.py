"""Collect the warnings of folds, and show each kind of warning once."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning

#: Counts in warnings that differ between folds, because folds have different windows.
_COUNTS = re.compile(r"\b\d+ of \d+ windows")

#: Losses and steps in convergence warnings, which also differ between folds.
_NUMBERS = re.compile(r"\d[\d,.]*")


@contextmanager
def collected(fold_warnings: list[tuple]) -> Iterator[None]:
    """Append the warnings of a context to a list, as arguments of ``warnings.warn_explicit``.

    The arguments can be sent between processes. A filter that turns warnings into errors applies in
    the context.
    """
    with warnings.catch_warnings(record=True) as caught:
        try:
            yield
        finally:
            fold_warnings += [(str(w.message), w.category, w.filename, w.lineno) for w in caught]


def warn_once(warnings_by_fold: Sequence[Sequence[tuple]]) -> None:
    """Show each kind of warning of several folds once, with the number of folds."""
    kinds: dict[tuple, list[tuple]] = {}
    n_folds = len(warnings_by_fold)
    for fold_warnings in warnings_by_fold:
        unique: dict[tuple, tuple] = {}
        for text, category, *position in fold_warnings:
            pattern = _NUMBERS if issubclass(category, ConvergenceWarning) else _COUNTS
            unique.setdefault((pattern.sub("", text), category), (text, category, *position))
        for kind, warning in unique.items():
            kinds.setdefault(kind, []).append(warning)
    for warnings_of_kind in kinds.values():
        text, *arguments = warnings_of_kind[0]
        prefix = f"In {len(warnings_of_kind)} of {n_folds} folds: " if n_folds > 1 else ""
        warnings.warn_explicit(prefix + text, *arguments)
