"""Findings: results of checks, stored as values and formatted as text only when they are shown.

A check returns a :class:`Finding`, or warns of it. Findings can be compared, counted, and sent
between processes. ``finding_texts`` formats their text, so that no code parses messages.
"""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from braindecode_pars._common.checks import warn_user
from braindecode_pars._common.finding_texts import format_finding


@dataclass(frozen=True)
class Finding:
    """Finding of a check.

    Attributes
    ----------
    kind : str
        Name of the finding, such as "flat_channels".
    values : mapping of str to Any
        Values that are inserted into the text, by name.
    level : "stop" | "leak" | "warning" | "note"
        Severity: "stop" (the question cannot be answered), "leak" (test data are related to
        training data), "warning" (results may be wrong) or "note" (information only).
    n : int
        Number of folds with this finding.

    Examples
    --------
    >>> from braindecode_pars._common.findings import Finding
    >>> print(Finding("skipped_recordings", dict(n_recordings=9, reasons=["P1: damaged"])).text)
    1 of 9 recordings were skipped:
      P1: damaged
    """

    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)
    level: str = "warning"
    n: int = 1

    @property
    def text(self) -> str:
        """Message with the finding, its consequence, and what to do."""
        return format_finding(self.kind, self.values)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Kind and non-numeric values. Numbers are omitted, because they differ between folds."""
        return self.kind, *(str(value) for value in self.values.values() if not _is_number(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) or (isinstance(value, list) and all(map(_is_number, value)))


class FindingWarning(UserWarning):
    """Warning with the values of a finding.

    Attributes
    ----------
    finding : Finding
        The finding.
    n_folds : int
        Total number of folds. The finding occurred in ``finding.n`` of them.
    """

    def __init__(self, finding: Finding, n_folds: int = 1) -> None:
        super().__init__(finding, n_folds)
        self.finding, self.n_folds = finding, n_folds

    def __str__(self) -> str:
        return _of_folds(self.finding.text, self.finding.n, self.n_folds)

    @property
    def kind(self) -> str:
        """Name of the finding."""
        return self.finding.kind


class NotConverged(FindingWarning, ConvergenceWarning):
    """Warning that a training did not converge, or was too short."""


def warn(finding: Finding, category: type[FindingWarning] = FindingWarning) -> None:
    """Warn of a finding, see :func:`~braindecode_pars._common.checks.warn_user`."""
    warn_user(category(finding))


#: Collected warning: message (a FindingWarning, or the text of another warning), category, file
#: and line.
Collected = tuple[FindingWarning | str, type[Warning], str, int]


@contextmanager
def collected(caught: list[Collected]) -> Iterator[None]:
    """Collect the warnings that are issued inside the context in a list.

    The entries are arguments of ``warnings.warn_explicit``, which can be sent between processes. If
    a warning filter turns warnings into errors, the errors are raised inside the context.
    """
    with warnings.catch_warnings(record=True) as recorded:
        try:
            yield
        finally:
            caught += [(*_message_and_category(w), w.filename, w.lineno) for w in recorded]


def _message_and_category(
    warning: warnings.WarningMessage,
) -> tuple[FindingWarning | str, type[Warning]]:
    """Return message and category of a warning, as arguments of ``warnings.warn_explicit``."""
    if isinstance(warning.message, FindingWarning):
        return warning.message, warning.category
    text = str(warning.message)
    try:
        warning.category(text)
    except TypeError:  # the category requires other arguments, as InconsistentVersionWarning
        return text, UserWarning
    return text, warning.category


def warn_once(warnings_by_fold: Sequence[Sequence[Collected]]) -> None:
    """Show each kind of warning of several folds once, with the number of folds."""
    n_folds = len(warnings_by_fold)
    first: dict[tuple[Any, ...], Collected] = {}
    counts: Counter[tuple[Any, ...]] = Counter()
    for fold_warnings in warnings_by_fold:
        counts.update({identity_of(*warning) for warning in fold_warnings})
        for warning in fold_warnings:
            first.setdefault(identity_of(*warning), warning)
    for identity, (message, category, file, line) in first.items():
        n = counts[identity]
        if isinstance(message, FindingWarning):
            merged = type(message)(replace(message.finding, n=n), n_folds)
            warnings.warn_explicit(merged, category, file, line)
        else:
            warnings.warn_explicit(_of_folds(message, n, n_folds), category, file, line)


def _of_folds(text: str, n: int, n_folds: int) -> str:
    return f"In {n} of {n_folds} folds: {text}" if n_folds > 1 else text


def identity_of(
    message: FindingWarning | str, category: type[Warning], file: str, line: int
) -> tuple[Any, ...]:
    """Return a key that is equal for the same warning in different folds or steps of a study."""
    if isinstance(message, FindingWarning):
        return category, message.finding.identity
    if issubclass(category, ConvergenceWarning):  # of scikit-learn, with a number of iterations
        return category, file, line
    return category, message
