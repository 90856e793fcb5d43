"""Random-effects tests of a mean difference, with crossed subjects, draws and pretrainings.

A draw is a random subset of labeled subjects. Every subject is scored in every draw, so the scores
of the same subject are correlated, and so are the scores of the same draw. The variance of the mean
over all scores is therefore larger than for the same number of independent scores. These tests
account for all factors jointly.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np
from scipy.special import stdtr, stdtrit  # the t distribution, without the checks of stats.t

#: Mean square and degrees of freedom of each set of factors. The key contains the axes of the
#: factors.
MeanSquares = Mapping[tuple[int, ...], tuple[float, int]]
#: Terms of the variance of the mean: axes of the factors, variance and degrees of freedom.
Terms = list[tuple[tuple[int, ...], float, float]]
#: Axes of the array of a fold, and the names of the factors in ``MeanTest.variances``.
SUBJECTS, DEALINGS, DRAWS, PRETRAININGS = range(4)
FACTORS = {SUBJECTS: "subjects", DRAWS: "labeled subjects", PRETRAININGS: "pretraining"}


class MeanTest(NamedTuple):
    """Mean difference with its standard error, 95 % confidence interval and two-sided t-test.

    Attributes
    ----------
    mean, standard_error : float
        Mean and its standard error, in the unit of the differences.
    df : float
        Degrees of freedom.
    p : float
        Two-sided p-value of the t statistic, the mean divided by its standard error.
    ci_low, ci_high : float
        95 % confidence interval of the mean.
    variances : dict of str to float
        Contribution of each factor to the squared standard error: ``"subjects"``,
        ``"labeled subjects"`` (draws) and ``"pretraining"``, each including interactions. Empty if
        the variance was not estimated separately for each factor.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.random_effects import crossed_mean
    >>> result = crossed_mean(np.array([[0.1, 0.2], [0.0, 0.1], [0.3, 0.2]]))
    >>> round(result.mean, 3), round(result.standard_error, 3)
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
        """Test whether a mean is zero, given its standard error and degrees of freedom.

        Without a standard error, all attributes except the mean are NaN.
        """
        if error < 1e-12:  # all differences are equal, apart from rounding
            return cls(mean, 0.0, df, float(abs(mean) < 1e-12), mean, mean)
        half = float(stdtrit(df, 0.975)) * error
        p = float(2 * stdtr(df, -abs(mean) / error))
        return cls(mean, error, df, p, mean - half, mean + half)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the lower and upper limit of the confidence interval of the mean.

        The coverage is 1 - ``level``: 0.05 yields the 95 % confidence interval.
        """
        half = float(stdtrit(self.df, 1 - level / 2)) * self.standard_error
        return self.mean - half, self.mean + half

    def detectable(self, power: float = 0.8, level: float = 0.05) -> float:
        r"""Return the minimum detectable difference at the given power and significance level.

        The minimum detectable difference is :math:`(t_{1 - \alpha / 2} + t_{1 - \beta})` standard
        errors, where :math:`\alpha` is the significance level, :math:`1 - \beta` is the power, and
        :math:`t_q` is a quantile of the t distribution with the degrees of freedom of the test.
        """
        if self.standard_error == 0:  # no variance can be estimated from equal scores
            return math.nan
        return self._quantiles(power, level) * self.standard_error

    def upper_bound(self, confidence: float = 0.95) -> float:
        """Return the one-sided upper confidence bound of the mean.

        For example, a bound below 0.02 excludes an improvement of 0.02 or more.
        """
        return self.mean + float(stdtrit(self.df, confidence)) * self.standard_error

    def subjects_needed(
        self, difference: float, n_subjects: int, power: float = 0.8, level: float = 0.05
    ) -> float:
        r"""Return the number of subjects that an experiment needs to detect a difference.

        The variance of the mean has three components: test subjects, the random draw of labeled
        training subjects, and the pretraining seed. The components of test subjects and of the draw
        decrease as subjects are added. The component of the pretraining seed does not decrease.

        Parameters
        ----------
        difference : float
            True mean difference to detect.
        n_subjects : int
            Number of subjects from which this ``MeanTest`` was computed.
        power : float, default=0.8
            Power: the probability of detecting the difference.
        level : float, default=0.05
            Significance level of the two-sided test. The test uses the degrees of freedom ``df``
            of this ``MeanTest``, regardless of the number of subjects.

        Returns
        -------
        float
            Number of subjects. Infinite if the contribution of pretraining is so large that no
            number of subjects is sufficient; NaN if the variance components are unknown
            (``variances`` is empty).

        Examples
        --------
        >>> import numpy as np
        >>> from braindecode_pars.evaluation.random_effects import crossed_mean
        >>> result = crossed_mean(np.random.default_rng(0).normal(0.02, 0.1, (12, 3)))
        >>> result.subjects_needed(0.04, n_subjects=12)
        18.0
        """
        if not self.variances or not self.standard_error > 0:
            return math.nan
        target = (difference / self._quantiles(power, level)) ** 2
        pretraining_variance = self.variances["pretraining"]
        if target <= pretraining_variance:
            return math.inf
        subject_variance = sum(self.variances.values()) - pretraining_variance
        return float(math.ceil(n_subjects * subject_variance / (target - pretraining_variance)))

    def _quantiles(self, power: float, level: float) -> float:
        return float(stdtrit(self.df, 1 - level / 2) + stdtrit(self.df, power))


def mean_squares(
    values: np.ndarray, axes: Sequence[int] | None = None
) -> dict[tuple[int, ...], tuple[float, int]]:
    r"""Compute mean squares and degrees of freedom of all main effects and interactions.

    The factors of the analysis of variance are the axes of the array. To compute the effect of a
    set of factors, the values are averaged over all other factors, and the mean over each factor of
    the set is subtracted. The mean square of an effect is its sum of squares over all entries of
    the array, divided by its degrees of freedom. The degrees of freedom are the number of
    levels minus one, multiplied over all factors of the set: :math:`\prod_k (n_k - 1)`. The last
    set contains all factors and is the residual.

    Parameters
    ----------
    values : ndarray, shape (n_levels_of_factor_1, n_levels_of_factor_2, ...)
        One value for each combination of levels, with at least two levels per factor.
    axes : sequence of int, default=None
        Axes of the factors. The mean squares are averaged over all other axes. If None, all axes.

    Returns
    -------
    dict of tuple to (float, int)
        Mean square and degrees of freedom of each set of factors. The keys are the axes of the
        factors: ``(0,)`` is the main effect of axis 0, and ``(0, 1)`` an interaction.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.random_effects import mean_squares
    >>> mean_squares(np.array([[1.0, 3.0], [2.0, 4.0], [6.0, 8.0]]))  # two factors, residual 0
    {(0,): (14.0, 2), (1,): (6.0, 1), (0, 1): (0.0, 2)}
    """
    axes = range(values.ndim) if axes is None else axes
    n_entries = math.prod(values.shape[axis] for axis in axes)
    squares = {}
    for n_factors in range(1, len(axes) + 1):
        for factors in combinations(axes, n_factors):
            effect = values.mean(tuple({*axes} - {*factors}), keepdims=True)
            for axis in factors:
                effect = effect - effect.mean(axis, keepdims=True)
            df = math.prod(values.shape[axis] - 1 for axis in factors)
            squares[factors] = float(np.mean(effect**2)) * n_entries / df, df
    return squares


def crossed_mean(differences: np.ndarray) -> MeanTest:
    r"""Test whether the mean of crossed differences is zero, with all factors as random effects.

    For subjects and draws (random subsets of labeled subjects), the model is
    :math:`d_{sd} = \mu + a_s + b_d + e_{sd}` with variances
    :math:`\sigma_s^2, \sigma_d^2, \sigma_e^2`. The variance of the mean is
    :math:`\sigma_s^2 / n_s + \sigma_d^2 / n_d + \sigma_e^2 / (n_s n_d)`. An unbiased estimate of
    this variance follows from the mean squares of the analysis of variance:

    .. math::
        \widehat{\mathrm{var}}(\bar d) = \frac{MS_s + MS_d - MS_e}{n_s n_d}, \qquad
        \nu = \frac{(MS_s + MS_d - MS_e)^2}
                   {\frac{MS_s^2}{n_s - 1} + \frac{MS_d^2}{n_d - 1} +
                    \frac{MS_e^2}{(n_s - 1)(n_d - 1)}}

    where :math:`\nu` is Satterthwaite's approximation of the degrees of freedom. The estimate has a
    lower bound: the larger of :math:`MS_s` and :math:`MS_d`, divided by :math:`n_s n_d`. If the
    estimate is below this bound, the bound and the degrees of freedom of the larger mean square are
    used.

    With a third factor, such as the pretraining seed, the sum in the numerator contains the mean
    squares of all factors and interactions. Mean squares of one or three factors have a positive
    sign, and mean squares of two factors have a negative sign. With a single factor, the test is
    the t-test over the means of its levels.

    Parameters
    ----------
    differences : ndarray, shape (n_subjects, n_draws) or (n_subjects, n_draws, n_pretrainings)
        One difference for each combination of subject, draw and pretraining seed. A factor with
        only one level is ignored.

    Returns
    -------
    MeanTest
        Result of the test. All attributes except the mean are NaN if no factor has at least two
        levels.

    Notes
    -----
    The estimate of the variance is also valid if subjects have different draws, for example if each
    fold of a cross-validation has its own draw. Let :math:`u_{sd}` be the part of :math:`d_{sd}`
    that depends on the draw. This part is independent between draws and may have any covariance
    :math:`\Sigma` between subjects. Let :math:`v` be the mean of the diagonal of :math:`\Sigma` and
    :math:`c` the mean of its off-diagonal entries. Then :math:`E(MS_s) = n_d \sigma_s^2 + v - c`,
    :math:`E(MS_e) = v - c` and :math:`E(MS_d) = v + (n_s - 1) c`, so that
    :math:`E(MS_s + MS_d - MS_e) = n_d \sigma_s^2 + v + (n_s - 1) c`, which is
    :math:`n_s n_d \, \mathrm{var}(\bar d)`.

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
    >>> result = crossed_mean(0.05 + subjects + draws)
    >>> round(result.standard_error, 3), round(result.df)
    (0.029, 26)
    """
    values = np.asarray(differences, dtype=float)
    if values.size == 0:
        return MeanTest.of(math.nan)
    n_subjects, *other_sizes = values.shape
    fold = values.reshape(n_subjects, 1, *other_sizes, *[1] * (2 - len(other_sizes)))
    return _test_of(float(values.mean()), _terms_of_fold([fold], n_pool=0))


def crossed_mean_of_folds(
    folds: Sequence[np.ndarray], strata: Sequence[np.ndarray] | None = None
) -> MeanTest:
    r"""Test the mean difference over folds that draw their labeled subjects from a finite pool.

    Each fold has its own encoders and test subjects. The labeled subjects of a fold are from its
    pool, which contains the subjects of all other folds. A *dealing* divides the pool at random
    into disjoint sets, like dealing cards, and each set is a draw of labeled subjects. Within a
    fold, test subjects, draws and pretrainings are crossed random factors, as in
    :func:`crossed_mean`. The folds are independent of each other.

    Let :math:`V_s, V_d, V_p, V_{sd}, \ldots` be the mean squares of subjects, draws, pretrainings
    and their interactions, divided by the number of differences in one dealing. The sets of one
    dealing are independent samples of the population, but further dealings divide the same pool.
    Terms that include draws are therefore computed within each dealing and averaged over dealings.
    Unlike for independent samples, this average is not divided by the number of dealings again.
    Terms that do not include draws are computed from means over all draws. Then

    .. math::
        \widehat{\mathrm{var}}(\bar d_f) = V_s + V_p - V_{sp} + V_d - V_{sd} - V_{dp} + V_{sdp}

    is the estimated variance of the mean of fold :math:`f`. The weight :math:`w_f` of a fold is its
    proportion of all subjects. The weighted mean over folds has the variance
    :math:`\sum_f w_f^2 \widehat{\mathrm{var}}(\bar d_f)`, with a lower bound: the variance due to
    the largest factor alone. Satterthwaite's degrees of freedom are computed over the mean squares
    of all folds.

    Parameters
    ----------
    folds : sequence of ndarray, shape (n_subjects, n_dealings, n_sets, n_pretrainings)
        Differences of the test subjects of each fold, for instance in balanced accuracy. The sets
        of a dealing are disjoint. If a factor has only one level (such as a single pretraining),
        the test does not generalize to other levels.
    strata : sequence of ndarray, shape (n_subjects,), default=None
        Required only if each subject has windows of one class only: for each fold, the class of
        each test subject. The mean difference is then computed over the subjects of each class and
        averaged over classes, and the variance between subjects is estimated within each class.

    Returns
    -------
    MeanTest
        Result of the test, with ``variances``. All attributes except the mean are NaN if a fold has
        only one subject, or only one subject of a class.

    Notes
    -----
    Let each of :math:`J` dealings consist of :math:`K` draws, and let :math:`N` be the number of
    subjects in the pool: the subjects of the other folds, or :math:`N = K` for a single fold. Let
    the effects of labeled subjects be additive. The mean square of draws, averaged over dealings,
    then has
    :math:`1 / (\frac{1}{J (K - 1)} + \frac{1 - 1 / J}{N - 1})` degrees of freedom.

    All pretraining runs of a fold use the same unlabeled subjects. An effect of the choice of
    unlabeled subjects is therefore not part of the estimated variance.

    With one dealing and one fold, the estimate equals the restricted maximum likelihood estimate of
    a mixed model with all interactions if no variance component is negative. The script
    ``docs/experiments/study_rates.py`` simulates the error rates of this test.

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
    >>> result = crossed_mean_of_folds(folds)
    >>> round(result.mean, 3), round(result.standard_error, 3), round(result.df, 1)
    (0.068, 0.019, 7.4)
    """
    n_subjects = sum(len(fold) for fold in folds)
    mean, terms, min_subjects = 0.0, [], n_subjects
    for k, fold in enumerate(folds):
        values = np.asarray(fold, dtype=float)
        labels = np.zeros(len(values)) if strata is None else np.asarray(strata[k])
        classes = [values[labels == label] for label in np.unique(labels)]
        weight = len(values) / n_subjects
        mean += weight * float(np.mean([part.mean() for part in classes]))
        fold_terms = _terms_of_fold(classes, n_subjects - len(values))
        terms += [(factors, weight**2 * variance, df) for factors, variance, df in fold_terms]
        min_subjects = min(min_subjects, *map(len, classes))
    return _test_of(mean, terms if min_subjects > 1 else [])


def _terms_of_fold(classes: list[np.ndarray], n_pool: int) -> Terms:
    """Return the variance terms of the mean of a fold, which is the mean over class means."""
    n_dealings, n_sets = classes[0].shape[DEALINGS : DRAWS + 1]
    # All dealings divide the same subjects, so the mean squares of dealings are correlated.
    correlation = (n_sets - 1) / (max(n_pool, n_sets) - 1) if n_sets > 1 else 1.0
    n_independent = 1 / (1 / n_dealings + (1 - 1 / n_dealings) * correlation)
    draw_terms = [term for term in _terms(classes) if DRAWS in term[0]]
    means = [part.mean(axis=(DEALINGS, DRAWS), keepdims=True) for part in classes]
    return _terms(means) + [(factors, v, df * n_independent) for factors, v, df in draw_terms]


def _terms(classes: list[np.ndarray]) -> Terms:
    """Return the variance terms of the mean over classes, averaged over dealings."""
    balanced = np.mean([part.mean(axis=SUBJECTS, keepdims=True) for part in classes], axis=0)
    terms = _variances_of_mean(balanced)
    for part in classes:
        for factors, variance, df in _variances_of_mean(part):
            if SUBJECTS in factors:
                terms.append((factors, variance / len(classes) ** 2, df))
    return terms


def _variances_of_mean(values: np.ndarray) -> Terms:
    """Return the mean squares of factors with several levels, divided by the number of entries."""
    axes = [axis for axis in FACTORS if values.shape[axis] > 1]
    size = values.size / values.shape[DEALINGS]
    squares = mean_squares(values, axes)
    return [(factors, ms / size, df) for factors, (ms, df) in squares.items()]


def _test_of(mean: float, terms: Terms) -> MeanTest:
    """Return the test of a mean whose variance is the sum of terms, and its variance by factor."""
    if not terms:
        return MeanTest.of(mean)
    sums = _sums_by_factors(terms)
    parts = dict.fromkeys(FACTORS.values(), 0.0)
    # Interactions with draws are assigned to draws, all other interactions to their last factor.
    for factors, variance in sums.items():
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
    # The tolerance allows for rounding errors of scores in single precision.
    if total <= largest * (1 + 1e-5):
        total, terms = largest, [term for term in terms if term[0] == factor]
    denominator = sum(variance**2 / df for _, variance, df in terms)
    return math.sqrt(total), total**2 / denominator if denominator else math.nan


def _sums_by_factors(terms: Terms) -> dict[tuple[int, ...], float]:
    """Sum the terms by set of factors, with a negative sign for sets of two factors."""
    sums: dict[tuple[int, ...], float] = {}
    for factors, variance, _ in terms:
        sums[factors] = sums.get(factors, 0.0) + (-1) ** (len(factors) + 1) * variance
    return sums


def variance_components(squares: MeanSquares) -> dict[tuple[int, ...], float]:
    r"""Estimate the variance component of each main effect and interaction.

    The expected mean square of a set of factors is a sum over all sets :math:`S` that contain all
    factors of this set. Each summand is the variance component of :math:`S`, multiplied by the
    numbers of levels of all factors that are not in :math:`S`. For the factors subjects and draws,
    it follows that :math:`\hat\sigma_e^2 = MS_e` and :math:`\hat\sigma_s^2 = (MS_s - MS_e) / n_d`.
    Negative estimates are set to zero.

    Parameters
    ----------
    squares : dict of tuple to (float, int)
        Mean squares and degrees of freedom, from :func:`mean_squares`.

    Returns
    -------
    dict of tuple to float
        Variance component of each set of factors, with the keys of ``squares``.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.random_effects import mean_squares, variance_components
    >>> variance_components(mean_squares(np.array([[1.0, 3.0], [2.0, 4.0], [6.0, 8.0]])))
    {(0,): 7.0, (1,): 2.0, (0, 1): 0.0}
    """
    all_axes = max(squares, key=len)
    contributions: dict[tuple[int, ...], float] = {}  # components times numbers of levels
    for factors in sorted(squares, key=len, reverse=True):
        larger = [value for other, value in contributions.items() if {*factors} < {*other}]
        contributions[factors] = squares[factors][0] - sum(larger)
    return {
        factors: max(0.0, contributions[factors])
        / math.prod(squares[(axis,)][1] + 1 for axis in all_axes if axis not in factors)
        for factors in squares
    }


def detectable_in(components: Mapping[tuple[int, ...], float], shape: tuple[int, ...]) -> float:
    """Return the minimum detectable difference (80 % power, p < 0.05) of a planned experiment.

    ``shape`` contains the planned number of levels of each factor, such as numbers of subjects and
    draws, and ``components`` the variance components from :func:`variance_components`.
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
    r"""Corrected resampled t-test of the mean difference over subjects (Nadeau and Bengio 2003).

    The training sets of a cross-validation overlap, so the scores of the folds are not independent.
    Let :math:`d_1, \ldots, d_n` be the differences between two methods on :math:`n` test subjects,
    :math:`s` the standard deviation of these differences, and :math:`n_t` the number of training
    subjects. The variance of the mean difference is larger than :math:`s^2 / n`, and the test
    statistic is

    .. math::
        t = \frac{\bar d}{s \sqrt{1 / n + 1 / n_t}}

    with :math:`n - 1` degrees of freedom. For folds with one test subject, this is the test of
    Nadeau and Bengio. In their paper, the second term under the root is the number of test subjects
    of a fold, divided by the number of training subjects of the fold. For folds with :math:`m` test
    subjects, the variance of the mean difference of a fold is :math:`s^2 / m`, which results in the
    same formula.

    Parameters
    ----------
    differences : ndarray, shape (n_subjects,)
        Differences between two methods.
    n_train : int
        Number of training subjects per fold.

    Returns
    -------
    MeanTest
        Result of the test. All attributes except the mean are NaN for fewer than two subjects.

    References
    ----------
    Nadeau and Bengio 2003, Inference for the generalization error, Machine Learning 52.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.random_effects import corrected_mean
    >>> result = corrected_mean(np.array([0.1, 0.2, 0.3, 0.2]), n_train=3)
    >>> round(result.p, 3), round(result.detectable(), 3)
    (0.049, 0.259)
    """
    n = len(differences)
    mean = float(differences.mean()) if n else math.nan
    if n < 2:
        return MeanTest.of(mean)
    error = float(differences.std(ddof=1)) * math.sqrt(1 / n + 1 / n_train)
    return MeanTest.of(mean, error, n - 1)
