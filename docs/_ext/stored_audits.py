"""Table and figure of ``audits.csv``: signal properties decoded from encoder features."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from stored_scores import MEASURED

from braindecode_pars import plotting

__all__ = ["FILE", "audit_map", "audit_rows", "read_audits"]

FILE = MEASURED / "audits.csv"

#: Stored names of encoders in the order of the tables, and their short names. The last two were
#: bundled with version 0.2.0.
NAMES = {
    "features-eegmmidb": "small",
    "features-noise": "noise",
    "spectral-eegmmidb": "spectral-eegmmidb",
    "pars-eegmmidb": "pars-eegmmidb",
}


def read_audits(windows: str) -> pd.DataFrame:
    """Return the audits of one set of windows, with short names of encoders."""
    audits = pd.read_csv(FILE, comment="#").query("windows == @windows")
    audits = audits.sort_values(
        "encoder", key=lambda names: names.map([*NAMES].index), kind="stable"
    )
    return audits.assign(encoder=audits["encoder"].map(NAMES))


def audit_map(windows: str) -> Axes:
    """Plot the audits of all encoders, with the tokens of ``small`` only."""
    audits = read_audits(windows)
    is_skipped = (audits["features"] == "tokens") & (audits["encoder"] != "small")
    return plotting.audit_map(audits[~is_skipped])


def audit_rows(windows: str) -> pd.DataFrame:
    """Return mean ± SD over folds by property and encoder, and the chance level."""
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
    wide["chance level"] = chance.map("{:.2f}".format)
    return wide.reset_index()
