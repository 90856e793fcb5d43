"""Tables and figure of ``docs/measured/subject_information.csv``: how much of the features is the person."""

from __future__ import annotations

import numpy as np
import pandas as pd
from stored_scores import MEASURED

from braindecode_pars import plotting

__all__ = ["FILE", "subject_figure", "subject_number", "subject_rows"]

FILE = MEASURED / "subject_information.csv"
#: Title of a column, and the number in it: property, measure and what is erased.
COLUMNS = {
    "variance: person": ("subject", "explained variance", "nothing"),
    "variance: class": ("class", "explained variance", "nothing"),
    "accuracy: person": ("subject", "balanced accuracy", "nothing"),
    "accuracy: class": ("class", "balanced accuracy", "nothing"),
    "class, training people erased": ("class", "balanced accuracy", "training subjects"),
    "class, all people erased": ("class", "balanced accuracy", "all subjects"),
    "cosine": ("class", "cosine", "nothing"),
}


def subject_number(control: str, features: str, what: str, erased: str = "nothing") -> float:
    """Return a value, or the mean of its permutations: "person share of variance null"."""
    column = "null" if what.endswith(" null") else "value"
    named, _, measure = what.removesuffix(" null").partition(" ")
    rows = _table(control).set_index(["features", "property", "measure", "erased"]).sort_index()
    return rows.loc[(features, named, measure, erased), column]


def subject_rows(control: str) -> pd.DataFrame:
    """Return a row for each kind of features; in brackets the mean of permutations."""
    table = _table(control)
    rows = []
    for name, own in table.groupby("features", sort=False):
        found = own.set_index(["property", "measure", "erased"]).sort_index()
        row = {"features": name}
        for title, key in COLUMNS.items():
            number = found.loc[key]
            row[title] = f"{number['value']:z.2f}"
            if np.isfinite(number["null_high"]):
                row[title] += f" ({number['null']:z.2f})"
        rows.append(row)
    return pd.DataFrame(rows)


def subject_figure(control: str) -> np.ndarray:
    """Draw the numbers on windows as they are, or of a control."""
    return plotting.subjects_in_features(_table(control))


def _table(control: str) -> pd.DataFrame:
    return pd.read_csv(FILE, comment="#").query("control == @control")
