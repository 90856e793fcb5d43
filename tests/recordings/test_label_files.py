"""Labels of recordings: in tables and in annotations."""

from __future__ import annotations

from pathlib import Path

import mne
import numpy as np
import pandas as pd
import pytest

from braindecode_pars.recordings.cutting import collect_excluded_items
from braindecode_pars.recordings.label_files import (
    LabeledFile,
    annotations_of,
    classes_and_targets,
    classes_of_labels,
    durations_in,
    labels_in_annotations,
    labels_of_files,
    labels_within,
)


def table_of(*segments):
    """Return a table of segments: onset (NaN for the whole recording), duration and label."""
    return pd.DataFrame(segments, columns=["onset", "duration", "label"])


def segments_of(labeled):
    """Return onset (None for the whole recording), duration and label of each segment."""
    segments = labeled.segments.astype(object)
    segments = segments.where(segments.notna(), None)
    return [*segments.itertuples(index=False, name=None)]


def test_labels_in_a_table_or_its_path(tmp_path):
    file, table = tmp_path / "P01_rest.edf", pd.DataFrame({"file": ["P01_rest"], "label": ["W"]})
    table.to_csv(tmp_path / "labels.CSV", index=False)
    for labels in (table, "labels.CSV"):
        (labeled,) = labels_of_files(labels, tmp_path, [file])
        assert segments_of(labeled) == [(None, 0, "W")]
    assert labels_of_files(["W"], tmp_path, [file]) == [LabeledFile(file, {})]
    with pytest.raises(FileNotFoundError, match=r"The table .*W does not exist"):
        labels_of_files("W", tmp_path, [file])


ROOT = Path("data")
FILES = [ROOT / "a.edf", ROOT / "day2" / "b.edf"]


def labels_from_text(text, tmp_path, files=FILES):
    file = tmp_path / "labels.csv"
    file.write_text(text, encoding="utf-8")
    return labels_of_files(file, ROOT, files)


def segments(text, tmp_path, **options):
    return [segments_of(file) for file in labels_from_text(text, tmp_path, **options)]


@pytest.mark.parametrize("name", ["b", "day2/b.edf", "./day2/b.edf", "day2\\b"])
def test_names_of_files(name, tmp_path):
    assert segments(f"file,label\na,W\n{name},R\n", tmp_path)[1] == [(None, 0, "R")]


def test_events_without_a_duration_last_one_window(tmp_path):
    text = "file,label,onset\na,left,2\na,right,6\nb,n/a,\n"
    assert segments(text, tmp_path) == [[(2, 0, "left"), (6, 0, "right")], []]
    zero = "file,label,onset,duration\na,left,2,0\nb,,,\n"
    assert segments(zero, tmp_path) == [[(2, 0, "left")], []]


def test_a_data_frame_with_numbers():
    table = pd.DataFrame({"file": ["a", "b"], "label": [1, 2], "subject": [7, 7]})
    labels = labels_of_files(table, ROOT, FILES)
    assert [(one.subject, *one.segments["label"]) for one in labels] == [(7, "1"), (7, "2")]
    # pandas has floats where one is missing.
    labels = labels_of_files(table.assign(label=[1.0, np.nan]), ROOT, FILES)
    assert [segments_of(one) for one in labels] == [[(None, 0.0, "1")], []]
    assert classes_of_labels(["1", "2"], {1.0: "rest", 2.0: 7.0}) == {"1": "rest", "2": "7"}


