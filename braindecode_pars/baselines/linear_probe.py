"""LinearProbe: a linear classifier on the features of a transformer, with C chosen by subjects."""

import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import checks, tables
from braindecode_pars.baselines import new_subject
from braindecode_pars.estimators import transformers, windows_estimator
from braindecode_pars.windows import Windows, convert
from braindecode_pars.windows.labels import (
    cross_entropy_weights,
    training_classes,
    where_labeled,
)

#: Values of C that are searched, and the one without a search. See docs/results/development.rst.
GRID, DEFAULT_C = (1e-3, 1e-2, 1e-1, 1.0), 1e-2

#: Minimum number of subjects for a search.
_FEWEST = 2
#: Maximum number of folds of subjects in a search.
_MOST_FOLDS = 5


@dataclass(eq=False, repr=False)
class LinearProbe(windows_estimator.LabelPredictor):
    r"""Classify windows by a linear classifier on the features of a transformer.

    The features are computed once, standardized, and classified by logistic regression or by linear
    discriminant analysis. Unlike a pipeline of these steps, the probe knows the subjects of the
    windows, so that ``C`` can be chosen by held-out subjects.

    Parameters
    ----------
    transformer : transformer
        Required: a transformer of windows, such as
        :class:`~braindecode_pars.evaluation.LogBandPower`,
        :class:`~braindecode_pars.PARSEmbedder`, either of them in
        :class:`~braindecode_pars.SubjectCentering`, or a pipeline. A clone of it is fitted.
    classifier : "logistic" | "lda"
        Logistic regression, or linear discriminant analysis with a covariance that is shrunk by the
        amount of Ledoit and Wolf.
    C : float | None
        Inverse strength of the regularization of logistic regression, as in scikit-learn. None
        searches it in 0.001, 0.01, 0.1 and 1, by the log loss of held-out subjects of the fit in
        up to five folds; with a single subject, or unknown ones, it is 0.01. LDA does not
        use it.
    class_weight : "balanced" | dict | None
        Weights of the classes, as in scikit-learn. In LDA they multiply the shares of the classes
        in the windows of ``fit``, which are its prior probabilities: ``"balanced"`` makes these
        equal.
    unlabeled_label : hashable | None
        Label of windows that ``fit`` leaves out, also from means of subjects, and that ``score``
        does not count; see :class:`~braindecode_pars.PARSClassifier`.
    prior_strength : float | None
        How strongly :meth:`adapt` shrinks the weights for a new person towards those of ``fit``:
        :math:`\lambda` of :func:`~braindecode_pars.baselines.new_subject.ridge_towards`. None
        searches it in 30, 3, 0.3, 0.03 and 0.003, by the balanced accuracy on held-out subjects
        of the fit; with fewer than three subjects, or unknown ones, it is 0.3.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    transformer_ : transformer
        Fitted transformer.
    classifier_ : Pipeline
        Standardization and classifier of the features; its labels are indices into ``classes_``.
    C_ : float
        C that is used. Only present with logistic regression.
    prior_strength_ : float
        Strength of the prior that is used.
    test_subject_data_ : TestSubjectData
        What a prediction is given of the test person, beside its window: none of it, unless the
        transformer centers by subject, or the probe is adapted.

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
    >>> probe.C_
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
        """Fit the transformer, and the classifier on its features.

        Parameters
        ----------
        X : windows
            Labeled windows of any type that the transformer accepts.
        y : array-like, shape (n_windows,) | None
            Labels; None uses those of the dataset.
        groups : array-like, shape (n_windows,) | None
            Subject of each window, for the search of ``C`` and the transformer. None uses the
            subjects of the dataset.

        Returns
        -------
        LinearProbe
            The fitted classifier itself.

        Raises
        ------
        TypeError, ValueError
            When a parameter has the wrong type or is out of range, or labels are missing or no
            classes. Also all errors of the transformer.
        """
        windows_estimator.check_estimator(self)
        windows = convert.as_windows(X, y, groups)
        windows = windows[where_labeled(windows, self.unlabeled_label)]
        classes, codes = training_classes(windows.labels, windows.label_names)
        with windows_estimator.fresh_fit(self):
            self.transformer_ = clone(self.transformer)
            features = np.asarray(self.transformer_.fit_transform(windows, windows.labels))
            windows = windows.with_labels(codes)
            folds = folds_of_subjects(windows)
            if self.classifier == "lda":
                # Class weights become priors.
                weights = cross_entropy_weights(codes, classes, self.class_weight)
                priors = np.bincount(codes) * (1 if weights is None else weights.numpy())
                options: Any = dict(solver="lsqr", shrinkage="auto", priors=priors / priors.sum())
                lda = LinearDiscriminantAnalysis(**options)
                self.classifier_ = make_pipeline(StandardScaler(), lda).fit(features, codes)
            else:
                of_codes = weights_of_codes(codes, classes, self.class_weight)
                clf = logistic_regression(self.C, of_codes)
                fitted = fit_searched(clf, features, codes, folds if self.C is None else [])
                self.classifier_, self.C_ = fitted, float(fitted[-1].C)
            self.prior_strength_ = self.prior_strength or new_subject.chosen_strength(
                self.classifier_, features, windows, folds
            )
            self.classes_ = classes
            # What the transformer, or the steps of a pipeline, are given of the test person
            steps = getattr(self.transformer_, "steps", [("", self.transformer_)])
            data_used = [
                step.test_subject_data_ for _, step in steps if hasattr(step, "test_subject_data_")
            ]
            self.test_subject_data_ = max(
                data_used,
                key=list(tables.TestSubjectData).index,
                default=tables.TestSubjectData.NONE,
            )
        return self

    def adapt(self, X: Any, labels: Any = None) -> Self:
        """Return a probe for one new person, from windows of this person.

        As :meth:`FewLabelsClassifier.adapt <braindecode_pars.FewLabelsClassifier.adapt>`, with the
        one view of the transformer. Centered features are those of
        :class:`~braindecode_pars.SubjectCentering`.

        Parameters
        ----------
        X, labels
            As there.

        Returns
        -------
        LinearProbe
            The adapted probe; this one stays as it is.

        Raises
        ------
        NotFittedError, ValueError
            As there.
        """
        check_is_fitted(self)
        adapted = copy.copy(self)
        if is_centered := type(self.transformer_) is transformers.SubjectCentering:
            adapted.transformer_ = self.transformer_.transformer_
        classifiers, adapted.test_subject_data_ = new_subject.adapted_views(
            self,
            convert.as_windows(X, labels),
            labels,
            {"": (self.classifier_, self.prior_strength_)},
            lambda windows: {"": np.asarray(adapted.transformer_.transform(windows))},
            is_centered=is_centered,
        )
        adapted.classifier_ = classifiers[""]
        return adapted

    def _predictions(self, X: Any, groups: Any = None) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        features = np.asarray(self.transformer_.transform(convert.as_windows(X, groups=groups)))
        probabilities = self.classifier_.predict_proba(features)
        return self.classes_[self.classifier_.predict(features)], probabilities


def weights_of_codes(
    codes: np.ndarray, classes: np.ndarray, class_weight: str | dict | None
) -> str | dict | None:
    """Return ``class_weight`` for labels that are indices into the classes."""
    if not isinstance(class_weight, dict):
        return class_weight
    weights: Any = cross_entropy_weights(codes, classes, class_weight)
    return dict(enumerate(weights.tolist()))


def logistic_regression(C: float | None, class_weight: str | dict | None) -> Pipeline:
    """Return unfitted logistic regression on standardized features; C=None is the default."""
    C = DEFAULT_C if C is None else C
    regression = LogisticRegression(C=C, class_weight=class_weight, max_iter=1000)
    return make_pipeline(StandardScaler(), regression)


def folds_of_subjects(windows: Windows) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and held-out windows of each fold; none of a single subject.

    A fold whose training windows lack a class is left out.
    """
    if windows.groups is None:
        return []
    return folds_by_subject(transformers.subject_numbers(windows, 1, "C=None"), windows.labels)


