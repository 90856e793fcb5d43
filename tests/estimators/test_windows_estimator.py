"""Fits draw from states of their own, and what is checked of windows and outputs."""

from __future__ import annotations

import random

import mne
import numpy as np
import pytest
import torch
from braindecode.datasets import BaseConcatDataset, RawDataset
from braindecode.preprocessing import create_windows_from_events
from sklearn.base import clone
from sklearn.utils import check_random_state
from support.small_estimators import classifier, embedder

from braindecode_pars import PARSEmbedder, as_sklearn
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.estimators.windows_estimator import (
    check_finite,
    check_fit_windows,
    fresh_fit,
    seeded_fit,
)


def test_an_output_that_is_not_finite_is_refused():
    assert check_finite(torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(ValueError, match="finite"):
        check_finite(torch.tensor([1.0, float("nan")]))


def test_a_fit_forgets_the_one_before():
    estimator = PARSEmbedder()
    estimator.old_ = 1
    with fresh_fit(estimator):
        assert not hasattr(estimator, "old_")


def test_stages_have_seeds_of_their_own():
    draws = []
    for _ in range(2):
        with seeded_fit(PARSEmbedder(random_state=0, device="cpu")) as seeds:
            draws.append((*seeds, torch.rand(()).item()))
    assert draws[0] == draws[1]
    assert len(set(seeds)) == 3


def global_states() -> list:
    numpy = check_random_state(None).get_state()
    return [torch.get_rng_state().tolist(), repr(numpy), random.getstate()]


def weights(estimator) -> list[torch.Tensor]:
    trained = estimator.net_.module_ if hasattr(estimator, "net_") else estimator.encoder_
    return list(trained.state_dict().values())


X = 1e-5 * np.random.default_rng(0).normal(size=(12, 2, 300)).astype(np.float32)
MODELS = {
    "classifier": lambda: classifier(sfreq=100.0),
    "embedder": lambda: embedder(sfreq=100.0),
    "network": lambda: NetworkClassifier(
        "EEGNet", sfreq=100.0, finetune_epochs=1, random_state=0, verbose=0
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_neither_reads_nor_changes_global_states(name):
    before, estimator, y = global_states(), MODELS[name](), np.arange(12) % 2
    expected = weights(clone(estimator).fit(X, y))
    assert global_states() == before
    torch.manual_seed(99)
    check_random_state(None).seed(99)
    random.seed(99)
    for found, one in zip(weights(estimator.fit(X, y)), expected, strict=True):
        assert torch.equal(found, one)


def test_windows_of_braindecode_in_bad_times_are_counted():
    noise = 1e-5 * np.random.default_rng(0).standard_normal((1, 4000))
    raw = mne.io.RawArray(noise, mne.create_info(["C3"], 100.0, "eeg"), verbose="error")
    notes = mne.Annotations([0, 20, 9, 31], [20, 20, 2, 1], ["a", "b", "BAD_move", "bad"])
    recording = RawDataset(raw.set_annotations(notes), {"subject": 1})
    cut = dict(window_size_samples=500, window_stride_samples=500, mapping={"a": 0, "b": 1})
    windows = create_windows_from_events(BaseConcatDataset([recording]), **cut)
    X = as_sklearn(windows)[0]
    with pytest.warns(UserWarning, match='3 of 8 windows .*"BAD"'):
        check_fit_windows(X)
    with pytest.warns(UserWarning, match='2 of 4 windows .*"BAD"'):
        check_fit_windows(X[:4])
