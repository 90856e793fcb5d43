"""PARSEmbedder: one embedding vector per window."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from braindecode.datasets import BaseConcatDataset
from sklearn.exceptions import NotFittedError
from support.small_estimators import embedder, same_weights

from braindecode_pars import PARSEmbedder
from braindecode_pars.models import embed_signals


def test_channels_are_kept_side_by_side(fitted_embedder, nights):
    emb = fitted_embedder
    assert emb.pooling_ == "channels"
    embedded = emb.transform(nights)
    assert embedded.shape == (24, 3 * 16)
    assert embedded.dtype == np.float32
    pooled = embedder(encoder=emb, pooling="mean").fit(nights)
    for c in range(3):
        alone = pooled.transform(np.stack([nights[i][0][[c]] for i in range(24)]))
        np.testing.assert_allclose(embedded[:, 16 * c : 16 * (c + 1)], alone, atol=1e-5)


def test_channels_are_pooled_where_montages_differ(nights):
    first, second = nights.datasets[:2]
    names = dict(zip(second.raw.ch_names, ("O1", "O2", "Oz"), strict=True))
    other = type(second)(
        second.raw.copy().rename_channels(names), second.metadata, second.description
    )
    both = BaseConcatDataset([first, other])
    emb = embedder(pretext=None).fit(both)
    assert emb.pooling_ == "mean_std"
    assert emb.transform(both).shape == (12, 32)
    with pytest.raises(ValueError, match=r"[Nn]o channel is shared"):
        embedder(pretext=None, pooling="channels").fit(both)


def test_features_of_a_layer(nights):
    last = embedder(num_layers=2, pooling="mean").fit(nights)
    encoder = last.encoder_.eval()
    x = torch.from_numpy(np.stack([nights[i][0] for i in range(24)]))
    for layer in (0, 1):
        emb = embedder(encoder=last, pooling="mean", layer=layer).fit(nights)
        with torch.no_grad():
            expected = embed_signals(encoder, x.flatten(0, 1), layer).reshape(24, 3, 16).mean(1)
        np.testing.assert_allclose(emb.transform(nights), expected, atol=1e-5)
    same = embedder(encoder=last, pooling="mean", layer=2).fit(nights)
    np.testing.assert_array_equal(same.transform(nights), last.transform(nights))
    with pytest.raises(ValueError, match="layer=3"):
        embedder(num_layers=2, layer=3).fit(nights)


def test_embedding_is_mean_and_standard_deviation_over_channels(nights):
    emb = embedder(pretext=None, pooling="mean_std").fit(nights)
    embedded = emb.transform(nights)
    assert embedded.shape == (24, 32)
    channels = [
        emb.transform(np.stack([nights[i][0][[c]] for i in range(24)]))[:, :16] for c in range(3)
    ]
    np.testing.assert_allclose(embedded[:, :16], np.mean(channels, axis=0), atol=1e-5)
    np.testing.assert_allclose(embedded[:, 16:], np.std(channels, axis=0), atol=1e-5)
    mean = embedder(pretext=None, pooling="mean").fit(nights).transform(nights)
    np.testing.assert_array_equal(mean, embedded[:, :16])


def test_embedder_is_reproducible_and_pretext_none_is_random(fitted_embedder, nights):
    assert same_weights(embedder().fit(nights).encoder_, fitted_embedder.encoder_)
    random = embedder(pretext=None).fit(nights)
    assert not same_weights(fitted_embedder.encoder_, random.encoder_)
    assert random.encoder_card_.task is None


def test_columns_have_names(nights):
    frame = embedder(pretext=None).set_output(transform="pandas").fit(nights).transform(nights)
    assert frame.columns[[0, 15, 16, 47]].tolist() == ["C3_0", "C3_15", "C4_0", "F3_15"]
    pooled = embedder(pretext=None, pooling="mean_std").fit(nights).get_feature_names_out()
    assert pooled[[0, 15, 16, 31]].tolist() == ["mean0", "mean15", "std0", "std15"]


def test_save_and_load(nights, tmp_path):
    emb = embedder(pooling="mean", layer=0).fit(nights)
    emb.save(tmp_path / "run")
    again = PARSEmbedder.load(tmp_path / "run")
    np.testing.assert_array_equal(again.transform(nights), emb.transform(nights))
    assert again.load_report_.complete
    assert again.encoder_card_ == emb.encoder_card_
    assert again.history_.equals(emb.history_)
    assert emb.history_["phase"].tolist() == ["pretraining"]
    assert again.get_params() == {**emb.get_params(), "device": "auto"}


def test_a_failed_fit_leaves_the_embedder_unfitted(fitted_embedder, nights):
    emb = copy.copy(fitted_embedder).set_params(embed_dim=15)
    with pytest.raises(ValueError, match="embed_dim"):
        emb.fit(nights)
    with pytest.raises(NotFittedError):
        emb.transform(nights)
