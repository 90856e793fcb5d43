"""LinearProbe: linear classifier on features, with C selected by cross-validation over subjects."""

import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import checks, tables
from braindecode_pars.baselines import new_subject
from braindecode_pars.estimators import transformers, windows_classifier, windows_estimator
from braindecode_pars.windows import convert
from braindecode_pars.windows.labels import (
    cross_entropy_weights,
    training_classes,
    where_labeled,
)

#: Values of C in the search for C, see docs/results/development.rst.
GRID = (1e-3, 1e-2, 1e-1, 1.0)
#: Value of C without a search.
DEFAULT_C = 1e-2

#: Maximum number of cross-validation folds over subjects in the search for C.
_MAX_FOLDS = 5


@dataclass(eq=False, repr=False)
class LinearProbe(windows_classifier.LabelPredictor):
    r"""Linear probe: linear classifier on standardized features from a scikit-learn transformer.

    The features are computed once, standardized, and classified by logistic regression or by linear
    discriminant analysis (LDA). Unlike a pipeline of these steps, a LinearProbe has access to the
    subjects of the windows, so that it can select ``C`` by cross-validation over subjects.

    Parameters
    ----------
    transformer : transformer
        Required: a transformer that computes features of windows, such as
        :class:`~braindecode_pars.evaluation.LogBandPower` or
        :class:`~braindecode_pars.PARSEmbedder`, or a pipeline of transformers. A clone is fitted.
        For subject-wise centering, wrap the transformer in
        :class:`~braindecode_pars.SubjectCentering`.
    classifier : "logistic" | "lda"
        ``"logistic"`` is logistic regression; ``"lda"`` is linear discriminant analysis with
        Ledoit-Wolf shrinkage of the covariance.
    C : float | None
        Inverse regularization strength of logistic regression, as in scikit-learn. If None, one of
        0.001, 0.01, 0.1 and 1 is selected by cross-validation over the subjects of the training
        data (log loss, up to five folds). If there is only one subject, or if the subjects are
        unknown, None means 0.01. LDA ignores ``C``.
    class_weight : "balanced" | dict | None
        Class weights, as in scikit-learn. In LDA, the prior probability of a class is proportional
        to its number of windows in ``fit``, multiplied by its class weight; ``"balanced"`` yields
        equal prior probabilities.
    unlabeled_label : hashable | None
        Label that marks unlabeled windows, as in :class:`~braindecode_pars.PARSClassifier`.
        Unlabeled windows are ignored in ``fit`` (also in the subject means of a SubjectCentering)
        and in ``score``.
    prior_strength : float | None
        Strength with which :meth:`adapt` shrinks the weights of a new subject toward the weights of
        ``fit``: the factor :math:`\lambda` in
        :func:`~braindecode_pars.baselines.new_subject.ridge_towards`. If None, one of 30, 3, 0.3,
        0.03 and 0.003 is selected by the balanced accuracy on held-out subjects of the training
        data. If there are fewer than three subjects, or if the subjects are unknown, None means
        0.3.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    transformer_ : transformer
        Fitted transformer.
    classifier_ : Pipeline
        Pipeline of a StandardScaler and the linear classifier. The classes of the pipeline are
        indices into ``classes_``.
    C_ : float
        Value of ``C`` that is used. Only present with logistic regression.
    prior_strength_ : float
        Prior strength that :meth:`adapt` uses.
    test_subject_data_ : TestSubjectData
        Which data of the test subject a prediction uses in addition to the window itself:
        ``TestSubjectData.NONE``, except with subject-wise centering or after :meth:`adapt`.

    References
    ----------
    Ledoit, O., and Wolf, M. (2004). A well-conditioned estimator for large-dimensional covariance
    matrices. Journal of Multivariate Analysis 88. Blankertz, B., Lemm, S., Treder, M., Haufe, S.,
    and Müller, K.-R. (2011). Single-trial analysis and classification of ERP components.
    NeuroImage 56, for LDA with shrinkage in EEG.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.estimators import LinearProbe
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> windows = datasets.simulated.sleep(n_subjects=4, hours=0.2, n_chans=2)
    >>> X, y, subjects = as_sklearn(windows)
    >>> probe = LinearProbe(LogBandPower(), C=None).fit(X[subjects < 4], y[subjects < 4])
    >>> probe.C_  # selected by cross-validation over subjects
    0.01
    >>> probe.predict(X[subjects == 4]).shape
    (24,)
    """

    transformer: Any = None
    classifier: str = "logistic"
    _: KW_ONLY
    C: float | None = 1.0
    class_weight: str | dict | None = "balanced"
    unlabeled_label: Any = "auto"
    prior_strength: float | None = new_subject.DEFAULT_STRENGTH

    _own_rules = {"classifier": checks.choice("logistic", "lda")}  # noqa: RUF012

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Fit the transformer, and fit the classifier on its features.

        Parameters
        ----------
        X : windows
            Labeled windows of any type that the transformer accepts.
        y : array-like, shape (n_windows,) | None
            Labels. If None, the labels of the dataset are used.
        groups : array-like, shape (n_windows,) | None
            Subject of each window, for the selection of ``C`` and ``prior_strength``, and for the
            transformer. If None, the subjects of the dataset are used.

        Returns
        -------
        LinearProbe
            The fitted classifier itself.

        Raises
        ------
        TypeError, ValueError
            If a parameter has the wrong type or is out of range, if labels are missing, or if
            labels are continuous values instead of classes. Errors of the transformer are also
            raised.
        """
        windows_estimator.check_estimator(self)
        windows = convert.as_windows(X, y, groups)
        windows = windows[where_labeled(windows, self.unlabeled_label)]
        classes, codes = training_classes(windows.labels, windows.label_names)
        with windows_estimator.fresh_fit(self):
            self.transformer_ = clone(self.transformer)
            features = np.asarray(self.transformer_.fit_transform(windows, windows.labels))
            windows = windows.with_labels(codes)
            folds = folds_by_subject(windows.groups, codes)
            if self.classifier == "lda":
                # LDA has no parameter for class weights; convert the class weights to prior
                # probabilities.
                weights = cross_entropy_weights(codes, classes, self.class_weight)
                priors = np.bincount(codes) * (1 if weights is None else weights.numpy())
                priors = priors / priors.sum()
                lda = LinearDiscriminantAnalysis("lsqr", shrinkage="auto", priors=priors)
                self.classifier_ = make_pipeline(StandardScaler(), lda).fit(features, codes)
            else:
                self.classifier_ = fit_logistic(
                    features, codes, folds, self.C, self.class_weight, classes
                )
                self.C_ = float(self.classifier_[-1].C)
            self.prior_strength_ = self.prior_strength or new_subject.chosen_strength(
                self.classifier_, features, windows, folds
            )
            self.classes_ = classes
            # Find the test-subject data that the transformer, or a step of a pipeline, uses.
            steps = getattr(self.transformer_, "steps", [("", self.transformer_)])
            none = tables.TestSubjectData.NONE
            data_used = [getattr(step, "test_subject_data_", none) for _, step in steps]
            self.test_subject_data_ = max(data_used, key=list(tables.TestSubjectData).index)
        return self

    def adapt(self, X: Any, labels: Any = None) -> Self:
        """Adapt the linear probe to a new subject, with or without labels of this subject.

        The features of the transformer are adapted as in :meth:`FewLabelsClassifier.adapt
        <braindecode_pars.FewLabelsClassifier.adapt>`. With labels, the mean is also replaced if the
        transformer is a :class:`~braindecode_pars.SubjectCentering`, because the probe was then
        fitted on centered features.

        Parameters
        ----------
        X, labels
            As in :meth:`FewLabelsClassifier.adapt <braindecode_pars.FewLabelsClassifier.adapt>`.

        Returns
        -------
        LinearProbe
            The adapted linear probe. The original probe is not changed.

        Raises
        ------
        NotFittedError, ValueError
            As in :meth:`FewLabelsClassifier.adapt <braindecode_pars.FewLabelsClassifier.adapt>`.
        """
        check_is_fitted(self)
        adapted = copy.copy(self)
        if is_centered := type(self.transformer_) is transformers.SubjectCentering:
            adapted.transformer_ = self.transformer_.transformer_
        windows = convert.as_windows(X, labels)
        codes, adapted.test_subject_data_ = new_subject.codes_to_adapt(
            self, windows, labels, is_centered=is_centered
        )
        features = np.asarray(adapted.transformer_.transform(windows))
        adapted.classifier_ = new_subject.adapted(
            self, self.classifier_, self.prior_strength_, features, codes, is_centered=is_centered
        )
        return adapted

    def _predictions(self, X: Any, groups: Any = None) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        features = np.asarray(self.transformer_.transform(convert.as_windows(X, groups=groups)))
        probabilities = self.classifier_.predict_proba(features)
        return self.classes_[self.classifier_.predict(features)], probabilities


def logistic_regression(C: float, class_weight: str | dict | None) -> Pipeline:
    """Return an unfitted pipeline of StandardScaler and logistic regression."""
    regression = LogisticRegression(C=C, class_weight=class_weight, max_iter=1000)
    return make_pipeline(StandardScaler(), regression)


def folds_by_subject(
    subjects: np.ndarray | None, labels: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Split windows into cross-validation folds by subject, and return the indices of each fold.

    Each entry contains the training and the held-out indices. If there is only one subject, or if
    the subjects are unknown (None), the list is empty. A fold is excluded if a class has no
    training window in this fold.
    """
    numbers = np.zeros(len(labels), int) if subjects is None else pd.factorize(subjects)[0]
    n_subjects = numbers.max() + 1
    if n_subjects < 2:
        return []
    folds = GroupKFold(min(n_subjects, _MAX_FOLDS)).split(labels, groups=numbers)
    n_classes = len(np.unique(labels))
    return [(train, test) for train, test in folds if len(np.unique(labels[train])) == n_classes]


