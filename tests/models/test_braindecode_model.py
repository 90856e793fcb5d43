"""PARSNet meets what braindecode asks of its own models, and is saved in a folder."""

from __future__ import annotations

import copy
import inspect
import itertools
import json
import pickle
import subprocess
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
from braindecode_pars.pretrained import EncoderCard, load_encoder, save_encoder

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


#: At most two of the arguments for the time, because two determine the third.
PASSED_TIMES = [list(names) for n in range(3) for names in itertools.combinations(TIMES, n)]


@pytest.mark.parametrize("channels", [["chs_info"], ["n_chans"], []], ids=" ".join)
@pytest.mark.parametrize("passed", PASSED_TIMES, ids=" ".join)
def test_every_valid_combination_of_signal_arguments(passed, channels):
    """The patch size needs sfreq or n_times, passed or inferred from the other arguments."""
    arguments = {name: SIGNAL[name] for name in ["n_outputs", *channels, *passed]}
    if passed in ([], ["input_window_seconds"]):
        with pytest.raises(ValueError, match="sfreq"):
            PARSNet(**arguments, **SIZES)
        return
    if passed == ["n_times"]:
        with pytest.warns(UserWarning, match="33 samples") as caught:
            net = PARSNet(**arguments, **SIZES)
        assert caught[0].filename == __file__
    else:
        net = PARSNet(**arguments, **SIZES)
    assert net.eval()(torch.zeros(1, 3, 1000)).shape == (1, 2)
    assert net.encoder.patch_size == (33 if passed == ["n_times"] else 250)
    assert "final_layer" in str(net)


def test_the_signature_is_that_of_a_braindecode_model():
    parameters = inspect.signature(PARSNet).parameters
    assert set(SIGNAL) <= set(parameters)
    assert parameters["activation"].default is nn.GELU
    assert parameters["drop_prob"].default == 0.0
    assert issubclass(PARSNet, braindecode.models.base.EEGModuleMixin)


def test_only_the_native_channel_strategy_is_accepted():
    """Braindecode after version 1.8 passes both arguments to pretrained models."""
    net = make(channel_strategy="native", channel_strategy_kwargs=None)
    assert net.get_config() == make().get_config()
    assert not {"channel_strategy", "channel_strategy_kwargs"} & net.get_config().keys()
    for name, value in (("channel_strategy", "spline"), ("channel_strategy_kwargs", {"reg": 0.1})):
        with pytest.raises(ValueError, match=rf"PARSNet: {name} must be"):
            make(**{name: value})


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
    assert same_weights(net.encoder, encoder)
    with pytest.raises(ValueError, match="n_outputs"):
        net.reset_head(0)


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


@pytest.mark.parametrize("model", [PARSNet, "PARSNet"])
def test_eeg_classifier_begins_with_a_pretrained_encoder(model):
    arguments = dict(train_split=None, max_epochs=1, lr=0.0, batch_size=4, callbacks=None)
    net = EEGClassifier(model, module__encoder="small", **arguments, verbose=0)
    x = np.random.default_rng(0).normal(size=(8, 3, 256)).astype(np.float32)
    assert net.fit(x, np.array([0, 1] * 4)).predict(x).shape == (8,)
    assert (net.module_.n_chans, net.module_.load_report.complete) == (3, True)
    # The learning rate is zero.
    assert same_weights(net.module_.encoder, load_encoder("small").encoder)


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


# In a folder

CONFIGS = {
    "plain": {},
    "another activation": dict(activation=nn.ELU),
    "electrodes": dict(chs_info=CHS_INFO, n_chans=None, electrode_position=True),
    "a spatial filter": dict(chs_info=CHS_INFO, n_chans=None, head="both", amplitude=True),
    "seconds": dict(n_times=None, input_window_seconds=6.0),
    "rate from the length": dict(sfreq=None, n_times=900, input_window_seconds=9.0),
    "rate only": dict(n_times=None, sfreq=250.0),
    "samples": dict(patch_size=60, sfreq=None),
    "half a second": dict(patch_seconds=0.5, channel_drop_prob=0.1, drop_prob=0.2),
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
    with pytest.raises(TypeError, match="nonsense"):
        net.save_pretrained(tmp_path, nonsense=3)
    assert PARSNet.from_pretrained(tmp_path, map_location="cpu").load_report.complete


WITHOUT_HUB = """
import sys
sys.modules["huggingface_hub"] = None
import warnings; warnings.simplefilter("ignore")
import torch
from braindecode.models.base import HAS_HF_HUB
from braindecode_pars import PARSNet, paper
assert not HAS_HF_HUB
torch.manual_seed(0)
net = PARSNet(3, 3, n_times=600, sfreq=100.0, embed_dim=16, num_layers=1, num_heads=2, mlp_dim=24)
net.eval().save_pretrained(sys.argv[1])
x = torch.randn(2, 3, 600)
again = PARSNet.from_config(net.get_config())
again.load_state_dict(net.state_dict())
for loaded in (again.eval(), PARSNet.from_pretrained(sys.argv[1])):
    assert torch.equal(loaded(x), net(x)), "another model"
assert PARSNet.from_pretrained(sys.argv[1], n_outputs=5)(x).shape == (2, 5)
for attempt in (
    lambda: PARSNet.from_pretrained("hf://owner/name"),
    lambda: net.save_pretrained(sys.argv[1], push_to_hub=True),
):
    try:
        attempt()
    except ImportError as error:
        print(error)
"""


@pytest.mark.slow
def test_without_huggingface_hub(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_HUB, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("huggingface_hub") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    # The folder also loads in this process, with huggingface_hub.
    assert PARSNet.from_pretrained(tmp_path).load_report.complete


def test_a_failed_save_keeps_the_old_files(tmp_path):
    make().save_pretrained(tmp_path)
    invalid = make()
    nn.init.constant_(invalid.final_layer.bias, float("nan"))
    with pytest.raises(ValueError, match=r"final_layer.bias"):
        invalid.save_pretrained(tmp_path)
    assert PARSNet.from_pretrained(tmp_path).load_report.complete


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


def test_a_custom_activation_cannot_be_saved(tmp_path):
    class Odd(nn.GELU):
        pass

    with pytest.raises(ValueError, match="Odd"):
        make(activation=Odd).save_pretrained(tmp_path)
    assert list(tmp_path.iterdir()) == []


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
        for source in (packaged, save_encoder(packaged, EncoderCard(128.0), tmp_path / "encoder")):
            again = PARSNet(n_outputs=2, encoder=source, sfreq=128.0)
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
        # Dropout is that of the new network.
        assert (
            PARSNet(n_outputs=2, encoder="small", drop_prob=0.3).encoder.config["drop_prob"] == 0.3
        )


@pytest.mark.parametrize(
    ("arguments", "error", "fact"),
    [
        (dict(n_outputs=2, encoder="tiny"), FileNotFoundError, "small"),
        (dict(n_outputs=2, encoder=3), TypeError, "int"),
        (dict(n_outputs=2, encoder="small", sfreq=250.0), ValueError, "128 Hz"),
        (
            dict(n_outputs=2, encoder="small", n_times=500, input_window_seconds=2.0),
            ValueError,
            "250",
        ),
        (dict(encoder="small"), ValueError, "n_outputs"),
    ],
)
def test_incompatible_encoders_raise(arguments, error, fact):
    with pytest.raises(error, match=fact):
        PARSNet(**arguments)


def test_docstring_imports_from_braindecode_pars():
    assert "from braindecode_pars import PARSNet" in PARSNet.__doc__
    assert "from braindecode.models" not in PARSNet.__doc__
