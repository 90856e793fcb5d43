"""``braindecode-pars predict``: predictions of recordings with tables, events and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braindecode_pars.cli._failures import report_failures

__all__ = ["predict"]


def predict(
    model: Annotated[
        str,
        typer.Argument(
            help="Folder of a classifier that PARSClassifier.save has written, or hf://owner/name.",
            metavar="MODEL",
        ),
    ],
    recordings: Annotated[
        list[Path],
        typer.Argument(
            help="EDF, BDF, FIF or WFDB recordings, and folders with such recordings at any depth.",
            metavar="RECORDING...",
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for the results, and to resume from.", metavar="FOLDER")
    ],
    overlap: Annotated[
        float,
        typer.Option(
            help="Share of a window that the next one repeats; predictions of windows "
            "that overlap are averaged.",
            min=0,
            max=0.99,
        ),
    ] = 0.0,
    device: Annotated[
        str, typer.Option(help="Torch device; auto uses CUDA, then MPS, then the CPU.")
    ] = "auto",
) -> None:
    """Predict recordings: a table, events and a figure of each, and one summary.

    Each recording gets a CSV table, an events file of BIDS with its JSON file, and a figure of its
    classes and probabilities over time. summary.csv has the time in each class; for sleep stages
    also the sleep efficiency, latencies and the other statistics of YASA. Finished recordings are
    not predicted again, unless they, the model or the options have changed.
    """
    kept = f"Finished recordings are kept in {out}; run the same command to resume."
    with report_failures(kept):
        from braindecode_pars.cli._predicting import predict_recordings

        n_failed = predict_recordings(model, recordings, out, overlap=overlap, device=device)
    if n_failed:
        raise typer.Exit(1)
