"""The mean of scores that are crossed: the same subjects in many draws, of several pretrainings.

Every subject is scored with every draw of labelled people, so that the scores of one subject are
alike, and so are those of one draw. A mean over all of them is less certain than one of as many
independent scores. The variance here allows for all factors at once.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import stats

__all__ = ["CrossedMean", "crossed_mean", "mean_squares"]


class CrossedMean(NamedTuple):
    """Mean of crossed differences, its standard error and a two-sided test that it is zero.

    Attributes
    ----------
    mean, standard_error : float
        Mean and its standard error, in the unit of the differences.
    df : float
        Degrees of freedom of Satterthwaite.
    p : float
        Two-sided p-value of the mean divided by its standard error.
    ci_low, ci_high : float
        Interval of 95 % of the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.random_effects import crossed_mean
    >>> found = crossed_mean(np.array([[0.1, 0.2], [0.0, 0.1], [0.3, 0.2]]))
    >>> round(found.mean, 3), round(found.standard_error, 3)
    (0.15, 0.058)
    """

    mean: float
    standard_error: float
    df: float
    p: float
    ci_low: float
    ci_high: float

    def detectable(self, power: float = 0.8, level: float = 0.05) -> float:
        r"""Return the mean that would be found significant with this probability.

        It is :math:`(t_{1 - \alpha / 2} + t_{1 - \beta})` standard errors, with the quantiles of
        the t distribution and the degrees of freedom of the test.
        """
        quantiles = stats.t.ppf(1 - level / 2, self.df) + stats.t.ppf(power, self.df)
        return float(quantiles * self.standard_error)


def mean_squares(values: np.ndarray) -> dict[tuple[int, ...], tuple[float, int]]:
    r"""Return mean square and degrees of freedom of each set of factors.

    The factors are the axes of the array. The effect of a set of factors is the mean over all other
    factors, without the effects of its subsets. Its mean square is the sum of its squares over all
    entries of the array, divided by the product of one less than the numbers of levels. The last
    set, of all factors, is the rest.

    Parameters
    ----------
    values : ndarray, shape (n_levels_of_factor_1, n_levels_of_factor_2, ...)
        One value for each combination of levels; at least two levels of each factor.

    Returns
    -------
    dict of tuple to (float, int)
        By the axes of the factors.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.random_effects import mean_squares
    >>> mean_squares(np.array([[1.0, 3.0], [2.0, 4.0], [6.0, 8.0]]))  # two factors, no rest
    {(0,): (14.0, 2), (1,): (6.0, 1), (0, 1): (0.0, 2)}
    """
    axes = range(values.ndim)
    sets = [each for size in range(values.ndim + 1) for each in combinations(axes, size)]
    effects: dict[tuple[int, ...], np.ndarray] = {}
    found = {}
    for factors in sets:
        others = tuple(axis for axis in axes if axis not in factors)
        within = [effect for of, effect in effects.items() if set(of) < set(factors)]
        effects[factors] = effect = values.mean(others, keepdims=True) - sum(within)
        if factors:
            df = math.prod(values.shape[axis] - 1 for axis in factors)
            found[factors] = float(np.mean(effect**2)) * values.size / df, df
    return found


def crossed_mean(differences: np.ndarray) -> CrossedMean:
    r"""Test the mean of crossed differences against zero, with all factors random.

    For subjects and draws, :math:`d_{sd} = \mu + a_s + b_d + e_{sd}` with variances
    :math:`\sigma_s^2, \sigma_d^2, \sigma_e^2`. The variance of the mean is :math:`\sigma_s^2 / n_s
    + \sigma_d^2 / n_d + \sigma_e^2 / (n_s n_d)`, which the mean squares of the analysis of variance
    estimate without bias:

    .. math::
        \widehat{\mathrm{var}}(\bar d) = \frac{MS_s + MS_d - MS_e}{n_s n_d}, \qquad
        \nu = \frac{(MS_s + MS_d - MS_e)^2}
                   {\frac{MS_s^2}{n_s - 1} + \frac{MS_d^2}{n_d - 1} +
                    \frac{MS_e^2}{(n_s - 1)(n_d - 1)}}

    with Satterthwaite's degrees of freedom. It is never below the larger of the mean squares of the
    factors divided by :math:`n_s n_d`; where that is larger, its degrees of freedom count. A third
    factor, such as the seed of pretraining, adds its mean square, and the sign of a set of factors
    is that of the number of factors: plus for one and three, minus for two.

    Parameters
    ----------
    differences : ndarray, shape (n_subjects, n_draws) or (n_subjects, n_draws, n_pretrainings)
        One difference for each combination. Factors with one level are left out.

    Returns
    -------
    CrossedMean
        All but the mean are NaN when no factor has two levels.

    References
    ----------
    Satterthwaite 1946, An approximate distribution of estimates of variance components, Biometrics
    Bulletin 2(6). Cornfield and Tukey 1956, Average values of mean squares in factorials, Annals of
    Mathematical Statistics 27(4).

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.random_effects import crossed_mean
    >>> rng = np.random.default_rng(0)
    >>> subjects, draws = rng.normal(0, 0.1, (12, 1)), rng.normal(0, 0.1, (1, 20))
    >>> found = crossed_mean(0.05 + subjects + draws)
    >>> round(found.standard_error, 3), round(found.df)
    (0.03, 25)
    """
    values = np.squeeze(np.asarray(differences, dtype=float))
    mean = float(values.mean()) if values.size else math.nan
    if values.ndim == 0 or values.size == 0:
        return CrossedMean(mean, *[math.nan] * 5)
    squares = mean_squares(values)
    signed = {factors: (-1) ** (len(factors) + 1) * ms for factors, (ms, _) in squares.items()}
    total = sum(signed.values())
    largest, df = max(squares[(axis,)] for axis in range(values.ndim))
    if total > largest:
        df = total**2 / sum(ms**2 / n for ms, n in squares.values())
    error = math.sqrt(max(total, largest) / values.size)
    if error < 1e-12:  # all differences are equal, apart from rounding
        p = 1.0 if abs(mean) < 1e-12 else 0.0
        return CrossedMean(mean, 0.0, df, p, mean, mean)
    half = float(stats.t.ppf(0.975, df) * error)
    p = float(2 * stats.t.sf(abs(mean) / error, df))
    return CrossedMean(mean, error, float(df), p, mean - half, mean + half)
