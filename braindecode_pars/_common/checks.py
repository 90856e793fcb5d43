"""Checks of what users pass: parameters, lists of names, sampling rates; and warnings for users.

A :class:`ParameterRule` accepts some values of a parameter and has a text for the error message.
"""

import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any

#: Value of a parameter that the data decide.
AUTO = "auto"

#: The largest integer that torch can hold.
_LARGEST_INTEGER = 2**63 - 1


@dataclass(frozen=True)
class ParameterRule:
    """Types and range of the values that a parameter accepts.

    Attributes
    ----------
    text : str
        Description of the accepted values; completes "must be ...".
    kinds : tuple of type
        Accepted types; any other type raises TypeError. True and False are accepted only if
        ``bool`` is among the types, although bool is a subclass of int.
    holds : callable
        Function that returns whether a value of an accepted type is in range; any other value
        raises ValueError.
    """

    text: str
    kinds: tuple[type, ...]
    holds: Callable[[Any], bool] = lambda value: True

    def check(self, name: str, value: Any, owner: str = "") -> None:
        """Check that a value has an accepted type and is in range.

        Raises
        ------
        TypeError
            When the value has another type.
        ValueError
            When the value is out of range.
        """
        full_name = f"{owner}: {name}" if owner else name
        # NumPy's bool is not a subclass of bool.
        is_bool = getattr(value, "shape", None) == () and str(value.dtype) == "bool"
        kind = bool if is_bool else type(value)
        if not issubclass(kind, self.kinds) or (kind is bool and bool not in self.kinds):
            raise TypeError(f"{full_name} must be {self.text}, got {value!r}.")
        if not self.holds(value):
            raise ValueError(f"{full_name} must be {self.text}, got {value!r}.")


def integer(least: int) -> ParameterRule:
    """Return a rule for an integer of Python or NumPy that is at least ``least``."""
    return ParameterRule(
        f"an integer of at least {least}",
        (Integral,),
        lambda value: least <= value <= _LARGEST_INTEGER,
    )


def number(where: str, holds: Callable[[float], bool]) -> ParameterRule:
    """Return a rule for a finite number: ``number("in [0, 1)", lambda x: 0 <= x < 1)``."""
    return ParameterRule(
        f"a number {where}", (Real,), lambda value: math.isfinite(value) and holds(value)
    )


def positive(most: float = math.inf) -> ParameterRule:
    """Return a rule for a positive number, with or without an upper bound."""
    text = "a positive number" + (f" of at most {most:g}" if most < math.inf else "")
    return ParameterRule(text, (Real,), lambda value: math.isfinite(value) and 0 < value <= most)


def share() -> ParameterRule:
    """Return a rule for a share or a probability of at least 0 and less than 1."""
    return number("in [0, 1)", lambda value: 0 <= value < 1)


def choice(*values: Any) -> ParameterRule:
    """Return a rule for one of the given values; the type must be the same."""
    return ParameterRule(
        f"one of {', '.join(map(repr, values))}",
        (object, bool),
        lambda value: any(type(value) is type(other) and value == other for other in values),
    )


def boolean() -> ParameterRule:
    """Return a rule for True or False, of Python or NumPy."""
    return ParameterRule("True or False", (bool,))


def instance(text: str, *kinds: type) -> ParameterRule:
    """Return a rule for an instance of one of the given types."""
    return ParameterRule(text, kinds)


def optional(rule: ParameterRule) -> ParameterRule:
    """Return a rule that also accepts None."""
    return ParameterRule(
        f"{rule.text}, or None",
        (*rule.kinds, NoneType),
        lambda value: value is None or rule.holds(value),
    )


def check_parameters(
    values: Mapping[str, Any], rules: Mapping[str, ParameterRule], owner: str = ""
) -> None:
    """Check every parameter that has a rule.

    Parameters
    ----------
    values : mapping of str to Any
        Values by name of parameter.
    rules : mapping of str to ParameterRule
        Rules by name of parameter; it may contain further parameters.
    owner : str
        Name of the class or function with these parameters, for the error message.

    Raises
    ------
    TypeError, ValueError
        When a value violates its rule. The message names the first such parameter.

    Examples
    --------
    >>> from braindecode_pars._common.checks import check_parameters, integer
    >>> check_parameters({"num_heads": 0}, {"num_heads": integer(1)}, "PARSClassifier")
    Traceback (most recent call last):
        ...
    ValueError: PARSClassifier: num_heads must be an integer of at least 1, got 0.
    """
    for name, value in values.items():
        if name in rules:
            rules[name].check(name, value, owner)


