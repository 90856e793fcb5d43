"""Paired tests of the differences between methods.

One of them, a t-test, allows for training sets in common. Each says what it could have found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats
from scipy.stats import wilcoxon

from braindecode_pars._common.checks import checked, number
from braindecode_pars._common.tables import SCORES, check_table, numbers_of, with_numbers
from braindecode_pars.evaluation.metrics import by_subject


def holm(p_values: Sequence[float]) -> np.ndarray:
    r"""Correct p-values for multiple tests with Holm's step-down method.

    The i-th smallest of m p-values becomes
    :math:`\max_{j \le i} \min(1, (m - j + 1) p_{(j)})`. NaN stays NaN and does not count in m.

    References
    ----------
    Holm 1979, Scandinavian Journal of Statistics 6(2).

    Examples
    --------
    >>> from braindecode_pars.evaluation.paired_tests import holm
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    corrected = np.full(len(p), np.nan)
    # argsort puts NaN last; only finite p-values are corrected.
    order = np.argsort(p)[: np.isfinite(p).sum()]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.maximum.accumulate(np.minimum(1, factors * p[order]))
    return corrected


@checked()
def paired_tests(
    scores: pd.DataFrame, metric: str = "kappa", *, against: str | None = None
) -> pd.DataFrame:
    """Test every pair of methods over subjects, with Wilcoxon's test and a corrected t-test.

    The p-values are corrected with Holm's method. The folds of a cross-validation train on many
    subjects in common. Wilcoxon's signed-rank test does not allow for it; the corrected resampled
    t-test (Nadeau and Bengio 2003) does, and is usually the stricter one. The scores of a subject
    are first averaged over seeds, because seeds are not independent subjects. Subjects without a
    defined score for one of the two methods are dropped and counted. Differences of zero are
    ignored. The p-values are exact for up to 50 other differences without ties, and for up to 13
    with ties. Otherwise they are a normal approximation, see ``scipy.stats.wilcoxon``.

    Parameters
    ----------
    scores : DataFrame
        Scores of :func:`~braindecode_pars.evaluation.compare` or of another protocol. Subjects of
        several datasets are tested together.
    metric : str
        Metric to test; one of the column ``metric``.
    against : str | None
        Method that every other one is tested against, such as ``"scratch"``. Fewer tests are
        corrected for. None tests all pairs.

    Returns
    -------
    pandas.DataFrame
        One row for each pair: ``method_a``, ``method_b``, ``n_subjects``, ``mean_difference`` (a
        minus b), ``sd_difference``, ``ci_low`` and ``ci_high`` (interval of 95 % of the mean
        difference by the corrected t-test, NaN for fewer than two subjects), ``wins`` (number of
        subjects with a higher score of a), ``p`` of Wilcoxon's test (1 when all differences are
        zero, NaN without subjects), ``p_holm``,
        ``p_corrected`` of the corrected t-test (NaN for fewer than two subjects),
        ``p_corrected_holm``, ``detectable`` (the mean difference that the corrected t-test would
        find with a probability of 80 %, at the level of 5 % for one test) and ``n_dropped``. The
        metric is in ``attrs["metric"]``.

    Raises
    ------
    ValueError
        When the scores lack the metric or the method ``against``, there are fewer than two methods,
        or a subject has scores for several numbers of training subjects.

    Notes
    -----
    The statistic of the corrected t-test is the mean difference divided by its standard deviation
    times the root of ``1 / n_subjects + 1 / n_train_subjects``. Where numbers of training subjects
    differ, the smallest one counts. Both p-values are approximate error rates.

    References
    ----------
    Wilcoxon 1945, Biometrics Bulletin 1(6); Holm 1979, Scandinavian Journal of Statistics 6(2);
    Nadeau and Bengio 2003, Machine Learning 52.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import paired_tests
    >>> same = dict(protocol="compare", dataset="", n_train_subjects=5, seed=0)
    >>> scores = pd.DataFrame([
    ...     dict(same, method=method, subject=subject, metric="kappa",
    ...          value=0.1 * subject + gain)
    ...     for method, gain in [("PARS", 0.05), ("scratch", 0.0)]
    ...     for subject in range(6)
    ... ])
    >>> paired_tests(scores)[["method_a", "method_b", "n_subjects", "wins", "p"]]
      method_a method_b  n_subjects  wins        p
    0     PARS  scratch           6     6  0.03125
    """
    # One score for each method and subject
    check_table(scores, "scores", SCORES)
    chosen = with_numbers(scores[scores["metric"] == metric], ["value"])
    if len(chosen) == 0:
        raise ValueError(
            f"The scores have no metric {metric!r}; they have "
            f"{', '.join(map(str, dict.fromkeys(scores['metric'])))}."
        )
    means = by_subject(chosen)
    if means.duplicated(["dataset", "method", "subject"]).any():
        numbers = ", ".join(map(str, sorted(set(means["n_train_subjects"]))))
        raise ValueError(
            "A subject has several scores of one method, from several protocols or numbers of "
            f"training subjects ({numbers}); select one of them first."
        )
    methods = list(dict.fromkeys(means["method"]))
    if len(methods) < 2:
        raise ValueError(
            f"A paired test needs two methods; the scores have "
            f"{', '.join(map(str, methods)) or 'none'}."
        )
    # Test the pairs: rows are subjects, columns are methods.
    by_method = means.set_index(["dataset", "subject", "method"])["value"].unstack("method")
    n_train = int(numbers_of("n_train_subjects", means["n_train_subjects"]).min())
    tests = pd.DataFrame([_test(by_method, a, b, n_train) for a, b in _pairs(methods, against)])
    for name in ("p", "p_corrected"):
        tests.insert(tests.columns.get_loc(name) + 1, f"{name}_holm", holm(tests[name]))
    tests.attrs["metric"] = metric
    return tests


