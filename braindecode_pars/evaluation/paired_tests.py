"""Paired tests of differences between methods, over subjects and draws of labeled subjects.

A draw is a random subset of labeled subjects. The table of tests contains the minimum detectable
difference of each test, and :func:`power` computes it for other numbers of subjects and draws.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars._common import checks, names, tables
from braindecode_pars.evaluation import metrics, random_effects, splitting

#: Protocols in which seeds do not select training subjects: each fold trains on all other subjects.
CROSS_VALIDATION = ("compare", "leave_one_subject_out", "labeled_windows")
#: Protocol that trains and tests within each subject.
WITHIN = "within_subject"


def holm(p_values: Sequence[float]) -> np.ndarray:
    r"""Adjust p-values for multiple comparisons with Holm's step-down method.

    The i-th smallest of m p-values becomes :math:`\max_{j \le i} \min(1, (m - j + 1) p_{(j)})`. NaN
    values remain NaN and are not counted among the m p-values.

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
    # argsort puts NaN last, so only finite p-values are corrected.
    order = np.argsort(p)[: np.isfinite(p).sum()]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.maximum.accumulate(np.minimum(1, factors * p[order]))
    return corrected


def paired_tests(
    scores: pd.DataFrame, metric: str = "kappa", *, against: str | None = None
) -> pd.DataFrame:
    r"""Test pairwise differences between methods, with crossed random effects and Holm's method.

    Two methods are compared on the seeds that both methods have. The scores determine which test is
    used:

    - If each seed is a draw of labeled subjects (a random subset), the test is an analysis of
      variance with two crossed random factors, subjects and draws
      (:func:`~braindecode_pars.evaluation.random_effects.crossed_mean`).
    - If there is a single seed, the test is the corrected resampled t-test of the subject means
      (Nadeau and Bengio 2003), which accounts for overlapping training sets.
    - If there are several seeds, but all seeds have the same training subjects (protocols
      ``compare``, ``leave_one_subject_out`` and ``labeled_windows``), the test is also the
      corrected resampled t-test.

    The p-values are adjusted for multiple comparisons with Holm's method.

    Parameters
    ----------
    scores : DataFrame
        Scores of :func:`~braindecode_pars.evaluation.label_efficiency` or of another protocol. If
        there are scores for several numbers of training subjects, the methods are tested separately
        for each number. Subjects of several datasets are tested together. If methods were
        pretrained several times, pass the seed of each pretraining in the optional column
        ``pretraining_seed``, which is a third random factor. A method without a pretraining seed
        (NaN), such as a baseline, is compared with the scores of all pretraining seeds.
    metric : str
        Metric to test: a value of the column ``metric``.
    against : str | None
        Method that is compared with every other method, such as ``"from scratch"``. This reduces
        the number of tests. If None, all pairs are tested.

    Returns
    -------
    pandas.DataFrame
        One row for each pair of methods and each amount of labels (number of training subjects, and
        number of labeled windows or minutes of the test subject). The columns are:

        - ``method_a``, ``method_b``, ``n_train_subjects``, ``n_subjects``;
        - ``n_draws``: number of seeds that both methods have;
        - ``mean_difference``: mean score of ``method_a`` minus mean score of ``method_b``;
        - ``sd_difference``: standard deviation, over subjects, of the mean difference of each
          subject;
        - ``ci_low``, ``ci_high``: uncorrected 95 % confidence interval of the mean difference;
        - ``wins``: number of subjects with a higher mean score of ``method_a`` than of
          ``method_b``;
        - ``p``, ``p_holm``: p-value, and p-value after Holm's correction over all rows;
        - ``df``: degrees of freedom;
        - ``detectable``: minimum detectable difference, with 80 % power in a single uncorrected
          test (p < 0.05);
        - ``n_dropped``: number of excluded subjects, see Notes;
        - ``test``: "two-way" (subjects and draws); "three-way" (also pretraining seeds); "nested"
          (see Notes); "corrected" (corrected resampled t-test); "within" (each subject has a
          separately trained model); or "none" (one or two subjects are too few for a test: ``p``
          and the confidence interval are NaN);
        - ``metric``.

    Raises
    ------
    ValueError
        If the metric or the method ``against`` is missing from the scores. If there are fewer than
        two methods. If two rows differ only in ``value``. If the scores contain several control
        analyses (see :func:`~braindecode_pars.evaluation.controls`). If the scores of one method
        and one subject are from several protocols.

    Notes
    -----
    Unbalanced designs are not supported: a subject is excluded if a score of either method is
    missing or undefined for any seed. ``n_dropped`` is the number of excluded subjects.

    If each seed has different subjects, as in simulations, subjects are nested in seeds. The test
    is then a t-test over the mean differences of the seeds, and ``test`` is "nested".

    In the corrected test, the standard error of the mean difference is the standard deviation of
    the subjects' differences, times the square root of ``1 / n_subjects + 1 / n_train_subjects``.
    If the number of training subjects differs between folds, the smallest number is used.

    The two-way and three-way tests treat the draws of labeled subjects as independent. If each draw
    contains most of the available subjects, the draws overlap strongly, and the conclusions hold
    for these labeled subjects only.

    References
    ----------
    Satterthwaite 1946, Biometrics Bulletin 2(6); Holm 1979, Scandinavian Journal of Statistics
    6(2); Nadeau and Bengio 2003, Machine Learning 52.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import paired_tests
    >>> same = dict(protocol="label_efficiency", dataset="", n_train_subjects=5, metric="kappa")
    >>> noise = np.random.default_rng(0).normal(0, 0.05, (6, 4))
    >>> scores = pd.DataFrame([
    ...     dict(same, method=method, subject=subject, seed=seed, value=value)
    ...     for subject in range(6)
    ...     for seed in range(4)
    ...     for method, value in [("PARS", 0.5 + noise[subject, seed]), ("from scratch", 0.4)]
    ... ])
    >>> paired_tests(scores)[["method_a", "n_subjects", "n_draws", "wins", "test"]]
      method_a  n_subjects  n_draws  wins     test
    0     PARS           6        4     6  two-way
    """
    scores = tables.checked_scores(tables.rows_of(scores, metric), tables.SCORES)
    numbers = scores.groupby(["dataset", "method", "subject"], dropna=False)["n_train_subjects"]
    # Test each amount of labels separately. If each subject has a single number of training
    # subjects, test all rows together, because this number can differ between folds.
    varied = [name for name in tables.AMOUNTS if name in scores and scores[name].nunique() > 1]
    if numbers.nunique().max() > 1:
        varied.insert(0, "n_train_subjects")
    parts = [part for _, part in scores.groupby(varied)] if varied else [scores]
    parts = [part for part in parts if part["method"].nunique() > 1]
    parts = [part for part in parts if against in (None, *part["method"])] or [scores]
    rows = []
    for part in parts:
        selected, pairs = pairs_of(part, metric, against)
        amounts = {name: selected[name].iloc[0] for name in varied if name != "n_train_subjects"}
        rows += [_test(selected, *pair) | amounts for pair in pairs]
    tests = pd.DataFrame(rows)
    tests.insert(tests.columns.get_loc("p") + 1, "p_holm", holm(tests["p"]))
    return tests.assign(metric=metric)


