"""A classifier that logs its fits, and datasets with splits, for tests of evaluation protocols."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import numpy as np
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from sklearn.base import BaseEstimator, ClassifierMixin

from braindecode_pars.windows.convert import as_windows


class LoggingClassifier(ClassifierMixin, BaseEstimator):
    """Classifier that logs every fit in a folder, and predicts at random.

    The predictions depend on the seed and the number of training windows. If the folder contains a
    file ``stop``, the fit with the number in the file is interrupted; with a file ``fail``, the fit
    raises an error.
    """

    def __init__(self, folder, strength=1, random_state=None):
        self.folder = folder
        self.strength = strength
        self.random_state = random_state

    def fit(self, X, y):
        folder = Path(self.folder)
        # Interrupt or fail, if requested
        n_before = len(list(folder.glob("fit-*")))
        for name, error in (("stop", KeyboardInterrupt), ("fail", ValueError)):
            file = folder / name
            if file.exists() and n_before + 1 >= int(file.read_text()):
                raise error("on purpose")
        # Log the fit; file names are random, because fits run in several processes.
        subjects = sorted(set(as_windows(X).groups.tolist()))
        entry = {"seed": self.random_state, "subjects": subjects, "labels": y.tolist()}
        (folder / f"fit-{uuid.uuid4().hex}").write_text(json.dumps(entry))
        self.classes_ = np.unique(y)
        self.state_ = [self.random_state, len(y)]
        return self

    def predict(self, X):
        return np.random.RandomState(self.state_).choice(self.classes_, len(X))


def fits(folder) -> list[dict]:
    """Return the log entries of all fits."""
    return [json.loads(file.read_text()) for file in Path(folder).glob("fit-*")]


def with_split(windows: BaseConcatDataset, splits: dict) -> BaseConcatDataset:
    """Add ``split`` to the description of each recording, by subject."""
    return BaseConcatDataset(
        [
            EEGWindowsDataset(
                part.raw,
                part.metadata,
                {**part.description, "split": splits[part.description["subject"]]},
            )
            for part in windows.datasets
        ]
    )


def with_subject(
    windows: BaseConcatDataset, subject, /, target=None, **entries
) -> BaseConcatDataset:
    """Change the target of all windows of a subject, or the description of its recordings."""
    parts = []
    for part in windows.datasets:
        metadata, description = part.metadata.copy(), dict(part.description)
        if description["subject"] == subject:
            description |= entries
            if target is not None:
                metadata["target"] = target
        parts.append(EEGWindowsDataset(part.raw, metadata, description))
    return BaseConcatDataset(parts)
