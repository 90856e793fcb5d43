"""TUAB: recipe, with folders that the tests write in the layout of the corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.recipe_contract import RecipeContract
from support.temple_trees import level, write_recording

from braindecode_pars.datasets import tuab

#: Folder, class, recording, sampling rate. Subject aaaaaaab has recordings of both classes.
RECORDINGS = [
    ("train", "normal", "aaaaaaaa_s001_t000", 250),
    ("train", "normal", "aaaaaaab_s001_t000", 256),
    ("train", "abnormal", "aaaaaaab_s002_t001", 400),
    ("train", "abnormal", "aaaaaaac_s005_t000", 250),
    ("train", "abnormal", "aaaaaaad_s005_t000", 512),
    ("train", "abnormal", "aaaaaaae_s005_t000", 250),
    ("eval", "normal", "aaaaaacz_s005_t000", 250),
    ("eval", "abnormal", "aaaaaada_s001_t000", 250),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tuab") / "v3.0.1"
    for folder, label, name, sfreq in RECORDINGS:
        file = path / "edf" / folder / label / "01_tcp_ar" / f"{name}.edf"
        write_recording(file, sfreq=sfreq, seconds=32)
    return path


def test_windows_targets_and_splits(written):
    # Signals
    windows = tuab.load(written, verbose=0)
    assert len(windows) == len(RECORDINGS)
    assert windows.datasets[0].raw.ch_names == [*tuab.CHANNELS]
    assert tuab.CHANNELS[-2:] == ("A1", "A2")
    x, _, _ = windows[0]
    assert x.shape == (21, 6000)
    amplitude = np.sqrt(2) * x[:, 1000:5000].std(axis=1)
    expected = [1e-6 * level(name.upper()) for name in tuab.CHANNELS]
    np.testing.assert_allclose(amplitude, expected, rtol=0.02)  # volts

    # Targets
    description = windows.description
    for dataset, (_, row) in zip(windows.datasets, description.iterrows(), strict=True):
        assert set(dataset.metadata["target"]) == {int(row["label"] == "abnormal")}
    assert (description["label"] == "normal").sum() == 3
    # Splits: eval is the test set; the subjects of train are divided into train and valid.
    assert set(description.loc[description["folder"] == "eval", "split"]) == {"test"}
    train = description[description["folder"] == "train"]
    assert set(train["split"]) == {"train", "valid"}
    assert (train.groupby("subject")["split"].nunique() == 1).all()
    assert train.groupby("split")["subject"].nunique().to_dict() == {"train": 4, "valid": 1}


def test_names_are_read_without_opening_files(tmp_path):
    file = tmp_path / "edf/eval/abnormal/01_tcp_ar/aaaaaacz_s005_t003.edf"
    file.parent.mkdir(parents=True)
    file.touch()
    (file.parent / "notes.edf").touch()
    (recording,) = tuab.recordings(tmp_path)
    assert recording.file == file
    assert recording.description == dict(
        subject="aaaaaacz",
        corpus="tuab",
        folder="eval",
        label="abnormal",
        montage="01_tcp_ar",
        session=5,
        token=3,
        split="test",
    )
    # The layout of version 2
    name = "v2/edf/train/normal/01_tcp_ar/078/00007871/s001_2011_07_05/00007871_s001_t001.edf"
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).touch()
    (recording,) = tuab.recordings(tmp_path / "v2")
    assert (recording.subject, recording.description["label"]) == ("00007871", "normal")


class TestContract(RecipeContract):
    name = "tuab"
    example = r"aaaaaaaa_s001_t000"

    def write(self, root):
        folder = root / "edf/train"
        return tuple(
            write_recording(folder / label / f"01_tcp_ar/{name}_s001_t000.edf", seconds=32)
            for label, name in (("normal", "aaaaaaaa"), ("abnormal", "aaaaaaab"))
        )
