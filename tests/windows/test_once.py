"""Features of windows are computed once for all fits, where that is wanted."""

from __future__ import annotations

import numpy as np
import pytest
from support.small_runs import make_store

from braindecode_pars import FewLabelsClassifier, PARSEmbedder, PatchEncoder, as_sklearn, datasets
from braindecode_pars.evaluation import (
    LogBandPower,
    SpatialCovariance,
    features_computed_once,
)


@pytest.fixture(scope="module", name="X")
def recordings():
    X, _, groups = as_sklearn(datasets.mental_arithmetic(["Subject00", "Subject01"]))
    chosen = [np.flatnonzero(groups == subject)[:10] for subject in np.unique(groups)]
    return X[np.concatenate(chosen)]


def counted(transformer):
    """Return a transformer, and the numbers of windows whose features it computes."""
    name = "_measure_windows" if hasattr(transformer, "_measure_windows") else "_embedded"
    own, numbers = getattr(transformer, name), []

    def compute(windows):
        numbers.append(len(windows))
        return own(windows)

    setattr(transformer, name, compute)
    return transformer, numbers


def encoder():
    return PatchEncoder(128, embed_dim=8, num_layers=1, num_heads=2, mlp_dim=8)


SHARED = encoder()
MADE = {
    "band power": lambda: LogBandPower(),
    "relative band power": lambda: LogBandPower(power="relative"),
    "two channels": lambda: LogBandPower(channels=["Pz", "F3"]),
    "covariance": lambda: SpatialCovariance(),
    "encoder": lambda: PARSEmbedder(encoder=SHARED, verbose=0),
    "its tokens": lambda: PARSEmbedder(encoder=SHARED, layer=0, verbose=0),
    "over channels": lambda: PARSEmbedder(encoder=SHARED, pooling="mean_std", verbose=0),
    "another encoder": lambda: PARSEmbedder(encoder=OTHER, verbose=0),
}
OTHER = encoder()


def test_features_are_those_without_the_context_and_are_computed_once(X):
    order = np.random.default_rng(0).permutation(len(X))
    plain = {name: make().fit(X[order]).transform(X[order]) for name, make in MADE.items()}
    with features_computed_once():
        for name, make in MADE.items():
            make().fit(X[:7]).transform(X[:7])
            transformer, computed = counted(make())
            found = transformer.fit(X[:15]).transform(X[order])
            np.testing.assert_allclose(found, plain[name], rtol=1e-4, atol=1e-6, err_msg=name)
            transformer.transform(X)
            assert sum(computed) == len(X) - 7, name
    transformer, computed = counted(LogBandPower())
    transformer.fit(X).transform(X)
    assert sum(computed) == len(X)


def test_what_else_the_features_depend_on_is_told_apart(X):
    """Another rate, another architecture with the same weights, another length of a window."""
    array = np.stack([X[i][:6] for i in range(20)])
    y, groups = np.arange(20) % 2, np.repeat([1, 2], 10)
    four, two = (PatchEncoder(128, 8, 1, num_heads=n, mlp_dim=8) for n in (4, 2))
    two.load_state_dict(four.state_dict())
    settings = dict(views=["encoder", "band_power"], C=0.1, verbose=0)

    def found():
        votes = [
            FewLabelsClassifier(encoder, sfreq=sfreq, **settings).fit(array, y, groups=groups)
            for encoder, sfreq in ((four, 128), (four, 100), (two, 128))
        ]
        return [clf.predict_proba(array, groups=groups) for clf in votes]

    expected = found()
    with features_computed_once():
        for one, other in zip(found(), expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
    assert not np.allclose(expected[0], expected[2], atol=1e-4)


def test_windows_of_two_lengths_that_begin_together(tmp_path):
    store = make_store(tmp_path / "store", (20,))
    short, long = store.windows(300), store.windows(600)
    expected = [LogBandPower().fit(x).transform(x) for x in (short, long)]
    with features_computed_once():
        for x, features in zip((short, long), expected, strict=True):
            np.testing.assert_allclose(LogBandPower().fit(x).transform(x), features, rtol=1e-6)
