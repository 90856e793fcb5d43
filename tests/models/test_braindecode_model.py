"""PARSNet meets what braindecode asks of its own models, and is saved in a folder."""

from __future__ import annotations

import json
import sys

import braindecode.models
import mne
import numpy as np
import pytest
import torch
from braindecode import EEGClassifier
from safetensors.torch import load_file
from support.model_files import change_description
from support.small_estimators import same_weights
from torch import nn

from braindecode_pars import PARSNet, paper
from braindecode_pars.models import template_montage
from braindecode_pars.pretrained import load_encoder

WB = ("weight", "bias")
SIZES = paper.MODEL | dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=24)
INFO = mne.create_info(["C3", "C4", "Cz"], 100.0, "eeg")
CHS_INFO = INFO.set_montage(template_montage())["chs"]
#: Signal of braindecode's own tests: three channels, 4 s at 250 Hz, two outputs.
TIMES = dict(n_times=1000, input_window_seconds=4.0, sfreq=250.0)
SIGNAL = dict(n_outputs=2, n_chans=3, chs_info=CHS_INFO, **TIMES)


def make(**arguments) -> PARSNet:
    signal = dict(n_outputs=3, n_chans=3, n_times=600, sfreq=100.0)
    return PARSNet(**{**signal, **SIZES, **arguments})


@pytest.mark.parametrize("channels", [["chs_info"], []], ids=" ".join)
@pytest.mark.parametrize(
    "passed",
    [["sfreq"], ["n_times"], ["n_times", "sfreq"], ["n_times", "input_window_seconds"]],
    ids=" ".join,
)
def test_the_patch_size_needs_sfreq_or_n_times(passed, channels):
    arguments = {name: SIGNAL[name] for name in ["n_outputs", *channels, *passed]}
    if passed == ["n_times"]:
        with pytest.warns(UserWarning, match="33 samples") as caught:
            net = PARSNet(**arguments, **SIZES)
        assert caught[0].filename == __file__
    else:
        net = PARSNet(**arguments, **SIZES)
    assert net.eval()(torch.zeros(1, 3, 1000)).shape == (1, 2)
    assert net.encoder.patch_size == (33 if passed == ["n_times"] else 250)


def test_only_the_native_channel_strategy_is_accepted():
    """Braindecode after version 1.8 passes both arguments to pretrained models."""
    net = make(channel_strategy="native", channel_strategy_kwargs=None)
    assert net.get_config() == make().get_config()
    assert not {"channel_strategy", "channel_strategy_kwargs"} & net.get_config().keys()
    for name, value in (("channel_strategy", "spline"), ("channel_strategy_kwargs", {"reg": 0.1})):
        with pytest.raises(ValueError, match=rf"PARSNet: {name} must be"):
            make(**{name: value})


def test_activation_and_drop_prob_reach_the_encoder():
    net = make(activation=nn.ELU, drop_prob=0.3)
    kinds = [type(module) for module in net.modules()]
    assert nn.ELU in kinds
    assert nn.GELU not in kinds
    assert {m.p for m in net.modules() if isinstance(m, nn.Dropout)} == {0.3}


def test_eeg_classifier_begins_with_a_pretrained_encoder():
    arguments = dict(train_split=None, max_epochs=1, lr=0.0, batch_size=4, callbacks=None)
    net = EEGClassifier("PARSNet", module__encoder="small", **arguments, verbose=0)
    x = np.random.default_rng(0).normal(size=(8, 3, 256)).astype(np.float32)
    assert net.fit(x, np.array([0, 1] * 4)).predict(x).shape == (8,)
    assert (net.module_.n_chans, net.module_.load_report.complete) == (3, True)
    # The learning rate is zero.
    assert same_weights(net.module_.encoder, load_encoder("small").encoder)


# In a folder

CONFIGS = {
    "plain": {},
    "a spatial filter": dict(chs_info=CHS_INFO, n_chans=None, head="both", amplitude=True),
    "seconds": dict(n_times=None, input_window_seconds=6.0),
    "rate from the length": dict(sfreq=None, n_times=900, input_window_seconds=9.0),
    "samples": dict(patch_size=60, sfreq=None),
    "half a second": dict(
        patch_seconds=0.5, channel_drop_prob=0.1, drop_prob=0.2, activation=nn.ELU
    ),
}


@pytest.mark.parametrize("config", CONFIGS)
def test_save_and_load(config, tmp_path):
    net = make(**CONFIGS[config])
    net.save_pretrained(tmp_path)
    again = PARSNet.from_pretrained(tmp_path)
    assert not again.training
    assert again.load_report.complete
    assert again.encoder.config == net.encoder.config
    assert again.channel_drop_prob == net.channel_drop_prob
    x = torch.randn(2, 3, 600)
    assert torch.equal(again(x), net.eval()(x))
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["braindecode_version"] == braindecode.__version__
    # braindecode's own save_pretrained also writes a pickle.
    assert not list(tmp_path.glob("*.bin"))
    assert load_file(tmp_path / "model.safetensors").keys() == net.state_dict().keys()


