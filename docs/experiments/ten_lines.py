"""Score the code example of the README, with PARS and from scratch.

``python docs/experiments/ten_lines.py`` runs it with three seeds and both folds of subjects, and
writes ``docs/measured/sleep/ten_lines.csv``. It takes an hour on one core.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import LeaveOneGroupOut, cross_validate
from stored_table import store_table

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn, datasets

FILE = Path(__file__).parents[1] / "measured" / "sleep" / "ten_lines.csv"
METRICS = ("accuracy", "balanced_accuracy")


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    names, rows = datasets.sleep().description["subject"].tolist(), []
    for seed in range(3):
        for half in range(2):
            pars = PARSEmbedder(random_state=seed).fit(datasets.sleep(names[half::2]))
            X, y, groups = as_sklearn(datasets.sleep(names[1 - half :: 2]))
            for method, clf in {
                "PARS": PARSClassifier(encoder=pars, random_state=seed),
                "from scratch": PARSClassifier(None, random_state=seed),
            }.items():
                scores = cross_validate(
                    clf, X, y, groups=groups, cv=LeaveOneGroupOut(), scoring=METRICS
                )
                means = {metric: scores[f"test_{metric}"].mean() for metric in METRICS}
                rows.append(dict(method=method, seed=seed, half=half, **means))
                print(rows[-1], flush=True)
    store_table(
        pd.DataFrame(rows).round(4), FILE, "python docs/experiments/ten_lines.py", index=False
    )


if __name__ == "__main__":
    main()
