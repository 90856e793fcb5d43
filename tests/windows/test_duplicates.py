"""Recordings with the same signals are found, whatever their formats, labels and preprocessing."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset

from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.duplicates import find_duplicates, find_shared_samples

SFREQ, SECONDS = 100, 60
NAMES = ["Fp1", "Fp2", "C3", "C4", "P3", "P4", "O1", "O2", "Fz", "Cz"]


def raw_of(seed: int, n_chans: int = 10) -> mne.io.RawArray:
    """Noise with a spectrum like that of EEG, which channels share in part."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n_chans, SFREQ * SECONDS)) + rng.standard_normal(SFREQ * SECONDS)
    pink = np.fft.rfft(noise)
    pink[:, 1:] /= np.sqrt(np.arange(1, pink.shape[1]))
    data = np.fft.irfft(pink)
    info = mne.create_info(NAMES[:n_chans], SFREQ, "eeg")
    return mne.io.RawArray(1e-5 * data / data.std(), info, verbose="error")


def plus(raw, signal):
    raw._data += signal
    return raw


def replaced(raw, seconds):
    raw._data[:, : seconds * SFREQ] = raw_of(9)._data[:, : seconds * SFREQ]
    return raw


def pairs(*raws, seconds=5.0):
    parts = [fixed_windows(raw, seconds=seconds) for raw in raws]
    return find_duplicates(as_windows(BaseConcatDataset(parts)))


