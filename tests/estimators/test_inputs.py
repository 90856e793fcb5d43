"""The same signals give the same model, whatever their type: dataset, array, list or tensor."""

from __future__ import annotations

import copy
from dataclasses import asdict
from pathlib import Path

import mne
import numpy as np
import pandas as pd
import pytest
import torch
from braindecode import EEGClassifier
from braindecode.augmentation import ChannelsDropout, GaussianNoise
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset, WindowsDataset
from sklearn.base import clone
from sklearn.utils import check_random_state
from skorch.callbacks import Callback, EpochScoring
from skorch.helper import SliceDataset
from support import small_estimators
from support.small_estimators import embedder, same_weights
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from braindecode_pars import PARSNet, as_sklearn
from braindecode_pars.pretext import PARS
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.windows import SingleChannelWindows
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.examples import WindowLoader

N = 12


def classifier(**arguments):
    """Arrays have no channel names, so the same model has no electrode positions."""
    return small_estimators.classifier(electrode_position=False, **arguments)


@pytest.fixture(scope="module")
def two_nights(few_windows):
    return BaseConcatDataset(few_windows.datasets[:2])


@pytest.fixture(scope="module")
def array(two_nights):
    return np.stack([two_nights[i][0] for i in range(N)])


@pytest.fixture(scope="module")
def labels():
    return np.arange(N) % 2


@pytest.fixture(scope="module")
def groups(two_nights):
    return as_sklearn(two_nights)[2]


def epochs_of(array: np.ndarray, groups: np.ndarray) -> mne.EpochsArray:
    info = mne.create_info(["C3", "C4", "F3"], 100.0, "eeg")
    n = len(array)
    events = np.column_stack([np.arange(n), np.zeros(n, int), np.ones(n, int)])
    metadata = pd.DataFrame({"subject": groups})
    return mne.EpochsArray(array, info, events, metadata=metadata, verbose="error", baseline=None)


def windows_dataset(array: np.ndarray, subject: int) -> WindowsDataset:
    """Return a braindecode dataset of an mne.Epochs, as older windowers of braindecode make it."""
    epochs = epochs_of(array, np.full(len(array), subject))
    epochs.metadata = pd.DataFrame(
        {
            "i_window_in_trial": 0,
            "i_start_in_trial": 0,
            "i_stop_in_trial": array.shape[-1],
            "target": 0,
        },
        index=range(len(array)),
    )
    return WindowsDataset(epochs, description={"subject": subject})


#: Type of input -> windows from dataset, array and subjects. The first eleven types contain
#: the sampling rate and the subjects.
KINDS = {
    "BaseConcatDataset": lambda ds, x, g: ds,
    "torch ConcatDataset": lambda ds, x, g: ConcatDataset(ds.datasets),
    "torch Subset": lambda ds, x, g: Subset(ds, range(N)),
    "Subset of a Subset": lambda ds, x, g: Subset(Subset(ds, range(N)), list(range(N))),
    "ConcatDataset of Subsets": lambda ds, x, g: ConcatDataset(
        [Subset(ds, range(6)), Subset(ds, range(6, N))]
    ),
    "SliceDataset": lambda ds, x, g: SliceDataset(ds),
    "as_sklearn": lambda ds, x, g: as_sklearn(ds)[0],
    "as_sklearn, indexed": lambda ds, x, g: as_sklearn(ds)[0][np.arange(N)],
    "WindowsDataset": lambda ds, x, g: BaseConcatDataset(
        [windows_dataset(x[:6], 1), windows_dataset(x[6:], 2)]
    ),
    "mne.Epochs": lambda ds, x, g: epochs_of(x, g),
    "list of Epochs": lambda ds, x, g: [epochs_of(x, g)[i] for i in range(N)],
    "list of tuples": lambda ds, x, g: [ds[i] for i in range(N)],
    "list of arrays": lambda ds, x, g: list(x),
    "NumPy": lambda ds, x, g: x,
    "NumPy, Fortran order": lambda ds, x, g: np.asfortranarray(x),
    "memory map": lambda ds, x, g: mapped(x),
    "tensor": lambda ds, x, g: torch.from_numpy(x),
    "tensor with gradients": lambda ds, x, g: torch.from_numpy(x).requires_grad_(),
    "TensorDataset": lambda ds, x, g: TensorDataset(torch.from_numpy(x)),
}


