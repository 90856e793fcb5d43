"""The files that a run writes after each epoch: metrics, TensorBoard curves, a checkpoint."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback

from braindecode_pars.runs._checkpoint import Checkpoint
from braindecode_pars.storage._atomic import replace_file

__all__ = ["Checkpoints", "EpochRecord", "MetricsFile", "TensorBoardCurves", "metrics"]

#: Columns of ``metrics.csv`` after epoch, step and the losses.
_LAST_COLUMNS = ("lr", "seconds", "windows_per_second")


class EpochRecord(Callback):
    """Complete the history's row of an epoch, and remove the rows of its batches.

    It adds ``step``, ``lr``, ``seconds`` and ``windows_per_second``. It removes the rows of the
    batches because they would fill memory and checkpoints in a run of millions of steps.

    Parameters
    ----------
    batch_size : int
        Number of examples in a step, over all processes.
    """

    def __init__(self, batch_size: int):
        self.batch_size = batch_size

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        row = net.history[-1]
        row["batches"] = []
        row["step"] = row["epoch"] * net.steps_per_epoch
        row["lr"] = net.optimizer_.param_groups[0]["lr"]
        row["seconds"] = row["dur"]
        row["windows_per_second"] = self.batch_size * net.steps_per_epoch / row["dur"]


def metrics(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the columns of ``metrics.csv`` for one epoch."""
    losses = [name for name in row if name.startswith("train_loss")]
    return {name: row[name] for name in ("epoch", "step", *losses, *_LAST_COLUMNS)}


class MetricsFile(Callback):
    """Write ``metrics.csv`` after each epoch, with one row for each epoch so far."""

    def __init__(self, file: Path):
        self.file = file

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        replace_file(self.file, _as_csv(metrics(row) for row in net.history).encode())


def _as_csv(rows: Iterable[Mapping[str, float]]) -> str:
    rows = list(rows)
    text = io.StringIO()
    # A run that was begun with an older version may lack columns in its first epochs.
    columns = dict.fromkeys(name for row in rows for name in row)
    table = csv.DictWriter(text, fieldnames=list(columns), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


class TensorBoardCurves(Callback):
    """Write losses, learning rate and speed for TensorBoard.

    Parameters
    ----------
    folder : Path
        Folder of the event files.
    first_step : int
        Number of steps before this session. TensorBoard hides entries of earlier sessions for
        later steps, because this session repeats these steps.
    """

    def __init__(self, folder: Path, first_step: int = 0):
        self.folder = folder
        self.first_step = first_step

    @staticmethod
    def is_available() -> bool:
        return find_spec("tensorboard") is not None

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        from torch.utils.tensorboard import SummaryWriter  # an optional dependency

        self.writer_ = SummaryWriter(self.folder, purge_step=self.first_step + 1)

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        row = metrics(net.history[-1])
        for name in row.keys() - {"epoch", "step"}:
            self.writer_.add_scalar(name, row[name], global_step=row["step"])
        self.writer_.flush()

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        self.writer_.close()


class Checkpoints(Callback):
    """Write a checkpoint after each epoch.

    It must come after all callbacks that add to the history, because the checkpoint has the
    history in it.

    Parameters
    ----------
    folder : Path
        Folder of the checkpoints.
    run_id : str | None
        Identity of the run, which its checkpoints carry.
    """

    def __init__(self, folder: Path, run_id: str | None):
        self.folder = folder
        self.run_id = run_id

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        Checkpoint.of(net, net.history[-1, "step"], self.run_id).write(self.folder)
