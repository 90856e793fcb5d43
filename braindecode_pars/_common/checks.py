"""Check arguments (types, ranges, probabilities, sampling rates), and issue warnings to users.

A :class:`ParameterRule` defines which values of a parameter are accepted, and how the error message
describes these values.
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

#: Value of a parameter that lets the package choose a value, often from the data.
AUTO = "auto"

#: Largest integer that a torch tensor can contain.
_LARGEST_INTEGER = 2**63 - 1


@dataclass(frozen=True)
class ParameterRule:
    """Accepted types and range of a parameter.

    Attributes
    ----------
    text : str
        Description of the accepted values, which completes "must be ..." in error messages.
    kinds : tuple of type
        Accepted types. For values of other types, a TypeError is raised. True and False are
        accepted only if ``bool`` is one of the types, although bool is a subclass of int.
    is_valid : callable
        Function that returns whether a value of an accepted type is valid. For invalid values, a
        ValueError is raised.
    """

    text: str
    kinds: tuple[type, ...]
    is_valid: Callable[[Any], bool] = lambda value: True

    def check(self, name: str, value: Any, owner: str = "") -> None:
        """Check that a value has an accepted type and is valid.

        Parameters
        ----------
        name : str
            Name of the parameter, for the error message.
        value : Any
            Value to check.
        owner : str
            Name of the class or function that has the parameter, for the error message.

        Raises
        ------
        TypeError
            If the type of the value is not accepted.
        ValueError
            If the value is not valid, for example out of range.
        """
        full_name = f"{owner}: {name}" if owner else name
        # NumPy's bool is not a subclass of bool.
        is_bool = getattr(value, "shape", None) == () and str(value.dtype) == "bool"
        kind = bool if is_bool else type(value)
        if not issubclass(kind, self.kinds) or (kind is bool and bool not in self.kinds):
            raise TypeError(f"{full_name} must be {self.text}, got {value!r}.")
        if not self.is_valid(value):
            raise ValueError(f"{full_name} must be {self.text}, got {value!r}.")


def integer(minimum: int) -> ParameterRule:
    """Return a rule for a Python or NumPy integer that is at least ``minimum``."""
    return ParameterRule(
        f"an integer of at least {minimum}",
        (Integral,),
        lambda value: minimum <= value <= _LARGEST_INTEGER,
    )


def number(valid_range: str, is_valid: Callable[[float], bool]) -> ParameterRule:
    """Return a rule for a finite number in a range.

    For example, the rule ``number("in [0, 1)", lambda x: 0 <= x < 1)`` accepts numbers in [0, 1).
    """
    return ParameterRule(
        f"a number {valid_range}", (Real,), lambda value: math.isfinite(value) and is_valid(value)
    )


def positive(maximum: float = math.inf) -> ParameterRule:
    """Return a rule for a positive number with an optional maximum."""
    text = "a positive number" + (f" of at most {maximum:g}" if maximum < math.inf else "")
    return ParameterRule(text, (Real,), lambda value: math.isfinite(value) and 0 < value <= maximum)


def proportion() -> ParameterRule:
    """Return a rule for a proportion or a probability in [0, 1)."""
    return number("in [0, 1)", lambda value: 0 <= value < 1)


def choice(*values: Any) -> ParameterRule:
    """Return a rule that accepts only these values. The types of the values must match, too."""
    return ParameterRule(
        f"one of {', '.join(map(repr, values))}",
        (object, bool),
        lambda value: any(type(value) is type(other) and value == other for other in values),
    )


def boolean() -> ParameterRule:
    """Return a rule for a Python or NumPy boolean."""
    return ParameterRule("True or False", (bool,))


def instance(text: str, *kinds: type) -> ParameterRule:
    """Return a rule for an instance of one of several types, which ``text`` describes."""
    return ParameterRule(text, kinds)


def optional(rule: ParameterRule) -> ParameterRule:
    """Return a rule that accepts None in addition to the values that ``rule`` accepts."""
    return ParameterRule(
        f"{rule.text}, or None",
        (*rule.kinds, NoneType),
        lambda value: value is None or rule.is_valid(value),
    )


def check_parameters(
    values: Mapping[str, Any], rules: Mapping[str, ParameterRule], owner: str = ""
) -> None:
    """Check that the values of parameters follow their rules.

    Parameters
    ----------
    values : mapping of str to Any
        Value of each parameter. Parameters without a rule are not checked.
    rules : mapping of str to ParameterRule
        Rule of each parameter. Rules for parameters that are not in ``values`` are ignored.
    owner : str
        Name of the class or function that has these parameters, for the error message.

    Raises
    ------
    TypeError, ValueError
        If a value violates its rule. The message names the first parameter with an invalid value.

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
    """Whether a pretext task is specified as a class in a Python file, as in "my_task.py:Slope".

    To use such a task, the file must be imported, which runs its code. A file whose name was read
    from a saved model must not be imported, because only the user may decide which code is run.
    """
    return isinstance(task, str) and task.rpartition(":")[0].endswith(".py")


def check_positive(**numbers: float) -> None:
    """Check that numbers are positive. Their argument names are used in the error message."""
    check_parameters(numbers, dict.fromkeys(numbers, positive()))


