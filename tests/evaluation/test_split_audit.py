"""Audit of a split: planted faults are found in all forms of input, and clean splits have none."""

from __future__ import annotations

import datetime
from functools import cache, partial

import mne
import numpy as np
import pandas as pd
import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset
from braindecode.preprocessing import create_fixed_length_windows
from support.brief_nights import brief_nights
from torch.utils.data import ConcatDataset, Subset

from braindecode_pars import as_sklearn, datasets
from braindecode_pars.evaluation import LeaveOneSubjectOut, audit_split
from braindecode_pars.evaluation.split_audit import _overlaps
from braindecode_pars.recordings.cutting import fixed_windows, name_classes
from braindecode_pars.windows.convert import as_windows

SFREQ, LENGTH = 100.0, 200
MIXED, HALVES = [0, 1, 1, 1], [0, 0, 1, 1]


def raw_of(seed, n_windows=4, names=("C3", "C4", "Cz"), day=0):
    """Return a recording of noise with a spectrum like that of EEG."""
    noise = np.random.default_rng(seed).normal(size=(len(names), n_windows * LENGTH))
    spectrum = np.fft.rfft(noise)
    spectrum[:, 1:] /= np.sqrt(np.arange(1, spectrum.shape[1]))
    info = mne.create_info([*names], SFREQ, "eeg")
    data = np.fft.irfft(spectrum)
    raw = mne.io.RawArray(1e-5 * data / data.std(), info, verbose="error")
    return raw.set_meas_date(datetime.datetime(2020, 1, 1 + day, tzinfo=datetime.UTC))


