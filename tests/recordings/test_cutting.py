"""From a recording to windows: labels, gaps and bad times, in annotations and in tables."""

from __future__ import annotations

from functools import partial

import mne
import numpy as np
import pytest

from braindecode_pars.datasets import folder
from braindecode_pars.recordings.cutting import (
    collect_excluded_items,
    event_windows,
    fixed_windows,
    split_at_gaps,
)
from braindecode_pars.windows.marks import continuous_segments, kind_of_text, usable_segments


def recording(signals, sfreq=250.0, names=None):
    signals = np.atleast_2d(signals)
    names = names or [f"E{i}" for i in range(len(signals))]
    return mne.io.RawArray(signals, mne.create_info(names, sfreq, "eeg"), verbose="error")


def test_fixed_windows_drop_an_incomplete_window():
    raw = recording(np.arange(1000.0), 100.0)
    windows = fixed_windows(raw, 3.0, target=lambda start, stop: (start + stop).astype(int))
    assert windows.metadata["i_start_in_trial"].tolist() == [0, 300, 600]
    assert windows.metadata["target"].tolist() == [3, 9, 15]
    assert windows[1][0][0, 0] == 300
    assert fixed_windows(raw, 10.1) is None


def test_event_windows_follow_the_annotations():
    raw = recording(np.arange(10_000.0), 100.0)
    raw.set_annotations(
        mne.Annotations(
            onset=[0, 30, 45, 60, 95], duration=[30, 9, 1, 30, 5], description=list("WRW?W")
        )
    )
    windows = event_windows(raw, {"W": 0, "R": 1}, 4.0)
    # Seven windows in 30 s of W, two in 9 s of R, one in the last 5 s of W. One second of W is too
    # short, and "?" is not in the mapping.
    assert windows.metadata["target"].tolist() == [0] * 7 + [1] * 2 + [0]
    assert windows.metadata["i_start_in_trial"].tolist()[-3:] == [3000, 3400, 9500]
    assert event_windows(raw, {"N3": 0}, 4.0) is None
    for cut in (partial(event_windows, raw, {"W": 0}), partial(fixed_windows, raw)):
        with pytest.raises(ValueError, match=r"seconds=0\.001"):
            cut(seconds=0.001)


@pytest.mark.parametrize(("seconds", "n_windows"), [(0.57, 3), (1.1, 1), (4.1, 3)])
def test_durations_are_rounded_to_samples(seconds, n_windows):
    """0.57 s times 100 Hz is 56.99999999999999; 4.5 ms are less than half a sample."""
    raw = recording(np.arange(2000.0), 100.0)
    length = round(100 * seconds)
    starts = [330 + i * length for i in range(n_windows)]
    for missing in (0.0, 0.0045):
        raw.set_annotations(mne.Annotations(3.3, n_windows * seconds - missing, "W"))
        windows = event_windows(raw, {"W": 0}, seconds)
        assert windows.metadata["i_start_in_trial"].tolist() == starts


def test_times_in_single_precision(tmp_path):
    """A FIF file rounds the times in the last hours of a night to milliseconds."""
    raw = recording(np.zeros(36_000), 1.0)
    onsets = 13.7 + 30 * np.arange(450, 750)
    raw.set_annotations(mne.Annotations(onsets, 30, "W"))
    raw.save(tmp_path / "night_raw.fif", buffer_size_sec=3600, verbose="error")
    raw = mne.io.read_raw_fif(tmp_path / "night_raw.fif", verbose="error")
    assert raw.annotations.duration.min() < 29.9999
    assert len(event_windows(raw, {"W": 0}, 30.0)) == 300


def joined(*lengths):
    """Recordings of these lengths in samples, concatenated by MNE."""
    parts = [recording(np.full(length, float(i)), 100.0) for i, length in enumerate(lengths)]
    return mne.concatenate_raws(parts, verbose="error")


def test_fixed_windows_do_not_contain_gaps():
    windows = fixed_windows(joined(250, 199, 420), 2.0, target=lambda start, stop: start)
    assert windows.metadata["i_start_in_trial"].tolist() == [0, 449, 649]
    assert windows.metadata["target"].tolist() == [0, 4.49, 6.49]
    assert windows.metadata["i_window_in_trial"].tolist() == [0, 1, 2]
    assert all(len(np.unique(window)) == 1 for window, *_ in windows)


