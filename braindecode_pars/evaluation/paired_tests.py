"""Which differences between methods are more than noise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from braindecode_pars.evaluation.summary import by_subject

__all__ = ["describe_differences", "paired_tests"]


def holm(p_values: Sequence[float]) -> np.ndarray:
    r"""Holm's step-down correction of p-values that are tested together.

    The i-th smallest of m becomes :math:`\max_{j \le i} \min(1, (m - j + 1) p_{(j)})`. NaN stays
    NaN and does not count.

    References
    ----------
    Holm 1979, Scandinavian Journal of Statistics 6(2).

    Examples
    --------
    >>> from braindecode_pars.evaluation.paired_tests import holm
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p_values = np.asarray(p_values, dtype=float)
    corrected = np.full(len(p_values), np.nan)
    order = np.argsort(p_values)[: np.isfinite(p_values).sum()]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.maximum.accumulate(np.minimum(1, factors * p_values[order]))
    return corrected


def paired_tests(scores: pd.DataFrame, metric: str = "kappa") -> pd.DataFrame:
    """Wilcoxon's signed-rank test over subjects for every pair of methods, after Holm.

    The seeds of a subject are averaged first, since they are no further people. Subjects whose
    score is not defined for one of the two methods are dropped and counted. p-values are exact
    but where more than 13 subjects have ties or no difference, see ``scipy.stats.wilcoxon``.

    Parameters
    ----------
    scores : DataFrame
        Of :func:`~braindecode_pars.evaluation.compare`, or of another protocol. People of
        several datasets are taken together.
    metric : str
        One of those in the scores.

    Returns
    -------
    pandas.DataFrame
        A row for each pair: ``method_a``, ``method_b``, ``n_subjects``, ``mean_difference`` (a
        minus b), ``sd_difference``, ``wins`` (subjects where a is better), ``p`` (1 where there
        is no difference at all, NaN without subjects), ``p_holm``, ``n_dropped``. The metric is
        in ``attrs["metric"]``.

    Raises
    ------
    ValueError
        When the metric is absent, there are not two methods, or a subject was scored with
        several numbers of training subjects.

    Notes
    -----
    Folds that leave one subject out share most of their training subjects, so that a p-value is an
    indication and not an error rate.

    References
    ----------
    Wilcoxon 1945, Biometrics Bulletin 1(6); Holm 1979, Scandinavian Journal of Statistics 6(2).

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import paired_tests
    >>> same = dict(protocol="compare", dataset="", n_train_subjects=5, seed=0)
    >>> scores = pd.DataFrame([
    ...     dict(same, method=method, subject=subject, metric="kappa",
    ...          value=0.1 * subject + lead)
    ...     for method, lead in [("PARS", 0.05), ("scratch", 0.0)]
    ...     for subject in range(6)
    ... ])
    >>> paired_tests(scores)[["method_a", "method_b", "n_subjects", "wins", "p"]]
      method_a method_b  n_subjects  wins        p
    0     PARS  scratch           6     6  0.03125
    """
    chosen = scores[scores["metric"] == metric]
    if len(chosen) == 0:
        raise ValueError(
            f"These scores have no metric {metric!r}; they have "
            f"{', '.join(dict.fromkeys(scores['metric']))}."
        )
    means = by_subject(chosen)
    if means.duplicated(["dataset", "method", "subject"]).any():
        numbers = ", ".join(map(str, sorted(set(means["n_train_subjects"]))))
        raise ValueError(
            "A subject has several scores of one method, by protocol or number of training "
            f"subjects ({numbers}); choose one of them first."
        )
    methods = list(dict.fromkeys(means["method"]))
    if len(methods) < 2:
        raise ValueError(f"A pair needs two methods; there is {', '.join(methods) or 'none'}.")
    people = means.set_index(["dataset", "subject", "method"])["value"].unstack("method")
    tests = pd.DataFrame([_test(people, a, b) for a, b in combinations(methods, 2)])
    tests.insert(tests.columns.get_loc("p") + 1, "p_holm", holm(tests["p"]))
    tests.attrs["metric"] = metric
    return tests


