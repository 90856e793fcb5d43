"""Reading a corpus: order, parallel reading, damaged files; splits of subjects."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from support.recording_files import read

from braindecode_pars.datasets.simulated import sleep
from braindecode_pars.recordings.cutting import record_excluded
from braindecode_pars.recordings.loading import (
    choose_subjects,
    read_corpus,
    set_splits,
    split_subjects,
)
from braindecode_pars.windows.convert import as_windows

NAME = "synthetic"


def test_windows_keep_the_order_and_descriptions_of_the_recordings(recordings):
    windows = read_corpus(recordings, read, NAME, verbose=0)
    assert windows.description["subject"].tolist() == [3, 1, 2]
    assert set(windows.description["split"]) == {"train"}
    assert [len(ds) for ds in windows.datasets] == [5, 3, 4]
    assert windows.datasets[0].metadata["target"].tolist() == [0, 0, 1, 1, 1]


def test_a_damaged_file_is_named(recordings):
    recordings[1].file.write_text("")
    with pytest.raises(ValueError, match=r"s1\.txt .*it is empty"):
        read_corpus(recordings, read, NAME, verbose=0)
    with pytest.warns(UserWarning, match=r"1 of 3 .* skipped:\n  \S*s1\.txt: [^\n]+$"):
        windows = read_corpus(recordings, read, NAME, on_error="warn", verbose=0)
    assert windows.description["subject"].tolist() == [3, 2]
    with pytest.raises(ValueError, match=r"on_error .*'skip'"):
        read_corpus(recordings, read, NAME, on_error="skip")


def test_too_short_recordings_are_counted(recordings, caplog):
    caplog.set_level("INFO")
    recordings[2].file.write_text("2 1")
    windows = read_corpus(recordings, read, NAME)
    assert windows.description["subject"].tolist() == [3, 1]
    assert "1 of 3 recordings  shorter than a window of 2 s  s2.txt" in caplog.messages[-1]
    for recording in recordings:
        recording.file.write_text("2 1")
    with pytest.raises(ValueError, match="3 recordings"):
        read_corpus(recordings, read, NAME, verbose=0)


def read_half(recording):
    """Read a recording with 2 of 8 labels after the end, and 3 of 5 windows in bad segments."""
    windows = read(recording)
    record_excluded("labels", "after the end", 2, 8)
    record_excluded("windows", "in bad segments", 3, 5, is_requested=True)
    return windows


def test_excluded_items_of_expected_recordings_are_one_warning(recordings):
    recordings[0].file.write_text("3 1")
    recordings.append(replace(recordings[0], file=recordings[1].file))  # more of subject 3
    with pytest.warns(UserWarning, match="Excluded") as caught:
        read_corpus(recordings, read_half, NAME, ("a", "b"), "ab", verbose=0)
    (warning,) = caught
    assert str(warning.message).splitlines() == [
        "Excluded:",
        "  1 of 4 recordings  shorter than a window of 2 s  s3.txt",
        "  6 of 24 labels     after the end                 s1.txt, s2.txt, s1.txt",
        "  9 of 15 windows    in bad segments               s1.txt, s2.txt, s1.txt",
    ]


def test_a_subject_or_a_class_without_windows_is_an_error(recordings):
    options = dict(read=read, corpus=NAME, classes=("a", "b", "c"), verbose=0)
    recordings[2].file.write_text("2 1")
    with pytest.raises(ValueError, match=r"subject 2, class 'c'\..*on_error") as caught:
        read_corpus(recordings, expected=("a", "c"), **options)
    assert "s2.txt" in str(caught.value)
    recordings[0].file.write_text("")
    message = r"s3\.txt.*\n.* subject 3, subject 2\."
    with pytest.warns(UserWarning, match=message) as warned:
        read_corpus(recordings, expected=(), on_error="warn", **options)
    assert len(warned) == 1
    assert "1 of 3 recordings  shorter" in str(warned[0].message)


def test_choosing_subjects(recordings, tmp_path):
    assert [r.subject for r in choose_subjects(recordings, [2, 3], tmp_path)] == [3, 2]
    assert choose_subjects(recordings, None, tmp_path) == recordings
    with pytest.raises(FileNotFoundError, match=r"8, 9.* 3, 1, 2"):
        choose_subjects(recordings, [1, 8, 9], tmp_path)
    with pytest.raises(ValueError, match="empty"):
        choose_subjects(recordings, [], tmp_path)
    with pytest.raises(TypeError, match="'s1'"):
        choose_subjects(recordings, "s1", tmp_path)


SHARES = {"train": 0.6, "valid": 0.2, "test": 0.2}


def test_sizes_of_the_splits_in_the_paper():
    """The sizes are those of the paper; only the seed decides, no order and no repetition."""
    subjects = [f"tr{i}" for i in range(994)]
    splits = split_subjects(subjects, SHARES, seed=4)
    assert Counter(splits.values()) == {"train": 596, "valid": 199, "test": 199}
    assert split_subjects([*reversed(subjects), *subjects], SHARES, seed=4) == splits
    assert split_subjects(subjects, SHARES, seed=0) != splits


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


def test_splits_that_cannot_be_set(tmp_path):
    windows = sleep(n_subjects=2, hours=0.1, n_chans=1)
    with pytest.raises(ValueError, match=r"\(1\): 2\."):
        set_splits(windows, {1: "train"})
    with pytest.raises(ValueError, match=r"01: 'train' and 'test'"):
        set_splits(windows, {1: "train", "01": "test"})
    (tmp_path / "splits.csv").write_text("subject,part\n1,train\n")
    with pytest.raises(ValueError, match="columns split"):
        set_splits(windows, tmp_path / "splits.csv")
