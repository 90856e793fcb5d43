"""Pretrain on a SignalStore with the available devices; a resumed run is bit-identical."""

from __future__ import annotations

import logging
import os
import platform
import warnings
from contextlib import nullcontext
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from accelerate import Accelerator, DistributedDataParallelKwargs
from sklearn.exceptions import ConvergenceWarning

from braindecode_pars._common.checks import check_same_rate, warn_user
from braindecode_pars._common.computing import device_name, find_device, n_parameters, seeded
from braindecode_pars._common.tables import RELATIVE
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import PretextTask, make_task
from braindecode_pars.pretext.joint import SeveralLengths
from braindecode_pars.pretrained.cards import EncoderCard
from braindecode_pars.pretrained.saved import load_encoder, write_encoder
from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder
from braindecode_pars.runs.config import RunConfig, SizedRunConfig
from braindecode_pars.runs.net import EpochFiles, EpochRecord, RunNet
from braindecode_pars.runs.run_folder import Checkpoint, RunFolder
from braindecode_pars.runs.steps import SignalSource, Steps, SyntheticSteps
from braindecode_pars.signal_store import SignalStore

log = logging.getLogger(__name__)

#: Settings that are arguments of the encoder.
_ENCODER_ARGUMENTS = ("embed_dim", "num_layers", "num_heads", "mlp_dim", "drop_prob", "tokenizer")

_PACKAGES = ("braindecode_pars", "braindecode", "torch", "skorch", "accelerate", "numpy")


