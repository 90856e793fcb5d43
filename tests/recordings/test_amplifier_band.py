"""The band of an amplifier is compared with those of the training, not with its filters."""

from __future__ import annotations

import mne
import pytest

from braindecode_pars.recordings.preprocessing import (
    Preprocessing,
    agreed,
    differences,
    recorded,
    remember_edges,
)

TRAINED = Preprocessing(sfreq=200.0, band=(0.3, 75.0), amplifier=(0.5, 80.0))


@pytest.mark.parametrize(
    ("band", "repairs"),
    [
        ((0.5, 80.0), ["filter"]),  # as in training, and filtered here as there
        ((0.1, None), ["filter"]),
        ((1.0, 80.0), [None]),
        ((0.5, 40.0), [None]),
    ],
)
def test_an_edge_that_the_training_had_is_no_finding(band, repairs):
    found = Preprocessing(sfreq=200.0, band=band)
    assert [each.repair for each in differences(TRAINED, found)] == repairs


def test_a_low_pass_of_the_amplifier_below_the_asked_one():
    trained = Preprocessing(sfreq=200.0, band=(0.3, 75.0), amplifier=(None, 70.0))
    assert differences(trained, Preprocessing(sfreq=200.0, band=(0.3, 70.0))) == []


def test_several_amplifiers_give_the_narrowest_band():
    bands = [(0.1, 100.0), (0.5, None), (None, 70.0)]
    assert agreed([Preprocessing(amplifier=band) for band in bands]).amplifier == (0.5, 70.0)
    assert agreed([Preprocessing(amplifier=(0.5, 70.0)), Preprocessing()]).amplifier == (0.5, 70.0)
    assert agreed([Preprocessing(sfreq=1)]).amplifier is None


def test_an_edge_is_that_of_the_eeg_channels():
    info = mne.create_info(["C3", "C4", "Airflow"], 200.0, ["eeg", "eeg", "misc"])
    remember_edges(info, {"C3": (0.1, 100.0), "C4": (0.2, 70.0), "Airflow": (5.0, 10.0)})
    assert recorded(info).amplifier == recorded(info).band == (0.2, 70.0)
    step = ("filter", dict(l_freq=0.5, h_freq=35.0))
    found = recorded(info, [dict(fn=step[0], kwargs=step[1])])
    assert (found.band, found.amplifier) == ((0.5, 35.0), (0.2, 70.0))
    assert recorded(mne.pick_info(info, [0])).amplifier == (0.1, None)  # 100 Hz is no filter
