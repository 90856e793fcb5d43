"""Scores of ``docs/measured/controls``: encoders on windows that lack one thing."""

from __future__ import annotations

import numpy as np
import pandas as pd
from stored_scores import MEASURED

from braindecode_pars import plotting
from braindecode_pars.evaluation import control_gains
from braindecode_pars.evaluation.controls import CONTROLS, UNCHANGED

__all__ = ["FOLDER", "control_figure", "control_means", "control_scores", "gains", "numbers"]

FOLDER = MEASURED / "controls"
#: The last two are of version 0.2.0.
ENCODERS = ("small", "noise", "spectral-eegmmidb", "pars-eegmmidb")
#: What the encoders are compared with.
RANDOM = "random encoder"


def control_scores(name: str) -> pd.DataFrame:
    """Return tidy scores of a task, as ``evaluation.controls`` does."""
    wide = pd.read_csv(FOLDER / f"{name}.csv", comment="#")
    keys = ["method", "control", "n_train_subjects", "seed"]
    scores = wide.melt(keys, var_name="subject", value_name="value")
    facts = dict(protocol="label_efficiency", dataset=name, metric="balanced_accuracy", chance=0.5)
    scores = scores.assign(**facts)
    # The file is sorted by name.
    order = [UNCHANGED, *CONTROLS]
    return scores.sort_values("control", key=lambda each: each.map(order.index), kind="stable")


def numbers(name: str) -> list[int]:
    """Return the numbers of labeled people."""
    return sorted(control_scores(name)["n_train_subjects"].unique())


def gains(name: str) -> pd.DataFrame:
    """Return the gains of the encoders over the random one."""
    scores = control_scores(name)
    shown = scores[scores["method"].isin([*ENCODERS, RANDOM])]
    return control_gains(shown, against=RANDOM)


def control_means(name: str, n: int) -> pd.DataFrame:
    """Return the mean of every method over subjects and draws, a column for each control."""
    scores = control_scores(name)
    scores = scores[scores["n_train_subjects"] == n]
    means = scores.groupby(["method", "control"], sort=False)["value"].mean().unstack(sort=False)
    others = [method for method in means.index if method not in (*ENCODERS, RANDOM)]
    means = means.loc[[*ENCODERS, RANDOM, *others]]
    return means.map("{:.3f}".format).reset_index()


def control_figure(name: str) -> np.ndarray:
    """Draw the gains of the encoders, unchanged and in each control."""
    return plotting.control_gains(gains(name))
