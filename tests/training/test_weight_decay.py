"""Weight decay is for the weights of linear layers only."""

from __future__ import annotations

import torch

from braindecode_pars.pretext import PARS
from braindecode_pars.pretraining import PretrainingNet


def test_only_linear_weights_decay():
    task = PARS(600, 100, embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16)
    net = PretrainingNet(task, optimizer__weight_decay=0.1, verbose=0).initialize()
    names = {parameter: name for name, parameter in net.module_.named_parameters()}
    decays = {
        names[parameter]: group["weight_decay"]
        for group in net.optimizer_.param_groups
        for parameter in group["params"]
    }
    linear = {
        f"{name}.weight"
        for name, module in net.module_.named_modules()
        if isinstance(module, torch.nn.Linear)
    }
    assert {name for name, decay in decays.items() if decay} == linear
    assert set(decays.values()) == {0.0, 0.1}
