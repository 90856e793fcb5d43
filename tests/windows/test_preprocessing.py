"""What was done to recordings: its description, how it is read, and how two of them differ."""

from __future__ import annotations

import json
from dataclasses import asdict

import mne
import numpy as np
import pytest
from braindecode.preprocessing import (
    NotchFilter,
    Preprocessor,
    Rescale,
    SetEEGReference,
)
from numpy import multiply

from braindecode_pars.windows.preprocessing import (
    Preprocessing,
    agreed,
    differences,
)
from braindecode_pars.windows.recorded_steps import recorded, remember_steps, remembered_steps

COMPLETE = Preprocessing(
    sfreq=100.0,
    band=(0.3, 35.0),
    notch=(50.0,),
    reference="A1, A2",
    scale=1e6,
    channels=("C3", "C4"),
    window_seconds=30.0,
)


def test_json_and_back():
    assert Preprocessing.of(json.loads(json.dumps(COMPLETE.known()))) == COMPLETE
    assert Preprocessing.of(json.loads(json.dumps(asdict(COMPLETE)))) == COMPLETE
    assert Preprocessing.of(None) == Preprocessing()
    assert Preprocessing.of(COMPLETE) is COMPLETE


@pytest.mark.parametrize(
    ("entry", "value", "error"),
    [
        ("sfreq", 0, ValueError),
        ("band", (40, 0.5), ValueError),
        ("channels", [], ValueError),
        ("highpass", 0.5, ValueError),
    ],
)
def test_what_is_refused(entry, value, error):
    with pytest.raises(error, match=entry):
        Preprocessing.of({entry: value})


# Reading ------------------------------------------------------------------------------------------


def recording(sfreq=200.0):
    noise = 1e-5 * np.random.default_rng(0).standard_normal((3, 20_000))
    info = mne.create_info(["C3", "C4", "Cz"], sfreq, "eeg")
    return mne.io.RawArray(noise, info, verbose="error")


@pytest.fixture(scope="module")
def info():
    return recording().info


def step(fn, **kwargs):
    return {"fn": fn, "kwargs": kwargs}


def entries_of(record, names):
    return {name: getattr(record, name) for name in names}


def test_an_info_without_steps_tells_its_rate_and_whether_the_reference_was_changed(info):
    assert recorded(info) == Preprocessing(sfreq=200.0, reference="as recorded")
    steps = [dict(fn="my_average", kwargs={})]
    assert recorded(info, steps).reference is None  # it may be a reference


def test_a_reference_in_the_info():
    raw = recording().set_eeg_reference("average", projection=True, verbose="error")
    steps = [step("set_eeg_reference", projection=True)]
    assert recorded(raw.info, steps).reference == "as recorded"  # it is not applied yet
    raw.apply_proj(verbose="error")
    assert recorded(raw.info, [*steps, step("apply_proj")]).reference == "average"
    assert recorded(raw.info).reference == "average"
    raw.set_eeg_reference(["Cz"], verbose="error")
    assert recorded(raw.info).reference == "changed"  # another one, but not which
    assert recorded(raw.info, [step("filter", l_freq=0.3)]).reference == "changed"


@pytest.mark.parametrize(
    ("edges", "steps", "sfreq", "band"),
    [
        ((0.3, 40.0), [], 200.0, (0.3, 40.0)),
        # Half the rate is no filter, and a filter above half of a later rate has left nothing.
        ((0.5, 60), [], 100.0, (0.5, None)),
        ((None, None), [step("filter", l_freq=1, h_freq=60)], 100.0, (1.0, None)),
        # Recorded filters count before the info, into which readers write those of the amplifier.
        ((0.5, 45.0), [step("filter", l_freq=0.3, h_freq=None)], 200.0, (0.3, None)),
        ((0.5, 45.0), [step("filter", h_freq=30.0)], 200.0, (0.5, 30.0)),
    ],
)
def test_the_band_of_an_info_and_of_steps(edges, steps, sfreq, band):
    raw = recording()
    if edges != (None, None):
        raw.filter(*edges, verbose="error")
    result = recorded(raw.info, steps, sfreq=sfreq)
    assert (result.sfreq, result.band) == (sfreq, band)
    if not steps:
        assert (result.notch, result.scale) == (None, None)  # unknown


