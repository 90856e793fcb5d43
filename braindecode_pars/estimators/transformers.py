"""Transformers that use the subjects of windows: subject centering, and Euclidean alignment."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import TransformerMixin, clone
from sklearn.utils import metaestimators, validation

from braindecode_pars._common.tables import TestSubjectData
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.windows import Windows, convert, picking

#: Smallest number of windows of a subject by default. The mean of n windows adds 1/n of the
#: variance within a subject to each feature.
MIN_WINDOWS = 10


def subject_numbers(
    windows: Windows, min_windows: int, owner: str, remedy: str = "lower min_windows"
) -> np.ndarray:
    """Return the number of each window's subject, counted from 0.

    Parameters
    ----------
    windows : Windows
        All windows of each subject.
    min_windows : int
        Smallest number of windows of a subject.
    owner : str
        Name of the class or parameter that needs the subjects, for the error message.
    remedy : str
        What else to do when a subject has too few windows, for the error message.

    Returns
    -------
    ndarray of int, shape (n_windows,)
        Windows with the same number are of one subject.

    Raises
    ------
    ValueError
        When there are no windows, the subject of a window is unknown, or a subject has fewer
        windows than ``min_windows``.
    """
    windows.check_not_empty()
    if windows.groups is None:
        n_unknown = int((~windows.has_subject).sum())
        raise ValueError(
            f"{owner} needs the subject of every window, but that of {n_unknown} of "
            f"{len(windows)} is unknown; pass the X of as_sklearn, or groups=."
        )
    numbers, names = pd.factorize(windows.groups)
    counts = np.bincount(numbers)
    if counts.min() < min_windows:
        few = int((counts < min_windows).argmax())
        raise ValueError(
            f"Subject {names[few]} has {counts[few]} windows; {owner} needs at least {min_windows} "
            f"of each subject, for a mean of its own. Pass all of them together, or {remedy}."
        )
    return numbers


def subtract_means(
    features: np.ndarray, subjects: np.ndarray, prior: tuple[np.ndarray, float] | None = None
) -> np.ndarray:
    """Return features minus the mean of each subject, or minus its running mean.

    Parameters
    ----------
    features : ndarray, shape (n_windows, n_features)
        Features.
    subjects : ndarray of int, shape (n_windows,)
        Subject of each window, counted from 0.
    prior : tuple of ndarray and float | None
        Mean with which the running mean of each subject begins, and as how many windows it counts.
        The running mean of a window is over those of its subject up to it, in the order of rows.
        None subtracts the mean of all windows of a subject.

    Returns
    -------
    ndarray, shape (n_windows, n_features)
        A copy, in a floating-point type. NaN stays, and does not count in a mean.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.estimators.transformers import subtract_means
    >>> features, subjects = np.array([[1.0], [3.0]]), np.zeros(2, dtype=int)
    >>> subtract_means(features, subjects).ravel().tolist()
    [-1.0, 1.0]
    >>> subtract_means(features, subjects, (np.zeros(1), 1.0)).ravel().round(2).tolist()
    [0.5, 1.67]
    """
    centered = features.astype(np.result_type(features, np.float32))
    for subject in range(subjects.max() + 1):
        mine = subjects == subject
        centered[mine] -= subject_mean(centered[mine], prior)
    return centered


def subject_mean(features: np.ndarray, prior: tuple[np.ndarray, float] | None = None) -> np.ndarray:
    """Return the mean of one subject; with ``prior``, the running mean up to each window."""
    add = np.sum if prior is None else np.cumsum
    mean, weight = (0.0, 0.0) if prior is None else prior
    missing = np.isnan(features)
    total = add(np.where(missing, 0, features), axis=0, dtype=float) + weight * mean
    return total / np.maximum(1, add(~missing, axis=0) + weight)


class SubjectCentering(TransformerMixin, windows_estimator.WindowsEstimator):
    r"""Subtract each subject's own mean from the features of a transformer.

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

    **With** ``running=True`` **it is causal:** the windows of a subject are in the order of time,
    and window :math:`i`, the n-th of its subject, is centered by those up to it. Their mean is
    shrunk to the mean :math:`m` of the training, which counts as :math:`n_0` windows,

    .. math::
        f_i - \frac{n_0 m + \sum_{j \le i, s(j) = s(i)} f_j}{n_0 + n} .

    The training is centered in the same way. Where the classes follow each other in long blocks, the
    running mean is that of the first block for long, and what is centered depends on the order.

    Parameters
    ----------
    transformer : transformer
        Required: a transformer of windows, such as
        :class:`~braindecode_pars.evaluation.LogBandPower`,
        :class:`~braindecode_pars.PARSEmbedder` or a pipeline. A clone of it is fitted. The windows
        know their subjects and the features do not, so this class wraps the transformer instead of
        following it in a pipeline. It then works in scikit-learn's cross-validation and in the
        protocols of :mod:`braindecode_pars.evaluation`, which pass only windows to ``predict``.
    min_windows : int
        Smallest number of windows of a subject. The mean of n windows adds 1/n of the variance
        within a subject to every feature, a tenth for the default. With ``running``, predictions
        begin with the first window, and this is the number :math:`n_0`.
    running : bool
        Whether the mean is that of the windows so far.

    Attributes
    ----------
    transformer_ : transformer
        Fitted transformer.
    mean_ : ndarray, shape (n_features,)
        Mean of the means of the training subjects. Only present with ``running``.
    test_subject_data_ : TestSubjectData
        What a prediction is given of the test person, beside its window.

    References
    ----------
    Relatives are adaptive batch normalization (Li et al. 2016, arXiv:1603.04779), Riemannian
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
        """Fit the transformer; with ``running`` also the mean of the training.

        Otherwise no mean is learned: each call of :meth:`transform` takes its own.

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
            When ``min_windows`` is not an integer.
        ValueError
            When ``transformer`` is not a transformer, the subject of a window is unknown, or a
            subject has fewer windows than ``min_windows``. Also all errors of the transformer.
        """
        windows_estimator.check_estimator(self)
        subjects = self._subjects(X, groups)
        # PARSEmbedder, for example, notes the subjects in its card.
        takes_groups = groups is not None and validation.has_fit_parameter(
            self.transformer, "groups"
        )
        with windows_estimator.fresh_fit(self):
            self.transformer_ = clone(self.transformer)
            self.transformer_.fit(X, y, **({"groups": groups} if takes_groups else {}))
            if self.running:
                features = np.asarray(self.transformer_.transform(X))
                self.mean_ = pd.DataFrame(features).groupby(subjects).mean().mean().to_numpy()
        return self

    def transform(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the features of the transformer, minus the mean of each subject.

        Parameters
        ----------
        X : windows
            All windows of each subject: the result depends on which windows are passed together.
            With ``running``, those of a subject in the order of time, from the first.
        groups : array-like, shape (n_windows,) | None
            As in :meth:`fit`.

        Returns
        -------
        ndarray, shape (n_windows, n_features)
            Features whose mean over the windows of a subject is zero; with ``running``, each minus
            the mean up to it.

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

    @metaestimators.available_if(lambda self: hasattr(self.transformer, "get_feature_names_out"))
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
        validation.check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

    def _subjects(self, X: Any, groups: Any) -> np.ndarray:
        windows = convert.as_windows(X, groups=groups)
        least = 1 if self.running else self.min_windows
        return subject_numbers(windows, least, type(self).__name__)


#: Directions with a smaller share of the largest variance are noise of rounding, and set to zero.
_SMALLEST = 1e-7


class EuclideanAlignment(TransformerMixin, windows_estimator.WindowsEstimator):
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
    test_subject_data_ : TestSubjectData
        What a prediction is given of the test person, beside its window.

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

    test_subject_data_ = TestSubjectData.ALL_UNLABELED

    def __init__(self, *, channels: list[str] | None = None, min_windows: int = MIN_WINDOWS):
        self.channels = channels
        self.min_windows = min_windows

    def fit(self, X: Any, y: Any = None) -> Self:
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
        windows_estimator.check_estimator(self)
        self.chs_info_ = picking.pick_for_fit(convert.as_windows(X), self.channels).chs_info
        return self

    def transform(self, X: Any, *, groups: Any = None) -> Windows:
        """Return the aligned windows, for any estimator of this package.

        Parameters
        ----------
        X : windows
            All windows of each subject: the result depends on which windows are passed together.
        groups : array-like, shape (n_windows,) | None
            Subjects, for windows that do not contain them, such as arrays.

        Returns
        -------
        Windows
            View of the windows with their labels and subjects. A window is aligned when it is read.

        Raises
        ------
        NotFittedError
            Before :meth:`fit`.
        ValueError
            When the subject of a window is unknown, a subject has fewer windows than
            ``min_windows``, or a channel of :meth:`fit` is missing.
        """
        validation.check_is_fitted(self)
        windows = picking.pick_as_fitted(convert.as_windows(X, groups=groups), self.chs_info_)
        subjects = subject_numbers(windows, self.min_windows, type(self).__name__)
        aligned = windows.read_by(_Aligned(windows, subjects))
        steps = [
            known and replace(known, scale=None) for known in aligned.recordings["preprocessing"]
        ]
        return replace(aligned, recordings=aligned.recordings.assign(preprocessing=steps))

    def fit_transform(self, X: Any, y: Any = None, *, groups: Any = None) -> Windows:
        """Remember the channels and return the aligned windows.

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
    """Source of aligned windows.

    Parameters
    ----------
    windows : Windows
        Windows of any subjects.
    subjects : ndarray of int, shape (n_windows,)
        Number of each window's subject.
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
