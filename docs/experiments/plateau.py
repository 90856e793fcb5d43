"""Why does the loss of PARS initially stay at the chance level?

    python docs/experiments/plateau.py

PARS is trained on six of the twelve subjects of the bundled sleep dataset, with position mask
ratios of 0.5 and 0.8 and otherwise the default settings of the estimators. Every 25 steps, the
following values are measured on windows of the six other subjects: the loss of pairs whose patches
overlap, are up to five patches apart, or further; the loss after the visible patches have swapped
their positions; and the attention of patches without a position to overlapping visible patches,
relative to uniform attention, in the head with the highest value of each layer. In training, the
norm of the gradient of queries and keys is measured. Writes ``docs/measured/plateau.csv``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from budgets import batches, new_task, optimizer_of, step
from stored_table import store_table
from torch import Tensor

from braindecode_pars import as_sklearn, datasets
from braindecode_pars._common import held_out, settings
from braindecode_pars.pretext import PARS
from braindecode_pars.pretext.pars import relative_shifts
from braindecode_pars.tokens import extract_patches, sinusoidal_positions

FILE = Path(__file__).parents[1] / "measured" / "plateau.csv"
RATIOS, N_STEPS, EVERY, N_SEEDS = (0.5, 0.8), 1000, 25, 2


@torch.no_grad()
def measure_losses(task: PARS, x: Tensor) -> dict[str, float]:
    """Return losses and attention on some windows, with the same random draws each time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        starts = task.sample_starts(len(x))
    n, size = task.n_masked, task.patch_size
    target = relative_shifts(starts[:, :n], task.n_times)
    error = (task.predict_shifts(x, starts) - target).square()
    apart = target.abs() * task.n_times / size  # distance in patches
    kinds = {
        "overlapping": (apart > 0) & (apart < 1),
        "up to 5 apart": (apart >= 1) & (apart < 5),
        "further": apart >= 5,
        "all": apart >= 0,
    }
    relative_losses = {
        k: float(error[m].mean() / target[m].square().mean()) for k, m in kinds.items()
    }
    # The same patches, with permuted positions of the visible patches.
    relative_losses["swapped positions"] = float(
        (shifts_with_swapped(task, x, starts) - target).square().mean() / target.square().mean()
    )
    # Attention of the masked patches to visible patches that share samples with them.
    tokens = with_positions(task, x, starts)
    shares = (starts[:, :n, None] - starts[:, None, n:]).abs() < size  # (batch, masked, visible)
    expected = shares.float().mean(dim=-1) * (task.n_patches - n) / task.n_patches
    for number, block in enumerate(task.encoder.blocks, start=1):
        normed = block.attention_norm(tokens)
        weights = block.attention.weights(normed[:, :n], normed)[
            ..., n:
        ]  # attention to visible patches
        mass = (weights * shares[:, None]).sum(dim=-1).mean(dim=(0, 2)) / expected.mean()
        relative_losses[f"attention {number}"] = mass.max().item()
        tokens = block(tokens)
    return relative_losses


def with_positions(task: PARS, x: Tensor, starts: Tensor, shown: Tensor | None = None) -> Tensor:
    """Return the tokens with their positions or the mask token, as in the pretext task."""
    tokens = task.encoder.tokenize(extract_patches(task.normalized(x), starts, task.patch_size))
    shown = starts[:, task.n_masked :] if shown is None else shown
    positions = sinusoidal_positions(shown / task.patch_size, tokens.shape[-1])
    masked = task.mask_token.expand(len(x), task.n_masked, -1)
    return tokens + torch.cat([masked, positions], dim=1)


def shifts_with_swapped(task: PARS, x: Tensor, starts: Tensor) -> Tensor:
    shown = starts[:, task.n_masked :].roll(1, dims=1)
    features = task.encoder(with_positions(task, x, starts, shown))
    return task.decoder(features[:, : task.n_masked], features)


def gradient(task: PARS) -> float:
    """Return the norm of the gradient of all queries and keys of the encoder."""
    parts = [
        part
        for block in task.encoder.blocks
        for part in (block.attention.query, block.attention.key)
    ]
    return float(torch.stack([part.weight.grad.norm() for part in parts]).norm())


def main() -> None:
    torch.set_num_threads(1)
    X, _, subjects = as_sklearn(datasets.sleep())
    names = np.unique(subjects)
    x = torch.as_tensor(np.stack([X[i] for i in range(len(X))]))
    training_windows, held_out_windows = (x[np.isin(subjects, names[part::2])] for part in (0, 1))
    held_out_windows, rows = held_out_windows[::4, 0], []
    for ratio in RATIOS:
        for seed in range(N_SEEDS):
            params = PARS.short_params | dict(position_mask_ratio=ratio)
            task = new_task(x.shape[-1], 128, seed, **params)
            optimizer = optimizer_of(task, settings.LEARNING_RATE)
            stream = batches(training_windows, settings.BATCH_SIZE)
            for i in range(N_STEPS + 1):
                lr = settings.LEARNING_RATE * min(1, 0.1 + 0.9 * i / held_out.WARMUP_STEPS)
                before = measure_losses(task, held_out_windows) if i % EVERY == 0 else None
                step(task, optimizer, next(stream), lr)
                if before is not None:
                    row = dict(ratio=ratio, seed=seed, step=i, **before, gradient=gradient(task))
                    rows.append(row)
            print(rows[-1], flush=True)
    command = "python docs/experiments/plateau.py"
    store_table(pd.DataFrame(rows), FILE, command, "1 thread", index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
