"""Recipes and corpora: recordings, splits, excluded subjects, and labels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support import own_recipe
from support.own_recipe import RECIPE
from support.recording_files import read

from braindecode_pars.datasets import RECIPES
from braindecode_pars.recordings.loading import (
    Recording,
    find_recordings,
    read_corpus,
    split_subjects,
)
from braindecode_pars.recordings.recipe import without_left_out
from braindecode_pars.signal_store import SignalStore


@pytest.fixture
def folder(tmp_path) -> Path:
    for name in ("P01_train", "P02_unlabeled", "P03_valid", "P04_test", "P05_train"):
        own_recipe.write(tmp_path / "own", name, 4)
    return tmp_path / "own"


def subjects(recordings) -> list:
    return [recording.subject for recording in recordings]


def touch(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def test_validation_and_test_subjects_are_excluded(folder):
    corpus = RECIPE.continuous(folder)
    assert subjects(corpus.recordings) == ["P01", "P02", "P05"]
    assert subjects(corpus.held_out) == ["P03", "P04"]
    assert corpus.name == "own_recipe"
    assert corpus.summary == (
        "own_recipe: 3 subjects (3 recordings) of 20 in the full corpus. Excluded: 2 subjects (2 "
        "recordings) in the validation and test sets."
    )


def test_absent_subjects_are_tolerated_and_listed(folder):
    """A list may contain subjects of several corpora; a test subject is not absent."""
    corpus = RECIPE.continuous(folder, exclude=[["p01 ", "P99"], ["P04", 7]])
    assert subjects(corpus.recordings) == ["P02", "P05"]
    assert subjects(corpus.excluded) == ["P01"]
    assert corpus.absent == ("P99", "7")
    assert corpus.summary.endswith("test sets; 1 subject (1 recording) excluded by request.")


def test_subjects_of_a_list_may_have_a_corpus(tmp_path):
    """As on the card of an encoder: subject 1 of another corpus is another subject."""
    for subject in (1, 2, 3):
        touch(tmp_path / f"S00{subject}R04.edf")
    exclude = [["physionet_mi:S001", "eegmat:2", 3]]
    corpus = RECIPES["physionet_mi"].continuous(tmp_path, exclude=exclude)
    assert (subjects(corpus.recordings), corpus.absent) == ([2], ("eegmat:2",))


def test_subjects_excluded_from_another_corpus_are_excluded(tmp_path, caplog):
    """Test subjects and excluded subjects of TUAB are in TUEG too, and the other way round."""
    for subject in ("aaaaaaaa", "aaaaaaab", "aaaaaaac", "aaaaaaad", "aaaaaaae"):
        touch(tmp_path / f"v2/edf/000/{subject}/s001_2003/01_tcp_ar/{subject}_s001_t000.edf")
    for part, subject in (("eval", "aaaaaaaa"), *(("train", f"aaaaaaa{x}") for x in "bcd")):
        touch(tmp_path / f"tuab/edf/{part}/normal/01_tcp_ar/{subject}_s009_t000.edf")
    of_tueg = RECIPES["tueg"].continuous(tmp_path / "v2", exclude=[["aaaaaaac"]])
    of_tuab = RECIPES["tuab"].continuous(tmp_path / "tuab", exclude=[["aaaaaaab"]])
    excluded = {"aaaaaaaa", "aaaaaaab", "aaaaaaac", *subjects(of_tuab.held_out)}
    large, small = without_left_out([of_tueg, of_tuab])
    assert set(subjects(large.recordings)) == {"aaaaaaad", "aaaaaaae"} - excluded
    assert set(subjects(small.recordings)) == {"aaaaaaad"} - excluded
    assert "aaaaaaaa" in subjects(large.excluded)
    assert caplog.messages[-1].startswith("tuab: excluded 1 recordings")
    assert without_left_out([large, small]) == [large, small]
    assert without_left_out([of_tueg]) == [of_tueg]


@pytest.fixture
def labeled_folder(tmp_path) -> Path:
    seconds = dict(P01_train=5, P02_valid=1, P03_test=4, P04_unlabeled=9)
    for name, length in seconds.items():
        own_recipe.write(tmp_path / "corpus", name, length)
    return tmp_path / "corpus"


def test_all_splits_are_kept_except_unpublished_labels(labeled_folder):
    corpus = RECIPE.labeled(labeled_folder)
    assert [r.subject for r in corpus.recordings] == ["P01", "P02", "P03"]
    assert (corpus.has_labels, corpus.settings["classes"]) == (True, ["rest", "task"])
    chosen = RECIPE.labeled(labeled_folder, ["P03"])
    assert [r.subject for r in chosen.recordings] == ["P03"]


def test_recordings_without_a_window_are_listed(labeled_folder, tmp_path):
    corpus = RECIPE.labeled(labeled_folder, seconds=1.5)
    with pytest.warns(UserWarning, match=r"P02_valid\.txt"):
        store = SignalStore.create(tmp_path / "store", corpus, verbose=0)
    assert list(store.skipped.values()) == ["it has no labeled windows."]
    assert [len(part) for part in store.labeled_windows().datasets] == [3, 2]
    assert corpus.settings["seconds"] == 1.5


def test_new_labels_are_another_recording(labeled_folder, tmp_path):
    """Also if the file of the signals is the same."""
    corpus = RECIPE.labeled(labeled_folder, ["P01"])
    SignalStore.create(tmp_path / "store", corpus, verbose=0)
    (labeled_folder / "P01_train.tsv").write_text("onset\n")
    with pytest.raises(ValueError, match=r"P01_train\.txt"):
        SignalStore.create(tmp_path / "store", corpus, verbose=0)


NAME = "synthetic"


@pytest.fixture
def recordings(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    made = []
    for subject, seconds in ((3, 10), (1, 6), (2, 8)):
        file = folder / f"s{subject}.txt"
        file.write_text(f"{subject} {seconds}")
        made.append(Recording(file, dict(subject=subject, split="train")))
    return made


def test_windows_keep_the_order_and_descriptions_of_the_recordings(recordings):
    windows = read_corpus(recordings, read, NAME, verbose=0)
    assert windows.description["subject"].tolist() == [3, 1, 2]
    assert set(windows.description["split"]) == {"train"}
    assert [len(ds) for ds in windows.datasets] == [5, 3, 4]
    assert windows.datasets[0].metadata["target"].tolist() == [0, 0, 1, 1, 1]


def test_a_subject_or_a_class_without_windows_is_an_error(recordings):
    options = dict(read=read, corpus=NAME, classes=("a", "b", "c"), verbose=0)
    recordings[2].file.write_text("2 1")
    with pytest.raises(ValueError, match=r"(?s)subject 2, class 'c'\..*on_error") as caught:
        read_corpus(recordings, expected=("a", "c"), **options)
    assert "s2.txt" in str(caught.value)
    recordings[0].file.write_text("")
    with pytest.warns(UserWarning, match=r"s3\.txt.*\n.* subject 3, subject 2\."):
        read_corpus(recordings, expected=(), on_error="warn", **options)


def test_recordings_are_found_in_all_folders(tmp_path):
    for name in ("b/P1.edf", "P2.edf", "a/P10.edf", "a/P3.edf.bak", "xP4.edf"):
        touch(tmp_path / name)
    layout = r"P(?P<subject>\d+)\.edf"
    files = find_recordings(tmp_path, "own", "P1.edf", layout, convert=dict(subject=int))
    assert [file.subject for file in files] == [2, 10, 1]  # by path
    touch(tmp_path / "copy/P2.edf")
    with pytest.raises(ValueError, match=r"P2\.edf"):
        find_recordings(tmp_path, "own", "P1.edf", layout)


SHARES = {"train": 0.6, "valid": 0.2, "test": 0.2}


def test_sizes_of_the_splits_in_the_paper():
    """The sizes are those of the paper; only the seed decides, no order and no repetition."""
    subjects = [f"tr{i}" for i in range(994)]
    splits = split_subjects(subjects, SHARES, seed=4)
    assert Counter(splits.values()) == {"train": 596, "valid": 199, "test": 199}
    assert split_subjects([*reversed(subjects), *subjects], SHARES, seed=4) == splits
    assert split_subjects(subjects, SHARES, seed=0) != splits


def test_files_of_different_subjects_may_have_the_same_name(tmp_path):
    layout = r"(?P<subject>sub-\d\d)/rec\.edf"
    for folder in ("sub-01", "sub-02"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rec.edf").touch()
    recordings = find_recordings(tmp_path, "mine", "sub-01/rec.edf", layout)
    assert [recording.subject for recording in recordings] == ["sub-01", "sub-02"]
