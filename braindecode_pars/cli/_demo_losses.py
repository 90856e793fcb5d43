"""The losses of pretraining in the demo: sentences and figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import torch
from braindecode.datasets import BaseConcatDataset
from torch import Tensor

from braindecode_pars import plotting
from braindecode_pars._columns import LOSSES, RELATIVE, part_of
from braindecode_pars.estimators import PARSEmbedder
from braindecode_pars.pretext import PARS, PretextTask
from braindecode_pars.pretext.pars import relative_shifts
from braindecode_pars.training._seeding import seeded
from braindecode_pars.windows import SingleChannelWindows

__all__ = ["describe_losses", "draw_losses", "draw_shifts"]


def describe_losses(embedder: PARSEmbedder, held_out: BaseConcatDataset, seed: int) -> str:
    """Return the last training loss, that of its parts, and the loss of held-out windows.

    All are relative to chance.
    """
    last = embedder.pretraining_history_[-1]
    parts = [f"{part} {last[name]:.2f}" for name in last if (part := part_of(name)) is not None]
    by_part = f"\nTraining loss by part: {', '.join(parts)}" if parts else ""
    loss = _held_out_loss(embedder.task_, held_out, seed)
    return (
        f"Training loss relative to chance: {last[RELATIVE]:.2f}\n"
        f"Loss relative to chance on held-out subjects: {loss:.2f}{by_part}"
    )


def _held_out_loss(task: PretextTask, windows: BaseConcatDataset, seed: int) -> float:
    """Return the loss of one crop of every window, relative to chance."""
    with seeded(seed), torch.inference_mode():
        prediction, target = task.eval()(_crops(windows, task.n_times))
        return (task.criterion()(prediction, target) / task.chance_loss()).item()


def _crops(windows: BaseConcatDataset, n_times: int) -> Tensor:
    """Return one random channel of every window, of shape (n_windows, n_times)."""
    single = SingleChannelWindows(windows, n_times)
    return torch.stack([single[i][0] for i in range(len(single))])


def draw_losses(embedders: Mapping[str, PARSEmbedder], file: Path) -> None:
    """Draw the loss of the whole task by epoch, one line for each encoder."""
    histories = pd.concat(
        [embedder.history_.assign(method=name) for name, embedder in embedders.items()]
    )
    axes = plotting.training_curves(histories[["method", "phase", "epoch", *LOSSES]])
    axes[0].figure.savefig(file, dpi=150, bbox_inches="tight")
    plt.close(axes[0].figure)


def draw_shifts(task: PARS, windows: BaseConcatDataset, file: Path, seed: int) -> None:
    """Draw the true and the predicted shifts of the held-out window with the median error."""
    with seeded(seed), torch.inference_mode():
        x = _crops(windows, task.n_times)
        prediction, target = _shifts_by_time(task.eval(), x)  # (n_windows, n_masked, n_masked)
    errors = (prediction - target).square().mean(dim=(1, 2))
    median = errors.argsort()[len(errors) // 2]
    axes = plotting.shift_matrices(prediction[median].numpy(), target[median].numpy())
    axes[0].figure.suptitle("window with the median error, from a held-out subject")
    axes[0].figure.savefig(file, dpi=150)
    plt.close(axes[0].figure)


def _shifts_by_time(task: PARS, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return predicted and true shifts with the masked patches in chronological order."""
    starts = task.sample_starts(len(x))
    masked = starts[:, : task.n_masked].sort(dim=1).values
    starts = torch.cat([masked, starts[:, task.n_masked :]], dim=1)
    return task.predict_shifts(x, starts), relative_shifts(masked, task.n_times)
