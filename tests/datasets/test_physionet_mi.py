"""PhysioNet-MI: recipe, with published recordings and folders that the tests write."""

from __future__ import annotations

import socket
from typing import ClassVar

import mne
import numpy as np
import pytest
from support.edf_files import write_edf_records
from support.recipe_contract import RecipeContract

from braindecode_pars.datasets import physionet_mi


@pytest.fixture
def no_network(monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "create_connection", fail)
    monkeypatch.setattr(socket.socket, "connect", fail)
    monkeypatch.setattr(socket, "getaddrinfo", fail)


def test_splits_follow_the_paper(tmp_path):
    for subject in (1, 70, 71, 89, 90, 109):
        tree = tmp_path / f"MNE-eegbci-data/files/eegmmidb/1.0.0/S{subject:03d}"
        tree.mkdir(parents=True)
        (tree / f"S{subject:03d}R04.edf").touch()
    assert {r.subject: r.description["split"] for r in physionet_mi.recordings(tmp_path)} == {
        1: "train",
        70: "train",
        71: "valid",
        89: "valid",
        90: "test",
        109: "test",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(runs=[5]), r"runs .*\(5,\)"),
        (dict(contrast="fists"), "contrast .*'fists'"),
        (dict(reference="Cz"), "reference .*'Cz'"),
        (dict(picks="all"), "picks .*'all'"),
        (dict(tmin=4), "tmax=4"),
    ],
)
def test_invalid_arguments_raise(tmp_path, arguments, message):
    (tmp_path / "S001R04.edf").touch()
    with pytest.raises(ValueError, match=message):
        physionet_mi.load(tmp_path, **arguments)


#: Events that the tests write: onset in seconds -> code and duration in seconds. One rest is short,
#: one trial is long enough for two windows, and the last trial ends with the recording.
EVENTS = {
    **{1: ("T0", 4.1), 6: ("T1", 4.1), 12: ("T2", 4.0)},
    **{17: ("T0", 3.0), 20: ("T1", 8.5), 29: ("T2", 0.9)},
}
NAMES = ["FC5", "C4", "Cz", "C3"]


def write(file, sfreq, labels):
    """Write a file with half a minute of noise and with events."""
    file.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(sfreq).normal(0, 20, (len(labels), 30 * sfreq))
    texts = {start: f"+{start}\x15{length}\x14{name}" for start, (name, length) in EVENTS.items()}
    return write_edf_records(
        file, noise, range(30), sfreq=sfreq, labels=labels, texts=texts, kind="EDF+C"
    )


@pytest.fixture
def two_trees(tmp_path):
    """A file as published, and a file with fewer channels, a lower rate and standard names."""
    published = ["Fc5.", "C3..", "Fpz.", "Cz..", "C4..", "Iz.."]
    write(tmp_path / "MNE-eegbci-data/files/eegmmidb/1.0.0/S001/S001R04.edf", 160, published)
    write(tmp_path / "reduced/S002R04.edf", 128, ["FC5", "C3", "Cz", "C4"])
    return tmp_path


PREPROCESSING = dict(
    picks=NAMES, reference="picks", sfreq=128, low=0.5, high=45, mains=None, runs=[4], verbose=0
)


def preprocessed_with_mne(root, subject):
    """Return the four channels, preprocessed with MNE only, in volts."""
    (file,) = root.rglob(f"S00{subject}R04.edf")
    raw = mne.io.read_raw_edf(file, preload=True, verbose="error").resample(128)
    raw.rename_channels(lambda name: name.rstrip(".").upper())
    signals = raw.filter(0.5, 45, verbose="error").get_data([name.upper() for name in NAMES])
    return signals - signals.mean(axis=0)


def test_trees_with_other_channels_and_rates_are_one_dataset(two_trees):
    trials = physionet_mi.load(two_trees, tmin=1, tmax=4, **PREPROCESSING)
    assert trials.description["subject"].tolist() == [1, 2]
    for subject, recording in zip((1, 2), trials.datasets, strict=True):
        assert recording.raw.ch_names == NAMES
        signals = preprocessed_with_mne(two_trees, subject)
        assert len(recording) == 3  # one window per trial, also for the long trial
        for (x, y, _), cue, target in zip(recording, (6, 12, 20), (0, 1, 0), strict=True):
            assert y == target
            expected = signals[:, (cue + 1) * 128 : (cue + 4) * 128]
            np.testing.assert_allclose(x, expected, atol=1e-10)


def test_signals_other_than_eeg_do_not_change_the_reference(tmp_path):
    write(tmp_path / "S001R04.edf", 160, ["Fc5.", "C3..", "ECG", "EOG left"])
    (recording,) = physionet_mi.recordings(tmp_path)
    raw = physionet_mi.prepare(recording)
    assert raw.ch_names == ["FC5", "C3"]
    np.testing.assert_allclose(raw.get_data().mean(axis=0), 0, atol=1e-15)


def test_both_fists_and_both_feet_are_separate_classes(two_trees):
    write(two_trees / "reduced/S002R06.edf", 128, NAMES)
    windows = physionet_mi.load(two_trees, [2], **{**PREPROCESSING, "runs": [4, 6]})
    by_run = {ds.description["run"]: [*ds.metadata["target"]] for ds in windows.datasets}
    assert by_run == {4: [0, 1, 0], 6: [2, 3, 2]}


def test_missing_runs_are_never_downloaded(two_trees, no_network):
    before = sorted(two_trees.rglob("*"))
    options = {**PREPROCESSING, "runs": [4, 8, 12]}
    assert len(physionet_mi.load(two_trees, [1], **options)) == 3
    with pytest.raises(FileNotFoundError, match=r": 3\..* 1"):
        physionet_mi.load(two_trees, [1, 3], **options)
    assert sorted(two_trees.rglob("*")) == before


def test_rest_and_imagery(two_trees):
    trials = physionet_mi.load(two_trees, contrast="rest", tmin=1, tmax=4, **PREPROCESSING)
    for recording in trials.datasets:
        assert recording.metadata["target"].tolist() == [0, 1, 1, 1]  # no window in the short rest
        starts = recording.metadata["i_start_in_trial"]
        assert starts.tolist() == [(cue + 1) * 128 for cue in (1, 6, 12, 20)]


def test_the_recorded_reference_can_be_used(two_trees):
    recorded, average = (
        physionet_mi.load(two_trees, [1], **{**PREPROCESSING, "reference": reference})[0][0]
        for reference in (None, "average")
    )
    assert np.abs(recorded.mean(axis=0)).max() > 1e-6
    # The average reference uses all six channels of the file, not only the four picked channels.
    (file,) = two_trees.rglob("S001R04.edf")
    raw = mne.io.read_raw_edf(file, preload=True, verbose="error").resample(128)
    mean = raw.filter(0.5, 45, verbose="error").get_data().mean(axis=0)
    np.testing.assert_allclose(average, recorded - mean[6 * 128 : 10 * 128], atol=1e-10)


class TestContract(RecipeContract):
    name = "physionet_mi"
    example = r"S001R04\.edf"
    settings: ClassVar = {
        **{name: value for name, value in PREPROCESSING.items() if name != "verbose"},
        **dict(tmin=1, contrast="rest"),
    }
    classes = ("rest", "imagined movement")

    def write(self, root):
        return (
            write(root / "MNE-eegbci-data/S001R04.edf", 160, ["Fc5.", "C3..", "Cz..", "C4.."]),
            write(root / "reduced/S002R04.edf", 128, NAMES),
        )
