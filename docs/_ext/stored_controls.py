"""Scores of ``docs/measured/controls``: linear probes on control signals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from stored_scores import MEASURED

from braindecode_pars import plotting
from braindecode_pars.evaluation import control_gains
from braindecode_pars.evaluation.controls import CONTROLS, UNCHANGED

__all__ = ["FOLDER", "control_figure", "control_means", "control_scores", "gains", "numbers"]

FOLDER = MEASURED / "controls"
#: Encoders; the last two were bundled with version 0.2.0.
ENCODERS = ("small", "noise", "spectral-eegmmidb", "pars-eegmmidb")
#: Method that the encoders are compared with.
RANDOM = "random encoder"
#: Names of controls in the tables.
CONTROL_NAMES = {
    UNCHANGED: "unchanged",
    "slow": "high-pass filtered",
    "eyes": "frontal channels regressed out",
    "phase": "phase-randomized",
    "aperiodic": "1/f removed",
    "amplitude": "amplitude-normalized",
    "order": "time-shuffled",
    "labels": "label permutation",
}


def control_scores(name: str) -> pd.DataFrame:
    """Return tidy scores of a task, in the format of ``evaluation.controls``."""
    wide = pd.read_csv(FOLDER / f"{name}.csv", comment="#")
    keys = ["method", "control", "n_train_subjects", "seed"]
    scores = wide.melt(keys, var_name="subject", value_name="value")
    design = dict(protocol="label_efficiency", dataset=name, metric="balanced_accuracy", chance=0.5)
    scores = scores.assign(**design)
    # The file is sorted by name.
    order = [UNCHANGED, *CONTROLS]
    return scores.sort_values("control", key=lambda names: names.map(order.index), kind="stable")


def numbers(name: str) -> list[int]:
    """Return the numbers of labeled subjects."""
    return sorted(control_scores(name)["n_train_subjects"].unique())


def gains(name: str) -> pd.DataFrame:
    """Return the differences between the encoders and a random encoder."""
    scores = control_scores(name)
    shown = scores[scores["method"].isin([*ENCODERS, RANDOM])]
    return control_gains(shown, against=RANDOM)


def control_means(name: str, n: int) -> pd.DataFrame:
    """Return means over subjects and draws, by method and control signal."""
    scores = control_scores(name)
    scores = scores[scores["n_train_subjects"] == n]
    means = scores.groupby(["method", "control"], sort=False)["value"].mean().unstack(sort=False)
    baselines = [method for method in means.index if method not in (*ENCODERS, RANDOM)]
    means = means.loc[[*ENCODERS, RANDOM, *baselines]]
    means = means.rename(columns=CONTROL_NAMES)
    return means.map("{:.3f}".format).reset_index()


def control_figure(name: str) -> np.ndarray:
    """Plot differences from a random encoder, on unchanged windows and on control signals."""
    return plotting.control_gains(gains(name))
