"""PARSNet: forward pass, heads, channel dropping, masks, positions and amplitudes."""

from __future__ import annotations

import copy

import mne
import numpy as np
import pytest
import torch

from braindecode_pars import PARSNet, PatchEncoder, paper
from braindecode_pars.models import (
    electrode_positions,
    embed_signals,
    patch_size_for,
    template_montage,
)
from braindecode_pars.models.parsnet import HEADS


def make(n_chans=5, sfreq=100.0, **arguments) -> PARSNet:
    sizes = dict(embed_dim=16, num_layers=2, num_heads=2, mlp_dim=24)
    options = {**paper.MODEL, **sizes, **arguments}
    return PARSNet(n_outputs=3, n_chans=n_chans, n_times=600, sfreq=sfreq, **options)


def chs_info(*names: str) -> list[dict]:
    return mne.create_info(list(names), 100.0, "eeg")["chs"]


@torch.no_grad()
@pytest.mark.parametrize("layer", [1, 2, -1])
def test_a_signal_is_the_mean_of_the_features_of_a_layer_over_time(layer):
    encoder = PatchEncoder(100, 16, 2, 2, 24).double().eval()
    x = torch.randn(3, 650, dtype=torch.float64)  # half a patch is left over
    for signal, embedded in zip(x, embed_signals(encoder, x, layer=layer), strict=True):
        signal = (signal - signal.mean()) / signal.std(correction=0)
        angles = torch.arange(6.0)[:, None] / 10_000 ** (torch.arange(0, 16, 2) / 16)
        positions = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        tokens = encoder.tokenize(signal[:600].reshape(1, 6, 100)) + positions
        features = encoder.blocks[0](tokens) if layer == 1 else encoder(tokens)
        torch.testing.assert_close(embedded, features[0].mean(0), atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_forward_against_a_plain_recomputation():
    net = make().double().eval()
    x = torch.randn(2, 5, 600, dtype=torch.float64)
    for b in range(2):
        spatial = []
        for c in range(5):
            signal = x[b, c]
            signal = (signal - signal.mean()) / (signal.var(correction=0) + 1e-20).sqrt()
            tokens = net.encoder.tokenize(signal.reshape(1, 6, 100))
            angles = torch.arange(6.0)[:, None] / 10_000 ** (torch.arange(0, 16, 2) / 16)
            positions = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
            spatial.append(net.encoder(tokens + positions)[0].mean(0))
        pooled = net.spatial_attention(net.query_token[None, None], torch.stack(spatial)[None])
        expected = net.final_layer(pooled[0, 0])
        torch.testing.assert_close(net(x)[b], expected, atol=1e-6, rtol=1e-5)


def test_dropping_before_the_encoder_equals_dropping_after_it():
    """With the same random draws, outputs and all gradients are equal."""
    net = make(n_chans=7, channel_drop_prob=0.5).train()
    x = torch.randn(6, 7, 600)
    torch.manual_seed(11)
    selected = net._kept_channels(x, None)
    assert 0 < selected.sum() < selected.numel()
    torch.manual_seed(11)
    before = net(x)

    # Recompute with all channels in the encoder, and drop channels after it.
    copied = copy.deepcopy(net)
    spatial = embed_signals(copied.encoder, x.flatten(0, 1)).unflatten(0, (6, 7))
    query = copied.query_token.expand(6, 1, -1)
    after = copied.final_layer(copied.spatial_attention(query, spatial, selected).squeeze(1))

    torch.testing.assert_close(before, after)
    for output in (before, after):
        output.square().sum().backward()
    for (name, one), two in zip(net.named_parameters(), copied.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, atol=1e-5, rtol=1e-4, msg=name)


def test_channels_are_dropped_with_the_given_probability_and_one_is_always_kept():
    net = make(n_chans=4, channel_drop_prob=0.5).train()
    selected = net._kept_channels(torch.zeros(20_000, 4, 1), None)
    assert selected.any(dim=1).all()
    # One window in sixteen would lose all four channels; it keeps one channel of its four.
    assert selected.float().mean().item() == pytest.approx(0.5 + 1 / 16 / 4, abs=0.01)
    # With missing channels, at least one of the others is kept.
    mask = torch.tensor([True, False, False, True]).expand(500, -1)
    selected = net._kept_channels(torch.zeros(500, 4, 1), mask)
    assert selected.any(dim=1).all()
    assert not selected[:, 1:3].any()
    assert net.eval()._kept_channels(torch.zeros(2, 4, 1), None) is None


@pytest.mark.parametrize("value", [1e30, float("nan")])
@pytest.mark.parametrize("training", [False, True])
def test_samples_of_masked_channels_change_neither_output_nor_gradients(value, training):
    net = make(channel_drop_prob=0.3).train(training)
    x = torch.randn(3, 5, 600)
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[:, 2] = False
    mask[1, 4] = False
    bad = x.clone()
    bad[~mask] = value
    outputs, gradients = [], []
    for signals in (x, bad):
        net.zero_grad()
        torch.manual_seed(5)
        outputs.append(net(signals, ch_mask=mask))
        outputs[-1].sum().backward()
        gradients.append([p.grad.clone() for p in net.parameters()])
    assert torch.equal(*outputs)
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    features = net.eval()(bad, ch_mask=mask, return_features=True)["features"]
    assert (features[~mask] == 0).all()


MOTOR = chs_info("C3", "C4", "Cz", "Fz", "Pz")
#: No channel is like another.
GAINS = torch.arange(1.0, 6.0)[:, None]


def with_head(head: str, names: list[dict] = MOTOR, **arguments) -> PARSNet:
    return make(None, chs_info=names, head=head, amplitude=True, **arguments)


@torch.no_grad()
@pytest.mark.parametrize("head", HEADS)
def test_masking_a_channel_equals_removing_it(head):
    net = with_head(head, electrode_position=True).eval()
    x = torch.randn(2, 5, 600) * GAINS
    mask, selected = torch.tensor([True, True, False, True, True]).expand(2, -1), [0, 1, 3, 4]
    names = [MOTOR[i] for i in selected]
    x[:, 2] = torch.nan
    torch.testing.assert_close(net(x, ch_mask=mask), net(x[:, selected], chs_info=names))


@torch.no_grad()
@pytest.mark.parametrize("head", HEADS)
def test_heads_against_a_plain_recomputation(head):
    """Codes are added to the tokens that are attended to; filters get amplitudes as they are."""
    net = with_head(head, electrode_position=True).double().eval()
    x = torch.randn(2, 5, 600).double() * GAINS
    tokens = embed_signals(net.encoder, x.flatten(0, 1)).unflatten(0, (2, 5))
    logs = x.std(dim=-1, correction=0).log()
    amplitudes = (logs - logs.mean(dim=1, keepdim=True))[..., None]
    pooled = []
    if head != "spatial_filter":
        coded = tokens + net.amplitude_code(amplitudes) + net.electrode_code(net.positions)
        query = net.query_token.expand(2, 1, -1)
        pooled.append(net.spatial_attention(query, coded)[:, 0])
    if head != "attention":
        features = torch.cat([tokens, amplitudes], dim=-1)
        pooled.append(net.spatial_filter(features, net.positions))
    pooled = torch.cat(pooled, dim=-1)
    torch.testing.assert_close(net(x, return_features=True)["cls_token"], pooled)
    torch.testing.assert_close(net(x), net.final_layer(pooled))
    net.reset_head(7)
    assert net(x).shape == (2, 7)


@torch.no_grad()
@pytest.mark.parametrize("head", HEADS)
def test_volts_and_microvolts_give_the_same_logits(head):
    net = with_head(head).eval()
    x = 1e-5 * torch.randn(2, 5, 600) * GAINS
    x[0, 3] = 2e-5  # a flat channel
    torch.testing.assert_close(net(1e6 * x), net(x))
    louder = x * torch.tensor([3, 1, 1, 1, 1])[:, None]
    assert (net(louder) - net(x)).abs().max() > 1e-3
    assert net(torch.zeros(2, 5, 600)).isfinite().all()


def test_amplitudes_are_relative_to_dropped_channels_too():
    """So that training and evaluation agree."""
    net = with_head("both", channel_drop_prob=0.5)
    x = torch.randn(6, 5, 600) * GAINS
    channels = net.train().encode_channels(x, None, None, None)
    assert not channels.keep.all()
    assert torch.equal(
        channels.amplitudes, net.eval().encode_channels(x, None, None, None).amplitudes
    )


@torch.no_grad()
def test_without_positions_the_model_ignores_the_channel_order():
    x = torch.randn(2, 3, 600)
    swapped = x[:, [1, 0, 2]]
    names = chs_info("C3", "C4", "Cz")
    without = make(None, chs_info=names).eval()
    torch.testing.assert_close(without(x), without(swapped), atol=1e-6, rtol=1e-5)
    for where in (dict(electrode_position=True), dict(head="spatial_filter"), dict(head="both")):
        with_positions = make(None, chs_info=names, **where).eval()
        assert (with_positions(x) - with_positions(swapped)).abs().max() > 1e-4


@torch.no_grad()
@pytest.mark.parametrize("head", HEADS)
def test_positions_come_from_names_or_from_pos(head):
    names = chs_info("C3", "C4", "Cz")
    net = make(None, chs_info=names, electrode_position=True, head=head).eval()
    x = torch.randn(2, 3, 600)
    other = chs_info("C3", "F4", "EOG")
    expected = net(x, pos=torch.from_numpy(electrode_positions(other)))
    assert torch.equal(net(x, chs_info=other), expected)
    assert not torch.allclose(net(x), expected)
    torch.testing.assert_close(net(x), net(x, pos=net.positions.expand(2, -1, -1)))
    moved = net.positions.clone()
    moved[0] = float("nan")
    assert not torch.allclose(net(x), net(x, pos=moved))
    assert net(x, pos=moved).isfinite().all()


CZ = chs_info("C3", "C4", "Cz")


@pytest.mark.parametrize(
    ("arguments", "forward", "error", "fact"),
    [
        (dict(channel_drop_prob=1.0), {}, ValueError, "channel_drop_prob"),
        (dict(patch_size=601), {}, ValueError, "601"),
        ({}, dict(x=torch.zeros(2, 600)), ValueError, r"\(2, 600\)"),
        ({}, dict(x=torch.zeros(2, 3, 600, dtype=torch.int16)), TypeError, "int16"),
        ({}, dict(ch_mask=torch.ones(2, 4)), ValueError, r"ch_mask.*\(2, 3\).*\(2, 4\)"),
        ({}, dict(ch_mask=torch.zeros(2, 3)), ValueError, "ch_mask"),
        (dict(electrode_position=True), {}, ValueError, "chs_info"),
        (dict(electrode_position=True), dict(chs_info=CZ[:2]), ValueError, r"\(2, 3\)"),
        ({}, dict(pos=np.ones((3, 3)), chs_info=CZ), ValueError, "pos and chs_info"),
    ],
)
def test_mistakes_are_explained(arguments, forward, error, fact):
    with pytest.raises(error, match=fact):
        make(3, **arguments)(**{"x": torch.randn(2, 3, 600), **forward})


def test_a_spatial_filter_has_no_attention():
    with pytest.raises(ValueError, match="spatial_filter"):
        with_head("spatial_filter").channel_attention(torch.randn(2, 5, 600))


def test_patch_sizes():
    assert patch_size_for(1.0, 200.0, 6000) == 200
    assert patch_size_for(0.5, 128.0, None) == 64
    assert patch_size_for(1.0, None, 6000) == 200  # a thirtieth of the window
    assert patch_size_for(1.0, None, 7) == 1
    assert patch_size_for(1.0, None, 50) == 2  # rounded
    with pytest.raises(ValueError, match=r"150 samples.* 200 samples"):
        patch_size_for(1.0, 200.0, 150)
    with pytest.raises(ValueError, match="sfreq"):
        patch_size_for(1.0, None, None)


def test_channel_attention_returns_the_weights_of_forward(tiny):
    torch.manual_seed(1)
    net = PARSNet(n_outputs=3, n_times=400, sfreq=100.0, electrode_position=True, **tiny).eval()
    x, pos = torch.randn(2, 5, 400), 0.1 * torch.rand(5, 3)
    mask = torch.tensor([[True] * 5, [True, True, False, True, False]])
    weights = net.channel_attention(x, pos, mask)
    assert weights.shape == (2, 2, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2))
    assert (weights[1, :, [2, 4]] == 0).all()
    # Recompute the pooled token from the weights and the values.
    with torch.no_grad():
        features = net(x, pos, mask, return_features=True)
    attention = net.spatial_attention
    values = attention.split_heads(attention.value(features["features"]))
    pooled = attention.output((weights[:, :, None] @ values).transpose(1, 2).flatten(-2))
    torch.testing.assert_close(pooled.detach().squeeze(1), features["cls_token"])


