"""Does pretraining help on real sleep? Stage 3 or 4, and wake or deep sleep, of unseen people.

    python docs/experiments/sleep.py pretrain OUT --eeg FOLDER

FOLDER has the recordings of the UCD Sleep Apnea Database.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset
from safetensors.torch import save_file

from braindecode_pars import PARSEmbedder
from braindecode_pars.datasets.sample import STAGES, scored_epochs
from braindecode_pars.recordings.loading import Recording

#: Unit of the recorder in volts, which is not known: see ``datasets.sleep``.
UNIT = 100e-6
N_SEEDS = 3
#: Epochs of the pretraining on six people: as many steps as the default has on twelve.
EPOCHS = 100
#: Variant -> pretext task, and its parameters.
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "PARS": ("pars", {}),
    "MAE": ("mae", {}),
    "MP3": ("mp3", {}),
    "DropPos": ("droppos", {}),
    "PARS without overlap": ("pars", dict(overlap=False)),
    "features": ("features", {}),
}
TOKENIZERS = ("spectral", "linear")


def read(eeg: Path) -> BaseConcatDataset:
    """Return all scored windows of the nights in a folder."""
    datasets = []
    for file in sorted(eeg.rglob("ucddb*.npz")):
        with np.load(file, allow_pickle=False) as night:
            volts = night["x"] * float(night["scale"]) * UNIT
            table = pd.DataFrame({name: night[name] for name in ("stage", "position", "bad")})
        recording = Recording(file, dict(subject=file.stem, corpus="ucddb"))
        datasets.append(scored_epochs(volts, table, STAGES, recording))
    return BaseConcatDataset(datasets)


def halves(windows: BaseConcatDataset) -> list[list[int]]:
    """Return the numbers of the recordings in each half: every other person."""
    numbers = list(range(len(windows.datasets)))
    return [numbers[::2], numbers[1::2]]


def variants() -> Iterator[tuple[int, str, str, int]]:
    """Yield seed, variant, tokens and half, the most important first."""
    for seed in range(N_SEEDS):
        for tokenizer in TOKENIZERS:
            for name in TASKS:
                for half in range(2):
                    if not (tokenizer == "linear" and name in ("features", "PARS without overlap")):
                        yield seed, name, tokenizer, half


def folder_of(out: Path, seed: int, name: str, tokenizer: str, half: int) -> Path:
    return out / "encoders" / f"{name}, {tokenizer}, half {half}, seed {seed}"


def pretrain(out: Path, eeg: Path, only: list[str], part: list[int]) -> None:
    windows = read(eeg)
    for i, (seed, name, tokenizer, half) in enumerate(variants()):
        folder = folder_of(out, seed, name, tokenizer, half)
        if (folder / "encoder.json").exists() or (only and name not in only) or half not in part:
            continue
        task, params = TASKS[name]
        embedder = PARSEmbedder(
            task,
            pretext_params=params,
            pooling="channels",
            tokenizer=tokenizer,
            pretrain_epochs=EPOCHS,
            random_state=seed,
            verbose=0,
        )
        embedder.fit(BaseConcatDataset([windows.datasets[k] for k in halves(windows)[half]]))
        embedder.save(folder)
        save_file(embedder.task_.state_dict(), folder / "task.safetensors")
        last = embedder.history_.iloc[-1]
        embedder.history_.to_csv(folder / "history.csv", index=False)
        print(i, folder.name, round(last["train_loss_relative"], 3), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("pretrain",))
    parser.add_argument("out", type=Path, help="folder of the encoders and the scores")
    parser.add_argument("--eeg", type=Path, required=True, help="folder of the recordings")
    parser.add_argument("--only", nargs="*", default=[], choices=TASKS)
    parser.add_argument("--half", nargs="*", type=int, default=[0, 1])
    given = parser.parse_args()
    pretrain(given.out, given.eeg, given.only, given.half)


if __name__ == "__main__":
    main()
