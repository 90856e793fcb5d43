"""What the command line shows of a protocol's scores: a table, a sentence, a figure."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table

from braindecode_pars import plotting
from braindecode_pars.evaluation import describe_differences, paired_tests, summarize

__all__ = ["draw", "show_scores"]

#: Protocols that leave single subjects out; the others have fixed test subjects and several seeds.
_LEFT_OUT = ("leave_one_subject_out", "compare")


def show_scores(console: Console, scores: pd.DataFrame) -> None:
    """Print mean and standard deviation of every method; for comparisons also what they tell.

    Parameters
    ----------
    console : rich.console.Console
        Where to.
    scores : DataFrame
        Of one protocol.

    Examples
    --------
    >>> import pandas as pd
    >>> from rich.console import Console
    >>> from braindecode_pars.reports import show_scores
    >>> protocol = "leave_one_subject_out"
    >>> same = dict(protocol=protocol, dataset="", n_train_subjects=1, seed=0)
    >>> scores = pd.DataFrame([
    ...     dict(same, method="PARS", subject="P01", metric="kappa", value=0.5),
    ...     dict(same, method="PARS", subject="P02", metric="kappa", value=0.7),
    ... ])
    >>> console = Console(width=60, force_terminal=False)
    >>> show_scores(console, scores)  # doctest: +NORMALIZE_WHITESPACE
     mean ± SD over 2 subjects left out
    ┏━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━┓
    ┃ method     ┃               kappa ┃
    ┡━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━┩
    │ PARS       │       0.600 ± 0.141 │
    └────────────┴─────────────────────┘
    """
    left_out = scores["protocol"].iloc[0] in _LEFT_OUT
    console.print(_table(scores, over="subjects" if left_out else "seeds"))
    if scores["protocol"].iloc[0] == "compare":
        console.print(describe_differences(paired_tests(scores, scores["metric"].iloc[0])))


def _table(scores: pd.DataFrame, over: str) -> Table:
    summary = summarize(scores, over=over)
    summary["score"] = [
        f"{mean:.3f} ± {sd:.3f}" if sd == sd else f"{mean:.3f}"
        for mean, sd in zip(summary["mean"], summary["sd"], strict=True)
    ]
    metrics = list(dict.fromkeys(summary["metric"]))
    # Columns that say something: one dataset or one number of people is said in the title.
    keys = [key for key in ("dataset", "n_train_subjects") if summary[key].nunique() > 1]
    keys.append("method")
    n = summary["n"].max()
    unit = f"subject{'s' if n != 1 else ''} left out"
    if over == "seeds":
        unit = f"seed{'s' if n != 1 else ''}, over all test windows"
    title = f"mean ± SD over {n} {unit}"
    table = Table(title=title, min_width=len(title) + 2)  # the title in one line
    for key in keys:
        table.add_column(key.replace("n_train_subjects", "training subjects"))
    for metric in metrics:
        table.add_column(metric.replace("_", " "), justify="right")
    wide = summary.pivot_table(
        index=keys, columns="metric", values="score", aggfunc="first", sort=False
    )
    for index, row in wide.iterrows():
        index = index if isinstance(index, tuple) else (index,)
        table.add_row(*map(str, index), *(row.get(metric, "") for metric in metrics))
    return table


def draw(scores: pd.DataFrame, folder: Path, *, rows: str = "", columns: str = "") -> Path:
    """Draw the first metric in the figure of the protocol.

    Parameters
    ----------
    scores : DataFrame
        Of one protocol.
    folder : Path
        Where the figure goes; it must exist.
    rows, columns : str
        Of an ablation's grid.

    Returns
    -------
    Path
        The file, named after the metric.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from braindecode_pars.reports import draw
    >>> same = dict(protocol="compare", dataset="", n_train_subjects=1, seed=0)
    >>> scores = pd.DataFrame([
    ...     dict(same, method="PARS", subject="P01", metric="kappa", value=0.5),
    ...     dict(same, method="PARS", subject="P02", metric="kappa", value=0.7),
    ... ])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draw(scores, Path(folder)).name
    'kappa.png'
    """
    metric = scores["metric"].iloc[0]
    ax = _axes(scores, metric, rows, columns)
    file = folder / f"{metric}.png"
    ax.figure.savefig(file, dpi=150)
    plt.close(ax.figure)
    return file


def _axes(scores: pd.DataFrame, metric: str, rows: str, columns: str) -> Axes:
    label = "Cohen's kappa" if metric == "kappa" else None
    protocol = scores["protocol"].iloc[0]
    if protocol in _LEFT_OUT:
        return plotting.paired_bars(scores, metric, label)
    if protocol == "label_efficiency":
        return plotting.label_efficiency(scores, metric, label)
    if protocol == "transfer":
        return plotting.transfer(scores, metric, label)
    if rows and columns:
        return plotting.ablation_grid(scores, rows=rows, columns=columns, metric=metric)
    return plotting.transfer(scores, metric, label)
