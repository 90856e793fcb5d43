"""Ratios of two things measured in one run, printed; a bound fails only where noise cannot.

Run with ``pytest tests/benchmarks -s``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
from torch import nn

from braindecode_pars import PARSNet
from braindecode_pars.models import embed_signals
from braindecode_pars.pretext import MAE, MP3, PARS, DropPos
from braindecode_pars.pretext.pairwise import CrossAttentionDecoder
from braindecode_pars.tokens import extract_patches, instance_norm


def ratio(slow: Callable[[], None], fast: Callable[[], None], rounds: int) -> float:
    """Fastest of some rounds of ``slow`` in units of the fastest of ``fast``, side by side.

    Neighbours on a shared machine only ever add time. Each runs once unmeasured before it is
    timed: the memory that the other has just given back would be fetched again at its expense.
    """

    def seconds(run: Callable[[], None]) -> float:
        run()
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    times = [(seconds(slow), seconds(fast)) for _ in range(rounds)]
    return min(of_slow for of_slow, _ in times) / min(of_fast for _, of_fast in times)


@pytest.fixture
def report(capsys):
    def show(what: str, value: float, goal: str) -> None:
        with capsys.disabled():
            print(f"\n  {what}: {value:.2f} ({goal})")

    return show


@pytest.fixture(scope="module")
def paper_step():
    """One training step's forward and backward at paper size, batch 16."""
    torch.manual_seed(0)
    task = PARS(6000)
    x = torch.randn(16, 6000)

    def step(method: str) -> Callable[[], None]:
        def run() -> None:
            task.decoder.method = method
            task.zero_grad()
            nn.functional.mse_loss(*task(x)).backward()

        return run

    def encoder_alone() -> None:
        task.zero_grad()
        starts = task.sample_starts(16)
        patches = extract_patches(instance_norm(x), starts, task.patch_size)
        task.encoder(task.encoder.tokenize(patches)).square().mean().backward()

    return step, encoder_alone


def test_paper_step_against_the_literal_decoder(paper_step, report):
    step, _ = paper_step
    value = ratio(step("literal"), step("factorized"), rounds=7)
    report("PARS step, literal / factorized", value, "aim 3.3, fails under 2.5")
    assert value > 2.5


def test_paper_step_against_the_bare_encoder(paper_step, report):
    step, encoder_alone = paper_step
    value = ratio(step("factorized"), encoder_alone, rounds=9)
    report("PARS step / bare encoder", value, "aim 1.13, fails over 1.3")
    assert value < 1.3


@pytest.mark.parametrize("kind", [MAE, MP3, DropPos])
def test_rivals_against_the_bare_encoder(kind, report):
    """On the tokens that are really encoded, with the same key mask."""
    torch.manual_seed(0)
    task = kind(6000)
    x = torch.randn(16, 6000)
    seen: list[tuple] = []
    hook = task.encoder.register_forward_pre_hook(lambda _, args: seen.append(args))
    task(x)
    hook.remove()
    n_tokens, key_mask = seen[0][0].shape[1], seen[0][1:]

    def step() -> None:
        task.zero_grad()
        task.criterion()(*task(x)).backward()

    def encoder_alone() -> None:
        task.zero_grad()
        patches = task.patches(x)[:, :n_tokens]
        task.encoder(task.encoder.tokenize(patches), *key_mask).square().mean().backward()

    value = ratio(step, encoder_alone, rounds=9)
    report(
        f"{kind.__name__} step / bare encoder on {n_tokens} tokens",
        value,
        "aim 1.2, fails over 1.4",
    )
    assert value < 1.4


def decoder_step(method: str) -> Callable[[], None]:
    torch.manual_seed(0)
    decoder = CrossAttentionDecoder(512, 8, method=method)
    features = torch.randn(16, 40, 512, requires_grad=True)

    def run() -> None:
        decoder.zero_grad()
        features.grad = None
        decoder(features[:, :32], features).square().mean().backward()

    return run


def test_decoder_alone(report):
    value = ratio(decoder_step("literal"), decoder_step("factorized"), rounds=7)
    report("decoder alone, literal / factorized", value, "aim 20, fails under 10")
    assert value > 10


def peak_bytes(run: Callable[[], None]) -> int:
    """Most memory that tensors held at once during a run, from the allocator's own events."""
    run()
    with torch.profiler.profile(profile_memory=True) as profile:
        run()
    held = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak


def test_decoder_memory(report):
    value = peak_bytes(decoder_step("factorized")) / peak_bytes(decoder_step("literal"))
    report("decoder peak memory, factorized / literal", value, "aim 0.125, fails over 0.2")
    assert value < 0.2


def test_dropping_channels_before_the_encoder(report):
    torch.manual_seed(0)
    net = PARSNet(n_outputs=5, n_chans=16, n_times=6000, sfreq=200.0, num_layers=4).train()
    x = torch.randn(4, 16, 6000)

    def before() -> None:
        net.zero_grad()
        net(x).square().mean().backward()

    def after() -> None:
        net.zero_grad()
        keep = net._kept_channels(x, None)
        spatial = embed_signals(net.encoder, x.flatten(0, 1)).unflatten(0, x.shape[:2])
        query = net.query_token.expand(len(x), 1, -1)
        pooled = net.spatial_attention(query, spatial, keep).squeeze(1)
        net.final_layer(pooled).square().mean().backward()

    value = ratio(after, before, rounds=9)
    report("PARSNet step, drop after / before the encoder", value, "aim 1.8, fails under 1.5")
    assert value > 1.5
