"""PARSNet: forward pass, channel dropping, masks, electrode positions and patch size."""

from __future__ import annotations

import copy

import mne
import pytest
import torch

from braindecode_pars import PARSNet
from braindecode_pars.models import embed_signals, patch_size_for


def make(n_chans=5, sfreq=100.0, **arguments) -> PARSNet:
    sizes = dict(embed_dim=16, num_layers=2, num_heads=2, mlp_dim=24)
    return PARSNet(n_outputs=3, n_chans=n_chans, n_times=600, sfreq=sfreq, **{**sizes, **arguments})


def chs_info(*names: str) -> list[dict]:
    return mne.create_info(list(names), 100.0, "eeg")["chs"]


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


@torch.no_grad()
def test_a_signal_is_the_mean_of_a_layer_over_time():
    encoder = make().encoder.double().eval()
    x = torch.randn(3, 600, dtype=torch.float64)
    for signal, embedded in zip(x, embed_signals(encoder, x, layer=1), strict=True):
        signal = (signal - signal.mean()) / (signal.var(correction=0) + 1e-20).sqrt()
        angles = torch.arange(6.0)[:, None] / 10_000 ** (torch.arange(0, 16, 2) / 16)
        positions = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        tokens = encoder.tokenize(signal.reshape(1, 6, 100)) + positions
        torch.testing.assert_close(embedded, encoder.blocks[0](tokens)[0].mean(0))
    assert torch.equal(embed_signals(encoder, x), embed_signals(encoder, x, layer=2))


def test_dropping_before_the_encoder_equals_dropping_after_it():
    """With the same random draws, outputs and all gradients are equal."""
    net = make(n_chans=7, channel_drop_prob=0.5).train()
    x = torch.randn(6, 7, 600)
    torch.manual_seed(11)
    kept = net._kept_channels(x, None)
    assert 0 < kept.sum() < kept.numel()
    torch.manual_seed(11)
    before = net(x)

    # Recompute with all channels in the encoder, and drop channels after it.
    copied = copy.deepcopy(net)
    spatial = embed_signals(copied.encoder, x.flatten(0, 1)).unflatten(0, (6, 7))
    query = copied.query_token.expand(6, 1, -1)
    after = copied.final_layer(copied.spatial_attention(query, spatial, kept).squeeze(1))

    torch.testing.assert_close(before, after)
    for output in (before, after):
        output.square().sum().backward()
    for (name, one), two in zip(net.named_parameters(), copied.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, atol=1e-5, rtol=1e-4, msg=name)


def test_dropped_channels_never_enter_the_encoder():
    net = make(n_chans=7).train()
    encoded = []
    net.encoder.register_forward_pre_hook(lambda _, args: encoded.append(len(args[0])))
    x = torch.randn(6, 7, 600)
    torch.manual_seed(11)
    kept = int(net._kept_channels(x, None).sum())
    torch.manual_seed(11)
    net(x)
    assert encoded == [kept]


def test_channels_are_dropped_with_the_given_probability_and_one_is_always_kept():
    net = make(n_chans=4, channel_drop_prob=0.5).train()
    kept = net._kept_channels(torch.zeros(20_000, 4, 1), None)
    assert kept.any(dim=1).all()
    # One window in sixteen would lose all four channels; it keeps one channel of its four.
    assert kept.float().mean().item() == pytest.approx(0.5 + 1 / 16 / 4, abs=0.01)
    # With missing channels, at least one of the others is kept.
    mask = torch.tensor([True, False, False, True]).expand(500, -1)
    kept = net._kept_channels(torch.zeros(500, 4, 1), mask)
    assert kept.any(dim=1).all()
    assert not kept[:, 1:3].any()
    assert net.eval()._kept_channels(torch.zeros(2, 4, 1), None) is None


@pytest.mark.parametrize("value", [1e30, float("nan"), float("inf")])
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


@torch.no_grad()
def test_masking_a_channel_equals_removing_it():
    net = make().eval()
    x = torch.randn(2, 5, 600)
    mask = torch.tensor([True, True, False, True, True]).expand(2, -1)
    torch.testing.assert_close(net(x, ch_mask=mask), net(x[:, [0, 1, 3, 4]]))


