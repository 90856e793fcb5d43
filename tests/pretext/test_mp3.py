"""MP3 equals a slow recomputation, and has its defining properties."""

from __future__ import annotations

import math

import pytest
import torch
from support.pretext_contract import SIZES, PretextContract, event_locked

from braindecode_pars.pretext import MP3


class TestMP3(PretextContract):
    task = MP3

    def eeg(self):
        return event_locked(super().eeg())

    def ignore_signal(self, task):
        task.classify = lambda patches, is_key: torch.zeros(*patches.shape[:2], task.n_patches)


def test_sizes():
    task = MP3(6000)
    assert (task.n_patches, task.n_masked) == (30, 15)
    assert sum(p.numel() for p in task.head.parameters()) == 512 * 30 + 30
    assert task.chance_loss() == pytest.approx(math.log(30))


@torch.no_grad()
def test_against_a_slow_plain_recomputation():
    """The recomputation takes one query, one head and one key of attention at a time."""
    task = MP3(500, 50, embed_dim=16, num_layers=2, num_heads=2, mlp_dim=24).double()
    patches = torch.randn(2, 10, 50, dtype=torch.float64)
    is_key = task.random_order(patches.flatten(1)) >= task.n_masked
    assert is_key.sum(dim=1).tolist() == [5, 5]
    logits = task.classify(patches, is_key)
    for b in range(2):
        tokens = [task.encoder.tokenizer(patch) for patch in patches[b]]
        for block in task.encoder.blocks:
            normed = [block.attention_norm(token) for token in tokens]
            attention = block.attention
            after = []
            for query in normed:
                heads = []
                for head in (slice(0, 8), slice(8, 16)):
                    q = attention.query(query)[head]
                    keys = [n for n in range(10) if is_key[b, n]]
                    scores = [attention.key(normed[n])[head] @ q / math.sqrt(8) for n in keys]
                    weights = torch.stack(scores).softmax(0)
                    values = [attention.value(normed[n])[head] for n in keys]
                    heads.append(sum(w * v for w, v in zip(weights, values, strict=True)))
                after.append(attention.output(torch.cat(heads)))
            tokens = [token + a for token, a in zip(tokens, after, strict=True)]
            tokens = [t + block.feed_forward(block.feed_forward_norm(t)) for t in tokens]
        expected = torch.stack([task.head(task.encoder.norm(token)) for token in tokens])
        torch.testing.assert_close(logits[b], expected)


def test_every_token_is_classified_into_its_place():
    task = MP3(1000, 100, **SIZES)
    logits, places = task(torch.randn(4, 1000))
    assert logits.shape == (4, 10, 10)
    assert torch.equal(places, torch.arange(10).expand(4, -1))
    # The loss depends on every token.
    logits.retain_grad()
    task.criterion()(logits, places).backward()
    assert (logits.grad.abs().sum(dim=1) > 0).all()
    by_hand = -logits.log_softmax(dim=1)[:, torch.arange(10), torch.arange(10)].mean()
    torch.testing.assert_close(task.criterion()(logits, places), by_hand)


def test_masked_patches_are_excluded_from_keys():
    """Three of twelve: half of them would look the same the other way round."""
    task, keys = MP3(600, 50, mask_ratio=0.25, embed_dim=8, num_heads=2, mlp_dim=8), []
    task.classify = lambda patches, is_key: keys.append(is_key) or torch.zeros(50, 12, 12)
    task(torch.randn(50, 600))
    assert keys[0].sum(dim=1).tolist() == [9] * 50
    assert len(keys[0].unique(dim=0)) > 20  # each example has its own
