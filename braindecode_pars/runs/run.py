"""Pretrain on a SignalStore with one or several devices. An interrupted run can be resumed.

The training loop runs in one or several processes, usually one per GPU. Each process may divide its
part of a step into micro-batches. Metrics and a checkpoint are written after each epoch.
"""

from __future__ import annotations

import logging
import math
import os
import platform
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.exceptions import ConvergenceWarning
from torch.nn.parallel import DistributedDataParallel

from braindecode_pars._common import (
    checks,
    computing,
    files,
    held_out,
    model_files,
    names,
    training,
)
from braindecode_pars.models.space_time import KIND, SPACE_TIME, build_encoder
from braindecode_pars.pretext import base, joint
from braindecode_pars.pretrained import cards, saved
from braindecode_pars.pretraining import PretrainingNet, PretrainingSettings, pretrain_encoder
from braindecode_pars.runs.config import RunConfig, SizedRunConfig
from braindecode_pars.runs.run_folder import Checkpoint, RunFolder
from braindecode_pars.runs.steps import AllChannelSteps, EpochLoader, Steps
from braindecode_pars.signal_store import SignalStore

try:
    with warnings.catch_warnings():  # hide warnings of torch when accelerate is imported
        import accelerate
        import skorch.hf
        from accelerate.utils import concatenate, find_batch_size, send_to_device, slice_tensors
except ModuleNotFoundError as error:
    raise names.with_extra(error) from None

log = logging.getLogger(__name__)

#: Settings of a run that are arguments of the encoder.
_ENCODER_ARGUMENTS = ("embed_dim", "num_layers", "num_heads", "mlp_dim", "drop_prob", "tokenizer")

_PACKAGES = ("braindecode_pars", "braindecode", "torch", "skorch", "accelerate", "numpy")