def mean_interval(
    scores: pd.DataFrame, metric: str | None = None, *, by: Sequence[str] | None = None
) -> pd.DataFrame:
    """Compute the mean score of each method with its 95 % confidence interval.

    The confidence interval accounts for the same sources of variation as the test in
    :func:`paired_tests`: subjects and draws (random subsets of labeled subjects) or, if there are
    no draws, subjects with overlapping training sets. The confidence intervals of means and
    of differences are therefore comparable. They are not corrected for multiple comparisons.

    Parameters
    ----------
    scores : DataFrame
        Scores of an evaluation protocol, such as
        :func:`~braindecode_pars.evaluation.label_efficiency`. Pooled rows (subject ``"all"``,
        scored over the windows of all test subjects together) are excluded.
    metric : str | None
        Metric of the scores. If None, the only metric of the scores.
    by : sequence of str | None
        Grouping columns. A mean is computed for each combination of their values, and scores are
        averaged over all other columns. If None, the columns that
        :func:`~braindecode_pars.evaluation.summarize` returns before ``mean``.

    Returns
    -------
    pandas.DataFrame
        One row for each combination, in the order of the scores, with the grouping columns and:

        - ``mean``: mean score;
        - ``ci_low``, ``ci_high``: confidence interval; its upper limit is at most 1, the highest
          possible score; NaN for one or two subjects;
        - ``n_subjects``: number of subjects with a defined score for every seed. All other subjects
          are excluded from the mean;
        - ``n_draws``, ``test``: as in :func:`paired_tests`.

    Raises
    ------
    ValueError
        If a column or the metric is missing from the scores. If the scores have several metrics and
        ``metric`` is None. If all rows are pooled over subjects. If two rows differ only in
        ``value``.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import mean_interval
    >>> same = dict(protocol="label_efficiency", dataset="", n_train_subjects=5, metric="kappa")
    >>> noise = np.random.default_rng(0).normal(0, 0.05, (6, 4))
    >>> scores = pd.DataFrame([
    ...     dict(same, method="PARS", subject=subject, seed=seed, value=0.5 + noise[subject, seed])
    ...     for subject in range(6)
    ...     for seed in range(4)
    ... ])
    >>> mean_interval(scores)[["mean", "ci_low", "ci_high", "test"]].round(2)
       mean  ci_low  ci_high     test
    0  0.49    0.46     0.53  two-way
    """
    by = [*metrics.GROUPS, *metrics.test_subject_columns(scores)] if by is None else list(by)
    columns = ["subject", "n_train_subjects", "seed", "value", *by]
    rows = tables.checked_scores(tables.rows_of(scores, metric), columns)
    rows = rows[rows["subject"] != tables.POOLED]
    tables.check_table(rows, "scores of single subjects", columns)
    highest = 1.0 if rows["metric"].iloc[0] in names.METRICS else math.inf
    means = []
    for key, part in rows.groupby(by, sort=False, dropna=False):
        values = _crossed([*_by_pretraining(part).values()])
        test, kind = tested_mean(values, part)
        row = dict(zip(by, key, strict=True), mean=test.mean)
        row |= dict(ci_low=test.ci_low, ci_high=float(np.minimum(test.ci_high, highest)))
        means.append(row | dict(n_subjects=len(values), n_draws=values.shape[1], test=kind))
    return pd.DataFrame(means)


