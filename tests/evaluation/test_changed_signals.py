"""Windows that lack one thing: each change against a slow recomputation, and from any source."""

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset
from braindecode.preprocessing import create_fixed_length_windows
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from braindecode_pars import as_sklearn, datasets
from braindecode_pars.evaluation import ControlSignals, LogBandPower, features_computed_once
from braindecode_pars.evaluation.changed_signals import (
    CHANGES,
    SHAM,
    detrended,
    equal_amplitudes,
    eye_coefficients,
    high_passed,
    permuted_labels,
    random_phases,
    shuffled_patches,
    without_aperiodic,
    without_eyes,
)
from braindecode_pars.windows.convert import as_windows

SFREQ = 100.0


@pytest.fixture
def X():  # noqa: N802
    """Four windows of three channels, with an offset and a linear trend."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(4, 3, 250)) + 2 + np.linspace(0, 3, 250)


# Functions of arrays ------------------------------------------------------------------------


@pytest.mark.parametrize("frequency", [3.0, 7.0, 12.0])
def test_the_high_pass_filter_matches_its_equation(frequency):
    times = np.arange(3000) / SFREQ
    sine = np.sin(2 * np.pi * frequency * times)
    ratio = np.tan(np.pi * 7.0 / SFREQ) / np.tan(np.pi * frequency / SFREQ)
    result = high_passed(sine[None, None], SFREQ, edge=7.0)[0, 0]
    middle = slice(1000, 2000)
    np.testing.assert_allclose(result[middle], sine[middle] / (1 + ratio**8), atol=1e-6)
    # Also in a window that is shorter than the padding
    assert np.isfinite(high_passed(sine[None, None, :20], SFREQ)).all()


@pytest.mark.parametrize("patch_size", [None, 60])
def test_linear_trends_match_polyfit(X, patch_size):
    expected = X.copy()
    for window in expected:
        for channel in window:
            for start in range(0, 250, patch_size or 250):
                patch = channel[start : start + (patch_size or 250)]
                times = np.arange(len(patch))
                patch -= np.polyval(np.polyfit(times, patch, 1), times)
    np.testing.assert_allclose(detrended(X, patch_size), expected, atol=1e-9)


def test_eye_movements_are_regressed_as_in_mne():
    rng = np.random.default_rng(0)
    signals = np.cumsum(rng.normal(size=(4, 2000)), axis=1) @ np.diag(rng.uniform(size=2000)) * 1e-6
    info = mne.create_info(["Cz", "Oz", "H", "V"], SFREQ, ["eeg", "eeg", "eog", "eog"])
    raw = mne.io.RawArray(signals, info, verbose=False)
    raw.set_eeg_reference("average", verbose=False)
    signals = raw.get_data()
    by_mne = mne.preprocessing.EOGRegression(picks="eeg", picks_artifact="eog").fit(raw)
    coefficients = eye_coefficients(signals[None, :2], signals[None, 2:])
    np.testing.assert_allclose(coefficients, by_mne.coef_, rtol=1e-6)
    mean = signals[2:].mean(axis=1, keepdims=True)
    result = without_eyes(signals[None, :2], signals[None, 2:], coefficients, mean)[0]
    np.testing.assert_allclose(result, by_mne.apply(raw).get_data("eeg"), atol=1e-12)


@pytest.mark.parametrize("n_times", [40, 41])
def test_phases_change_and_amplitudes_do_not(n_times):
    X = np.random.default_rng(1).normal(size=(2, 3, n_times)) + 1
    changed = random_phases(X, 3)
    times = np.arange(n_times)
    for k in range(n_times):
        wave = np.exp(-2j * np.pi * k * times / n_times)
        before, after = X @ wave, changed @ wave  # (n, n_chans)
        np.testing.assert_allclose(abs(after), abs(before), atol=1e-9)
        rotated = after / before
        np.testing.assert_allclose(rotated, rotated[:, :1] * np.ones(3))  # the same in all channels
        if k in (0, n_times / 2):
            np.testing.assert_allclose(rotated.imag, 0, atol=1e-9)
    assert not np.allclose(changed, X)


def test_phases_are_uniform_and_signs_are_random():
    X = np.random.default_rng(1).normal(size=(400, 1, 20)) + 1
    rotated = np.fft.rfft(random_phases(X))[:, 0] / np.fft.rfft(X)[:, 0]
    assert abs(rotated[:, 5].mean()) < 0.15
    assert abs((rotated[:, 0].real > 0).mean() - 0.5) < 0.1
    assert abs((rotated[:, 10].real > 0).mean() - 0.5) < 0.1


def test_amplitudes_are_equal(X):
    X[1, 2] = 3.0  # a flat channel
    changed = equal_amplitudes(X)
    for before, after in zip(X.reshape(12, -1), changed.reshape(12, -1), strict=True):
        spread = np.sqrt(np.mean((before - before.mean()) ** 2))
        np.testing.assert_allclose(after, before * 1e-5 / spread if np.ptp(before) else 0)


def test_patches_are_the_same_in_another_order(X):
    changed = shuffled_patches(X, 60)
    orders = set()
    for before, after in zip(X, changed, strict=True):
        np.testing.assert_array_equal(after[:, 240:], before[:, 240:])
        pieces = [before[:, start : start + 60] for start in range(0, 240, 60)]
        result = [after[:, start : start + 60] for start in range(0, 240, 60)]
        order = [next(i for i, p in enumerate(pieces) if np.array_equal(p, f)) for f in result]
        assert sorted(order) == [0, 1, 2, 3]
        orders.add(tuple(order))
    assert len(orders) > 1
    with pytest.raises(ValueError, match=r"250 samples.* 126 samples"):
        shuffled_patches(X, 126)


@pytest.mark.parametrize("change", [random_phases, lambda X, s: shuffled_patches(X, 60, s)])
def test_random_changes_depend_on_the_window_and_the_seed_only(X, change):
    np.testing.assert_array_equal(change(X[[2, 0]], 1), change(X, 1)[[2, 0]])
    assert not np.array_equal(change(X, 1), change(X, 2))


def test_labels_are_permuted_within_subjects():
    y, subjects = np.arange(40) % 4, np.repeat(["a", "b"], 20)
    first, second = np.split(permuted_labels(y, subjects), 2)
    for own in (first, second):
        assert sorted(own) == sorted(y[:20])
        assert own.tolist() != y[:20].tolist()
    assert first.tolist() != second.tolist()  # each subject has another permutation


# The aperiodic part -------------------------------------------------------------------------------


def colored(exponent, shape=(2, 2, 260)):
    """Noise with a given aperiodic exponent, cut from longer noise, so it is not periodic."""
    white = np.fft.rfft(np.random.default_rng(0).standard_normal((*shape[:2], 4 * shape[2])))
    steps = np.maximum(np.arange(white.shape[-1]), 1)
    return 1e-5 * np.fft.irfft(white * steps ** (-exponent / 2))[..., : shape[2]]


def plain_line(x, sfreq=100):
    """Level and exponent of a channel: densities of segments, and medians over pairs."""
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(sfreq) / sfreq)
    densities = []
    for start in range(0, len(x) - sfreq + 1, sfreq // 2):
        segment = x[start : start + sfreq]
        spectrum = np.fft.rfft((segment - segment.mean()) * hann)
        densities.append(2 * np.abs(spectrum) ** 2 / (sfreq * np.sum(hann**2)))
    stop = min(41, sfreq // 2)  # below half of the rate
    log_p, log_f = np.log(np.mean(densities, axis=0)[2:stop]), np.log(np.arange(2, stop))
    pairs = [(i, j) for i in range(stop - 2) for j in range(i)]
    slope = np.median([(log_p[i] - log_p[j]) / (log_f[i] - log_f[j]) for i, j in pairs])
    return np.median(log_p - slope * log_f), -slope


@pytest.mark.parametrize("sfreq", [100, 60])
def test_the_aperiodic_part_is_divided_out_as_in_the_equation(sfreq):
    X = colored(1.5) + 3e-5
    result = without_aperiodic(X, float(sfreq))
    for window, changed in zip(X, result, strict=True):
        for x, new in zip(window, changed, strict=True):
            level, exponent = plain_line(x, sfreq)
            n = len(x)
            cosines = np.cos(np.pi / n * np.outer(np.arange(n), np.arange(n) + 0.5))
            cosines *= np.sqrt(np.where(np.arange(n) > 0, 2, 1) / n)[:, None]
            coefficients = cosines @ (x - x.mean())
            for k in range(1, n):
                f = k * sfreq / (2 * n)
                coefficients[k] *= 1e-5 * np.sqrt(2 / sfreq) / np.sqrt(np.exp(level) / f**exponent)
            np.testing.assert_allclose(new, cosines.T @ coefficients, atol=1e-12)


def test_the_sham_control_restores_the_signal(X):
    X[0, 0] = 5.0  # a flat channel
    for signals in (X, 1e-6 * X, colored(2.0)):
        sham = without_aperiodic(signals, SFREQ, put_back=True)
        np.testing.assert_allclose(sham, signals, atol=1e-6 * np.abs(signals).max())
    assert not without_aperiodic(X, SFREQ)[0, 0].any()


# Windows of any source ----------------------------------------------------------------------------

NAMES = ["Fp1", "Fp2", "F7", "F8", "Cz", "Oz"]


def recording(ch_names, ch_types="eeg", seconds=20.0, seed=0, subject=1):
    """Return windows of a noise recording with the same low-frequency waves in all channels."""
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
        with pytest.raises(ValueError, match=r"EOG channel.*Fp1 and Fp2.*unnamed"):
            ControlSignals("eyes").transform(windows)
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
    changed = ControlSignals(control, edge=5, patch_seconds=0.5, random_state=7).transform(windows)
    atol = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(np.array(changed), expected, rtol=1e-4, atol=atol)
    np.testing.assert_array_equal(changed.subjects, [1, 1, 1, 2, 2])


def test_a_recording_is_filtered_before_windowing():
    windows = recording(NAMES)
    raw = windows.datasets[0].raw
    filtered = high_passed(raw.get_data()[None], SFREQ)[0]
    changed = ControlSignals("slow").transform(as_windows(windows)[1:])
    np.testing.assert_allclose(changed[0], filtered[:, 200:400], atol=1e-11)
    # Windows that are not read from it as it is are filtered one by one.
    windows.datasets[0].transform = lambda x: 2 * x
    changed = ControlSignals("slow").transform(windows)
    expected = high_passed(2 * raw.get_data()[None, :, 200:400], SFREQ)[0]
    np.testing.assert_allclose(changed[1], expected, atol=1e-11)


def test_eog_channels_come_before_frontal_ones():
    windows = recording([*NAMES, "EOG"], ["eeg"] * 6 + ["eog"])
    signals = windows.datasets[0].raw.get_data()
    changed = ControlSignals("eyes").transform(windows)
    eeg, eog = signals[None, :6], signals[None, 6:]
    mean = eog.mean(axis=(0, 2))[:, None]
    expected = without_eyes(eeg, eog, eye_coefficients(eeg, eog), mean)[0]
    np.testing.assert_allclose(changed[0][:6], expected[:, :200], atol=1e-10)


def pairs_of(x):
    return np.stack([x[0] - x[1], x[0] + x[1], x[2] - x[3], x[2] + x[3]])


def test_each_subject_has_one_regression_over_all_recordings():
    parts = [recording(NAMES, seed=seed, subject=who) for seed, who in enumerate([1, 2, 1])]
    joined = BaseConcatDataset([part.datasets[0] for part in parts])
    changed = ControlSignals("eyes").transform(joined)
    signals = [part.datasets[0].raw.get_data() for part in parts]
    for recordings, which in (([0, 2], 2), ([1], 1)):
        flat = np.concatenate([signals[i] for i in recordings], axis=1)
        eyes = pairs_of(flat)
        coefficients = eye_coefficients(flat[None], eyes[None])
        others = pairs_of(signals[which]) - eyes.mean(axis=1, keepdims=True)
        expected = signals[which] - coefficients @ others
        np.testing.assert_allclose(changed[10 * which][4:], expected[4:, :200], atol=1e-10)
        assert not changed[10 * which][:4].any()


def test_one_frontal_pair_is_enough_and_half_a_pair_is_not():
    pair = ControlSignals("eyes").transform(recording(["F7", "F8", "Fp1", "Cz"]))[0]
    assert pair.any(axis=1).tolist() == [False, False, True, True]
    with pytest.raises(ValueError, match="channels are F7, Fp2, Cz"):
        ControlSignals("eyes").transform(recording(["F7", "Fp2", "Cz"]))
    bad = recording(["Fp1.", "EEG FP2-REF", "F7", "F8", "Cz"])
    bad.datasets[0].raw.info["bads"] = ["F8"]
    changed = ControlSignals("eyes").transform(bad)[0]
    assert changed.any(axis=1).tolist() == [False, False, True, True, True]


def test_arguments_that_do_not_fit_the_windows_raise():
    X = np.random.default_rng(0).normal(size=(2, 2, 300))
    with pytest.raises(ValueError, match=r"frequencies must be .* fs/2=50"):
        ControlSignals(edge=50.0, sfreq=100).transform(X)
    for control in ("slow", "aperiodic", "order"):
        with pytest.raises(ValueError, match="rate of the windows is unknown"):
            ControlSignals(control).transform(X)


def test_in_a_pipeline_windows_do_not_depend_on_the_batch():
    X, *_ = as_sklearn(datasets.mental_arithmetic(["Subject00"]))
    X = X[:9]
    for control in ("slow", "phase", "aperiodic", "order"):
        features = make_pipeline(ControlSignals(control), LogBandPower())
        whole = clone(features).fit(X).transform(X)
        with features_computed_once():
            np.testing.assert_allclose(features.fit(X[:3]).transform(X[5:8]), whole[5:8], rtol=1e-5)
            np.testing.assert_allclose(features.transform(X), whole, rtol=1e-5)
