"""One training loop for one process and for several: shards, micro-batches, agreed losses."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import concatenate
from skorch import NeuralNet
from skorch.callbacks import Callback
from skorch.hf import AccelerateMixin
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.runs._steps import EpochLoader, Steps
from braindecode_pars.training._seeding import seeded

__all__ = ["MeanOverProcesses", "RunNet"]


class MeanOverProcesses(Callback):
    """Make the losses in the history those of the whole batch, the same in every process."""

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if net.accelerator.num_processes == 1:
            return
        row = net.history[-1]
        names = [name for name in row if name.startswith("train_loss")]
        here = torch.tensor([row[name] for name in names], device=net.compute_device)
        everywhere = net.accelerator.reduce(here, "mean")
        row.update(zip(names, everywhere.tolist(), strict=True))


class RunNet(AccelerateMixin, PretrainingNet):
    """A PretrainingNet whose steps may be shared by several processes.

    Each process reads its own shard, so nothing is left for accelerate to divide. The random
    draws of the task are seeded for every micro-batch by its number in the whole batch: what is
    learned depends on the sizes of batch and micro-batch, not on how many processes there are.

    Parameters
    ----------
    module : PretextTask
    accelerator : accelerate.Accelerator
    micro_batch_size : int
        Examples that go through the network at a time; divides this process' share of a step.
    steps_per_epoch : int
    first_epoch : int
        How many epochs are done already, in an earlier session.
    num_workers : int
        Processes that read data ahead.
    restore : callable | None
        Puts the net, once it is initialised, into the state of an earlier session.
    **kwargs
        As in PretrainingNet.
    """

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
        wrapped = isinstance(self.module_, DistributedDataParallel)
        return self.module_.module if wrapped else self.module_

    @property
    def compute_device(self) -> torch.device:
        return self.accelerator.device

    def _initialize_accelerator(self) -> RunNet:
        # Losses have no parameters, and accelerate would wrap them all the same.
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
        """As skorch's, but ``max_epochs`` counts those of earlier sessions."""
        epochs = self.max_epochs - self.first_epoch if epochs is None else epochs
        return super().fit_loop(X, y, epochs=epochs, **kwargs)

    def get_iterator(self, dataset: Steps, training: bool = False) -> EpochLoader:
        return EpochLoader(
            dataset,
            self.first_epoch * self.steps_per_epoch,
            self.max_epochs * self.steps_per_epoch,
            self.steps_per_epoch,
            num_workers=self.num_workers,
            pin_memory=self.compute_device.type == "cuda",
        )

    def run_single_epoch(
        self, iterator: EpochLoader | None, training: bool, prefix: str, step_fn: Any, **kwargs: Any
    ) -> None:
        """As skorch's, but losses are read once an epoch: each time, the CPU waits for the GPU."""
        if not training:
            return
        losses = []
        for number, batch in enumerate(iterator, start=1):
            self.notify("on_batch_begin", batch=batch, training=True)
            # Whether the loss is still a number is asked last: one that is none stays none.
            step = step_fn if number == len(iterator) else partial(NeuralNet.train_step, self)
            answer = step(batch, **kwargs)
            losses.append(answer["loss"])
            self.notify("on_batch_end", batch=batch, training=True, **answer)
        self.history.record(f"{prefix}_loss", torch.stack(losses).cpu().double().mean().item())

    def train_step_single(self, batch: tuple[Tensor, int], **fit_params: Any) -> dict[str, Any]:
        self._set_training(True)
        signals, step_seed = batch
        parts = signals.split(self.micro_batch_size)
        first = self.accelerator.process_index * len(parts)
        loss, answers = torch.zeros((), device=self.compute_device), []
        for number, part in enumerate(parts, start=1):
            # Processes exchange gradients once a step, in the last backward.
            alone = self.accelerator.no_sync(self.module_)
            with nullcontext() if number == len(parts) else alone:
                with seeded(_micro_batch_seed(step_seed, first + number), self.compute_device):
                    answer = self.infer(part.to(self.compute_device, non_blocking=True))
                    part_loss = self.get_loss(answer, None, training=True) / len(parts)
                self.accelerator.backward(part_loss)
            loss += part_loss.detach()
            answers.append(answer)
        with torch.no_grad():
            answer = answers[0] if len(answers) == 1 else concatenate(answers)
            return {"loss": loss, "y_pred": answer}

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> RunNet:
        if self.interrupted_:  # the other processes may never come to this point
            self._unwrap_accelerator()
            return self
        return super().on_train_end(net, **kwargs)


def _micro_batch_seed(step_seed: int, number: int) -> int:
    return int(np.random.SeedSequence([step_seed, number]).generate_state(1)[0])