def pairs_of(
    scores: pd.DataFrame, metric: str, against: str | None = None
) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    """Select the scores of single subjects in one metric, and the pairs of methods to test."""
    selected = tables.checked_scores(tables.rows_of(scores, metric), tables.SCORES)
    selected = selected[selected["subject"] != tables.POOLED]
    means = metrics.means_by_subject(selected)
    methods = list(dict.fromkeys(means["method"]))
    if len(methods) < 2:
        raise ValueError(
            "A paired test requires scores of single subjects for at least 2 methods. Methods "
            f"with such scores: {', '.join(methods) or 'none'}. Add the scores of another method."
        )
    checks.optional(checks.choice(*methods)).check("against", against)
    # Each method must have a single score for each subject.
    duplicates = means[means.duplicated(["dataset", "method", "subject"], keep=False)]
    conditions = ["protocol", "n_train_subjects", *tables.TEST_SUBJECT_COLUMNS]
    tables.check_one_value(duplicates, "scores", conditions)
    if len(duplicates):  # a condition is unknown in some rows
        raise ValueError(
            "A subject has several scores of the same method, in different conditions "
            f"(columns {', '.join(conditions)}). Select the rows of one condition."
        )
    if against is None:
        return selected, list(combinations(methods, 2))
    return selected, [(method, against) for method in methods if method != against]


def differences_of(selected: pd.DataFrame, a: str, b: str) -> tuple[np.ndarray, int]:
    """Compute the differences between two methods for each subject and draw.

    A draw is a random subset of labeled subjects.

    Returns
    -------
    values : ndarray, shape (n_subjects, n_draws, n_pretrainings)
        Differences of the subjects with a defined score of both methods in each draw. If each
        subject has only one draw (subjects nested in draws), the differences in other draws are
        NaN.
    n_all : int
        Number of subjects, including excluded subjects.
    """
    cells = [_by_pretraining(selected[selected["method"] == method]) for method in (a, b)]
    subjects = selected.set_index(["dataset", "subject"]).index.unique()
    differences = []
    for key in dict.fromkeys([*cells[0], *cells[1]]):
        if all(key in scores or None in scores for scores in cells):
            scores_a, scores_b = (scores[key if key in scores else None] for scores in cells)
            differences.append((scores_a - scores_b).reindex(subjects))
    return _crossed(differences), len(subjects)


def _by_pretraining(rows: pd.DataFrame) -> dict[float | None, pd.DataFrame]:
    """Return a table of subjects by seeds for each pretraining seed; without seeds, for None."""
    seeds = rows.get(tables.PRETRAINING_SEED, pd.Series(np.nan, rows.index))
    keys = [name for name in ("dataset", "subject", "seed") if name in rows]
    subjects = rows.set_index(keys[:-1]).index.unique()
    parts = rows.groupby(seeds, dropna=False)
    means = {key: part.groupby(keys, dropna=False)["value"].mean() for key, part in parts}
    wide = {key: mean.unstack().reindex(subjects) for key, mean in means.items()}
    return {None if pd.isna(key) else key: table for key, table in wide.items()}


