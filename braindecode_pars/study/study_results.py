"""Result of a study: scores, comparisons and recommended method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from braindecode_pars._common import files, training
from braindecode_pars._common.names import METRICS
from braindecode_pars.evaluation.controls import UNCHANGED, control_gains
from braindecode_pars.study import study_answers, study_scores
from braindecode_pars.study.data_check import DataCheck
from braindecode_pars.study.study_design import METRIC, Design, StudyPlan
from braindecode_pars.study.study_methods import RANDOM, SHAM, baseline_name
from braindecode_pars.study.study_tests import Comparison, Outcome, Recommendation, Scores

#: A pretext task counts as learned if its held-out loss, divided by the held-out loss of its sham
#: pretraining, is below this value.
LEARNED = training.AT_CHANCE


@dataclass(frozen=True, eq=False)
class Study:
    """Result of a study of whether pretraining improves classification on a dataset.

    The function :func:`~braindecode_pars.evaluation.study` explains the terms that are used here,
    such as sham pretraining and draws of labeled subjects.

    Attributes
    ----------
    dataset, metric : str
        Names of the dataset and of the metric.
    check : DataCheck
        Result of the data check.
    plan : DataFrame
        One row per step of the study, with the columns:

        - ``step``: name of the step.
        - ``group``: group of methods, such as "primary".
        - ``methods``: names of the methods that are scored in the step.
        - ``minutes``: expected duration of pretraining on one core; NaN if no encoder is
          pretrained.
        - ``status``: "to come", "finished" or "failed".
        - ``reason``: error message of a failed step; empty for other steps.
    methods : DataFrame
        One row per method, with the columns:

        - ``method``: name of the method.
        - ``kind``: "pretrained", "sham", "random", "baseline", "bundled", "ensemble" or "network".
        - ``additional_data``: data that the method uses in addition to the labeled subjects. With
          subject-centered features, methods also use unlabeled windows of the test subject.
    scores : DataFrame
        One row per score, with the columns:

        - ``method`` and ``kind``, as in ``methods``.
        - ``is_centered``: whether the features are subject-centered.
        - ``pretraining``: seed of pretraining or of the random initialization; 0 for methods that
          have neither.
        - ``fold``, ``draw`` and ``subject``: fold, draw of labeled subjects, and test subject.
        - ``value``: score of the test subject.
        - ``chance``: chance level of the test subject.
        - ``stratum``: class of the test subject; 0 if classes vary within subjects.
        - ``shuffle``: index of the shuffle of the training subjects from which the draw was taken.
          Draws from the same shuffle have no labeled subject in common.
    levels : DataFrame
        Mean scores, with one row per combination of ``method`` and ``is_centered``. The other
        columns are:

        - ``kind``, as in ``methods``.
        - ``mean``: mean score.
        - ``ci_low``, ``ci_high``: uncorrected 95 % confidence interval of the mean.
        - ``sd``: standard deviation across subjects.
        - ``chance``: mean chance level.
        - ``p_chance``: p-value of the test against chance level, Holm-corrected over all rows.
    primary, initialization, baseline : Comparison | None
        Comparisons of pretraining on this dataset with sham pretraining (``primary``), with random
        initialization (``initialization``), and with the baseline that was specified in advance
        (``baseline``). If :attr:`has_gain` is False, the comparison with the baseline is not
        tested, and ``baseline.p`` is NaN. A comparison that was not computed is None.
    secondary : DataFrame
        Comparisons of other methods with their references, one row per comparison. The columns are
        ``method``, ``reference``, ``difference``, ``ci_low``, ``ci_high`` and ``p``. The confidence
        intervals and p-values are Bonferroni-corrected over all rows.
    recommendation : Recommendation | None
        Recommended method. None if no method can be recommended.
    pretrainings : DataFrame
        One row per pretrained encoder. The columns are ``task``, ``is_sham``, ``fold``, ``seed``,
        ``n_steps``, ``held_out_loss`` (loss on held-out subjects divided by the chance-level loss)
        and ``reason`` (why pretraining ended).
    has_learned : bool
        Whether the held-out loss of the primary pretext task was below 0.98 times the held-out loss
        of its sham pretraining.
    controls : DataFrame | None
        Scores of the primary comparison on control signals, as returned by
        :func:`~braindecode_pars.evaluation.control_gains`. None if no control analyses were run.
    control_notes : list of str
        Results of the control analyses in sentences.
    confusion : DataFrame
        Predictions of the recommended method, one row per window, draw and pretraining seed. The
        columns are ``true`` and ``predicted``, the names of the true and of the predicted class.
    decisions : DataFrame | None
        Classification of subjects by their mean class probabilities, averaged over draws, with one
        row per method. The columns are ``method``, ``right`` (number of correctly classified
        subjects), ``subjects`` (number of subjects), ``balanced_accuracy`` and ``auroc``. None if
        classes vary within subjects.
    about : dict
        Design, limits of pretraining, versions and digest of the data, by name.

    Examples
    --------
    Two subjects are too few, so no method is scored:

    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import study
    >>> result = study(datasets.mental_arithmetic(["Subject00", "Subject01"]))
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
        """Number of labeled subjects with which each classifier is trained."""
        return int(self.about["n_labeled_subjects"])

    @property
    def has_gain(self) -> bool:
        """Whether the pretext task was learned, and the improvement over sham is significant."""
        pair = self.primary
        return pair is not None and pair.outcome == Outcome.GAIN and self.has_learned

    @property
    def answers(self) -> list[str]:
        """Answers to the three questions of the report, as a list of three strings.

        The questions are whether pretraining on this dataset improves classification, whether it is
        better than a baseline without pretraining, and which method to use.
        """
        return [str(answer) for answer in study_answers.answers_of(self)]

    def report(self, path: str | Path) -> Path:
        """Write the report as a single HTML file without scripts.

        Parameters
        ----------
        path : path
            HTML file to write, or a folder, in which ``report.html`` is written.

        Returns
        -------
        Path
            Path of the HTML file.
        """
        from braindecode_pars.study import study_report

        return study_report.write_report(self, path)


