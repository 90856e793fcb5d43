"""fit and predict on random inputs: a result of the right shape, or a helpful error message."""

from __future__ import annotations

import signal
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import braindecode_pars
from braindecode_pars import PARSClassifier, PARSEmbedder

PACKAGE = str(Path(braindecode_pars.__file__).parent)
#: Files whose error messages are helpful: this package, and two modules of scikit-learn.
EXPLAINERS = (PACKAGE, "sklearn/utils/_param_validation.py", "sklearn/utils/multiclass.py")

DTYPES = ["float32", "float64", "float16", "int16", "int64", "uint8", "bool", "complex64", "object"]
SPECIAL = [0.0, 1e-30, 1e-6, 1.0, 1e6, 1e30, 3e38, np.nan, np.inf]
LABELS = [
    [0, 1],
    [0, 1, 2],
    ["a", "b"],
    [True, False],
    [-1, 1],
    [-1, 0, 1],
    [0.0, 1.0],
    [0.5, 1.5],
    [None, 1],
    ["a", 1],
    [7],
]


@st.composite
def windows(draw, min_windows=0):
    """Draw windows: usually plausible EEG, sometimes with odd shapes, types or values."""
    odd = draw(st.integers(0, 3)) == 0
    shape = (
        draw(st.integers(min_windows if odd else 6, 12)),
        draw(st.integers(0 if odd else 1, 4)),
        draw(st.sampled_from([0, 1, 2, 9, 10] if odd else [11, 30, 64, 100])),
    )
    # Samples: noise of some scale, sometimes with one special value or a constant channel.
    seed = draw(st.integers(0, 99))
    array = np.random.default_rng(seed).normal(size=shape)
    array *= draw(st.sampled_from(SPECIAL[1:7]))
    if array.size and draw(st.integers(0, 9)) == 0:
        array.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from(SPECIAL))
    if array.size and draw(st.integers(0, 4)) == 0:
        array[:, 0] = draw(st.sampled_from(SPECIAL[:7]))
    with np.errstate(all="ignore"):
        array = array.astype(draw(st.sampled_from(["float32"] * 30 + DTYPES)))
    # Container: array, tensor, list, or an array that torch cannot use directly.
    kind = draw(st.sampled_from(["numpy"] * 4 + ["tensor", "list", "tuples", "reversed", "flat"]))
    if kind == "tensor" and array.dtype != object:
        return torch.from_numpy(array)
    if kind == "list":
        return list(array)
    if kind == "tuples":
        return [(window, 0, i) for i, window in enumerate(array)]
    if kind == "flat" and len(array):
        return array[0]
    return array[:, ::-1, ::-1] if kind == "reversed" else array


SENSIBLE = {
    "pretext": ["pars", None],
    "sfreq": [10, None],
    "patch_seconds": [1.0, 0.3],
    "embed_dim": [8, 16],
    "num_layers": [1],
    "num_heads": [1, 2],
    "mlp_dim": [4],
    "pretrain_epochs": [1, 0],
    "pretrain_batch_size": [64, 1],
    "pretrain_lr": [1e-3],
}
ODD = {
    "pretext": ["parts", 3],
    "sfreq": [0.5, 100, -1],
    "patch_seconds": [0, 50, 1e-9],
    "embed_dim": [7, 1, 0],
    "num_layers": [0],
    "num_heads": [3],
    "mlp_dim": [0],
    "pretrain_epochs": [-1],
    "pretrain_lr": [1e30, 0],
}


@st.composite
def parameters(draw):
    """Draw valid parameters; in one example of four, one of them is invalid."""
    values = {name: draw(st.sampled_from(choices)) for name, choices in SENSIBLE.items()}
    if draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from(sorted(ODD)))
        values[name] = draw(st.sampled_from(ODD[name]))
    return values


@st.composite
def tuning(draw):
    return draw(
        st.fixed_dictionaries(
            {
                "finetune_epochs": st.sampled_from([1, 2]),
                "finetune_batch_size": st.sampled_from([1, 3, 32]),
                "channel_drop_prob": st.sampled_from([0.0, 0.5, 0.99]),
                "electrode_position": st.sampled_from([False] * 6 + [True]),
                "class_weight": st.sampled_from(["balanced", None, {0: 2.0}]),
                "validation": st.sampled_from([0.0, 0.2, 0.5, 0.99]),
                "unlabeled_label": st.sampled_from([-1, -1, None, "b"]),
            }
        )
    )


def explained(error: Exception) -> bool:
    """Return whether the error was raised on purpose, with a message: see EXPLAINERS."""
    innermost = traceback.extract_tb(error.__traceback__)[-1].filename
    return any(place in innermost for place in EXPLAINERS) and len(str(error)) > 20


def attempt(action):
    """Return the result, or None after an error with a helpful message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return action()
    except (ValueError, TypeError, NotFittedError) as error:
        if not explained(error):
            raise AssertionError(f"a raw {type(error).__name__}: {error}") from error
        return None


@pytest.fixture(autouse=True)
def time_limit():
    """Stop a test after five minutes; the whole file takes about one."""

    def stop(*_):
        raise TimeoutError("fit or predict did not finish in five minutes")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


many_examples = settings(
    max_examples=500,
    deadline=None,
    derandomize=True,  # the same examples in every run
    suppress_health_check=list(HealthCheck),
)


@many_examples
@given(
    windows(),
    parameters(),
    tuning(),
    st.sampled_from(LABELS[:4] * 3 + LABELS),
    windows(1),
    st.booleans(),
)
def test_classifier(X, shared, tuned, labels, other, with_groups):
    n = len(X)
    y = [labels[i % len(labels)] for i in range(n)]
    groups = np.arange(n) // 4 if with_groups else None
    clf = PARSClassifier(**shared, **tuned, random_state=0, verbose=0, device="cpu")
    if attempt(lambda: clf.fit(X, y, groups=groups)) is None:
        return
    proba = attempt(lambda: clf.predict_proba(X))
    if proba is None:  # the training diverged
        return
    assert proba.shape == (n, len(clf.classes_))
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-4)
    assert set(attempt(lambda: clf.predict(X)).tolist()) <= set(labels)
    # Other windows may have other channels and lengths.
    predicted = attempt(lambda: clf.predict_proba(other))
    if predicted is not None:
        assert predicted.shape == (len(other), len(clf.classes_))
        assert np.isfinite(predicted).all()


@many_examples
@given(windows(), parameters(), windows(1))
def test_embedder(X, shared, other):
    emb = PARSEmbedder(**shared, random_state=0, verbose=0, device="cpu")
    if attempt(lambda: emb.fit(X)) is None:
        return
    if attempt(lambda: emb.transform(X)) is None:
        return
    embedded = attempt(lambda: emb.transform(other))
    if embedded is not None:
        assert embedded.shape == (len(other), 2 * emb.encoder_.embed_dim)
        assert np.isfinite(embedded).all()
