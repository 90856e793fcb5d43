"""Weights of windows: checks, and their way into the loss."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
import torch
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from support.small_estimators import classifier, same_weights
from torch.utils.data import Subset

from braindecode_pars import as_sklearn
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.estimators import fine_tuning as _fine_tuning
from braindecode_pars.windows.door import as_windows
from braindecode_pars.windows.examples import Examples
from braindecode_pars.windows.labels import check_weights, cross_entropy_weights, that_weigh


def network(**arguments):
    return NetworkClassifier(**{"finetune_epochs": 1, "random_state": 0, "verbose": 0, **arguments})


CLASSIFIERS = pytest.mark.parametrize(
    "make", [lambda **a: classifier(pretext=None, **a), network], ids=["PARS", "network"]
)


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([1, 1], r"\(2,\)"),
        ([1, -1, 1], "Negative"),
        ([1, np.nan, 1], "NaN"),
        ([1, np.inf, 1], "infinity"),
        ([0, 0, 0], "zero"),
        (["a", "b", "c"], "'a'"),
    ],
)
def test_weights_that_are_refused(weights, match):
    with pytest.raises(ValueError, match=match):
        check_weights(weights, 3)


def test_examples_are_pairs_of_label_and_weight():
    windows = as_windows(np.arange(3.0).reshape(3, 1, 1), y=[1, 0, 1])
    assert [label for _, label in map(Examples(windows).__getitem__, range(3))] == [1, 0, 1]
    weighted = windows.with_weights(np.array([0.5, 0, 2]))
    examples = Examples(that_weigh(weighted, "training"))
    assert [(x.item(), *y) for x, y in examples] == [(0, 1, 0.5), (2, 1, 2)]
    assert torch.as_tensor(examples.y).dtype == torch.float32  # some GPUs have no other
    with pytest.raises(ValueError, match="validation"):
        that_weigh(weighted.take([1]), "validation")


def test_balanced_classes_are_counted_by_their_weights():
    codes, weights = np.array([0, 0, 1, 2]), np.array([1.0, 1.0, 4.0, 0.0])
    of_class = cross_entropy_weights(codes, np.arange(3), "balanced", weights)
    repeated = cross_entropy_weights(np.array([0, 0, 1, 1, 1, 1]), np.arange(3), "balanced")
    assert of_class.tolist() == repeated.tolist() == [1.5, 0.75, 1.0]


@CLASSIFIERS
def test_equal_weights_are_none_up_to_rounding(nights, make):
    plain, ones = make().fit(nights), make().fit(nights, sample_weight=np.ones(96))
    doubled = make().fit(nights, None, np.full(96, 2.0))
    for other in (ones, doubled):
        np.testing.assert_allclose(
            other.predict_proba(nights), plain.predict_proba(nights), atol=1e-4
        )
        assert other.history_["train_loss"].item() == pytest.approx(
            plain.history_["train_loss"].item(), rel=1e-4
        )


def test_what_a_weight_of_zero_says_is_not_learned(nights):
    """The labels of such windows have no effect; the windows still pretrain."""
    y = as_sklearn(nights)[1] % 2
    weights = np.where(np.arange(96) < 60, 1.0, 0.0)
    wrong = np.where(weights > 0, y, 1 - y)
    one, two = (
        classifier(validation=0, class_weight="balanced").fit(nights, labels, weights)
        for labels in (y, wrong)
    )
    assert same_weights(one.net_.module_, two.net_.module_)
    assert one.encoder_card_.n_windows == 96
    everything = classifier(validation=0).fit(nights, y)
    assert not same_weights(one.net_.module_, everything.net_.module_)


def test_validation_windows_have_their_weights(nights):
    """The validation loss is the weighted mean over them."""
    y = as_sklearn(nights)[1] % 2
    weights = np.random.default_rng(0).uniform(0.1, 2, 96)
    X, _, groups = as_sklearn(nights)
    clf = classifier(pretext=None, class_weight=None).fit(nights, y, weights)
    rows = []
    for subject in np.unique(groups):
        held_out = groups == subject
        p = clf.predict_proba(X[np.flatnonzero(held_out)])[np.arange(24), y[held_out]]
        rows.append(np.average(-np.log(p), weights=weights[held_out]))
    assert np.isclose(rows, clf.history_["valid_loss"].item(), rtol=1e-4).any()


def test_weights_with_recentring_augmentation_and_unlabelled_windows(nights):
    y = as_sklearn(nights)[1] % 2
    y[::5] = -1
    weights = np.linspace(0.5, 1.5, 96)
    clf = classifier(
        pretext=None, recenter="subject", augmentation="SignFlip", unlabeled_label=-1
    ).fit(nights, y, weights)
    assert np.isfinite(clf.history_["valid_loss"]).all()
    assert 0 <= clf.net_.history[-1, "valid_acc"] <= 1


def test_weights_of_cross_validation_and_pipelines(nights):
    X, y, groups = as_sklearn(nights)
    weights = np.linspace(0.5, 1.5, 96)
    arguments = dict(groups=groups, cv=LeaveOneGroupOut(), error_score="raise")
    clf = classifier(pretext=None, validation=0)
    params = {"sample_weight": weights}
    scores = cross_val_score(clf, X, y % 2, params=params, **arguments)
    piped = cross_val_score(
        make_pipeline("passthrough", clf),
        X,
        y % 2,
        params={f"parsclassifier__{name}": value for name, value in params.items()},
        **arguments,
    )
    assert scores.tolist() == piped.tolist()
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clf.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        params = {"sample_weight": weights, "groups": groups}
        routed = routed.set_fit_request(sample_weight=True, groups=True)
        by_routing = cross_val_score(
            routed, X, y % 2, cv=LeaveOneGroupOut(), error_score="raise", params=params
        )
    assert by_routing.tolist() == scores.tolist()


@CLASSIFIERS
def test_weight_zero_is_no_window_also_for_the_default_budget(nights, make, monkeypatch):
    """Neither the number of epochs nor the scale of a network is that of windows without weight."""
    monkeypatch.setattr(_fine_tuning, "STEPS", 12)
    monkeypatch.setattr(_fine_tuning, "EPOCHS", 1)
    y = np.arange(96) % 3
    weights = np.where(np.arange(96) < 64, 1.0, 0.0)
    settings = dict(finetune_epochs=None, finetune_batch_size=32, validation=0)
    weighted = make(**settings).fit(nights, y, weights)
    dropped = make(**settings).fit(Subset(nights, range(64)), y[:64])
    assert len(weighted.history_) == len(dropped.history_) == 6
    np.testing.assert_allclose(
        weighted.predict_proba(nights), dropped.predict_proba(nights), atol=1e-4
    )
