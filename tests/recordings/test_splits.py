"""Splits of subjects: complete, reproducible, and of the given sizes."""

from __future__ import annotations

from collections import Counter

import pytest

from braindecode_pars.datasets.simulated import sleep
from braindecode_pars.recordings.loading import set_splits, split_subjects
from braindecode_pars.windows.door import as_windows

SHARES = {"train": 0.6, "valid": 0.2, "test": 0.2}


def test_sizes_of_the_splits_in_the_paper():
    splits = split_subjects((f"tr{i}" for i in range(994)), SHARES)
    assert Counter(splits.values()) == {"train": 596, "valid": 199, "test": 199}


def test_order_and_repetition_of_subjects_do_not_matter():
    subjects = [f"s{i}" for i in range(20)]
    once = split_subjects(subjects, SHARES, seed=4)
    assert split_subjects([*reversed(subjects), *subjects], SHARES, seed=4) == once
    assert set(once) == set(subjects)


def test_another_seed_gives_another_split():
    assert split_subjects(range(50), SHARES, 0) != split_subjects(range(50), SHARES, 1)


def test_shares_sum_to_one():
    with pytest.raises(ValueError, match="shares"):
        split_subjects(range(5), {"train": 0.8, "test": 0.1})


def test_splits_of_a_file_are_set_by_any_spelling_of_a_subject(tmp_path):
    windows = sleep(n_subjects=3, hours=0.1, n_chans=1)
    (tmp_path / "participants.tsv").write_text(
        "participant_id\tage\tsplit\nsub-01\t3\ttrain\nsub-02\t4\tvalid\nsub-03\t5\ttest\n"
    )
    set_splits(windows, tmp_path / "participants.tsv")
    assert [part.description["split"] for part in windows.datasets] == ["train", "valid", "test"]
    # A second call replaces the first one.
    set_splits(windows, {1: "test", 2: "train", 3: "train"})
    assert as_windows(windows).splits[::12].tolist() == ["test", "train", "train"]


def test_names_with_the_corpus_in_front_are_the_same_subjects():
    windows = sleep(n_subjects=2, hours=0.1, n_chans=1)
    windows.set_description(
        {"subject": ["aaaaaaab", "aaaaaaac"], "corpus": ["tuab"] * 2}, overwrite=True
    )
    splits = {"tuab:aaaaaaab": "train", "tuab:aaaaaaac": "test"}
    set_splits(windows, splits)
    assert list(windows.description["split"]) == ["train", "test"]
    with pytest.raises(ValueError, match="aaaaaaab, aaaaaaac"):
        set_splits(windows, {f"ysyw:{name[5:]}": split for name, split in splits.items()})


def test_a_file_that_names_absent_people_says_so():
    windows = sleep(n_subjects=2, hours=0.1, n_chans=1)
    with pytest.warns(UserWarning, match="8, 9"):
        set_splits(windows, {1: "train", 2: "valid", 8: "test", 9: "test"})


def test_splits_that_cannot_be_set(tmp_path):
    windows = sleep(n_subjects=2, hours=0.1, n_chans=1)
    with pytest.raises(ValueError, match=r"1 subjects .*: 2"):
        set_splits(windows, {1: "train"})
    with pytest.raises(ValueError, match=r"01 .*'train' and 'test'"):
        set_splits(windows, {1: "train", "01": "test"})
    (tmp_path / "splits.csv").write_text("subject,part\n1,train\n")
    with pytest.raises(ValueError, match="'split'"):
        set_splits(windows, tmp_path / "splits.csv")
