"""The bundled sample datasets: rest and mental arithmetic, and sleep."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from braindecode.datasets import BaseConcatDataset

from braindecode_pars import as_sklearn, datasets
from braindecode_pars.datasets import eegmat, ucddb
from braindecode_pars.models import electrode_positions
from braindecode_pars.recordings.preparation import COMMON_CHANNELS
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.recorded_steps import recorded

#: Checksum of the file, which must not change without an entry in the changelog.
SHA256 = "8d17cf9f518db8a5d54bdb2eb5873517284146b533af421f77a2d1264d02a4fa"


@pytest.fixture(scope="module")
def windows():
    return datasets.mental_arithmetic()


def test_windows_of_24_subjects(windows):
    X, y, groups = as_sklearn(windows)
    assert X[0].shape == (8, 1280)
    assert np.std([*X]) == pytest.approx(7.3074e-6, rel=1e-4)  # volts
    assert len(y) == 288
    assert sorted(set(groups)) == [f"Subject{number:02d}" for number in range(24)]
    for subject in set(groups):
        assert y[groups == subject].tolist() == [0] * 6 + [1] * 6
    conditions = windows.description["condition"]
    assert conditions.tolist() == list(eegmat.CARD["classes"]) * 24
    assert as_windows(windows).label_names == {"rest": 0, "arithmetic": 1}


def test_ages_equal_the_ages_in_the_corpus(windows, eeg_folder):
    table = pd.read_csv(eeg_folder / "eegmat" / "subject-info.csv", index_col="Subject")
    description = windows.description
    assert description["age"].tolist() == table["Age"][description["subject"]].tolist()


def test_the_preprocessing_is_stored_with_windows_and_recordings(windows):
    for preprocessing in (
        recorded(windows.datasets[0].raw.info),
        as_windows(windows).column("preprocessing")[0],
    ):
        assert preprocessing.band == (0.5, 45.0)
        assert preprocessing.notch == ()
        assert preprocessing.reference.split(", ") == list(COMMON_CHANNELS)


def test_channels_have_names_and_positions(windows):
    names = windows.datasets[0].raw.ch_names
    assert names == ["F3", "Fz", "F4", "T5", "P3", "Pz", "P4", "T6"]
    positions = electrode_positions(windows.datasets[0].raw.info["chs"])
    assert len(np.unique(positions, axis=0)) == 8


def test_the_file_is_unchanged():
    assert hashlib.sha256(eegmat.SAMPLE.read_bytes()).hexdigest() == SHA256


def test_some_subjects_and_other_windows(windows):
    selected = datasets.mental_arithmetic(["Subject03", "Subject20"], window_seconds=4)
    assert len(selected) == 2 * 2 * 15
    first = windows.description["subject"].tolist().index("Subject03")
    np.testing.assert_array_equal(selected[0][0], windows.datasets[first][0][0][:, : 4 * 128])


#: The file as it was made; it must never change without a reason in the changelog.
SHA256_OF_SLEEP = "0adc2f30527515f31d627e27b1e66cf669ee37f6088b4b73be2abce7d0e8f6cd"

#: Names of the stages, as in the annotations of sleep recordings.
WAKE, STAGE_3, STAGE_4 = (f"Sleep stage {stage}" for stage in "W34")


@pytest.fixture(scope="module")
def nights():
    return datasets.sleep()


def test_windows_of_twelve_subjects(nights):
    X, y, groups = as_sklearn(nights)
    assert X[0].shape == (1, 30 * 128)
    volts = [nights.datasets[i][0][0].std() for i in (0, 10)]
    np.testing.assert_allclose(volts, [1.6808e-5, 6.2734e-5], rtol=1e-4)
    assert [dataset.windows.info["sfreq"] for dataset in nights.datasets] == [128] * 12
    subjects = nights.description["subject"].tolist()
    assert sorted(set(groups)) == subjects
    assert (len(subjects), subjects[0], subjects[-1]) == (12, "ucddb002", "ucddb024")
    assert [dataset.windows.ch_names for dataset in nights.datasets] == [["C3-A2"]] * 12
    assert as_windows(nights).label_names == {WAKE: 0, STAGE_3: 1, STAGE_4: 2}
    assert Counter(y.tolist()) == {0: 720, 1: 366, 2: 653}


def test_metadata_have_the_position_and_quality_of_windows(nights):
    table = nights.get_metadata()
    for _, recording in table.groupby("subject"):
        assert (recording["position"].diff().dropna() > 0).all()
        np.testing.assert_array_equal(recording["i_start_in_trial"], 3840 * recording["position"])
    # In the README
    assert table["bad"][table["target"] == 0].mean() == pytest.approx(0.207, abs=5e-4)


def test_windows_of_other_stages_are_unlabeled(nights):
    """A question of two stages, with all windows for pretraining."""
    asked = datasets.load("sleep", subjects=["ucddb002"], classes=[STAGE_4, STAGE_3])
    _, y, _ = as_sklearn(asked)
    _, stages, _ = as_sklearn(BaseConcatDataset(nights.datasets[:1]))
    assert as_windows(asked).label_names == {STAGE_4: 0, STAGE_3: 1}
    np.testing.assert_array_equal(y, np.array([-1, 1, 0])[stages])


def test_stages_may_be_joined_and_an_unknown_one_is_an_error():
    deep = {WAKE: "wake", STAGE_3: "deep", STAGE_4: "deep"}
    joined = datasets.sleep(["ucddb002"], classes=deep)
    assert as_windows(joined).label_names == {"wake": 0, "deep": 1}
    assert Counter(as_sklearn(joined)[1].tolist()) == {0: 60, 1: 87}
    with pytest.raises(ValueError, match=r"'Sleep stage 3'.*'N3'"):
        datasets.sleep(classes=["N3"])


def test_the_file_of_sleep_is_unchanged():
    assert hashlib.sha256(ucddb.SAMPLE.read_bytes()).hexdigest() == SHA256_OF_SLEEP