def test_event_windows_do_not_contain_gaps():
    raw = joined(350, 450)
    notes = mne.Annotations([0, 7], [7, 1], ["W", "R"], orig_time=raw.annotations.orig_time)
    raw.set_annotations(raw.annotations + notes)
    windows = event_windows(raw, {"W": 0, "R": 1}, 1.0)
    assert windows.metadata["i_start_in_trial"].tolist() == [0, 100, 200, 400, 500, 600, 700]
    assert windows.metadata["target"].tolist() == [0] * 6 + [1]
    assert all(len(np.unique(window)) == 1 for window, *_ in windows)
    # The gap stays marked, for a store of the whole recording.
    assert "EDGE boundary" in windows.raw.annotations.description


def ramp(n_times: int = 1000, first_samp: int = 0) -> mne.io.RawArray:
    info = mne.create_info(["C3"], 100.0, "eeg")
    return mne.io.RawArray(np.arange(float(n_times))[None], info, first_samp, verbose="error")


@pytest.mark.parametrize("first_samp", [0, 250])
def test_pauses_within_a_recording_are_cut_out(first_samp):
    """As MNE reads a FIF file with skipped buffers: zeros and an annotation with a duration."""
    raw = ramp(first_samp=first_samp)
    skips = mne.Annotations([0, 3, 4, 9.5], [0.5, 1.5, 0.5, 0.5], "BAD_ACQ_SKIP")
    raw.set_annotations(skips)
    assert continuous_segments(raw) == [(50, 300), (450, 950)]
    # One within another does not end it.
    nested = mne.Annotations([2, 3], [3, 0], ["BAD_ACQ_SKIP", "BAD boundary"])
    assert continuous_segments(raw.copy().set_annotations(nested)) == [(0, 200), (500, 1000)]
    first, second = split_at_gaps(raw)
    assert first.get_data()[0, [0, -1]].tolist() == [50, 299]
    assert second.get_data()[0, [0, -1]].tolist() == [450, 949]
    assert second.first_samp == first_samp + 450
    raw.set_annotations(mne.Annotations([0], [10], "BAD_ACQ_SKIP"))
    assert continuous_segments(raw) == split_at_gaps(raw) == []


@pytest.mark.parametrize("first", [37, 500, 501])
def test_a_gap_of_eeglab_is_half_a_sample_before_the_next(first):
    raw = ramp().set_annotations(mne.Annotations((first - 0.5) / 100, 0.5, "boundary"))
    assert continuous_segments(raw) == [(0, first), (first, 1000)]


MARKS = ["BAD_move", "bad", "BAD electrode"]


def marked(names=("C3",), channels=((), (), ("C3",))):
    """100 s at 100 Hz; 15 s, 33 to 41 s, and 77 s of some channels are marked as bad."""
    info = mne.create_info(list(names), 100.0, "eeg")
    raw = mne.io.RawArray(np.zeros((len(names), 10_000)), info, first_samp=500, verbose="error")
    bad = mne.Annotations([15, 33, 77], [0, 8, 1], MARKS, ch_names=channels)
    return raw.set_annotations(bad)


def test_fixed_windows_leave_bad_times_out(caplog):
    caplog.set_level("INFO")
    windows = fixed_windows(marked(), 10.0, target=np.arange(10))
    assert windows.metadata["target"].tolist() == [0, 2, 5, 6, 8, 9]
    assert windows.metadata["i_start_in_trial"].tolist() == [0, 2000, 5000, 6000, 8000, 9000]
    assert "4 of 10 windows" in caplog.text


def test_a_bad_time_of_unused_channels_does_not_count():
    raw = marked(["C3", "C4"], ((), (), ("C4",)))
    assert len(fixed_windows(raw.copy().pick(["C3"]), 10.0)) == 7
    raw.info["bads"] = ["C4"]
    assert len(fixed_windows(raw, 10.0)) == 7


