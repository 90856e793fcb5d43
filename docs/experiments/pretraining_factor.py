"""Which pretraining helps, and what does its gain need?

    python docs/experiments/pretraining_factor.py pretrain OUT --eeg FOLDER
    python docs/experiments/pretraining_factor.py score TASK OUT --eeg FOLDER
    python docs/experiments/pretraining_factor.py fine-tune TASK OUT --eeg FOLDER

The first command pretrains every variant with three seeds into OUT/encoders, with the same steps
and the same initial weights for each seed. An interrupted command resumes when it is given again.
The second one scores frozen features of all of them, TASK being arithmetic, imagery or hands, and
writes ``docs/measured/pretraining/TASK.csv``. The third one fine-tunes the encoders whose features
differ, all weights as in the network from scratch, with the labels of four people. FOLDER has
PhysioNet's motor imagery recordings.

Every encoder has the size of the estimators' defaults. PARS has seven patches of 1 s in a crop of
10 s, with overlap as without. What its gain needs: PARS without overlap is also pretrained on the
same crops without the trend of each patch, on the crops with random phases, which keep their power
and nothing else, on synthetic 1/f noise, and on white noise. "slope" learns the line and the
parabola of a crop, and nothing else.
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
#: The defaults of the estimators.
SIZES = dict(embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128)
#: Steps of 128 crops of 10 s, in epochs of 250: PARS needs many until its loss falls.
LONG, SHORT = 24, 6
ALONE = dict(overlap=False, min_gap=16, n_patches=7)


class RandomPhases:
    """Crops of a store with random phases: the power of each frequency stays, the waveform goes."""

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
        phases[:, 0] = phases[:, -1] = 1  # the mean and the highest frequency are real
        return np.fft.irfft(spectrum * phases, n_times).astype(np.float32)


#: Variant -> source of signals (None: the recordings), epochs, and settings of the run.
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
#: Variants that are fine-tuned, the epochs of each task, and its head: those of scratch.
FINE_TUNED = ("PARS without overlap", "slope", "features and spectra")
TUNING: dict[str, dict[str, Any]] = dict(
    arithmetic={},
    imagery=dict(finetune_epochs=15),
    hands=dict(finetune_epochs=15, head="spatial_filter"),
)
#: Name of the encoders with initial weights.
RANDOM = "random encoder"
MEASURED = Path(__file__).parents[1] / "measured" / "pretraining"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("pretrain", "score", "fine-tune"))
    parser.add_argument("task", nargs="?", choices=SCORED)
    parser.add_argument("out", type=Path, help="folder of the encoders and the scores")
    parser.add_argument("--eeg", type=Path, required=True, help="folder of the recordings")
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=VARIANTS)
    given = parser.parse_args()
    if given.step == "pretrain":
        for seed in range(N_SEEDS):
            for name in given.variants:
                pretrain(name, seed, given.out / "encoders", given.eeg)
    elif given.step == "score":
        score(given.task, given.out, given.eeg)
    else:
        fine_tune(given.task, given.out, given.eeg)


def pretrain(name: str, seed: int, encoders: Path, eeg: Path) -> Path:
    """Return the folder of an encoder: finished, or pretrained from where it was interrupted."""
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
    """Score every encoder, and store one row for each of them, each number and each draw."""
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
    """Fine-tune encoders and a new one on four people, and store one row for each draw."""
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
    """Yield the probes of each variant: of all its seeds, plain and centered."""
    for name in VARIANTS:
        found = [pretrain(name, seed, encoders, eeg) for seed in range(N_SEEDS)]
        given = [PARSEmbedder(encoder=each, pooling="channels", verbose=0) for each in found]
        yield name, dict(_plain_and_centered(name, given))
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
    """Return an encoder with initial weights, the same in every draw."""
    folder = encoders / f"{RANDOM}, seed {seed}"
    if not folder.exists():
        new = PARSEmbedder(None, patch_seconds=1.0, random_state=seed, verbose=0, **SIZES)
        new.fit(question.windows).save(folder)
    return PARSEmbedder(encoder=folder, pooling="channels", verbose=0)


if __name__ == "__main__":
    main()
