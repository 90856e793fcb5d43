"""Behind ``evaluate controls``: methods and subjects, then tables, sentences and a figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset
from rich.console import Console
from sklearn.base import BaseEstimator

from braindecode_pars import evaluation, plotting
from braindecode_pars._common.files import replace_file
from braindecode_pars._common.tables import POOLED
from braindecode_pars.baselines import CENTRED
from braindecode_pars.cli.evaluation_report import encoders_of, method_called, methods_of
from braindecode_pars.cli.terminal import make_console, print_table
from braindecode_pars.plotting.style import save_figure

#: Methods without ``--method``: they train no network, so that many draws take minutes.
METHODS = ("probe", "random-encoder", "band-power", "tangent-space", "classical-features")
#: What the others are compared with, if it is among the methods: the first one that is.
AGAINST = ("scratch", "random encoder")
#: Folds of whole subjects where a corpus has no test subjects and none are given.
N_FOLDS = 4


def control_methods(
    names: list[str] | None, encoders: list[str] | None, settings: Mapping[str, Any]
) -> dict[str, BaseEstimator]:
    """Return classifiers by method name; a given encoder is frozen if ``probe`` is a method."""
    by_name = encoders_of(encoders)
    names = names or (list(METHODS) if by_name else None)
    methods = methods_of(names, encoders, settings)
    if names is not None and "probe" in names:
        methods = {name: method for name, method in methods.items() if name not in by_name}
    return methods


def default_against(methods: Iterable[str]) -> str:
    """Return the name of the method from scratch, or else of the random encoder."""
    names = {name.removesuffix(CENTRED): name for name in methods}
    for name in AGAINST:
        if name in names:
            return names[name]
    raise ValueError(
        f"--against is missing: the method to compare with, of {', '.join(names.values())}."
    )


def run_controls(
    methods: Mapping[str, BaseEstimator],
    windows: BaseConcatDataset,
    *,
    against: str | None,
    controls: list[str] | None,
    out: Path,
    **arguments: Any,
) -> None:
    """Score the methods in each control; show and write scores, gains, sentences and figure."""
    against = default_against(methods) if against is None else method_called(against, methods)
    if arguments.get("n_train_subjects") and not arguments["test_subjects"]:
        split = windows.description.get("split", pd.Series(dtype=str))
        arguments["cv"] = None if (split == "test").any() else N_FOLDS
    if controls is not None:
        arguments["controls"] = controls
    scores = evaluation.controls(methods, windows, out=out, **arguments)
    gains = evaluation.control_gains(scores, against=against)
    console = make_console()
    show_control_scores(console, scores)
    show_gains(console, gains)
    for note in scores.attrs["notes"].values():
        console.print(f"{note}.")
    sentences = evaluation.describe_controls(gains)
    console.print(sentences)
    replace_file(out / "gains.csv", gains.to_csv(index=False))
    replace_file(out / "gains.txt", sentences + "\n")
    save_figure(plotting.control_gains(gains)[0], out / "gains.png", dpi=150)
    console.print(f"Written to {out}: scores.csv, gains.csv, gains.txt, gains.png.")


def show_control_scores(console: Console, scores: pd.DataFrame) -> None:
    """Print the mean score of each method, with a column for each control."""
    metric = scores["metric"].iloc[0]
    rows = scores[(scores["metric"] == metric) & (scores["subject"] != POOLED)]
    keys = ["n_train_subjects", "method"]
    means = rows.pivot_table("value", keys, "control", sort=False)
    means = means[list(dict.fromkeys(rows["control"]))].reset_index()
    if means["n_train_subjects"].nunique() == 1:
        means, keys = means.drop(columns="n_train_subjects"), ["method"]
    shown = means.map(lambda value: value if isinstance(value, str) else f"{value:.3g}")
    header = [str(name).replace("n_train_subjects", "training subjects") for name in shown]
    title = f"mean {metric.replace('_', ' ')} in each control"
    print_table(console, shown.to_numpy(), header, title=title, text=header[: len(keys)])


def show_gains(console: Console, gains: pd.DataFrame) -> None:
    """Print the gain of each method, what is left of it in each control, and the share."""
    rows = gains[gains["method"] != gains["against"]]
    table = pd.DataFrame(
        {
            "training subjects": rows["n_train_subjects"].map("{:g}".format),
            "method": rows["method"],
            "control": rows["control"],
            **{name: [_with_interval(row, name) for _, row in rows.iterrows()] for name in _MEANS},
            "share": ["-" if np.isnan(share) else f"{share:.2f}" for share in rows["share"]],
        }
    )
    if table["training subjects"].nunique() == 1:
        table = table.drop(columns="training subjects")
    title = f"gain over {rows['against'].iloc[0]}, with intervals of 95 %"
    header = list(table)
    print_table(console, table.to_numpy(), header, title=title, text=("method", "control"))


#: Columns of the gains with an interval.
_MEANS = ("gain", "without", "lost")


def _with_interval(row: pd.Series, name: str) -> str:
    return f"{row[name]:+.3f} ({row[f'{name}_low']:.3f} to {row[f'{name}_high']:.3f})"