def test_load_for_another_montage_length_and_task(tmp_path):
    net = make(chs_info=CHS_INFO, electrode_position=True).eval()
    net.save_pretrained(str(tmp_path))
    four = mne.create_info(["C3", "C4", "Cz", "Pz"], 100.0, "eeg")["chs"]
    other = PARSNet.from_pretrained(tmp_path, n_outputs=5, chs_info=four, n_times=1200)
    assert (other.n_outputs, other.n_chans, other.n_times) == (5, 4, 1200)
    assert other(torch.randn(2, 4, 1200)).shape == (2, 5)
    assert same_weights(other.encoder, net.encoder)
    assert torch.equal(other.query_token, net.query_token)
    with pytest.raises(ValueError, match=r"200 Hz.* 100 Hz.*Resample"):
        PARSNet.from_pretrained(tmp_path, sfreq=200.0)
    with pytest.raises(TypeError, match="n_filters"):
        PARSNet.from_pretrained(tmp_path, n_filters=3)
    assert PARSNet.from_pretrained(tmp_path, map_location="cpu").load_report.complete


def test_unknown_locations_are_not_nan_in_json(tmp_path):
    # E1 has no position, C3 a standard position and E3 a digitized one.
    info = mne.create_info(["E1", "C3", "E3"], 100.0, "eeg")
    digitized = mne.channels.make_dig_montage({"E3": (0.01, 0.02, 0.09)}, coord_frame="head")
    info.set_montage(digitized, on_missing="ignore")
    net = make(chs_info=info["chs"], electrode_position=True).eval()
    assert net.positions.isfinite().all(dim=1).tolist() == [False, True, True]
    net.save_pretrained(tmp_path)
    assert "NaN" not in (tmp_path / "config.json").read_text()
    again = PARSNet.from_pretrained(tmp_path)
    torch.testing.assert_close(again.positions, net.positions, equal_nan=True)
    x = torch.randn(2, 3, 600)
    assert torch.equal(again(x), net(x))


def test_loading_a_folder_imports_no_other_module(tmp_path):
    make().save_pretrained(tmp_path)
    for name in ("antigravity.fly", "os.system", "torch.nn.functional.gelu", "torch.hub.load"):
        change_description(tmp_path, lambda d, name=name: d["network"].update(activation=name))
        with pytest.raises(ValueError, match="activation"):
            PARSNet.from_pretrained(tmp_path)
    assert "antigravity" not in sys.modules


def test_the_tensors_of_the_papers_head_keep_their_names():
    """Saved models have them."""
    attention = [f"{name}.{kind}" for name in ("query", "key", "value", "output") for kind in WB]
    assert {name for name in make().state_dict() if not name.startswith("encoder.")} == {
        "query_token",
        *(f"spatial_attention.{name}" for name in attention),
        *(f"final_layer.{kind}" for kind in WB),
    }


def test_bundled_encoder_in_a_new_network(tmp_path):
    """By from_pretrained, by the constructor, and from the folders of both kinds of models."""
    net = PARSNet.from_pretrained("small", n_outputs=2, n_chans=6)
    assert net.load_report.complete
    assert (net.sfreq, net.n_outputs, net.training) == (128.0, 2, False)
    packaged, _, _ = load_encoder("small")
    assert same_weights(net.encoder, packaged)
    with torch.no_grad():
        x = torch.randn(1, 6, 384)
        assert net(x).shape == (1, 2)
        again = PARSNet(n_outputs=2, encoder=packaged, sfreq=128.0)
        assert same_weights(again.encoder, packaged)
        assert again.encoder is not packaged
        # Saved and loaded, it is the same network, and describes its own sizes.
        net.save_pretrained(tmp_path / "net")
        loaded = PARSNet.from_pretrained(tmp_path / "net")
        assert torch.equal(loaded(x), net(x))
        config = json.loads((tmp_path / "net" / "config.json").read_text())
        assert "encoder" not in config
        assert PARSNet.from_config(config).encoder.config == packaged.config
        assert same_weights(PARSNet(n_outputs=3, encoder=tmp_path / "net").encoder, packaged)


@pytest.mark.parametrize(
    ("arguments", "error", "fact"),
    [
        (dict(n_outputs=2, encoder="tiny"), FileNotFoundError, "small"),
        (dict(n_outputs=2, encoder="small", sfreq=250.0), ValueError, "128 Hz"),
        (
            dict(n_outputs=2, encoder="small", n_times=500, input_window_seconds=2.0),
            ValueError,
            "250",
        ),
    ],
)
def test_incompatible_encoders_raise(arguments, error, fact):
    with pytest.raises(error, match=fact):
        PARSNet(**arguments)
