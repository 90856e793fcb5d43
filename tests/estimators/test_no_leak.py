"""Held-out windows are never read: a dataset records every read."""

from __future__ import annotations

import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset
from skorch.callbacks import Callback
from support.short_windows import first_samples
from support.small_estimators import classifier
from support.subjects import with_split

from braindecode_pars import as_sklearn


@pytest.fixture(scope="module")
def nights(whole_nights):
    """Their windows of three seconds."""
    return first_samples(whole_nights, 300)


class RecordReads(BaseConcatDataset):
    """A windows dataset that records which windows are read in which phase."""

    def __init__(self, datasets):
        super().__init__(datasets)
        self.phase = "checks"
        self.reads = {"checks": set(), "pretraining": set(), "fine-tuning": set()}

    def __getitem__(self, index):
        self.reads[self.phase].add(int(index))
        return super().__getitem__(index)


class SetPhase(Callback):
    """Set the phase of the dataset. Both nets, of pretraining and fine-tuning, have one."""

    def __init__(self, dataset, phase):
        self.dataset = dataset
        self.phase = phase

    def on_epoch_begin(self, net, **kwargs):
        self.dataset.phase = self.phase


@pytest.fixture
def recorded(nights):
    return RecordReads(nights.datasets)


def phases(dataset):
    """Return the callbacks of pretraining and of fine-tuning."""
    return dict(
        pretrain_callbacks=[SetPhase(dataset, "pretraining")],
        callbacks=[SetPhase(dataset, "fine-tuning")],
    )


def subjects_of(reads, groups):
    return set(groups[sorted(reads)].tolist())


@pytest.mark.parametrize("test_subject", [1, 4])
def test_windows_of_a_test_fold_are_never_read(recorded, test_subject):
    X, y, groups = as_sklearn(recorded)
    train = np.flatnonzero(groups != test_subject)
    clf = classifier(**phases(recorded), pretrain_epochs=2, finetune_epochs=2)
    clf.fit(X[train], y[train])
    assert set().union(*recorded.reads.values()) == set(train.tolist())
    assert test_subject not in clf.encoder_card_.seen_subjects


def test_validation_subjects_are_held_out_of_pretraining(recorded):
    X, _, groups = as_sklearn(recorded)
    clf = classifier(**phases(recorded), validation=0.5, pretrain_epochs=3)
    y = np.arange(96) % 3
    clf.fit(X, y)
    pretrained_on = recorded.reads["pretraining"]
    subjects = subjects_of(pretrained_on, groups)
    assert len(subjects) == 2
    assert pretrained_on == set(np.flatnonzero(np.isin(groups, list(subjects))))
    assert clf.encoder_card_.subjects == sorted(subjects)
    # Fine-tuning also reads the validation windows, to select the best state.
    assert subjects_of(recorded.reads["fine-tuning"], groups) == {1, 2, 3, 4}


def test_validation_subjects_of_a_split_are_held_out_of_pretraining(recorded):
    splits = {1: "train", 2: "valid", 3: "train", 4: "valid"}
    recorded.datasets = with_split(recorded, splits).datasets
    X, _, groups = as_sklearn(recorded)
    clf = classifier(**phases(recorded), validation="split", pretrain_epochs=3)
    clf.fit(X, np.arange(96) % 3)
    assert subjects_of(recorded.reads["pretraining"], groups) == {1, 3}
    assert clf.encoder_card_.subjects == [1, 3]
    assert clf.history_["valid_loss"].notna().any()
    assert subjects_of(recorded.reads["fine-tuning"], groups) == {1, 2, 3, 4}


def test_validation_windows_never_enter_a_training_step(nights):
    """The encoder receives them in evaluation mode only."""
    X, _, groups = as_sklearn(nights)
    y = np.arange(96) % 3
    trained_on = []

    class RecordTraining(Callback):
        def on_batch_begin(self, net, batch, training=False, **kwargs):
            if training:
                trained_on.extend(window.numpy().tobytes() for window in batch[0])

    callbacks = [RecordTraining()]
    clf = classifier(callbacks=callbacks, validation=0.5, pretext=None, channel_drop_prob=0.0)
    clf.fit(X, y)
    # Windows are identified by their samples.
    index = {X[i].tobytes(): i for i in range(96)}
    read = {index[window] for window in trained_on}
    assert len(read) == 48
    assert len(subjects_of(read, groups)) == 2


def test_class_weights_come_from_training_windows(nights):
    X, _, groups = as_sklearn(nights)
    # The share of the second class differs between subjects, so the weights show which subject
    # is held out.
    y = np.array([i % 24 < 3 * subject for i, subject in enumerate(groups)])
    clf = classifier(validation=0.25, pretext=None)
    clf.fit(X, y)
    possible = {}
    for held_out in (1, 2, 3, 4):
        counts = np.bincount(y[groups != held_out])
        possible[held_out] = counts.sum() / (2 * counts)
    weights = clf.net_.criterion_.weight.numpy()
    matching = [s for s, expected in possible.items() if np.allclose(weights, expected)]
    assert len(matching) == 1
    everything = len(y) / (2 * np.bincount(y))
    assert not np.allclose(weights, everything)


def test_unlabeled_windows_of_held_out_splits_are_not_pretrained_on(nights):
    windows = with_split(nights, {1: "train", 2: "valid", 3: "test", 4: "valid"})
    X, y, groups = as_sklearn(windows)
    y = np.where(groups > 2, -1, y)  # subjects 3 and 4 have no labels
    split = dict(validation="split", unlabeled_label=-1)
    assert classifier(**split).fit(X, y).encoder_card_.subjects == [1]
    first = np.flatnonzero(groups < 3)
    fitted = classifier(**split).fit(X[first], y[first], unlabeled=windows)
    assert fitted.encoder_card_.subjects == [1]
