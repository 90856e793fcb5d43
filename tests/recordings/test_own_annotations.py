"""Annotations of a recording; tests/datasets/test_folder.py reads them with whole folders."""

from __future__ import annotations

import pytest

from braindecode_pars.recordings._own_annotations import annotations_of, table_beside


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