def pretrain(
    store: SignalStore | str | Path,
    out: str | Path,
    config: RunConfig | None = None,
    *,
    resume: bool = False,
    verbose: int = 1,
) -> Path:
    """Pretrain an encoder on a signal store, for corpora larger than memory.

    A :class:`~braindecode_pars.signal_store.SignalStore` is a folder of recordings whose samples
    are read from disk when they are needed.

    If this function is called in several processes with ``torchrun``, the examples of each step are
    divided among the processes, the gradients are averaged, and the first process writes all files.
    A run that was interrupted or killed can be resumed from its last checkpoint. On a CPU, in one
    process with the same number of threads, a resumed run ends with exactly the same weights as an
    uninterrupted run.

    Parameters
    ----------
    store : SignalStore | path
        Store to pretrain on, or its folder. Validation and test subjects of the corpus, which a
        store with labels contains, are excluded.
    out : path
        Folder for the run. During the run, the files ``run.json`` (configuration, store, versions
        of packages) and ``metrics.csv`` (losses of each epoch) and the folder ``checkpoints/`` are
        written. At the end of the run, the encoder is saved in ``encoder.safetensors`` and
        ``encoder.json``; load it with ``PARSClassifier(encoder=out)``.
    config : RunConfig | None
        Settings of the run. If None, the settings of the paper are used.
    resume : bool
        Whether to resume the run in ``out``. Configuration and store must be the same as when the
        run was started.
    verbose : int
        Verbosity: 0 prints nothing, 1 prints an overview and a progress bar.

    Returns
    -------
    Path
        The folder ``out``.

    Raises
    ------
    TypeError
        If ``config`` is not a RunConfig.
    ValueError
        If the configuration cannot be used with this store or this number of processes, or if the
        folder ``out`` contains a different run.
    KeyboardInterrupt
        If the user interrupts the training. The last checkpoint remains.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        See :func:`~braindecode_pars.pretraining.pretrain_encoder`.
    UserWarning
        If the run starts from a pretrained encoder (``config.encoder``), and the frequency band or
        the reference of the recordings in the store differs from the recordings on which this
        encoder was pretrained.

    Notes
    -----
    Section 2.5 of the paper describes the method. Each step trains on a batch of random crops
    (excerpts) of random channels, with the optimizer AdamW. By default, the learning rate increases
    linearly (warm-up), and then decays to zero as a cosine. An epoch is a fixed number of steps, by
    default one pass over the data.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.runs import RunConfig, pretrain
    >>> from braindecode_pars.signal_store import SignalStore
    >>> nights = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> small = RunConfig(
    ...     embed_dim=16,
    ...     num_layers=1,
    ...     epochs=2,
    ...     steps_per_epoch=1,
    ...     batch_size=8,
    ...     device="cpu",
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SignalStore.create(Path(folder, "store"), nights, verbose=0)
    ...     run = pretrain(store, Path(folder, "run"), small, verbose=0)
    ...     sorted(file.name for file in run.glob("encoder.*"))
    ['encoder.json', 'encoder.safetensors']
    """
    config = RunConfig() if config is None else config
    if not isinstance(config, RunConfig):
        raise TypeError(f"config must be a RunConfig, got a {type(config).__name__}.")

    # Do everything that can raise an error before any file is written.
    accelerator = _accelerator(config)
    is_main = accelerator.is_main_process
    if not isinstance(store, SignalStore):
        # open() may compare all samples with their checksums. Only the first process must do this.
        with accelerator.main_process_first():
            store = SignalStore.open(store, verbose=verbose if is_main else 0)
    store = store.select(exclude=config.exclude_subjects).without_held_out()
    config, task, before = begun_task(config, store.sfreq)
    sized, steps = _sized(config, store, accelerator)

    # Check whether the folder can be used for this run.
    # The checksum is that of the training recordings, without held-out subjects.
    stored = {"path": str(store.path), "checksum": steps.store.checksum, "sfreq": store.sfreq}
    described = {"configuration": asdict(sized), "store": stored}
    folder = RunFolder(Path(out).expanduser(), described, resume=resume)
    folder.check()
    if folder.is_finished:
        accelerator.end_training()
        if verbose and is_main:
            log.info("The run in %s is already finished. Nothing was trained.", folder.path)
        return folder.path

    if before is not None and is_main and (differences := before.differences(store.preprocessing)):
        checks.warn_user(
            "Preprocessing of the store differs from the pretraining data of the encoder "
            f"{config.encoder}, from which this run starts: {'; '.join(map(str, differences))}. "
            "Create a store with the same preprocessing, or pretrain a new encoder."
        )

    # Train. All processes must have checked the folder before the first process writes to it.
    accelerator.wait_for_everyone()
    with folder.opened() if is_main else nullcontext():
        net = _train(steps, task, sized, accelerator, folder, verbose)
        if is_main:
            card = _card(sized, steps, net)
            card = card if before is None else card.continues(before)
            description = saved.describe_encoder(task.encoder, card)
            kind, tensors = model_files.ENCODER, task.encoder.state_dict()
            model_files.write_model(folder.path, kind, description, tensors)
        accelerator.end_training()
    if verbose and is_main:
        log.info(
            f"Final loss: {training.loss_at_end(net.history):.3f} times the chance-level loss "
            "(below 1 is better than chance).\nSpeed: "
            f"{net.history[-1]['windows_per_second']:.4g} windows/s\n"
            f"The encoder is in {folder.path}. Fine-tune it with "
            f'PARSClassifier(encoder="{folder.path}").'
        )
    return folder.path


@cache
def _versions() -> dict[str, str]:
    """Return the versions of the packages on which the results depend."""
    return {name: version(name) for name in _PACKAGES}


def _train(
    steps: Steps,
    task: base.PretextTask,
    config: SizedRunConfig,
    accelerator: accelerate.Accelerator,
    folder: RunFolder,
    verbose: int,
) -> RunNet:
    """Train the encoder. If the run is resumed, start from its last checkpoint, if there is one."""
    is_main = accelerator.is_main_process
    # All processes must have read the checkpoint before the first process may remove it.
    checkpoint = folder.newest() if folder.resume else None
    first_epoch = len(checkpoint.history) if checkpoint else 0
    accelerator.wait_for_everyone()

    # Record this call as a session of the run in run.json.
    if is_main:
        session = {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "first_step": checkpoint.step if checkpoint else 0,
            "processes": accelerator.num_processes,
            "device": computing.device_name(accelerator.device),
            "python": platform.python_version(),
            "versions": dict(_versions()),
        }
        folder.begin_session(session)
    if verbose and is_main:
        log.info(_overview(task, steps, config, accelerator, first_epoch))

    # Train.
    default = 0 if accelerator.device.type == "cpu" else min(4, os.cpu_count() or 1)
    make_net = partial(
        RunNet,
        accelerator=accelerator,
        micro_batch_size=config.micro_batch_size,
        steps_per_epoch=config.steps_per_epoch,
        first_epoch=first_epoch,
        num_workers=default if config.num_workers is None else config.num_workers,
        restore=checkpoint.restore if checkpoint else None,
    )
    # accelerate selects the device.
    settings = PretrainingSettings.of(vars(config), task=task, task_params={}, device=None)
    with warnings.catch_warnings():
        if not is_main:  # only the first process warns if the training does not converge
            warnings.simplefilter("ignore", ConvergenceWarning)
        net = pretrain_encoder(
            task.encoder,
            steps,
            settings,
            held_out_windows=steps.held_out,
            callbacks=[EpochRecord(folder if is_main else None)],
            seed=config.seed,
            first_epoch=first_epoch,
            verbose=verbose if is_main else 0,
            net=make_net,
        )
        accelerator.wait_for_everyone()
    return net


