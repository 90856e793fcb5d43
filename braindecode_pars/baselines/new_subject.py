"""Adapt a linear classifier to a new subject: test-time adaptation, or calibration with labels.

The functions adapt a fitted pipeline of a StandardScaler and a linear classifier to features of the
subject. Unlabeled windows are not used for gradient-based training: on EEG, gradient-based
test-time adaptation often decreases the scores, and methods without optimization decrease the
scores less (Lee, Pradeepkumar and Sun 2026, arXiv:2604.16926).
"""

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import Pipeline

from braindecode_pars._common import checks, tables
from braindecode_pars.estimators import transformers
from braindecode_pars.windows import Windows
from braindecode_pars.windows.labels import cross_entropy_weights, label_of_unlabeled

#: Minimum number of cross-validation folds over subjects in the search for the prior strength. With
#: two folds, each fold could have a single training subject.
_MIN_FOLDS = 3
#: Values of the prior strength in the search.
STRENGTHS = (30.0, 3.0, 0.3, 0.03, 0.003)
#: Prior strength without a search.
DEFAULT_STRENGTH = 0.3

#: Numbers of labeled windows per class with which a held-out subject is calibrated in the search.
_N_LABELED = (2, 8)
#: Maximum number of held-out subjects per fold in the search.
_N_SUBJECTS = 3


def codes_to_adapt(
    estimator: Any, windows: Windows, labels: Any, *, is_centered: bool
) -> tuple[np.ndarray | None, tables.TestSubjectData]:
    """Validate the windows of one new subject, and convert their labels to class indices.

    Parameters
    ----------
    estimator : estimator
        Fitted classifier with ``classes_`` and ``unlabeled_label``.
    windows : Windows
        Windows of the new subject. They contain the labels, unless ``labels`` is None.
    labels : Any
        Labels as passed by the user. None if no labels are used.
    is_centered : bool
        Whether ``fit`` centered the features. If True, the subject mean is estimated even if labels
        are passed.

    Returns
    -------
    codes : ndarray of int, shape (n_windows,) | None
        Class index of each window, and -1 for unlabeled windows. None if ``labels`` is None.
    test_subject_data : TestSubjectData
        Which data of the subject the adapted classifier uses.

    Raises
    ------
    ValueError
        If the windows belong to several subjects, if the labels contain fewer than two classes, or
        if a label did not occur in ``fit``.

    Warns
    -----
    UserWarning
        If the subject mean is estimated from fewer than 10 windows.
    """
    subjects = set() if windows.groups is None else set(windows.groups.tolist())
    if len(subjects) > 1:
        names = checks.format_list(sorted(map(str, subjects)))
        raise ValueError(
            f"adapt() expects windows of a single subject, but X contains {len(subjects)} subjects "
            f"({names}). Call adapt() once per subject."
        )
    if (is_centered or labels is None) and len(windows) < transformers.MIN_WINDOWS:
        checks.warn_user(
            f"adapt() estimates the subject mean from few windows ({len(windows)}), so the mean is "
            f"imprecise. Pass at least {transformers.MIN_WINDOWS} windows of the subject, with "
            "or without labels."
        )
    if labels is None:
        return None, tables.TestSubjectData.ALL_UNLABELED
    classes = estimator.classes_.tolist()
    unlabeled, _ = label_of_unlabeled(estimator.unlabeled_label)
    code_of = {**{label: code for code, label in enumerate(classes)}, unlabeled: -1}
    present = dict.fromkeys(windows.labels.tolist())
    if not present.keys() <= code_of.keys() or len(present.keys() - {unlabeled}) < 2:
        listing = checks.format_list([*map(repr, present)])
        raise ValueError(
            "The labels passed to adapt() must include at least two of the classes seen in fit "
            f"({checks.format_list([*map(repr, classes)])}), and no other labels except "
            f"{unlabeled!r} for unlabeled windows. Got: {listing}. Correct the labels or, to adapt "
            "without labels, pass labels=None."
        )
    codes = np.array([code_of[label] for label in windows.labels.tolist()])
    return codes, tables.TestSubjectData.LABELED


