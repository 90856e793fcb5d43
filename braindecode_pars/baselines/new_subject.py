"""What a linear classifier can use of a new person: windows without labels, or a few with labels.

All functions take a fitted standardization with its linear classifier, and features. Nothing is
trained by gradients on windows without labels: on EEG that often makes predictions worse, and more
so than methods without an optimization do (Lee, Pradeepkumar and Sun 2026, arXiv:2604.16926).
"""

import copy
from collections.abc import Callable, Iterable, Mapping
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

#: Minimum number of folds of subjects for a search: with two, each has one training subject.
_FEWEST_FOLDS = 3
#: Strengths of the prior that are searched, and the one without a search.
STRENGTHS, DEFAULT_STRENGTH = (30.0, 3.0, 0.3, 0.03, 0.003), 0.3

#: In the search: windows of each class that a held-out person has labels of, and people of a fold.
_N_LABELED, _N_PEOPLE = (2, 8), 3


def adapted_views(
    estimator: Any,
    windows: Windows,
    labels: Any,
    views: Mapping[str, tuple[Pipeline, float]],
    features_of: Callable[[Windows], Mapping[str, np.ndarray]],
    *,
    is_centered: bool,
) -> tuple[dict[str, Pipeline], tables.TestSubjectData]:
    """Return the classifier of each view for one person, and what it was given of the person.

    Parameters
    ----------
    estimator : estimator
        Fitted classifier with ``classes_``, ``class_weight`` and ``unlabeled_label``.
    windows : Windows
        Windows, with the labels if there are any.
    labels : Any
        Labels as they were passed; with None there are none.
    views : mapping of str to tuple
        Standardization with linear classifier, and strength of the prior, of each view.
    features_of : callable
        Function that returns the features of each view, not centered.
    is_centered : bool
        Whether ``fit`` centered the features, so that the person's mean is needed beside labels.

    Raises
    ------
    ValueError
        When the windows are of several subjects, the labels have fewer than two classes, or a label
        is not a class of ``fit``.

    Warns
    -----
    UserWarning
        When the mean of the subject is estimated from fewer than ten windows.
    """
    subjects = set() if windows.groups is None else set(windows.groups.tolist())
    if len(subjects) > 1:
        raise ValueError(f"adapt expects windows of one subject, got {sorted(map(str, subjects))}.")
    if (is_centered or labels is None) and len(windows) < transformers.MIN_WINDOWS:
        unless = ", or fit without centering (recenter=None)" if is_centered else ""
        checks.warn_user(
            f"The mean of {len(windows)} windows is imprecise; {transformers.MIN_WINDOWS} or more "
            f"are better. Pass more windows of the subject, also unlabeled{unless}."
        )
    codes: np.ndarray | None = None
    if labels is not None:
        classes = estimator.classes_.tolist()
        unlabeled, _ = label_of_unlabeled(estimator.unlabeled_label)
        code_of = {**{label: code for code, label in enumerate(classes)}, unlabeled: -1}
        passed_labels = windows.labels.tolist()
        if unknown := sorted({repr(label) for label in passed_labels if label not in code_of}):
            raise ValueError(
                f"adapt expects labels of fit, {classes}, or {unlabeled!r} for unlabeled windows, "
                f"got {checks.format_list(unknown, max_items=3)}."
            )
        codes = np.array([code_of[label] for label in passed_labels])
        if len(present := {*codes.tolist()} - {-1}) < 2:
            raise ValueError(
                f"adapt expects labels of two classes, got {[classes[i] for i in present]}. Pass "
                "windows of another class, too, or labels=None."
            )
    classifiers = {
        view: adapted(estimator, *views[view], features, codes, is_centered=is_centered)
        for view, features in features_of(windows).items()
    }
    return (
        classifiers,
        tables.TestSubjectData.ALL_UNLABELED if codes is None else tables.TestSubjectData.LABELED,
    )


