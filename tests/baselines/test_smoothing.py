"""Smoothing over time, against all paths in turn, and against plain computations."""

from __future__ import annotations

from itertools import pairwise, product

import mne
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.model_files import change_description
from support.small_estimators import classifier

from braindecode_pars import PARSClassifier, as_sklearn
from braindecode_pars.baselines import make_methods
from braindecode_pars.estimators import HMMSmoothing, LinearProbe
from braindecode_pars.evaluation import LogBandPower
from braindecode_pars.predictions import smoothed
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.transitions import Transitions

MATRIX = np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.05, 0.15, 0.8]])
SHARES, PRIOR = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
CHAIN = Transitions(MATRIX, SHARES, PRIOR)


def predicted(n, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(3), n)


def test_smoothing_weighs_every_path():
    """With a window that has no prediction, and a probability of zero."""
    probabilities = predicted(6)
    probabilities[1], probabilities[3] = [0.0, 0.4, 0.6], np.nan
    likelihood = np.where(np.isnan(probabilities), 1.0, probabilities / PRIOR)
    weights = {}
    for path in product(range(3), repeat=6):
        of_steps = [MATRIX[a, b] for a, b in pairwise(path)]
        weights[path] = SHARES[path[0]] * np.prod(of_steps) * np.prod(likelihood[range(6), path])
    expected = np.zeros((6, 3))
    for path, weight in weights.items():
        expected[range(6), path] += weight / sum(weights.values())
    found, path = CHAIN.smooth(probabilities)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert tuple(path) == max(weights, key=weights.get)
    assert np.isfinite(CHAIN.smooth(predicted(2000))[0]).all()  # nothing underflows


def slow_matrix(recordings, n_classes):
    counts = np.ones((n_classes, n_classes))
    for labels in recordings:  # None where a window is missing
        for before, after in pairwise(labels):
            if None not in (before, after):
                counts[before, after] += 1
    return counts / counts.sum(axis=1, keepdims=True)


def test_transitions_are_counted_where_windows_touch(nights):
    """In any order of the windows, not over a window that is left out or to another night."""
    X, y, subjects = as_sklearn(nights)
    labels = [y[subjects == s].tolist() for s in np.unique(subjects)]
    labels[1][5] = None
    kept = np.random.default_rng(0).permutation(np.delete(np.arange(len(y)), 24 + 5))
    found = Transitions.of(as_windows(X[kept], y[kept]), np.arange(5), "balanced")
    np.testing.assert_allclose(found.matrix, slow_matrix(labels, 5))
    np.testing.assert_allclose(found.shares, (np.bincount(y[kept]) + 1) / (len(kept) + 5))
    assert Transitions.of(as_windows(X[::2], y[::2]), np.arange(5), None) is None
    # Of an array, only the order is known.
    array = as_windows(np.zeros((6, 1, 10)), np.array([0, 0, 1, 1, 0, 0]))
    found = Transitions.of(array, np.arange(2), None)
    np.testing.assert_allclose(found.matrix, slow_matrix([[0, 0, 1, 1, 0, 0]], 2))


def test_the_prior_is_what_class_weights_leave_of_the_shares():
    windows = as_windows(np.zeros((8, 1, 10)), np.array([0, 0, 0, 0, 0, 1, 1, 2]))
    classes = np.array(["a", "b", "c"])
    for class_weight, expected in (
        ("balanced", [1 / 3, 1 / 3, 1 / 3]),
        (None, [5 / 8, 2 / 8, 1 / 8]),
        ({"b": 2.0}, [0.5, 0.4, 0.1]),
    ):
        found = Transitions.of(windows, classes, class_weight)
        np.testing.assert_allclose(found.prior, expected, rtol=1e-6)


@pytest.fixture(scope="module")
def fitted(nights):
    return classifier(pretext=None, finetune_epochs=3, validation=0).fit(nights)


def probabilities(frame, prefix="probability_"):
    return frame.filter(regex=f"^{prefix}").to_numpy()


def test_predict_raw_keeps_raw_rows_and_adds_smoothed_ones(fitted, nights):
    raw = nights.datasets[0].raw.copy()
    raw.set_annotations(mne.Annotations(16, 1, "BAD off"))
    plain, frame = fitted.predict_raw(raw), fitted.predict_raw(raw, smooth=True)
    names = [f"smoothed_{name}" for name in frame.attrs["classes"]]
    assert [*frame] == [*plain, "label_smoothed", *names]
    assert frame[[*plain]].equals(plain)
    expected, path = fitted.transitions_.smooth(probabilities(plain))
    expected[3] = np.nan
    np.testing.assert_allclose(probabilities(frame, "smoothed_"), expected)
    labels = [frame.attrs["classes"][i] for i in path]
    labels[3] = None
    assert frame["label_smoothed"].tolist() == labels
    alone = smoothed(frame)
    assert [*alone] == [*plain]
    assert alone["label"].tolist() == labels
    assert alone.attrs == frame.attrs
    np.testing.assert_array_equal(probabilities(alone), probabilities(frame, "smoothed_"))
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(expected * np.log(expected), axis=1)
    entropy[3] = np.nan
    np.testing.assert_allclose(alone["entropy"], entropy, atol=1e-12)


