"""Measure the run time of typical settings on a CPU.

    OMP_NUM_THREADS=2 python docs/experiments/settings.py docs/measured/settings.csv

``runs.plan`` measures a step of each pretraining. Some epochs of each fine-tuning are measured on
windows of noise, because the time depends only on shapes. The lowest of three measurements is
multiplied by the number of steps. Run it on an otherwise idle machine. The time for reading files
is not included.
"""

from __future__ import annotations

import math
import platform
import sys
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd
import torch
from real_recordings import AS_FROM_SCRATCH
from stored_table import store_table

from braindecode_pars import PARSClassifier
from braindecode_pars.datasets.physionet_mi import MONTAGES
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.runs import CorpusSize, RunConfig, plan

ROUNDS = 3

#: Maximum number of windows to measure fine-tuning.
MOST = 96


@dataclass
class Case:
    """Unlabeled dataset, and labeled windows."""

    data: str
    sfreq: float
    window_seconds: float  # of pretraining
    n_unlabeled: int = 0  # number of windows per pretraining epoch; 0 means a bundled encoder
    run: RunConfig = field(default_factory=RunConfig.for_laptop)
    n_labeled: int = 0
    labeled_seconds: float = 0
    channels: tuple[str, ...] = ()
    fit: dict[str, Any] = field(default_factory=dict)


CPU = dict(device="cpu")
SAMPLE = ("F3", "Fz", "F4", "T7", "P3", "Pz", "P4", "T8")
TRIALS = dict(
    n_labeled=720,
    labeled_seconds=3,
    channels=MONTAGES["motor and 10-20"],
    fit=dict(encoder="small", head="spatial_filter", finetune_epochs=15),
)
CASES = [
    Case(
        "The sample in the package: 4 labeled subjects, the encoder ``small``",
        **dict(sfreq=128, window_seconds=10, n_labeled=48, labeled_seconds=10, channels=SAMPLE),
        fit=dict(encoder="small"),
    ),
    Case(
        "The same, pretrained on the 288 windows of all 24 subjects",
        **dict(sfreq=128, window_seconds=10, n_labeled=48, labeled_seconds=10, channels=SAMPLE),
        n_unlabeled=288,
        run=RunConfig.for_laptop(window_seconds=10, epochs=120, batch_size=64, **CPU),
    ),
    Case(
        "10 nights of 8 h, 2 channels",
        **dict(sfreq=100, window_seconds=30, n_labeled=9600, labeled_seconds=30),
        channels=("C3", "C4"),
        n_unlabeled=9600,
        run=RunConfig.for_laptop(epochs=50, batch_size=64, **CPU),
    ),
    Case(
        "Motor imagery of 50 subjects, as for the encoders in the package; 16 labeled subjects",
        **dict(sfreq=128, window_seconds=10),
        **TRIALS,
        n_unlabeled=1800,
        run=RunConfig(
            window_seconds=10,
            embed_dim=128,
            num_layers=4,
            num_heads=8,
            mlp_dim=256,
            tokenizer="spectral",
            task_params=dict(overlap=False, min_gap=16),
            epochs=24,
            steps_per_epoch=250,
            batch_size=128,
            **CPU,
        ),
    ),
    Case(
        "1.5 million windows, the paper's size",
        **dict(sfreq=200, window_seconds=30),
        n_unlabeled=1_525_258,
        run=RunConfig(**CPU),
    ),
]


def main(out: Path) -> None:
    rows = [{"data": case.data, **_settings(case), **_measured(case)} for case in CASES]
    command = "OMP_NUM_THREADS=2 python docs/experiments/settings.py docs/measured/settings.csv"
    versions = (
        f"Python {platform.python_version()}",
        f"torch {torch.__version__.partition('+')[0]}",
    )
    threads = f"{torch.get_num_threads()} threads"
    options = dict(index=False, float_format="%.4g")
    store_table(pd.DataFrame(rows), out, command, threads, *versions, **options)


def _settings(case: Case) -> dict[str, Any]:
    encoder = case.fit.get("encoder")
    config = load_encoder(encoder).encoder.config if encoder else vars(case.run)
    return dict(
        sfreq=case.sfreq,
        window_seconds=case.window_seconds,
        patch_seconds=case.run.patch_seconds,
        embed_dim=config["embed_dim"],
        num_layers=config["num_layers"],
    )


def _measured(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if case.n_unlabeled:
        corpus = CorpusSize.of_numbers(
            case.n_unlabeled, sfreq=case.sfreq, window_seconds=case.window_seconds
        )
        planned = [plan(corpus, case.run) for _ in range(ROUNDS)]
        found["pretraining_steps"] = planned[0].n_steps
        found["pretraining_minutes"] = 60 * min(one.hours for one in planned)
    if case.n_labeled:
        n_steps = math.ceil(case.n_labeled / 32)
        epochs = case.fit.get("finetune_epochs", max(30, math.ceil(60 / n_steps)))
        found["finetuning_steps"] = epochs * n_steps
        found["finetuning_minutes"] = epochs * case.n_labeled * _seconds(case) / 60
    print(case.data, found, flush=True)
    return found


def _seconds(case: Case) -> float:
    """Return the seconds of fine-tuning per window and epoch."""
    n_windows = min(case.n_labeled, MOST)
    X, y = _noise(case, n_windows), np.arange(n_windows) % 2

    def seconds(epochs: int) -> float:
        training = (
            dict(pretext=None, **AS_FROM_SCRATCH)
            | case.fit
            | dict(finetune_epochs=epochs, verbose=0)
        )
        start = time.perf_counter()
        PARSClassifier(**training).fit(X, y)
        return time.perf_counter() - start

    # Both measurements include time outside of epochs, such as loading the encoder.
    more = math.ceil(480 / n_windows)
    short, long = (min(seconds(epochs) for _ in range(ROUNDS)) for epochs in (1, 1 + more))
    return (long - short) / more / n_windows


def _noise(case: Case, n_windows: int) -> mne.EpochsArray:
    info = mne.create_info(list(case.channels), case.sfreq, "eeg")
    shape = n_windows, len(case.channels), round(case.labeled_seconds * case.sfreq)
    signals = 1e-5 * np.random.default_rng(0).standard_normal(shape)
    return mne.EpochsArray(signals, info, verbose="error")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
