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
from braindecode.augmentation import ChannelsDropout, GaussianNoise
from braindecode.datasets import BaseConcatDataset, WindowsDataset
from sklearn.base import clone
from sklearn.utils import check_random_state
from support import small_estimators
from support.small_estimators import embedder, same_weights
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset

from braindecode_pars import PARSNet, as_sklearn
from braindecode_pars.pretext import PARS
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.windows.convert import as_windows

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


#: Type of input -> windows from dataset, array and subjects. The first four types contain the
#: sampling rate and the subjects.
KINDS = {
    "ConcatDataset of Subsets": lambda ds, x, g: ConcatDataset(
        [Subset(ds, range(6)), Subset(Subset(ds, range(N)), list(range(6, N)))]
    ),
    "as_sklearn, indexed": lambda ds, x, g: as_sklearn(ds)[0][np.arange(N)],
    "WindowsDataset": lambda ds, x, g: BaseConcatDataset(
        [windows_dataset(x[:6], 1), windows_dataset(x[6:], 2)]
    ),
    "mne.Epochs": lambda ds, x, g: epochs_of(x, g),
    "list of tuples": lambda ds, x, g: [ds[i] for i in range(N)],
    "tensor with gradients": lambda ds, x, g: torch.from_numpy(x).requires_grad_(),
    "TensorDataset": lambda ds, x, g: TensorDataset(torch.from_numpy(x)),
}


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
def test_every_type_of_input_gives_the_same_model(
    kind, two_nights, array, labels, groups, reference
):
    X = KINDS[kind](two_nights, array, groups)
    if kind in list(KINDS)[:4]:
        assert as_windows(X).sfreq == 100.0
        assert sorted({*as_windows(X).groups.tolist()}) == [1, 2]
    clf = classifier(sfreq=100).fit(X, labels, groups=groups)
    assert same_weights(clf.net_.module_, reference.net_.module_)
    np.testing.assert_array_equal(clf.predict_proba(X), reference.predict_proba(array))
    # An array does not tell whether its reference was changed.
    cards = [clf.encoder_card_, reference.encoder_card_]
    one, other = (asdict(card) | dict(preprocessing=None) for card in cards)
    assert one == other
    assert cards[0].preprocessing.reference in (None, "as recorded")


@pytest.mark.parametrize(
    ("kind", "transform"),
    [
        ("objects", lambda y: np.array(["left", "right"], dtype=object)[y]),
        ("booleans", lambda y: y.astype(bool)),
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


def test_encoders_from_every_source(two_nights, labels, tmp_path):
    emb = embedder().fit(two_nights)
    sizes = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32, tokenizer="spectral")
    net = PARSNet(2, 3, n_times=1000, sfreq=100, **sizes)
    net.encoder.load_state_dict(emb.encoder_.state_dict())
    net.save_pretrained(tmp_path / "net")
    task = PARS(1000, 100, encoder=emb.encoder_)
    sources = {
        "folder": emb.save(tmp_path / "encoder"),
        "model folder": str(tmp_path / "net"),
        "estimator": emb,
        "encoder": emb.encoder_,
        "model": net,
        "pretraining net": PretrainingNet(task).initialize(),
    }
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


def test_continued_pretraining_starts_from_the_encoder(two_nights, labels, tmp_path):
    emb = embedder().fit(two_nights)
    continued = embedder(encoder=emb, continue_pretraining=True)
    nearly = continued.set_params(pretrain_lr=1e-9).fit(two_nights)
    for name, weight in nearly.encoder_.state_dict().items():
        torch.testing.assert_close(weight, emb.encoder_.state_dict()[name], rtol=0, atol=1e-6)
    changed = continued.set_params(pretrain_lr=1e-3).fit(two_nights)
    assert not same_weights(changed.encoder_, emb.encoder_)
    # The classifier continues in the same way, and the encoder that was passed is unchanged.
    before = copy.deepcopy(emb.encoder_)
    clf = classifier(encoder=emb, continue_pretraining=True, validation=0, finetune_lr=1e-30)
    clf.set_params(pretrain_lr=1e-3).fit(two_nights, labels)
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
def test_continued_pretraining_needs_an_encoder_and_a_task(nights, arguments):
    with pytest.raises(ValueError, match="continue_pretraining"):
        embedder(continue_pretraining=True, **arguments).fit(nights)


def test_augmentation_changes_training_only_and_follows_the_seed(short, labels):
    augmentation = [GaussianNoise(0.5, std=1e-4), ChannelsDropout(0.5, p_drop=0.3)]
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
    assert type(loader) is DataLoader
    pretrained, augmented = (
        classifier(sfreq=100, augmentation=a, freeze_encoder=True).fit(short, labels).encoder_
        for a in (None, augmentation)
    )
    assert same_weights(pretrained, augmented)


def test_files_are_only_written_with_checkpoint_dir(two_nights, labels, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    classifier().fit(two_nights, labels).predict(two_nights)
    assert list(Path().iterdir()) == []
    classifier(checkpoint_dir="run").fit(two_nights, labels)
    assert [path.name for path in Path().iterdir()] == ["run"]


def test_arrays_of_another_shape_or_length_are_a_warning():
    X = 1e-5 * np.random.default_rng(0).standard_normal((12, 4, 500)).astype(np.float32)
    clf = classifier(sfreq=100.0, pretext=None, validation=0).fit(X, np.arange(12) % 2)
    with pytest.warns(UserWarning, match=r"3 channels.* 4 channels"):
        clf.predict(X[:, :3])
