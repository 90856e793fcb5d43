"""scikit-learn transformers that use the subjects: SubjectCentering and EuclideanAlignment."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import metaestimators, validation

from braindecode_pars._common.tables import TestSubjectData
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.windows import Windows, convert, picking

#: Default minimum number of windows per subject. The mean of a feature over n windows has an
#: error, whose variance is 1/n of the within-subject variance of the feature.
MIN_WINDOWS = 10


def subject_numbers(
    windows: Windows, min_windows: int, owner: str, remedy: str = "decrease min_windows"
) -> np.ndarray:
    """Return the subject of each window as an integer code, counted from 0.

    Parameters
    ----------
    windows : Windows
        All windows of each subject.
    min_windows : int
        Minimum number of windows per subject.
    owner : str
        Name of the class or parameter that requires the subjects, for the error message.
    remedy : str
        What the error message advises for a subject with too few windows in total.

    Returns
    -------
    ndarray of int, shape (n_windows,)
        Subject codes. Windows of the same subject have the same code.

    Raises
    ------
    ValueError
        If there are no windows, the subject of a window is unknown, or a subject has fewer
        windows than ``min_windows``.
    """
    windows.check_not_empty()
    if windows.groups is None:
        n_unknown = int((~windows.has_subject).sum())
        raise ValueError(
            f"{owner} requires the subject of every window, but the subject is unknown for "
            f"{n_unknown} of {len(windows)} windows. Pass the subjects as groups, or pass the X "
            "that as_sklearn returns, which contains the subjects."
        )
    numbers, names = pd.factorize(windows.groups)
    counts = np.bincount(numbers)
    if counts.min() < min_windows:
        first_small = int((counts < min_windows).argmax())
        raise ValueError(
            f"{owner} requires at least {min_windows} windows per subject to estimate a mean over "
            f"the windows of a subject, but subject {names[first_small]} has "
            f"{counts[first_small]}. Pass all windows of a subject in one call. If a subject has "
            f"fewer windows in total, {remedy}."
        )
    return numbers


def subtract_means(
    features: np.ndarray, subjects: np.ndarray, prior: tuple[np.ndarray, float] | None = None
) -> np.ndarray:
    """Subtract the mean of each subject, or the running mean of each subject, from features.

    Parameters
    ----------
    features : ndarray, shape (n_windows, n_features)
        Features.
    subjects : ndarray of int, shape (n_windows,)
        Subject code of each window, counted from 0.
    prior : tuple of ndarray and float | None
        If None, the mean over all windows of a subject is subtracted. Otherwise, the running mean
        is subtracted: the mean over the current window and all previous windows of the same
        subject, in row order. ``prior`` contains the initial value of the running mean, and the
        weight of this value as a number of windows.

    Returns
    -------
    ndarray, shape (n_windows, n_features)
        Centered copy of the features, with a floating-point dtype. NaN values remain NaN, and are
        ignored in the means.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.estimators.transformers import subtract_means
    >>> features, subjects = np.array([[1.0], [3.0]]), np.zeros(2, dtype=int)
    >>> subtract_means(features, subjects).ravel().tolist()
    [-1.0, 1.0]
    >>> # The running means are (0 + 1) / 2 and (0 + 1 + 3) / 3.
    >>> subtract_means(features, subjects, (np.zeros(1), 1.0)).ravel().round(2).tolist()
    [0.5, 1.67]
    """
    centered = features.astype(np.result_type(features, np.float32))
    for subject in range(subjects.max() + 1):
        subject_windows = subjects == subject
        centered[subject_windows] -= subject_mean(centered[subject_windows], prior)
    return centered


def subject_mean(features: np.ndarray, prior: tuple[np.ndarray, float] | None = None) -> np.ndarray:
    """Return the mean features of one subject, shape (n_features,).

    With ``prior``, see :func:`subtract_means`, return the running mean at each window, shape
    (n_windows, n_features).
    """
    add = np.sum if prior is None else np.cumsum
    mean, weight = (0.0, 0.0) if prior is None else prior
    missing = np.isnan(features)
    total = add(np.where(missing, 0, features), axis=0, dtype=float) + weight * mean
    return total / np.maximum(1, add(~missing, axis=0) + weight)


class SubjectCentering(TransformerMixin, BaseEstimator):
    r"""Subject-wise centering: subtract the mean of each subject from the features (transductive).

    A feature :math:`f` of window :math:`i` of subject :math:`s(i)` becomes

    .. math::
        f_i - \frac{1}{|\{j : s(j) = s(i)\}|} \sum_{j : s(j) = s(i)} f_j ,

    where the sum is over all windows of the subject in one call of :meth:`transform`. Differences
    between subjects are often larger than differences between classes, so centering can increase
    scores considerably.

    **This method is transductive.** Each prediction also uses the other windows of the test
    subject, without their labels. All windows of a subject must therefore be available before the
    first window is classified. Report the scores as transductive, and compare them only with scores
    of methods that use the same data of the test subjects. The subject mean also depends on the
    class proportions of the subject. If the class proportions differ between subjects, centering
    removes part of the difference between classes. If each subject has windows of one class only,
    centering removes the whole difference.

    **Causal centering** (``running=True``): The windows of a subject must be in temporal order.
    Window :math:`i`, the n-th window of its subject, is centered by subtracting the mean over all
    windows of the subject up to and including window :math:`i`. This running mean is shrunk toward
    the mean :math:`m` of the training subjects, which has the weight of :math:`n_0` windows,

    .. math::
        f_i - \frac{n_0 m + \sum_{j \le i, s(j) = s(i)} f_j}{n_0 + n} .

    The training windows are centered in the same way. If the classes occur in long blocks, the
    running mean mainly reflects the class of the first block for a long time, so that the centered
    features depend on the order of the blocks.

    Parameters
    ----------
    transformer : transformer
        Required: a transformer that computes features of windows, such as
        :class:`~braindecode_pars.evaluation.LogBandPower`, :class:`~braindecode_pars.PARSEmbedder`
        or a pipeline. A clone is fitted. Do not use the transformer as the previous step of a
        pipeline: SubjectCentering reads the subjects from the windows, and features do not contain
        the subjects. Because the subjects are read from the windows, SubjectCentering also works in
        scikit-learn's cross-validation and in evaluation protocols (such as
        :func:`~braindecode_pars.evaluation.compare`), which pass only windows to ``predict``.
    min_windows : int
        Minimum number of windows per subject. If a subject has fewer windows, :meth:`fit` and
        :meth:`transform` raise a ValueError. The mean of a feature over n windows has an error,
        whose variance is 1/n of the within-subject variance of the feature (10 % with 10 windows).
        With ``running=True``, one window per subject is sufficient, and ``min_windows`` is the
        weight :math:`n_0` of the mean of the training subjects.
    running : bool
        Whether to use causal centering: subtract the running mean over the current and all previous
        windows of a subject, instead of the mean over all windows of the subject.

    Attributes
    ----------
    transformer_ : transformer
        Fitted transformer.
    mean_ : ndarray, shape (n_features,)
        Mean :math:`m` of the training subjects: the subject means, averaged over subjects. Only
        present with ``running=True``.
    test_subject_data_ : TestSubjectData
        Which data of the test subject a prediction uses in addition to the window itself:
        ``ALL_UNLABELED`` or, with ``running=True``, ``PAST_UNLABELED``.

    References
    ----------
    Related methods are adaptive batch normalization (Li et al. 2016, arXiv:1603.04779), Riemannian
    re-centering (Zanini et al. 2018, IEEE Transactions on Biomedical Engineering 65) and Euclidean
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

    def __init__(
        self, transformer: Any = None, *, min_windows: int = MIN_WINDOWS, running: bool = False
    ):
        self.transformer = transformer
        self.min_windows = min_windows
        self.running = running

    @property
    def test_subject_data_(self) -> TestSubjectData:
        return TestSubjectData.PAST_UNLABELED if self.running else TestSubjectData.ALL_UNLABELED

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Fit ``transformer`` and, with ``running=True``, store the mean feature vector.

        With ``running=False``, no mean is stored: each call of :meth:`transform` computes the
        subject means from the windows that are passed in this call.

        Parameters
        ----------
        X : windows
            Windows of any type that ``transformer`` accepts.
        y : array-like, shape (n_windows,) | None
            Labels, which are passed to ``transformer``.
        groups : array-like, shape (n_windows,) | None
            Subject of each window. Required for windows without subjects, such as arrays. If None,
            the subjects stored with the windows are used.

        Returns
        -------
        SubjectCentering
            The fitted SubjectCentering (``self``).

        Raises
        ------
        TypeError
            If ``min_windows`` is not an integer.
        ValueError
            If ``transformer`` is not a transformer, or the subject of a window is unknown. With
            ``running=False``, also if a subject has fewer windows than ``min_windows``. Errors of
            ``transformer`` are also raised.
        """
        windows_estimator.check_estimator(self)
        subjects = self._subjects(X, groups)
        # Pass the subjects on, because PARSEmbedder, for example, stores them in the encoder card.
        passes_groups = groups is not None and validation.has_fit_parameter(
            self.transformer, "groups"
        )
        with windows_estimator.fresh_fit(self):
            self.transformer_ = clone(self.transformer)
            self.transformer_.fit(X, y, **({"groups": groups} if passes_groups else {}))
            if self.running:
                features = np.asarray(self.transformer_.transform(X))
                self.mean_ = pd.DataFrame(features).groupby(subjects).mean().mean().to_numpy()
        return self

    def transform(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Compute the features of the transformer and subtract the mean of each subject.

        Parameters
        ----------
        X : windows
            All windows of each subject: the mean is computed over the windows that are passed in
            one call. With ``running=True``, the windows of each subject must be in temporal order,
            beginning with the first window of the subject.
        groups : array-like, shape (n_windows,) | None
            As in :meth:`fit`.

        Returns
        -------
        ndarray, shape (n_windows, n_features)
            Centered features. With ``running=False``, their mean over the windows of each subject
            is zero. With ``running=True``, the running mean is subtracted, so their mean is usually
            not zero.

        Raises
        ------
        NotFittedError
            Before :meth:`fit`.
        ValueError
            As in :meth:`fit`.
        """
        validation.check_is_fitted(self)
        subjects = self._subjects(X, groups)
        return self._centered(np.asarray(self.transformer_.transform(X)), subjects)

    def _centered(self, features: np.ndarray, subjects: np.ndarray) -> np.ndarray:
        prior = (self.mean_, float(self.min_windows)) if self.running else None
        return subtract_means(features, subjects, prior)

    def fit_transform(self, X: Any, y: Any = None, *, groups: Any = None) -> np.ndarray:
        """Fit the transformer, compute the features and subtract the mean of each subject.

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

    @metaestimators.available_if(lambda self: hasattr(self.transformer, "get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns, which are the feature names of the transformer.

        Parameters
        ----------
        input_features : Any
            Passed to ``get_feature_names_out`` of the transformer.

        Returns
        -------
        ndarray of str, shape (n_features,)
            One name per column.
        """
        validation.check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

    def _subjects(self, X: Any, groups: Any) -> np.ndarray:
        windows = convert.as_windows(X, groups=groups)
        min_windows = 1 if self.running else self.min_windows
        return subject_numbers(windows, min_windows, type(self).__name__)


