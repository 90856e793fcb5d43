"""Own folders and BIDS data sets: labels from annotations or from tables, subjects from names."""

from __future__ import annotations

import re
import warnings

import mne
import numpy as np
import pandas as pd
import pytest

from braindecode_pars import FewLabelsClassifier, as_sklearn, datasets
from braindecode_pars.datasets import folder
from braindecode_pars.recordings.side_tables import read_table
from braindecode_pars.study.data_check import check_data

SFREQ = 100.0
KEEP = dict(sfreq=SFREQ, low=None, high=None, mains=None, verbose=0)


def recording(value=1e-5, seconds=60, names=("C3", "C4", "EOG1"), first_samp=0):
    info = mne.create_info(list(names), SFREQ, "eeg")
    times = np.arange(int(seconds * SFREQ)) / SFREQ
    data = np.tile(value * np.floor(times / 10 + 1), (len(names), 1))  # one value in ten seconds
    return mne.io.RawArray(data, info, first_samp=first_samp, verbose="error")


def bids(root):
    (root / "dataset_description.json").write_text("{}")
    types = "name\ttype\tstatus\nC3\tEEG\tgood\nC4\tEEG\tgood\nEOG1\tEOG\tgood\n"
    rows = [f"{10 * i}\t4\t{kind}" for i, kind in enumerate(["left", "right", "n/a"] * 2)]
    for subject in ("01", "02"):
        part = root / f"sub-{subject}" / "eeg"
        part.mkdir(parents=True)
        name = f"sub-{subject}_task-imagery"
        recording().export(part / f"{name}_eeg.edf", verbose="error")
        (part / f"{name}_events.tsv").write_text("\n".join(["onset\tduration\ttrial_type", *rows]))
        (part / f"{name}_channels.tsv").write_text(types)
    return root


def test_bids(tmp_path):
    root = bids(tmp_path)
    copy = root / "derivatives" / "sub-01" / "sub-01_task-imagery_eeg.edf"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"not to be read")
    (root / "participants.tsv").write_text("participant_id\tsplit\nsub-01\ttrain\nsub-02\ttest\n")
    windows = folder.load(root, window_seconds=4, **KEEP)
    X, y, groups = as_sklearn(windows)
    assert groups.tolist() == ["01"] * 4 + ["02"] * 4
    assert y.tolist() == [0, 1, 0, 1] * 2  # "left" before "right"; "n/a" is no label
    assert windows.datasets[0].raw.ch_names == ["C3", "C4"]
    assert windows.description["split"].tolist() == ["train", "test"]
    # The samples are those at the onsets: 0, 10, 30 and 40 seconds.
    steps = [round(float(np.median(X[i][0])) / 1e-5) for i in range(4)]
    assert steps == [1, 2, 4, 5]


def test_the_average_of_the_good_eeg_channels_is_the_reference(tmp_path):
    """Bad channels and the ECG are not averaged; the windows have the reference."""
    names = ["C3", "C4", "Cz", "Fz", "ECG"]
    raw = mne.io.RawArray(
        1e-5 * np.random.default_rng(0).standard_normal((5, 1000)),
        mne.create_info(names, SFREQ, "eeg"),
        verbose="error",
    )
    raw.info["bads"] = ["Fz"]
    raw.set_annotations(mne.Annotations([0, 5], [5, 5], ["a", "b"]))
    raw.save(tmp_path / "P01_raw.fif", verbose="error")
    with pytest.warns(UserWarning, match=r"Fz .*missing or marked as bad in 1 of 1\n +ECG .*EEG"):
        windows = folder.load(tmp_path, reference="average", window_seconds=5, **KEEP)
    assert windows.datasets[0].raw.ch_names == names[:3]
    before = raw.get_data(names[:3], stop=500)
    np.testing.assert_allclose(windows[0][0], before - before.mean(axis=0), atol=1e-10)
    table = as_sklearn(windows)[0].recordings
    assert table["preprocessing"][0].reference == "average"


def test_annotations_of_the_files(tmp_path):
    """Folders are subjects; a FIF file may begin later than its clock, and have no date."""
    for subject, date in (("anna", 0), ("ben", None)):
        raw = recording(names=["C3"], first_samp=700)
        raw.set_meas_date(date)
        texts = ["W", "N2", "W", "Lights off", "EDGE boundary"]
        stages = mne.Annotations([0, 20, 30, 5, 55], [20, 10, 30, 0, 0], texts)
        raw.set_annotations(stages)
        (tmp_path / subject).mkdir()
        raw.save(tmp_path / subject / "night_raw.fif", verbose="error")
    windows = folder.load(tmp_path, window_seconds=10, **KEEP)
    X, y, groups = as_sklearn(windows)
    assert y.tolist() == [1, 1, 0, 1, 1] * 2  # N2, then W; a mark is no stage, a gap no window
    assert set(groups) == {"anna", "ben"}
    steps = [round(float(np.median(X[i][0])) / 1e-5) for i in range(10)]
    assert steps == [1, 2, 3, 4, 5] * 2
    chosen = folder.load(tmp_path, window_seconds=10, labels={"W": 7}, **KEEP)
    assert set(as_sklearn(chosen)[1].tolist()) == {7}


