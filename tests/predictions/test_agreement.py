"""Agreement with an expert, against a plain count of windows and scikit-learn."""

from __future__ import annotations

import mne
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from braindecode_pars.datasets.simulated import STAGES, stages_of_a_night
from braindecode_pars.predictions import agreement, sleep_statistics


def frame(labels, seconds=30.0, classes=()):
    columns = {f"probability_{name}": 1 / len(classes) for name in classes}
    onset = seconds * np.arange(len(labels))
    return pd.DataFrame(dict(onset=onset, duration=seconds, label=labels, **columns))


def in_runs(stages, start=0.0, seconds=30.0):
    """Annotations as in files of sleep corpora: one for windows of the same stage in a row."""
    edges = [0, *np.flatnonzero(np.diff(pd.factorize(np.array(stages))[0])) + 1, len(stages)]
    onsets = start + seconds * np.array(edges[:-1])
    return mne.Annotations(onsets, seconds * np.diff(edges), np.array(stages)[edges[:-1]])


def test_against_a_plain_count_of_uneven_windows():
    """Windows of 10 s, epochs of the expert of 30 s that begin 15 s late; some are not scored.

    The middle of a window may be the end of an epoch, and then belongs to the next epoch, if any.
    """
    rng = np.random.default_rng(0)
    night = [STAGES[stage] for stage in stages_of_a_night(60, rng)]
    for i in (3, 30, 31):
        night[i] = "?"
    predicted = [
        night[min(i // 3, 59)] if rng.random() < 0.7 else rng.choice(STAGES) for i in range(190)
    ]
    predicted = [None if label == "?" else label for label in predicted]
    result = agreement(frame(predicted, 10.0, STAGES), in_runs(night, start=15.0))
    pairs = [
        (night[int(epoch)], label)
        for i, label in enumerate(predicted)
        if 0 <= (epoch := (10 * i + 5 - 15) / 30) < 60
    ]
    pairs = [pair for pair in pairs if pair[0] != "?" and pair[1] is not None]
    kappa, confusion, statistics = result
    assert kappa == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))
    assert [*confusion] == [*confusion.index] == ["W", "R", "N1", "N2", "N3"]
    for true in confusion.index:
        for label in confusion:
            assert confusion.loc[true, label] == pairs.count((true, label))
    # Windows that one side did not score are unscored in the statistics of both sides.
    epochs = [(10 * i + 5 - 15) / 30 for i in range(190)]  # at the middle of the window
    scored = [night[int(epoch)] if 0 <= epoch < 60 else "?" for epoch in epochs]
    for i in range(190):
        if scored[i] == "?" or predicted[i] is None:
            scored[i] = predicted[i] = None
    assert scored.count(None) > 9
    for name, stages in (("predicted", predicted), ("expert", scored)):
        expected = pd.Series(sleep_statistics(stages, window_seconds=10))
        pd.testing.assert_series_equal(statistics[name], expected, check_names=False)


@pytest.mark.parametrize(
    ("predicted", "expert", "counts"),
    [
        ("W N3 N3 N3", "W N3 N2 REM", {"W W": 1, "N3 N3": 1, "N2 N3": 1, "R N3": 1}),
        ("W N3 N3", "W S3 S4", {"W W": 1, "N3 N3": 2}),
        ("W S3 S4", "W S4 S4", {"W W": 1, "N4 N3": 1, "N4 N4": 1}),
        (
            "wake light deep light",
            "W N1 S4 N3",
            {"W W": 1, "light light": 1, "N3 N3": 1, "N3 light": 1},
        ),
        ("wake sleep sleep", "W R light", {"W W": 1, "sleep sleep": 2}),
        (
            "left right right",
            "left right left",
            {"left left": 1, "right right": 1, "left right": 1},
        ),
    ],
)
def test_stages_count_as_the_class_that_includes_them(predicted, expert, counts):
    predicted = predicted.split()
    *_, confusion, statistics = agreement(frame(predicted), in_runs(expert.split()))
    pairs = confusion.stack()
    assert {" ".join(pair): n for pair, n in pairs[pairs > 0].items()} == counts
    assert statistics.empty == ("left" in predicted)


def test_the_labels_of_a_file(tmp_path):
    """Annotations in the file, or events of BIDS, whose windows are numbered from its start."""
    file = tmp_path / "sub-1_task-sleep_eeg.fif"
    raw = mne.io.RawArray(
        np.zeros((1, 9000)), mne.create_info(["C3"], 100.0, "eeg"), verbose="error"
    )
    raw.set_annotations(in_runs(["W", "N2", "lights off"]))
    raw.save(file, verbose="error")
    predicted = frame(["W", "N2", "N2"], classes=["W", "N2"])
    with pytest.warns(UserWarning, match="lights off.*sleep stages"):
        assert agreement(predicted, file)[0] == 1
    events = tmp_path / "sub-1_task-sleep_events.tsv"
    events.write_text("onset\tduration\ttrial_type\n0\t0\tN2\n30\t60\tN2\n")
    assert agreement(predicted, file)[1].to_numpy().tolist() == [[0, 0], [1, 2]]
    with pytest.raises(ValueError, match="No window"):
        agreement(frame([None, "W"]), in_runs(["W", "?"]))
    with pytest.warns(UserWarning, match="T0.*left, right"):
        agreement(frame(["left", "right", "left"]), in_runs(["left", "right", "T0"]))
