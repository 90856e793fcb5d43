"""The sample of real sleep in the package, and a model of it on a recording."""

from __future__ import annotations

import hashlib
from collections import Counter

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset
from support.small_estimators import classifier

from braindecode_pars import as_sklearn, datasets
from braindecode_pars.datasets.ucddb import SAMPLE
from braindecode_pars.predictions import sleep_statistics
from braindecode_pars.windows.convert import as_windows

#: The file as it was made; it must never change without a reason in the changelog.
SHA256 = "0adc2f30527515f31d627e27b1e66cf669ee37f6088b4b73be2abce7d0e8f6cd"

#: Names of the stages, as in the annotations of sleep recordings.
WAKE, STAGE_3, STAGE_4 = (f"Sleep stage {stage}" for stage in "W34")


@pytest.fixture(scope="module")
def windows():
    return datasets.sleep()


@pytest.fixture(scope="module")
def originals(eeg_folder):
    folder = eeg_folder / "ucddb"
    if not folder.is_dir():
        pytest.skip(f"windows of UCDDB: {folder} does not exist")
    return folder


def test_windows_of_twelve_subjects(windows):
    X, y, groups = as_sklearn(windows)
    assert X[0].shape == (1, 30 * 128)
    assert [dataset.windows.info["sfreq"] for dataset in windows.datasets] == [128] * 12
    subjects = windows.description["subject"].tolist()
    assert sorted(set(groups)) == subjects
    assert (len(subjects), subjects[0], subjects[-1]) == (12, "ucddb002", "ucddb024")
    assert [dataset.windows.ch_names for dataset in windows.datasets] == [["C3-A2"]] * 12
    assert as_windows(windows).label_names == {WAKE: 0, STAGE_3: 1, STAGE_4: 2}
    assert Counter(y.tolist()) == {0: 720, 1: 366, 2: 653}


def test_metadata_have_the_position_and_quality_of_windows(windows):
    table = windows.get_metadata()
    for _, recording in table.groupby("subject"):
        assert (recording["position"].diff().dropna() > 0).all()
        np.testing.assert_array_equal(recording["i_start_in_trial"], 3840 * recording["position"])
    # In the README
    assert table["bad"][table["target"] == 0].mean() == pytest.approx(0.207, abs=5e-4)


def test_selected_subjects(windows):
    two = datasets.sleep(["ucddb010", "ucddb006"])
    assert two.description["subject"].tolist() == ["ucddb006", "ucddb010"]
    np.testing.assert_array_equal(two[0][0], windows.datasets[1][0][0])


def test_windows_of_other_stages_are_unlabeled(windows):
    """A question of two stages, with all windows for pretraining."""
    asked = datasets.load("sleep", subjects=["ucddb002"], classes=[STAGE_4, STAGE_3])
    _, y, _ = as_sklearn(asked)
    _, stages, _ = as_sklearn(BaseConcatDataset(windows.datasets[:1]))
    assert as_windows(asked).label_names == {STAGE_4: 0, STAGE_3: 1}
    np.testing.assert_array_equal(y, np.array([-1, 1, 0])[stages])


def test_stages_may_be_joined_and_an_unknown_one_is_an_error():
    deep = {WAKE: "wake", STAGE_3: "deep", STAGE_4: "deep"}
    joined = datasets.sleep(["ucddb002"], classes=deep)
    assert as_windows(joined).label_names == {"wake": 0, "deep": 1}
    assert Counter(as_sklearn(joined)[1].tolist()) == {0: 60, 1: 87}
    with pytest.raises(ValueError, match=r"'Sleep stage 3'.*'N3'"):
        datasets.sleep(classes=["N3"])


def test_a_model_of_the_sample_stages_a_recording(windows, tmp_path):
    """Windows of a held-out subject in a row, none flat, in an EDF file with a second channel."""
    fast = dict(pretext=None, finetune_epochs=5, validation=0)
    clf = classifier(**fast).fit(BaseConcatDataset(windows.datasets[1:5]))
    night = windows.datasets[9]
    stages = night.metadata["target"].to_numpy()
    signals = np.concatenate([x[0] for x, _, _ in night])
    info = mne.create_info(["EEG C3-M2", "ECG"], 128.0, ["eeg", "ecg"])
    raw = mne.io.RawArray(np.stack([signals, 10 * signals]), info, verbose="error")
    raw.export(tmp_path / "night.edf", verbose="error")
    with pytest.warns(UserWarning, match="N1, N2, R"):
        frame = clf.predict_raw(tmp_path / "night.edf")
    names = np.array([WAKE, STAGE_3, STAGE_4])
    assert (frame["label"] == names[clf.predict(night)]).mean() > 0.95  # EDF rounds samples
    assert ((frame["label"] == WAKE) == (stages == 0)).mean() > 0.8
    found = sleep_statistics(frame)
    minutes = Counter(frame["label"])
    assert found["WAKE"] == minutes[WAKE] / 2
    assert found["N3"] == found["TST"] == (minutes[STAGE_3] + minutes[STAGE_4]) / 2


def test_the_file_is_unchanged():
    assert hashlib.sha256(SAMPLE.read_bytes()).hexdigest() == SHA256


def test_windows_are_those_of_the_recordings_within_half_a_step(windows, originals):
    with np.load(SAMPLE, allow_pickle=False) as archive:
        steps = dict(zip(archive["subjects"].tolist(), archive["step"], strict=True))
    for dataset in windows.datasets:
        subject, metadata = dataset.description["subject"], dataset.metadata
        with np.load(originals / f"{subject}.npz", allow_pickle=False) as recording:
            rows = np.searchsorted(recording["position"], metadata["position"])
            original = recording["x"][rows] * recording["scale"] * 100e-6
            assert recording["stage"][rows].tolist() == [
                "W34"[target] for target in metadata["target"]
            ]
            assert recording["bad"][rows].tolist() == metadata["bad"].tolist()
        step = steps[subject]
        limited = original.clip(-127 * step, 127 * step)
        stored = np.stack([x[0] for x, _, _ in dataset])
        assert np.abs(stored - limited).max() <= 0.5001 * step
        assert (np.abs(original) > 127 * step).mean() < 0.01
