"""PhysioNet-MI: published recordings, and folders that the tests write."""

from __future__ import annotations

import socket

import mne
import numpy as np
import pytest

from braindecode_pars import PARSClassifier, as_sklearn
from braindecode_pars.datasets import physionet_mi
from braindecode_pars.evaluation import leave_one_subject_out


@pytest.fixture
def no_network(monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "create_connection", fail)
    monkeypatch.setattr(socket.socket, "connect", fail)
    monkeypatch.setattr(socket, "getaddrinfo", fail)


def test_published_recordings(eeg_folder, no_network):
    windows = physionet_mi.load(eeg_folder, [1, 88], verbose=0)
    assert windows[0][0].shape == (64, 800)
    assert windows.datasets[0].raw.ch_names[:3] == ["FC5", "FC3", "FC1"]
    assert {ds.raw.info["sfreq"] for ds in windows.datasets} == {200.0}  # the file of S088: 128 Hz
    _, y, groups = as_sklearn(windows)
    assert set(groups) == {1, 88}
    assert (groups == 1).sum() == 45  # fifteen trials per run
    assert set(y) == {0, 1}
    assert np.isfinite(windows[50][0]).all()
    assert 1e-6 < windows[50][0].std() < 1e-3  # volts
    # Average reference over all channels.
    assert np.abs(windows[10][0].mean(axis=0)).max() < 1e-9


def test_trials_agree_with_the_annotations(eeg_folder):
    (recording,) = [
        r
        for r in physionet_mi.recordings(eeg_folder)
        if (r.subject, r.description["run"]) == (3, 8)
    ]
    raw = mne.io.read_raw_edf(recording.file, verbose="error")
    cues = [(a["onset"], a["description"]) for a in raw.annotations if a["description"] != "T0"]
    (trials,) = [
        ds
        for ds in physionet_mi.load(eeg_folder, [3], verbose=0).datasets
        if ds.description["run"] == 8
    ]
    assert trials.metadata["target"].tolist() == [int(name == "T2") for _, name in cues]
    np.testing.assert_allclose(
        trials.metadata["i_start_in_trial"] / 200.0, [onset for onset, _ in cues], atol=1 / 200
    )


def test_both_fists_and_both_feet_are_separate_classes(eeg_folder, tmp_path):
    tree = tmp_path / "MNE-eegbci-data/files/eegmmidb/1.0.0/S001"
    tree.mkdir(parents=True)
    source = eeg_folder / "MNE-eegbci-data/files/eegmmidb/1.0.0/S001/S001R04.edf"
    (tree / "S001R04.edf").symlink_to(source)
    (tree / "S001R06.edf").symlink_to(source)
    windows = physionet_mi.load(tmp_path, verbose=0)
    by_run = {ds.description["run"]: set(ds.metadata["target"]) for ds in windows.datasets}
    assert by_run == {4: {0, 1}, 6: {2, 3}}


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


def test_a_run_that_was_not_downloaded_is_not_a_missing_run(tmp_path):
    """Missing runs are logged only; a dead link of git-annex is an error or a warning."""
    file = tmp_path / "MNE-eegbci-data/files/eegmmidb/1.0.0/S001/S001R04.edf"
    file.parent.mkdir(parents=True)
    file.symlink_to("absent")
    with pytest.raises(ValueError, match=r"S001R04\.edf cannot be used: it is a link to a file"):
        physionet_mi.load(tmp_path, verbose=0)


def test_pretraining_windows_are_unlabelled(eeg_folder):
    windows = physionet_mi.load(
        eeg_folder, [1], part="pretraining", runs=[4], picks=["Cz"], stride_seconds=15, verbose=0
    )
    assert windows[0][0].shape == (1, 6000)
    assert windows.datasets[0].metadata["i_start_in_trial"].tolist() == [3000 * i for i in range(7)]
    assert set(windows.datasets[0].metadata["target"]) == {-1}


def test_picks_keep_the_reference_of_all_channels(eeg_folder):
    whole = physionet_mi.load(eeg_folder, [2], runs=[4], verbose=0)
    picked = physionet_mi.load(eeg_folder, [2], runs=[4], picks=["C3", "C4"], verbose=0)
    np.testing.assert_array_equal(
        picked[3][0], whole[3][0][[whole.datasets[0].raw.ch_names.index(n) for n in ("C3", "C4")]]
    )


def test_leave_one_subject_out_on_published_recordings(eeg_folder):
    """Three subjects, with pretraining and fine-tuning of a small model."""
    windows = physionet_mi.load(
        eeg_folder, [1, 2, 3], runs=[4, 8], picks=["C3", "Cz", "C4", "CP3", "CP4"], verbose=0
    )
    # The smallest model and the fewest epochs that run both phases.
    clf = PARSClassifier(
        embed_dim=16,
        num_layers=1,
        num_heads=2,
        mlp_dim=32,
        pretrain_epochs=2,
        finetune_epochs=2,
        electrode_position=True,
        verbose=0,
    )
    scores = leave_one_subject_out({"PARS": clf}, windows, dataset="PhysioNet-MI", verbose=0)
    assert sorted(scores["subject"].unique()) == [1, 2, 3]
    assert scores["value"].between(-1, 1).all()
    assert (scores["n_train_subjects"] == 2).all()


def test_missing_runs_are_logged_and_never_downloaded(eeg_folder, no_network, tmp_path, caplog):
    caplog.set_level("INFO")
    tree = tmp_path / "MNE-eegbci-data/files/eegmmidb/1.0.0/S001"
    tree.mkdir(parents=True)
    source = eeg_folder / "MNE-eegbci-data/files/eegmmidb/1.0.0/S001/S001R04.edf"
    (tree / "S001R04.edf").symlink_to(source)
    windows = physionet_mi.load(tmp_path, runs=[4, 8, 12])
    assert len(windows) == 15
    assert "Skipped 2 missing runs: S001R08, S001R12." in caplog.text
    with pytest.raises(FileNotFoundError, match="contains no recording of subject 2; it has 1"):
        physionet_mi.load(tmp_path, [1, 2])
    assert sorted(p.name for p in tree.parent.iterdir()) == ["S001"]  # no folder was created


def test_a_truncated_file_is_named_and_not_downloaded_again(eeg_folder, tmp_path):
    tree = tmp_path / "MNE-eegbci-data/files/eegmmidb/1.0.0/S001"
    tree.mkdir(parents=True)
    source = eeg_folder / "MNE-eegbci-data/files/eegmmidb/1.0.0/S001/S001R04.edf"
    (tree / "S001R04.edf").write_bytes(source.read_bytes()[:100_000])
    with pytest.raises(ValueError, match=r"S001R04\.edf cannot be used: it is damaged or trun"):
        physionet_mi.load(tmp_path)


def test_wrong_folders_and_arguments_raise(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected files such as .*S001R04\.edf"):
        physionet_mi.load(tmp_path)
    with pytest.raises(ValueError, match=r"runs must be among \(4, 6, 8.*got \(5,\)"):
        physionet_mi.load(tmp_path, runs=[5])
    with pytest.raises(TypeError, match="runs is the number 4; pass a list"):
        physionet_mi.load(tmp_path, runs=4)
    with pytest.raises(ValueError, match="part must be one of 'trials', 'pretraining', got 'all'"):
        physionet_mi.load(tmp_path, part="all")
