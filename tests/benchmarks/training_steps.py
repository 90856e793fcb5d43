"""Time of training: pretext tasks, the decoder of PARS, dropped channels, the loop on a store.

Nearly all are ratios to the encoder alone or to bare steps, measured side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import skorch
import torch
from benchmarks.measuring import N_CHANS, N_TIMES, Row, fastest, peak_bytes, ratio, synthetic_store
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from braindecode_pars import paper
from braindecode_pars._common.computing import tensor_cores
from braindecode_pars.models import PARSNet, embed_signals
from braindecode_pars.pretext import MAE, MP3, PARS, PRETEXT_TASKS, DropPos, SpaceTimePARS
from braindecode_pars.pretext.pairwise import CrossAttentionDecoder
from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.runs import RunConfig, pretrain
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.tokens import extract_patches, instance_norm


def step_of(task: nn.Module, x: torch.Tensor) -> Callable[[], None]:
    """Return a forward and backward pass of the task."""

    def step() -> None:
        task.zero_grad()
        task.criterion()(*task(x)).backward()

    return step


def encoder_of(task: PARS, x: torch.Tensor) -> Callable[[], None]:
    """Return a forward and backward pass of the encoder alone, on the same number of patches."""

    def step() -> None:
        task.zero_grad()
        patches = extract_patches(instance_norm(x), task.sample_starts(len(x)), task.patch_size)
        task.encoder(task.encoder.tokenize(patches)).square().mean().backward()

    return step


def pars_step() -> Iterator[Row]:
    """Time steps of PARS at the paper's size, with 40 patches and batch size 16."""
    torch.manual_seed(0)
    task, x = PARS(6000), torch.randn(16, 6000)
    step = step_of(task, x)

    def literal() -> None:
        task.decoder.method = "literal"
        step()
        task.decoder.method = "factorized"

    yield Row(
        "PARS step, literal / factorized decoder", ratio(literal, step, 4), aim=3.3, under=2.5
    )
    yield Row("PARS step / bare encoder", ratio(step, encoder_of(task, x), 6), aim=1.13, over=1.3)


def task_steps() -> Iterator[Row]:
    """Time steps of MAE, MP3 and DropPos at the paper's size and batch size 16.

    The reference is the encoder on the tokens that the task encodes, with the same key mask.
    """
    for kind in (MAE, MP3, DropPos):
        torch.manual_seed(0)
        task, x = kind(6000), torch.randn(16, 6000)

        # Record the arguments of the encoder in one step of the task.
        calls: list[tuple] = []
        hook = task.encoder.register_forward_pre_hook(lambda _, args: calls.append(args))  # noqa: B023
        task(x)
        hook.remove()
        n_tokens, key_mask = calls[0][0].shape[1], calls[0][1:]

        def encoder_alone() -> None:
            task.zero_grad()  # noqa: B023
            patches = task.patches(x)[:, :n_tokens]  # noqa: B023
            tokens = task.encoder.tokenize(patches)  # noqa: B023
            task.encoder(tokens, *key_mask).square().mean().backward()  # noqa: B023

        what = f"{kind.__name__} step / bare encoder on {n_tokens} tokens"
        rounds = 6 if kind is MAE else 3  # MAE is near its bound
        yield Row(what, ratio(step_of(task, x), encoder_alone, rounds), aim=1.2, over=1.4)


def long_sequence() -> Iterator[Row]:
    """Time steps of PARS on 240 one-second patches from three minutes, with batch size 8."""
    torch.manual_seed(0)
    task, x = PARS(36_000, n_patches=240), torch.randn(8, 36_000)
    value = ratio(step_of(task, x), encoder_of(task, x), 4)
    yield Row("PARS step / bare encoder, 240 patches, batch 8", value, aim=1.35, over=1.35)


def tokenizers() -> Iterator[Row]:
    """Time steps of PARS with spectral and with linear tokens, at both sizes, with 30-s windows.

    The small size is that of the estimators. The batch has 64 windows at 100 Hz, or 16 at 200 Hz.
    """
    sizes = {
        "small": (3000, 100, 64, dict(embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128)),
        "the paper's": (6000, 200, 16, {}),
    }
    for name, (n_times, patch_size, batch_size, size) in sizes.items():
        torch.manual_seed(0)
        x = torch.randn(batch_size, n_times)
        spectral, linear = (
            step_of(PARS(n_times, patch_size, tokenizer=tokenizer, **size), x)
            for tokenizer in ("spectral", "linear")
        )
        what = f"PARS step, spectral / linear tokens, {name} size"
        yield Row(what, ratio(spectral, linear, 4), aim=1.1, over=1.25)


def decoder_step(method: str, n_patches: int = 40, batch_size: int = 16) -> Callable[[], None]:
    """Return a forward and backward pass at the paper's size, with 80 % of the patches masked."""
    torch.manual_seed(0)
    decoder = CrossAttentionDecoder(512, 8, method=method)
    features = torch.randn(batch_size, n_patches, 512, requires_grad=True)

    def run() -> None:
        decoder.zero_grad()
        features.grad = None
        queries = features[:, : round(0.8 * n_patches)]
        decoder(queries, features).square().mean().backward()

    return run


