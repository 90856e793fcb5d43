"""Predict many recordings with one model, one after another."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from braindecode_pars import PARSClassifier, __version__
from braindecode_pars.cli._console import make_console
from braindecode_pars.cli._found_recordings import find_recordings
from braindecode_pars.cli._prediction_files import Results, prediction_folder
from braindecode_pars.cli._prediction_summary import show_summary, summary_row, summary_table
from braindecode_pars.storage._atomic import replace_file
from braindecode_pars.storage._checksum import checksum_of_file
from braindecode_pars.storage._hub import model_folder
from braindecode_pars.storage._model_folder import CLASSIFIER, FILES

__all__ = ["predict_recordings"]


def predict_recordings(
    model: str, paths: Sequence[Path], out: Path, *, overlap: float, device: str
) -> int:
    """Predict recordings, and write and print a summary; return how many could not be predicted.

    Parameters
    ----------
    model : str
        Folder of a saved classifier, or its name on the Hugging Face Hub.
    paths : sequence of Path
        Recordings, and folders of recordings.
    out : Path
        Folder of the results.
    overlap : float
        As in ``predict_raw``.
    device : str
        Device of the model.

    Raises
    ------
    ValueError, OSError
        When there is no such model, no recording, or when the folder has other content. A recording
        that cannot be predicted is a row of the summary.
    """
    found = find_recordings(paths)
    clf = PARSClassifier.load(model, device=device)
    weights = model_folder(model) / FILES[CLASSIFIER][0]
    settings = dict(model=checksum_of_file(weights), overlap=overlap, version=__version__)
    rows: list[dict[str, Any]] = []
    with prediction_folder(out):
        bar = tqdm(found.items(), desc="predicting", unit=" recordings")
        try:
            for recording, target in bar:
                row = _one_row(clf, Results(recording, out / target, settings), bar)
                rows.append({"recording": str(target), **row})
        finally:  # also after Ctrl-C
            bar.close()
            if rows:
                table = summary_table(rows)
                replace_file(out / "summary.csv", table.round(3).to_csv(index=False))
    _report(table, out)
    return int(table["problem"].notna().sum())


def _one_row(clf: PARSClassifier, results: Results, bar: tqdm) -> dict[str, Any]:
    """Predict a recording unless its results are finished, and return its row of the summary."""
    name = results.recording.name
    try:
        row = results.finished()
        if row is None:
            row = _predict(clf, results, bar)
        return {**row, "problem": None}
    except Exception as error:  # one recording does not end the others, whatever its reader raises
        problem = str(error) or type(error).__name__
        bar.write(f"{name} failed: {problem}", file=sys.stderr)
        return {"problem": problem}


def _predict(clf: PARSClassifier, results: Results, bar: tqdm) -> dict[str, Any]:
    """Predict a recording and write its results; warnings are printed with its name."""
    state = results.state()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        frame = clf.predict_raw(results.recording, overlap=results.settings["overlap"])
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        bar.write(f"{results.recording.name}: {message}", file=sys.stderr)
    row = summary_row(frame)
    results.write(frame, row, state)
    return row


def _report(table: Any, out: Path) -> None:
    console = make_console()
    show_summary(console, table)
    n_failed = int(table["problem"].notna().sum())
    if n_failed:
        console.print(
            f"{n_failed} of {len(table)} recordings could not be predicted; the column problem of "
            f"{out / 'summary.csv'} says why."
        )
    if n_failed == len(table):
        return
    if table["n_findings"].any():
        console.print(f"The findings are named in the column findings of {out / 'summary.csv'}.")
    console.print(
        f"Written to {out}: summary.csv, and for each predicted recording a table "
        "(_predictions.csv), events (_events.tsv) and a figure (_hypnodensity.png)."
    )
