"""Scores of ``docs/measured/networks``: EEGNet and ShallowFBCSPNet with 15 epochs."""

from __future__ import annotations

import pandas as pd
from stored_scores import MEASURED, difference_cell, result_scores

from braindecode_pars.evaluation import paired_tests

__all__ = ["FOLDER", "network_scores", "networks_table"]

FOLDER = MEASURED / "networks"
SCRATCH = "from scratch"
#: What the windows of a column lack.
_LACK = {"none": "", "slow": ", from 7 Hz up", "eyes": ", without what frontal channels predict"}


def network_scores(name: str) -> pd.DataFrame:
    """Return a row for each method, control, number of labeled people, draw and person."""
    wide = pd.read_csv(FOLDER / f"{name}.csv", comment="#")
    keys = ["method", "control", "n_train_subjects", "seed"]
    scores = wide.melt(keys, var_name="subject").astype({"subject": str})
    return scores.assign(protocol="label_efficiency", dataset=name, metric="balanced_accuracy")


def networks_table(name: str) -> pd.DataFrame:
    """Return means of the networks, and of scratch in the same draws, which is compared."""
    scores, stored = network_scores(name), result_scores(name)
    plain = scores[scores["control"] == "none"]
    drawn = plain[["n_train_subjects", "seed"]].drop_duplicates()
    scratch = stored[stored["method"].eq(SCRATCH) & stored["subject"].ne("all")].merge(drawn)
    both = pd.concat([plain, scratch.assign(dataset=name)], ignore_index=True)
    both = both[both["n_train_subjects"] == 4]
    tests = paired_tests(both, "balanced_accuracy", against=SCRATCH).set_index("method_a")
    rows = []
    for method, own in pd.concat([scores, scratch.assign(control="none")]).groupby("method"):
        row = {"method": method}
        for (n, control), part in own.groupby(["n_train_subjects", "control"]):
            row[f"{n} labeled{_LACK[control]}"] = f"{part['value'].mean():.3f}"
        if method != SCRATCH:
            test = tests.loc[method]
            row["difference from training from scratch (95 % CI)"] = difference_cell(test)
            row["p"] = f"{test['p_holm']:.2g}"
        rows.append(row)
    table = pd.DataFrame(rows).fillna("")
    first = ["method", "4 labeled", "difference from training from scratch (95 % CI)", "p"]
    return table[first + [column for column in table if column not in first]]
