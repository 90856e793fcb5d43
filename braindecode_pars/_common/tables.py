"""Tables of scores, training losses and predictions: names of columns, and validation."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

import numpy as np
import pandas as pd

from braindecode_pars._common import names
from braindecode_pars._common.subjects import normalized

#: Required columns of tables of scores.
SCORES = [name for name, column in names.SCORES.items() if not column.is_optional]
#: Columns that are not part of the key of a score: the score itself, and descriptions of the score.
_FACTS = [name for name, column in names.SCORES.items() if not column.is_key]
_NUMBERS = [name for name, column in names.SCORES.items() if column.kind is float]
#: Value of ``subject`` in scores that are computed over the pooled windows of all test subjects.
POOLED = "all"

#: Optional column of scores: seed of the pretraining, for methods that are pretrained with several
#: seeds. NaN for all other methods.
PRETRAINING_SEED = "pretraining_seed"

#: Optional columns of scores: amount of labeled data of the test subject that a method uses.
AMOUNTS = ("n_windows", "minutes")
#: Optional columns of scores: data of the test subject that a method uses, and their amount.
TEST_SUBJECT_COLUMNS = ("test_subject_data", *AMOUNTS)


#: Values of ``test_subject_data`` in scores and models of earlier versions -> current values.
_CURRENT_VALUES: dict[object, str] = {
    "one window at a time": "past unlabeled",
    "unlabelled windows of the test person": "all unlabeled",
    "labelled windows of the test person": "labeled",
}


class TestSubjectData(StrEnum):
    """Which data of the test subject a prediction uses besides the predicted window.

    Scores of two methods are comparable if both methods use the same data of the test subject, or
    if the method with the higher score uses less data.
    """

    __test__ = False  # pytest must not collect this class

    #: No other data: each window is predicted independently of all other windows of the subject.
    NONE = "none"
    #: Past windows of the test subject, without labels (causal test-time adaptation).
    PAST_UNLABELED = "past unlabeled"
    #: All windows of the test subject, without labels (transductive).
    ALL_UNLABELED = "all unlabeled"
    #: Labeled windows of the test subject (calibration).
    LABELED = "labeled"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        # Models and scores of earlier versions contain other values.
        return cls(_CURRENT_VALUES[value]) if value in _CURRENT_VALUES else None


#: Column of the relative training loss (1 = chance level).
RELATIVE = "train_loss_relative"
#: Column of the relative held-out loss (1 = chance level).
HELD_OUT = "valid_loss_relative"
#: Columns of losses. If several pretext tasks are trained jointly, there is one additional column
#: for each task, such as ``train_loss_relative_mae``.
LOSSES = ["train_loss", "valid_loss", RELATIVE]

#: Prefix of the columns of class probabilities in predictions: ``probability_LABEL``.
PROBABILITY = "probability_"
#: Column of the label after smoothing over time.
SMOOTHED_LABEL = "label_smoothed"
#: Prefix of the columns of class probabilities after smoothing over time: ``smoothed_LABEL``.
SMOOTHED = "smoothed_"


def table_of_scores(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Create a table of scores from rows, each of which maps the names of columns to values.

    Columns that are not in :data:`names.SCORES`, such as parameters of an ablation, are last.
    """
    present = dict.fromkeys(name for row in rows for name in row)
    columns = dict.fromkeys([*(name for name in names.SCORES if name in present), *present])
    return with_numbers(pd.DataFrame(rows, columns=[*columns]), _NUMBERS)


def rows_of(scores: pd.DataFrame, metric: str | None = None) -> pd.DataFrame:
    """Select the scores of one metric.

    Parameters
    ----------
    scores : DataFrame
        Scores with the column ``metric``.
    metric : str | None
        Name of the metric. It may be None if there is only one metric in the scores.

    Returns
    -------
    DataFrame
        The rows of ``scores`` with this metric.

    Raises
    ------
    ValueError
        If the scores are empty or do not contain the metric, or if ``metric`` is None and there are
        several metrics in the scores.
    """
    check_table(scores, "scores", ["metric"])
    metrics = list(dict.fromkeys(scores["metric"]))
    if metric is None and len(metrics) == 1:
        return scores
    if metric not in metrics:
        problem = "several metrics" if metric is None else f"no metric {metric!r}"
        options = ", ".join(map(str, metrics))
        raise ValueError(f"The scores contain {problem}. Set metric to one of: {options}.")
    return scores[scores["metric"] == metric]


def chance_level(rows: pd.DataFrame) -> float | None:
    """Return the chance level of the scores of one metric on one dataset; None if unknown."""
    chance_levels = rows["chance"].dropna().unique() if "chance" in rows else np.empty(0)
    if len(chance_levels) == 0 and (metric := names.METRICS.get(rows["metric"].iloc[0])):
        chance_levels = pd.Series(metric.chance_level()).dropna().to_numpy()
    return float(chance_levels[0]) if len(chance_levels) == 1 else None


def part_of(column: str) -> str | None:
    """Return the name of the subtask whose relative loss is in a column; None for other columns."""
    prefix = f"{RELATIVE}_"
    return column.removeprefix(prefix) if column.startswith(prefix) else None