MISTAKES = {
    "file,label\na,W\nb,W\nc,W\n": "'c', but the folder",
    "file,label,onset\nb,W,0\na,W,22:13:05\n": "'22:13:05' in row 3",
    "file,label,onset,duration\na,W,0,-1\nb,W,0,1\n": "duration '-1'",
    "file,label,onset,duration\na,W,0,9\nb,W,,9\n": "onset '' in row 3",
    "file,label,subject\na,W,1\na,W,2\nb,W,3\n": r"a\.edf, got 1 and 2",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_in_a_table(text, tmp_path):
    with pytest.raises(ValueError, match=MISTAKES[text]):
        labels_from_text(text, tmp_path)


def test_a_name_of_two_files(tmp_path):
    files = [ROOT / "day1" / "b.edf", ROOT / "day2" / "b.edf"]
    with pytest.raises(ValueError, match=r"'b', which matches both"):
        labels_from_text("file,label\nb,W\n", tmp_path, files=files)


@pytest.mark.parametrize("missing", ["", "N/A", np.nan, None, pd.NaT])
def test_a_missing_value_is_no_class_and_numbers_have_one_form(missing, tmp_path):
    table = pd.DataFrame({"file": ["a", "b", "a"], "label": ["1.0", missing, 1]})
    expected = [[(None, 0.0, "1")] * 2, []]
    assert [segments_of(one) for one in labels_of_files(table, ROOT, FILES)] == expected
    table.fillna({"label": "n/a"}).to_csv(tmp_path / "labels.csv", index=False)
    labeled_files = labels_of_files(tmp_path / "labels.csv", ROOT, FILES)
    assert [segments_of(file) for file in labeled_files] == expected
    assert classes_and_targets({"1": "rest", "2": missing}, None, {}, 4.0)[1] == {"rest": 0}


@pytest.mark.parametrize(
    "names",
    [
        *(["start", "duration"], ["StartTime", "Duration"], ["onset", "end"], ["onset_s", "dur_s"]),
        *(["onset", "length (s)"], ["epoch"], ["Time [s]"], ["from", "to"], ["Latency"]),
        ["beginning", "ending"],
        *(["tmin", "tmax"], ["Seizure Start"], ["t", "value"], ["startIdx", "endIdx"]),
    ],
)
def test_a_column_that_looks_like_a_time_is_read_or_named(names):
    table = pd.DataFrame({"file": ["a", "b"], "label": "W", **{name: [0, 30] for name in names}})
    unread = [name for name in names if name.lower() not in ("onset", "duration", "value")]
    with pytest.raises(ValueError, match="'onset' and 'duration'") as caught:
        labels_of_files(table, ROOT, FILES)
    assert all(repr(name.lower()) in str(caught.value) for name in unread)
    # Where both times are known, others do not matter.
    table = table.rename(columns=str.lower).assign(onset=0, duration=30)
    assert len(labels_of_files(table, ROOT, FILES)) == 2


def test_the_table_of_bids_beside_a_recording(tmp_path):
    file, table = tmp_path / "sub-1_task-rest_eeg.fif", tmp_path / "sub-1_task-rest_events.tsv"
    raw = mne.io.RawArray([[0.0]], mne.create_info(["C3"], 100.0, "eeg"), verbose="error")
    assert len(annotations_of(file, raw)) == 0
    table.write_text("onset\tduration\ttrial_type\n2\t4\tleft\n8\tn/a\tright\n9\t1\tn/a\n")
    annotations = annotations_of(file, raw)
    assert annotations.description.tolist() == ["left", "right"]
    assert [*annotations.onset, *annotations.duration] == [2, 8, 4, 0]
    table.write_text("onset\tduration\ttrial_type\n2\t4\tNone\n8\t4\tNA\n")
    assert annotations_of(file, raw).description.tolist() == ["None", "NA"]
    table.write_text("onset\tduration\ttrial_type\n2\t4\tleft\nn/a\t4\tright\n")
    with pytest.raises(ValueError, match="onset 'none' in row 3"):
        annotations_of(file, raw)
    table.write_text("onset\tduration\n2\t4\n")
    with pytest.raises(ValueError, match="required columns trial_type"):
        annotations_of(file, raw)


def test_labels_are_as_long_as_a_window_or_without_a_duration(tmp_path):
    file, table = tmp_path / "sub-1_eeg.edf", tmp_path / "sub-1_events.tsv"
    rows = "onset\tduration\ttrial_type\n0\t30\tW\n30\t29.999\tN1\n60\t5\tblink\n"
    marks = "60\t0\tright\n70\t0\tleft\n80\t0\tboundary\n90\t40\tbad segment\n"
    table.write_text(rows + marks)
    assert labels_in_annotations(durations_in([LabeledFile(file, {})]), 30.0) == ["N1", "W"]
    assert labels_in_annotations(durations_in([LabeledFile(file, {})]), 31.0) == ["left", "right"]
    table.write_text(rows)
    with pytest.raises(ValueError, match="31 s"):
        labels_in_annotations(durations_in([LabeledFile(file, {})]), 31.0)


RAW = mne.io.RawArray(np.zeros((1, 6000)), mne.create_info(["C3"], 100.0, "eeg"), verbose="error")


def test_segments_are_annotations_of_their_classes():
    rows = table_of((0, 30, "3"), (30, 0, "4"), (40, 20, "?"))
    annotations = annotations_of(Path(), RAW, rows)
    labels = labels_within(annotations, {"3": "N3", "4": "N3"}, RAW, 10.0)
    assert labels.description.tolist() == ["N3", "N3"]
    assert [labels.onset.tolist(), labels.duration.tolist()] == [[0, 30], [30, 10]]
    whole = annotations_of(Path(), RAW, table_of((np.nan, 0, "3")))
    assert [*whole.onset, *whole.duration] == [0, 60]
    assert not len(annotations_of(Path(), RAW, rows[:0]))


@pytest.mark.parametrize(
    ("onset", "duration", "why"),
    [
        (30, 30.001, None),  # by a rounded sample
        (30, 31, None),  # its three windows are within
        (31, 30, "outside"),
        (51, 0, "outside"),
        (60, 5, "outside"),
        (20, 9.9, "shorter"),
    ],
)
def test_a_label_that_does_not_fit_is_counted(onset, duration, why):
    annotations = annotations_of(Path(), RAW, table_of((onset, duration, "W")))
    with collect_excluded_items() as excluded_items:
        labels_within(annotations, {"W": "W"}, RAW, 10.0)
    assert [why in item.why for item in excluded_items] == ([] if why is None else [True])


def test_whole_numbers_are_in_their_order_and_others_in_that_of_the_alphabet():
    assert list(classes_of_labels({"10", "9", "-1"}, None)) == ["-1", "9", "10"]
    assert list(classes_of_labels({"W", "N1", "10"}, None)) == ["10", "N1", "W"]
    assert list(classes_of_labels({"10.5", "2.5", "3"}, None)) == ["2.5", "3", "10.5"]


def test_the_same_number_in_two_spellings_has_one_order():
    """A set has no order of its own: other targets in another process."""
    orders = {tuple(classes_of_labels(labels, None)) for labels in (["1", "01"], ["01", "1"])}
    assert orders == {("01", "1")}


def test_a_list_orders_the_classes_and_a_dict_names_them():
    assert classes_of_labels({"W", "N1", "?"}, ["W", "N1"]) == {"W": "W", "N1": "N1"}
    files = [LabeledFile(FILES[0], {}, table_of((np.nan, 0, label))) for label in "345"]
    classes = {"5": "R", "3": "N3", "4": "N3"}
    names, targets, _ = classes_and_targets("labels.csv", classes, durations_in(files), 30.0)
    assert (names, targets) == (classes, {"R": 0, "N3": 1})
    assert classes_of_labels({"1"}, {1: "rest"}) == {"1": "rest"}


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["W", "Wke"], "'N1', 'W'.*'Wke'"),
        ({"W"}, "classes must be a list"),  # a set has another order in the next process
    ],
)
def test_classes_that_no_file_has(classes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        classes_of_labels({"W", "N1"}, classes)
    with pytest.raises(ValueError, match=r"classes= .* labels={"):
        classes_and_targets(None, ["W"], {}, 30.0)


@pytest.mark.parametrize("labels", [None, {"left": "hand", "right": "hand"}])
def test_windows_are_as_long_as_labels_of_one_length(labels):
    durations = {"left": [4.0, 3.999], "right": [4.001]}
    assert classes_and_targets(labels, None, durations)[-1] == 3.999
    # A requested length is not changed.
    with pytest.raises(ValueError, match=r"3\.999 to 4\.001 s .*: 3,"):
        classes_and_targets(labels, None, durations, 30.0)


@pytest.mark.parametrize(
    ("durations", "expected"),
    [([30.0, 4.0], 30.0), ([0.0, 4.0], 30.0), ([120.0], 30.0), ([29.998], 30.0), ([0.1], 0.1)],
)
def test_longer_labels_and_marks_have_the_usual_length(durations, expected):
    assert classes_and_targets(["a"], None, {"a": durations, "b": [1.0]})[-1] == expected
    rows = tuple((10.0 * i, duration, "a") for i, duration in enumerate(durations))
    files = [LabeledFile(FILES[0], {}, table_of(*rows, (90.0, 1.0, "b")))]
    assert classes_and_targets("labels.csv", ["a"], durations_in(files))[-1] == expected
    whole = [LabeledFile(FILES[0], {}, table_of((np.nan, 0.0, "a")))]
    assert classes_and_targets("labels.csv", None, durations_in(whole))[-1] == 30.0


def test_labels_that_are_shorter_than_a_window_are_an_error():
    durations = {"a": [0.2, *[3.9] * 4, *[4.1] * 30], "b": [4.2] * 30}
    with pytest.raises(ValueError, match=r"0\.2 to 4\.2 s .*: 65, .*: 4\.1 s"):
        classes_and_targets(None, None, durations)
    with pytest.raises(ValueError, match=r"2 to 4 s .*: 41,"):  # one sets no length
        classes_and_targets(None, None, {"a": [4.0] * 40 + [2.0]})
    with pytest.raises(ValueError, match=r"in seconds.*0\.004 to 0\.004 s .*: 20,"):
        classes_and_targets(None, None, {"a": [4e-3] * 10, "b": [4e-3] * 10})


@pytest.mark.parametrize(
    ("labels", "expected", "n_excluded"),
    [
        ([(i * 0.5, 20, "word") for i in range(20)], [(0, 20, "word")], 19),
        ([(0, 5, "a"), (0, 20, "a"), (20, 10, "a")], [(0, 20, "a"), (20, 10, "a")], 1),
        (
            [(0, 20, "a"), (5, 10, "a"), (15, 10, "a"), (22, 3, "b")],
            [(0, 20, "a"), (22, 3, "b")],
            2,
        ),
        ([(0, 10, "a"), (10, 10, "a"), (20, 5, "b")], None, 0),  # they touch
        ([(0, 0, "a"), (0.5, 0, "b")], [(0, 1, "a"), (0.5, 1, "b")], 0),  # marks may overlap
    ],
)
def test_labels_that_overlap_a_label_of_the_same_class_are_excluded(labels, expected, n_excluded):
    annotations = mne.Annotations(*zip(*labels, strict=True))
    with collect_excluded_items() as excluded_items:
        included = labels_within(annotations, {"word": "word", "a": "a", "b": "b"}, RAW, 1.0)
    rows = list(zip(included.onset, included.duration, included.description, strict=True))
    assert rows == (expected or labels)
    assert [item.number for item in excluded_items] == [n_excluded] * bool(n_excluded)


@pytest.mark.parametrize(
    "labels",
    [
        [(0, 30, "a"), (3, 1, "a"), (20, 8, "b")],  # the first one still lasts
        [(10, 9, "b"), (12, 0, "a")],  # a mark within a segment
    ],
)
def test_labels_of_two_classes_do_not_overlap(labels):
    annotations = mne.Annotations(*zip(*labels, strict=True))
    with pytest.raises(ValueError, match=r"labels '\w' \(\d+ s to \d+ s\) and '\w'"):
        labels_within(annotations, {"a": "a", "b": "b"}, RAW, 1.0)


@pytest.mark.parametrize(
    ("onset", "others"),
    [(2, dict(duration=None, response_time=1, time=1)), (None, dict(weekend=1))],
)
def test_other_columns_are_ignored(onset, others):
    """Tables of BIDS have the sample next to the onset, and may have no durations."""
    times = others if onset is None else dict(onset=onset, **others)
    table = pd.DataFrame({"file": ["a", "b"], "label": "W", **times})
    labeled_files = labels_of_files(table, ROOT, FILES)
    assert [segments_of(one) for one in labeled_files] == [[(onset, 0, "W")]] * 2
