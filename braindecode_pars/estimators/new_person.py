"""What a linear classifier can use of a new person: windows without labels, or a few with labels.

All functions take a fitted standardisation with its linear classifier, and features. Nothing is
trained by gradients on windows without labels: on EEG that often makes predictions worse, and more
so than methods without an optimisation do (Lee, Pradeepkumar and Sun 2026, arXiv:2604.16926).
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.stats import entropy
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import compute_sample_weight

from braindecode_pars._common import checks, tables
from braindecode_pars.estimators import transformers
from braindecode_pars.windows import Windows
from braindecode_pars.windows.labels import cross_entropy_weights, label_of_unlabeled

#: Minimum number of folds of subjects for a search: with two, each has one training subject.
_FEWEST_FOLDS = 3
#: Strengths of the prior that are searched, and the one without a search.
STRENGTHS, DEFAULT_STRENGTH = (30.0, 3.0, 0.3, 0.03, 0.003), 0.3

#: In the search: windows of each class that a held-out person has labels of, and people of a fold.
_N_LABELLED, _N_PEOPLE = (2, 8), 3

#: Supports of a class in T3A; the paper tries 1, 5, 20, 50, 100 and all.
N_SUPPORTS = 20


def adapted_views(
    estimator: Any,
    windows: Windows,
    labels: Any,
    views: Mapping[str, tuple[Pipeline, float]],
    features_of: Callable[[Windows], Mapping[str, np.ndarray]],
    *,
    is_centred: bool,
) -> tuple[dict[str, Pipeline], tables.Access]:
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
        Standardisation with linear classifier, and strength of the prior, of each view.
    features_of : callable
        Function that returns the features of each view, not centred.
    is_centred : bool
        Whether ``fit`` centred the features, so that the person's mean is needed beside labels.

    Raises
    ------
    ValueError
        When the windows are of several people, too few for a mean, labelled with one class only, or
        a label is no class of fit.
    """
    people = set() if windows.groups is None else set(windows.groups.tolist())
    if len(people) > 1:
        named = checks.listed(sorted(map(str, people)), most=3)
        raise ValueError(f"adapt needs windows of one person; adapt to each of {named} in turn.")
    codes: np.ndarray | None = None
    if (is_centred or labels is None) and len(windows) < transformers.MIN_WINDOWS:
        raise ValueError(
            f"A person's mean needs {transformers.MIN_WINDOWS} windows, these are {len(windows)}; "
            "also pass windows without a label (unlabeled_label), or fit without centring."
        )
    if labels is not None:
        code_of = {label: code for code, label in enumerate(estimator.classes_.tolist())}
        unlabelled, _ = label_of_unlabeled(estimator.unlabeled_label)
        given = windows.labels.tolist()
        codes = np.array([-1 if one == unlabelled else code_of.get(one, -2) for one in given])
        if min(codes) < -1 or max(codes) < 0:
            found = checks.listed(sorted(set(map(repr, given))), most=3)
            known = checks.listed(list(map(repr, code_of)))
            raise ValueError(
                f"The labels are {found}; labelled windows have those of fit, {known}."
            )
        if len({*codes.tolist()} - {-1}) < 2:
            only = estimator.classes_.tolist()[codes.max()]
            raise ValueError(
                f"All labels are {only!r}; pass labelled windows of two classes of the person, or "
                "none."
            )
    own = {
        view: adapted(estimator, *views[view], features, codes, is_centred=is_centred)
        for view, features in features_of(windows).items()
    }
    return own, tables.Access.UNLABELLED if codes is None else tables.Access.LABELLED


