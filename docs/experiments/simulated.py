"""Simulated data: does pretraining help where the order of patches tells the classes apart?

    python docs/experiments/simulated.py sweeps OUT.csv
    python docs/experiments/simulated.py nights OUT.csv

``sweeps`` is a positive control. Each window has one rhythm whose frequency rises or falls, in
noise; the class is the direction. Both classes have the same power spectrum, so band power is at
chance. ``nights`` are simulated nights, filtered to 0.3-35 Hz, with sleep stages as classes.

Each seed simulates other subjects. One encoder for each task is pretrained on subjects without
labels, with the same steps and the same initial weights, and fine-tuned with labels of 2 to 16
other subjects. Twelve further subjects are scored.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars import PARSClassifier, PARSEmbedder, datasets
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import label_efficiency
from braindecode_pars.recordings.cutting import fixed_windows

N_UNLABELLED, N_LABELLED, N_TEST = 16, 16, 12
N_TRAIN = [2, 4, 8, 16]
#: Pretext tasks and their arguments, by method.
TASKS = {
    "PARS": ("pars", None),
    "PARS without overlap": ("pars", dict(overlap=False, min_gap=12)),
    "MAE": ("mae", None),
    "SpectralMAE": ("spectral", None),
}
FINE_TUNING = dict(finetune_warmup=0.1, gradient_clip=1.0, validation=0, verbose=0)


@dataclass
class Question:
    """Windows of subjects without labels and of others with labels, and the budget."""

    name: str
    unlabelled: BaseConcatDataset
    labelled: BaseConcatDataset
    test_subjects: list
    pretrain_epochs: int
    finetune_epochs: int
    metric: str


def nights(seed: int) -> Question:
    """Two hours of sleep of each subject; every fourth window of 30 s has a label."""
    number = N_UNLABELLED + N_LABELLED + N_TEST
    sleep = datasets.simulated.sleep(number, hours=2, n_chans=3, sfreq=100, random_state=seed)
    for night in sleep.datasets:
        night.raw.filter(0.3, 35, verbose="error")
    labelled = [
        EEGWindowsDataset(night.raw, night.metadata.iloc[::4], dict(night.description))
        for night in sleep.datasets[N_UNLABELLED:]
    ]
    return Question(
        "simulated sleep",
        BaseConcatDataset(sleep.datasets[:N_UNLABELLED]),
        BaseConcatDataset(labelled),
        list(sleep.description["subject"])[-N_TEST:],
        pretrain_epochs=16,
        finetune_epochs=15,
        metric="kappa",
    )


def sweeps(seed: int) -> Question:
    """Two channels of 10 s; 60 windows of each subject without labels, 20 of the others."""
    first_test = N_UNLABELLED + N_LABELLED
    return Question(
        "rising or falling rhythm",
        _sweeps(range(N_UNLABELLED), 60, seed),
        _sweeps(range(N_UNLABELLED, first_test + N_TEST), 20, seed),
        list(range(first_test, first_test + N_TEST)),
        pretrain_epochs=40,
        finetune_epochs=30,
        metric="balanced_accuracy",
    )


QUESTIONS: dict[str, Callable[[int], Question]] = dict(sweeps=sweeps, nights=nights)


def _sweeps(subjects: range, n_windows: int, seed: int) -> BaseConcatDataset:
    return BaseConcatDataset(
        [
            windows
            for subject in subjects
            for windows in _sweeps_of(subject, n_windows, np.random.default_rng([seed, subject]))
        ]
    )


def _sweeps_of(subject: int, n_windows: int, rng: np.random.Generator) -> list[EEGWindowsDataset]:
    """Falling (0) and rising (1) windows of one subject, half of each."""
    info = mne.create_info(["EEG 1", "EEG 2"], 128, "eeg")
    middle, strength = rng.uniform(9, 12), rng.uniform(0.5, 1.0)
    parts = []
    for target, sign in enumerate((-1, 1)):
        signals = [_sweep(middle, sign, strength, rng) for _ in range(n_windows // 2)]
        raw = mne.io.RawArray(1e-5 * np.concatenate(signals, axis=1), info, verbose="error")
        windows = fixed_windows(raw, 10.0, target)
        windows.set_description(dict(subject=subject))
        parts.append(windows)
    return parts


def _sweep(
    middle: float, sign: int, strength: float, rng: np.random.Generator, sfreq: int = 128
) -> np.ndarray:
    """One window, (2, 10 * sfreq): a rhythm that moves over 4 Hz, and noise."""
    t = np.arange(10 * sfreq) / sfreq
    frequency = middle + 4 * sign * (t / 10 - 0.5) + rng.normal(0, 0.3)
    rhythm = np.sin(2 * np.pi * np.cumsum(frequency) / sfreq + rng.uniform(0, 2 * np.pi))
    return np.stack([strength * rhythm + _pink_noise(len(t), rng) for _ in range(2)])


def _pink_noise(n_times: int, rng: np.random.Generator) -> np.ndarray:
    spectrum = np.fft.rfft(rng.normal(size=n_times))
    noise = np.fft.irfft(spectrum / np.sqrt(np.arange(len(spectrum)) + 1), n_times)
    return noise / noise.std()


def methods(question: Question, seed: int) -> dict[str, Any]:
    """Pretrain one encoder for each task, and return all classifiers by name."""
    fine_tuning = dict(finetune_epochs=question.finetune_epochs, **FINE_TUNING)
    classifiers = make_methods(["band-power", "tangent-space", "scratch"], **fine_tuning)
    for name, (task, arguments) in TASKS.items():
        embedder = PARSEmbedder(
            task,
            pretext_params=arguments,
            pretrain_epochs=question.pretrain_epochs,
            random_state=seed,
            verbose=0,
        ).fit(question.unlabelled)
        loss = embedder.pretraining_history_[-1]["train_loss_relative"]
        print(f"seed {seed}, {name}: training loss relative to chance {loss:.3f}", flush=True)
        classifiers[name] = PARSClassifier(encoder=embedder, **fine_tuning)
    return classifiers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question", choices=QUESTIONS)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    scores = []
    for seed in arguments.seeds:
        question = QUESTIONS[arguments.question](seed)
        scores.append(
            label_efficiency(
                methods(question, seed),
                question.labelled,
                n_train_subjects=N_TRAIN,
                test_subjects=question.test_subjects,
                seeds=[seed],
                metrics=[question.metric],
                dataset=question.name,
            )
        )
        pd.concat(scores).to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
