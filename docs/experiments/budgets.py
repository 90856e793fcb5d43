"""How much does longer PARS pretraining improve held-out loss and features?

    python docs/experiments/budgets.py sleep OUT
    python docs/experiments/budgets.py arithmetic OUT

PARS and its sham are pretrained on half of the subjects, with the default settings of the
estimators, for 1, 2, 4 and 8 minutes on one core, converted to a number of steps; then the halves
are exchanged. The learning rate is constant, and a copy of the network is trained with a decreasing
learning rate at each budget, so that one training is used for all budgets. PARS with its previous
defaults (mask ratio 0.8, 40 patches, batches of 64, learning rate 4e-3, cosine schedule) is trained
for two minutes. The held-out loss is computed on the other half. Features are scored as in
``sleep.py``: stage 3 vs. 4, or rest vs. mental arithmetic, of subjects that were not used for
pretraining, with four labeled subjects, without and with centering. An interrupted command resumes
when it is run again. Writes ``docs/measured/budgets/TASK.csv``.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sleep import TaskWindows, centered, scored
from stored_table import store_table
from torch import Tensor

from braindecode_pars import PARSEmbedder, PatchEncoder, as_sklearn, datasets
from braindecode_pars._common import held_out, settings
from braindecode_pars.pretext import PARS
from braindecode_pars.windows.convert import as_windows

MEASURED = Path(__file__).parents[1] / "measured" / "budgets"
#: Steps per minute on one idle core (Intel Xeon with AVX-512), of batches of 32 and of 64.
PER_MINUTE = {"sleep": 1300, "arithmetic": 2800}
PREVIOUS_STEPS = {"sleep": 1500, "arithmetic": 3000}
MINUTES = {"sleep": (1, 2, 4, 8), "arithmetic": (1, 2, 4)}
#: Pretraining seeds; eight minutes are run with the first seed on the first half only.
N_SEEDS = {"sleep": 3, "arithmetic": 1}
N_LABELED, N_DRAWS = 4, 20
PREVIOUS = dict(position_mask_ratio=0.8, density=4 / 3)


def new_task(n_times: int, patch_size: int, seed: int, **params: Any) -> PARS:
    """Return PARS with a new encoder of the default size of the estimators."""
    torch.manual_seed(seed)
    names = ("embed_dim", "num_layers", "num_heads", "mlp_dim", "tokenizer")
    encoder = PatchEncoder(patch_size, **{name: getattr(PARSEmbedder, name) for name in names})
    return PARS(n_times, patch_size, encoder=encoder, **params)


def optimizer_of(task: PARS, lr: float) -> torch.optim.AdamW:
    """Return AdamW with weight decay on the weights of linear layers, as in the package."""
    kept, decayed = [], []
    for name, weights in task.named_parameters():
        is_kept = name.endswith(("bias", "_token")) or "norm" in name
        (kept if is_kept else decayed).append(weights)
    groups = [{"params": kept, "weight_decay": 0.0}, {"params": decayed}]
    return torch.optim.AdamW(groups, lr=lr, weight_decay=settings.WEIGHT_DECAY, fused=True)


def batches(x: Tensor, size: int) -> Iterator[Tensor]:
    """Yield batches of single channels, using each window once per pass."""
    while True:
        for rows in torch.randperm(len(x)).split(size):
            if len(rows) == size:
                yield x[rows, torch.randint(x.shape[1], (size,))]


def step(task: PARS, optimizer: torch.optim.AdamW, x: Tensor, lr: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = lr
    prediction, target = task(x)
    target = task.sham_target(target) if task.is_sham else target
    optimizer.zero_grad()
    task.criterion()(prediction, target).backward()
    optimizer.step()


def trained(task: PARS, x: Tensor, budgets: list[int]) -> Iterator[tuple[int, PARS]]:
    """Yield the task after each number of steps, with a decay in the last fifth of the steps."""
    lr, optimizer = settings.LEARNING_RATE, optimizer_of(task, settings.LEARNING_RATE)
    stream, done = batches(x, settings.BATCH_SIZE), 0
    for n_steps in budgets:
        begin = round(0.8 * n_steps)
        for i in range(done, begin):
            step(task, optimizer, next(stream), lr * min(1, 0.1 + 0.9 * i / held_out.WARMUP_STEPS))
        done = begin
        branch, state = copy.deepcopy(task), optimizer.state_dict()
        decaying = optimizer_of(branch, lr)
        decaying.load_state_dict(copy.deepcopy(state))
        for i in range(n_steps - begin):
            step(branch, decaying, next(stream), lr * (1 - i / (n_steps - begin)))
        yield n_steps, branch


def trained_before(task: PARS, x: Tensor, n_steps: int) -> PARS:
    """Train with the previous defaults: batches of 64, learning rate 4e-3, warm-up and cosine."""
    optimizer, stream = optimizer_of(task, 4e-3), batches(x, 64)
    for i in range(n_steps):
        share = i / n_steps
        cosine = 0.5 * (1 + math.cos(math.pi * (share - 0.1) / 0.9))
        factor = 0.1 + 9 * share if share < 0.1 else cosine
        step(task, optimizer, next(stream), 4e-3 * factor)
    return task


@torch.no_grad()
def loss_of(task: PARS, x: Tensor) -> float:
    """Return the relative loss of one random channel of each window."""
    torch.manual_seed(0)
    signals = next(batches(x, len(x)))
    losses = [task.criterion()(*task.eval()(part)).item() for part in signals.split(128)]
    return float(np.mean(losses)) / task.chance_loss()


def question(name: str) -> tuple[Any, TaskWindows]:
    """Return all windows, and the windows of the classification task."""
    if name == "sleep":
        windows = datasets.sleep()
        return windows, TaskWindows.of(windows, "deep")
    windows = datasets.mental_arithmetic()
    X, y, subjects = as_sklearn(windows)
    return windows, TaskWindows(as_windows(X), y, subjects.astype(str))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[*MINUTES])
    parser.add_argument("out", type=Path, help="folder of the results")
    parser.add_argument("--only", type=int, nargs="*", help="pretraining seeds to run")
    options = parser.parse_args()
    torch.set_num_threads(1)
    windows, task_windows = question(options.name)
    options.out.mkdir(parents=True, exist_ok=True)
    seeds = range(N_SEEDS[options.name])
    for seed in seeds if options.only is None else options.only:
        for half in (0, 1):
            for kind in ("random", "PARS", "sham", "PARS, previous defaults"):
                run(options.name, windows, task_windows, options.out, kind, seed, half)
    if options.only is None:
        rows = [
            row
            for file in sorted(options.out.glob(f"{options.name} *.json"))
            for row in json.loads(file.read_text())
        ]
        command = f"python docs/experiments/budgets.py {options.name} OUT"
        table = pd.DataFrame(rows)
        store_table(
            table,
            MEASURED / f"{options.name}.csv",
            command,
            "1 thread",
            index=False,
            float_format="%.4g",
        )


def run(
    name: str, windows: Any, task_windows: TaskWindows, out: Path, kind: str, seed: int, half: int
) -> None:
    """Train, score and store one kind of encoder on one half, for all budgets."""
    file = out / f"{name} {kind} {seed} {half}.json"
    if file.exists():
        return
    X, _, subjects = as_sklearn(windows)
    names = np.unique(subjects)
    x = torch.as_tensor(np.stack([X[i] for i in range(len(X))]))
    training_windows, held_out_windows = (
        x[np.isin(subjects, names[part::2])] for part in (half, 1 - half)
    )
    patch_size = round(X.sfreq)
    params = PREVIOUS if "previous" in kind else PARS.short_params
    task = new_task(x.shape[-1], patch_size, seed, **params)
    rows, begin = [], time.process_time()

    def add(steps: int, trained_task: PARS) -> None:
        seconds = time.process_time() - begin
        loss = loss_of(trained_task, held_out_windows) if kind != "random" else math.nan
        embedder = PARSEmbedder(encoder=trained_task.encoder.eval(), pooling="channels", verbose=0)
        features = (
            embedder.set_params(device="cpu")
            .fit(task_windows.windows)
            .transform(task_windows.windows)
        )
        for way in ("plain", "centered"):
            values = features if way == "plain" else centered(features, task_windows.subjects)
            for row in scored(task_windows, half, values, [N_LABELED], N_DRAWS):
                what = dict(kind=kind, steps=steps, pretraining=seed, half=half, features=way)
                rows.append(what | dict(seconds=seconds, loss=loss) | row)
        mean = {
            w: np.mean(
                [
                    [v for k, v in r.items() if k in names]
                    for r in rows
                    if r["features"] == w and r["steps"] == steps
                ]
            )
            for w in ("plain", "centered")
        }
        print(kind, seed, half, steps, round(seconds), round(loss, 3), mean, flush=True)

    if kind == "random":
        add(0, task)
    elif "previous" in kind:
        add(PREVIOUS_STEPS[name], trained_before(task, training_windows, PREVIOUS_STEPS[name]))
    else:
        if kind == "sham":
            task.become_sham()
        minutes = MINUTES[name] if (seed, half) == (0, 0) else MINUTES[name][:3]
        for steps, trained_task in trained(
            task, training_windows, [m * PER_MINUTE[name] for m in minutes]
        ):
            add(steps, trained_task)
    file.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
