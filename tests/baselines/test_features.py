"""Features of classical baselines, against plain computations."""

import mne
import numpy as np
import pytest
import torch
from pyriemann.tangentspace import TangentSpace
from scipy.signal import butter, filtfilt
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from support.features import FEATURES

from braindecode_pars.baselines.window_features import BANDS
from braindecode_pars.evaluation import (
    ChannelFeatures,
    LogAmplitude,
    LogBandPower,
    LowFrequencyAmplitude,
    SpatialCovariance,
)
from braindecode_pars.pretext import SignalFeatures
from braindecode_pars.windows.convert import as_windows

#: Many windows here are flat on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:Channels are flat")


@pytest.fixture
def epochs():
    signals = 1e-5 * np.random.default_rng(0).standard_normal((3, 3, 300))
    info = mne.create_info(["Fp1", "Fp2", "F7"], 100.0, "eeg")
    return mne.EpochsArray(signals, info, verbose="error")


@pytest.mark.parametrize("features", FEATURES)
def test_windows_with_channel_names_need_a_fit(features, epochs):
    """Otherwise each call would pick its own channels, in the order of its windows."""
    swapped = epochs.copy().reorder_channels(["Fp2", "F7", "Fp1"])
    for windows in (epochs, swapped):
        with pytest.raises(NotFittedError):
            features().transform(windows)
    fitted = features().fit(epochs)
    np.testing.assert_array_equal(fitted.transform(swapped), fitted.transform(epochs))
    with pytest.raises(ValueError, match="Fp2"):
        fitted.transform(epochs.copy().drop_channels(["Fp2"]))

    picked = features(channels=["F7", "Fp1"]).fit_transform(epochs)
    array = features(sfreq=100).transform(epochs.get_data()[:, [2, 0]])
    np.testing.assert_array_equal(picked, array)


def plain_welch(signal: np.ndarray, sfreq: int) -> np.ndarray:
    """Return the mean of periodograms of 2 s, half overlapping, with Hann windows."""
    n = 2 * sfreq
    hann = np.sin(np.pi * np.arange(n) / n) ** 2
    density = np.zeros(n // 2 + 1)
    starts = range(0, len(signal) - n + 1, n // 2)
    for start in starts:
        segment = signal[start : start + n]
        spectrum = np.abs(np.fft.rfft((segment - segment.mean()) * hann)) ** 2
        spectrum[1:-1] *= 2  # negative frequencies
        density += spectrum / (sfreq * (hann**2).sum()) / len(starts)
    return density


def test_bands_against_a_plain_recomputation(nights):
    window = np.array(nights[4][0], dtype=float)
    absolute, relative = [], []
    for signal in window:
        density = plain_welch(signal, 100)  # in steps of 0.5 Hz
        powers = []
        for low, high in BANDS.values():
            values = density[int(2 * low) : int(2 * high) + 1]
            powers.append(0.5 * (values.sum() - (values[0] + values[-1]) / 2))
        absolute += powers
        relative += [power / sum(powers) for power in powers]
    both = LogBandPower(sfreq=100).transform(window[None]).reshape(3, 2, 7)
    for i, (power, expected) in enumerate({"absolute": absolute, "relative": relative}.items()):
        features = LogBandPower(sfreq=100, power=power)
        np.testing.assert_allclose(features.transform(window[None])[0], np.log(expected), rtol=1e-6)
        np.testing.assert_allclose(both[:, i].ravel(), np.log(expected), rtol=1e-6)
    # Relative power does not depend on the gain.
    np.testing.assert_allclose(
        features.transform(7e3 * window[None])[0], np.log(relative), rtol=1e-4
    )


def test_channels_are_independent_and_flat_channels_finite(nights):
    features = LogBandPower().fit_transform(nights)
    assert features.shape == (96, 3 * 14)
    window = np.array(nights[4][0])
    window[1] = 0
    flat = LogBandPower(sfreq=100).transform(window[None])
    assert np.isfinite(flat).all()
    np.testing.assert_allclose(flat[0, :14], features[4, :14], rtol=1e-6)
    np.testing.assert_allclose(flat[0, 21:28], np.log(1 / 7))  # relative power of the flat channel


def test_bands_beyond_half_the_sampling_rate_are_left_out():
    windows = np.random.default_rng(0).normal(size=(3, 2, 640))
    with pytest.warns(UserWarning, match=r"gamma.* 64 Hz"):
        low = LogBandPower(sfreq=64).fit(windows)
    assert list(low.bands_) == list(BANDS)[:6]
    assert low.transform(windows).shape == (3, 2 * 12)
    with pytest.raises(ValueError, match=r"128 Hz.* bands"):
        low.set_params(sfreq=128).transform(windows)


def test_a_band_that_ends_at_half_the_sampling_rate_is_used(array):
    low = LogBandPower(sfreq=90).fit(array)  # gamma ends at 45 Hz
    assert list(low.bands_) == list(BANDS)


def test_windows_must_be_long_enough():
    for n_times in (1, 20):
        with pytest.raises(ValueError, match=r"delta \(0\.5 to 4 Hz\)"):
            LogBandPower(sfreq=100).transform(np.random.default_rng(0).normal(size=(3, 2, n_times)))


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


@pytest.mark.parametrize("kind", ["average reference", "flat window"])
def test_covariances_of_any_rank_have_a_tangent_space(array, kind):
    windows = np.concatenate([array, array[::-1] ** 3 * 1e9], axis=1)[:40]  # 6 channels
    if kind == "average reference":
        windows -= windows.mean(axis=1, keepdims=True)
    else:
        windows[3] = 0
    pipeline = make_pipeline(SpatialCovariance(), TangentSpace())
    assert np.isfinite(pipeline.fit_transform(windows)).all()
    assert np.linalg.eigvalsh(pipeline[0].transform(windows)).min() > 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(band=(30, 8)), ValueError, r"band .* \(30, 8\)"),
        (dict(band="8-30"), TypeError, "band .* '8-30'"),
        (dict(band=(8, 60)), ValueError, "50"),
        (dict(band=(8, 30), sfreq=None), ValueError, "sfreq"),
    ],
)
def test_wrong_arguments_are_refused(array, arguments, error, message):
    with pytest.raises(error, match=message):
        SpatialCovariance(**{"sfreq": 100, **arguments}).transform(array)