def pretrain(
    store: SignalStore | SignalSource | str | Path,
    out: str | Path,
    config: RunConfig | None = None,
    *,
    resume: bool = False,
    verbose: int = 1,
) -> Path:
    """Pretrain an encoder on a store of recordings, or on synthetic signals.

    Under ``torchrun``, the processes share each step: their gradients are averaged, and the first
    process writes all files. A run that was killed at any time can resume from its last
    checkpoint. On a CPU, in one process with the same number of threads, a resumed run ends with
    exactly the same parameters as an uninterrupted run.

    Parameters
    ----------
    store : SignalStore | path | SyntheticSignals
        Store to pretrain on. Of a store with labels, the validation and test subjects are left out.
        With :class:`~braindecode_pars.datasets.SyntheticSignals` there are no recordings, and the
        encoder's card has no subjects.
    out : path
        Folder for the run. It gets ``run.json`` (configuration, store, versions),
        ``metrics.csv`` and ``checkpoints/``. At the end it gets ``encoder.safetensors`` and
        ``encoder.json``, which ``PARSClassifier(encoder=out)`` loads.
    config : RunConfig | None
        Settings of the run. None means the paper's settings.
    resume : bool
        Whether to resume the run in ``out``. Configuration and store must be the same.
    verbose : int
        Level of output: 0 prints nothing, 1 prints an overview and a progress bar.

    Returns
    -------
    Path
        The folder ``out``.

    Raises
    ------
    TypeError
        When ``config`` is not a RunConfig.
    ValueError
        When the configuration does not fit the store or the processes, or the folder has another
        run.
    KeyboardInterrupt
        When the user interrupts training. The last checkpoint is kept.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        As :func:`~braindecode_pars.pretraining.pretrain_encoder`.
    UserWarning
        When an encoder continues on recordings with another band or reference.

    Notes
    -----
    Section 2.5 of the paper describes the method. Each step trains on a batch of random crops of
    random channels, with AdamW, a linear warm-up and a cosine decay to zero. An epoch is a fixed
    number of steps, by default one pass over the data.

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

    # Build everything that can raise an error before anything is written.
    accelerator = _accelerator(config)
    is_main = accelerator.is_main_process
    store = _opened(store, config, accelerator, verbose)
    config, task, before = begun_task(config, store.sfreq)
    sized, steps = _sized(config, store, accelerator)

    # Check the folder.
    folder = RunFolder(Path(out).expanduser())
    described = {"configuration": asdict(sized), "store": steps.described}
    folder.check(described, resume=resume)
    if folder.is_finished:
        accelerator.end_training()
        if verbose and is_main:
            log.info("The run in %s is already finished.", folder.path)
        return folder.path

    if before is not None and is_main and (differing := before.differences(store.preprocessing)):
        warn_user(
            f"The signals were prepared otherwise than those of {config.encoder}, with which the "
            f"run continues: {'; '.join(map(str, differing))}."
        )

    # Train. All processes must have checked the folder before the first one writes to it.
    accelerator.wait_for_everyone()
    with folder.exclusive() if is_main else nullcontext():
        if is_main:
            folder.check(described, resume=resume)  # another run may have used it until now
        net = _train(steps, task, sized, accelerator, folder, described, resume, verbose)
        if is_main:
            card = _card(sized, steps, net)
            card = card if before is None else card.continues(before)
            write_encoder(task.encoder, card, folder.path)
        accelerator.end_training()
    if verbose and is_main:
        last = net.history[-1]
        log.info(
            f"Training loss relative to chance: {last[RELATIVE]:.3f}; "
            f"{last['windows_per_second']:.4g} windows/s\n"
            f"The encoder is in {folder.path}. Fine-tune it with "
            f'PARSClassifier(encoder="{folder.path}").'
        )
    return folder.path


def _opened(
    store: SignalStore | SignalSource | str | Path,
    config: RunConfig,
    accelerator: Accelerator,
    verbose: int,
) -> SignalStore | SignalSource:
    """Return the recordings that the run may use; synthetic signals are returned as they are."""
    if isinstance(store, SignalSource):
        return store
    if not isinstance(store, SignalStore):
        # Opening may compare the samples with their checksums. The first process does so for all.
        with accelerator.main_process_first():
            store = SignalStore.open(store, verbose=verbose if accelerator.is_main_process else 0)
    return store.select(exclude=config.exclude_subjects).without_held_out()


def _train(
    steps: Steps | SyntheticSteps,
    task: PretextTask,
    config: SizedRunConfig,
    accelerator: Accelerator,
    folder: RunFolder,
    described: dict[str, Any],
    resume: bool,
    verbose: int,
) -> RunNet:
    """Train from the last checkpoint, if there is one."""
    is_main = accelerator.is_main_process
    # All processes must have read the checkpoint before the first one can remove it.
    checkpoint = folder.newest() if resume else None
    first_epoch = len(checkpoint.history) if checkpoint else 0
    accelerator.wait_for_everyone()

    # Record the session.
    if is_main:
        folder.begin_session(described, _session(accelerator, checkpoint), resume=resume)
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
        # Weights that were pretrained before need not move by their size.
        **({} if config.encoder is None else {"callbacks__enough_steps": None}),
    )
    names = {entry.name for entry in fields(PretrainingSettings)} - {"task_params"}
    settings = {name: value for name, value in vars(config).items() if name in names}
    settings |= dict(task=task, device=None)  # accelerate chooses the device
    with warnings.catch_warnings():
        if not is_main:  # only the first process warns of a training that may have learned nothing
            warnings.simplefilter("ignore", ConvergenceWarning)
        net = pretrain_encoder(
            task.encoder,
            steps,
            PretrainingSettings(**settings),
            # The second one writes what the first one adds to the history.
            callbacks=[EpochRecord(), *([EpochFiles(folder)] if is_main else [])],
            seed=config.seed,
            first_epoch=first_epoch,
            verbose=verbose if is_main else 0,
            net=make_net,
        )
        accelerator.wait_for_everyone()
    return net


def _accelerator(config: RunConfig) -> Accelerator:
    """Return the accelerate object, which connects the processes of the run."""
    wanted = find_device(config.device).type
    # A step of one length does not use the heads of the others. The net handles precision.
    unused = DistributedDataParallelKwargs(find_unused_parameters=len(config.lengths) > 1)
    accelerator = Accelerator(cpu=wanted == "cpu", mixed_precision="no", kwargs_handlers=[unused])
    # accelerate keeps one device for the lifetime of a Python process.
    if accelerator.device.type != wanted:
        raise ValueError(
            f"device={config.device!r} cannot be used after a run on {accelerator.device.type} in "
            "one process; start another."
        )
    return accelerator


def _sized(
    config: RunConfig, store: SignalStore | SignalSource, accelerator: Accelerator
) -> tuple[SizedRunConfig, Steps | SyntheticSteps]:
    """Return the configuration without open sizes, and the data of this process."""
    # Sizes of a batch.
    n_processes = accelerator.num_processes
    share, rest = divmod(config.batch_size, n_processes)
    if rest:
        raise ValueError(f"{n_processes} processes cannot share a batch of {config.batch_size}.")
    micro_batch_size = config.micro_batch_size or share
    if share % micro_batch_size:
        raise ValueError(f"micro_batch_size={micro_batch_size} does not divide {share}.")

    # Data, and the length of an epoch.
    make_steps: Any = SyntheticSteps if isinstance(store, SignalSource) else Steps
    own = dict(seed=config.seed, process=accelerator.process_index, n_processes=n_processes)
    steps = make_steps(store, _in_samples(config, store.sfreq), config.batch_size, **own)
    steps_per_epoch = config.steps_per_epoch or steps.steps_per_pass
    sizes = dict(micro_batch_size=micro_batch_size, steps_per_epoch=steps_per_epoch)
    return SizedRunConfig(**{**vars(config), **sizes}), steps


def begun_task(
    config: RunConfig, sfreq: float
) -> tuple[RunConfig, PretextTask, EncoderCard | None]:
    """Return the task of a new run, and the card of the encoder that it continues with, if any.

    The configuration gets the sizes of that encoder.
    """
    if config.encoder is None:
        return config, build_task(config, sfreq), None
    encoder, card = load_encoder(config.encoder)[:2]
    trained = f"the encoder {config.encoder} was pretrained"
    remedy = "make the store with sfreq={expected:g}"
    check_same_rate(sfreq, card.sfreq, "The store is", trained, remedy)
    taken: dict[str, Any] = {name: encoder.config[name] for name in _ENCODER_ARGUMENTS}
    config = replace(config, patch_seconds=encoder.patch_size / sfreq, **taken)
    task = build_task(config, sfreq)
    task.encoder.load_state_dict(encoder.state_dict())
    return config, task, card


def build_task(config: RunConfig, sfreq: float) -> PretextTask:
    """Return the untrained task of a run."""
    with seeded(config.seed):
        sizes = {name: getattr(config, name) for name in _ENCODER_ARGUMENTS}
        encoder = PatchEncoder(round(config.patch_seconds * sfreq), **sizes)
        given: Any = dict(encoder=encoder, task_params=dict(config.task_params), sfreq=sfreq)
        lengths = _in_samples(config, sfreq)
        tasks = [make_task(config.task, n_times=n_times, **given) for n_times in lengths]
        return tasks[0] if len(tasks) == 1 else SeveralLengths(tasks)


def _in_samples(config: RunConfig, sfreq: float) -> list[int]:
    """Return the lengths of the crops in samples, in the order of the steps."""
    return [round(seconds * sfreq) for seconds in config.lengths]


def _session(accelerator: Accelerator, checkpoint: Checkpoint | None) -> dict[str, Any]:
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "first_step": checkpoint.step if checkpoint else 0,
        "processes": accelerator.num_processes,
        "device": device_name(accelerator.device),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _PACKAGES},
    }


def _overview(
    task: PretextTask,
    steps: Steps | SyntheticSteps,
    config: SizedRunConfig,
    accelerator: Accelerator,
    first_epoch: int,
) -> str:
    """Describe the data, the network and the schedule, one line each."""
    mixture = ", ".join(f"{name} {n:,}" for name, n in steps.in_pass.items())
    mixture = f" ({mixture})" if mixture else ""
    done = f", {first_epoch} of them done" if first_epoch else ""
    processes = accelerator.num_processes
    return (
        f"{steps}\n"
        f"{task.shown_name} with {n_parameters(task):,} parameters in {config.precision} on "
        f"{processes} {accelerator.device.type} process{'es' if processes > 1 else ''}\n"
        f"{config.epochs} epochs{done}, of {config.steps_per_epoch} steps of {config.batch_size} "
        f"windows; a pass over the data is {steps.n_windows} windows{mixture}"
    )


def _card(config: SizedRunConfig, steps: Steps | SyntheticSteps, net: RunNet) -> EncoderCard:
    return EncoderCard(
        sfreq=steps.store.sfreq,
        task=config.task,
        task_params=dict(config.task_params),
        subjects=steps.subjects,
        n_windows=steps.n_windows,
        epochs=config.epochs,
        n_times=steps.n_times,
        n_steps=config.epochs * config.steps_per_epoch,
        n_examples=config.epochs * config.steps_per_epoch * config.batch_size,
        loss_relative=net.history[-1, RELATIVE],
        preprocessing=replace(steps.store.preprocessing, window_seconds=max(config.lengths)),
        about=steps.about if config.encoder is None else {},
    )
