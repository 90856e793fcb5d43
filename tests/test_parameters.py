"""Checks of parameters: what is accepted, and what the error says."""

from __future__ import annotations

from types import NoneType

import numpy as np
import pytest

from braindecode_pars._common.checks import (
    boolean,
    check_parameters,
    check_positive,
    choice,
    instance,
    integer,
    number,
    optional,
    positive,
)

RULES = dict(
    count=integer(1),
    rate=positive(),
    bounded=positive(1e12),
    share=number("in [0, 1)", lambda value: 0 <= value < 1),
    task=choice("pars", "mae"),
    flag=boolean(),
    folder=instance("a path, or None", str, NoneType),
    workers=optional(integer(0)),
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 1),
        ("count", np.int64(3)),
        ("rate", 2),
        ("rate", np.float32(0.5)),
        ("share", 0),
        ("task", "mae"),
        ("flag", True),
        ("flag", np.bool_(False)),
        ("folder", None),
        ("workers", None),
        ("workers", 0),
        ("unknown", object()),
    ],
)
def test_what_is_accepted(name, value):
    check_parameters({name: value}, RULES)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("count", 0, ValueError, "at least 1, got 0"),
        ("count", 2**63, ValueError, "got 9223"),
        ("count", 1.0, TypeError, "integer .*got 1.0"),
        ("count", True, TypeError, "got True"),
        ("count", np.bool_(True), TypeError, "integer"),
        ("rate", 0, ValueError, "positive .*got 0"),
        ("rate", float("nan"), ValueError, "got nan"),
        ("rate", float("inf"), ValueError, "got inf"),
        ("rate", "1", TypeError, "'1'"),
        ("bounded", 2e12, ValueError, r"1e\+12, got 2"),
        ("share", 1.0, ValueError, r"\[0, 1\), got 1\.0"),
        ("share", float("nan"), ValueError, "got nan"),
        ("task", "mp3", ValueError, "'pars', 'mae', got 'mp3'"),
        ("task", 1, ValueError, "got 1"),
        ("flag", 1, TypeError, "got 1"),
        ("folder", 3, TypeError, "a path, or None, got 3"),
        ("workers", -1, ValueError, "at least 0, or None, got -1"),
        ("workers", "two", TypeError, "'two'"),
    ],
)
def test_what_is_refused(name, value, error, message):
    with pytest.raises(error, match=message):
        check_parameters({name: value}, RULES)


def test_the_owner_is_named():
    with pytest.raises(ValueError, match=r"^PARSClassifier: count "):
        check_parameters({"count": 0}, RULES, "PARSClassifier")


def test_several_positive_numbers():
    check_positive(low=0.5, high=40)
    with pytest.raises(ValueError, match=r"high .*-1"):
        check_positive(low=0.5, high=-1)
