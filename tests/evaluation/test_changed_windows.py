"""Windows that lack one thing, from arrays and recordings, in pipelines."""

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset
from braindecode.preprocessing import create_fixed_length_windows
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from braindecode_pars import as_sklearn, datasets
from braindecode_pars.evaluation import ChangedSignals, LogBandPower, features_computed_once
from braindecode_pars.evaluation.cache import describe_estimator
from braindecode_pars.evaluation.changed_signals import (
    CHANGES,
    SHAM,
    detrended,
    equal_amplitudes,
    eye_coefficients,
    high_passed,
    random_phases,
    shuffled_patches,
    without_aperiodic,
    without_eyes,
)
from braindecode_pars.windows.door import as_windows

SFREQ = 100.0
NAMES = ["Fp1", "Fp2", "F7", "F8", "Cz", "Oz"]


def recording(ch_names, ch_types="eeg", seconds=20.0, seed=0, subject=1):
    """Return a recording of noise with slow waves that all channels share, cut into windows."""
    rng = np.random.default_rng(seed)
    n_times = round(seconds * SFREQ)
    slow = np.cumsum(rng.normal(size=(2, n_times)), axis=1)
    slow -= slow.mean(axis=1, keepdims=True)
    signals = rng.normal(size=(len(ch_names), n_times)) + rng.normal(size=(len(ch_names), 2)) @ slow
    info = mne.create_info(ch_names, SFREQ, ch_types)
    raw = mne.io.RawArray(1e-6 * signals, info, verbose=False)
    whole = RawDataset(raw, {"subject": subject})
    size = dict(window_size_samples=200, window_stride_samples=200, on_last_window="drop")
    return create_fixed_length_windows(BaseConcatDataset([whole]), **size)


@pytest.mark.parametrize("control", [*CHANGES, SHAM])
def test_arrays_are_changed_by_the_function_of_the_control(control):
    X = np.random.default_rng(0).normal(size=(5, 6, 250)).astype(np.float32)
    windows = as_windows(X, groups=[1, 1, 1, 2, 2], sfreq=SFREQ)
    if control == "eyes":
        with pytest.raises(ValueError, match=r"no EOG channel and no pair of frontal.*none with a"):
            ChangedSignals("eyes").transform(windows)
        return
    expected = {
        "slow": lambda: high_passed(X, SFREQ, 5.0),
        "detrended": lambda: detrended(X, 50),
        "phase": lambda: random_phases(X, 7),
        "aperiodic": lambda: without_aperiodic(X.astype(float), SFREQ),
        "sham": lambda: X,
        "amplitude": lambda: equal_amplitudes(X),
        "order": lambda: shuffled_patches(X, 50, 7),
    }[control]()
    changed = ChangedSignals(control, edge=5, patch_seconds=0.5, random_state=7).transform(windows)
    atol = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(np.array(changed), expected, rtol=1e-4, atol=atol)
    np.testing.assert_array_equal(changed.subjects, [1, 1, 1, 2, 2])


def test_a_recording_is_filtered_before_it_is_cut():
    windows = recording(NAMES)
    raw = windows.datasets[0].raw
    filtered = high_passed(raw.get_data()[None], SFREQ)[0]
    changed = ChangedSignals("slow").transform(as_windows(windows)[1:])
    np.testing.assert_allclose(changed[0], filtered[:, 200:400], atol=1e-11)
    # Windows that are not read from it as it is are filtered one by one.
    windows.datasets[0].transform = lambda x: 2 * x
    changed = ChangedSignals("slow").transform(windows)
    expected = high_passed(2 * raw.get_data()[None, :, 200:400], SFREQ)[0]
    np.testing.assert_allclose(changed[1], expected, atol=1e-11)


def test_eog_channels_come_before_frontal_ones():
    windows = recording([*NAMES, "EOG"], ["eeg"] * 6 + ["eog"])
    signals = windows.datasets[0].raw.get_data()
    changed = ChangedSignals("eyes").transform(windows)
    expected = without_eyes(signals[None, :6], signals[None, 6:])[0]
    np.testing.assert_allclose(changed[0][:6], expected[:, :200], atol=1e-10)


def pairs_of(x):
    return np.stack([x[0] - x[1], x[0] + x[1], x[2] - x[3], x[2] + x[3]])