def decoder_time() -> Iterator[Row]:
    """Time forward and backward passes at the paper's size and batch size 16."""
    value = ratio(decoder_step("literal"), decoder_step("factorized"), 3)
    yield Row("decoder alone, literal / factorized", value, aim=20, under=10)


def decoder_memory() -> Iterator[Row]:
    """Measure the peak memory of a forward and backward pass.

    The literal decoder is measured only with numbers of patches that fit into a laptop's memory.
    """
    factorized = {n: peak_bytes(decoder_step("factorized", n)) for n in (40, 80, 160, 240)}
    literal = {n: peak_bytes(decoder_step("literal", n)) for n in (40, 80)}
    value = factorized[40] / literal[40]
    yield Row("decoder's peak memory, factorized / literal", value, aim=0.125, over=0.2)
    for method, peaks in (("factorized", factorized), ("literal", literal)):
        for n_patches, peak in peaks.items():
            what = f"decoder's peak memory, {method}, {n_patches} patches, batch 16"
            yield Row(what, peak / 2**20, "MiB")


def channel_drop() -> Iterator[Row]:
    """Time forward and backward passes of PARSNet with four layers and batch size 4."""
    torch.manual_seed(0)
    sizes = paper.MODEL | dict(num_layers=4)
    net = PARSNet(n_outputs=5, n_chans=16, n_times=6000, sfreq=200.0, **sizes).train()
    x = torch.randn(4, 16, 6000)

    def before() -> None:
        net.zero_grad()
        net(x).square().mean().backward()

    def after() -> None:
        # The forward pass of PARSNet, but it encodes all channels.
        net.zero_grad()
        keep = net._kept_channels(x, None)
        spatial = embed_signals(net.encoder, x.flatten(0, 1)).unflatten(0, x.shape[:2])
        # spatial: (batch, n_chans, embed_dim)
        query = net.query_token.expand(len(x), 1, -1)
        pooled = net.spatial_attention(query, spatial, keep).squeeze(1)
        net.final_layer(pooled).square().mean().backward()

    what = "PARSNet step, 16 channels, p = 0.5, dropping after / before the encoder"
    yield Row(what, ratio(after, before, 3), aim=1.8, under=1.5)


#: Number of windows in the paper's pretraining corpus, and number of its epochs.
PAPER_WINDOWS, PAPER_EPOCHS = 1_500_000, 1000


def training_loop() -> Iterator[Row]:
    """Compare the loop with bare steps on one tensor in memory, on the CPU.

    PARS has the paper's size, and PARS over the head that of the estimators.
    """
    what = "whole training loop from a store / bare steps"
    value = loop_ratio(PARS(N_TIMES), torch.randn(32, N_TIMES))
    yield Row(f"{what}, paper size, batch 32", value, aim=1.05, over=1.2)
    size = dict(embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128, tokenizer="spectral")
    task, x = SpaceTimePARS(N_TIMES, **size), torch.randn(16, N_CHANS, N_TIMES)
    value = loop_ratio(task, x, task="pars_space_time", **size)
    yield Row(
        f"{what}, PARS over the head, {N_CHANS} channels, batch 16", value, aim=1.05, over=1.2
    )


def loop_ratio(
    bare_task: PARS, x: torch.Tensor, n_steps: int = 5, rounds: int = 3, **given: Any
) -> float:
    """Return the time of the loop over that of bare steps: forward, backward and the optimizer."""
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(bare_task.parameters(), lr=1e-4, weight_decay=1e-4)
    step = step_of(bare_task, x)

    def bare() -> None:
        for _ in range(n_steps):
            step()
            optimizer.step()

    # The whole loop; its first epoch is a warm-up. Loop and bare steps alternate, as in ``ratio``.
    config = RunConfig(batch_size=len(x), epochs=2, steps_per_epoch=n_steps, device="cpu", **given)
    with synthetic_store() as store:
        pairs = [(last_epoch(store, config), fastest(bare, rounds=1)[0]) for _ in range(rounds)]
    loop, steps = (min(column) for column in zip(*pairs, strict=True))
    return loop / steps


def cuda_loop(n_steps: int = 50) -> Iterator[Row]:
    """Measure steps and the loop on CUDA, and estimate the time of the paper's pretraining.

    Steps are compiled, of PARS at the paper's size, and in bfloat16 where no other precision is
    named. Without CUDA there are no rows.
    """
    if not torch.cuda.is_available():
        return
    for batch_size, aim in ((512, 45_000), (2048, 58_000)):
        bare = yield from cuda_steps("PARS", PARS(N_TIMES), batch_size)
        yield from cuda_loops(batch_size, (4, 8), bare, aim, n_steps)
    yield from cuda_steps("PARS, float32", PARS(N_TIMES), 512, precision="float32")
    yield from cuda_steps("PARS, 240 patches", PARS(36_000, n_patches=240), 128)
    for name in ("mae", "mp3", "droppos", "spectral", "features", "joint", "pars_space_time"):
        yield from task_on_cuda(name)
    yield from decoders_on_cuda()


