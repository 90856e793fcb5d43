"""Device and precision of a training."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from support.small_estimators import classifier

from braindecode_pars._common import computing as precision
from braindecode_pars._common.computing import find_device, seeded
from braindecode_pars.pretext import PARS, PRETEXT_TASKS, Joint
from braindecode_pars.pretraining import PretrainingNet


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "meta"])
def test_a_device_that_cannot_be_used_is_refused(name):
    with pytest.raises(ValueError, match=name):
        find_device(name)


def test_the_draws_of_a_seed_are_those_of_torch_and_the_state_comes_back():
    before = torch.get_rng_state()
    with seeded(7):
        first = torch.randn(2)
        with pytest.raises(RuntimeError, match="invalid"), seeded(8):  # also after an error
            torch.rand(2).view(3)
        actual = torch.cat([first, torch.randn(3)])
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(7)
    assert torch.equal(actual, torch.cat([torch.randn(2), torch.randn(3)]))


@pytest.fixture
def signals():
    return np.random.default_rng(0).normal(size=(24, 600)).astype(np.float32)


def make(tiny, **arguments):
    task = PARS(600, 100, **tiny)
    return PretrainingNet(task, **{"batch_size": 8, "max_epochs": 2, "verbose": 0, **arguments})


def losses(net):
    return np.array(net.history[:, "train_loss"])


def output_types(net, part, signals):
    """Return the types of a linear layer's output in one training step."""
    types = set()
    layer = net.module_.get_submodule(part)
    hook = layer.register_forward_hook(lambda layer, inputs, out: types.add(out.dtype))
    net.train_step((torch.from_numpy(signals[:4]), torch.zeros(4)))
    hook.remove()
    return types


def test_bfloat16_is_used_in_the_encoder_and_weights_stay_float32(tiny, signals):
    net = make(tiny, precision="bfloat16").initialize()
    assert output_types(net, "encoder.blocks.0.attention.query", signals) == {torch.bfloat16}
    assert output_types(net, "decoder.attention.key", signals) == {torch.float32}
    assert {p.dtype for p in net.module_.parameters()} == {torch.float32}
    assert {p.grad.dtype for p in net.module_.parameters()} == {torch.float32}
    full = make(tiny).initialize()
    assert output_types(full, "encoder.blocks.0.attention.query", signals) == {torch.float32}


@pytest.mark.parametrize("task", ["mae", "spectral", "features", "mp3", "joint"])
def test_bfloat16_gives_nearly_the_losses_of_float32(task, tiny, signals, monkeypatch):
    """bfloat16 has three significant digits instead of seven; losses agree within 2 %."""
    monkeypatch.setattr(PRETEXT_TASKS["features"], "N_PREPARED", 50)
    results = {}
    for kind in ("float32", "bfloat16"):
        torch.manual_seed(0)
        rate = {"sfreq": 100} if task == "features" else {}
        net = PretrainingNet(
            PRETEXT_TASKS[task](600, 100, **rate, **tiny), batch_size=8, verbose=0, precision=kind
        )
        results[kind] = losses(net.set_params(max_epochs=2).fit(signals))
    # The losses differ a little, so bfloat16 is in use.
    assert not np.array_equal(results["bfloat16"], results["float32"])
    np.testing.assert_allclose(results["bfloat16"], results["float32"], rtol=0.02)


def test_only_encoders_and_decoders_are_compiled(tiny, monkeypatch):
    parts = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda part, **_: parts.append(part))
    task = Joint(600, 100, tasks={"pars": 1.0, "mae": 1.0}, **tiny)
    modules = PretrainingNet(task, compile=True, verbose=0).initialize().module_.named_modules()
    compiled = {name for name, part in modules if any(part is other for other in parts)}
    assert compiled == {"encoder", "parts.pars.decoder", "parts.mae.decoder"}


def test_the_autocast_of_a_program_keeps_no_weights_of_earlier_steps(tiny, signals):
    actual = []
    for outer in (nullcontext(), torch.autocast("cpu", torch.bfloat16)):
        torch.manual_seed(0)
        with outer:
            net = make(tiny, max_epochs=4, lr=1e-2, precision="bfloat16").fit(signals)
        actual.append(losses(net))
    np.testing.assert_allclose(*actual, rtol=2e-3)  # the loss itself is in the other precision


def test_cuda_uses_tf32_and_fused_adamw_and_restores_the_setting(tiny, signals, monkeypatch):
    """CUDA trains with TF32; CUDA and the CPU with the fused optimizer."""
    seen = []

    class RecordPrecision(Callback):
        def on_batch_begin(self, net, **kwargs):
            seen.append(torch.get_float32_matmul_precision())

    before = torch.get_float32_matmul_precision()
    net = make(tiny, max_epochs=1, callbacks=[RecordPrecision()]).fit(signals)
    assert set(seen) == {before}
    assert net.optimizer_.param_groups[0]["fused"]

    # This works without a GPU: torch accepts the setting anyway.
    with precision.tensor_cores(torch.device("cuda")):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before
    monkeypatch.setattr(PretrainingNet, "compute_device", torch.device("cuda"))
    _, arguments = net.get_params_for_optimizer("optimizer", net.module_.named_parameters())
    assert arguments["fused"]


def test_a_classifier_in_bfloat16_predicts_in_float32(short):
    probabilities, windows = {}, short[:24]
    for kind in ("float32", "bfloat16"):
        clf = classifier(validation=0, device="cpu", precision=kind).fit(windows)
        probabilities[kind] = clf.predict_proba(windows)
        assert {p.dtype for p in clf.net_.module_.parameters()} == {torch.float32}
        assert clf.net_.precision == kind
    assert probabilities["bfloat16"].dtype == np.float32
    # The predictions differ a little, so bfloat16 is in use.
    assert not np.array_equal(*probabilities.values())
    np.testing.assert_allclose(*probabilities.values(), atol=0.02)
