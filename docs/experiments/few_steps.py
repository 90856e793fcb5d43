"""How many fine-tuning steps does a network from scratch need to exceed the chance level?

    python docs/experiments/few_steps.py OUT.csv

``fit`` warns if the steps cannot change the weights by a twentieth of their magnitude. This script
uses multiples of that number of steps, at three learning rates. The score is the balanced accuracy
on held-out simulated subjects, with five classes (chance level 0.2).
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from stored_table import store_table

from braindecode_pars import PARSClassifier, as_sklearn, datasets

RATES = (1e-4, 3e-4, 1e-3)
MULTIPLES = (0.5, 1, 2, 4, 8)


def main() -> None:
    rows = []
    for seed in range(101, 106):
        nights = datasets.simulated.sleep(6, hours=1, n_chans=2, sfreq=100, random_state=seed)
        X, y, subjects = as_sklearn(nights)
        # Every sixth window of three subjects, so that a step is short
        train = np.isin(subjects, [0, 1, 2]) & (np.arange(len(y)) % 6 == 0)
        test = np.isin(subjects, [3, 4, 5])
        for rate in RATES:
            needed = _needed(X[train], y[train], rate)
            for multiple in MULTIPLES:
                n_steps = math.ceil(multiple * needed)
                clf = _classifier(rate, n_steps, seed).fit(X[train], y[train])
                score = balanced_accuracy_score(y[test], clf.predict(X[test]))
                rows.append((seed, rate, multiple, n_steps, round(score, 4)))
    columns = ["seed", "lr", "multiple", "n_steps", "balanced_accuracy"]
    command = "python docs/experiments/few_steps.py docs/measured/few_steps.csv"
    store_table(pd.DataFrame(rows, columns=columns), Path(sys.argv[1]), command, index=False)


def _classifier(rate: float, n_steps: int, seed: int) -> PARSClassifier:
    """Return a classifier that is trained from scratch, with one step per epoch."""
    return PARSClassifier(
        None,
        head="attention",
        finetune_lr=rate,
        finetune_epochs=n_steps,
        finetune_batch_size=10_000,
        random_state=seed,
        verbose=0,
    )


def _needed(X: np.ndarray, y: np.ndarray, rate: float) -> int:
    """Return the number of steps that the warning requires."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        _classifier(rate, 1, 0).fit(X, y)
    [message] = [str(w.message) for w in caught if "Fine-tuning runs for only" in str(w.message)]
    return int(re.search(r"about ([\d,]+) steps? (is|are) needed", message)[1].replace(",", ""))


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
