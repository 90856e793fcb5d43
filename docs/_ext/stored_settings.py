"""Table of settings and run times, as measured by ``docs/experiments/settings.py``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

__all__ = ["duration", "settings_table"]


def duration(minutes: float) -> str:
    """Format a duration in minutes as seconds, minutes, hours or years, with two digits."""
    for unit, size in (("years", 60 * 24 * 365.25), ("hours", 60), ("min", 1)):
        if minutes >= 1.5 * size:
            return f"{float(f'{minutes / size:.2g}'):,g} {unit}"
    return f"{float(f'{60 * minutes:.2g}'):g} s"


def settings_table(file: Path) -> pd.DataFrame:
    """Return the table; the training is "none" in rows without steps."""
    measured = pd.read_csv(file, comment="#")
    rows = [
        (
            row["data"],
            f"{row['window_seconds']:g} s and {row['patch_seconds']:g} s at {row['sfreq']:g} Hz",
            f"{row['num_layers']} layers of {row['embed_dim']} features",
            _training(row["pretraining_steps"], row["pretraining_minutes"]),
            _training(row["finetuning_steps"], row["finetuning_minutes"]),
        )
        for _, row in measured.iterrows()
    ]
    titles = ["Data", "Window and patch", "Size", "Pretraining", "Fine-tuning"]
    return pd.DataFrame(rows, columns=titles)


def _training(steps: float, minutes: float) -> str:
    return "none" if pd.isna(steps) else f"{steps:,.0f} steps, {duration(minutes)}"
