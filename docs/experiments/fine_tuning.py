"""How is a given encoder best fine-tuned on few labelled people? On development subjects only.

    python docs/experiments/fine_tuning.py ROWS.csv ENCODER ... [--eeg FOLDER] [--tasks TASK ...]

Every draw labels 4 or 8 of the subjects 0 to 11 of the sample in the package and scores the others,
or 4 or 16 of the subjects 1 to 50 of PhysioNet's motor imagery recordings and scores 20 others. A
score is the mean balanced accuracy over the scored subjects. Rows that ROWS.csv has are not
computed again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from real_recordings import FINE_TUNING, PREPARED, SIZES
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import Callback

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn, datasets

#: Task -> numbers of labelled people, number of scored people, draws.
TASKS = {
    "arithmetic": ((4, 8), 12, 12),
    "fists": ((4, 16), 20, 4),
    "imagery": ((4, 16), 20, 3),
}
ALL = dict(freeze_encoder=False, head_epochs=0, encoder_lr_factor=1.0)
SLOW = ALL | dict(encoder_lr_factor=0.1)
FROZEN = ALL | dict(freeze_encoder=True)
#: A third of the epochs of the head alone; the lowest layer then has a tenth of the highest one's.
THAWED = ALL | dict(head_epochs=1 / 3, encoder_lr_factor=(0.01, 0.1))


class ProbeStart(Callback):
    """Begin with logistic regression on the pooled features that ``final_layer`` receives."""

    def on_train_begin(self, net, X=None, y=None, **kwargs):
        module = net.module_.eval()
        x, labels = zip(*(X[i] for i in range(len(X))), strict=True)
        with torch.no_grad():
            batches = torch.as_tensor(np.stack(x)).split(64)
            pooled = torch.cat([module(b, return_features=True)["cls_token"] for b in batches])
            weight, bias = _linear(pooled.numpy(), np.array(labels))
            module.final_layer.weight.copy_(weight)
            module.final_layer.bias.copy_(bias)


class ProbePath(Callback):
    """Add the logits of logistic regression on the features of all channels, which stays fixed."""

    def on_train_begin(self, net, X=None, y=None, **kwargs):
        module = net.module_.eval()
        x, labels = zip(*(X[i] for i in range(len(X))), strict=True)
        with torch.no_grad():
            batches = torch.as_tensor(np.stack(x)).split(64)
            tokens = torch.cat([module.encode_channels(b).tokens for b in batches])
            weight, bias = _linear(tokens.flatten(1).numpy(), np.array(labels))
            module.final_layer.weight.zero_()
        center, own = tokens.mean(0), module.pool_channels
        bias = bias + center.flatten() @ weight.T

        def pool_channels(channels):
            away = channels.tokens - center
            if channels.keep is not None:
                away = away * (channels.keep / channels.keep.float().mean(1, True))[..., None]
            return own(channels) + away.flatten(1) @ weight.T + bias

        module.pool_channels = pool_channels


def _linear(features: np.ndarray, labels: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weight and bias of two classes whose softmax is that of the probe."""
    scaler, regression = _regression()
    regression.fit(scaler.fit_transform(features), labels)
    weight = regression.coef_ / scaler.scale_
    bias = regression.intercept_ - weight @ scaler.mean_
    of_classes = np.array([[-0.5], [0.5]])
    return (
        torch.from_numpy(of_classes @ weight).float(),
        torch.from_numpy(of_classes[:, 0] * bias).float(),
    )


def _regression() -> tuple[StandardScaler, LogisticRegression]:
    return StandardScaler(), LogisticRegression(C=0.01, max_iter=500, class_weight="balanced")


#: Name -> settings. "{}" stands for the head.
VARIANTS: dict[str, dict[str, Any]] = {
    "all weights": ALL,
    "rate x 0.1": SLOW,
    "frozen": FROZEN,
    "frozen first, then thawed": THAWED,
    "frozen, probe start": FROZEN | dict(callbacks=[ProbeStart()]),
    "frozen first, then thawed, probe start": THAWED | dict(callbacks=[ProbeStart()]),
    "frozen, probe path": FROZEN | dict(callbacks=[ProbePath()]),
}
HEADS = {"attention": "attention", "spatial filters": "spatial_filter"}


def variants(encoders: list[str], task: str):
    """Yield names and estimators."""
    common = FINE_TUNING | ({} if task == "arithmetic" else dict(finetune_epochs=15))
    for head, value in HEADS.items():
        yield f"scratch, {head}", PARSClassifier(None, head=value, **SIZES, **common)
    for encoder in encoders:
        name = Path(encoder).name
        yield (
            f"{name}, probe",
            make_pipeline(PARSEmbedder(encoder=encoder, verbose=0), *_regression()),
        )
        for variant, settings in VARIANTS.items():
            for head, value in HEADS.items():
                settings = dict(settings, head=value)
                if settings["head_epochs"]:
                    settings["head_epochs"] = round(common["finetune_epochs"] / 3)
                yield (
                    f"{name}, {variant}, {head}",
                    PARSClassifier(encoder=encoder, **common, **settings),
                )


def load(task: str, eeg: Path | None):
    """Return X, y and subjects of the development people."""
    if task == "arithmetic":
        people = [f"Subject{number:02}" for number in range(12)]
        return as_sklearn(datasets.mental_arithmetic(people))
    contrast = {"fists": "movements", "imagery": "rest"}[task]
    how = dict(tmin=1, tmax=4, verbose=0, contrast=contrast, **PREPARED)
    return as_sklearn(datasets.physionet_mi.load(eeg, list(range(1, 51)), **how))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("encoders", nargs="*")
    parser.add_argument("--eeg", type=Path)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument("--only", default="", help="part of the names of the variants, |")
    parser.add_argument("--draws", type=int, default=99)
    arguments = parser.parse_args()
    columns = ["task", "method", "n_labelled", "draw", "seed", "score", "seconds"]
    if not arguments.rows.exists():
        arguments.rows.write_text(",".join(columns) + "\n")
    done = pd.read_csv(arguments.rows)
    done = {*zip(done["task"], done["method"], done["n_labelled"], done["draw"], strict=True)}
    for task in arguments.tasks:
        numbers, n_scored, n_draws = TASKS[task]
        X, y, groups = load(task, arguments.eeg)
        for n in numbers:
            for draw in range(min(n_draws, arguments.draws)):
                people = np.random.default_rng([draw, n]).permutation(np.unique(groups))
                train, test = np.isin(groups, people[:n]), np.isin(groups, people[n : n + n_scored])
                for name, estimator in variants(arguments.encoders, task):
                    if (task, name, n, draw) in done:
                        continue
                    if not any(part in name for part in arguments.only.split("|")):
                        continue
                    begin = time.process_time()
                    if isinstance(estimator, PARSClassifier):
                        estimator.set_params(random_state=draw)
                    estimator.fit(X[train], y[train])
                    seconds = time.process_time() - begin
                    predicted = estimator.predict(X[test])
                    scores = [
                        balanced_accuracy_score(y[test][of], predicted[of])
                        for of in (groups[test] == s for s in np.unique(groups[test]))
                    ]
                    row = (task, name, n, draw, draw, f"{np.mean(scores):.4f}", f"{seconds:.1f}")
                    with arguments.rows.open("a") as file:
                        file.write(
                            ",".join(f'"{v}"' if "," in str(v) else str(v) for v in row) + "\n"
                        )


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
