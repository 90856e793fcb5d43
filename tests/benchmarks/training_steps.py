"""Speed of training: pretext tasks, decoder of PARS, channel dropout, training loop on a store.

Most results are ratios to the encoder alone or to training steps without the loop, which are
measured alternately.
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
    """Return a function that runs a forward and a backward pass of the task."""

    def step() -> None:
        task.zero_grad()
        task.criterion()(*task(x)).backward()

    return step


def encoder_of(task: PARS, x: torch.Tensor) -> Callable[[], None]:
    """Return the passes of the encoder alone, on the same number of patches as the task."""

    def step() -> None:
        task.zero_grad()
        patches = extract_patches(instance_norm(x), task.sample_starts(len(x)), task.patch_size)
        task.encoder(task.encoder.tokenize(patches)).square().mean().backward()

    return step


def pars_step() -> Iterator[Row]:
    """Measure training steps of PARS at the paper's size, with 40 patches and batch size 16."""
    torch.manual_seed(0)
    task, x = PARS(6000), torch.randn(16, 6000)
    step = step_of(task, x)

    def literal() -> None:
        task.decoder.method = "literal"
        step()
        task.decoder.method = "factorized"

    title = "duration of a PARS step, literal / factorized decoder"
    yield Row(title, ratio(literal, step, 4), goal=3.3, under=2.5)
    title = "duration of a PARS step / encoder alone"
    yield Row(title, ratio(step, encoder_of(task, x), 6), goal=1.13, over=1.3)


def task_steps() -> Iterator[Row]:
    """Measure training steps of MAE, MP3 and DropPos at the paper's size and batch size 16.

    The reference is the encoder alone, with the same number of tokens and the same key mask.
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

        title = f"duration of a step of {kind.__name__} / encoder alone on {n_tokens} tokens"
        rounds = 6 if kind is MAE else 3  # the ratio of MAE is close to the bound
        yield Row(title, ratio(step_of(task, x), encoder_alone, rounds), goal=1.2, over=1.4)


def long_sequence() -> Iterator[Row]:
    """Measure steps of PARS on 240 one-second patches of three minutes, with batch size 8."""
    torch.manual_seed(0)
    task, x = PARS(36_000, n_patches=240), torch.randn(8, 36_000)
    value = ratio(step_of(task, x), encoder_of(task, x), 4)
    title = "duration of a PARS step / encoder alone, 240 patches, batch size 8"
    yield Row(title, value, goal=1.35, over=1.35)


def tokenizers() -> Iterator[Row]:
    """Measure steps of PARS with spectral and linear patch embedding, with windows of 30 s.

    The small size is the default of the estimators, with 64 windows at 100 Hz per batch. At the
    paper's size, a batch has 16 windows at 200 Hz.
    """
    sizes = {
        "small": (3000, 100, 64, dict(embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128)),
        "paper": (6000, 200, 16, {}),
    }
    for name, (n_times, patch_size, batch_size, size) in sizes.items():
        torch.manual_seed(0)
        x = torch.randn(batch_size, n_times)
        spectral, linear = (
            step_of(PARS(n_times, patch_size, tokenizer=tokenizer, **size), x)
            for tokenizer in ("spectral", "linear")
        )
        title = f"duration of a PARS step, spectral / linear patch embedding, {name} size"
        yield Row(title, ratio(spectral, linear, 4), goal=1.1, over=1.25)


def decoder_step(method: str, n_patches: int = 40, batch_size: int = 16) -> Callable[[], None]:
    """Return the passes of the decoder at the paper's size, with 80 % of the patches masked."""
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
    """Measure the duration of both passes of the decoder at the paper's size and batch size 16."""
    value = ratio(decoder_step("literal"), decoder_step("factorized"), 3)
    yield Row("duration of the decoder alone, literal / factorized", value, goal=20, under=10)


