"""EuclideanAlignment: the mean covariance of each subject's own windows becomes the identity."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import fractional_matrix_power
from sklearn.exceptions import NotFittedError
from support.short_windows import first_samples

from braindecode_pars import as_sklearn, datasets
from braindecode_pars.estimators import EuclideanAlignment
from braindecode_pars.windows.table import Windows

#: Subjects that take turns, of types that cannot be sorted together.
MIXED = np.array([1, "1", "b", 1, "b", "1"] * 16, dtype=object)


@pytest.fixture(scope="module")
def nights(whole_nights):
    """Their windows of three seconds."""
    return first_samples(whole_nights, 300)


@pytest.fixture(scope="module")
def array(nights):
    return np.stack([nights[i][0] for i in range(96)]).astype(float)


def read(windows: Windows) -> np.ndarray:
    return np.concatenate(list(windows.batches(64)))


def plain(array: np.ndarray, groups: np.ndarray) -> np.ndarray:
    aligned = np.zeros_like(array)
    for subject in dict.fromkeys(groups.tolist()):
        own = np.array([s == subject for s in groups.tolist()])
        covariance = sum(x @ x.T / x.shape[1] for x in array[own]) / own.sum()
        whitening = fractional_matrix_power(covariance * 1e12, -0.5) * 1e6  # in microvolts
        aligned[own] = [whitening @ x for x in array[own]]
    return aligned


def test_against_a_plain_recomputation(nights, array):
    X, y, groups = as_sklearn(nights)
    windows = EuclideanAlignment().fit_transform(X)
    np.testing.assert_allclose(read(windows), plain(array, groups), atol=1e-3)
    np.testing.assert_array_equal(windows.groups, groups)
    np.testing.assert_array_equal(windows.y, y)
    assert windows.sfreq == 100
    assert [ch["ch_name"] for ch in windows.chs_info] == nights.datasets[0].raw.ch_names
    windows = EuclideanAlignment().fit_transform(array, groups=MIXED)
    np.testing.assert_allclose(read(windows), plain(array, MIXED), atol=1e-3)


def test_directions_without_variance_stay_empty(array):
    referenced = array - array.mean(axis=1, keepdims=True)
    aligned = read(EuclideanAlignment().fit_transform(referenced, groups=MIXED))
    assert np.abs(aligned.sum(axis=1)).max() < 1e-3
    own = aligned[MIXED == "b"]
    covariance = np.mean([x @ x.T / x.shape[1] for x in own], axis=0)
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance), [0, 1, 1], atol=1e-4)
    array = array.copy()
    array[:, 1] = 0
    aligned = read(EuclideanAlignment().fit_transform(array, groups=MIXED))
    assert np.abs(aligned[:, 1]).max() < 1e-9
    assert not read(EuclideanAlignment().fit_transform(0 * array, groups=MIXED)).any()


@pytest.mark.parametrize(("share", "is_kept"), [(1e-6, True), (1e-8, False)])
def test_a_direction_with_a_tiny_share_of_the_variance_is_noise(share, is_kept):
    noise = np.random.default_rng(0).normal(size=(20, 2, 300))
    array = 1e-5 * noise * np.array([1, share**0.5])[:, None]
    aligned = read(EuclideanAlignment().fit_transform(array, groups=np.zeros(20)))
    covariance = np.mean([x @ x.T / x.shape[1] for x in aligned], axis=0)
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance), [is_kept, 1], atol=1e-3)


def test_what_is_refused(nights, array):
    X = as_sklearn(nights)[0]
    with pytest.raises(NotFittedError):
        EuclideanAlignment().transform(X)
    with pytest.raises(ValueError, match="subject"):
        EuclideanAlignment().fit_transform(array)
    with pytest.raises(ValueError, match="subject 1 has 9"):
        EuclideanAlignment().fit_transform(X[:9])


def test_aligned_signals_have_no_unit():
    volts = datasets.mental_arithmetic(["Subject00"])
    aligned = EuclideanAlignment().fit_transform(volts)
    assert {known.scale for known in aligned.recordings["preprocessing"]} == {None}
