"""From labelled recordings to a store, and from the store to scores, by commands."""

from __future__ import annotations

import pandas as pd
import pytest
from support.challenge_records import write
from support.labelled_stores import check_equal
from support.store_command import invoke
from typer.testing import CliRunner

from braindecode_pars.cli import app
from braindecode_pars.cli.evaluation_report import load, recipe_of, settings_of, title
from braindecode_pars.datasets import ysyw
from braindecode_pars.signal_store import SignalStore


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    root = tmp_path_factory.mktemp("ysyw")
    for subject in [*(f"tr03-000{i}" for i in range(1, 5)), "te03-0009"]:
        write(root, subject)
    return root


@pytest.fixture(scope="module")
def made(records, tmp_path_factory):
    """A store that the command has made, and what the command printed."""
    path = tmp_path_factory.mktemp("stores") / "labels"
    arguments = ["--recipe", f"ysyw={records}", "--labels", path, "--set", "ysyw.split_seed=1"]
    code, output = invoke(*arguments, "--dtype", "float32")
    assert code == 0, output
    return path, output


def test_labelled_recordings_of_all_splits_are_stored(made, records):
    path, output = made
    assert "ysyw: 4 subjects (4 recordings) of the 1,983 published." in output
    assert "Labelled windows: 32 (0 W, 1 N1, 2 N2, 3 N3, 4 R); evaluate them with" in output
    windows = SignalStore.open(path).labelled_windows()
    assert set(windows.description["split"]) == {"train", "valid", "test"}
    check_equal(windows, ysyw.load(records, split_seed=1, verbose=0))


def test_joined_stores_are_the_data_of_a_command(made, records, tmp_path):
    recipe = ["--recipe", f"ysyw={records}", "--labels", "--set", "ysyw.split_seed=1"]
    for i in (1, 2):
        part = ["--part", f"{i}/2", "--dtype", "float32"]
        code, output = invoke(*recipe, tmp_path / f"part-{i}", *part)
        assert code == 0, output
    code, output = invoke("--join", *tmp_path.glob("part-*"), tmp_path / "all")
    assert code == 0, output
    assert "Labelled windows: 32 (0 W, 1 N1, 2 N2, 3 N3, 4 R)" in output
    assert recipe_of(str(tmp_path / "all")) == "ysyw"
    check_equal(load(str(tmp_path / "all"), None, {}), load(str(made[0]), None, {}))


def test_a_store_is_the_data_of_a_command(made, tmp_path):
    path, _ = made
    for dataset, data in ((str(path), None), ("ysyw", path), ("mine", path)):
        assert len(load(dataset, data, {})) == 32
    assert len(load(str(path), None, {"subjects": ["ysyw:tr03-0002"]})) == 8
    with pytest.raises(ValueError, match="has no argument 'window_seconds'; it has subjects"):
        load(str(path), None, {"window_seconds": 10})
    assert (title(str(path)), recipe_of(str(path)), title("mine")) == ("YSYW", "ysyw", "mine")
    out = tmp_path / "out"
    command = ["evaluate", "leave-one-subject-out", "--dataset", str(path), "--out", str(out)]
    result = CliRunner().invoke(app, [*command, "--method", "band-power"])
    assert result.exit_code == 0, result.output
    scores = pd.read_csv(out / "scores.csv")
    assert set(scores["dataset"]) == {"YSYW"}


def test_the_paper_s_noise_of_eesm17_is_that_of_its_store(made, monkeypatch):
    path, _ = made
    assert "augmentation" not in settings_of(None, None, published=True, dataset=str(path))
    monkeypatch.setattr(
        "braindecode_pars.cli.evaluation_report.recipe_of", lambda dataset: "eesm17"
    )
    assert settings_of(None, None, published=True, dataset=str(path))["augmentation"]


def test_a_store_without_labels_says_how_to_make_one(records, tmp_path):
    path = tmp_path / "store"
    code, output = invoke("--recipe", f"ysyw={records}", path)
    assert code == 0, output
    with pytest.raises(ValueError, match=r"has no labels of these .* braindecode-pars store --lab"):
        load(str(path), None, {})
    code, output = invoke("--recipe", f"ysyw={records}", "--labels", "--append", path)
    assert code == 1
    assert "has labels" in output


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["a", "store", "--labels"], 2, "--labels need --recipe"),
        (["--recipe", "ysyw=a", "store", "--labels", "--share", "ysyw=1"], 2, "omit --labels"),
        (["--recipe", "tueg=.", "store", "--labels"], 1, "TUEG has no labels: its recipe has no"),
    ],
)
def test_arguments_that_do_not_fit(arguments, code, message):
    found, output = invoke(*arguments)
    assert found == code
    assert message in output
