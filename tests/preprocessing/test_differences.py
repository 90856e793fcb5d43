"""Differences between the recordings of a model and others, and which can be repaired."""

from __future__ import annotations

import pytest

from braindecode_pars.recordings.as_trained import missing_steps
from braindecode_pars.recordings.preprocessing import Difference, Preprocessing, differences

TRAINED = Preprocessing(
    sfreq=100.0,
    band=(0.3, 35.0),
    notch=(20.0,),
    reference="average",
    scale=1.0,
    channels=("C3", "T3", "Cz"),
    window_seconds=30.0,
)


def found(**entries):
    return {each.name: each.repair for each in differences(TRAINED, Preprocessing(**entries))}


def test_unknown_is_no_difference():
    assert differences(TRAINED, Preprocessing()) == []
    assert differences(Preprocessing(), TRAINED) == []
    assert differences(TRAINED, TRAINED) == []


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (dict(sfreq=256.0), dict(sfreq="resample")),
        (dict(sfreq=100.5), {}),
        # wider at one edge or both, or not filtered at all
        (dict(band=(0.1, 35.0)), dict(band="filter")),
        (dict(band=(None, 40.0)), dict(band="filter")),
        (dict(band=(None, None)), dict(band="filter")),
        (dict(band=(0.3, None), sfreq=100.0), dict(band="filter")),
        # narrower at one edge
        (dict(band=(0.5, 35.0)), dict(band=None)),
        (dict(band=(0.1, 30.0)), dict(band=None)),
        (dict(band=(0.5, None)), dict(band=None)),
        (dict(band=(0.301, 35.1)), {}),
        # a rate too low for the band, whatever is known of the filters
        (dict(sfreq=64.0), dict(sfreq="resample", band=None)),
        (dict(sfreq=64.0, band=(0.3, None)), dict(sfreq="resample", band=None)),
        # notch filters
        (dict(notch=()), dict(notch="notch_filter")),
        (dict(notch=(10.0, 20.0)), dict(notch=None)),
        (dict(notch=(20.0, 50.0)), {}),  # 50 Hz is above the band
        # references
        (dict(reference="as recorded"), dict(reference="set_eeg_reference")),
        (dict(reference="Cz", channels=("C3", "T7", "Cz")), dict(reference="set_eeg_reference")),
        (
            dict(reference="as recorded", channels=("C3", "Cz")),
            dict(reference=None, channels=None),
        ),
        # factor, channels, windows
        (dict(scale=1e6), dict(scale="rescale")),
        (dict(channels=("EEG C3-Ref", "Fz", "T7", "CZ")), {}),
        (dict(channels=("Cz", "C3", "T3")), dict(channels="pick")),
        (dict(window_seconds=20.0), dict(window_seconds="cut")),
    ],
)
def test_what_differs_and_its_repair(entries, expected):
    assert found(**entries) == expected


def test_what_was_taken_away_by_a_reference_is_gone():
    as_recorded = Preprocessing(reference="as recorded")
    (difference,) = differences(as_recorded, Preprocessing(reference="average"))
    assert difference == Difference("reference", "as recorded", "average", None)
    mastoids = Preprocessing(reference="A1, A2")
    channels = dict(reference="average", channels=("C3", "A1", "A2"))
    (difference,) = differences(mastoids, Preprocessing(**channels))
    assert difference.repair == "set_eeg_reference"
    (difference,) = differences(mastoids, Preprocessing(reference="average", channels=("C3",)))
    assert difference.repair is None


def test_without_a_low_pass_in_training_resampling_is_enough():
    trained = Preprocessing(sfreq=100.0, band=(0.3, None))
    (difference,) = differences(trained, Preprocessing(sfreq=256.0, band=(0.3, None)))
    assert difference.name == "sfreq"
    names = [each.name for each in differences(trained, Preprocessing(100.0, (0.3, 40.0)))]
    assert names == ["band"]


def test_text_names_both_values():
    (difference,) = differences(TRAINED, Preprocessing(band=(0.5, 40.0)))
    assert str(difference) == "band 0.5-40 Hz, but 0.3-35 Hz in training"
    (_, difference) = differences(TRAINED, Preprocessing(sfreq=64.0))
    assert str(difference) == "band up to 32 Hz, but 0.3-35 Hz in training"


def test_the_same_reference_by_other_names_and_in_another_order_is_no_difference():
    trained = Preprocessing(reference="A1, A2")
    assert differences(trained, Preprocessing(reference="M2, M1")) == []
    assert missing_steps(trained, Preprocessing(reference="M2, M1")).reference is None
    assert differences(trained, Preprocessing(reference="M1"))
