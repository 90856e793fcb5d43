"""Electrode positions and their encoding, spatial filters and relative amplitudes."""

from __future__ import annotations

import itertools
import math

import mne
import numpy as np
import pytest
import torch

from braindecode_pars.models import AmplitudeCode, SpatialFilter, relative_amplitude
from braindecode_pars.models.electrodes import (
    HEAD_RADIUS,
    LIMIT,
    ElectrodeCode,
    electrode_positions,
)

NAMES = ("Fp1", "Fp2", "C3", "Cz", "C4", "O1", "O2")


def positions(*names: str) -> np.ndarray:
    return electrode_positions(mne.create_info(list(names), 100.0, "eeg")["chs"])


def where(*names: str) -> torch.Tensor:
    return torch.from_numpy(positions(*names)).double()


@pytest.mark.parametrize("name", ["C3", "c3", "C3.", "EEG C3-REF", "EEG C3-LE", "C3-M2", "C3-A2"])
def test_all_names_of_an_electrode_give_the_same_position(name):
    np.testing.assert_array_equal(positions(name), positions("C3"))


def test_left_is_left_and_front_is_front():
    left, right, front, back = positions("C3", "C4", "Fpz", "Oz")
    assert left[0] < 0 < right[0]
    assert front[1] > 0 > back[1]
    assert 0.05 < np.linalg.norm(left) < 0.15  # meters


@pytest.mark.parametrize("name", ["Fpz-Cz", "C3-C4", "ELA", "A1", "M2", "EEG 001", "EOG"])
def test_bipolar_ear_and_unknown_channels_have_no_position(name):
    assert np.isnan(positions(name)).all()


def test_unknown_names_use_the_digitized_location():
    info = mne.create_info(["E17", "C3"], 100.0, "eeg")
    for ch in info["chs"]:
        ch["loc"][:3] = [0.01, 0.02, 0.09]
    actual = electrode_positions(info["chs"])
    np.testing.assert_allclose(actual[0], [0.01, 0.02, 0.09], rtol=1e-6)
    np.testing.assert_array_equal(actual[1], positions("C3")[0])
    info["chs"][0]["loc"][:3] = 0  # not set, as some readers of MNE leave it
    assert np.isnan(electrode_positions(info["chs"])[0]).all()


@torch.no_grad()
def test_code_is_sines_and_cosines_then_a_linear_layer():
    code = ElectrodeCode(8)
    position = torch.tensor([[-0.05, 0.01, 0.08]])
    # All sines of a coordinate come before its cosines.
    waves = [
        [
            f(v / HEAD_RADIUS * math.pi / 2 * 2**octave)
            for f in (math.sin, math.cos)
            for octave in range(4)
        ]
        for v in position[0].tolist()
    ]
    expected = code.project(torch.tensor(waves).flatten()[None])
    torch.testing.assert_close(code(position), expected)


@torch.no_grad()
def test_oblique_waves_run_along_the_diagonals_too():
    code = ElectrodeCode(8, oblique=True)
    position = torch.tensor([-0.05, 0.01, 0.08])
    directions = {tuple(d.sign().int().tolist()) for d in code.directions}
    opposite = {tuple(-v for v in d) for d in directions}
    assert len(directions) == 13
    assert directions | opposite | {(0, 0, 0)} == set(itertools.product((-1, 0, 1), repeat=3))
    waves = []
    for direction in code.directions:
        along = sum(d * v for d, v in zip(direction.tolist(), position.tolist(), strict=True))
        angles = [along / HEAD_RADIUS * math.pi / 2 * 2**octave for octave in range(3)]
        waves += [*map(math.sin, angles), *map(math.cos, angles)]
    torch.testing.assert_close(code(position[None]), code.project(torch.tensor(waves))[None])


@torch.no_grad()
def test_unknown_electrodes_share_one_learned_code():
    code = ElectrodeCode(8)
    unknown = torch.tensor([[float("nan")] * 3, [0.0, 0.0, 0.0]])
    assert torch.equal(code(unknown), code.unknown_token.expand(2, -1))


# Spatial filters


@pytest.fixture
def pool() -> SpatialFilter:
    return SpatialFilter(n_features=5, n_gains=3).double()


@pytest.fixture
def features() -> torch.Tensor:
    return torch.randn(4, len(NAMES), 5, dtype=torch.float64)


def slow_filter(pool, features, positions, keep) -> torch.Tensor:
    """The same in plain loops."""
    gains = pool.gains(positions).reshape(len(positions), 3, 5)
    result = torch.zeros(len(features), 15, dtype=torch.float64)
    for b in range(len(features)):
        channels = [c for c in range(len(positions)) if keep[b, c]]
        for k in range(3):
            for f in range(5):
                products = [gains[c, k, f] * features[b, c, f] for c in channels]
                result[b, k * 5 + f] = sum(products) / len(channels)
    return result


@torch.no_grad()
def test_a_filter_against_plain_loops(pool, features):
    places, keep = where(*NAMES), torch.rand(4, len(NAMES)) > 0.4
    keep[:, 0] = True
    everything = torch.ones_like(keep)
    torch.testing.assert_close(
        pool.pool(features, places), slow_filter(pool, features, places, everything)
    )
    pooled = slow_filter(pool, features, places, keep)
    torch.testing.assert_close(pool.pool(features, places, keep), pooled)
    # Layer norm.
    centered = pooled - pooled.mean(dim=1, keepdim=True)
    normed = centered / (centered.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
    expected = normed * pool.norm.weight + pool.norm.bias
    torch.testing.assert_close(pool(features, places, keep), expected)


def test_gains_of_the_10_10_system_are_linearly_independent():
    names = mne.channels.make_standard_montage("biosemi64").ch_names
    codes = SpatialFilter(5).gains.features(where(*names))
    assert torch.linalg.matrix_rank(codes) == 64


# Amplitudes


def slow_amplitude(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
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


def test_relative_amplitude_against_plain_loops(x):
    everything = torch.ones(3, 4, dtype=torch.bool)
    torch.testing.assert_close(relative_amplitude(x), slow_amplitude(x, everything))
    mask = torch.tensor([[True] * 4, [True, False, True, True], [False, True, True, False]])
    torch.testing.assert_close(relative_amplitude(x, mask), slow_amplitude(x, mask))
    assert (relative_amplitude(x, mask)[~mask] == 0).all()


@pytest.mark.parametrize("unit", [1e-6, 1e6, 1e-15, 1e15])
def test_the_unit_does_not_matter(x, unit):
    """Beyond the range of EEG too: the variance would underflow or overflow in float32."""
    x[1, 2] = 0.0
    x = x.float()
    torch.testing.assert_close(relative_amplitude(unit * x), relative_amplitude(x))


def test_a_missing_channel_has_no_amplitude(x):
    mask = torch.tensor([[True, True, False, True]]).expand(3, -1)
    bad = x.masked_fill(~mask[..., None], torch.nan)
    present = [0, 1, 3]
    assert torch.equal(relative_amplitude(bad, mask)[:, present], relative_amplitude(x[:, present]))


def test_flat_channels():
    x = torch.randn(3, 4, 60)
    x[0, 1] = 25.0  # one flat channel
    x[1] = 3.0  # all of them
    actual = relative_amplitude(x)
    assert actual[0, 1] == -LIMIT
    # A flat channel is no part of the reference.
    torch.testing.assert_close(actual[0, [0, 2, 3]], relative_amplitude(x[:1, [0, 2, 3]])[0])
    assert (actual[1] == 0).all()
    assert actual.isfinite().all()


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
