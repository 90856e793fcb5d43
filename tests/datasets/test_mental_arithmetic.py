"""The bundled sample dataset of rest and mental arithmetic."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest

from braindecode_pars import as_sklearn, datasets
from braindecode_pars.datasets import eegmat
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


def test_signals_are_volts(windows):
    signals = np.stack([x for x, _, _ in windows])
    assert signals.dtype == np.float32
    assert 4e-6 < signals.std() < 1e-5
    # No channel is flat in any window.
    assert signals.std(axis=-1).min() > 5e-7


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
    assert set(selected.description["subject"]) == {"Subject03", "Subject20"}
    assert len(selected) == 2 * 2 * 15
    first = next(i for i, s in enumerate(windows.description["subject"]) if s == "Subject03")
    np.testing.assert_array_equal(
        selected.datasets[0][0][0], windows.datasets[first][0][0][:, : 4 * 128]
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(subjects=["Subject24"]), FileNotFoundError, "Subject24"),
        (dict(window_seconds=0), ValueError, "window_seconds"),
        (dict(window_seconds=61), ValueError, "60"),
    ],
)
def test_invalid_arguments_raise(arguments, error, message):
    with pytest.raises(error, match=message):
        datasets.mental_arithmetic(**arguments)
