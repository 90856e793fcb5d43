"""Detection threshold of a rhythm by frequency, for encoders and baselines.

    python docs/experiments/rhythms.py ENCODERS

A sine with a random phase is added to half of the windows of each subject, identical in all
channels: rest and mental arithmetic of EEGMAT, windows of 10 s, four channels. Linear probes on
frozen features distinguish windows with and without the sine on held-out subjects. Encoders of each
pretext task are pretrained on the first twelve subjects of the bundled dataset, with the default
settings of ``PARSEmbedder`` and 200 steps of 48 crops, and all methods are scored on the other
twelve subjects. Writes the balanced accuracy at each amplitude, mean and standard deviation over
random halves, to ``docs/measured/rhythms.csv``. ENCODERS/noise is the encoder of
``synthetic_signals.py``. The command takes six minutes on one core.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold
from stored_table import store_table
from tqdm import tqdm

from braindecode_pars import PARSEmbedder, as_sklearn, datasets
from braindecode_pars.evaluation import ChannelFeatures, LogBandPower
from braindecode_pars.evaluation.subject_information import accuracies
from braindecode_pars.pretext import PRETEXT_TASKS
from braindecode_pars.windows import Windows

__all__ = ["FREQUENCIES", "methods", "planted", "scores_of"]

MEASURED = Path(__file__).parents[1] / "measured" / "rhythms.csv"
#: Frequencies in Hz, between the frequency bins of a patch of one second; amplitudes in volts.
FREQUENCIES = (3.3, 6.3, 10.3, 20.3, 38.3)
AMPLITUDES = tuple(1e-6 * 2.0**step for step in range(-2, 4))
CHANNELS = ["F3", "F4", "P3", "P4"]
PACKAGED = ("small", "pars-sleep")
N_PRETRAINING, N_STEPS, N_SEEDS, N_HALVES = 12, 200, 2, 3
#: Settings of all encoders.
_ALIKE: dict[str, Any] = dict(
    channels=CHANNELS, pooling="channels", pretrain_batch_size=48, device="cpu", verbose=0
)


def main(encoders: Path) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    names = datasets.mental_arithmetic().description["subject"].unique().tolist()
    X, _, subjects = as_sklearn(datasets.mental_arithmetic(names[N_PRETRAINING:]))
    rows = []
    for key, features in tqdm(methods(names[:N_PRETRAINING], encoders)):
        rows += [key | row for row in scores_of(features, X, subjects)]
    command = "python docs/experiments/rhythms.py ENCODERS"
    store_table(pd.DataFrame(rows), MEASURED, command, index=False, float_format="%.4g")


def methods(names: list[str], encoders: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield fitted transformers of windows, with their name and pretraining seed."""
    unlabeled, _, _ = as_sklearn(datasets.mental_arithmetic(names))
    for name, features in (
        ("hand-crafted features", ChannelFeatures(channels=CHANNELS)),
        ("log band power", LogBandPower(channels=CHANNELS)),
        *((name, PARSEmbedder(encoder=name, **_ALIKE)) for name in PACKAGED),
        ("noise", PARSEmbedder(encoder=encoders / "noise", **_ALIKE)),
    ):
        yield dict(method=name, seed=0), features.fit(unlabeled)
    epochs = N_STEPS * _ALIKE["pretrain_batch_size"] // len(unlabeled)
    for task in (None, *sorted(PRETEXT_TASKS)):
        for seed in range(N_SEEDS):
            embedder = PARSEmbedder(task, pretrain_epochs=epochs, random_state=seed, **_ALIKE)
            yield dict(method=task or "random encoder", seed=seed), embedder.fit(unlabeled)


def planted(X: Windows, frequency: float, amplitude: float, seed: int = 0) -> Windows:
    """Return windows with a sine of random phase in all channels."""
    samples = np.stack(list(X)).astype(float)
    assert X.sfreq is not None
    times = np.arange(samples.shape[-1]) / X.sfreq
    phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, (len(samples), 1, 1))
    sines = amplitude * np.sin(2 * np.pi * frequency * times + phases)
    return X.read_by((samples + sines).astype(np.float32))


def scores_of(features: Any, X: Windows, subjects: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield balanced accuracies of windows with vs. without a rhythm, by amplitude."""
    plain = np.asarray(features.transform(X))
    for frequency in FREQUENCIES:
        for amplitude in AMPLITUDES:
            changed = np.asarray(features.transform(planted(X, frequency, amplitude)))
            found = []
            for draw in range(N_HALVES):
                has_rhythm = halves(subjects, np.random.default_rng(draw))
                folds = list(GroupKFold(4).split(plain, has_rhythm, subjects))
                mixed = np.where(has_rhythm[:, None] == 1, changed, plain)
                found.append(accuracies(mixed, has_rhythm, folds).mean())
            key = dict(frequency=frequency, amplitude=amplitude)
            yield key | dict(value=np.mean(found), sd=np.std(found, ddof=1))


def halves(subjects: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return 1 for a random half of the windows of each subject, and 0 for the other half."""
    order = pd.Series(rng.permutation(len(subjects))).groupby(subjects)
    return (order.rank() % 2).astype(int).to_numpy()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
