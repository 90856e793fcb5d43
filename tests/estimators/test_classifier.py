"""PARSClassifier: fit, predict, internal validation, pretraining, Ctrl-C and errors."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from skorch.callbacks import Callback, EarlyStopping
from skorch.utils import noop
from support.interrupts import InterruptAt
from support.small_estimators import classifier, embedder, same_weights
from torch.utils.data import Subset

from braindecode_pars import as_sklearn
from braindecode_pars.datasets.simulated import STAGES
from braindecode_pars.pretrained import load_encoder


@pytest.fixture(scope="module")
def fitted(fitted_classifier):
    return fitted_classifier


def test_fit_and_predict_a_windows_dataset(fitted, nights):
    proba = fitted.predict_proba(nights)
    assert proba.shape == (24, len(fitted.classes_))
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(fitted.predict(nights), fitted.classes_[proba.argmax(1)])
    y = as_sklearn(nights)[1]
    assert fitted.score(nights) == fitted.score(nights, y) == (fitted.predict(nights) == y).mean()
    assert fitted.sfreq_ == 100.0
    assert (fitted.n_chans_, fitted.n_times_) == (3, 1000)


def test_the_default_model_is_pretrained_then_fine_tuned(fitted):
    names = {label: STAGES[label] for label in fitted.classes_.tolist()}
    assert fitted.class_names_ == names
    assert fitted.encoder_card_.task == "pars"
    assert fitted.encoder_card_.sfreq == 100.0
    history = fitted.history_
    assert history["phase"].tolist() == ["pretraining", "fine-tuning"]
    assert history["train_loss_relative"].notna().tolist() == [True, False]
    assert history["valid_loss"].notna().tolist() == [False, True]
    assert fitted.net_.module_.encoder is fitted.encoder_


def test_the_same_seed_gives_exactly_the_same_model(fitted, nights):
    state = torch.get_rng_state()
    again = classifier().fit(nights)
    assert torch.equal(torch.get_rng_state(), state)  # the caller's random state is unchanged
    assert same_weights(again.net_.module_, fitted.net_.module_)
    other = classifier(random_state=1).fit(nights)
    assert not same_weights(other.net_.module_, fitted.net_.module_)


def test_a_fitted_estimator_given_as_encoder_stays_fitted(fitted_embedder, nights):
    clf = classifier(encoder=fitted_embedder)
    cloned = clone(make_pipeline(clf)).named_steps["parsclassifier"]
    assert cloned is not clf
    assert cloned.encoder is fitted_embedder
    X, y, groups = as_sklearn(nights)
    folds = dict(groups=groups, cv=GroupKFold(2), error_score="raise")
    assert np.isfinite(cross_val_score(clf, X, y == 0, **folds)).all()


def test_a_pickle_contains_the_model_but_not_the_data(fitted, nights):
    content = pickle.dumps(fitted)
    assert len(content) < 300_000  # the windows have 1.7 MB
    loaded = pickle.loads(content)
    assert loaded.encoder_ is loaded.net_.module_.encoder
    np.testing.assert_array_equal(loaded.predict_proba(nights), fitted.predict_proba(nights))


def test_unlabeled_windows_may_be_shorter_and_of_another_montage(nights):
    y = np.where(np.arange(24) % 4 == 0, -1, as_sklearn(nights)[1])
    short = np.random.default_rng(0).normal(size=(6, 9, 500))
    clf = classifier(validation=0, unlabeled_label=-1).fit(nights, y, unlabeled=short)
    assert clf.encoder_card_.n_windows == 24 + 6


def test_unlabeled_windows_are_pretrained_on_only(nights):
    _, y, _ = as_sklearn(nights)
    y = y.copy()
    y[:12] = -1  # subjects 1 and 2
    clf = classifier(validation=0, unlabeled_label=-1).fit(nights, y)
    assert -1 not in clf.classes_
    assert clf.encoder_card_.subjects == [1, 2, 3, 4]
    assert clf.encoder_card_.n_windows == 24
    more = classifier(validation=0).fit(
        Subset(nights, range(12, 24)), unlabeled=Subset(nights, range(12))
    )
    assert same_weights(more.net_.module_, clf.net_.module_)


def test_a_pretrained_encoder_from_a_folder(nights, tmp_path):
    emb = embedder(embed_dim=24, num_heads=3).fit(nights)
    emb.save(tmp_path / "encoder")
    clf = classifier(encoder=tmp_path / "encoder", freeze_encoder=True).fit(nights)
    assert clf.encoder_.embed_dim == 24  # the sizes of the encoder replace embed_dim
    assert same_weights(clf.encoder_, emb.encoder_)
    assert clf.encoder_card_ == replace(emb.encoder_card_, finetune_subjects=[1, 2, 3, 4])
    assert clf.history_["phase"].tolist() == ["fine-tuning"]


def test_other_channels_and_lengths_at_predict(fitted):
    rng = np.random.default_rng(0)

    def windows(n_chans, n_times):
        return rng.normal(scale=2e-5, size=(3, n_chans, n_times))

    for n_chans, n_times in ((1, 2000), (9, 500)):
        with (
            pytest.warns(UserWarning, match="channels without names"),
            pytest.warns(UserWarning, match=f"{n_times} samples.* 1000 samples"),
        ):
            assert fitted.predict(windows(n_chans, n_times)).shape == (3,)


def test_ctrl_c_in_pretraining_keeps_the_encoder(nights, tmp_path, caplog):
    interrupts = dict(pretrain_epochs=4, pretrain_callbacks=[InterruptAt(2)])
    clf = classifier(**interrupts, checkpoint_dir=tmp_path / "kept")
    with pytest.raises(KeyboardInterrupt):
        clf.fit(nights)
    with pytest.raises(NotFittedError):
        clf.predict(nights)  # the encoder is pretrained, but the head is untrained
    assert "Pretraining was interrupted in epoch 2." in caplog.text
    assert len(pickle.dumps(clf)) < 300_000  # without the training data
    kept, card, _ = load_encoder(tmp_path / "kept")
    assert same_weights(kept, clf.encoder_)
    assert card.task == "pars"


def test_ctrl_c_in_fine_tuning_is_raised(nights):
    clf = classifier(pretext=None, finetune_epochs=4, callbacks=[InterruptAt(3)])
    with pytest.raises(KeyboardInterrupt):
        clf.fit(nights)
    assert clf.predict(nights).shape == (24,)
    # The card lists the training subjects, so that evaluation can warn about them.
    assert clf.encoder_card_.finetune_subjects == [1, 2, 3, 4]


def test_early_stopping_does_not_raise_keyboard_interrupt(nights):
    stop = EarlyStopping(monitor="train_loss", patience=2, threshold=10.0, sink=noop)
    clf = classifier(pretext=None, finetune_epochs=9, callbacks=[stop]).fit(nights)
    assert len(clf.history_) == 3


def test_a_fit_that_fails_in_training_leaves_the_classifier_unfitted(nights):
    class Fail(Callback):
        def on_batch_end(self, net, **kwargs):
            raise RuntimeError("the callback failed")

    clf = classifier(pretext=None, callbacks=[Fail()])
    with pytest.raises(RuntimeError, match="the callback failed"):
        clf.fit(nights)
    with pytest.raises(NotFittedError):
        clf.predict(nights)


def test_unlabeled_windows_exclude_held_out_windows(nights):
    """With unknown subjects or a single subject, held-out windows are recognized themselves."""
    array = np.stack([nights[i][0] for i in range(12)])
    clf = classifier(sfreq=100, validation=0.5).fit(array, [0, 1] * 6, unlabeled=array[:])
    assert clf.encoder_card_.n_windows == 6 + 6
    # A single subject.
    night = nights.datasets[0]
    with pytest.warns(UserWarning, match="one subject"):
        clf = classifier(validation=0.25).fit(night, np.arange(6) % 2, unlabeled=night)
    assert clf.encoder_card_.n_windows == 4 + 4
    # Labeled windows with subjects, unlabeled windows without.
    with pytest.warns(UserWarning, match="unlabeled"):
        classifier(validation=0.5).fit(nights, np.arange(24) % 2, unlabeled=array)


def test_minus_one_is_a_class_if_the_user_says_so(nights):
    """Otherwise fit and score warn: SEED's classes are -1, 0 and 1."""
    y = as_sklearn(nights)[1] % 3 - 1
    clf = classifier(pretext=None, validation=0)
    with pytest.warns(UserWarning, match="of 24 windows"):
        assert clf.fit(nights, y).classes_.tolist() == [0, 1]
    with pytest.warns(UserWarning, match="of 24 windows"):
        clf.score(nights, y)
    every = clone(clf).set_params(unlabeled_label=None).fit(nights, y)
    assert every.classes_.tolist() == [-1, 0, 1]
    assert every.score(nights, y) == (every.predict(nights) == y).mean()


def test_verbose_shows_one_progress_bar_per_phase_and_zero_prints_nothing(nights, capfd, caplog):
    caplog.set_level("INFO", "braindecode_pars")
    classifier().fit(nights).predict(nights)
    assert (*capfd.readouterr(), caplog.text) == ("", "", "")
    classifier(verbose=1).fit(nights)
    bars = [
        line for line in capfd.readouterr().err.replace("\r", "\n").splitlines() if "100%" in line
    ]
    assert {bar.split(":")[0] for bar in bars} == {"pretraining (PARS)", "fine-tuning"}


def test_the_best_validation_state_is_restored(nights):
    class SpoilModel(Callback):
        """Make the model useless after the second epoch."""

        def on_epoch_begin(self, net, **kwargs):
            if len(net.history) == 3:
                with torch.no_grad():
                    net.module_.final_layer.bias.add_(100 * torch.arange(5.0))

    clf = classifier(pretext=None, finetune_epochs=4, callbacks=[SpoilModel()]).fit(nights)
    losses = clf.history_["valid_loss"]
    assert losses.idxmin() < 2
    assert clf.net_.module_.final_layer.bias.abs().max() < 10
