"""Predictions depend on the names of channels, not on their place in the file."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support import montages
from support.montages import NAMES, windows_of
from support.small_estimators import classifier, embedder

from braindecode_pars import as_sklearn
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.evaluation import LogBandPower


def recording(seed: int) -> tuple[mne.io.RawArray, np.ndarray]:
    """Return a recording of 16 windows, and their classes."""
    return montages.recording(seed, n_windows=16)


def shallow(**arguments):
    return NetworkClassifier(
        "ShallowFBCSPNet", validation=0, random_state=0, verbose=0, **arguments
    )


def band_power(**arguments):
    probe = LogisticRegression(max_iter=1000)
    return make_pipeline(LogBandPower(**arguments), StandardScaler(), probe)


def probe(**arguments):
    return make_pipeline(embedder(pretext=None, **arguments), LogisticRegression(max_iter=1000))


#: Name -> function that makes the estimator.
METHODS = {
    "PARSClassifier": lambda **a: classifier(pretext=None, validation=0, **a),
    "PARSClassifier with filters": lambda **a: classifier(
        pretext=None, validation=0, head="both", amplitude=True, **a
    ),
    "PARSEmbedder": probe,
    "NetworkClassifier": lambda **a: shallow(finetune_epochs=1, **a),
    "LogBandPower": band_power,
}
#: Methods that need every channel of the fit.
FIXED = ("PARSEmbedder", "NetworkClassifier", "LogBandPower")


@pytest.fixture(scope="module")
def train():
    return BaseConcatDataset([windows_of(*recording(seed), seed) for seed in (1, 2)])


@pytest.fixture(scope="module")
def fitted(train):
    X, y, _ = as_sklearn(train)
    return {name: make().fit(X, y) for name, make in METHODS.items()}


def permuted(raw):
    return raw.copy().reorder_channels(["Pz", "C4", "C3", "Cz"])


def renamed(raw):
    return permuted(raw).rename_channels({"C3": "EEG C3-REF", "Cz": "Cz..", "C4": "c4"})


def with_channels(raw, kinds: dict[str, str]):
    """Add loud channels, the first one in front of all others."""
    noise = np.random.default_rng(0).normal(size=(len(kinds), raw.n_times))
    info = mne.create_info(list(kinds), raw.info["sfreq"], list(kinds.values()))
    raw = raw.copy().add_channels([mne.io.RawArray(noise, info, verbose="error")])
    first, *_ = kinds
    return raw.reorder_channels([first, *(name for name in raw.ch_names if name != first)])


CHANGES = {
    "permuted and renamed": renamed,
    "other signals by type": lambda raw: with_channels(raw, {"eye": "eog", "TRIG": "stim"}),
    "by name, and another electrode": lambda raw: with_channels(raw, {"EOG1": "eeg", "Oz": "eeg"}),
}


@pytest.mark.parametrize("method", METHODS)
def test_predictions_do_not_depend_on_the_place_of_a_channel(fitted, method):
    raw, y = recording(3)
    expected = fitted[method].predict_proba(as_sklearn(windows_of(raw, y))[0])
    for name, change in CHANGES.items():
        found = fitted[method].predict_proba(as_sklearn(windows_of(change(raw), y))[0])
        np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_model_is_fitted_whatever_the_order_and_the_other_channels(fitted, method):
    raws = [recording(seed) for seed in (1, 2)]
    changed = BaseConcatDataset(
        [
            windows_of(with_channels(raws[0][0], {"TRIG": "stim", "SpO2": "eeg"}), raws[0][1], 1),
            windows_of(permuted(raws[1][0]), raws[1][1], 2),
        ]
    )
    with pytest.warns(UserWarning, match="TRIG, SpO2") as caught:
        model = METHODS[method]().fit(*as_sklearn(changed)[:2])
    assert len([w for w in caught if "not EEG" in str(w.message)]) <= 2  # fit and transform
    test = as_sklearn(windows_of(*recording(3)))[0]
    np.testing.assert_allclose(
        model.predict_proba(test), fitted[method].predict_proba(test), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_channel(fitted, method):
    """Models of a fixed montage refuse it. PARS has one token per channel, and uses the others."""
    raw, y = recording(3)
    without = raw.copy().drop_channels(["C4"])
    raw.info["bads"] = ["C4"]
    X = as_sklearn(windows_of(raw, y))[0]
    message = "C4 .*16 of 16"
    if method in FIXED:
        with pytest.raises(ValueError, match=f"{message}.*fitted on {', '.join(NAMES)}"):
            fitted[method].predict(X)
        return
    with pytest.warns(UserWarning, match=message):
        predicted = fitted[method].predict_proba(X)
    with pytest.warns(UserWarning, match="C4"):
        expected = fitted[method].predict_proba(as_sklearn(windows_of(without, y))[0])
    np.testing.assert_array_equal(predicted, expected)


@pytest.mark.parametrize("method", ["PARSClassifier", "PARSClassifier with filters"])
def test_a_recording_is_predicted_alike_beside_others(fitted, method):
    whole, y = recording(3)
    partial = whole.copy().drop_channels(["Cz"])
    both = BaseConcatDataset([windows_of(partial, y), windows_of(whole, y)])
    with pytest.warns(UserWarning, match="16 of 32"):
        predicted = fitted[method].predict_proba(both)
    expected = fitted[method].predict_proba(windows_of(whole, y))
    np.testing.assert_array_equal(predicted[16:], expected)
    assert not np.allclose(predicted[:16], expected)


@pytest.mark.filterwarnings("ignore:The amplitude of some channels")  # they are loud
@pytest.mark.parametrize("method", ["PARSClassifier", "LogBandPower"])
def test_other_signals_are_used_on_request(method):
    raws = [recording(seed) for seed in (1, 2)]
    parts = [windows_of(with_channels(raw, {"EOG1": "eog"}), y, 1) for raw, y in raws]
    X, y, _ = as_sklearn(BaseConcatDataset(parts))
    model = METHODS[method](channels=["C3", "EOG1"]).fit(X, y)
    first = model[0] if hasattr(model, "steps") else model
    assert [ch["ch_name"] for ch in first.chs_info_] == ["C3", "EOG1"]
    assert model.predict(X).shape == y.shape
