"""Findings: problems and notes that a check reports, stored as values instead of text.

A check returns a :class:`Finding`, or issues it as a warning. Because the values are stored,
findings can be compared, counted, and sent between processes, and no code has to parse messages.
The module ``finding_texts`` formats the message of a finding when it is shown.
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
    """Problem or note that a check reports.

    Attributes
    ----------
    kind : str
        Kind of the finding, such as "flat_channels".
    values : mapping of str to Any
        Values that are inserted into the message, by name.
    level : "stop" | "leak" | "warning" | "note"
        Severity: "stop" (no study can be run on these data), "leak" (test data are related to
        training data), "warning" (results may be wrong) or "note" (information only).
    n : int
        Number of cross-validation folds in which the check reported this finding. 1 if the check
        does not run in a cross-validation.

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
        """Message that states what was found, the consequence, and what to do."""
        return format_finding(self.kind, self.values)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Key that is equal for the same finding in different folds: kind and non-numeric values.

        Numbers are omitted, because they differ between folds.
        """
        return self.kind, *(str(value) for value in self.values.values() if not _is_number(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) or (isinstance(value, list) and all(map(_is_number, value)))


class FindingWarning(UserWarning):
    """Warning that contains a finding, so that its values can be read from the warning.

    Attributes
    ----------
    finding : Finding
        The finding.
    n_folds : int
        Total number of folds. The finding occurred in ``finding.n`` of these folds.
    """

    def __init__(self, finding: Finding, n_folds: int = 1) -> None:
        super().__init__(finding, n_folds)
        self.finding, self.n_folds = finding, n_folds

    def __str__(self) -> str:
        return _of_folds(self.finding.text, self.finding.n, self.n_folds)

    @property
    def kind(self) -> str:
        """Kind of the finding."""
        return self.finding.kind


class NotConverged(FindingWarning, ConvergenceWarning):
    """Warning that training did not converge, or was too short."""


def warn(finding: Finding, category: type[FindingWarning] = FindingWarning) -> None:
    """Issue a finding as a warning, see :func:`~braindecode_pars._common.checks.warn_user`."""
    warn_user(category(finding))


#: Warning that was collected instead of shown: its message (a FindingWarning, or the text of
#: another warning), category, file and line.
Collected = tuple[FindingWarning | str, type[Warning], str, int]


@contextmanager
def collected(caught: list[Collected]) -> Iterator[None]:
    """Append the warnings that are issued inside the context to the list ``caught``.

    Each entry is a tuple of arguments for ``warnings.warn_explicit``, which can be sent to another
    process. If a warning filter turns warnings into errors, the errors are raised as usual.
    """
    with warnings.catch_warnings(record=True) as recorded:
        try:
            yield
        finally:
            caught += [(*_message_and_category(w), w.filename, w.lineno) for w in recorded]


def _message_and_category(
    warning: warnings.WarningMessage,
) -> tuple[FindingWarning | str, type[Warning]]:
    """Return the message and the category of a warning, for ``warnings.warn_explicit``."""
    if isinstance(warning.message, FindingWarning):
        return warning.message, warning.category
    text = str(warning.message)
    try:
        warning.category(text)
    except TypeError:  # the category requires other arguments, like InconsistentVersionWarning
        return text, UserWarning
    return text, warning.category


def warn_once(warnings_by_fold: Sequence[Sequence[Collected]]) -> None:
    """Show each distinct warning of several folds once, with the number of folds that issued it."""
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
    """Return a key that is equal for the same warning in different folds, or steps of a study."""
    if isinstance(message, FindingWarning):
        return category, message.finding.identity
    if issubclass(category, ConvergenceWarning):  # its text contains a number of iterations
        return category, file, line
    return category, message
