"""Folders whose recordings have different channels: one choice before average and methods."""

from __future__ import annotations

from contextlib import nullcontext

import mne
import numpy as np
import pandas as pd
import pytest

from braindecode_pars import as_sklearn
from braindecode_pars.datasets import folder
from braindecode_pars.predictions.recording import prepare_recording
from braindecode_pars.recordings.first_look import (
    line_noise_peaks,
    shared_channels,
    warn_of_line_frequency,
)
from braindecode_pars.study.data_check import check_data

SFREQ = 100.0
SCALP = ("Fp1", "Fp2", "C3", "C4", "T3", "O2")
INPUTS = ("EEG 23A-23R", "EEG 24A-24R")
KEEP = dict(sfreq=SFREQ, low=None, high=None, mains=None, verbose=0)


def recording(seed, names, *, scale=(), seconds=5):
    """Return noise that belongs to the seed and the place of a channel, not to its name."""
    rng = np.random.default_rng(seed)
    noise = 1e-5 * np.stack([rng.normal(size=int(seconds * SFREQ)) for _ in names])
    noise[len(names) - len(scale) :] *= np.reshape(scale, (-1, 1))
    return mne.io.RawArray(noise, mne.create_info(list(names), SFREQ, "eeg"), verbose="error")


def write(root, raws, labels):
    """Write one recording per subject, and return their labels as a table."""
    root.mkdir()
    for i, raw in enumerate(raws):
        raw.save(root / f"P{i:02d}_raw.fif", verbose="error")
    files = [f"P{i:02d}_raw" for i in range(len(raws))]
    return dict(labels=pd.DataFrame(dict(file=files, subject=files, label=labels)), **KEEP)


