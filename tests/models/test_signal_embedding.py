"""From a single-channel signal to one vector."""

from __future__ import annotations

import torch

from braindecode_pars import PatchEncoder
from braindecode_pars.models import embed_signals


@torch.no_grad()
def test_a_signal_is_the_mean_of_its_features_over_time():
    encoder = PatchEncoder(100, 16, 1, 2, 24).double().eval()
    x = torch.randn(3, 650, dtype=torch.float64)  # half a patch is left over
    for signal, embedded in zip(x, embed_signals(encoder, x), strict=True):
        signal = (signal - signal.mean()) / signal.std(correction=0)
        angles = torch.arange(6.0)[:, None] / 10_000 ** (torch.arange(0, 16, 2) / 16)
        positions = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        tokens = encoder.tokenize(signal[:600].reshape(1, 6, 100)) + positions
        torch.testing.assert_close(embedded, encoder(tokens)[0].mean(0), atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_a_layer_is_the_mean_of_the_output_of_its_block():
    encoder = PatchEncoder(100, 16, 2, 2, 24).double().eval()
    x = torch.randn(3, 600, dtype=torch.float64)
    for signal, embedded in zip(x, embed_signals(encoder, x, layer=1), strict=True):
        signal = (signal - signal.mean()) / signal.std(correction=0)
        angles = torch.arange(6.0)[:, None] / 10_000 ** (torch.arange(0, 16, 2) / 16)
        positions = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        tokens = encoder.tokenize(signal.reshape(1, 6, 100)) + positions
        torch.testing.assert_close(
            embedded, encoder.blocks[0](tokens)[0].mean(0), atol=1e-6, rtol=1e-5
        )
    assert torch.equal(embed_signals(encoder, x), embed_signals(encoder, x, layer=2))
