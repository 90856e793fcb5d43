"""EEGMAT: published recordings and damaged files."""

from __future__ import annotations

from typing import ClassVar

import mne
import numpy as np
from support.edf_files import write_edf_records
from support.recipe_contract import RecipeContract

from braindecode_pars.datasets import eegmat
from braindecode_pars.recordings.preparation import COMMON_CHANNELS
from braindecode_pars.windows.convert import as_windows


def write(file, sfreq, extra=()):
    """Write twelve seconds of noise in the channels of the corpus, and in further ones."""
    file.parent.mkdir(parents=True, exist_ok=True)
    labels = [*(f"EEG {name}" for name in reversed(COMMON_CHANNELS)), *extra]
    noise = np.random.default_rng(sfreq).normal(0, 20, (len(labels), 12 * sfreq))
    return write_edf_records(file, noise, range(12), sfreq=sfreq, labels=labels, kind="EDF+C")


def test_files_in_several_folders_and_at_several_rates_are_one_dataset(tmp_path):
    """Such as the published files, and copies at 128 Hz without the ear and the heart."""
    published = write(tmp_path / "eegmat/Subject00_1.edf", 500, ["EEG A2-A1", "ECG ECG"])
    reduced = write(tmp_path / "reduced/Subject08_2.edf", 128)
    windows = eegmat.load(
        tmp_path, sfreq=128, low=0.5, high=45, mains=None, reference="average", verbose=0
    )
    assert windows.description["subject"].tolist() == ["Subject00", "Subject08"]
    assert [y for _, y, _ in windows] == [0, 1]
    for file, (x, _, _) in zip((published, reduced), windows, strict=True):
        raw = mne.io.read_raw_edf(file, preload=True, verbose="error")
        raw.pick([f"EEG {name}" for name in COMMON_CHANNELS]).resample(128)
        plain = raw.filter(0.5, 45, verbose="error").get_data()[:, :1280]
        np.testing.assert_allclose(x, plain - plain.mean(axis=0), atol=1e-10)
    # The average of these channels by their names: other recordings have further ones.
    (prepared,) = set(as_windows(windows).column("preprocessing"))
    assert prepared.reference == ", ".join(COMMON_CHANNELS)


class TestContract(RecipeContract):
    name = "eegmat"
    example = r"Subject00_1"
    settings: ClassVar = dict(window_seconds=4.0)

    def write(self, root):
        extra = ["EEG A2-A1", "ECG ECG"]
        return (write(root / "Subject00_1.edf", 500, extra), write(root / "Subject08_1.edf", 500))
