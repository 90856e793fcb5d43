"""Means over subjects or seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from braindecode_pars.evaluation import summarize

ROWS = [
    # subject, seed, value
    (1, 0, 0.2),
    (1, 1, 0.4),
    (2, 0, 0.5),
    (2, 1, 0.7),
    (3, 0, np.nan),
    (3, 1, np.nan),
    ("all", 0, 0.1),
    ("all", 1, 0.5),
]
SCORES = pd.DataFrame(ROWS, columns=["subject", "seed", "value"]).assign(
    protocol="transfer", dataset="d", method="A", n_train_subjects=5, metric="kappa"
)


def test_over_subjects_seeds_are_averaged_first():
    (row,) = summarize(SCORES).to_dict("records")
    assert row["mean"] == pytest.approx(0.45)
    assert row["sd"] == pytest.approx(np.std([0.3, 0.6], ddof=1))
    assert row["n"] == 2
    assert (row["method"], row["n_train_subjects"], row["metric"]) == ("A", 5, "kappa")


def test_over_seeds_the_pooled_rows_count():
    (row,) = summarize(SCORES, over="seeds").to_dict("records")
    assert row["mean"] == pytest.approx(0.3)
    assert row["sd"] == pytest.approx(np.std([0.1, 0.5], ddof=1))
    assert row["n"] == 2


def test_methods_keep_their_order():
    both = pd.concat([SCORES.assign(method="Z"), SCORES])
    assert summarize(both)["method"].tolist() == ["Z", "A"]


def test_missing_rows_raise():
    with pytest.raises(ValueError, match=r"No row of these scores is pooled \(subject 'all'\)"):
        summarize(SCORES[SCORES["subject"] != "all"], over="seeds")
    with pytest.raises(ValueError, match="No row of these scores is of single subjects"):
        summarize(SCORES[SCORES["subject"] == "all"])
    with pytest.raises(ValueError, match="over must be 'subjects' or 'seeds', got 'folds'"):
        summarize(SCORES, over="folds")
