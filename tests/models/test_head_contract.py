"""What open-eeg-bench 0.6.0 asks of a model: its constructor, its last layer, its weights.

Its code is repeated here, of ``head.py``, ``backbone.py`` and ``finetuning.py``: the package itself
installs wandb and more. The rate is that of ``small``; the benchmark's data are at 100 Hz.
"""

from __future__ import annotations

import mne
import pytest
import torch
from torch import nn

from braindecode_pars import PARSNet
from braindecode_pars._common.computing import seeded
from braindecode_pars.models import template_montage

HEAD = "final_layer"
MODELS = {
    "PARSNet": dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32),
    "small": dict(encoder="small"),
}


@pytest.fixture(params=MODELS)
def build(request):
    """Return ``build(n_outputs)``, which calls the constructor as ``_BraindecodeBackbone``."""
    info = mne.create_info(["C3", "Cz", "C4"], 128.0, "eeg")
    info.set_montage(template_montage())

    def build(n_outputs=2):
        with seeded(0):
            return PARSNet(
                n_chans=3,
                n_times=512,
                n_outputs=n_outputs,
                sfreq=128.0,
                chs_info=info["chs"],
                **MODELS[request.param],
            )

    return build


@pytest.fixture
def x():
    return 2e-5 * torch.randn(4, 3, 512)


def test_the_last_layer_can_be_replaced(build, x):
    """LinearHead, MLPHead and FlattenHead, whose sizes follow from the features."""
    n_features = []
    for head in (
        nn.Sequential(nn.Flatten(1), nn.LazyLinear(5)),
        nn.Sequential(nn.Flatten(1), nn.LazyLinear(8), nn.ELU(), nn.Dropout(0.5), nn.Linear(8, 5)),
    ):
        model = build()
        assert model(x).shape == (4, 2)
        setattr(model, HEAD, head)
        assert model(x).shape == (4, 5)
        n_features.append(head[1].in_features)
    model = build().eval()
    setattr(model, HEAD, nn.Flatten(1))
    flat = model(x)
    assert flat.shape == (4, n_features[0]) == (4, n_features[1])
    assert len(flat.unique(dim=0)) == 4  # not the same for all windows


def test_only_the_last_layer_is_missing_from_weights_for_other_classes(build, x):
    """``load_pretrained`` refuses any other parameter that would stay random."""
    model, file = build(2), build(7).state_dict()
    state = model.state_dict()
    filtered = {k: v for k, v in file.items() if k in state and v.shape == state[k].shape}
    missing, unexpected = model.load_state_dict(filtered, strict=False)
    assert missing
    assert all(name.startswith(f"{HEAD}.") for name in missing)
    assert unexpected == []
    assert {name for name in file if name not in filtered} == set(missing)


def test_frozen_trains_the_last_layer_alone(build, x):
    model = build()
    for name, parameter in model.named_parameters():
        parameter.requires_grad = HEAD in name
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
    nn.functional.cross_entropy(model(x), torch.tensor([0, 1, 0, 1])).backward()
    optimizer.step()
    changed = {n for n, tensor in model.state_dict().items() if not torch.equal(tensor, before[n])}
    assert changed
    assert all(name.startswith(f"{HEAD}.") for name in changed)
