"""A SignalStore as the source of windows for the net and the estimators."""

from __future__ import annotations

from copy import deepcopy

import pytest
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from support.small_estimators import classifier, embedder

from braindecode_pars import datasets
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import SingleChannelWindows


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a store of two subjects that are not in ``nights``, with another montage."""
    others = datasets.simulated.sleep(2, 0.05, n_chans=2, sfreq=100, random_state=8)
    others.set_description({"subject": ["anna", "bert"]}, overwrite=True)
    return SignalStore.create(tmp_path_factory.mktemp("store"), others, verbose=0)


@pytest.fixture
def crops_only(monkeypatch):
    """Record every read of the store as (number of channels, number of samples)."""
    read = []
    crops = SignalStore.crops

    def recording(self, signals, starts, n_times):
        read.append((len(signals), n_times))
        return crops(self, signals, starts, n_times)

    monkeypatch.setattr(SignalStore, "crops", recording)
    return read


def test_the_classifier_pretrains_on_an_unlabeled_store(nights, store, crops_only):
    clf = classifier(pretrain_batch_size=16).fit(nights, unlabeled=store)
    assert clf.encoder_card_.subjects[-2:] == ["anna", "bert"]
    # Each window of the store is read once per epoch: one channel, as long as the labeled
    # windows. Before, 32 are looked at.
    assert crops_only[0] == (32 * 2, 1000)
    assert sum(n for n, _ in crops_only[1:]) == 36
    assert {n_times for _, n_times in crops_only} == {1000}
    assert clf.encoder_card_.n_windows == 36 + 6 * len(set(clf.encoder_card_.subjects[:-2]))


def test_the_embedder_accepts_windows_of_a_store(store, crops_only):
    emb = embedder().fit(store.windows(1500))
    assert crops_only == [(24 * 2, 1500), (24, 1500)]
    assert (emb.n_chans_, emb.n_times_, emb.sfreq_) == (2, 1500, 100.0)
    assert emb.encoder_card_.subjects == ["anna", "bert"]
    assert emb.transform(store.windows(1500)).shape == (24, 32)
    with pytest.raises(ValueError, match="n_times"):
        embedder().fit(store)


def test_held_out_subjects_are_recognized_under_names_of_another_type(nights, tmp_path):
    """The store has string names from folders; the labeled windows have integer subjects."""
    for night in nights.datasets:
        subject = night.description["subject"]
        file = tmp_path / f"tree/{subject}/night_raw.fif"
        file.parent.mkdir(parents=True)
        night.raw.copy().crop(0, 60).save(file, verbose="error")
    store = SignalStore.create(tmp_path / "store", tmp_path / "tree", verbose=0)
    assert store.subjects == ["1", "2", "3", "4"]
    clf = classifier(validation=0.25).fit(nights, unlabeled=store)
    pretrained_on = set(map(str, clf.encoder_card_.subjects))
    assert len(pretrained_on) == 3
    assert len(clf.encoder_card_.finetune_subjects) == 4


@pytest.mark.parametrize("is_labeled", [True, False])
def test_held_out_subjects_of_a_store_are_not_used_for_pretraining(nights, tmp_path, is_labeled):
    """With or without labels, as further windows and alone; of windows of it, by their splits."""
    parts = []
    for one, split in zip(nights.datasets, ["train", "train", "valid", "test"], strict=True):
        part = EEGWindowsDataset(one.raw, one.metadata, {**dict(one.description), "split": split})
        part.y = part.y if is_labeled else [-1] * len(part)
        parts.append(part)
    store = SignalStore.create(tmp_path / "store", BaseConcatDataset(parts), verbose=0)
    split = nights.split([[0, 1], [2, 3]])
    for unlabeled in (store, store.windows(3000)):
        fitted = classifier(validation="split").fit(_of(parts[:3], nights), unlabeled=unlabeled)
        assert fitted.encoder_card_.subjects == [1, 2]
    assert embedder().fit(split["0"], unlabeled=store).encoder_card_.subjects == [1, 2]
    net = SingleChannelWindows(store, 1000)
    assert len(net) == 2 * 24 * 3  # two subjects, three windows of 1000 samples in each of 3000


def _of(parts, nights):
    """Return labeled recordings with their splits."""
    labeled = [deepcopy(part) for part in parts]
    for part, one in zip(labeled, nights.datasets, strict=False):
        part.y = one.y
    return BaseConcatDataset(labeled)
