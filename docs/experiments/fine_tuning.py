"""How should a network with a pretrained encoder be trained with few labeled subjects?

    python docs/experiments/fine_tuning.py ENCODER OUT.csv --eeg FOLDER

Development subjects only. A draw labels some of subjects 0 to 11 of the bundled dataset and tests
the remaining subjects, or labels some of subjects 1 to 50 of PhysioNet's motor imagery recordings
and tests 20 others of them. A score is the mean balanced accuracy over the test subjects. Rows that
are already in OUT.csv are not computed again.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from braindecode.datasets import BaseConcatDataset
from real_recordings import FINE_TUNING, PREPARED, PRETRAINED, SIZES
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import Callback
from stored_table import store_table
from torch import Tensor

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn, datasets
from braindecode_pars.models.parsnet import Channels

N_SCORED = 20


def arithmetic(eeg: Path) -> BaseConcatDataset:
    """Rest vs. mental arithmetic."""
    return datasets.mental_arithmetic([f"Subject{number:02}" for number in range(12)])


def fists(eeg: Path, contrast: str = "movements") -> BaseConcatDataset:
    """Imagined movement of the left vs. the right fist."""
    how = dict(tmin=1, tmax=4, verbose=0, contrast=contrast, **PREPARED)
    return datasets.physionet_mi.load(eeg, list(PRETRAINED), **how)


def imagery(eeg: Path) -> BaseConcatDataset:
    """Imagined movement vs. rest."""
    return fists(eeg, "rest")


#: Windows, and draws and epochs of fine-tuning for each number of labeled subjects.
TASKS: dict[str, tuple[Any, dict[int, tuple[int, int]]]] = {
    "arithmetic": (arithmetic, {4: (8, 30)}),
    "fists": (fists, {4: (2, 15), 16: (1, 15), 30: (1, 8)}),
    "imagery": (imagery, {4: (1, 15), 16: (1, 15)}),
}


class ProbeStart(Callback):
    """Initialize with a logistic regression on the pooled input of ``final_layer``."""

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        module = net.module_.eval()
        batches, labels = _batches(X)
        with torch.no_grad():
            pooled = [module(batch, return_features=True)["cls_token"] for batch in batches]
            weight, bias = _linear(torch.cat(pooled), labels)
            module.final_layer.weight.copy_(weight)
            module.final_layer.bias.copy_(bias)


class ProbePath(Callback):
    """Add the logits of a fixed logistic regression on the features of all channels.

    The weights of the head are initialized with zeros.
    """

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        module = net.module_.eval()
        batches, labels = _batches(X)
        with torch.no_grad():
            tokens = torch.cat([module.encode_channels(batch).tokens for batch in batches])
            weight, bias = _linear(tokens.flatten(1), labels)
            module.final_layer.weight.zero_()
        center, own = tokens.mean(0), module.pool_channels

        def pool_channels(channels: Channels) -> Tensor:
            away = channels.tokens - center
            if channels.keep is not None:  # dropped channels have the mean feature
                kept = channels.keep / channels.keep.float().mean(1, keepdim=True)
                away = away * kept[..., None]
            return own(channels) + (away + center).flatten(1) @ weight.T + bias

        module.pool_channels = pool_channels


def _batches(examples: Any) -> tuple[tuple[Tensor, ...], np.ndarray]:
    """Return all windows in batches, and their labels."""
    windows, labels = zip(*(examples[i] for i in range(len(examples))), strict=True)
    return torch.as_tensor(np.stack(windows)).split(64), np.array(labels)


def _linear(features: Tensor, labels: np.ndarray) -> tuple[Tensor, Tensor]:
    """Return weight and bias of two logits whose softmax equals the linear probe."""
    scaler, regression = _regression()
    regression.fit(scaler.fit_transform(features.numpy()), labels)
    weight = regression.coef_ / scaler.scale_
    bias = regression.intercept_ - weight @ scaler.mean_
    halves = np.array([[-0.5], [0.5]])
    return torch.from_numpy(halves * weight).float(), torch.from_numpy(halves[:, 0] * bias).float()


def _regression() -> tuple[StandardScaler, LogisticRegression]:
    return StandardScaler(), LogisticRegression(C=0.01, max_iter=500, class_weight="balanced")


FROZEN = dict(freeze_encoder=True)
#: Settings of freeze_encoder="auto" for many subjects. The epochs of the head are added below.
THAWED = dict(head_epochs=None, encoder_lr_factor=(0.01, 0.1))
ATTENTION, FILTERS = dict(head="attention"), dict(head="spatial_filter")
START, PATH = dict(callbacks=[ProbeStart()]), dict(callbacks=[ProbePath()])
#: Changes of fine-tuning all weights, by method name; None is the linear probe.
METHODS: dict[str, dict[str, Any] | None] = {
    "from scratch, attention": ATTENTION,
    "from scratch, spatial filters": FILTERS,
    "fine-tuned, attention": ATTENTION,
    "fine-tuned, spatial filters": FILTERS,
    "encoder's rate x 0.1, spatial filters": dict(encoder_lr_factor=0.1, **FILTERS),
    "head trained first, then fine-tuned, spatial filters": THAWED | FILTERS,
    "head trained, attention": FROZEN | ATTENTION,
    "head trained, spatial filters": FROZEN | FILTERS,
    "head trained, linear-probe start, spatial filters": FROZEN | START | FILTERS,
    "head trained first, then fine-tuned, linear-probe start, spatial filters": THAWED
    | START
    | FILTERS,
    "head trained, linear-probe path, spatial filters": FROZEN | PATH | FILTERS,
    "head trained, one epoch, spatial filters": FROZEN | FILTERS | dict(finetune_epochs=1),
    "head trained, linear-probe start, one epoch, spatial filters": FROZEN
    | START
    | FILTERS
    | dict(finetune_epochs=1),
    "linear probe": None,
}


def methods(encoder: Path, epochs: int, seed: int) -> Iterator[tuple[str, BaseEstimator]]:
    """Yield method names and estimators."""
    for name, changes in METHODS.items():
        if changes is None:
            yield name, make_pipeline(PARSEmbedder(encoder=encoder, verbose=0), *_regression())
            continue
        settings = FINE_TUNING | dict(finetune_epochs=epochs, random_state=seed) | changes
        if settings["head_epochs"] is None:
            settings["head_epochs"] = epochs // 3
        start = dict(pretext=None, **SIZES) if "scratch" in name else dict(encoder=encoder)
        yield name, PARSClassifier(**start, **settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("encoder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--eeg", type=Path, required=True)
    arguments = parser.parse_args()
    columns = ["task", "method", "n_labeled", "draw", "seed", "score"]
    table = pd.DataFrame(columns=columns)
    if arguments.out.exists():
        table = pd.read_csv(arguments.out, comment="#")
    for task, (load, numbers) in TASKS.items():
        X, y, subjects = as_sklearn(load(arguments.eeg))
        fits = [
            (n, draw, epochs) for n, (draws, epochs) in numbers.items() for draw in range(draws)
        ]
        for n, draw, epochs in fits:
            order = np.random.default_rng([draw, n]).permutation(np.unique(subjects))
            train = np.isin(subjects, order[:n])
            for name, estimator in methods(arguments.encoder, epochs, seed=draw):
                row = (task, name, n, draw, draw)
                if row in {*table[columns[:5]].itertuples(index=False, name=None)}:
                    continue
                estimator.fit(X[train], y[train])
                scores = []
                for subject in order[n : n + N_SCORED]:
                    test = subjects == subject
                    scores.append(balanced_accuracy_score(y[test], estimator.predict(X[test])))
                table.loc[len(table)] = (*row, np.mean(scores).round(4))
                command = f"python docs/experiments/fine_tuning.py {arguments.encoder.name} OUT.csv"
                store_table(table, arguments.out, command, index=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
