"""LinearProbe: features, then a linear classifier whose C is chosen by held-out subjects."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from braindecode_pars import SubjectCentering, as_sklearn
from braindecode_pars.baselines.linear_probe import GRID
from braindecode_pars.estimators import LinearProbe
from braindecode_pars.evaluation import LogBandPower
from braindecode_pars.evaluation.folds import labels_and_probabilities
from braindecode_pars.windows.table import as_column


@pytest.fixture(scope="module")
def data(nights):
    return as_sklearn(nights)


@pytest.mark.parametrize(
    ("centered", "class_weight"), [(True, "balanced"), (False, None), (False, {0: 3.0})]
)
def test_it_equals_a_pipeline(data, centered, class_weight):
    X, y, groups = data
    train = groups < 4
    features = SubjectCentering(LogBandPower()) if centered else LogBandPower()
    weights = class_weight and (class_weight if class_weight == "balanced" else {y[0]: 3.0})
    ours = LinearProbe(features, C=0.1, class_weight=weights).fit(X[train], y[train])
    regression = LogisticRegression(C=0.1, class_weight=weights, max_iter=1000)
    pipeline = make_pipeline(features, StandardScaler(), regression).fit(X[train], y[train])
    np.testing.assert_allclose(ours.predict_proba(X[~train]), pipeline.predict_proba(X[~train]))
    np.testing.assert_array_equal(ours.predict(X[~train]), pipeline.predict(X[~train]))
    assert ours.classes_.tolist() == np.unique(y).tolist()
    assert ours.C_ == 0.1


def test_c_is_that_of_the_lowest_loss_of_held_out_subjects(data):
    X, y, groups = data
    y = y % 2
    names = np.array([f"stage {label}" for label in y], dtype=object)
    probe = LinearProbe(LogBandPower(), C=None).fit(X, names)
    features, losses = LogBandPower().fit_transform(X), {}
    for C in GRID:
        of_folds = []
        for train, test in LeaveOneGroupOut().split(X, y, groups):
            regression = LogisticRegression(C=C, class_weight="balanced", max_iter=1000)
            clf = make_pipeline(StandardScaler(), regression).fit(features[train], y[train])
            found = clf.predict_proba(features[test])
            of_folds.append(log_loss(y[test], found, labels=[0, 1]))
        losses[C] = np.mean(of_folds)
    assert min(losses, key=losses.get) == probe.C_
    assert set(probe.predict(X)) <= set(names)
    assert LinearProbe(LogBandPower(), C=0.5).fit(X, names).C_ == 0.5  # without a search
    alone = groups == 1  # too few subjects for a search
    assert LinearProbe(LogBandPower(), C=None).fit(X[alone], y[alone]).C_ == 0.01


def shrunk_lda(features, y, priors, new):
    """Return the class of the largest discriminant, with one covariance of all classes."""
    classes = np.unique(y)
    means = np.array([features[y == c].mean(axis=0) for c in classes])
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=priors)
    covariance = model.fit(features, y).covariance_
    weights = np.linalg.solve(covariance, means.T)  # (n_features, n_classes)
    discriminants = new @ weights - 0.5 * np.sum(means.T * weights, axis=0) + np.log(priors)
    return classes[discriminants.argmax(axis=1)]


@pytest.mark.parametrize("class_weight", ["balanced", None, {"rare": 5.0}])
def test_class_weights_are_priors_of_lda(class_weight):
    rng = np.random.default_rng(0)
    y = np.array(["rare"] * 20 + ["usual"] * 100)
    X = rng.standard_normal((120, 1, 6)) + 0.3 * (y == "rare")[:, None, None]
    probe = LinearProbe(FunctionTransformer(flat), "lda", class_weight=class_weight).fit(X, y)
    shares = {"balanced": [1, 1], None: [20, 100]}.get(str(class_weight), [5 * 20, 100])
    shares = [20, 100] if class_weight is None else shares
    scaled = StandardScaler().fit_transform(X[:, 0])
    expected = shrunk_lda(scaled, y, np.array(shares) / sum(shares), scaled)
    np.testing.assert_array_equal(probe.predict(X), expected)
    np.testing.assert_allclose(probe.classifier_[-1].priors_, np.array(shares) / sum(shares))


def flat(windows):
    return np.array([window.ravel() for window in windows])


def test_subjects_reach_a_transformer_that_centers(data):
    """Those of arrays are given; a pipeline could not pass them to its first step."""
    X, y, groups = data
    array = np.stack([X[i] for i in range(len(X))])
    probe = LinearProbe(SubjectCentering(LogBandPower(sfreq=100)), C=0.1)
    given = probe.fit(array, y, groups=groups).predict_proba(array, groups=groups)
    expected = LinearProbe(SubjectCentering(LogBandPower()), C=0.1).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(given, expected, rtol=1e-4)
    with pytest.raises(ValueError, match=r"SubjectCentering.* groups"):
        probe.predict(array)


@pytest.mark.parametrize("classifier", ["logistic", "lda"])
def test_unlabeled_windows_are_no_class(data, classifier):
    X, y, groups = data
    y = y % 2
    partly = np.where(np.arange(len(y)) % 3, y, -1)
    known = partly >= 0
    probe = LinearProbe(LogBandPower(), classifier=classifier, C=None)
    with pytest.warns(UserWarning, match="unlabeled_label"):
        fitted = clone(probe).fit(X, partly, groups=groups)
    alone = clone(probe).fit(X[known], y[known], groups=groups[known])
    np.testing.assert_array_equal(fitted.predict_proba(X), alone.predict_proba(X))
    assert fitted.classes_.tolist() == np.unique(y).tolist()
    fitted.unlabeled_label = -1
    assert fitted.score(X, partly) == alone.score(X[known], y[known])
    weights = np.arange(len(y)) + 1.0
    weighted = np.average(alone.predict(X[known]) == y[known], weights=weights[known])
    assert alone.score(X[known], y[known], sample_weight=weights[known]) == weighted
    assert fitted.score(X, partly, sample_weight=weights) == weighted
    with pytest.raises(ValueError, match="sample_weight"):
        fitted.score(X, partly, sample_weight=1.0 * ~known)


@pytest.mark.parametrize(
    ("classes", "classifier", "C"),
    [([b"left", b"right"], "lda", None), ([Fraction(1, 2), Fraction(3, 2)], "logistic", 0.1)],
)
def test_classes_are_text_or_numbers(data, classes, classifier, C):
    X, y, groups = data
    y = y % 2
    named = as_column([classes[code] for code in y])
    options = dict(classifier=classifier, C=C, class_weight={classes[0]: 2.0})
    probe = LinearProbe(LogBandPower(), **options).fit(X, named, groups=groups)
    numbered = LinearProbe(LogBandPower(), **options | {"class_weight": {0: 2.0}})
    numbered.fit(X, y, groups=groups)
    assert probe.classes_.tolist() == classes
    predicted, probabilities = labels_and_probabilities(probe, X)
    assert predicted.tolist() == [classes[code] for code in numbered.predict(X)]
    np.testing.assert_array_equal(probabilities, numbered.predict_proba(X))
    assert probe.score(X, named) == numbered.score(X, y)
