"""What is left to do with a recording before a model predicts it."""

from __future__ import annotations

import pytest

from braindecode_pars.recordings.as_trained import missing_steps
from braindecode_pars.recordings.preprocessing import Preprocessing

TRAINED = dict(band=(0.3, 35.0), notch=[50.0, 60.0], reference="average", scale=1e6)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, TRAINED),
        (dict(band=(0.3, 35.0)), dict(TRAINED, band=(None, None))),
        (dict(band=(0.1, 35.0)), dict(TRAINED, band=(0.3, None))),
        (dict(band=(0.3, None)), dict(TRAINED, band=(None, 35.0))),
        (dict(notch=[60.0]), dict(TRAINED, notch=[50.0])),
        (dict(reference="average"), dict(TRAINED, reference=None)),
        (dict(reference="as recorded"), TRAINED),
        (dict(scale=1e3), dict(TRAINED, scale=1e3)),
    ],
)
def test_steps(found, expected):
    assert missing_steps(Preprocessing(**TRAINED), Preprocessing(**found)) == Preprocessing(
        **expected
    )


def test_what_is_unknown_of_the_training_is_not_applied():
    left = missing_steps(Preprocessing(), Preprocessing(band=(1, 40), scale=1e6))
    assert left == Preprocessing(band=(None, None), notch=[])
