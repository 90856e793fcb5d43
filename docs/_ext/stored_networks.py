"""Scores of ``docs/measured/networks``: EEGNet and ShallowFBCSPNet, trained for 15 epochs."""

from __future__ import annotations

import pandas as pd
from stored_scores import MEASURED, P_HOLM, difference_cell, result_scores

from braindecode_pars.evaluation import paired_tests

__all__ = ["FOLDER", "network_scores", "networks_table"]

FOLDER = MEASURED / "networks"
SCRATCH = "from scratch"
#: Column head of differences, with four labeled subjects.
DIFFERENCE_FROM_SCRATCH = "difference from training from scratch (uncorrected 95 % CI)"
#: Description of the control signals of a column.
_CONTROLS = {
    "none": "",
    "slow": ", high-pass filtered at 7 Hz",
    "eyes": ", frontal channels regressed out",
}


def network_scores(name: str) -> pd.DataFrame:
    """Return one row per method, control, number of labeled subjects, draw and test subject."""
    wide = pd.read_csv(FOLDER / f"{name}.csv", comment="#")
    keys = ["method", "control", "n_train_subjects", "seed"]
    scores = wide.melt(keys, var_name="subject").astype({"subject": str})
    return scores.assign(protocol="label_efficiency", dataset=name, metric="balanced_accuracy")


def networks_table(name: str) -> pd.DataFrame:
    """Compare mean scores of the networks with training from scratch, in the same draws."""
    scores, stored = network_scores(name), result_scores(name)
    plain = scores[scores["control"] == "none"]
    drawn = plain[["n_train_subjects", "seed"]].drop_duplicates()
    scratch = stored[stored["method"].eq(SCRATCH) & stored["subject"].ne("all")].merge(drawn)
    both = pd.concat([plain, scratch.assign(dataset=name)], ignore_index=True)
    both = both[both["n_train_subjects"] == 4]
    tests = paired_tests(both, "balanced_accuracy", against=SCRATCH).set_index("method_a")
    rows = []
    all_scores = pd.concat([scores, scratch.assign(control="none")])
    for method, method_scores in all_scores.groupby("method"):
        row = {"method": method}
        for (n, control), part in method_scores.groupby(["n_train_subjects", "control"]):
            row[f"{n} labeled subjects{_CONTROLS[control]}"] = f"{part['value'].mean():.3f}"
        if method != SCRATCH:
            test = tests.loc[method]
            row[DIFFERENCE_FROM_SCRATCH] = difference_cell(test)
            row[P_HOLM] = f"{test['p_holm']:.2g}"
        rows.append(row)
    table = pd.DataFrame(rows).fillna("")
    first = ["method", "4 labeled subjects", DIFFERENCE_FROM_SCRATCH, P_HOLM]
    return table[first + [column for column in table if column not in first]]