def mapped(x: np.ndarray) -> np.memmap:
    import tempfile

    with tempfile.TemporaryFile() as file:
        copy = np.memmap(file, x.dtype, shape=x.shape)
        copy[:] = x
        return copy


@pytest.fixture(scope="module")
def reference(two_nights, labels, groups):
    return classifier(sfreq=100).fit(two_nights, labels, groups=groups)


@pytest.fixture(scope="module")
def short(array):
    """Windows of five seconds, for tests of labels."""
    return array[:, :, :500]


@pytest.fixture(scope="module")
def untrained(short, labels, groups):
    return classifier(pretext=None, sfreq=100).fit(short, labels, groups=groups)


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_of_input_has_the_same_windows(kind, two_nights, array, groups):
    found = as_windows(KINDS[kind](two_nights, array, groups))
    np.testing.assert_array_equal(np.stack(found.read(range(len(found)))), array)


#: One of each way in which windows reach :func:`as_windows`.
FITTED = ("Subset of a Subset", "mne.Epochs", "list of tuples", "memory map", "TensorDataset")


@pytest.mark.parametrize("kind", FITTED)
def test_every_type_of_input_gives_the_same_model(
    kind, two_nights, array, labels, groups, reference
):
    X = KINDS[kind](two_nights, array, groups)
    clf = classifier(sfreq=100).fit(X, labels, groups=groups)
    assert same_weights(clf.net_.module_, reference.net_.module_)
    np.testing.assert_array_equal(clf.predict_proba(X), reference.predict_proba(array))
    # An array does not tell whether its reference was changed.
    cards = [clf.encoder_card_, reference.encoder_card_]
    one, other = (asdict(card) | dict(preprocessing=None) for card in cards)
    assert one == other
    assert cards[0].preprocessing.reference in (None, "as recorded")


@pytest.mark.parametrize("kind", list(KINDS)[:11])
def test_sampling_rate_and_subjects_are_read_from_the_windows(kind, two_nights, array, groups):
    windows = as_windows(KINDS[kind](two_nights, array, groups))
    assert windows.sfreq == 100.0
    assert sorted({*windows.groups.tolist()}) == [1, 2]


def test_the_embedder_accepts_an_array_of_double_precision(two_nights, array, groups):
    reference = embedder(sfreq=100).fit(two_nights)
    emb = embedder(sfreq=100).fit(array.astype(np.float64), groups=groups)
    np.testing.assert_array_equal(emb.transform(array), reference.transform(two_nights))


@pytest.mark.parametrize(
    ("kind", "transform"),
    [
        ("objects", lambda y: np.array(["left", "right"], dtype=object)[y]),
        ("list of strings", lambda y: [["left", "right"][label] for label in y]),
        ("booleans", lambda y: y.astype(bool)),
        ("other integers", lambda y: y * 5 + 2),
        ("floats that are integers", lambda y: y.astype(float)),
        ("pandas", lambda y: pd.Series(np.array(["a", "b"])[y], index=np.arange(len(y))[::-1])),
        ("pandas categories", lambda y: pd.Series(pd.Categorical(np.array(["a", "b"])[y]))),
        ("tensor", torch.from_numpy),
    ],
)
def test_labels_of_every_type(short, labels, groups, untrained, kind, transform):
    y = transform(labels)
    clf = clone(untrained).fit(short, y, groups=groups)
    assert same_weights(clf.net_.module_, untrained.net_.module_)
    predicted = clf.predict(short)
    expected = np.asarray(y)[[np.flatnonzero(labels == c)[0] for c in untrained.predict(short)]]
    assert predicted.tolist() == expected.tolist()
    assert clf.score(short, y) == untrained.score(short, labels)


def test_a_column_of_labels_is_flattened_with_a_warning(short, labels, groups, untrained):
    with pytest.warns(match="column-vector"):
        clf = clone(untrained).fit(short, labels[:, None], groups=groups)
    assert same_weights(clf.net_.module_, untrained.net_.module_)


def test_labels_passed_to_fit_replace_those_of_the_dataset(two_nights, labels):
    clf = classifier(pretext=None, validation=0)
    assert clf.fit(two_nights, labels).classes_.tolist() == [0, 1]
    assert len(clf.fit(two_nights).classes_) > 2


