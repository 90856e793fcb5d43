"""Columns of tables of scores, training losses and predictions; labels as text."""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars._common import names
from braindecode_pars._common.subjects import normalized

#: Columns of every protocol's scores.
SCORES = ["protocol", "dataset", "method", "subject", "n_train_subjects", "seed", "metric", "value"]
#: Value of ``subject`` in scores that are computed over all test windows together.
POOLED = "all"

#: Optional column of scores, for methods that were pretrained several times; NaN for the others.
PRETRAINING_SEED = "pretraining_seed"

#: Optional columns of scores: what a method was given of the test subject.
AMOUNTS = ("n_windows", "minutes")
ACCESS = ("access", *AMOUNTS)


class Access(StrEnum):
    """What a method was given of the test person, beside the window that it predicts.

    Two scores compare only with the same access, or with less of it for the better one.
    """

    #: Each window is predicted on its own.
    NONE = "none"
    #: The windows so far, in the order of time, without labels.
    CAUSAL = "one window at a time"
    #: All windows, without labels.
    UNLABELLED = "unlabelled windows of the test person"
    #: Some windows with labels.
    LABELLED = "labelled windows of the test person"


#: Training loss relative to chance.
RELATIVE = "train_loss_relative"
#: Held-out loss relative to chance.
HELD_OUT = "valid_loss_relative"
#: Columns of losses. A task with parts adds one column per part: ``train_loss_relative_mae``.
LOSSES = ["train_loss", "valid_loss", RELATIVE]

#: Predictions of a recording have one column ``probability_LABEL`` for each class.
PROBABILITY = "probability_"
#: Those that are smoothed over time have further columns, with one for each class.
SMOOTHED_LABEL, SMOOTHED = "label_smoothed", "smoothed_"


def chance_level(scores: Any, metric: str, dataset: Any) -> float | None:
    """Return the score of guesses; None where it is unknown.

    That of balanced accuracy needs the number of classes, which the scores of a protocol have in
    ``attrs["n_classes"]``.
    """
    if metric not in names.METRICS:
        return None
    chance = names.METRICS[metric].chance
    if chance == "1/n_classes":
        n_classes = scores.attrs.get("n_classes", {}).get(dataset)
        return n_classes and 1 / n_classes
    return chance


def part_of(column: str) -> str | None:
    """Return the part of a pretext task whose loss is in a column; None for any other column."""
    prefix = f"{RELATIVE}_"
    return column.removeprefix(prefix) if column.startswith(prefix) else None


def loss_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns of losses, followed by the columns of parts that are in ``columns``."""
    parts = {str(name) for name in columns if part_of(str(name)) is not None}
    return [*LOSSES, *sorted(parts)]


def check_table(table: pd.DataFrame, name: str, columns: Sequence[str]) -> None:
    """Check that a table has rows and some columns.

    Raises
    ------
    ValueError
        If a column is missing, or there are no rows.
    """
    missing = [column for column in columns if column not in table]
    if missing:
        found = ", ".join(map(str, table)) or "none"
        raise ValueError(f"{name} lacks {', '.join(missing)}; its columns are {found}.")
    if table.empty:
        raise ValueError(f"{name} is empty; it has no row.")


def check_one_value(table: pd.DataFrame, name: str, columns: Iterable[str]) -> None:
    """Check that rows of a table, which are averaged, do not differ in some columns.

    Raises
    ------
    ValueError
        If a column has several values.
    """
    for column in columns:
        if column in table and table[column].nunique() > 1:
            values = ", ".join(map(str, table[column].dropna().unique()))
            raise ValueError(
                f"{name} have several values of {column} ({values}), which would be averaged; "
                f"select one, as in {name}[{name}[{column!r}] == ...]."
            )


def check_once(table: pd.DataFrame, name: str, keys: Sequence[str]) -> None:
    """Check that no two rows of a table agree in all of some columns.

    Raises
    ------
    ValueError
        If two rows agree.
    """
    rows = table[table.duplicated(keys, keep=False)]
    if len(rows):
        varied = [key for key in keys if table[key].nunique() > 1] or keys
        first = ", ".join(f"{key} {rows[key].iloc[0]}" for key in varied)
        raise ValueError(
            f"In {name}, several rows are of {first}, and no value may be there twice. Remove the "
            "rows of an earlier run, or add a column that distinguishes them, such as method or "
            "seed."
        )


def checked_scores(
    scores: pd.DataFrame, columns: Sequence[str], metric: str | None = None
) -> pd.DataFrame:
    """Return the scores to average or to test, each of them once.

    Subjects become texts and a missing dataset becomes ``""``, so that scores that were read from a
    file can be joined with those of a protocol. Equal rows count once.

    Parameters
    ----------
    scores : DataFrame
        Scores of a protocol.
    columns : sequence of str
        Columns that the scores must have.
    metric : str | None
        Metric of the rows; None means all metrics.

    Raises
    ------
    ValueError
        If a column is missing, there is no row of the metric, rows differ in their value alone, or
        ``control`` has several values and is not one of ``columns``.
    """
    check_table(scores, "scores", columns)
    rows = scores if metric is None else scores[scores["metric"] == metric]
    if rows.empty:
        found = ", ".join(map(str, dict.fromkeys(scores["metric"])))
        raise ValueError(f"The scores have no metric {metric!r}; they have {found}.")
    rows = with_numbers(rows, ["value"])
    if "subject" in rows:
        rows["subject"] = rows["subject"].astype(str)
    if "dataset" in rows:
        rows["dataset"] = rows["dataset"].astype(object).fillna("")
    rows = rows[~rows.round({"value": 9}).duplicated()]  # a file may change the last digit
    keys = rows.drop(columns="value").astype(str)  # the seeds 0 and "0" are one
    check_once(keys.apply(lambda each: each.str.strip()), "scores", [*keys])
    check_one_value(rows, "scores", {"control"}.difference(columns))
    return rows


def numbers_of(name: str, values: Any) -> np.ndarray:
    """Return values as an array of real numbers; TypeError where they are none."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers, got {values!s:.99}.") from None


def with_numbers(table: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """Return a table whose columns, where it has them, are real numbers."""
    found = {
        name: numbers_of(f"The column {name}", table[name]) for name in columns if name in table
    }
    return table.assign(**found)


#: Texts of empty cells. "None" and "NA", which pandas takes for missing, may be names of classes.
EMPTY = re.compile(r"^(n/a|nan|nat|null|<na>|#n/a)?$", re.IGNORECASE)


def label_text(value: Any) -> str:
    """Return a label as text in one form, and an empty text for None and NaN.

    The form is one of Unicode, without blanks around it, and without ".0" behind a number.

    Examples
    --------
    >>> from braindecode_pars._common.tables import label_text
    >>> [*map(label_text, (" rest ", 1.0, "1.0", "1", float("nan"), "N/A", None))]
    ['rest', '1', '1', '1', '', '', '']
    """
    text = re.sub(r"^([+-]?[0-9]+)\.0+$", r"\1", normalized(str(value)).strip())
    return "" if value is None or EMPTY.match(text) else text
