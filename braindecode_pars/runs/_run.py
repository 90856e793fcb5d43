"""Pretrain on a SignalStore: on what there is, resumable to the bit."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from braindecode_pars._columns import RELATIVE
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import PretextTask, make_task
from braindecode_pars.pretrained import EncoderCard, save_encoder, unique_subjects
from braindecode_pars.pretraining import pretrain_encoder
from braindecode_pars.runs._checkpoint import Checkpoint
from braindecode_pars.runs._config import RunConfig
from braindecode_pars.runs._folder import RunFolder
from braindecode_pars.runs._net import MeanOverProcesses, RunNet
from braindecode_pars.runs._records import (
    Checkpoints,
    EpochRecord,
    MetricsFile,
    TensorBoardCurves,
)
from braindecode_pars.runs._steps import Steps
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.training._device import find_device
from braindecode_pars.training._seeding import seeded

__all__ = ["pretrain"]

log = logging.getLogger(__name__)

_PACKAGES = ("braindecode_pars", "braindecode", "torch", "skorch", "accelerate", "numpy")


def pretrain(
    store: SignalStore | str | Path,
    out: str | Path,
    config: RunConfig | None = None,
    *,
    resume: bool = False,
    verbose: int = 1,
) -> Path:
    """Pretrain an encoder on a store of recordings.

    Started by ``torchrun``, it shares each step among its processes: gradients are averaged, and
    the first process writes. A run that was killed at any moment goes on from its last
    checkpoint. On a CPU, in one process with as many threads, it ends with the same parameters to
    the bit as one that never was.

    Parameters
    ----------
    store : SignalStore | path
        What is pretrained on.
    out : path
        Folder for the run: ``run.json`` (configuration, store, versions), ``metrics.csv``,
        ``checkpoints/``, ``tensorboard/`` where tensorboard is installed, and at the end
        ``encoder.safetensors`` and ``encoder.json``, so that ``PARSClassifier(encoder=out)``
        goes on from there.
    config : RunConfig | None
        None is the paper's.
    resume : bool
        Go on with the run in ``out``. Its configuration must be the same, and the store.
    verbose : int
        0 is silent, 1 tells what is trained and shows a progress bar.

    Returns
    -------
    Path
        The folder ``out``.

    Raises
    ------
    TypeError
        When ``config`` is not a RunConfig.
    ValueError
        When the configuration does not fit the store, the processes or the device's memory, or
        the folder holds another run.
    ChildProcessError
        When a data worker was killed; nothing up to the last checkpoint is lost.
    ConnectionError
        When another process of the run has ended; nothing up to the last checkpoint is lost.
    KeyboardInterrupt
        Training ends in good order first; the last checkpoint is kept.

    Notes
    -----
    The method is that of section 2.5: in each step a batch of random crops of random channels,
    AdamW, linear warm-up and a cosine to zero. An epoch is a number of steps, by default one pass
    over the data.

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
        raise TypeError(f"config is a {type(config).__name__}; give a RunConfig.")
    accelerator = _accelerator(config.device)
    store = _opened(store, accelerator, verbose).select(exclude=config.exclude_subjects)
    config, steps = _plan(config, store, accelerator)
    task = _build_task(config, store.sfreq)
    folder = RunFolder(Path(out).expanduser())
    described = {
        "configuration": asdict(config),
        "store": {"path": str(store.path), "checksum": store.checksum, "sfreq": store.sfreq},
    }
    folder.check(described, resume=resume)
    if folder.is_finished:
        accelerator.end_training()
        if verbose and accelerator.is_main_process:
            log.info("The run in %s is finished already.", folder.path)
        return folder.path

    accelerator.wait_for_everyone()  # until all have seen the folder as it was
    with folder.held() if accelerator.is_main_process else nullcontext():
        _train(steps, task, config, accelerator, folder, described, resume, verbose)
    return folder.path


