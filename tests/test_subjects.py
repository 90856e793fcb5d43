"""Names of subjects: spellings of one name, and subjects in the paths of files."""

from __future__ import annotations

import unicodedata
import warnings
from pathlib import PurePosixPath

import numpy as np
import pytest

from braindecode_pars._common.subjects import (
    SeenSubjects,
    SubjectKeys,
    in_corpus,
    known_subject_of_path,
    normalized,
    public_subject,
    subject_key,
    subject_of_path,
    warn_of_similar_names,
)

DECOMPOSED = unicodedata.normalize("NFD", "Jörg")


@pytest.mark.parametrize(
    "same",
    [7, "7", "007", np.int64(7), 7.0, np.float64(7), "7.0", "sub-007", "sub-7", "S007", "sub-s7"],
)
def test_a_subject_number_may_be_written_in_several_ways(same):
    assert subject_key(same) == "7"


def test_other_names_are_different_subjects():
    names = ["P07", "P7", "7a", 7, "0.7", 7.5, "\u0667", None, "", "Jörg", "Jürgen", "J"]
    assert len({subject_key(name) for name in names}) == len(names)


def test_spellings_of_a_name_are_one_subject():
    for name in ("\ufeffP07", "p07\u200b", " P07", "p07 "):
        assert subject_key(name) == subject_key("P07")
    assert subject_key(DECOMPOSED) == subject_key("Jörg") == "jörg"
    assert normalized(DECOMPOSED) == "Jörg"
    assert normalized(7) == 7


def test_similar_names_are_reported():
    with pytest.warns(UserWarning, match="'1' and 1 and '01'"):
        warn_of_similar_names(["1", 1, 1.0, "2", 2.5, "P1", "01"])
    warn_of_similar_names([1, 1.0, np.int64(1), "anna"])  # one number


@pytest.mark.parametrize(
    ("path", "subject"),
    [
        ("sub-01/ses-1/eeg/sub-01_ses-1_eeg.edf", "01"),
        ("sub-Jörg/eeg/sub-Jörg_task-rest_eeg.edf", "Jörg"),
        ("sub-A-B/sub-A-B_eeg.edf", "A-B"),
        ("sub-01_ses-02/night.edf", "01"),
        ("study/sub-02/night_raw.fif", "02"),
        ("study_sub-03/night_raw.fif", "03"),
        ("sub-A-B_task-rest_eeg.edf", "A-B"),
        ("sub-04_raw-1.fif", "04"),
        ("rest/sub-05_eeg.EDF", "05"),
        ("anna/2020/night.edf", "anna"),
        (f"{DECOMPOSED}/night.edf", "Jörg"),
        ("Müller.Anna.edf", "Müller.Anna"),
        ("lone_raw.fif.gz", "lone_raw"),
    ],
)
def test_subjects_in_paths(path, subject):
    assert subject_of_path(PurePosixPath(path)) == subject


@pytest.mark.parametrize(
    ("path", "subject"),
    [
        ("edf/000/aaaaaaab/s001_2015_12_30/01_tcp_ar/aaaaaaab_s001_t000.edf", "aaaaaaab"),
        ("edf/train/normal/01_tcp_ar/aaaaaaac_s004_t000.edf", "aaaaaaac"),
        ("edf/dev/aaaaaaad/s001_2003/02_tcp_le/aaaaaaad_s001_t001.edf", "aaaaaaad"),
        ("edf/01_tcp_ar/002/00000254/s005_2010_11_15/00000254_s005_t000.edf", "00000254"),
        ("training/tr03-0005/tr03-0005.hea", "tr03-0005"),
        ("te03-0094/te03-0094.hea", "te03-0094"),
        ("data/sub-01/aaaaaaab_s001_t000.edf", "01"),
    ],
)
def test_layouts_that_are_known(path, subject):
    assert known_subject_of_path(PurePosixPath("anna/n1/n1.edf")) is None
    assert known_subject_of_path(PurePosixPath(path)) == subject
    assert subject_of_path(PurePosixPath(path)) == subject


def test_subject_1_of_two_corpora_is_two_subjects():
    seen = SubjectKeys(["day:1", "night:S002", 3, "TUEG:aaaaaaaa"])
    for subject in ("day:1", "day:001", 1, "night:2", "eegmat:3", "tueg:AAAAAAAA", "aaaaaaaa"):
        assert subject in seen, subject
    for subject in ("eegmat:1", "day:2", "ysyw:aaaaaaaa", 4):
        assert subject not in seen, subject


def test_a_number_without_corpus_is_no_subject_of_a_corpus_on_a_card():
    """Each corpus has a subject 1; other names, such as those of the Temple hospital, identify."""
    seen = SeenSubjects(["physionet_mi:1", "physionet_mi:2", 2, "P03", "tueg:aaaaaaaa"])
    for subject in ("physionet_mi:S001", "s02", "sub-002", "p03", "tuab:P03", "aaaaaaaa"):
        assert subject in seen, subject
    for subject in ("s01", 1, "sub-01", "1", "eegmat:2", "p04"):
        assert subject not in seen, subject
    # Where a corpus is unknown, the numbers may be of one subject
    subjects = ["s01", 1, "Subject01", "eegmat:2", "eegmat:1", "physionet_mi:1", "s03", "p04"]
    assert [seen.may_have(subject) for subject in subjects] == [True] * 4 + [False] * 4


@pytest.mark.parametrize(
    ("name", "key"),
    [("ucddb022", "ucddb:22"), ("ucddb:ucddb022", "ucddb:22"), ("eegmat:Subject07", "eegmat:7")],
)
def test_numbers_of_a_public_corpus(name, key):
    assert subject_key(name) == key
    assert key in SeenSubjects([name])


def test_the_subject_in_the_file_names_of_public_corpora():
    files = ["S017R04.edf", "ucddb002.rec", "ucddb002.edf", "s01.edf", "Subject00_1.edf"]
    found = ["physionet_mi:S017", None, "ucddb:ucddb002", None, None]
    assert [public_subject(file) for file in files] == found


def test_the_corpora_of_the_temple_hospital_share_subjects():
    seen = SubjectKeys(["tueg:aaaaaaaa"])
    assert all(f"{corpus}:aaaaaaaa" in seen for corpus in ("tueg", "tuab", "tusz"))
    assert subject_key("tuab:aaaaaaaa") == subject_key("tusz:AAAAAAAA")


def test_a_corpus_is_put_in_front_of_a_name_once():
    assert in_corpus("day", in_corpus("day", "aaaaaaaa")) == "day:aaaaaaaa"
    assert in_corpus("day", "night:1") == "day:night:1"
    assert "night:1" not in SubjectKeys(["day:1"])
    assert in_corpus(None, 7) == 7


def test_a_name_without_corpus_may_be_that_of_a_corpus():
    with pytest.warns(UserWarning, match="'day:1' and 1"):
        warn_of_similar_names(["day:1", "night:2", 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_similar_names(["day:1", "night:1"])
