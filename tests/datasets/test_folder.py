"""Own folders and BIDS data sets: labels from annotations or from tables, subjects from names."""

from __future__ import annotations

import mne
import numpy as np
import pytest

from braindecode_pars import as_sklearn
from braindecode_pars.datasets import folder

SFREQ = 100.0
KEEP = dict(sfreq=SFREQ, low=None, high=None, mains=None, verbose=0)


def recording(value=1e-5, seconds=60, names=("C3", "C4", "EOG1"), first_samp=0):
    info = mne.create_info(list(names), SFREQ, "eeg")
    times = np.arange(int(seconds * SFREQ)) / SFREQ
    data = np.tile(value * np.floor(times / 10 + 1), (len(names), 1))  # one value in ten seconds
    return mne.io.RawArray(data, info, first_samp=first_samp, verbose="error")


def bids(root, subjects=("01", "02"), trial_types=("left", "right", "n/a"), durations="4"):
    (root / "dataset_description.json").write_text("{}")
    for subject in subjects:
        part = root / f"sub-{subject}" / "eeg"
        part.mkdir(parents=True)
        name = f"sub-{subject}_task-imagery"
        recording().export(part / f"{name}_eeg.edf", verbose="error")
        rows = [
            f"{10 * i}\t{durations}\t{kind}" for i, kind in enumerate([*trial_types] * 2) if i < 6
        ]
        (part / f"{name}_events.tsv").write_text("\n".join(["onset\tduration\ttrial_type", *rows]))
        (part / f"{name}_channels.tsv").write_text(
            "name\ttype\tstatus\nC3\tEEG\tgood\nC4\tEEG\tbad\nEOG1\tEOG\tgood\n"
        )
    return root


def test_bids(tmp_path):
    root = bids(tmp_path)
    copy = root / "derivatives" / "sub-01" / "sub-01_task-imagery_eeg.edf"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"not to be read")
    (root / "participants.tsv").write_text("participant_id\tsplit\nsub-01\ttrain\nsub-02\ttest\n")
    windows = folder.load(root, window_seconds=4, **KEEP)
    X, y, groups = as_sklearn(windows)
    assert groups.tolist() == ["01"] * 4 + ["02"] * 4
    assert y.tolist() == [0, 1, 0, 1] * 2  # "left" before "right"; "n/a" is no label
    assert [windows.datasets[0].raw.ch_names, windows.datasets[0].raw.info["bads"]] == [
        ["C3", "C4"],
        ["C4"],
    ]
    assert windows.description["split"].tolist() == ["train", "test"]
    # The samples are those at the onsets: 0, 10, 30 and 40 seconds.
    steps = [round(float(np.median(X[i][0])) / 1e-5) for i in range(4)]
    assert steps == [1, 2, 4, 5]


def test_events_without_a_duration_give_one_window(tmp_path):
    windows = folder.load(bids(tmp_path, durations="n/a"), ["02"], window_seconds=3, **KEEP)
    assert as_sklearn(windows)[1].tolist() == [0, 1, 0, 1]
    assert windows[0][0].shape == (2, 300)


@pytest.mark.parametrize("first_samp", [0, 700])
def test_annotations_of_the_files(tmp_path, first_samp):
    """Folders are subjects; a FIF file may begin later than its clock."""
    for subject in ("anna", "ben"):
        raw = recording(names=["C3"], first_samp=first_samp)
        raw.set_meas_date(0)
        stages = mne.Annotations([0, 20, 30, 5], [20, 10, 30, 0], ["W", "N2", "W", "Lights off"])
        raw.set_annotations(stages)
        (tmp_path / subject).mkdir()
        raw.save(tmp_path / subject / "night_raw.fif", verbose="error")
    windows = folder.load(tmp_path, window_seconds=10, **KEEP)
    X, y, groups = as_sklearn(windows)
    assert y.tolist() == [1, 1, 0, 1, 1, 1] * 2  # N2, then W; a mark is no stage
    assert set(groups) == {"anna", "ben"}
    steps = [round(float(np.median(X[i][0])) / 1e-5) for i in range(6)]
    assert steps == [1, 2, 3, 4, 5, 6]
    chosen = folder.load(tmp_path, window_seconds=10, labels={"W": 7}, **KEEP)
    assert set(as_sklearn(chosen)[1].tolist()) == {7}


def test_folders_that_cannot_be_used(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"contains no recording; expected files that end"):
        folder.load(tmp_path)
    recording().export(tmp_path / "P01.edf", verbose="error")
    with pytest.raises(ValueError, match="No annotation of 1 recordings is as long as a window"):
        folder.load(tmp_path, verbose=0)
    with pytest.raises(ValueError, match=r"labels is the text 'W'; give a list of labels, \['W'\]"):
        folder.load(tmp_path, labels="W", verbose=0)
    (tmp_path / "P01_events.tsv").write_text("onset\tduration\tstage\n0\t30\tW\n")
    with pytest.raises(ValueError, match="no column 'trial_type'"):
        folder.load(tmp_path, labels=["W"], verbose=0)
