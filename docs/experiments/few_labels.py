"""Linear probes on frozen features with few labeled subjects.

    python docs/experiments/few_labels.py development ENCODERS OUT
    python docs/experiments/few_labels.py arithmetic ENCODERS OUT
    python docs/experiments/few_labels.py imagery ENCODERS OUT --eeg FOLDER
    python docs/experiments/few_labels.py hands ENCODERS OUT --eeg FOLDER

ENCODERS contains the runs of the other pretraining seeds, small-1 and small-2, and of noise,
noise-1 and noise-2 (``synthetic_signals.py``). FOLDER contains PhysioNet's motor imagery
recordings. OUT receives the scores of every fit. An interrupted command resumes when it is run
again. Writes ``docs/measured/few_labels/TASK.csv``.

Every method is a logistic regression with C = 0.01 on standardized features, or an ensemble of
several. All methods have the same labeled subjects in a draw. Each method is also run with
subject-wise centering (transductive). The held-out subjects are the same as in the other results;
"development" is rest vs. mental arithmetic of the development subjects. With ``--fine-tuned``, the
only method is PARSClassifier with the encoder ``small`` and its default settings, for comparison
with the stored scores of training from scratch in the same draws. With ``--larger``, the methods
are encoders that were pretrained on a GPU, runs in ENCODERS, for comparison with the stored scores
of ``small``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
from pyriemann.tangentspace import TangentSpace
from question import Question
from real_recordings import arithmetic, hands, imagery
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from stored_table import store_table

from braindecode_pars import (
    FewLabelsClassifier,
    PARSClassifier,
    PARSEmbedder,
    SubjectCentering,
    datasets,
)
from braindecode_pars.baselines import CENTERED
from braindecode_pars.estimators import LinearProbe
from braindecode_pars.evaluation import (
    ChannelFeatures,
    LogBandPower,
    SpatialCovariance,
    features_computed_once,
    label_efficiency,
)

MEASURED = Path(__file__).parents[1] / "measured" / "few_labels"


def development(encoders: Path, eeg: Path | None) -> Question:
    """Rest vs. arithmetic of the development subjects; eight are labeled, four are tested."""
    windows = datasets.mental_arithmetic([f"Subject{number:02d}" for number in range(12)])
    return replace(arithmetic(encoders, eeg), windows=windows, split=dict(cv=3))


TASKS = dict(development=development, arithmetic=arithmetic, imagery=imagery, hands=hands)
#: Number of draws of labeled subjects.
N_DRAWS = {"development": 40, "arithmetic": 20, "imagery": 20, "hands": 20}
N_LABELED = (2, 4, 8, 16)
C = 0.01

#: Bundled encoders, or folders in ENCODERS, by method name.
ENCODERS = {
    "small": "small",
    "small, seed 1": "small-1",
    "small, seed 2": "small-2",
    "noise": "noise",
    "noise, seed 1": "noise-1",
    "noise, seed 2": "noise-2",
    "SpectralMAE": "SpectralMAE",
    "PARS without overlap": "PARS without overlap",
}
#: Encoders that were pretrained on a GPU.
LARGER = {
    "small, longer": "joint-4x128",
    "small, larger and longer": "joint-8x256",
    "PARS, larger and longer": "pars-8x256",
}
SIZES = dict(embed_dim=128, num_layers=4, num_heads=8, mlp_dim=256)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("encoders", type=Path, help="folder of the encoders of other seeds")
    parser.add_argument("out", type=Path, help="folder of the scores")
    parser.add_argument("--eeg", type=Path, help="folder of PhysioNet's motor imagery recordings")
    parser.add_argument("--fine-tuned", action="store_true")
    parser.add_argument("--larger", action="store_true")
    options = parser.parse_args()
    question = TASKS[options.task](options.encoders, options.eeg)
    numbers, n_draws = N_LABELED, N_DRAWS[options.task]
    methods, name = {**dict(_probes(_features(options.encoders))), **dict(_votes())}, options.task
    if options.task == "development":
        numbers = N_LABELED[:3]
    if options.fine_tuned:
        numbers = N_LABELED[1:2]
        methods = {"small, fine-tuned": PARSClassifier(encoder="small", verbose=0)}
        name += "_fine_tuned"
    elif options.larger:
        methods = dict(_probes(_embedders(options.encoders, LARGER)))
        name += "_larger"
    with features_computed_once():
        scores = label_efficiency(
            methods,
            question.windows,
            n_train_subjects=numbers,
            seeds=range(n_draws),
            metrics=[question.metric],
            dataset=question.name,
            out=options.out / name,
            equal_sizes=False,
            **question.split,
        )
    command = f"python docs/experiments/few_labels.py {options.task} ENCODERS OUT"
    command += " --eeg FOLDER" * bool(options.eeg) + " --fine-tuned" * options.fine_tuned
    command += " --larger" * options.larger
    store_table(
        by_subject(scores), MEASURED / f"{name}.csv", command, index=False, float_format="%.4g"
    )


def by_subject(scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row per method, number of labeled subjects and draw; columns are subjects."""
    keys = ["method", "n_train_subjects", "seed"]
    subject_scores = scores[scores["subject"] != "all"]
    return subject_scores.pivot(index=keys, columns="subject", values="value").reset_index()


def _probes(
    named: Iterable[tuple[str, TransformerMixin]],
) -> Iterator[tuple[str, BaseEstimator]]:
    for name, features in named:
        yield name, LinearProbe(features, C=C)
        yield name + CENTERED, LinearProbe(SubjectCentering(features), C=C)


def _votes() -> Iterator[tuple[str, BaseEstimator]]:
    yield "feature ensemble", FewLabelsClassifier(C=C, verbose=0)
    yield "feature ensemble" + CENTERED, FewLabelsClassifier(recenter="subject", C=C, verbose=0)


def _features(encoders: Path) -> Iterator[tuple[str, TransformerMixin]]:
    yield "log band power", LogBandPower()
    yield "tangent space", make_pipeline(SpatialCovariance(), TangentSpace())
    yield "hand-crafted features", ChannelFeatures()
    yield "random encoder", PARSEmbedder(None, pooling="channels", verbose=0, **SIZES)
    yield from _embedders(encoders, ENCODERS)


def _embedders(encoders: Path, sources: dict[str, str]) -> Iterator[tuple[str, TransformerMixin]]:
    for name, source in sources.items():
        encoder = encoders / source if (encoders / source).is_dir() else source
        yield name, PARSEmbedder(encoder=encoder, pooling="channels", verbose=0)


if __name__ == "__main__":
    main()
