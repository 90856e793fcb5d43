"""The estimators with scikit-learn: searches, ensembles, routing, several processes."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneGroupOut,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from support.small_estimators import classifier, embedder, same_weights

from braindecode_pars import PARSClassifier, as_sklearn
from braindecode_pars.pretext import PARS


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def awake(nights):
    """Return windows, labels ("awake" or "asleep") and subjects."""
    X, y, groups = as_sklearn(nights)
    return X, np.where(y == 0, "awake", "asleep"), groups


def test_grid_search_over_task_and_learning_rate(awake):
    X, y, groups = awake
    grids = [
        {"pretext": ["pars"], "pretext_params": [None, {"position_mask_ratio": 0.5}]},
        {"pretext": [None], "finetune_lr": [1e-3, 1e-2]},
    ]
    search = GridSearchCV(
        classifier(finetune_warmup=None), grids, cv=GroupKFold(2), error_score="raise"
    )
    search.fit(X, y, groups=groups)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.cv_results_["mean_test_score"]) == 4
    assert search.predict(X).shape == (96,)
    # The parameters have an effect: the four scores are not all equal.
    assert len(set(search.cv_results_["mean_test_score"])) > 1


def test_groups_are_routed_to_fit(routing, nights):
    """Arrays have no subjects; metadata routing passes them to the internal validation split."""
    array = np.stack([nights[i][0] for i in range(96)])
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
    array = np.stack([nights[i][0] for i in range(48)])
    groups = as_sklearn(nights)[2][:48]
    emb = embedder(sfreq=100).set_fit_request(groups=True, unlabeled=True)
    probe = make_pipeline(emb, LogisticRegression(max_iter=1000))
    probe.fit(array, groups == 1, groups=groups, unlabeled=array[:10])
    card = probe[0].encoder_card_
    assert card.n_windows == 58
    assert card.subjects is None  # the subjects of the unlabeled windows are unknown


def test_name_class_and_instance_of_a_task_are_the_same(nights):
    instance = PARS(3000, 100, embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)
    by_name, by_class, by_instance = (
        classifier(pretext=task).fit(nights).encoder_ for task in ("pars", PARS, instance)
    )
    assert same_weights(by_name, by_class)
    # An instance has a decoder with its own initial weights.
    assert not same_weights(by_name, by_instance)
    assert by_instance.config == by_name.config


def test_fitting_changes_no_parameter(nights):
    instance = PARS(3000, 100, embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)
    before = {name: value.clone() for name, value in instance.state_dict().items()}
    clf = classifier(pretext=instance, pretext_params=None)
    parameters = clf.get_params()
    clf.fit(nights)
    assert clf.get_params() == parameters
    assert all((instance.state_dict()[name] == value).all() for name, value in before.items())


def test_text_and_html_representation():
    clf = PARSClassifier(pretext=None, embed_dim=32)
    assert repr(clf) == "PARSClassifier(embed_dim=32, pretext=None)"
    html = make_pipeline(clf)._repr_html_()
    assert "PARSClassifier" in html
    assert "embed_dim" in html
    nested = PARSClassifier(encoder=embedder())
    assert repr(nested).startswith("PARSClassifier(encoder=PARSEmbedder(embed_dim=16")


def test_html_shows_whether_an_estimator_is_fitted(nights):
    """With its fitted attributes, and without a link to the documentation of scikit-learn."""
    for estimator in (classifier(pretext=None), embedder()):
        assert "<span>Not fitted</span>" in estimator._repr_html_()
        html = estimator.fit(nights)._repr_html_()
        assert "<span>Fitted</span>" in html
        assert "Fitted attributes" in html
        assert all(f"{name}_" in html for name in ("encoder_card", "history", "n_chans", "sfreq"))
        assert estimator._get_doc_link() == ""
