"""Flat channels: left out of a vote as missing ones are, or warned of."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from braindecode.datasets import RawDataset
from sklearn.base import clone
from support.small_estimators import classifier, embedder

from braindecode_pars import FewLabelsClassifier, PatchEncoder
from braindecode_pars.estimators import LinearProbe
from braindecode_pars.evaluation import LogBandPower, SpatialCovariance
from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows.amplitudes import warn_of_amplitudes
from braindecode_pars.windows.convert import as_windows

CHANNELS = ["C3", "Cz", "C4", "Pz"]


@pytest.fixture(scope="module")
def rhythm():
    """Windows whose second class has a rhythm of 10 Hz in all channels, and their subjects."""
    rng, y = np.random.default_rng(0), np.arange(96) % 2
    phases = rng.uniform(0, 6, (96, 1, 1))
    rhythm = np.sin(2 * np.pi * 10 * np.arange(256) / 128 + phases)
    X = rng.normal(size=(96, 4, 256)) + 1.5 * y[:, None, None] * rhythm
    return (1e-5 * X).astype(np.float32), y, np.arange(96) // 24


@pytest.fixture(scope="module")
def fitted(rhythm):
    """Ensembles that were fitted to two subjects, by their centering."""
    X, y, groups = (part[:48] for part in rhythm)
    few = FewLabelsClassifier(sfreq=128.0, verbose=0)
    return {
        recenter: clone(few).set_params(recenter=recenter).fit(X, y, groups=groups)
        for recenter in (None, "subject")
    }


@pytest.mark.parametrize("recenter", [None, "subject"])
def test_a_flat_channel_does_not_vote(rhythm, fitted, recenter):
    X, y, groups = rhythm
    clf = fitted[recenter]
    for value, n_flat in ((0.0, 1), (3e-5, 3)):
        flat = X[48:].copy()
        flat[:, :n_flat] = value
        with pytest.warns(UserWarning, match="are flat"):
            found = clf.predict(flat, groups=groups[48:])
        assert np.mean(found == y[48:]) > 0.9, (value, n_flat)


@pytest.mark.filterwarnings("ignore:Preprocessing of these windows differs")
def test_it_is_left_out_as_a_missing_one(rhythm):
    X, y, _ = rhythm
    events = np.column_stack([np.arange(96), np.zeros(96, int), y])

    def epochs(windows, names):
        info = mne.create_info(names, 128.0, "eeg")
        return mne.EpochsArray(windows, info, events[: len(windows)], verbose="error")

    clf = FewLabelsClassifier(verbose=0, recenter=None).fit(epochs(X, CHANNELS))
    flat = X[:12].copy()
    flat[:, 1] = 0
    with pytest.warns(UserWarning, match="are flat"):
        found = clf.predict_proba(epochs(flat, CHANNELS))
    with pytest.warns(UserWarning, match="Cz"):
        missing = clf.predict_proba(epochs(flat[:, [0, 2, 3]], ["C3", "C4", "Pz"]))
    # The flat channel counts in the amount by which the covariance is shrunk.
    np.testing.assert_allclose(found, missing, atol=0.02)


def test_a_flat_channel_in_some_windows_leaves_the_others_alone(rhythm, fitted):
    X = rhythm[0]
    clf = fitted[None]
    partly = X[48:].copy()
    partly[3, 2] = 0
    found, whole = clf.predict_proba(partly), clf.predict_proba(X[48:])
    assert np.array_equal(np.delete(found, 3, 0), np.delete(whole, 3, 0))
    assert found[3].argmax() == whole[3].argmax()
    assert not np.array_equal(found[3], whole[3])


def test_an_empty_window_gets_a_finite_vote(rhythm, fitted):
    X, y, groups = rhythm
    partly = X[48:].copy()
    partly[:6] = 0
    found = fitted["subject"].predict_proba(partly, groups=groups[48:])
    assert np.isfinite(found).all()
    assert np.mean(found.argmax(1)[6:] == y[54:]) > 0.9


@pytest.mark.parametrize(
    "model",
    [
        classifier(sfreq=128.0, pretext=None),
        LinearProbe(LogBandPower(sfreq=128.0)),
        SpatialCovariance(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_others_warn(rhythm, model, recwarn):
    X, y, _ = rhythm
    model.fit(X, y)
    assert not [w for w in recwarn if "are flat" in str(w.message)]
    flat = X[:8].copy()
    flat[:, 2] = 0
    use = getattr(model, "predict", None) or model.transform
    with pytest.warns(UserWarning, match=r"8 of 8 windows .*index 2"):
        use(flat)


@pytest.mark.parametrize(("value", "message"), [(0.0, "are flat"), (1e-5, "The mean of")])
def test_pretraining_on_nothing_is_warned_of(value, message):
    with pytest.warns(UserWarning, match=message):
        embedder(sfreq=100.0).fit(np.full((16, 2, 300), value, np.float32))


def test_flat_channels_of_a_store_are_warned_of(rhythm, tmp_path):
    samples = np.concatenate(rhythm[0][:40], axis=1)
    raw = mne.io.RawArray(samples, mne.create_info(CHANNELS, 128.0, "eeg"), verbose="error")
    raw.apply_function(lambda x: 0 * x, picks=["C3"])
    with pytest.warns(UserWarning, match="flat or clipped.*C3"):
        store = SignalStore.create(tmp_path / "flat", RawDataset(raw, {"subject": 1}), verbose=0)
    encoder = PatchEncoder(patch_size=128, embed_dim=16, num_layers=1)
    settings = PretrainingSettings("mae", epochs=1)
    with pytest.warns(UserWarning, match=r"32 of 32 windows .*index 0"):
        pretrain_encoder(encoder, store, settings, n_times=256, verbose=0)


def test_few_flat_windows_are_usual():
    noise = np.random.default_rng(0).normal(size=(40, 3, 200))
    noise[::8, 1] = 0
    warn_of_amplitudes(as_windows(noise))
    noise[::2, 1] = 1e-3 + 1e-12 * noise[::2, 1]  # what filters leave of a constant
    with pytest.warns(UserWarning, match="16 of 32 windows"):
        warn_of_amplitudes(as_windows(noise))
