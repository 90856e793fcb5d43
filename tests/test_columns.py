"""Names of columns: the parts of a task are recognised by the prefix of their loss."""

from __future__ import annotations

import pytest

from braindecode_pars._common.tables import LOSSES, RELATIVE, lags_of, loss_columns, part_of


@pytest.mark.parametrize(
    ("column", "part"),
    [
        ("train_loss_relative_mae", "mae"),
        ("train_loss_relative_two_words", "two_words"),
        (RELATIVE, None),
        ("train_loss", None),
        ("epoch", None),
    ],
)
def test_part_of_a_column(column, part):
    assert part_of(column) == part


def test_parts_come_after_the_losses_in_order():
    given = ["epoch", "train_loss_relative_pars", "train_loss_relative_mae", "dur"]
    expected = [*LOSSES, "train_loss_relative_mae", "train_loss_relative_pars"]
    assert loss_columns(given) == expected


def test_numbers_in_names_are_in_order():
    names = [f"{RELATIVE}_{part}" for part in ("lag_2_4", "lag_16_29", "lag_1_2", "distance")]
    ordered = [part_of(name) for name in loss_columns(names)[len(LOSSES) :]]
    assert ordered == ["distance", "lag_1_2", "lag_2_4", "lag_16_29"]


@pytest.mark.parametrize(
    ("part", "lags"),
    [
        ("lag_1_2", (1, 2)),
        ("pars_lag_16_29", (16, 29)),
        ("lag", None),
        ("flag_1_2", None),
        ("band_1_3", None),
    ],
)
def test_lags_of_a_column(part, lags):
    assert lags_of(f"{RELATIVE}_{part}") == lags
    assert lags_of(part) is None