BAND = step("filter", l_freq=0.5, h_freq=30)
IIR = step("filter", l_freq=4, h_freq=38, method="iir")
AVERAGE, CZ = step("set_eeg_reference", ref_channels="average"), step("pick", picks=["Cz"])
NO_FZ = step("drop_channels", ch_names=["Fz"])


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # Steps that were not applied are recorded as well.
        ([CZ], dict(band=(None, None), notch=(), reference="as recorded", scale=1.0)),
        ([step("notch_filter", freqs=np.array([60.0, 50.0, 150.0]))], dict(notch=(50.0, 60.0))),
        ([step("notch_filter", freqs=[50, 100])], dict(notch=(50.0,))),  # 100 Hz is half the rate
        ([step("rescale", scalings=1e6), step("numpy.multiply", factor=0.5), CZ], dict(scale=5e5)),
        # The narrowest filter counts; neither a band-stop nor a filter of other channels does.
        ([BAND, step("filter", l_freq=0.1, h_freq=60)], dict(band=(0.5, 30.0), filter=None)),
        ([BAND, step("filter", l_freq=40)], dict(band=None)),
        ([IIR], dict(filter="iir")),
        ([IIR, step("filter", l_freq=4)], dict(filter=None)),  # both
        # References
        ([step("set_eeg_reference")], dict(reference="average")),
        ([AVERAGE, CZ], dict(reference="average")),
        ([AVERAGE, step("set_eeg_reference", ref_channels=["Cz"])], dict(reference="Cz")),
        ([step("set_eeg_reference", ref_channels={"C3": "A2"})], dict(reference=None)),
        # The average of chosen channels is that of their names.
        ([step("pick", picks=["C3", "C4", "Cz"]), AVERAGE], dict(reference="C3, C4, Cz")),
        ([NO_FZ, AVERAGE], dict(reference="C3, C4, Cz")),
        ([NO_FZ, AVERAGE, CZ], dict(reference=None)),
        ([step("pick", picks=np.array([0, 1, 2])), AVERAGE, CZ], dict(reference=None)),
        ([step("pick_types", eeg=True, exclude=["Fz"]), AVERAGE], dict(reference="C3, C4, Cz")),
    ],
)
def test_what_steps_tell(info, steps, expected):
    assert entries_of(recorded(info, steps), expected) == expected


def own_function(signal, factor=1.0):
    return signal * factor


@pytest.mark.parametrize(
    ("preprocessor", "expected"),
    [
        (Preprocessor("filter", apply_on_array=False, l_freq=1, h_freq=40), dict(band=(1.0, 40.0))),
        (NotchFilter(freqs=50), dict(notch=(50.0,))),
        (SetEEGReference(ref_channels="average"), dict(reference="average")),
        (Rescale(scalings={"eeg": 1e3, "eog": 1.0}), dict(scale=1e3)),
        (Preprocessor(multiply, factor=1e6), dict(scale=1e6)),
    ],
)
def test_steps_of_braindecode(info, preprocessor, expected):
    nothing = Preprocessing(200.0, (None, None), (), "as recorded", 1.0)
    expected = {**asdict(nothing), **expected}
    assert asdict(recorded(info, [preprocessor.serialize()])) == expected


@pytest.mark.parametrize(
    "unknown",
    [
        *(None, ("fn", "kwargs", 3), {"fn": 3, "kwargs": 4}, {}, step("apply_function")),
        Rescale(scalings={"eog": 1e3}).serialize(),
        Preprocessor(own_function, factor=2.0).serialize(),
    ],
)
def test_behind_a_step_of_unknown_effect_only_what_was_done_is_known(info, unknown):
    assert recorded(info, [unknown]) == Preprocessing(200.0)
    result = recorded(info, [step("filter", l_freq=4, h_freq=38), unknown, step("pick")])
    assert result == Preprocessing(200.0, (4.0, 38.0))


@pytest.mark.parametrize(
    ("names", "types", "reference"),
    [
        (["C3", "C4", "ECG"], ["eeg", "eeg", "ecg"], "average"),
        (["C3", "C4", "ECG"], "eeg", "C3, C4, ECG"),
        (["C3-M2", "C4-M2"], "eeg", "average"),
    ],
)
def test_the_average_is_that_of_all_channels_of_the_type_eeg(names, types, reference):
    info = mne.create_info(names, 200.0, types)
    assert recorded(info, [step("set_eeg_reference")]).reference == reference


def test_steps_stay_in_copies_picks_and_epochs(info):
    raw = recording()
    remember_steps(raw, [("filter", dict(l_freq=0.5))])
    remember_steps(raw, [("notch_filter", dict(freqs=50.0))])
    epochs = mne.make_fixed_length_epochs(raw.copy().pick(["C4"]), 2.0, verbose="error")
    assert remembered_steps(epochs.info) == [
        ("filter", {"l_freq": 0.5}),
        ("notch_filter", {"freqs": 50.0}),
    ]
    assert remembered_steps(info) == []


