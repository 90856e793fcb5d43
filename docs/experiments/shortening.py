"""Which change of its default settings makes PARS learn more in 20 seconds?

    python docs/experiments/shortening.py OUT

Each entry differs from the default settings of the estimators in one factor. PARS is pretrained on
six of the twelve subjects of the bundled sleep dataset, with three seeds, for the number of steps
that takes 20 CPU seconds; the duration of a step of each entry is measured first. As in
``budgets.py``, the held-out loss is computed on the six other subjects, and stage 3 vs. 4 of these
subjects is classified with four labeled subjects, without and with centering. The loss is measured
with the patches of the entry, and again with the default patches. An interrupted command resumes
when it is run again. After each training, all rows are written to
``docs/measured/budgets/shortening.csv``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import budgets
import numpy as np
import pandas as pd
import torch
from plateau import with_positions
from sleep import TaskWindows, centered, scored
from stored_table import store_table
from torch import Tensor

from braindecode_pars import PARSEmbedder, as_sklearn
from braindecode_pars._common import held_out, settings
from braindecode_pars.pretext import PARS
from braindecode_pars.pretext.pars import relative_shifts

FILE, SECONDS, N_SEEDS, HALF = "shortening.csv", 20, 3, 0
#: Number of steps and repetitions to measure the duration of a step.
N_MEASURED, N_ROUNDS = 30, 3


@dataclass(frozen=True)
class Entry:
    """Change of the default settings of PARS."""

    name: str
    params: dict[str, float] = field(default_factory=dict)
    batch_size: int = settings.BATCH_SIZE
    warmup: int = held_out.WARMUP_STEPS
    #: Factor of the initial weights of the decoder, and of its learning rate.
    decoder_weights: float = 1.0
    decoder_lr: float = 1.0
    #: Final position mask ratio, if it changes linearly with the steps.
    last_ratio: float | None = None
    #: Initial maximum distance of pairs, in patches; after half of the steps, all pairs are used.
    first_distance: float | None = None
    #: Whether pairs of a masked and a visible patch are predicted as well.
    has_visible_pairs: bool = False
    #: Whether targets are divided by their standard deviation.
    is_standardized: bool = False
    #: Whether all windows of a batch are of the same subject.
    is_of_one_subject: bool = False
    #: Number of adjacent windows that are joined.
    n_joined: int = 1


ENTRIES = (
    Entry("random encoder"),
    Entry("defaults"),
    Entry("mask ratio 0.3", dict(position_mask_ratio=0.3)),
    Entry("mask ratio 0.65", dict(position_mask_ratio=0.65)),
    Entry("mask ratio 0.8", dict(position_mask_ratio=0.8)),
    Entry("mask ratio from 0.4 to 0.8", dict(position_mask_ratio=0.4), last_ratio=0.8),
    Entry("40 patches", dict(density=4 / 3)),
    Entry("90 patches", dict(density=3.0)),
    Entry("pairs with visible patches, too", has_visible_pairs=True),
    Entry("standardized targets", is_standardized=True),
    Entry("initial weights of the decoder x 0.5", decoder_weights=0.5),
    Entry("initial weights of the decoder x 2", decoder_weights=2.0),
    Entry("learning rate of the decoder x 1/3", decoder_lr=1 / 3),
    Entry("learning rate of the decoder x 3", decoder_lr=3.0),
    Entry("warm-up of 30 steps", warmup=30),
    Entry("warm-up of 300 steps", warmup=300),
    Entry("batches of 16", batch_size=16),
    Entry("batches of 64", batch_size=64),
    Entry("closer pairs first", first_distance=3.0),
    Entry("batches of one subject", is_of_one_subject=True),
    Entry("windows of 60 s, 60 patches", dict(density=1.0), n_joined=2),
    Entry("windows of 60 s, 120 patches", n_joined=2),
)


@dataclass
class Signals:
    """Windows of several subjects, with their index in the recording."""

    x: Tensor
    subjects: np.ndarray
    positions: np.ndarray

    def joined(self, n: int) -> Tensor:
        """Join n adjacent windows, starting at each window that has enough successors."""
        is_next = (np.diff(self.positions) == 1) & (self.subjects[1:] == self.subjects[:-1])
        first = np.arange(len(self.x)) if n == 1 else np.flatnonzero(is_next)
        return torch.cat([self.x[first + i] for i in range(n)], dim=-1)

    def batches_of_one(self, size: int) -> Iterator[Tensor]:
        """Yield batches of one subject each, with subjects in random order."""
        while True:
            order = torch.randperm(len(self.x))
            parts: list[Tensor] = []
            for subject in np.unique(self.subjects):
                parts += order[torch.as_tensor(self.subjects[order] == subject)].split(size)
            parts = [part for part in parts if len(part) == size]
            yield from (self.x[parts[i], 0] for i in torch.randperm(len(parts)).tolist())


def new_entry_task(entry: Entry, n_times: int, patch_size: int, seed: int) -> PARS:
    task = budgets.new_task(n_times, patch_size, seed, **(PARS.short_params | entry.params))
    for weights in task.decoder.parameters():
        if weights.ndim > 1:
            weights.data *= entry.decoder_weights
    if entry.is_standardized:
        scale_output(task, task.chance_loss() ** 0.5)
    return task


def scale_output(task: PARS, scale: float) -> None:
    task.decoder.register_forward_hook(lambda module, inputs, output: output * scale)


def entry_optimizer(task: PARS, entry: Entry) -> torch.optim.AdamW:
    """Return the optimizer of ``budgets.py``, with separate groups for the decoder."""
    optimizer, groups = budgets.optimizer_of(task, settings.LEARNING_RATE), []
    decoder = {id(weights) for weights in task.decoder.parameters()}
    for group in optimizer.param_groups:
        for is_decoder, factor in ((False, 1.0), (True, entry.decoder_lr)):
            weights = [w for w in group["params"] if (id(w) in decoder) == is_decoder]
            groups.append(group | dict(params=weights, factor=factor))
    return torch.optim.AdamW(groups, fused=True)


def train_loss(task: PARS, entry: Entry, x: Tensor, progress: float) -> Tensor:
    """Return the loss of a batch, given the proportion of completed steps."""
    if entry.last_ratio is not None:
        first = entry.params["position_mask_ratio"]
        task.n_masked = round((first + (entry.last_ratio - first) * progress) * task.n_patches)
    starts, n = task.sample_starts(len(x)), task.n_masked
    n_asked = task.n_patches if entry.has_visible_pairs else n
    features = task.encoder(with_positions(task, x, starts))
    prediction = task.decoder(features[:, :n_asked], features)[:, :n]
    target = relative_shifts(starts[:, :n_asked], task.n_times)[:, :n]
    error = (prediction - target).square()
    if entry.first_distance is not None and progress < 0.5:
        first = entry.first_distance * task.patch_size / task.n_times
        error = error[target.abs() <= first + (1 - first) * 2 * progress]
    return error.mean() / (task.chance_loss() if entry.is_standardized else 1)


def train(task: PARS, entry: Entry, signals: Signals, n_steps: int) -> float:
    """Train as in ``budgets.py``; return the CPU seconds."""
    if entry.is_of_one_subject:
        stream = signals.batches_of_one(entry.batch_size)
    else:
        stream = budgets.batches(signals.joined(entry.n_joined), entry.batch_size)
    optimizer, decay = entry_optimizer(task, entry), round(0.8 * n_steps)
    begin = time.process_time()
    for i in range(n_steps):
        warm = min(1, held_out.START + (1 - held_out.START) * i / entry.warmup)
        factor = warm if i < decay else 1 - (i - decay) / (n_steps - decay)
        for group in optimizer.param_groups:
            group["lr"] = settings.LEARNING_RATE * factor * group["factor"]
        optimizer.zero_grad()
        train_loss(task, entry, next(stream), i / n_steps).backward()
        optimizer.step()
    return time.process_time() - begin


def numbers_of_steps(file: Path, signals: Signals, patch_size: int) -> dict[str, int]:
    """Return the number of steps of each entry that takes the same time, measured once."""
    # Changes of values only do not change the duration of a step.
    free = dict(name="", warmup=1, decoder_weights=1.0, decoder_lr=1.0, is_of_one_subject=False)
    computed = {entry.name: replace(entry, **free, is_standardized=False) for entry in ENTRIES}
    if not file.exists():
        seconds: dict[str, list[float]] = {}
        for _ in range(N_ROUNDS):
            for key, entry in {repr(entry): entry for entry in computed.values()}.items():
                n_times = signals.x.shape[-1] * entry.n_joined
                task = new_entry_task(entry, n_times, patch_size, 0)
                seconds.setdefault(key, []).append(train(task, entry, signals, N_MEASURED))
        steps = {key: round(SECONDS / min(s) * N_MEASURED) for key, s in seconds.items()}
        counts = {name: steps[repr(entry)] for name, entry in computed.items()}
        file.write_text(json.dumps(counts | {"random encoder": 0}, indent=1))
    return json.loads(file.read_text())


def loss_with_defaults(task: PARS, entry: Entry, x: Tensor) -> float:
    """Return the loss with default patches, after changing the output of the decoder."""
    default = budgets.new_task(x.shape[-1], task.patch_size, 0, **PARS.short_params)
    for part in ("encoder", "decoder", "mask_token"):
        setattr(default, part, getattr(task, part))
    scale_output(default, entry.n_joined)  # shifts are relative to the length of the window
    return budgets.loss_of(default, x)


def run(
    entry: Entry,
    seed: int,
    n_steps: int,
    training_windows: Signals,
    held_out_windows: Signals,
    task_windows: TaskWindows,
) -> dict:
    """Train and score one entry with one seed."""
    patch_size = round(task_windows.windows.sfreq)
    task = new_entry_task(entry, training_windows.x.shape[-1] * entry.n_joined, patch_size, seed)
    row: dict[str, Any] = dict(entry=entry.name, pretraining=seed, steps=n_steps)
    row |= dict(seconds=train(task, entry, training_windows, n_steps), n_patches=task.n_patches)
    row["loss"] = budgets.loss_of(task, held_out_windows.joined(entry.n_joined))
    row["loss_with_defaults"] = loss_with_defaults(task, entry, held_out_windows.x)
    embedder = PARSEmbedder(encoder=task.encoder.eval(), pooling="channels", verbose=0)
    features = (
        embedder.set_params(device="cpu").fit(task_windows.windows).transform(task_windows.windows)
    )
    for name, values in dict(
        plain=features, centered=centered(features, task_windows.subjects)
    ).items():
        scores = pd.DataFrame(
            scored(task_windows, HALF, values, [budgets.N_LABELED], budgets.N_DRAWS)
        )
        row[name] = scores.drop(columns=["n_train_subjects", "seed"]).to_numpy().mean()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder of the results")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    windows, task_windows = budgets.question("sleep")
    X, _, subjects = as_sklearn(windows)
    x = torch.as_tensor(np.stack([X[i] for i in range(len(X))]))
    subjects, positions = np.asarray(subjects), windows.get_metadata()["position"].to_numpy()
    is_own = np.isin(subjects, np.unique(subjects)[HALF::2])
    training_windows, held_out_windows = (
        Signals(x[part], subjects[part], positions[part]) for part in (is_own, ~is_own)
    )
    steps, rows = numbers_of_steps(out / "steps.json", training_windows, round(X.sfreq)), []
    command, table = "python docs/experiments/shortening.py OUT", budgets.MEASURED / FILE
    for seed, entry in product(range(N_SEEDS), ENTRIES):
        file = out / f"{entry.name.replace('/', ' of ')} {seed}.json"
        if not file.exists():
            row = run(
                entry, seed, steps[entry.name], training_windows, held_out_windows, task_windows
            )
            file.write_text(json.dumps(row))
            print(row, flush=True)
        rows.append(json.loads(file.read_text()))
        store_table(pd.DataFrame(rows).round(4), table, command, "1 thread", index=False)


if __name__ == "__main__":
    main()
