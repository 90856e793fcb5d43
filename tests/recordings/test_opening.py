"""Recordings as a Raw or a path, and files that are none."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from support.edf_files import write_edf_records

from braindecode_pars.recordings.readers import open_recording


def test_a_raw_is_returned_as_it_is(tmp_path):
    raw = mne.io.RawArray(np.zeros((1, 500)), mne.create_info(["C3"], 100.0, "eeg"), verbose=False)
    assert open_recording(raw) == (raw, "recording")
    file = tmp_path / "night_raw.fif"
    raw.save(file, verbose="error")
    read = mne.io.read_raw_fif(file, verbose="error")
    opened, name = open_recording(read)
    assert opened is read
    assert name == "night_raw.fif"
    assert not read.preload
    for path in (file, str(file)):
        assert open_recording(path)[1] == "night_raw.fif"


def test_a_raw_without_the_gaps_of_its_file_is_a_warning(tmp_path, recwarn):
    waves = np.arange(1000.0)[None]
    gaps = write_edf_records(tmp_path / "gaps.edf", waves, [*range(5), *range(9, 14)])
    with pytest.warns(UserWarning, match=r"gaps\.edf"):
        open_recording(mne.io.read_raw_edf(gaps, verbose="error"))
    recwarn.clear()
    whole = write_edf_records(tmp_path / "whole.edf", waves, range(10), kind="EDF+C")
    open_recording(mne.io.read_raw_edf(whole, verbose="error"))
    open_recording(open_recording(gaps)[0])  # its gaps are marked
    assert not recwarn


@pytest.mark.parametrize("raw", [None, 3, np.zeros((2, 100)), ["a.edf"]])
def test_other_objects_are_refused(raw):
    with pytest.raises(TypeError, match=r"mne\.io\.Raw"):
        open_recording(raw)


def test_files_that_are_no_recordings(tmp_path):
    (tmp_path / "notes.txt").write_text("not EEG")
    (tmp_path / "empty.edf").touch()
    (tmp_path / "text_raw.fif").write_text("not EEG")
    (tmp_path / "folder.edf").mkdir()
    for name, problem in {
        "notes.txt": r"\.hea",
        "empty.edf": "damaged",
        "text_raw.fif": "damaged",
        "folder.edf": "not a file",
        "missing.edf": "not exist",
    }.items():
        with pytest.raises(ValueError, match=rf"{name} .*{problem}"):
            open_recording(tmp_path / name)


def test_a_file_without_permission(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied", "night.edf")

    (tmp_path / "night.edf").touch()
    monkeypatch.setattr(mne.io, "read_raw_edf", refuse)  # root may read every file
    with pytest.raises(ValueError, match="permission"):
        open_recording(tmp_path / "night.edf")
