"""Files of a folder that are no recordings which are read: said once, with the way on."""

from __future__ import annotations

from pathlib import Path

import mne
import numpy as np
import pytest
from support.edf_files import write_edf_records

from braindecode_pars.datasets import folder
from braindecode_pars.recordings.folders import recordings_below
from braindecode_pars.recordings.label_files import (
    LabeledFile,
    annotations_of,
    durations_in,
    find_hypnogram,
    labels_in_annotations,
)
from braindecode_pars.recordings.readers import open_recording

RAW = mne.io.RawArray(
    1e-5 * np.random.default_rng(0).standard_normal((2, 3000)),
    mne.create_info(["C3", "C4"], 100.0, "eeg"),
    verbose="error",
)


def write_recording(root: Path, name: str = "P01_raw.fif") -> Path:
    RAW.copy().set_annotations(mne.Annotations([0, 15], 15, ["rest", "task"])).save(
        root / name, verbose="error"
    )
    return root / name


@pytest.mark.parametrize("name", ["P04.CNT", "P05.eeg", "P09.edf.gz", "P10.edf_"])
def test_other_formats_are_a_warning(tmp_path, name):
    (tmp_path / name).write_bytes(bytes(2000))
    with pytest.raises(FileNotFoundError, match=rf"{name}.*mne"):
        folder.load(tmp_path)
    file = write_recording(tmp_path)
    with pytest.warns(UserWarning, match=rf"not read \(1\): {name}.*mne") as caught:
        assert recordings_below(tmp_path) == [file]
    assert len(caught) == 1


def hypnogram(root, name, stages=("W", "1")):
    texts = {0: "\x14\0".join(f"+{i * 30}\x1530\x14Sleep stage {s}" for i, s in enumerate(stages))}
    return write_edf_records(root / name, np.zeros((0, 100)), [0], texts=texts, kind="EDF+C")


def test_hypnograms_of_sleep_edf_are_the_labels(tmp_path):
    night = tmp_path / "SC4001E0-PSG.edf"
    write_edf_records(night, np.ones((1, 6000)), range(60), kind="EDF+C", labels=["EEG Fpz-Cz"])
    hypnogram(tmp_path, "SC4001EC-Hypnogram.edf")
    hypnogram(tmp_path, "SC4011EC-Hypnogram.edf", "R")
    with pytest.warns(UserWarning, match=r"not read \(1\): SC4011EC-Hypnogram\.edf"):
        assert recordings_below(tmp_path) == [night]
    raw, _ = open_recording(night)
    assert annotations_of(night, raw).description.tolist() == ["Sleep stage W", "Sleep stage 1"]
    durations = durations_in([LabeledFile(night, {})])
    assert labels_in_annotations(durations, 30) == ["Sleep stage 1", "Sleep stage W"]
    with pytest.raises(ValueError, match=r"Hypnogram\.edf .*annotations but no signals"):
        open_recording(tmp_path / "SC4001EC-Hypnogram.edf")
    first = hypnogram(tmp_path, "SC4001EA-Hypnogram.edf")  # of two scorers
    assert find_hypnogram(night) == first


@pytest.mark.parametrize(
    ("start", "delay"),
    [
        ("01.01.2000.00.00", 0),
        ("01.01.2000.00.50", 50),
        ("31.12.1923.59.30", -30),
        ("02.01.2000.00.00", 0),  # the date of the morning
        ("01.01.8523.59.00", -60),  # a date that was changed
        ("01.01.2001.00.00", 3600),
        (" " * 16, 0),
    ],
)
def test_a_hypnogram_begins_at_the_time_in_its_header(tmp_path, start, delay, recwarn):
    night = tmp_path / "SC4001E0-PSG.edf"
    write_edf_records(night, np.ones((1, 6000)), range(60), kind="EDF+C", labels=["EEG Fpz-Cz"])
    file = hypnogram(tmp_path, "SC4001EC-Hypnogram.edf")
    content = file.read_bytes()
    file.write_bytes(content[:168] + start.encode() + content[184:])
    raw, _ = open_recording(night)
    recwarn.clear()
    assert annotations_of(night, raw).onset.tolist() == [delay, 30 + delay]
    assert [str(each.message)[:23] for each in recwarn] == [] if start.strip() else [file.name]
