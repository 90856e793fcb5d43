"""Show the scores of a protocol: a table, a sentence on differences, and a figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table

from braindecode_pars.cli._console import print_table
from braindecode_pars.evaluation import describe_differences, paired_tests, score_table
from braindecode_pars.storage._atomic import replace_file

__all__ = ["save_figure", "show_differences", "show_scores"]


def show_scores(console: Console, scores: pd.DataFrame, over: str) -> None:
    """Print a table with the mean and the standard deviation of every method.

    Parameters
    ----------
    console : rich.console.Console
        Console to print to.
    scores : DataFrame
        Scores of one protocol.
    over : "subjects" | "seeds"
        Average over held-out subjects, or over seeds if the test subjects are fixed.
    """
    # Title.
    wide = score_table(scores, over)
    n = wide.attrs["n"]
    unit = f"held-out subject{'s' if n != 1 else ''}"
    if over == "seeds":
        unit = f"seed{'s' if n != 1 else ''}, over all test windows"
    title = f"mean ± SD over {n} {unit}"
    table = Table(title=title, min_width=len(title) + 2)  # wide enough for the title

    # Columns; dataset and number of subjects are omitted if they are the same in all rows.
    rows = wide.index.to_frame(index=False)
    keys = [key for key in ("dataset", "n_train_subjects") if rows[key].nunique() > 1]
    keys.append("method")
    for key in keys:
        table.add_column(key.replace("n_train_subjects", "training subjects"))
    for metric in wide:
        table.add_column(metric.replace("_", " "), justify="right")

    # Rows.
    for (_, row), (_, cells) in zip(rows.iterrows(), wide.iterrows(), strict=True):
        table.add_row(*(str(row[key]) for key in keys), *cells.fillna("").tolist())
    print_table(console, table)


def show_differences(
    console: Console, scores: pd.DataFrame, against: str | None = None, out: Path | None = None
) -> None:
    """Print which differences between methods are significant in the first metric.

    Parameters
    ----------
    console : rich.console.Console
        Console to print to.
    scores : DataFrame
        Scores of one protocol.
    against : str | None
        Method that the others are tested against; None tests all pairs.
    out : Path | None
        Folder for a table of the tests, ``tests.csv``; None writes nothing.
    """
    metric = scores["metric"].iloc[0]
    tests = paired_tests(scores, metric, against=against)
    console.print(describe_differences(tests))
    if out is not None:
        replace_file(out / "tests.csv", tests.assign(metric=metric).to_csv(index=False))
        console.print(f"Written to {out / 'tests.csv'}.")


def save_figure(
    scores: pd.DataFrame, folder: Path, draw: Callable[[pd.DataFrame, str, str | None], Axes]
) -> Path:
    """Draw the first metric and save the figure under the metric's name.

    Parameters
    ----------
    scores : DataFrame
        Scores of one protocol.
    folder : Path
        Existing folder for the figure.
    draw : callable
        Function of scores, metric and its label (None means the metric's name) that returns axes.

    Returns
    -------
    Path
        File of the figure.
    """
    metric = scores["metric"].iloc[0]
    ax = draw(scores, metric, "Cohen's kappa" if metric == "kappa" else None)
    file = folder / f"{metric}.png"
    ax.figure.savefig(file, dpi=150)
    plt.close(ax.figure)
    return file
