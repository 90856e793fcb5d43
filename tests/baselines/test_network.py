"""NetworkClassifier: braindecode models, trained like PARSClassifier."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from braindecode.datasets import BaseConcatDataset
from braindecode.models import ShallowFBCSPNet
from braindecode.models.util import models_dict
from sklearn.metrics import balanced_accuracy_score
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


def test_a_network_learns_to_classify_two_frequencies(tones):
    X, y, groups = tones
    clf = network(sfreq=100, finetune_epochs=30, finetune_batch_size=16)
    clf.fit(X[:72], y[:72], groups=groups[:72])
    assert balanced_accuracy_score(y[72:], clf.predict(X[72:])) > 0.9
    assert clf.classes_.tolist() == ["fast", "slow"]
    np.testing.assert_allclose(clf.predict_proba(X[72:]).sum(axis=1), 1, rtol=1e-5)


def test_volts_and_microvolts_give_the_same_probabilities(tones):
    X, y, _ = tones
    volts = network(sfreq=100).fit(X, y).predict_proba(X)
    micro = network(sfreq=100).fit(X * 1e6, y).predict_proba(X * 1e6)
    np.testing.assert_allclose(volts, micro, atol=1e-4)


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
    [
        ({"network": "EEGnet"}, "EEGnet"),
        ({"network": torch.nn.Linear}, "network"),
        ({"network_params": {"F3": 2}}, "EEGNet"),
    ],
)
def test_bad_networks(recordings, arguments, message):
    with pytest.raises(ValueError, match=message):
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
    with pytest.raises(ValueError, match="EEGNet"):
        network(network_params=lambda sfreq: sfreq).fit(recordings)


def test_windows_of_another_shape_or_rate_raise(recordings, tones):
    clf = network().fit(recordings)
    with (
        pytest.raises(ValueError, match=r"\(2, 200\).* \(4, 300\)"),
        pytest.warns(UserWarning, match=r"200 samples.* 300 samples"),
    ):
        clf.predict(tones[0])
    clf.sfreq_ = 200.0
    with pytest.raises(ValueError, match=r"100 Hz.* 200 Hz"):
        clf.predict(recordings)


def test_fit_does_not_change_the_labels_of_the_caller(recordings):
    labels = np.array(["W", "N"] * 48)
    windows = as_windows(recordings, labels)
    clf = network().fit(windows)
    assert windows.y.tolist() == labels.tolist()
    assert clf.classes_.tolist() == ["N", "W"]


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize(("network", "n_times"), [("CBraMod", 401), ("LUNA", 250)])
def test_windows_that_patches_do_not_divide_are_refused(network, n_times):
    X = 1e-5 * np.random.default_rng(0).normal(size=(8, 3, n_times)).astype(np.float32)
    clf = NetworkClassifier(network, sfreq=100.0, finetune_epochs=1, verbose=0)
    # After version 1.8, these networks of braindecode pad the windows.
    if "on_non_divisible" in inspect.signature(models_dict[network]).parameters:
        with pytest.warns(UserWarning, match=rf"{n_times}.* padded"):
            clf.fit(X, np.arange(8) % 2)
        return
    with pytest.raises(ValueError, match=f"{network} does not accept .* {n_times} samples.*patch"):
        clf.fit(X, np.arange(8) % 2)


class Changed(ShallowFBCSPNet):
    """A network with another precision, or other outputs."""

    change = staticmethod(lambda logits: logits)  # also while it is built

    def __init__(self, *args, change, **kwargs):
        super().__init__(*args, **kwargs)
        self.double()
        self.change = change

    def forward(self, x):
        return self.change(super().forward(x))


def test_a_network_of_double_precision_is_trained(recordings):
    clf = network(network=Changed, network_params={"change": lambda x: x}).fit(recordings)
    assert {p.dtype for p in clf.net_.module_.parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda x: x[:, :1], r"\(\[\d+, 1\]\)"),
        (lambda x: x[..., None].repeat(1, 1, 5), r"\(\[\d+, 2, 5\]\)"),
        (lambda x: (x, x), "tuple"),
    ],
)
def test_outputs_that_are_no_logits_are_refused(recordings, change, found):
    with pytest.raises(ValueError, match=rf"Changed .*{found}"):
        network(network=Changed, network_params={"change": change}).fit(recordings)
