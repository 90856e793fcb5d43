"""Scores of ``docs/measured/space_time``: encoders that compare channels, frozen."""

from __future__ import annotations

import pandas as pd
from stored_few_labels import _shown, _test, long_scores
from stored_scores import MEASURED

__all__ = ["FOLDER", "space_time_losses", "space_time_table", "space_time_tests"]

FOLDER = MEASURED / "space_time"
#: Development sets, and what is asked.
SETS = {"arithmetic": "rest or arithmetic", "imagery": "imagery or rest", "hands": "left vs right"}
_UNTRAINED, _BOTH = "random encoder", "features and spectra"
#: Method, and what it is compared with.
COMPARED = (
    ("PARS, one channel", "random encoder, one channel"),
    ("PARS over the head", _UNTRAINED),
    ("PARS over the head, by token", _UNTRAINED),
    (_BOTH, _UNTRAINED),
    (_BOTH, "features and spectra, one channel"),
    ("features, spectra and PARS by token", _BOTH),
    ("features, spectra and PARS by token", "small"),
)


def _scores(name: str) -> pd.DataFrame:
    return long_scores(FOLDER / f"{name}.csv")


def space_time_table() -> pd.DataFrame:
    """Return means of each method, plain and centered by subject, and the range of pretrainings."""
    columns = {}
    for name, question in SETS.items():
        scores = _scores(name)
        for centered, word in ((False, ""), (True, ", centered")):
            own = scores[scores["centered"] == centered].groupby("method", sort=False)
            columns[question + word] = own.apply(_cell, include_groups=False)
    return pd.DataFrame(columns).rename_axis("method").reset_index()


def _cell(own: pd.DataFrame) -> str:
    text = f"{own['value'].mean():.3f}"
    if own["pretraining_seed"].nunique() > 1:
        of_seeds = own.groupby("pretraining_seed")["value"].mean()
        text += f" ({of_seeds.min():.3f} to {of_seeds.max():.3f})"
    return text


def space_time_tests(name: str) -> pd.DataFrame:
    """Compare methods with their twins, plain; people, draws and pretrainings are random."""
    scores = _scores(name)
    scores = scores[~scores["centered"]]
    (n,) = scores["n_train_subjects"].unique()
    tests = {}
    for method, other in COMPARED:
        pair = scores[scores["method"].isin([method, other])]
        tests[n, f"{method} - {other}"] = _test(pair, method, other)
    return _shown(tests, "compared")


def space_time_losses() -> pd.DataFrame:
    """Return training losses relative to chance, means of three pretrainings, by task or axis."""
    stored = pd.read_csv(FOLDER / "losses.csv", comment="#")
    parts = stored["part"].str.replace("_space_time", "").str.replace("_by_token", "")
    means = stored.assign(part=parts).groupby(["method", "part"], sort=False)["loss"].mean()
    wide = means.unstack(sort=False)[["x", "y", "z", "t", "features", "spectral", "pars", "all"]]
    return wide.map("{:.2f}".format).replace("nan", "").reset_index()
