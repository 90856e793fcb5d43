"""SpaceTimeEncoder: attention along time and across channels, of any montage."""

from __future__ import annotations

import math

import mne
import numpy as np
import pytest
import torch
from braindecode.datasets import BaseConcatDataset
from support.short_windows import first_samples

from braindecode_pars import (
    PARSClassifier,
    PARSEmbedder,
    PatchEncoder,
    as_sklearn,
    datasets,
)
from braindecode_pars.models import SpaceTimeEncoder, electrode_positions, embed_channels
from braindecode_pars.models.space_time import SpaceTimeBlock

SIZES = dict(embed_dim=16, num_layers=2, num_heads=2, mlp_dim=16)
NAMES = ("Fp1", "Fp2", "C3", "Cz", "C4", "O1", "O2")


def positions(*names: str) -> torch.Tensor:
    chs_info = mne.create_info(list(names), 100.0, "eeg")["chs"]
    return torch.from_numpy(electrode_positions(chs_info))


@pytest.fixture
def encoder() -> SpaceTimeEncoder:
    return SpaceTimeEncoder(20, **SIZES, tokenizer="spectral").eval()


def slow_attention(attention, x):
    """Multi-head attention of one sequence, (n, embed_dim), in plain loops."""
    queries, keys, values = attention.query(x), attention.key(x), attention.value(x)
    size, outputs = x.shape[1] // attention.num_heads, []
    for i in range(len(x)):
        heads = []
        for head in range(attention.num_heads):
            part = slice(head * size, (head + 1) * size)
            logits = [queries[i, part] @ keys[j, part] / math.sqrt(size) for j in range(len(x))]
            weights = torch.stack(logits).softmax(dim=0)
            heads.append(sum(weights[j] * values[j, part] for j in range(len(x))))
        outputs.append(attention.output(torch.cat(heads)))
    return torch.stack(outputs)


@torch.no_grad()
def test_a_block_against_plain_loops():
    block = SpaceTimeBlock(8, 2, 12).double()
    x = torch.randn(2, 3, 4, 8, dtype=torch.float64)
    expected = x.clone()
    for window in expected:
        for moment in range(4):
            normed = block.channel_norm(window[:, moment])
            window[:, moment] += slow_attention(block.channel_attention, normed)
        for channel in range(3):
            normed = block.attention_norm(window[channel])
            window[channel] += slow_attention(block.attention, normed)
            window[channel] += block.feed_forward(block.feed_forward_norm(window[channel]))
    torch.testing.assert_close(block(x), expected)


@torch.no_grad()
def test_one_channel_is_encoded_as_by_a_patch_encoder(encoder):
    single = PatchEncoder(20, **SIZES, tokenizer="spectral").eval()
    single.load_state_dict({k: encoder.state_dict()[k] for k in single.state_dict()})
    x = torch.randn(4, 1, 110)
    for layer in (0, 1, -1):
        expected = embed_channels(single, x, layer=layer)
        actual = embed_channels(encoder, x, positions("C3"), layer=layer)
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6)
    # Also where the others are missing: their samples are NaN.
    several = torch.full((4, 3, 110), torch.nan)
    several[:, 1:2] = x
    keep = torch.tensor([False, True, False]).expand(4, 3)
    actual = embed_channels(encoder, several, positions("C3", "Cz", "C4"), keep)
    torch.testing.assert_close(actual[:, 1:2], expected, rtol=0, atol=1e-6)
    assert not actual[:, [0, 2]].any()


@torch.no_grad()
def test_channels_in_another_order_with_their_positions(encoder):
    x, where = torch.randn(3, len(NAMES), 100), positions(*NAMES)
    order = torch.randperm(len(NAMES))
    features = embed_channels(encoder, x, where)
    torch.testing.assert_close(
        embed_channels(encoder, x[:, order], where[order]), features[:, order]
    )
    # The place matters, and so do the other channels.
    assert not torch.allclose(embed_channels(encoder, x[:, order], where), features[:, order])
    other = x.clone()
    other[:, 0] = torch.randn(3, 100)
    assert (embed_channels(encoder, other, where) != features).any(dim=-1).all()


@torch.no_grad()
def test_a_missing_channel_changes_nothing(encoder):
    x, where = torch.randn(3, len(NAMES), 100), positions(*NAMES)
    present = [0, 2, 3, 6]
    keep = torch.zeros(3, len(NAMES), dtype=torch.bool)
    keep[:, present] = True
    x[:, [1, 4]] = torch.nan
    for layer in (1, -1):
        actual = embed_channels(encoder, x, where, keep, layer)
        expected = embed_channels(encoder, x[:, present], where[present], layer=layer)
        torch.testing.assert_close(actual[:, present], expected)


@torch.no_grad()
def test_the_unit_does_not_matter_but_relative_amplitudes_do(encoder):
    x, where = torch.randn(2, 3, 100), positions("C3", "Cz", "C4")
    features = embed_channels(encoder, x, where)
    torch.testing.assert_close(
        embed_channels(encoder, 1e-6 * x, where), features, rtol=1e-4, atol=1e-4
    )
    louder = x * torch.tensor([1.0, 5.0, 1.0])[:, None]
    assert not torch.allclose(embed_channels(encoder, louder, where), features, atol=1e-3)


def short_recordings(*subjects: str) -> BaseConcatDataset:
    """Every second window of subjects, with its first three seconds."""
    return first_samples(datasets.mental_arithmetic([*subjects]), 384, slice(0, None, 2))


@pytest.fixture(scope="module")
def recordings():
    return short_recordings("Subject00", "Subject01")


SMALL = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16, random_state=0, verbose=0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_embedder_returns_one_vector_per_channel(recordings, tmp_path):
    X, _, _ = as_sklearn(recordings)
    embedder = PARSEmbedder("pars_space_time", pretrain_epochs=1, **SMALL).fit(X)
    assert type(embedder.encoder_) is SpaceTimeEncoder
    assert embedder.encoder_card_.task == "pars_space_time"
    actual = embedder.transform(X)
    where = torch.from_numpy(electrode_positions(X.chs_info))
    with torch.no_grad():
        expected = embed_channels(embedder.encoder_, torch.from_numpy(np.asarray(X)), where)
    np.testing.assert_allclose(actual, expected.flatten(1), atol=1e-5)
    loaded = PARSEmbedder.load(embedder.save(tmp_path / "embedder"))
    np.testing.assert_array_equal(loaded.transform(X), actual)
    # A random encoder has the same configuration but different weights.
    random_embedder = PARSEmbedder("pars_space_time", pretrain_epochs=0, **SMALL).fit(X)
    assert random_embedder.encoder_.config == embedder.encoder_.config
    assert not np.allclose(random_embedder.transform(X), actual)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_classifier_is_fitted_saved_and_loaded(recordings, tmp_path):
    kwargs = dict(pretrain_epochs=1, finetune_epochs=1, **SMALL)
    X, _, _ = as_sklearn(recordings)
    clf = PARSClassifier("pars_space_time", **kwargs).fit(recordings)
    assert type(clf.encoder_) is SpaceTimeEncoder
    proba = clf.predict_proba(recordings)
    np.testing.assert_array_equal(
        PARSClassifier.load(clf.save(tmp_path / "m")).predict_proba(recordings), proba
    )
    # Another montage: fewer channels, in another order
    fewer = short_recordings("Subject00")
    for dataset in fewer.datasets:
        dataset.raw.pick([X.chs_info[i]["ch_name"] for i in (4, 0, 2)])
    with pytest.warns(UserWarning, match="3 of 8"):
        assert clf.predict_proba(fewer).shape == (len(fewer), 2)
