"""Result of a study: scores, comparisons and the recommended method."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars.study import data_check
from braindecode_pars.study.study_design import RELEVANT_DIFFERENCE

#: Outcomes of the primary comparison.
GAIN, NO_GAIN, UNCLEAR, WORSE = "gain", "no gain worth having", "unclear", "worse"


@dataclass(frozen=True)
class Comparison:
    """Paired comparison of two methods on the same subjects, draws and pretrainings.

    Attributes
    ----------
    method, reference : str
        Names of the methods. The difference is the score of ``method`` minus that of ``reference``.
    score, reference_score : float
        Mean score of ``method`` and of ``reference``, averaged over features without and, where
        possible, with subject-wise centering.
    difference, ci_low, ci_high : float
        Mean difference and its uncorrected 95 % confidence interval.
    p : float
        Uncorrected p-value of a two-sided t-test with subjects, draws and pretrainings as crossed
        random effects; NaN if the comparison was not tested.
    upper : float
        Upper end of the one-sided 95 % confidence interval, to rule out improvements.
    detectable : float
        Minimum detectable difference: the true difference that this test detects with 80 % power.
    n_subjects : int
        Number of test subjects.
    n_better : int
        Number of test subjects whose mean score is higher with ``method``.
    subjects_needed : float
        Number of subjects required to detect a difference of 0.02 with 80 % power; infinity if more
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
    def outcome(self) -> str:
        """Outcome of the test at a significance level of 0.05, and of the upper bound."""
        if self.p < 0.05:
            return GAIN if self.difference > 0 else WORSE
        return NO_GAIN if self.upper < RELEVANT_DIFFERENCE else UNCLEAR


@dataclass(frozen=True)
class Recommendation:
    """Method recommended for new subjects, and its expected score.

    Attributes
    ----------
    method : str
        Name of the method.
    is_centered : bool
        Whether features are subject-centered (transductive: unlabeled windows of the test subject
        are used).
    score : float
        Expected score on a new subject. The method is chosen and scored on different subjects, so
        that the choice does not bias the score.
    low, high : float
        95 % prediction interval of the score of one new subject, clipped to 0 and 1.
    equivalent : tuple of str
        Further methods whose mean score is at most 0.02 below the highest mean and not
        significantly lower.
    folder : str | None
        Folder of the saved classifier, which was trained with the labels of all subjects.
    """

    method: str
    is_centered: bool
    score: float
    low: float
    high: float
    equivalent: tuple[str, ...] = ()
    folder: str | None = None


@dataclass(frozen=True, eq=False)
class Study:
    """Result of a study of pretraining on a dataset.

    Attributes
    ----------
    dataset, metric : str
        Names of the dataset and of the metric.
    check : DataCheck
        Result of the data check.
    plan : DataFrame
        One row per step: ``step``, ``methods``, ``minutes`` (expected duration; NaN if unknown),
        ``status`` ("to come", "finished", or the reason of a failure) and ``is_primary``.
    methods : DataFrame
        One row per method, with and without subject-wise centering: ``method``, ``is_centered``,
        ``kind`` ("pretrained", "sham", "random", "baseline", "bundled", "ensemble" or "network"),
        ``additional_data`` (data used in addition to the labeled subjects) and ``left_out`` (the
        reason if the method was not run, or an empty string).
    scores : DataFrame
        One row per score: ``method``, ``is_centered``, ``kind``, ``pretraining`` (seed of the
        pretraining or random initialization; 0 for other methods), ``fold``, ``draw``, ``subject``,
        ``value``, ``chance`` (chance level of the subject), ``stratum`` (class of the subject; 0 if
        classes vary within subjects) and ``shuffle`` (draws of one shuffle of the training subjects
        have no labeled subject in common).
    levels : DataFrame
        Mean scores, with one row per method, with and without subject-wise centering: ``method``,
        ``is_centered``, ``kind``, ``mean``, ``ci_low``, ``ci_high`` (uncorrected 95 % confidence
        interval), ``sd`` (across subjects), ``chance`` and ``p_chance`` (test against chance level,
        Holm-corrected over all rows).
    primary, initialization, baseline : Comparison | None
        Pretraining on this dataset compared with its sham, with random initialization, and with the
        baseline that was specified in advance. ``baseline.p`` is NaN unless the improvement in the
        primary comparison is significant. None if the comparison was not computed.
    secondary : DataFrame
        Other methods compared with their references: ``method``, ``reference``, ``difference``, and
        ``ci_low``, ``ci_high``, ``p`` with Bonferroni correction over the rows.
    recommendation : Recommendation | None
        The recommended method.
    pretrainings : DataFrame
        One row per pretraining: ``task``, ``is_sham``, ``fold``, ``seed``, ``n_steps``,
        ``held_out_loss`` (relative loss; 1 = chance level) and ``reason`` (why it ended).
    has_learned : bool
        Whether the held-out loss of the primary task fell below the loss of its sham.
    controls : DataFrame | None
        Control analyses of the primary comparison, see
        :func:`~braindecode_pars.evaluation.control_gains`.
    control_notes : list of str
        Results of the control analyses in sentences.
    confusion : DataFrame
        True and predicted classes of the recommended method in all draws.
    decisions : DataFrame | None
        Classification of subjects, if each subject has one class. For each method ``right`` (number
        of correctly classified subjects) of ``subjects``, ``balanced_accuracy`` and ``auroc``,
        averaged over draws.
    about : dict
        Design, versions, seeds and digest of the data, by name.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import study
    >>> result = study(datasets.mental_arithmetic(["Subject00", "Subject01"]))  # too few subjects
    >>> print(result.answers[0].split(":")[0])
    No answer
    """

    dataset: str
    metric: str
    check: data_check.DataCheck
    plan: pd.DataFrame = field(default_factory=pd.DataFrame)
    methods: pd.DataFrame = field(default_factory=pd.DataFrame)
    scores: pd.DataFrame = field(default_factory=pd.DataFrame)
    levels: pd.DataFrame = field(default_factory=pd.DataFrame)
    primary: Comparison | None = None
    initialization: Comparison | None = None
    baseline: Comparison | None = None
    secondary: pd.DataFrame = field(default_factory=pd.DataFrame)
    recommendation: Recommendation | None = None
    pretrainings: pd.DataFrame = field(default_factory=pd.DataFrame)
    has_learned: bool = True
    controls: pd.DataFrame | None = None
    control_notes: list[str] = field(default_factory=list)
    confusion: pd.DataFrame = field(default_factory=pd.DataFrame)
    decisions: pd.DataFrame | None = None
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def n_labeled(self) -> int:
        """Number of labeled subjects in each fit."""
        return int(self.about["n_labeled_subjects"])

    @property
    def has_gain(self) -> bool:
        """Whether the task was learned and the primary improvement is significant."""
        return self.primary is not None and self.primary.outcome == GAIN and self.has_learned

    @property
    def answers(self) -> list[str]:
        """The answers to the three questions of the report, one text per question."""
        from braindecode_pars.study import study_report

        return study_report.answers_of(self)

    def report(self, path: str | Path) -> Path:
        """Write the report as one HTML file without scripts.

        Parameters
        ----------
        path : path
            HTML file, or folder for ``report.html``.

        Returns
        -------
        Path
            The file.
        """
        from braindecode_pars.study import study_report

        return study_report.write_report(self, path)
