"""Which labels follow each other, and predictions of windows in a row that are smoothed by that.

It is a hidden Markov model. Its states are the classes, its transitions are counted on the labels
of the training windows, and its emissions come from the probabilities of a classifier.
"""

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common.tables import TestSubjectData
from braindecode_pars.estimators.windows_estimator import (
    LabelPredictor,
    fresh_fit,
    parameter_of_last,
)
from braindecode_pars.windows import Windows, convert
from braindecode_pars.windows.transitions import Transitions


class HMMSmoothing(LabelPredictor):
    """Smooth the predictions of a classifier over time, by a hidden Markov model (transductive).

    For labels with an order in time, such as sleep stages. The transitions between labels are
    counted in ``fit``, see :class:`~braindecode_pars.windows.transitions.Transitions`. A
    protocol scores raw and smoothed predictions of one classifier when it is given both:
    ``{"log band power": probe, "log band power, smoothed": HMMSmoothing(probe)}``.

    **It is transductive.** A prediction uses the windows before and after, without their labels.
    Compare only with methods that are given the same.

    Parameters
    ----------
    classifier : classifier
        Required: a classifier of windows with ``predict_proba``, or a pipeline. A clone of it is
        fitted. Its ``class_weight``, or that of its last part that has one, tells the prior that
        it learns.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    classifier_ : classifier
        Fitted classifier.
    transitions_ : Transitions
        Transitions between the labels of the windows of ``fit``.
    test_subject_data_ : TestSubjectData
        What a prediction is given of the test person, beside its window.

    Notes
    -----
    A run of windows ends at the end of a recording, and where the next window does not touch the
    one before. Labels that a design has put in an order, as in trials of a task that alternates
    with rest, are predicted from that order: it is knowledge of the design, and not of the brain.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.estimators import HMMSmoothing, LinearProbe
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> X, y, subjects = as_sklearn(datasets.simulated.sleep(n_subjects=3, hours=1, n_chans=2))
    >>> probe = LinearProbe(LogBandPower())
    >>> smoothed = HMMSmoothing(probe).fit(X[subjects < 3], y[subjects < 3])
    >>> night = X[subjects == 3]
    >>> changes = lambda stages: int((stages[1:] != stages[:-1]).sum())
    >>> changes(smoothed.predict(night)) < changes(smoothed.classifier_.predict(night))
    True
    """

    test_subject_data_ = TestSubjectData.ALL_UNLABELED

    def __init__(self, classifier: Any = None):
        self.classifier = classifier

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the classifier, and count the transitions.

        Parameters
        ----------
        X : windows
            Windows whose place in a recording is known: a dataset of braindecode, the X of
            ``as_sklearn``, or windows of a store.
        y : array-like, shape (n_windows,) | None
            Labels; None uses those of the dataset.

        Returns
        -------
        HMMSmoothing
            The fitted classifier itself.

        Raises
        ------
        TypeError
            When ``classifier`` has no ``predict_proba``.
        ValueError
            When the place of a window is unknown, as in arrays, or no two windows touch. Also all
            errors of the classifier.
        """
        if not hasattr(self.classifier, "predict_proba"):
            raise TypeError(
                f"{type(self.classifier).__name__} predicts no probabilities; pass a classifier "
                "with predict_proba."
            )
        windows = convert.as_windows(X, y)
        _check_places(windows)
        with fresh_fit(self):
            self.classifier_ = clone(self.classifier).fit(windows, windows.labels)
            self.classes_ = self.classifier_.classes_
            code_of = {label: code for code, label in enumerate(self.classes_.tolist())}
            codes = np.array([code_of.get(label, -1) for label in windows.labels.tolist()])
            labeled = windows.with_labels(codes)[codes >= 0]
            class_weight = parameter_of_last("class_weight", self.classifier)
            transitions = Transitions.of(labeled, self.classes_, class_weight)
            if transitions is None:
                raise ValueError("No two labeled windows touch in time; pass windows in a row.")
            self.transitions_ = transitions
        return self

    @property
    def unlabeled_label(self) -> Any:
        """That of the classifier."""
        return parameter_of_last("unlabeled_label", self.classifier)

    def _predictions(self, X: Any, groups: Any = None) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        windows = convert.as_windows(X, groups=groups)
        runs = _runs(windows)
        raw = np.asarray(self.classifier_.predict_proba(windows), dtype=float)
        smoothed, path = np.empty_like(raw), np.empty(len(raw), dtype=int)
        for run in runs:
            smoothed[run], path[run] = self.transitions_.smooth(raw[run])
        return self.classes_[path], smoothed


def _check_places(windows: Windows) -> None:
    if (windows.table["stop"] < 0).any():
        raise ValueError(
            "HMMSmoothing needs the place of every window in its recording, which arrays, lists "
            "and Epochs do not have; pass a dataset of braindecode, or the X of as_sklearn."
        )


def _runs(windows: Windows) -> list[np.ndarray]:
    """Return the positions of windows that follow each other, in the order of time."""
    _check_places(windows)
    table = windows.table[["recording", "start", "stop"]].reset_index(drop=True)
    table = table.sort_values(["recording", "start"])
    gaps = table["start"] - table["stop"].shift()
    gaps[table["recording"].diff() != 0] = np.inf
    if (gaps < 0).any():
        raise ValueError("Windows of a recording overlap; cut windows side by side.")
    return [run.to_numpy() for run in table.groupby((gaps != 0).cumsum()).groups.values()]