def test_labels_missing_in_some_recordings_raise(two_nights):
    bare = windows_dataset(np.stack([two_nights[i][0] for i in range(3)]), 3)
    bare.targets_from = "channels"
    with pytest.raises(ValueError, match="3 of 15"):
        classifier().fit(BaseConcatDataset([*two_nights.datasets, bare]))


# ---------------------------------------------------------------- pretrained encoders


def owners(two_nights, tmp_path, tiny) -> dict:
    """Return every type of object or folder that can contain the encoder ``emb.encoder_``."""
    emb = embedder().fit(two_nights)
    sizes = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32, tokenizer="spectral")
    net = PARSNet(2, 3, n_times=1000, sfreq=100, **sizes)
    net.encoder.load_state_dict(emb.encoder_.state_dict())
    skorch_net = EEGClassifier(net, max_epochs=1, train_split=None, callbacks__print_log=None)
    task = PARS(1000, 100, encoder=emb.encoder_)
    return {
        "folder": emb.save(tmp_path / "encoder"),
        "text": str(emb.save(tmp_path / "encoder")),
        "model folder": (net.save_pretrained(tmp_path / "net"), tmp_path / "net")[1],
        "estimator": emb,
        "encoder": emb.encoder_,
        "model": net,
        "task": task,
        "skorch net": skorch_net.initialize(),
        "pretraining net": PretrainingNet(task).initialize(),
    }


def test_encoders_from_every_source(two_nights, labels, tmp_path, tiny):
    sources = owners(two_nights, tmp_path, tiny)
    for name, source in sources.items():
        assert same_weights(load_encoder(source).encoder, sources["encoder"]), name
    clf = classifier(freeze_encoder=True)
    models = [
        clone(clf).set_params(encoder=sources[name]).fit(two_nights, labels)
        for name in ("folder", "encoder")
    ]
    for model in models:
        assert same_weights(model.encoder_, sources["encoder"])
        assert same_weights(model.net_.module_, models[0].net_.module_)
        assert model.encoder_ is not sources["encoder"]
    assert [model.encoder_card_.subjects for model in models] == [[1, 2], None]


# ---------------------------------------------------------------- continued pretraining


def test_continued_pretraining_starts_from_the_encoder(two_nights, labels, tmp_path):
    emb = embedder().fit(two_nights)
    continued = embedder(encoder=emb, continue_pretraining=True)
    # Without epochs, the encoder stays; with a tiny rate, it nearly stays.
    unchanged = continued.set_params(pretrain_epochs=0).fit(two_nights)
    assert same_weights(unchanged.encoder_, emb.encoder_)
    nearly = continued.set_params(pretrain_epochs=1, pretrain_lr=1e-9).fit(two_nights)
    for name, weight in nearly.encoder_.state_dict().items():
        torch.testing.assert_close(weight, emb.encoder_.state_dict()[name], rtol=0, atol=1e-6)
    changed = continued.set_params(pretrain_lr=1e-3).fit(two_nights)
    assert not same_weights(changed.encoder_, emb.encoder_)
    # The classifier continues in the same way, and the encoder that was passed is unchanged.
    before = copy.deepcopy(emb.encoder_)
    clf = classifier(encoder=emb, continue_pretraining=True, validation=0, finetune_lr=1e-30)
    clf.set_params(pretrain_epochs=1, pretrain_lr=1e-3).fit(two_nights, labels)
    assert same_weights(clf.encoder_, changed.encoder_)
    assert same_weights(emb.encoder_, before)


def test_the_card_of_continued_pretraining_names_all_subjects(nights, tmp_path):
    first, second = nights.split([[0], [1, 2]]).values()
    emb = embedder().fit(first)
    folder = emb.save(tmp_path / "first")
    continued = embedder(encoder=folder, continue_pretraining=True).fit(second, unlabeled=second)
    card = continued.encoder_card_
    assert card.subjects == [1, 2, 3]
    assert card.continued_from["subjects"] == [1]
    assert card.n_windows == 2 * len(second)
    loaded = load_encoder(continued.save(tmp_path / "second")).card
    assert loaded == card


@pytest.mark.parametrize("arguments", [dict(), dict(encoder="here", pretext=None)])
@pytest.mark.parametrize("make", [classifier, embedder])
def test_continued_pretraining_needs_an_encoder_and_a_task(nights, make, arguments):
    with pytest.raises(ValueError, match="continue_pretraining"):
        make(continue_pretraining=True, **arguments).fit(nights)