def _crossed(parts: list[pd.DataFrame]) -> np.ndarray:
    """Stack tables with the same subjects into an array (n_subjects, n_seeds, n_pretrainings).

    Seeds that are missing in a table, and subjects with a missing value, are excluded. If each
    subject has only one seed, the values for other seeds are NaN.
    """
    parts = [table.dropna(axis="columns", how="all") for table in parts]
    all_seeds = dict.fromkeys(seed for table in parts for seed in table)
    seeds = [seed for seed in all_seeds if all(seed in table for table in parts)]
    if not seeds:
        return np.empty((0, 0, 0))
    values = np.stack([table[seeds].to_numpy() for table in parts], axis=2)
    n_draws = np.isfinite(values).all(axis=2).sum(axis=1)
    return values[n_draws == (1 if n_draws.max() == 1 else len(seeds))]


def _are_nested(values: np.ndarray) -> bool:
    """Return whether each subject has values in only one draw, and NaN in other draws."""
    return bool(np.isnan(values).any())


def tested_mean(values: np.ndarray, scores: pd.DataFrame) -> tuple[random_effects.MeanTest, str]:
    """Test whether a mean of scores or of differences is zero, and return the kind of test used.

    Parameters
    ----------
    values : ndarray, shape (n_subjects, n_draws, n_pretrainings)
        Scores, or differences between scores, see :func:`differences_of`.
    scores : DataFrame
        Table from which the values were computed. The protocols in this table determine the kind of
        test, and the smallest number of training subjects is used for the corrected test.

    Returns
    -------
    result : MeanTest
        Result of the test. For one or two subjects, all attributes except the mean are NaN.
    kind : str
        Kind of test that was used, as in :func:`paired_tests`.
    """
    protocols = {*scores.get("protocol", ())}
    means = np.nanmean(values, axis=(1, 2)) if len(values) else np.empty(0)
    # With two subjects, the estimate of the variance is so poor that the error rate would be near
    # 10 %.
    if len(means) <= 2:
        return random_effects.MeanTest.of(float(means.mean()) if len(means) else math.nan), "none"
    if protocols == {WITHIN}:  # training sets do not overlap, so the subjects are independent
        return random_effects.crossed_mean(means), "within"
    if protocols & {*CROSS_VALIDATION} or values.shape[1] == 1:
        n_train = int(scores["n_train_subjects"].min())
        return random_effects.corrected_mean(means, n_train), "corrected"
    if _are_nested(values):
        return random_effects.crossed_mean(np.nanmean(values, axis=0)), "nested"
    kind = "three-way" if values.shape[2] > 1 else "two-way"
    return random_effects.crossed_mean(values), kind


def _test(selected: pd.DataFrame, a: str, b: str) -> dict[str, str | float]:
    """Test a pair of methods, and return the row of the table."""
    values, n_all = differences_of(selected, a, b)
    means = np.nanmean(values, axis=(1, 2)) if len(values) else np.empty(0)
    mean_test, kind = tested_mean(values, selected)
    return dict(
        method_a=a,
        method_b=b,
        n_train_subjects=int(selected["n_train_subjects"].min()),
        n_subjects=len(means),
        n_draws=values.shape[1],
        mean_difference=mean_test.mean,
        sd_difference=means.std(ddof=1) if len(means) > 1 else math.nan,
        ci_low=mean_test.ci_low,
        ci_high=mean_test.ci_high,
        wins=int((means.round(12) > 0).sum()),  # equal mean scores can differ by rounding errors
        p=mean_test.p,
        df=mean_test.df,
        detectable=mean_test.detectable(),
        n_dropped=n_all - len(means),
        test=kind,
    )


