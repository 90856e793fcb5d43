"""SubjectCentering: each subject's mean is subtracted from its own windows only."""

from __future__ import annotations

import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.short_windows import first_samples
from support.small_estimators import embedder

from braindecode_pars import PARSEmbedder, SubjectCentering, as_sklearn
from braindecode_pars.estimators.transformers import subtract_means
from braindecode_pars.evaluation import LogBandPower, leave_one_subject_out

#: Subjects in any order, and of types that cannot be sorted together.
MIXED = np.array([1, "1", "b", 1, "b", "1"] * 16, dtype=object)


@pytest.fixture(scope="module")
def nights(whole_nights):
    """Their windows of three seconds."""
    return first_samples(whole_nights, 300)


@pytest.fixture(scope="module")
def data(nights):
    return as_sklearn(nights)


@pytest.fixture(scope="module")
def array(nights):
    return np.stack([nights[i][0] for i in range(96)]).astype(float)


def centered(features: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Subtract the mean of each subject, window by window."""
    expected = np.zeros_like(features)
    for i, window in enumerate(features):
        own = [other for other, s in zip(features, groups.tolist(), strict=True) if s == groups[i]]
        expected[i] = window - sum(own) / len(own)
    return expected


def probe(**arguments):
    features = SubjectCentering(LogBandPower(**arguments))
    return make_pipeline(features, StandardScaler(), LogisticRegression(max_iter=1000))


def test_the_mean_of_each_subject_is_subtracted(data, array):
    X, _, groups = data
    plain = LogBandPower().fit_transform(X)
    features = SubjectCentering(LogBandPower()).fit_transform(X)
    np.testing.assert_allclose(features, centered(plain, groups), atol=1e-9)
    # Of arrays, with groups= and subjects that take turns.
    features = SubjectCentering(LogBandPower(sfreq=100)).fit_transform(array, groups=MIXED)
    np.testing.assert_allclose(features, centered(plain, MIXED), atol=1e-6)


def test_missing_features_do_not_count_in_the_mean():
    features = np.array([[1.0, 4.0], [np.nan, 6.0], [4.0, np.nan], [7.0, 1.0]])
    subjects = np.array([0, 0, 0, 1])
    expected = [[-1.5, -1.0], [np.nan, 1.0], [1.5, np.nan], [0.0, 0.0]]
    np.testing.assert_array_equal(subtract_means(features, subjects), expected)
    # A running mean, which begins with 2 and counts as two windows
    running = subtract_means(features[:3, :1], subjects[:3], (np.array([2.0]), 2.0))
    np.testing.assert_allclose(running, [[1 - 5 / 3], [np.nan], [4 - 9 / 4]])


def test_a_running_mean_begins_with_that_of_the_training_subjects(data):
    """Each subject counts the same, whatever its number of windows."""
    X, _, groups = data
    rows = np.r_[:24, 24:29, 48:50]
    features = SubjectCentering(LogBandPower(), running=True, min_windows=5).fit(X[rows])
    plain = LogBandPower().fit_transform(X)
    of_subjects = [plain[rows[groups[rows] == subject]].mean(axis=0) for subject in (1, 2, 3)]
    begin = np.mean(of_subjects, axis=0)
    np.testing.assert_allclose(features.mean_, begin, rtol=1e-6)
    found = features.transform(X[72:75])
    for i in range(3):  # the mean of the training counts as five windows
        mean = (5 * begin + plain[72 : 73 + i].sum(axis=0)) / (6 + i)
        np.testing.assert_allclose(found[i], plain[72 + i] - mean, atol=1e-5)


def test_in_a_protocol(nights):
    """Its embedder is found."""
    donor = embedder(pretext=None).fit(nights)
    donor.encoder_card_.subjects = [1, 2, 3, 4]
    centered_probe = make_pipeline(
        SubjectCentering(PARSEmbedder(encoder=donor, verbose=0)), LogisticRegression(max_iter=1000)
    )
    methods = {"log band power": probe(), "probe": centered_probe}
    with pytest.warns(UserWarning, match="test subjects 1, 2"):
        scores = leave_one_subject_out(methods, nights, metrics=["accuracy"], verbose=0)
    X, y, groups = as_sklearn(nights)
    expected = cross_val_score(probe(), X, y, groups=groups, cv=LeaveOneGroupOut())
    found = scores[scores["method"] == "log band power"]["value"]
    np.testing.assert_allclose(found, expected)


def test_groups_reach_the_embedder_and_columns_keep_their_names(array):
    inner = embedder(sfreq=100, pretext=None)
    features = SubjectCentering(inner).set_output(transform="pandas")
    frame = features.fit_transform(array, groups=MIXED)
    assert frame.columns[0] == "channel0_0"
    assert not hasattr(inner, "encoder_")  # a clone was fitted
    trained = SubjectCentering(embedder(sfreq=100)).fit(array, groups=np.arange(96) % 2)
    assert trained.transformer_.encoder_card_.subjects == [0, 1]


def test_each_subject_needs_windows_of_its_own(nights, data, array):
    X, _, _ = data
    features = SubjectCentering(LogBandPower())
    with pytest.raises(NotFittedError):
        features.transform(X)
    features.fit(X)
    message = "10 windows .*subject 2 has 3"
    with pytest.raises(ValueError, match=message):
        features.transform(X[np.r_[:24, 24:27]])
    with pytest.raises(ValueError, match=message):
        clone(features).fit(X[np.r_[:24, 24:27]])
    assert not clone(features).set_params(min_windows=1).fit_transform(X[:1]).any()
    with pytest.raises(ValueError, match="96 of 96"):
        SubjectCentering(LogBandPower(sfreq=100)).fit(array)
    first, *others = nights.datasets
    partly = BaseConcatDataset([type(first)(first.raw, first.metadata, {}), *others])
    with pytest.raises(ValueError, match="24 of 96"):
        features.transform(partly)
