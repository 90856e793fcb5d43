"""Tests of a mean difference: over crossed subjects, draws and pretrainings, or over folds.

Every subject is scored in every draw of labeled subjects, so that the scores of a subject are
correlated, and the scores of a draw are, too. A mean over all scores is less certain than a mean of
the same number of independent scores. The variance here allows for all factors at once.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np
from scipy.special import stdtr, stdtrit  # the t distribution, without the checks of stats.t

#: Mean square and degrees of freedom of each set of factors, by their axes.
MeanSquares = Mapping[tuple[int, ...], tuple[float, int]]
#: Variance of the mean by mean squares: axes of the factors, variance and degrees of freedom.
Terms = list[tuple[tuple[int, ...], float, float]]
#: Axes of a fold, and the names of the factors in ``MeanTest.variances``.
SUBJECTS, DEALINGS, DRAWS, PRETRAININGS = range(4)
FACTORS = {SUBJECTS: "subjects", DRAWS: "labeled subjects", PRETRAININGS: "pretraining"}


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
        95 % confidence interval of the mean.
    variances : dict of str to float
        Squared standard error by factor: ``"subjects"``, ``"labeled subjects"`` (draws) and
        ``"pretraining"``, each with its smaller interactions. Empty if it was not estimated by
        factor.

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
    variances: Mapping[str, float] = MappingProxyType({})

    @classmethod
    def of(cls, mean: float, error: float = math.nan, df: float = math.nan) -> Self:
        """Test a mean with this standard error; without one, all but the mean are NaN."""
        if error < 1e-12:  # all differences are equal, apart from rounding
            return cls(mean, 0.0, df, float(abs(mean) < 1e-12), mean, mean)
        half = float(stdtrit(df, 0.975)) * error
        p = float(2 * stdtr(df, -abs(mean) / error))
        return cls(mean, error, df, p, mean - half, mean + half)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the confidence interval of the mean, of 1 - ``level``."""
        half = float(stdtrit(self.df, 1 - level / 2)) * self.standard_error
        return self.mean - half, self.mean + half

    def detectable(self, power: float = 0.8, level: float = 0.05) -> float:
        r"""Return the mean that would be found significant with this probability.

        It is :math:`(t_{1 - \alpha / 2} + t_{1 - \beta})` standard errors, with the quantiles of
        the t distribution and the degrees of freedom of the test.
        """
        if self.standard_error == 0:  # equal scores tell nothing of the spread of others
            return math.nan
        return self._quantiles(power, level) * self.standard_error

    def upper_bound(self, confidence: float = 0.95) -> float:
        """Return the one-sided upper confidence bound of the mean.

        A bound below 0.02 excludes an improvement of 0.02 or more.
        """
        return self.mean + float(stdtrit(self.df, confidence)) * self.standard_error

    def subjects_needed(
        self, difference: float, n_subjects: int, power: float = 0.8, level: float = 0.05
    ) -> float:
        r"""Return the number of subjects needed to detect a difference.

        The variances of subjects and of labeled subjects are divided by the number of subjects. The
        variance of pretraining is not: it depends on the number of pretrainings alone.

        Parameters
        ----------
        difference : float
            True mean to detect.
        n_subjects : int
            Number of subjects of this test.
        power : float, default=0.8
            Probability to detect the difference.
        level : float, default=0.05
            Level of the two-sided test. Its degrees of freedom are those of this test.

        Returns
        -------
        float
            A whole number. Infinite if no number of subjects suffices, because of the variance of
            pretraining; NaN without variances.

        Examples
        --------
        >>> import numpy as np
        >>> from braindecode_pars.evaluation.random_effects import crossed_mean
        >>> found = crossed_mean(np.random.default_rng(0).normal(0.02, 0.1, (12, 3)))
        >>> found.subjects_needed(0.04, n_subjects=12)
        18.0
        """
        if not self.variances or not self.standard_error > 0:
            return math.nan
        target = (difference / self._quantiles(power, level)) ** 2
        fixed = self.variances["pretraining"]
        if target <= fixed:
            return math.inf
        of_subjects = sum(self.variances.values()) - fixed
        return float(math.ceil(n_subjects * of_subjects / (target - fixed)))

    def _quantiles(self, power: float, level: float) -> float:
        return float(stdtrit(self.df, 1 - level / 2) + stdtrit(self.df, power))