def test_each_subject_has_a_regression_of_all_own_recordings():
    parts = [recording(NAMES, seed=seed, subject=who) for seed, who in enumerate([1, 2, 1])]
    joined = BaseConcatDataset([part.datasets[0] for part in parts])
    changed = ChangedSignals("eyes").transform(joined)
    signals = [part.datasets[0].raw.get_data() for part in parts]
    for own, which in (([0, 2], 2), ([1], 1)):
        flat = np.concatenate([signals[i] for i in own], axis=1)
        eyes = pairs_of(flat)
        coefficients = eye_coefficients(flat[None], eyes[None])
        others = pairs_of(signals[which]) - eyes.mean(axis=1, keepdims=True)
        expected = signals[which] - coefficients @ others
        np.testing.assert_allclose(changed[10 * which][4:], expected[4:, :200], atol=1e-10)
        # As a regression on the frontal channels themselves
        design = np.column_stack([flat[:4].T, np.ones(flat.shape[1])])
        weights = np.linalg.lstsq(design, flat[4:].T)[0][:4]
        left = signals[which][4:] - weights.T @ (signals[which][:4] - flat[:4].mean(1)[:, None])
        np.testing.assert_allclose(changed[10 * which][4:], left[:, :200], atol=1e-10)
        assert not changed[10 * which][:4].any()


def test_one_frontal_pair_is_enough_and_half_a_pair_is_not():
    pair = ChangedSignals("eyes").transform(recording(["F7", "F8", "Fp1", "Cz"]))
    assert not pair[0][:2].any()
    assert pair[0][2:].any(axis=1).all()
    with pytest.raises(ValueError, match="channels are F7, Fp2, Cz"):
        ChangedSignals("eyes").transform(recording(["F7", "Fp2", "Cz"]))
    bad = recording(["Fp1.", "EEG FP2-REF", "F7", "F8", "Cz"])
    bad.datasets[0].raw.info["bads"] = ["F8"]
    assert not ChangedSignals("eyes").transform(bad)[0][:2].any()
    assert ChangedSignals("eyes").transform(bad)[0][2:].any(axis=1).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(control="blinks"), ValueError, "control must be one of 'slow', 'detrended'"),
        (dict(edge="7"), TypeError, "edge must be a positive number"),
        (dict(edge=50.0), ValueError, "edge=50 Hz is not below half of the sampling rate, 100 Hz"),
        (dict(control="order", patch_seconds=2), ValueError, "no two patches of 200 samples"),
        (dict(control="phase", random_state=None), TypeError, "random_state must be an integer"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    X = np.random.default_rng(0).normal(size=(2, 2, 300))
    with pytest.raises(error, match=message):
        ChangedSignals(**{"sfreq": 100, **arguments}).transform(X)


@pytest.mark.parametrize("control", ["slow", "aperiodic", "order"])
def test_an_unknown_rate_is_named(control):
    with pytest.raises(ValueError, match=f"rate of the windows is unknown, which '{control}'"):
        ChangedSignals(control).transform(np.zeros((2, 2, 300)))


def test_in_a_pipeline_windows_do_not_depend_on_the_batch():
    X, y, _ = as_sklearn(datasets.mental_arithmetic(["Subject00", "Subject01"]))
    for control in ("slow", "detrended", "phase", "aperiodic", "amplitude", "order"):
        features = make_pipeline(ChangedSignals(control), LogBandPower())
        whole = clone(features).fit(X).transform(X)
        np.testing.assert_allclose(features.fit(X[:3]).transform(X[5:8]), whole[5:8], rtol=1e-5)
        with features_computed_once():
            np.testing.assert_allclose(features.transform(X[5:8]), whole[5:8], rtol=1e-5)
            np.testing.assert_allclose(features.transform(X), whole, rtol=1e-5)
    probe = make_pipeline(ChangedSignals("phase"), LogBandPower(), LogisticRegression(C=1e-3))
    assert probe.fit(X, y).predict(X).shape == y.shape


def test_windows_of_several_lengths_are_changed():
    X = [np.random.default_rng(0).normal(size=(2, n)) for n in (200, 300)]
    changed = ChangedSignals("aperiodic").transform(as_windows(X, sfreq=SFREQ))
    assert [window.shape for window in changed] == [(2, 200), (2, 300)]


def test_a_saved_fold_of_another_change_is_not_used_again():
    described = [describe_estimator(make_pipeline(ChangedSignals(name))) for name in CHANGES]
    described.append(describe_estimator(make_pipeline(ChangedSignals("slow", edge=6.0))))
    assert len({str(each) for each in described}) == len(CHANGES) + 1
