"""PARSClassifier(recenter="subject"): batches by subject, exact means at predict, errors."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
import torch
from braindecode.augmentation import GaussianNoise
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from support.small_estimators import classifier

from braindecode_pars import PARSClassifier, PARSNet, as_sklearn
from braindecode_pars.estimators.recentring import SubjectBatches


def test_training_batches_have_groups_of_windows_of_each_subject():
    subjects = np.repeat([3, 1, 7], [20, 9, 16])
    batches = SubjectBatches(subjects, 8, 2, shuffle=True)
    torch.manual_seed(0)
    epochs = [list(batches) for _ in range(2)]
    for epoch in epochs:
        assert len(epoch) == len(batches) == 4  # three, two and two groups
        assert set(np.concatenate(epoch)) == set(range(45))  # every window
        for batch in epoch:
            for group in np.reshape(batch, (-1, 8)):
                assert len(set(subjects[group])) == 1
                assert len(set(group.tolist())) == 8
    assert epochs[0] != epochs[1]
    assert max(map(len, epochs[0])) == 16


def test_validation_batches_have_each_window_of_one_subject_once():
    subjects = np.tile([0, 1, 2], 50)
    epoch = list(SubjectBatches(subjects, 30, 1, shuffle=False))
    assert sorted(np.concatenate(epoch)) == list(range(150))
    assert all(len(set(subjects[batch])) == 1 for batch in epoch)


def test_validation_batches_are_spread_over_the_recording():
    """Windows in a row have one label, and their mean would remove it."""
    y = np.repeat([0, 1], [35, 30])  # rest, then a task
    epoch = list(SubjectBatches(np.zeros(65, dtype=int), 64, 1, shuffle=False))
    assert [len(batch) for batch in epoch] == [33, 32]  # none of one window
    assert all(0.4 < y[batch].mean() < 0.5 for batch in epoch)


@pytest.fixture(scope="module")
def windows(nights):
    X, y, groups = as_sklearn(nights)
    return X, y == 0, groups


@pytest.fixture(scope="module")
def fitted(windows):
    X, y, _ = windows
    return classifier(pretext=None, recenter="subject", amplitude=True).fit(X, y)


@torch.no_grad()
def test_predictions_use_the_means_over_all_windows_of_a_subject(fitted, windows):
    X, _, groups = windows
    logits = fitted.decision_function(X)
    module = fitted.net_.module_.eval()
    for subject in np.unique(groups):
        x = np.stack([X[i] for i in np.flatnonzero(groups == subject)])
        out = module(torch.from_numpy(x), subjects=torch.zeros(len(x), dtype=torch.int64))
        expected = (out[:, 1] - out[:, 0]).numpy()
        np.testing.assert_allclose(logits[groups == subject], expected, rtol=1e-3, atol=1e-5)


def test_predictions_do_not_depend_on_the_order_or_on_other_subjects(fitted, windows):
    X, _, groups = windows
    whole = fitted.predict_proba(X)
    order = np.random.default_rng(0).permutation(len(groups))
    np.testing.assert_allclose(fitted.predict_proba(X[order]), whole[order], rtol=1e-3, atol=1e-6)
    one = np.flatnonzero(groups == 2)
    np.testing.assert_allclose(fitted.predict_proba(X[one]), whole[one], rtol=1e-3, atol=1e-6)


def test_arrays_need_groups(fitted, windows):
    X, y, groups = windows
    array = np.stack([X[i] for i in range(len(groups))])
    with pytest.raises(ValueError, match="recenter"):
        fitted.predict(array)
    expected = fitted.predict(X)
    assert (fitted.predict(array, groups=groups) == expected).all()
    assert fitted.score(array, y, groups=groups) == np.mean(expected == y)
    with pytest.raises(ValueError, match="recenter"):
        classifier(pretext=None, recenter="subject", sfreq=100, validation=0).fit(array, y)


def test_the_score_uses_the_means_of_predict(fitted, windows):
    X, y, _ = windows
    some = np.arange(len(y)) % 20 == 3  # fewer labelled windows of a subject than a mean needs
    marked = np.where(some, y, -1)
    with pytest.warns(UserWarning, match="unlabelled"):
        score = fitted.score(X, marked)
    assert score == np.mean(fitted.predict(X)[some] == y[some])


def test_windows_of_another_number_of_channels_get_a_warning(windows):
    X, y, groups = windows
    clf = classifier(pretext=None, recenter="subject", head="both").fit(X, y)
    array = np.stack([X[i] for i in range(len(groups))])[:, :1]
    with pytest.warns(UserWarning, match="channels without names"):
        assert len(clf.predict(array, groups=groups)) == len(groups)


def test_too_few_windows_of_a_subject_raise(fitted, windows):
    X, _, _ = windows
    with pytest.raises(ValueError, match="Subject 1 has 3 windows") as caught:
        fitted.predict(X[[0, 1, 2]])
    assert "min_windows" not in str(caught.value)  # no parameter of the classifier


def test_cross_validation_and_copies(fitted, windows, tmp_path):
    X, y, groups = windows
    clf = classifier(pretext=None, recenter="subject", augmentation=GaussianNoise(1.0, std=1e-4))
    logo = dict(groups=groups, cv=LeaveOneGroupOut(), error_score="raise")
    assert np.isfinite(cross_val_score(clf, X, y, **logo)).all()
    expected = fitted.predict_proba(X)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), expected)
    folder = fitted.save(tmp_path / "model")
    assert np.array_equal(PARSClassifier.load(folder).predict_proba(X), expected)
    # The network of the folder knows that it needs subjects.
    with pytest.raises(ValueError, match="subjects"):
        PARSNet.from_pretrained(folder)(torch.from_numpy(X[0])[None])


def test_the_net_keeps_no_data_after_training(fitted):
    assert len(pickle.dumps(fitted.net_)) < 1_000_000
    assert not any("batch_sampler" in name for name in vars(fitted.net_))


def test_the_net_predicts_when_it_is_given_subjects(fitted, windows):
    X, _, groups = windows
    own = np.flatnonzero(groups == 1)  # at most 64 windows, a batch
    x = np.stack([X[i] for i in own])
    found = fitted.net_.predict_proba({"x": x, "subjects": np.zeros(len(x), dtype=np.int64)})
    np.testing.assert_allclose(found, fitted.predict_proba(X)[own], rtol=1e-3, atol=1e-5)
    with pytest.raises(ValueError, match="pass subjects to forward"):
        fitted.net_.predict_proba(x)


def test_recentring_removes_what_a_subject_has_in_all_windows():
    """Each subject has a ratio of two rhythms; in one class the faster rhythm is stronger."""
    rng = np.random.default_rng(0)
    n, times = 24, np.arange(300) / 100
    subjects = np.repeat(np.arange(10), n)
    y = np.tile([0, 1], len(subjects) // 2)
    ratio = np.exp(np.repeat(rng.permutation(np.linspace(-2, 2, 10)), n) + np.where(y, 0.4, -0.4))
    slow, fast = (
        np.sin(2 * np.pi * frequency * times + rng.uniform(0, 6, len(y))[:, None])
        for frequency in (8, 20)
    )
    X = slow + ratio[:, None] * fast + 0.1 * rng.normal(size=slow.shape)
    X = 1e-5 * X[:, None].astype("float32")
    train = subjects < 7
    accuracies = {}
    for recenter in (None, "subject"):
        clf = classifier(pretext=None, recenter=recenter, sfreq=100, validation=0, random_state=0)
        # One channel: it has no amplitude relative to others, and must not be dropped.
        clf.set_params(finetune_epochs=25, finetune_lr=3e-3, channel_drop_prob=0)
        clf.set_params(finetune_warmup=None, gradient_clip=None)
        clf.fit(X[train], y[train], groups=subjects[train])
        accuracies[recenter] = clf.score(X[~train], y[~train], groups=subjects[~train])
    assert accuracies["subject"] > 0.9
    assert accuracies[None] < 0.75


def test_the_channels_that_are_there_are_recentred(fitted, windows):
    """As the network does with a mask of the channels."""
    X, _, groups = windows
    lacking = X.with_montages([X.montages[0].pick([0, 1])])
    with pytest.warns(UserWarning, match=r"F3 is missing .*\(2 of 3\) are used"):
        found = fitted.predict_proba(lacking)
    every = torch.from_numpy(np.stack([*X]))
    mask = torch.tensor([True, True, False]).expand(len(every), 3)
    with torch.inference_mode():
        logits = fitted.net_.module_(every, ch_mask=mask, subjects=torch.from_numpy(groups))
    np.testing.assert_allclose(found, logits.softmax(dim=1), atol=1e-5)
    mixed = X.with_subjects(groups)  # a recording of its own for each subject
    montage = mixed.montages[0]
    channels = mixed.recordings["channels"].copy()
    channels.iloc[0] = montage.pick([0, 1])
    several = dataclasses.replace(mixed, recordings=mixed.recordings.assign(channels=channels))
    with pytest.raises(ValueError, match="F3 is missing"):
        fitted.predict(several)