def _accelerator(config: RunConfig) -> accelerate.Accelerator:
    """Return the Accelerator object, which connects the processes of the run."""
    wanted = computing.find_device(config.device).type
    # With several crop lengths, each step uses only the heads of one length, so other parameters
    # are unused. Mixed precision is off here, because the net sets the precision.
    has_unused = len(config.lengths) > 1
    unused = accelerate.DistributedDataParallelKwargs(find_unused_parameters=has_unused)
    accelerator = accelerate.Accelerator(
        cpu=wanted == "cpu", mixed_precision="no", kwargs_handlers=[unused]
    )
    # accelerate cannot change the device within a Python process.
    if accelerator.device.type != wanted:
        raise ValueError(
            f"This Python process has already used accelerate on the device "
            f"{accelerator.device.type}, so device={config.device!r} cannot be used. Start a new "
            "Python process."
        )
    return accelerator


def _sized(
    config: RunConfig, store: SignalStore, accelerator: accelerate.Accelerator
) -> tuple[SizedRunConfig, Steps]:
    """Return the configuration with all sizes set, and the data of this process."""
    # Sizes of a batch.
    n_processes = accelerator.num_processes
    examples_per_process, remainder = divmod(config.batch_size, n_processes)
    if remainder:
        raise ValueError(
            "batch_size must be a multiple of the number of processes "
            f"({n_processes}), got batch_size={config.batch_size}. Change batch_size or the number "
            "of processes."
        )
    micro_batch_size = config.micro_batch_size or examples_per_process
    if examples_per_process % micro_batch_size:
        raise ValueError(
            "The number of examples that a process uses in each step must be a multiple of "
            f"micro_batch_size. Got {examples_per_process} examples (batch_size / number of "
            f"processes) and micro_batch_size={micro_batch_size}. Change micro_batch_size."
        )

    # Training data, held-out data if the number of epochs depends on them, and length of an epoch.
    uses_all_channels = base.encoder_kind_of(config.task) == SPACE_TIME
    make_steps: Any = AllChannelSteps if uses_all_channels else Steps
    step_kwargs = dict(seed=config.seed, process=accelerator.process_index, n_processes=n_processes)
    lengths, measured = config.in_samples(store.sfreq), None
    if config.epochs is None:
        store, held_out_store = _split_by_subject(store, max(lengths), config.seed)
        measured = make_steps(held_out_store, lengths, config.batch_size, **step_kwargs)
    steps = make_steps(store, lengths, config.batch_size, held_out=measured, **step_kwargs)
    steps_per_epoch = steps_in_epoch(config, steps.n_windows)
    sizes = dict(micro_batch_size=micro_batch_size, steps_per_epoch=steps_per_epoch)
    return SizedRunConfig(**{**vars(config), **sizes}), steps


def steps_in_epoch(config: RunConfig, n_windows: int) -> int:
    """Return the number of steps in an epoch, if a pass over the data has ``n_windows`` windows."""
    in_pass = math.ceil(n_windows / config.batch_size)
    limit = held_out.EPOCH_STEPS if config.epochs is None else in_pass
    return config.steps_per_epoch or min(in_pass, limit)


