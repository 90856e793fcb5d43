"""Table and figure of ``docs/measured/rhythms.csv``: detection threshold of a rhythm by method."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from stored_scores import MEASURED

from braindecode_pars.plotting import style

__all__ = ["FILE", "rhythm_figure", "rhythm_rows", "smallest"]

FILE = MEASURED / "rhythms.csv"
#: Balanced accuracy at the detection threshold.
THRESHOLD_ACCURACY = 0.75
#: Methods in the figure.
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
    """Return the detection threshold in microvolts, by method, frequency and seed.

    Accuracies are interpolated linearly over the logarithm of the amplitude. The threshold is
    infinite if the largest amplitude is not detected.
    """
    table = pd.read_csv(FILE, comment="#")
    groups = table.groupby(["method", "frequency", "seed"], sort=False)
    return groups[["amplitude", "value"]].apply(_threshold)


def _threshold(rows: pd.DataFrame) -> float:
    log_amplitudes, values = np.log(1e6 * rows["amplitude"].to_numpy()), rows["value"].to_numpy()
    if not (values >= THRESHOLD_ACCURACY).any():
        return np.inf
    first = int((values >= THRESHOLD_ACCURACY).argmax())
    pair = slice(max(0, first - 1), first + 1)
    return float(np.exp(np.interp(THRESHOLD_ACCURACY, values[pair], log_amplitudes[pair])))


def rhythm_rows() -> pd.DataFrame:
    """Return detection thresholds, by method and frequency, of each pretraining seed."""
    thresholds = smallest()
    largest = 1e6 * pd.read_csv(FILE, comment="#")["amplitude"].max()
    rows = []
    for method, method_thresholds in thresholds.groupby("method", sort=False):
        row = {"method": method.replace("_", " ")}
        for frequency, seeds in method_thresholds.groupby("frequency", sort=False):
            texts = [f"{x:.1f}" if np.isfinite(x) else f"> {largest:g}" for x in seeds]
            row[f"{frequency:g} Hz (µV)"] = ", ".join(dict.fromkeys(texts))
        rows.append(row)
    return pd.DataFrame(rows)


def rhythm_figure() -> Figure:
    """Plot detection thresholds against frequency, as geometric means over seeds."""
    log_thresholds = np.log(smallest()).groupby(["method", "frequency"], sort=False).mean()
    figure, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    for number, method in enumerate(DRAWN):
        thresholds = np.exp(log_thresholds[method]).replace(np.inf, np.nan)
        ax.plot(thresholds.index, thresholds, label=method, **style.series_style(number))
    ax.set(xscale="log", yscale="log", xlabel="frequency (Hz)", ylabel="detection threshold (µV)")
    ax.set_xticks(thresholds.index, [f"{x:g}" for x in thresholds.index])
    ax.set_yticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    ax.minorticks_off()
    style.remove_frame(ax, grid="y")
    style.draw_legend(ax, handlelength=3)
    return figure
