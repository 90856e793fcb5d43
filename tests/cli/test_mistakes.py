"""Invalid command lines end with an error message, and no files are written."""

from __future__ import annotations

import shlex

import pytest
from support.small_runs import make_store
from support.store_command import make_tree
from typer.testing import CliRunner

from braindecode_pars.cli import app

#: Command line -> exit code, and a part of the error message.
MISTAKES = {
    "store store": (2, "Folders passed: 1"),
    "store tree out --share tueg=1": (2, "--share and --set require --recipe"),
    "store tree out --labels": (2, "--labels, --exclude, --share and --set require"),
    "store --recipe tueg=. out --labels": (1, "TUEG has no labels"),
    "plan": (2, "--n-windows and --sfreq"),
    "plan absent": (1, "absent"),
    "pretrain tree --out out": (1, ": braindecode-pars store tree STORE"),
    "fit tree --out out --jobs 1": (1, "braindecode-pars store FOLDER STORE"),
    "pretrain store --out out --set n_patches": (1, "KEY=VALUE"),
    "fit tree --out out --method pars --encoder small": (2, "--method trains a new encoder"),
    "fit tree --out out --few-labels --method mae": (2, "--method trains a new encoder"),
    "fit tree --out out --set epochs=3": (1, "setting 'epochs'"),
    "predict nowhere tree --out out": (1, "nowhere is not an existing folder"),
    "predict nowhere empty --out out": (1, "contains no recording"),
    "encoders --audit": (2, "--audit requires the name or folder"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folder")
    make_tree(folder / "tree")
    make_store(folder / "store")
    (folder / "empty").mkdir()
    return folder


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_are_errors_without_traceback(folder, monkeypatch, line):
    code, message = MISTAKES[line]
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    result = CliRunner().invoke(app, shlex.split(line))
    text = " ".join(result.output.replace("│", " ").split())
    assert (result.exit_code, message in text) == (code, True), text
    assert code == 2 or "Error: " in text
    assert "Traceback" not in text
    assert sorted(folder.rglob("*")) == before