def mean_squares(
    values: np.ndarray, axes: Sequence[int] | None = None
) -> dict[tuple[int, ...], tuple[float, int]]:
    r"""Return mean square and degrees of freedom of each set of factors.

    The factors are the axes of the array. The effect of a set of factors is the mean over all other
    factors, without the effects of its subsets. Its mean square is the sum of its squares over all
    entries of the array, divided by the product of one less than the numbers of levels. The last
    set, of all factors, is the rest.

    Parameters
    ----------
    values : ndarray, shape (n_levels_of_factor_1, n_levels_of_factor_2, ...)
        One value for each combination of levels; at least two levels of each factor.
    axes : sequence of int, default=None
        Axes of the factors; the mean squares are averaged over the other axes. If None, all axes.

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
    axes = range(values.ndim) if axes is None else axes
    sets = [subset for size in range(len(axes) + 1) for subset in combinations(axes, size)]
    size = math.prod(values.shape[axis] for axis in axes)
    effects: dict[tuple[int, ...], np.ndarray] = {}
    squares = {}
    for factors in sets:
        others = tuple(axis for axis in axes if axis not in factors)
        within = [effect for of, effect in effects.items() if set(of) < set(factors)]
        effects[factors] = effect = values.mean(others, keepdims=True) - sum(within)
        if factors:
            df = math.prod(values.shape[axis] - 1 for axis in factors)
            squares[factors] = float(np.mean(effect**2)) * size / df, df
    return squares


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
    values = np.asarray(differences, dtype=float)
    if values.size == 0:
        return MeanTest.of(math.nan)
    n_subjects, *others = values.shape
    fold = values.reshape(n_subjects, 1, *others, *[1] * (2 - len(others)))
    return _test_of(float(values.mean()), _terms_of_fold([fold], n_pool=0))


def crossed_mean_of_folds(
    folds: Sequence[np.ndarray], strata: Sequence[np.ndarray] | None = None
) -> MeanTest:
    r"""Test the mean of differences over folds whose draws share a finite pool of subjects.

    The subjects of a fold are tested with encoders of its own, and with labeled subjects from the
    other folds, the pool. A *dealing* divides the pool at random into disjoint sets, and each set
    is a draw of labeled subjects. Within a fold, test subjects, draws and pretrainings are crossed
    random factors, as in :func:`crossed_mean`. The folds are independent of each other.

    The sets of one dealing are independent samples of the population, but further dealings divide
    the same pool. So the variance :math:`V_d` of the mean of one dealing due to draws is estimated
    within each dealing and averaged over dealings; it is not divided by their number. With the
    variances :math:`V` of the mean that the mean squares of subjects, draws and pretrainings and
    their interactions give, where those without draws are of the means over all draws,

    .. math::
        \widehat{\mathrm{var}}(\bar d_f) = V_s + V_p - V_{sp} + V_d - V_{sd} - V_{dp} + V_{sdp}

    for the mean of fold :math:`f`. The mean over folds has weights :math:`w_f`, the proportion of
    subjects in each fold, and the variance :math:`\sum_f w_f^2 \widehat{\mathrm{var}}(\bar d_f)`,
    which is never below that of the largest factor alone. Its degrees of freedom are those of
    Satterthwaite over the mean squares of all folds.

    Parameters
    ----------
    folds : sequence of ndarray, shape (n_subjects, n_dealings, n_sets, n_pretrainings)
        Differences of the test subjects of each fold, for instance in balanced accuracy. The sets
        of a dealing are disjoint. A factor with one level is not generalized over.
    strata : sequence of ndarray, shape (n_subjects,), default=None
        Class of each test subject, for each fold, if each subject has windows of one class only.
        The mean is then the mean over classes of the mean over subjects, and the variance between
        subjects is estimated within each class.

    Returns
    -------
    MeanTest
        With ``variances``. All but the mean are NaN if a fold has one subject, or one subject of a
        class.

    Notes
    -----
    The mean square of :math:`K` draws, averaged over :math:`J` dealings of :math:`N` subjects in
    the pool, has :math:`1 / (\frac{1}{J (K - 1)} + \frac{1 - 1 / J}{N - 1})` degrees of freedom if
    the effects of labeled subjects are additive: the dealings divide the same subjects. :math:`N`
    is the number of subjects of the other folds; for one fold it is :math:`K`.

    The pretrainings of a fold share their unlabeled subjects. An effect of these is not part of the
    variance, because a fold has it only once.

    With one dealing and one fold, the estimate is that of restricted maximum likelihood for a mixed
    model with all interactions, where no component is negative. Error rates are simulated in
    ``docs/experiments/study_rates.py``.

    References
    ----------
    Satterthwaite 1946, An approximate distribution of estimates of variance components, Biometrics
    Bulletin 2(6). Cornfield and Tukey 1956, Average values of mean squares in factorials, Annals of
    Mathematical Statistics 27(4).

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.random_effects import crossed_mean_of_folds
    >>> rng = np.random.default_rng(0)
    >>> folds = [0.05 + rng.normal(0, 0.1, (6, 1, 1, 1)) + rng.normal(0, 0.05, (6, 4, 3, 3))
    ...          for _ in range(2)]
    >>> found = crossed_mean_of_folds(folds)
    >>> round(found.mean, 3), round(found.standard_error, 3), round(found.df, 1)
    (0.068, 0.019, 7.4)
    """
    n_subjects = sum(len(fold) for fold in folds)
    mean, terms, fewest = 0.0, [], n_subjects
    for k, fold in enumerate(folds):
        values = np.asarray(fold, dtype=float)
        labels = np.zeros(len(values)) if strata is None else np.asarray(strata[k])
        classes = [values[labels == label] for label in np.unique(labels)]
        weight = len(values) / n_subjects
        mean += weight * float(np.mean([part.mean() for part in classes]))
        of_fold = _terms_of_fold(classes, n_subjects - len(values))
        terms += [(factors, weight**2 * variance, df) for factors, variance, df in of_fold]
        fewest = min(fewest, *map(len, classes))
    return _test_of(mean, terms if fewest > 1 else [])


def _terms_of_fold(classes: list[np.ndarray], n_pool: int) -> Terms:
    """Return the terms of the mean of a fold, with the mean over classes of the mean of each."""
    n_dealings, n_sets = classes[0].shape[DEALINGS : DRAWS + 1]
    # Dealings divide the same subjects, so that their mean squares are correlated.
    correlation = (n_sets - 1) / (max(n_pool, n_sets) - 1) if n_sets > 1 else 1.0
    n_independent = 1 / (1 / n_dealings + (1 - 1 / n_dealings) * correlation)
    of_draws = [term for term in _terms(classes) if DRAWS in term[0]]
    means = [part.mean(axis=(DEALINGS, DRAWS), keepdims=True) for part in classes]
    return _terms(means) + [(factors, v, df * n_independent) for factors, v, df in of_draws]


def _terms(classes: list[np.ndarray]) -> Terms:
    """Return the terms of the mean over classes, averaged over dealings."""
    balanced = np.mean([part.mean(axis=SUBJECTS, keepdims=True) for part in classes], axis=0)
    terms = _variances_of_mean(balanced)
    for part in classes:
        of_class = [term for term in _variances_of_mean(part) if SUBJECTS in term[0]]
        terms += [(factors, variance / len(classes) ** 2, df) for factors, variance, df in of_class]
    return terms


def _variances_of_mean(values: np.ndarray) -> Terms:
    """Return the mean squares of the factors with several levels, divided by their entries."""
    axes = [axis for axis in FACTORS if values.shape[axis] > 1]
    size = values.size / values.shape[DEALINGS]
    squares = mean_squares(values, axes)
    return [(factors, ms / size, df) for factors, (ms, df) in squares.items()]


def _test_of(mean: float, terms: Terms) -> MeanTest:
    """Test a mean; the variances of this test are by factor."""
    if not terms:
        return MeanTest.of(mean)
    sums = _sums_by_factors(terms)
    parts = dict.fromkeys(FACTORS.values(), 0.0)
    for factors, variance in sums.items():  # an interaction counts with draws, else the last
        parts[FACTORS[DRAWS if DRAWS in factors else factors[-1]]] += variance
    error, df = _error_of_mean(terms)
    positive = {name: max(0.0, part) for name, part in parts.items()}
    scale = error**2 / (sum(positive.values()) or 1.0)
    variances = {name: scale * part for name, part in positive.items()}
    return MeanTest.of(mean, error, df)._replace(variances=variances)


def _error_of_mean(terms: Terms) -> tuple[float, float]:
    """Return the standard error of a mean and its degrees of freedom."""
    sums = _sums_by_factors(terms)
    total = sum(sums.values())
    largest, factor = max((sums[factors], factors) for factors in sums if len(factors) == 1)
    if total <= largest * (1 + 1e-5):  # scores are rounded to single precision; else it is equal
        total, terms = largest, [term for term in terms if term[0] == factor]
    spread = sum(variance**2 / df for _, variance, df in terms)
    return math.sqrt(total), total**2 / spread if spread else math.nan


def _sums_by_factors(terms: Terms) -> dict[tuple[int, ...], float]:
    """Return the variance of the mean by factors: plus for one and three, minus for two."""
    sums: dict[tuple[int, ...], float] = {}
    for factors, variance, _ in terms:
        sums[factors] = sums.get(factors, 0.0) + (-1) ** (len(factors) + 1) * variance
    return sums


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
    components = {}
    for factors in squares:
        total = sum(
            (-1) ** (len(larger) - len(factors)) * ms
            for larger, (ms, _) in squares.items()
            if set(factors) <= set(larger)
        )
        components[factors] = max(0.0, total / math.prod(n[axis] for axis in {*every} - {*factors}))
    return components


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
    size = math.prod(shape)
    terms = [(factors, ms / size, float(df)) for factors, (ms, df) in squares.items()]
    return MeanTest.of(0.0, *_error_of_mean(terms)).detectable()


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
