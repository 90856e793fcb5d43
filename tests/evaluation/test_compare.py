"""compare is leave_one_subject_out for several methods."""

from __future__ import annotations

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.subjects import LoggingClassifier

from braindecode_pars.evaluation import LogBandPower, compare, leave_one_subject_out, paired_tests

METHODS = {
    name: make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression(C=C, max_iter=1000))
    for name, C in (("A", 0.1), ("B", 1.0))
}


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
    with pytest.raises(ValueError, match=r"two .* A"):
        compare({"A": LoggingClassifier(tmp_path)}, nights)


@pytest.mark.parametrize("cv", [2, GroupKFold(2)])
def test_a_cross_validator_scores_every_subject_once(nights, cv):
    scores = compare(METHODS, nights, cv=cv, metrics=["kappa"], verbose=0)
    assert len(scores) == 2 * 4
    assert set(scores["subject"]) == {1, 2, 3, 4}
    assert set(scores["n_train_subjects"]) == {2}


def test_cv_and_test_subjects_contradict_each_other(nights):
    with pytest.raises(ValueError, match="cv and test_subjects"):
        compare(METHODS, nights, cv=2, test_subjects=[1], verbose=0)
