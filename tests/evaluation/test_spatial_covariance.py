"""Covariances with shrinkage, against a plain computation and pyriemann called directly."""

from __future__ import annotations

import numpy as np
import pytest
from pyriemann.estimation import Covariances
from pyriemann.tangentspace import TangentSpace
from scipy.signal import butter, filtfilt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from braindecode_pars import as_sklearn
from braindecode_pars.evaluation import SpatialCovariance


@pytest.fixture(scope="module")
def array(nights):
    return np.stack([nights[i][0] for i in range(96)]).astype(float)


def shrunk(window: np.ndarray) -> np.ndarray:
    """Oracle approximating shrinkage: equation 23 of Chen et al. 2010, as scikit-learn reads it."""
    p, n = window.shape
    sample = np.cov(window, bias=True)
    target = np.trace(sample) / p
    alpha = (sample**2).mean()
    share = min(1.0, (alpha + target**2) / ((n + 1) * (alpha - target**2 / p)))
    return (1 - share) * sample + share * target * np.eye(p)


def test_covariances_against_a_plain_recomputation(nights, array):
    found = SpatialCovariance().fit_transform(nights)
    np.testing.assert_allclose(found, [shrunk(window) for window in array], rtol=1e-6)


def test_a_band_is_that_of_a_zero_phase_filter(nights, array):
    b, a = butter(4, (8, 30), btype="bandpass", fs=100)
    filtered = filtfilt(b, a, array, padlen=27)
    found = SpatialCovariance(band=(8, 30)).fit_transform(nights)
    np.testing.assert_allclose(found, [shrunk(window) for window in filtered], rtol=1e-5)


def test_the_pipeline_equals_pyriemann_called_directly(nights, array):
    X, y, _ = as_sklearn(nights)
    ours = make_pipeline(SpatialCovariance(), TangentSpace(), LogisticRegression(max_iter=1000))
    theirs = make_pipeline(
        Covariances("oas"), TangentSpace(), LogisticRegression(max_iter=1000)
    ).fit(array[:72], y[:72])
    np.testing.assert_allclose(
        ours.fit(X[:72], y[:72]).predict_proba(X[72:]), theirs.predict_proba(array[72:]), rtol=1e-4
    )


@pytest.mark.parametrize("kind", ["average reference", "flat channel", "flat window", "short"])
def test_covariances_of_any_rank_have_a_tangent_space(array, kind):
    windows = np.concatenate([array, array[::-1] ** 3 * 1e9], axis=1)[:40]  # 6 channels
    if kind == "average reference":
        windows -= windows.mean(axis=1, keepdims=True)
    elif kind == "flat channel":
        windows[:, 2] = 0
    elif kind == "flat window":
        windows[3] = 0
    else:
        windows = windows[:, :, :4]
    pipeline = make_pipeline(SpatialCovariance(), TangentSpace())
    assert np.isfinite(pipeline.fit_transform(windows)).all()
    assert np.linalg.eigvalsh(pipeline[0].transform(windows)).min() > 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(band=(30, 8)), ValueError, r"band .* \(30, 8\)"),
        (dict(band=(0, 8)), ValueError, "band"),
        (dict(band=(8,)), ValueError, "band"),
        (dict(band=("8", "30")), ValueError, "band"),
        (dict(band="8-30"), TypeError, "band .* '8-30'"),
        (dict(band=(8, 60)), ValueError, r"\(8, 60\) .* 50 Hz"),
        (dict(band=(8, 30), sfreq=None), ValueError, "sfreq"),
        (dict(sfreq=-1), ValueError, "sfreq .* -1"),
        (dict(channels="C3"), TypeError, "channels .* 'C3'"),
    ],
)
def test_wrong_arguments_are_refused(array, arguments, error, message):
    with pytest.raises(error, match=message):
        SpatialCovariance(**{"sfreq": 100, **arguments}).transform(array)


def test_windows_of_one_sample_are_refused(array):
    with pytest.raises(ValueError, match="one sample"):
        SpatialCovariance().transform(array[:, :, :1])