def part(subject, seed, targets=MIXED, *, change=lambda raw: raw, site=None, **options):
    """Return a recording with a window of two seconds for each target."""
    raw = change(raw_of(seed, len(targets), **options))
    targets = np.asarray(targets)
    windows = fixed_windows(raw, 2.0, target=lambda start, stop: targets[start.astype(int) // 2])
    windows.set_description({"subject": subject} | ({"site": site} if site else {}))
    return name_classes(windows, ("rest", "task"))


part_once = cache(part)


def several(n=4, **options):
    """Return recordings of subjects P0, P1, ..."""
    return [(part if options else part_once)(f"P{i}", i, **options) for i in range(n)]


def by_half(parts):
    """Split a list of recordings into training and test data."""
    n = len(parts) // 2
    return BaseConcatDataset(parts[:n]), BaseConcatDataset(parts[n:])


def against(*test, train=None):
    """Return four training recordings, and test recordings."""
    return BaseConcatDataset(train or several()), BaseConcatDataset([*test])


def every_second(windows):
    """Split windows regardless of subjects."""
    n = len(windows)
    return Subset(windows, range(0, n, 2)), Subset(windows, range(1, n, 2))


def changed(function):
    """Return a function that changes the signals of a recording."""
    return lambda raw: raw.apply_function(function, channel_wise=False)


def replaced(raw):
    """Replace one window by a window of the recording P2."""
    raw._data[:, 400:600] = -3 * raw_of(2)._data[:, 200:400] + 1e-5
    return raw


def overlapping():
    """Split windows that overlap by half; a block of the recording for each side."""
    recording = RawDataset(raw_of(0), {"subject": "P0"})
    windows = create_fixed_length_windows(
        BaseConcatDataset([recording]),
        window_size_samples=LENGTH,
        window_stride_samples=100,
        on_last_window="drop",
    )
    return Subset(windows, range(4)), Subset(windows, range(4, 7))


def one_class(n=8, **options):
    """Return two recordings of each subject, with one class each."""
    day = options.pop("days", (0, 0))
    return [part(f"P{i // 2}", i, [i % 2] * 4, day=day[i % 2], **options) for i in range(2 * n)]


def of_sites(name, values, n=12):
    """Return subjects whose class goes with a property of the recording."""
    return [part(f"P{i}", i, [i % 2] * 4, **{name: values[i % 2]}) for i in range(n)]


FAULTS = {
    "a subject": (lambda: against(part("P2", 9)), "shared_subjects"),
    "a subject in upper case": (lambda: against(part("p2 ", 9)), "shared_subjects"),
    "windows at random": (lambda: every_second(BaseConcatDataset(several())), "shared_recordings"),
    "overlapping windows": (lambda: overlapping(), "overlapping_windows"),
    "shifted": (
        lambda: against(part("anna", 2, change=lambda raw: raw.crop(0.37).load_data())),
        "copied_windows",
    ),
    "a window": (lambda: against(part("anna", 9, change=replaced)), "copied_windows"),
    "one class per recording": (
        lambda: every_second(BaseConcatDataset(one_class())),
        "class_by_recording",
    ),
    "halves": (lambda: by_half(several(6, targets=HALVES)), "order_within_recordings"),
    "dates": (lambda: by_half(one_class(days=(0, 1))), "order_of_recordings"),
    "channels": (lambda: by_half(of_sites("names", (("C3", "C4"), ("C3", "Cz")))), "confounds"),
    "sites": (lambda: by_half(of_sites("site", ("Graz", "Lyon"))), "confounds"),
}
#: Changes of a recording with another name
CHANGES = {
    "another name": lambda raw: raw,
    "a factor": changed(lambda x: -20 * x),
    "an offset": changed(lambda x: x + 1),
    "rounded": changed(lambda x: x.round(6)),
    "filtered": lambda raw: raw.filter(1, 30, verbose="error"),
    "resampled": lambda raw: raw.resample(60).resample(SFREQ),
}
for name, change in CHANGES.items():
    copied = partial(part, "anna", 2, change=change)
    FAULTS[name] = (lambda copied=copied: against(copied())), "copied_recordings"
#: Kinds of findings of a fault that are warnings; others are leaks.
WARNINGS = ("confounds", "order_of_recordings", "order_within_recordings")


def arrays(parts):
    X, y, groups = as_sklearn(BaseConcatDataset(parts))
    return np.asarray(X), y, groups


RECORDING = np.concatenate([raw_of(i).get_data() for i in range(3)], axis=1)


def cut(first, factor=1.0, subject="anna"):
    """Return windows of RECORDING that begin at a sample."""
    X = np.stack([factor * RECORDING[:, i : i + LENGTH] for i in range(first, 2200, LENGTH)])
    return X, np.arange(len(X)) % 2, [subject] * len(X)


ARRAYS = {
    "another name": (lambda: (arrays(several()), arrays([part("anna", 2)])), "copied_recordings"),
    "without subjects": (lambda: (cut(0)[:2], cut(10)[:2]), "copied_windows"),
    "shifted, with a factor": (lambda: (cut(0), cut(101, -3.0, "bert")), "copied_windows"),
}


def rows(subject, recording, labels=MIXED, first=0.0, **columns):
    """Return a table of windows of two seconds."""
    start = first + 2.0 * np.arange(len(labels))
    table = pd.DataFrame(dict(recording=recording, start=start, stop=start + 2, label=labels))
    return table.assign(subject=subject, **columns)


def tables(labels=lambda i, k: MIXED, n=12, **columns):
    """Return tables of two recordings of each subject, half of the subjects for each side."""
    both = [
        pd.concat(
            rows(
                f"P{i}",
                f"P{i}_{k}.edf",
                labels(i, k),
                **{name: values[(i + k) % 2] for name, values in columns.items()},
            )
            for i in range(*numbers)
            for k in range(2)
        )
        for numbers in ((n // 2,), (n // 2, n))
    ]
    return both[0], both[1]


def at_random(table):
    return table[::2], table[1::2]


TABLES = {
    "two spellings": (lambda: (rows("S001", "a"), rows(" 1", "b")), "shared_subjects"),
    "a recording": (lambda: (rows("S01", "a"), rows(1, "a", first=60)), "shared_recordings"),
    "overlapping windows": (
        lambda: (rows("P1", "a"), rows("P1", "a", first=7.5)),
        "overlapping_windows",
    ),
    "one class per recording": (
        lambda: at_random(tables(lambda i, k: [k] * 4)[0]),
        "class_by_recording",
    ),
    "halves": (lambda: tables(lambda i, k: HALVES), "order_within_recordings"),
    "dates": (
        lambda: tables(lambda i, k: [(i + k) % 2] * 4, date=(1, 2), n=16),
        "order_of_recordings",
    ),
    "channels": (
        lambda: tables(lambda i, k: [(i + k) % 2] * 4, channels=("C3", "C4")),
        "confounds",
    ),
    "sites": (lambda: tables(lambda i, k: [(i + k) % 2] * 4, site=("Graz", "Lyon")), "confounds"),
}


@pytest.mark.parametrize(("split", "kind"), [*FAULTS.values(), *ARRAYS.values(), *TABLES.values()])
def test_a_fault_is_found(split, kind):
    result = audit_split(*split())
    levels = dict(zip(result.table["kind"], result.table["level"], strict=True))
    assert levels[kind] == ("warning" if kind in WARNINGS else "leak")
    assert result.has_leak == ("leak" in levels.values())


def left_out(windows, subject):
    """Leave one subject out."""
    X, y, groups = as_sklearn(windows)
    splitter = LeaveOneSubjectOut(test_subjects=[subject])
    [(train, test)] = splitter.split(X, y, groups)
    return X[train], X[test]


def alike(raw):
    """Add line noise, a drift and pulses, which are equal in all recordings."""
    sine = 1e-4 * np.sin(2 * np.pi * 50 * raw.times + 0.3)
    pulses = 1e-2 * (np.arange(len(raw.times)) % 250 == 120)
    return changed(lambda x: x + sine + 1e-2 * np.exp(-raw.times / 20) + pulses)(raw)


CLEAN = {
    "subjects": lambda: by_half(several(8)),
    "diagnoses": lambda: by_half([part(f"P{i}", i, [i % 2] * 4) for i in range(8)]),
    "rest and task": lambda: by_half(one_class()),
    "equal artifacts": lambda: by_half(several(8, change=alike, targets=MIXED * 2)),
    "sites with all classes": lambda: by_half(
        [part(f"P{i}", i, site=("Graz", "Lyon")[i % 2]) for i in range(12)]
    ),
    "unlabeled test windows": lambda: against(part("P9", 9, [-1] * 4)),
    "a copy in the training data": lambda: against(part("P9", 9), train=[*several(), part("A", 0)]),
    "arrays": lambda: (arrays(several()), arrays([part("P9", 9)])),
    "tables": lambda: tables(),
    "equal names of recordings": lambda: (rows("S1", "run1"), rows("S2", "run1")),
    "tables of rest and task": lambda: tables(lambda i, k: [k] * 4, site=("Graz", "Lyon")),
    "simulated sleep": lambda: left_out(brief_nights(24, 2), 3),
}


@pytest.mark.parametrize("split", CLEAN.values(), ids=CLEAN)
def test_a_clean_split_has_neither_leak_nor_warning(split):
    result = audit_split(*split())
    assert result.findings == []


def test_the_result_is_a_table_and_a_sentence():
    result = audit_split(rows("P1", "a"), rows("P1", "a", first=7.5))
    assert result.table.drop(columns="text").to_numpy().tolist() == [
        ["leak", "shared_subjects"],
        ["leak", "shared_recordings"],
        ["leak", "overlapping_windows"],
    ]
    assert [finding.values["n"] for finding in result.findings] == [4, 4, 1]
    assert "a at 7.5" in result.table["text"][2]
    assert "4 of 4" in result.verdict
    assert str(result).splitlines()[0] == result.verdict
    assert len(str(result).splitlines()) == 4
    [clean] = str(audit_split(rows("P1", "a"), rows("P2", "b"))).splitlines()
    assert "No leak" in clean


def kinds(split):
    return audit_split(*split).table["kind"].tolist()


def test_a_window_has_one_finding():
    """A shared recording is not a copy, and overlapping windows are not copied windows."""
    windows = BaseConcatDataset(several())
    names = ["shared_subjects", "shared_recordings", "overlapping_windows"]
    assert kinds((windows, windows)) == names
    assert kinds(against(part("anna", 2))) == ["copied_recordings"]
    levels = audit_split(*at_random(tables(lambda i, k: HALVES)[0])).table["level"].tolist()
    assert levels == ["leak", "leak", "warning", "warning"]


def test_windows_without_times_have_no_recording():
    windows = as_windows(*arrays(several()))
    assert kinds((windows[::2], windows[1::2])) == ["shared_subjects"]


def test_recordings_of_one_window_have_one_class_by_definition():
    assert kinds(at_random(tables(lambda i, k: [k])[0])) == ["shared_subjects"]


DATES = {
    "numbers": (9, 10),
    "ISO 8601": ("2020-09-30", "2020-10-02"),
    "times": (pd.Timestamp("2020-09-30"), pd.Timestamp("2020-10-02")),
}


@pytest.mark.parametrize("date", DATES.values(), ids=DATES)
@pytest.mark.parametrize("n", [6, 16])
def test_an_order_by_date_is_found_in_eight_subjects(date, n):
    """An order of few subjects may be random."""
    split = tables(lambda i, k: [(i + k) % 2] * 4, date=date, n=n)
    found = [f.values["classes"] for f in audit_split(*split).findings if "order" in f.kind]
    assert found == ([["0", "1"]] if n == 16 else [])


def test_properties_are_known_in_subsets():
    X = as_sklearn(BaseConcatDataset(of_sites("site", ("Graz", "Lyon"))))[0]
    assert kinds((X[:24], X[24:])) == ["confounds"]


def test_what_is_unknown_is_listed():
    assert "not checked: site, recorded" in audit_split(*by_half(several())).verdict
    table = rows("P1", "a").drop(columns="label")
    assert "not checked: signals, class, subject" in audit_split(table, rows(None, "b")).verdict
    unknown = audit_split(cut(0)[:1], cut(0)[:1])
    assert "not checked: start, class, subject" in unknown.verdict
    assert unknown.has_leak


@pytest.mark.parametrize("unit", [1.0, 0.1, 1 / 3])
def test_overlaps_are_those_of_all_pairs(unit):
    """Also of windows that touch, whose times have rounding errors."""
    rng = np.random.default_rng(0)
    start, length = rng.integers(0, 2000, 300), rng.integers(1, 9, 300) ** 2
    windows = pd.DataFrame(
        dict(start=start * unit, stop=start * unit + length * unit, is_test=rng.random(300) < 0.5)
    ).assign(recording=rng.integers(0, 3, 300))
    recording, stop = windows["recording"].to_numpy(), start + length
    pairs = (start[:, None] < stop) & (start < stop[:, None])
    pairs &= (recording[:, None] == recording) & ~windows["is_test"].to_numpy()
    expected = pairs.any(axis=1) & windows["is_test"].to_numpy()
    assert 0.1 < expected[windows["is_test"]].mean() < 0.9
    assert _overlaps(windows).tolist() == expected.tolist()


def test_invalid_inputs_are_refused():
    table = rows("P1", "a")
    for changes in (dict(stop=0.0), dict(recording="n/a"), dict(start=None)):
        with pytest.raises(ValueError, match=r"stop.*start"):
            audit_split(table, table.assign(**changes))
    with pytest.raises(ValueError, match="test lacks the required columns subject"):
        audit_split(table, table.drop(columns="subject"))
    with pytest.raises(TypeError, match="start must contain only numbers"):
        audit_split(table, table.assign(start="begin"))
    with pytest.raises(TypeError, match="both be tables"):
        audit_split(table, cut(0))
    with pytest.raises(ValueError, match="no windows"):
        audit_split(cut(0), (np.empty((0, 3, 200)), []))


# Real recordings, and rates of false alarms -------------------------------------------------------


def random_split(windows):
    """Split windows at random, with a quarter of the windows for testing."""
    X, _, _ = as_sklearn(windows)
    order = np.random.default_rng(0).permutation(len(X))
    n = len(X) // 4
    return X[order[n:]], X[order[:n]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("eegmat", dict(sfreq=128.0, low=0.5, high=45.0, mains=None, reference="average")),
        ("physionet_mi", dict(subjects=range(1, 41), runs=[4])),
    ],
)
def test_real_recordings_have_a_leak_only_if_windows_are_split_at_random(
    eeg_folder, name, settings
):
    windows = datasets.load(name, eeg_folder, **settings)
    split = windows.split("subject")
    for number in range(4):
        test = [part for i, part in enumerate(split.values()) if i % 4 == number]
        train = [part for i, part in enumerate(split.values()) if i % 4 != number]
        assert not audit_split(ConcatDataset(train), ConcatDataset(test)).has_leak
    result = audit_split(*random_split(windows))
    assert {"shared_subjects", "shared_recordings"} <= set(result.table["kind"])
    # Lists of every third window without subjects, and of later samples of every ninth window
    X, y, _ = as_sklearn(windows)
    later = [2 * x[:, 40:] for x in X[::9]]
    arrays = ([*X[::3]], y[::3]), (later, y[::9])
    [finding] = [f for f in audit_split(*arrays).findings if f.kind == "copied_windows"]
    assert finding.values["n"] == len(later)


@pytest.mark.slow
@pytest.mark.parametrize("n", [6, 16])
def test_rates_of_false_alarms_of_confounds(n):
    """Classes, sites and dates at random: at most one percent of the splits have each finding."""
    rng, n_splits, kinds = np.random.default_rng(n), 200, []
    for i in range(n_splits):
        labels = rng.integers(0, 2, (n, 4) if i % 2 else (n, 1)) * np.ones(4, int)
        both = pd.concat(
            rows(f"P{j // 2}", f"{j}", labels[j], site=rng.integers(2 + i % 3), date=rng.random())
            for j in range(n)
        )
        by_subject = both["subject"].isin([f"P{j}" for j in range(n // 4)])
        kinds += audit_split(both[by_subject], both[~by_subject]).table["kind"].tolist()
    for kind in ("confounds", "order_of_recordings", "order_within_recordings"):
        assert kinds.count(kind) <= 0.01 * n_splits + 2 * np.sqrt(0.01 * n_splits)