def describe_differences(tests: pd.DataFrame) -> str:
    """Describe in sentences which differences between methods are significant.

    A difference is significant if p < 0.05 after Holm's multiple-comparison correction.

    Parameters
    ----------
    tests : DataFrame
        Table from :func:`paired_tests`.

    Returns
    -------
    str
        One sentence for each pair of methods, and sentences about the tests that were used.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import describe_differences
    >>> tests = pd.DataFrame([
    ...     dict(method_a="PARS", method_b="random encoder", n_subjects=8, n_draws=20, wins=8,
    ...          mean_difference=0.12, ci_low=0.08, ci_high=0.16, p=0.0008, p_holm=0.0008,
    ...          detectable=0.06, n_dropped=0, test="two-way", n_train_subjects=4, metric="kappa"),
    ... ])
    >>> print(describe_differences(tests))
    Difference in kappa between PARS and random encoder: +0.120, significant (uncorrected 95 % CI \
+0.080 to +0.160, p = 0.0008; PARS scores higher in 8 of 8 subjects). The test treats subjects and \
draws of labeled subjects as crossed random effects.
    """
    columns = ["metric", "n_train_subjects", "p_holm", "detectable", "n_dropped", "test"]
    tables.check_table(tests, "tests", columns)
    has_several_numbers = tests["n_train_subjects"].nunique() > 1
    sentences = [_describe_difference(pair, has_several_numbers) for _, pair in tests.iterrows()]
    if (tests["p_holm"] >= 0.05).any():
        sentences.append(
            "The minimum detectable difference is the smallest difference that a single "
            "uncorrected test detects with 80 % power. A difference that is not significant does "
            "not show that the methods are equal."
        )
    sentences += [text for kind, text in _TESTS.items() if (tests["test"] == kind).any()]
    if len(tests) > 1:
        sentences.append(f"p-values are Holm-corrected for {len(tests)} tests.")
    if n_dropped := int(tests["n_dropped"].max()):
        sentences.append(
            "Subjects with a missing or undefined score in at least one draw were excluded (at "
            f"most {n_dropped} for a pair of methods)."
        )
    return " ".join(sentences)


def _describe_difference(pair: pd.Series, has_several_numbers: bool) -> str:
    """Return the sentence about the difference between two methods."""
    a, b, n = pair["method_a"], pair["method_b"], pair["n_subjects"]
    comparison = f"Difference in {pair['metric'].replace('_', ' ')} between {a} and {b}"
    if has_several_numbers:
        n_labeled = pair["n_train_subjects"]
        comparison += f" with {n_labeled} labeled subject{'' if n_labeled == 1 else 's'}"
    if math.isnan(pair["p_holm"]):
        return f"{comparison}: not tested ({n} subjects with scores of both methods)."
    outcome = "significant" if pair["p_holm"] < 0.05 else "not significant"
    if outcome != "significant" and pair["detectable"] > 0:  # False if all differences are equal
        outcome += f", minimum detectable difference {pair['detectable']:.3f}"
    return (
        f"{comparison}: {pair['mean_difference']:+.3f}, {outcome} (uncorrected 95 % CI "
        f"{pair['ci_low']:+.3f} to {pair['ci_high']:+.3f}, p = {pair['p_holm']:.2g}; {a} scores "
        f"higher in {pair['wins']} of {n} subjects)."
    )


#: Description of each kind of test.
_TESTS = {
    "two-way": "The test treats subjects and draws of labeled subjects as crossed random effects.",
    "three-way": "The test treats subjects, draws of labeled subjects and pretraining seeds as "
    "crossed random effects.",
    "nested": "The t-test is computed over the means of seeds, because each seed has different "
    "subjects.",
    "corrected": "The corrected resampled t-test over subjects accounts for overlapping training "
    "sets.",
    "within": "The t-test is computed over subjects, because each subject has a separately trained "
    "model.",
    "none": "A test requires at least 3 subjects with defined scores of both methods for the same "
    "seeds.",
}


