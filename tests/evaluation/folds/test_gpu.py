"""Folds that run at the same time use different GPUs; no GPU is needed to test it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from braindecode_pars import PARSEmbedder
from braindecode_pars.evaluation import folds as _running
from braindecode_pars.evaluation import leave_one_subject_out
from braindecode_pars.evaluation.cache import on_device


def test_only_auto_is_replaced():
    pipeline = make_pipeline(PARSEmbedder(), PARSEmbedder(device="cpu"), LogisticRegression())
    changed = on_device(pipeline, "cuda:1")
    assert (changed[0].device, changed[1].device) == ("cuda:1", "cpu")
    assert pipeline[0].device == "auto"


class Device(ClassifierMixin, BaseEstimator):
    """Predicts the number of its device."""

    def __init__(self, device="auto"):
        self.device = device

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), -2 if self.device == "auto" else int(self.device[-1]))


@pytest.mark.parametrize(
    ("n_jobs", "expected"), [(1, ["auto"] * 4), (2, ["cuda:0", "cuda:0", "cuda:1", "cuda:1"])]
)
def test_folds_take_a_gpu_when_several_workers_run(nights, monkeypatch, n_jobs, expected):
    used = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(_running, "_torch_seed", lambda fold: _record(fold, used))
    with _running.joblib.parallel_config("threading"):
        leave_one_subject_out({"A": Device()}, nights, n_jobs=n_jobs, verbose=0)
    assert sorted(used) == expected


def _record(fold, used):
    used.append(fold.estimator.device)
    return _running.suppress()
