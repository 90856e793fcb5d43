"""``braindecode-pars plan``: from numbers and folders to disk, steps and hours."""

from __future__ import annotations

import pytest
from braindecode.datasets import BaseConcatDataset
from support.small_runs import noise
from typer.testing import CliRunner

from braindecode_pars.cli import app
from braindecode_pars.runs import planning
from braindecode_pars.signal_store import SignalStore

runner = CliRunner()
SMALL = [*("--window-seconds", 3, "--patch-seconds", 0.5, "--device", "cpu", "--batch-size", 8)]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """One window a step is measured."""
    monkeypatch.setattr(planning, "_MIN_STEP_SECONDS", 0)


def plan(*arguments):
    result = runner.invoke(app, ["plan", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.replace("│", " ").split())


def test_from_numbers_with_the_published_settings(monkeypatch):
    monkeypatch.setattr(planning, "_throughput", lambda *arguments: 1000.0)
    numbers = ["--n-windows", 1_500_000, "--window-seconds", 30, "--sfreq", 200]
    printed = plan(*numbers, "--n-chans", 6, "--paper", "--device", "cpu")
    for words in (
        "parameters 14,304,257",
        "windows per pass 1,500,000",
        "disk space of the store 108.0 GB",
        "steps 2,930,000 steps per epoch 2,930",
        "windows per second and device 1,000",
        "duration (hours) 417",
        "No run was started.",
    ):
        assert words in printed
    assert "laptop" not in printed


def test_held_out_recordings_are_not_counted(tmp_path):
    """As pretrain leaves them out: 20 s of subject 0 are half of the windows."""
    recordings = noise()
    for number, part in enumerate(recordings.datasets):
        part.description["split"] = "test" if number == 0 else "train"
    store = SignalStore.create(
        tmp_path / "store", BaseConcatDataset(recordings.datasets), dtype="float32", verbose=0
    )
    assert "steps per epoch 1 " in plan(store.path, *SMALL)
