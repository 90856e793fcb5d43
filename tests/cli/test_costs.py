"""The table of costs beside the scores of a protocol."""

from __future__ import annotations

import pandas as pd
import pytest
from rich.console import Console
from support.small_estimators import classifier
from support.subjects import with_split

from braindecode_pars.cli.evaluation_report import _cell, show_costs
from braindecode_pars.evaluation import LogBandPower, cost_table


def scores_of(tested, n_train_subjects, dataset="nights"):
    columns = dict(dataset=dataset, n_train_subjects=n_train_subjects)
    return pd.DataFrame([dict(subject=subject, **columns) for subject in tested])


@pytest.mark.parametrize(
    ("tested", "n_train", "trained"),
    [
        ([1, 2, 3, 4], 3, [2, 3, 4]),  # one held out at a time
        ([4, "all"], 2, [1, 2]),  # fixed test subjects, and a part of the others
    ],
)
def test_costs_are_those_of_the_largest_fit(nights, tmp_path, capsys, tested, n_train, trained):
    methods = {"PARS [a]": classifier(), "band power": LogBandPower()}
    console = Console(markup=False, width=200)
    show_costs(console, methods, {"nights": nights}, scores_of(tested, n_train), tmp_path)
    written = pd.read_csv(tmp_path / "costs.csv")
    part = nights.split([[subject - 1 for subject in trained]])["0"]
    expected = cost_table(methods, part)
    assert written["tokens"][0] == expected["tokens"][0]
    assert written["n_train_subjects"].tolist() == [len(trained)] * 2
    printed = capsys.readouterr().out
    assert "PARS [a]" in printed
    assert f"{expected['parameters'][0]:,}" in printed
    assert "dataset" not in printed


def test_fixed_validation_subjects_come_beside_the_training_subjects(nights, tmp_path):
    windows = with_split(nights, {1: "valid", 2: "train", 3: "train", 4: "test"})
    methods = {
        "split": classifier(pretext=None, validation="split"),
        "none": classifier(pretext=None, validation=0),
        "band power": LogBandPower(),
    }
    show_costs(Console(), methods, {"nights": windows}, scores_of([4, "all"], 2), tmp_path)
    written = pd.read_csv(tmp_path / "costs.csv")
    # Validation does not count: both train on subjects 2 and 3.
    part = nights.split([[1, 2]])["0"]
    expected = cost_table({"none": methods["none"]}, part)["tokens"][0]
    assert written["tokens"].tolist()[:2] == [expected] * 2
    assert written["n_train_subjects"].tolist() == [2, 2, 2]


def test_several_datasets(nights, tmp_path, capsys):
    scores = pd.concat([scores_of([4, "all"], 3, name) for name in ("one", "two")])
    corpora = {"one": nights, "two": nights}
    show_costs(Console(width=200), {"scratch": classifier(pretext=None)}, corpora, scores, tmp_path)
    assert pd.read_csv(tmp_path / "costs.csv")["dataset"].tolist() == ["one", "two"]
    assert "dataset" in capsys.readouterr().out


def test_cells():
    assert [_cell(value) for value in ("a", pd.NA, float("nan"), 12345, 2.5e12)] == [
        *("a", "-", "-", "12,345", "2.5e+12")
    ]
