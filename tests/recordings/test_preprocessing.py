"""What was done with recordings: its description, records, steps, and differences."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict

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

from braindecode_pars.windows.preprocessing import (
    Difference,
    Preprocessing,
    agreed,
    counted,
    differences,
    disagreements,
    missing_steps,
    text_of,
)
from braindecode_pars.windows.recorded_steps import Step, recorded, remember_steps, remembered_steps

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


def test_text():
    assert str(COMPLETE) == (
        "sampling rate 100 Hz, band 0.3-35 Hz, notch 50 Hz, reference A1, A2, scale from volts "
        "1e+06, channels C3, C4, window length 30 s"
    )
    assert [text_of("band", band) for band in ((None, None), (None, 40.0), (0.5, None))] == [
        "not filtered",
        "up to 40 Hz",
        "from 0.5 Hz",
    ]
    assert text_of("notch", ()) == "none"
    assert text_of("channels", tuple("abcdefghijkl")) == "a, b, c, d, e, f, g, h, i, j and 2 more"


@pytest.mark.parametrize(
    ("entries", "error", "message"),
    [
        (dict(sfreq=0), ValueError, "Preprocessing: sfreq must be a positive number, or None"),
        (dict(sfreq="100 Hz"), TypeError, "got '100 Hz'"),
        (dict(band=(40, 0.5)), ValueError, r"band must be .* got \(40, 0.5\)"),
        (dict(band=[0.5]), ValueError, "band must be"),
        (dict(band=(0, 40)), ValueError, r"\(0, 40\)"),
        (dict(band=40), TypeError, "band must be"),
        (dict(notch=50.0), TypeError, "notch must be a list of positive numbers"),
        (dict(notch=[float("nan")]), ValueError, "notch must be"),
        (dict(reference=["A1"]), TypeError, "reference must be .*, or None"),
        (dict(scale=-1), ValueError, "scale must be a positive number"),
        (dict(channels="C3"), TypeError, "channels must be .*list of names"),
        (dict(channels=[]), ValueError, "channels must be"),
        (dict(window_seconds=np.inf), ValueError, "window_seconds must be"),
        (dict(highpass=0.5), ValueError, "highpass"),
    ],
)
def test_what_is_refused(entries, error, message):
    with pytest.raises(error, match=message):
        Preprocessing.of(entries)


@pytest.mark.parametrize("given", ["A1,A2", " A1 , A2"])
def test_electrodes_of_a_reference_in_any_spacing(given):
    preprocessing = Preprocessing(reference=given)
    assert preprocessing.reference == "A1, A2"
    taken = recorded(recording().info, [step("set_eeg_reference", ref_channels=["A1", "A2"])])
    assert preprocessing.reference == taken.reference


def recording(sfreq=200.0, **arguments):
    noise = 1e-5 * np.random.default_rng(0).standard_normal((3, 20_000))
    info = mne.create_info(["C3", "C4", "Cz"], sfreq, "eeg")
    return mne.io.RawArray(noise, info, verbose="error")


def step(fn, **kwargs):
    return {"fn": fn, "kwargs": kwargs}


def test_an_info_without_steps_tells_its_rate_and_whether_the_reference_was_changed():
    assert recorded(recording().info) == Preprocessing(sfreq=200.0, reference="as recorded")
    steps = [dict(fn="my_average", kwargs={})]
    assert recorded(recording().info, steps).reference is None  # it may be a reference


def test_the_info_tells_what_was_done():
    raw = recording().filter(0.3, 40.0, verbose="error")
    raw.set_eeg_reference("average", projection=True, verbose="error").apply_proj(verbose="error")
    found = recorded(raw.info)
    assert (found.band, found.reference) == ((0.3, 40.0), "average")
    assert (found.notch, found.scale) == (None, None)  # unknown
    raw.set_eeg_reference(["Cz"], verbose="error")
    assert recorded(raw.info).reference == "changed"  # another one, but not which
    assert recorded(raw.info, [step("filter", l_freq=0.3)]).reference == "changed"


def test_half_the_rate_is_no_filter():
    assert recorded(recording().filter(0.5, None, verbose="error").info).band == (0.5, None)
    assert recorded(recording().filter(None, 30, verbose="error").info).band == (None, 30.0)
    # A filter above half of a later rate has left nothing to filter.
    raw = recording().filter(0.5, 60, verbose="error").resample(100)
    assert recorded(raw.info).band == (0.5, None)


def test_single_precision_of_a_file_is_not_shown(tmp_path):
    file = tmp_path / "one_raw.fif"
    recording().filter(0.3, 40.0, verbose="error").save(file, verbose="error")
    assert recorded(mne.io.read_info(file, verbose="error")).band == (0.3, 40.0)


BAND = step("filter", l_freq=0.5, h_freq=30)
IIR = step("filter", l_freq=4, h_freq=38, method="iir")
AVERAGE, CZ = step("set_eeg_reference", ref_channels="average"), step("pick", picks=["Cz"])
NO_FZ, NO_ECG = (step("drop_channels", ch_names=[name]) for name in ("Fz", "ECG"))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # Steps that were not applied are recorded as well.
        ([CZ], dict(band=(None, None), notch=(), reference="as recorded", scale=1.0)),
        ([step("notch_filter", freqs=np.array([60.0, 50.0, 150.0]))], dict(notch=(50.0, 60.0))),
        ([step("notch_filter", freqs=None)], dict(notch=None)),  # MNE has searched for it
        ([step("rescale", scalings=1e6), step("numpy.multiply", factor=0.5), CZ], dict(scale=5e5)),
        # The narrowest filter counts; neither a band-stop nor a filter of other channels does.
        ([BAND, step("filter", l_freq=0.1, h_freq=60)], dict(band=(0.5, 30.0), filter=None)),
        ([BAND, step("filter", l_freq=61, h_freq=59)], dict(band=(0.5, 30.0))),
        ([BAND, step("filter", l_freq=40)], dict(band=None)),
        ([step("filter", l_freq=0.5, picks="eog")], dict(band=(None, None))),
        ([IIR], dict(filter="iir")),
        ([IIR, step("filter", l_freq=4)], dict(filter=None)),  # both
        # References
        ([step("set_eeg_reference")], dict(reference="average")),
        ([step("set_eeg_reference", ref_channels=["A1", "A2"])], dict(reference="A1, A2")),
        ([step("set_eeg_reference", ref_channels="Cz")], dict(reference="Cz")),
        ([step("set_eeg_reference", ref_channels=[])], dict(reference="as recorded")),
        ([step("set_eeg_reference", ref_channels={"C3": "A2"})], dict(reference=None)),
        # The average of chosen channels is that of their names.
        ([step("pick", picks=["C3", "C4", "Cz"]), AVERAGE], dict(reference="C3, C4, Cz")),
        ([step("pick_channels", ch_names=["Cz", "Fz"]), AVERAGE, CZ], dict(reference="Cz, Fz")),
        ([NO_FZ, AVERAGE], dict(reference="C3, C4, Cz")),
        ([NO_FZ, AVERAGE, CZ], dict(reference=None)),
        ([NO_ECG, AVERAGE], dict(reference="average")),
        ([AVERAGE, NO_ECG], dict(reference="average")),
        ([step("pick", picks=["C3", "ECG"]), AVERAGE, NO_ECG], dict(reference="C3, ECG")),
        ([step("pick", picks=[0, 1, 2]), AVERAGE], dict(reference="C3, C4, Cz")),
        ([step("pick", picks=np.array([0, 1, 2])), AVERAGE, CZ], dict(reference=None)),
        ([step("pick_types", eeg=True, exclude=["Fz"]), AVERAGE], dict(reference="C3, C4, Cz")),
        ([step("pick_types", eeg=True, exclude="bads"), AVERAGE], dict(reference="average")),
        ([step("pick", picks=["eeg"]), step("pick_types"), AVERAGE], dict(reference="average")),
        ([BAND, AVERAGE, step("pick", picks=["C3", "C4", "Cz"])], dict(reference="average")),
    ],
)
def test_what_steps_tell(steps, expected):
    found = recorded(recording().info, steps)
    assert {name: getattr(found, name) for name in expected} == expected


def test_the_rate_after_the_steps_limits_the_band():
    found = recorded(recording().info, [step("filter", l_freq=1, h_freq=60)], sfreq=100.0)
    assert (found.sfreq, found.band) == (100.0, (1.0, None))


@pytest.mark.parametrize(
    "unknown", [step("numpy.<lambda>"), step("apply_function"), step("savgol_filter"), None]
)
def test_behind_a_step_of_unknown_effect_only_what_was_done_is_known(unknown):
    info = recording().info
    assert recorded(info, [unknown]) == Preprocessing(200.0)
    found = recorded(info, [step("filter", l_freq=4, h_freq=38), unknown, step("pick")])
    assert found == Preprocessing(200.0, (4.0, 38.0))


def test_the_average_as_a_projection_counts_when_it_is_applied():
    raw = recording().set_eeg_reference("average", projection=True, verbose="error")
    steps = [step("set_eeg_reference", projection=True)]
    assert recorded(raw.info, steps).reference == "as recorded"
    steps += [step("apply_proj")]
    assert recorded(raw.apply_proj(verbose="error").info, steps).reference == "average"


def test_recorded_filters_count_before_the_header_of_a_file():
    """Readers write the filters of the amplifier into the info; they differ between recordings."""
    raw = recording().filter(0.5, 45.0, verbose="error")
    found = recorded(raw.info, [step("filter", l_freq=0.3, h_freq=None)])
    assert found.band == (0.3, None)
    assert recorded(raw.info, [step("notch_filter", freqs=50)]).band == (0.5, 45.0)
    assert recorded(raw.info, [step("filter", h_freq=30.0)]).band == (0.5, 30.0)


@pytest.mark.parametrize(
    ("names", "types", "reference"),
    [
        (["C3", "C4", "ECG"], ["eeg", "eeg", "ecg"], "average"),
        (["C3", "C4", "ECG"], "eeg", "C3, C4, ECG"),
        (["C3", "C4", "A2-A1"], "eeg", "C3, C4, A2-A1"),
        (["C3-M2", "C4-M2"], "eeg", "average"),
        (["C3-M2", "C4-M1"], "eeg", "C3-M2, C4-M1"),
    ],
)
def test_the_average_is_that_of_all_channels_of_the_type_eeg(names, types, reference):
    info = mne.create_info(names, 200.0, types)
    assert recorded(info, [step("set_eeg_reference")]).reference == reference


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


TRAINED = Preprocessing(
    sfreq=100.0,
    band=(0.3, 35.0),
    notch=(20.0,),
    reference="average",
    scale=1.0,
    channels=("C3", "T3", "Cz"),
    window_seconds=30.0,
)


def repairs(**entries):
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
        (dict(notch=(20.1,)), {}),
        # references
        (dict(reference="as recorded"), dict(reference="set_eeg_reference")),
        (dict(reference="changed"), {}),  # perhaps to the average
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
    assert repairs(**entries) == expected


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


def test_the_same_reference_by_other_names_and_in_another_order_is_no_difference():
    trained = Preprocessing(reference="A1, A2")
    assert differences(trained, Preprocessing(reference="M2, M1")) == []
    assert missing_steps(trained, Preprocessing(reference="M2, M1")).reference is None
    assert differences(trained, Preprocessing(reference="M1"))


ONE = Preprocessing(sfreq=100.0, band=(0.3, 35.0), notch=(50.0,))
OTHER = Preprocessing(sfreq=100.0, band=(0.5, 35.0))


def test_what_differs_or_is_unknown_in_one_is_unknown():
    assert agreed([ONE, OTHER, ONE]) == Preprocessing(sfreq=100.0)
    assert agreed([ONE, ONE]) == ONE
    assert agreed([ONE, None]) == Preprocessing()


def test_only_known_differences_are_named():
    assert disagreements(Counter({ONE: 3, OTHER: 2, None: 1})) == [
        "band 0.3-35 Hz in 3 windows, 0.5-35 Hz in 2 windows"
    ]
    assert disagreements(Counter({ONE: 3, None: 1})) == []
    many = Counter({Preprocessing(notch=(float(f),)): 1 for f in range(1, 7)})
    assert disagreements(many)[0].endswith(", ...")


def test_equal_descriptions_are_counted_together():
    equal = Preprocessing(sfreq=100.0, band=(0.3, 35.0), notch=(50.0,))
    assert counted([ONE, equal, None, OTHER, ONE]) == {ONE: 3, None: 1, OTHER: 1}
