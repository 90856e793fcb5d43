"""Scores of ``docs/measured/space_time``: linear probes on encoders of all channels."""

from __future__ import annotations

import pandas as pd
from stored_few_labels import _test, _test_table, long_scores
from stored_scores import MEASURED

__all__ = ["FOLDER", "space_time_losses", "space_time_table", "space_time_tests"]

FOLDER = MEASURED / "space_time"
#: Development datasets and their tasks.
SETS = {
    "arithmetic": "rest vs. arithmetic",
    "imagery": "imagined movement vs. rest",
    "hands": "left vs. right fist",
}
_RANDOM = "random encoder"
_BOTH = "features and spectra"
#: Methods and the methods that they are compared with.
COMPARED = (
    ("PARS, one channel", "random encoder, one channel"),
    ("PARS over the head", _RANDOM),
    ("PARS over the head, by token", _RANDOM),
    (_BOTH, _RANDOM),
    (_BOTH, "features and spectra, one channel"),
    ("features, spectra and PARS by token", _BOTH),
    ("features, spectra and PARS by token", "small"),
)


def _scores(name: str) -> pd.DataFrame:
    return long_scores(FOLDER / f"{name}.csv")


def space_time_table() -> pd.DataFrame:
    """Return mean scores by method, without and with centering, and the range over seeds."""
    columns = {}
    for name, task in SETS.items():
        scores = _scores(name)
        for centered, suffix in ((False, ""), (True, ", centered")):
            groups = scores[scores["centered"] == centered].groupby("method", sort=False)
            columns[task + suffix] = groups.apply(_cell, include_groups=False)
    return pd.DataFrame(columns).rename_axis("method").reset_index()


def _cell(scores: pd.DataFrame) -> str:
    text = f"{scores['value'].mean():.3f}"
    if scores["pretraining_seed"].nunique() > 1:
        seed_means = scores.groupby("pretraining_seed")["value"].mean()
        text += f" ({seed_means.min():.3f} to {seed_means.max():.3f})"
    return text


def space_time_tests(name: str) -> pd.DataFrame:
    """Test differences between methods without centering.

    Subjects, draws and pretraining seeds are crossed random effects.
    """
    scores = _scores(name)
    scores = scores[~scores["centered"]]
    (n,) = scores["n_train_subjects"].unique()
    tests = {}
    for method, reference in COMPARED:
        pair = scores[scores["method"].isin([method, reference])]
        tests[n, f"{method} minus {reference}"] = _test(pair, method, reference)
    return _test_table(tests, "compared methods")


#: Stored names of the parts of a loss, and their names in the table.
_PARTS = {
    "x": "left to right",
    "y": "back to front",
    "z": "vertical",
    "t": "time",
    "features": "features",
    "spectral": "spectra",
    "pars": "PARS",
    "all": "total loss",
}


def space_time_losses() -> pd.DataFrame:
    """Return relative training losses by pretext task or axis, averaged over three seeds."""
    stored = pd.read_csv(FOLDER / "losses.csv", comment="#")
    parts = stored["part"].str.replace("_space_time", "").str.replace("_by_token", "")
    means = stored.assign(part=parts).groupby(["method", "part"], sort=False)["loss"].mean()
    wide = means.unstack(sort=False)[[*_PARTS]].rename(columns=_PARTS)
    return wide.map("{:.2f}".format).replace("nan", "").reset_index()
