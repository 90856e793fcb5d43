"""``braindecode-pars audit-split``: two tables or two folders, and obvious mistakes."""

from __future__ import annotations

import pandas as pd
import pytest
from support import study_folders
from typer.testing import CliRunner

from braindecode_pars.cli import app


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    start = [0, 2, 4]
    table = pd.DataFrame(dict(recording="a.edf", start=start, subject="P1", label=[0, 1, 0]))
    table["stop"] = table["start"] + 2
    table.to_csv("train.csv", index=False)
    table.assign(start=table["start"] + 5, stop=table["stop"] + 5).to_csv("part.csv", index=False)
    table.assign(recording="b.edf", subject="P2").to_csv("other.tsv", sep="\t", index=False)
    table.drop(columns="subject").to_csv("unknown.csv", index=False)
    table.assign(stop="end").to_csv("text.csv", index=False)


def run(*words, code):
    result = CliRunner().invoke(app, ["audit-split", *map(str, words)])
    assert result.exit_code == code, result.output
    return result.output


def test_the_exit_code_shows_a_leak_in_tables():
    leak = run("train.csv", "part.csv", code=3)
    assert "3 of 3" in leak.splitlines()[0]
    assert "a.edf at 5" in leak
    assert run("train.csv", "other.tsv", code=0).startswith("No leak")


@pytest.mark.parametrize(
    ("train", "test", "text"),
    [
        ("train.csv", "absent.csv", "absent.csv"),
        ("absent", "absent", "Unknown dataset 'absent'"),
        ("train.csv", "unknown.csv", "required columns subject"),
        ("train.csv", "text.csv", "stop must be numbers"),
        ("train.csv", "simulated", "only be compared with another table"),
        ("train.csv", "other.tsv --low 1", "do not apply to tables"),
    ],
)
def test_mistakes_end_with_a_message(train, test, text):
    output = run(train, *test.split(), code=1)
    assert output.startswith("Error: ")
    assert text in output


def test_copies_of_a_recording_are_found_in_folders(tmp_path):
    train, test = tmp_path / "one", tmp_path / "two"
    for folder, seeds in ((train, (0, 1)), (test, (1, 2))):
        for seed in seeds:
            name = f"{folder.name}{seed}"
            (folder / name).mkdir(parents=True)
            study_folders.blocks(seed).save(folder / name / "eye_raw.fif", verbose="error")
    options = ("--window-seconds", 5, "--sfreq", 100, "--low", 0.5, "--high", 40)
    assert "eye_raw.fif" in run(train, test, *options, code=3)
