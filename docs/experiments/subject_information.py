"""How much of the features is the person, in rest and mental arithmetic of 24 people?

    python docs/experiments/subject_information.py ENCODERS

The sample of EEGMAT in the package: two minutes of each person, eight channels, windows of 10 s.
The features are those of encoders in the package, of ENCODERS/noise (``synthetic_signals.py``) and
of an untrained one, each channel for itself, and classical ones; of windows as they are, without
the aperiodic part of their spectra, and with it put back. ``docs/measured/subject_information.csv`` gets the
tables of ``audit_subjects``. The command takes two minutes of one core.
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
    X, y, people = as_sklearn(datasets.mental_arithmetic())
    recordings = X.table["recording"].to_numpy()
    found = []
    for control in ("none", "aperiodic", "sham"):
        changed = X if control == "none" else ControlSignals(control).transform(X)
        methods = transformers(encoders)
        features = {name: own.fit_transform(changed) for name, own in methods.items()}
        table = audit_subjects(features, y, people, recordings)
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
    given = {name: name for name in ENCODERS} | {"noise": folder / "noise"}
    encoders = given | {"random encoder": untrained}
    of_channels = dict(pooling="channels", verbose=0)
    found = {name: PARSEmbedder(encoder=own, **of_channels) for name, own in encoders.items()}
    return found | {
        "hand-crafted features": ChannelFeatures(),
        "log band power": LogBandPower(),
        "tangent space": make_pipeline(SpatialCovariance(), TangentSpace()),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
