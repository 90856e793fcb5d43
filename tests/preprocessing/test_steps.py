"""Steps as braindecode records them, and those that a recipe leaves in the info of a Raw."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from braindecode.preprocessing import (
    Filter,
    NotchFilter,
    Preprocessor,
    Rescale,
    SetEEGReference,
    exponential_moving_standardize,
)
from numpy import multiply

from braindecode_pars.recordings.preprocessing import Step, remember_steps, remembered_steps


def own_function(signal, factor=1.0):
    return signal * factor


@pytest.mark.parametrize(
    ("preprocessor", "name", "is_known", "factor"),
    [
        (Preprocessor("filter", apply_on_array=False, l_freq=1, h_freq=40), "filter", True, None),
        (Filter(l_freq=1, h_freq=40), "filter", True, None),
        (NotchFilter(freqs=50), "notch_filter", True, None),
        (SetEEGReference(ref_channels="average"), "set_eeg_reference", True, None),
        (Rescale(scalings=1e6), "rescale", True, 1e6),
        (Rescale(scalings={"eeg": 1e3, "eog": 1.0}), "rescale", True, 1e3),
        (Rescale(scalings={"eog": 1e3}), "rescale", False, None),
        (Preprocessor(multiply, factor=1e6), "multiply", True, 1e6),
        (Preprocessor("pick", apply_on_array=False, picks=["C3"]), "pick", True, None),
        (Preprocessor(own_function, factor=2.0), "own_function", False, None),
        (
            Preprocessor(exponential_moving_standardize),
            "exponential_moving_standardize",
            False,
            None,
        ),
        (
            Preprocessor("apply_function", apply_on_array=False, fun=own_function),
            "apply_function",
            False,
            None,
        ),
    ],
)
def test_records_of_braindecode(preprocessor, name, is_known, factor):
    step = Step.of(preprocessor.serialize())
    assert (step.name, step.is_known, step.factor) == (name, is_known, factor)


@pytest.mark.parametrize(
    "record", [None, {}, "filter", ("fn", "kwargs", 3), {"fn": 3, "kwargs": 4}]
)
def test_a_record_of_another_form_is_an_unknown_step(record):
    assert not Step.of(record).is_known


def test_records_of_older_braindecode():
    assert Step.of(("filter", {"l_freq": 1})) == Step("filter", {"l_freq": 1})


def test_steps_stay_in_copies_picks_and_epochs():
    info = mne.create_info(["C3", "C4"], 100.0, "eeg")
    raw = mne.io.RawArray(np.zeros((2, 1000)), info, verbose="error")
    remember_steps(raw, [("filter", dict(l_freq=0.5))])
    remember_steps(raw, [("notch_filter", dict(freqs=50.0))])
    epochs = mne.make_fixed_length_epochs(raw.copy().pick(["C4"]), 2.0, verbose="error")
    assert remembered_steps(epochs.info) == [
        ("filter", {"l_freq": 0.5}),
        ("notch_filter", {"freqs": 50.0}),
    ]
    assert remembered_steps(info) == []