def test_the_targets_are_the_same_for_all_subjects(tmp_path):
    for subject, stages in (("anna", ["N2", "W"]), ("ben", ["R", "W"])):
        raw = recording(names=["C3"])
        raw.set_annotations(mne.Annotations([0, 30], 30, stages))
        raw.export(tmp_path / f"{subject}.edf", verbose="error")
    both = folder.load(tmp_path, **KEEP)
    ben = folder.load(tmp_path, ["ben"], **KEEP)
    assert as_sklearn(both)[1].tolist() == [0, 2, 1, 2]
    assert as_sklearn(ben)[1].tolist() == [1, 2]


def named(root, *names, seconds=60):
    """Write recordings without annotations."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        raw = recording(names=["C3"], seconds=seconds)
        raw.save(root / f"{name}_raw.fif", verbose="error")
    return root


def labeled(root):
    """Return the labels and subjects in names such as P01_rest_raw.fif as a table of files."""
    files = sorted(root.rglob("*_raw.fif"))
    rows = [(file.relative_to(root).as_posix(), *file.name.split("_")[:2]) for file in files]
    return pd.DataFrame(rows, columns=["file", "subject", "label"])


def classes_of(windows):
    """Return the class of each window, read as others read it: from braindecode's record."""
    classes = []
    for part in windows.datasets:
        _, kwargs = part.window_kwargs[-1]
        text = {target: name for name, target in kwargs["mapping"].items()}
        classes += [text[target] for target in part.metadata["target"]]
    return classes


def test_labels_of_whole_files(tmp_path):
    root = named(tmp_path, "S00_1", "S00_2", "S01_2")
    table = dict(labels=labeled(root), window_seconds=30, **KEEP)
    windows = folder.load(root, classes={"2": "arithmetic", "1": "rest"}, **table)
    X, y, groups = as_sklearn(windows)
    assert y.tolist() == [1, 1, 0, 0, 0, 0]
    assert groups.tolist() == ["S00"] * 4 + ["S01"] * 2
    assert classes_of(windows) == ["rest"] * 2 + ["arithmetic"] * 4
    # All windows of all files are used, from their starts.
    assert [round(float(np.median(window)) / 1e-5) for window in X[:2]] == [2, 5]
    named(root, "S02_1", seconds=20)
    table["labels"] = labeled(root)
    with pytest.warns(UserWarning, match=r"1 of 4 recordings  shorter than a window of 30 s  S02"):
        folder.load(root, on_error="warn", **table)


def test_labels_in_a_table(tmp_path):
    root = named(tmp_path, "day1/a", "day2/b", "day3/c")
    (root / "labels.csv").write_text(
        "subject,file,label,onset,duration\n"
        "07,a_raw,W,0,20\n07,a_raw,N2,20,30\n07,a_raw,N2,55,5\n"
        "08,day2/b_raw.fif,R,,\n09,c_raw,R,0,5\n"
    )
    table = dict(labels="labels.csv", classes=["W", "N2", "R"], window_seconds=5, **KEEP)
    windows = folder.load(root, **table)
    assert windows.description["subject"].tolist() == ["07", "08", "09"]
    assert classes_of(windows) == ["W"] * 4 + ["N2"] * 7 + ["R"] * 13
    X, y, _ = as_sklearn(windows)
    assert y[:5].tolist() == [0, 0, 0, 0, 1]
    assert [round(float(np.median(X[i][0])) / 1e-5) for i in (0, 2, 4, 10)] == [1, 2, 3, 6]


def test_files_of_the_same_subject_ask_for_the_subject(tmp_path):
    root = named(tmp_path, "S00_1", "S00_2")
    table = pd.DataFrame({"file": ["S00_1_raw", "S00_2_raw"], "label": ["1", "1"]})
    message = r"S00_1_raw\.fif and S00_2_raw\.fif"
    with pytest.raises(ValueError, match=message):
        folder.load(root, labels=table, **KEEP)
    for arguments in ({"subject": "([^/]+)_[0-9]"}, {"labels": table.assign(subject="S00")}):
        windows = folder.load(root, **{"labels": table, **arguments}, **KEEP)
        assert windows.description["subject"].tolist() == ["S00", "S00"]
    with pytest.raises(ValueError, match="'\\(S00\\)'"):
        folder.load(root, labels=labeled(root), subject="(S00)", **KEEP)


