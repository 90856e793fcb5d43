"""NetworkClassifier: braindecode models, trained like PARSClassifier."""

from __future__ import annotations

import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset
from support.montages import recording, windows_of
from torch.utils.data import Subset

from braindecode_pars import as_sklearn
from braindecode_pars.baselines.network import root_mean_square
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.windows.convert import as_windows


def network(**arguments) -> NetworkClassifier:
    return NetworkClassifier(
        **{"finetune_epochs": 1, "random_state": 0, "verbose": 0, "validation": 0.25, **arguments}
    )


@pytest.fixture(scope="module")
def recordings():
    """Four subjects of 24 windows; the class is on which side the rhythm is."""
    return BaseConcatDataset([windows_of(*recording(seed, 24), subject=seed) for seed in range(4)])


@pytest.fixture
def tones():
    """Return synthetic windows in volts: two classes (8 and 12 Hz in noise), four subjects."""
    rng = np.random.default_rng(0)
    y = np.arange(96) % 2
    t = np.arange(200) / 100
    signal = np.sin(2 * np.pi * np.where(y, 8, 12)[:, None] * t + 6 * rng.random((96, 1)))
    X = 2e-5 * (signal[:, None] + 0.5 * rng.normal(size=(96, 2, 200)))
    return X.astype(np.float32), np.array(["slow", "fast"])[1 - y], np.arange(96) // 24


def test_the_scale_is_the_root_mean_square():
    X = np.random.default_rng(1).normal(2, 3, size=(100, 2, 50)).astype(np.float32)
    assert root_mean_square(as_windows(X)) == pytest.approx(np.sqrt(np.mean(X**2)), rel=1e-5)
    assert root_mean_square(as_windows(0 * X)) == 1


def test_the_scale_comes_from_training_windows_only(tones):
    X, y, groups = tones
    clf = network(sfreq=100).fit(X, y, groups=groups)
    scale = clf.net_.module_.scale.item()
    # One of the four subjects is held out for validation.
    possible = [
        root_mean_square(as_windows(X[groups != held_out])) for held_out in np.unique(groups)
    ]
    assert any(scale == pytest.approx(value, rel=1e-6) for value in possible)
    assert scale != pytest.approx(root_mean_square(as_windows(X)), rel=1e-6)


def test_unlabeled_windows_are_ignored(recordings):
    X, y, _ = as_sklearn(recordings)
    some = np.where(np.arange(len(y)) < 72, y, -1)
    part = network(validation=0, unlabeled_label=-1).fit(X, some)
    whole = network(validation=0).fit(Subset(recordings, range(72)))
    np.testing.assert_array_equal(part.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"network": "EEGnet"}, "EEGnet"), ({"network_params": {"F3": 2}}, "F3")],
)
def test_bad_networks(recordings, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        network(**arguments).fit(recordings)


def half_a_second(sfreq: float) -> dict:
    return {"kernel_length": round(sfreq / 2)}


def test_arguments_that_depend_on_the_sampling_rate(recordings):
    clf = network(network="EEGNet", network_params=half_a_second).fit(recordings)
    assert clf.net_.module_.network.conv_temporal.kernel_size == (1, 50)
    same = network(network="EEGNet", network_params={"kernel_length": 50}).fit(recordings)
    np.testing.assert_array_equal(clf.predict_proba(recordings), same.predict_proba(recordings))
    array, y = np.stack([recordings[i][0] for i in range(8)]), [0, 1] * 4
    with pytest.raises(ValueError, match="sfreq"):
        network(network_params=half_a_second, validation=0).fit(array, y)
