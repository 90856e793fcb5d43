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
from braindecode_pars.windows.amplitudes import find_outlier_channels
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


def within(n=6, targets=MIXED, **options):
    return BaseConcatDataset([part(f"P{i}", targets, seed=i, **options) for i in range(n)])


def by_subject(n=8, **of_class):
    """Return subjects of one class each; ``of_class`` are two values of options, by class."""
    options = [{name: values[i % 2] for name, values in of_class.items()} for i in range(n)]
    parts = [part(f"P{i}", [i % 2] * 3, seed=i, **options[i]) for i in range(n)]
    return BaseConcatDataset(parts)


def findings(windows, **options):
    """Return kind, level and values of each finding."""
    return [(f.kind, f.level, f.values) for f in check_data(windows, **options).findings]


def only(windows, kind, level="warning"):
    """Return the values of the only finding, which has this kind and level."""
    [(*kind_and_level, values)] = findings(windows)
    assert kind_and_level == [kind, level]
    return values


def test_a_folder_without_confounds_has_no_finding(tmp_path):
    """Tests of the commands fit and study have folders with a stop."""
    check = check_data(folder.load(tmp_path, **study_folders.mixed_files(tmp_path)))
    assert (check.findings, check.by_subject) == ([], False)
    assert check.facts["subjects"] == "6"
    assert check.classes["windows"].tolist() == [36, 36]
    assert check.facts["recorded sampling rate"] == "100 Hz (3 recordings), 128 Hz (3 recordings)"


@pytest.mark.parametrize("windows", [within(), by_subject()], ids=["within", "by subject"])
def test_clean_data_have_no_finding(windows):
    assert findings(windows) == []


def test_classes_that_differ_in_case_are_a_warning():
    windows = replace(as_windows(within()), label_names={"Task": 0, "task": 1})
    assert only(windows, "similar_classes")["names"] == ["'Task' and 'task'"]


def test_the_sample_is_in_one_order():
    check = check_data(datasets.mental_arithmetic([f"Subject{i:02}" for i in range(6)]))
    [finding] = check.findings
    assert (finding.kind, finding.level) == ("order_of_recordings", "warning")
    assert finding.values["classes"] == ["rest", "arithmetic"]
    assert check.facts["reference"] == "average of 19 channels"
    assert check.facts["hours"] == "0.2"
    assert check.classes.to_dict("list") == {
        "class": ["rest", "arithmetic"],
        "windows": [36, 36],
        "recordings": [6, 6],
        "subjects": [6, 6],
    }


@pytest.mark.parametrize(
    ("windows", "kind", "values"),
    [
        (within(targets=[0] * 8), "too_few_classes", dict(classes=["rest"])),
        (np.ones((4, 2, 50)), "too_few_classes", dict(classes=[])),
        (within(n=5), "too_few_subjects", dict(n=5, n_subjects=5)),
        (by_subject(n=7), "too_few_of_class", dict(counts={"task": 3}, minimum=4)),
        (
            BaseConcatDataset([part(None, MIXED, seed=i) for i in range(6)]),
            "unknown_subjects",
            dict(n=48, n_windows=48),
        ),
    ],
)
def test_too_few_classes_or_subjects(windows, kind, values):
    [(stop, stop_values)] = [(k, v) for k, level, v in findings(windows) if level == "stop"]
    assert stop == kind
    assert stop_values.items() >= values.items()


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
    [finding] = check_data(windows).findings
    assert (finding.kind, finding.level) == ("confounds", "stop")
    assert finding.values["property"] == property_name
    counts = [(n["rest"], n["task"]) for _, n in finding.values["counts"]]
    assert sorted(counts) == [(0, 4), (4, 0)]
    assert "in_spite_of" in finding.text


def test_only_confounds_are_accepted():
    few = by_subject(n=7, site=("A", "B"))
    stop, warning = check_data(few, in_spite_of=("confounds",)).findings
    assert (stop.kind, stop.level) == ("too_few_of_class", "stop")
    assert (warning.kind, warning.level) == ("confounds", "warning")
    assert "in_spite_of" not in warning.text
    with pytest.raises(ValueError, match="in_spite_of must be one of 'confounds', got 'subjects'"):
        check_data(few, in_spite_of=("subjects",))


def test_classes_confounded_with_channels_that_are_not_selected():
    """Methods do not use these channels, but amplifiers may differ between files."""
    windows = by_subject(recorded_channels=("C3, C4", "C3, C4, X1, X2"))
    [finding] = check_data(windows).findings
    assert (finding.kind, finding.level) == ("confounds", "stop")
    values = finding.values
    assert [value for value, _ in values["counts"]] == ["shared channels only", "with X1, X2"]
    assert values["is_same_selection"]
    assert "amplifiers" in finding.text


@pytest.mark.parametrize(("n_of_other_class", "levels"), [(2, ["stop"]), (3, ["warning"])])
def test_classes_confounded_with_a_site_in_90_percent_of_subjects(n_of_other_class, levels):
    """20 subjects, of whom 2 or 3 healthy subjects are at the site of the patients."""
    others = range(0, 2 * n_of_other_class, 2)
    parts = [
        part(f"P{i}", [i % 2] * 2, seed=i, site="A" if i % 2 or i in others else "B")
        for i in range(20)
    ]
    assert [level for _, level, _ in findings(BaseConcatDataset(parts))] == levels


