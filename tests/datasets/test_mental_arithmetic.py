"""The bundled sample dataset of rest and mental arithmetic."""

from __future__ import annotations

import configparser
import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.signal import welch

from braindecode_pars import as_sklearn, datasets
from braindecode_pars.datasets import eegmat
from braindecode_pars.models import electrode_positions
from braindecode_pars.recordings.preparation import COMMON_CHANNELS
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.recorded_steps import recorded

#: Checksum of the file, which must not change without an entry in the changelog.
SHA256 = "8d17cf9f518db8a5d54bdb2eb5873517284146b533af421f77a2d1264d02a4fa"

SIDES = (["F3", "P3", "T5"], ["F4", "P4", "T6"])


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


def test_signals_are_volts_between_0_5_and_45_hertz(windows):
    signals = np.stack([x for x, _, _ in windows])
    assert signals.dtype == np.float32
    assert 4e-6 < signals.std() < 1e-5
    frequencies, power = welch(signals, 128, nperseg=1280)
    mean = power.mean(axis=(0, 1))
    inside = mean[(frequencies > 1) & (frequencies < 40)]
    assert mean[frequencies > 58].max() < inside.min() / 20
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
    assert np.isfinite(positions).all()
    assert len(np.unique(positions, axis=0)) == 8
    left, right = (positions[[names.index(name) for name in side], 0] for side in SIDES)
    assert (left < 0).all()
    assert (right > 0).all()


def test_the_file_is_small_unchanged_and_has_no_pickled_objects():
    assert hashlib.sha256(eegmat.SAMPLE.read_bytes()).hexdigest() == SHA256
    assert eegmat.SAMPLE.stat().st_size < 4e6
    with np.load(eegmat.SAMPLE, allow_pickle=False) as archive:
        assert archive["samples"].shape == (24, 2, 8, 7680)
        assert archive["samples"].dtype == np.int16
        assert set(archive.files) == {"samples", "subjects", "ch_names", "sfreq"}


def test_the_file_is_declared_with_its_license():
    setup = configparser.ConfigParser()
    setup.read(Path(__file__).parents[2] / "setup.cfg")
    declared = setup["options.package_data"]["braindecode_pars.datasets"]
    patterns = [eegmat.SAMPLE.parent.parent / pattern.strip() for pattern in declared.split(",")]
    files = {file for pattern in patterns for file in pattern.parent.glob(pattern.name)}
    assert files == set(eegmat.SAMPLE.parent.iterdir())
    text = eegmat.SAMPLE.with_name("README.md").read_text(encoding="utf-8")
    assert "opendatacommons.org/licenses/by/1-0" in text
    assert "Zyma" in text
    assert "Goldberger" in text


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
        (dict(window_seconds="10"), TypeError, "window_seconds"),
    ],
)
def test_invalid_arguments_raise(arguments, error, message):
    with pytest.raises(error, match=message):
        datasets.mental_arithmetic(**arguments)
