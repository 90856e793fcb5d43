"""Own folders and BIDS data sets: labels from annotations or from tables, subjects from names."""

from __future__ import annotations

import re

import mne
import numpy as np
import pandas as pd
import pytest
from support.edf_files import write_edf_records

from braindecode_pars import as_sklearn
from braindecode_pars.datasets import folder

SFREQ = 100.0
KEEP = dict(sfreq=SFREQ, low=None, high=None, mains=None, verbose=0)


def recording(value=1e-5, seconds=60, names=("C3", "C4", "EOG1"), first_samp=0):
    info = mne.create_info(list(names), SFREQ, "eeg")
    times = np.arange(int(seconds * SFREQ)) / SFREQ
    data = np.tile(value * np.floor(times / 10 + 1), (len(names), 1))  # one value in ten seconds
    return mne.io.RawArray(data, info, first_samp=first_samp, verbose="error")


def bids(root, subjects=("01", "02"), trial_types=("left", "right", "n/a"), durations="4"):
    (root / "dataset_description.json").write_text("{}")
    for subject in subjects:
        part = root / f"sub-{subject}" / "eeg"
        part.mkdir(parents=True)
        name = f"sub-{subject}_task-imagery"
        recording().export(part / f"{name}_eeg.edf", verbose="error")
        rows = [
            f"{10 * i}\t{durations}\t{kind}" for i, kind in enumerate([*trial_types] * 2) if i < 6
        ]
        (part / f"{name}_events.tsv").write_text("\n".join(["onset\tduration\ttrial_type", *rows]))
        (part / f"{name}_channels.tsv").write_text(
            "name\ttype\tstatus\nC3\tEEG\tgood\nC4\tEEG\tbad\nEOG1\tEOG\tgood\n"
        )
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
    assert [windows.datasets[0].raw.ch_names, windows.datasets[0].raw.info["bads"]] == [
        ["C3", "C4"],
        ["C4"],
    ]
    assert windows.description["split"].tolist() == ["train", "test"]
    # The samples are those at the onsets: 0, 10, 30 and 40 seconds.
    steps = [round(float(np.median(X[i][0])) / 1e-5) for i in range(4)]
    assert steps == [1, 2, 4, 5]


def test_events_without_a_duration_give_one_window(tmp_path):
    windows = folder.load(bids(tmp_path, durations="n/a"), ["02"], window_seconds=3, **KEEP)
    assert as_sklearn(windows)[1].tolist() == [0, 1, 0, 1]
    assert windows[0][0].shape == (2, 300)


def test_the_average_of_the_good_eeg_channels_is_the_reference(tmp_path):
    """Not of a bad one, nor of an ECG; a cache knows the reference, and so does the fit."""
    names = ["C3", "C4", "Cz", "Fz", "ECG"]
    raw = mne.io.RawArray(
        1e-5 * np.random.default_rng(0).standard_normal((5, 1000)),
        mne.create_info(names, SFREQ, "eeg"),
        verbose="error",
    )
    raw.info["bads"] = ["Fz"]
    raw.set_annotations(mne.Annotations([0, 5], [5, 5], ["a", "b"]))
    raw.save(tmp_path / "P01_raw.fif", verbose="error")
    reading = dict(window_seconds=5, **KEEP)
    with pytest.warns(UserWarning, match="ECG: EEG by the type and another signal by the name"):
        windows = folder.load(tmp_path, reference="average", **reading)
    with pytest.warns(UserWarning, match="ECG"):
        plain = folder.load(tmp_path, cache=tmp_path.with_name("cache"), **reading)
    before, after = (as_sklearn(each)[0][0] for each in (plain, windows))
    assert windows.datasets[0].raw.ch_names == names[:4]
    assert np.allclose(after[:3], before[:3] - before[:3].mean(axis=0), atol=1e-10)
    found = [as_sklearn(each)[0].recordings["preprocessing"][0] for each in (plain, windows)]
    assert [each.reference for each in found] == ["as recorded", "average"]
    with pytest.raises(ValueError, match="reference"):
        folder.load(tmp_path, reference="average", cache=tmp_path.with_name("cache"), **reading)