def test_event_windows_leave_bad_times_out():
    raw = marked()
    raw.annotations.append([15, 55], [40, 40], ["W", "R"])
    with collect_excluded_items() as excluded_items:
        windows = event_windows(raw, {"W": 0, "R": 1}, 10.0)
    assert windows.metadata["i_start_in_trial"].tolist() == [2000, 5000, 6000, 8000]
    assert windows.metadata["target"].tolist() == [0, 1, 1, 1]
    assert [item[2:] for item in excluded_items] == [(4, 8, True)]


def test_an_onset_is_the_nearest_sample():
    """0.29 s at 100 Hz is sample 29, though 0.29 * 100 is 28.999999999999996."""
    raw = recording(np.arange(1000.0), 100.0)
    raw.set_annotations(mne.Annotations([0.29, 4.576], [2, 2], ["W", "W"]))
    windows = event_windows(raw, {"W": 0}, 1.0)
    assert windows.metadata["i_start_in_trial"].tolist() == [29, 129, 458, 558]


def test_a_bad_moment_is_one_sample():
    raw = ramp().set_annotations(mne.Annotations([2.0], [0.0], ["BAD_jump"]))
    assert usable_segments(raw, ["C3"]) == [(0, 200), (201, 1000)]


NO_FILTERS = dict(low=None, high=None, mains=None, verbose=0)


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("gap", ["BAD boundary", "EDGE boundary", "boundary", "Boundary", "BAD_boundary", "-99"]),
        ("gap", ["-99.0", "New Segment/", "New Segment", "BAD_ACQ_SKIP", "bad_acq_skip"]),
        ("bad", ["BAD_blink", "bad", "Bad Interval/Min-Max", "Comment/BAD_muscle", "Comment/bad"]),
        ("label", ["Sleep stage W", "feedback/bad", "not bad", "99", "edgeless", "Comment/rest"]),
        ("label", ["Stimulus/edge left", "image/boundary", "rest/edge detection"]),
    ],
)
def test_the_kinds_of_texts(kind, texts):
    assert {text: kind_of_text(text) for text in texts} == dict.fromkeys(texts, kind)


def bids(root, rows, columns="onset\tduration\ttrial_type"):
    """Write a recording of 30 s next to a table of events."""
    eeg = root / "sub-01" / "eeg"
    eeg.mkdir(parents=True)
    noise = 1e-5 * np.random.default_rng(0).normal(size=(2, 3000))
    info = mne.create_info(["C3", "C4"], 100.0, "eeg")
    raw = mne.io.RawArray(noise, info, first_samp=500, verbose="error")
    raw.save(eeg / "sub-01_task-rest_eeg.fif", verbose="error")
    lines = "\n".join("\t".join(map(str, row)) for row in rows)
    (eeg / "sub-01_task-rest_events.tsv").write_text(f"{columns}\n{lines}\n")
    return root


def starts(windows):
    return windows.datasets[0].metadata["i_start_in_trial"].tolist()


@pytest.mark.parametrize(
    ("mark", "kept"),
    [
        ((15, 400, "boundary"), [0, 2000]),  # the duration is what EEGLAB removed
        ((12, 9, "BAD_ACQ_SKIP"), [0]),
        ((12, 1, "Comment/BAD_blink"), [0, 2000]),
    ],
)
def test_marks_in_the_table_of_events_count(tmp_path, mark, kept):
    root = bids(tmp_path, [(0, 30, "rest"), mark])
    windows = folder.load(root, labels=["rest"], window_seconds=10, sfreq=100, **NO_FILTERS)
    assert starts(windows) == kept


def test_marks_are_no_labels(tmp_path):
    rows = [(0, 20, "rest"), (20, 10, "task"), (5, 10, "boundary"), (1, 12, "EDGE boundary")]
    rows += [(0, 10, "Comment/BAD_x"), (3, 15, "-99")]
    windows = folder.load(bids(tmp_path, rows), window_seconds=10, sfreq=100, **NO_FILTERS)
    assert windows.datasets[0].window_kwargs[-1][1]["mapping"] == {"rest": 0, "task": 1}
    with pytest.raises(ValueError, match="'bad trial'"):
        folder.load(tmp_path, labels={"rest": "bad trial"}, **NO_FILTERS)