@torch.no_grad()
def test_without_positions_the_model_ignores_the_channel_order():
    x = torch.randn(2, 3, 600)
    swapped = x[:, [1, 0, 2]]
    names = chs_info("C3", "C4", "Cz")
    without = make(None, chs_info=names).eval()
    torch.testing.assert_close(without(x), without(swapped), atol=1e-6, rtol=1e-5)
    with_positions = make(None, chs_info=names, electrode_position=True).eval()
    assert (with_positions(x) - with_positions(swapped)).abs().max() > 1e-4


@torch.no_grad()
def test_positions_come_from_names_or_from_pos():
    names = chs_info("C3", "C4", "Cz")
    net = make(None, chs_info=names, electrode_position=True).eval()
    x = torch.randn(2, 3, 600)
    assert torch.equal(net(x), net(x, pos=net.positions))
    assert torch.equal(net(x), net(x, pos=net.positions.expand(2, -1, -1)))
    moved = net.positions.clone()
    moved[0] = float("nan")
    assert not torch.allclose(net(x), net(x, pos=moved))
    assert net(x, pos=moved).isfinite().all()


def test_no_learnable_shape_depends_on_channels_or_samples():
    shapes = [
        {name: p.shape for name, p in net.named_parameters()}
        for net in (
            make(3, electrode_position=True),
            PARSNet(
                3,
                64,
                n_times=3000,
                sfreq=100.0,
                embed_dim=16,
                num_layers=2,
                num_heads=2,
                mlp_dim=24,
                electrode_position=True,
            ),
        )
    ]
    assert shapes[0] == shapes[1]
    assert make(electrode_position=True).state_dict().keys() == shapes[0].keys()


@torch.no_grad()
def test_one_model_accepts_any_number_of_channels_and_samples():
    net = make().eval()
    for n_chans, n_times in ((1, 100), (64, 250), (2, 3000)):
        assert net(torch.randn(2, n_chans, n_times)).shape == (2, 3)


@torch.no_grad()
def test_compile_and_export_equal_eager():
    net = make(None, chs_info=chs_info("C3", "C4", "Cz", "Pz", "Oz"), electrode_position=True)
    x = torch.randn(2, 5, 600)
    net.eval()
    torch.testing.assert_close(torch.compile(net, fullgraph=True)(x), net(x))
    torch.testing.assert_close(torch.export.export(net, (x,)).module()(x), net(x))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((1.0, 200.0, 6000), 200),
        ((0.5, 128.0, None), 64),
        ((1.0, None, 6000), 200),  # a thirtieth of the window
        ((1.0, None, 7), 1),
    ],
)
def test_patch_size(arguments, expected):
    assert patch_size_for(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 200.0, 150), "150 samples is shorter than one patch of 200 samples"),
        ((0.0, 200.0, 600), "patch_seconds must be positive"),
        ((1.0, None, None), "neither is specified or can be inferred"),
    ],
)
def test_patch_size_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        patch_size_for(*arguments)


def test_mistakes_are_explained():
    x = torch.randn(2, 5, 600)
    with pytest.raises(ValueError, match=r"channel_drop_prob must be a number in \[0, 1\), got 1"):
        make(channel_drop_prob=1.0)
    with pytest.raises(ValueError, match=r"ch_mask has shape \(2, 4\)"):
        make()(x, ch_mask=torch.ones(2, 4))
    with pytest.raises(ValueError, match="every channel of a window as missing"):
        make()(x, ch_mask=torch.zeros(2, 5))
    with pytest.raises(ValueError, match="electrode_position=True needs positions"):
        make(electrode_position=True)(x)
    with pytest.raises(ValueError, match="positions for 2 channels, but the windows have 5"):
        make(electrode_position=True)(x, pos=torch.rand(2, 3))


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


def test_channel_attention_drops_no_channel_and_keeps_the_mode(tiny):
    net = PARSNet(n_outputs=3, n_chans=6, n_times=400, sfreq=100.0, channel_drop_prob=0.9, **tiny)
    assert (net.train().channel_attention(torch.randn(4, 6, 400)) > 0).all()
    assert net.training
