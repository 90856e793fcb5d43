"""PARS equals a slow recomputation, and has its defining properties."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
import torch
from scipy import signal
from support.pretext_contract import SIZES, SMALL, PretextContract

from braindecode_pars.pretext import PARS
from braindecode_pars.pretext.pars import relative_shifts
from braindecode_pars.tokens import extract_patches


class TestPARS(PretextContract):
    task = PARS
    noise_arguments: ClassVar[dict] = dict(overlap=False)

    def ignore_signal(self, task):
        size = task.n_masked
        task.predict_shifts = lambda x, starts: torch.zeros(len(x), size, size)


def chirps(n: int) -> torch.Tensor:
    """Ten seconds at 100 Hz whose frequency rises from 3 to 15 Hz, with noise.

    Every patch tells its time, and no two patches fit together.
    """
    times = torch.arange(1000) / 100
    phases = 2 * math.pi * torch.rand(n, 1)
    return (2 * math.pi * (3 * times + 0.6 * times**2) + phases).sin() + 0.5 * torch.randn(n, 1000)


@pytest.mark.slow
def test_order_is_learned_where_there_is_order():
    """The positive control: without overlap, ends that touch or drift, the order of chirps."""
    options = dict(overlap=False, min_gap=10, detrend=True, tokenizer="spectral")
    task = PARS(1000, 100, **options, **SMALL)
    PretextContract().train(task, chirps(3000), steps=100, batch_size=32)
    with torch.no_grad():
        loss = task.criterion()(*task(chirps(500))).item() / task.chance_loss()
    assert loss < 0.3


def test_published_sizes():
    task = PARS(6000)
    assert (task.n_patches, task.n_masked) == (40, 32)
    assert task.mask_token.shape == (512,)
    assert sum(p.numel() for p in task.encoder.parameters()) + 512 == 12_728_320
    assert sum(p.numel() for p in task.decoder.parameters()) == 1_575_937
    assert task.chance_loss() == pytest.approx(0.1509, abs=5e-5)
    assert PARS(800, **SIZES).n_patches == 5  # a 4-s trial
    assert PARS(6000, sampling="grid", **SIZES).n_patches == 30


def test_shifts_against_loops():
    starts = torch.tensor([[0, 5, 90], [30, 30, 2]])
    shifts = relative_shifts(starts, 100)
    for b in range(2):
        for j in range(3):
            for k in range(3):
                expected = (starts[b, j].item() - starts[b, k].item()) / 100
                assert shifts[b, j, k].item() == pytest.approx(expected)


@torch.no_grad()
@pytest.mark.parametrize("decoder", ["cross_attention", "mlp"])
def test_against_a_slow_plain_recomputation(decoder):
    """Sections 2.1 to 2.3 of the paper, for one example, one patch and one pair at a time."""
    task = PARS(500, 50, decoder=decoder, embed_dim=16, num_layers=2, num_heads=2, mlp_dim=24)
    task = task.double()
    x = torch.randn(2, 500, dtype=torch.float64) * 1e-5
    starts = task.sample_starts(2)
    prediction = task.predict_shifts(x, starts)
    for b in range(2):
        signal = x[b].numpy()
        signal = (signal - signal.mean()) / np.sqrt(signal.var() + 1e-20)
        tokens = []
        for n in range(task.n_patches):
            patch = torch.from_numpy(signal[starts[b, n] : starts[b, n] + 50])
            token = task.encoder.tokenizer.weight @ patch + task.encoder.tokenizer.bias
            if n < task.n_masked:
                position = task.mask_token
            else:
                time = starts[b, n].item() / 50
                angles = [time / 10_000 ** (i / 16) for i in range(0, 16, 2)]
                position = torch.tensor([f(a) for a in angles for f in (math.sin, math.cos)])
            tokens.append(token + position)
        y = task.encoder(torch.stack(tokens)[None])[0]
        for j in range(task.n_masked):
            for k in range(task.n_masked):
                pair = torch.cat([y[j], y[k]])
                if decoder == "mlp":
                    expected = task.decoder.head(torch.relu(task.decoder.hidden(pair)))
                else:
                    query = task.decoder.pair_query(pair)[None, None]
                    attended = task.decoder.attention(query, y[None])
                    expected = task.decoder.head(attended[0, 0])
                # sinusoidal_positions works in float32, as training does
                assert prediction[b, j, k].item() == pytest.approx(expected.item(), abs=1e-5)


@torch.no_grad()
def test_the_position_of_a_masked_patch_is_not_used():
    """In a periodic signal, a patch that moves by whole periods has the same content."""
    task = PARS(1000, 50, **SIZES).eval()
    x = torch.randn(4, 100).repeat(1, 10)
    starts = torch.randint(0, 100, (4, task.n_patches))
    before = task.predict_shifts(x, starts)

    masked_moved = starts.clone()
    masked_moved[:, : task.n_masked] += 800
    torch.testing.assert_close(task.predict_shifts(x, masked_moved), before, atol=1e-6, rtol=1e-5)

    shown_moved = starts.clone()
    shown_moved[:, task.n_masked :] += 800
    assert (task.predict_shifts(x, shown_moved) - before).abs().max() > 1e-4


def test_with_ratio_one_all_patches_are_masked():
    task = PARS(1000, 100, position_mask_ratio=1.0, **SIZES)
    prediction, target = task(torch.randn(3, 1000))
    assert prediction.shape == target.shape == (3, task.n_patches, task.n_patches)
    task.criterion()(prediction, target).backward()
    assert task.mask_token.grad.abs().max() > 0


def test_masked_patches_differ_between_examples():
    task = PARS(1000, 100, sampling="grid", **SIZES)
    masked = task.sample_starts(200)[:, : task.n_masked].sort(dim=1).values
    assert len(masked.unique(dim=0)) > 20  # of C(10, 8) = 45


def test_the_chance_loss_of_three_starts_by_hand():
    """The squared difference of two of 0, 1, 2 is 4 / 3 on average; half of the pairs are equal."""
    task = PARS(4, 2, n_patches=4, position_mask_ratio=0.5, **SIZES)
    assert task.n_masked == 2
    assert task.chance_loss() == pytest.approx(4 / 3 / 4**2 / 2)


@pytest.mark.parametrize(
    "arguments",
    [{}, dict(sampling="grid"), dict(overlap=False, n_patches=20), dict(n_times=800, n_patches=5)],
)
def test_chance_loss_is_the_mean_squared_shift(arguments):
    task = PARS(**{"n_times": 3000, "patch_size": 100, **SIZES, **arguments})
    starts = task.sample_starts(200_000 // task.n_patches)[:, : task.n_masked]
    expected = relative_shifts(starts, task.n_times).square().mean().item()
    assert task.chance_loss() == pytest.approx(expected, rel=0.02)


def test_detrended_patches_reach_the_tokenizer():
    task = PARS(1000, 100, detrend=True, **SIZES)
    seen = []
    task.encoder.tokenizer.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    x, starts = torch.randn(2, 1000) + torch.linspace(-5, 5, 1000), task.sample_starts(2)
    task.predict_shifts(x, starts)
    expected = signal.detrend(extract_patches(task.normalized(x), starts, 100).numpy(), axis=-1)
    np.testing.assert_allclose(seen[0].numpy(), expected, atol=1e-5)


def test_starts_equal_version_0_1_for_the_same_seed():
    torch.manual_seed(3)
    task = PARS(1000, 100, embed_dim=4, num_layers=1, num_heads=1, mlp_dim=4)
    assert task.sample_starts(1)[0, :6].tolist() == [83, 642, 577, 158, 330, 66]


def _noise_loss(**arguments) -> float:
    """Held-out loss relative to chance after training on independent noise."""
    task = PARS(24, 8, **SIZES, **arguments)
    optimizer = torch.optim.AdamW(task.parameters(), lr=3e-3)
    steps = 600
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1.0, (step + 1) / 50) * (1 - step / steps)
        # New noise in every step, so that nothing can be memorized.
        loss = task.criterion()(*task(torch.randn(64, 24)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        prediction, target = task(torch.randn(4000, 24))
    return (prediction - target).square().mean().item() / task.chance_loss()


@pytest.mark.slow
def test_on_noise_without_overlap_the_loss_stays_at_chance():
    assert _noise_loss(overlap=False, n_patches=2) >= 0.98


@pytest.mark.slow
def test_on_noise_with_overlap_the_loss_is_below_chance(record_property, capsys):
    """A model can find shifts from samples that two patches share. The test prints the loss."""
    relative = _noise_loss(n_patches=12)
    record_property("noise_loss_relative_with_overlap", relative)
    with capsys.disabled():
        print(f"\n  PARS on white noise, overlapping patches: loss {relative:.3f} of chance")
    assert relative < 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(n_times=150), "150 samples"),
        (dict(position_mask_ratio=0.0), "position_mask_ratio"),
        (dict(position_mask_ratio=1.2), "position_mask_ratio"),
        (dict(position_mask_ratio=0.02), "only 1 of"),
        (dict(n_patches=1), "only 1 of"),
        (dict(n_times=200, n_patches=8), "one patch"),
        (dict(sampling="uniform"), "uniform"),
        (dict(sampling="grid", n_patches=40), "30 patches"),
        (dict(overlap=False, n_patches=40), "at most 30"),
        (dict(overlap=False, n_patches=25, min_gap=100), "at most 20"),
        (dict(min_gap=10), "overlap=False"),
        (dict(sampling="grid", min_gap=10, n_patches=30), "28 patches"),
        (dict(sampling="grid", min_gap=6000), "only 1 of"),
        (dict(overlap=False, min_gap=-1), "min_gap"),
        (dict(decoder="gru"), "gru"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        PARS(**{"n_times": 6000, **SIZES, **arguments})


# Places of the patches

TINY = dict(embed_dim=4, num_layers=1, num_heads=1, mlp_dim=4, position_mask_ratio=1.0)


@pytest.mark.parametrize(("n_times", "gap"), [(2560, 16), (2560, 0), (1000, 128), (300, 30)])
def test_a_grid_with_gaps_has_all_patches_that_fit(n_times, gap):
    expected = list(range(0, n_times - 128 + 1, 128 + gap))
    for n_patches in (None, len(expected)):
        task = PARS(n_times, 128, n_patches=n_patches, sampling="grid", min_gap=gap, **TINY)
        assert task.n_patches == len(expected)
        for starts in task.sample_starts(20):
            assert starts.sort().values.tolist() == expected


def test_the_default_number_of_patches():
    def default(n_times, **arguments):
        return PARS(n_times, 128, **arguments, **TINY).n_patches

    assert (default(30 * 128), default(30 * 128, overlap=False)) == (40, 20)
    # With wide gaps, as many as fit.
    assert default(20 * 128, overlap=False, min_gap=16) == 13
    assert default(20 * 128, overlap=False, min_gap=128) == 10


def test_only_overlapping_patches_are_less_than_a_patch_apart():
    for arguments, shortest in ((dict(overlap=True), 0), (dict(overlap=False, min_gap=5), 105)):
        starts = PARS(1000, 100, n_patches=8, **arguments, **TINY).sample_starts(2000)
        assert starts.sort(dim=1).values.diff(dim=1).min() == shortest


def test_draws_follow_the_generator():
    for sampling in ("random", "grid"):
        task = PARS(1000, 100, n_patches=10, sampling=sampling, **TINY)
        first, second = (
            task.sample_starts(3, generator=torch.Generator().manual_seed(1)) for _ in range(2)
        )
        assert torch.equal(first, second)
        assert first.shape == (3, 10)
