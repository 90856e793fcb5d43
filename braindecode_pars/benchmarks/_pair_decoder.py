"""Time and memory of the decoder of PARS, without the encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from braindecode_pars.benchmarks._measuring import Row, peak_bytes, ratio
from braindecode_pars.pretext.pairwise import CrossAttentionDecoder

__all__ = ["decoder_memory", "decoder_time"]


def decoder_step(method: str, n_patches: int = 40, batch_size: int = 16) -> Callable[[], None]:
    """Return a forward and backward pass at the paper's size, with 80 % of the patches masked."""
    torch.manual_seed(0)
    decoder = CrossAttentionDecoder(512, 8, method=method)
    features = torch.randn(batch_size, n_patches, 512, requires_grad=True)

    def run() -> None:
        decoder.zero_grad()
        features.grad = None
        queries = features[:, : round(0.8 * n_patches)]
        decoder(queries, features).square().mean().backward()

    return run


def decoder_time() -> Iterator[Row]:
    """Time forward and backward passes at the paper's size and batch size 16."""
    value = ratio(decoder_step("literal"), decoder_step("factorized"), 4)
    yield Row("decoder alone, literal / factorised", value, aim=20, under=10)


def decoder_memory() -> Iterator[Row]:
    """Measure the peak memory of a forward and backward pass.

    The literal decoder is measured only with numbers of patches that fit into a laptop's memory.
    """
    factorized = {n: peak_bytes(decoder_step("factorized", n)) for n in (40, 80, 160, 240)}
    literal = {n: peak_bytes(decoder_step("literal", n)) for n in (40, 80)}
    value = factorized[40] / literal[40]
    yield Row("decoder's peak memory, factorised / literal", value, aim=0.125, over=0.2)
    for method, peaks in (("factorised", factorized), ("literal", literal)):
        for n_patches, peak in peaks.items():
            what = f"decoder's peak memory, {method}, {n_patches} patches, batch 16"
            yield Row(what, peak / 2**20, "MiB")
