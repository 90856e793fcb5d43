"""Amplitudes of channels relative to their window."""

from __future__ import annotations

import math

import pytest
import torch

from braindecode_pars.models import AmplitudeCode, relative_amplitude
from braindecode_pars.models.electrodes import LIMIT


def slow(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The same in plain loops, for windows without a flat channel."""
    result = torch.zeros(x.shape[:2], dtype=x.dtype)
    for b, window in enumerate(x):
        logs = {}
        for c, signal in enumerate(window):
            if mask[b, c]:
                mean = sum(signal.tolist()) / len(signal)
                variance = sum((v - mean) ** 2 for v in signal.tolist()) / len(signal)
                logs[c] = math.log(math.sqrt(variance))
        for c, log in logs.items():
            relative = log - sum(logs.values()) / len(logs)
            result[b, c] = min(max(relative, -LIMIT), LIMIT)
    return result


@pytest.fixture
def x() -> torch.Tensor:
    gains = torch.tensor([1.0, 3.0, 0.2, 1000.0])  # the last one is beyond the limit
    offsets = torch.tensor([0.0, 50.0, -3.0, 7.0])
    noise = torch.randn(3, 4, 60, dtype=torch.float64)
    return noise * gains[:, None] + offsets[:, None]


def test_against_plain_loops(x):
    everything = torch.ones(3, 4, dtype=torch.bool)
    torch.testing.assert_close(relative_amplitude(x), slow(x, everything))
    mask = torch.tensor([[True] * 4, [True, False, True, True], [False, True, True, False]])
    torch.testing.assert_close(relative_amplitude(x, mask), slow(x, mask))
    assert (relative_amplitude(x, mask)[~mask] == 0).all()


@pytest.mark.parametrize("unit", [1e-6, 1e6, 1e-15, 1e15])
def test_the_unit_does_not_matter(x, unit):
    """Beyond the range of EEG too: the variance would underflow or overflow in float32."""
    x[1, 2] = 0.0
    x = x.float()
    torch.testing.assert_close(relative_amplitude(unit * x), relative_amplitude(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(x, dtype):
    found = relative_amplitude((1e-3 * x).to(dtype))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, relative_amplitude(x).float(), atol=0.2, rtol=0)


def test_a_missing_channel_is_an_absent_one(x):
    mask = torch.tensor([[True, True, False, True]]).expand(3, -1)
    bad = x.masked_fill(~mask[..., None], torch.nan)
    kept = [0, 1, 3]
    assert torch.equal(relative_amplitude(bad, mask)[:, kept], relative_amplitude(x[:, kept]))


def test_flat_channels():
    x = torch.randn(3, 4, 60)
    x[0, 1] = 25.0  # one flat channel
    x[1] = 3.0  # all of them
    found = relative_amplitude(x)
    assert found[0, 1] == -LIMIT
    # A flat channel is no part of the reference.
    torch.testing.assert_close(found[0, [0, 2, 3]], relative_amplitude(x[:1, [0, 2, 3]])[0])
    assert (found[1] == 0).all()
    assert found.isfinite().all()


def test_the_only_channel_has_zero():
    assert (relative_amplitude(torch.randn(5, 1, 60)) == 0).all()
    mask = torch.tensor([[False, True, False]]).expand(5, -1)
    assert (relative_amplitude(torch.randn(5, 3, 60), mask) == 0).all()


def test_gradients_are_finite(x):
    x[0, 1] = 25.0
    x.requires_grad_()
    relative_amplitude(x).square().sum().backward()
    assert x.grad.isfinite().all()


@torch.no_grad()
def test_the_code_of_zero_is_zero_and_the_code_is_not_linear():
    code = AmplitudeCode(8)
    assert (code(torch.zeros(2, 1)) == 0).all()
    opposite = code(torch.tensor([[1.5], [-1.5]]))
    assert opposite.sum(dim=0).abs().max() > 0.01
    with pytest.raises(ValueError, match="embed_dim"):
        AmplitudeCode(0)
