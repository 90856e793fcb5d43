"""Positions of electrodes and their code."""

from __future__ import annotations

import itertools
import math

import mne
import numpy as np
import pytest
import torch

from braindecode_pars.models.electrodes import HEAD_RADIUS, ElectrodeCode, electrode_positions


def positions(*names: str) -> np.ndarray:
    return electrode_positions(mne.create_info(list(names), 100.0, "eeg")["chs"])


@pytest.mark.parametrize("name", ["C3", "c3", "C3.", "EEG C3-REF", "EEG C3-LE", "C3-M2", "C3-A2"])
def test_all_names_of_an_electrode_give_the_same_position(name):
    np.testing.assert_array_equal(positions(name), positions("C3"))


def test_left_is_left_and_front_is_front():
    left, right, front, back = positions("C3", "C4", "Fpz", "Oz")
    assert left[0] < 0 < right[0]
    assert front[1] > 0 > back[1]
    assert 0.05 < np.linalg.norm(left) < 0.15  # metres


@pytest.mark.parametrize("name", ["Fpz-Cz", "C3-C4", "ELA", "A1", "M2", "EEG 001", "EOG"])
def test_bipolar_ear_and_unknown_channels_have_no_position(name):
    assert np.isnan(positions(name)).all()


def test_unknown_names_use_the_digitised_location():
    info = mne.create_info(["E17", "C3"], 100.0, "eeg")
    for ch in info["chs"]:
        ch["loc"][:3] = [0.01, 0.02, 0.09]
    found = electrode_positions(info["chs"])
    np.testing.assert_allclose(found[0], [0.01, 0.02, 0.09], rtol=1e-6)
    np.testing.assert_array_equal(found[1], positions("C3")[0])
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


def test_other_precisions():
    position = torch.tensor([[-0.05, 0.01, 0.08]])
    for dtype in (torch.bfloat16, torch.float64):
        for oblique in (False, True):
            assert ElectrodeCode(8, oblique=oblique).to(dtype)(position).dtype == dtype


@torch.no_grad()
def test_unknown_electrodes_share_one_learned_code():
    code = ElectrodeCode(8)
    unknown = torch.tensor([[float("nan")] * 3, [0.0, 0.0, 0.0]])
    assert torch.equal(code(unknown), code.unknown_token.expand(2, -1))
