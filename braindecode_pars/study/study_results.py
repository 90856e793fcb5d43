"""The result of a study as values: scores, comparisons, and the recommended method."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars.study import data_check
from braindecode_pars.study.study_design import WORTHWHILE_GAIN

#: Outcomes of the primary comparison.
GAIN, NO_GAIN, UNCLEAR, WORSE = "gain", "no gain worth having", "unclear", "worse"


@dataclass(frozen=True)
class Comparison:
    """Difference between two methods on the same subjects, draws and pretrainings.

    Attributes
    ----------
    method, reference : str
        Names of the methods. The difference is the score of ``method`` minus that of ``reference``.
    score, reference_score : float
        Mean score of each, over the features as they are and, where possible, subject-centered.
    difference, ci_low, ci_high : float
        Mean difference with its 95 % confidence interval.
    p : float
        Two-sided p-value, not corrected; NaN if the comparison was not tested.
    upper : float
        Upper end of the one-sided 95 % confidence interval, to rule out gains.
    detectable : float
        Difference that this test detects with a power of 80 %.
    n_subjects, n_better : int
        Number of test subjects, and of those with a higher mean score of ``method``.
    subjects_needed : float
        Number of subjects with which a difference of 0.02 would be detected with a power of 80 %;
        infinity if more subjects alone cannot do it.
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
        """Outcome by the test at the level of 0.05, and by the upper end of the interval."""
        if self.p < 0.05:
            return GAIN if self.difference > 0 else WORSE
        return NO_GAIN if self.upper < WORTHWHILE_GAIN else UNCLEAR


@dataclass(frozen=True)
class Recommendation:
    """The method to use for new subjects, and the score to expect.

    Attributes
    ----------
    method : str
        Name of the method.
    is_centered : bool
        Whether features are subject-centered (transductive).
    score : float
        Expected score of a method that is chosen in this way: the choice is made without the
        subject that is scored, so that it is not too high.
    low, high : float
        95 % prediction interval of the score of one new subject, cut at 0 and 1.
    equivalent : tuple of str
        Further methods whose scores are not significantly lower than the highest one.
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
    """The result of a study.

    Attributes
    ----------
    dataset, metric : str
        Names of the recordings and of the metric.
    check : DataCheck
        Findings about the recordings.
    plan : DataFrame
        A row for each step: ``step``, ``methods``, ``minutes`` (NaN if unknown), ``status``
        ("to come", "finished", or the reason of a failure) and ``is_primary``.
    methods : DataFrame
        A row for each method: ``method``, ``is_centered``, ``kind`` ("pretrained", "sham",
        "random", "baseline", "bundled", "ensemble" or "network"), ``additional_data`` (used in
        addition to
        the labeled subjects) and ``left_out`` (the reason, or nothing).
    scores : DataFrame
        A row for each score: ``method``, ``is_centered``, ``kind``, ``pretraining`` (number of the
        pretraining or random initialization; 0 for other methods), ``fold``, ``draw``,
        ``subject``, ``value`` and ``chance`` (chance level of the subject).
    levels : DataFrame
        A row for each method, plain and subject-centered: ``method``, ``is_centered``, ``kind``,
        ``mean``, ``ci_low``, ``ci_high``, ``sd`` (across subjects), ``chance`` and ``p_chance``
        (against the chance level, Holm-corrected over all rows).
    primary, initialization, baseline : Comparison | None
        Pretraining on this dataset against its sham, against random initialization, and against
        the baseline that was named beforehand. ``baseline.p`` is NaN unless the primary outcome is
        a gain. None if it was not computed.
    secondary : DataFrame
        Other methods against their references: ``method``, ``reference``, ``difference``, and
        ``ci_low``, ``ci_high``, ``p`` with Bonferroni's correction over the rows.
    recommendation : Recommendation | None
        The method to use.
    pretrainings : DataFrame
        A row for each pretraining: ``task``, ``is_sham``, ``fold``, ``seed``, ``n_steps``,
        ``held_out_loss`` (relative, 1 = chance level) and ``reason`` (why it ended).
    has_learned : bool
        Whether the held-out loss of the primary task fell below that of its sham.
    controls : DataFrame | None
        Control analyses of the primary comparison, see
        :func:`~braindecode_pars.evaluation.control_gains`.
    control_notes : list of str
        What the control analyses show, in sentences.
    confusion : DataFrame
        True and predicted classes of the recommended method, all draws.
    decisions : DataFrame | None
        Where each subject has one class: decisions by subject. For each method ``right`` of
        ``subjects``, ``balanced_accuracy`` and ``auroc``, means of the draws.
    about : dict
        Design, versions, seeds, digest of the data: name and value.

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
        """Number of labeled subjects of each fit."""
        return int(self.about["n_labeled_subjects"])

    @property
    def has_gain(self) -> bool:
        """Whether pretraining helps: it has learned, and the primary comparison shows a gain."""
        return self.primary is not None and self.primary.outcome == GAIN and self.has_learned

    @property
    def answers(self) -> list[str]:
        """The answers to the three questions of the report, a text each."""
        from braindecode_pars.study import study_report

        return study_report.answers_of(self)

    def report(self, path: str | Path) -> Path:
        """Write a report that needs no scripts and no other files.

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
