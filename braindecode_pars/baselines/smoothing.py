"""HMMSmoothing: smooth predictions of consecutive windows with a hidden Markov model.

The states of the hidden Markov model (HMM) are the classes. Its transition probabilities are
estimated from the labels of the training windows, and its emission probabilities are computed from
the class probabilities of a classifier.
"""

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common.tables import TestSubjectData
from braindecode_pars.estimators.windows_classifier import LabelPredictor
from braindecode_pars.estimators.windows_estimator import fresh_fit, parameter_of_last
from braindecode_pars.windows import Windows, convert
from braindecode_pars.windows.transitions import Transitions


class HMMSmoothing(LabelPredictor):
    """Smooth predictions of consecutive windows with a hidden Markov model (transductive).

    Use it for labels with temporal structure, such as sleep stages. ``fit`` fits the classifier and
    estimates the transition probabilities between the labels of consecutive windows, see
    :class:`~braindecode_pars.windows.transitions.Transitions`. To compare predictions with and
    without smoothing in an evaluation protocol such as
    :func:`~braindecode_pars.evaluation.compare`, pass both estimators: ``{"log band power": probe,
    "log band power, smoothed": HMMSmoothing(probe)}``.

    **This method is transductive.** Each prediction also uses the previous and the following
    windows of the recording, without their labels. Compare the scores only with scores of methods
    that use the same data of the test subjects.

    Parameters
    ----------
    classifier : classifier
        Required: a classifier of windows with ``predict_proba``, or a pipeline. A clone is fitted.
        Smoothing divides the predicted probabilities by the prior class probabilities, which are
        derived from the ``class_weight`` of the classifier or, in a pipeline, from the
        ``class_weight`` of the last step that has this parameter.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    classifier_ : classifier
        Fitted classifier.
    transitions_ : Transitions
        Transition probabilities between the labels of consecutive windows of ``fit``.
    test_subject_data_ : TestSubjectData
        Which data of the test subject a prediction uses in addition to the window itself: always
        ``ALL_UNLABELED``.

    Notes
    -----
    Consecutive windows form a segment, which ends at the end of a recording or at a gap between
    two windows. Each segment is smoothed separately. If the order of the labels is fixed by the
    experimental design, for example if a task alternates with rest, smoothing can predict labels
    from this order. The scores then reflect the design instead of brain activity.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.estimators import HMMSmoothing, LinearProbe
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> X, y, subjects = as_sklearn(datasets.simulated.sleep(n_subjects=3, hours=1, n_chans=2))
    >>> probe = LinearProbe(LogBandPower())
    >>> smoothed = HMMSmoothing(probe).fit(X[subjects < 3], y[subjects < 3])
    >>> recording = X[subjects == 3]
    >>> count_changes = lambda stages: int((stages[1:] != stages[:-1]).sum())
    >>> n_smoothed = count_changes(smoothed.predict(recording))
    >>> n_smoothed < count_changes(smoothed.classifier_.predict(recording))
    True
    """

    test_subject_data_ = TestSubjectData.ALL_UNLABELED

    def __init__(self, classifier: Any = None):
        self.classifier = classifier

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the classifier, and estimate the transition probabilities between labels.

        Parameters
        ----------
        X : windows
            Windows with known start and stop samples in their recordings: a braindecode dataset,
            the X of ``as_sklearn``, or windows of a SignalStore.
        y : array-like, shape (n_windows,) | None
            Labels. If None, the labels of the dataset are used.

        Returns
        -------
        HMMSmoothing
            The fitted classifier itself.

        Raises
        ------
        ValueError
            If the position of a window in the recording is unknown, as in arrays, or if there are
            no consecutive labeled windows. Errors of the classifier are also raised.
        """
        windows = convert.as_windows(X, y)
        _check_places(windows)
        with fresh_fit(self):
            self.classifier_ = clone(self.classifier).fit(windows, windows.labels)
            self.classes_ = self.classifier_.classes_
            codes = pd.Index(self.classes_).get_indexer(windows.labels)  # -1 for unlabeled windows
            labeled = windows.with_labels(codes)[codes >= 0]
            class_weight = parameter_of_last("class_weight", self.classifier)
            transitions = Transitions.of(labeled, self.classes_, class_weight)
            if transitions is None:
                raise ValueError(
                    "HMMSmoothing estimates transition probabilities from consecutive labeled "
                    "windows, but X contains no consecutive labeled windows. Pass labeled windows "
                    "that start where the previous window of the recording ends."
                )
            self.transitions_ = transitions
        return self

    @property
    def unlabeled_label(self) -> Any:
        """Label that marks unlabeled windows: ``unlabeled_label`` of the classifier."""
        return parameter_of_last("unlabeled_label", self.classifier)

    def _predictions(self, X: Any, groups: Any = None) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        windows = convert.as_windows(X, groups=groups)
        segments = _segments(windows)
        raw = np.asarray(self.classifier_.predict_proba(windows), dtype=float)
        smoothed, path = np.empty_like(raw), np.empty(len(raw), dtype=int)
        for segment in segments:
            smoothed[segment], path[segment] = self.transitions_.smooth(raw[segment])
        return self.classes_[path], smoothed


def _check_places(windows: Windows) -> None:
    if (windows.table["stop"] < 0).any():
        raise ValueError(
            "HMMSmoothing requires the start and stop sample of every window in the recording, "
            "which arrays, lists and mne.Epochs do not contain. Pass a braindecode dataset, or the "
            "X that as_sklearn returns."
        )


def _segments(windows: Windows) -> list[np.ndarray]:
    """Return the row numbers of the consecutive windows of each segment, in temporal order."""
    _check_places(windows)
    table = windows.table[["recording", "start", "stop"]].reset_index(drop=True)
    table = table.sort_values(["recording", "start"])
    gaps = table["start"] - table["stop"].shift()
    gaps[table["recording"].diff() != 0] = np.inf
    if (gaps < 0).any():
        raise ValueError(
            "HMMSmoothing requires windows that do not overlap, but X contains overlapping windows "
            "of a recording. Create the windows without overlap."
        )
    segments = table.groupby((gaps != 0).cumsum()).groups.values()
    return [rows.to_numpy() for rows in segments]