def decoder_memory() -> Iterator[Row]:
    """Measure the peak memory of both passes of the decoder.

    The literal decoder is measured only with 40 and 80 patches, to fit into the memory of a laptop.
    """
    factorized = {n: peak_bytes(decoder_step("factorized", n)) for n in (40, 80, 160, 240)}
    literal = {n: peak_bytes(decoder_step("literal", n)) for n in (40, 80)}
    value = factorized[40] / literal[40]
    yield Row("peak memory of the decoder, factorized / literal", value, goal=0.125, over=0.2)
    for method, peaks in (("factorized", factorized), ("literal", literal)):
        for n_patches, peak in peaks.items():
            title = f"peak memory of the decoder, {method}, {n_patches} patches, batch size 16"
            yield Row(title, peak / 2**20, "MiB")


def channel_drop() -> Iterator[Row]:
    """Measure steps of PARSNet that drop channels before or after the encoder, with four layers."""
    torch.manual_seed(0)
    sizes = paper.MODEL | dict(num_layers=4)
    net = PARSNet(n_outputs=5, n_chans=16, n_times=6000, sfreq=200.0, **sizes).train()
    x = torch.randn(4, 16, 6000)

    def before() -> None:
        net.zero_grad()
        net(x).square().mean().backward()

    def after() -> None:
        # The forward pass of PARSNet, except that all channels are encoded
        net.zero_grad()
        keep = net._kept_channels(x, None)
        spatial = embed_signals(net.encoder, x.flatten(0, 1)).unflatten(0, x.shape[:2])
        # spatial: (batch, n_chans, embed_dim)
        query = net.query_token.expand(len(x), 1, -1)
        pooled = net.spatial_attention(query, spatial, keep).squeeze(1)
        net.final_layer(pooled).square().mean().backward()

    title = "duration of a PARSNet step, 16 channels, half dropped after / before the encoder"
    yield Row(title, ratio(after, before, 3), goal=1.8, under=1.5)


PAPER_WINDOWS = 1_500_000  # number of windows in the paper's pretraining data
PAPER_EPOCHS = 1000  # number of pretraining epochs in the paper


def training_loop() -> Iterator[Row]:
    """Compare the training loop with training steps on one tensor in memory, on the CPU.

    PARS has the paper's size; space-time PARS has the default size of the estimators.
    """
    title = "duration of the training loop from a store / training steps alone"
    value = loop_ratio(PARS(N_TIMES), torch.randn(32, N_TIMES))
    yield Row(f"{title}, paper size, batch size 32", value, goal=1.05, over=1.2)
    size = dict(embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128, tokenizer="spectral")
    task, x = SpaceTimePARS(N_TIMES, **size), torch.randn(16, N_CHANS, N_TIMES)
    value = loop_ratio(task, x, n_steps=10, task="pars_space_time", **size)
    yield Row(
        f"{title}, space-time PARS, {N_CHANS} channels, batch size 16",
        value,
        goal=1.05,
        over=1.2,
    )


def loop_ratio(
    bare_task: PARS, x: torch.Tensor, n_steps: int = 3, rounds: int = 3, **settings: Any
) -> float:
    """Return the duration of the training loop, divided by the duration of the same steps alone."""
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(bare_task.parameters(), lr=1e-4, weight_decay=1e-4)
    step = step_of(bare_task, x)

    def steps_alone() -> None:
        for _ in range(n_steps):
            step()
            optimizer.step()

    # The first epoch of the loop is a warm-up. Loop and steps alternate, as in ``ratio``.
    config = RunConfig(
        batch_size=len(x), epochs=2, steps_per_epoch=n_steps, device="cpu", **settings
    )
    with synthetic_store() as store:
        pairs = [
            (last_epoch(store, config), fastest(steps_alone, rounds=1)[0]) for _ in range(rounds)
        ]
    loop_seconds, steps_seconds = (min(column) for column in zip(*pairs, strict=True))
    return loop_seconds / steps_seconds