def test_channel_features_are_the_targets_of_the_pretext_task(nights, array):
    found = ChannelFeatures().fit_transform(nights)
    assert found.shape == (96, 3 * 31)
    task = SignalFeatures(500, 100, sfreq=100.0, embed_dim=8, num_layers=1, num_heads=1)
    for i, j in ((0, 0), (7, 2), (95, 1)):
        signal = torch.tensor(1e6 * array[i, j])[None]
        expected = task.measured((signal - signal.mean()) / signal.std(correction=0))[0]
        np.testing.assert_allclose(found[i, 31 * j : 31 * (j + 1)], expected, rtol=1e-6, atol=1e-8)


def test_channel_features_have_names(epochs):
    signals = 1e-6 * np.random.default_rng(0).standard_normal((4, 2, 900))
    signals[:, 1] += 1e-5 * np.sin(2 * np.pi * 9 * np.arange(900) / 100)  # a rhythm at 9 Hz
    info = mne.create_info(["C3", "O1"], 100.0, "eeg")
    features = ChannelFeatures().set_output(transform="pandas")
    table = features.fit_transform(mne.EpochsArray(signals, info, verbose="error"))
    assert table.filter(regex="^O1_power_[0-9]").mean().idxmax() == "O1_power_8-10Hz"
    assert table["O1_alpha_frequency"].mean() == pytest.approx(9, abs=0.3)
    assert table["C3_kurtosis"].mean() == pytest.approx(np.log(3), abs=0.2)
    names = ChannelFeatures(sfreq=100).fit(signals).get_feature_names_out()
    assert [names[0], names[-1], len(names)] == ["channel0_slope", "channel1_line_length", 62]


