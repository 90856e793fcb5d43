"""Tests of a mean difference: over crossed subjects, draws and pretrainings, or over folds.

Every subject is scored in every draw of labelled people, so that the scores of one subject are
alike, and so are those of one draw. A mean over all of them is less certain than one of as many
independent scores. The variance here allows for all factors at once.
"""

import math
from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np
from scipy.special import stdtr, stdtrit  # the t distribution, without the checks of stats.t

#: Mean square and degrees of freedom of each set of factors, by their axes.
MeanSquares = Mapping[tuple[int, ...], tuple[float, int]]


class MeanTest(NamedTuple):
    """Mean of differences, its standard error and a two-sided t-test that it is zero.

    Attributes
    ----------
    mean, standard_error : float
        Mean and its standard error, in the unit of the differences.
    df : float
        Degrees of freedom.
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

    @classmethod
    def of(cls, mean: float, error: float = math.nan, df: float = math.nan) -> Self:
        """Test a mean with this standard error; without one, all but the mean are NaN."""
        if error < 1e-12:  # all differences are equal, apart from rounding
            return cls(mean, 0.0, df, float(abs(mean) < 1e-12), mean, mean)
        half = float(stdtrit(df, 0.975)) * error
        p = float(2 * stdtr(df, -abs(mean) / error))
        return cls(mean, error, df, p, mean - half, mean + half)

    def detectable(self, power: float = 0.8, level: float = 0.05) -> float:
        r"""Return the mean that would be found significant with this probability.

        It is :math:`(t_{1 - \alpha / 2} + t_{1 - \beta})` standard errors, with the quantiles of
        the t distribution and the degrees of freedom of the test.
        """
        if self.standard_error == 0:  # equal scores tell nothing of the spread of others
            return math.nan
        quantiles = stdtrit(self.df, 1 - level / 2) + stdtrit(self.df, power)
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


def crossed_mean(differences: np.ndarray) -> MeanTest:
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
    is that of the number of factors: plus for one and three, minus for two. One factor alone is
    the t-test of its means.

    Parameters
    ----------
    differences : ndarray, shape (n_subjects, n_draws) or (n_subjects, n_draws, n_pretrainings)
        One difference for each combination. Factors with one level are left out.

    Returns
    -------
    MeanTest
        All but the mean are NaN when no factor has two levels.

    Notes
    -----
    The estimate of the variance does not need the draw to be the same for all subjects, as where
    each fold of a cross-validation has a draw of its own. Let :math:`u_{sd}` be the part of
    :math:`d_{sd}` that depends on the draw, independent between draws, with any covariance
    :math:`\Sigma` between subjects. Let :math:`v` be the mean of the diagonal of :math:`\Sigma`
    and :math:`c` that of all its other entries. Then :math:`E(MS_s) = n_d \sigma_s^2 + v - c`,
    :math:`E(MS_e) = v - c` and :math:`E(MS_d) = v + (n_s - 1) c`, so that :math:`E(MS_s + MS_d -
    MS_e) = n_d \sigma_s^2 + v + (n_s - 1) c`, which is :math:`n_s n_d \, \mathrm{var}(\bar d)`.

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
    (0.029, 26)
    """
    values = np.squeeze(np.asarray(differences, dtype=float))
    mean = float(values.mean()) if values.size else math.nan
    if values.ndim == 0 or values.size == 0:
        return MeanTest.of(mean)
    return MeanTest.of(mean, *_error_of_mean(mean_squares(values), values.size))


def _error_of_mean(squares: MeanSquares, size: int) -> tuple[float, float]:
    """Return the standard error of a mean over ``size`` entries, and its degrees of freedom."""
    total = sum((-1) ** (len(factors) + 1) * ms for factors, (ms, _) in squares.items())
    largest, df = max(found for factors, found in squares.items() if len(factors) == 1)
    if total > largest * (1 + 1e-5):  # scores are rounded to single precision; else it is equal
        df = total**2 / sum(ms**2 / n for ms, n in squares.values())
    return math.sqrt(max(total, largest) / size), float(df)


def variance_components(squares: MeanSquares) -> dict[tuple[int, ...], float]:
    r"""Return the variance of the effects of each set of factors.

    The expected mean square of a set is the sum over all sets that contain it: the variance of each
    times the numbers of levels of the factors that are not in it. So for two factors
    :math:`\hat\sigma_e^2 = MS_e` and :math:`\hat\sigma_s^2 = (MS_s - MS_e) / n_d`. A negative
    estimate becomes zero.

    Parameters
    ----------
    squares : dict of tuple to (float, int)
        From :func:`mean_squares`.

    Returns
    -------
    dict of tuple to float
        By the axes of the factors.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.random_effects import mean_squares, variance_components
    >>> variance_components(mean_squares(np.array([[1.0, 3.0], [2.0, 4.0], [6.0, 8.0]])))
    {(0,): 7.0, (1,): 2.0, (0, 1): 0.0}
    """
    every = max(squares, key=len)
    n = {axis: squares[(axis,)][1] + 1 for axis in every}
    found = {}
    for factors in squares:
        total = sum(
            (-1) ** (len(larger) - len(factors)) * ms
            for larger, (ms, _) in squares.items()
            if set(factors) <= set(larger)
        )
        found[factors] = max(0.0, total / math.prod(n[axis] for axis in {*every} - {*factors}))
    return found


def detectable_in(components: Mapping[tuple[int, ...], float], shape: tuple[int, ...]) -> float:
    """Return the mean that 80 % of tests at .05 find, for other numbers of levels.

    The mean squares are those that :func:`variance_components` expects.
    """
    squares = {}
    for factors in components:
        ms = sum(
            variance * math.prod(n for axis, n in enumerate(shape) if axis not in larger)
            for larger, variance in components.items()
            if set(factors) <= set(larger)
        )
        squares[factors] = ms, math.prod(shape[axis] - 1 for axis in factors)
    return MeanTest.of(0.0, *_error_of_mean(squares, math.prod(shape))).detectable()


def corrected_mean(differences: np.ndarray, n_train: int) -> MeanTest:
    r"""Test the mean difference over subjects with the t-test of Nadeau and Bengio (2003).

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
    MeanTest
        All but the mean are NaN for fewer than two subjects.

    References
    ----------
    Nadeau and Bengio 2003, Inference for the generalization error, Machine Learning 52.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.random_effects import corrected_mean
    >>> found = corrected_mean(np.array([0.1, 0.2, 0.3, 0.2]), n_train=3)
    >>> round(found.p, 3), round(found.detectable(), 3)
    (0.049, 0.259)
    """
    n = len(differences)
    mean = float(differences.mean()) if n else math.nan
    if n < 2:
        return MeanTest.of(mean)
    error = float(differences.std(ddof=1)) * math.sqrt(1 / n + 1 / n_train)
    return MeanTest.of(mean, error, n - 1)
