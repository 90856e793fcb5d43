"""Paired tests of the differences between methods, over subjects and draws of labeled people.

Each says what it could have found, and :func:`power` what another design would find.
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

#: Protocols whose seeds draw no training subjects: each fold trains on all others.
CROSS_VALIDATION = ("compare", "leave_one_subject_out", "labeled_windows")
#: Protocol that trains and tests each subject alone.
WITHIN = "within_subject"


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


def paired_tests(
    scores: pd.DataFrame, metric: str = "kappa", *, against: str | None = None, test: str = "auto"
) -> pd.DataFrame:
    r"""Test the difference of every pair of methods, with subjects and draws both random.

    Two methods are compared on the seeds that both have. Where a seed is a draw of labeled people,
    the differences of all subjects in all draws are tested by
    :func:`~braindecode_pars.evaluation.random_effects.crossed_mean`: an analysis of variance with
    two random factors. Where there is one seed, and in a cross-validation, whose seeds do not
    change who is trained on, the test is the corrected resampled t-test of the subjects' means
    (Nadeau and Bengio 2003), which allows for training subjects in common. The p-values are
    corrected with Holm's method.

    Parameters
    ----------
    scores : DataFrame
        Scores of :func:`~braindecode_pars.evaluation.label_efficiency` or of another protocol.
        Where subjects have scores for several numbers of training subjects, each number has a test
        of the methods that have it. Subjects of several datasets are tested together. An optional
        column ``pretraining_seed`` is a third factor, for methods that were pretrained several
        times. A method without it (NaN), such as a baseline, has the same score for all
        pretrainings.
    metric : str
        Metric to test; one of the column ``metric``.
    against : str | None
        Method that every other one is tested against, such as ``"from scratch"``. Fewer tests are
        corrected for. None tests all pairs.
    test : "auto" | "two-way" | "corrected"
        ``"two-way"`` needs several seeds. ``"corrected"`` averages over seeds first. ``"auto"`` is
        the corrected test for one seed and for the protocols ``compare`` and
        ``leave_one_subject_out``, and the two-way test otherwise.

    Returns
    -------
    pandas.DataFrame
        One row for each pair and each number of training subjects, and of labeled windows or
        minutes of the test subject where there are several: ``method_a``, ``method_b``,
        ``n_train_subjects``, ``n_subjects``, ``n_draws`` (seeds that both have),
        ``mean_difference`` (a minus b), ``sd_difference`` (over the subjects' means), ``ci_low``
        and ``ci_high`` (interval of 95 % of the mean difference), ``wins`` (number of subjects with
        a higher mean of a), ``p``, ``p_holm`` (corrected for all rows), ``df`` (degrees of
        freedom), ``detectable`` (the mean difference that this test would find with a probability
        of 80 %, at the level of 5 % without Holm's correction), ``n_dropped`` and ``test``:
        "two-way", "three-way" with pretrainings, "nested" (see Notes), "corrected", "within" for
        subjects with a training of their own, or "none" for two subjects or fewer, where ``p`` and
        what belongs to it are NaN: too few to say. The last column is ``metric``.

    Raises
    ------
    ValueError
        When the scores lack the metric or the method ``against``, there are fewer than two methods,
        rows differ in their value alone, the scores are of several controls, a subject has scores
        of one method from several protocols, or ``test="two-way"`` and a pair has fewer than two
        seeds in common.

    Notes
    -----
    Unbalanced designs are not supported: a subject without a defined score of both methods in each
    of their seeds is dropped, and counted in ``n_dropped``.

    Where each seed has subjects of its own, such as in simulations, subjects are nested in seeds.
    The mean of each seed is then one value of a t-test, and ``test`` is "nested".

    In the corrected test the mean difference is divided by its standard deviation times the root of
    ``1 / n_subjects + 1 / n_train_subjects``. Where numbers of training subjects differ, the
    smallest one counts.

    Draws of labeled people are taken as random draws. Where most of the people at hand are in each
    draw, the draws are alike, and the test holds for these people only.

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
    checks.check_parameters(
        locals(), dict(test=checks.choice("auto", "two-way", "corrected")), "paired_tests"
    )
    scores = tables.checked_scores(tables.rows_of(scores, metric), tables.SCORES)
    numbers = scores.groupby(["dataset", "method", "subject"], dropna=False)["n_train_subjects"]
    # A test for each amount of labels. Else all belong together: folds may differ in size.
    varied = [name for name in tables.AMOUNTS if name in scores and scores[name].nunique() > 1]
    if numbers.nunique().max() > 1:
        varied.insert(0, "n_train_subjects")
    parts = [part for _, part in scores.groupby(varied)] if varied else [scores]
    parts = [part for part in parts if part["method"].nunique() > 1]
    parts = [part for part in parts if against in (None, *part["method"])] or [scores]
    rows = []
    for part in parts:
        chosen, pairs = pairs_of(part, metric, against)
        n_train, kind = int(chosen["n_train_subjects"].min()), _kind_of(chosen, test)
        amounts = {name: chosen[name].iloc[0] for name in varied if name != "n_train_subjects"}
        rows += [_test(chosen, pair, n_train, kind) | amounts for pair in pairs]
    tests = pd.DataFrame(rows)
    tests.insert(tests.columns.get_loc("p") + 1, "p_holm", holm(tests["p"]))
    return tests.assign(metric=metric)


def mean_interval(
    scores: pd.DataFrame, metric: str | None = None, *, by: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return the mean score of each method with its 95 % confidence interval.

    The interval allows for the same random factors as the test of :func:`paired_tests`, so that
    means and differences of one study have intervals of one kind: subjects and draws of labeled
    subjects, or in a cross-validation subjects with training subjects in common.

    Parameters
    ----------
    scores : DataFrame
        Scores of a protocol. Rows over all test windows together are left out.
    metric : str | None
        Metric of the scores. None means the only one of them.
    by : sequence of str | None
        Columns with one mean for each combination of values. Scores are averaged over all other
        columns. None means those of :func:`~braindecode_pars.evaluation.summarize`.

    Returns
    -------
    pandas.DataFrame
        One row for each combination, in the order of the scores: the columns ``by``, ``mean``,
        ``ci_low`` and ``ci_high`` (cut at 1, the highest score; NaN for two subjects or fewer),
        ``n_subjects`` (those with a defined score in each seed, over which the mean is taken),
        ``n_draws``, and ``test`` as in :func:`paired_tests`.

    Raises
    ------
    ValueError
        When the scores lack a column or the metric, have several metrics and none is named, have
        pooled rows only, or have rows that differ in their value alone.

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
        values, nested = _crossed([*_by_pretraining(part).values()])
        n_train, kind = int(part["n_train_subjects"].min()), _kind_of(part, "auto")
        test, kind = _tested_mean(values, nested, n_train, kind)
        row = dict(zip(by, key, strict=True), mean=test.mean)
        row |= dict(ci_low=test.ci_low, ci_high=float(np.minimum(test.ci_high, highest)))
        means.append(row | dict(n_subjects=len(values), n_draws=values.shape[1], test=kind))
    return pd.DataFrame(means)


def pairs_of(
    scores: pd.DataFrame, metric: str, against: str | None = None
) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    """Return the scores of the subjects in a metric, and the pairs of methods to test."""
    chosen = tables.checked_scores(tables.rows_of(scores, metric), tables.SCORES)
    chosen = chosen[chosen["subject"] != tables.POOLED]
    means = metrics.means_by_subject(chosen)
    methods = list(dict.fromkeys(means["method"]))
    method_names = ", ".join(map(str, methods)) or "none"
    if len(methods) < 2:
        raise ValueError(f"A paired test needs two methods; the scores have {method_names}.")
    if against is not None and against not in methods:
        raise ValueError(f"against is {against!r}; the methods are {method_names}.")
    if means.duplicated(["dataset", "method", "subject"]).any():
        numbers = ", ".join(f"{n:g}" for n in sorted(set(means["n_train_subjects"])))
        raise ValueError(
            "A subject has several scores of one method, from several protocols or numbers of "
            f"training subjects ({numbers}); select one of them first."
        )
    if against is None:
        return chosen, list(combinations(methods, 2))
    return chosen, [(method, against) for method in methods if method != against]


def differences_of(chosen: pd.DataFrame, a: str, b: str) -> tuple[np.ndarray, bool, int]:
    """Return the differences of two methods.

    Returns
    -------
    values : ndarray, shape (n_subjects, n_draws, n_pretrainings)
        Differences of the subjects with a defined score of both methods in each draw.
    nested : bool
        Whether subjects are nested in draws: each has one draw, and the others are NaN.
    n_all : int
        Number of all subjects.
    """
    cells = [_by_pretraining(chosen[chosen["method"] == method]) for method in (a, b)]
    subjects = chosen.set_index(["dataset", "subject"]).index.unique()
    differences = []
    for key in dict.fromkeys([*cells[0], *cells[1]]):
        if all(key in scores or None in scores for scores in cells):
            of_a, of_b = (scores[key if key in scores else None] for scores in cells)
            differences.append((of_a - of_b).reindex(subjects))
    values, nested = _crossed(differences)
    return values, nested, len(subjects)


def _by_pretraining(rows: pd.DataFrame) -> dict[float | None, pd.DataFrame]:
    """Return scores as tables of subjects by seeds, by pretraining; the key is None without one."""
    seeds = rows.get(tables.PRETRAINING_SEED, pd.Series(np.nan, rows.index))
    keys = [name for name in ("dataset", "subject", "seed") if name in rows]
    subjects = rows.set_index(keys[:-1]).index.unique()
    parts = rows.groupby(seeds, dropna=False)
    means = {key: part.groupby(keys, dropna=False)["value"].mean() for key, part in parts}
    wide = {key: mean.unstack().reindex(subjects) for key, mean in means.items()}
    return {None if pd.isna(key) else key: table for key, table in wide.items()}


def _crossed(parts: list[pd.DataFrame]) -> tuple[np.ndarray, bool]:
    """Return tables with the same subjects as an array, and whether subjects are nested in seeds.

    The array has the shape (n_subjects, n_seeds, n_pretrainings), without what is incomplete.
    """
    parts = [table.dropna(axis="columns", how="all") for table in parts]
    every = dict.fromkeys(seed for table in parts for seed in table)
    seeds = [seed for seed in every if all(seed in table for table in parts)]
    if not seeds:
        return np.empty((0, 0, 0)), False
    values = np.stack([table[seeds].to_numpy() for table in parts], axis=2)
    complete = np.isfinite(values).all(axis=2)  # subjects by draws
    n_draws = complete.sum(axis=1)
    nested = len(seeds) > 1 and n_draws.max() == 1
    return values[n_draws == (1 if nested else len(seeds))], nested


def _kind_of(rows: pd.DataFrame, test: str) -> str:
    """Return the test of the protocols of scores; the argument is that of ``paired_tests``."""
    protocols = {*rows.get("protocol", ())}
    if protocols == {WITHIN}:  # no training subject in common
        return "within"
    return "corrected" if test == "auto" and protocols & {*CROSS_VALIDATION} else test


def _tested_mean(
    values: np.ndarray, nested: bool, n_train: int, test: str
) -> tuple[random_effects.MeanTest, str]:
    """Test the mean of crossed values; return the kind of the test, too."""
    means = np.nanmean(values, axis=(1, 2)) if len(values) else np.empty(0)
    if len(means) <= 2:  # two hardly tell the variance: the level of the test would be near 10 %
        return random_effects.MeanTest.of(float(means.mean()) if len(means) else math.nan), "none"
    if test == "within":  # the subjects are independent
        return random_effects.crossed_mean(means), test
    if test == "corrected" or values.shape[1] == 1:
        return random_effects.corrected_mean(means, n_train), "corrected"
    if nested:
        return random_effects.crossed_mean(np.nanmean(values, axis=0)), "nested"
    kind = "three-way" if values.shape[2] > 1 else "two-way"
    return random_effects.crossed_mean(values), kind


def _test(
    chosen: pd.DataFrame, pair: tuple[str, str], n_train: int, test: str
) -> dict[str, str | float]:
    """Return the row of a pair of methods."""
    values, nested, n_all = differences_of(chosen, *pair)
    n_draws = values.shape[1]
    if test == "two-way" and n_draws < 2:
        raise ValueError(
            f"The two-way test needs defined scores of several seeds; {pair[0]} and {pair[1]} have "
            f'{n_draws} in common. Score both with more seeds, or use test="corrected", which '
            "tests over subjects."
        )
    means = np.nanmean(values, axis=(1, 2)) if len(values) else np.empty(0)
    mean_test, kind = _tested_mean(values, nested, n_train, test)
    return dict(
        method_a=pair[0],
        method_b=pair[1],
        n_train_subjects=n_train,
        n_subjects=len(means),
        n_draws=n_draws,
        mean_difference=mean_test.mean,
        sd_difference=means.std(ddof=1) if len(means) > 1 else math.nan,
        ci_low=mean_test.ci_low,
        ci_high=mean_test.ci_high,
        wins=int((means.round(12) > 0).sum()),  # means of equal scores differ by rounding errors
        p=mean_test.p,
        df=mean_test.df,
        detectable=mean_test.detectable(),
        n_dropped=n_all - len(means),
        test=kind,
    )


def describe_differences(tests: pd.DataFrame) -> str:
    """Describe which differences between methods are significant, in plain sentences.

    The level is 5 %, of the p-values after Holm's correction.

    Parameters
    ----------
    tests : DataFrame
        Table from :func:`paired_tests`.

    Returns
    -------
    str
        Sentences: first the significant differences, then the pairs whose difference is not
        established, then which tests were used.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import describe_differences
    >>> tests = pd.DataFrame([
    ...     dict(method_a="PARS", method_b="random encoder", n_subjects=8, n_draws=20, wins=8,
    ...          mean_difference=0.12, ci_low=0.08, ci_high=0.16, p=0.0008, p_holm=0.0008,
    ...          detectable=0.06, n_dropped=0, test="two-way"),
    ... ])
    >>> print(describe_differences(tests))
    PARS is better than random encoder by 0.120 (95 % interval 0.080 to 0.160, p = 0.0008; PARS \
ahead in 8 of 8 subjects). The test takes subjects and draws of labeled people as random.
    """
    # Significant differences first, then the others
    in_metric = f" in {tests['metric'].iloc[0].replace('_', ' ')}" if "metric" in tests else ""
    numbers = tests.get("n_train_subjects", pd.Series(dtype=int))
    several = numbers.nunique() > 1
    sentences, others = [], []
    for _, pair in tests.iterrows():
        at = f" with {pair['n_train_subjects']} labeled people" if several else ""
        p = f"p = {pair['p_holm']:.2g}"
        if pair["p_holm"] < 0.05:  # False for NaN
            sign = -1 if pair["mean_difference"] < 0 else 1
            better, worse = [pair["method_a"], pair["method_b"]][::sign]
            low, high = sorted([sign * pair["ci_low"], sign * pair["ci_high"]])
            sentences.append(
                f"{better} is better than {worse}{in_metric}{at} by "
                f"{abs(pair['mean_difference']):.3f} (95 % interval {low:.3f} to {high:.3f}, {p}; "
                f"{pair['method_a']} ahead in {pair['wins']} of {pair['n_subjects']} subjects)."
            )
            continue
        n = pair["n_subjects"]
        outcome = f"not tested: {n} subject{'s' * (n != 1)}, too few to say"
        if not math.isnan(pair["p_holm"]):
            low, high = f"{pair['ci_low']:+.3f}", f"{pair['ci_high']:+.3f}"
            outcome = f"{pair['mean_difference']:+.3f}, 95 % interval {low} to {high}, {p}"
            if not math.isnan(pair["detectable"]):  # undefined where all differ by the same
                outcome += f", detectable {pair['detectable']:.3f}"
        others.append(f"{pair['method_a']} and {pair['method_b']}{at} ({outcome})")
    if others:
        sentences.append(
            f"Not established{in_metric}: {'; '.join(others)}. Detectable is the difference that "
            "would have been found with a probability of 80 %. That no difference was found does "
            "not show that there is none."
        )
    # What was tested
    sentences += [text for kind, text in _TESTS.items() if (tests["test"] == kind).any()]
    if len(tests) > 1:
        sentences.append(
            f"p-values after Holm's correction for {len(tests)} {'tests' if several else 'pairs'}."
        )
    if dropped := int(tests["n_dropped"].max()):
        sentences.append(
            f"Up to {dropped} subjects per pair lack a defined score in some draw and were dropped."
        )
    return " ".join(sentences)


#: What each test takes into account.
_TESTS = {
    "two-way": "The test takes subjects and draws of labeled people as random.",
    "three-way": "The test takes subjects, draws of labeled people and pretrainings as random.",
    "nested": "The test is over the means of seeds, each of which has subjects of its own.",
    "corrected": "The t-test over subjects allows for training subjects in common.",
    "within": "The t-test is over subjects, each with a training of its own.",
    "none": "A test needs three subjects with defined scores of both methods in the same seeds.",
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
    r"""Compute which differences other numbers of subjects and draws would find.

    The variances of subjects, draws and the rest are estimated from the differences of each pair of
    methods, as in the two-way test of :func:`paired_tests`. For other numbers the variance of the
    mean difference is :math:`\sigma_s^2 / n_s + \sigma_d^2 / n_d + \sigma_e^2 / (n_s n_d)`.

    Parameters
    ----------
    scores, metric, against
        As in :func:`paired_tests`, with several seeds.
    difference : float
        Wanted difference, in the unit of the metric.
    n_subjects, n_draws : sequence of int | None
        Numbers of scored subjects and of draws, at least 2; None means those of the scores. The
        table has a row for each combination. The number of pretrainings stays.

    Returns
    -------
    pandas.DataFrame
        One row for each pair, number of subjects and number of draws: ``method_a``, ``method_b``,
        ``sd_subject``, ``sd_draw``, ``sd_pretraining`` (NaN without several) and ``sd_rest`` (the
        square roots of the variances; 0 where the estimate is negative), ``n_subjects``,
        ``n_draws``, ``detectable`` (the difference that the test finds with a probability of 80 %,
        at the level of 5 % for one test) and ``draws_needed``, the number of draws that makes
        ``difference`` detectable with this number of subjects. It is infinite where 10,000 are not
        enough: draws do not make the differences between subjects smaller, so more subjects are
        needed. Both are NaN where all differences are equal.

    Raises
    ------
    ValueError
        In the cases of :func:`paired_tests`, and when a pair of methods has fewer than two seeds or
        two subjects in common, or when each seed has subjects of its own.

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
    chosen, pairs = pairs_of(scores, metric, against)
    rows = []
    for pair in pairs:
        values, nested, _ = differences_of(chosen, *pair)
        n_scored, n_seeds = values.shape[:2]
        if nested or min(n_scored, n_seeds) < 2:
            clause = ", and each seed has subjects of its own" if nested else ""
            raise ValueError(
                f"{pair[0]} and {pair[1]} have {n_scored} subjects with defined scores in each of "
                f"{n_seeds} seeds{clause}. The variances of subjects and draws need the same two "
                "subjects in two seeds or more."
            )
        values = values if values.shape[2] > 1 else values[:, :, 0]
        components = random_effects.variance_components(random_effects.mean_squares(values))
        rest = sum(variance for factors, variance in components.items() if len(factors) > 1)
        same: dict[str, Any] = dict(
            method_a=pair[0],
            method_b=pair[1],
            sd_subject=math.sqrt(components[(0,)]),
            sd_draw=math.sqrt(components[(1,)]),
            sd_pretraining=math.sqrt(components.get((2,), math.nan)),
            sd_rest=math.sqrt(rest),
        )
        for n, draws in product(n_subjects or [n_scored], n_draws or [n_seeds]):
            shape = (n, draws, *values.shape[2:])
            row = same | dict(n_subjects=n, n_draws=draws)
            row["detectable"] = random_effects.detectable_in(components, shape)
            row["draws_needed"] = _draws_needed(components, shape, difference)
            rows.append(row)
    return pd.DataFrame(rows)


def _draws_needed(
    components: Mapping[tuple[int, ...], float], shape: tuple[int, ...], difference: float
) -> float:
    """Return the smallest number of draws that makes a difference detectable, or infinity."""
    if math.isnan(random_effects.detectable_in(components, shape)):
        return math.nan  # equal scores tell nothing of the spread of others
    candidates = range(2, 10_001)
    # The detectable difference falls with the number of draws.
    enough = bisect_left(
        candidates,
        -difference,
        key=lambda n: -random_effects.detectable_in(components, (shape[0], n, *shape[2:])),
    )
    return candidates[enough] if enough < len(candidates) else math.inf