def names_file(task: Any) -> bool:
    """Whether a task is a class in a Python file, FILE.py:CLASS, whose code runs when it is used.

    What was saved must never be taken for one: only the user decides which code runs.
    """
    return isinstance(task, str) and task.rpartition(":")[0].endswith(".py")


def check_positive(**numbers: float) -> None:
    """Check that all given numbers are positive."""
    check_parameters(numbers, dict.fromkeys(numbers, positive()))


def check_probabilities(values: Any, *, allow_nan: bool = False) -> None:
    """Check an array of probabilities, shape (n_windows, n_classes).

    The tolerances are wider than the rounding errors of a softmax in float32.

    Raises
    ------
    ValueError
        When a row is no distribution over the classes, as with logits. The message has the row.
    """
    wrong = (values < -1e-6).any(axis=1) | (abs(values.clip(-2, 2).sum(axis=1) - 1) > 1e-3)
    if not allow_nan:
        wrong |= (values != values).any(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        text = format_list([f"{value:g}" for value in values[row]])
        raise ValueError(
            f"Row {row} of the probabilities is {text}. A row must have values in [0, 1] with the "
            "sum 1 and no NaN; pass the result of predict_proba, not of decision_function."
        )


def format_list(texts: Sequence[str], most: int = 10) -> str:
    """Return texts separated by commas: the first ones, and how many more there are.

    Examples
    --------
    >>> from braindecode_pars._common.checks import format_list
    >>> format_list(["C3", "C4"]), format_list(["C3", "C4", "Fz"], most=2)
    ('C3, C4', 'C3, C4 and 1 more')
    """
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def is_same_rate(rate: float | None, other: float | None) -> bool:
    """Whether two sampling rates in Hz are equal up to rounding, or one is unknown (None)."""
    return rate is None or other is None or math.isclose(rate, other, rel_tol=1e-5)


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


#: Whether warnings of this thread are left out.
_IS_QUIET: ContextVar[bool] = ContextVar("is_quiet", default=False)

#: Code that is not the user's: this package, and installed packages such as scikit-learn, which
#: call this one in a pipeline.
_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_INSTALLED = f"{os.sep}site-packages{os.sep}"

#: Warnings that Python has shown, and shows once for each line of code by this filter.
_SHOWN: set[tuple[Any, ...]] = set()


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the innermost line of the user's own code.

    Python's default filter shows a warning once for each line of code, but forgets what it has
    shown whenever a library changes its filters, as scikit-learn does in every fold. Here it is
    remembered, so that a cross-validation warns once. Filters that show all warnings still do.

    Parameters
    ----------
    message : str
        Text of the warning.
    category : type
        Class of the warning.

    Examples
    --------
    >>> import warnings
    >>> from braindecode_pars._common.checks import warn_user
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("Channel C3 is flat.")
    >>> str(caught[0].message), caught[0].category.__name__
    ('Channel C3 is flat.', 'UserWarning')
    """
    if _IS_QUIET.get():
        return
    # Level 1 is this function, level 2 its caller, and so on.
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_PACKAGE) or _INSTALLED in frame.f_code.co_filename
    ):
        level, frame = level + 1, frame.f_back
    key = (message, category, frame.f_lineno)
    # Item 1 of a filter is its message, item 2 its category, and item 3 its module.
    general = (entry for entry in warnings.filters if entry[1] is entry[3] is None)
    by = next((entry for entry in general if issubclass(category, entry[2])), None)
    shown = (*key, frame.f_code.co_filename, by)
    if shown not in _SHOWN:
        warnings.warn(message, category, stacklevel=level)
        if key in frame.f_globals.get("__warningregistry__", ()):  # not if all are to be shown
            _SHOWN.add(shown)


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out the warnings of this package inside, for work that has been warned of before.

    Unlike :class:`warnings.catch_warnings`, this changes nothing in other threads.
    """
    token = _IS_QUIET.set(True)
    try:
        yield
    finally:
        _IS_QUIET.reset(token)