def test_an_average_of_one_channel_and_other_references_are_refused(tmp_path):
    labels = dict(labels=pd.DataFrame(dict(file=["P01_raw.fif"], label=["a"])), window_seconds=5)
    raw = recording(names=["C3", "C4"])
    raw.info["bads"] = ["C4"]
    raw.save(tmp_path / "P01_raw.fif", verbose="error")
    with pytest.raises(ValueError, match="only EEG channel, C3, is zero"):
        folder.load(tmp_path, reference="average", **labels, **KEEP)
    with pytest.raises(ValueError, match="reference must be"):
        folder.load(tmp_path, reference="Cz", **labels, **KEEP)


@pytest.mark.parametrize("date", [0, None])
@pytest.mark.parametrize("first_samp", [0, 700])
def test_annotations_of_the_files(tmp_path, first_samp, date):
    """Folders are subjects; a FIF file may begin later than its clock, and have no date."""
    for subject in ("anna", "ben"):
        raw = recording(names=["C3"], first_samp=first_samp)
        raw.set_meas_date(date)
        stages = mne.Annotations([0, 20, 30, 5], [20, 10, 30, 0], ["W", "N2", "W", "Lights off"])
        raw.set_annotations(stages)
        (tmp_path / subject).mkdir()
        raw.save(tmp_path / subject / "night_raw.fif", verbose="error")
    windows = folder.load(tmp_path, window_seconds=10, **KEEP)
    X, y, groups = as_sklearn(windows)
    assert y.tolist() == [1, 1, 0, 1, 1, 1] * 2  # N2, then W; a mark is no stage
    assert set(groups) == {"anna", "ben"}
    steps = [round(float(np.median(X[i][0])) / 1e-5) for i in range(6)]
    assert steps == [1, 2, 3, 4, 5, 6]
    chosen = folder.load(tmp_path, window_seconds=10, labels={"W": 7}, **KEEP)
    assert set(as_sklearn(chosen)[1].tolist()) == {7}


@pytest.mark.parametrize("date", [0, None])
def test_gaps_of_the_files(tmp_path, date):
    raw = recording(names=["C3"], first_samp=700)
    raw.set_meas_date(date)
    raw.set_annotations(mne.Annotations([0, 25], [60, 0], ["W", "EDGE boundary"]))
    raw.save(tmp_path / "night_raw.fif", verbose="error")
    X = as_sklearn(folder.load(tmp_path, window_seconds=10, **KEEP))[0]
    assert [round(float(np.median(window)) / 1e-5) for window in X] == [1, 2, 4, 5, 6]


