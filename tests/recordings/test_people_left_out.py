"""People whom one corpus of a store leaves out are left out of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from braindecode_pars.datasets import tuab, tueg
from braindecode_pars.recordings.continuous import ContinuousCorpus, without_left_out


def subjects(recordings) -> list:
    return [recording.subject for recording in recordings]


def touch(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def test_people_whom_another_corpus_leaves_out_are_left_out(tmp_path, caplog):
    """Test subjects and excluded subjects of TUAB are in TUEG too, and the other way round."""
    for subject in ("aaaaaaaa", "aaaaaaab", "aaaaaaac", "aaaaaaad", "aaaaaaae"):
        touch(tmp_path / f"v2/edf/000/{subject}/s001_2003/01_tcp_ar/{subject}_s001_t000.edf")
    for part, subject in (("eval", "aaaaaaaa"), *(("train", f"aaaaaaa{x}") for x in "bcd")):
        touch(tmp_path / f"tuab/edf/{part}/normal/01_tcp_ar/{subject}_s009_t000.edf")
    of_tueg = ContinuousCorpus.of(tueg, tmp_path / "v2", exclude=[["aaaaaaac"]])
    of_tuab = ContinuousCorpus.of(tuab, tmp_path / "tuab", exclude=[["aaaaaaab"]])
    left_out = {"aaaaaaaa", "aaaaaaab", "aaaaaaac", *subjects(of_tuab.held_out)}
    large, small = without_left_out([of_tueg, of_tuab])
    assert set(subjects(large.recordings)) == {"aaaaaaad", "aaaaaaae"} - left_out
    assert set(subjects(small.recordings)) == {"aaaaaaad"} - left_out
    assert "aaaaaaaa" in subjects(large.excluded)
    assert caplog.messages[-1].startswith("tuab: left out 1 recordings")
    assert without_left_out([large, small]) == [large, small]
    assert without_left_out([of_tueg]) == [of_tueg]
    every = ContinuousCorpus.of(tueg, tmp_path / "v2", exclude=[tmp_path / "tuab"])
    with pytest.raises(ValueError, match="2 recordings of tuab"):
        without_left_out([every, of_tuab])