def adapted(
    estimator: Any,
    clf: Pipeline,
    strength: float,
    features: np.ndarray,
    codes: np.ndarray | None,
    *,
    is_centered: bool,
) -> Pipeline:
    """Return a classifier for one person; the given one stays as it is.

    Parameters
    ----------
    estimator : estimator
        Fitted classifier with ``classes_`` and ``class_weight``.
    clf : Pipeline
        Its standardization and linear classifier.
    strength : float
        As in :func:`ridge_towards`.
    features : ndarray, shape (n_windows, n_features)
        Features of the person's windows; NaN counts as the mean.
    codes : ndarray of int, shape (n_windows,) | None
        Index of the class of each window, -1 where it is unknown. With None only the mean is used.
    is_centered : bool
        Whether ``clf`` was fitted on centered features. Then, and without ``codes``, the person's
        mean takes the place of that of the training windows.
    """
    scaler, linear = clf = copy.deepcopy(clf)
    if is_centered or codes is None:
        lacking = np.isnan(features).all(axis=0)
        scaler.mean_ = np.where(lacking, scaler.mean_, transformers.subject_mean(features))
        if is_centered:  # the mean of centered features is none of the person's
            linear.coef_[:, lacking] = 0
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
    r"""Return weights of logistic regression that are shrunk towards others.

    With the weights :math:`w_0` and the intercepts :math:`b_0` of other people, they minimize

    .. math::
        \sum_i v_i \, \ell(y_i, w x_i + b) + \frac{\lambda p}2 \lVert w - w_0 \rVert^2
        + \frac12 \lVert b - b_0 \rVert^2

    over the p features, where :math:`\ell` is the log loss. This is the mode of the posterior
    under a normal prior at the weights of the others. The change of the weights is a combination of
    the windows, so it is searched among these, by L-BFGS.

    Parameters
    ----------
    coef, intercept : ndarray, shape (n_outputs, n_features) and (n_outputs,)
        Weights of the others, as in scikit-learn: one output for two classes.
    features : ndarray, shape (n_windows, n_features)
        Standardized features of the person's labeled windows.
    codes : ndarray of int, shape (n_windows,)
        Index of each window's class.
    sample_weight : ndarray, shape (n_windows,)
        Weights :math:`v` of the windows.
    strength : float
        :math:`\lambda`.

    Returns
    -------
    coef, intercept : ndarray
        In the shapes of those given.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.baselines.new_subject import ridge_towards
    >>> others = np.array([[1.0, 0.0]]), np.zeros(1)
    >>> x, codes = np.array([[-1.0, 1.0], [1.0, -1.0]]), np.array([0, 1])
    >>> coef, _ = ridge_towards(*others, x, codes, np.ones(2), 1.0)
    >>> coef.round(2).tolist()  # this person's second feature counts the other way
    [[1.2, -0.2]]
    """
    n_outputs = len(coef)
    basis, within = np.linalg.qr(features.T)
    rows, before = within.T, features @ coef.T + intercept
    penalties = np.append(np.full(len(within), strength * features.shape[1]), 1.0)
    targets = np.eye(max(2, n_outputs))[codes]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        change = flat.reshape(n_outputs, -1)
        logits = _of_classes(before + rows @ change[:, :-1].T + change[:, -1])
        # SciPy's log_softmax is slow for few windows.
        logs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        losses = -(targets * logs).sum(axis=1)
        slopes = sample_weight[:, None] * (np.exp(logs) - targets)[:, -n_outputs:]
        gradient = np.column_stack([slopes.T @ rows, slopes.sum(axis=0)]) + penalties * change
        return sample_weight @ losses + (penalties * change**2).sum() / 2, gradient.ravel()

    start, tight = np.zeros(n_outputs * len(penalties)), dict(maxiter=1000, ftol=1e-11, gtol=1e-7)
    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", options=tight)
    change = optimum.x.reshape(n_outputs, -1)
    return coef + change[:, :-1] @ basis.T, intercept + change[:, -1]


def chosen_strength(
    clf: Pipeline,
    features: np.ndarray,
    windows: Windows,
    folds: Iterable[tuple[np.ndarray, np.ndarray]],
) -> float:
    """Return the strength of the prior with the highest balanced accuracy on held-out people.

    The accuracy, and not the log loss: a weak prior makes timid weights of the others larger, which
    lowers the loss even where it predicts worse. Of equal strengths it is the strongest.

    Up to three people of each fold have labels of the first 2 and then 8 windows of each class, and
    their other windows are predicted.

    Parameters
    ----------
    clf : Pipeline
        Standardization and linear classifier; a clone is fitted in each fold.
    features : ndarray, shape (n_windows, n_features)
        Features of the training windows.
    windows : Windows
        Training windows; a label is the index of its class.
    folds : iterable of tuple
        Training and held-out windows of each fold; without one, nothing is searched.
    """
    scores, codes, subjects = [], windows.labels, np.asarray(windows.groups)
    folds = list(folds)
    for train, test in folds if len(folds) >= _FEWEST_FOLDS else ():
        scaler, linear = clone(clf).fit(features[train], codes[train])
        for subject in pd.unique(subjects[test])[:_N_PEOPLE]:
            subject_rows = test[subjects[test] == subject]
            subject_features, labels = scaler.transform(features[subject_rows]), codes[subject_rows]
            fewest = np.bincount(labels, minlength=codes.max() + 1).min()
            for n in (n for n in _N_LABELED if n < fewest):
                first = first_of_each_class(labels, n)
                labeled = subject_features[first], labels[first], np.ones(first.sum())
                weights = [
                    ridge_towards(linear.coef_, linear.intercept_, *labeled, strength)
                    for strength in STRENGTHS
                ]
                logits = [_of_classes(subject_features[~first] @ coef.T + b) for coef, b in weights]
                predicted = [class_logits.argmax(axis=1) for class_logits in logits]
                scores.append([balanced_accuracy_score(labels[~first], y) for y in predicted])
    return STRENGTHS[np.mean(scores, axis=0).argmax()] if scores else DEFAULT_STRENGTH


def _of_classes(outputs: np.ndarray) -> np.ndarray:
    """Return logits of all classes; one output is the second of two classes."""
    return np.hstack([np.zeros_like(outputs), outputs]) if outputs.shape[1] == 1 else outputs


def first_of_each_class(codes: np.ndarray, n: int) -> np.ndarray:
    """Return which windows are among the first n of their class, in the order of rows."""
    return (pd.Series(codes).groupby(codes).cumcount() < n).to_numpy()