def cuda_loop(n_steps: int = 50) -> Iterator[Row]:
    """Measure steps and the training loop on CUDA, and estimate the paper's pretraining time.

    Steps are compiled. Unless a row states otherwise, they are steps of PARS at the paper's size in
    bfloat16. Without CUDA, there are no rows.
    """
    if not torch.cuda.is_available():
        return
    for batch_size, goal in ((512, 45_000), (2048, 58_000)):
        step_rate = yield from cuda_steps("PARS", PARS(N_TIMES), batch_size)
        yield from cuda_loops(batch_size, (4, 8), step_rate, goal, n_steps)
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
    """Yield the durations of steps with and without a CUDA graph; return windows/s with a graph."""
    net = PretrainingNet(task, precision=precision, compile=True, device="cuda", verbose=0)
    net.initialize()
    x: Any = torch.randn(batch_size, *n_chans, task.n_times, device="cuda")
    if n_chans:
        x = {"x": x, "positions": 0.1 * torch.rand(*x.shape[:2], 3).cuda()}

    def milliseconds() -> float:
        def steps(n: int) -> None:
            for _ in range(n):  # as in a run, no step waits for the GPU
                skorch.NeuralNet.train_step(net, (x, None))

        steps(4)
        seconds = [fastest(lambda: steps(n_steps), rounds=1)[0] for _ in range(2)]
        return 1000 * min(seconds) / n_steps

    with tensor_cores(net.compute_device):
        plain_ms = milliseconds()
        with net.captured_steps():
            captured_ms = milliseconds()
            is_captured = any(net.graphs_.steps.values())
    title = f"{name}, batch size {batch_size}, on CUDA"
    yield Row(f"{title}: step without a CUDA graph", plain_ms, "ms")
    note = "" if is_captured else " (could not be captured)"
    yield Row(f"{title}: step with a CUDA graph{note}", captured_ms, "ms")
    yield Row(f"{title}: steps with a CUDA graph", 1000 * batch_size / captured_ms, "windows/s")
    yield Row(f"{title}: speed with / without a CUDA graph", plain_ms / captured_ms, goal=1.6)
    return 1000 * batch_size / captured_ms


def cuda_loops(
    batch_size: int, workers: tuple[int, ...], step_rate: float, goal: float, n_steps: int = 50
) -> Iterator[Row]:
    """Measure the training loop from a store; ``step_rate`` is the windows/s of steps alone."""
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
            title = f"training loop from a store on CUDA, batch size {batch_size}, {n} workers"
            yield Row(title, rates[-1], "windows/s", goal=goal)
            yield Row(f"duration of the {title} / steps alone", step_rate / rates[-1], goal=1.1)
    rate = max(rates)
    proportion = rate * flops_of_window(PARS(N_TIMES).cuda()) / matmul_rate("cuda")
    title = "operations per second of the training loop / of bfloat16 matrix products"
    yield Row(title, proportion, goal=0.4)
    hours = PAPER_WINDOWS * PAPER_EPOCHS / rate / 3600
    title = f"estimated duration of 1.5 million windows x 1000 epochs, batch size {batch_size}"
    yield Row(title, hours, "h")


def task_on_cuda(name: str, batch_size: int = 512) -> Iterator[Row]:
    """Measure steps of a pretext task at the paper's size."""
    task_kwargs = dict(sfreq=200.0) if name == "features" else {}
    if name == "pars_space_time":  # the same number of tokens, from several channels
        task = PRETEXT_TASKS[name](2000, n_patches=10)
        yield from cuda_steps(name, task, batch_size // 8, n_chans=(19,))
    else:
        yield from cuda_steps(name, PRETEXT_TASKS[name](N_TIMES, **task_kwargs), batch_size)


def decoders_on_cuda() -> Iterator[Row]:
    """Compare the literal and the factorized decoder of PARS on CUDA."""
    task, x = PARS(N_TIMES).cuda(), torch.randn(64, N_TIMES, device="cuda")
    step = step_of(task, x)

    def literal() -> None:
        task.decoder.method = "literal"
        step()
        task.decoder.method = "factorized"

    title = "duration of a PARS step on CUDA, batch size 64, literal / factorized decoder"
    yield Row(title, ratio(literal, step, 5))


def last_epoch(store: SignalStore, config: RunConfig) -> float:
    """Return the duration of the last epoch of a run in seconds, without saving the checkpoint."""
    with TemporaryDirectory(prefix="braindecode-pars-benchmark-") as folder:
        pretrain(store, Path(folder) / "run", config, verbose=0)
        metrics = pd.read_csv(Path(folder) / "run" / "metrics.csv")
    return metrics["seconds"].iloc[-1]


def flops_of_window(task: PARS, batch_size: int = 4) -> float:
    """Return the number of floating-point operations of a training step per window.

    Only operations of matrix products are counted.
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
