"""Time of fine-tuning when channels are dropped before the encoder, not after it."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from braindecode_pars.benchmarks._measuring import Row, ratio
from braindecode_pars.models import PARSNet, embed_signals

__all__ = ["channel_drop"]


def channel_drop() -> Iterator[Row]:
    """Time forward and backward passes of PARSNet with four layers and batch size 4."""
    torch.manual_seed(0)
    net = PARSNet(n_outputs=5, n_chans=16, n_times=6000, sfreq=200.0, num_layers=4).train()
    x = torch.randn(4, 16, 6000)

    def before() -> None:
        net.zero_grad()
        net(x).square().mean().backward()

    def after() -> None:
        # The forward pass of PARSNet, but it encodes all channels.
        net.zero_grad()
        keep = net._kept_channels(x, None)
        spatial = embed_signals(net.encoder, x.flatten(0, 1)).unflatten(0, x.shape[:2])
        # spatial: (batch, n_chans, embed_dim)
        query = net.query_token.expand(len(x), 1, -1)
        pooled = net.spatial_attention(query, spatial, keep).squeeze(1)
        net.final_layer(pooled).square().mean().backward()

    what = "PARSNet step, 16 channels, p = 0.5, dropping after / before the encoder"
    yield Row(what, ratio(after, before, 5), aim=1.8, under=1.5)
