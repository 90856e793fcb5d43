"""Tasks on removed patches: predictions come from the visible patches alone."""

from __future__ import annotations

import pytest
import torch
from support.pretext_contract import SIZES

from braindecode_pars.pretext import MAE, SpectralMAE
from braindecode_pars.pretext.masked import MaskedGridTask


@torch.no_grad()
def test_removed_patches_do_not_matter():
    task = MaskedGridTask(1000, 100, mask_ratio=0.3, n_outputs=7, **SIZES)
    patches = torch.randn(4, 10, 100)
    order = task.random_order(patches)
    expected = task.reconstruct(patches, order)
    assert expected.shape == (4, 10, 7)
    hidden = patches.clone()
    for b in range(4):
        hidden[b, order[b, :3]] = torch.nan
    assert torch.equal(task.reconstruct(hidden, order), expected)


def test_both_tasks_have_the_same_parts():
    """Encoder, mask token, one transformer layer and a linear layer: a comparison of targets."""
    mae, spectral = (
        dict(kind(1000, 100, **SIZES).named_parameters()) for kind in (MAE, SpectralMAE)
    )
    assert list(mae) == list(spectral)
    differing = {name for name in mae if mae[name].shape != spectral[name].shape}
    assert differing == {"head.weight", "head.bias"}


@pytest.mark.parametrize("kind", [MAE, SpectralMAE])
def test_a_mask_ratio_that_does_not_fit(kind):
    with pytest.raises(ValueError, match=r"mask_ratio=1 of 10 patches removes 10, but it must be"):
        kind(1000, 100, mask_ratio=1, **SIZES)
