"""Recentring by subject, compared with a loop over subjects and channels."""

from __future__ import annotations

import pytest
import torch

from braindecode_pars import PARSNet
from braindecode_pars.models import recentred

SIZES = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16)


def plainly_recentred(features, subjects, keep):
    """Return the features minus the mean of each subject and channel, with loops."""
    expected = torch.zeros_like(features)
    for subject in set(subjects.tolist()):
        for c in range(features.shape[1]):
            rows = [i for i in range(len(features)) if subjects[i] == subject and bool(keep[i, c])]
            for i in rows:
                others = sum(features[j, c] for j in rows) / len(rows)
                expected[i, c] = features[i, c] - others
    return expected


def test_recentred_against_a_loop():
    features = torch.randn(7, 3, 5, dtype=torch.float64)
    subjects = torch.tensor([4, 9, 4, 4, 9, 2, 4])
    keep = torch.rand(7, 3) < 0.7
    whole = torch.ones_like(keep)
    torch.testing.assert_close(
        recentred(features, subjects), plainly_recentred(features, subjects, whole)
    )
    torch.testing.assert_close(
        recentred(features, subjects, keep), plainly_recentred(features, subjects, keep)
    )


def make(head="both", **arguments):
    torch.manual_seed(0)
    channels = [{"ch_name": name} for name in ("C3", "C4", "Cz")]
    signal = dict(n_outputs=2, chs_info=channels, n_times=300, sfreq=100.0)
    options = dict(head=head, amplitude=True, electrode_position=True, recenter="subject")
    return PARSNet(**signal, **options, **SIZES, **arguments).eval()


@torch.no_grad()
@pytest.mark.parametrize("head", ["attention", "spatial_filter", "both"])
def test_logits_use_the_means_of_each_subject(head):
    """Windows of other subjects change nothing, and windows of the same subject do."""
    net, x = make(head), torch.randn(6, 3, 300)
    alone = net(x[:3], subjects=torch.zeros(3, dtype=torch.int64))
    together = net(x, subjects=torch.tensor([5, 5, 5, 1, 1, 1]))
    torch.testing.assert_close(together[:3], alone)
    pooled = net(x, subjects=torch.zeros(6, dtype=torch.int64))
    assert not torch.allclose(pooled[:3], alone, atol=1e-4)
    # The parts of forward, by hand.
    channels = net.encode_channels(x[:3])
    centred = channels._replace(
        tokens=channels.tokens - channels.tokens.mean(dim=0),
        amplitudes=channels.amplitudes - channels.amplitudes.mean(dim=0),
    )
    torch.testing.assert_close(net.pool_channels(centred), alone)


@torch.no_grad()
def test_missing_channels_do_not_change_the_means():
    net, x = make(), torch.randn(4, 3, 300)
    mask = torch.tensor([[True, True, True], [True, True, False]]).repeat(2, 1)
    subjects = torch.tensor([0, 0, 1, 1])
    changed = x.clone()
    changed[[1, 3], 2] = 1e3 * torch.randn(2, 300)
    torch.testing.assert_close(
        net(x, ch_mask=mask, subjects=subjects), net(changed, ch_mask=mask, subjects=subjects)
    )


@torch.no_grad()
def test_attention_of_a_recentring_model_uses_the_subjects():
    net, x = make("attention"), torch.randn(4, 3, 300)
    first, second = (
        net.channel_attention(x, subjects=torch.tensor(subjects))
        for subjects in ([0, 0, 1, 1], [0, 1, 0, 1])
    )
    assert not torch.allclose(first, second, atol=1e-6)


def test_channels_are_pooled_in_parts_as_at_once():
    net = make()
    channels = net.encode_channels(torch.randn(7, 3, 300))
    parts = list(channels.split(3))
    assert [len(part.tokens) for part in parts] == [3, 3, 1]
    whole = net.pool_channels(channels)
    assert torch.allclose(torch.cat([net.pool_channels(part) for part in parts]), whole, atol=1e-6)
