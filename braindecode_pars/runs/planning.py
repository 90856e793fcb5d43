"""Estimate disk space, number of steps and duration of a pretraining run before starting it.

The size of the training data is read from a store, or is specified as a number of windows.
"""

import math
import time
from statistics import harmonic_mean
from typing import Any, NamedTuple, Self

import torch

from braindecode_pars._common import checks, computing
from braindecode_pars.models.space_time import SPACE_TIME
from braindecode_pars.pretext import base, joint
from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.runs import run, run_folder, steps
from braindecode_pars.runs.config import RunConfig
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import examples

#: Bytes per weight in a checkpoint: the weight and two moments of AdamW, in float32.
_CHECKPOINT_BYTES = 12

#: Minimum duration in seconds of the training step that is timed. The number of windows per step is
#: doubled until a step takes this time.
_MIN_STEP_SECONDS = 1.0


class RunPlan(NamedTuple):
    """Estimated disk space, number of steps and duration of a pretraining run.

    Attributes
    ----------
    parameters : int
        Number of parameters of the encoder and of the pretext task together.
    steps_per_epoch, n_steps : int
        Number of steps in an epoch, and in the whole run. An epoch has ``config.steps_per_epoch``
        steps. If that is None, an epoch is one pass over the data (at most 250 steps if
        ``config.epochs`` is None). If ``config.epochs`` is None, the run may stop early, and
        ``n_steps`` is the maximum number of steps.
    store_bytes, run_bytes : int
        Disk space in bytes of the store, and of the folder of the run, including checkpoints.
    device : str
        Name of the device, such as the GPU model. If there are several devices, they are assumed to
        be identical.
    n_devices : int
        Number of devices that share the examples of each step.
    windows_per_second : float
        Number of windows per second that one device processes, estimated from a timed training
        step.
    hours : float
        Duration of the run in hours, if all devices train in parallel and loading data takes less
        time than training.

    Examples
    --------
    >>> from braindecode_pars.runs import RunPlan
    >>> RunPlan._fields[:3]
    ('parameters', 'steps_per_epoch', 'n_steps')
    """

    parameters: int
    steps_per_epoch: int
    n_steps: int
    store_bytes: int
    run_bytes: int
    device: str
    n_devices: int
    windows_per_second: float
    hours: float


def plan(corpus: "CorpusSize", config: RunConfig | None = None) -> RunPlan:
    """Estimate disk space, number of steps and duration of a pretraining run.

    To estimate the duration, a few training steps on random numbers are timed on the device, which
    takes seconds.

    Parameters
    ----------
    corpus : CorpusSize
        Size of the training data: :meth:`CorpusSize.of_store` or :meth:`CorpusSize.of_numbers`.
    config : RunConfig | None
        Settings of the run. If None, the settings of the paper are used.

    Returns
    -------
    RunPlan
        Disk space, number of steps, and duration of the run on the devices of this machine.

    Raises
    ------
    ValueError
        If the configuration is invalid for the sampling rate.
    torch.OutOfMemoryError
        If a micro-batch does not fit into the memory of the device. Decrease
        ``config.micro_batch_size``.

    Examples
    --------
    One pass over 10,000 windows in batches of 32 takes 313 steps. With the default ``epochs=None``
    of ``for_laptop``, an epoch has at most 250 steps, and the run at most 2000 steps:

    >>> from braindecode_pars.runs import CorpusSize, RunConfig, plan
    >>> corpus = CorpusSize.of_numbers(10_000, sfreq=100, n_chans=2)
    >>> planned = plan(corpus, RunConfig.for_laptop(device="cpu"))
    >>> planned.steps_per_epoch, planned.n_steps, planned.store_bytes
    (250, 2000, 120000000)
    """
    # Network.
    config, task, _ = run.begun_task(config or RunConfig(), corpus.sfreq)
    parameters = computing.n_parameters(task)
    # Number and duration of steps.
    steps_per_epoch = run.steps_in_epoch(config, corpus.n_windows)
    device = computing.find_device(config.device)
    n_devices = torch.cuda.device_count() if device.type == "cuda" else 1
    if config.batch_size % n_devices:  # the batch cannot be divided equally among the devices
        n_devices = 1
    at_once = config.micro_batch_size or config.batch_size // n_devices
    # With several crop lengths, steps cycle through the lengths, so each length is timed.
    parts = [*task.parts.values()] if isinstance(task, joint.SeveralLengths) else [task]
    with computing.seeded(config.seed, device):
        rates = [_throughput(part, config, device, at_once, corpus.n_chans) for part in parts]
    rate = harmonic_mean(rates)
    n_steps = (config.epochs or 0) * steps_per_epoch
    if config.epochs is None:  # maximum number of steps
        by_time = 60 * (config.minutes or math.inf) * rate * n_devices / config.batch_size
        n_steps = math.ceil(min(by_time, config.step_limit))  # min returns by_time if limit is NaN
    checkpoint_bytes = run_folder.N_CHECKPOINTS * _CHECKPOINT_BYTES * parameters
    return RunPlan(
        parameters=parameters,
        steps_per_epoch=steps_per_epoch,
        n_steps=n_steps,
        store_bytes=corpus.store_bytes,
        run_bytes=checkpoint_bytes + 4 * computing.n_parameters(task.encoder),
        device=computing.device_name(device),
        n_devices=n_devices,
        windows_per_second=rate,
        hours=n_steps * config.batch_size / rate / n_devices / 3600,
    )