def test_a_subject_has_one_unicode_form(tmp_path):
    """macOS writes "ö" as two characters, other systems as one."""
    table = labeled(named(tmp_path, "Jo\u0308rg_1", "J\xf6rg_2")).drop(columns="subject")
    for subject in ("([^/]+)_[0-9]", lambda path: path.name.partition("_")[0]):
        windows = folder.load(tmp_path, labels=table, subject=subject, **KEEP)
        assert windows.description["subject"].tolist() == ["J\xf6rg"] * 2


def test_labels_in_a_table_of_subjects(tmp_path, caplog):
    """The label applies to all recordings of a subject; an empty label excludes the subject."""
    runs = ((1, 1), (1, 2), (2, 1), (3, 1), (4, 1), (4, 2))
    root = named(tmp_path, *(f"sub-0{s}/sub-0{s}_run-{r}" for s, r in runs))
    rows = ["sub-01,70,AD ", "sub-02,68,control", "sub-03,70,AD", "sub-04,n/a,n/a", "sub-99,50,?"]
    text = "\n".join(["participant_id,age,diagnosis", *rows])
    (root / "participants.tsv").write_text(text.replace(",", "\t"))
    (root / "subjects.csv").write_text(
        text.replace("participant_id", "subject").replace("sub-0", "")
    )
    arguments = dict(labels="participants.tsv", label_column="Diagnosis", **KEEP)
    caplog.set_level("INFO")
    windows = folder.load(root, **arguments | {"verbose": 1})
    assert re.search("2 of 6 recordings .*sub-04_run-1_raw.fif, sub-04_run-2", caplog.text)
    assert windows.description["subject"].tolist() == ["01", "01", "02", "03"]
    assert classes_of(windows) == ["AD"] * 4 + ["control"] * 2 + ["AD"] * 2
    # Of the two columns participant_id counts. Subjects may have other names in the paths.
    both = read_table("participants.tsv", root).assign(subject="?")
    for labels in ("subjects.csv", both):
        again = arguments | dict(labels=labels, subject=r"sub-(\d+)/")
        assert classes_of(folder.load(root, ["02", "03"], **again)) == classes_of(windows)[4:]


def test_tables_of_subjects_that_cannot_be_used(tmp_path):
    root = named(tmp_path, "sub-01/sub-01", "sub-02/sub-02")
    table = pd.DataFrame({"participant_id": ["sub-01", "sub-02"], "label": ["AD", "MCI"]})
    wrong = {
        r"no row .* 01, 02\..* A, B\.": table.assign(participant_id=["A", "B"]),
        r"column 'label'.*'diagnosis'": table.rename(columns={"label": "diagnosis"}),
        r"subject 1: 'AD' and 'MCI'": table.assign(participant_id=["sub-01", "1"]),
    }
    for message, labels in wrong.items():
        with pytest.raises(ValueError, match=message):
            folder.load(root, labels=labels, **KEEP)
    with pytest.raises(ValueError, match="label_column='diagnosis'"):
        folder.load(root, labels=["AD"], label_column="diagnosis", **KEEP)


NAMED = "(?P<subject>[^_/]+)_(?P<label>[^_.]*)_raw"