def folds_by_subject(
    numbers: np.ndarray, labels: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the folds of :func:`folds_of_subjects` for the number of each window's subject."""
    n_subjects = len(np.unique(numbers))
    if n_subjects < _FEWEST:
        return []
    folds = GroupKFold(min(n_subjects, _MOST_FOLDS)).split(labels, groups=numbers)
    n_classes = len(np.unique(labels))
    return [(train, test) for train, test in folds if len(np.unique(labels[train])) == n_classes]


def fit_searched(
    clf: Pipeline,
    features: np.ndarray,
    labels: np.ndarray,
    folds: list[tuple[np.ndarray, np.ndarray]],
) -> Pipeline:
    """Fit :func:`logistic_regression`; with folds, the C of the lowest log loss in them is used.

    Parameters
    ----------
    clf : Pipeline
        Unfitted classifier.
    features : ndarray, shape (n_windows, n_features)
        Features of the training windows.
    labels : ndarray, shape (n_windows,)
        Labels.
    folds : list of tuple
        Training and held-out windows of each fold; without one, nothing is searched.
    """
    if not folds:
        return clone(clf).fit(features, labels)
    losses = np.zeros(len(GRID))
    for train, test in folds:
        # Each fit begins with the weights of the next smaller C, so that the path is cheap.
        scaler, regression = clone(clf).set_params(logisticregression__warm_start=True)
        scaled = scaler.fit_transform(features[train])
        held_out = scaler.transform(features[test])
        for i, C in enumerate(GRID):
            regression.set_params(C=C).fit(scaled, labels[train])
            predicted = regression.predict_proba(held_out)
            losses[i] += log_loss(labels[test], predicted, labels=regression.classes_)
    best = clone(clf).set_params(logisticregression__C=GRID[int(losses.argmin())])
    return best.fit(features, labels)
