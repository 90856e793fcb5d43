"""Filters and channels on signals with known content."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from support.temple_trees import level, write_recording

from braindecode_pars.datasets import temple
from braindecode_pars.recordings.loading import Recording
from braindecode_pars.recordings.preparation import (
    COMMON_CHANNELS,
    check_filters,
    filter_and_resample,
    pick_electrodes,
    set_reference,
)


def recording(signals, sfreq=250.0, names=None):
    signals = np.atleast_2d(signals)
    names = names or [f"E{i}" for i in range(len(signals))]
    return mne.io.RawArray(signals, mne.create_info(names, sfreq, "eeg"), verbose="error")


def amplitude(signal, frequency, sfreq):
    """Amplitude of a sine of this frequency, without five seconds at each end."""
    signal = signal[5 * int(sfreq) : -5 * int(sfreq)]
    t = np.arange(len(signal)) / sfreq
    return 2 * np.abs(np.mean(signal * np.exp(-2j * np.pi * frequency * t)))


@pytest.mark.parametrize("sfreq", [128.0, 200.0, 500.0])
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


def test_the_average_of_one_good_channel_is_refused():
    raw = recording(np.ones((2, 100)), names=["C3", "C4"])
    raw.info["bads"] = ["C4"]
    for reference in ("average", ["C3"]):
        with pytest.raises(ValueError, match="only one EEG channel, C3"):
            set_reference(raw, reference)


def test_channels_have_the_requested_order():
    raw = recording(
        np.arange(3)[:, None] * np.ones((3, 500)), names=["EEG CZ-REF", "X", "EEG C3-LE"]
    )
    pick_electrodes(raw, ["C3", "Cz"])
    assert raw.ch_names == ["C3", "Cz"]
    assert raw.get_data()[:, 0].tolist() == [2, 0]


def test_missing_and_duplicate_channels_are_named():
    raw = recording(np.zeros((2, 500)), names=["C3-M1", "C3-M2"])
    with pytest.raises(ValueError, match=r"\(C3, C4, Pz\).*C3-M1, C3-M2"):
        pick_electrodes(raw, ["C3", "C4", "Pz"])
    with pytest.raises(ValueError, match="C3-M1, C3-M2"):
        pick_electrodes(raw, ["C3"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(sfreq=0), ValueError, "sfreq"),
        (dict(high="45"), TypeError, "high"),
        (dict(low=45, high=45), ValueError, "low=45"),
    ],
)
def test_wrong_filters_raise(arguments, error, message):
    with pytest.raises(error, match=message):
        check_filters(**arguments)


@pytest.mark.parametrize(("sfreq", "reference"), [(200, "LE"), (256, "REF")])
def test_preparation(tmp_path, sfreq, reference):
    """Every rate becomes 200 Hz; 10 Hz keeps its amplitude in volts, and 60 Hz is removed."""
    file = write_recording(tmp_path / "a.edf", sfreq=sfreq, reference=reference)
    raw = temple.prepare(file, [*COMMON_CHANNELS, "A2"])
    assert raw.ch_names == [*COMMON_CHANNELS, "A2"]
    assert set(raw.get_channel_types()) == {"eeg"}
    assert raw.info["sfreq"] == 200
    assert raw.n_times == 62 * 200
    middle = raw.get_data()[:, 11 * 200 : 51 * 200]  # without edge effects of the filters
    spectrum = 2 * np.abs(np.fft.rfft(middle)) / middle.shape[1]
    hertz = np.fft.rfftfreq(middle.shape[1], 1 / 200)
    levels = [1e-6 * level(name.upper()) for name in raw.ch_names]
    np.testing.assert_allclose(spectrum[:, hertz == 10].ravel(), levels, rtol=0.01)
    assert spectrum[:, hertz == 60].max() < 3e-7  # 30 microvolts before the notch


def test_subjects_are_found_in_any_layout(tmp_path):
    for name in (
        "edf/dev/aaaaaaab/s001_2003/02_tcp_le/aaaaaaab_s001_t003.edf",
        "aaaaaaac_s001_t000.edf",
        "._aaaaaaad_s001_t000.edf",  # a hidden file of macOS
        "aaaaaaae_s001_t000.csv",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert temple.subjects_in(tmp_path) == {"aaaaaaab", "aaaaaaac"}
    with pytest.raises(FileNotFoundError, match="absent"):
        temple.subjects_in(tmp_path / "absent")


def _recordings(**folders):
    return [
        Recording(None, {"subject": subject, "folder": folder})
        for folder, subjects in folders.items()
        for subject in subjects
    ]


def test_division_by_subject():
    recordings = _recordings(train=[*"abcdefghij", *"abcdefghij"], eval="xyz")
    divided = temple.divide(recordings, {"eval": "test"}, seed=0)
    splits: dict[str, set] = {}
    for recording in divided:
        splits.setdefault(recording.subject, set()).add(recording.description["split"])
    assert all(len(split) == 1 for split in splits.values())
    assert all(splits[subject] == {"test"} for subject in "xyz")
    of_train = [splits[subject] for subject in "abcdefghij"]
    assert of_train.count({"train"}) == 8
    assert of_train.count({"valid"}) == 2
    assert "split" not in recordings[0].description


def test_frequencies_above_the_band_are_removed():
    t = np.arange(60 * 500) / 500
    raw = filter_and_resample(recording(np.sin(2 * np.pi * 96 * t), 500.0))
    assert amplitude(raw.get_data()[0], 96.0, 200.0) < 0.01
