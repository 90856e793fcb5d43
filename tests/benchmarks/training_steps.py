"""Speed of training: pretext tasks, decoder of PARS, training loop on a store.

Most results are ratios to the encoder alone or to training steps without the loop, which are
measured alternately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import skorch
import torch
from benchmarks.measuring import N_CHANS, N_TIMES, Row, fastest, peak_bytes, ratio, synthetic_store
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from braindecode_pars._common.computing import tensor_cores
from braindecode_pars.pretext import MAE, MP3, PARS, DropPos, SpaceTimePARS
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


def decoder_memory() -> Iterator[Row]:
    """Measure the peak memory of both passes of the decoder.

    The literal decoder is measured only with 40 and 80 patches, to fit into the memory of a laptop.
    """
    factorized = {n: peak_bytes(decoder_step("factorized", n)) for n in (40, 80, 240)}
    literal = {n: peak_bytes(decoder_step("literal", n)) for n in (40, 80)}
    value = factorized[40] / literal[40]
    yield Row("peak memory of the decoder, factorized / literal", value, goal=0.125, over=0.2)
    for method, peaks in (("factorized", factorized), ("literal", literal)):
        for n_patches, peak in peaks.items():
            title = f"peak memory of the decoder, {method}, {n_patches} patches, batch size 16"
            yield Row(title, peak / 2**20, "MiB")


def training_loop() -> Iterator[Row]:
    """Compare the training loop with training steps on one tensor in memory, on the CPU.

    PARS has the paper's size; space-time PARS has the default size of the estimators.
    """
    title = "duration of the training loop from a store / training steps alone"
    value = loop_ratio(PARS(N_TIMES), torch.randn(32, N_TIMES))
    yield Row(f"{title}, paper size, batch size 32", value, goal=1.05, over=1.2)
    size = dict(embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128, tokenizer="spectral")
    task, x = SpaceTimePARS(N_TIMES, **size), torch.randn(16, N_CHANS, N_TIMES)
    value = loop_ratio(task, x, task="pars_space_time", **size)
    yield Row(
        f"{title}, space-time PARS, {N_CHANS} channels, batch size 16",
        value,
        goal=1.05,
        over=1.2,
    )


def loop_ratio(
    bare_task: PARS, x: torch.Tensor, n_steps: int = 5, rounds: int = 3, **settings: Any
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


def cuda_loop() -> Iterator[Row]:
    """Measure steps on CUDA.

    Steps are compiled. Unless a row states otherwise, they are steps of PARS at the paper's size in
    bfloat16. Without CUDA, there are no rows.
    """
    if not torch.cuda.is_available():
        return
    for batch_size in (512, 2048):
        yield from cuda_steps("PARS", PARS(N_TIMES), batch_size)
    yield from cuda_steps("PARS, float32", PARS(N_TIMES), 512, precision="float32")
    yield from cuda_steps("PARS, 240 patches", PARS(36_000, n_patches=240), 128)
    task = SpaceTimePARS(2000, n_patches=10)  # the same number of tokens, from several channels
    yield from cuda_steps("pars_space_time", task, 64, n_chans=(19,))


def cuda_steps(
    name: str,
    task: Any,
    batch_size: int,
    n_chans: tuple[int, ...] = (),
    *,
    precision: str = "bfloat16",
    n_steps: int = 30,
) -> Iterator[Row]:
    """Measure steps with and without a CUDA graph."""
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
