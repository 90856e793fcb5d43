"""Audit encoders: which signal properties can be decoded from their features?

    python docs/experiments/audit.py FOLDER ENCODERS

FOLDER contains PhysioNet's motor imagery recordings. ENCODERS contains the runs of the encoders
that were bundled with version 0.2.0, as pretrained by ``reproduce.py``, and the encoder noise of
``synthetic_signals.py``. Every encoder is audited on the bundled dataset (24 subjects, rest and
mental arithmetic), on motor imagery trials (subjects 51 to 70; each run is a session), and on both
datasets with their shared channels. No encoder was trained on these subjects. Writes
``docs/measured/audits.csv``, and the entry ``audit`` of the card of each bundled encoder; the
weights do not change.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from braindecode.datasets import BaseConcatDataset
from real_recordings import FORMER, PREPARED, SCORED
from stored_table import store_table

from braindecode_pars import datasets
from braindecode_pars._common.model_files import bundled_folder, bundled_names
from braindecode_pars.cli.describing import recordings_text
from braindecode_pars.evaluation import audit_encoder
from braindecode_pars.evaluation.audits import audit_table
from braindecode_pars.pretrained import load_encoder, save_encoder

__all__ = ["MEASURED", "store_on_card", "stored_audits"]

MEASURED = Path(__file__).parents[1] / "measured" / "audits.csv"


def main(eeg: Path, folder: Path) -> None:
    imagery = datasets.physionet_mi.load(
        eeg, list(SCORED), tmin=1, tmax=4, contrast="rest", verbose=0, **PREPARED
    )
    imagery.set_description({"session": imagery.description["run"].tolist()})
    arithmetic = datasets.mental_arithmetic(window_seconds=3)
    corpora = {
        "arithmetic": ("Rest and mental arithmetic (EEGMAT)", datasets.mental_arithmetic(), 10.0),
        "imagery": ("Imagined movements and rest (PhysioNet, subjects 51 to 70)", imagery, 3.0),
        "both": ("Both corpora", BaseConcatDataset([arithmetic, imagery]), 3.0),
    }
    encoders = {name: bundled_folder(name) for name in bundled_names()}
    former = {name: folder / run for name, run in FORMER.items()}
    former = {"features-noise": folder / "noise", **former}
    tables = []
    for name, (title, windows, seconds) in corpora.items():
        audit = audit_encoder(encoders | former, windows)
        audit.insert(0, "recordings", recordings_text(title, audit, seconds))
        audit.insert(0, "windows", name)
        tables.append(audit)
    audits = pd.concat(tables)
    store_table(
        audits,
        MEASURED,
        "python docs/experiments/audit.py FOLDER ENCODERS",
        index=False,
        float_format="%.4f",
    )
    for name in set(encoders) - {"pars-sleep"}:  # audited by sleep_encoder.py
        store_on_card(encoders[name], stored_audits(name))


def stored_audits(name: str, file: Path = MEASURED) -> list[dict[str, Any]]:
    """Return the stored audits of an encoder in the format of its card, one table per dataset."""
    _, origin, *_ = file.read_text(encoding="utf-8").splitlines()
    audits = pd.read_csv(file, comment="#").query("encoder == @name")
    return [
        dict(
            recordings=recordings,
            measured=origin.removeprefix("# "),
            table=audit_table(audit).to_dict("list"),
        )
        for recordings, audit in audits.groupby("recordings", sort=False)
    ]


def store_on_card(folder: Path, audit: list[dict[str, Any]]) -> None:
    """Write audits to the card of a bundled encoder, without changing its weights.

    Examples
    --------
    >>> from audit import store_on_card
    >>> store_on_card("shipped/features-eegmmidb", [])  # doctest: +SKIP
    """
    encoder, card, _ = load_encoder(folder)
    card = replace(card, about={**card.about, "audit": audit})
    save_encoder(encoder.half(), card, folder)  # in the format of make_encoder.py


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
