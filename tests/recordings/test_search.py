"""Search for recordings, what cannot be read, and the subjects of files."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import mne
import numpy as np
import pytest

from braindecode_pars._common.subjects import subject_of_path
from braindecode_pars.cli.predicting import find_recordings
from braindecode_pars.recordings.folders import files_beside, recordings_below
from braindecode_pars.recordings.search import (
    check_guessed_subjects,
    header_of,
    list_files,
    signal_files,
    subject_finder,
    why_unreadable,
)


def search(root: Path) -> list[str]:
    files = [path.relative_to(root).as_posix() for path in list_files(root)]
    return [file for file in files if file.endswith(".edf")]


def touch(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    return file


def test_links_to_files_and_folders_named_like_files(tmp_path):
    """A dead link is in the list, since its name tells the subject."""
    (tmp_path / "dead.edf").symlink_to(".git/annex/objects/content.edf")
    (tmp_path / "real.edf").symlink_to(touch(tmp_path / "elsewhere/content.txt"))
    touch(tmp_path / "folder.edf/night.edf")
    touch(tmp_path / ".hidden.edf")
    assert search(tmp_path) == ["dead.edf", "folder.edf/night.edf", "real.edf"]
    assert "has not been downloaded" in why_unreadable(tmp_path / "dead.edf")
    assert why_unreadable(tmp_path / "real.edf") is None


NOISE = mne.io.RawArray(
    1e-5 * np.random.default_rng(0).standard_normal((2, 500)),
    mne.create_info(["C3", "C4"], 100.0, "eeg"),
    verbose="error",
)


def brainvision(file: Path, signals: str | None = None, markers: str | None = None) -> Path:
    """Write a recording, whose header names other files if they are passed."""
    raw = NOISE.copy().set_annotations(mne.Annotations(1, 1, "a"))
    raw.export(file, overwrite=True, verbose="error")
    text = file.read_text(encoding="utf-8")
    for ending, name in ((".eeg", signals), (".vmrk", markers)):
        if name is not None:
            text = text.replace(f"File={file.stem}{ending}", f"File={name}")
            file.with_suffix(ending).replace(file.with_name(name))
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("names", [("a.eeg", "a.vmrk"), ("b.eeg", "a.vmrk"), ("ä.eeg", "m.vmrk")])
def test_the_files_of_a_recording_are_those_that_its_header_names(tmp_path, names):
    """A store and predictions notice by them that its samples or markers have changed."""
    header = brainvision(tmp_path / "a.vhdr", *names)
    files = [header, *(tmp_path / name for name in names)]
    touch(tmp_path / "c.eeg")
    assert [signal_files(file) for file in files] == [files] * 3
    assert set(files_beside(header)) == {*files}
    assert signal_files(tmp_path / "c.eeg") == [tmp_path / "c.eeg"]
    assert header_of(tmp_path / names[0]) == header


def test_two_headers_that_name_one_file_are_an_error(tmp_path):
    """One of them was copied: its signals or markers are those of another recording."""
    first = brainvision(tmp_path / "P01.vhdr")
    brainvision(tmp_path / "P02.vhdr", "P01.eeg", "P02.vmrk")
    with pytest.raises(ValueError, match=r"P01\.vhdr and .*P02\.vhdr both .*P01\.eeg"):
        recordings_below(tmp_path)
    second = brainvision(tmp_path / "P02.vhdr", "P02.eeg", "P01.vmrk")
    with pytest.raises(ValueError, match=r"P02\.vhdr both .*P01\.vmrk"):
        find_recordings([first, second])
    first.unlink()
    first.with_suffix(".eeg").unlink()
    with pytest.warns(UserWarning, match=r"\(1\) .*: P02\.vhdr \(P01\.vmrk\)"):
        assert recordings_below(tmp_path) == [second]


ROOT = PurePosixPath("data")


def paths(*names):
    return [PurePosixPath(name) for name in names]


OBVIOUS = {
    "Subject00": ("Subject00_1.edf", "Subject00_2.edf"),
    "s2": ("s2R03_raw.fif", "s2R14_raw.fif"),
    "Anna B": ("Anna B_ses1_eeg.edf", "Anna B_ses2_eeg.edf"),
    "S002": ("S002R03.edf", "S002r04.edf"),
}


@pytest.mark.parametrize("subject", OBVIOUS)
def test_names_that_number_recordings_of_a_subject_ask_for_the_subject(subject):
    first, second = paths(*OBVIOUS[subject])
    with pytest.raises(ValueError, match="same subject") as caught:
        check_guessed_subjects(ROOT, [PurePosixPath("ben.edf"), first, second])
    message = str(caught.value)
    assert all(text in message for text in (str(first), str(second), subject, "--subject"))
    # The first regular expression in the message matches the subject, the second the file name.
    pattern, of_file = re.findall(r"'(.*?)'", message)
    assert {subject_finder(pattern)(path) for path in (first, second)} == {subject}
    assert len({subject_finder(of_file)(path) for path in (first, second)}) == 2


def test_words_that_several_names_have_ask_for_the_subject():
    names = ("P01_eyes-Open_raw.fif", "P01_eyes-closed_raw.fif")
    names += ("anna_eyes-open.edf", "anna_eyes-closed.edf", "ben.edf")
    with pytest.raises(ValueError, match="same subject") as caught:
        check_guessed_subjects(ROOT, paths(*names))
    pattern, _ = re.findall(r"'(.*?)'", str(caught.value))
    first, second, third = map(subject_finder(pattern), paths(*names)[:3])
    assert first == second != third


@pytest.mark.parametrize(
    "names",
    [
        ("one/sub-01/eeg/sub-01_eeg.edf", "one/sub-02/a.edf", "two/b/sub-01/ses-1/c.edf"),
        ("sub-01/eeg/sub-01_eeg.edf", "sub-02/a.edf", "more/sub-01/eeg/sub-01_eeg.edf"),
    ],
)
def test_one_name_in_two_datasets_asks_whether_it_is_the_same_subject(names):
    first, other, second = paths(*names)
    with pytest.raises(ValueError, match=r"sub-01.*same subject .*--subject") as caught:
        check_guessed_subjects(ROOT, [first, other, second])
    assert all(str(path) in str(caught.value) for path in (first, second))
    one, two = (subject_finder(p) for p in re.findall(r"'(.*?)'", str(caught.value)))
    assert one(first) == one(second) == "01" != one(other)
    assert len({two(first), two(second), two(other)}) == 3


@pytest.mark.parametrize(
    "names",
    [
        ("one/sub-01/a.edf", "two/sub-02/a.edf", "rest/sub-01_eeg.edf", "one/sub-01/ses-2/b.edf"),
        ("P01_open.edf", "P01_closed.edf", "P02_open.edf"),  # one subject alone shows no rule
        ("lab_anna.edf", "lab_ben.edf", "clinic_carl.edf", "clinic_dora.edf"),
        ("SC4001E0-PSG.edf", "SC4002E0-PSG.edf"),
        ("night_1.edf", "night_2.edf"),
        ("Subject00_1.edf", "Subject01_2.edf"),
        ("sub-01_ses-1_eeg.edf", "sub-01_ses-2_eeg.edf"),
        ("anna/night_1.edf", "anna/night_2.edf"),
    ],
)
def test_other_names_are_not_guessed(names):
    check_guessed_subjects(ROOT, paths(*names))


def test_subjects_by_a_pattern_or_a_function():
    path = PurePosixPath("day1/S001R03.edf")
    assert subject_finder(r"(S\d+)R")(path) == "S001"
    assert subject_finder(lambda path: path.parts[0])(path) == "day1"
    assert subject_finder(None) is subject_of_path
    with pytest.raises(ValueError, match=r"S001R03\.edf"):
        subject_finder("(P[0-9]+)")(path)
    with pytest.raises(ValueError, match="2 groups"):
        subject_finder("(S)(P)")
