"""Tables of a study: collect the finished steps, compare methods, count predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from braindecode_pars._common import files, training
from braindecode_pars._common.names import METRICS
from braindecode_pars.evaluation.controls import UNCHANGED, control_gains
from braindecode_pars.study import study_scores
from braindecode_pars.study.study_design import METRIC, StudyPlan
from braindecode_pars.study.study_methods import (
    RANDOM,
    SHAM,
    TEST_SUBJECT,
    StepStatus,
    baseline_name,
)
from braindecode_pars.study.study_results import Study
from braindecode_pars.study.study_tests import Recommendation, Scores

#: A task counts as learned if its held-out loss, divided by the loss of its sham, is below this.
LEARNED = training.AT_CHANCE


def assemble(plan: StudyPlan, failures: Mapping[str, str]) -> Study:
    """Return the result of all steps that are finished."""
    tables = [study_scores.read_scores(step, plan) for step in plan.steps]
    reasons = [failures.get(step.name, "") for step in plan.steps]
    steps = plan.table.assign(status=StepStatus.TO_COME, reason=reasons)
    steps.loc[steps["reason"] != "", "status"] = StepStatus.FAILED
    steps.loc[[table is not None for table in tables], "status"] = StepStatus.FINISHED
    is_primary = steps.pop("group") == "primary"
    result = Study(
        dataset=plan.dataset,
        metric=METRIC,
        check=plan.check,
        plan=steps.assign(is_primary=is_primary),
        methods=_table_of_methods(plan, failures),
        pretrainings=_table_of_pretrainings(plan),
        about=plan.about,
    )
    # A method whose steps are not all finished has no scores for some subjects.
    unfinished = [s for s, table in zip(plan.steps, tables, strict=True) if table is None]
    finished = {*result.methods["method"]} - {m.name for s in unfinished for m in s.methods}
    if not finished:
        return result
    scores = pd.concat(tables, ignore_index=True)
    scores = scores[scores["method"].isin(finished)]
    scores = scores.assign(
        stratum=scores["subject"].map(plan.design.class_of.rename(index=str)),
        shuffle=scores["draw"] // plan.design.n_sets,
    )
    return _with_scores(result, scores, plan)


def _with_scores(result: Study, table: pd.DataFrame, plan: StudyPlan) -> Study:
    """Return the study with the scores of all finished methods, and their comparisons."""
    scores, finished = Scores(table), {*table["method"]}
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
    primary_method = plan.primary
    if primary_method is None or not {primary_method.name, SHAM} <= finished:
        return result
    name = primary_method.name
    runs = result.pretrainings[result.pretrainings["task"] == primary_method.task]
    losses = runs.groupby("is_sham")["held_out_loss"].mean()
    has_learned = bool(losses[False] < LEARNED * losses[True])
    primary = scores.compare(name, SHAM)
    result = replace(result, primary=primary, has_learned=has_learned)
    if RANDOM in finished:
        result = replace(result, initialization=scores.compare(name, RANDOM))
    baseline = baseline_name(plan.design.n_chans)
    if baseline in finished:
        comparison = scores.compare(name, baseline, is_tested=result.has_gain)
        result = replace(result, baseline=comparison)
    return result


def _table_of_methods(plan: StudyPlan, failures: Mapping[str, str]) -> pd.DataFrame:
    rows = []
    for step, method in ((s, method) for s in plan.steps for method in s.methods):
        for is_centered in (False, True) if method.views and plan.design.is_centered else (False,):
            data = (method.additional_data, TEST_SUBJECT * is_centered)
            row = dict(method=method.name, is_centered=is_centered, kind=method.kind)
            row["additional_data"] = "; ".join(filter(None, data))
            rows.append(row | dict(left_out=failures.get(step.name, "")))
    keys = ["method", "is_centered"]
    return pd.DataFrame(rows).groupby(keys, as_index=False, sort=False).max()


def _table_of_pretrainings(plan: StudyPlan) -> pd.DataFrame:
    """Return the table of pretrainings, starting with the primary comparison."""
    columns = ["task", "is_sham", "fold", "seed", "n_steps", "held_out_loss", "reason"]
    records = [
        study_scores.record_of(method, plan, step.fold)
        for step in sorted(plan.steps, key=lambda step: step.group != "primary")
        for method in step.methods
        if method.kind in ("pretrained", "sham")
    ]
    rows = [files.read_json(file) for file in records if file.exists()]
    return pd.DataFrame(rows, columns=columns).sort_values("is_sham", kind="stable")


def confusion_of(result: Study, chosen: Recommendation, plan: StudyPlan) -> pd.DataFrame:
    """Return true and predicted classes of the recommended method, one row per prediction."""
    rows = result.scores[result.scores["method"] == chosen.method]
    rows = rows[rows["is_centered"] == chosen.is_centered]
    pairs = pd.DataFrame(product(plan.design.class_names, repeat=2))
    pairs.columns = ["true", "predicted"]
    counts = rows.filter(regex=r"^n_\d").sum().astype(int)
    return pairs.loc[np.repeat(pairs.index, counts)].reset_index(drop=True)


def decisions_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return how accurately each method classifies subjects by their mean class probabilities.

    The columns are those of ``Study.decisions``, sorted by balanced accuracy in descending order.
    """
    probabilities = table.filter(regex=r"^p_\d").to_numpy()
    n_classes = probabilities.shape[1]
    counts = table.filter(regex=r"^n_\d").to_numpy().reshape(-1, n_classes, n_classes)
    true, predicted = counts.sum(axis=2).argmax(axis=1), probabilities.argmax(axis=1)
    rows = []
    keys = ["method", "draw", "pretraining"]
    for (method, *_), places in table.reset_index(drop=True).groupby(keys).indices.items():
        truth, decided, values = true[places], predicted[places], probabilities[places]
        values = values[:, 1] if n_classes == 2 else values
        auroc = roc_auc_score(truth, values, multi_class="ovr")
        balanced = balanced_accuracy_score(truth, decided)
        rows.append((method, (truth == decided).sum(), len(places), balanced, auroc))
    columns = ["method", "right", "subjects", "balanced_accuracy", "auroc"]
    means = pd.DataFrame(rows, columns=columns).groupby("method", as_index=False).mean()
    return means.sort_values("balanced_accuracy", ascending=False, ignore_index=True)


def primary_control_gains(plan: StudyPlan) -> pd.DataFrame | None:
    """Return the difference in the primary comparison for each control signal.

    None if the scores on the original signals, or on all control signals, are missing.
    """
    steps = {step.control: study_scores.read_scores(step, plan) for step in plan.control_steps}
    tables = {name: table for name, table in steps.items() if table is not None}
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
        chance=METRICS[METRIC].chance_level(len(plan.design.class_names)),
    )
    return control_gains(scores, against=SHAM)
