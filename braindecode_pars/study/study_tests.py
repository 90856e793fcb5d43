"""Statistics of a study: comparisons and mean scores of methods, and the recommended method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
from scipy import special, stats

from braindecode_pars.evaluation.paired_tests import holm
from braindecode_pars.evaluation.random_effects import MeanTest, crossed_mean_of_folds

#: Significance level of all tests.
ALPHA = 0.05
#: Smallest relevant improvement, in balanced accuracy.
RELEVANT_DIFFERENCE = 0.02
#: Number of random splits of the subjects, to estimate the score of the recommended method.
N_SPLITS = 200
#: Kinds of methods, from simple to complex. Of equivalent methods, the simplest is recommended.
SIMPLEST_FIRST = ("baseline", "ensemble", "bundled", "pretrained", "network")


class Outcome(StrEnum):
    """Outcome of a comparison between a method and a reference.

    - ``GAIN``: The method scores significantly higher than the reference.
    - ``WORSE``: The method scores significantly lower than the reference.
    - ``NO_GAIN``: The difference is not significant, and an improvement of 0.02 or more is ruled
      out.
    - ``UNCLEAR``: The difference is not significant, but an improvement of 0.02 or more is not
      ruled out.
    """

    GAIN = "gain"
    NO_GAIN = "no gain worth having"
    UNCLEAR = "unclear"
    WORSE = "worse"


@dataclass(frozen=True)
class Comparison:
    """Paired comparison of two methods on the same subjects, draws and pretraining seeds.

    A draw is a random subset of labeled subjects with which both methods are trained.

    Attributes
    ----------
    method, reference : str
        Names of the two methods.
    score, reference_score : float
        Mean scores of ``method`` and ``reference``. If a method was scored with and without
        subject-wise centering, both scores are averaged.
    difference, ci_low, ci_high : float
        Mean score of ``method`` minus mean score of ``reference``, and the uncorrected 95 %
        confidence interval of this difference.
    p : float
        Uncorrected p-value of a two-sided t-test of the difference, with subjects, draws and
        pretraining seeds as crossed random effects. NaN if the difference was not tested.
    upper : float
        Upper limit of the one-sided 95 % confidence interval of the difference. Improvements above
        this limit are ruled out.
    detectable : float
        Minimum detectable difference: the true difference that the t-test of ``p`` detects with
        80 % power.
    n_subjects : int
        Number of test subjects.
    n_better : int
        Number of test subjects whose mean score is higher with ``method`` than with ``reference``.
    subjects_needed : float
        Number of subjects required to detect a difference of 0.02 with 80 % power. Infinity if more
        subjects alone do not suffice.
    """

    method: str
    reference: str
    score: float
    reference_score: float
    difference: float
    ci_low: float
    ci_high: float
    p: float
    upper: float
    detectable: float
    n_subjects: int
    n_better: int
    subjects_needed: float

    @property
    def outcome(self) -> Outcome:
        """Outcome of the test: significantly better or worse, improvement ruled out, or unclear."""
        if self.p < ALPHA:
            return Outcome.GAIN if self.difference > 0 else Outcome.WORSE
        return Outcome.NO_GAIN if self.upper < RELEVANT_DIFFERENCE else Outcome.UNCLEAR


@dataclass(frozen=True)
class Recommendation:
    """Method that a study recommends for new subjects, and its expected score.

    Attributes
    ----------
    method : str
        Name of the method.
    is_centered : bool
        Whether the method uses subject-centered features. These are transductive: the mean over
        unlabeled windows of the test subject is subtracted.
    score : float
        Expected score on a new subject. For this estimate, the method is chosen and scored on
        different subjects, so that the choice does not bias the score.
    low, high : float
        95 % prediction interval of the score of one new subject, clipped to the range 0 to 1.
    equivalent : tuple of str
        Names of the other methods whose mean score is at most 0.02 below the highest mean score,
        and not significantly lower.
    folder : str | None
        Folder of the saved classifier, which was trained with the labels of all subjects. None if
        the classifier was not saved.
    """

    method: str
    is_centered: bool
    score: float
    low: float
    high: float
    equivalent: tuple[str, ...] = ()
    folder: str | None = None


class Scores:
    """Scores of a study, with methods that test mean scores and differences.

    Parameters
    ----------
    table : DataFrame
        Table of scores in the format of ``Study.scores``.
    """

    def __init__(self, table: pd.DataFrame):
        self.table = table
        self.class_of = table.groupby("subject")["stratum"].first()
        #: Number of disjoint draws from one shuffle of the training subjects
        self.n_sets = int(table.groupby("shuffle")["draw"].nunique().max())

    def values(
        self, method: str, is_centered: bool | None = None, column: str = "value"
    ) -> pd.Series:
        """Return the scores of a method by fold, subject, draw and pretraining seed.

        Parameters
        ----------
        method : str
            Name of the method.
        is_centered : bool | None
            Whether to use the scores with subject-wise centering. If None, the scores with and
            without subject-wise centering are averaged.
        column : str
            Column to return: "value" (score) or "chance" (chance level).

        Returns
        -------
        Series
            Scores. The index has the levels ``fold``, ``subject``, ``draw`` and, if the method has
            several pretraining seeds, ``pretraining``. If a Series without the level
            ``pretraining`` is subtracted from a Series with this level, pandas repeats its scores
            for every pretraining seed.
        """
        rows = self.table[self.table["method"] == method]
        if is_centered is not None:
            rows = rows[rows["is_centered"] == is_centered]
        keys = ["fold", "subject", "draw", *["pretraining"] * (rows["pretraining"].nunique() > 1)]
        return rows.groupby(keys)[column].mean()

    def test(self, values: pd.Series) -> MeanTest:
        """Test whether the mean of ``values`` differs from zero, with crossed random effects.

        ``values`` are scores as returned by :meth:`values`, or differences between two methods.

        Returns
        -------
        MeanTest
            Mean, confidence interval and p-value.
        """
        folds: list[np.ndarray] = []
        strata: list[np.ndarray] = []
        for _, of_fold in values.groupby("fold"):
            table = of_fold.droplevel("fold").unstack("subject").T
            n_draws = table.columns.get_level_values("draw").nunique()
            n_sets = min(n_draws, self.n_sets)
            folds.append(table.to_numpy().reshape(len(table), n_draws // n_sets, n_sets, -1))
            strata.append(self.class_of[table.index].to_numpy())
        return crossed_mean_of_folds(folds, strata)

    def difference(self, method: str, reference: str) -> tuple[MeanTest, pd.DataFrame]:
        """Test the difference between two methods, paired by subject and draw.

        Scores are averaged over features with and without subject-wise centering. Only draws and
        pretraining seeds with which both methods were scored are used. If one method has no
        pretraining seeds, each of its scores is compared with all pretraining seeds of the other
        method.

        Parameters
        ----------
        method, reference : str
            Names of the two methods.

        Returns
        -------
        test : MeanTest
            Test of the difference ``method`` minus ``reference``.
        means : DataFrame
            Mean score of each subject (rows) with the method and with the reference (columns).
        """
        scores, reference_scores = self.values(method).align(self.values(reference), join="inner")
        both = pd.DataFrame({"method": scores, "reference": reference_scores})
        return self.test(scores - reference_scores), _of_subjects(both)

    def compare(self, method: str, reference: str, *, is_tested: bool = True) -> Comparison:
        """Compare the scores of a method with the scores of a reference.

        Parameters
        ----------
        method, reference : str
            Names of the two methods.
        is_tested : bool
            Whether to test the difference. If False, the p-value is NaN.

        Returns
        -------
        Comparison
            Scores, difference and test.
        """
        test, means = self.difference(method, reference)
        weights = class_weights(self.class_of[means.index].to_numpy())
        score, reference_score = weights @ means.to_numpy()
        return Comparison(
            method=method,
            reference=reference,
            score=float(score),
            reference_score=float(reference_score),
            difference=test.mean,
            ci_low=test.ci_low,
            ci_high=test.ci_high,
            p=test.p if is_tested else np.nan,
            upper=test.upper_bound(1 - ALPHA),
            detectable=test.detectable(),
            n_subjects=len(means),
            n_better=int((means["method"] > means["reference"]).sum()),
            subjects_needed=test.subjects_needed(RELEVANT_DIFFERENCE, len(means)),
        )

    def levels(self) -> pd.DataFrame:
        """Return the table ``Study.levels``: mean score of each method, tested against chance."""
        rows = []
        keys = ["method", "is_centered", "kind"]
        for (method, is_centered, kind), part in self.table.groupby(keys, sort=False):
            chance = self.values(method, is_centered, "chance")
            above = self.test(self.values(method, is_centered) - chance)
            mean_chance = self.test(chance).mean
            limits = np.clip([above.ci_low + mean_chance, above.ci_high + mean_chance], 0, 1)
            sd = part.groupby("subject")["value"].mean().std(ddof=1)
            mean = above.mean + mean_chance
            rows.append((method, is_centered, kind, mean, *limits, sd, mean_chance, above.p))
        columns = [*keys, "mean", "ci_low", "ci_high", "sd", "chance", "p_chance"]
        levels = pd.DataFrame(rows, columns=columns)
        levels["p_chance"] = holm(levels["p_chance"])
        return levels.sort_values("mean", ascending=False, ignore_index=True)

    def secondary(self, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
        """Return the table ``Study.secondary``: Bonferroni-corrected comparisons of methods.

        Parameters
        ----------
        pairs : sequence of (str, str)
            Names of a method and of its reference, for each comparison.
        """
        rows, n = [], len(pairs)
        for method, reference in pairs:
            test, _ = self.difference(method, reference)
            limits = test.interval(ALPHA / n)
            rows.append((method, reference, test.mean, *limits, min(1.0, n * test.p)))
        columns = ["method", "reference", "difference", "ci_low", "ci_high", "p"]
        return pd.DataFrame(rows, columns=columns)

    def recommend(self, levels: pd.DataFrame) -> Recommendation | None:
        """Choose the simplest of the best methods, and estimate its score on a new subject.

        The mean score of the best of several methods overestimates its score on new subjects.
        Therefore, the subjects are split at random into two halves, 200 times. In each split, the
        method is chosen on one half and scored on the other half. The expected score is the mean of
        these scores, or the mean score of the recommended method if it is lower.

        Parameters
        ----------
        levels : DataFrame
            Mean scores of the methods, in the format of ``Study.levels``.

        Returns
        -------
        Recommendation | None
            Recommended method. None if no method can be recommended.
        """
        usable = levels[levels["kind"].isin(SIMPLEST_FIRST)].reset_index(drop=True)
        if usable.empty:
            return None
        complexity = 2 * usable["kind"].map(SIMPLEST_FIRST.index) + usable["is_centered"]
        ranks = complexity.to_numpy()
        scores = [self.values(row.method, row.is_centered) for row in usable.itertuples()]
        table = pd.concat(map(_of_subjects, scores), axis=1, keys=usable.index)
        means, classes = table.to_numpy(), self.class_of[table.index].to_numpy()
        n, rng, held_out_scores = len(means), np.random.default_rng(0), []
        for _ in range(N_SPLITS):
            chosen_on, scored_on = np.split(rng.permutation(n), [n // 2])
            split_choice, _ = self._choose(means[chosen_on], classes[chosen_on], ranks)
            held_out_scores.append(
                class_weights(classes[scored_on]) @ means[scored_on, split_choice]
            )
        chosen, is_equivalent = self._choose(means, classes, ranks)
        row = usable.loc[chosen]
        score = float(min(row["mean"], np.mean(held_out_scores)))
        by_draw = scores[chosen].droplevel("fold").unstack("subject")
        sd = np.sqrt(by_draw.var(axis=1).mean())
        half_width = stats.t.ppf(0.975, n - 1) * sd * np.sqrt(1 + 1 / n)
        equivalent = usable["method"][is_equivalent].unique()
        return Recommendation(
            method=str(row["method"]),
            is_centered=bool(row["is_centered"]),
            score=score,
            low=float(max(0.0, score - half_width)),
            high=float(min(1.0, score + half_width)),
            equivalent=tuple(name for name in equivalent if name != row["method"]),
        )

    def _choose(
        self, means: np.ndarray, classes: np.ndarray, complexity: np.ndarray
    ) -> tuple[int, np.ndarray]:
        """Choose the simplest method that is equivalent to the method with the highest mean score.

        A method is equivalent if its mean score is at most 0.02 below the highest mean score, and
        not significantly lower in a paired t-test. Of several equally simple methods, the method
        with the highest mean score is chosen.

        Parameters
        ----------
        means : ndarray, shape (n_subjects, n_methods)
            Mean score of each subject.
        classes : ndarray, shape (n_subjects,)
            Class of each subject.
        complexity : ndarray, shape (n_methods,)
            Rank of the complexity of each method, 0 for the simplest.

        Returns
        -------
        chosen : int
            Index of the chosen method.
        is_equivalent : ndarray of bool, shape (n_methods,)
            Whether each method is equivalent to the method with the highest mean score.
        """
        of_method = class_weights(classes) @ means
        deficits = means[:, [of_method.argmax()]] - means
        quantile = special.stdtrit(len(means) - 1, 1 - ALPHA / 2)  # faster than stats.t.ppf
        margin = quantile * deficits.std(axis=0, ddof=1) / np.sqrt(len(means))
        is_lower = deficits.mean(axis=0) > margin
        is_equivalent = ~is_lower & (of_method >= of_method.max() - RELEVANT_DIFFERENCE)
        is_simplest = is_equivalent & (complexity == complexity[is_equivalent].min())
        return int(np.where(is_simplest, of_method, -np.inf).argmax()), is_equivalent


def class_weights(classes: np.ndarray) -> np.ndarray:
    """Return a weight for each subject, so that all classes have the same total weight.

    The weights sum to 1.
    """
    _, codes, counts = np.unique(classes, return_inverse=True, return_counts=True)
    return 1 / (len(counts) * counts[codes])


def _of_subjects(scores: pd.DataFrame | pd.Series) -> Any:
    """Return the mean score of each subject, in the order of the folds."""
    return scores.groupby(["fold", "subject"]).mean().droplevel("fold")