def _pairs(methods: Sequence[str], against: str | None) -> list[tuple[str, str]]:
    if against is None:
        return list(combinations(methods, 2))
    if against not in methods:
        raise ValueError(f"against is {against!r}; the methods are {', '.join(map(str, methods))}.")
    return [(method, against) for method in methods if method != against]


def _test(by_method: pd.DataFrame, a: str, b: str, n_train: int) -> dict[str, str | float]:
    differences = (by_method[a] - by_method[b]).to_numpy()
    known = differences[np.isfinite(differences)]
    mean = known.mean() if len(known) else np.nan
    half = half_width(known, n_train)
    return dict(
        method_a=a,
        method_b=b,
        n_subjects=len(known),
        mean_difference=mean,
        sd_difference=known.std(ddof=1) if len(known) > 1 else np.nan,
        ci_low=mean - half,
        ci_high=mean + half,
        wins=int((known > 0).sum()),
        p=_signed_rank(known),
        p_corrected=corrected_t_test(known, n_train),
        detectable=detectable_difference(known, n_train),
        n_dropped=len(differences) - len(known),
    )


def _signed_rank(differences: np.ndarray) -> float:
    if len(differences) == 0:
        return np.nan
    # Means of equal scores may differ by rounding errors, which the test would rank as differences.
    differences = differences.round(12)
    differences = differences[differences != 0]
    return 1.0 if len(differences) == 0 else float(wilcoxon(differences).pvalue)


