"""Labels in a table: what is read, and a sentence for each mistake."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pandas as pd
import pytest

from braindecode_pars.recordings.label_files import labels_in_table, read_table

ROOT = Path("data")
FILES = [ROOT / "a.edf", ROOT / "day2" / "b.edf"]


def found(text, tmp_path, files=FILES, seconds=30.0):
    file = tmp_path / "labels.csv"
    file.write_text(text, encoding="utf-8")
    return labels_in_table(read_table(file, tmp_path), ROOT, files, seconds, "labels.csv")


def stretches(text, tmp_path, **options):
    return [[tuple(s) for s in one.stretches] for one in found(text, tmp_path, **options)]


def test_labels_of_whole_files_and_of_stretches(tmp_path):
    text = "file,label,onset,duration\na.edf,W,0,30\na.edf,N1,30,60.5\nday2/b.edf,W,,\n"
    assert stretches(text, tmp_path) == [[(0, 30, "W"), (30, 60.5, "N1")], [(None, None, "W")]]


@pytest.mark.parametrize("name", ["b", "b.edf", "day2/b", "day2/b.edf", "./day2/b.edf", "day2\\b"])
def test_names_of_files(name, tmp_path):
    assert stretches(f"file,label\na,W\n{name},R\n", tmp_path)[1] == [(None, None, "R")]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_tables_of_spreadsheets(separator, tmp_path):
    """With a byte order mark, other separators, and blanks after them."""
    text = f"\ufefffile{separator}label{separator}subject\na{separator}W{separator}007\n"
    (labelled,) = found(text, tmp_path, files=FILES[:1])
    assert (labelled.subject, labelled.stretches) == ("007", ((None, None, "W"),))


def test_events_without_a_duration_last_one_window(tmp_path):
    text = "file,label,onset\na,left,2\na,right,6\nb,n/a,\n"
    assert stretches(text, tmp_path) == [[(2, None, "left"), (6, None, "right")], []]
    zero = "file,label,onset,duration\na,left,2,0\nb,,,\n"
    assert stretches(zero, tmp_path) == [[(2, None, "left")], []]


def test_a_data_frame_with_numbers():
    table = pd.DataFrame({"file": ["a", "b"], "label": [1, 2], "subject": [7, 7]})
    labels = labels_in_table(table, ROOT, FILES, 30.0, "The table")
    assert [(one.subject, one.stretches[0][2]) for one in labels] == [(7, "1"), (7, "2")]


def test_both_unicode_forms_of_a_file_are_one(tmp_path):
    files = [ROOT / unicodedata.normalize("NFD", "Jörg.edf")]
    assert stretches("file,label\nJörg.edf,W\n", tmp_path, files=files) == [[(None, None, "W")]]


MISTAKES = {
    "file,stage\na,W\n": "'label'",
    "file,label,Onset\na,W,0\n": "'Onset'",
    "file,label,duration\na,W,30\n": "without onsets",
    "file,label\na,W\n": r"day2/b\.edf",
    "file,label\na,W\nb,W\nc,W\n": "'c', which is not in the folder",
    "file,label\n,W\n": "label 'W'",
    "file,label\na,W\na,R\nb,W\n": r"a\.edf .*'W', 'R'",
    "file,label\na,W\na,W\nb,W\n": "'W'",
    "file,label,onset\na,W,\na,R,30\nb,W,\n": "without an onset",
    "file,label,onset,duration\na,W,,30\nb,W,,\n": "without an onset",
    "file,label,onset\na,W,22:13:05\nb,W,0\n": "'22:13:05' in a row of a",
    "file;label;onset\na;W;0,5\nb;W;0\n": "'0,5' in a row of a",
    "file,label,onset\na,W,-1\nb,W,0\n": "onset '-1'",
    "file,label,onset\na,W,inf\nb,W,0\n": "onset 'inf'",
    "file,label,onset,duration\na,W,0,60\na,R,30,30\nb,W,0,\n": r"a\.edf .*'W' .*60 s.*'R'.* 30 s",
    "file,label,onset\na,W,0\na,R,0\nb,W,0\n": "overlap",
    "file,label,onset,duration\na,W,0,20\nb,W,0,30\n": r"a\.edf .*'W' .*20 s .* 30 s",
    "file,label,subject\na,W,1\na,W,2\nb,W,3\n": r"a\.edf as 1 and 2",
    "file,label,subject\na,W,1\nb,W,\n": r"b\.edf as none",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_each_mistake_is_one_sentence(text, tmp_path):
    with pytest.raises(ValueError, match=MISTAKES[text]) as caught:
        found(text, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_name_of_two_files(tmp_path):
    files = [ROOT / "day1" / "b.edf", ROOT / "day2" / "b.edf"]
    with pytest.raises(ValueError, match=r"'b', which may be"):
        found("file,label\nb,W\n", tmp_path, files=files)


def test_labels_may_touch_and_overlap_by_rounding(tmp_path):
    text = "file,label,onset,duration\na,R,30,30\na,W,0,30.0004\nb,W,0,30\n"
    assert len(stretches(text, tmp_path)[0]) == 2


def test_a_path_as_it_is_or_in_the_folder(tmp_path, monkeypatch):
    (tmp_path / "labels.csv").write_text("file,label\na,W\n")
    assert len(read_table("labels.csv", tmp_path)) == 1
    monkeypatch.chdir(tmp_path)
    assert len(read_table("labels.csv", Path("elsewhere"))) == 1
    with pytest.raises(FileNotFoundError, match=r"list\.csv"):
        read_table("list.csv", tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"file,label\nJ\xf6rg,W\n", b'file,label\n"a,W\n', b"file,label\na,W,\n"]
)
def test_files_that_are_no_table(content, tmp_path):
    (tmp_path / "labels.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"labels\.csv"):
        read_table("labels.csv", tmp_path)


def test_blanks_and_unicode_forms_make_no_further_classes_or_subjects(tmp_path):
    text = "file , label,subject \na ,\u00fcben ,P1 \nb,u\u0308ben,P1\n"
    labels = found(text, tmp_path)
    assert {one.stretches[0][2] for one in labels} == {"\u00fcben"}
    assert {one.subject for one in labels} == {"P1"}


def test_whole_numbers_of_a_column_with_empty_cells_are_whole(tmp_path):
    table = pd.DataFrame({"file": ["a", "a", "b"], "label": [10, 2, None], "onset": [0, 30, 0]})
    of_frame = labels_in_table(table, ROOT, FILES, 30.0, "The table")[0]
    of_file = found("file,label,onset\na,10.0,0\na,2,30\nb,,\n", tmp_path)[0]
    assert [label for _, _, label in of_frame.stretches] == ["10", "2"]
    assert of_file == of_frame


def test_a_blank_subject_is_none():
    table = pd.DataFrame({"file": ["a", "b"], "label": ["W", "R"], "subject": ["P1", " "]})
    with pytest.raises(ValueError, match=r"b\.edf"):
        labels_in_table(table, ROOT, FILES, 30.0, "The table")
