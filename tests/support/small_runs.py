"""Very small pretraining runs, in this process or in child processes that will be killed."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mne
import numpy as np
import pytest
import torch
from braindecode.datasets import BaseConcatDataset, RawDataset
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from braindecode_pars.pretext.base import PretextTask, register
from braindecode_pars.runs import RunConfig, pretrain
from braindecode_pars.runs.run import RunNet
from braindecode_pars.signal_store import SignalStore

#: Windows of three seconds; three epochs of three steps with a batch size of eight.
SMALL: dict[str, Any] = dict(
    window_seconds=3.0,
    patch_seconds=0.5,
    embed_dim=16,
    num_layers=1,
    num_heads=2,
    mlp_dim=16,
    epochs=3,
    steps_per_epoch=3,
    batch_size=8,
    lr=1e-3,
    device="cpu",
)


def small_config(**changes: Any) -> RunConfig:
    """Return the configuration of a very small run."""
    return RunConfig(**{**SMALL, **changes})


def run(store: SignalStore | Path, out: Path, *, resume: bool = False, **changes: Any) -> Path:
    """Pretrain in this process, without output, and return the folder of the run."""
    return pretrain(store, out, small_config(**changes), resume=resume, verbose=0)


def interrupt(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Simulate Ctrl-C in the middle of a step; steps are counted from 1 in each session."""
    steps = itertools.count(1)
    get_loss = RunNet.get_loss

    def interrupted(*args: Any, **kwargs: Any) -> Tensor:
        if next(steps) == step:
            raise KeyboardInterrupt
        return get_loss(*args, **kwargs)

    monkeypatch.setattr(RunNet, "get_loss", interrupted)


def run_interrupted(step: int, store: Any, out: Path, **changes: Any) -> Path:
    """Pretrain until Ctrl-C in the middle of a step, and return the folder of the run."""
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, step)
        with pytest.raises(KeyboardInterrupt):
            run(store, out, **changes)
    return out


def same_checkpoint(first: Path, second: Path) -> bool:
    """Check whether the last checkpoints of two runs are bitwise identical."""
    a, b = map(last_checkpoint, (first, second))
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def make_store(
    path: Path, seconds: Sequence[float] = (20, 7, 2, 12), sfreq: float = 100.0, seed: int = 0
) -> SignalStore:
    """Create a store of the recordings of :func:`noise`."""
    return SignalStore.create(path, noise(seconds, sfreq, seed), dtype="float32", verbose=0)


def noise(
    seconds: Sequence[float] = (20, 7, 2, 12), sfreq: float = 100.0, seed: int = 0
) -> BaseConcatDataset:
    """Return recordings of noise. Recording n has n + 1 channels and the subject "subject-n"."""
    rng = np.random.default_rng(seed)
    recordings = []
    for number, length in enumerate(seconds):
        names = [f"EEG{channel}" for channel in range(number + 1)]
        values = rng.normal(scale=1e-5, size=(len(names), round(length * sfreq)))
        raw = mne.io.RawArray(values, mne.create_info(names, sfreq, "eeg"), verbose="error")
        recordings.append(RawDataset(raw, {"subject": f"subject-{number}"}))
    return BaseConcatDataset(recordings)


@register("smallest")
class Reconstruct(PretextTask):
    """Reconstruct the patches of a grid; a task without random draws."""

    criterion = nn.MSELoss

    def __init__(self, n_times: int, patch_size: int = 200, **arguments: Any):
        super().__init__(n_times, patch_size, **arguments)
        self.head = nn.Linear(self.encoder.embed_dim, patch_size)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        patches = self.normalized(x).unflatten(1, (-1, self.patch_size))
        return self.head(self.encoder(self.encoder.tokenize(patches))), patches

    def chance_loss(self) -> float:
        return 1.0


_context = multiprocessing.get_context("forkserver")
# Slow imports are done once for all child processes. The package itself imports its modules on
# first use. torch._dynamo is included, because the first optimizer of a process imports it.
_context.set_forkserver_preload(["braindecode_pars.runs.run", "torch._dynamo", "pytest"])


def start_process(function: Any, *arguments: Any, **keywords: Any) -> multiprocessing.Process:
    """Call a function in a child process, and return the process."""
    process = _context.Process(target=function, args=arguments, kwargs=keywords)
    process.start()
    return process


def run_until_killed(store: Path, out: Path, config: RunConfig, moment: str, nth: int) -> None:
    """Start or resume a run, and kill this process at the nth rename of a file of tensors."""
    torch.set_num_threads(1)
    rename, renames = os.replace, itertools.count(1)

    def watched(temporary: Path, path: Path) -> None:
        is_moment = path.suffix == ".safetensors" and next(renames) == nth
        if is_moment and moment == "half a checkpoint":
            os.truncate(temporary, temporary.stat().st_size // 2)
        if not is_moment or moment == "after the rename":
            rename(temporary, path)
        if is_moment:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = watched
    pretrain(store, out, config, resume=(out / "run.json").exists(), verbose=0)


def start_processes(store: Path, out: Path, config: RunConfig, n_processes: int) -> list:
    """Start a run in several processes, which save their weights and losses next to ``out``."""
    with socket.socket() as free_socket:
        free_socket.bind(("127.0.0.1", 0))
        port = free_socket.getsockname()[1]
    return [
        start_process(_run_one_process, store, out, config, process, n_processes, port)
        for process in range(n_processes)
    ]


def _run_one_process(
    store: Path, out: Path, config: RunConfig, process: int, n_processes: int, port: int
) -> None:
    # Environment variables that torchrun sets
    torch.set_num_threads(1)
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
        "RANK": str(process),
        "LOCAL_RANK": str(process),
        "WORLD_SIZE": str(n_processes),
        "LOCAL_WORLD_SIZE": str(n_processes),
    }

    # Save the weights and losses of every process, not only of the first process.
    fit = RunNet.partial_fit

    def fit_and_save(net: RunNet, *args: Any, **kwargs: Any) -> RunNet:
        fit(net, *args, **kwargs)
        losses = json.dumps(net.history[:, "train_loss"])
        file = out.with_name(f"{out.name}-{process}.safetensors")
        save_file(dict(net.task_.named_parameters()), file, metadata={"losses": losses})
        return net

    RunNet.partial_fit = fit_and_save
    try:
        pretrain(store, out, config, verbose=0)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        out.with_name(f"{out.name}-{process}.txt").write_text(message)
        sys.exit(1)


def last_checkpoint(out: Path) -> dict[str, Tensor]:
    """Return the tensors of the last checkpoint of a run."""
    return load_file(max((out / "checkpoints").glob("step-*")))