# Comparison ---------------------------------------------------------------------------------------

TRAINED = dict(
    sfreq=100.0,
    band=(0.3, 35.0),
    notch=(20.0,),
    reference="average",
    scale=1.0,
    channels=("C3", "T3", "Cz"),
    window_seconds=30.0,
)
MASTOIDS, AS_RECORDED, CHANGED = (
    dict(reference=name) for name in ("A1, A2", "as recorded", "changed")
)
BIPOLAR = dict(channels=("C3-C4",))
NO_LOW_PASS = dict(sfreq=100.0, band=(0.3, None))
AMPLIFIED = dict(sfreq=200.0, band=(0.3, 75.0), amplifier=(0.5, 80.0))


@pytest.mark.parametrize(
    ("trained", "entries", "expected"),
    [
        # What is unknown is no difference.
        (TRAINED, {}, {}),
        ({}, TRAINED, {}),
        # sampling rate
        (TRAINED, dict(sfreq=256.0), dict(sfreq="resample")),
        # a band that is wider at one edge or both, or not filtered at all
        (TRAINED, dict(band=(0.1, 35.0)), dict(band="filter")),
        (TRAINED, dict(band=(None, 40.0)), dict(band="filter")),
        # narrower at one edge
        (TRAINED, dict(band=(0.5, 35.0)), dict(band=None)),
        # a rate too low for the band, whatever is known of the filters
        (TRAINED, dict(sfreq=64.0), dict(sfreq="resample", band=None)),
        # Without a low-pass filter in training, resampling is enough.
        (NO_LOW_PASS, dict(sfreq=256.0, band=(0.3, None)), dict(sfreq="resample")),
        # What the amplifiers of the training removed is no difference.
        (AMPLIFIED, dict(sfreq=200.0, band=(0.5, 80.0)), dict(band="filter")),
        (AMPLIFIED, dict(sfreq=200.0, band=(1.0, 80.0)), dict(band=None)),
        # notch filters
        (TRAINED, dict(notch=()), dict(notch="notch_filter")),
        (TRAINED, dict(notch=(20.0, 50.0)), {}),  # 50 Hz is above the band
        (dict(notch=(50.0, 60.0), sfreq=110.0), dict(notch=(50.0,)), {}),
        # references
        (TRAINED, AS_RECORDED, dict(reference="set_eeg_reference")),
        (TRAINED, dict(AS_RECORDED, channels=("C3", "Cz")), dict(reference=None, channels=None)),
        (MASTOIDS, dict(TRAINED, channels=("C3", "A1", "A2")), dict(reference="set_eeg_reference")),
        (MASTOIDS, dict(reference="M2, M1"), {}),
        (CHANGED, MASTOIDS, {}),
        (AS_RECORDED, CHANGED, dict(reference=None)),
        (dict(AS_RECORDED, **BIPOLAR), CHANGED, {}),  # the names tell the reference
        (AS_RECORDED, dict(CHANGED, **BIPOLAR), {}),
        # factor, channels, windows
        (TRAINED, dict(scale=1e6), dict(scale="rescale")),
        (TRAINED, dict(channels=("EEG C3-Ref", "Fz", "T7", "CZ")), {}),
        (TRAINED, dict(channels=("Cz", "C3", "T3")), dict(channels="pick")),
    ],
)
def test_what_differs_and_its_repair(trained, entries, expected):
    result = differences(Preprocessing(**trained), Preprocessing(**entries))
    assert {difference.name: difference.repair for difference in result} == expected
    for difference in result:
        # The edge of a band may be half of the sampling rate.
        if difference.name != "band":
            assert difference.expected == trained[difference.name]
            assert difference.actual == entries[difference.name]


def test_the_band_of_a_difference_ends_at_half_the_sampling_rate():
    (_, band) = differences(Preprocessing(**TRAINED), Preprocessing(sfreq=64.0))
    assert (band.expected, band.actual) == ((0.3, 35.0), (None, 32.0))
    (band,) = differences(Preprocessing(**NO_LOW_PASS), Preprocessing(100.0, (0.3, 40.0)))
    assert (band.expected, band.actual) == ((0.3, 50.0), (0.3, 40.0))


ONE = Preprocessing(sfreq=100.0, band=(0.3, 35.0), notch=(50.0,))
OTHER = Preprocessing(sfreq=100.0, band=(0.5, 35.0))


def test_what_differs_or_is_unknown_in_one_is_unknown():
    assert agreed([ONE, OTHER, ONE]) == Preprocessing(sfreq=100.0)
    assert agreed([ONE, ONE]) == ONE
    assert agreed([ONE, Preprocessing()]) == Preprocessing()
