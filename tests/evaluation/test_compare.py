"""compare is leave_one_subject_out for several methods."""

from __future__ import annotations

import pandas as pd
import pytest
from support.subjects import LoggingClassifier

from braindecode_pars.evaluation import compare, leave_one_subject_out, paired_tests


def test_the_folds_are_those_of_leave_one_subject_out(nights, tmp_path):
    estimators = {"A": LoggingClassifier(tmp_path), "B": LoggingClassifier(tmp_path, 2)}
    arguments = dict(seeds=[0, 1], dataset="nights", verbose=0)
    scores = compare(estimators, nights, **arguments)
    assert set(scores["protocol"]) == {"compare"}
    plain = leave_one_subject_out(estimators, nights, **arguments)
    pd.testing.assert_frame_equal(scores.drop(columns="protocol"), plain.drop(columns="protocol"))
    (row,) = paired_tests(scores).to_dict("records")
    assert (row["n_subjects"], row["mean_difference"], row["p"]) == (4, 0, 1)


def test_a_single_classifier_raises(nights, tmp_path):
    with pytest.raises(ValueError, match="compare needs at least two classifiers, got only A"):
        compare({"A": LoggingClassifier(tmp_path)}, nights)