def _test(people: pd.DataFrame, a: str, b: str) -> dict[str, str | float]:
    differences = (people[a] - people[b]).to_numpy()
    known = differences[np.isfinite(differences)]
    return dict(
        method_a=a,
        method_b=b,
        n_subjects=len(known),
        mean_difference=known.mean() if len(known) else np.nan,
        sd_difference=known.std(ddof=1) if len(known) > 1 else np.nan,
        wins=int((known > 0).sum()),
        p=_signed_rank(known),
        n_dropped=len(differences) - len(known),
    )


def _signed_rank(differences: np.ndarray) -> float:
    if len(differences) == 0:
        return np.nan
    # The mean of equal scores may differ in the last digit, and ranks would make much of it.
    differences = differences.round(12)
    differences = differences[differences != 0]
    return 1.0 if len(differences) == 0 else float(wilcoxon(differences).pvalue)


def describe_differences(tests: pd.DataFrame, level: float = 0.05) -> str:
    """What may be said of the pairs in plain sentences, and which are within noise.

    Parameters
    ----------
    tests : DataFrame
        Of :func:`paired_tests`.
    level : float
        Below it, a p-value after Holm's correction counts as a difference.

    Returns
    -------
    str
        Sentences: the differences first, then what is within noise, then whether there were
        subjects enough for any difference at all.

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
    ...          n_dropped=0),
    ... ])
    >>> print(describe_differences(tests))
    PARS is better than scratch by 0.120 ± 0.050 (PARS ahead in 8 of 8 subjects, p = 0.008).
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}.")
    of = f" in {tests.attrs['metric'].replace('_', ' ')}" if "metric" in tests.attrs else ""
    found = tests[tests["p_holm"] < level]
    noise = tests[~(tests["p_holm"] < level)]
    sentences = [_difference(pair, of) for _, pair in found.iterrows()]
    if len(noise):
        pairs = [_noise(pair) for _, pair in noise.iterrows()]
        sentences.append(f"Within noise{of}: {'; '.join(pairs)}.")
    sentences += _power(tests, level)
    if len(tests) > 1:
        sentences.append(f"p after Holm's correction for {len(tests)} pairs.")
    dropped = int(tests["n_dropped"].max())
    if dropped:
        sentences.append(f"Up to {dropped} subjects a pair have no defined score and do not count.")
    return " ".join(sentences)


def _difference(pair: pd.Series, of: str) -> str:
    better, worse = pair["method_a"], pair["method_b"]
    if pair["mean_difference"] < 0:
        better, worse = worse, better
    return (
        f"{better} is better than {worse}{of} by {abs(pair['mean_difference']):.3f} ± "
        f"{pair['sd_difference']:.3f} ({pair['method_a']} ahead in {pair['wins']} of "
        f"{pair['n_subjects']} subjects, p = {pair['p_holm']:.2g})."
    )


def _noise(pair: pd.Series) -> str:
    p = "no p" if np.isnan(pair["p_holm"]) else f"p = {pair['p_holm']:.2g}"
    return f"{pair['method_a']} and {pair['method_b']} ({pair['mean_difference']:+.3f}, {p})"


def _power(tests: pd.DataFrame, level: float) -> list[str]:
    """Whether there were subjects enough for any difference at all."""
    n = int(tests["n_subjects"].max())
    if n == 0:
        return ["No subject has a defined score of both methods, so nothing could be tested."]
    smallest = min(1.0, 2.0 ** (1 - n) * len(tests))
    if smallest < level:
        return []
    return [
        f"With {n} subject{'s' if n != 1 else ''} no difference could have been significant: the "
        f"smallest p that is possible is {2.0 ** (1 - n):.2g}"
        + (f", or {smallest:.2g} after the correction." if len(tests) > 1 else ".")
    ]