def loss_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns of losses, followed by the loss columns of subtasks in ``columns``."""
    parts = {str(name) for name in columns if part_of(str(name)) is not None}
    return [*LOSSES, *sorted(parts)]


def check_table(table: pd.DataFrame, name: str, columns: Sequence[str]) -> None:
    """Check that a table has all required columns, and at least one row.

    Raises
    ------
    ValueError
        If a column is missing, or if the table has no rows.
    """
    missing = [column for column in columns if column not in table]
    if missing:
        columns_text = ", ".join(map(str, table)) or "none"
        raise ValueError(
            f"{name} lacks the required columns {', '.join(missing)}. The columns of this table "
            f"are: {columns_text}. Add the missing columns, or pass another table."
        )
    if table.empty:
        raise ValueError(f"{name} is empty. Pass a table with at least one row.")


def check_one_value(table: pd.DataFrame, name: str, columns: Iterable[str]) -> None:
    """Check that each column has only one value, so that the rows can be averaged.

    Raises
    ------
    ValueError
        If a column has several different values.
    """
    for column in columns:
        if column in table and table[column].nunique() > 1:
            values = ", ".join(map(str, table[column].dropna().unique()))
            raise ValueError(
                f"{name} contains several values of {column} ({values}). Rows with different "
                f"values of {column} must not be averaged. Select one value, for example with "
                f"{name}[{name}[{column!r}] == ...]."
            )


def check_once(table: pd.DataFrame, name: str, keys: Sequence[str]) -> None:
    """Check that no two rows of a table have the same key.

    Parameters
    ----------
    table : DataFrame
        Table to check.
    name : str
        Name of the table, for the error message.
    keys : sequence of str
        Columns whose values together are the key of a row.

    Raises
    ------
    ValueError
        If two rows have the same values in all columns in ``keys``.
    """
    rows = table[table.duplicated(keys, keep=False)]
    if len(rows):
        varied = [key for key in keys if table[key].nunique() > 1] or keys
        first = ", ".join(f"{key} {rows[key].iloc[0]}" for key in varied)
        raise ValueError(
            f"{name} contains several rows with the same key: {first}. Remove the duplicate rows, "
            "for example the rows of a previous run, or add a column in which these rows differ, "
            "such as method or seed."
        )


def checked_scores(scores: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Validate scores before they are averaged or tested, and remove duplicate rows.

    Subjects are converted to strings, and missing names of datasets to ``""``, so that scores from
    a file can be concatenated with scores that were just computed.

    Parameters
    ----------
    scores : DataFrame
        Table of scores, as returned by an evaluation protocol (a function such as
        ``leave_one_subject_out``).
    columns : sequence of str
        Required columns.

    Returns
    -------
    DataFrame
        The validated scores.

    Raises
    ------
    ValueError
        If a required column is missing, if there are no rows, or if rows with the same key have
        different scores. Also if the column ``control`` has several values but is not in
        ``columns``.
    """
    check_table(scores, "scores", columns)
    rows = with_numbers(_with_current_names(scores), _NUMBERS)
    if "subject" in rows:
        rows["subject"] = rows["subject"].astype(str)
    if "dataset" in rows:
        rows["dataset"] = rows["dataset"].astype(object).fillna("")
    keys = rows.drop(columns=_FACTS, errors="ignore").astype(str)  # the seeds 0 and "0" are equal
    keys = keys.apply(lambda column: column.str.strip())
    # Scores are rounded, because scores that were read from a file may differ in the last digit.
    is_first = ~keys.assign(value=rows["value"].round(9)).duplicated()
    rows, keys = rows[is_first], keys[is_first]
    check_once(keys, "scores", [*keys])
    check_one_value(rows, "scores", {"control"}.difference(columns))
    return rows


def _with_current_names(scores: pd.DataFrame) -> pd.DataFrame:
    # Convert the column name, the values and the suffix of methods that earlier versions used.
    scores = scores.rename(columns={"access": "test_subject_data"})
    if "test_subject_data" in scores:
        scores = scores.assign(
            test_subject_data=scores["test_subject_data"].replace(_CURRENT_VALUES)
        )
    if "method" in scores and pd.api.types.is_string_dtype(scores["method"]):
        ending = r", (subject-)?centred( \(transductive\))?$"
        text = scores["method"].str.replace(ending, names.CENTERED, regex=True)
        scores = scores.assign(method=text)
    return scores


def numbers_of(name: str, values: Any) -> np.ndarray:
    """Convert values to an array of floats, or raise a TypeError if this is not possible."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must contain only numbers, got {values!s:.99}. Convert them to numbers."
        ) from None


def with_numbers(table: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """Convert columns of a table to floats. Columns that are not in the table are ignored."""
    numeric_columns = {
        name: numbers_of(f"The column {name}", table[name]) for name in columns if name in table
    }
    return table.assign(**numeric_columns)


#: Strings that mean an empty cell. "None" and "NA" are not included, although pandas reads them as
#: missing values, because they may be class names.
EMPTY = re.compile(r"^(n/a|nan|nat|null|<na>|#n/a)?$", re.IGNORECASE)


def label_text(value: Any) -> str:
    """Convert a label to a normalized string.

    None, NaN and strings that mean an empty cell, such as "N/A", become an empty string. In other
    strings, the Unicode form is normalized, and leading and trailing white space and ".0" after an
    integer are removed.

    Examples
    --------
    >>> from braindecode_pars._common.tables import label_text
    >>> [*map(label_text, (" rest ", 1.0, "1.0", "1", float("nan"), "N/A", None))]
    ['rest', '1', '1', '1', '', '', '']
    """
    text = re.sub(r"^([+-]?[0-9]+)\.0+$", r"\1", normalized(str(value)).strip())
    return "" if value is None or EMPTY.match(text) else text
