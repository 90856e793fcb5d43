"""Warnings at the end of fine-tuning: its validation loss, and classes that are never predicted."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss
from support.convergence import convergence_warnings
from support.small_estimators import classifier, same_weights

from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.estimators.fine_tuning import _chance_loss
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.labels import cross_entropy_weights


@pytest.mark.parametrize("class_weight", [None, "balanced", {1: 3.0}])
def test_chance_is_a_dummy_classifier_with_the_same_weights(class_weight):
    rng = np.random.default_rng(0)
    train, valid = rng.choice(3, 90, p=[0.6, 0.3, 0.1]), rng.choice(3, 40)
    weight = cross_entropy_weights(train, np.arange(3), class_weight)
    w = np.ones(3) if weight is None else weight.numpy().astype(float)
    dummy = DummyClassifier().fit(train[:, None], train, sample_weight=w[train])
    expected = log_loss(valid, dummy.predict_proba(valid[:, None]), sample_weight=w[valid])
    windows = [as_windows(np.zeros((len(y), 1, 1)), y) for y in (train, valid)]
    assert _chance_loss(*windows, 3, weight) == pytest.approx(expected)


@pytest.mark.parametrize("make", [classifier, NetworkClassifier])
def test_a_class_that_is_never_predicted(nights, make):
    """Errors of class 2 cost next to nothing."""
    arguments = dict(class_weight={2: 1e-6}, validation=0, finetune_epochs=8, finetune_lr=0.02)
    if make is classifier:
        arguments |= dict(pretext=None)
    clf = make(**arguments, sfreq=100.0, random_state=0, verbose=0)
    X = np.stack([window[:, :300] for window, *_ in nights])
    texts = convergence_warnings(clf.fit, X, np.arange(len(X)) % 3)
    absent = sorted({0, 1, 2} - set(clf.predict(X).tolist()))
    assert 2 in absent
    names = ", ".join(map(str, absent))
    assert f"{names} for none of the 24 training windows" in texts[-1]


@pytest.mark.slow
def test_only_a_classifier_that_fails_on_the_validation_subjects_warns():
    """The class is the amplitude of a channel; then the classes of one of two are swapped."""
    y = np.arange(32) % 2
    X = np.random.default_rng(0).normal(size=(32, 2, 300)).astype("float32") * 1e-5
    X[:, 0] *= np.where(y, 1.0, 1e-3)[:, None]
    groups = np.arange(32) // 16
    training = dict(finetune_epochs=12, finetune_batch_size=4, finetune_lr=0.01, validation=0.5)
    clf = classifier(pretext=None, sfreq=100.0, **training)
    assert convergence_warnings(clf.fit, X, y, groups=groups) == []
    first, never = convergence_warnings(clf.fit, X, np.where(groups, y, 1 - y), groups=groups)
    assert "after the first of 12 epochs" in first
    assert "0.693" in never


def test_looking_changes_neither_weights_nor_draws(nights, monkeypatch):
    looked = classifier(pretext=None).fit(nights)
    path = "braindecode_pars.estimators.fine_tuning.warn_of_fine_tuning"
    monkeypatch.setattr(path, lambda *_: None)
    assert same_weights(looked.net_.module_, classifier(pretext=None).fit(nights).net_.module_)
