"""SubjectCentering: each subject's own mean is subtracted from the features of a transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from braindecode_pars.estimators._by_subject import MIN_WINDOWS, subject_numbers
from braindecode_pars.estimators._parameters import check_parameters
from braindecode_pars.estimators._windows_estimator import WindowsEstimator, fresh_fit
from braindecode_pars.windows._window_set import as_window_set

__all__ = ["SubjectCentering"]


class SubjectCentering(TransformerMixin, WindowsEstimator):
    r"""Subtract each subject's own mean from the features of a transformer (transductive).

    A feature :math:`f` of a window :math:`i` of subject :math:`s(i)` becomes

    .. math::
        f_i - \frac{1}{|\{j : s(j) = s(i)\}|} \sum_{j : s(j) = s(i)} f_j ,

    where the sum is over the windows of one call of :meth:`transform`. People differ more from each
    other than one person's states do, so this often helps much.

    **It is transductive.** A prediction uses the other windows of the test subject, without their
    labels: a whole recording must be there before its first window is classified. Report it as
    such, and compare it only with methods that are given the same. The mean also contains the
    shares of the classes. Where these differ between subjects, a part of what tells the classes
    apart is removed, and all of it in a subject whose windows are of one class.

    Parameters
    ----------
    transformer : transformer
        A transformer of windows, such as :class:`~braindecode_pars.evaluation.LogBandPower`,
        :class:`~braindecode_pars.PARSEmbedder` or a pipeline. A clone of it is fitted. The windows
        know their subjects and the features do not, so this class wraps the transformer instead of
        following it in a pipeline. It then works in scikit-learn's cross-validation and in the
        protocols of :mod:`braindecode_pars.evaluation`, which pass only windows to ``predict``.
    min_windows : int
        Smallest number of windows of a subject. The mean of n windows adds 1/n of the variance
        within a subject to every feature, a tenth for the default.

    Attributes
    ----------
    transformer_ : transformer
        Fitted transformer.

    References
    ----------
    Relatives are adaptive batch normalisation (Li et al. 2016, arXiv:1603.04779), Riemannian
    re-centring (Zanini et al. 2018, IEEE Transactions on Biomedical Engineering 65) and Euclidean
    alignment (He and Wu 2020, IEEE Transactions on Biomedical Engineering 67).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import SubjectCentering, as_sklearn, datasets
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> X, y, groups = as_sklearn(windows)
    >>> features = SubjectCentering(LogBandPower())
    >>> bool(abs(features.fit_transform(X)[groups == 1].mean(axis=0)).max() < 1e-9)
    True
    >>> clf = make_pipeline(features, StandardScaler(), LogisticRegression(max_iter=1000))
    >>> cross_val_score(clf, X, y, groups=groups, cv=LeaveOneGroupOut()).shape
    (3,)
    """

    def __init__(self, transformer: Any, *, min_windows: int = MIN_WINDOWS):
        self.transformer = transformer
        self.min_windows = min_windows

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> SubjectCentering:
        """Fit the transformer. No mean is learned: each call of :meth:`transform` takes its own.

        Parameters
        ----------
        X : windows
            Windows of any type that the transformer accepts.
        y : array-like, shape (n_windows,) | None
            Labels for the transformer.
        groups : array-like, shape (n_windows,) | None
            Subjects, for windows that do not contain them, such as arrays.

        Returns
        -------
        SubjectCentering
            The fitted transformer itself.

        Raises
        ------
        TypeError
            When ``transformer`` is not a transformer, or ``min_windows`` is not an integer.
        ValueError
            When the subject of a window is unknown, or a subject has fewer windows than
            ``min_windows``. Also all errors of the transformer.
        """
        check_parameters(self)
        _check_transformer(self.transformer)
        self._subjects(X, groups)
        # PARSEmbedder, for example, notes the subjects in its card.
        takes_groups = groups is not None and has_fit_parameter(self.transformer, "groups")
        with fresh_fit(self):
            self.transformer_ = clone(self.transformer)
            self.transformer_.fit(X, y, **({"groups": groups} if takes_groups else {}))
        return self

    def transform(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the features of the transformer, minus the mean of each subject.

        Parameters
        ----------
        X : windows
            All windows of each subject: the result depends on which windows are passed together.
        groups : array-like, shape (n_windows,) | None
            As in :meth:`fit`.

        Returns
        -------
        ndarray, shape (n_windows, n_features)
            Features whose mean over the windows of a subject is zero.

        Raises
        ------
        NotFittedError
            Before :meth:`fit`.
        ValueError
            As in :meth:`fit`.
        """
        check_is_fitted(self)
        subjects = self._subjects(X, groups)
        features = np.asarray(self.transformer_.transform(X))
        features = features.astype(np.result_type(features, np.float32))  # a copy, no integers
        for subject in range(subjects.max() + 1):
            mine = subjects == subject
            features[mine] -= features[mine].mean(axis=0, dtype=float)
        return features

    def fit_transform(self, X: Any, y: Any = None, *, groups: Any = None) -> np.ndarray:
        """Fit the transformer and return its features, minus the mean of each subject.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        ndarray, shape (n_windows, n_features)
            As in :meth:`transform`.
        """
        return self.fit(X, y, groups=groups).transform(X, groups=groups)

    @available_if(lambda self: hasattr(self.transformer, "get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features, which are those of the transformer.

        Parameters
        ----------
        input_features : Any
            Passed to the transformer.

        Returns
        -------
        ndarray of str, shape (n_features,)
            One name per column.
        """
        check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

    def _subjects(self, X: Any, groups: Any) -> np.ndarray:
        windows = as_window_set(X, groups=groups)
        return subject_numbers(windows, self.min_windows, type(self).__name__)


def _check_transformer(transformer: Any) -> None:
    """Check that an object can be fitted and transform windows."""
    missing = [name for name in ("fit", "transform") if not hasattr(transformer, name)]
    if missing or isinstance(transformer, type):
        found = transformer if isinstance(transformer, type) else type(transformer)
        raise TypeError(
            f"SubjectCentering: transformer is {'the class' if found is transformer else 'a'} "
            f"{found.__name__}; pass a transformer of windows, such as LogBandPower()."
        )
