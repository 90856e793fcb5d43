"""Length of a patch in samples."""

from __future__ import annotations

import pytest

from braindecode_pars.models import patch_size_for


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((1.0, 200.0, 6000), 200),
        ((0.5, 128.0, None), 64),
        ((1.0, None, 6000), 200),  # a thirtieth of the window
        ((1.0, None, 7), 1),
    ],
)
def test_patch_size(arguments, expected):
    assert patch_size_for(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 200.0, 150), "150 samples is shorter than one patch of 200 samples"),
        ((0.0, 200.0, 600), "patch_seconds must be positive"),
        ((1.0, None, None), "neither is specified or can be inferred"),
    ],
)
def test_patch_size_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        patch_size_for(*arguments)