def _train(
    steps: Steps,
    task: PretextTask,
    config: RunConfig,
    accelerator: Accelerator,
    folder: RunFolder,
    described: dict[str, Any],
    resume: bool,
    verbose: int,
) -> None:
    """From the last checkpoint, if there is one, to the encoder."""
    checkpoint = folder.newest()
    first_epoch = len(checkpoint.history) if checkpoint else 0
    accelerator.wait_for_everyone()  # until all have read it
    if accelerator.is_main_process:
        folder.begin_session(described, _session(accelerator, checkpoint), resume=resume)
    if verbose and accelerator.is_main_process:
        log.info(_overview(task, steps, config, accelerator, first_epoch))
    make_net = partial(
        RunNet,
        accelerator=accelerator,
        micro_batch_size=config.micro_batch_size,
        steps_per_epoch=config.steps_per_epoch,
        first_epoch=first_epoch,
        num_workers=_num_workers(config, accelerator),
        restore=_restore_once(checkpoint) if checkpoint else None,
    )
    del checkpoint  # it takes as much memory as the training
    with _failures_told(folder.path, config.micro_batch_size):
        net = pretrain_encoder(
            task.encoder,
            steps,
            task,
            epochs=config.epochs,
            lr=config.lr,
            batch_size=config.batch_size,
            weight_decay=config.weight_decay,
            warmup=config.warmup,
            callbacks=_records(config, folder, first_epoch, accelerator.is_main_process),
            device=None,  # accelerate's
            precision=config.precision,
            compile=config.compile,
            first_epoch=first_epoch,
            verbose=verbose if accelerator.is_main_process else 0,
            net=make_net,
        )
        accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        save_encoder(task.encoder, _card(config, steps, net), folder.path)
    accelerator.end_training()
    if verbose and accelerator.is_main_process:
        log.info(_outcome(net, folder))


def _accelerator(device: str) -> Accelerator:
    """Join the other processes of the run, if there are any."""
    wanted = find_device(device).type
    accelerator = Accelerator(
        cpu=wanted == "cpu",
        mixed_precision="no",  # precision is the net's
    )
    if accelerator.device.type != wanted:
        raise ValueError(
            f"device={device!r} cannot be used, since a run in this Python process was on "
            f"{accelerator.device.type} before; start another process."
        )
    return accelerator


def _opened(store: SignalStore | str | Path, accelerator: Accelerator, verbose: int) -> SignalStore:
    """The store; where it is to be compared with its checksums, one process does that for all."""
    if isinstance(store, SignalStore):
        return store
    with accelerator.main_process_first():
        return SignalStore.open(store, verbose=verbose if accelerator.is_main_process else 0)


def _plan(
    config: RunConfig, store: SignalStore, accelerator: Accelerator
) -> tuple[RunConfig, Steps]:
    """What each process does in each step, and the configuration with all sizes in it."""
    n_processes = accelerator.num_processes
    share, rest = divmod(config.batch_size, n_processes)
    if rest:
        raise ValueError(
            f"A batch of {config.batch_size} cannot be shared equally by {n_processes} processes; "
            "choose another batch_size."
        )
    micro_batch_size = config.micro_batch_size or share
    if share % micro_batch_size:
        raise ValueError(
            f"A process has {share} examples of each batch of {config.batch_size}, no whole number "
            f"of micro-batches of {micro_batch_size}; choose a micro_batch_size that divides "
            f"{share}."
        )
    steps = Steps(
        store,
        round(config.window_seconds * store.sfreq),
        config.batch_size,
        seed=config.seed,
        process=accelerator.process_index,
        n_processes=n_processes,
    )
    steps_per_epoch = config.steps_per_epoch or steps.steps_per_pass
    sizes = dict(micro_batch_size=micro_batch_size, steps_per_epoch=steps_per_epoch)
    return replace(config, **sizes), steps


def _build_task(config: RunConfig, sfreq: float) -> PretextTask:
    with seeded(config.seed):
        encoder = PatchEncoder(
            round(config.patch_seconds * sfreq),
            embed_dim=config.embed_dim,
            num_layers=config.num_layers,
            num_heads=config.num_heads,
            mlp_dim=config.mlp_dim,
            drop_prob=config.drop_prob,
        )
        return make_task(
            config.task,
            n_times=round(config.window_seconds * sfreq),
            encoder=encoder,
            task_params=dict(config.task_params),
        )


def _restore_once(checkpoint: Checkpoint) -> Callable[[RunNet], None]:
    """A function that restores a net, and then no longer holds the checkpoint."""
    waiting = [checkpoint]
    return lambda net: waiting.pop().restore(net)


