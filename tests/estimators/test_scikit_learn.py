"""The estimators with scikit-learn: routing and pretext tasks."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_validate
from sklearn.pipeline import make_pipeline
from support.small_estimators import classifier, embedder, same_weights

from braindecode_pars import as_sklearn
from braindecode_pars.pretext import PARS


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_groups_are_routed_to_fit(routing, nights):
    """Arrays have no subjects; metadata routing passes them to the internal validation split."""
    array = np.stack([nights[i][0] for i in range(24)])
    _, y, groups = as_sklearn(nights)
    clf = classifier(sfreq=100, pretext=None).set_fit_request(groups=True)
    result = cross_validate(
        clf,
        array,
        y == 0,
        cv=LeaveOneGroupOut(),
        params={"groups": groups},
        return_estimator=True,
        error_score="raise",
    )
    subjects = [fitted.encoder_card_.finetune_subjects for fitted in result["estimator"]]
    assert subjects == [[2, 3, 4], [1, 3, 4], [1, 2, 4], [1, 2, 3]]


def test_groups_and_unlabeled_windows_are_routed_through_a_pipeline(routing, nights):
    array = np.stack([nights[i][0] for i in range(12)])
    groups = as_sklearn(nights)[2][:12]
    emb = embedder(sfreq=100).set_fit_request(groups=True, unlabeled=True)
    probe = make_pipeline(emb, LogisticRegression(max_iter=1000))
    probe.fit(array, groups == 1, groups=groups, unlabeled=array[:5])
    card = probe[0].encoder_card_
    assert card.n_windows == 17
    assert card.subjects is None  # the subjects of the unlabeled windows are unknown


def test_name_class_and_instance_of_a_task_are_the_same(fitted_classifier, nights):
    by_name, by_class = fitted_classifier.encoder_, classifier(pretext=PARS).fit(nights).encoder_
    assert same_weights(by_name, by_class)
    instance = PARS(1000, 100, embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)
    before, clf = copy.deepcopy(instance), classifier(pretext=instance)
    parameters = clf.get_params()
    by_instance = clf.fit(nights).encoder_
    # An instance has a decoder with its own initial weights.
    assert not same_weights(by_name, by_instance)
    assert by_instance.config == by_name.config
    # Fitting changes no parameter.
    assert clf.get_params() == parameters
    assert same_weights(instance, before)
