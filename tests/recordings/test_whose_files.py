"""Subjects of files: given by a pattern or a function, and names that leave them open."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest

from braindecode_pars._common.subjects import subject_of_path
from braindecode_pars.recordings.search import check_one_person_each, subject_finder


def paths(*names):
    return [PurePosixPath(name) for name in names]


OBVIOUS = {
    "Subject00": ("Subject00_1.edf", "Subject00_2.edf"),
    "S001": ("S001R03.edf", "S001R04.edf"),
    "s2": ("s2R03_raw.fif", "s2R14_raw.fif"),
    "anna": ("anna_night1.edf", "anna_night2.edf"),
    "P07": ("P07-run-1.edf", "P07-run-2.edf"),
    "Anna B": ("Anna B_ses1_eeg.edf", "Anna B_ses2_eeg.edf"),
    "P1": ("P1_1/night.edf", "P1_2/night.edf"),
    "VP001": ("VP001_run01.vhdr", "VP001_run02.vhdr"),
    "S01": ("S01_Run1.edf", "S01_run2.edf"),
    "S002": ("S002R03.edf", "S002r04.edf"),
    "P08": ("P08_1.set", "P08_2.set"),
}


@pytest.mark.parametrize("person", OBVIOUS)
def test_names_that_count_recordings_of_one_person_ask_for_the_subject(person):
    first, second = paths(*OBVIOUS[person])
    with pytest.raises(ValueError, match="one person") as caught:
        check_one_person_each([PurePosixPath("ben.edf"), first, second])
    message = str(caught.value)
    assert all(text in message for text in (str(first), str(second), person, "--subject"))
    # Both patterns that the message gives do what it says.
    one, two = re.findall(r"'(.*?)'", message)[:2]
    assert {subject_finder(one)(path) for path in (first, second)} == {person}
    assert len({subject_finder(two)(path) for path in (first, second)}) == 2


@pytest.mark.parametrize(
    "names",
    [
        ("SC4001E0.edf", "SC4002E0.edf"),
        ("SC4001E0-PSG.edf", "SC4002E0-PSG.edf"),
        ("P_1.edf", "P_2.edf"),
        ("P01.edf", "P02.edf"),
        ("study1_01.edf", "study1_02.edf"),
        ("night1.edf", "night2.edf"),
        ("night_1.edf", "night_2.edf"),
        ("Subject00_1.edf", "Subject01_2.edf"),
        ("Subject00_1.edf", "Subject00_1.fif"),
        ("knight1.edf", "knight2.edf"),
        ("sub-01_ses-1_eeg.edf", "sub-01_ses-2_eeg.edf"),
        ("sub-01/sub-01_run-1_eeg.edf", "sub-01/sub-01_run-2_eeg.edf"),
        ("anna/night_1.edf", "anna/night_2.edf"),
        ("Subject00/Subject00_1.edf", "Subject00/Subject00_2.edf"),
        ("aaaaaaaa_s001_t000.edf", "aaaaaaaa_s001_t001.edf"),
        ("tr03-0005/tr03-0005.hea", "tr03-0006/tr03-0006.hea"),
        ("sub-Anna_B.edf", "sub-Anna_C.edf"),
    ],
)
def test_other_names_are_not_guessed(names):
    check_one_person_each(paths(*names))


def test_subjects_by_a_pattern_or_a_function():
    path = PurePosixPath("day1/S001R03.edf")
    assert subject_finder(r"(S\d+)R")(path) == "S001"
    assert subject_finder(lambda path: path.parts[0])(path) == "day1"
    assert subject_finder(None) is subject_of_path


@pytest.mark.parametrize(
    ("pattern", "error", "message"),
    [
        ("(S", ValueError, "regular expression"),
        ("S", ValueError, "0 groups"),
        ("(S)(P)", ValueError, "2 groups"),
        (3, TypeError, "3"),
    ],
)
def test_patterns_that_cannot_be_used(pattern, error, message):
    with pytest.raises(error, match=message):
        subject_finder(pattern)


def test_a_path_without_the_pattern():
    with pytest.raises(ValueError, match=r"anna\.edf"):
        subject_finder("(P[0-9]+)")(PurePosixPath("anna.edf"))
