"""Create the bundled encoder ``pars-sleep``: PARS on twelve subjects of the UCD database.

    python docs/experiments/sleep_encoder.py OUT --eeg FOLDER

Pretrains three seeds with the default settings of PARSEmbedder on all windows, each with one of the
twelve subjects held out, and bundles the encoder with the median held-out loss. OUT is a folder for
the three encoders. Predicted shifts of one window are written to
``docs/measured/sleep/shifts.csv``, the losses of the three seeds to ``seeds.csv``, and a probing
analysis of the features, on the bundled arithmetic dataset, to ``audit.csv`` and to the encoder
card.
"""

from __future__ import annotations

import argparse
import copy
import platform
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from audit import store_on_card, stored_audits
from safetensors.torch import load_file, save_file
from sleep import MEASURED, read
from stored_table import store_table

from braindecode_pars import PARSEmbedder, as_sklearn, datasets
from braindecode_pars._common.files import replace_file
from braindecode_pars._common.held_out import N_MEASURED
from braindecode_pars._common.model_files import FOLDER
from braindecode_pars.cli.describing import recordings_text
from braindecode_pars.evaluation import audit_encoder
from braindecode_pars.pretext import PARS
from braindecode_pars.pretrained import load_encoder, save_encoder

NAME, N_SEEDS = "pars-sleep", 3
COMMAND = "python docs/experiments/sleep_encoder.py OUT --eeg FOLDER"
#: Subject of the stored window, whose relative loss is at the 10th percentile.
SHOWN = "ucddb022"

ABOUT: dict[str, Any] = {
    "name": NAME,
    "description": "An encoder that was pretrained on sleep EEG with the task pars.",
    "license": "ODC-BY 1.0",
    "attribution": [
        "McNicholas W., Doherty L., Ryan S., Garvey J., Boyle P., Chua E.: St. Vincent's "
        "University Hospital / University College Dublin Sleep Apnea Database. PhysioNet. "
        "https://doi.org/10.13026/C26C7D",
        "Goldberger A. L. et al. (2000): PhysioBank, PhysioToolkit, and PhysioNet. Circulation "
        "101(23):e215-e220. https://doi.org/10.1161/01.CIR.101.23.e215",
    ],
    "corpora": ["UCD Sleep Apnea Database 1.0.0 (PhysioNet)"],
    "reference": "as recorded",
    "channels": ["C3-A2 or C4-A1"],
    "limits": (
        "Not for diagnosis, nor for any decision about a person. The twelve subjects are patients "
        "with suspected sleep apnea. It was trained on wake and the stages 3 and 4; of one subject "
        "also on REM and light sleep. It detects features of single channels."
    ),
    "command": COMMAND,
}

