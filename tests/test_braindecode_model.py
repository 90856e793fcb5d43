"""PARSNet meets the requirements that braindecode has for its own models."""

from __future__ import annotations

import copy
import inspect
import json
import pickle

import braindecode.models
import mne
import numpy as np
import pytest
import torch
from braindecode import EEGClassifier
from braindecode.models.util import _get_possible_signal_params, _get_signal_params, models_dict
from torch import nn

from braindecode_pars import PARSNet, paper
from braindecode_pars.models import template_montage
from braindecode_pars.pretrained import load_encoder

SIZES = paper.MODEL | dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=24)
#: Signal of braindecode's own tests: three channels, 4 s at 250 Hz, two outputs.
SIGNAL = _get_signal_params(None)
INFO = mne.create_info(["C3", "C4", "Cz"], 100.0, "eeg")
CHS_INFO = INFO.set_montage(template_montage())["chs"]


def make(**arguments) -> PARSNet:
    signal = dict(n_outputs=3, n_chans=3, n_times=600, sfreq=100.0)
    return PARSNet(**{**signal, **SIZES, **arguments})


def same(one: nn.Module, two: nn.Module) -> bool:
    return all(
        torch.equal(a, b)
        for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True)
    )


COMBINATIONS = _get_possible_signal_params(SIGNAL, ["n_outputs"])


@pytest.mark.parametrize("number", range(len(COMBINATIONS)))
def test_every_valid_combination_of_signal_arguments(number):
    """The patch size needs sfreq or n_times, passed or inferred from the other arguments."""
    arguments = COMBINATIONS[number]
    names = ("n_times", "input_window_seconds", "sfreq")
    known = [name for name in names if arguments[name] is not None]
    if known in ([], ["input_window_seconds"]):
        with pytest.raises(ValueError, match="sfreq"):
            PARSNet(**arguments, **SIZES)
        return
    if known == ["n_times"]:
        with pytest.warns(UserWarning, match="33 samples") as caught:
            net = PARSNet(**arguments, **SIZES)
        assert caught[0].filename == __file__
    else:
        net = PARSNet(**arguments, **SIZES)
    assert net.eval()(torch.zeros(1, 3, 1000)).shape == (1, 2)
    assert net.encoder.patch_size == (33 if known == ["n_times"] else 250)
    assert "final_layer" in str(net)


def test_the_signature_is_that_of_a_braindecode_model():
    parameters = inspect.signature(PARSNet).parameters
    assert set(SIGNAL) <= set(parameters)
    assert parameters["activation"].default is nn.GELU
    assert parameters["drop_prob"].default == 0.0
    assert issubclass(PARSNet, braindecode.models.base.EEGModuleMixin)


def test_nothing_learnable_comes_after_the_final_layer():
    net = make(electrode_position=True, chs_info=CHS_INFO)
    children = [name for name, _ in net.named_children()]
    assert "final_layer" in children[-2:]
    after = children[children.index("final_layer") + 1 :]
    assert not [p for name in after for p in getattr(net, name).parameters()]
    outputs = []
    net.final_layer.register_forward_hook(lambda *args: outputs.append(args[-1]))
    assert net.eval()(torch.randn(2, 3, 600)) is outputs[0]


def test_activation_and_drop_prob_reach_the_encoder():
    net = make(activation=nn.ELU, drop_prob=0.3)
    kinds = [type(module) for module in net.modules()]
    assert nn.ELU in kinds
    assert nn.GELU not in kinds
    assert {m.p for m in net.modules() if isinstance(m, nn.Dropout)} == {0.3}
    net.train()
    net.channel_drop_prob = 0.0
    x = torch.randn(2, 3, 600)
    assert not torch.equal(net(x), net(x))
    net.eval()
    assert torch.equal(net(x), net(x))


def test_reset_head():
    net = make(activation=nn.ELU)
    encoder = copy.deepcopy(net.encoder)
    net.reset_head(7)
    assert net(torch.randn(1, 3, 600)).shape == (1, 7)
    assert net.n_outputs == net.get_config()["n_outputs"] == 7
    assert same(net.encoder, encoder)
    with pytest.raises(ValueError, match="n_outputs"):
        net.reset_head(0)


@pytest.mark.parametrize("training", [False, True])
def test_batch_of_one(training):
    assert make().train(training)(torch.randn(1, 3, 600)).shape == (1, 3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions(dtype):
    net = make(electrode_position=True, chs_info=CHS_INFO).to(dtype).eval()
    out = net(torch.randn(2, 3, 600, dtype=dtype))
    assert out.dtype == dtype
    assert out.isfinite().all()


def test_pickle_and_copy():
    net = make(electrode_position=True, chs_info=CHS_INFO, activation=nn.ELU).eval()
    x = torch.randn(2, 3, 600)
    for copied in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        assert torch.equal(copied(x), net(x))
        assert json.dumps(copied.get_config()) == json.dumps(net.get_config())


def test_eeg_classifier_accepts_the_name():
    assert models_dict["PARSNet"] is PARSNet
    assert "EEGNet" in models_dict
    net = EEGClassifier(
        "PARSNet",
        **{f"module__{name}": value for name, value in SIZES.items()},
        module__sfreq=100.0,
        train_split=None,
        max_epochs=1,
        batch_size=4,
        callbacks__print_log=None,
    )
    x = np.random.default_rng(0).normal(size=(8, 3, 600)).astype(np.float32)
    assert net.fit(x, np.array([0, 1] * 4)).predict(x).shape == (8,)
    assert net.module_.n_chans == 3


@pytest.mark.parametrize("model", [PARSNet, "PARSNet"])
def test_eeg_classifier_begins_with_a_pretrained_encoder(model):
    arguments = dict(train_split=None, max_epochs=1, lr=0.0, batch_size=4, callbacks=None)
    net = EEGClassifier(model, module__encoder="small", **arguments, verbose=0)
    x = np.random.default_rng(0).normal(size=(8, 3, 256)).astype(np.float32)
    assert net.fit(x, np.array([0, 1] * 4)).predict(x).shape == (8,)
    assert net.module_.load_report.complete
    assert same(net.module_.encoder, load_encoder("small").encoder)  # the learning rate is zero


@torch.no_grad()
def test_windows_of_other_float_types_are_accepted():
    net = make().eval()
    x = torch.randn(2, 3, 600)
    for dtype, tolerance in ((torch.float64, 1e-5), (torch.float16, 2e-2)):
        out = net(x.to(dtype))
        assert out.dtype == torch.float32
        torch.testing.assert_close(out, net(x), atol=tolerance, rtol=tolerance)


@torch.no_grad()
def test_export_with_any_batch_and_any_number_of_channels():
    net = make().eval()
    batch, channels = torch.export.Dim("batch", min=2), torch.export.Dim("channels", min=2)
    exported = torch.export.export(
        net, (torch.randn(4, 3, 600),), dynamic_shapes=({0: batch, 1: channels},)
    )
    x = torch.randn(7, 5, 600)
    torch.testing.assert_close(exported.module()(x), net(x))
