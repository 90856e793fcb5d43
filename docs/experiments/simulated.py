"""Classification tasks with simulated data, as positive control and for sleep staging.

They are run by ``reproduce.py``. ``control`` is a positive control: each window has one rhythm in
noise, whose frequency rises or falls, and the class is the direction. Both classes have the same
power spectrum, so log band power is at the chance level. ``nights`` are simulated nights, filtered
to 0.3-35 Hz, with sleep stages as classes.

Each seed simulates other subjects. One encoder per pretext task is pretrained on subjects without
labels, with the same number of steps and the same initial weights, and fine-tuned with labels of 2
to 16 other subjects. Twelve further subjects are tested.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import mne
import numpy as np
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from question import Question
from real_recordings import AS_FROM_SCRATCH
from sklearn.base import BaseEstimator

from braindecode_pars import PARSClassifier, PARSEmbedder, datasets
from braindecode_pars.baselines import make_methods
from braindecode_pars.recordings.cutting import fixed_windows

N_UNLABELED, N_LABELED, N_TEST = 16, 16, 12
#: Pretext tasks and their arguments, by method.
TASKS = {
    "PARS": ("pars", None),
    "PARS without overlap": ("pars", dict(overlap=False, min_gap=12)),
    "MAE": ("mae", None),
    "SpectralMAE": ("spectral", None),
}
FINE_TUNING = dict(
    **AS_FROM_SCRATCH, finetune_warmup=0.1, gradient_clip=1.0, validation=0, verbose=0
)


#: Epochs of pretraining and of fine-tuning.
EPOCHS = {"nights": (16, 15), "control": (40, 30)}


def nights(seed: int, encoders: Path) -> Question:
    """Two hours of sleep per subject; every fourth window of 30 s has a label."""
    recordings = _nights(seed)
    labeled = [
        EEGWindowsDataset(night.raw, night.metadata.iloc[::4], dict(night.description))
        for night in recordings[N_UNLABELED:]
    ]
    scored = [night.description["subject"] for night in recordings[-N_TEST:]]
    return Question(
        "simulated sleep",
        BaseConcatDataset(labeled),
        "kappa",
        dict(test_subjects=scored),
        partial(_classifier, "nights", seed, encoders),
    )


def control(seed: int, encoders: Path) -> Question:
    """Two channels of 10 s; 60 windows per unlabeled subject, 20 per labeled or test subject."""
    first_test = N_UNLABELED + N_LABELED
    return Question(
        "rising or falling rhythm",
        _sweeps(range(N_UNLABELED, first_test + N_TEST), 20, seed),
        "balanced_accuracy",
        dict(test_subjects=list(range(first_test, first_test + N_TEST))),
        partial(_classifier, "control", seed, encoders),
    )


def unlabeled(result: str, seed: int) -> BaseConcatDataset:
    """Return the windows of the subjects without labels."""
    if result == "nights":
        return BaseConcatDataset(_nights(seed)[:N_UNLABELED])
    return _sweeps(range(N_UNLABELED), 60, seed)


@cache
def _nights(seed: int) -> list[EEGWindowsDataset]:
    number = N_UNLABELED + N_LABELED + N_TEST
    sleep = datasets.simulated.sleep(number, hours=2, n_chans=3, sfreq=100, random_state=seed)
    for night in sleep.datasets:
        night.raw.filter(0.3, 35, verbose="error")
    return sleep.datasets


def _sweeps(subjects: range, n_windows: int, seed: int) -> BaseConcatDataset:
    return BaseConcatDataset(
        [
            windows
            for subject in subjects
            for windows in _sweeps_of(subject, n_windows, np.random.default_rng([seed, subject]))
        ]
    )


def _sweeps_of(subject: int, n_windows: int, rng: np.random.Generator) -> list[EEGWindowsDataset]:
    """Windows of one subject, half falling (0) and half rising (1)."""
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
    """One window, (2, 10 * sfreq): a rhythm that changes by 4 Hz, and noise."""
    t = np.arange(10 * sfreq) / sfreq
    frequency = middle + 4 * sign * (t / 10 - 0.5) + rng.normal(0, 0.3)
    rhythm = np.sin(2 * np.pi * np.cumsum(frequency) / sfreq + rng.uniform(0, 2 * np.pi))
    return np.stack([strength * rhythm + _pink_noise(len(t), rng) for _ in range(2)])


def _pink_noise(n_times: int, rng: np.random.Generator) -> np.ndarray:
    spectrum = np.fft.rfft(rng.normal(size=n_times))
    noise = np.fft.irfft(spectrum / np.sqrt(np.arange(len(spectrum)) + 1), n_times)
    return noise / noise.std()


def pretrained(method: str, result: str, seed: int, encoders: Path) -> Path:
    """Return the folder of an encoder of this seed, pretraining it if necessary."""
    folder = encoders / f"{method}, seed {seed}"
    if not folder.exists():
        task, arguments = TASKS[method]
        embedder = PARSEmbedder(
            task,
            pretext_params=arguments,
            pretrain_epochs=EPOCHS[result][0],
            pretrain_batch_size=64,
            pretrain_lr=4e-3,
            random_state=seed,
            verbose=0,
        ).fit(unlabeled(result, seed))
        loss = embedder.pretraining_history_[-1]["train_loss_relative"]
        print(f"{folder.name}: relative training loss {loss:.3f}", flush=True)
        embedder.save(folder)
    return folder


def _classifier(
    result: str, seed: int, encoders: Path, method: str, n_labeled: int
) -> BaseEstimator:
    settings = dict(finetune_epochs=EPOCHS[result][1], **FINE_TUNING)
    if method == "from scratch":
        return make_methods(["scratch"], **settings)["from scratch"]
    return PARSClassifier(encoder=pretrained(method, result, seed, encoders), **settings)