def adapted(
    estimator: Any,
    clf: Pipeline,
    strength: float,
    features: np.ndarray,
    codes: np.ndarray | None,
    *,
    is_centred: bool,
) -> Pipeline:
    """Return a classifier for one person; the given one stays as it is.

    Parameters
    ----------
    estimator : estimator
        Fitted classifier with ``classes_`` and ``class_weight``.
    clf : Pipeline
        Its standardisation and linear classifier.
    strength : float
        As in :func:`ridge_towards`.
    features : ndarray, shape (n_windows, n_features)
        Features of the person's windows; NaN counts as the mean.
    codes : ndarray of int, shape (n_windows,) | None
        Index of the class of each window, -1 where it is unknown. With None only the mean is used.
    is_centred : bool
        Whether ``clf`` was fitted on centred features. Then, and without ``codes``, the person's
        mean takes the place of that of the training windows.
    """
    scaler, linear = clf = copy.deepcopy(clf)
    if is_centred or codes is None:
        lacking = np.isnan(features).all(axis=0)
        scaler.mean_ = np.where(lacking, scaler.mean_, transformers.own_mean(features))
        if is_centred:  # the mean of centred features is none of the person's
            linear.coef_[:, lacking] = 0
    if codes is not None:
        own, known = np.nan_to_num(scaler.transform(features))[codes >= 0], codes[codes >= 0]
        of_class = cross_entropy_weights(known, estimator.classes_, estimator.class_weight)
        weights = np.ones(len(known)) if of_class is None else of_class.numpy()[known]
        given = own, known, weights, strength
        linear.coef_, linear.intercept_ = ridge_towards(linear.coef_, linear.intercept_, *given)
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

    With the weights :math:`w_0` and the intercepts :math:`b_0` of other people, they minimise

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
        Standardised features of the person's labelled windows.
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
    >>> from braindecode_pars.estimators.new_person import ridge_towards
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
        logs = _log_softmax(logits)
        losses = -(targets * logs).sum(axis=1)
        slopes = sample_weight[:, None] * (np.exp(logs) - targets)[:, -n_outputs:]
        gradient = np.column_stack([slopes.T @ rows, slopes.sum(axis=0)]) + penalties * change
        return sample_weight @ losses + (penalties * change**2).sum() / 2, gradient.ravel()

    start, tight = np.zeros(n_outputs * len(penalties)), dict(maxiter=1000, ftol=1e-11, gtol=1e-7)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=tight)
    change = found.x.reshape(n_outputs, -1)
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
        Standardisation and linear classifier; a clone is fitted in each fold.
    features : ndarray, shape (n_windows, n_features)
        Features of the training windows.
    windows : Windows
        Training windows; a label is the index of its class.
    folds : iterable of tuple
        Training and held-out windows of each fold; without one, nothing is searched.
    """
    scores, codes, people = [], windows.labels, np.asarray(windows.groups)
    folds = list(folds)
    for train, test in folds if len(folds) >= _FEWEST_FOLDS else ():
        scaler, linear = clone(clf).fit(features[train], codes[train])
        for person in pd.unique(people[test])[:_N_PEOPLE]:
            mine = test[people[test] == person]
            own, labels = scaler.transform(features[mine]), codes[mine]
            fewest = np.bincount(labels, minlength=codes.max() + 1).min()
            for n in (n for n in _N_LABELLED if n < fewest):
                first = first_of_each_class(labels, n)
                given, rest = (own[first], labels[first], np.ones(first.sum())), labels[~first]
                weights, of_strengths = compute_sample_weight("balanced", rest), []
                for strength in STRENGTHS:
                    coef, intercept = ridge_towards(
                        linear.coef_, linear.intercept_, *given, strength
                    )
                    found = _of_classes(own[~first] @ coef.T + intercept).argmax(axis=1)
                    of_strengths.append(np.average(found == rest, weights=weights))
                scores.append(of_strengths)
    return STRENGTHS[np.mean(scores, axis=0).argmax()] if scores else DEFAULT_STRENGTH


def _of_classes(outputs: np.ndarray) -> np.ndarray:
    """Return logits of all classes; one output is the second of two classes."""
    return np.hstack([np.zeros_like(outputs), outputs]) if outputs.shape[1] == 1 else outputs


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)  # SciPy's is slow for few


def first_of_each_class(codes: np.ndarray, n: int) -> np.ndarray:
    """Return which windows are among the first n of their class, in the order of rows."""
    return (pd.Series(codes).groupby(codes).cumcount() < n).to_numpy()


def t3a(
    clf: Pipeline, features: np.ndarray, n_supports: int | None = N_SUPPORTS, *, causal: bool
) -> np.ndarray:
    r"""Return the logits of T3A: prototypes of the classes follow the windows of one person.

    The supports :math:`S_c` of a class begin with its weights. Each window :math:`x` joins those of
    the class that the classifier predicts. Of a class, those ``n_supports`` are kept for which the
    prediction has the lowest entropy. Their directions add up to a prototype, and the logit is

    .. math::
        s \, x \cdot \frac{p_c}{\lVert p_c \rVert}, \qquad
        p_c = \sum_{z \in S_c} \frac{z}{\lVert z \rVert} ,

    with the mean length s of the weights, which does not change what is predicted: without any
    window, the logits of weights of equal length are those of the classifier without its intercept.
    There is no gradient, and nothing to tune on the person.

    Parameters
    ----------
    clf : Pipeline
        Fitted standardisation and linear classifier.
    features : ndarray, shape (n_windows, n_features)
        Features of the windows of one person; with ``causal``, in the order of time.
    n_supports : int | None
        Most supports of a class. None keeps all.
    causal : bool
        Whether the supports of a window are those up to this window. Otherwise they are of all
        windows.

    Returns
    -------
    ndarray, shape (n_windows, n_classes)
        Logits.

    References
    ----------
    Iwasawa, Y., and Matsuo, Y. (2021). Test-time classifier adjustment module for model-agnostic
    domain generalization. NeurIPS. The prototypes have length 1 as in the authors' code.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars.estimators.new_person import t3a
    >>> rng, y = np.random.default_rng(0), np.arange(100) % 2
    >>> features = rng.standard_normal((100, 3)) + 3 * y[:, None]
    >>> clf = make_pipeline(StandardScaler(), LogisticRegression()).fit(features, y)
    >>> person = features * [2, -1, 0.1]  # whose second feature counts the other way
    >>> np.round([clf.score(person, y), np.mean(t3a(clf, person, causal=False).argmax(1) == y)], 2)
    array([0.63, 0.87])
    """
    scaler, linear = clf
    inputs = np.nan_to_num(scaler.transform(features))
    coef, intercept = linear.coef_, linear.intercept_
    if len(coef) == 1:
        coef, intercept = np.vstack([-coef, coef]) / 2, np.append(-intercept, intercept) / 2
    supports = np.vstack([coef, inputs])
    logits = supports @ coef.T + intercept
    uncertainty = entropy(np.exp(_log_softmax(logits)), axis=1)
    classes = np.append(np.arange(len(coef)), logits[len(coef) :].argmax(axis=1))
    directions = supports / np.linalg.norm(supports, axis=1, keepdims=True)
    scale = np.linalg.norm(coef, axis=1).mean()

    def prototypes(n_windows: int) -> np.ndarray:
        n = len(coef) + n_windows
        kept = [np.flatnonzero(classes[:n] == c) for c in range(len(coef))]
        kept = [own[uncertainty[own].argsort(kind="stable")[:n_supports]] for own in kept]
        sums = np.array([directions[own].sum(axis=0) for own in kept])
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)

    if not causal:
        return scale * inputs @ prototypes(len(inputs)).T
    return scale * np.array([prototypes(i + 1) @ x for i, x in enumerate(inputs)])
