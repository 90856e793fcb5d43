"""Table and figure of ``docs/measured/audits.csv``: what the features of the encoders hold."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from stored_scores import MEASURED

from braindecode_pars import plotting

__all__ = ["FILE", "audit_map", "audit_rows", "read_audits"]

FILE = MEASURED / "audits.csv"

#: Encoders in the order of figures and tables, two of them of version 0.2.0, and their short names.
NAMES = {
    "features-eegmmidb": "small",
    "features-noise": "noise",
    "spectral-eegmmidb": "spectral-eegmmidb",
    "pars-eegmmidb": "pars-eegmmidb",
}


def read_audits(windows: str) -> pd.DataFrame:
    """Return the audits on the windows of this name, with the names that users give."""
    audits = pd.read_csv(FILE, comment="#").query("windows == @windows")
    audits = audits.sort_values(
        "encoder", key=lambda names: names.map([*NAMES].index), kind="stable"
    )
    return audits.assign(encoder=audits["encoder"].map(NAMES))


def audit_map(windows: str) -> Axes:
    """Draw what all encoders hold; the tokens of ``small`` stand for those of all."""
    audits = read_audits(windows)
    of_others = (audits["features"] == "tokens") & (audits["encoder"] != "small")
    return plotting.audit_map(audits[~of_others])


def audit_rows(windows: str) -> pd.DataFrame:
    """Return a row for each property: mean and SD over folds, by encoder, and chance level."""
    audits = read_audits(windows)
    shown = audits["value"].map("{:.2f}".format) + " ± " + audits["sd"].map("{:.2f}".format)
    is_random = audits["features"] == "random encoder"
    title = audits["encoder"].where(~is_random, "random encoder")
    title = title.where(audits["features"] != "tokens", "tokens of " + audits["encoder"])
    table = audits.assign(title=title, shown=shown).drop_duplicates(["property", "title"])
    wide = table.pivot(index="property", columns="title", values="shown")
    order = [*NAMES.values(), *(f"tokens of {name}" for name in NAMES.values()), "random encoder"]
    wide = wide.loc[audits["property"].unique(), order]
    chance = audits.drop_duplicates("property").set_index("property")["chance"]
    wide["chance"] = chance.map("{:.2f}".format)
    return wide.reset_index()
