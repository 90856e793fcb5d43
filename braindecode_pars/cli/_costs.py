"""Print what the methods of a protocol cost, beside their scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from braindecode.datasets import BaseConcatDataset
from rich.console import Console
from rich.table import Table
from sklearn.base import BaseEstimator

from braindecode_pars._columns import POOLED
from braindecode_pars.cli._console import print_table
from braindecode_pars.evaluation import cost_table
from braindecode_pars.storage._atomic import replace_file

__all__ = ["show_costs"]

#: Headings of the columns.
_LABELS = {
    "pretraining_steps": "pretraining steps",
    "finetuning_steps": "fine-tuning steps",
    "flops": "FLOPs",
    "n_train_subjects": "training subjects",
}


def show_costs(
    console: Console,
    methods: Mapping[str, BaseEstimator],
    corpora: Mapping[str, BaseConcatDataset],
    scores: pd.DataFrame,
    out: Path,
) -> None:
    """Print a table with the cost of one fit of each method, and write it to ``costs.csv``.

    Parameters
    ----------
    console : rich.console.Console
        Console to print to.
    methods : dict of str to estimator
        Estimators by method name.
    corpora : dict of str to BaseConcatDataset
        Windows of the protocol, by the name in the column ``dataset`` of the scores.
    scores : DataFrame
        Its scores. They say which subjects a fit is trained on.
    out : Path
        Folder of the results.
    """
    tables = [
        _costs(methods, corpora[name], of_dataset).assign(dataset=name)
        for name, of_dataset in scores.groupby("dataset", sort=False)
    ]
    costs = pd.concat(tables, ignore_index=True)
    replace_file(out / "costs.csv", costs.to_csv(index=False))
    title = "cost of one fit"
    table = Table(title=title, min_width=len(title) + 2)
    shown = costs.drop(columns="dataset") if len(tables) == 1 else costs
    for name in shown:
        is_text = name in ("dataset", "method")
        table.add_column(_LABELS.get(name, name), justify="left" if is_text else "right")
    for row in shown.itertuples(index=False):
        table.add_row(*map(_cell, row))
    print_table(console, table)
    console.print(f"Written to {out / 'costs.csv'}.")


def _costs(
    methods: Mapping[str, BaseEstimator], windows: BaseConcatDataset, scores: pd.DataFrame
) -> pd.DataFrame:
    trained = _training_windows(windows, scores)
    n_subjects = trained.description["subject"].nunique()
    return cost_table(methods, trained).assign(n_train_subjects=n_subjects)


def _training_windows(windows: BaseConcatDataset, scores: pd.DataFrame) -> BaseConcatDataset:
    """Return the windows of as many subjects as the largest fit of the protocol is trained on."""
    subjects = [recording.description["subject"] for recording in windows.datasets]
    tested = [str(subject) for subject in scores["subject"] if str(subject) != POOLED]
    # Either one subject is held out at a time, or all test subjects are.
    is_in_turn = POOLED not in scores["subject"].astype(str).to_numpy()
    held_out = {tested[0]} if is_in_turn else set(tested)
    candidates = dict.fromkeys(subject for subject in subjects if str(subject) not in held_out)
    trained = set(list(candidates)[: scores["n_train_subjects"].max()])
    pairs = zip(windows.datasets, subjects, strict=True)
    return BaseConcatDataset([recording for recording, subject in pairs if subject in trained])


def _cell(value: Any) -> str:
    """Return a text as it is, a number in a few digits, and "-" for a missing one."""
    if isinstance(value, str) or pd.isna(value):
        return value if isinstance(value, str) else "-"
    return f"{value:,.0f}" if value < 1e7 else f"{value:.3g}"
