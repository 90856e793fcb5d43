"""Recordings prepared as those of a model: channels, reference, steps, resampling, flat samples."""

from __future__ import annotations

from itertools import groupby

import mne
import numpy as np
import pytest

from braindecode_pars.recordings.as_trained import (
    FlatClippedDuration,
    flat_clipped_durations,
    prepare_as_trained,
    preprocessed_signals,
    rereferenced,
)
from braindecode_pars.recordings.preparation import filter_and_resample
from braindecode_pars.windows.picking import Derivation, find_channels
from braindecode_pars.windows.preprocessing import Preprocessing, missing_steps


def formulas(wanted, names, **arguments):
    return [d and d.formula for d in find_channels(wanted, names, **arguments)]


@pytest.mark.parametrize(
    ("wanted", "names", "expected"),
    [
        # The same electrode under another name.
        ("EEG Fpz-Cz", ["FPZ-CZ"], "FPZ-CZ"),
        ("T3-P3", ["EEG T7-P3", "T7"], "EEG T7-P3"),
        # Several channels of one electrode: the name decides.
        ("T3", ["T3", "T7"], "T3"),
        ("Fp1", ["T3", "T7"], None),
        ("C3", ["C3-M1", "C3-M2"], None),
        # Differences of two channels with one reference
        ("Fpz-Cz", ["Fpz", "Cz"], "Fpz - Cz"),
        ("C3-M2", ["EEG C3-REF", "EEG A2-REF"], "EEG C3-REF - EEG A2-REF"),
        ("C3-M2", ["C3-M1", "M2-M1"], "C3-M1 - M2-M1"),
        ("EEG C3-M2", ["C3", "A2", "M2"], "C3 - M2"),
        ("Fpz-Cz", ["Fpz-M1", "Cz-M2"], None),
        # A channel that names its reference is not the difference to another channel again.
        ("C3-M2", ["C3-M2", "M2"], "C3-M2"),
        # Another reference is better than nothing; predict warns.
        ("C3-M2", ["C3-M1"], "C3-M1"),
        ("C3-A2", ["EEG C3-REF", "EEG A2-REF", "EEG M2-REF"], "EEG C3-REF"),
        ("C3", ["C3-M2"], "C3-M2"),
    ],
)
def test_one_channel(wanted, names, expected):
    assert formulas([wanted], names) == [expected]


def test_without_computing_channels_are_only_found():
    names = ["C3", "M2", "Cz-Fpz"]
    assert formulas(["C3-M2", "Fpz-Cz"], names, compute=False) == ["C3", None]


@pytest.mark.parametrize(
    ("channel", "reference", "names", "expected"),
    [
        ("C3", "as recorded", ["C3", "C4"], "C3"),
        ("C3", "average", ["C3", "C4", "Fpz-Cz"], "C3 - mean of C3, C4"),
        ("C3", "average", ["C3", "C4", "A2-A1", "C4-M2"], "C3 - mean of C3, C4"),
        ("C3", "M1, M2", ["C3", "A1", "A2"], "C3 - mean of A1, A2"),
        ("C3", "M2", ["C3", "EEG M2"], "C3 - EEG M2"),
        ("C3", "A1, A2", ["C3", "A1", "A2", "M1", "M2"], "C3 - mean of A1, A2"),
        # Of an average of many named electrodes, some may be missing.
        ("C3", "EEG C3, C4, O1, O2, Pz", ["C3", "C4", "O1", "O2"], "C3 - mean of C3, C4, O1, O2"),
        ("C3", "C3, C4, O1, O2, Pz", ["C3", "C4", "O1"], None),
        # It has this reference already, or none at all.
        ("C3-A2", "M2", ["C3-A2"], "C3-A2"),
        ("C3-CAR", "average", ["C3-CAR"], "C3-CAR"),
        ("Fpz-Cz", "M2", ["Fpz-Cz"], "Fpz-Cz"),
        # It cannot be computed.
        ("C3", "average", ["C3"], None),
        ("C3-M2", "average", ["C3-M2", "C4-M1"], None),
    ],
)
def test_reference(channel, reference, names, expected):
    changed = rereferenced(Derivation("C3", channel), reference, names, names)
    assert (changed and changed.formula) == expected


