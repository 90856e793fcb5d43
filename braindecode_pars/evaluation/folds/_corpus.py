"""The windows of one dataset with their subjects and labels, as the protocols use them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from skorch.helper import SliceDataset
from torch.utils.data import Dataset

from braindecode_pars._columns import POOLED
from braindecode_pars._subjects import warn_of_similar_names
from braindecode_pars.evaluation._arguments import in_order
from braindecode_pars.windows import as_sklearn
from braindecode_pars.windows._labels import check_class_labels, find_unlabeled
from braindecode_pars.windows._window_set import as_window_set

__all__ = ["Corpus"]


@dataclass(frozen=True, eq=False)
class Corpus:
    """A windows dataset as scikit-learn's ``X``, ``y`` and ``groups``.

    Attributes
    ----------
    name : str
        Value of the column ``dataset``.
    X : SliceDataset, shape (n_windows,)
        Lazy view of the windows.
    y, groups : ndarray, shape (n_windows,)
        Labels and subjects.
    labeled : ndarray of bool, shape (n_windows,)
        Whether a window has a label.
    unlabeled_label : hashable | None
        Label of unlabelled windows; None when every window is labelled.
    splits : ndarray, shape (n_windows,) | None
        Entry ``split`` of the description of each window's recording; None where there is none.
    people : dict
        Name of each subject with the corpus in front, where that is known.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation.folds import Corpus
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> corpus = Corpus.of(windows, "nights", unlabeled_label=-1)
    >>> corpus.subjects, corpus.windows_of([2]).tolist()
    ([1, 2], [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23])
    """

    name: str
    X: SliceDataset
    y: np.ndarray
    groups: np.ndarray
    labeled: np.ndarray
    unlabeled_label: Any
    splits: np.ndarray | None = None
    people: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, windows_ds: Dataset, name: str, unlabeled_label: Any) -> Corpus:
        """Make a corpus from a windows dataset.

        Parameters
        ----------
        windows_ds : BaseConcatDataset
            Labelled windows with ``subject`` in the descriptions.
        name : str
            Value of the column ``dataset``.
        unlabeled_label : hashable | None
            Label of unlabelled windows. ``"auto"`` means -1, with a warning when there are such
            windows. With None every window is labelled.

        Returns
        -------
        Corpus

        Raises
        ------
        ValueError
            When labels or subjects are missing, when labels are not classes or cannot be told from
            the label of unlabelled windows, or when a subject is called "all".

        Warns
        -----
        UserWarning
            When two names of subjects may be those of one person, and with ``"auto"`` when windows
            are taken as unlabelled.
        """
        X, y, groups = as_sklearn(windows_ds)
        if POOLED in groups.tolist():
            raise ValueError(
                f"A subject is called {POOLED!r}, which is reserved for rows that are pooled over "
                "subjects; rename the subject."
            )
        warn_of_similar_names(groups.tolist())
        check_class_labels(y)
        unlabeled, label = find_unlabeled(y, unlabeled_label)
        windows = as_window_set(X)
        people = dict(zip(groups.tolist(), windows.people.tolist(), strict=True))
        return cls(name, X, y, groups, ~unlabeled, label, windows.splits, people)

    @property
    def subjects(self) -> list:
        """All subjects, sorted."""
        return in_order(self.groups.tolist())

    @property
    def labeled_subjects(self) -> list:
        """Subjects with at least one labelled window, sorted."""
        return in_order(self.groups[self.labeled].tolist())

    def subjects_of(self, windows: np.ndarray) -> list:
        """Return the subjects of some windows, sorted.

        Parameters
        ----------
        windows : ndarray of int
            Indices of windows.

        Returns
        -------
        list
        """
        return in_order(self.groups[windows].tolist())

    def people_of(self, subjects: Iterable) -> dict[Any, Any]:
        """Return the name of each of these subjects with the corpus in front."""
        return {subject: self.people.get(subject, subject) for subject in subjects}

    def windows_of(self, subjects: Iterable, *, labeled_only: bool = False) -> np.ndarray:
        """Return the indices of the windows of these subjects.

        Parameters
        ----------
        subjects : iterable
            Subjects whose windows to return.
        labeled_only : bool
            Whether to return only labelled windows.

        Returns
        -------
        ndarray of int
            Indices in the order of the dataset.
        """
        wanted = set(subjects)
        mask = np.array([subject in wanted for subject in self.groups.tolist()], dtype=bool)
        return np.flatnonzero(mask & self.labeled if labeled_only else mask)

    def test_windows(self, subjects: Iterable) -> np.ndarray:
        """Return the indices of the labelled windows of test subjects.

        Parameters
        ----------
        subjects : iterable
            Test subjects.

        Returns
        -------
        ndarray of int
            Indices in the order of the dataset.

        Raises
        ------
        ValueError
            When a subject has no labelled window.
        """
        subjects = list(subjects)
        labeled = set(self.labeled_subjects)
        for subject in subjects:
            if subject not in labeled:
                raise ValueError(
                    f"Test subject {subject} has no labelled window to score; use test subjects "
                    "with labels."
                )
        return self.windows_of(subjects, labeled_only=True)
