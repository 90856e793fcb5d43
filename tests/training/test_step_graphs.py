"""Captured steps equal uncaptured steps; steps that cannot be captured run without a graph."""

from __future__ import annotations

import copy
import logging
import pickle
import random

import numpy as np
import pandas as pd
import pytest
import torch
from accelerate.utils import recursively_apply
from skorch.callbacks import Callback
from support.small_estimators import classifier
from support.small_runs import last_checkpoint, make_store, run
from torch import nn
from torch.utils._pytree import tree_leaves

from braindecode_pars._common import computing, step_graphs
from braindecode_pars._common.step_graphs import CapturedStep, StepGraphs
from braindecode_pars.pretext import (
    MAE,
    PARS,
    PRETEXT_TASKS,
    Joint,
    SpaceTimeFeatures,
    SpaceTimeJoint,
    SpaceTimePARS,
    SpaceTimeSpectralMAE,
)
from braindecode_pars.pretext.joint import SeveralLengths
from braindecode_pars.pretraining import PretrainingNet

SIZES = dict(embed_dim=32, num_layers=1, num_heads=4, mlp_dim=32, drop_prob=0.1)

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def several_lengths():
    first = MAE(1000, 100, **SIZES)
    return SeveralLengths([first, MAE(500, 100, encoder=first.encoder)])


TASKS = {
    "pars": lambda: PARS(1000, 100, **SIZES),
    "pars on a grid": lambda: PARS(1000, 100, sampling="grid", **SIZES),
    "pars apart": lambda: PARS(1000, 100, overlap=False, detrend=True, decoder="mlp", **SIZES),
    "spectral tokens": lambda: PARS(1000, 100, tokenizer="spectral", **SIZES),
    "pars_space_time": lambda: SpaceTimePARS(1000, 100, **SIZES),
    "mae": lambda: MAE(1000, 100, **SIZES),
    "mp3": lambda: PRETEXT_TASKS["mp3"](1000, 100, **SIZES),
    "droppos": lambda: PRETEXT_TASKS["droppos"](1000, 100, **SIZES),
    "spectral": lambda: PRETEXT_TASKS["spectral"](1000, 100, **SIZES),
    "features": lambda: PRETEXT_TASKS["features"](1000, 100, sfreq=100, **SIZES),
    "joint": lambda: Joint(1000, 100, **SIZES),
    "features_space_time": lambda: SpaceTimeFeatures(1000, 100, sfreq=100, **SIZES),
    "spectral_space_time": lambda: SpaceTimeSpectralMAE(1000, 100, **SIZES),
    "joint_space_time": lambda: SpaceTimeJoint(1000, 100, sfreq=100, **SIZES),
    "several lengths": several_lengths,
}


def batch_of(name, device="cpu", n=8):
    if not name.endswith("space_time"):
        return torch.randn(n, 1000, device=device)
    keep = torch.ones(n, 5, dtype=torch.bool, device=device)
    keep[:, 3:] = torch.arange(n, device=device)[:, None] % 2 == 0
    positions = 0.1 * torch.rand(n, 5, 3, device=device)
    return dict(x=torch.randn(n, 5, 1000, device=device), positions=positions, keep=keep)


class GraphOfCPU:
    """Stands in for a CUDA graph: runs the step, and writes into the tensors of the capture."""

    def __init__(self, step):
        self.step = step
        with torch.random.fork_rng([]):
            outputs, self.gradients = step()
        self.outputs = recursively_apply(torch.clone, outputs)  # places are one row, expanded

    def replay(self):
        outputs, gradients = self.step()
        written = [*tree_leaves(self.outputs), *self.gradients]
        for place, value in zip(written, [*tree_leaves(outputs), *gradients], strict=True):
            if place is not None:
                place.copy_(value)


@pytest.fixture
def on_cpu(monkeypatch):
    """Capture steps on the CPU, with the graph above; count the graphs and the replays."""
    counted = dict(captured=0, replayed=0)

    def capture(self, step, batch, weights):
        counted["captured"] += 1
        batch = recursively_apply(torch.clone, batch)

        def once():
            before = [weight.grad for weight in weights]
            for weight in weights:
                weight.grad = None
            outputs = step_graphs._detached(step(batch))
            gradients = [weight.grad for weight in weights]
            for weight, gradient in zip(weights, before, strict=True):
                weight.grad = gradient
            return outputs, gradients

        graph = GraphOfCPU(once)
        return CapturedStep(graph, step_graphs._tensors_of(batch), graph.outputs, graph.gradients)

    replay = CapturedStep.replay

    def counting(self, *args):
        counted["replayed"] += 1
        return replay(self, *args)

    monkeypatch.setattr(StepGraphs, "_capture", capture)
    monkeypatch.setattr(CapturedStep, "replay", counting)
    monkeypatch.setattr(computing.TrainingNet, "_can_capture", True)
    return counted


