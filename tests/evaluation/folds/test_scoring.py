"""Scores of each test subject, and of all windows together, from a saved result."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, roc_auc_score

from braindecode_pars.evaluation.metrics import score_rows, scored, undefined_sentence

RNG = np.random.default_rng(0)
TRUE = RNG.integers(2, size=60)
ABNORMAL = RNG.random(60)
RESULT = dict(
    true=TRUE.tolist(),
    predicted=(ABNORMAL > 0.5).astype(int).tolist(),
    probabilities=dict(classes=[0, 1], columns=[(1 - ABNORMAL).tolist(), ABNORMAL.tolist()]),
    subjects=["7"] * 30 + ["8"] * 30,
    seen={},
    history=None,
)


@pytest.mark.parametrize("pooled", [False, True])
def test_every_subject_and_all_together(pooled):
    fold = SimpleNamespace(test_subjects=[7, 8], pooled=pooled)
    rows = list(score_rows(fold, RESULT, ["accuracy", "auroc"]))
    expected = []
    for subject, windows in ((7, slice(30)), (8, slice(30, None)), ("all", slice(None))):
        true, predicted = TRUE[windows], ABNORMAL[windows]
        expected.append((subject, "accuracy", accuracy_score(true, predicted > 0.5)))
        expected.append((subject, "auroc", roc_auc_score(true, predicted)))
    expected = expected if pooled else expected[:4]
    assert [(row["subject"], row["metric"]) for row in rows] == [key[:2] for key in expected]
    assert [row["value"] for row in rows] == pytest.approx([value for *_, value in expected])


def test_labels_and_probabilities_are_not_kept_in_memory():
    fold = SimpleNamespace(test_subjects=[7], pooled=False)
    assert set(scored(fold, RESULT, ["kappa"])) == {"rows", "seen", "history"}


def test_each_reason_is_said_once():
    undefined = [
        dict(metric=metric, subject=subject, reason=reason)
        for metric, reason in (("auroc", "no probabilities"), ("kappa", "one class"))
        for subject in (range(1, 8) if metric == "auroc" else [3, 3])
    ]
    assert undefined_sentence(undefined) == (
        "9 scores are undefined and NaN. auroc of 1, auroc of 2, auroc of 3, auroc of 4, auroc of "
        "5 and 2 more: no probabilities; kappa of 3: one class. scores.attrs['undefined'] lists "
        "all of them."
    )
