"""What the text of an annotation says: a label, a bad time or a gap, wherever it stands."""

from __future__ import annotations

import mne
import numpy as np
import pytest

from braindecode_pars.datasets import folder
from braindecode_pars.windows.marks import continuous_segments, kind_of_text

NO_FILTERS = dict(low=None, high=None, mains=None, verbose=0)


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("gap", ["BAD boundary", "EDGE boundary", "boundary", "Boundary", "BAD_boundary", "-99"]),
        ("gap", ["-99.0", "New Segment/", "New Segment", "BAD_ACQ_SKIP", "bad_acq_skip"]),
        ("gap", ["Comment/BAD boundary", "Comment/EDGE boundary", "Stimulus/boundary", "EDGE"]),
        ("bad", ["BAD_blink", "bad", "Bad Interval/Min-Max", "Comment/BAD_muscle", "Comment/bad"]),
        ("label", ["Sleep stage W", "feedback/bad", "not bad", "99", "edgeless", "Comment/rest"]),
        ("label", ["boundary crossed", "-990", "New"]),
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
        ((15, 0, "EDGE boundary"), [0, 2000]),
        ((15, 400, "boundary"), [0, 2000]),  # the duration is what EEGLAB removed
        ((12, 9, "BAD_ACQ_SKIP"), [0]),
        ((12, 1, "Comment/BAD_blink"), [0, 2000]),
        ((12, 9, "feedback/bad"), [0, 1000, 2000]),
    ],
)
def test_marks_in_the_table_of_events_count(tmp_path, mark, kept):
    root = bids(tmp_path, [(0, 30, "rest"), mark])
    windows = folder.load(root, labels=["rest"], window_seconds=10, sfreq=100, **NO_FILTERS)
    assert starts(windows) == kept


@pytest.mark.parametrize(
    ("gap", "columns"),
    [
        (("n/a", -99), "onset\tduration\ttrial_type\tvalue"),
        (("STATUS", "Boundary"), "Onset\tDuration\tTrial_type\tValue"),
    ],
)
def test_a_gap_may_be_a_value(tmp_path, gap, columns):
    rows = [(0, 30, "rest", 1), (15, 0, *gap)]
    root = bids(tmp_path, rows, columns)
    windows = folder.load(root, labels=["rest"], window_seconds=10, sfreq=100, **NO_FILTERS)
    assert starts(windows) == [0, 2000]


def test_marks_are_no_labels(tmp_path):
    rows = [(0, 20, "rest"), (20, 10, "task"), (5, 10, "boundary"), (1, 12, "EDGE boundary")]
    rows += [(0, 10, "Comment/BAD_x"), (3, 15, "-99")]
    windows = folder.load(bids(tmp_path, rows), window_seconds=10, sfreq=100, **NO_FILTERS)
    assert windows.datasets[0].window_kwargs[-1][1]["mapping"] == {"rest": 0, "task": 1}


def test_a_class_is_not_called_as_a_gap(tmp_path):
    with pytest.raises(ValueError, match="'bad trial'"):
        folder.load(bids(tmp_path, [(0, 30, "x")]), labels={"x": "bad trial"}, **NO_FILTERS)


def test_gaps_of_a_raw(tmp_path):
    noise = np.zeros((1, 3000))
    raw = mne.io.RawArray(noise, mne.create_info(["C3"], 100.0, "eeg"), verbose="error")
    raw.set_annotations(
        mne.Annotations([5, 10, 20], [3, 1, 5], ["-99", "bad_acq_skip", "Boundary"])
    )
    assert continuous_segments(raw) == [(0, 500), (500, 1000), (1100, 2000), (2000, 3000)]
