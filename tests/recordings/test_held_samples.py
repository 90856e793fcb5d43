"""Flat and clipped stretches, against runs that are counted one sample after another."""

from __future__ import annotations

from itertools import groupby

import mne
import numpy as np
import pytest

from braindecode_pars.recordings.as_trained import HeldTime, held_time


def recording(*signals, sfreq=100.0):
    names = [f"E{i}" for i in range(len(signals))]
    info = mne.create_info(names, sfreq, "eeg")
    return mne.io.RawArray(np.stack(signals), info, verbose="error")


def counted(signal, sfreq):
    """Count the samples of runs with a loop."""
    flat = clipped = 0
    for value, run in groupby(signal.tolist()):
        n = len(list(run))
        if n >= 3 and value in (signal.min(), signal.max()) and np.ptp(signal) > 0:
            clipped += n
        elif n >= sfreq:
            flat += n
    return HeldTime(flat / sfreq, clipped / sfreq)


@pytest.mark.parametrize("sfreq", [100.0, 256.0])
def test_runs_of_equal_samples(sfreq):
    rng = np.random.default_rng(0)
    drift = rng.standard_normal(20_000).cumsum()
    coarse = (drift / 5).round()
    held = np.where(np.arange(20_000) % 5_000 < 700, coarse[0], coarse)
    signals = drift, coarse, coarse.clip(-3, 5), held, np.full(20_000, 2.0)
    found = held_time(recording(*signals, sfreq=sfreq), [f"E{i}" for i in range(5)])
    assert list(found.values()) == [counted(signal, sfreq) for signal in signals]
    assert found["E0"] == HeldTime(0.0, 0.0)
    assert found["E2"].clipped > 1
    assert found["E3"].flat > 4 * 700 / sfreq - 3
    assert found["E4"] == HeldTime(20_000 / sfreq, 0.0)  # not clipped: it has no range


def test_a_peak_and_a_short_pause_are_none():
    wave = np.sin(np.arange(1000) / 7)
    wave[500:502] = wave.max()
    wave[700:790] = 0.2
    assert held_time(recording(wave), ["E0"])["E0"] == HeldTime(0.0, 0.0)


def test_a_channel_may_be_called_as_a_kind():
    raw = recording(np.zeros(200)).rename_channels({"E0": "eeg"})
    assert held_time(raw, ["eeg"])["eeg"].flat == 2.0


def test_gaps_do_not_count():
    """MNE fills what was not recorded with zeros."""
    signal = np.random.default_rng(0).standard_normal(2000)
    signal[500:900] = 0
    raw = recording(signal)
    assert held_time(raw, ["E0"])["E0"].flat == 4.0
    raw.set_annotations(mne.Annotations([5.0], [4.0], ["BAD_ACQ_SKIP"]))
    assert held_time(raw, ["E0"])["E0"] == HeldTime(0.0, 0.0)


def test_the_ends_of_the_range_are_those_of_the_whole_channel():
    signal = np.random.default_rng(0).standard_normal(2000).clip(-2, 2)
    signal[100:150] = signal[1200:1250] = 2.0
    raw = recording(signal)
    raw.set_annotations(mne.Annotations([10.0], [0.0], ["EDGE boundary"]))
    assert held_time(raw, ["E0"])["E0"].clipped == pytest.approx(1.0, abs=0.1)
