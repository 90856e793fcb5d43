"""Call ``braindecode-pars store`` on a small folder of FIF recordings."""

from __future__ import annotations

from pathlib import Path

import mne
import numpy as np
from typer.testing import CliRunner

from braindecode_pars.cli import app


def invoke(*arguments) -> tuple[int, str]:
    """Run the command, and return the exit code and the output without frames and line breaks."""
    result = CliRunner().invoke(app, ["store", *map(str, arguments)])
    return result.exit_code, " ".join(result.output.replace("│", " ").split())


def write(file: Path, n_chans=2, seconds=60, sfreq=128, bad=False) -> None:
    """Write noise to a FIF file. The file name determines the seed; if bad, one sample is NaN."""
    file.parent.mkdir(parents=True, exist_ok=True)
    seed = [*"/".join(file.parts[-2:]).encode()]
    signals = 1e-5 * np.random.default_rng(seed).standard_normal((n_chans, seconds * sfreq))
    if bad:
        signals[0, 5] = np.nan
    info = mne.create_info([f"E{i}" for i in range(n_chans)], sfreq, "eeg")
    mne.io.RawArray(signals, info, verbose="error").save(file, verbose="error")


def make_tree(folder: Path) -> Path:
    """Write a 2-channel recording of subject anna, and a 4-channel recording of subject bert."""
    write(folder / "anna/night_raw.fif")
    write(folder / "bert/night_raw.fif", n_chans=4, seconds=120)
    return folder
