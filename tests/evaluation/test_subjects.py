"""compare and leave_one_subject_out share one body."""

from __future__ import annotations

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars.evaluation import LogBandPower, compare, leave_one_subject_out

METHODS = {
    name: make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression(C=C, max_iter=1000))
    for name, C in (("A", 0.1), ("B", 1.0))
}


def test_they_differ_in_the_protocol_only(nights):
    one = leave_one_subject_out(METHODS, nights, verbose=0)
    other = compare(METHODS, nights, verbose=0)
    assert set(one["protocol"]) == {"leave_one_subject_out"}
    assert set(other["protocol"]) == {"compare"}
    pd.testing.assert_frame_equal(one.drop(columns="protocol"), other.drop(columns="protocol"))


@pytest.mark.parametrize("cv", [2, GroupKFold(2)])
def test_a_cross_validator_scores_every_subject_once(nights, cv):
    scores = compare(METHODS, nights, cv=cv, metrics=["kappa"], verbose=0)
    assert len(scores) == 2 * 4
    assert set(scores["subject"]) == {1, 2, 3, 4}
    assert set(scores["n_train_subjects"]) == {2}


def test_cv_and_test_subjects_contradict_each_other(nights):
    with pytest.raises(ValueError, match="cv and test_subjects"):
        compare(METHODS, nights, cv=2, test_subjects=[1], verbose=0)