def check_probabilities(values: Any, *, allow_nan: bool = False) -> None:
    """Check that each row of an array is a probability distribution over classes.

    Rounding errors of a softmax in float32 are accepted.

    Parameters
    ----------
    values : ndarray or Tensor, shape (n_windows, n_classes)
        Class probabilities.
    allow_nan : bool
        Whether rows that contain NaN are accepted.

    Raises
    ------
    ValueError
        If a row is not a probability distribution, for example because it contains logits. The
        message contains the first such row.
    """
    wrong = (values < -1e-6).any(axis=1) | (abs(values.clip(-2, 2).sum(axis=1) - 1) > 1e-3)
    if not allow_nan:
        wrong |= (values != values).any(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        text = format_list([f"{value:g}" for value in values[row]])
        raise ValueError(
            f"Row {row} of the probabilities is {text}. Each row must contain values in [0, 1] "
            "that sum to 1, without NaN. Pass the result of predict_proba instead of the result of "
            "decision_function."
        )


def format_list(texts: Sequence[str], max_items: int = 10) -> str:
    """Join texts with commas. After the first ``max_items`` texts, only their number is shown.

    Examples
    --------
    >>> from braindecode_pars._common.checks import format_list
    >>> format_list(["C3", "C4"]), format_list(["C3", "C4", "Fz"], max_items=2)
    ('C3, C4', 'C3, C4 and 1 more')
    """
    more = f" and {len(texts) - max_items} more" if len(texts) > max_items else ""
    return ", ".join(texts[:max_items]) + more


def is_same_rate(rate: float | None, other: float | None) -> bool:
    """Whether two sampling rates in Hz are equal up to rounding. An unknown rate (None) matches."""
    return rate is None or other is None or math.isclose(rate, other, rel_tol=1e-5)


def check_same_rate(
    sfreq: float | None,
    expected: float | None,
    what: str,
    expected_of: str,
    remedy: str = "resample to {expected:g} Hz",
) -> None:
    """Check that the sampling rate of signals is the expected sampling rate.

    Parameters
    ----------
    sfreq, expected : float | None
        Sampling rate of the signals, and expected sampling rate, in Hz. If either is None
        (unknown), no error is raised.
    what, expected_of : str
        Beginnings of the two clauses of the error message, such as "These windows are" and "the
        model was trained at". The clauses continue with "sampled at ... Hz" and "... Hz".
    remedy : str
        Last sentence of the error message, which states what to do, without its full stop.
        ``{expected:g}`` is replaced with the expected sampling rate.

    Raises
    ------
    ValueError
        If both rates are known and differ. The message contains both rates.
    """
    if not is_same_rate(sfreq, expected):
        action = remedy.format(expected=expected)
        raise ValueError(
            f"{what} sampled at {sfreq:g} Hz, but {expected_of} {expected:g} Hz. "
            f"{action[:1].upper()}{action[1:]}."
        )


#: Kinds of findings whose warnings are suppressed in the current thread; None for all warnings.
_QUIET: ContextVar[tuple[str, ...] | None] = ContextVar("quiet", default=())

#: Folder of this package. Warnings point to the innermost calling line outside this package and
#: outside installed packages.
_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
#: Substring in the paths of installed packages, such as scikit-learn, whose pipelines call this
#: package.
_INSTALLED = f"{os.sep}site-packages{os.sep}"

#: Warnings that were already issued, and that the warning filter shows once per line of code.
_SHOWN: set[tuple[Any, ...]] = set()


def warn_user(message: str | Warning) -> None:
    """Issue a warning that points to the line of user code that caused it.

    By default, Python shows a warning only once per line of code. However, whenever a library
    changes the warning filters, as scikit-learn does in every fold, Python forgets which warnings
    were shown. This function keeps its own record, so that a cross-validation shows each warning
    only once. If a warning filter shows all warnings, such as "always", each warning is shown.

    Parameters
    ----------
    message : str | Warning
        Text of a UserWarning, or an instance of any warning class.

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
    kinds = _QUIET.get()
    if kinds is None or getattr(message, "kind", None) in kinds:
        return
    # Stack level 1 is this function, and stack level 2 is its caller.
    stack_level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_PACKAGE) or _INSTALLED in frame.f_code.co_filename
    ):
        stack_level, frame = stack_level + 1, frame.f_back
    category = type(message) if isinstance(message, Warning) else UserWarning
    key = (str(message), category, frame.f_lineno)
    # A filter has the message at index 1, the category at index 2, and the module at index 3.
    general = (entry for entry in warnings.filters if entry[1] is entry[3] is None)
    filter_entry = next((entry for entry in general if issubclass(category, entry[2])), None)
    shown_key = (*key, frame.f_code.co_filename, filter_entry)
    if shown_key not in _SHOWN:
        warnings.warn(message, category, stacklevel=stack_level)
        # Python adds no entry to the registry if the filter shows all warnings.
        if key in frame.f_globals.get("__warningregistry__", ()):
            _SHOWN.add(shown_key)


@contextmanager
def quiet(*kinds: str) -> Iterator[None]:
    """Suppress warnings of this package inside the context, for example to avoid repetitions.

    Unlike :class:`warnings.catch_warnings`, this does not affect other threads.

    Parameters
    ----------
    *kinds : str
        Kinds of findings whose warnings are suppressed. If empty, all warnings of this package are
        suppressed.
    """
    outer = _QUIET.get()
    token = _QUIET.set((*outer, *kinds) if kinds and outer is not None else None)
    try:
        yield
    finally:
        _QUIET.reset(token)
