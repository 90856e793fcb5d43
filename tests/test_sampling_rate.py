"""The one comparison of sampling rates."""

from __future__ import annotations

import pytest

from braindecode_pars._common.checks import check_same_rate, is_same_rate


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (200.0, 200.0, True),
        (128.0, 128.0000001, True),  # as some headers round it
        (200.0, 200.1, False),
        (None, 200.0, True),
        (200.0, None, True),
        (None, None, True),
    ],
)
def test_rates_agree_up_to_rounding(one, other, same):
    assert is_same_rate(one, other) is same


def test_the_error_has_both_rates_and_the_remedy():
    check_same_rate(100.0, None, "The windows are", "the model")
    with pytest.raises(ValueError, match=r"100 Hz.* 200 Hz.* resample"):
        check_same_rate(100.0, 200.0, "The windows are", "the model")