def adapted(
    estimator: Any,
    clf: Pipeline,
    strength: float,
    features: np.ndarray,
    codes: np.ndarray | None,
    *,
    is_centered: bool,
) -> Pipeline:
    """Return a copy of a linear classifier that is adapted to one subject.

    With labeled windows, the coefficients are fitted to these windows, with shrinkage toward the
    coefficients of the training subjects (:func:`ridge_towards`). Depending on ``codes`` and
    ``is_centered``, the subject mean replaces the mean of the training windows.

    Parameters
    ----------
    estimator : estimator
        Fitted classifier with ``classes_`` and ``class_weight``.
    clf : Pipeline
        StandardScaler and linear classifier of ``estimator``. They are not changed.
    strength : float
        Strength of the shrinkage, as in :func:`ridge_towards`.
    features : ndarray, shape (n_windows, n_features)
        Features of the windows of the subject. NaN values are replaced with the mean of the
        feature.
    codes : ndarray of int, shape (n_windows,) | None
        Class index of each window, and -1 for unlabeled windows. If None, only the mean of the
        features is adapted.
    is_centered : bool
        Whether ``clf`` was fitted on centered features. If True, or if ``codes`` is None, the mean
        of the training windows is replaced with the subject mean. Otherwise, the mean of the
        training windows is kept.

    Returns
    -------
    Pipeline
        Adapted StandardScaler and linear classifier.
    """
    scaler, linear = clf = copy.deepcopy(clf)
    if is_centered or codes is None:
        is_missing = np.isnan(features).all(axis=0)
        scaler.mean_ = np.where(is_missing, scaler.mean_, transformers.subject_mean(features))
        if is_centered:  # the mean of centered training features is no estimate of a subject mean
            linear.coef_[:, is_missing] = 0
    if codes is not None:
        scaled, known = np.nan_to_num(scaler.transform(features))[codes >= 0], codes[codes >= 0]
        of_class = cross_entropy_weights(known, estimator.classes_, estimator.class_weight)
        weights = np.ones(len(known)) if of_class is None else of_class.numpy()[known]
        data = scaled, known, weights, strength
        linear.coef_, linear.intercept_ = ridge_towards(linear.coef_, linear.intercept_, *data)
    return clf


