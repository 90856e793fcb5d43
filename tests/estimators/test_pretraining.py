"""The encoder of an estimator: one set of defaults, and what is refused before training."""

from __future__ import annotations

import inspect

import mne
import numpy as np
import pytest
import torch

from braindecode_pars import PARSClassifier, PARSEmbedder
from braindecode_pars.callbacks import Pretraining
from braindecode_pars.estimators.encoder_start import further_windows, pretraining_settings
from braindecode_pars.pretraining import PretrainingSettings
from braindecode_pars.windows.convert import as_windows


def default(function, name):
    return inspect.signature(function).parameters[name].default


@pytest.mark.parametrize("name", ["epochs", "lr", "batch_size", "weight_decay"])
def test_settings_callback_and_estimators_have_the_same_defaults(name):
    expected = default(PretrainingSettings, name)
    assert default(Pretraining, name) == expected
    of_estimator = name if name == "weight_decay" else f"pretrain_{name}"
    assert default(PARSClassifier, of_estimator) == expected
    assert default(PARSEmbedder, of_estimator) == expected


def test_every_parameter_of_pretraining_reaches_its_setting():
    given = dict(
        pretext="mae",
        pretext_params={"mask_ratio": 0.3},
        pretrain_epochs=3,
        pretrain_lr=1e-3,
        pretrain_batch_size=7,
        weight_decay=0.2,
        precision="bfloat16",
        compile=True,
        device="cpu",
    )
    expected = PretrainingSettings(
        "mae",
        {"mask_ratio": 0.3},
        3,
        1e-3,
        7,
        0.2,
        precision="bfloat16",
        compile=True,
        device="cpu",
    )
    for estimator in (PARSClassifier(**given), PARSEmbedder(**given)):
        assert pretraining_settings(estimator) == expected


def test_an_unknown_sampling_rate_makes_a_patch_a_share_of_the_window():
    X = torch.randn(4, 2, 6000).numpy()
    quick = dict(pretext=None, verbose=0, embed_dim=16, num_layers=1, num_heads=2)
    known = PARSEmbedder(sfreq=200.0, patch_seconds=0.5, **quick).fit(X)
    assert (known.encoder_.patch_size, known.sfreq_) == (100, 200.0)
    with pytest.warns(UserWarning, match=r"200 samples.*sfreq.*PARSEmbedder"):
        unknown = PARSEmbedder(**quick).fit(X)
    assert (unknown.encoder_.patch_size, unknown.sfreq_) == (200, None)


def test_listed_channels_are_also_those_of_unlabeled_windows():
    x = np.random.default_rng(0).normal(size=(6, 2, 300)).astype(np.float32)

    def epochs(*names):
        return mne.EpochsArray(x, mne.create_info([*names], 100.0, "eeg"), verbose="error")

    X = epochs("C3", "C4")
    embedder = PARSEmbedder(channels=["C4"], pretext=None, verbose=0).fit(X)
    embedder.set_params(pretext="pars")
    (same,) = further_windows(embedder, epochs("Cz", "C4"), as_windows(X))
    np.testing.assert_array_equal(same[0], x[0, 1:])
    with pytest.warns(UserWarning, match="C4"):
        (others,) = further_windows(embedder, epochs("Fz", "Cz"), as_windows(X))
    np.testing.assert_array_equal(others[0], x[0])
    # Without a list, the channels of the EEG.
    X.set_channel_types({"C4": "stim"}, verbose="error")
    with pytest.warns(UserWarning, match="C4"):
        (eeg,) = further_windows(embedder.set_params(channels=None), X, as_windows(X))
    np.testing.assert_array_equal(eeg[0], x[0, :1])
