"""Compare pretrainings of one encoder: pretext tasks, and EEG or synthetic signals.

    python docs/experiments/pretraining_factor.py pretrain OUT --eeg FOLDER
    python docs/experiments/pretraining_factor.py score TASK OUT --eeg FOLDER
    python docs/experiments/pretraining_factor.py fine-tune TASK OUT --eeg FOLDER

The first command pretrains every variant with three seeds into OUT/encoders, with the same number
of steps and the same initial weights per seed. An interrupted command resumes when it is run again.
The second command scores linear probes on all encoders, for TASK arithmetic, imagery or hands, and
writes ``docs/measured/pretraining/TASK.csv``. The third command fine-tunes all weights of some
encoders with four labeled subjects, in the same way as the network from scratch. FOLDER contains
PhysioNet's motor imagery recordings.

Every encoder has the default size of the estimators. PARS has seven patches of 1 s per crop of 10
s, with and without overlap. PARS without overlap is also pretrained on the same crops without the
linear trend of each patch, on phase-randomized crops, on synthetic 1/f noise, and on white noise.
"slope" is trained to predict only slope and curvature of a crop.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from few_labels import C, by_subject
from pyriemann.tangentspace import TangentSpace
from question import Question
from real_recordings import (
    FINE_TUNING,
    PRETRAINING,
    TASKS,
    _store,
    arithmetic,
    hands,
    imagery,
)
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from stored_table import store_table
from synthetic_signals import SyntheticSignals, pretrain_on

from braindecode_pars import PARSClassifier, PARSEmbedder, SubjectCentering, runs
from braindecode_pars.baselines import CENTERED
from braindecode_pars.estimators import LinearProbe
from braindecode_pars.evaluation import (
    ChannelFeatures,
    LogBandPower,
    SpatialCovariance,
    features_computed_once,
    label_efficiency,
)
from braindecode_pars.runs import RunConfig
from braindecode_pars.signal_store import SignalStore

N_SEEDS = 3
#: Default size of the estimators.
SIZES = dict(embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128)
#: Steps of 128 crops of 10 s, in epochs of 250 steps; the loss of PARS decreases late.
LONG, SHORT = 24, 6
ALONE = dict(overlap=False, min_gap=16, n_patches=7)


class RandomPhases:
    """Phase-randomized crops of a store, which keep only the power spectrum."""

    def __init__(self, store: SignalStore):
        self.sfreq = store.sfreq
        self.n_windows = 6400
        self._store = store

    def __repr__(self) -> str:
        return f"RandomPhases of {self._store!r}"

    @property
    def preprocessing(self) -> Any:
        return SyntheticSignals(self.sfreq).preprocessing

    def draw(self, n: int, n_times: int, rng: np.random.Generator) -> np.ndarray:
        crops = self._store.batch(rng.integers(len(self._store), size=n), n_times, rng)
        spectrum = np.abs(np.fft.rfft(crops))
        phases = np.exp(2j * np.pi * rng.random(spectrum.shape))
        phases[:, 0] = phases[:, -1] = (
            1  # the coefficients of the mean and of the highest frequency are real
        )
        return np.fft.irfft(spectrum * phases, n_times).astype(np.float32)


#: Source of signals (None: the recordings), epochs, and settings of the run, by variant.
Variant = tuple[Callable[[SignalStore], Any] | None, int, dict[str, Any]]
VARIANTS: dict[str, Variant] = {
    "PARS": (None, LONG, dict(task="pars", task_params=dict(n_patches=7))),
    "PARS without overlap": (None, LONG, dict(task="pars", task_params=ALONE)),
    "SpectralMAE": (None, LONG, TASKS["SpectralMAE"]),
    "features and spectra": (
        None,
        SHORT,
        dict(task="joint", task_params=dict(tasks={"features": 1.0, "spectral": 1.0})),
    ),
    "features, spectra and PARS": (
        None,
        SHORT,
        dict(
            task="joint",
            task_params=dict(
                tasks={"features": 1.0, "spectral": 1.0, "pars": 1.0}, task_params=dict(pars=ALONE)
            ),
        ),
    ),
    "slope": (None, SHORT, dict(task="features", task_params=dict(features=["trend"]))),
    "PARS without overlap, detrended": (
        None,
        LONG,
        dict(task="pars", task_params=dict(**ALONE, detrend=True)),
    ),
    "PARS without overlap, random phases": (
        RandomPhases,
        LONG,
        dict(task="pars", task_params=ALONE),
    ),
    "PARS without overlap, synthetic noise": (
        lambda store: SyntheticSignals(store.sfreq),
        LONG,
        dict(task="pars", task_params=ALONE),
    ),
    "PARS without overlap, white noise": (
        lambda store: SyntheticSignals(store.sfreq, exponent=(0, 0), knee=(0, 0)),
        LONG,
        dict(task="pars", task_params=ALONE),
    ),
}
SCORED = dict(arithmetic=arithmetic, imagery=imagery, hands=hands)
N_LABELED, N_DRAWS = (4, 16), 20
#: Variants that are fine-tuned.
FINE_TUNED = ("PARS without overlap", "slope", "features and spectra")
TUNING: dict[str, dict[str, Any]] = dict(
    arithmetic={},
    imagery=dict(finetune_epochs=15),
    hands=dict(finetune_epochs=15, head="spatial_filter"),
)
#: Name of the encoders with random initial weights.
RANDOM = "random encoder"
MEASURED = Path(__file__).parents[1] / "measured" / "pretraining"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("pretrain", "score", "fine-tune"))
    parser.add_argument("task", nargs="?", choices=SCORED)
    parser.add_argument("out", type=Path, help="folder of the encoders and the scores")
    parser.add_argument("--eeg", type=Path, required=True, help="folder of the recordings")
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=VARIANTS)
    options = parser.parse_args()
    if options.step == "pretrain":
        for seed in range(N_SEEDS):
            for name in options.variants:
                pretrain(name, seed, options.out / "encoders", options.eeg)
    elif options.step == "score":
        score(options.task, options.out, options.eeg)
    else:
        fine_tune(options.task, options.out, options.eeg)


def pretrain(name: str, seed: int, encoders: Path, eeg: Path) -> Path:
    """Return the folder of an encoder, pretraining or resuming it if necessary."""
    run = encoders / f"{name}, seed {seed}"
    if not (run / "encoder.json").exists():
        store = _store(encoders / "store", eeg)
        source, epochs, settings = VARIANTS[name]
        config = RunConfig(**{**PRETRAINING, **SIZES, "epochs": epochs}, **settings, seed=seed)
        resume = (run / "run.json").exists()
        if source is None:
            runs.pretrain(store, run, config, resume=resume)
        else:
            pretrain_on(source(store), run, config, resume=resume)
    return run


def score(task: str, out: Path, eeg: Path) -> None:
    """Score linear probes on every encoder, and store one row per method, number and draw."""
    question = SCORED[task](out / "encoders", eeg)
    tables = []
    for name, methods in _probes(out / "encoders", eeg, question):
        with features_computed_once():
            scores = label_efficiency(
                methods,
                question.windows,
                n_train_subjects=N_LABELED,
                seeds=range(N_DRAWS),
                metrics=[question.metric],
                dataset=question.name,
                out=out / task / name,
                equal_sizes=False,
                **question.split,
            )
        tables.append(scores)
    command = f"python docs/experiments/pretraining_factor.py score {task} OUT --eeg FOLDER"
    table = by_subject(pd.concat(tables))
    store_table(table, MEASURED / f"{task}.csv", command, index=False, float_format="%.4g")


def fine_tune(task: str, out: Path, eeg: Path) -> None:
    """Fine-tune encoders with four labeled subjects, and store one row per method and draw."""
    question = SCORED[task](out / "encoders", eeg)
    settings = {**FINE_TUNING, **TUNING[task]}
    methods = {"from scratch": PARSClassifier(None, patch_seconds=1.0, **SIZES, **settings)}
    for name in FINE_TUNED:
        for seed in range(N_SEEDS):
            encoder = pretrain(name, seed, out / "encoders", eeg)
            methods[f"{name}, seed {seed}"] = PARSClassifier(encoder=encoder, **settings)
    scores = label_efficiency(
        methods,
        question.windows,
        n_train_subjects=N_LABELED[:1],
        seeds=range(N_DRAWS),
        metrics=[question.metric],
        dataset=question.name,
        out=out / f"{task}, fine-tuned",
        **question.split,
    )
    command = f"python docs/experiments/pretraining_factor.py fine-tune {task} OUT --eeg FOLDER"
    file = MEASURED / f"{task}_fine_tuned.csv"
    store_table(by_subject(scores), file, command, index=False, float_format="%.4g")


def _probes(
    encoders: Path, eeg: Path, question: Question
) -> Iterator[tuple[str, dict[str, BaseEstimator]]]:
    """Yield the linear probes of each variant, for all seeds, without and with centering."""
    for name in VARIANTS:
        folders = [pretrain(name, seed, encoders, eeg) for seed in range(N_SEEDS)]
        embedders = [
            PARSEmbedder(encoder=folder_of_seed, pooling="channels", verbose=0)
            for folder_of_seed in folders
        ]
        yield name, dict(_plain_and_centered(name, embedders))
    random = [_random(seed, encoders, question) for seed in range(N_SEEDS)]
    yield RANDOM, dict(_plain_and_centered(RANDOM, random))
    baselines = {
        "log band power": LogBandPower(),
        "tangent space": make_pipeline(SpatialCovariance(), TangentSpace()),
        "hand-crafted features": ChannelFeatures(),
    }
    for name, features in baselines.items():
        yield name, dict(_plain_and_centered(name, [features]))


def _plain_and_centered(
    name: str, several: list[TransformerMixin]
) -> Iterator[tuple[str, BaseEstimator]]:
    for seed, features in enumerate(several):
        shown = f"{name}, seed {seed}" if len(several) > 1 else name
        for taken in (features, SubjectCentering(features)):
            centered = CENTERED if isinstance(taken, SubjectCentering) else ""
            yield shown + centered, LinearProbe(taken, C=C)


def _random(seed: int, encoders: Path, question: Question) -> PARSEmbedder:
    """Return an encoder with random initial weights, the same in every draw."""
    folder = encoders / f"{RANDOM}, seed {seed}"
    if not folder.exists():
        new = PARSEmbedder(None, patch_seconds=1.0, random_state=seed, verbose=0, **SIZES)
        new.fit(question.windows).save(folder)
    return PARSEmbedder(encoder=folder, pooling="channels", verbose=0)


if __name__ == "__main__":
    main()
