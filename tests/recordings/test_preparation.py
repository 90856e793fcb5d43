"""Filters and channels, tested on signals with known content; channels that are left out."""

from __future__ import annotations

import mne
import numpy as np
import pytest

from braindecode_pars.recordings.as_trained import prepare_as_trained
from braindecode_pars.recordings.preparation import (
    check_filters,
    drop_other_signals,
    filter_and_resample,
    pick_electrodes,
    set_reference,
)
from braindecode_pars.windows.marks import continuous_segments
from braindecode_pars.windows.preprocessing import Preprocessing


def recording(signals, sfreq=250.0, names=None):
    signals = np.atleast_2d(signals)
    names = names or [f"E{i}" for i in range(len(signals))]
    return mne.io.RawArray(signals, mne.create_info(names, sfreq, "eeg"), verbose="error")


def amplitude(signal, frequency, sfreq):
    """Amplitude of a sine of this frequency, without five seconds at each end."""
    signal = signal[5 * int(sfreq) : -5 * int(sfreq)]
    t = np.arange(len(signal)) / sfreq
    return 2 * np.abs(np.mean(signal * np.exp(-2j * np.pi * frequency * t)))


@pytest.mark.parametrize("sfreq", [128.0, 200.0, 256.0, 500.0])
def test_the_pass_band_and_the_notch(sfreq):
    t = np.arange(int(60 * sfreq)) / sfreq
    sines = {f: np.sin(2 * np.pi * f * t) for f in (0.05, 1.0, 10.0, 30.0, 50.0, 60.0)}
    raw = filter_and_resample(recording(np.stack(list(sines.values())), sfreq), mains=60.0)
    assert raw.info["sfreq"] == 200.0
    amplitudes = {f: amplitude(x, f, 200.0) for f, x in zip(sines, raw.get_data(), strict=True)}
    for f in (1.0, 10.0, 30.0, 50.0):
        assert amplitudes[f] == pytest.approx(1, abs=0.02)
    assert amplitudes[60.0] < 0.02
    assert amplitudes[0.05] < 0.1


def test_frequencies_above_the_band_are_removed():
    t = np.arange(60 * 500) / 500
    raw = filter_and_resample(recording(np.sin(2 * np.pi * 96 * t), 500.0))
    assert amplitude(raw.get_data()[0], 96.0, 200.0) < 0.01


@pytest.mark.parametrize(("first_samp", "duration"), [(0, 0.0), (70, 0.5)])
@pytest.mark.parametrize("text", ["EDGE boundary", "boundary", "New Segment/", "BAD boundary"])
def test_filters_end_at_gaps_as_in_a_prediction(text, first_samp, duration):
    rng, info = np.random.default_rng(0), mne.create_info(["C3", "C4"], 200.0, "eeg")
    signals = rng.normal(size=(2, 6000)) + 100 * (np.arange(6000) > 3000)
    raw = mne.io.RawArray(signals, info, first_samp, verbose="error")
    marks = [0, 15.005, 15.005], [0, duration, 3], [text, text, "N2"]
    raw.set_annotations(mne.Annotations(*marks))
    prepared = prepare_as_trained(
        raw, "", Preprocessing(band=(0.5, 40), notch=(60.0,)), 200.0, info["chs"]
    )
    before = raw.annotations.copy()
    filter_and_resample(raw, low=0.5, high=40)
    assert raw.annotations == before
    for start, stop in continuous_segments(raw):
        expected = raw.get_data(start=start, stop=stop)
        np.testing.assert_allclose(prepared.signals[:, start:stop], expected, atol=1e-5)


def test_the_average_of_one_good_channel_is_refused():
    raw = recording(np.ones((2, 100)), names=["C3", "C4"])
    raw.info["bads"] = ["C4"]
    with pytest.raises(ValueError, match="C3"):
        set_reference(raw, "average")


def test_a_channel_with_nan_is_named():
    signals = np.zeros((2, 1000))
    signals[1, 10] = np.nan
    with pytest.raises(ValueError, match="C4"):
        filter_and_resample(recording(signals, names=["C3", "C4"]))


def test_channels_have_the_requested_order():
    raw = recording(
        np.arange(3)[:, None] * np.ones((3, 500)), names=["EEG CZ-REF", "X", "EEG C3-LE"]
    )
    pick_electrodes(raw, ["C3", "Cz"])
    assert raw.ch_names == ["C3", "Cz"]
    assert raw.get_data()[:, 0].tolist() == [2, 0]


def test_signals_other_than_eeg_are_dropped():
    raw = recording(np.zeros((4, 100)), names=["Fc5.", "ECG", "C3", "X1"])
    raw.set_channel_types({"X1": "eog"}, verbose="error")
    with pytest.warns(UserWarning, match="^ECG: "):  # X1 has another type
        assert drop_other_signals(raw).ch_names == ["Fc5.", "C3"]
    with pytest.raises(ValueError, match="no EEG channel, only ECG"):
        drop_other_signals(recording(np.zeros((1, 100)), names=["ECG"]))


def test_missing_and_duplicate_channels_are_named():
    raw = recording(np.zeros((2, 500)), names=["C3-M1", "C3-M2"])
    with pytest.raises(ValueError, match=r"C3, C4, Pz\..*C3-M1, C3-M2"):
        pick_electrodes(raw, ["C3", "C4", "Pz"])
    with pytest.raises(ValueError, match="C3-M1, C3-M2"):
        pick_electrodes(raw, ["C3"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(sfreq=0), ValueError, "sfreq"),
        (dict(low=-1.0), ValueError, "low"),
        (dict(high="45"), TypeError, "high"),
        (dict(mains=True), TypeError, "mains"),
        (dict(low=45, high=45), ValueError, "low=45"),
    ],
)
def test_wrong_filters_raise(arguments, error, message):
    with pytest.raises(error, match=message):
        check_filters(**arguments)
