"""How well do frozen features classify with the labels of few people?

    python docs/experiments/few_labels.py development ENCODERS OUT
    python docs/experiments/few_labels.py arithmetic ENCODERS OUT
    python docs/experiments/few_labels.py imagery ENCODERS OUT --eeg FOLDER
    python docs/experiments/few_labels.py hands ENCODERS OUT --eeg FOLDER

ENCODERS has the runs of the other pretraining seeds, small-1 and small-2, and of noise, noise-1 and
noise-2 (``synthetic_signals.py``). FOLDER has PhysioNet's motor imagery recordings. OUT gets the
scores of every fit, and an interrupted command resumes from there. At the end
``docs/measured/few_labels/TASK.csv`` is written.

Every method is a logistic regression with C = 0.01 on standardized features, or a vote of some. All
have the same labeled people in a draw. Each is also given the mean of every subject, which is
transductive. The people who are scored are those of the other results; "development" is rest or
arithmetic of the people that all choices were made on. With ``--fine-tuned``, the only method is
PARSClassifier with the encoder ``small`` and its defaults, to be compared with the stored scores
of the network from scratch, which has the same draws. With ``--larger``, the methods are the
encoders of a GPU, runs in ENCODERS, to be compared with the stored scores of ``small``.
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
    """Rest against arithmetic of the development people; eight are labeled, four are scored."""
    windows = datasets.mental_arithmetic([f"Subject{number:02d}" for number in range(12)])
    return replace(arithmetic(encoders, eeg), windows=windows, split=dict(cv=3))


TASKS = dict(development=development, arithmetic=arithmetic, imagery=imagery, hands=hands)
#: Draws of labeled people.
N_DRAWS = {"development": 40, "arithmetic": 20, "imagery": 20, "hands": 20}
N_LABELED = (2, 4, 8, 16)
C = 0.01

#: Method -> encoder in the package, or folder in ENCODERS.
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
#: The same of the encoders that a GPU pretrained.
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
    given = parser.parse_args()
    question = TASKS[given.task](given.encoders, given.eeg)
    numbers, n_draws = N_LABELED, N_DRAWS[given.task]
    methods, name = {**dict(_probes(_features(given.encoders))), **dict(_votes())}, given.task
    if given.task == "development":
        numbers = N_LABELED[:3]
    if given.fine_tuned:
        numbers = N_LABELED[1:2]
        methods = {"small, fine-tuned": PARSClassifier(encoder="small", verbose=0)}
        name += "_fine_tuned"
    elif given.larger:
        methods = dict(_probes(_embedders(given.encoders, LARGER)))
        name += "_larger"
    with features_computed_once():
        scores = label_efficiency(
            methods,
            question.windows,
            n_train_subjects=numbers,
            seeds=range(n_draws),
            metrics=[question.metric],
            dataset=question.name,
            out=given.out / name,
            equal_sizes=False,
            **question.split,
        )
    command = f"python docs/experiments/few_labels.py {given.task} ENCODERS OUT"
    command += " --eeg FOLDER" * bool(given.eeg) + " --fine-tuned" * given.fine_tuned
    command += " --larger" * given.larger
    store_table(
        by_subject(scores), MEASURED / f"{name}.csv", command, index=False, float_format="%.4g"
    )


def by_subject(scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each method, number of labeled people and draw; a column per subject."""
    keys = ["method", "n_train_subjects", "seed"]
    each = scores[scores["subject"] != "all"]
    return each.pivot(index=keys, columns="subject", values="value").reset_index()


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