@pytest.fixture
def uncompiled(monkeypatch):
    """Capture without the compiler, which takes long."""
    monkeypatch.setattr(computing.TrainingNet, "torch_compile", lambda self, module, name: module)


@pytest.fixture
def store(tmp_path):
    return make_store(tmp_path / "store").path


def columns_of(out):
    """Return the losses in the metrics of a run."""
    return pd.read_csv(out / "metrics.csv").filter(like="loss")


CHANGES = {
    "micro-batches": dict(task="joint", micro_batch_size=2, drop_prob=0.1),
    "several lengths": dict(task="mae", window_seconds=(3.0, 2.0), micro_batch_size=4),
    "all channels": dict(task="pars_space_time", epochs=2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_replayed_run_equals_one_that_is_not(name, store, tmp_path, on_cpu, monkeypatch):
    changes = dict(epochs=1) | CHANGES[name]
    graphs = run(store, tmp_path / "graphs", **changes)
    n_kinds = 2 if name == "several lengths" else 1
    n_steps = changes["epochs"] * 3 * 8 // changes.get("micro_batch_size", 8)
    assert on_cpu == dict(captured=n_kinds, replayed=n_steps - n_kinds)
    monkeypatch.undo()
    plain = run(store, tmp_path / "plain", **changes)
    actual, expected = last_checkpoint(graphs), last_checkpoint(plain)
    assert all(torch.equal(actual[key], expected[key]) for key in expected)
    pd.testing.assert_frame_equal(columns_of(graphs), columns_of(plain), check_exact=True)


def fine_tuned(windows):
    return classifier(
        pretrain_epochs=2,
        finetune_epochs=3,
        finetune_batch_size=20,  # the last batch is smaller
        gradient_clip=0.1,
        head_epochs=1,
        encoder_lr_factor=0.5,
        drop_prob=0.1,
    ).fit(windows)


def test_a_fit_with_graphs_equals_one_without(short, on_cpu, monkeypatch):
    """With clipping, a smaller last batch, an encoder that thaws, and validation."""
    graphs = fine_tuned(short)
    assert on_cpu["captured"] >= 3
    monkeypatch.undo()
    plain = fine_tuned(short)
    assert np.array_equal(graphs.predict_proba(short), plain.predict_proba(short))
    assert graphs.net_.graphs_ is None


def small_net(task=None, **arguments):
    task = PARS(1000, 100, **SIZES) if task is None else task
    return PretrainingNet(task, **{"batch_size": 8, "max_epochs": 4, "verbose": 0, **arguments})


def signals(n=20):
    return np.random.default_rng(0).normal(size=(n, 1000)).astype(np.float32)


class KeepOutputs(Callback):
    """Keep what callbacks get, as skorch's scores of the training set do."""

    def on_train_begin(self, net, **kwargs):
        self.outputs = []

    def on_batch_end(self, net, y_pred=None, loss=None, **kwargs):
        self.outputs += [loss, *tree_leaves(y_pred)]
        if not hasattr(self, "copies"):
            self.copies = ()
            self.copies = copy.deepcopy(net), pickle.dumps(net)


@pytest.mark.usefixtures("on_cpu")
def test_what_callbacks_keep_is_not_overwritten_and_a_net_can_be_copied():
    recorder = KeepOutputs()
    net = small_net(callbacks=[recorder]).fit(signals(16))
    assert len({float(loss) for loss in recorder.outputs[::3]}) == 8
    assert recorder.copies[0].graphs_ is None
    assert pickle.loads(recorder.copies[1]).graphs_ is None
    assert "graphs_" not in net.get_params()


def run_one(graphs, net, x):
    net.graphs_ = graphs
    net._set_training(True)
    net._zero_grad_optimizer()
    return net.train_step_single((x, None))


def test_a_step_of_another_kind_has_a_graph_of_its_own(on_cpu):
    net = small_net().initialize()
    graphs = StepGraphs(torch.device("cpu"), [net.module_])
    x = torch.randn(4, 1000)

    def captured_after_two():
        run_one(graphs, net, x)
        run_one(graphs, net, x)
        return on_cpu["captured"]

    assert captured_after_two() == 1
    net.module_.mask_token.requires_grad_(False)
    assert captured_after_two() == 2
    assert net.module_.mask_token.grad is None
    net.module_.encoder.blocks[0].dropout.p = 0.5
    assert captured_after_two() == 3
    net.module_.head = nn.Linear(2, 2)
    assert captured_after_two() == 4
    with net.module_.encoder.register_forward_hook(lambda *_: None):
        before = on_cpu["replayed"]
        assert captured_after_two() == 4
        assert on_cpu["replayed"] == before
    for n in range(1, 2 * StepGraphs.MAX_KINDS):  # no more than so many
        for _ in range(2):
            run_one(graphs, net, x[:1].repeat(n, 1))
    assert on_cpu["captured"] == len(graphs.steps) == StepGraphs.MAX_KINDS


def log_of(caplog):
    return [r.getMessage() for r in caplog.records if r.name == step_graphs.__name__]


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_what_cannot_be_captured_trains_without_a_graph(monkeypatch, caplog):
    """The capture is the true one, which fails here, where there is no CUDA."""
    monkeypatch.setattr(computing.TrainingNet, "_can_capture", True)
    with caplog.at_level(logging.INFO):
        torch.manual_seed(0)
        graphs = small_net().fit(signals())
    (line,) = log_of(caplog)
    assert line.startswith("Training of PARS runs without CUDA graphs (")
    monkeypatch.undo()
    torch.manual_seed(0)
    assert graphs.history[:, "train_loss"] == small_net().fit(signals()).history[:, "train_loss"]


# On a CUDA device. Sums of atomic additions, in attention and in the cross-entropy of places, have
# no fixed order, so that losses and gradients of two steps are equal up to rounding only.


def cuda_steps(task, captured, batches, **arguments):
    """Return what each step returns, and the gradients of the last."""
    net = small_net(copy.deepcopy(task), compile=True, device="cuda", **arguments).initialize()
    outputs = []
    with net.captured_steps():
        if not captured:
            net.graphs_ = None
        for number, x in enumerate(batches):
            with computing.seeded(number, "cuda"):
                outputs.append(net.train_step((x, None)))
        n_graphs = 0 if not captured else sum(s is not None for s in net.graphs_.steps.values())
        assert not captured or net.graphs_.works
    gradients = {n: p.grad for n, p in net.module_.named_parameters() if p.grad is not None}
    return outputs, gradients, n_graphs


def assert_same_steps(actual, expected, tolerance=2e-3):
    for one, other in zip(actual[0], expected[0], strict=True):
        torch.testing.assert_close(one["loss"], other["loss"], rtol=tolerance, atol=0)
        targets = [tree_leaves(outputs_of_step["y_pred"][1]) for outputs_of_step in (one, other)]
        for a, b in zip(*targets, strict=True):  # the same draws
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)
    assert actual[1].keys() == expected[1].keys()
    norm = torch.stack([gradient.norm() for gradient in expected[1].values()]).norm()
    differences = [
        (a - b).norm() for a, b in zip(actual[1].values(), expected[1].values(), strict=True)
    ]
    assert torch.stack(differences).norm() <= 10 * tolerance * norm


@needs_cuda
@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", TASKS)
def test_captured_steps_equal_the_others(name, precision):
    task, batches = TASKS[name](), [batch_of(name) for _ in range(5)]
    if name == "several lengths":
        batches = [x[:, : (1000, 500)[i % 2]] for i, x in enumerate(batches + batches)]
    actual, expected = (cuda_steps(task, c, batches, precision=precision) for c in (True, False))
    assert actual[2] == (2 if name == "several lengths" else 1)
    assert_same_steps(actual, expected, 2e-3 if precision == "float32" else 2e-2)


class Waits(PARS):
    def forward(self, x):
        assert x.mean().item() < 1
        return super().forward(x)


class DrawsOnCPU(PARS):
    def forward(self, x):
        return super().forward(x.flip(-1) if random.random() < 0.5 else x)


@needs_cuda
@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("kind", [Waits, DrawsOnCPU])
def test_training_continues_if_capture_fails(kind, caplog):
    with caplog.at_level(logging.INFO):
        net = small_net(kind(1000, 100, **SIZES), compile=True, device="cuda").fit(signals())
    (line,) = log_of(caplog)
    print(line)
    assert line.startswith(f"Training of {kind.__name__} runs without CUDA graphs (")
    assert np.isfinite(net.history[:, "train_loss"]).all()
    assert torch.rand(3, device="cuda").isfinite().all()
    # The next training is captured again.
    _, _, n_graphs = cuda_steps(TASKS["mae"](), True, [batch_of("mae") for _ in range(4)])
    assert n_graphs == 1
