"""Where the labels of recordings are, and which classes and targets they become.

Labels are in annotations of the recordings, in the names of files, or in a table of all files.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from braindecode_pars.recordings._classes import (
    check_ordered,
    classes_of_labels,
    given_classes,
    targets_of,
)
from braindecode_pars.recordings._file_labels import FileLabels
from braindecode_pars.recordings._label_table import labels_in_table, read_table
from braindecode_pars.recordings._name_labels import is_name_pattern, labels_in_names
from braindecode_pars.recordings._own_annotations import labels_in_annotations

__all__ = ["Labels", "classes_and_targets", "labels_of_files"]

log = logging.getLogger(__name__)

#: Where labels are, see :func:`datasets.folder.load <braindecode_pars.datasets.folder.load>`.
Labels = str | Path | pd.DataFrame | Sequence[str] | Mapping[str, int] | Mapping[str, str] | None


def labels_of_files(
    labels: Labels, root: Path, files: Sequence[Path], seconds: float
) -> dict[Path, FileLabels] | None:
    """Return the labels in names of files or in a table; None for labels in annotations.

    Parameters
    ----------
    labels : list | dict | str | path | DataFrame | None
        Where labels are.
    root : Path
        Folder of all recordings.
    files : list of Path
        The recordings.
    seconds : float
        Length of a window.

    Raises
    ------
    TypeError
        When ``labels`` are none of these.
    ValueError
        When ``labels`` is a text that is neither a pattern of names nor the path of a table, or
        when the labels are not those of the files.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings._label_source import labels_of_files
    >>> root, file = Path("data"), Path("data", "P01_rest.edf")
    >>> labels_of_files("{subject}_{label}", root, [file], 30)[file].subject
    'P01'
    >>> labels_of_files(["W", "N1"], root, [file], 30) is None
    True
    """
    if isinstance(labels, pd.DataFrame):
        return labels_in_table(labels, root, files, seconds, "The table of labels")
    if labels is None:
        return None
    if not isinstance(labels, (str, Path)):
        check_ordered("labels", labels)
        return None
    text = str(labels)
    if is_name_pattern(text):
        return labels_in_names(text, root, files)
    if text.lower().endswith((".csv", ".tsv")):
        return labels_in_table(read_table(text, root), root, files, seconds, text)
    raise ValueError(
        f"labels is the text {text!r}; give a list of labels, [{text!r}], a template of names "
        "such as '{subject}_{label}', or the path of a .csv or .tsv file."
    )


def classes_and_targets(
    labels: Labels,
    classes: Sequence[str] | Mapping[str, str] | None,
    of_files: Mapping[Path, FileLabels] | None,
    files: Sequence[Path],
    seconds: float,
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the class of each label, and the target of each class.

    Parameters
    ----------
    labels : list | dict | str | path | DataFrame | None
        Where labels are; for those in annotations also which they are.
    classes : list of str | mapping of str to str | None
        As in :func:`~braindecode_pars.recordings._classes.classes_of_labels`.
    of_files : mapping of Path to FileLabels | None
        What :func:`labels_of_files` returned.
    files : list of Path
        Recordings in whose annotations labels are searched for if none are given.
    seconds : float
        Length of a window.

    Raises
    ------
    ValueError
        When there are no labels, or ``classes`` are given for labels in annotations.

    Examples
    --------
    >>> from braindecode_pars.recordings._label_source import classes_and_targets
    >>> classes_and_targets({"Sleep stage W": "W"}, None, None, [], 30)
    ({'Sleep stage W': 'W'}, {'W': 0})
    """
    if of_files is not None:
        found = {stretch.label for one in of_files.values() for stretch in one.stretches}
        names = classes_of_labels(found, classes)
    elif classes is not None:
        raise ValueError(
            "classes is for labels in names of files or in a table; write the classes of "
            "annotations as labels={description: class}."
        )
    elif isinstance(labels, Mapping):
        return given_classes(labels)
    else:
        found = labels_in_annotations(files, seconds) if labels is None else map(str, labels)
        names = {label: label for label in found}
    if not names:
        raise ValueError("There are no labels: the list or the column of labels is empty.")
    targets = targets_of(names)
    log.info("The labels are %s, with the targets 0, 1, ...", ", ".join(targets))
    return names, targets
