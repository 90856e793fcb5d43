"""Do encoders of all channels, and relative shifts over the head, improve the features?

    python docs/experiments/space_time.py store OUT --eeg FOLDER
    python docs/experiments/space_time.py pretrain OUT --device cuda
    python docs/experiments/space_time.py losses OUT
    python docs/experiments/space_time.py probes OUT --eeg FOLDER

FOLDER contains PhysioNet's motor imagery recordings. The first command stores 19 channels of
subjects 1 to 50. The second command pretrains each variant on them without labels, with the same
number of steps and three seeds; an interrupted command resumes when it is run again, and ``--only``
and ``--seed`` select a part for parallel processes. The third command stores the final losses. The
fourth command scores linear probes on frozen features, with one vector per channel, on development
subjects: rest vs. arithmetic of twelve subjects of the bundled dataset, and imagined movement vs.
rest and left vs. right fist of subjects 1 to 50.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from braindecode.datasets import BaseConcatDataset
from few_labels import by_subject
from real_recordings import PREPARED, PRETRAINED, SIZES
from sklearn.base import BaseEstimator
from stored_table import store_table
from torch import Tensor

from braindecode_pars import PARSEmbedder, SubjectCentering, datasets
from braindecode_pars.baselines import CENTERED
from braindecode_pars.estimators import LinearProbe
from braindecode_pars.evaluation import features_computed_once, label_efficiency
from braindecode_pars.models.electrodes import HEAD_RADIUS
from braindecode_pars.models.space_time import build_encoder
from braindecode_pars.pretext import SpaceTimePARS
from braindecode_pars.pretext.base import register
from braindecode_pars.pretrained import EncoderCard, save_encoder
from braindecode_pars.runs import RunConfig, pretrain
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.tokens import grid_patches, instance_norm, sinusoidal_positions

MEASURED = Path(__file__).parents[1] / "measured" / "space_time"

CHANNELS = [
    *("Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T7", "C3", "Cz", "C4", "T8"),
    *("P7", "P3", "Pz", "P4", "P8", "O1", "O2"),
]
SFREQ, C, N_SEEDS = 128, 0.01, 3


@register("pars_by_token")
class ByToken(SpaceTimePARS):
    """PARS over the head on a grid of times that all channels share.

    80 % of all tokens lose both their position on the head and their time. A neighboring token at
    the same time may keep both.
    """

    n_queries = 40

    def forward(
        self, x: Tensor, positions: Tensor | None = None, keep: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the predicted and the true shifts, as :class:`SpaceTimePARS` does."""
        x, positions, keep = self.windows(x, positions, keep)
        patches = grid_patches(instance_norm(x), self.patch_size)
        n_patches = patches.shape[2]
        hidden = torch.rand(*keep.shape, n_patches, device=x.device) < self.position_mask_ratio

        # Tokens, with their position and time unless these are hidden.
        tokens = self.encoder.tokens_of(patches, x, keep)
        times = torch.arange(n_patches, device=x.device)
        when = sinusoidal_positions(times, self.encoder.embed_dim)
        where = self.encoder.places(positions, keep)[:, :, None]
        unknown = self.encoder.places(torch.full_like(positions, torch.nan), keep)[:, :, None]
        shown = torch.where(hidden[..., None], self.mask_token + unknown, when + where)
        features = self.encoder(tokens + shown, keep)

        # Shifts between some of the hidden tokens.
        there = keep[..., None].expand_as(hidden).flatten(1)
        chances = (hidden.flatten(1) & there) + 1e-6 * there
        chosen = chances.multinomial(self.n_queries, replacement=True)
        channels, numbers = chosen // n_patches, chosen % n_patches
        prediction = self.predict_shifts(features, keep, channels, numbers)
        place = positions.gather(1, channels[..., None].expand(-1, -1, 3)) / HEAD_RADIUS
        time = (numbers * self.patch_size / self.n_times)[..., None]
        place = torch.cat([place, time], dim=-1)
        return prediction, place[:, :, None] - place[:, None]


_FEATURES = {"features_space_time": 1.0, "spectral_space_time": 1.0}
#: Pretext task and its parameters, by variant.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "PARS, one channel": ("pars", {}),
    "PARS over the head": ("pars_space_time", {}),
    "PARS over the head, by token": ("pars_by_token", {}),
    "features and spectra, one channel": ("joint", dict(tasks=dict(features=1.0, spectral=1.0))),
    "features and spectra": ("joint_space_time", dict(tasks=_FEATURES)),
    "features, spectra and PARS by token": (
        "joint_space_time",
        dict(tasks={**_FEATURES, "pars_by_token": 1.0}),
    ),
}
UNTRAINED = {"random encoder": "space_time", "random encoder, one channel": "patch"}
#: Number of labeled subjects and of draws, by development dataset.
SETS = {"arithmetic": (4, 20), "imagery": (16, 8), "hands": (16, 8)}


def store_of(out: Path, eeg: Path) -> SignalStore:
    others = [subject for subject in range(1, 110) if subject not in PRETRAINED]
    corpus = datasets.RECIPES["physionet_mi"].continuous(
        eeg, exclude=[others], **{**PREPARED, "picks": CHANNELS}
    )
    return SignalStore.create(out / "store", corpus)