def _split_by_subject(
    store: SignalStore, n_times: int, seed: int
) -> tuple[SignalStore, SignalStore]:
    """Return a view of the store to train on, and a view of held-out subjects.

    If fewer than three subjects have a recording of at least ``n_times`` samples, or if the
    subject of a recording is unknown, no subject is held out, and both views are the whole store.
    The held-out loss is then computed on the same recordings as the training loss, but on different
    crops.
    """
    subjects: list[Any] = []
    if store.recordings["subject"].notna().all():
        subjects = store.recordings.query("n_times >= @n_times")["subject"].unique().tolist()
    chosen = [subjects[i] for i in held_out.choose(len(subjects), seed)]
    return (store.select(exclude=chosen), store.select(chosen)) if chosen else (store, store)


def begun_task(
    config: RunConfig, sfreq: float
) -> tuple[RunConfig, base.PretextTask, cards.EncoderCard | None]:
    """Return the configuration and pretext task of a new run, and the card of its initial encoder.

    Parameters
    ----------
    config : RunConfig
        Configuration of the run.
    sfreq : float
        Sampling rate of the store in Hz.

    Returns
    -------
    config : RunConfig
        Configuration. If the run starts from a pretrained encoder (``config.encoder``), it contains
        the sizes of this encoder.
    task : PretextTask
        Pretext task with the initial encoder.
    card : EncoderCard | None
        Encoder card (the metadata that are saved with an encoder) of the pretrained encoder. None
        if the run starts from a new encoder.
    """
    if config.encoder is None:
        return config, build_task(config, sfreq), None
    encoder, card = saved.load_encoder(config.encoder)[:2]
    trained = f"the encoder {config.encoder} was pretrained at"
    remedy = "create the store with sfreq={expected:g}"
    checks.check_same_rate(sfreq, card.sfreq, "The store is", trained, remedy)
    sizes: dict[str, Any] = {name: encoder.config[name] for name in _ENCODER_ARGUMENTS}
    config = replace(config, patch_seconds=encoder.patch_size / sfreq, **sizes)
    task = build_task(config, sfreq, encoder.config)
    task.encoder.load_state_dict(encoder.state_dict())
    return config, task, card


def build_task(
    config: RunConfig, sfreq: float, encoder: dict[str, Any] | None = None
) -> base.PretextTask:
    """Return the pretext task of a run, with a new encoder.

    Parameters
    ----------
    config : RunConfig
        Configuration of the run.
    sfreq : float
        Sampling rate of the store in Hz.
    encoder : dict | None
        Arguments of the encoder. If None, the arguments in the configuration are used.
    """
    arguments: dict[str, Any] = {name: getattr(config, name) for name in _ENCODER_ARGUMENTS}
    arguments["patch_size"] = round(config.patch_seconds * sfreq)
    arguments[KIND] = base.encoder_kind_of(config.task)
    with computing.seeded(config.seed):
        new = build_encoder(**(encoder or arguments))
        kwargs: Any = dict(encoder=new, task_params=dict(config.task_params), sfreq=sfreq)
        tasks = [base.make_task(config.task, n_times=n, **kwargs) for n in config.in_samples(sfreq)]
        return tasks[0] if len(tasks) == 1 else joint.SeveralLengths(tasks)


def _overview(
    task: base.PretextTask,
    steps: Steps,
    config: SizedRunConfig,
    accelerator: accelerate.Accelerator,
    first_epoch: int,
) -> str:
    """Return three lines, which describe the data, the network and the length of the run."""
    completed = f" ({first_epoch} completed)" if first_epoch else ""
    processes = accelerator.num_processes
    length = f"{config.epochs} epochs{completed}"
    if config.epochs is None:
        budget = f"{config.minutes:g} minutes" if config.minutes else f"{config.step_limit:,} steps"
        length = f"At most {budget}, in epochs{completed}"
    return (
        f"{steps}\n"
        f"{task.shown_name} with {computing.n_parameters(task):,} parameters in {config.precision} "
        f"on {processes} {accelerator.device.type} process{'es' if processes > 1 else ''}\n"
        f"{length} of {config.steps_per_epoch} steps of {config.batch_size} "
        f"windows; a pass over the data contains {steps.n_windows} windows"
    )


