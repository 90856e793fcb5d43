"""Columns of tables of scores, training losses and predictions; labels as text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

import numpy as np
import pandas as pd

from braindecode_pars._common import names
from braindecode_pars._common.subjects import normalized

#: Columns of every protocol's scores.
SCORES = [name for name, column in names.SCORES.items() if not column.is_optional]
#: Columns that tell no scores apart: the value, and what describes it.
_FACTS = [name for name, column in names.SCORES.items() if not column.is_key]
_NUMBERS = [name for name, column in names.SCORES.items() if column.kind is float]
#: Value of ``subject`` in scores that are computed over all test windows together.
POOLED = "all"

#: Optional column of scores, for methods that were pretrained several times; NaN for the others.
PRETRAINING_SEED = "pretraining_seed"

#: Optional columns of scores: what a method was given of the test subject.
AMOUNTS = ("n_windows", "minutes")
TEST_SUBJECT_COLUMNS = ("test_subject_data", *AMOUNTS)


#: Values of ``test_subject_data`` in scores and models of earlier versions.
_NEW_WORDS: dict[object, str] = {
    "one window at a time": "past unlabeled",
    "unlabelled windows of the test person": "all unlabeled",
    "labelled windows of the test person": "labeled",
}


class TestSubjectData(StrEnum):
    """Data of the test subject that a method uses in addition to the predicted window.

    Scores are comparable if the methods use the same data, or if the better one uses less.
    """

    __test__ = False  # no test case of pytest

    #: Each window is predicted on its own.
    NONE = "none"
    #: Earlier windows, without labels.
    PAST_UNLABELED = "past unlabeled"
    #: All windows, without labels.
    ALL_UNLABELED = "all unlabeled"
    #: Some windows with labels.
    LABELED = "labeled"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        # Models and scores of earlier versions have other words.
        return cls(_NEW_WORDS[value]) if value in _NEW_WORDS else None


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


def table_of_scores(rows: Sequence[Mapping[str, Any]], varied: Iterable[str] = ()) -> pd.DataFrame:
    """Return rows as a table of scores, with the columns that are in a row, in their order."""
    present = {name for row in rows for name in row}
    columns = [name for name in names.SCORES if name in present]
    return with_numbers(
        pd.DataFrame(rows, columns=list(dict.fromkeys([*columns, *varied]))), _NUMBERS
    )


def rows_of(scores: pd.DataFrame, metric: str | None = None) -> pd.DataFrame:
    """Return the scores of one metric.

    Parameters
    ----------
    scores : DataFrame
        Scores with the column ``metric``.
    metric : str | None
        Name of the metric. None means the only one of the scores.

    Raises
    ------
    ValueError
        If the scores are empty, lack the column or the metric, or have several metrics and none is
        named.
    """
    check_table(scores, "scores", ["metric"])
    metrics = list(dict.fromkeys(scores["metric"]))
    if metric is None and len(metrics) == 1:
        return scores
    if metric not in metrics:
        wanted = "several metrics" if metric is None else f"no metric {metric!r}"
        listed = ", ".join(map(str, metrics))
        raise ValueError(f"The scores have {wanted}; pass metric, one of {listed}.")
    return scores[scores["metric"] == metric]


def chance_level(rows: pd.DataFrame) -> float | None:
    """Return the chance level of scores of one metric and dataset; None where it is unknown."""
    levels = rows["chance"].dropna().unique() if "chance" in rows else np.empty(0)
    if len(levels) == 0 and (metric := names.METRICS.get(rows["metric"].iloc[0])):
        levels = pd.Series(metric.chance_level()).dropna().to_numpy()
    return float(levels[0]) if len(levels) == 1 else None


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
        columns_text = ", ".join(map(str, table)) or "none"
        raise ValueError(f"{name} lacks {', '.join(missing)}; its columns are {columns_text}.")
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


def checked_scores(scores: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the scores to average or to test, each of them once.

    Subjects become texts and a missing dataset becomes ``""``, so that scores that were read from a
    file can be joined with those of a protocol. Equal rows count once.

    Parameters
    ----------
    scores : DataFrame
        Scores of a protocol.
    columns : sequence of str
        Columns that the scores must have.

    Raises
    ------
    ValueError
        If a column is missing, there is no row, rows differ in no key but in their value, or
        ``control`` has several values and is not one of ``columns``.
    """
    check_table(scores, "scores", columns)
    rows = with_numbers(_in_new_words(scores), _NUMBERS)
    if "subject" in rows:
        rows["subject"] = rows["subject"].astype(str)
    if "dataset" in rows:
        rows["dataset"] = rows["dataset"].astype(object).fillna("")
    keys = rows.drop(columns=_FACTS, errors="ignore").astype(str)  # the seeds 0 and "0" are one
    keys = keys.apply(lambda column: column.str.strip())
    # A file may change the last digit.
    is_first = ~keys.assign(value=rows["value"].round(9)).duplicated()
    rows, keys = rows[is_first], keys[is_first]
    check_once(keys, "scores", [*keys])
    check_one_value(rows, "scores", {"control"}.difference(columns))
    return rows


def _in_new_words(scores: pd.DataFrame) -> pd.DataFrame:
    # The column and its values, and the ending of methods, had other names in earlier versions.
    scores = scores.rename(columns={"access": "test_subject_data"})
    if "test_subject_data" in scores:
        scores = scores.assign(test_subject_data=scores["test_subject_data"].replace(_NEW_WORDS))
    if "method" in scores and pd.api.types.is_string_dtype(scores["method"]):
        ending = r", (subject-)?centred( \(transductive\))?$"
        text = scores["method"].str.replace(ending, names.CENTERED, regex=True)
        scores = scores.assign(method=text)
    return scores


def numbers_of(name: str, values: Any) -> np.ndarray:
    """Return values as an array of real numbers; TypeError where they are none."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers, got {values!s:.99}.") from None


def with_numbers(table: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """Return a table whose columns, where it has them, are real numbers."""
    numeric_columns = {
        name: numbers_of(f"The column {name}", table[name]) for name in columns if name in table
    }
    return table.assign(**numeric_columns)


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
