"""Weight decay is for the weights of linear layers only."""

from __future__ import annotations

from braindecode_pars.pretext import PARS
from braindecode_pars.pretraining import PretrainingNet


def make(tiny, **arguments):
    task = PARS(600, 100, **tiny)
    return PretrainingNet(task, **{"batch_size": 8, "max_epochs": 2, "verbose": 0, **arguments})


def test_weight_decay_excludes_norms_biases_and_tokens(tiny):
    net = make(tiny, optimizer__weight_decay=0.3).initialize()
    names = {id(p): name for name, p in net.module_.named_parameters()}
    decayed = {
        names[id(p)]
        for group in net.optimizer_.param_groups
        if group["weight_decay"] > 0
        for p in group["params"]
    }
    assert decayed == {
        name for name in names.values() if name.endswith("weight") and "norm" not in name
    }
    assert all(g["weight_decay"] in (0.0, 0.3) for g in net.optimizer_.param_groups)
