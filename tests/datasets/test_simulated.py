"""Simulated nights: stages, rhythms, subjects and artifacts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import welch

from braindecode_pars import as_sklearn
from braindecode_pars.datasets import eesm17, simulated, ysyw


@pytest.fixture(scope="module")
def long_nights():
    return simulated.sleep(n_subjects=3, hours=0.75, n_chans=1, sfreq=100, random_state=11)


@pytest.fixture(scope="module")
def spectra(long_nights):
    """Mean power spectrum of each stage, over subjects and channels."""
    X, y, _ = as_sklearn(long_nights)
    signals = np.asarray(X)
    signals = signals / signals.std(axis=-1, keepdims=True).clip(1e-12)
    frequencies, density = welch(signals, 100, nperseg=400)
    return frequencies, {
        name: density[y == stage].mean(axis=(0, 1)) for stage, name in enumerate(simulated.STAGES)
    }


def power(spectra, stage, low, high):
    frequencies, density = spectra
    return density[stage][(frequencies >= low) & (frequencies <= high)].sum()


def test_shapes_units_and_subjects(long_nights):
    window, target, _ = long_nights[0]
    assert window.shape == (1, 3000)
    assert target in range(5)
    assert len(long_nights) == 3 * 90
    assert long_nights.description["subject"].tolist() == [1, 2, 3]
    amplitude = np.median([long_nights[i][0].std() for i in range(0, len(long_nights), 50)])
    assert 5e-6 < amplitude < 60e-6  # volts


def test_targets_are_the_same_stages_as_in_the_sleep_corpora():
    assert simulated.STAGES == ysyw.CARD["classes"] == eesm17.CARD["classes"]


def test_stages_have_their_typical_rhythms(spectra):
    def highest(low, high):
        return max(simulated.STAGES, key=lambda stage: power(spectra, stage, low, high))

    assert highest(0.5, 2) == "N3"
    assert highest(8.5, 11) == "W"
    spindles = {s: power(spectra, s, 12, 14.5) / power(spectra, s, 16, 20) for s in ("N1", "N2")}
    assert spindles["N2"] > 1.2 * spindles["N1"]
    assert power(spectra, "R", 4, 7.5) > power(spectra, "N3", 4, 7.5)


def test_hypnograms_are_realistic():
    stages = np.concatenate(
        [simulated.stages_of_a_night(960, np.random.default_rng(s)) for s in range(10)]
    )
    share = np.bincount(stages, minlength=5) / len(stages)
    wake, n1, n2, n3, rem = share
    assert n2 == max(share)
    assert 0.05 < n1 < 0.25
    assert 0.05 < wake < 0.35
    assert 0.05 < n3 < 0.35
    assert 0.1 < rem < 0.35
    # Most windows have the stage of the window before.
    assert np.mean(stages[1:] == stages[:-1]) > 0.75
    # N3 (index 3) is more frequent early in the night, REM (index 4) late.
    by_night = stages.reshape(10, 960)
    assert (by_night[:, :480] == 3).mean() > (by_night[:, 480:] == 3).mean()
    assert (by_night[:, :480] == 4).mean() < (by_night[:, 480:] == 4).mean()


def test_subjects_differ(long_nights):
    gains = [np.median([ds[i][0].std() for i in range(0, 90, 10)]) for ds in long_nights.datasets]
    assert max(gains) > 1.5 * min(gains)


def test_channels_are_occasionally_flat(long_nights):
    flat = [i for i in range(len(long_nights)) if not long_nights[i][0].any(axis=1).all()]
    assert 0 < len(flat) < 0.05 * len(long_nights)


def test_a_seed_gives_the_same_subjects():
    two = simulated.sleep(2, 0.1, 2, 100, random_state=1)
    three = simulated.sleep(3, 0.1, 2, 100, random_state=1)
    np.testing.assert_array_equal(two[15][0], three[15][0])
    assert not np.array_equal(two[0][0], two[12][0])
    assert not np.array_equal(two[0][0], simulated.sleep(2, 0.1, 2, 100, random_state=2)[0][0])