# ---------------------------------------------------------------- augmentation and callbacks


@pytest.mark.parametrize(
    "augmentation",
    [
        GaussianNoise(1.0, std=1e-4),
        [GaussianNoise(0.5, std=1e-4), ChannelsDropout(0.5, p_drop=0.3)],
    ],
)
def test_augmentation_changes_training_only_and_follows_the_seed(short, labels, augmentation):
    # The augmentation changes the fine-tuned model, in the same way in every fit.
    scratch = dict(pretext=None, sfreq=100, validation=0)
    plain = classifier(**scratch).fit(short, labels)
    noisy = classifier(**scratch, augmentation=augmentation)
    first = noisy.fit(short, labels).net_.module_
    assert not same_weights(first, plain.net_.module_)
    check_random_state(None).seed(1)  # not from NumPy's global state, as by itself
    assert same_weights(noisy.fit(short, labels).net_.module_, first)
    # Prediction and pretraining are not augmented.
    loader = noisy.net_.get_iterator(noisy.net_.get_dataset(np.zeros((2, 3, 1000))), training=False)
    assert type(loader) is WindowLoader
    pretrained, augmented = (
        classifier(sfreq=100, augmentation=a, freeze_encoder=True).fit(short, labels).encoder_
        for a in (None, augmentation)
    )
    assert same_weights(pretrained, augmented)


class CountEpochs(Callback):
    """Count the epochs of a net."""

    def initialize(self):
        self.epochs_ = 0
        return self

    def on_epoch_end(self, net, **kwargs):
        self.epochs_ += 1


def test_callbacks_are_for_fine_tuning(short, labels, groups):
    counter = CountEpochs()
    scoring = EpochScoring("balanced_accuracy", name="valid_bac", lower_is_better=False)
    epochs = dict(pretrain_epochs=3, finetune_epochs=2)
    clf = classifier(sfreq=100, callbacks=[counter, ("bac", scoring)], **epochs)
    clf.fit(short, labels, groups=groups)
    assert counter.epochs_ == 2
    assert len(clf.net_.history[:, "valid_bac"]) == 2


# ---------------------------------------------------------------- montages


def test_recordings_of_several_montages_are_pretrained_on_together(two_nights, few_windows):
    """Of ``X``, the common channels are used; pretraining alone needs no common channels."""
    third = few_windows.datasets[2]
    other = EEGWindowsDataset(
        third.raw.copy().drop_channels(["F3"]), third.metadata, dict(third.description)
    )
    mixed = BaseConcatDataset([*two_nights.datasets, other])
    examples = SingleChannelWindows(mixed)
    assert examples[0][0].shape == examples[len(mixed) - 1][0].shape == (1000,)
    clf = classifier(validation=0).fit(two_nights, unlabeled=other)
    assert clf.encoder_card_.n_windows == N + len(other)
    with pytest.warns(UserWarning, match="F3"):
        clf = classifier(validation=0).fit(mixed)
    assert clf.n_chans_ == 2


def test_files_are_only_written_with_checkpoint_dir(two_nights, labels, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    classifier().fit(two_nights, labels).predict(two_nights)
    assert list(Path().iterdir()) == []
    classifier(checkpoint_dir="run").fit(two_nights, labels)
    assert [path.name for path in Path().iterdir()] == ["run"]


@pytest.mark.parametrize(("sfreq", "n_times"), [(1.0, 301), (None, 150_001)])
def test_windows_that_may_be_continuous_recordings_are_a_warning(sfreq, n_times, recwarn):
    X = 1e-5 * np.random.default_rng(0).standard_normal((2, 1, n_times)).astype(np.float32)
    embedder(sfreq=sfreq, pretext=None).fit(X)
    assert sum(f"have {n_times} samples" in str(one.message) for one in recwarn) == 1


def test_arrays_have_the_shape_of_those_of_fit():
    X = 1e-5 * np.random.default_rng(0).standard_normal((12, 4, 500)).astype(np.float32)
    clf = classifier(sfreq=100.0, pretext=None, validation=0).fit(X, np.arange(12) % 2)
    with pytest.warns(UserWarning, match=r"3 channels.* 4 channels"):
        clf.predict(X[:, :3])
    with pytest.warns(UserWarning, match=r"400 samples.* 500 samples"):
        clf.predict(X[..., :400])