README = """\
# {name}

{description} It contains information from
the *St. Vincent's University Hospital / University College Dublin Sleep Apnea Database* 1.0.0
(<https://physionet.org/content/ucddb/1.0.0/>), which is made available under the
[Open Data Commons Attribution License 1.0](https://opendatacommons.org/licenses/by/1-0/)
(ODC-BY 1.0). The encoder has the same license. Cite:

{cite}

Changes to the recordings: one channel (C3-A2 or C4-A1), sampled at 128 Hz, was divided into the
30-s windows of the hypnogram. The encoder was trained on these windows without labels. This folder
contains the weights of the encoder, but no recordings.

- Subjects: {people}
- Loss on {held_out_people}: {loss:.3f} times the chance-level loss (below 1 is better than chance)
- Date of training: {date}
- Machine: {machine}
- Limitations: {limits}

`encoder.safetensors` contains the weights and the encoder card (a description of the training
data); `encoder.json` is a human-readable copy of the card. To train the encoder again and create
this folder, run:

```sh
{command}
```
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder of the encoders")
    parser.add_argument("--eeg", type=Path, required=True, help="folder of the recordings")
    options = parser.parse_args()
    windows = read(options.eeg)
    folders = [options.out / "pars-sleep" / f"seed {seed}" for seed in range(N_SEEDS)]
    for seed, folder in enumerate(folders):
        if not (folder / "encoder.json").exists():
            embedder = PARSEmbedder(pooling="channels", random_state=seed, verbose=0).fit(windows)
            embedder.save(folder)
            save_file(embedder.task_.state_dict(), folder / "task.safetensors")
            print(seed, load_encoder(folder).card, flush=True)
    found = [load_encoder(folder).card for folder in folders]
    rows = [(seed, card.n_steps, card.held_out_loss_relative) for seed, card in enumerate(found)]
    losses = pd.DataFrame(rows, columns=["seed", "n_steps", "loss_relative"])
    store_table(losses, MEASURED / "seeds.csv", COMMAND, index=False, float_format="%.4g")
    middle = int(losses.sort_values("loss_relative")["seed"].iloc[N_SEEDS // 2])
    store_shifts(folders[middle], windows)
    ship(folders[middle], middle)
    audit = audit_encoder({NAME: FOLDER / NAME}, datasets.mental_arithmetic())
    title = "Rest and mental arithmetic (EEGMAT)"
    audit.insert(0, "recordings", recordings_text(title, audit, 10.0))
    store_table(audit, MEASURED / "audit.csv", COMMAND, index=False, float_format="%.4f")
    store_on_card(FOLDER / NAME, stored_audits(NAME, MEASURED / "audit.csv"))


def ship(folder: Path, seed: int) -> None:
    """Write the encoder into the package, with a complete card."""
    encoder, card, _ = load_encoder(folder)
    held_out = {
        "people": "one of the twelve subjects, held out of training",
        "loss_relative": round(card.held_out_loss_relative or 0.0, 4),
        "parts": {},
        "n_crops": N_MEASURED,
        "seed": seed,
    }
    versions = card.versions
    about = ABOUT | {
        "people": [f"{len(card.subjects or [])} patients with suspected sleep apnea"],
        "band": [0, 64],
        "held_out": held_out,
        "date": str(date.today()),
        "machine": f"1 process on cpu, Python {platform.python_version()}, "
        f"torch {versions['torch']}",
    }
    prepared = replace(card.preprocessing, reference="as recorded")
    card = replace(card, about=about, preprocessing=prepared)
    target = save_encoder(copy.deepcopy(encoder).half(), card, FOLDER / NAME)
    text = README.format(
        **about | {"people": about["people"][0]},
        cite="\n".join(f"- {reference}" for reference in about["attribution"]),
        held_out_people=held_out["people"],
        loss=held_out["loss_relative"],
    )
    replace_file(target / "README.md", text)


def store_shifts(folder: Path, windows: Any) -> None:
    """Store predicted and true shifts of a window, with patches sorted by time."""
    task = PARS(3840, 128, encoder=load_encoder(folder).encoder, **PARS.short_params).eval()
    task.load_state_dict(load_file(folder / "task.safetensors"))
    X, _, subjects = as_sklearn(windows)
    rows = np.flatnonzero(subjects == SHOWN)
    torch.manual_seed(0)
    with torch.inference_mode():
        x = torch.as_tensor(np.concatenate([X[i] for i in rows.tolist()]))
        predicted, target = (shifts.numpy() for shifts in task(x))
    losses = [np.square(part).mean(axis=(1, 2)) for part in (predicted - target, target)]
    shown = np.argsort(losses[0] / losses[1])[len(rows) // 10]
    predicted, target = predicted[shown], target[shown]
    order = np.argsort(target[:, 0])
    table = pd.DataFrame(
        {
            "row": np.repeat(np.arange(len(order)), len(order)),
            "column": np.tile(np.arange(len(order)), len(order)),
            "true": target[np.ix_(order, order)].ravel(),
            "predicted": predicted[np.ix_(order, order)].ravel(),
        }
    )
    store_table(table, MEASURED / "shifts.csv", COMMAND, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