def _records(config: RunConfig, folder: RunFolder, first_epoch: int, is_main: bool) -> list:
    """Callbacks in the order in which one needs what another has written into the history."""
    records: list = [MeanOverProcesses(), EpochRecord(config.batch_size)]
    if is_main:
        records.append(MetricsFile(folder.metrics))
        if TensorBoardCurves.is_available():
            first_step = first_epoch * config.steps_per_epoch
            records.append(TensorBoardCurves(folder.tensorboard, first_step))
        records.append(Checkpoints(folder.checkpoints))
    return records


def _num_workers(config: RunConfig, accelerator: Accelerator) -> int:
    if config.num_workers is not None:
        return config.num_workers
    return 0 if accelerator.device.type == "cpu" else min(4, (os.cpu_count() or 1))


@contextmanager
def _failures_told(out: Path, micro_batch_size: int) -> Iterator[None]:
    """What may happen to the best of runs, with a sentence that says how to go on."""
    advice = f"{out} keeps what was learned up to the last checkpoint; resume the run from there."
    little_memory = (
        f"The device has too little memory for micro-batches of {micro_batch_size} windows; choose "
        "a smaller micro_batch_size."
    )
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise ValueError(little_memory) from error
    except (RuntimeError, ChildProcessError) as error:
        if "can't allocate memory" in str(error):  # torch has no name for it on the CPU
            raise ValueError(little_memory) from error
        of_worker = str(error).startswith("DataLoader worker (pid")
        if isinstance(error, ChildProcessError) or of_worker:
            raise ChildProcessError(f"A data worker was killed ({error}). {advice}") from error
        if torch.distributed.is_initialized() and _is_of_peers(error):
            raise ConnectionError(f"Another process of this run has ended. {advice}") from error
        raise


def _is_of_peers(error: RuntimeError) -> bool:
    is_named = isinstance(error, torch.distributed.DistError)
    return is_named or any(word in str(error) for word in ("gloo", "Connection closed", "NCCL"))


def _session(accelerator: Accelerator, checkpoint: Checkpoint | None) -> dict[str, Any]:
    device = accelerator.device.type
    if device == "cuda":
        device = torch.cuda.get_device_name(accelerator.device)
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "first_step": checkpoint.step if checkpoint else 0,
        "processes": accelerator.num_processes,
        "device": device,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _PACKAGES},
    }


def _overview(
    task: PretextTask, steps: Steps, config: RunConfig, accelerator: Accelerator, first_epoch: int
) -> str:
    store = steps.store
    hours = steps.lengths.sum() / store.sfreq / 3600
    short = int((steps.lengths < steps.n_times).sum())
    left_out = f"; {short} too short for a window take no part" if short else ""
    parameters = sum(parameter.numel() for parameter in task.parameters())
    micro = config.micro_batch_size * accelerator.num_processes
    parts = f" in micro-batches of {config.micro_batch_size}" if micro < config.batch_size else ""
    done = f", {first_epoch} of them done" if first_epoch else ""
    processes = accelerator.num_processes
    return (
        f"{len(steps.lengths)} recordings of {len(store.subjects)} people, {hours:.1f} hours, "
        f"{len(store)} signals at {store.sfreq:g} Hz{left_out}\n"
        f"{type(task).__name__} with {parameters:,} parameters in {config.precision} on "
        f"{processes} {accelerator.device.type} process{'es' if processes > 1 else ''}\n"
        f"{config.epochs} epochs{done}, of {config.steps_per_epoch} steps of {config.batch_size} "
        f"windows{parts}; a pass over the data is {steps.n_windows} windows"
    )


def _outcome(net: RunNet, folder: RunFolder) -> str:
    last = net.history[-1]
    return (
        f"Training loss relative to chance: {last[RELATIVE]:.3f}; "
        f"{last['windows_per_second']:.4g} windows/s\n"
        f'The encoder lies in {folder.path}; PARSClassifier(encoder="{folder.path}") goes on from '
        "there."
    )


def _card(config: RunConfig, steps: Steps, net: RunNet) -> EncoderCard:
    seen = steps.store.recordings["subject"][steps.lengths >= steps.n_times]
    return EncoderCard(
        sfreq=steps.store.sfreq,
        task=config.task,
        task_params=dict(config.task_params),
        subjects=unique_subjects(seen) if seen.notna().all() else None,
        n_windows=steps.n_windows,
        epochs=config.epochs,
        loss_relative=net.history[-1, RELATIVE],
    )