def power(
    scores: pd.DataFrame,
    metric: str = "kappa",
    *,
    against: str | None = None,
    difference: float = 0.05,
    n_subjects: Sequence[int] | None = None,
    n_draws: Sequence[int] | None = None,
) -> pd.DataFrame:
    r"""Power analysis: compute the minimum detectable difference by number of subjects and draws.

    The minimum detectable difference is the smallest true difference that a single uncorrected test
    (p < 0.05) detects with 80 % power. Draws are random subsets of labeled subjects. The variance
    components of subjects, draws and the residual are estimated from the differences of each pair
    of methods, as in the two-way test of :func:`paired_tests`. For :math:`n_s` subjects and
    :math:`n_d` draws, the variance of the mean difference is
    :math:`\sigma_s^2 / n_s + \sigma_d^2 / n_d + \sigma_e^2 / (n_s n_d)`.

    Parameters
    ----------
    scores, metric, against
        As in :func:`paired_tests`. The scores must have several seeds.
    difference : float
        Difference to detect, in the unit of the metric, for the column ``draws_needed``.
    n_subjects, n_draws : sequence of int | None
        Planned numbers of test subjects and of draws, at least 2. If None, the numbers in the
        scores. The number of pretraining seeds is always the number in the scores.

    Returns
    -------
    pandas.DataFrame
        One row for each combination of a pair of methods, a number of subjects and a number of
        draws, with the columns:

        - ``method_a``, ``method_b``;
        - ``sd_subject``, ``sd_draw``, ``sd_pretraining`` (NaN for a single pretraining seed) and
          ``sd_rest`` (residual): square roots of the variance components, or 0 if the estimate is
          negative;
        - ``n_subjects``, ``n_draws``;
        - ``detectable``: minimum detectable difference, with 80 % power in a single uncorrected
          test (p < 0.05);
        - ``draws_needed``: number of draws that are needed to detect ``difference`` with this
          number of subjects. Infinite if 10,000 draws are not enough: more draws do not reduce the
          variance between subjects, so more subjects are needed.

        ``detectable`` and ``draws_needed`` are NaN if all differences in the scores are equal.

    Raises
    ------
    ValueError
        As in :func:`paired_tests`. Also if a pair of methods has fewer than two common seeds or
        fewer than two common subjects, or if each seed has different subjects.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import power
    >>> same = dict(protocol="label_efficiency", dataset="", n_train_subjects=5, metric="kappa")
    >>> noise = np.random.default_rng(0).normal(0, 0.1, (12, 4))
    >>> scores = pd.DataFrame([
    ...     dict(same, method=method, subject=subject, seed=seed, value=value)
    ...     for subject in range(12)
    ...     for seed in range(4)
    ...     for method, value in [("PARS", 0.5 + noise[subject, seed]), ("from scratch", 0.4)]
    ... ])
    >>> power(scores, n_draws=[4, 16])[["n_subjects", "n_draws", "detectable"]].round(2)
       n_subjects  n_draws  detectable
    0          12        4        0.08
    1          12       16        0.05
    """
    checks.check_positive(difference=difference)
    for name, numbers in (("n_subjects", n_subjects), ("n_draws", n_draws)):
        if numbers is not None:
            splitting.check_list(name, numbers, checks.integer(2))
    selected, pairs = pairs_of(scores, metric, against)
    rows = []
    for pair in pairs:
        values, _ = differences_of(selected, *pair)
        n_scored, n_seeds = values.shape[:2]
        if _are_nested(values) or min(n_scored, n_seeds) < 2:
            raise ValueError(
                "power() requires at least 2 subjects with scores of both methods for the same "
                f"seeds (at least 2). For {pair[0]!r} and {pair[1]!r}, {n_scored} subject(s) and "
                f"{n_seeds} seed(s) have scores. Evaluate both methods on more subjects, or "
                "evaluate all subjects with more seeds."
            )
        values = values if values.shape[2] > 1 else values[:, :, 0]
        components = random_effects.variance_components(random_effects.mean_squares(values))
        residual = sum(variance for factors, variance in components.items() if len(factors) > 1)
        pair_columns: dict[str, Any] = dict(
            method_a=pair[0],
            method_b=pair[1],
            sd_subject=math.sqrt(components[(0,)]),
            sd_draw=math.sqrt(components[(1,)]),
            sd_pretraining=math.sqrt(components.get((2,), math.nan)),
            sd_rest=math.sqrt(residual),
        )
        for n, draws in product(n_subjects or [n_scored], n_draws or [n_seeds]):
            shape = (n, draws, *values.shape[2:])
            row = pair_columns | dict(n_subjects=n, n_draws=draws)
            row["detectable"] = random_effects.detectable_in(components, shape)
            row["draws_needed"] = _draws_needed(components, shape, difference)
            rows.append(row)
    return pd.DataFrame(rows)


def _draws_needed(
    components: Mapping[tuple[int, ...], float], shape: tuple[int, ...], difference: float
) -> float:
    """Return the smallest number of draws that makes a difference detectable, or infinity."""
    if math.isnan(random_effects.detectable_in(components, shape)):
        return math.nan  # no variance can be estimated from equal scores
    candidates = range(2, 10_001)
    # The minimum detectable difference decreases with the number of draws.
    index = bisect_left(
        candidates,
        -difference,
        key=lambda n: -random_effects.detectable_in(components, (shape[0], n, *shape[2:])),
    )
    return candidates[index] if index < len(candidates) else math.inf
