"""T3A (Iwasawa and Matsuo 2021) on a linear probe, for docs/experiments/new_subject.py."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax
from scipy.stats import entropy
from sklearn.pipeline import Pipeline

#: Number of supports per class; the paper tests 1, 5, 20, 50, 100 and all.
N_SUPPORTS = 20


def t3a(
    clf: Pipeline, features: np.ndarray, n_supports: int | None = N_SUPPORTS, *, causal: bool
) -> np.ndarray:
    r"""Return the logits of T3A, whose class prototypes adapt to the windows of one subject.

    The supports :math:`S_c` of a class are initialized with its weights. Each window :math:`x` is
    added to the supports of its predicted class. The ``n_supports`` supports with the lowest
    entropy of the prediction are kept per class. The sum of their directions is the prototype
    :math:`p_c`, and the logit is

    .. math::
        s \, x \cdot \frac{p_c}{\lVert p_c \rVert}, \qquad
        p_c = \sum_{z \in S_c} \frac{z}{\lVert z \rVert} ,

    with the mean norm s of the weights, which does not change the predicted class. Without any
    window, and for weights of equal norm, the logits are those of the classifier without its
    intercept. The method needs no gradients, and has no parameters to tune on the subject.

    Parameters
    ----------
    clf : Pipeline
        Fitted standardization and linear classifier.
    features : ndarray, shape (n_windows, n_features)
        Features of the windows of one subject; with ``causal``, in temporal order.
    n_supports : int | None
        Maximum number of supports per class. If None, all supports are kept.
    causal : bool
        If True, the supports of a window are from windows up to this window. If False, they are
        from all windows.

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
        kept = [rows[uncertainty[rows].argsort(kind="stable")[:n_supports]] for rows in kept]
        sums = np.array([directions[rows].sum(axis=0) for rows in kept])
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)

    if not causal:
        return scale * inputs @ prototypes(len(inputs)).T
    return scale * np.array([prototypes(i + 1) @ x for i, x in enumerate(inputs)])