@checked(level=number("in (0, 1)", lambda x: 0 < x < 1))
def describe_differences(tests: pd.DataFrame, level: float = 0.05) -> str:
    """Describe which differences between methods are significant, in plain sentences.

    A difference is significant when both tests say so, after Holm's correction.

    Parameters
    ----------
    tests : DataFrame
        Table from :func:`paired_tests`.
    level : float
        Significance level of the p-values after Holm's correction.

    Returns
    -------
    str
        Sentences: first the significant differences, then the pairs whose difference is not
        established, then whether the number of subjects was too small for any significant
        difference.

    Raises
    ------
    ValueError
        When ``level`` is not between 0 and 1.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import describe_differences
    >>> tests = pd.DataFrame([
    ...     dict(method_a="PARS", method_b="scratch", n_subjects=8, wins=8,
    ...          mean_difference=0.12, sd_difference=0.05, p=0.008, p_holm=0.008,
    ...          p_corrected=0.01, p_corrected_holm=0.01, detectable=0.09, n_dropped=0),
    ... ])
    >>> print(describe_differences(tests))
    PARS is better than scratch by 0.120 ± 0.050 (PARS ahead in 8 of 8 subjects, p = 0.008 of \
Wilcoxon's and 0.01 of the corrected t-test).
    """
    # Significant differences first, then the others
    in_metric = f" in {tests.attrs['metric'].replace('_', ' ')}" if "metric" in tests.attrs else ""
    # A NaN compares as not significant.
    significant = (tests["p_holm"] < level) & (tests["p_corrected_holm"] < level)
    sentences = [_difference(pair, in_metric) for _, pair in tests[significant].iterrows()]
    if not significant.all():
        pairs = [_not_significant(pair) for _, pair in tests[~significant].iterrows()]
        sentences.append(
            f"Not established{in_metric}: {'; '.join(pairs)}. The numbers are the difference, the "
            "two p-values, and the difference that would have been found with a probability of "
            "80 %. That no difference was found does not show that there is none."
        )
    # Limits of the tests
    sentences += _power(tests, level)
    if len(tests) > 1:
        sentences.append(f"p-values after Holm's correction for {len(tests)} pairs.")
    dropped = int(tests["n_dropped"].max())
    if dropped:
        sentences.append(
            f"Up to {dropped} subjects per pair have no defined score and were dropped."
        )
    return " ".join(sentences)


def _difference(pair: pd.Series, in_metric: str) -> str:
    better, worse = pair["method_a"], pair["method_b"]
    if pair["mean_difference"] < 0:
        better, worse = worse, better
    return (
        f"{better} is better than {worse}{in_metric} by {abs(pair['mean_difference']):.3f} ± "
        f"{pair['sd_difference']:.3f} ({pair['method_a']} ahead in {pair['wins']} of "
        f"{pair['n_subjects']} subjects, p = {pair['p_holm']:.2g} of Wilcoxon's and "
        f"{pair['p_corrected_holm']:.2g} of the corrected t-test)."
    )


def _not_significant(pair: pd.Series) -> str:
    if np.isnan(pair["p_corrected_holm"]):
        numbers = "no p"
    else:
        numbers = (
            f"p = {pair['p_holm']:.2g} and {pair['p_corrected_holm']:.2g}, {pair['detectable']:.3f}"
        )
    return f"{pair['method_a']} and {pair['method_b']} ({pair['mean_difference']:+.3f}, {numbers})"


def _power(tests: pd.DataFrame, level: float) -> list[str]:
    """Return a sentence when no difference could be significant with so few subjects."""
    n = int(tests["n_subjects"].max())
    if n == 0:
        return ["No subject has a defined score of both methods, so no pair could be tested."]
    # Smallest p-value of the test with n subjects, 2 / 2**n, after Holm's correction
    smallest = min(1.0, 2.0 ** (1 - n) * len(tests))
    if smallest < level:
        return []
    return [
        f"With {n} subject{'s' if n != 1 else ''} no difference could have been significant: the "
        f"smallest possible p is {2.0 ** (1 - n):.2g}"
        + (f", or {smallest:.2g} after the correction." if len(tests) > 1 else ".")
    ]


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
    >>> from braindecode_pars.evaluation.paired_tests import corrected_t_test
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


def half_width(differences: np.ndarray, n_train: int) -> float:
    r"""Return half of the interval of 95 % of the mean difference, as wide as the corrected test.

    It is :math:`t_{0.975} \, s \sqrt{1 / n + 1 / n_t}`: zero is outside of the interval where
    :func:`corrected_t_test` has a p-value below 0.05. NaN for fewer than two subjects.
    """
    n = len(differences)
    return math.nan if n < 2 else stats.t.ppf(0.975, n - 1) * _standard_error(differences, n_train)


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
    >>> from braindecode_pars.evaluation.paired_tests import detectable_difference
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
