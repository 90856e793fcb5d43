"""How much do unlabeled or labeled windows of a new subject improve its classification?

    python docs/experiments/new_subject.py arithmetic
    python docs/experiments/new_subject.py sleep

Each subject in turn is the new subject, and all other subjects are labeled. The first k windows of
each class in time have labels. The 17th window of each class is excluded, so that no test window is
adjacent to a labeled window, and the windows after it are tested; the test windows are the same for
every k. The arithmetic task is rest vs. arithmetic in windows of two seconds; the sleep task is
wake vs. deep sleep (stages 3 and 4). All features have the same data, and a logistic regression
with C = 0.01. Writes ``docs/measured/new_subject/TASK.csv``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyriemann.tangentspace import TangentSpace
from sklearn.base import TransformerMixin
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from stored_table import store_table
from t3a import t3a
from tqdm import tqdm

from braindecode_pars import PARSEmbedder, SubjectCentering, as_sklearn, datasets
from braindecode_pars._common.tables import TestSubjectData
from braindecode_pars.baselines import new_subject
from braindecode_pars.estimators import LinearProbe, RiemannianCentering
from braindecode_pars.evaluation import (
    ChannelFeatures,
    LogBandPower,
    SpatialCovariance,
    features_computed_once,
)

MEASURED = Path(__file__).parents[1] / "measured" / "new_subject"
#: Number of labeled windows per class, and number of windows per class that are not tested.
N_LABELED, N_NOT_TESTED = (1, 2, 4, 8, 16), 17


def arithmetic() -> tuple[Any, np.ndarray, np.ndarray]:
    return as_sklearn(datasets.mental_arithmetic(window_seconds=2))


def sleep() -> tuple[Any, np.ndarray, np.ndarray]:
    X, y, subjects = as_sklearn(datasets.sleep())
    return X, np.minimum(y, 1), subjects  # N3 in current scoring rules


TASKS = {"arithmetic": arithmetic, "sleep": sleep}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=TASKS)
    task = parser.parse_args().task
    X, y, subjects = TASKS[task]()
    rows = []
    with features_computed_once():
        for name, transformer in features_of(X):
            for subject in tqdm(np.unique(subjects).tolist(), desc=name):
                new = subjects == subject
                fold = X[~new], y[~new], X[new], y[new]
                keys = ("method", "test_subject_data", "n_labeled", "value")
                rows += [
                    dict(zip(keys, score_row, strict=True), features=name, subject=subject)
                    for score_row in scores_of(transformer, *fold)
                ]
    keys = ["features", "method", "test_subject_data", "n_labeled"]
    table = pd.DataFrame(rows).pivot(index=keys, columns="subject", values="value").reset_index()
    command = f"python docs/experiments/new_subject.py {task}"
    store_table(table, MEASURED / f"{task}.csv", command, index=False, float_format="%.4g")


def features_of(X: Any) -> Iterator[tuple[str, TransformerMixin]]:
    yield "small", PARSEmbedder(encoder="small", pooling="channels", verbose=0)
    yield "hand-crafted features", ChannelFeatures()
    yield "log band power", LogBandPower()
    if X.shape[1] > 1:
        yield "tangent space", make_pipeline(SpatialCovariance(), TangentSpace())


def scores_of(
    transformer: TransformerMixin, X: Any, y: np.ndarray, own: Any, labels: np.ndarray
) -> Iterator[tuple[str, TestSubjectData, int, float]]:
    """Yield method, test-subject data, number of labeled windows per class, and score."""
    test = ~new_subject.first_of_each_class(labels, N_NOT_TESTED)

    def score(predicted: np.ndarray) -> float:
        return balanced_accuracy_score(labels[test], predicted[test])

    def fitted(features: TransformerMixin, X: Any = X, y: np.ndarray = y) -> LinearProbe:
        return LinearProbe(features, C=0.01, prior_strength=None).fit(X, y)

    plain, centered = fitted(transformer), fitted(SubjectCentering(transformer))
    without_labels = {
        "nothing": plain,
        "centered": centered,
        "centered, running": fitted(SubjectCentering(transformer, running=True)),
        "mean replaced": plain.adapt(own),
    }
    if isinstance(getattr(transformer, "steps", [[None]])[-1][-1], TangentSpace):
        riemannian = RiemannianCentering(SpatialCovariance())
        without_labels["recentered, rescaled"] = fitted(make_pipeline(riemannian, TangentSpace()))
    for method, probe in without_labels.items():
        yield method, probe.test_subject_data_, 0, score(probe.predict(own))
    features = plain.transformer_.transform(own)
    for method, causal in (("T3A", False), ("T3A, running", True)):
        access = TestSubjectData.PAST_UNLABELED if causal else TestSubjectData.ALL_UNLABELED
        logits = t3a(plain.classifier_, features, causal=causal)
        yield method, access, 0, score(logits.argmax(axis=1))
    for n in N_LABELED:
        first = new_subject.first_of_each_class(labels, n)
        known = np.where(first, labels, -1)
        for method, probe in (
            ("own only", fitted(transformer, own[first], labels[first])),
            ("prior", plain.adapt(own[first], labels[first])),
            ("prior, centered", centered.adapt(own, known)),
        ):
            yield method, TestSubjectData.LABELED, n, score(probe.predict(own))


if __name__ == "__main__":
    main()
