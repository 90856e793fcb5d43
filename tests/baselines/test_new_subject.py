"""Adaptation to a new subject, on simulated subjects and compared with plain computations."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from pyriemann.geometry.distance import distance
from pyriemann.geometry.mean import gmean
from scipy.optimize import approx_fprime, minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from support.small_estimators import embedder

from braindecode_pars import FewLabelsClassifier, SubjectCentering, as_sklearn
from braindecode_pars._common.tables import TestSubjectData
from braindecode_pars.baselines import linear_probe, new_subject
from braindecode_pars.estimators import EuclideanAlignment, LinearProbe, RiemannianCentering
from braindecode_pars.evaluation import LogBandPower, SpatialCovariance, features_computed_once


@pytest.fixture(scope="module", autouse=True)
def features_of_all_tests():
    with features_computed_once():
        yield


@pytest.fixture(scope="module")
def data(nights):
    return as_sklearn(nights)


def running(min_windows=10):
    return SubjectCentering(LogBandPower(), running=True, min_windows=min_windows)


def test_a_running_mean_is_shrunk_to_the_mean_of_the_training_subjects(data):
    X, _, groups = data
    train, new = groups != 1, groups == 1
    centering = running(4).fit(X[train])
    features = LogBandPower().fit_transform(X)
    mean = np.mean([features[groups == s].mean(axis=0) for s in np.unique(groups[train])], axis=0)
    np.testing.assert_allclose(centering.mean_, mean)
    found, own = centering.transform(X[new]), features[new]
    for i in (0, 1, 7):
        far = (4 * mean + own[: i + 1].sum(axis=0)) / (4 + i + 1)
        np.testing.assert_allclose(found[i], own[i] - far)


def test_a_running_prediction_does_not_depend_on_later_windows(data):
    X, y, groups = data
    train, new = groups != 1, np.flatnonzero(groups == 1)
    clf = LinearProbe(running(), C=0.01).fit(X[train], y[train])
    whole = clf.predict_proba(X[new])
    for n in (1, 5):  # fewer than a mean of all windows needs
        np.testing.assert_allclose(clf.predict_proba(X[new[:n]]), whole[:n], atol=1e-6)
    signals = np.asarray(X[new])
    signals[5:] = signals[5:][::-1] * 3  # another future
    other = X[new].read_by(signals)
    np.testing.assert_allclose(clf.predict_proba(other)[:5], whole[:5], atol=1e-6)
    assert np.abs(clf.predict_proba(other)[5:] - whole[5:]).max() > 1e-3
    assert clf.test_subject_data_ is TestSubjectData.PAST_UNLABELED


def fitted_pipeline(n_classes, rng, n_features=6):
    codes = np.arange(60) % n_classes
    features = rng.standard_normal((60, n_features)) + 0.8 * np.eye(n_classes, n_features)[codes]
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.3)).fit(features, codes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_ridge_towards_weights_has_the_lowest_loss(n_classes):
    rng = np.random.default_rng(5)
    linear = fitted_pipeline(n_classes, rng, 9)[-1]
    features, codes = rng.standard_normal((5, 9)), np.array([0, 1, 0, 1, n_classes - 1])
    weights = np.array([1.0, 2.0, 0.5, 1.0, 1.0])
    given = linear.coef_, linear.intercept_, features, codes, weights

    def loss(flat):
        w, b = flat[: linear.coef_.size].reshape(linear.coef_.shape), flat[linear.coef_.size :]
        z = features @ w.T + b
        z = z if n_classes > 2 else np.hstack([0 * z, z])
        logs = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        change = np.sum((w - linear.coef_) ** 2) * 0.2 * 9 + np.sum((b - linear.intercept_) ** 2)
        return -weights @ logs[np.arange(5), codes] + change / 2

    flat = np.concatenate([part.ravel() for part in new_subject.ridge_towards(*given, 0.2)])
    assert np.abs(approx_fprime(flat, loss, 1e-7)).max() < 1e-5
    best = minimize(loss, np.zeros_like(flat), method="BFGS")
    np.testing.assert_allclose(flat, best.x, atol=1e-4)
    coef, _ = new_subject.ridge_towards(*given, 1e9)
    np.testing.assert_allclose(coef, linear.coef_, atol=1e-6)


def test_a_strength_is_searched_with_three_subjects_or_more(data, monkeypatch):
    X, y, groups = data
    y, two = y % 2, groups < 3
    monkeypatch.setattr(new_subject, "DEFAULT_STRENGTH", 7.0)
    searching = LinearProbe(LogBandPower(), C=0.1, prior_strength=None)
    assert searching.fit(X[two], y[two]).prior_strength_ == 7.0
    three = groups < 4
    assert searching.fit(X[three], y[three]).prior_strength_ in new_subject.STRENGTHS
    assert LinearProbe(LogBandPower(), C=0.1, prior_strength=2.0).fit(X, y).prior_strength_ == 2.0


def uneven_features(uneven, seed):
    """Random features of the labeled windows; subjects differ in the direction of their classes."""
    X, y, groups = as_sklearn(uneven)
    windows = X[y >= 0]
    rng = np.random.default_rng(seed)
    names = np.unique(groups)
    directions = 0.6 + 0.8 * rng.standard_normal((len(names), 5))
    sides = 2.0 * windows.labels[:, None] - 1
    noise = rng.standard_normal((len(windows), 5))
    return windows, noise + sides * directions[np.searchsorted(names, windows.groups)]


def plain_strength(clf, features, codes, groups, folds):
    """Mean balanced accuracy of each strength, over held-out subjects and numbers of labels."""
    scores = []
    for train, test in folds:
        scaler, linear = clf.fit(features[train], codes[train])
        for subject in list(dict.fromkeys(groups[test]))[:3]:
            rows = [i for i in test if groups[i] == subject]
            for n in (2, 8):
                if min(sum(codes[rows] == code) for code in (0, 1)) <= n:
                    continue  # a class without a window to predict
                known = [i for code in (0, 1) for i in [r for r in rows if codes[r] == code][:n]]
                rest = [i for i in rows if i not in known]
                scaled = scaler.transform(features)
                weights = [
                    new_subject.ridge_towards(
                        *(linear.coef_, linear.intercept_),
                        *(scaled[known], codes[known], np.ones(len(known)), strength),
                    )
                    for strength in new_subject.STRENGTHS
                ]
                predicted = [scaled[rest] @ w[0] + b[0] > 0 for w, b in weights]
                scores.append([balanced_accuracy_score(codes[rest], row) for row in predicted])
    return np.mean(scores, axis=0)


@pytest.mark.slow
def test_the_searched_strength_is_that_of_a_plain_computation(uneven):
    """Balanced accuracy, windows of each class left to predict, the strongest of equals."""
    for seed in (0, 1, 10, 13):  # each other rule of the search has another result in one of them
        windows, features = uneven_features(uneven, seed)
        clf = linear_probe.logistic_regression(0.1, "balanced")
        folds = linear_probe.folds_by_subject(windows.groups, windows.labels)
        means = plain_strength(clf, features, windows.labels, windows.groups, folds)
        best = [
            s for s, mean in zip(new_subject.STRENGTHS, means, strict=True) if mean == means.max()
        ]
        assert new_subject.chosen_strength(clf, features, windows, folds) == max(best)
    features = 9.0 * windows.labels[:, None] + np.arange(2)  # all strengths are right everywhere
    assert new_subject.chosen_strength(clf, features, windows, folds) == new_subject.STRENGTHS[0]
    # Of four test subjects, the first three count; P3 has no window of class 1 to learn from.
    some, features = uneven_features(uneven, 1)
    keep = (some.groups != "P3") | (some.labels == 0)
    some, features, groups = some[keep], features[keep], some.groups[keep]
    folds = [
        (np.flatnonzero(groups == subject), np.flatnonzero(groups != subject)[::-1])
        for subject in ("P1", "P2", "P4")
    ]
    means = plain_strength(clf, features, some.labels, groups, folds)
    strength = new_subject.chosen_strength(clf, features, some, folds)
    assert strength == new_subject.STRENGTHS[means.argmax()]


@pytest.mark.parametrize(
    ("is_labeled", "class_weight"),
    [(True, {0: 5.0}), (True, "balanced"), (True, None), (False, "balanced")],
    ids=str,
)
@pytest.mark.parametrize("is_centered", [True, False])
def test_adapted_weights_are_those_of_a_plain_computation(
    uneven, is_centered, is_labeled, class_weight
):
    X, y, groups = as_sklearn(uneven)
    new, train = groups == "P5", (groups != "P5") & (y >= 0)
    bands = LogBandPower().fit(X)
    transformer = SubjectCentering(bands) if is_centered else bands
    clf = LinearProbe(transformer, C=0.1, class_weight=class_weight).fit(X[train], y[train])
    scaler, linear = clf.adapt(X[new], y[new] if is_labeled else None).classifier_
    features, labels = bands.transform(X[new]), y[new]
    fitted_scaler, fitted = clf.classifier_
    of_subject = is_centered or not is_labeled
    mean = features.mean(axis=0) if of_subject else fitted_scaler.mean_
    np.testing.assert_allclose(scaler.mean_, mean)
    coef, intercept = fitted.coef_, fitted.intercept_
    if is_labeled:
        known = labels >= 0
        codes, n = labels[known], known.sum()
        of_class = {
            "balanced": [n / (2 * np.sum(codes == code)) for code in (0, 1)],
            "None": [1.0, 1.0],
        }.get(str(class_weight), [5.0, 1.0])
        scaled = ((features - mean) / fitted_scaler.scale_)[known]
        coef, intercept = new_subject.ridge_towards(
            coef, intercept, scaled, codes, np.array(of_class)[codes], clf.prior_strength_
        )
    np.testing.assert_allclose(linear.coef_, coef, atol=1e-6)
    np.testing.assert_allclose(linear.intercept_, intercept, atol=1e-6)


@pytest.fixture(scope="module")
def vote(nights):
    donor = embedder(pretext=None).fit(nights)
    return FewLabelsClassifier(donor, device="cpu", verbose=0).fit(nights)


def of_first_subject(data, n_labeled=4):
    X, y, groups = data
    own = np.flatnonzero(groups == 1)
    labels = y[own].copy()
    labels[n_labeled:] = -1
    return X[own], labels


@pytest.mark.parametrize("given", ["no labels", "labels"])
@pytest.mark.parametrize("kind", ["vote", "probe", "centered probe"])
def test_adapt_leaves_the_classifier_as_it_was(data, vote, kind, given):
    X, y, _ = data
    features = LogBandPower() if kind == "probe" else SubjectCentering(LogBandPower())
    clf = vote if kind == "vote" else LinearProbe(features, C=0.01).fit(X, y)
    own, labels = of_first_subject(data)
    before = pickle.dumps(clf)
    adapted = clf.adapt(own, labels if given == "labels" else None)
    assert pickle.dumps(clf) == before
    assert type(adapted) is type(clf)
    is_labeled = given == "labels"
    assert adapted.test_subject_data_ is (
        TestSubjectData.LABELED if is_labeled else TestSubjectData.ALL_UNLABELED
    )
    together = adapted.predict_proba(own)
    for i in (0, 23):  # the mean is that of adapt
        np.testing.assert_allclose(adapted.predict_proba(own[[i]])[0], together[i], atol=1e-6)
    if kind != "probe" and not is_labeled:  # the same mean as in the call
        np.testing.assert_allclose(together, clf.predict_proba(own), atol=1e-6)
    if is_labeled:
        unlabeled = clf.adapt(own).predict_proba(own)
        right = np.searchsorted(clf.classes_, labels[:4])
        gained = together[range(4), right] - unlabeled[range(4), right]
        assert gained.mean() > 0.01


@pytest.mark.filterwarnings(
    "ignore:Channels are flat", "ignore:The following parameters are not restored"
)
@pytest.mark.parametrize("recenter", ["subject", None])
def test_a_channel_that_is_flat_while_adapting_does_not_vote(data, nights, tmp_path, recenter):
    X, y, _ = data
    donor = embedder(pretext=None).fit(nights)
    clf = FewLabelsClassifier(donor, recenter=recenter, device="cpu", verbose=0).fit(X, y)
    own, _ = of_first_subject(data)
    lacking = np.stack([own[i] for i in range(len(own))])
    lacking[:, 0] = 0
    adapted = clf.adapt(lacking)
    adapted.save(tmp_path / "adapted")
    loaded = FewLabelsClassifier.load(tmp_path / "adapted")
    assert loaded.test_subject_data_ is adapted.test_subject_data_
    np.testing.assert_allclose(loaded.predict_proba(own), adapted.predict_proba(own), atol=1e-6)
    for view in ("encoder", "band_power"):
        (scaler, linear), fitted = adapted.views_[view], clf.views_[view]
        n = len(scaler.mean_) // clf.n_chans_
        np.testing.assert_array_equal(scaler.mean_[:n], fitted[0].mean_[:n])
        assert linear.coef_[:, :n].any() == (recenter is None)


def test_what_cannot_be_adapted_to_is_refused(data, vote):
    X, y, _ = data
    own, labels = of_first_subject(data)
    few, two = (own[:4], labels[:4]), np.where(labels == labels.max(), labels, -1)
    for given, message in (
        ((X,), r"4 subjects \(1, 2, 3, 4\)"),
        (
            (own, np.where(labels < 0, labels, 99)),
            r"\(0, 1, .*-1 for unlabeled.* Got: 99, -1\.",
        ),
        ((own, two), rf"two of the classes.* Got: (-1, {labels.max()}|{labels.max()}, -1)\."),
        ((own, np.full(len(own), -1)), r"two of the classes.* Got: -1\."),
    ):
        with pytest.raises(ValueError, match=message):
            vote.adapt(*given)
    plain = LinearProbe(LogBandPower(), C=0.01).fit(X, y)
    assert plain.adapt(*few).test_subject_data_ is TestSubjectData.LABELED  # no mean is needed


def test_access_is_that_of_the_transformer(data):
    X, y, _ = data
    riemann = make_pipeline(RiemannianCentering(SpatialCovariance()), FunctionTransformer(flat))
    for features, access in (
        (LogBandPower(), TestSubjectData.NONE),
        (running(), TestSubjectData.PAST_UNLABELED),
        (SubjectCentering(LogBandPower()), TestSubjectData.ALL_UNLABELED),
        (riemann, TestSubjectData.ALL_UNLABELED),
        # Of two steps of a pipeline, the larger one counts.
        (make_pipeline(EuclideanAlignment(), running()), TestSubjectData.ALL_UNLABELED),
    ):
        assert LinearProbe(features, C=0.01).fit(X, y).test_subject_data_ is access
    assert EuclideanAlignment().test_subject_data_ is TestSubjectData.ALL_UNLABELED


def flat(covariances):
    return covariances.reshape(len(covariances), -1)


def test_covariances_of_each_subject_are_centered_and_scaled(data):
    X, _, groups = data
    for rescale in (True, False):
        centered = RiemannianCentering(SpatialCovariance(), rescale=rescale).fit_transform(X)
        for subject in np.unique(groups):
            covariances = centered[groups == subject]
            identity = np.eye(covariances.shape[-1])
            np.testing.assert_allclose(gmean(covariances, metric="riemann"), identity, atol=1e-6)
            dispersion = np.mean(distance(covariances, identity, metric="riemann") ** 2)
            assert (abs(dispersion - 1) < 1e-6) == rescale