def _card(config: SizedRunConfig, steps: Steps, net: RunNet) -> cards.EncoderCard:
    n_steps = len(net.history) * config.steps_per_epoch
    return cards.EncoderCard(
        sfreq=steps.store.sfreq,
        task=config.task,
        task_params=dict(config.task_params),
        # Include held-out subjects: they determined the number of epochs, so they must not be used
        # as test subjects.
        subjects=cards.unique_subjects(steps.subjects, getattr(steps.held_out, "subjects", [])),
        n_windows=steps.n_windows,
        epochs=len(net.history),
        n_times=steps.n_times,
        n_steps=n_steps,
        n_examples=n_steps * config.batch_size,
        **training.card_losses(net.history),
        sham=config.sham,
        preprocessing=replace(steps.store.preprocessing, window_seconds=max(config.lengths)),
    )


class RunNet(skorch.hf.AccelerateMixin, PretrainingNet):
    """Version of PretrainingNet (a skorch net) that trains in one or several processes.

    Each process reads its own part of every batch, so accelerate does not divide the data. Random
    numbers of a micro-batch depend on the position of the micro-batch in the whole batch.
    Therefore, the result depends on batch size and micro-batch size, but not on the number of
    processes.

    Parameters
    ----------
    module : PretextTask
        Pretext task to train.
    accelerator : accelerate.Accelerator
        Object that connects the processes.
    micro_batch_size : int
        Number of examples per forward pass. The number of examples that a process uses in each step
        must be a multiple of it.
    steps_per_epoch : int
        Number of steps in an epoch.
    first_epoch : int
        Number of epochs that were completed before the run was resumed.
    num_workers : int
        Number of processes that load data in advance.
    restore : callable | None
        Function that sets the state of the initialized net to that of a checkpoint.
    **kwargs
        Arguments of PretrainingNet.
    """

    _criteria: list[str]

    def __init__(
        self,
        module: Any,
        *,
        accelerator: accelerate.Accelerator,
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
        # accelerate's unwrap_model is not used, because it searches for packages in every call.
        is_wrapped = isinstance(self.module_, DistributedDataParallel)
        return self.module_.module if is_wrapped else self.module_

    @property
    def compute_device(self) -> torch.device:
        return self.accelerator.device

    def _initialize_accelerator(self) -> RunNet:
        # Hide the loss functions (criteria) from accelerate, which would wrap them like the task.
        # They have no parameters that must be synchronized.
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
        """Train as in skorch. ``max_epochs`` includes the epochs completed before a resumption."""
        last = min(self.max_epochs, held_out.decay_epochs(self.history)[1])
        epochs = int(last) - self.first_epoch if epochs is None else epochs
        return super().fit_loop(X, y, epochs=epochs, **kwargs)

    def prepare_task(self, X: Steps, y: Any = None) -> None:
        """Let the task compute statistics of training signals before the first step of a new run.

        A resumed run restores these statistics from a checkpoint.
        """
        if self.first_epoch == 0:
            super().prepare_task(X, y)

    def draw_batches(self, dataset: Steps, n: int) -> list[Any]:
        """Return n random crops in micro-batches. All processes return the same crops."""
        crops = send_to_device(dataset.first_pass(n), self.compute_device)
        return split_examples(crops, self.micro_batch_size)

    def agreed(self, value: float) -> float:
        """Return the mean of a value over all processes."""
        if self.accelerator.num_processes == 1:
            return value
        mean = self.accelerator.reduce(torch.tensor(value, device=self.compute_device), "mean")
        return mean.item()

    def get_iterator(self, dataset: Steps, training: bool = False) -> EpochLoader:
        n_steps, on_gpu = self.steps_per_epoch, self.compute_device.type == "cuda"
        first, last = self.first_epoch * n_steps, self.max_epochs * n_steps
        # With pinned memory, batches are copied to the GPU while the GPU computes.
        options = dict(num_workers=self.num_workers, pin_memory=on_gpu)
        return EpochLoader(dataset, first, last, n_steps, **options)

    def run_single_epoch(
        self, iterator: EpochLoader | None, training: bool, prefix: str, step_fn: Any, **kwargs: Any
    ) -> None:
        """Train one epoch as in skorch, but read the losses only at the end of the epoch.

        Whenever a loss is read, the CPU must wait for the GPU.
        """
        if iterator is None:  # no validation data
            return
        # Only the last step uses step_fn, which reads the loss to check that it is finite. This
        # suffices, because the loss of all further steps is NaN after one loss was NaN.
        unchecked_step, losses = partial(skorch.NeuralNet.train_step, self), []
        for number, batch in enumerate(iterator, start=1):
            self.notify("on_batch_begin", batch=batch, training=True)
            step = step_fn if number == len(iterator) else unchecked_step
            result = step(batch, **kwargs)
            losses.append(result["loss"])
            self.notify("on_batch_end", batch=batch, training=True, **result)
        self.history.record(f"{prefix}_loss", torch.stack(losses).cpu().double().mean().item())

    def train_step_single(self, batch: tuple[Any, int], **fit_params: Any) -> dict[str, Any]:
        self._set_training(True)
        signals, step_seed = batch
        parts = split_examples(signals, self.micro_batch_size)
        first = self.accelerator.process_index * len(parts)
        loss, results = torch.zeros((), device=self.compute_device), []
        part_of_step = partial(self._part_of_step, len(parts))

        # Sum the gradients over the micro-batches.
        for number, part in enumerate(parts, start=1):
            # Processes exchange gradients once per step: in the backward pass of the last part.
            no_exchange = self.accelerator.no_sync(self.module_)
            with nullcontext() if number == len(parts) else no_exchange:
                seed = np.random.SeedSequence([step_seed, first + number]).generate_state(1)[0]
                part = send_to_device(part, self.compute_device, True)
                with computing.seeded(int(seed), self.compute_device):
                    step_result = self.run_step(part_of_step, (part, None))
            loss += step_result["loss"].detach()
            results.append(step_result["y_pred"])

        # Callbacks receive the predictions of the whole step.
        with torch.no_grad():
            result = results[0] if len(results) == 1 else concatenate(results)
            return {"loss": loss, "y_pred": result}

    def _part_of_step(self, n_parts: int, batch: tuple[Any, None]) -> dict[str, Any]:
        """Compute the loss of a micro-batch, and add its contribution to the gradients."""
        result = self.infer(batch[0])
        loss = self.get_loss(result, None, training=True) / n_parts
        self.accelerator.backward(loss)
        return {"loss": loss, "y_pred": result}

    def on_train_end(self, net: skorch.NeuralNet, **kwargs: Any) -> RunNet:
        # skorch's mixin waits for all processes here. If one process was interrupted, the other
        # processes may never reach this point, so do not wait.
        if self.interrupted_:
            self._unwrap_accelerator()
            return self
        return super().on_train_end(net, **kwargs)


def split_examples(examples: Any, size: int) -> list[Any]:
    """Split a tensor of examples, or a dict of tensors, into batches of ``size`` examples."""
    starts = range(0, find_batch_size(examples), size)
    return [slice_tensors(examples, slice(start, start + size)) for start in starts]


class EpochRecord(skorch.callbacks.Callback):
    """Callback that completes the history after each epoch, and writes metrics and a checkpoint.

    Losses are averaged over all processes. The entries ``step``, ``lr``, ``seconds`` and
    ``windows_per_second`` are added to the row of the epoch in the history of skorch. The results
    of single batches are removed, because they would fill memory and checkpoints in a run of
    millions of steps. The first process writes ``metrics.csv``, with one row per completed epoch,
    and a checkpoint, which also contains the history.

    Parameters
    ----------
    folder : RunFolder | None
        Folder of the run in the first process; None in all other processes.
    """

    def __init__(self, folder: RunFolder | None):
        self.folder = folder

    def on_epoch_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        row = net.history[-1]
        losses = [name for name in row if name.startswith("train_loss")]
        row.update({name: net.agreed(row[name]) for name in losses})
        row.update(
            batches=[],
            step=row["epoch"] * net.steps_per_epoch,
            lr=net.optimizer_.param_groups[0]["lr"],
            seconds=row["dur"],
            windows_per_second=net.batch_size * net.steps_per_epoch / row["dur"],
        )
        if self.folder is not None:
            table = pd.DataFrame([*net.history])
            losses = [name for name in table if name.startswith(("train_loss", "valid_loss"))]
            table = table[["epoch", "step", *losses, "lr", "seconds", "windows_per_second"]]
            text = table.to_csv(index=False, na_rep="nan", lineterminator="\n")
            files.replace_file(self.folder.metrics, text)
            checkpoint = Checkpoint.of(net, row["step"], self.folder.run_id)
            checkpoint.write(self.folder.checkpoints)
