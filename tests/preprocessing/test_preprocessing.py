"""The description of the preprocessing of recordings."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, asdict

import mne
import numpy as np
import pytest

from braindecode_pars.recordings.preprocessing import Preprocessing, recorded, text_of

COMPLETE = Preprocessing(
    sfreq=100.0,
    band=(0.3, 35.0),
    notch=(50.0,),
    reference="A1, A2",
    scale=1e6,
    channels=("C3", "C4"),
    window_seconds=30.0,
)


def test_everything_is_unknown_by_default():
    assert set(asdict(Preprocessing()).values()) == {None}
    assert str(Preprocessing()) == "unknown"


def test_it_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Preprocessing(sfreq=100.0).sfreq = 200.0


def test_json_and_back():
    assert Preprocessing.of(json.loads(json.dumps(COMPLETE.known()))) == COMPLETE
    assert Preprocessing.of(json.loads(json.dumps(asdict(COMPLETE)))) == COMPLETE
    assert Preprocessing.of(None) == Preprocessing()
    assert Preprocessing.of(COMPLETE) is COMPLETE


def test_text():
    assert str(COMPLETE) == (
        "sampling rate 100 Hz, band 0.3-35 Hz, notch 50 Hz, reference A1, A2, factor from volts "
        "1e+06, channels C3, C4, windows of 30 s"
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
        (dict(band=(40, 0.5)), ValueError, r"band must be a lower and a higher .* got \(40, 0.5\)"),
        (dict(band=[0.5]), ValueError, "band must be"),
        (dict(band=(0, 40)), ValueError, r"such as \(0.3, 35\) or \(0.3, None\)"),
        (dict(band=40), TypeError, "band must be"),
        (dict(notch=50.0), TypeError, "notch must be a list of positive numbers"),
        (dict(notch=[float("nan")]), ValueError, "notch must be"),
        (dict(reference=["A1"]), TypeError, "reference must be a text, or None"),
        (dict(scale=-1), ValueError, "scale must be a positive number"),
        (dict(channels="C3"), TypeError, "channels must be a list of names"),
        (dict(channels=[]), ValueError, "channels must be"),
        (dict(window_seconds=np.inf), ValueError, "window_seconds must be"),
        (
            dict(highpass=0.5),
            ValueError,
            "preprocessing has an entry 'highpass'; its entries are s",
        ),
    ],
)
def test_what_is_refused(entries, error, message):
    with pytest.raises(error, match=message):
        Preprocessing.of(entries)


def test_steps_prepare_a_recording_in_this_way():
    rng = np.random.default_rng(0)
    info = mne.create_info(["C3", "C4", "A1", "A2"], 200.0, "eeg")
    raw = mne.io.RawArray(1e-5 * rng.standard_normal((4, 20_000)), info, verbose="error")
    alike = raw.copy().resample(100.0).filter(0.3, 35.0, verbose="error")
    alike.notch_filter(50.0 - 10, verbose="error").set_eeg_reference(["A1", "A2"], verbose="error")
    wanted = Preprocessing(
        sfreq=100.0, band=(0.3, 35.0), notch=[40.0], reference="A1, A2", scale=1e6
    )
    for step in wanted.steps():
        getattr(raw, step["fn"])(**step["kwargs"], verbose="error")
    np.testing.assert_allclose(raw.get_data(), 1e6 * alike.get_data(), rtol=1e-6, atol=1e-9)
    assert recorded(raw.info, wanted.steps()) == wanted


@pytest.mark.parametrize("given", ["A1,A2", " A1 , A2"])
def test_electrodes_of_a_reference_in_any_spacing(given):
    preprocessing = Preprocessing(reference=given)
    assert preprocessing.reference == "A1, A2"
    assert preprocessing.steps()[0]["kwargs"] == {"ref_channels": ["A1", "A2"]}


def test_nothing_to_do_is_no_step():
    nothing = Preprocessing(band=(None, None), notch=(), reference="as recorded", scale=1.0)
    assert nothing.steps() == []
