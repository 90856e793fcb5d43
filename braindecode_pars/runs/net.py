"""The training loop of a run, in one process or several, and the files written after each epoch.

A step may be computed in micro-batches. After an epoch: metrics and a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from accelerate import Accelerator
from accelerate.utils import concatenate
from skorch import NeuralNet
from skorch.callbacks import Callback
from skorch.hf import AccelerateMixin
from torch import Tensor

from braindecode_pars._common.computing import seeded
from braindecode_pars._common.files import replace_file
from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.runs.run_folder import Checkpoint, RunFolder
from braindecode_pars.runs.steps import EpochLoader, Steps


class RunNet(AccelerateMixin, PretrainingNet):
    """A PretrainingNet for one process or several.

    Each process reads its own part of every batch, so accelerate does not have to split the data.
    Each micro-batch has its own seed, which depends on its number in the whole batch. The result
    therefore depends on the sizes of batch and micro-batch, but not on the number of processes.

    Parameters
    ----------
    module : PretextTask
        Task to train.
    accelerator : accelerate.Accelerator
        Link to the other processes.
    micro_batch_size : int
        Number of examples that pass through the network at once. It divides the number of
        examples that this process has in a step.
    steps_per_epoch : int
        Number of steps in an epoch.
    first_epoch : int
        Number of epochs that earlier sessions have completed.
    num_workers : int
        Number of processes that load data ahead.
    restore : callable | None
        Function that sets the initialised net to the state of an earlier session.
    **kwargs
        Arguments of PretrainingNet.
    """

    _criteria: list[str]

    def __init__(
        self,
        module: Any,
        *,
        accelerator: Accelerator,
        micro_batch_size: int,
        steps_per_epoch: int,
        first_epoch: int = 0,
        num_workers: int = 0,
        restore: Callable[[RunNet], None] | None = None,
        **kwargs: Any,
    ):
        self.micro_batch_size = micro_batch_size
        self.steps_per_epoch = steps_per_epoch
        self.first_epoch = first_epoch
        self.num_workers = num_workers
        self.restore = restore
        super().__init__(module, accelerator=accelerator, **kwargs)

    @property
    def task_(self) -> Any:
        return self.accelerator.unwrap_model(self.module_)

    @property
    def compute_device(self) -> torch.device:
        return self.accelerator.device

    def _initialize_accelerator(self) -> RunNet:
        # accelerate would wrap the criteria like the task. Losses have no parameters to
        # synchronise, so they are hidden from it.
        criteria, self._criteria = self._criteria, []
        try:
            return super()._initialize_accelerator()
        finally:
            self._criteria = criteria

    def initialize(self) -> RunNet:
        super().initialize()
        if self.restore is not None:
            self.restore(self)
            self.restore = None
        return self

    def fit_loop(self, X: Steps, y: Any = None, epochs: int | None = None, **kwargs: Any) -> RunNet:
        """Train as skorch does, but count the epochs of earlier sessions in ``max_epochs``."""
        epochs = self.max_epochs - self.first_epoch if epochs is None else epochs
        return super().fit_loop(X, y, epochs=epochs, **kwargs)

    def prepare_task(self, X: Steps, y: Any = None) -> None:
        """Let the task measure signals before the first step; a checkpoint has what it found."""
        if self.first_epoch == 0:
            super().prepare_task(X, y)

    def draw_signals(self, X: Steps, y: Any, n: int) -> Tensor:
        """Return random crops of the store, the same in every process."""
        return X.first_pass(n)

    def get_iterator(self, dataset: Steps, training: bool = False) -> EpochLoader:
        n_steps, on_gpu = self.steps_per_epoch, self.compute_device.type == "cuda"
        first, last = self.first_epoch * n_steps, self.max_epochs * n_steps
        # Copies from pinned memory to a GPU do not block.
        options = dict(num_workers=self.num_workers, pin_memory=on_gpu)
        return EpochLoader(dataset, first, last, n_steps, **options)

    def run_single_epoch(
        self, iterator: EpochLoader | None, training: bool, prefix: str, step_fn: Any, **kwargs: Any
    ) -> None:
        """Train one epoch as skorch does, but read the losses only at its end.

        Every read of a loss makes the CPU wait for the GPU.
        """
        if iterator is None:  # there is no validation
            return
        losses = []
        for number, batch in enumerate(iterator, start=1):
            self.notify("on_batch_begin", batch=batch, training=True)
            # step_fn checks that the loss is finite, which reads it. One check in the last step is
            # enough: once the loss is NaN, it stays NaN.
            step = step_fn if number == len(iterator) else partial(NeuralNet.train_step, self)
            result = step(batch, **kwargs)
            losses.append(result["loss"])
            self.notify("on_batch_end", batch=batch, training=True, **result)
        self.history.record(f"{prefix}_loss", torch.stack(losses).cpu().double().mean().item())

    def train_step_single(self, batch: tuple[Tensor, int], **fit_params: Any) -> dict[str, Any]:
        self._set_training(True)
        signals, step_seed = batch
        parts = signals.split(self.micro_batch_size)  # each (micro_batch_size, n_times)
        first = self.accelerator.process_index * len(parts)
        loss, results = torch.zeros((), device=self.compute_device), []

        # Gradients accumulate over the micro-batches.
        for number, part in enumerate(parts, start=1):
            # Processes exchange gradients once in a step: in the last backward pass.
            no_exchange = self.accelerator.no_sync(self.module_)
            with nullcontext() if number == len(parts) else no_exchange:
                seed = np.random.SeedSequence([step_seed, first + number]).generate_state(1)[0]
                with seeded(int(seed), self.compute_device):
                    result = self.infer(part.to(self.compute_device, non_blocking=True))
                    part_loss = self.get_loss(result, None, training=True) / len(parts)
                self.accelerator.backward(part_loss)
            loss += part_loss.detach()
            results.append(result)

        # Callbacks get the predictions of the whole step.
        with torch.no_grad():
            result = results[0] if len(results) == 1 else concatenate(results)
            return {"loss": loss, "y_pred": result}

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> RunNet:
        # skorch's mixin waits for all processes here. After an interruption of one process, the
        # others may never arrive.
        if self.interrupted_:
            self._unwrap_accelerator()
            return self
        return super().on_train_end(net, **kwargs)


class EpochRecord(Callback):
    """Complete the history's row of an epoch, and remove the rows of its batches.

    The losses become means over all processes. It adds ``step``, ``lr``, ``seconds`` and
    ``windows_per_second``, and removes the rows of the batches because they would fill memory and
    checkpoints in a run of millions of steps.
    """

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        row = net.history[-1]
        if net.accelerator.num_processes > 1:
            names = [name for name in row if name.startswith("train_loss")]
            own = torch.tensor([row[name] for name in names], device=net.compute_device)
            means = net.accelerator.reduce(own, "mean")
            row.update(zip(names, means.tolist(), strict=True))
        row["batches"] = []
        row["step"] = row["epoch"] * net.steps_per_epoch
        row["lr"] = net.optimizer_.param_groups[0]["lr"]
        row["seconds"] = row["dur"]
        row["windows_per_second"] = net.batch_size * net.steps_per_epoch / row["dur"]


class EpochFiles(Callback):
    """Write ``metrics.csv``, with one row for each epoch so far, and a checkpoint.

    It must come after all callbacks that add to the history, because the checkpoint has the
    history in it.

    Parameters
    ----------
    folder : RunFolder
        Folder of the run.
    """

    def __init__(self, folder: RunFolder):
        self.folder = folder

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        names = dict.fromkeys(name for row in net.history for name in row)
        losses = [name for name in names if name.startswith("train_loss")]
        columns = ["epoch", "step", *losses, "lr", "seconds", "windows_per_second"]
        table = pd.DataFrame([*net.history], columns=columns)
        text = table.to_csv(index=False, na_rep="nan", lineterminator="\n")
        replace_file(self.folder.metrics, text)
        checkpoint = Checkpoint.of(net, net.history[-1, "step"], self.folder.run_id)
        checkpoint.write(self.folder.checkpoints)
