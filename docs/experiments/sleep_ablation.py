"""Ablation of PARS: number of patches, position mask ratio, sampling and decoder.

    python docs/experiments/sleep_ablation.py OUT

PARS is pretrained on six of the twelve subjects of the bundled sleep dataset, in 50 epochs with
batches of 64, once per setting, and again on the other six subjects. Stage 3 vs. 4 of held-out
subjects is scored as in ``sleep.py``, with four labeled subjects. An interrupted command resumes
when it is run again. Writes ``docs/measured/sleep/ablation.csv``.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

from braindecode.datasets import BaseConcatDataset
from sleep import MEASURED, N_DRAWS, PREVIOUS, TaskWindows, halves, joined_halves, scored
from stored_table import store_table

from braindecode_pars import PARSEmbedder, datasets

N_LABELED = 4
#: The setting of the paper, and some settings of its ablations.
PAPER = dict(n_patches=40, position_mask_ratio=0.8, sampling="random", decoder="cross_attention")
SETTINGS: list[dict[str, Any]] = [
    *(
        PAPER | dict(n_patches=n, position_mask_ratio=ratio)
        for n, ratio in product((20, 30, 40), (0.4, 0.8, 1.0))
    ),
    PAPER | dict(n_patches=None, sampling="grid"),
    PAPER | dict(decoder="mlp"),
]
KEYS = [*PAPER, "seed"]


def pretrained(folder: Path, windows: BaseConcatDataset, settings: dict[str, Any]) -> PARSEmbedder:
    """Return the embedder in a folder, pretraining it if necessary."""
    if not (folder / "encoder.json").exists():
        params = {name: value for name, value in settings.items() if value is not None}
        embedder = PARSEmbedder("pars", pretext_params=params, pretrain_epochs=50, **PREVIOUS)
        embedder.set_params(pooling="channels", random_state=0, verbose=0)
        embedder.fit(windows).save(folder)
    return PARSEmbedder(encoder=folder, pooling="channels", verbose=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder of the encoders")
    options = parser.parse_args()
    windows = datasets.sleep()
    task_windows = TaskWindows.of(windows, "deep")
    rows = []
    for settings, half in product(SETTINGS, range(2)):
        name = ", ".join(str(value) for value in settings.values())
        own = BaseConcatDataset([windows.datasets[k] for k in halves(windows)[half]])
        embedder = pretrained(options.out / f"{name}, half {half}", own, settings)
        features = embedder.fit(task_windows.windows).transform(task_windows.windows)
        loss = {f"loss_{half}": embedder.encoder_card_.loss_relative}
        for row in scored(task_windows, half, features, [N_LABELED], N_DRAWS):
            rows.append(settings | dict(n_patches=settings["n_patches"] or 0) | loss | row)
        print(name, half, loss, flush=True)
    command = "python docs/experiments/sleep_ablation.py OUT"
    table = joined_halves(rows, KEYS)
    store_table(table, MEASURED / "ablation.csv", command, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
