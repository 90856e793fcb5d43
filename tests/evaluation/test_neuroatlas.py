"""Protocol of NeuroAtlas: splits and scores of neuroatlas-bench, and a plain computation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

from braindecode_pars import PARSEmbedder, as_sklearn, datasets
from braindecode_pars.evaluation import LogBandPower
from braindecode_pars.evaluation.benchmarks import neuroatlas
from braindecode_pars.windows.convert import as_windows

#: Splits and scores of neuroatlas-bench for log band power of the bundled sample, written by
#: ``docs/experiments/eegmat_neuroatlas.py equality``.
EXPECTED = json.loads(Path(__file__).with_name("neuroatlas_bench.json").read_text())


class Row(TransformerMixin, BaseEstimator):
    """Constant features."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.zeros((len(X), 1))


@pytest.fixture(scope="module")
def sample():
    return as_sklearn(datasets.mental_arithmetic())


def scores_of(test_subjects):
    methods, windows = {"log band power": LogBandPower()}, datasets.mental_arithmetic()
    return neuroatlas.neuroatlas_scores(methods, windows, test_subjects=test_subjects, verbose=0)


@pytest.mark.parametrize("n", [24, 36])
def test_validation_subjects_are_those_of_neuroatlas(n):
    """Also if the subjects are not sorted."""
    subjects = np.repeat(np.random.default_rng(0).permutation(n), 2)
    X = as_windows(np.zeros((2 * n, 1, 4), np.float32), np.tile([0, 1], n), subjects)
    for test_subject, expected in list(enumerate(EXPECTED["validation"][str(n)]))[::7]:
        probe = neuroatlas.NeuroAtlasProbe(Row()).fit(X[subjects != test_subject])
        assert probe.validation_subjects_ == expected


@pytest.mark.slow
def test_all_scores_are_those_of_neuroatlas():
    scores = scores_of(None)
    values = scores[scores["metric"] == "balanced_accuracy"]["value"]
    np.testing.assert_allclose(values, EXPECTED["balanced_accuracy"], atol=1e-6)
    assert {*scores["n_train_subjects"]} == {23}


def test_the_summary_is_that_of_neuroatlas():
    same = scores_of(["Subject00"]).iloc[0].to_dict() | dict(metric="balanced_accuracy")
    values = EXPECTED["balanced_accuracy"]
    stored = [same | dict(subject=str(i), value=value) for i, value in enumerate(values)]
    [row] = neuroatlas.neuroatlas_summary(pd.DataFrame(stored)).to_dict("records")
    assert row["mean"] == pytest.approx(EXPECTED["mean"], abs=1e-6)
    assert row["sd"] == pytest.approx(EXPECTED["sd"], abs=1e-6)
    assert row["n_subjects"] == 24


#: Subjects for which C is 100 and 10.
@pytest.mark.parametrize("number", [pytest.param(2, marks=pytest.mark.slow), 22])
def test_c_is_that_of_neuroatlas(sample, number):
    X, y, groups = sample
    is_test = groups == f"Subject{number:02d}"
    probe = neuroatlas.NeuroAtlasProbe(LogBandPower()).fit(X[~is_test], y[~is_test])
    assert EXPECTED["C"][number] == probe.C_


def test_the_transformer_is_fitted_on_training_subjects_only(sample):
    X, y, groups = sample

    class Remember(Row):
        def fit(self, X, y=None):
            self.subjects_ = {*X.groups.tolist()}
            return self

    is_test = groups == "Subject00"
    probe = neuroatlas.NeuroAtlasProbe(Remember()).fit(X[~is_test], y[~is_test])
    excluded = {*probe.validation_subjects_, "Subject00"}
    assert probe.transformer_.subjects_ == {*groups.tolist()} - excluded
    assert len(excluded) == 4


def test_concatenated_tokens_average_to_the_features_of_the_embedder(sample, monkeypatch):
    """The script of the results has the features that NeuroAtlas calls token flattening."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs" / "experiments")
    from eegmat_neuroatlas import ConcatenatedTokens

    X = sample[0][:3]
    tokens = ConcatenatedTokens(encoder="small", verbose=0).fit_transform(X)
    tokens = tokens.reshape(3, 8, 10, 128)  # windows, channels, seconds, features
    expected = PARSEmbedder(encoder="small", verbose=0).fit(X).transform(X).reshape(3, 8, 128)
    np.testing.assert_allclose(tokens.mean(axis=2), expected, atol=1e-5)
    assert np.abs(np.diff(tokens, axis=2)).max() > 0.1


def test_unknown_subjects_are_an_error():
    X = np.zeros((4, 1, 4), np.float32)
    with pytest.raises(ValueError, match="NeuroAtlasProbe"):
        neuroatlas.NeuroAtlasProbe(Row()).fit(X, [0, 1, 0, 1])
