"""Names of columns: the parts of a task are recognised by the prefix of their loss."""

from __future__ import annotations

import pytest

from braindecode_pars._common.tables import LOSSES, RELATIVE, loss_columns, part_of


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