def ridge_towards(
    coef: np.ndarray,
    intercept: np.ndarray,
    features: np.ndarray,
    codes: np.ndarray,
    sample_weight: np.ndarray,
    strength: float,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Fit logistic regression with shrinkage toward the weights of the training subjects.

    Given the weights :math:`w_0` and the intercepts :math:`b_0` of the training subjects, the
    weights :math:`w` and intercepts :math:`b` of the new subject minimize

    .. math::
        \sum_i v_i \, \ell(y_i, w x_i + b) + \frac{\lambda p}2 \lVert w - w_0 \rVert^2
        + \frac12 \lVert b - b_0 \rVert^2 ,

    where :math:`x_i`, :math:`y_i` and :math:`v_i` are the features, the class and the weight of
    window i, :math:`p` is the number of features, :math:`\ell` is the log loss, and :math:`\lambda`
    is the strength of the shrinkage. The solution is the maximum a posteriori estimate under a
    normal prior centered at :math:`(w_0, b_0)`. The difference :math:`w - w_0` is a linear
    combination of the feature vectors of the windows. It is therefore optimized (with L-BFGS) in
    the subspace of these vectors.

    Parameters
    ----------
    coef, intercept : ndarray, shape (n_outputs, n_features) and (n_outputs,)
        Weights and intercepts of the training subjects, in the format of scikit-learn: a single
        output if there are two classes.
    features : ndarray, shape (n_windows, n_features)
        Standardized features of the labeled windows of the new subject.
    codes : ndarray of int, shape (n_windows,)
        Class index of each window.
    sample_weight : ndarray, shape (n_windows,)
        Weights :math:`v_i` of the windows.
    strength : float
        Strength :math:`\lambda` of the shrinkage.

    Returns
    -------
    coef, intercept : ndarray
        Weights and intercepts of the new subject, with the shapes of the arguments.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.baselines.new_subject import ridge_towards
    >>> coef, intercept = np.array([[1.0, 0.0]]), np.zeros(1)
    >>> x, codes = np.array([[-1.0, 1.0], [1.0, -1.0]]), np.array([0, 1])
    >>> adapted, _ = ridge_towards(coef, intercept, x, codes, np.ones(2), 1.0)
    >>> adapted.round(2).tolist()  # the second feature has a negative weight for this subject
    [[1.2, -0.2]]
    """
    n_outputs = len(coef)
    basis, within = np.linalg.qr(features.T)
    projected, initial_logits = within.T, features @ coef.T + intercept
    penalties = np.append(np.full(len(within), strength * features.shape[1]), 1.0)
    targets = np.eye(max(2, n_outputs))[codes]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        change = flat.reshape(n_outputs, -1)
        logits = _logits_of_all_classes(
            initial_logits + projected @ change[:, :-1].T + change[:, -1]
        )
        # SciPy's log_softmax is slow if there are only a few windows.
        logs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        losses = -(targets * logs).sum(axis=1)
        slopes = sample_weight[:, None] * (np.exp(logs) - targets)[:, -n_outputs:]
        gradient = np.column_stack([slopes.T @ projected, slopes.sum(axis=0)])
        gradient = gradient + penalties * change
        return sample_weight @ losses + (penalties * change**2).sum() / 2, gradient.ravel()

    start = np.zeros(n_outputs * len(penalties))
    options = dict(maxiter=1000, ftol=1e-11, gtol=1e-7)
    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    change = optimum.x.reshape(n_outputs, -1)
    return coef + change[:, :-1] @ basis.T, intercept + change[:, -1]


def chosen_strength(
    clf: Pipeline,
    features: np.ndarray,
    windows: Windows,
    folds: Iterable[tuple[np.ndarray, np.ndarray]],
) -> float:
    r"""Select the shrinkage of a calibration by the balanced accuracy on held-out subjects.

    Each candidate for the strength (:math:`\lambda` in :func:`ridge_towards`) is used to calibrate
    a classifier to up to three held-out subjects per fold: once with the labels of the first 2
    windows per class, and once with the labels of the first 8 windows per class. The calibrated
    classifier is scored on the remaining windows of the subject. If several strengths have the
    highest mean score, the largest is returned.

    The criterion is balanced accuracy instead of log loss, for this reason: if the weights are
    small because of regularization, a weak prior increases them, which can decrease (improve) the
    log loss even if it decreases the accuracy.

    Parameters
    ----------
    clf : Pipeline
        StandardScaler and linear classifier; a clone is fitted in each fold.
    features : ndarray, shape (n_windows, n_features)
        Features of the training windows.
    windows : Windows
        Training windows, whose labels are class indices.
    folds : iterable of tuple
        Indices of the training and the held-out windows of each fold.

    Returns
    -------
    float
        Selected strength. The default of 0.3 if there are fewer than three folds, or if no held-out
        subject has enough windows of each class.
    """
    scores, codes, subjects = [], windows.labels, np.asarray(windows.groups)
    folds = list(folds)
    for train, test in folds if len(folds) >= _MIN_FOLDS else ():
        scaler, linear = clone(clf).fit(features[train], codes[train])
        for subject in pd.unique(subjects[test])[:_N_SUBJECTS]:
            subject_rows = test[subjects[test] == subject]
            subject_features, labels = scaler.transform(features[subject_rows]), codes[subject_rows]
            n_smallest_class = np.bincount(labels, minlength=codes.max() + 1).min()
            for n in (n for n in _N_LABELED if n < n_smallest_class):
                first = first_of_each_class(labels, n)
                labeled = subject_features[first], labels[first], np.ones(first.sum())
                weights = [
                    ridge_towards(linear.coef_, linear.intercept_, *labeled, strength)
                    for strength in STRENGTHS
                ]
                remaining = subject_features[~first]
                logits = [_logits_of_all_classes(remaining @ w.T + b) for w, b in weights]
                predicted = [class_logits.argmax(axis=1) for class_logits in logits]
                scores.append([balanced_accuracy_score(labels[~first], y) for y in predicted])
    return STRENGTHS[np.mean(scores, axis=0).argmax()] if scores else DEFAULT_STRENGTH


def _logits_of_all_classes(outputs: np.ndarray) -> np.ndarray:
    """Return one logit per class. A single output is the logit of the second of two classes."""
    return np.hstack([np.zeros_like(outputs), outputs]) if outputs.shape[1] == 1 else outputs


def first_of_each_class(codes: np.ndarray, n: int) -> np.ndarray:
    """Return a mask of the first n windows of each class, in row order."""
    return (pd.Series(codes).groupby(codes).cumcount() < n).to_numpy()