SAME = {
    "rounded": lambda raw: plus(raw, 4e-12),
    "filtered": lambda raw: raw.filter(1, 40, verbose="error"),
    "average reference": lambda raw: raw.set_eeg_reference("average", verbose="error"),
    "microvolts": lambda raw: raw.apply_function(lambda x: 1e6 * x),
    "inverted": lambda raw: raw.apply_function(np.negative),
    "shorter": lambda raw: raw.crop(0, 40),
    "other names": lambda raw: raw.rename_channels({"C3": "EEG C3-REF"}),
    "fewer channels": lambda raw: raw.pick(NAMES[:9]),
    "a window differs": lambda raw: replaced(raw, 5),
    "first windows marked as bad": lambda raw: raw.set_annotations(
        mne.Annotations(0, 12, "BAD_movement")
    ),
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_versions_of_one_recording_are_duplicates(change):
    assert pairs(raw_of(0), raw_of(1), change(raw_of(0))) == [(0, 2)]


def test_a_single_channel_and_short_windows_suffice():
    first, other, same = raw_of(0, 1), raw_of(1, 1), plus(raw_of(0, 1), 4e-12)
    assert pairs(first, other, same, seconds=1.0) == [(0, 2)]


TIMES = np.arange(SFREQ * SECONDS) / SFREQ
ALIKE = {
    "line noise": 1e-3 * np.sin(2 * np.pi * 50 * TIMES + 0.3),
    "line noise with a harmonic": 1e-3 * np.cos(2 * np.pi * 50 * TIMES + 0.3)
    + 5e-4 * np.sin(2 * np.pi * 25 * TIMES + 0.3),
    "drift": 1e-2 * np.exp(-TIMES / 20),
    "pulses": 1e-2 * (np.arange(len(TIMES)) % 250 == 120),
    "rhythm of a stimulus": 3e-5 * np.sin(2 * np.pi * 2.3 * TIMES),
    "calibration at the beginning": 1e-3 * np.sign(np.sin(2 * np.pi * TIMES)) * (TIMES < 10),
}


@pytest.mark.parametrize("shared", ALIKE.values(), ids=ALIKE)
def test_what_an_amplifier_adds_to_all_recordings_is_no_sign(shared):
    raws = [raw_of(seed, 4) for seed in range(3)]
    assert pairs(*(plus(raw, shared) for raw in raws)) == []


@pytest.mark.parametrize("seconds", [1, 4, 10])
def test_noise_free_rhythms_are_no_sign(seconds):
    phases = np.random.default_rng(0).uniform(0, 2 * np.pi, (8, 2, 1))
    rhythms = 1e-5 * np.sin(2 * np.pi * 5 * TIMES + phases)
    windows = rhythms[..., : seconds * SFREQ]
    assert find_duplicates(as_windows(windows, groups=list("abcdefgh"), sfreq=SFREQ)) == []


def test_flat_and_tiny_windows_are_not_compared():
    flat = np.ones((2, 2, 500), np.float32)
    assert find_duplicates(as_windows(flat, groups=["a", "b"])) == []
    stepped = flat * (np.arange(500) > 250)
    assert find_duplicates(as_windows(stepped, groups=["a", "b"])) == []
    tiny = np.random.default_rng(0).normal(size=(1, 1, 10)).repeat(2, axis=0)
    assert find_duplicates(as_windows(tiny, groups=["a", "b"])) == []


def shared_samples(train, test):
    """Return the numbers of test windows that share samples with a training window."""
    return {
        row - len(train) for row in find_shared_samples(as_windows([*train, *test]), len(train))
    }


@pytest.mark.parametrize("factor", [1, -1e-6])
def test_windows_with_shared_samples_are_found_at_any_shift(factor):
    """A test window is found if it shares half of its samples with a training window."""
    recordings = [raw_of(seed, 3).get_data() for seed in range(4)]
    rng = np.random.default_rng(0)
    places = [(int(rng.integers(4)), int(rng.integers(5600))) for _ in range(30)]
    windows = [recordings[i][:, start : start + 400] for i, start in places]
    train, test = windows[:15], [factor * (x + 1e-4) for x in windows[15:]]
    shared = shared_samples(train, test)
    for row, (recording, start) in enumerate(places[15:]):
        shifts = [start - first for i, first in places[:15] if i == recording]
        shortest = min(map(abs, shifts), default=400)
        assert row in shared or shortest > 200
        assert row not in shared or shortest < 400
    assert 3 < len(shared) < 15


@pytest.mark.parametrize("shift", [0, 70])
def test_band_limited_copies_are_found(shift):
    """Most frequencies of these signals have almost no power."""
    noise = np.random.default_rng(0).normal(size=(1, 8 * 400 + shift)).cumsum(axis=1)
    signal = mne.filter.filter_data(noise, 250.0, 0.5, 40, verbose="error")
    train = [signal[:, i * 400 : (i + 1) * 400] for i in range(8)]
    test = [-3 * signal[:, i * 400 + shift : (i + 1) * 400 + shift] for i in range(8)]
    other = noise[:, ::-1][:, :400]
    assert shared_samples(train[:7], [*test[:6], other]) == {*range(6)}


@pytest.mark.parametrize(("n_times", "shared"), [(64, set()), (65, {0}), (500, {0})])
def test_copies_of_windows_of_65_samples_are_found(n_times, shared):
    windows = np.random.default_rng(0).normal(size=(6, 1, n_times))
    assert shared_samples(windows[:4], windows[3:]) == shared


@pytest.mark.parametrize("shared", ALIKE.values(), ids=ALIKE)
def test_what_an_amplifier_adds_to_all_windows_is_no_shared_sample(shared):
    windows = [plus(raw_of(seed, 1), shared).get_data() for seed in range(6)]
    train, test = (
        [x[:, i : i + 500] for x in part for i in range(0, 6000, 500)]
        for part in (windows[:3], windows[3:])
    )
    assert shared_samples(train, test) == set()


def test_low_pass_filtered_windows_of_a_high_rate_share_no_samples():
    """Short segments of them are similar."""
    times = np.arange(2000) / 500
    rng = np.random.default_rng(0)
    slow = np.cumsum(np.cumsum(rng.normal(size=(80, 1, 2000)), axis=2), axis=2)
    windows = slow - slow.mean(axis=2, keepdims=True) + np.sin(2 * np.pi * 3 * times)
    assert shared_samples(windows[:40], windows[40:]) == set()
