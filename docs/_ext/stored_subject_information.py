"""Tables and figure of ``subject_information.csv``: subject information in features."""

from __future__ import annotations

import numpy as np
import pandas as pd
from stored_scores import MEASURED

from braindecode_pars import plotting

__all__ = ["FILE", "subject_figure", "subject_number", "subject_rows"]

FILE = MEASURED / "subject_information.csv"
#: Column heads, with the property, the measure and the erased information of each column.
COLUMNS = {
    "variance explained by subject": ("subject", "explained variance", "nothing"),
    "variance explained by class": ("class", "explained variance", "nothing"),
    "balanced accuracy, subject": ("subject", "balanced accuracy", "nothing"),
    "balanced accuracy, class": ("class", "balanced accuracy", "nothing"),
    "class, training subjects erased": ("class", "balanced accuracy", "training subjects"),
    "class, all subjects erased (transductive)": ("class", "balanced accuracy", "all subjects"),
    "cosine of class directions between subjects": ("class", "cosine", "nothing"),
}


def subject_number(control: str, features: str, what: str, erased: str = "nothing") -> float:
    """Return a value, or its mean over permutations, "subject explained variance null"."""
    column = "null" if what.endswith(" null") else "value"
    name, _, measure = what.removesuffix(" null").partition(" ")
    rows = _table(control).set_index(["features", "property", "measure", "erased"]).sort_index()
    return rows.loc[(features, name, measure, erased), column]


def subject_rows(control: str) -> pd.DataFrame:
    """Return one row per kind of features, with means over permutations in parentheses."""
    table = _table(control)
    rows = []
    for name, feature_rows in table.groupby("features", sort=False):
        values = feature_rows.set_index(["property", "measure", "erased"]).sort_index()
        row = {"features": name}
        for title, key in COLUMNS.items():
            number = values.loc[key]
            row[title] = f"{number['value']:z.2f}"
            if np.isfinite(number["null_high"]):
                row[title] += f" ({number['null']:z.2f})"
        rows.append(row)
    return pd.DataFrame(rows)


def subject_figure(control: str) -> np.ndarray:
    """Plot subject information in features of unchanged windows, or of a control signal."""
    return plotting.subjects_in_features(_table(control))


def _table(control: str) -> pd.DataFrame:
    return pd.read_csv(FILE, comment="#").query("control == @control")
