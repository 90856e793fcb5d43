"""Signals that are preprocessed channel by channel, against MNE on whole recordings."""

from __future__ import annotations

import mne
import numpy as np
import pytest

from braindecode_pars.recordings.as_trained import (
    Derivation,
    find_derivations,
    preprocessed_signals,
)
from braindecode_pars.recordings.cutting import continuous_stretches
from braindecode_pars.recordings.preparation import filter_and_resample
from braindecode_pars.recordings.preprocessing import Preprocessing

FILTERS = Preprocessing(band=(0.3, 35.0), notch=(40.0,))


def noise(n_chans=2, sfreq=256.0, seconds=40.0):
    rng = np.random.default_rng(0)
    info = mne.create_info(["C3", "C4", "M2"][:n_chans], sfreq, "eeg")
    samples = 2e-5 * rng.standard_normal((n_chans, round(sfreq * seconds)))
    return mne.io.RawArray(samples, info, verbose="error")


def same_names(raw):
    return find_derivations(raw.ch_names, raw.ch_names)


@pytest.mark.parametrize("sfreq", [256.0, 200.0, 100.0, 127.3, 64.0])
def test_signals_are_those_of_filter_and_resample(sfreq):
    raw = noise(sfreq=sfreq)
    before = raw.get_data()
    found = preprocessed_signals(raw, same_names(raw), 100.0, FILTERS)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(raw.get_data(), before)
    filter_and_resample(raw, sfreq=100.0, low=0.3, high=35.0, mains=40.0)
    np.testing.assert_allclose(found, raw.get_data(), rtol=1e-5, atol=1e-10)


def test_each_part_between_gaps_is_prepared_alone():
    first, second = noise(seconds=20.03), noise(seconds=15)
    raw = mne.concatenate_raws([first.copy(), second.copy()], verbose="error")
    raw.set_annotations(raw.annotations + mne.Annotations([25], [2], ["BAD_ACQ_SKIP"]))
    found = preprocessed_signals(raw, same_names(raw), 100.0, FILTERS)
    filled = np.zeros(found.shape[1], dtype=bool)
    for start, stop in continuous_stretches(raw):
        part = raw.copy().crop(start / 256, (stop - 1) / 256).set_annotations(None)
        filter_and_resample(part, sfreq=100.0, low=0.3, high=35.0, mains=40.0)
        at = round(start * 100 / 256)
        np.testing.assert_allclose(
            found[:, at : at + part.n_times], part.get_data(), rtol=1e-5, atol=1e-10
        )
        filled[at : at + part.n_times] = True
    assert np.flatnonzero(~filled).tolist() == list(range(2500, 2700))
    assert not found[:, ~filled].any()


def test_sums_references_and_scale():
    raw = noise(n_chans=3)
    c3, c4, m2 = raw.get_data()
    derivations = [
        Derivation("C3-M2", (("C3", 1.0), ("M2", -1.0))),
        Derivation("C4", (("C4", 1.0),), ("C3", "C4", "M2")),
    ]
    found = preprocessed_signals(raw, derivations, 256.0, Preprocessing(scale=1e6))
    expected = np.stack([c3 - m2, c4 - (c3 + c4 + m2) / 3]) * 1e6
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sfreq", [127.3, 99.7, 256.0, 500 / 3])
@pytest.mark.parametrize("at", [20.0, 1800.0, 3580.0])
def test_the_time_of_a_sample_is_right_to_one_sample(sfreq, at):
    """At rates that no ratio of small integers resamples, after a whole hour."""
    new, seconds = 100.0, 3600
    times = np.arange(round(sfreq * seconds)) / sfreq
    pulse = np.exp(-0.5 * ((times - at) / 0.05) ** 2)
    raw = mne.io.RawArray(pulse[None], mne.create_info(["C3"], sfreq, "eeg"), verbose="error")
    found = preprocessed_signals(raw, same_names(raw), new, Preprocessing())[0]
    near = slice(round(at * new) - 100, round(at * new) + 100)
    center = (np.arange(len(found)) * found)[near].sum() / found[near].sum() / new
    assert abs(center - at) < 1 / new


def test_nan_is_an_error():
    raw = noise()
    raw._data[1, 700] = np.nan
    with pytest.raises(ValueError, match="C4"):
        preprocessed_signals(raw, same_names(raw), 100.0, Preprocessing())


def test_an_iir_filter_of_the_training_is_not_replaced_by_another():
    raw = noise()
    trained = Preprocessing(band=(4.0, 38.0), filter="iir")
    found = preprocessed_signals(raw, same_names(raw), 256.0, trained)
    raw.filter(4.0, 38.0, method="iir", verbose="error")
    np.testing.assert_allclose(found, raw.get_data(), rtol=1e-5, atol=1e-10)
