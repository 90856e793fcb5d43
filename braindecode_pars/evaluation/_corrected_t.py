"""The paired t-test that allows for training sets in common, and what it can find."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

__all__ = ["corrected_t_test", "detectable_difference"]


def corrected_t_test(differences: np.ndarray, n_train: int) -> float:
    r"""Return the p-value of the corrected resampled t-test (Nadeau and Bengio 2003).

    The folds of a cross-validation train on many subjects in common, so their scores are not
    independent, and the variance of their mean is larger than :math:`s^2 / n`. For the differences
    :math:`d_1, \ldots, d_n` of two methods on :math:`n` test subjects, with :math:`n_t` training
    subjects, the test is

    .. math::
        t = \frac{\bar d}{s \sqrt{1 / n + 1 / n_t}}

    with :math:`n - 1` degrees of freedom. For folds of one subject this is the test of Nadeau and
    Bengio, whose second term is the number of test subjects of a fold divided by that of training
    subjects. For folds of :math:`m` subjects, the variance of a fold's mean is :math:`s^2 / m`,
    which gives the same formula.

    Parameters
    ----------
    differences : ndarray, shape (n_subjects,)
        Differences between two methods.
    n_train : int
        Number of training subjects of a fit.

    Returns
    -------
    float
        Two-sided p-value; NaN for fewer than two subjects.

    References
    ----------
    Nadeau and Bengio 2003, Inference for the generalization error, Machine Learning 52.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation._corrected_t import corrected_t_test
    >>> round(corrected_t_test(np.array([0.1, 0.2, 0.3, 0.2]), n_train=3), 3)
    0.049
    """
    n = len(differences)
    if n < 2:
        return math.nan
    mean, error = differences.mean(), _standard_error(differences, n_train)
    if error < 1e-12:  # all differences are equal, apart from rounding
        return 1.0 if abs(mean) < 1e-12 else 0.0
    return float(2 * stats.t.sf(abs(mean) / error, n - 1))


def detectable_difference(differences: np.ndarray, n_train: int) -> float:
    r"""Return the mean difference that the corrected test would find with a probability of 80 %.

    It is :math:`(t_{0.975} + t_{0.8}) \, s \sqrt{1 / n + 1 / n_t}` with the quantiles of the t
    distribution with :math:`n - 1` degrees of freedom, for one test at the level of 5 %.

    Parameters
    ----------
    differences, n_train
        As in :func:`corrected_t_test`.

    Returns
    -------
    float
        Difference in the unit of the scores; NaN for fewer than two subjects.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation._corrected_t import detectable_difference
    >>> round(detectable_difference(np.array([0.1, 0.2, 0.3, 0.2]), n_train=3), 3)
    0.259
    """
    n = len(differences)
    if n < 2:
        return math.nan
    quantiles = stats.t.ppf(0.975, n - 1) + stats.t.ppf(0.8, n - 1)
    return float(quantiles * _standard_error(differences, n_train))


def _standard_error(differences: np.ndarray, n_train: int) -> float:
    return float(differences.std(ddof=1) * math.sqrt(1 / len(differences) + 1 / n_train))
