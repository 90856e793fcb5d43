"""The windows of one dataset as the protocols see them: who they are of, and who is labelled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from skorch.helper import SliceDataset
from torch.utils.data import Dataset

from braindecode_pars.evaluation.arguments import in_order
from braindecode_pars.windows import as_sklearn

__all__ = ["Corpus"]


@dataclass(frozen=True, eq=False)
class Corpus:
    """A windows dataset as scikit-learn takes it.

    Attributes
    ----------
    name : str
        For the column ``dataset``.
    X : SliceDataset, shape (n_windows,)
    y, groups : ndarray, shape (n_windows,)
        Labels and subjects.
    labeled : ndarray of bool, shape (n_windows,)
    unlabeled_label : hashable
    """

    name: str
    X: SliceDataset
    y: np.ndarray
    groups: np.ndarray
    labeled: np.ndarray
    unlabeled_label: Any

    @classmethod
    def of(cls, windows_ds: Dataset, name: str, unlabeled_label: Any) -> Corpus:
        """View a windows dataset.

        Raises
        ------
        ValueError
            When labels or subjects are missing, or a subject is called "all".
        """
        X, y, groups = as_sklearn(windows_ds)
        if "all" in groups.tolist():
            raise ValueError("A subject is called 'all', the name of pooled rows; rename it.")
        labeled = np.array([label != unlabeled_label for label in y.tolist()], dtype=bool)
        return cls(name, X, y, groups, labeled, unlabeled_label)

    @property
    def subjects(self) -> list:
        return in_order(self.groups.tolist())

    @property
    def labeled_subjects(self) -> list:
        """Those with a labelled window."""
        return in_order(self.groups[self.labeled].tolist())

    def windows_of(self, subjects: Iterable, *, labeled_only: bool = False) -> np.ndarray:
        """Indices of these subjects' windows."""
        wanted = set(subjects)
        mask = np.array([subject in wanted for subject in self.groups.tolist()], dtype=bool)
        return np.flatnonzero(mask & self.labeled if labeled_only else mask)

    def test_windows(self, subjects: Iterable) -> np.ndarray:
        """Indices of the labelled windows of test subjects.

        Raises
        ------
        ValueError
            When one of them has none.
        """
        subjects = list(subjects)
        labeled = set(self.labeled_subjects)
        for subject in subjects:
            if subject not in labeled:
                raise ValueError(f"Subject {subject} has no labelled window to score.")
        return self.windows_of(subjects, labeled_only=True)
