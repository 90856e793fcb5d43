"""Number of patches, position mask ratio, sampling and decoder of PARS, on the sample of sleep.

    python docs/experiments/sleep_ablation.py OUT

PARS is pretrained on six people of the sample in the package, in 700 steps of 64, once for each
setting.
Stage 3 or 4 of the other six is scored as in ``sleep.py``, with the labels of four people.
Writes ``docs/measured/sleep/ablation.csv``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
from braindecode.datasets import BaseConcatDataset
from sleep import MEASURED, N_DRAWS, Asked, halves, scored
from stored_table import store_table

from braindecode_pars import PARSEmbedder, datasets

N_LABELLED = 4
HALF = 0
#: Settings of PARS; the first ones are a part of the paper's grid of patches and ratios.
SETTINGS: list[dict[str, Any]] = [
    *(dict(n_patches=40, position_mask_ratio=ratio) for ratio in (0.8, 0.4, 1.0)),
    dict(n_patches=20, position_mask_ratio=0.8),
    dict(sampling="grid", position_mask_ratio=0.8),
    dict(n_patches=40, position_mask_ratio=0.8, decoder="mlp"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder of the encoders")
    given = parser.parse_args()
    windows = datasets.sleep()
    asked = Asked.of(windows, "deep")
    rows = []
    for settings in SETTINGS:
        folder = given.out / ", ".join(f"{name} {value}" for name, value in settings.items())
        if not (folder / "encoder.json").exists():
            embedder = PARSEmbedder(
                "pars",
                pretext_params=settings,
                pooling="channels",
                pretrain_batch_size=64,
                random_state=0,
                verbose=0,
            )
            half = BaseConcatDataset([windows.datasets[k] for k in halves(windows)[HALF]])
            embedder.fit(half).save(folder)
        embedder = PARSEmbedder(encoder=folder, pooling="channels", verbose=0)
        features = embedder.fit(asked.windows).transform(asked.windows)
        draws = pd.DataFrame(scored(asked, HALF, features, [N_LABELLED], N_DRAWS))
        people = [name for name in draws if str(name).startswith("ucddb")]
        of_draws = draws[people].mean(axis=1)
        default = dict(n_patches="", sampling="random", decoder="cross_attention")
        rows.append(
            default
            | settings
            | dict(
                loss=embedder.encoder_card_.loss_relative,
                balanced_accuracy=of_draws.mean(),
                sd_over_draws=of_draws.std(),
            )
        )
        print(rows[-1], flush=True)
    command = "python docs/experiments/sleep_ablation.py OUT"
    store_table(
        pd.DataFrame(rows), MEASURED / "ablation.csv", command, index=False, float_format="%.4g"
    )


if __name__ == "__main__":
    main()
