"""Result of a study: scores, comparisons and the recommended method."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars.study import study_answers
from braindecode_pars.study.data_check import DataCheck
from braindecode_pars.study.study_tests import Comparison, Outcome, Recommendation


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
        ``status`` ("to come", "finished" or "failed"), ``reason`` (the error of a failed step, or
        an empty string) and ``is_primary``.
    methods : DataFrame
        One row per method, with and without subject-wise centering: ``method``, ``is_centered``,
        ``kind`` ("pretrained", "sham", "random", "baseline", "bundled", "ensemble" or "network"),
        ``additional_data`` (data used in addition to the labeled subjects) and ``left_out`` (the
        reason if the method was not run, or an empty string).
    scores : DataFrame
        One row per score:

        - ``method``, ``is_centered`` and ``kind``, as in ``methods``.
        - ``pretraining``: seed of the pretraining or random initialization; 0 for other methods.
        - ``fold``, ``draw`` and ``subject``.
        - ``value``: the score.
        - ``chance``: chance level of the subject.
        - ``stratum``: class of the subject; 0 if classes vary within subjects.
        - ``shuffle``: shuffle of the training subjects. Draws from the same shuffle have no labeled
          subject in common.
    levels : DataFrame
        Mean scores, with one row per method, with and without subject-wise centering: ``method``,
        ``is_centered``, ``kind``, ``mean``, ``ci_low``, ``ci_high`` (uncorrected 95 % confidence
        interval), ``sd`` (across subjects), ``chance`` and ``p_chance`` (test against chance level,
        Holm-corrected over all rows).
    primary, initialization, baseline : Comparison | None
        Pretraining on this dataset compared with its sham, with random initialization, and with the
        baseline that was specified in advance. ``baseline.p`` is NaN unless the improvement in the
        primary comparison is significant. A comparison is None if it was not computed.
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
        Classification of subjects, if each subject has one class; otherwise None. One row per
        method: ``method``, ``right`` (number of correctly classified subjects), ``subjects``
        (number of subjects), ``balanced_accuracy`` and ``auroc``, averaged over draws.
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
    check: DataCheck
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
        """Whether the pretext task was learned, and the primary improvement is significant."""
        pair = self.primary
        return pair is not None and pair.outcome == Outcome.GAIN and self.has_learned

    @property
    def answers(self) -> list[str]:
        """The answers to the three questions of the report, one text per question."""
        return [str(answer) for answer in study_answers.answers_of(self)]

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