#: Directions whose variance is below this proportion of the largest variance contain only rounding
#: errors, and are set to zero.
_SMALLEST = 1e-7


class EuclideanAlignment(TransformerMixin, BaseEstimator):
    r"""Euclidean alignment: whiten signals with the mean covariance of each subject (transductive).

    A window :math:`X_i` of a subject (channels by samples, T samples) becomes

    .. math::
        \bar R^{-1/2} X_i, \qquad \bar R = \frac1n \sum_{i=1}^n \frac{X_i X_i^\top}{T},

    where :math:`\bar R` is the mean covariance over all n windows of the subject. Use Euclidean
    alignment for models that are trained on signals, such as
    :class:`~braindecode_pars.estimators.NetworkClassifier`. The corresponding method for features
    is :class:`~braindecode_pars.SubjectCentering`.

    **This method is transductive.** Each prediction also uses the other windows of the test
    subject, without their labels. For the consequences, see
    :class:`~braindecode_pars.SubjectCentering`.

    Parameters
    ----------
    channels : list of str | None
        As in :class:`~braindecode_pars.PARSClassifier`. If recordings have different channels,
        the channels shared by all recordings are used.
    min_windows : int
        Minimum number of windows per subject. If a subject has fewer windows, :meth:`transform`
        raises a ValueError.

    Attributes
    ----------
    chs_info_ : list of dict | None
        Channels seen in ``fit``, as in ``mne.Info["chs"]``. None if the channels are unknown.
    test_subject_data_ : TestSubjectData
        Which data of the test subject a prediction uses in addition to the window itself:
        always ``ALL_UNLABELED``.

    Notes
    -----
    The aligned signals have no unit. Directions without variance, such as the mean over channels in
    recordings with an average reference, remain zero.

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

    test_subject_data_ = TestSubjectData.ALL_UNLABELED

    def __init__(self, *, channels: list[str] | None = None, min_windows: int = MIN_WINDOWS):
        self.channels = channels
        self.min_windows = min_windows

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the channels. The covariances are computed in each call of :meth:`transform`.

        Parameters
        ----------
        X : windows
            Windows with the channels that :meth:`transform` will use. Their signals are not read.
        y : Any
            Not used, present for API consistency.

        Returns
        -------
        EuclideanAlignment
            The fitted transformer itself.

        Raises
        ------
        TypeError, ValueError
            If a parameter has the wrong type or is out of range, there is no EEG channel, or a
            channel in ``channels`` is missing.
        """
        windows_estimator.check_estimator(self)
        self.chs_info_ = picking.pick_for_fit(convert.as_windows(X), self.channels).chs_info
        return self

    def transform(self, X: Any, *, groups: Any = None) -> Windows:
        """Align the windows of each subject, for use in any estimator of this package.

        Parameters
        ----------
        X : windows
            All windows of each subject: the mean covariance is computed over the windows that are
            passed in one call.
        groups : array-like, shape (n_windows,) | None
            Subject of each window. Required for windows without subjects, such as arrays. If None,
            the subjects stored with the windows are used.

        Returns
        -------
        Windows
            Aligned windows, with the labels and subjects of ``X``. The mean covariances are
            computed in this call; the signals of a window are aligned when they are read.

        Raises
        ------
        NotFittedError
            Before :meth:`fit`.
        ValueError
            If the subject of a window is unknown, a subject has fewer windows than
            ``min_windows``, or a channel of :meth:`fit` is missing.
        """
        validation.check_is_fitted(self)
        windows = picking.pick_as_fitted(convert.as_windows(X, groups=groups), self.chs_info_)
        subjects = subject_numbers(windows, self.min_windows, type(self).__name__)
        aligned = windows.read_by(_Aligned(windows, subjects))
        steps = [replace(known, scale=None) for known in aligned.recordings["preprocessing"]]
        return replace(aligned, recordings=aligned.recordings.assign(preprocessing=steps))

    def fit_transform(self, X: Any, y: Any = None, *, groups: Any = None) -> Windows:
        """Store the channels and return the aligned windows.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit` and :meth:`transform`.

        Returns
        -------
        Windows
            As in :meth:`transform`.
        """
        return self.fit(X, y).transform(X, groups=groups)


class _Aligned:
    """Sequence of windows, each of which is aligned when it is read.

    Parameters
    ----------
    windows : Windows
        Windows of one or more subjects.
    subjects : ndarray of int, shape (n_windows,)
        Subject code of each window, counted from 0.
    """

    def __init__(self, windows: Windows, subjects: np.ndarray):
        self.windows = windows
        self.subjects = subjects
        self.filters = []  # the inverse square root of each mean covariance, (n_chans, n_chans)
        for subject in range(max(subjects) + 1):
            read = windows.take(subjects == subject).batches(64)
            covariances = [x @ x.T / x.shape[1] for batch in read for x in batch.astype(float)]
            variances, directions = np.linalg.eigh(np.mean(covariances, axis=0))
            is_large = variances > _SMALLEST * variances.max()
            inverse = np.where(is_large, variances, np.inf) ** -0.5
            self.filters.append((directions * inverse) @ directions.T)

    def __getitem__(self, i: int) -> np.ndarray:
        return self.filters[self.subjects[i]] @ self.windows[i]
