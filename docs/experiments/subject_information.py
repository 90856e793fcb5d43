"""How much subject information do features of rest and mental arithmetic contain?

    python docs/experiments/subject_information.py ENCODERS

The bundled dataset of EEGMAT: two minutes per subject, 24 subjects, eight channels, windows of 10
s. The features are from bundled encoders, ENCODERS/noise (``synthetic_signals.py``) and a random
encoder, separately for each channel, and hand-crafted features; of unchanged windows, of windows
without the aperiodic component of their spectra, and after a sham removal. Writes the tables of
``audit_subjects`` to ``docs/measured/subject_information.csv``. The command takes two minutes on
one core.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from pyriemann.tangentspace import TangentSpace
from sklearn.pipeline import make_pipeline
from stored_table import store_table

from braindecode_pars import PARSEmbedder, PatchEncoder, as_sklearn, datasets
from braindecode_pars.evaluation import (
    ChannelFeatures,
    ControlSignals,
    LogBandPower,
    SpatialCovariance,
    audit_subjects,
)
from braindecode_pars.pretrained import load_encoder

__all__ = ["transformers"]

MEASURED = Path(__file__).parents[1] / "measured" / "subject_information.csv"
ENCODERS = ("small", "pars-sleep")


def main(encoders: Path) -> None:
    X, y, subjects = as_sklearn(datasets.mental_arithmetic())
    recordings = X.table["recording"].to_numpy()
    found = []
    for control in ("none", "aperiodic", "sham"):
        changed = X if control == "none" else ControlSignals(control).transform(X)
        methods = transformers(encoders)
        features = {name: own.fit_transform(changed) for name, own in methods.items()}
        table = audit_subjects(features, y, subjects, recordings)
        table.insert(0, "control", control)
        found.append(table)
    store_table(
        pd.concat(found),
        MEASURED,
        "python docs/experiments/subject_information.py ENCODERS",
        index=False,
        float_format="%.4f",
    )


def transformers(folder: Path) -> dict[str, Any]:
    """Return transformers of windows to features, by name."""
    torch.manual_seed(0)
    untrained = PatchEncoder(**load_encoder("small").encoder.config)
    sources = {name: name for name in ENCODERS} | {"noise": folder / "noise"}
    encoders = sources | {"random encoder": untrained}
    of_channels = dict(pooling="channels", verbose=0)
    found = {name: PARSEmbedder(encoder=own, **of_channels) for name, own in encoders.items()}
    return found | {
        "hand-crafted features": ChannelFeatures(),
        "log band power": LogBandPower(),
        "tangent space": make_pipeline(SpatialCovariance(), TangentSpace()),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
