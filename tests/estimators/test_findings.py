"""Findings about a recording, with their warnings."""

from __future__ import annotations

import json
import re
import warnings
from contextlib import contextmanager
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


KNOWN = dict(band=(None, None), notch=[], reference="as recorded", scale=1.0)


def findings_in(raw, clf, *, preprocess=True, **trained):
    clf.preprocessing_ = Preprocessing(**{**KNOWN, **trained})
    findings = recording_findings(prepare_recording(raw, "night", clf, preprocess=preprocess), clf)
    assert json.loads(json.dumps(findings)) == findings
    return findings


@contextmanager
def warned_of(pattern):
    """Expect a warning that matches a pattern; with None, expect no warning."""
    if pattern is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    else:
        with pytest.warns(UserWarning, match=pattern):
            yield


@pytest.mark.parametrize(
    ("wanted", "names", "reference", "pattern", "expected"),
    [
        # What was repaired has no warning.
        (["C3", "O1"], ["C3", "C4"], "as recorded", None, dict(missing_channels=["O1"])),
        (["C3-M2"], ["C3", "M2"], "as recorded", None, {}),
        (["C3", "C4"], ["C3", "C4", "A2-A1"], "average", None, {}),
        (
            *(["C3-M2"], ["C3-M1"], "as recorded", "C3-M1 instead of C3-M2"),
            dict(other_reference={"C3-M2": "C3-M1"}),
        ),
        (
            *(["C3", "C4"], ["C3", "C4", "M1"], "M1, M2"),
            r"\(expected M1, M2\).*: C3 \(.*as recorded\), C4 \(.*as recorded\)\.",
            dict(other_reference={"C3": "C3", "C4": "C4"}),
        ),
        (
            *(["C3", "C4", "O1"], ["C3", "C4"], "average", r"average reference in training.*O1\."),
            dict(missing_channels=["O1"], average_without=["O1"]),
        ),
        # Further channels in the average; C4 was in an average in training
        (
            *(["C3"], ["C3", "C4", "X1", "X2"], "average", "X1, X2"),
            dict(average_with=["X1", "X2"]),
        ),
        (
            *(["C3", "C4"], ["C3", "C4", "M1", "Fz"], "average", "Fz, M1"),
            dict(average_with=["Fz", "M1"]),
        ),
    ],
)
def test_channels_and_their_reference(wanted, names, reference, pattern, expected):
    with warned_of(pattern):
        findings = findings_in(raw_of(names, sfreq=128.0), model(wanted), reference=reference)
    assert findings == expected


@pytest.mark.parametrize(
    ("classes", "names", "absent"),
    [
        ([0, 1, 2], {0: "Sleep stage W", 1: "Sleep stage 3", 2: "Sleep stage 4"}, "N1 N2 R"),
        (["W", "light", "deep", "REM"], None, ""),
        (["sleep", "wake"], None, ""),
        (["light", "R", "NREM", "?"], None, "W"),
        ([3, 4], None, ""),
    ],
)
def test_stages_that_cannot_be_predicted_are_a_finding(classes, names, absent):
    clf = model(["C3"], classes_=np.array(classes), class_names_=names)
    expected = {"absent_stages": absent.split()} if absent else {}
    message = ".*".join(
        [*map(re.escape, map(str, (names or {}).values() or classes)), *absent.split()]
    )
    with warned_of(message if absent else None):
        assert findings_in(raw_of(["C3"]), clf) == expected


TRAINED_ON = EncoderCard(
    subjects=["P01", 2, "physionet_mi:23"],
    finetune_subjects=["study:Berta", "ucddb:ucddb022", "mine:41"],
)


@pytest.mark.parametrize(
    ("file", "his_id", "subject"),
    [
        ("p01/day 2/night_raw.fif", None, "p01"),
        ("sub-002_task-rest_eeg.fif", None, "002"),
        ("new/P01_2 rest.fif", None, "P01"),
        ("new/rest_P01.fif", None, None),
        (None, "study:berta", "study:berta"),
        ("P02/night_raw.fif", "X", None),
        (None, "23", None),  # that of another corpus
        ("new/S023R04.edf", None, "physionet_mi:S023"),
        ("new/ucddb022.edf", None, "ucddb:ucddb022"),
        ("s41/night_raw.fif", None, "s41"),  # labels were of this number
    ],
)
def test_a_subject_of_the_training(file, his_id, subject, tmp_path):
    """By the name in the recording or in its path, as test subjects are compared with cards."""
    raw, clf = raw_of(["C3"]), model(["C3"], encoder_card_=TRAINED_ON)
    clf.preprocessing_ = Preprocessing(**KNOWN)
    raw.info["subject_info"] = None if his_id is None else {"his_id": his_id}
    source = raw if file is None else tmp_path / file
    recording = prepare_recording(raw, "night", clf)
    with warned_of(f"subject {subject!r}" if subject else None):
        findings = recording_findings(recording, clf, source)
    assert findings.get("subject_in_training") == subject


