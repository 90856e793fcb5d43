"""Draw the figures of the README from stored scores: docs/images/control.png and hands.png.

python docs/experiments/readme_figures.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from braindecode_pars import plotting

DOCS = Path(__file__).parents[1]
LABEL = "balanced accuracy"
HANDS = ("band power", "scratch", "PARS", "PARS without overlap", "PARS without overlap, seed 1")


def main() -> None:
    control = pd.read_csv(DOCS / "measured/sweeps.csv", comment="#")
    ax = plotting.label_efficiency(control, "balanced_accuracy", LABEL)
    ax.figure.savefig(DOCS / "images/control.png", dpi=110)

    hands = pd.read_csv(DOCS / "measured/hands.csv", comment="#")
    hands = hands[hands["method"].isin(HANDS) & (hands["n_train_subjects"] <= 16)]
    ax = plotting.subject_dots(hands, "balanced_accuracy", LABEL)
    ax.axhline(0.5, color="0.6", lw=0.8, ls=":", zorder=0)  # chance
    ax.figure.savefig(DOCS / "images/hands.png", dpi=110)


if __name__ == "__main__":
    main()
