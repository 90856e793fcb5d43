"""A classifier that is watched, and recordings with a split, for the tests of the protocols."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import numpy as np
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from sklearn.base import BaseEstimator, ClassifierMixin

from braindecode_pars.windows._window_set import as_window_set


class Watched(ClassifierMixin, BaseEstimator):
    """Writes down every fit in a folder; answers at random, but by seed and training windows.

    A file ``stop`` in the folder holds the number of the fit that is interrupted, ``fail`` that
    of the one that fails.
    """

    def __init__(self, folder, strength=1, random_state=None):
        self.folder = folder
        self.strength = strength
        self.random_state = random_state

    def fit(self, X, y):
        folder = Path(self.folder)
        n_before = len(list(folder.glob("fit-*")))
        for name, error in (("stop", KeyboardInterrupt), ("fail", ValueError)):
            file = folder / name
            if file.exists() and n_before + 1 >= int(file.read_text()):
                raise error("told to")
        people = as_window_set(X).groups.tolist()
        note = {"seed": self.random_state, "people": sorted(set(people)), "labels": y.tolist()}
        (folder / f"fit-{uuid.uuid4().hex}").write_text(json.dumps(note))
        self.classes_ = np.unique(y)
        self.state_ = [self.random_state, len(y)]
        return self

    def predict(self, X):
        return np.random.RandomState(self.state_).choice(self.classes_, len(X))


def fits(folder) -> list[dict]:
    return [json.loads(file.read_text()) for file in Path(folder).glob("fit-*")]


def with_split(windows: BaseConcatDataset, splits: dict) -> BaseConcatDataset:
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


def with_subject(windows: BaseConcatDataset, who, target=None, **entries) -> BaseConcatDataset:
    """One subject's windows with another target, or recordings with other entries."""
    parts = []
    for part in windows.datasets:
        metadata, description = part.metadata.copy(), dict(part.description)
        if description["subject"] == who:
            description |= entries
            if target is not None:
                metadata["target"] = target
        parts.append(EEGWindowsDataset(part.raw, metadata, description))
    return BaseConcatDataset(parts)
