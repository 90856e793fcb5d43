"""Time of the whole training loop on a store on disk, relative to bare training steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import torch
from torch.utils.flop_counter import FlopCounterMode

from braindecode_pars.benchmarks._measuring import Row, fastest, ratio
from braindecode_pars.benchmarks._pretext_steps import step_of
from braindecode_pars.benchmarks._synthetic import N_TIMES, synthetic_store
from braindecode_pars.pretext import PARS
from braindecode_pars.runs import RunConfig, pretrain
from braindecode_pars.signal_store import SignalStore

__all__ = ["cuda_loop", "training_loop"]

#: Number of windows in the paper's pretraining corpus, and number of its epochs.
PAPER_WINDOWS, PAPER_EPOCHS = 1_500_000, 1000


def training_loop(batch_size: int = 32, n_steps: int = 5, rounds: int = 3) -> Iterator[Row]:
    """Compare the loop with bare steps on one tensor in memory, at the paper's size on the CPU."""
    # Bare steps: forward, backward and the optimizer.
    torch.manual_seed(0)
    task, x = PARS(N_TIMES), torch.randn(batch_size, N_TIMES)
    optimizer = torch.optim.AdamW(task.parameters(), lr=1e-4, weight_decay=1e-4)
    step = step_of(task, x)

    def bare() -> None:
        for _ in range(n_steps):
            step()
            optimizer.step()

    # The whole loop; its first epoch is a warm-up. Loop and bare steps alternate, as in ``ratio``.
    config = RunConfig(batch_size=batch_size, epochs=2, steps_per_epoch=n_steps, device="cpu")
    with synthetic_store() as store:
        pairs = [(last_epoch(store, config), fastest(bare, rounds=1)[0]) for _ in range(rounds)]
    loop, steps = (min(column) for column in zip(*pairs, strict=True))
    what = f"whole training loop from a store / bare steps, paper size, batch {batch_size}"
    yield Row(what, loop / steps, aim=1.05, over=1.2)


def cuda_loop(batch_size: int = 512, n_steps: int = 50) -> Iterator[Row]:
    """Measure the loop on CUDA, and estimate the time of the paper's pretraining.

    Without CUDA there are no rows.
    """
    if not torch.cuda.is_available():
        return

    # Windows per second in bfloat16 with compilation, and in float32 without.
    config = RunConfig(
        batch_size=batch_size,
        epochs=3,  # the first epoch compiles
        steps_per_epoch=n_steps,
        precision="bfloat16",
        compile=True,
        device="cuda",
    )
    with synthetic_store(n_recordings=16) as store:
        rate = batch_size * n_steps / last_epoch(store, config)
        plain = replace(config, precision="float32", compile=False)
        plain_rate = batch_size * n_steps / last_epoch(store, plain)
    yield Row("training loop on CUDA, bfloat16, compiled", rate, "windows/s")
    yield Row("training loop on CUDA, float32 with TF32", plain_rate, "windows/s")

    # Share of the fastest possible rate of operations.
    share = rate * flops_of_window(PARS(N_TIMES).cuda()) / matmul_rate("cuda")
    yield Row("its share of the rate of bfloat16 matrix products", share, aim=0.4)

    # The two decoders.
    task, x = PARS(N_TIMES).cuda(), torch.randn(64, N_TIMES, device="cuda")
    step = step_of(task, x)

    def literal() -> None:
        task.decoder.method = "literal"
        step()
        task.decoder.method = "factorized"

    yield Row("PARS step on CUDA, batch 64, literal / factorised decoder", ratio(literal, step, 5))
    hours = PAPER_WINDOWS * PAPER_EPOCHS / rate / 3600
    yield Row("the paper's 1.5 million windows x 1000 epochs would take", hours, "h")


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
