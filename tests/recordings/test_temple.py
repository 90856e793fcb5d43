"""Temple University corpora: names of files and channels, preparation and splits."""

from __future__ import annotations

import numpy as np
import pytest
from support.temple_trees import level, write_recording

from braindecode_pars.datasets import temple
from braindecode_pars.recordings.loading import Recording
from braindecode_pars.recordings.preparation import COMMON_CHANNELS


@pytest.mark.parametrize("sfreq", [200, 250, 256, 400])
@pytest.mark.parametrize("reference", ["REF", "LE"])
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
        "edf/train/normal/01_tcp_ar/aaaaaaaa_s001_t000.edf",
        "edf/dev/aaaaaaab/s001_2003/02_tcp_le/aaaaaaab_s001_t003.edf",
        "aaaaaaac_s001_t000.edf",
        "._aaaaaaad_s001_t000.edf",  # a hidden file of macOS
        "aaaaaaae_s001_t000.csv",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert temple.subjects_in(tmp_path) == {"aaaaaaaa", "aaaaaaab", "aaaaaaac"}
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="empty"):
        temple.subjects_in(tmp_path / "empty")
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
    others = [
        [r.description["split"] for r in temple.divide(recordings, {"eval": "test"}, seed)]
        for seed in range(5)
    ]
    assert any(other != others[0] for other in others)
    assert "split" not in recordings[0].description
