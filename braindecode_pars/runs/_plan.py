"""What a pretraining run takes: disk, memory, steps and hours, before it is started."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from braindecode_pars.pretext.base import PretextTask
from braindecode_pars.pretraining import PretrainingNet, RelativeLoss
from braindecode_pars.runs._checkpoint import KEPT
from braindecode_pars.runs._config import RunConfig
from braindecode_pars.runs._corpus_size import CorpusSize
from braindecode_pars.runs._run import build_task, load_encoder_of, with_sizes_of
from braindecode_pars.training._counting import Count, count_steps
from braindecode_pars.training._device import find_device
from braindecode_pars.training._precision import tensor_cores
from braindecode_pars.training._seeding import seeded

__all__ = ["RunPlan", "plan"]

#: Bytes of a weight: itself, its gradient and two moments of AdamW, in float32.
_TRAINED, _SAVED = 16, 12

#: The number of windows in a measured step grows until it takes this many seconds.
_SECONDS = 1.0


class RunPlan(NamedTuple):
    """What a run takes.

    Attributes
    ----------
    parameters : int
        Number of parameters of the encoder and of the layers of the task.
    n_windows : int
        Number of windows in a pass over the corpus.
    steps_per_epoch, n_steps : int
        Number of steps in an epoch and in the run.
    n_examples : int
        Number of windows in all steps.
    tokens, flops : float
        Number of tokens that the encoder receives, and number of floating-point operations of
        matrix products, in all steps.
    store_bytes, run_bytes : int
        Disk of the store, and of the folder of the run with its checkpoints, in bytes.
    memory_bytes : int
        Memory of a device for weights, gradients, the state of AdamW and what the backward pass of
        a micro-batch needs, in bytes. Libraries and temporary tensors come on top.
    device : str
        Name of the devices.
    n_devices : int
        Number of devices that share a step.
    measured_windows : int
        Number of windows in the step that was measured.
    windows_per_second : float
        Speed of one device in that step.
    hours : float
        Length of the run on all devices, if data arrive as fast as they are used.

    Examples
    --------
    >>> from braindecode_pars.runs import RunPlan
    >>> RunPlan._fields[:2]
    ('parameters', 'n_windows')
    """

    parameters: int
    n_windows: int
    steps_per_epoch: int
    n_steps: int
    n_examples: int
    tokens: float
    flops: float
    store_bytes: int
    run_bytes: int
    memory_bytes: int
    device: str
    n_devices: int
    measured_windows: int
    windows_per_second: float
    hours: float


def plan(corpus: CorpusSize, config: RunConfig | None = None) -> RunPlan:
    """Return what a pretraining run takes, without starting it.

    A few training steps on noise are measured on the device, which takes seconds.

    Parameters
    ----------
    corpus : CorpusSize
        Size of the corpus.
    config : RunConfig | None
        Settings of the run. None means the paper's settings.

    Returns
    -------
    RunPlan
        Disk, memory, steps, operations, and hours on the devices at hand.

    Raises
    ------
    TypeError
        When an argument is of another type.
    ValueError
        When the configuration does not fit the sampling rate, or a single window does not fit into
        the memory of the device.

    Examples
    --------
    >>> from braindecode_pars.runs import CorpusSize, RunConfig, plan
    >>> corpus = CorpusSize.of_numbers(10_000, sfreq=100, n_chans=2)
    >>> planned = plan(corpus, RunConfig.for_laptop(device="cpu"))
    >>> planned.steps_per_epoch, planned.n_steps, planned.store_bytes
    (157, 7850, 120000000)
    """
    config = RunConfig() if config is None else config
    for name, value, kind in (("corpus", corpus, CorpusSize), ("config", config, RunConfig)):
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be a {kind.__name__}, got a {type(value).__name__}.")
    # The network.
    pretrained = load_encoder_of(config, corpus.sfreq)
    config = with_sizes_of(config, pretrained, corpus.sfreq)
    task = build_task(config, corpus.sfreq, pretrained)
    parameters = sum(parameter.numel() for parameter in task.parameters())
    of_encoder = sum(parameter.numel() for parameter in task.encoder.parameters())
    # The steps.
    steps_per_epoch = config.steps_per_epoch or math.ceil(corpus.n_windows / config.batch_size)
    n_steps = config.epochs * steps_per_epoch
    n_examples = n_steps * config.batch_size
    device = find_device(config.device)
    n_devices = _n_devices(device, config.batch_size)
    at_once = config.micro_batch_size or config.batch_size // n_devices
    with seeded(config.seed, device):
        count = _count(task, n_steps, n_examples)
        kept = _kept_bytes(task, config.precision)
        measured_windows, rate = _measured(task, config, device, at_once)
    return RunPlan(
        parameters=parameters,
        n_windows=corpus.n_windows,
        steps_per_epoch=steps_per_epoch,
        n_steps=n_steps,
        n_examples=n_examples,
        tokens=count.tokens,
        flops=count.flops,
        store_bytes=corpus.store_bytes,
        run_bytes=KEPT * _SAVED * parameters + 4 * of_encoder,
        memory_bytes=_TRAINED * parameters + kept * at_once,
        device=_name_of(device),
        n_devices=n_devices,
        measured_windows=measured_windows,
        windows_per_second=rate,
        hours=n_examples / rate / n_devices / 3600,
    )


def _step(task: PretextTask) -> Callable[[int], None]:
    criterion = task.criterion()

    def step(n_windows: int) -> None:
        task.zero_grad()
        criterion(*task(torch.randn(n_windows, task.n_times))).backward()

    return step


def _count(task: PretextTask, n_steps: int, n_examples: int) -> Count:
    return count_steps(_step(task), task.encoder, n_steps, n_examples)


def _kept_bytes(task: PretextTask, precision: str) -> int:
    """Return the bytes that the backward pass keeps for each window, without the weights."""
    in_bfloat16 = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16")
    weights = {parameter.untyped_storage().data_ptr() for parameter in task.parameters()}

    def kept(n_windows: int) -> int:
        sizes: dict[int, int] = {}
        alive: list[Tensor] = []  # else the memory of one could be that of the next

        def pack(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weights:
                sizes[storage.data_ptr()] = storage.nbytes()
                alive.append(tensor)
            return tensor

        with in_bfloat16, saved_tensors_hooks(pack, lambda tensor: tensor):
            _step(task)(n_windows)
        return sum(sizes.values())

    return (kept(4) - kept(2)) // 2


def _n_devices(device: torch.device, batch_size: int) -> int:
    """Return the number of GPUs that can share a batch equally; other devices are one."""
    n_devices = torch.cuda.device_count() if device.type == "cuda" else 1
    return n_devices if batch_size % n_devices == 0 else 1


def _measured(
    task: PretextTask, config: RunConfig, device: torch.device, at_once: int
) -> tuple[int, float]:
    """Return the size of the largest step that was measured, and its windows per second."""
    settings = dict(lr=config.lr, precision=config.precision, compile=config.compile)
    net = PretrainingNet(task, device=device, verbose=0, **settings).initialize()

    losses = RelativeLoss()  # the losses of parts of the task take time too
    losses.on_train_begin(net)
    losses.on_epoch_begin(net)

    def seconds(n_windows: int) -> float:
        batch = torch.randn(n_windows, task.n_times), torch.zeros(n_windows)
        start = time.perf_counter()
        result = net.train_step(batch)
        losses.on_batch_end(net, batch, True, result["y_pred"])
        result["loss"].item()  # waits for the device
        return time.perf_counter() - start

    best = (0, 0.0)
    n_windows = 1
    with tensor_cores(device), suppress(torch.OutOfMemoryError):
        while True:
            seconds(n_windows)  # the first step of a size allocates memory
            took = min(seconds(n_windows) for _ in range(2))
            best = n_windows, n_windows / took
            if n_windows == at_once or took > _SECONDS:
                break
            n_windows = min(2 * n_windows, at_once)
    if best[0] == 0:
        raise ValueError(
            f"A step of a single window of {config.window_seconds:g} s does not fit into the "
            f"memory of {_name_of(device)}; use shorter windows (window_seconds), a smaller "
            "encoder (embed_dim, num_layers), or a device with more free memory."
        )
    return best


def _name_of(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU, {torch.get_num_threads()} threads" if device.type == "cpu" else device.type
