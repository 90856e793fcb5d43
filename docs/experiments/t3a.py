"""T3A (Iwasawa and Matsuo 2021) on a linear probe, for docs/experiments/new_subject.py."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax
from scipy.stats import entropy
from sklearn.pipeline import Pipeline

#: Supports of a class; the paper tries 1, 5, 20, 50, 100 and all.
N_SUPPORTS = 20


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
        Fitted standardization and linear classifier.
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
    """
    scaler, linear = clf
    inputs = np.nan_to_num(scaler.transform(features))
    coef, intercept = linear.coef_, linear.intercept_
    if len(coef) == 1:
        coef, intercept = np.vstack([-coef, coef]) / 2, np.append(-intercept, intercept) / 2
    supports = np.vstack([coef, inputs])
    logits = supports @ coef.T + intercept
    uncertainty = entropy(np.exp(log_softmax(logits, axis=1)), axis=1)
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