def test_annotations_after_a_gap_of_the_clock(tmp_path):
    """In a discontinuous EDF+ file their times count the gap, which has no samples."""
    signals = np.repeat(10 * (np.arange(40) // 10 + 1), 100)[None]  # one value in ten seconds
    write_edf_records(
        tmp_path / "P01.edf",
        signals,
        [*range(20), *range(120, 140)],
        texts={0: "+0\x1520\x14W", 20: "+120\x1520\x14N2"},
    )
    X, y, _ = as_sklearn(folder.load(tmp_path, window_seconds=10, **KEEP))
    assert y.tolist() == [1, 1, 0, 0]
    assert [round(float(np.median(window)) / 1e-5) for window in X] == [1, 2, 3, 4]


def test_annotations_of_brainvision(tmp_path):
    """They are in a file of their own; "New Segment/" is a gap and no label."""
    raw = recording(names=["C3"])
    raw.set_annotations(mne.Annotations([5, 30, 48], 0, ["left", "right", "left"]))
    raw.export(tmp_path / "P01.vhdr", verbose="error")
    markers = tmp_path / "P01.vmrk"
    segments = "Mk5=New Segment,,1,1,0,0\nMk6=New Segment,,5001,1,0,0\n"
    markers.write_text(markers.read_text().rstrip() + "\n" + segments)
    windows = folder.load(tmp_path, window_seconds=4, **KEEP)
    assert classes_of(windows) == ["Comment/left", "Comment/right"]  # a window has no gap


def test_a_split_recording_is_one(tmp_path):
    """MNE reads its later parts with the first; they are no recordings of other people."""
    raw = recording(seconds=300, names=[f"E{i}" for i in range(20)])
    raw.save(tmp_path / "P01_rest_raw.fif", split_size="2MB", verbose="error")
    assert len(list(tmp_path.glob("*.fif"))) > 2
    windows = folder.load(tmp_path, labels="{subject}_{label}_*", window_seconds=100, **KEEP)
    assert windows.description["subject"].tolist() == ["P01"]
    assert len(windows) == 3
    # Another recording, whose name is like that of a part.
    recording().save(tmp_path / "P01_rest_raw-9.fif", verbose="error")
    found = folder.recordings(tmp_path, subject="(P01)")
    assert [one.file.name for one in found] == ["P01_rest_raw-9.fif", "P01_rest_raw.fif"]


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
        recording(names=["C3"], seconds=seconds).save(root / f"{name}_raw.fif", verbose="error")
    return root


def classes_of(windows):
    """Return the class of each window, read as others read it: from braindecode's record."""
    classes = []
    for part in windows.datasets:
        _, kwargs = part.window_kwargs[-1]
        text = {target: name for name, target in kwargs["mapping"].items()}
        classes += [text[target] for target in part.metadata["target"]]
    return classes


def test_labels_in_names(tmp_path):
    root = named(tmp_path, "S00_1", "S00_2", "S01_2")
    template = dict(labels="{subject}_{label}_*", window_seconds=30, **KEEP)
    windows = folder.load(root, classes={"2": "arithmetic", "1": "rest"}, **template)
    X, y, groups = as_sklearn(windows)
    assert y.tolist() == [1, 1, 0, 0, 0, 0]
    assert groups.tolist() == ["S00"] * 4 + ["S01"] * 2
    assert classes_of(windows) == ["rest"] * 2 + ["arithmetic"] * 4
    # All windows of all files are used, from their starts.
    assert [round(float(np.median(window)) / 1e-5) for window in X[:2]] == [2, 5]
    only = folder.load(root, ["S01"], classes=["2"], **template)
    assert classes_of(only) == ["2", "2"]


def test_labels_in_a_table(tmp_path):
    root = named(tmp_path, "day1/a", "day2/b")
    (root / "labels.csv").write_text(
        "subject,file,label,onset,duration\n"
        "07,a_raw,W,0,20\n07,a_raw,N2,20,30\n07,a_raw,N2,55,5\n08,day2/b_raw.fif,R,,\n"
    )
    table = dict(labels="labels.csv", classes=["W", "N2", "R"], window_seconds=5, **KEEP)
    windows = folder.load(root, **table)
    assert windows.description["subject"].tolist() == ["07", "08"]
    assert classes_of(windows) == ["W"] * 4 + ["N2"] * 7 + ["R"] * 12
    X, y, _ = as_sklearn(windows)
    assert y[:5].tolist() == [0, 0, 0, 0, 1]
    assert [round(float(np.median(X[i][0])) / 1e-5) for i in (0, 2, 4, 10)] == [1, 2, 3, 6]


def test_classes_of_annotations(tmp_path):
    raw = recording(names=["C3"])
    stages = ["Sleep stage W", "Sleep stage 3", "Sleep stage 4", "N3"]
    raw.set_annotations(mne.Annotations([0, 10, 20, 30], 10, stages))
    raw.save(tmp_path / "night_raw.fif", verbose="error")
    labels = {"Sleep stage W": "W", "Sleep stage 3": "N3", "Sleep stage 4": "N3"}
    windows = folder.load(tmp_path, labels=labels, window_seconds=10, **KEEP)
    assert classes_of(windows) == ["W", "N3", "N3"]  # the annotation "N3" is not in the labels
    assert windows.datasets[0].window_kwargs[0][1]["mapping"] == {"W": 0, "N3": 1}


def test_a_cache_belongs_to_its_labels(tmp_path):
    root, cache = named(tmp_path / "data", "a", "b"), tmp_path / "cache"
    table = pd.DataFrame({"file": ["a_raw", "b_raw"], "label": ["W", "R"]})
    for _ in range(2):
        windows = folder.load(root, labels=table, cache=cache, **KEEP)
        assert classes_of(windows) == ["W"] * 2 + ["R"] * 2
    table["label"] = ["R", "W"]
    with pytest.raises(ValueError, match="label_table"):
        folder.load(root, labels=table, cache=cache, **KEEP)


def test_a_cache_is_not_read_as_recordings(tmp_path):
    root = named(tmp_path / "data", "a", "b")
    for cache in (root, root / "cache"):
        with pytest.raises(ValueError, match=re.escape(str(cache))):
            folder.load(root, labels="{label}", subject="(.)_raw", cache=cache, **KEEP)


@pytest.mark.parametrize(
    "given",
    [{"labels": {"W", "R"}}, {"labels": 3}, {"labels": "{subject}_{label}", "classes": {"raw"}}],
)
def test_labels_have_an_order(tmp_path, given):
    """A set has another one in the next process."""
    *_, name = given
    with pytest.raises(TypeError, match=name):
        folder.load(named(tmp_path, "a"), **given, **KEEP)


def test_labels_after_the_end_of_a_recording(tmp_path):
    named(tmp_path, "a", seconds=50)
    table = pd.DataFrame({"file": ["a_raw"], "label": ["W"], "onset": [30], "duration": [30]})
    with pytest.raises(ValueError, match=r"a_raw\.fif .*'W' at 30 s"):
        folder.load(tmp_path, labels=table, **KEEP)
    assert len(folder.load(tmp_path, labels=table.assign(onset=20), **KEEP)) == 1


def test_files_of_one_person_ask_for_the_subject(tmp_path):
    root = named(tmp_path, "S00_1", "S00_2")
    table = pd.DataFrame({"file": ["S00_1_raw", "S00_2_raw"], "label": ["1", "2"]})
    message = r"S00_1_raw\.fif and S00_2_raw\.fif"
    with pytest.raises(ValueError, match=message):
        folder.recordings(root)
    with pytest.raises(ValueError, match=message):
        folder.load(root, labels=table, **KEEP)
    assert len(folder.load(root, ["S00_1_raw"], labels=table, **KEEP)) == 2
    for given in ({"subject": "([^/]+)_[0-9]"}, {"labels": table.assign(subject="S00")}):
        windows = folder.load(root, **{"labels": table, **given}, **KEEP)
        assert windows.description["subject"].tolist() == ["S00", "S00"]
    two = folder.load(root, labels=table, subject=lambda path: path.stem, **KEEP)
    assert two.description["subject"].tolist() == ["S00_1_raw", "S00_2_raw"]
    with pytest.raises(ValueError, match="'\\(S00\\)'"):
        folder.load(root, labels="{subject}_{label}_raw", subject="(S00)", **KEEP)


@pytest.mark.parametrize("labels", ["{label}/*", "(?P<label>[^/]+)/P", "labels.csv"])
def test_folders_of_labels_are_no_subjects(tmp_path, labels):
    """P01 would be the people "rest" and "task", and each test subject a class."""
    root = named(tmp_path, "rest/P01", "task/P01")
    rows = "rest/P01_raw,rest\ntask/P01_raw,task\n"
    (root / "labels.csv").write_text(f"file,label\n{rows}")
    with pytest.raises(ValueError, match="rest, task"):
        folder.load(root, labels=labels, **KEEP)
    windows = folder.load(root, labels=labels, subject="(P[0-9]+)", **KEEP)
    assert windows.description["subject"].tolist() == ["P01", "P01"]


def test_folders_of_parts_are_no_subjects(tmp_path):
    for part in ("train", "test"):
        for i in range(5):
            (tmp_path / part / f"p{i}.edf").parent.mkdir(exist_ok=True)
            (tmp_path / part / f"p{i}.edf").touch()
    message = "10 recordings .*test and train"
    with pytest.raises(ValueError, match=message):
        folder.recordings(tmp_path)
    with pytest.raises(ValueError, match=message):
        folder.load(tmp_path, labels=["W"])
    assert len(folder.recordings(tmp_path, subject=r"([^/]+)\.edf")) == 10


def test_a_subject_has_one_unicode_form(tmp_path):
    """macOS writes "ö" as two characters, other systems as one."""
    named(tmp_path, "Jo\u0308rg_1", "J\xf6rg_2")
    for subject in ("([^/]+)_[0-9]", lambda path: path.name.partition("_")[0]):
        found = folder.recordings(tmp_path, subject=subject)
        assert [one.subject for one in found] == ["J\xf6rg"] * 2


def test_folders_that_cannot_be_used(tmp_path):
    for absent in (tmp_path / "absent", tmp_path / "file"):
        with pytest.raises(FileNotFoundError, match=absent.name):
            folder.load(absent)
        absent.parent.joinpath("file").touch()
    with pytest.raises(FileNotFoundError, match=r"\.vhdr"):
        folder.load(tmp_path)
    recording().export(tmp_path / "P01.edf", verbose="error")
    with pytest.raises(ValueError, match="30 s"):
        folder.load(tmp_path, verbose=0)
    with pytest.raises(ValueError, match="'W'"):
        folder.load(tmp_path, labels="W", verbose=0)
    (tmp_path / "P01_events.tsv").write_text("onset\tduration\tstage\n0\t30\tW\n")
    with pytest.raises(ValueError, match="'trial_type'"):
        folder.load(tmp_path, labels=["W"], verbose=0)
