"""Behind ``encoders --audit``: the stored audit of an encoder in the package, or a new one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from braindecode.datasets import BaseConcatDataset

from braindecode_pars._common.model_files import model_folder, packaged_folder
from braindecode_pars.cli.terminal import print_frame, show
from braindecode_pars.datasets import mental_arithmetic
from braindecode_pars.evaluation.audits import FEATURES, R2, audit_encoder, audit_table
from braindecode_pars.pretrained.saved import load_encoder
from braindecode_pars.recordings.cutting import fixed_windows

#: Length of the windows in seconds.
SECONDS = 10.0


def show_audit(name: str) -> None:
    """Print what the features of an encoder hold: as stored on its card, or in the sample.

    Parameters
    ----------
    name : str
        Source of the encoder, as in :func:`~braindecode_pars.pretrained.load_encoder`.
    """
    folder = model_folder(name)
    card = load_encoder(folder).card
    stored = card.about.get("audit") if folder == packaged_folder(name) else None
    for audit in stored or [_measured(name, folder, card.sfreq)]:
        show(audit["recordings"])
        if "measured" in audit:
            show(f"Measured: {audit['measured']}")
        _print(pd.DataFrame(audit["table"]))
    show(
        "R2 of a ridge regression on the features of one channel, on other people: 1 is read "
        "without an error, 0 not at all. Above tokens and random encoder, it was learned."
    )


def _measured(name: str, folder: Path, sfreq: float | None) -> dict[str, Any]:
    audit = audit_encoder({name: folder}, _sample(sfreq))
    title = "The sample in the package, rest and mental arithmetic"
    return dict(recordings=recordings_text(title, audit, SECONDS), table=audit_table(audit))


def recordings_text(title: str, audit: pd.DataFrame, seconds: float) -> str:
    """Return a line that says on which recordings an audit was measured."""
    numbers = "{n_subjects} people, {n_signals} signals of {n_windows} windows"
    return f"{title}: {numbers.format(**audit.attrs)} of {seconds:g} s"


def _sample(sfreq: float | None) -> BaseConcatDataset:
    """Return the sample of recordings at the sampling rate of an encoder."""
    sample = mental_arithmetic(window_seconds=SECONDS)
    for i, recording in enumerate(sample.datasets):
        raw = recording.raw
        raw.resample(sfreq or raw.info["sfreq"], verbose="error")
        windows: Any = fixed_windows(raw, SECONDS)
        windows.set_description(recording.description)
        sample.datasets[i] = windows
    return BaseConcatDataset(sample.datasets)


def _print(table: pd.DataFrame) -> None:
    """Print a table for each measure; only the chance level of accuracies differs."""
    for measure, rows in table.groupby("measure", sort=False):
        columns = list(FEATURES) if measure == R2 else [*FEATURES, "chance"]
        shown = rows[columns].map("{:.2f}".format)
        shown.insert(0, measure, rows["property"])
        print_frame(shown)