def test_a_saved_model_smooths_and_one_without_transitions_says_why_not(fitted, nights, tmp_path):
    raw, folder = nights.datasets[0].raw, fitted.save(tmp_path / "model")
    frame = PARSClassifier.load(folder, device="cpu").predict_raw(raw, smooth=True)
    expected = probabilities(fitted.predict_raw(raw, smooth=True), "smoothed_")
    np.testing.assert_allclose(probabilities(frame, "smoothed_"), expected, atol=1e-6)
    change_description(folder, lambda described: described["classifier"].update(transitions=None))
    without = PARSClassifier.load(folder, device="cpu")
    assert len(without.predict_raw(raw)) == len(frame)
    with pytest.raises(ValueError, match=r"smooth=True.* Fit the model again"):
        without.predict_raw(raw, smooth=True)


def probe(**arguments):
    return LinearProbe(LogBandPower(), C=0.1, **arguments)


@pytest.mark.parametrize("class_weight", ["balanced", None])
def test_a_classifier_is_smoothed_in_each_recording(nights, class_weight):
    """Windows may come in any order, and a window that is left out ends a run."""
    X, y, _ = as_sklearn(nights)
    plain = probe(class_weight=class_weight).fit(X, y)
    clf = HMMSmoothing(probe(class_weight=class_weight)).fit(X, y)
    chain = Transitions.of(as_windows(X, y), plain.classes_, class_weight)
    kept = np.random.default_rng(0).permutation(np.delete(np.arange(len(y)), 24 + 5))
    runs = [range(24), range(24, 29), range(30, 48), range(48, 72), range(72, 96)]
    raw, expected, labels = plain.predict_proba(X), np.zeros((96, 5)), np.zeros(96, int)
    for run in runs:
        expected[run], labels[run] = chain.smooth(raw[run])
    np.testing.assert_allclose(clf.predict_proba(X[kept]), expected[kept], atol=1e-12)
    np.testing.assert_array_equal(clf.predict(X[kept]), labels[kept])
    assert clf.score(X[kept], y[kept]) == np.mean(labels[kept] == y[kept])
    # Unlabeled windows are smoothed, and not scored.
    clf.classifier.unlabeled_label = -1
    partly = np.where(np.arange(96) % 3, y, -1)
    is_right = (clf.predict(X) == partly)[partly >= 0]
    assert clf.score(X, partly) == np.mean(is_right)
    weights = np.random.default_rng(0).random(96)
    weighted = np.average(is_right, weights=weights[partly >= 0])
    assert clf.score(X, partly, weights) == pytest.approx(weighted)


def test_the_prior_is_that_of_the_part_with_class_weights(nights):
    X, y, _ = as_sklearn(nights)
    for regression, is_uniform in (
        (LogisticRegression(C=0.1), False),
        (LogisticRegression(C=0.1, class_weight="balanced"), True),
    ):
        clf = HMMSmoothing(make_pipeline(LogBandPower(), StandardScaler(), regression)).fit(X, y)
        assert (np.ptp(clf.transitions_.prior) < 1e-6) == is_uniform
    windows, classes = as_windows(X, y), np.unique(y)
    for weight in (None, {y[0]: 3.0}):  # also in a classifier that smooths by itself
        clf = classifier(pretext=None, finetune_epochs=1, validation=0, class_weight=weight)
        expected = Transitions.of(windows, classes, weight)
        np.testing.assert_allclose(clf.fit(X, y).transitions_.prior, expected.prior)


def test_unlabeled_windows_count_no_transition(nights):
    X, y, _ = as_sklearn(nights)
    partly = np.where(np.arange(96) < 72, y, -1)
    clf = HMMSmoothing(probe(unlabeled_label=-1)).fit(X, partly)
    expected = Transitions.of(as_windows(X[:72], y[:72]), np.arange(5), "balanced")
    np.testing.assert_array_equal(clf.transitions_.matrix, expected.matrix)


def test_what_has_no_time_is_refused(nights):
    X, y, _ = as_sklearn(nights)
    array = np.stack([X[i] for i in range(24)])
    with pytest.raises(ValueError, match="start and stop"):
        HMMSmoothing(probe()).fit(array, y[:24])
    clf = HMMSmoothing(probe()).fit(X, y)
    with pytest.raises(ValueError, match="start and stop"):
        clf.predict(array)
    with pytest.raises(ValueError, match="overlap"):
        clf.predict(X[[0, 0, 1]])


def test_smoothed_methods_by_name():
    methods = make_methods(["band-power"], smoothing=True, C=0.1)
    assert list(methods) == ["log band power", "log band power, smoothed over time (transductive)"]
    smoothing = methods["log band power, smoothed over time (transductive)"]
    assert isinstance(smoothing, HMMSmoothing)
    assert smoothing.get_params()["classifier__C"] == 0.1
