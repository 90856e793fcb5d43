"""SpaceTimePARS: shifts in space and time between tokens of several channels."""

from __future__ import annotations

import mne
import numpy as np
import pytest
import torch

from braindecode_pars.models import electrode_positions
from braindecode_pars.pretext import PARS, SpaceTimePARS
from braindecode_pars.pretext.pairwise import CrossAttentionDecoder
from braindecode_pars.pretext.pars import RelativeShiftLoss

SIZES = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16)
N_TIMES, PATCH = 200, 20
NAMES = ("Fp1", "Fp2", "F3", "F4", "C3", "C4", "O1", "O2")
WHERE = torch.from_numpy(electrode_positions(mne.create_info(list(NAMES), 100.0, "eeg")["chs"]))


def new_task(**arguments) -> SpaceTimePARS:
    return SpaceTimePARS(N_TIMES, PATCH, **{**SIZES, **arguments})


def windows(batch: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    keep = torch.ones(batch, len(NAMES), dtype=torch.bool)
    return torch.randn(batch, len(NAMES), N_TIMES), WHERE.expand(batch, -1, -1), keep


def starts_of(task: SpaceTimePARS, keep: torch.Tensor) -> torch.Tensor:
    return task.sample_starts(keep.numel()).unflatten(0, keep.shape)


@pytest.mark.parametrize("decoder", ["cross_attention", "mlp"])
@torch.no_grad()
def test_one_channel_in_time_is_pars(decoder):
    task = new_task(axes="time", decoder=decoder)
    single = PARS(N_TIMES, PATCH, decoder=decoder, **SIZES)
    single.load_state_dict({name: task.state_dict()[name] for name in single.state_dict()})
    x = torch.randn(4, N_TIMES)
    torch.manual_seed(1)
    expected, shifts = single(x)
    torch.manual_seed(1)
    actual, target = task(x[:, None], WHERE[None, :1].expand(4, -1, -1))
    assert actual.shape == (*expected.shape, 1)
    torch.testing.assert_close(target[..., 0], shifts)
    torch.testing.assert_close(actual[..., 0], expected, rtol=0, atol=1e-6)
    # Relative to the same chance, so is the loss.
    relative = (expected - shifts).square().mean() / shifts.square().mean()
    torch.testing.assert_close(task.criterion()(actual, target), relative)


@pytest.mark.parametrize(("n_chans", "n_hidden"), [(1, 0), (2, 2), (4, 2), (12, 3)])
def test_a_quarter_of_the_electrodes_is_hidden_and_at_least_a_pair(n_chans, n_hidden):
    hidden = new_task(position_mask_ratio=0.25).hidden_electrodes(torch.ones(50, n_chans).bool())
    assert hidden.sum(dim=1).tolist() == [n_hidden] * 50


@torch.no_grad()
def test_targets_are_differences_of_positions(monkeypatch):
    task = new_task()
    starts, asked = [], []
    draw = task.sample_starts
    monkeypatch.setattr(
        task, "sample_starts", lambda *a, **k: starts.append(draw(*a, **k)) or starts[0]
    )
    predict = task.predict_shifts
    monkeypatch.setattr(
        task, "predict_shifts", lambda f, k, c, p: asked.append((c, p)) or predict(f, k, c, p)
    )
    hide = task.hidden_electrodes
    hidden = []
    monkeypatch.setattr(task, "hidden_electrodes", lambda k: hidden.append(hide(k)) or hidden[0])
    x, where, keep = windows(2)
    prediction, target = task(x, where, keep)
    ((channels, patches),) = asked
    drawn_starts = starts[0].unflatten(0, keep.shape)
    assert prediction.shape == target.shape == (2, channels.shape[1], channels.shape[1], 4)
    for b in range(2):
        # Only tokens that have lost their electrode and their time are asked for.
        assert hidden[0][b, channels[b]].all()
        assert patches[b].max() < task.n_masked
        tokens = zip(channels[b].tolist(), patches[b].tolist(), strict=True)
        places = [[*WHERE[c] / 0.095, drawn_starts[b, c, p] / N_TIMES] for c, p in tokens]
        expected = np.array(places)[:, None] - np.array(places)
        np.testing.assert_allclose(target[b], expected, atol=1e-5)
    torch.testing.assert_close(target, -target.transpose(1, 2))


def test_masked_positions_are_not_used():
    task = new_task()
    x, where, keep = windows()
    where = where.clone().requires_grad_()
    starts = starts_of(task, keep)
    hidden = task.hidden_electrodes(keep)
    assert hidden.sum(dim=1).tolist() == [6, 6, 6]  # .8 of 8
    task.features(x, starts, where, keep, hidden).sum().backward()
    seen = where.grad.abs().sum(dim=-1) > 0
    assert torch.equal(seen, ~hidden)
    # Where a signal repeats, hidden patches at another time give the same features.
    periodic = torch.randn(3, len(NAMES), 1, PATCH).expand(-1, -1, N_TIMES // PATCH, -1).flatten(2)
    on_grid = torch.randint(5, (3, len(NAMES), task.n_patches)) * PATCH
    later = on_grid.clone()
    later[:, :, : task.n_masked] += 3 * PATCH
    with torch.no_grad():
        actual = [task.features(periodic, s, where, keep, hidden) for s in (on_grid, later)]
    torch.testing.assert_close(*actual)


@torch.no_grad()
def test_a_missing_channel_changes_nothing():
    task = new_task(axes="space_time").eval()
    x, where, keep = windows()
    keep[:, [1, 5]] = False
    x[:, [1, 5]] = torch.nan
    x, where, keep = task.windows(x, where, keep)
    present = [0, 2, 3, 4, 6, 7]
    starts = starts_of(task, keep)
    hidden = torch.zeros(3, 8, dtype=torch.bool)
    hidden[:, [0, 2, 3]] = True
    actual = task.features(x, starts, where, keep, hidden)
    fewer = [each[:, present] for each in (where, keep, hidden)]
    expected = task.features(x[:, present], starts[:, present], *fewer)
    torch.testing.assert_close(actual[:, present], expected)
    channels, patches = torch.tensor([[0, 2, 3]] * 3), torch.tensor([[0, 1, 2]] * 3)
    of_fewer = torch.tensor([[0, 1, 2]] * 3)
    torch.testing.assert_close(
        task.predict_shifts(actual, keep, channels, patches),
        task.predict_shifts(expected, fewer[1], of_fewer, patches),
    )
    # Missing channels are never hidden, nor asked for.
    for _ in range(20):
        assert not task.hidden_electrodes(keep)[:, [1, 5]].any()


@pytest.mark.parametrize("axes", ["time", "space", "space_time"])
@torch.no_grad()
def test_the_loss_is_relative_to_chance_by_axis(axes):
    task = new_task(axes=axes)
    x, where, keep = windows(8)
    prediction, target = task(x, where, keep)
    loss = task.criterion()
    assert loss(torch.zeros_like(target), target).item() == pytest.approx(1, abs=1e-6)
    assert task.chance_loss() == 1
    parts = task.part_losses(prediction, target)
    assert tuple(parts) == task.axis_names
    by_hand = [
        np.mean(np.square((prediction - target).numpy()[..., axis]))
        / np.mean(np.square(target.numpy()[..., axis]))
        for axis in range(len(parts))
    ]
    np.testing.assert_allclose([part.item() for part in parts.values()], by_hand, rtol=1e-5)
    assert loss(prediction, target).item() == pytest.approx(np.mean(by_hand), rel=1e-5)


def test_unknown_electrodes_are_ignored_in_the_loss():
    task = new_task()
    x, where, keep = windows()
    where = where.clone()
    where[:, :3] = torch.nan
    prediction, target = task(x, where, keep)
    is_known = target.isfinite()
    assert is_known[..., 3].all()
    assert not is_known[..., 0].all()
    loss = task.criterion()(prediction, target)
    present = torch.where(is_known, prediction, torch.tensor(7.0))
    torch.testing.assert_close(task.criterion()(present, target), loss)
    loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in task.parameters())
    # No position is no shift: time alone counts.
    prediction, target = task(x)
    expected = RelativeShiftLoss()(prediction[..., 3:], target[..., 3:])
    torch.testing.assert_close(task.criterion()(prediction, target), expected)


@torch.no_grad()
def test_a_decoder_of_several_axes_is_several_decoders():
    decoder = CrossAttentionDecoder(16, 2, n_outputs=3).double()
    features = torch.randn(2, 9, 16, dtype=torch.float64)
    key_mask = torch.rand(2, 9) > 0.3
    shifts = decoder(features[:, :4], features, key_mask)
    decoder.method = "literal"
    torch.testing.assert_close(shifts, decoder(features[:, :4], features, key_mask))
    for axis in range(3):
        single_axis = CrossAttentionDecoder(16, 2).double()
        weights = dict(decoder.state_dict())
        weights |= {f"head.{n}": weights[f"head.{n}"][axis : axis + 1] for n in ("weight", "bias")}
        single_axis.load_state_dict(weights)
        for b in range(2):  # without the masked patches
            present = features[b : b + 1, key_mask[b]]
            torch.testing.assert_close(
                shifts[b, ..., axis], single_axis(features[b : b + 1, :4], present)[0]
            )


@pytest.mark.parametrize(
    ("arguments", "error"), [(dict(axes="head"), ValueError), (dict(sampling="grid"), TypeError)]
)
def test_arguments_that_are_rejected(arguments, error):
    with pytest.raises(error, match=next(iter(arguments))):
        new_task(**arguments)
