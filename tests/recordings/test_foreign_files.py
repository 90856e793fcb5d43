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
    with pytest.warns(UserWarning, match=rf"not read: {name}.*mne") as caught:
        assert recordings_below(tmp_path) == [file]
    assert len(caught) == 1


def test_what_mne_makes_of_a_recording_is_no_recording(tmp_path):

    file = write_recording(tmp_path)
    epochs = mne.make_fixed_length_epochs(RAW, 1.0, verbose="error")
    names = ("P01-annot.fif", "P01-epo.fif", "P01-eve.fif", "P01_ave.fif")
    for name in names:
        (tmp_path / name).touch()
    with pytest.warns(UserWarning, match=", ".join(names)):
        assert recordings_below(tmp_path) == [file]
    # By its content, where the name does not tell
    epochs.save(tmp_path / "segments.fif", overwrite=True, verbose="error")
    with pytest.raises(ValueError, match=r"segments\.fif .*no continuous recording"):
        open_recording(tmp_path / "segments.fif")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n", "git lfs pull"),
        ("../.git/annex/objects/x/y/MD5E-s9--ab.edf", "datalad get"),
    ],
)
def test_pointers(tmp_path, text, command):
    file = tmp_path / "P01.edf"
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"P01\.edf .*placeholder.*{command}"):
        open_recording(file)


def hypnogram(root, name, stages=("W", "1")):
    texts = {0: "\x14\0".join(f"+{i * 30}\x1530\x14Sleep stage {s}" for i, s in enumerate(stages))}
    return write_edf_records(root / name, np.zeros((0, 100)), [0], texts=texts, kind="EDF+C")


def test_hypnograms_of_sleep_edf_are_the_labels(tmp_path):
    night = tmp_path / "SC4001E0-PSG.edf"
    write_edf_records(night, np.ones((1, 6000)), range(60), kind="EDF+C", labels=["EEG Fpz-Cz"])
    hypnogram(tmp_path, "SC4001EC-Hypnogram.edf")
    hypnogram(tmp_path, "SC4011EC-Hypnogram.edf", "R")
    with pytest.warns(UserWarning, match=r"not read: SC4011EC-Hypnogram\.edf"):
        assert recordings_below(tmp_path) == [night]
    raw, _ = open_recording(night)
    assert annotations_of(night, raw).description.tolist() == ["Sleep stage W", "Sleep stage 1"]
    assert labels_in_annotations(durations_in([night]), 30) == ["Sleep stage 1", "Sleep stage W"]
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


def test_tables_that_belong_to_no_recording_are_named(tmp_path):
    for name in ("sub-01_task-rest_run-1_eeg", "sub-02_task-Rest_eeg", "sub-03_task-rest_eeg"):
        write_recording(tmp_path, f"{name}.fif")
    names = ["sub-01_task-rest_run-01", "sub-02_task-rest", "sub-03_ses-1_task-rest"]
    for name in names:
        (tmp_path / f"{name}_channels.tsv").write_text("name\tstatus\nC3\tbad\n")
    message = ", ".join(f"{name}_channels.tsv" for name in names)
    with pytest.warns(UserWarning, match=message):
        files = recordings_below(tmp_path)
    for file, name in zip(files[:2], names, strict=False):
        with pytest.raises(ValueError, match=rf"{name}_channels\.tsv may belong to {file.name}"):
            open_recording(file)
