"""What do the features of the encoders in the package, and of two former ones, hold?

    python docs/experiments/audit.py FOLDER ENCODERS

FOLDER has PhysioNet's motor imagery recordings, and ENCODERS the runs of the encoders that were in
the package of version 0.2.0, as ``reproduce.py`` pretrains them, and of ``synthetic_signals.py``
the encoder noise. Every encoder is audited on the sample in the package (24 people, rest and mental
arithmetic), on trials of motor imagery (people 51 to 70; each run is a session), and on the
channels that both have. No encoder was trained on these people. Writes
``docs/measured/audits.csv``, and the entry ``audit`` of the card of each encoder; the weights stay
the same.
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
        "imagery": ("Imagined movements and rest (PhysioNet, people 51 to 70)", imagery, 3.0),
        "both": ("Both corpora", BaseConcatDataset([arithmetic, imagery]), 3.0),
    }
    encoders = {name: bundled_folder(name) for name in bundled_names()}
    former = {name: folder / run for name, run in FORMER.items()}
    former = {"features-noise": folder / "noise", **former}
    found = []
    for name, (title, windows, seconds) in corpora.items():
        audit = audit_encoder(encoders | former, windows)
        audit.insert(0, "recordings", recordings_text(title, audit, seconds))
        audit.insert(0, "windows", name)
        found.append(audit)
    audits = pd.concat(found)
    store_table(
        audits,
        MEASURED,
        "python docs/experiments/audit.py FOLDER ENCODERS",
        index=False,
        float_format="%.4f",
    )
    for name in set(encoders) - {"pars-sleep"}:  # which sleep_encoder.py has audited
        store_on_card(encoders[name], stored_audits(name))


def stored_audits(name: str, file: Path = MEASURED) -> list[dict[str, Any]]:
    """Return the stored audits of an encoder as on its card: a table for each recordings."""
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
    """Write audits onto the card of an encoder in the package; its weights stay the same.

    Examples
    --------
    >>> from audit import store_on_card
    >>> store_on_card("shipped/features-eegmmidb", [])  # doctest: +SKIP
    """
    encoder, card, _ = load_encoder(folder)
    card = replace(card, about={**card.about, "audit": audit})
    save_encoder(encoder.half(), card, folder)  # as make_encoder.py has stored them


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