def test_the_average_of_named_channels_has_any_of_them():
    """MNE averages what has the type EEG, also an ECG and a channel with another reference."""
    eeg, names = ["C3", "A2-A1"], ["C3", "A2-A1", "ECG"]
    c3 = Derivation("C3", "C3")
    changed = rereferenced(c3, "C3, A2-A1, ECG", eeg, names)
    assert changed.formula == "C3 - mean of C3, A2-A1, ECG"
    assert rereferenced(c3, "C3, A2-A1, EOG", eeg, names) is None


def test_other_signals_and_computed_channels_keep_their_reference():
    names = ["C3", "C4", "EOG", "M2"]
    for kept in (Derivation("EOG", "EOG", is_eeg=False), Derivation("C3-M2", "C3", ("M2",))):
        assert rereferenced(kept, "average", names[:2], names) is kept


TRAINED = dict(band=(0.3, 35.0), notch=[50.0, 60.0], reference="average", scale=1e6)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ({}, TRAINED),
        (dict(band=(0.3, 35.0), scale=1.0), dict(TRAINED, band=(None, None))),
        (dict(band=(0.1, 35.0), scale=1.0), dict(TRAINED, band=(0.3, None))),
        (dict(band=(0.3, None), scale=1.0), dict(TRAINED, band=(None, 35.0))),
        (dict(band=(0.3, 35.0)), TRAINED),  # edges in the info alone, perhaps of another signal
        (dict(notch=[60.0]), dict(TRAINED, notch=[50.0])),
        (dict(reference="average"), dict(TRAINED, reference=None)),
        (dict(reference="changed"), TRAINED),
        (dict(scale=1e3), dict(TRAINED, scale=1e3)),
    ],
)
def test_steps(actual, expected):
    assert missing_steps(Preprocessing(**TRAINED), Preprocessing(**actual)) == Preprocessing(
        **expected
    )


def noise(n_chans=2, sfreq=256.0, seconds=40.0):
    rng = np.random.default_rng(0)
    info = mne.create_info(["C3", "C4", "M2"][:n_chans], sfreq, "eeg")
    samples = 2e-5 * rng.standard_normal((n_chans, round(sfreq * seconds)))
    return mne.io.RawArray(samples, info, verbose="error")


def same_names(raw):
    return find_channels(raw.ch_names, raw.ch_names)


@pytest.mark.parametrize(
    ("sfreq", "low", "high"), [(256.0, 0.3, 35.0), (100.0, 0.3, None), (127.3, None, 35.0)]
)
def test_signals_are_those_of_filter_and_resample(sfreq, low, high):
    raw = noise(sfreq=sfreq)
    before = raw.get_data()
    filters = Preprocessing(band=(low, high), notch=(40.0,))
    actual = preprocessed_signals(raw, same_names(raw), 100.0, filters)
    assert actual.dtype == np.float32
    np.testing.assert_array_equal(raw.get_data(), before)
    filter_and_resample(raw, sfreq=100.0, low=low, high=high, mains=40.0)
    np.testing.assert_allclose(actual, raw.get_data(), rtol=1e-5, atol=1e-10)


def test_filters_end_at_gaps_as_in_training():
    raw = noise(seconds=35.03)
    marks = ["EDGE boundary", "BAD_ACQ_SKIP", "BAD blink"]
    raw.set_annotations(
        mne.Annotations([20.03, 25, 30], [0, 2, 1], marks, ch_names=[[], [], ["C4"]])
    )
    raw._data[:, round(20.03 * 256) :] += 1e-4
    filters = Preprocessing(band=(0.3, 35.0), notch=(40.0,))
    actual = preprocessed_signals(raw, same_names(raw), 100.0, filters)
    filter_and_resample(raw, sfreq=100.0, low=0.3, high=35.0, mains=40.0)
    np.testing.assert_allclose(actual, raw.get_data(), rtol=1e-5, atol=1e-9)