def load(root, raws, labels=None, **given):
    labels = ["a", "b"] * (len(raws) // 2) + ["a"] * (len(raws) % 2) if labels is None else labels
    return folder.load(root, window_seconds=5, **{**write(root, raws, labels), **given})


def names_in(windows):
    [names] = {tuple(part.raw.ch_names) for part in windows.datasets}
    return names


def signals(windows):
    return np.stack(list(as_sklearn(windows)[0]))


@pytest.mark.slow
def test_inputs_that_only_one_group_has_reach_no_method(tmp_path):
    """Of 10 controls 8, and of 10 patients none, have two loud inputs more."""
    labels = ["control", "patient"] * 10
    electrodes = [f"EEG {name}-LE" for name in SCALP]
    has_inputs = [label == "control" and i < 16 for i, label in enumerate(labels)]
    raws = [
        recording(i, [*electrodes, *INPUTS][: 8 if more else 6], scale=[15, 15] if more else [])
        for i, more in enumerate(has_inputs)
    ]
    windows = load(tmp_path / "all", raws, labels, reference="average")
    expected = np.stack([raw.get_data()[:6] for raw in raws])
    expected -= expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(signals(windows), expected, atol=1e-10)
    assert names_in(windows) == tuple(electrodes)
    # The recorded channels still identify the groups, which is a warning.
    check = check_data(windows, in_spite_of=["confounds"])
    [finding] = [finding for finding in check.findings if finding.kind == "confounds"]
    assert finding.level == "warning"
    assert "shared channels only (2 of 'control', 10 of 'patient')" in finding.text


def test_names_of_one_electrode_are_one_channel(tmp_path):
    """-LE or -REF, T3 or T7, and another order; an average is the same whatever it was before."""
    forms = (
        [f"EEG {name}-LE" for name in SCALP],
        [f"{name.replace('T3', 'T7')}-REF" for name in SCALP],
    )
    raws = [recording(i, forms[i % 2]) for i in range(2)]
    raws[1].reorder_channels(forms[1][::-1])
    windows = load(tmp_path / "mixed", raws, reference="average")
    assert names_in(windows) == tuple(forms[0])
    plain = np.stack([recording(i, SCALP).get_data() for i in range(2)])
    plain -= plain.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(signals(windows), plain, atol=1e-10)


def infos(*layouts):
    """Return the info of one recording with each list of channels."""
    created = [mne.create_info([*names], SFREQ, "eeg") for names in layouts]
    return {f"P{i}": info for i, info in enumerate(created)}


@pytest.mark.parametrize(("n", "expected"), [(3, SCALP[:2]), (4, SCALP)])
def test_at_most_a_quarter_of_recordings_is_ignored(n, expected):
    layouts = infos(SCALP[:2], *[SCALP] * (n - 1))
    with pytest.warns(UserWarning, match="marked as bad in 1") if n < 4 else nullcontext():
        assert shared_channels(layouts)[0] == [*expected]


def test_only_recordings_with_fewer_than_half_of_the_usual_channels_are_ignored():
    half = infos(SCALP[: len(SCALP) // 2], *[SCALP] * 3)
    with pytest.warns(UserWarning, match="marked as bad in"):
        assert shared_channels(half)[0] == [*SCALP[: len(SCALP) // 2]]
    # Channels of half of the recordings are usual: the first has 2 of 5.
    layouts = infos(SCALP[:2], SCALP[:3], SCALP[:5], SCALP[:5])
    with pytest.warns(UserWarning, match="marked as bad in"):
        assert shared_channels(layouts)[0] == [*SCALP[:3]]


@pytest.mark.parametrize(
    ("names", "used"),
    [
        (["C3-A2"], ["C3-A2"]),
        (["EEG"], ["EEG"]),
        (["ear1", "ear2"], ["ear1", "ear2"]),
        ([*(f"E{i}" for i in range(9)), "Cz"], [*(f"E{i}" for i in range(9)), "Cz"]),
        (["C3-M2", "C4-M1", "Fpz-Cz", "M1-M2"], ["C3-M2", "C4-M1", "Fpz-Cz"]),
        (["Fp1", "C3", "A1", "X1", "A2-A1"], ["Fp1", "C3"]),
    ],
)
def test_what_is_chosen(names, used):
    assert shared_channels(infos(names, names))[0] == used


def test_given_channels_are_chosen_before_the_reference(tmp_path):
    raws = [recording(i, [f"EEG {n}-LE" for n in (*SCALP, "A1")]) for i in range(2)]
    chosen = ["A1", "C4", "c3"]
    windows = load(tmp_path / "data", raws, channels=chosen, reference="average")
    expected = signals(load(tmp_path / "all", raws, channels=["A1", "C4", "C3"]))
    assert names_in(windows) == ("A1", "C4", "c3")
    expected -= expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(signals(windows), expected, atol=1e-10)
    with pytest.raises(ValueError, match=r"1 of 2 .*Oz.* are missing"):
        load(tmp_path / "absent", raws, channels=["C3", "Oz"])


def test_electrodes_of_biosemi(tmp_path):
    """All are used, in one system; none is taken for an electrode of the 10-20 system."""
    names = [f"{letter}{i}" for letter in "ABC" for i in range(1, 33)]
    assert shared_channels(infos(names, names), average=True) == (names, True)
    with pytest.raises(ValueError, match=r"No EEG channel .*4"):
        shared_channels(infos(*[names, SCALP] * 2))
    raws = [recording(i, names) for i in range(2)]
    assert names_in(load(tmp_path / "own", raws, channels=["BioSemi C3"])) == ("BioSemi C3",)
    with pytest.raises(ValueError, match=r"2 of 2 .*C3, C4.*BioSemi .*raw\.rename_channels"):
        load(tmp_path / "other", raws, channels=["C3", "C4"])


def test_a_model_predicts_other_layouts_with_its_own_average(tmp_path):
    """The average of the training is remembered by its channels where layouts differ."""
    raws = [recording(i, [*SCALP, "Oz"][: 7 if i % 2 else 6], scale=[9]) for i in range(4)]
    with pytest.warns(UserWarning, match="Oz +in 2 of 4 recordings"):
        windows = load(tmp_path / "data", raws, reference="average", high=40.0)

    class Model:
        sfreq_, n_times_ = SFREQ, 500
        chs_info_ = as_sklearn(windows)[0].chs_info
        preprocessing_ = as_sklearn(windows)[0].recordings["preprocessing"][0]

    assert Model.preprocessing_.reference == ", ".join(SCALP)
    for part, raw in zip(windows.datasets, raws, strict=True):
        prepared = prepare_recording(raw, "new", Model())
        np.testing.assert_allclose(prepared.signals, part.raw.get_data(), rtol=1e-4, atol=1e-9)


def test_another_line_frequency_is_a_warning(tmp_path, recwarn):
    def raw(seed, line_freq=50.0):
        made = recording(seed, SCALP[:3], seconds=20).resample(200.0, verbose="error")
        made._data += 3e-5 * np.sin(2 * np.pi * line_freq * made.times) if line_freq else 0.0
        return made

    for mains, line_freqs in ((50.0, [50, 50]), (60.0, [None, None]), (60.0, [50, 60])):
        peaks = [line_noise_peaks(raw(i, freq)) for i, freq in enumerate(line_freqs)]
        warn_of_line_frequency(peaks, mains, 200.0)
    raws, keep = [*map(raw, range(2))], dict(sfreq=200.0)
    load(tmp_path / "none", raws, **keep)
    assert not recwarn.list
    message = r"2 of 2 .* 50 Hz and none at 60 Hz.* mains=50 \(--mains 50\)"
    with pytest.warns(UserWarning, match=message):
        load(tmp_path / "wrong", raws, mains=60.0, **keep)
