"""Findings about a recording, with their warnings."""

from __future__ import annotations

import json
import re
import warnings
from contextlib import nullcontext
from types import SimpleNamespace

import mne
import numpy as np
import pytest

from braindecode_pars.predictions.recording import (
    prepare_recording,
    recording_findings,
)
from braindecode_pars.pretrained import EncoderCard
from braindecode_pars.windows.amplitudes import AmplitudeRange
from braindecode_pars.windows.preprocessing import Preprocessing
from braindecode_pars.windows.recorded_steps import recorded


def model(names, **attributes):
    """What the findings look at of a fitted classifier."""
    chs_info = mne.create_info(names, 100.0, "eeg")["chs"] if names else None
    own = dict(chs_info_=chs_info, n_chans_=len(names or "123"), n_times_=500, sfreq_=100.0)
    own["amplitudes_"] = None
    return SimpleNamespace(**{**own, **attributes})


def raw_of(names, sfreq=100.0, seconds=100.0, scale=1.0):
    samples = scale * np.random.default_rng(0).standard_normal((len(names), round(seconds * sfreq)))
    return mne.io.RawArray(samples, mne.create_info(names, sfreq, "eeg"), verbose="error")


def findings_in(raw, clf, *, preprocess=True, **trained):
    clf.preprocessing_ = Preprocessing(**{**KNOWN, **trained})
    found = recording_findings(prepare_recording(raw, "night", clf, preprocess=preprocess), clf)
    assert json.loads(json.dumps(found)) == found
    return found


KNOWN = dict(band=(None, None), notch=[], reference="as recorded", scale=1.0)


def findings(wanted, names, sfreq=100.0, **trained):
    return findings_in(raw_of(names, sfreq), model(wanted), **trained)