def test_labels_in_file_names(tmp_path):
    """Files without a label in the path are excluded and listed."""
    root = named(tmp_path, "P01_rest", "P01_task", "b/P02_rest", "b/P02_", "calibration")
    message = r"2 of 5 recordings  labels_from=.*P02__raw.fif, calibration_raw"
    with pytest.warns(UserWarning, match=message) as caught:
        windows = folder.load(root, labels_from=NAMED, **KEEP)
    assert len(caught) == 1
    assert windows.description["subject"].tolist() == ["P01", "P01", "P02"]
    assert classes_of(windows) == ["rest"] * 2 + ["task"] * 2 + ["rest"] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(labels_from="([a-z]+)_raw"), r"labels_from=.*label.*\(\?P<subject>"),
        (dict(labels_from="(?P<label>x+)"), r"P01_rest_raw.fif.*labels_from="),
        (dict(labels_from=NAMED, labels="a.csv"), r"labels='a.csv'.*--labels-from"),
        (dict(labels_from=NAMED, subject="(P01)"), r"subject='\(P01\)'"),
    ],
)
def test_file_names_without_labels_and_arguments_that_contradict(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        folder.load(named(tmp_path, "P01_rest"), **arguments, **KEEP)


def test_files_without_a_row_in_a_table_are_named(tmp_path):
    """A file with an empty label is excluded without a warning."""
    root = named(tmp_path, "P01_rest", "P02_rest", "P03_rest", "P04_rest")
    table = labeled(root)[:3].assign(label=["rest", "", "task"])
    of_subjects = dict(labels=table.drop(columns="file"), subject="(P..)")
    for arguments in (dict(labels=table), of_subjects):
        with pytest.warns(UserWarning, match="1 of 4 recordings  no row .*P04_rest"):
            windows = folder.load(root, **arguments, **KEEP)
        assert windows.description["subject"].tolist() == ["P01", "P03"]


def events(root, *rows, subject="01"):
    """Replace the events of a subject of :func:`bids`; each row is "onset duration trial_type"."""
    table = root / f"sub-{subject}/eeg/sub-{subject}_task-imagery_events.tsv"
    header = "onset duration trial_type"
    table.write_text("\n".join("\t".join(row.split(maxsplit=2)) for row in (header, *rows)))
    return root


BIDS = dict(labels=["left", "right"], window_seconds=4, **KEEP)


def test_a_subject_without_labels_is_named(tmp_path):
    """Labels of another case are others."""
    root = events(bids(tmp_path), "0 4 Left", "10 4 Right", subject="02")
    message = r"(?s)subject 02\..*1 of 2 recordings .*annotations: Left, Right.*sub-02_task"
    with pytest.raises(ValueError, match=message):
        folder.load(root, **BIDS)
    with pytest.warns(UserWarning, match=message) as caught:
        windows = folder.load(root, on_error="warn", **BIDS)
    assert len(caught) == 1
    assert windows.description["subject"].tolist() == ["01"]


@pytest.mark.filterwarnings("ignore:1 of 2 recordings")  # one value in all of its windows
def test_bad_segments_are_no_windows(tmp_path, caplog):
    """Those of the file and those of the table beside it."""
    root = events(bids(tmp_path), "0 4 left", "10 4 right", "20 4 left", "21 1 BAD_move")
    raw = recording().set_annotations(mne.Annotations([11], [1], ["bad blink"]))
    file = root / "sub-01/eeg/sub-01_task-imagery_eeg.edf"
    raw.export(file, overwrite=True, verbose="error")
    caplog.set_level("INFO")
    windows = folder.load(root, **{**BIDS, "verbose": 1})
    assert windows.datasets[0].metadata["i_start_in_trial"].tolist() == [0]
    assert "2 of 3 windows  overlapping a gap or an annotation" in caplog.text


@pytest.mark.filterwarnings("ignore:Duplicate recordings")
def test_descriptions_say_where_a_recording_comes_from(tmp_path):
    (tmp_path / "data").mkdir()
    root = bids(tmp_path / "data")
    (root / "participants.tsv").write_text("participant_id\tScanner\nsub-01\tA\nsub-02\tB\n")
    table = folder.load(root, window_seconds=4, **{**KEEP, "sfreq": 50.0}).description
    files = [f"sub-0{i}/eeg/sub-0{i}_task-imagery_eeg.edf" for i in (1, 2)]
    assert table["file"].tolist() == files
    assert table["site"].tolist() == ["A", "B"]
    assert table["recorded_sfreq"].tolist() == [100.0, 100.0]
    assert table["recorded_reference"].tolist() == ["as recorded"] * 2


def test_a_recording_of_another_unit_is_named(tmp_path):
    for i, scale in enumerate([1, 2, 1e3, 1]):
        noise = 1e-5 * scale * np.random.default_rng(i).standard_normal((2, 3000))
        raw = mne.io.RawArray(noise, mne.create_info(["C3", "C4"], SFREQ, "eeg"), verbose="error")
        raw.set_annotations(mne.Annotations(np.arange(6) * 5, 5, ["rest", "task"] * 3))
        raw.save(tmp_path / f"P{i}_raw.fif", verbose="error")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        windows = datasets.load(tmp_path, window_seconds=5, **{**KEEP, "sfreq": 128.0})
        train = FewLabelsClassifier(recenter=None).fit(windows)
    (text,) = {str(each.message) for each in said if "factor of more than 20" in str(each.message)}
    assert "all 4 recordings" in text
    assert ": P2_raw.fif." in text
    assert train.amplitudes_.high > 1e-3
    assert text in [finding.text for finding in check_data(windows).findings]
