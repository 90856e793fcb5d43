"""The encoder, compared with a plain reference computation and its published size."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from braindecode_pars import PatchEncoder
from braindecode_pars.encoder import MultiHeadAttention


def count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_parameter_counts_of_the_paper():
    encoder = PatchEncoder()
    assert count(encoder.tokenizer) == 102_912
    assert count(encoder.blocks[0]) == 1_577_984
    assert count(encoder.tokenizer) + count(encoder.blocks) == 12_726_784
    assert count(encoder) == 12_727_808


def plain_attention(attention: MultiHeadAttention, queries, features, mask=None):
    """Return softmax attention, computed with loops over heads and queries."""
    heads, size = attention.num_heads, queries.shape[-1] // attention.num_heads
    q, k, v = attention.query(queries), attention.key(features), attention.value(features)
    out = torch.zeros_like(q)
    for b in range(len(q)):
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            for i in range(q.shape[1]):
                logits = [
                    float(q[b, i, part] @ k[b, j, part]) / math.sqrt(size)
                    for j in range(k.shape[1])
                ]
                weights = [math.exp(z - max(logits)) for z in logits]
                if mask is not None:
                    weights = [w * bool(m) for w, m in zip(weights, mask[b], strict=True)]
                for j, w in enumerate(weights):
                    out[b, i, part] += w / sum(weights) * v[b, j, part]
    return attention.output(out)


@torch.no_grad()
def test_attention_and_its_mask_against_loops():
    attention = MultiHeadAttention(8, 2).double()
    queries = torch.randn(2, 3, 8, dtype=torch.float64)
    features = torch.randn(2, 5, 8, dtype=torch.float64)
    mask = torch.tensor([[True, False, True, True, False], [False, False, True, False, False]])
    torch.testing.assert_close(
        attention(queries, features), plain_attention(attention, queries, features)
    )
    torch.testing.assert_close(
        attention(queries, features, mask), plain_attention(attention, queries, features, mask)
    )


@torch.no_grad()
def test_encoder_follows_the_update_rule_of_the_appendix():
    encoder = PatchEncoder(10, 8, 2, 2, 12).double()
    patches = torch.randn(2, 4, 10, dtype=torch.float64)

    def layer_norm(x, norm):
        mean = x.mean(-1, keepdim=True)
        var = (x - mean).square().mean(-1, keepdim=True)
        return (x - mean) / (var + norm.eps).sqrt() * norm.weight + norm.bias

    # Tokenizer
    x = patches @ encoder.tokenizer.weight.T + encoder.tokenizer.bias
    # Blocks: attention, then the feed-forward part, each with a residual connection
    for block in encoder.blocks:
        normed = layer_norm(x, block.attention_norm)
        x = x + plain_attention(block.attention, normed, normed)
        first, _, second = block.feed_forward
        hidden = layer_norm(x, block.feed_forward_norm) @ first.weight.T + first.bias
        hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))  # GELU
        x = x + hidden @ second.weight.T + second.bias
    expected = layer_norm(x, encoder.norm)
    torch.testing.assert_close(encoder(encoder.tokenize(patches)), expected)


@torch.no_grad()
def test_features_of_each_layer():
    encoder = PatchEncoder(10, 8, 3, 2, 12)
    tokens = torch.randn(2, 5, 8)
    states = [tokens]
    for block in encoder.blocks:
        states.append(block(states[-1]))
    states[-1] = encoder.norm(states[-1])
    for layer in range(-4, 4):
        assert torch.equal(encoder.features_at(tokens, layer), states[layer]), layer
    assert torch.equal(encoder.features_at(tokens), encoder(tokens))
    for layer in (4, -5):
        with pytest.raises(ValueError, match=f"layer={layer}"):
            encoder.features_at(tokens, layer)


def test_encoder_permutes_with_its_tokens():
    encoder = PatchEncoder(10, 8, 2, 2, 12)
    tokens = torch.randn(2, 6, 8)
    order = torch.randperm(6)
    torch.testing.assert_close(encoder(tokens)[:, order], encoder(tokens[:, order]))