# Tables -------------------------------------------------------------------------------------------


def assemble(plan: StudyPlan, failures: Mapping[str, str]) -> Study:
    """Return the result of all finished steps.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    failures : mapping of str to str
        Error message of each failed step, by the name of the step.

    Returns
    -------
    Study
        Scores and comparisons of all methods whose steps are finished.
    """
    tables = [study_scores.read_scores(step, plan) for step in plan.steps]
    reasons = np.array([failures.get(step.name, "") for step in plan.steps], dtype=object)
    is_finished = np.array([table is not None for table in tables])
    status = np.where(is_finished, "finished", np.where(reasons != "", "failed", "to come"))
    methods = [method for step in plan.steps for method in step.methods]
    rows = dict.fromkeys((method.name, method.kind, method.additional_data) for method in methods)
    result = Study(
        dataset=plan.dataset,
        metric=METRIC,
        check=plan.check,
        plan=plan.table.assign(status=status, reason=reasons),
        methods=pd.DataFrame([*rows], columns=["method", "kind", "additional_data"]),
        pretrainings=_table_of_pretrainings(plan),
        about=plan.about,
    )
    # If a step of a method is not finished, scores of some subjects are missing, so the method is
    # left out.
    unfinished = [s for s, table in zip(plan.steps, tables, strict=True) if table is None]
    finished = {*result.methods["method"]} - {m.name for s in unfinished for m in s.methods}
    if not finished:
        return result
    table = pd.concat(tables, ignore_index=True)
    table = table[table["method"].isin(finished)]
    table = table.assign(
        stratum=table["subject"].map(plan.design.class_of.rename(index=str)),
        shuffle=table["draw"] // plan.design.n_sets,
    )
    scores = Scores(table)
    levels = scores.levels()
    secondary = [m for step in plan.steps if step.group != "primary" for m in step.methods]
    pairs = dict.fromkeys((m.name, reference) for m in secondary for reference in m.references)
    result = replace(
        result,
        scores=table,
        levels=levels,
        secondary=scores.secondary([pair for pair in pairs if {*pair} <= finished]),
        recommendation=scores.recommend(levels),
        decisions=decisions_of(table) if plan.design.by_subject else None,
    )
    return _with_primary_comparisons(result, scores, plan)


