"""Do relative shifts over the head help? Two tasks of development, on people seen without labels.

    python docs/experiments/space_time.py pretrain OUT --eeg FOLDER
    python docs/experiments/space_time.py probes OUT --eeg FOLDER

FOLDER has PhysioNet's motor imagery recordings. The first command pretrains each variant on the
subjects 1 to 50, without labels, with three seeds and equal steps; an interrupted command goes on
when it is given again. The second scores frozen features, one vector a channel, with a logistic
regression: rest or arithmetic of the twelve development people of the sample, and imagery or rest
of the subjects 1 to 50. It writes ``docs/measured/space_time/scores.csv``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from braindecode.datasets import BaseConcatDataset
from real_recordings import PREPARED, PRETRAINED, _store
from sklearn.base import BaseEstimator

from braindecode_pars import PARSEmbedder, SubjectCentering, datasets
from braindecode_pars.baselines import CENTRED
from braindecode_pars.estimators import LinearProbe
from braindecode_pars.evaluation import features_computed_once, label_efficiency
from braindecode_pars.models.space_time import build_encoder
from braindecode_pars.pretrained import EncoderCard, save_encoder
from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder

MEASURED = Path(__file__).parents[1] / "measured" / "space_time"

SFREQ, SECONDS = 128, 4
SIZES = dict(embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128, tokenizer="spectral")
#: Variant -> task and its parameters.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "space and time": ("pars_space_time", {}),
    "space": ("pars_space_time", dict(axes="space")),
    "time": ("pars_space_time", dict(axes="time")),
    "one channel": ("pars", {}),
}
UNTRAINED = {"untrained": "space_time", "untrained, one channel": "patch"}
N_SEEDS = 3
C = 0.01


def folder_of(out: Path, variant: str, seed: int) -> Path:
    return out / "encoders" / f"{variant}, seed {seed}"


def pretrain(out: Path, eeg: Path, only: list[str], seeds: list[int], epochs: int) -> None:
    store = _store(out / "store", eeg)
    for seed, (variant, (task, params)) in product(seeds, VARIANTS.items()):
        folder = folder_of(out, variant, seed)
        if (folder / "encoder.json").exists() or (only and variant not in only):
            continue
        kind = "patch" if task == "pars" else "space_time"
        encoder = new_encoder(kind, seed)
        settings = PretrainingSettings(task, task_params=params, epochs=epochs)
        net = pretrain_encoder(
            encoder, store, settings, n_times=SECONDS * SFREQ, seed=seed, verbose=0
        )
        card = EncoderCard(
            sfreq=SFREQ, task=task, subjects=[*PRETRAINED], preprocessing=store.preprocessing
        )
        save_encoder(encoder, card, folder)
        history = pd.DataFrame(
            [{k: v for k, v in row.items() if k != "batches"} for row in net.history]
        )
        history.to_csv(folder / "history.csv", index=False)
        print(folder.name, history.filter(like="relative").iloc[-1].round(3).to_dict(), flush=True)
    for seed, (variant, kind) in product(seeds, UNTRAINED.items()):
        card = EncoderCard(sfreq=SFREQ, subjects=[], preprocessing=store.preprocessing)
        save_encoder(new_encoder(kind, seed), card, folder_of(out, variant, seed))


def new_encoder(kind: str, seed: int) -> Any:
    import torch

    torch.manual_seed(seed)
    return build_encoder(kind, patch_size=SFREQ, **SIZES)


def tasks(eeg: Path) -> Iterator[tuple[str, BaseConcatDataset, dict[str, Any]]]:
    people = [f"Subject{number:02d}" for number in range(12)]
    yield "arithmetic", datasets.mental_arithmetic(people), dict(cv=3, n_train_subjects=[4])
    yield "imagery", _development(eeg, "rest"), dict(cv=3, n_train_subjects=[16])
    yield "hands", _development(eeg, "movements"), dict(cv=3, n_train_subjects=[16])


def _development(eeg: Path, contrast: str) -> BaseConcatDataset:
    return datasets.physionet_mi.load(
        eeg, [*PRETRAINED], tmin=1, tmax=4, verbose=0, contrast=contrast, **PREPARED
    )


def methods(out: Path) -> Iterator[tuple[str, BaseEstimator]]:
    sources = {folder.name: folder for folder in sorted((out / "encoders").iterdir())}
    for name, source in (sources | {"small": "small"}).items():
        features = PARSEmbedder(encoder=source, pooling="channels", verbose=0)
        yield name, LinearProbe(features, C=C)
        yield name + CENTRED, LinearProbe(SubjectCentering(features), C=C)


def probes(out: Path, eeg: Path, draws: int) -> None:
    tables = []
    for name, windows, given in tasks(eeg):
        with features_computed_once():
            scores = label_efficiency(
                dict(methods(out)),
                windows,
                seeds=range(draws),
                metrics=["balanced_accuracy"],
                dataset=name,
                out=out / f"probes, {name}",
                equal_sizes=False,
                **given,
            )
        scores = scores[scores["subject"] != "all"]
        print(scores.groupby("method", sort=False)["value"].mean().round(3).to_string(), flush=True)
        tables.append(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("pretrain", "probes"))
    parser.add_argument("out", type=Path, help="folder of the encoders and the scores")
    parser.add_argument("--eeg", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[], choices=VARIANTS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[*range(N_SEEDS)])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--draws", type=int, default=20)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning)
    if given.step == "pretrain":
        pretrain(given.out, given.eeg, given.only, given.seeds, given.epochs)
    else:
        probes(given.out, given.eeg, given.draws)


if __name__ == "__main__":
    main()
