"""The state of torch in a program: its default type, and modes without gradients."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
import torch
from support.small_estimators import classifier, embedder

from braindecode_pars import FewLabelsClassifier, PARSClassifier, PARSRegressor
from braindecode_pars.estimators import LinearProbe, NetworkClassifier


@contextmanager
def default_double():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def mixed_precision():
    return torch.autocast("cpu", torch.bfloat16)


def another_device():
    return torch.device("meta")  # as torch.set_default_device("cuda")


STATES = [default_double, torch.inference_mode, torch.no_grad, mixed_precision, another_device]
QUICK = dict(sfreq=100.0, validation=0)
MODELS = {
    "pretrained": lambda: classifier(**QUICK),
    "numbers": lambda: PARSRegressor(
        None, **QUICK, finetune_epochs=1, embed_dim=16, num_layers=1, verbose=0, random_state=0
    ),
    "network": lambda: NetworkClassifier(
        sfreq=100.0, finetune_epochs=1, verbose=0, random_state=0, class_weight={0: 2.0}
    ),
    "feature ensemble": lambda: FewLabelsClassifier(
        EMBEDDER, sfreq=100.0, verbose=0, recenter=None
    ),
    "probe": lambda: LinearProbe(embedder(sfreq=100.0)),
}
X = 1e-5 * np.random.default_rng(0).normal(size=(12, 2, 300)).astype(np.float32)
Y = np.arange(12) % 2
EMBEDDER = embedder(sfreq=100.0, pretext=None).fit(X)


@cache
def plain(name):
    return MODELS[name]().fit(X, Y)


@contextmanager
def double_inference():
    with default_double(), torch.inference_mode():
        yield


#: Each model in two states at once, and one model in each: all of a model is in one context.
PAIRS = [(name, double_inference) for name in MODELS]
PAIRS += [("pretrained", state) for state in STATES]


@pytest.mark.parametrize(("name", "state"), PAIRS)
def test_fit_and_predict_are_those_of_any_state(name, state):
    expected = plain(name)
    with state():
        before = torch.get_default_dtype(), torch.is_inference_mode_enabled()
        found = MODELS[name]().fit(X, Y)
        predicted = found.predict(X)
        assert (torch.get_default_dtype(), torch.is_inference_mode_enabled()) == before
    np.testing.assert_array_equal(predicted, expected.predict(X))
    np.testing.assert_array_equal(expected.predict(X), found.predict(X))


@pytest.mark.parametrize("name", ["pretrained", "network"])
def test_fits_in_threads_are_those_of_one_thread(name):
    expected = plain(name).predict_proba(X)
    with default_double(), ThreadPoolExecutor(3) as threads:
        before = torch.get_rng_state()
        fits = [threads.submit(lambda: MODELS[name]().fit(X, Y).predict_proba(X)) for _ in range(3)]
        found = [fit.result() for fit in fits]
        assert torch.get_default_dtype() == torch.float64
    assert torch.equal(torch.get_rng_state(), before)
    for each in found:
        np.testing.assert_array_equal(each, expected)


@pytest.mark.parametrize("state", [default_double, torch.inference_mode, another_device])
def test_saved_models_load_in_any_state(state, tmp_path):
    fitted = plain("pretrained")
    fitted.save(tmp_path / "model")
    with state():
        loaded = PARSClassifier.load(tmp_path / "model")
        found = loaded.predict_proba(X)
    np.testing.assert_array_equal(found, fitted.predict_proba(X))
    assert loaded.chs_info_ is None  # arrays have no names
    assert {p.dtype for p in loaded.encoder_.parameters()} == {torch.float32}
    loaded.encoder_.tokenizer.requires_grad_(True)