def test_a_narrower_band_cannot_be_repaired():
    raw = raw_of(["C3"]).filter(0.5, 20.0, verbose="error")
    with pytest.warns(UserWarning, match=r"0\.5-20 Hz"):
        findings = findings_in(raw, model(["C3"]), band=(0.5, 35.0))
    assert findings == {
        "preprocessing_mismatch": {"band": "band 0.5-20 Hz, but 0.5-35 Hz in training"}
    }
    assert findings_in(raw, model(["C3"]), band=(0.5, 15.0)) == {}  # predict_raw filters it
    with pytest.warns(UserWarning, match="preprocess="):
        findings = findings_in(raw, model(["C3"]), preprocess=False, band=(0.5, 15.0))
    assert set(findings) == {"preprocessing_mismatch"}


def test_flat_channels():
    raw = raw_of(["C3", "C4", "O1"], seconds=200.0)
    raw._data[0, 2000:5000] = 0.25
    raw._data[1] = 0.0
    raw._data[2, 100:250] = 0.25
    with pytest.warns(UserWarning, match=r"flat .*of 200 s\): C3: 30, C4: 200"):
        findings = findings_in(raw, model(["C3", "C4", "O1"]), band=(0.5, 30.0))
    assert findings == {"flat_channels": {"C3": 30.0, "C4": 200.0}}
    with warned_of(None):  # a second or so is no reason to doubt
        assert findings_in(raw, model(["O1"])) == {}


def test_clipped_channels():
    raw = raw_of(["C3", "C4"])
    drift = raw._data[0].cumsum()
    raw._data[0] = drift.clip(*np.quantile(drift, [0.1, 0.95]))
    with pytest.warns(UserWarning, match=r"clipped .*of 100 s\): C3: 1\d"):
        findings = findings_in(raw, model(["C3", "C4"]), reference="average")
    assert findings["clipped_channels"]["C3"] == pytest.approx(15.0, abs=1.0)
    assert set(findings["clipped_channels"]) == {"C3"}  # though the reference has no clipped sample


@pytest.mark.parametrize("scale", [1e-6, 0.21, 5.9, 6.1])
def test_unusual_amplitudes(scale):
    clf = model(["C3", "C4"], amplitudes_=AmplitudeRange(1.0, 1.2))
    raw = raw_of(["C3", "C4"])
    raw._data[0] *= scale
    is_unusual = not 0.2 < scale < 6
    with warned_of(r"\(1 to 1\): C3: " if is_unusual else None):
        findings = findings_in(raw, clf)
    if is_unusual:
        expected = {"C3": pytest.approx(scale, rel=0.05)}
        assert findings == {"unusual_amplitudes": {"found": expected, "trained": [1.0, 1.2]}}
    else:
        assert findings == {}


def test_the_factor_of_a_model_is_applied_before_amplitudes_are_compared():
    clf = model(["C3"], amplitudes_=AmplitudeRange(10.0, 30.0))
    assert findings_in(raw_of(["C3"], scale=2e-5), clf, scale=1e6) == {}


@pytest.mark.parametrize("to", [["O1"], "average"])
@pytest.mark.parametrize("trained_on_changed", [False, True])
def test_a_reference_that_only_one_side_has_changed_is_a_warning(to, trained_on_changed):
    """MNE tells that the reference was changed, also of a file; not to what."""
    plain = raw_of(["C3", "C4", "O1"])
    changed = plain.copy().set_eeg_reference(to, verbose="error")
    if to != "average":
        changed.drop_channels(["O1"])
    reference = recorded((changed if trained_on_changed else plain).info).reference
    assert reference == ("changed" if trained_on_changed else "as recorded")
    other, same = (plain, changed) if trained_on_changed else (changed, plain)
    with pytest.warns(UserWarning, match="reference .* in training.*(Re-ref|original)"):
        findings = findings_in(other, model(["C3", "C4"]), reference=reference)
    assert list(findings["preprocessing_mismatch"]) == ["reference"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the amplitude of the reference itself is zero
        findings = findings_in(same, model(["C3", "C4"]), reference=reference)
    assert "preprocessing_mismatch" not in findings


def test_an_average_of_which_channels_were_dropped_is_another_average():
    raw = raw_of(["C3", "C4", "O1", "O2"]).set_eeg_reference("average", verbose="error")
    assert findings_in(raw, model(["C3", "C4"]), reference="average") == {}
    with (
        pytest.warns(UserWarning, match="reference changed, but average in training"),
        pytest.warns(UserWarning, match="average reference.*: O2"),
    ):
        findings_in(raw.drop_channels(["O1"]), model(["C3", "C4"]), reference="average")
