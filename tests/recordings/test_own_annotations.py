"""Annotations of a recording; tests/datasets/test_folder.py reads them with whole folders."""

from __future__ import annotations

import mne
import pytest

from braindecode_pars.recordings.label_files import annotations_of, labels_in_annotations


def test_the_table_of_bids_beside_a_recording(tmp_path):
    file, table = tmp_path / "sub-1_task-rest_eeg.edf", tmp_path / "sub-1_task-rest_events.tsv"
    raw = mne.io.RawArray([[0.0]], mne.create_info(["C3"], 100.0, "eeg"), verbose="error")
    assert len(annotations_of(file, raw)) == 0
    table.write_text("onset\tduration\ttrial_type\n2\t4\tleft\n8\tn/a\tright\n9\t1\tn/a\n")
    found = annotations_of(file, raw)
    assert found.description.tolist() == ["left", "right"]
    assert [*found.onset, *found.duration] == [2, 8, 4, 0]
    table.write_text("onset\tduration\ttrial_type\n2\t4\tNone\n8\t4\tNA\n")
    assert annotations_of(file, raw).description.tolist() == ["None", "NA"]
    table.write_text("onset\tduration\ttrial_type\n2\t4\tleft\nn/a\t4\tright\n")
    with pytest.raises(ValueError, match="'right'"):
        annotations_of(file, raw)
    table.write_text("onset\tduration\n2\t4\n")
    with pytest.raises(ValueError, match="'trial_type'"):
        annotations_of(file, raw)


@pytest.mark.parametrize(("name", "content"), [("a.hea", "a 1 100 6000\n"), ("b.edf", "damaged")])
def test_a_file_without_annotations(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match="30 s"):
        labels_in_annotations([tmp_path / name], 30.0)


def test_labels_are_as_long_as_a_window_or_without_a_duration(tmp_path):
    file, table = tmp_path / "sub-1_eeg.edf", tmp_path / "sub-1_events.tsv"
    rows = "onset\tduration\ttrial_type\n0\t30\tW\n30\t29.999\tN1\n60\t5\tblink\n"
    marks = "60\t0\tright\n70\t0\tleft\n80\t0\tboundary\n90\t40\tbad stretch\n"
    table.write_text(rows + marks)
    assert labels_in_annotations([file], 30.0) == ["N1", "W"]
    assert labels_in_annotations([file], 31.0) == ["left", "right"]
    table.write_text(rows)
    with pytest.raises(ValueError, match="31 s"):
        labels_in_annotations([file], 31.0)
