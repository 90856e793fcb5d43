"""Annotations of a recording; tests/datasets/test_folder.py reads them with whole folders."""

from __future__ import annotations

import pytest

from braindecode_pars.recordings._own_annotations import (
    annotations_of,
    labels_in_annotations,
    table_beside,
)


def test_the_table_of_bids_beside_a_recording(tmp_path):
    file, table = tmp_path / "sub-1_task-rest_eeg.edf", tmp_path / "sub-1_task-rest_events.tsv"
    assert table_beside(file, "events") is None
    table.write_text("onset\tduration\ttrial_type\n2\t4\tleft\n8\tn/a\tright\n9\t1\tn/a\n")
    assert table_beside(file, "events") == table
    found = annotations_of(file)
    assert found.description.tolist() == ["left", "right"]
    assert [*found.onset, *found.duration] == [2, 8, 4, 0]
    table.write_text("onset\tduration\ttrial_type\n2\t4\tNone\n8\t4\tNA\n")
    assert annotations_of(file).description.tolist() == ["None", "NA"]
    table.write_text("onset\tduration\ttrial_type\n2\t4\tleft\nn/a\t4\tright\n")
    with pytest.raises(ValueError, match="has the onset nan of 'right'; write seconds"):
        annotations_of(file)
    table.write_text("onset\tduration\n2\t4\n")
    with pytest.raises(ValueError, match="no column 'trial_type'"):
        annotations_of(file)


def test_a_name_with_a_dot_has_a_table_of_its_own(tmp_path):
    (tmp_path / "P01_events.tsv").write_text("")
    (table := tmp_path / "P01.b_events.tsv").write_text("")
    assert table_beside(tmp_path / "P01.a.edf", "events") is None
    assert table_beside(tmp_path / "P01.b.fif.gz", "events") == table


def test_a_file_without_annotations(tmp_path):
    (tmp_path / "a.hea").write_text("a 1 100 6000\n")
    (tmp_path / "b.edf").write_bytes(b"damaged")
    for name in ("a.hea", "b.edf"):
        assert len(annotations_of(tmp_path / name)) == 0


def test_labels_are_as_long_as_a_window_or_without_a_duration(tmp_path):
    file, table = tmp_path / "sub-1_eeg.edf", tmp_path / "sub-1_events.tsv"
    rows = "onset\tduration\ttrial_type\n0\t30\tW\n30\t29.999\tN1\n60\t5\tblink\n"
    marks = "60\t0\tright\n70\t0\tleft\n80\t0\tboundary\n90\t40\tbad stretch\n"
    table.write_text(rows + marks)
    assert labels_in_annotations([file], 30.0) == ["N1", "W"]
    assert labels_in_annotations([file], 31.0) == ["left", "right"]
    table.write_text(rows)
    with pytest.raises(ValueError, match="No annotation of 1 recordings is as long as a window of"):
        labels_in_annotations([file], 31.0)
