"""Device, precision, and the operations and tokens of a training."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from support.operations import count, count_steps
from support.small_estimators import classifier
from torch import nn

from braindecode_pars._common import computing as precision
from braindecode_pars._common.computing import find_device, seeded
from braindecode_pars.pretext import PARS, PRETEXT_TASKS, Joint, PretextTask
from braindecode_pars.pretraining import PretrainingNet


def test_auto_takes_what_is_available():
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    if torch.backends.mps.is_available():
        expected = "mps"
    assert find_device("auto").type == expected
    assert find_device(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "meta", "cpu:x"])
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


@pytest.mark.parametrize("task", ["pars", "mae", "spectral", "features", "mp3", "droppos", "joint"])
def test_bfloat16_gives_nearly_the_losses_of_float32(task, tiny, signals, monkeypatch):
    """bfloat16 has three significant digits instead of seven; losses agree within 2 %."""
    monkeypatch.setattr(PRETEXT_TASKS["features"], "N_PREPARED", 50)
    results = {}
    for kind in ("float32", "bfloat16"):
        torch.manual_seed(0)
        net = PretrainingNet(
            PRETEXT_TASKS[task](600, 100, **({"sfreq": 100} if task == "features" else {}), **tiny),
            batch_size=8,
            max_epochs=2,
            verbose=0,
            precision=kind,
        )
        results[kind] = losses(net.fit(signals))
    # The losses differ a little, so bfloat16 is in use.
    assert not np.array_equal(results["bfloat16"], results["float32"])
    np.testing.assert_allclose(results["bfloat16"], results["float32"], rtol=0.02)


def test_the_autocast_of_a_program_keeps_no_weights_of_earlier_steps(tiny, signals):
    actual = []
    for outer in (nullcontext(), torch.autocast("cpu", torch.bfloat16)):
        torch.manual_seed(0)
        with outer:
            net = make(tiny, max_epochs=4, lr=1e-2, precision="bfloat16").fit(signals)
        actual.append(losses(net))
    np.testing.assert_allclose(*actual, rtol=2e-3)  # the loss itself is in the other precision


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compilation_keeps_losses_and_names_of_weights(backend, tiny, signals):
    results = {}
    for compiled in (False, True):
        torch.manual_seed(0)
        net = make(tiny, max_epochs=3, compile=compiled, compile__backend=backend).fit(signals)
        results[compiled] = losses(net), list(net.module_.state_dict())
    np.testing.assert_allclose(results[True][0], results[False][0], rtol=1e-4)
    assert results[True][1] == results[False][1]


def compiled_parts(module):
    return {name for name, part in module.named_modules() if part._compiled_call_impl is not None}


def test_only_encoders_and_decoders_are_compiled(tiny):
    assert compiled_parts(make(tiny, compile=True).initialize().module_) == {"encoder", "decoder"}
    assert not compiled_parts(make(tiny).initialize().module_)
    task = Joint(600, 100, tasks={"pars": 1.0, "mae": 1.0}, **tiny)
    joint = PretrainingNet(task, compile=True, verbose=0)
    parts = {"encoder", "parts.pars.decoder", "parts.mae.decoder"}
    assert compiled_parts(joint.initialize().module_) == parts


def test_an_unknown_precision_raises(tiny, signals):
    with pytest.raises(ValueError, match="half"):
        make(tiny, precision="half").fit(signals)


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
    """Both phases run in bfloat16; predictions are close to float32."""
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


def test_a_setting_through_torchs_newer_interface_is_kept(tiny, signals):
    """torch then raises an error when the older setting is read."""
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = "tf32"
    try:
        with precision.tensor_cores(torch.device("cuda")):
            assert matmul.fp32_precision == "tf32"
        make(tiny, max_epochs=1).fit(signals)
        assert matmul.fp32_precision == "tf32"
    finally:
        matmul.fp32_precision = before


def test_without_a_device_the_module_stays_where_it_is(tiny, signals):
    net = make(tiny, max_epochs=1, device=None).fit(signals)
    assert net.compute_device == torch.device("cpu")


SIZES = dict(embed_dim=16, num_layers=2, num_heads=2, mlp_dim=24)


def plain_flops(n_examples: int, n_patches: int) -> int:
    """Multiplications and additions of the matrix products of an encoder."""
    d, m = SIZES["embed_dim"], SIZES["mlp_dim"]
    projections = 4 * n_patches * d * d  # queries, keys, values, output
    attention = 2 * n_patches * n_patches * d  # logits and weighted values, over all heads
    feed_forward = 2 * n_patches * d * m
    return n_examples * SIZES["num_layers"] * 2 * (projections + attention + feed_forward)


class Plain(PretextTask):
    criterion = nn.MSELoss

    def forward(self, x):
        features = self.encoder(x.unflatten(1, (7, 16)))
        return features, torch.zeros_like(features)


def test_a_step_of_an_encoder():
    task = Plain(7 * 16, 16, **SIZES)
    # A backward pass has two products for each product of the forward pass.
    assert count(task, 3) == (3 * 7, 3 * plain_flops(3, 7))
    assert not task.encoder._forward_pre_hooks


def test_all_steps_of_a_task_from_two_small_ones():
    task = PRETEXT_TASKS["mae"](200, 20, **SIZES)
    whole = [count(task, n) for n in (5, 5, 3)]  # 13 examples in batches of five
    tokens, flops = count_steps(task, 3, 13)
    assert flops == pytest.approx(sum(one for _, one in whole))
    assert tokens == sum(one for one, _ in whole) == 13 * 5  # patches that are not masked