def fit_logistic(
    features: np.ndarray,
    codes: np.ndarray,
    folds: list[tuple[np.ndarray, np.ndarray]],
    C: float | None,
    class_weight: Any,
    classes: np.ndarray,
) -> Pipeline:
    """Fit a pipeline of StandardScaler and logistic regression; if C is None, select it first.

    Parameters
    ----------
    features : ndarray, shape (n_windows, n_features)
        Features of the training windows.
    codes : ndarray of int, shape (n_windows,)
        Class index of each window.
    folds : list of tuple
        Indices of the training and the held-out windows of each fold. If the list is empty and
        ``C`` is None, 0.01 is used.
    C : float | None
        Inverse regularization strength. If None, the value with the lowest mean log loss over the
        folds is used.
    class_weight : "balanced" | dict | None
        Class weights; a dict has the labels as keys.
    classes : ndarray, shape (n_classes,)
        Label of each class, used if ``class_weight`` is a dict.

    Returns
    -------
    Pipeline
        Fitted pipeline. The value of ``C`` that was used is the attribute ``C`` of the last step.
    """
    if isinstance(class_weight, dict):  # convert weights by label to weights by class index
        weights: Any = cross_entropy_weights(codes, classes, class_weight)
        class_weight = dict(enumerate(weights.tolist()))
    clf = logistic_regression(C or DEFAULT_C, class_weight)
    if C is not None or not folds:
        return clf.fit(features, codes)

    def negative_loss(fitted: Pipeline, X: np.ndarray, y: np.ndarray) -> float:
        return -log_loss(y, fitted.predict_proba(X), labels=fitted.classes_)

    search = GridSearchCV(clf, {"logisticregression__C": GRID}, scoring=negative_loss, cv=folds)
    return search.fit(features, codes).best_estimator_
