"""Findings of the data check, in folders and in simulated data for each check."""

from __future__ import annotations

import datetime
from dataclasses import replace

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset
from support import study_folders

from braindecode_pars import datasets
from braindecode_pars.datasets import folder
from braindecode_pars.recordings.cutting import fixed_windows, name_classes
from braindecode_pars.study.data_check import check_data
from braindecode_pars.windows.convert import as_windows

SFREQ = 100.0
FIRST = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def part(subject, targets, *, seed, scale=1.0, names=("C3", "C4"), day=None, **described):
    """Return a recording of noise with a window of two seconds for each target."""
    noise = 1e-5 * np.random.default_rng(seed).normal(size=(len(names), 200 * len(targets)))
    noise *= np.repeat(np.broadcast_to(scale, len(targets)), 200)
    raw = mne.io.RawArray(noise, mne.create_info([*names], SFREQ, "eeg"), verbose="error")
    if day is not None:
        raw.set_meas_date(FIRST + datetime.timedelta(days=day))
    targets = np.asarray(targets)
    windows = fixed_windows(raw, 2.0, target=lambda start, stop: targets[start.astype(int) // 2])
    windows.set_description(dict(subject=subject, **described))
    return name_classes(windows, ("rest", "task"))


MIXED = [0, 1, 0, 1, 1, 0, 1, 0]


def within(n=8, targets=MIXED, **options):
    return BaseConcatDataset([part(f"P{i}", targets, seed=i, **options) for i in range(n)])


def by_subject(n=12, **of_class):
    """Return subjects of one class each; ``of_class`` are two values of options, by class."""
    options = [{name: values[i % 2] for name, values in of_class.items()} for i in range(n)]
    parts = [part(f"P{i}", [i % 2] * 6, seed=i, **options[i]) for i in range(n)]
    return BaseConcatDataset(parts)


def texts(windows, kind):
    findings = check_data(windows).findings
    return [finding.text for finding in findings if finding.level == kind]


def test_folders(tmp_path):
    """Two folders pass the check; the other two have a stop with the reason."""
    kinds = {}
    for write in (study_folders.good, study_folders.mixed_files):
        root = tmp_path / write.__name__
        check = check_data(folder.load(root, **write(root)))
        kinds[write.__name__] = [finding.level for finding in check.findings]
        assert not check.by_subject
        assert check.facts["subjects"] == "12"
        assert check.classes["windows"].tolist() == [72, 72]
    assert kinds == {"good": [], "mixed_files": []}
    assert check.facts["recorded sampling rate"] == "100 Hz (6 recordings), 128 Hz (6 recordings)"
    root = tmp_path / "sites"
    check = check_data(folder.load(root, **study_folders.classes_of_sites(root)))
    assert check.by_subject
    [stop] = check.stops
    assert "Graz: 6 of 'healthy'; Lyon: 6 of 'patient'" in stop
    root = tmp_path / "few"
    settings = study_folders.few_labeled(root)
    with pytest.warns(UserWarning, match="No windows remain"):
        [stop] = check_data(folder.load(root, **settings)).stops
    assert "3 of 3 subjects" in stop
    assert "at least 6" in stop


@pytest.mark.parametrize("windows", [within(), by_subject()], ids=["within", "by subject"])
def test_clean_data_have_no_finding(windows):
    assert check_data(windows).findings == []


def test_classes_that_differ_in_case_are_a_warning():
    windows = as_windows(within())
    windows = replace(windows, label_names={"Task": 0, "task": 1})
    assert "'Task' and 'task'" in texts(windows, "warning")[0]


def test_simulated_sleep_has_no_warning():
    windows = datasets.simulated.sleep(n_subjects=8, hours=0.2, n_chans=2)
    assert {finding.level for finding in check_data(windows).findings} <= {"note"}


def test_the_sample_is_in_one_order():
    check = check_data(datasets.mental_arithmetic())
    assert [finding.level for finding in check.findings] == ["warning"]
    assert "'rest', then 'arithmetic'" in check.findings[0].text
    assert check.facts["reference"] == "average of 19 channels"
    assert check.facts["hours"] == "0.8"
    assert check.classes.to_dict("list") == {
        "class": ["rest", "arithmetic"],
        "windows": [144, 144],
        "recordings": [24, 24],
        "subjects": [24, 24],
    }


@pytest.mark.parametrize(
    ("windows", "stop"),
    [
        (within(targets=[0] * 8), "one class, 'rest'; at least two"),
        (within(targets=[-1] * 8), "no label; at least two"),
        (within(n=5), "5 of 5 subjects"),
        (by_subject(n=7), "'task' has 3"),
        (by_subject(n=2), "'rest' has 1, 'task' has 1"),
    ],
)
def test_too_few_classes_or_subjects(windows, stop):
    [message] = texts(windows, "stop")
    assert stop in message


def test_subjects_have_to_be_known():
    [stop] = texts(np.random.default_rng(0).normal(size=(4, 2, 50)), "stop")
    assert "no label" in stop
    windows = BaseConcatDataset([part(None, MIXED, seed=i) for i in range(8)])
    [stop] = texts(windows, "stop")
    assert "subject of 64 of 64 labeled windows" in stop


@pytest.mark.parametrize(
    ("name", "values", "property_name"),
    [
        ("site", ("A", "B"), "site"),
        ("recorded_sfreq", (250.0, 500.0), "recorded sampling rate"),
        ("recorded_reference", ("changed", "as recorded"), "recorded reference"),
        ("names", (("C3", "C4"), ("C3", "Cz")), "set of channels"),
        ("corpus", ("one", "two"), "corpus"),
    ],
)
def test_classes_confounded_with_a_property(name, values, property_name):
    windows = by_subject(**{name: values})
    [stop] = check_data(windows).findings
    assert (stop.level, stop.kind) == ("stop", "confounds")
    assert f"confounded with the {property_name}, which" in stop.text
    assert "in_spite_of" in stop.text


def test_only_confounds_are_accepted():
    few = by_subject(n=7, site=("A", "B"))
    check = check_data(few, in_spite_of=("confounds",))
    assert "in_spite_of" not in check.findings[1].text
    assert [(finding.level, finding.kind) for finding in check.findings] == [
        ("stop", "too_few_of_class"),
        ("warning", "confounds"),
    ]
    with pytest.raises(ValueError, match="in_spite_of must be one of 'confounds', got 'subjects'"):
        check_data(few, in_spite_of=("subjects",))


def test_classes_confounded_with_channels_that_are_not_selected():
    """Methods do not use these channels, but amplifiers may differ between files."""
    [stop] = texts(by_subject(recorded_channels=("C3, C4", "C3, C4, X1, X2")), "stop")
    assert "shared channels only: 6 of 'rest'; with X1, X2: 6 of 'task'" in stop
    assert "amplifiers" in stop


@pytest.mark.parametrize(
    ("n_of_other_class", "kinds"), [(0, ["stop"]), (2, ["stop"]), (3, ["warning"]), (6, [])]
)
def test_classes_confounded_with_a_site_in_90_percent_of_subjects(n_of_other_class, kinds):
    """20 subjects, of whom 0 to 6 healthy subjects are at the site of the patients."""
    others = range(0, 2 * n_of_other_class, 2)
    parts = [
        part(f"P{i}", [i % 2] * 6, seed=i, site="A" if i % 2 or i in others else "B")
        for i in range(20)
    ]
    findings = check_data(BaseConcatDataset(parts)).findings
    assert [finding.level for finding in findings] == kinds


def test_a_site_with_most_subjects_of_a_rare_class_is_no_stop():
    """38 of 40 subjects have the most frequent class of their site; two rare cases do not."""
    parts = [part(f"P{i}", [int(i < 4)] * 6, seed=i, site="A" if i < 2 else "B") for i in range(40)]
    findings = check_data(BaseConcatDataset(parts)).findings
    assert [finding.level for finding in findings] == ["warning"]


def test_a_different_site_for_each_subject_is_not_a_confound():
    parts = [part(f"P{i}", [i % 2] * 6, seed=i, site=f"site {i}") for i in range(20)]
    assert check_data(BaseConcatDataset(parts)).findings == []


def test_amplitudes_that_separate_classes():
    [warning] = texts(by_subject(scale=(1.0, 3.0)), "warning")
    assert "'rest'" in warning
    assert "smaller by a factor of 3" in warning
    [warning] = texts(within(scale=np.where(MIXED, 2.0, 1.0)), "warning")
    assert "'rest'" in warning
    assert "smaller by a factor of 2" in warning


def test_unit_mismatch_of_a_recording():
    parts = [part(f"P{i}", MIXED, seed=i, scale=1e6 if i == 3 else 1.0) for i in range(8)]
    [warning] = texts(BaseConcatDataset(parts), "warning")
    assert warning.startswith("1 of 8 recordings differs in amplitude")
    assert "recording 4 (subject P3)" in warning


def test_unit_mismatch_of_a_channel_and_implausible_amplitudes():
    parts = [part(f"P{i}", MIXED, seed=i, names="ABCDE") for i in range(8)]
    raw = parts[2].raw
    raw.load_data()._data[3] *= 1e3
    [warning] = texts(BaseConcatDataset(parts), "warning")
    assert "more than 30" in warning
    assert "clipped: D of recording 3 (subject P2)." in warning
    [warning] = texts(within(scale=1e-6), "warning")
    assert warning.startswith("The standard deviation of the signal is 1e-11")


def ordered(dates=None, files=("a", "b"), swap=()):
    """Return two recordings of each subject, rest and task."""
    parts = []
    for i in range(8):
        for target in (0, 1):
            day = None if dates is None else dates[target]
            name = f"{i}{files[target if i not in swap else 1 - target]}"
            described = dict(subject=f"P{i}", file=name, day=day)
            parts.append(part(targets=[target] * 4, seed=2 * i + target, **described))
    return BaseConcatDataset(parts)


def test_recordings_in_the_same_order():
    [warning] = texts(ordered(), "warning")
    assert "'rest', then 'task' (according to: file names)" in warning
    [warning] = texts(ordered(dates=(2, 1)), "warning")
    assert "'task', then 'rest' (according to: recording dates)" in warning
    assert texts(ordered(swap=(3, 5)), "warning") == []


def test_classes_in_one_half_of_recordings():
    early, late = texts(within(targets=[0, 0, 0, 0, 1, 1, 1, 1]), "warning")
    assert "in 8 of 8 recordings, the windows of class 'rest' are early" in early
    assert "in 8 of 8 recordings, the windows of class 'task' are late" in late


def test_duplicate_recordings():
    parts = [part(f"P{i}", MIXED, seed=i) for i in range(8)]
    again = [*parts, *(part(f"P{i + 8}", MIXED, seed=i) for i in range(1, 6))]
    [stop] = texts(BaseConcatDataset(again), "stop")
    for i in range(1, 6):
        assert f"recording {i + 1} (subject P{i}) and recording {i + 8} (subject P{i + 8})" in stop
    [warning] = texts(BaseConcatDataset([*parts, part("P3", MIXED, seed=3)]), "warning")
    assert "one subject" in warning
    assert "recording 4 (subject P3) and recording 9" in warning
    flat = [part(f"F{i}", MIXED, seed=0, scale=0.0) for i in range(2)]
    assert check_data(BaseConcatDataset(parts + flat)).findings == []


def test_unlabeled_windows_are_counted():
    [note] = texts(within(targets=[*MIXED, -1]), "note")
    assert "8 of 72 windows" in note