def pretrain_all(
    out: Path, only: list[str], seeds: list[int], steps: int, device: str, verbose: int = 1
) -> None:
    store = SignalStore.open(out / "store", verbose=0)
    for seed, (variant, (task, params)) in product(seeds, VARIANTS.items()):
        if only and variant not in only:
            continue
        # One channel of 256 windows, or all channels of 64 windows (13 on average).
        n = 256 if variant.endswith("one channel") else 64
        config = RunConfig(
            task=task,
            task_params=params,
            window_seconds=(10.0, 3.0),
            steps_per_epoch=min(steps, 100),
            epochs=max(1, steps // 100),
            batch_size=n,
            lr=1e-3 if "features" in variant else 5e-4,
            weight_decay=1e-4,
            warmup=0.05,
            tokenizer="spectral",
            device=device,
            seed=seed,
            **SIZES,
        )
        folder = folder_of(out, variant, seed)
        pretrain(store, folder, config, resume=folder.exists(), verbose=verbose)


def folder_of(out: Path, variant: str, seed: int) -> Path:
    return out / "encoders" / f"{variant}, seed {seed}"


def losses(out: Path) -> None:
    """Store the relative losses of the last epoch, by pretext task or axis."""
    rows = []
    for variant, seed in product(VARIANTS, range(N_SEEDS)):
        last = pd.read_csv(folder_of(out, variant, seed) / "metrics.csv").iloc[-1]
        for part in ("x", "y", "z", "t", *VARIANTS[variant][1].get("tasks", ()), ""):
            column = f"train_loss_relative_{part}".rstrip("_")
            if column in last:
                rows.append((variant, seed, part or "all", last[column]))
    table = pd.DataFrame(rows, columns=["method", "seed", "part", "loss"])
    command = "python docs/experiments/space_time.py losses OUT"
    store_table(table.round(4), MEASURED / "losses.csv", command, index=False)


def sources(out: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name and the encoder of each method."""
    preprocessing = SignalStore.open(out / "store", verbose=0).preprocessing
    for seed, (name, kind) in product(range(N_SEEDS), UNTRAINED.items()):
        torch.manual_seed(seed)
        encoder = build_encoder(kind, patch_size=SFREQ, tokenizer="spectral", **SIZES)
        card = EncoderCard(sfreq=SFREQ, subjects=[], preprocessing=preprocessing)
        save_encoder(encoder, card, folder_of(out, name, seed))
    for name, seed in product((*UNTRAINED, *VARIANTS), range(N_SEEDS)):
        if (folder_of(out, name, seed) / "encoder.json").exists():
            yield f"{name}, seed {seed}", folder_of(out, name, seed)
    yield "small", "small"


def windows_of(name: str, eeg: Path) -> BaseConcatDataset:
    if name == "arithmetic":
        return datasets.mental_arithmetic([f"Subject{number:02d}" for number in range(12)])
    contrast = {"imagery": "rest", "hands": "movements"}[name]
    reading: Any = {**PREPARED, "picks": CHANNELS, "contrast": contrast}
    return datasets.physionet_mi.load(eeg, [*PRETRAINED], tmin=1, tmax=4, verbose=0, **reading)


def probes(out: Path, eeg: Path) -> None:
    for name, (n, draws) in SETS.items():
        windows, tables = windows_of(name, eeg), []
        for method, source in sources(out):
            features = PARSEmbedder(encoder=source, pooling="channels", verbose=0)
            own: dict[str, BaseEstimator] = {
                method: LinearProbe(features, C=C),
                method + CENTERED: LinearProbe(SubjectCentering(features), C=C),
            }
            with features_computed_once():
                scores = label_efficiency(
                    own,
                    windows,
                    cv=3,
                    n_train_subjects=[n],
                    seeds=range(draws),
                    metrics=["balanced_accuracy"],
                    dataset=name,
                    equal_sizes=False,
                    verbose=0,
                )
            tables.append(scores)
            print(name, method, scores.groupby("method")["value"].mean().round(3).to_dict())
        command = "python docs/experiments/space_time.py probes OUT --eeg FOLDER"
        table = by_subject(pd.concat(tables))
        store_table(table.round(4), MEASURED / f"{name}.csv", command, index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("store", "pretrain", "losses", "probes"))
    parser.add_argument("out", type=Path, help="folder of the store, the encoders and the scores")
    parser.add_argument("--eeg", type=Path)
    parser.add_argument("--only", nargs="*", default=[], choices=VARIANTS)
    parser.add_argument("--seed", nargs="*", type=int, default=[*range(N_SEEDS)])
    parser.add_argument("--steps", type=int, default=1300)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning)
    if options.step == "store":
        store_of(options.out, options.eeg)
    elif options.step == "pretrain":
        pretrain_all(options.out, options.only, options.seed, options.steps, options.device)
    elif options.step == "losses":
        losses(options.out)
    else:
        probes(options.out, options.eeg)


if __name__ == "__main__":
    main()