def test_a_site_with_most_subjects_of_a_rare_class_is_no_stop():
    """38 of 40 subjects have the most frequent class of their site; two rare cases do not."""
    parts = [part(f"P{i}", [int(i < 4)] * 2, seed=i, site="A" if i < 2 else "B") for i in range(40)]
    only(BaseConcatDataset(parts), "confounds")


def test_a_different_site_for_each_subject_is_not_a_confound():
    parts = [part(f"P{i}", [i % 2] * 2, seed=i, site=f"site {i}") for i in range(8)]
    assert findings(BaseConcatDataset(parts)) == []


@pytest.mark.parametrize(("n", "n_patients", "n_healthy"), [(8, 7, 2), (18, 13, 5)])
def test_an_association_with_a_site_must_be_both_strong_and_significant(n, n_patients, n_healthy):
    """Cramer's V is 0.63 with p = 0.012 in 16 subjects, and 0.44 with p = 0.008 in 36 subjects."""
    n_at_first_site = n_healthy, n_patients
    parts = [
        part(f"P{i}", [i % 2] * 2, seed=i, site="A" if i // 2 < n_at_first_site[i % 2] else "B")
        for i in range(2 * n)
    ]
    assert findings(BaseConcatDataset(parts)) == []


@pytest.mark.parametrize(
    ("windows", "factor"),
    [(by_subject(scale=(1.0, 3.0)), 3), (within(scale=np.where(MIXED, 2.0, 1.0)), 2)],
)
def test_amplitudes_that_separate_classes(windows, factor):
    values = only(windows, "separating_amplitude")
    assert (values["name"], values["direction"]) == ("rest", "smaller")
    assert values["factor"] == pytest.approx(factor, rel=0.05)


def test_unit_mismatch_of_a_recording():
    parts = [part(f"P{i}", MIXED, seed=i, scale=1e6 if i == 3 else 1.0) for i in range(6)]
    values = only(BaseConcatDataset(parts), "outlier_recordings")
    assert values["recordings"] == ["recording 4 (subject P3)"]
    assert values["n_recordings"] == 6


def test_unit_mismatch_of_a_channel_and_implausible_amplitudes():
    parts = [part(f"P{i}", MIXED, seed=i, names="ABCDE") for i in range(6)]
    parts[2].raw.load_data()._data[3] *= 1e3
    values = only(BaseConcatDataset(parts), "outlier_channels")
    assert values == dict(channels=["D of recording 3 (subject P2)"], factor=30)
    flat = np.full((2, 2), np.nan)  # a window in which all channels are flat does not count
    assert find_outlier_channels([flat, np.array([[-5, np.nan]] * 2)], "AB") == (-5, ["B"])
    assert only(within(scale=1e-6), "implausible_unit")["deviation"] == pytest.approx(
        1e-11, rel=0.1
    )


def ordered(dates=None, files=("a", "b"), swap=(), n=6):
    """Return two recordings of each subject, rest and task."""
    parts = []
    for i in range(n):
        for target in (0, 1):
            day = None if dates is None else dates[target]
            name = f"{i}{files[target if i not in swap else 1 - target]}"
            described = dict(subject=f"P{i}", file=name, day=day)
            parts.append(part(targets=[target] * 4, seed=2 * i + target, **described))
    return BaseConcatDataset(parts)


def test_recordings_in_the_same_order():
    by_name = dict(n_subjects=6, classes=["rest", "task"], sources=["file names"], p=1 / 32)
    assert only(ordered(), "order_of_recordings") == by_name
    by_date = dict(n_subjects=6, classes=["task", "rest"], sources=["recording dates"], p=1 / 32)
    assert only(ordered(dates=(2, 1)), "order_of_recordings") == by_date
    assert findings(ordered(swap=(3, 5))) == []
    # Three subjects are the fewest.
    for n in (2, 3):
        kinds = {kind for kind, *_ in findings(ordered(n=n))}
        assert ("order_of_recordings" in kinds) == (n == 3)


def test_classes_in_one_half_of_recordings():
    both = findings(within(targets=[0, 0, 0, 0, 1, 1, 1, 1]))
    assert [values for _, _, values in both] == [
        dict(n=6, n_recordings=6, name="rest", position="early"),
        dict(n=6, n_recordings=6, name="task", position="late"),
    ]
    assert {kind for kind, *_ in both} == {"order_within_recordings"}


def test_duplicate_recordings():
    parts = [part(f"P{i}", MIXED, seed=i) for i in range(6)]
    again = [*parts, *(part(f"P{i + 6}", MIXED, seed=i) for i in (1, 2))]
    values = only(BaseConcatDataset(again), "copies_across_subjects", "stop")
    assert values["pairs"] == [
        f"recording {i + 1} (subject P{i}) and recording {i + 6} (subject P{i + 6})" for i in (1, 2)
    ]
    within_one = BaseConcatDataset([*parts, part("P3", MIXED, seed=3)])
    [pair] = only(within_one, "copies_within_subject")["pairs"]
    assert pair == "recording 4 (subject P3) and recording 7 (subject P3)"
    flat = [part(f"F{i}", MIXED, seed=0, scale=0.0) for i in range(2)]
    assert only(BaseConcatDataset(parts + flat), "outlier_recordings")["recordings"] == [
        f"recording {i + 7} (subject F{i})" for i in range(2)
    ]


def test_unlabeled_windows_are_counted():
    assert only(within(targets=[*MIXED, -1]), "unlabeled_windows", "note") == dict(
        n=6, n_windows=54
    )
