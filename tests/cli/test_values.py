"""KEY=VALUE options as Python values."""

from __future__ import annotations

import pytest

from braindecode_pars.cli.terminal import pairs, values


def test_values_are_read_as_python_or_json():
    given = ["n=3", "lr=1e-3", "name=pars", "on=true", "grid=[1, 2]", "text=a=b", "none=None"]
    expected = dict(n=3, lr=1e-3, name="pars", on=True, grid=[1, 2], text="a=b", none=None)
    assert values(given, "--set") == expected
    assert values(None, "--set") == {}


def test_an_option_without_a_value_is_refused():
    with pytest.raises(ValueError, match="--set 'n'"):
        pairs(["n"], "--set")
