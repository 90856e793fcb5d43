"""What the command line shows of a protocol's scores: a table, a sentence, a figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table

from braindecode_pars.evaluation import describe_differences, paired_tests, score_table

__all__ = ["save_figure", "show_differences", "show_scores"]


def show_scores(console: Console, scores: pd.DataFrame, over: str) -> None:
    """Print mean and standard deviation of every method.

    Parameters
    ----------
    console : rich.console.Console
        What prints.
    scores : DataFrame
        Of one protocol.
    over : "subjects" | "seeds"
        What the mean is over: held-out subjects, or seeds where test subjects are fixed.
    """
    wide = score_table(scores, over)
    n = wide.attrs["n"]
    unit = f"held-out subject{'s' if n != 1 else ''}"
    if over == "seeds":
        unit = f"seed{'s' if n != 1 else ''}, over all test windows"
    title = f"mean ± SD over {n} {unit}"
    table = Table(title=title, min_width=len(title) + 2)  # the title in one line
    rows = wide.index.to_frame(index=False)
    # Columns with one value only are left out.
    keys = [key for key in ("dataset", "n_train_subjects") if rows[key].nunique() > 1]
    keys.append("method")
    for key in keys:
        table.add_column(key.replace("n_train_subjects", "training subjects"))
    for metric in wide:
        table.add_column(metric.replace("_", " "), justify="right")
    for (_, row), (_, cells) in zip(rows.iterrows(), wide.iterrows(), strict=True):
        table.add_row(*(str(row[key]) for key in keys), *cells.fillna("").tolist())
    console.print(table)


def show_differences(console: Console, scores: pd.DataFrame) -> None:
    """Print which differences between methods are more than noise, in the first metric."""
    console.print(describe_differences(paired_tests(scores, scores["metric"].iloc[0])))


def save_figure(
    scores: pd.DataFrame, folder: Path, draw: Callable[[pd.DataFrame, str, str | None], Axes]
) -> Path:
    """Draw the first metric into a file that is named after it.

    Parameters
    ----------
    scores : DataFrame
        Of one protocol.
    folder : Path
        Where the figure goes; it must exist.
    draw : callable
        From scores, metric and its label (None for the metric's name) to axes.

    Returns
    -------
    Path
        The file.
    """
    metric = scores["metric"].iloc[0]
    ax = draw(scores, metric, "Cohen's kappa" if metric == "kappa" else None)
    file = folder / f"{metric}.png"
    ax.figure.savefig(file, dpi=150)
    plt.close(ax.figure)
    return file
