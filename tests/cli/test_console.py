"""The console of the commands: names in full, in any terminal."""

from __future__ import annotations

import io

import pandas as pd
import pytest
from rich.console import Console

from braindecode_pars._common.tables import SCORES
from braindecode_pars.cli.evaluation_report import show_differences, show_scores
from braindecode_pars.cli.terminal import make_console, print_table

#: Names that Rich would read as markup or as an emoji, or cut.
METHODS = ["PARS [ours]", "[bold]", "a:smile:b", "a name of more than twenty letters", "[/]"]


@pytest.fixture
def console(monkeypatch):
    def make(width: int = 80, encoding: str = "utf-8") -> tuple[Console, io.TextIOWrapper]:
        monkeypatch.setenv("COLUMNS", str(width))
        file = io.TextIOWrapper(io.BytesIO(), encoding, errors="backslashreplace")
        console = make_console()
        console.file = file
        return console, file

    return make


def printed(file: io.TextIOWrapper) -> str:
    file.flush()
    return file.buffer.getvalue().decode(file.encoding)


def scores() -> pd.DataFrame:
    rows = [
        ("compare", dataset, method, subject, 2, 0, metric, subject / 10)
        for method in METHODS
        for dataset in ("nights [home]", "clinic")
        for subject in (1, 2, 3)
        for metric in ("kappa", "balanced_accuracy", "accuracy")
    ]
    return pd.DataFrame(rows, columns=SCORES)


@pytest.mark.parametrize("width", [20, 80])
def test_names_and_numbers_are_shown_in_full(console, width):
    made, file = console(width)
    show_scores(made, scores(), "subjects")
    text = printed(file)
    for name in [*METHODS, "nights [home]", "balanced accuracy"]:
        assert name in text
    assert text.count("0.200 ± 0.100") == len(METHODS) * 2 * 3


def test_brackets_stay_in_the_sentence_on_differences(console):
    made, file = console(20)
    table = scores()
    show_differences(made, table[table["dataset"] == "clinic"])
    assert "PARS [ours]" in printed(file)


def test_a_terminal_without_unicode(console):
    made, file = console(20, "ascii")
    show_scores(made, scores(), "subjects")
    assert r"0.200 \xb1 0.100" in printed(file)


def test_a_table_is_not_wider_than_needed(console):
    made, file = console(20)
    print_table(made, [("1", "2")], ("one", "two"))
    assert max(map(len, printed(file).splitlines())) == len("│ one │ two │")
