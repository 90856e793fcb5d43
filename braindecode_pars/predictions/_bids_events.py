"""Predictions as an events file of BIDS, with its description."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars._columns import PROBABILITY
from braindecode_pars.predictions._table import check_predictions, classes_of
from braindecode_pars.sleep_stages import are_stages, stage_of
from braindecode_pars.storage._atomic import replace_files
from braindecode_pars.storage._json import to_json

__all__ = ["has_bids_entities", "to_bids_events"]

_SUFFIX = "_events.tsv"
#: sub-01_ses-1_task-sleep_run-2_desc-pars: labels have letters and digits only.
_ENTITIES = re.compile(
    r"sub-[A-Za-z0-9]+(_ses-[A-Za-z0-9]+)?_task-[A-Za-z0-9]+(_[a-z]+-[A-Za-z0-9]+)*"
)

#: What the stages mean, for the sidecar.
_STAGES = {
    "W": "wake",
    "R": "REM sleep",
    "N1": "NREM sleep, stage 1",
    "N2": "NREM sleep, stage 2",
    "N3": "NREM sleep, stage 3 (slow-wave sleep)",
    "N4": "NREM sleep, stage 4 of Rechtschaffen and Kales",
    "light": "NREM sleep, stage 1 or 2",
    "NREM": "NREM sleep",
    "sleep": "sleep",
    "unscored": "not scored",
}


def to_bids_events(frame: pd.DataFrame, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write predictions as an events file of BIDS, and the JSON file that describes its columns.

    Each window is a row. The columns are ``onset`` and ``duration`` in seconds, ``trial_type`` (the
    label), ``probability_LABEL`` for each class, and ``entropy``. What could not be predicted is
    ``n/a``. Characters of a label that are no letters or digits become ``_`` in names of columns.
    In BIDS, predictions are derivatives: put them into the folder ``derivatives`` of the data set,
    with an entity ``desc``, so that they do not replace the events of a human scorer.

    Parameters
    ----------
    frame : DataFrame
        Predictions of a recording, as from ``predict_raw``.
    path : path
        File to write, such as ``sub-01/eeg/sub-01_task-sleep_desc-pars_events.tsv``. The JSON file
        has the same name with the ending ``.json``. Folders are created.
    overwrite : bool
        Whether to replace existing files.

    Returns
    -------
    Path
        The events file.

    Raises
    ------
    FileExistsError
        When one of the files exists and ``overwrite`` is False.
    OSError
        When the files cannot be written. Neither is changed then.
    TypeError
        When ``frame`` is not a DataFrame.
    ValueError
        When ``frame`` is not a table of predictions, when the name does not end with
        ``_events.tsv``, or when a name that begins with ``sub-`` is not one of BIDS.

    References
    ----------
    Brain Imaging Data Structure, Modality agnostic files: Events,
    https://bids-specification.readthedocs.io.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from braindecode_pars.predictions import to_bids_events
    >>> frame = pd.DataFrame(
    ...     dict(onset=[0.0, 30.0], duration=30.0, label=["W", None], probability_W=[0.75, None])
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = to_bids_events(frame, Path(folder, "sub-01_task-sleep_events.tsv"))
    ...     print(file.read_text().expandtabs(13))
    onset        duration     trial_type   probability_W
    0.0          30.0         W            0.75
    30.0         30.0         n/a          n/a
    <BLANKLINE>
    """
    path = _checked_name(path)
    rows = check_predictions(frame)
    columns = {name: _column_name(name) for name in map(str, rows) if name.startswith(PROBABILITY)}
    if len(set(columns.values())) < len(columns):
        raise ValueError(
            f"Several classes have the same letters and digits ({', '.join(columns)}), so their "
            "columns would have the same name; rename the classes."
        )
    kept = ["onset", "duration", "label", *columns, *(["entropy"] if "entropy" in rows else [])]
    table = rows[kept].rename(columns={"label": "trial_type", **columns})
    table["trial_type"] = [_one_line(label) for label in table["trial_type"]]
    sidecar = path.with_suffix(".json")
    existing = [str(file) for file in (path, sidecar) if file.exists()]
    if existing and not overwrite:
        raise FileExistsError(
            f"{existing[0]} exists; pass another path, or overwrite=True to replace it."
        )
    text = table.round(6).to_csv(sep="\t", index=False, na_rep="n/a", lineterminator="\n")
    described = to_json(_description(classes_of(rows), columns, "entropy" in kept))
    replace_files(path.parent, {path.name: text.encode(), sidecar.name: described.encode()})
    return path


def _checked_name(path: str | Path) -> Path:
    path = Path(path).expanduser()
    stem = path.name.removesuffix(_SUFFIX)
    if stem == path.name or not stem:
        raise ValueError(
            f"{path.name} is not the name of an events file of BIDS, which ends with {_SUFFIX}, "
            "such as sub-01_task-sleep_desc-pars_events.tsv."
        )
    if stem.startswith("sub-") and not has_bids_entities(stem):
        raise ValueError(
            f"{path.name} begins with sub- but is not a name of BIDS: it needs sub, ses if there "
            "are sessions, and task, in this order, each with letters and digits only, such as "
            "sub-01_ses-1_task-sleep_desc-pars_events.tsv."
        )
    return path


def has_bids_entities(stem: str) -> bool:
    """Whether a name is that of a recording in BIDS, without suffix and ending."""
    return _ENTITIES.fullmatch(stem) is not None


def _column_name(name: str) -> str:
    return re.sub(r"\W+", "_", name)


def _one_line(label: Any) -> str | None:
    """Return a label as one cell of a table."""
    return None if label is None else " ".join(str(label).split())


def _description(
    classes: list[str], columns: dict[str, str], has_entropy: bool
) -> dict[str, dict[str, Any]]:
    """Return the description of each column."""
    sleep = are_stages(classes)
    levels = {
        _one_line(name): _STAGES[stage_of(name)] if sleep else f"class {name}" for name in classes
    }
    described: dict[str, dict[str, Any]] = {
        "onset": {
            "Description": "Start of the window, from the first sample of the recording.",
            "Units": "s",
        },
        "duration": {"Description": "Length of the window.", "Units": "s"},
        "trial_type": {
            "LongName": "Predicted class",
            "Description": "Most probable class of the window by a model; n/a where the recording "
            "has a gap or is marked as bad.",
            "Levels": levels,
        },
    }
    for name, column in columns.items():
        described[column] = {
            "Description": f"Probability of the class {name.removeprefix(PROBABILITY)} by the "
            "model, between 0 and 1."
        }
    if has_entropy:
        described["entropy"] = {
            "Description": "Entropy of the probabilities: 0 where the model is certain.",
            "Units": "nat",
        }
    return described