@pytest.mark.parametrize(
    ("names", "uses_positions"),
    [(("C3", "C4"), True), (("C3", "X1"), True), (("X1", "X2"), False), (("C3-A2",), False)],
)
def test_positions_are_used_where_several_channels_have_a_known_electrode(
    names, uses_positions, tmp_path
):
    net = PARSNet(2, chs_info=chs_info(*names), n_times=600, sfreq=100.0)
    assert net.electrode_position == uses_positions
    assert not PARSNet(2, 2, n_times=600, sfreq=100.0).electrode_position
    net.save_pretrained(tmp_path / "net")
    other = PARSNet.from_pretrained(tmp_path / "net", chs_info=chs_info("X1", "C3", "C4"))
    assert other.electrode_position == uses_positions


def left_or_right(n_windows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Windows whose louder and faster rhythm is on the left (0) or on the right (1)."""
    y = torch.arange(n_windows) % 2
    times, phases = torch.arange(200) / 100, torch.rand(n_windows, 2, 1)
    rhythm = (2 * torch.pi * (torch.tensor([20.0, 8.0])[:, None] * times + phases)).sin()
    x = rhythm * torch.tensor([2.0, 1.0])[:, None] + 0.5 * torch.randn(n_windows, 2, 200)
    return torch.where(y[:, None, None] == 0, x, x.flip(1)), y


@pytest.mark.parametrize("head", HEADS)
def test_no_learnable_shape_depends_on_channels_or_samples(head):
    three = with_head(head, chs_info("C3", "C4", "Cz"), electrode_position=True)
    names = [{"ch_name": name} for name in template_montage().ch_names[:64]]
    many = with_head(head, names, electrode_position=True, patch_size=100, sfreq=None)
    shapes = [{name: p.shape for name, p in net.named_parameters()} for net in (three, many)]
    assert shapes[0] == shapes[1]
    assert three.eval()(torch.randn(2, 1, 100), chs_info=names[:1]).shape == (2, 3)
    assert three.state_dict().keys() == shapes[0].keys()


@pytest.mark.slow
@pytest.mark.parametrize(("head", "above"), [("spatial_filter", True), ("attention", False)])
def test_only_a_spatial_filter_tells_left_from_right(head, above):
    """With a random encoder and amplitudes; the attention gets no code of the positions."""
    net = with_head(head, chs_info("C3", "C4"), channel_drop_prob=0.0)
    net.encoder.requires_grad_(False)
    x, y = left_or_right(128)
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.02)
    for _ in range(20):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x[:64]), y[:64]).backward()
        optimizer.step()
    with torch.no_grad():
        predicted = net.eval()(x[64:]).argmax(dim=1)
    accuracy = (predicted == y[64:]).float().mean()
    assert accuracy > 0.95 if above else 0.3 < accuracy < 0.7