def _with_primary_comparisons(result: Study, scores: Scores, plan: StudyPlan) -> Study:
    """Return the result with the comparisons of the primary method, if its steps are finished."""
    primary_methods = [m for step in plan.steps if step.group == "primary" for m in step.methods]
    method = next((m for m in primary_methods if m.kind == "pretrained"), None)
    finished = {*scores.table["method"]}
    if method is None or not {method.name, SHAM} <= finished:
        return result
    runs = result.pretrainings[result.pretrainings["task"] == method.task]
    losses = runs.groupby("is_sham")["held_out_loss"].mean()
    primary = scores.compare(method.name, SHAM)
    has_learned = bool(losses[False] < LEARNED * losses[True])
    result = replace(result, primary=primary, has_learned=has_learned)
    if RANDOM in finished:
        result = replace(result, initialization=scores.compare(method.name, RANDOM))
    if (baseline := baseline_name(plan.design.n_chans)) in finished:
        comparison = scores.compare(method.name, baseline, is_tested=result.has_gain)
        result = replace(result, baseline=comparison)
    return result


def _table_of_pretrainings(plan: StudyPlan) -> pd.DataFrame:
    """Return the table ``Study.pretrainings``, with one row per pretrained encoder."""
    columns = ["task", "is_sham", "fold", "seed", "n_steps", "held_out_loss", "reason"]
    records = [
        study_scores.record_of(method, plan, step.fold)
        for step in plan.steps
        for method in step.methods
        if method.kind in ("pretrained", "sham")
    ]
    rows = [files.read_json(file) for file in records if file.exists()]
    return pd.DataFrame(rows, columns=columns).sort_values("is_sham", kind="stable")


def confusion_of(scores: pd.DataFrame, chosen: Recommendation, design: Design) -> pd.DataFrame:
    """Return the true and the predicted class of each prediction of the recommended method.

    Parameters
    ----------
    scores : DataFrame
        Scores in the format of ``Study.scores``, with the numbers of predictions of each class.
    chosen : Recommendation
        Recommended method.
    design : Design
        Design of the study, which contains the class names.

    Returns
    -------
    DataFrame
        One row per prediction, with the columns ``true`` and ``predicted`` (names of classes).
    """
    rows = scores[scores["method"] == chosen.method]
    rows = rows[rows["is_centered"] == chosen.is_centered]
    pairs = pd.DataFrame(product(design.classes.values(), repeat=2), columns=["true", "predicted"])
    counts = rows.filter(regex=r"^n_\d").sum().astype(int)
    return pairs.loc[pairs.index.repeat(counts)].reset_index(drop=True)


def decisions_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return how accurately each method classifies subjects by their mean class probabilities.

    The table has the columns of ``Study.decisions``, and is sorted by balanced accuracy in
    descending order.

    Parameters
    ----------
    table : DataFrame
        Scores in the format of ``Study.scores``, with the mean class probabilities.
    """
    probabilities = table.filter(regex=r"^p_\d").to_numpy()
    true, predicted = pd.factorize(table["stratum"], sort=True)[0], probabilities.argmax(axis=1)
    rows = []
    keys = ["method", "draw", "pretraining"]
    for (method, *_), places in table.reset_index(drop=True).groupby(keys).indices.items():
        truth, decided, values = true[places], predicted[places], probabilities[places]
        values = values[:, 1] if values.shape[1] == 2 else values
        auroc = roc_auc_score(truth, values, multi_class="ovr")
        balanced = balanced_accuracy_score(truth, decided)
        rows.append((method, (truth == decided).sum(), len(places), balanced, auroc))
    columns = ["method", "right", "subjects", "balanced_accuracy", "auroc"]
    means = pd.DataFrame(rows, columns=columns).groupby("method", as_index=False).mean()
    return means.sort_values("balanced_accuracy", ascending=False, ignore_index=True)


def primary_control_gains(plan: StudyPlan) -> pd.DataFrame | None:
    """Return the difference between pretraining and sham pretraining on each control signal.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    DataFrame | None
        Differences, as returned by :func:`~braindecode_pars.evaluation.control_gains`. None if
        there are no scores on the recorded signals, or on any control signal.
    """
    tables = {
        step.control: table
        for step in plan.control_steps
        if (table := study_scores.read_scores(step, plan)) is not None
    }
    if UNCHANGED not in tables or len(tables) == 1:
        return None
    rows = pd.concat(tables, names=["control"]).rename(columns={"draw": "seed"})
    keys = ["control", "method", "subject", "seed"]
    scores = rows.groupby(keys, sort=False)["value"].mean().reset_index()
    scores = scores.assign(
        protocol="label_efficiency",
        dataset=plan.dataset,
        n_train_subjects=plan.design.n_labeled,
        metric=METRIC,
        chance=METRICS[METRIC].chance_level(len(plan.design.classes)),
    )
    return control_gains(scores, against=SHAM)