@pytest.mark.parametrize(
    ("wanted", "names", "trained", "expected"),
    [
        (["C3"], ["C3", "C4"], {}, {}),
        (["C3", "O1"], ["C3", "C4"], {}, {"missing_channels": ["O1"]}),
        (["C3-M2"], ["C3", "M2"], {}, {}),
        (["C3"], ["C3", "C4"], {"reference": "average"}, {}),
        (["C3", "C4"], ["C3", "C4", "A2-A1"], {"reference": "average"}, {}),
    ],
)
def test_what_was_repaired_has_no_warning(wanted, names, trained, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert findings(wanted, names, sfreq=128.0, **trained) == expected


@pytest.mark.parametrize(
    ("wanted", "names", "reference", "warning", "others"),
    [
        (["C3-M2"], ["C3-M1"], "as recorded", "C3-M1 instead of C3-M2", {"C3-M2": "C3-M1"}),
        (
            ["C3", "C4"],
            ["C3", "C4", "M1"],
            "M1, M2",
            r"\(expected M1, M2\).*: C3 \(.*as recorded\), C4 \(.*as recorded\)\.",
            {"C3": "C3", "C4": "C4"},
        ),
        (  # the average needs one reference of all channels
            ["C3", "C4"],
            ["C3-M2", "O1-M2", "C4-M1", "O2-M1"],
            "average",
            "average",
            {"C3": "C3-M2", "C4": "C4-M1"},
        ),
    ],
)
def test_what_cannot_be_repaired_is_a_warning(wanted, names, reference, warning, others):
    with pytest.warns(UserWarning, match=warning):
        found = findings(wanted, names, reference=reference)
    assert found["other_reference"] == others
    assert reference == "average" or set(found) == {"other_reference"}


@pytest.mark.parametrize(
    ("classes", "names", "absent"),
    [
        ([0, 1, 2], {0: "Sleep stage W", 1: "Sleep stage 3", 2: "Sleep stage 4"}, "N1 N2 R"),
        (["deep", "wake"], None, "N1 N2 R"),
        (["N1", "N2", "N3", "W"], None, "R"),
        (["N1", "N2", "N3", "R", "W"], None, ""),
        (["W", "light", "deep", "REM"], None, ""),
        (["sleep", "wake"], None, ""),
        (["light", "R", "NREM", "?"], None, "W"),
        (["left", "right"], None, ""),
        ([3, 4], None, ""),
    ],
)
def test_stages_that_cannot_be_predicted_are_a_finding(classes, names, absent):
    clf = model(["C3"], classes_=np.array(classes), class_names_=names)
    expected = {"absent_stages": absent.split()} if absent else {}
    message = ".*".join(
        [*map(re.escape, map(str, (names or {}).values() or classes)), *absent.split()]
    )
    with pytest.warns(UserWarning, match=message) if absent else nullcontext():
        assert findings_in(raw_of(["C3"]), clf) == expected


TRAINED_ON = EncoderCard(
    subjects=["P01", 2, "physionet_mi:23"],
    finetune_subjects=["study:Berta", "ucddb:ucddb022", "mine:41"],
)


@pytest.mark.parametrize(
    ("file", "his_id", "found"),
    [
        ("data/p01/night_raw.fif", None, "p01"),
        ("p01/day 2/night_raw.fif", None, "p01"),
        ("sub-002_task-rest_eeg.fif", None, "002"),
        ("Berta.fif", None, "Berta"),
        ("new/P01_2 rest.fif", None, "P01"),
        ("new/rest_P01.fif", None, None),
        ("night_raw.fif", "sub-02", "sub-02"),
        (None, "study:berta", "study:berta"),
        ("P02/night_raw.fif", "X", None),
        (None, "23", None),  # that of another corpus
        ("new/S023R04.edf", None, "physionet_mi:S023"),
        ("new/ucddb022.edf", None, "ucddb:ucddb022"),
        ("ucddb022 second night.fif", None, "ucddb022"),
        ("s41/night_raw.fif", None, "s41"),  # labels were of this number
        ("s22/night_raw.fif", None, "s22"),
        (None, None, None),
    ],
)
def test_a_subject_of_the_training(file, his_id, found, tmp_path):
    """By the name in the recording or in its path, as test subjects are compared with cards."""
    raw, clf = raw_of(["C3"]), model(["C3"], encoder_card_=TRAINED_ON)
    clf.preprocessing_ = Preprocessing(**KNOWN)
    raw.info["subject_info"] = None if his_id is None else {"his_id": his_id}
    given = raw if file is None else tmp_path / file
    recording = prepare_recording(raw, "night", clf)
    caught = pytest.warns(UserWarning, match=f"subject {found!r}")
    with caught if found else nullcontext():
        findings = recording_findings(recording, clf, given)
    assert findings.get("subject_in_training") == found


@pytest.mark.parametrize("is_done", [False, True])
def test_an_average_without_channels_of_the_training_is_a_warning(is_done):
    raw = raw_of(["C3", "C4"])
    if is_done:
        raw.set_eeg_reference("average", verbose="error")
    with pytest.warns(UserWarning, match=r"average reference.*training: O1\."):
        found = findings_in(raw, model(["C3", "C4", "O1"]), reference="average")
    assert found == {"missing_channels": ["O1"], "average_without": ["O1"]}


@pytest.mark.parametrize(
    ("wanted", "names", "found"),
    [
        (["C3", "C4"], ["C3", "C4", "X1"], ["X1"]),
        (["C3"], ["C3", "C4", "X1", "X2"], ["X1", "X2"]),  # C4 was in an average in training
        (["C3", "C4"], ["C3", "C4", "M1", "Fz"], ["Fz", "M1"]),
        (["C3", "C4"], ["C3", "C4"], []),
    ],
)
def test_further_channels_in_the_average_are_a_warning(wanted, names, found):
    with pytest.warns(UserWarning, match=", ".join(found)) if found else nullcontext():
        findings_of_average = findings(wanted, names, reference="average")
    assert findings_of_average.get("average_with", []) == found


def test_a_second_without_a_signal_is_no_reason_to_doubt_a_short_recording():
    raw = raw_of(["C3", "C4"], seconds=60.0)
    raw._data[:, 300:410] = 0.25
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = findings_in(raw, model(["C3", "C4"]))
    assert found == {}


def test_a_narrower_band_cannot_be_repaired():
    raw = raw_of(["C3"]).filter(0.5, 20.0, verbose="error")
    with pytest.warns(UserWarning, match=r"0.5-20 Hz"):
        found = findings_in(raw, model(["C3"]), band=(0.5, 35.0))
    assert found == {
        "preprocessing_mismatch": {"band": "band 0.5-20 Hz, but 0.5-35 Hz in training"}
    }
    assert findings_in(raw, model(["C3"]), band=(0.5, 15.0)) == {}  # predict_raw filters it


def test_without_preprocessing_everything_that_differs_is_found():
    raw = raw_of(["C3"]).filter(0.5, 20.0, verbose="error")
    with pytest.warns(UserWarning, match="preprocess="):
        found = findings_in(raw, model(["C3"]), preprocess=False, band=(0.5, 15.0))
    assert set(found) == {"preprocessing_mismatch"}


def test_flat_channels():
    raw = raw_of(["C3", "C4", "O1"], seconds=200.0)
    raw._data[0, 2000:5000] = 0.25
    raw._data[1] = 0.0
    raw._data[2, 100:250] = 0.25
    with pytest.warns(UserWarning, match="flat: C3 for 30 of 200 s, C4 for 200 of 200 s"):
        found = findings_in(raw, model(["C3", "C4", "O1"]), band=(0.5, 30.0))
    assert found == {"flat_channels": {"C3": 30.0, "C4": 200.0}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # 1.5 of 200 s is no reason to doubt
        assert findings_in(raw, model(["O1"])) == {}


def test_a_channel_that_is_zero_throughout_may_be_the_reference():
    """Recordings against C3: a difference with it is right."""
    raw = raw_of(["C3", "C4", "Cz"])
    raw._data[0] = 0.0
    with pytest.warns(UserWarning, match="flat: C3 .* may be the reference"):
        found = findings_in(raw, model(["C4-C3"]))
    assert found == {"flat_channels": {"C3": 100.0}}


def test_a_channel_of_another_kind_with_the_type_eeg_is_not_used_with_a_warning():
    """Where the model does not name its channels, the rule of fit decides."""
    with pytest.warns(UserWarning, match="^ECG: "):
        found = findings(None, ["C3", "C4", "ECG", "O1"])
    assert found == {}


def test_clipped_channels():
    raw = raw_of(["C3", "C4"])
    drift = raw._data[0].cumsum()
    raw._data[0] = drift.clip(*np.quantile(drift, [0.1, 0.95]))
    with pytest.warns(UserWarning, match=r"clipped: C3 for 1\d of 100 s"):
        found = findings_in(raw, model(["C3", "C4"]), reference="average")
    assert found["clipped_channels"]["C3"] == pytest.approx(15.0, abs=1.0)
    assert set(found["clipped_channels"]) == {"C3"}  # though the reference has no clipped sample


@pytest.mark.parametrize("scale", [1e-6, 0.15, 8.0, 1e6])
def test_unusual_amplitudes(scale):
    trained = AmplitudeRange(1.0, 1.2)
    raw = raw_of(["C3", "C4"])
    raw._data[0] *= scale
    with pytest.warns(UserWarning, match=r"\(1 to 1\): C3 "):
        found = findings_in(raw, model(["C3", "C4"], amplitudes_=trained))
    ((name, value),) = found["unusual_amplitudes"]["found"].items()
    assert name == "C3"
    assert value == pytest.approx(scale, rel=0.05)
    assert found["unusual_amplitudes"]["trained"] == [1.0, 1.2]


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_usual_amplitudes(scale):
    clf = model(["C3"], amplitudes_=AmplitudeRange(1.0, 1.2))
    assert findings_in(raw_of(["C3"], scale=scale), clf) == {}


@pytest.mark.parametrize(("amplitude", "is_unusual"), [(10.0, True), (9.9, False), (0.25, True)])
def test_a_factor_of_five_is_unusual(amplitude, is_unusual):
    raw = raw_of(["C3", "C4"])
    raw._data[0] = amplitude * np.tile([1, -1], raw.n_times // 2)
    clf = model(["C3", "C4"], amplitudes_=AmplitudeRange(1.25, 2.0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = findings_in(raw, clf)
    assert ("unusual_amplitudes" in found) == is_unusual == bool(caught)


def test_the_factor_of_a_model_is_applied_before_amplitudes_are_compared():
    clf = model(["C3"], amplitudes_=AmplitudeRange(10.0, 30.0))
    assert findings_in(raw_of(["C3"], scale=2e-5), clf, scale=1e6) == {}


def test_what_is_unknown_of_the_training_is_no_finding():
    assert findings(["C3"], ["C3"], band=None, notch=None, scale=None) == {}


def test_a_recording_that_was_referenced_before_is_a_warning():
    raw = raw_of(["C3", "C4", "O1"]).set_eeg_reference("average", verbose="error")
    with pytest.warns(UserWarning, match="reference"):
        assert "reference" in findings_in(raw, model(["C3"]))["preprocessing_mismatch"]
    assert findings_in(raw, model(["C3"]), reference="average") == {}  # the same


@pytest.mark.parametrize("to", [["O1"], "average", []])
@pytest.mark.parametrize("trained_on_changed", [False, True])
def test_a_reference_that_only_one_side_has_changed_is_a_warning(to, trained_on_changed):
    """MNE tells that the reference was changed, also of a file; not to what."""
    plain = raw_of(["C3", "C4", "O1"])
    changed = plain.copy().set_eeg_reference(to, verbose="error")
    if to != "average":
        changed.drop_channels(["O1"])
    told = recorded((changed if trained_on_changed else plain).info)
    assert told.reference == ("changed" if trained_on_changed else "as recorded")
    trained = dict(KNOWN, reference=told.reference)
    found, same = (plain, changed) if trained_on_changed else (changed, plain)
    with pytest.warns(UserWarning, match="reference .* in training.*(Re-ref|original)"):
        got = findings_in(found, model(["C3", "C4"]), **trained)
    assert list(got["preprocessing_mismatch"]) == ["reference"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the amplitude of the reference itself is zero
        assert "preprocessing_mismatch" not in findings_in(same, model(["C3", "C4"]), **trained)


def test_bipolar_channels_tell_their_reference_themselves():
    """MNE marks them as re-referenced; computed from two channels, they are the same."""
    plain = raw_of(["C3", "C4", "O1"])
    bipolar = mne.set_bipolar_reference(plain, "C3", "C4", "C3-C4", verbose="error")
    names = ["C3-C4"]
    for raw, trained in ((plain, recorded(bipolar.info)), (bipolar, recorded(plain.info))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = findings_in(raw, model(names), reference=trained.reference, channels=names)
        assert "preprocessing_mismatch" not in found


def test_an_average_of_which_channels_were_dropped_is_another_average():
    raw = raw_of(["C3", "C4", "O1", "O2"]).set_eeg_reference("average", verbose="error")
    assert findings_in(raw, model(["C3", "C4"]), reference="average") == {}
    with (
        pytest.warns(UserWarning, match="reference changed, but average in training"),
        pytest.warns(UserWarning, match="average reference.*: O2"),
    ):
        findings_in(raw.drop_channels(["O1"]), model(["C3", "C4"]), reference="average")