def _throughput(
    task: base.PretextTask, config: RunConfig, device: torch.device, at_once: int, n_chans: int
) -> float:
    """Return the number of windows per second on one device, measured in the largest timed step."""
    settings: Any = dict(lr=config.lr, precision=config.precision, compile=config.compile)
    net = PretrainingNet(task, **settings, device=device, verbose=0).initialize()
    channel_axis = [n_chans] if task.encoder_kind == SPACE_TIME else []

    def seconds(n_windows: int) -> float:
        noise = torch.randn(n_windows, *channel_axis, task.n_times)
        batch = noise, torch.zeros(n_windows)
        start = time.perf_counter()
        net.train_step(batch)["loss"].item()  # reading the loss waits until the step has finished
        return time.perf_counter() - start

    n_windows = 1
    with computing.tensor_cores(device):
        while True:
            with net.captured_steps():  # a captured step has a fixed number of windows
                seconds(n_windows)  # not timed, because the first step of a size allocates memory
                took = min(seconds(n_windows) for _ in range(2))
            if n_windows == at_once or took > _MIN_STEP_SECONDS:
                return n_windows / took
            n_windows = min(2 * n_windows, at_once)


#: Number of bytes per sample in a store with the default data type, int16.
_SAMPLE_BYTES = 2


class CorpusSize(NamedTuple):
    """Size of the training data of a pretraining run.

    Attributes
    ----------
    n_windows : int
        Number of windows in one pass over the recordings. A window with several channels is counted
        once, and an incomplete window at the end of a recording is not counted.
    sfreq : float
        Sampling rate in Hz.
    store_bytes : int
        Size in bytes of the store. If the store does not exist yet, the size is computed for
        samples of type int16.
    n_chans : int
        Maximum number of channels of a window.

    Examples
    --------
    1,500,000 windows of 30 s at 200 Hz, with six channels and two bytes per sample:

    >>> from braindecode_pars.runs import CorpusSize
    >>> CorpusSize.of_numbers(1_500_000, sfreq=200, window_seconds=30, n_chans=6).store_bytes
    108000000000
    """

    n_windows: int
    sfreq: float
    store_bytes: int
    n_chans: int = 1

    @classmethod
    def of_numbers(
        cls, n_windows: int, *, sfreq: float, window_seconds: float = 30.0, n_chans: int = 1
    ) -> Self:
        """Return the size of training data that are specified by their number of windows.

        Parameters
        ----------
        n_windows : int
            Number of windows in one pass over the data.
        sfreq, window_seconds : float
            Sampling rate in Hz, and length of a window in seconds.
        n_chans : int
            Number of channels per window.

        Returns
        -------
        CorpusSize
            Size of the specified windows. The store is assumed to contain samples of type int16.

        Raises
        ------
        TypeError, ValueError
            If an argument is not a positive number.
        """
        checks.check_positive(
            n_windows=n_windows, sfreq=sfreq, window_seconds=window_seconds, n_chans=n_chans
        )
        n_samples = n_windows * round(window_seconds * sfreq) * n_chans
        return cls(n_windows, float(sfreq), n_samples * _SAMPLE_BYTES, n_chans)

    @classmethod
    def of_store(cls, store: SignalStore, window_seconds: float = 30.0) -> Self:
        """Return the size of the training data in a store.

        Parameters
        ----------
        store : SignalStore
            Store to pretrain on.
        window_seconds : float
            Length of a window in seconds.

        Returns
        -------
        CorpusSize
            Size of the data in the store.

        Raises
        ------
        ValueError
            If every recording is shorter than a window. If ``store.shares`` contains a corpus of
            which every recording is shorter than a window.
        """
        of_store = steps.Steps(store, round(window_seconds * store.sfreq), 1)
        n_chans = min(int(of_store.n_chans.max()), examples.MAX_CHANNELS)
        return cls(of_store.n_windows, store.sfreq, store.n_bytes, n_chans)