@pytest.mark.parametrize(
    ("features", "column"),
    [
        (LogBandPower(power="relative"), "O1_relative_low beta"),
        (LogAmplitude(), "O1_relative_amplitude"),
        (LowFrequencyAmplitude(channels=["C3", "O1"]), "O1_mean_from_1.5s"),
    ],
)
def test_features_are_tables_with_names(features, column):
    """A column of which O1 or the band has another value than all others."""
    rng = np.random.default_rng(0)
    signals = 1e-6 * rng.standard_normal((24, 2, 300))
    info = mne.create_info(["C3", "O1"], 100.0, "eeg")
    windows = as_windows(mne.EpochsArray(signals, info, verbose="error"), groups=np.zeros(24))
    plain = features.fit_transform(windows)
    table = clone(features).set_output(transform="pandas").fit_transform(windows)
    np.testing.assert_allclose(table, plain)
    assert table[column].nunique() == 24
    assert table.columns.is_unique
    if "mean_from" in column:
        np.testing.assert_allclose(table[column], signals[:, 1, 150:175].mean(axis=1), rtol=1e-4)


def test_channel_features_at_low_rates(array):
    windows = array[:3]
    with pytest.warns(UserWarning, match=r"30 to 45 Hz.* 40 Hz"):
        low = ChannelFeatures(sfreq=80).fit(windows)
    assert low.transform(windows).shape == (3, len(low.get_feature_names_out())) == (3, 3 * 28)
    with pytest.raises(ValueError, match=r"100 Hz.* bands"):
        low.set_params(sfreq=100).transform(windows)
    flat = np.zeros((2, 1, 300))
    assert np.isfinite(ChannelFeatures(sfreq=100).transform(flat)).all()


def test_many_channels_are_measured_in_parts(array):
    array = array[:, :, :300]
    many = np.tile(array[:20], (1, 20, 1))  # 1,200 signals
    found = ChannelFeatures(sfreq=100).transform(many).reshape(20, 20, 93)
    expected = ChannelFeatures(sfreq=100).transform(array[:20])
    np.testing.assert_array_equal(found, np.broadcast_to(expected[:, None], found.shape))


def test_amplitudes_against_a_plain_recomputation(nights, array):
    found = LogAmplitude().fit_transform(nights)
    assert found.shape == (96, 3 * 2)
    for i in (0, 50, 95):
        deviations = [np.sqrt(np.mean((x - x.mean()) ** 2)) for x in array[i]]
        geometric_mean = np.prod(deviations) ** (1 / 3)
        expected = [[np.log(s), np.log(s / geometric_mean)] for s in deviations]
        np.testing.assert_allclose(found[i], np.ravel(expected), rtol=1e-5, atol=1e-5)
    assert np.isfinite(LogAmplitude().transform(np.zeros((2, 3, 10)))).all()


def test_slow_voltages_against_a_plain_recomputation(epochs):
    found = LowFrequencyAmplitude().fit_transform(epochs)  # 12 segments of 25 samples
    expected = [
        [np.mean(x[25 * i : 25 * (i + 1)]) for x in window for i in range(12)]
        for window in epochs.get_data()
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_slow_voltages_of_windows_that_are_no_whole_number_of_segments():
    ramp = np.arange(70.0)[None, None]
    features = LowFrequencyAmplitude(sfreq=100).transform(ramp)
    np.testing.assert_array_equal(features, [[12, 37]])
    np.testing.assert_array_equal(LowFrequencyAmplitude(sfreq=100).transform(ramp[..., :11]), [[5]])
    longer = LowFrequencyAmplitude(sfreq=100, segment_seconds=0.5).transform(ramp)
    np.testing.assert_array_equal(longer, [[24.5]])


def test_slow_voltages_are_those_of_frontal_channels(epochs):
    """In any spelling; of those that are there, not bad, and in all recordings."""

    def used(*recordings):
        return [ch["ch_name"] for ch in LowFrequencyAmplitude().fit([*recordings]).chs_info_]

    def renamed(*names):
        return epochs.copy().rename_channels(dict(zip(epochs.ch_names, names, strict=True)))

    assert used(renamed("Cz", "EEG F8-REF", "FP1.")) == ["FP1.", "EEG F8-REF"]
    assert used(epochs, renamed("Fp2", "F7", "O1")) == ["Fp2", "F7"]
    bad = epochs.copy()
    bad.info["bads"] = ["Fp2"]
    assert used(bad) == ["Fp1", "F7"]
    with pytest.raises(ValueError, match=r"Fp1, Fp2, F7, F8.* C3, Cz, C4\. .*channels="):
        used(renamed("C3", "Cz", "C4"))
