"""Table and figure of ``docs/measured/rhythms.csv``: how small a rhythm each method finds."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from stored_scores import MEASURED

from braindecode_pars.plotting import style

__all__ = ["FILE", "rhythm_figure", "rhythm_rows", "smallest"]

FILE = MEASURED / "rhythms.csv"
#: A rhythm is found where windows with and without it are told apart this well.
FOUND = 0.75
#: Methods of the figure.
DRAWN = (
    "hand-crafted features",
    "log band power",
    "small",
    "pars-sleep",
    "random encoder",
    "pars",
    "features",
)


def smallest() -> pd.Series:
    """Return the smallest amplitude in microvolts that is found, by method, frequency and seed.

    Between two amplitudes it is on the line through their accuracies, over the logarithm of the
    amplitude; infinite where the largest one is not found.
    """
    table = pd.read_csv(FILE, comment="#")
    groups = table.groupby(["method", "frequency", "seed"], sort=False)
    return groups[["amplitude", "value"]].apply(_threshold)


def _threshold(rows: pd.DataFrame) -> float:
    sizes, values = np.log(1e6 * rows["amplitude"].to_numpy()), rows["value"].to_numpy()
    if not (values >= FOUND).any():
        return np.inf
    first = int((values >= FOUND).argmax())
    pair = slice(max(0, first - 1), first + 1)
    return float(np.exp(np.interp(FOUND, values[pair], sizes[pair])))


def rhythm_rows() -> pd.DataFrame:
    """Return a row for each method: what it finds at each frequency, of each pretraining."""
    found = smallest()
    largest = 1e6 * pd.read_csv(FILE, comment="#")["amplitude"].max()
    rows = []
    for method, own in found.groupby("method", sort=False):
        row = {"method": method.replace("_", " ")}
        for frequency, seeds in own.groupby("frequency", sort=False):
            texts = [f"{x:.1f}" if np.isfinite(x) else f"> {largest:g}" for x in seeds]
            row[f"{frequency:g} Hz"] = ", ".join(dict.fromkeys(texts))
        rows.append(row)
    return pd.DataFrame(rows)


def rhythm_figure() -> Figure:
    """Draw the smallest amplitude against the frequency, the mean of logarithms over seeds."""
    found = np.log(smallest()).groupby(["method", "frequency"], sort=False).mean()
    figure, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    for number, method in enumerate(DRAWN):
        own = np.exp(found[method]).replace(np.inf, np.nan)
        ax.plot(own.index, own, label=method, **style.series_style(number))
    ax.set(xscale="log", yscale="log", xlabel="frequency in Hz", ylabel="amplitude in µV")
    ax.set_xticks(own.index, [f"{x:g}" for x in own.index])
    ax.set_yticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    ax.minorticks_off()
    style.remove_frame(ax, grid="y")
    style.draw_legend(ax, handlelength=3)
    return figure