def test_sums_references_and_scale():
    raw = noise(n_chans=3)
    c3, c4, m2 = raw.get_data()
    derivations = [
        Derivation("C3-M2", "C3", ("M2",)),
        Derivation("C4", "C4", ("C3", "C4", "M2")),
    ]
    actual = preprocessed_signals(raw, derivations, 256.0, Preprocessing(scale=1e6))
    expected = np.stack([c3 - m2, c4 - (c3 + c4 + m2) / 3]) * 1e6
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sfreq", [127.3, 500 / 3])
def test_the_time_of_a_sample_is_right_to_one_sample(sfreq):
    """At rates that no ratio of small integers resamples, after a whole hour."""
    new, seconds, pulses = 100.0, 3600, (20.0, 1800.0, 3580.0)
    times = np.arange(round(sfreq * seconds)) / sfreq
    signal = sum(np.exp(-0.5 * ((times - at) / 0.05) ** 2) for at in pulses)
    raw = mne.io.RawArray(signal[None], mne.create_info(["C3"], sfreq, "eeg"), verbose="error")
    actual = preprocessed_signals(raw, same_names(raw), new, Preprocessing())[0]
    for at in pulses:
        near = slice(round(at * new) - 100, round(at * new) + 100)
        center = (np.arange(len(actual)) * actual)[near].sum() / actual[near].sum() / new
        assert abs(center - at) < 1 / new


def test_nan_is_an_error():
    raw = noise()
    raw._data[1, 700] = np.nan
    with pytest.raises(ValueError, match="C4"):
        preprocessed_signals(raw, same_names(raw), 100.0, Preprocessing())


def test_an_iir_filter_of_the_training_is_not_replaced_by_another():
    raw = noise()
    trained = Preprocessing(band=(4.0, 38.0), filter="iir")
    actual = preprocessed_signals(raw, same_names(raw), 256.0, trained)
    raw.filter(4.0, 38.0, method="iir", verbose="error")
    np.testing.assert_allclose(actual, raw.get_data(), rtol=1e-5, atol=1e-10)


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
    return FlatClippedDuration(flat / sfreq, clipped / sfreq)


def test_runs_of_equal_samples():
    sfreq = 256.0
    rng = np.random.default_rng(0)
    drift = rng.standard_normal(20_000).cumsum()
    coarse = (drift / 5).round()
    held = np.where(np.arange(20_000) % 5_000 < 700, coarse[0], coarse)
    signals = drift, coarse, coarse.clip(-3, 5), held, np.full(20_000, 2.0)
    durations = flat_clipped_durations(
        recording(*signals, sfreq=sfreq), [f"E{i}" for i in range(5)]
    )
    assert list(durations.values()) == [counted(signal, sfreq) for signal in signals]
    assert durations["E2"].clipped > 1
    assert durations["E3"].flat > 4 * 700 / sfreq - 3
    # Not clipped: it has no range.
    assert durations["E4"] == FlatClippedDuration(20_000 / sfreq, 0.0)


BIOSEMI = [f"{letter}{i}" for letter in "ABCD" for i in range(1, 33)]


@pytest.mark.parametrize("names", [BIOSEMI, BIOSEMI[:32]])
def test_a_model_of_other_electrodes_of_the_same_names(names):
    """BioSemi's C3 is another electrode than that of the 10-20 system, and its A1 is no ear."""
    noise = 1e-5 * np.random.default_rng(0).normal(size=(len(names), 500))
    raw = mne.io.RawArray(noise, mne.create_info(names, 100.0, "eeg"), verbose="error")
    for wanted in (["C3", "C4"], ["C3-M2", "C4-M1"], ["A1-A2"]):
        chs = mne.create_info(wanted, 100.0, "eeg")["chs"]
        with pytest.raises(ValueError, match=r"BioSemi .*raw\.rename_channels"):
            prepare_as_trained(raw, "night", Preprocessing(), 100.0, chs)
    # A model of the same names receives its own channels, against the electrode of that name.
    chs = mne.create_info(names[::-1], 100.0, "eeg")["chs"]
    trained = Preprocessing(reference="A1", channels=tuple(names[::-1]))
    prepared = prepare_as_trained(raw, "night", trained, 100.0, chs)
    assert not prepared.missing + prepared.not_rereferenced + prepared.differences
    np.testing.assert_allclose(prepared.signals, (noise - noise[0])[::-1], atol=1e-9)
    assert rereferenced(Derivation("A5", "A5"), "M1, M2", names, names) is None


def test_gaps_do_not_count():
    """MNE fills what was not recorded with zeros."""
    signal = np.random.default_rng(0).standard_normal(2000)
    signal[500:900] = 0
    raw = recording(signal)
    assert flat_clipped_durations(raw, ["E0"])["E0"].flat == 4.0
    raw.set_annotations(mne.Annotations([5.0], [4.0], ["BAD_ACQ_SKIP"]))
    assert flat_clipped_durations(raw, ["E0"])["E0"] == FlatClippedDuration(0.0, 0.0)
