"""Checks of parameters: what each may be, in words that an error can show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from types import NoneType
from typing import Any

__all__ = [
    "Rule",
    "boolean",
    "check_parameters",
    "check_positive",
    "choice",
    "instance",
    "integer",
    "number",
    "optional",
    "positive",
]

#: The largest integer that torch can hold.
_LARGEST_INTEGER = 2**63 - 1


@dataclass(frozen=True)
class Rule:
    """What a parameter may be.

    Attributes
    ----------
    text : str
        Completes "must be ...".
    kinds : tuple of type
        A value of no such type is a TypeError. True and False are numbers only to Python, so they
        need ``bool`` here.
    holds : callable
        Whether a value of these types is in range; otherwise it is a ValueError.
    """

    text: str
    kinds: tuple[type, ...]
    holds: Callable[[Any], bool] = lambda value: True

    def check(self, name: str, value: Any, owner: str = "") -> None:
        """Refuse a value that is not allowed.

        Raises
        ------
        TypeError
            When it is of another type.
        ValueError
            When it is out of range.
        """
        told = f"{owner}: {name}" if owner else name
        value_type = bool if str(getattr(value, "dtype", "")) == "bool" else type(value)  # NumPy's
        is_bool = value_type is bool
        if not issubclass(value_type, self.kinds) or (is_bool and bool not in self.kinds):
            raise TypeError(f"{told} must be {self.text}, got {value!r}.")
        if not self.holds(value):
            raise ValueError(f"{told} must be {self.text}, got {value!r}.")


def integer(least: int) -> Rule:
    """An integer of at least ``least``, of Python or NumPy."""
    return Rule(
        f"an integer of at least {least}",
        (Integral,),
        lambda value: least <= value <= _LARGEST_INTEGER,
    )


def number(where: str, holds: Callable[[Real], bool]) -> Rule:
    """A finite number, with its range in words: ``number("in [0, 1)", lambda x: 0 <= x < 1)``."""
    return Rule(f"a number {where}", (Real,), lambda value: math.isfinite(value) and holds(value))


def positive(most: float | None = None) -> Rule:
    """A positive number, with or without an upper bound."""
    bound = math.inf if most is None else most
    text = "a positive number" if most is None else f"a positive number of at most {most:g}"
    return Rule(text, (Real,), lambda value: math.isfinite(value) and 0 < value <= bound)


def choice(*values: Any) -> Rule:
    """One of some values, of the same type."""
    return Rule(
        f"one of {', '.join(map(repr, values))}",
        (object, bool),
        lambda value: any(type(value) is type(other) and value == other for other in values),
    )


def boolean() -> Rule:
    """True or False, of Python or NumPy."""
    return Rule("True or False", (bool,))


def instance(text: str, *kinds: type) -> Rule:
    """An object of some type."""
    return Rule(text, kinds)


def optional(rule: Rule) -> Rule:
    """What a rule allows, or None."""
    return Rule(
        f"{rule.text}, or None",
        (*rule.kinds, NoneType),
        lambda value: value is None or rule.holds(value),
    )


def check_parameters(values: Mapping[str, Any], rules: Mapping[str, Rule], owner: str = "") -> None:
    """Check every parameter that has a rule.

    Parameters
    ----------
    values : mapping of str to Any
        Parameters by name.
    rules : mapping of str to Rule
        Also of parameters that are not among the values.
    owner : str
        What has these parameters, for the message.

    Raises
    ------
    TypeError, ValueError
        For the first that is not allowed.

    Examples
    --------
    >>> from braindecode_pars._parameters import check_parameters, integer
    >>> check_parameters({"num_heads": 0}, {"num_heads": integer(1)}, "PARSClassifier")
    Traceback (most recent call last):
        ...
    ValueError: PARSClassifier: num_heads must be an integer of at least 1, got 0.
    """
    for name, value in values.items():
        if name in rules:
            rules[name].check(name, value, owner)


def check_positive(**numbers: float) -> None:
    """Check that each of some numbers is positive."""
    check_parameters(numbers, dict.fromkeys(numbers, positive()))
