"""``braindecode-pars store``: the store, the printed summary, and errors."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from typer.testing import CliRunner

from braindecode_pars.cli import app

runner = CliRunner()


def invoke(*arguments) -> tuple[int, str]:
    result = runner.invoke(app, ["store", *map(str, arguments)])
    return result.exit_code, " ".join(result.output.replace("│", " ").split())


def write(file, n_chans=2, seconds=60, sfreq=128, bad=False) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    signals = 1e-5 * np.random.default_rng(n_chans).standard_normal((n_chans, seconds * sfreq))
    if bad:
        signals[0, 5] = np.nan
    info = mne.create_info([f"E{i}" for i in range(n_chans)], sfreq, "eeg")
    mne.io.RawArray(signals, info, verbose="error").save(file, verbose="error")


@pytest.fixture
def tree(tmp_path):
    write(tmp_path / "tree/anna/night_raw.fif")
    write(tmp_path / "tree/bert/night_raw.fif", n_chans=4, seconds=120)
    return tmp_path / "tree"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dtype", "int8"], "dtype must be one of int16"),
        (["--jobs", 0], "n_jobs must be a number of processes"),
        (["--append"], "is not a SignalStore"),
    ],
)
def test_user_errors_end_without_a_traceback(tree, tmp_path, arguments, message):
    code, output = invoke(tree, tmp_path / "store", *arguments)
    assert code == 1
    assert output.startswith("Error: ")
    assert message in output
    assert not (tmp_path / "store").exists()
