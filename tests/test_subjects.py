"""Names of subjects: spellings of one name, subjects in the paths of files, and hidden names."""

from __future__ import annotations

import hashlib
import unicodedata
import warnings
from pathlib import PurePosixPath

import numpy as np
import pytest

from braindecode_pars._common.subjects import (
    CORPORA,
    SubjectKeys,
    hidden,
    hide_subjects,
    in_corpus,
    is_hidden,
    known_subject_of_path,
    new_salt,
    normalized,
    salt_of,
    subject_key,
    subject_of_path,
    warn_of_similar_names,
)
from braindecode_pars.datasets import RECIPES

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


def test_case_and_blanks_do_not_count():
    assert subject_key(" P07") == subject_key("p07 ") == subject_key("P07")


def test_both_unicode_forms_of_a_name_are_one_subject():
    assert DECOMPOSED != "Jörg"
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
        ("sub-Jürgen/eeg/sub-Jürgen_task-rest_eeg.edf", "Jürgen"),
        (f"sub-{DECOMPOSED}/eeg/sub-{DECOMPOSED}_eeg.edf", "Jörg"),
        ("sub-A-B/sub-A-B_eeg.edf", "A-B"),
        ("sub-01/sub-01_night1.edf", "01"),
        ("sub-01_ses-02/night.edf", "01"),
        ("study/sub-02/night_raw.fif", "02"),
        ("study_sub-03/night_raw.fif", "03"),
        ("sub-A-B_task-rest_eeg.edf", "A-B"),
        ("sub-Jörg_raw.fif.gz", "Jörg"),
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
    assert known_subject_of_path(PurePosixPath(path)) == subject
    assert subject_of_path(PurePosixPath(path)) == subject


@pytest.mark.parametrize("path", ["anna/n1/n1.edf", "anna/n1.hea", "anna_s1_t0.edf", "n1.edf"])
def test_other_layouts(path):
    assert known_subject_of_path(PurePosixPath(path)) is None


def test_subject_1_of_two_corpora_is_two_people():
    seen = SubjectKeys(["day:1", "night:S002", 3, "TUEG:aaaaaaaa"])
    for subject in ("day:1", "day:001", 1, "night:2", "eegmat:3", "tueg:AAAAAAAA", "aaaaaaaa"):
        assert subject in seen, subject
    for subject in ("eegmat:1", "day:2", "ysyw:aaaaaaaa", 4):
        assert subject not in seen, subject


def test_the_corpora_of_the_temple_hospital_have_people_in_common():
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


NAMES = ["day:1", "night:S002", 3, "TUEG:aaaaaaaa", " Jörg ", ("P", 1), 7.0]


def test_hidden_subjects_are_recognised_as_their_names_are():
    """The same answers, in every spelling, with the corpus rules, and on both sides."""
    named, shared = SubjectKeys(NAMES), SubjectKeys(hide_subjects(NAMES))
    asked = ["day:1", "day:001", 1, "night:2", "eegmat:3", "tuab:AAAAAAAA", DECOMPOSED, ("P", 1)]
    asked += ["eegmat:1", "day:2", "ysyw:aaaaaaaa", 4, "Jürgen", "7", "sub-007"]
    assert [subject in shared for subject in asked] == [subject in named for subject in asked]
    assert sum(subject in shared for subject in asked) == 10
    for subject in asked:
        (alone,) = hide_subjects([subject])
        assert (alone in named) == (subject in named), subject


def test_hidden_subjects_do_not_tell_their_names():
    shared = hide_subjects(["tueg:anna", "ben", "anna", "Anna"])
    assert len(shared) == 3  # two spellings are one person
    assert [subject.partition("$")[0] for subject in shared] == ["scrypt", "scrypt", "tueg:scrypt"]
    assert all(map(is_hidden, shared))
    assert not any(map(is_hidden, ["tueg:anna", "scrypt", 7, None]))


def test_no_part_of_a_name_with_a_colon_stays_readable():
    """What is in front of a colon may be a name; only the corpora of the recipes are none."""
    names = ["Berg:Anna:2", "Berg:Ben", "tusz:Carl:Holm"]
    shared = hide_subjects(names)
    texts = " ".join(shared).casefold()
    assert not [name for name in ("berg", "anna", "ben", "carl", "holm") if name in texts]
    seen, named = SubjectKeys(shared), SubjectKeys(names)
    asked = ("berg:anna:2", "BERG:ben", "Ben", "tuab:Carl:Holm", "Anna:2", "Holm:Ben", "Berg:Carl")
    assert [name in seen for name in asked] == [True] * 4 + [False] * 3
    assert [name in named for name in asked] == [True] * 4 + [False] * 3
    assert hide_subjects(shared) == shared
    # Names that an earlier version has hidden without what is in front of them.
    earlier = hide_subjects(["Ben"])[0]
    (again,) = hide_subjects([f"Berg:{earlier}"])
    assert "Berg" not in again
    assert ["Berg:Ben" in SubjectKeys([again]), "Holm:Ben" in SubjectKeys([again])] == [True, False]


def test_public_corpora_are_those_of_the_recipes():
    assert tuple(sorted(RECIPES)) == CORPORA


def test_hiding_again_changes_nothing_and_salts_differ():
    shared = hide_subjects(["anna", "ben"])
    assert hide_subjects(shared) == shared
    other = hide_subjects(["anna", "ben"])
    assert not {*shared} & {*other}
    mixed = SubjectKeys([*shared, *hide_subjects(["carl"]), "dora"])
    assert [name in mixed for name in ("anna", "carl", "dora", "emil")] == [True] * 3 + [False]


def test_the_hash_is_scrypt_of_the_name():
    salt = bytes(range(16))
    expected = hashlib.scrypt("jörg".encode(), salt=salt, n=2048, r=8, p=1, dklen=16)
    assert hidden("jörg", salt.hex()) == f"scrypt${salt.hex()}${expected.hex()}"


def test_each_salt_gives_another_hash():
    names = ["anna", "ben", ""]
    first, second = ([hidden(name, new_salt()) for name in names] for _ in range(2))
    assert len({*first, *second}) == 6
    assert all(salt_of(text) is not None for text in first)


def test_other_texts_are_not_hidden():
    text = hidden("anna", "0" * 32)
    others = [text[:-1], f"{text}0", text.upper(), f"tueg:{text}", "scrypt$$", "", "anna"]
    assert [salt_of(other) for other in others] == [None] * 7


def test_a_name_is_hashed_once_for_each_salt(monkeypatch):
    """A leak check of many folds asks for the same subjects again and again."""
    calls = []
    real = hashlib.scrypt
    monkeypatch.setattr(hashlib, "scrypt", lambda *a, **k: calls.append(a) or real(*a, **k))
    salt = new_salt()
    for _ in range(3):
        hide_subjects(["anna", "ben"], salt)
    assert len(calls) == 2