def cuda_steps(
    name: str,
    task: Any,
    batch_size: int,
    n_chans: tuple[int, ...] = (),
    *,
    precision: str = "bfloat16",
    n_steps: int = 30,
) -> Generator[Row, None, float]:
    """Yield the times of captured steps and of others; return windows per second when captured."""
    net = PretrainingNet(task, precision=precision, compile=True, device="cuda", verbose=0)
    net.initialize()
    x: Any = torch.randn(batch_size, *n_chans, task.n_times, device="cuda")
    if n_chans:
        x = {"x": x, "positions": 0.1 * torch.rand(*x.shape[:2], 3).cuda()}

    def milliseconds() -> float:
        def steps(n: int) -> None:
            for _ in range(n):  # as in a run, where no step waits for the GPU
                skorch.NeuralNet.train_step(net, (x, None))

        steps(4)
        seconds = [fastest(lambda: steps(n_steps), rounds=1)[0] for _ in range(2)]
        return 1000 * min(seconds) / n_steps

    with tensor_cores(net.compute_device):
        others = milliseconds()
        with net.captured_steps():
            captured = milliseconds()
            is_captured = any(net.graphs_.steps.values())
    what = f"{name}, batch {batch_size}, on CUDA"
    yield Row(f"{what}: a step without a graph", others, "ms")
    yield Row(
        f"{what}: a step" + ("" if is_captured else " (could not be captured)"), captured, "ms"
    )
    yield Row(f"{what}: captured steps", 1000 * batch_size / captured, "windows/s")
    yield Row(f"{what}: speed of captured steps over others", others / captured, aim=1.6)
    return 1000 * batch_size / captured


def cuda_loops(
    batch_size: int, workers: tuple[int, ...], bare: float, aim: float, n_steps: int = 50
) -> Iterator[Row]:
    """Measure the loop from a store; ``bare`` are the windows per second of bare steps."""
    config = RunConfig(
        batch_size=batch_size,
        epochs=3,  # the first epoch compiles and captures
        steps_per_epoch=n_steps,
        precision="bfloat16",
        compile=True,
        device="cuda",
    )
    rates = []
    with synthetic_store(n_recordings=16) as store:
        for n in workers:
            seconds = last_epoch(store, replace(config, num_workers=n))
            rates.append(batch_size * n_steps / seconds)
            what = f"loop from a store on CUDA, batch {batch_size}, {n} workers"
            yield Row(what, rates[-1], "windows/s", aim=aim)
            yield Row(f"{what}: bare steps / loop", bare / rates[-1], aim=1.1)
    rate = max(rates)
    share = rate * flops_of_window(PARS(N_TIMES).cuda()) / matmul_rate("cuda")
    yield Row("its share of the rate of bfloat16 matrix products", share, aim=0.4)
    hours = PAPER_WINDOWS * PAPER_EPOCHS / rate / 3600
    what = f"the paper's 1.5 million windows x 1000 epochs, batch {batch_size}, would take"
    yield Row(what, hours, "h")


def task_on_cuda(name: str, batch_size: int = 512) -> Iterator[Row]:
    """Measure the steps of a task at the paper's size."""
    given = dict(sfreq=200.0) if name == "features" else {}
    if name == "pars_space_time":  # as many tokens, of several channels
        task = PRETEXT_TASKS[name](2000, n_patches=10)
        yield from cuda_steps(name, task, batch_size // 8, n_chans=(19,))
    else:
        yield from cuda_steps(name, PRETEXT_TASKS[name](N_TIMES, **given), batch_size)


def decoders_on_cuda() -> Iterator[Row]:
    """Compare the two forms of the decoder."""
    task, x = PARS(N_TIMES).cuda(), torch.randn(64, N_TIMES, device="cuda")
    step = step_of(task, x)

    def literal() -> None:
        task.decoder.method = "literal"
        step()
        task.decoder.method = "factorized"

    yield Row("PARS step on CUDA, batch 64, literal / factorized decoder", ratio(literal, step, 5))


def last_epoch(store: SignalStore, config: RunConfig) -> float:
    """Return the seconds of the last epoch of a run, without the time for its checkpoint."""
    with TemporaryDirectory(prefix="braindecode-pars-benchmark-") as folder:
        pretrain(store, Path(folder) / "run", config, verbose=0)
        metrics = pd.read_csv(Path(folder) / "run" / "metrics.csv")
    return metrics["seconds"].iloc[-1]


def flops_of_window(task: PARS, batch_size: int = 4) -> float:
    """Return the floating-point operations per window of a training step.

    Only matrix products are counted.
    """
    x = torch.randn(batch_size, task.n_times, device=task.mask_token.device)
    with FlopCounterMode(display=False) as counter:
        step_of(task, x)()
    return counter.get_total_flops() / batch_size


def matmul_rate(device: str, size: int = 8192, dtype: torch.dtype = torch.bfloat16) -> float:
    """Return the floating-point operations per second of a square matrix product."""
    a = torch.randn(size, size, device=device, dtype=dtype)
    (seconds,) = fastest(lambda: a @ a, rounds=20)
    return 2 * size**3 / seconds
