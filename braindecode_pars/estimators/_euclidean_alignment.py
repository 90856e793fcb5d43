"""EuclideanAlignment: windows whose mean covariance is the same for each subject."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from braindecode_pars.estimators._by_subject import MIN_WINDOWS, subject_numbers
from braindecode_pars.estimators._parameters import check_parameters
from braindecode_pars.estimators._windows_estimator import WindowsEstimator
from braindecode_pars.windows._channels import Channels
from braindecode_pars.windows._picking import pick_as_fitted, pick_for_fit
from braindecode_pars.windows._window_set import WindowSet, as_window_set

__all__ = ["EuclideanAlignment"]

#: Directions with a smaller share of the largest variance are noise of rounding, and set to zero.
_SMALLEST = 1e-7


class EuclideanAlignment(TransformerMixin, WindowsEstimator):
    r"""Give the windows of each subject the same mean covariance (transductive).

    With the windows :math:`X_i` of a subject (channels by samples, T samples), each becomes

    .. math::
        \bar R^{-1/2} X_i, \qquad \bar R = \frac1n \sum_{i=1}^n \frac{X_i X_i^\top}{T}.

    This is to signals what :class:`~braindecode_pars.SubjectCentering` is to features, for models
    that learn from signals, such as :class:`~braindecode_pars.estimators.NetworkClassifier`.

    **It is transductive.** A prediction uses the other windows of the test subject, without their
    labels; see :class:`~braindecode_pars.SubjectCentering` for what that means.

    Parameters
    ----------
    channels : list of str | None
        As in :class:`~braindecode_pars.PARSClassifier`. Recordings with different channels are
        aligned on their common channels.
    min_windows : int
        Smallest number of windows of a subject.

    Attributes
    ----------
    chs_info_ : list of dict | None
        Channels of ``fit``, as in ``mne.Info["chs"]``; None when unknown.

    Notes
    -----
    The aligned signals have no unit. Directions without variance, of which an average reference
    leaves one, stay without it.

    References
    ----------
    He, H., and Wu, D. (2020). Transfer learning for brain-computer interfaces: a Euclidean space
    data alignment approach. IEEE Transactions on Biomedical Engineering 67.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.estimators import EuclideanAlignment, NetworkClassifier
    >>> X, y, groups = as_sklearn(datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2))
    >>> network = NetworkClassifier("EEGNet", finetune_epochs=1, verbose=0)
    >>> make_pipeline(EuclideanAlignment(), network).fit(X, y).predict(X).shape
    (72,)
    """

    def __init__(self, *, channels: list[str] | None = None, min_windows: int = MIN_WINDOWS):
        self.channels = channels
        self.min_windows = min_windows

    def fit(self, X: Any, y: Any = None) -> EuclideanAlignment:
        """Remember the channels. Each call of :meth:`transform` takes its own covariances.

        Parameters
        ----------
        X : windows
            Windows whose channels :meth:`transform` will use. No signal is read.
        y : Any
            Not used; scikit-learn passes it.

        Returns
        -------
        EuclideanAlignment
            The fitted transformer itself.

        Raises
        ------
        TypeError, ValueError
            When a parameter has the wrong type or is out of range, there is no EEG channel, or a
            channel in ``channels`` is missing.
        """
        check_parameters(self)
        self.chs_info_ = pick_for_fit(as_window_set(X), self.channels).chs_info
        return self

    def transform(self, X: Any, *, groups: Any = None) -> WindowSet:
        """Return the aligned windows, for any estimator of this package.

        Parameters
        ----------
        X : windows
            All windows of each subject: the result depends on which windows are passed together.
        groups : array-like, shape (n_windows,) | None
            Subjects, for windows that do not contain them, such as arrays.

        Returns
        -------
        WindowSet
            View of the windows with their labels and subjects. A window is aligned when it is read.

        Raises
        ------
        NotFittedError
            Before :meth:`fit`.
        ValueError
            When the subject of a window is unknown, a subject has fewer windows than
            ``min_windows``, or a channel of :meth:`fit` is missing.
        """
        check_is_fitted(self)
        windows = pick_as_fitted(as_window_set(X, groups=groups), self.chs_info_)
        subjects = subject_numbers(windows, self.min_windows, type(self).__name__)
        n = len(windows)
        info = windows.chs_info
        return replace(
            windows,
            source=_Aligned(windows, subjects),
            indices=np.arange(n),
            channels=None if info is None else Channels.of_recording(n, info),
        )

    def fit_transform(self, X: Any, y: Any = None, *, groups: Any = None) -> WindowSet:
        """Remember the channels and return the aligned windows.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit` and :meth:`transform`.

        Returns
        -------
        WindowSet
            As in :meth:`transform`.
        """
        return self.fit(X, y).transform(X, groups=groups)


class _Aligned:
    """Source of aligned windows.

    Parameters
    ----------
    windows : WindowSet
        Windows of any subjects.
    subjects : ndarray of int, shape (n_windows,)
        Number of each window's subject.
    """

    def __init__(self, windows: WindowSet, subjects: np.ndarray):
        self.windows = windows
        self.subjects = subjects
        self.filters = [_whitening(windows.take(subjects == s)) for s in range(max(subjects) + 1)]

    def __getitem__(self, i: int) -> np.ndarray:
        return self.filters[self.subjects[i]] @ self.windows[i][0]


def _whitening(windows: WindowSet) -> np.ndarray:
    """Return the inverse square root of the mean covariance, shape (n_chans, n_chans)."""
    covariance = np.mean(
        [x @ x.T / x.shape[1] for batch in windows.batches(64) for x in batch.astype(float)], axis=0
    )
    variances, directions = np.linalg.eigh(covariance)
    kept = variances > _SMALLEST * variances.max()
    inverse = np.zeros_like(variances)
    inverse[kept] = variances[kept] ** -0.5
    return (directions * inverse) @ directions.T
