"""Readers of files: units, kinds of signals, and damaged files."""

from __future__ import annotations

from pathlib import Path

import edfio
import mne
import numpy as np
import pytest
import wfdb

from braindecode_pars.recordings.readers import read_edf, read_recording, read_wfdb

TIMES = np.arange(5 * 100) / 100
WAVE = np.cos(2 * np.pi * 10 * TIMES)  # its largest sample is 1


def write_edf(file: Path, labels, unit="uV") -> Path:
    signals = [
        edfio.EdfSignal(40 * WAVE, 100, label=label, physical_dimension=unit) for label in labels
    ]
    edfio.Edf(signals).write(file)
    return file


def write_wfdb(folder: Path, names, units) -> Path:
    wfdb.wrsamp(
        "night",
        fs=100,
        units=units,
        sig_name=names,
        p_signal=np.column_stack([40 * WAVE] * len(names)),
        fmt=["16"] * len(names),
        write_dir=str(folder),
    )
    return folder / "night.hea"


def kinds(raw: mne.io.BaseRaw) -> dict[str, str]:
    return dict(zip(raw.ch_names, raw.get_channel_types(), strict=True))


def test_edf_is_read_in_volts(tmp_path):
    raw = read_edf(write_edf(tmp_path / "a.edf", ["C3"]))
    assert np.abs(raw.get_data()).max() == pytest.approx(40e-6, rel=1e-3)


def test_labels_mark_other_kinds_of_signals(tmp_path):
    raw = read_recording(write_edf(tmp_path / "a.edf", ["C3", "ECG", "EMG chin"]))
    assert kinds(raw) == {"C3": "eeg", "ECG": "misc", "EMG chin": "misc"}
    raw = read_recording(write_edf(tmp_path / "b.edf", ["EEG C3", "C4"]))
    assert kinds(raw) == {"EEG C3": "eeg", "C4": "misc"}
    others = ["EOG1", "EMG_chin", "HEOG", "SpO2", "HR", "Pleth", "ROC", "LOC", "Flow", "TRIG"]
    raw = read_recording(write_edf(tmp_path / "c.edf", ["O1", *others]))
    assert kinds(raw) == {"O1": "eeg", **dict.fromkeys(others, "misc")}


def test_a_truncated_edf_is_refused(tmp_path):
    file = write_edf(tmp_path / "a.edf", ["C3", "C4"])
    content = file.read_bytes()
    file.write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(ValueError, match="damaged or truncated"):
        read_edf(file)


def test_wfdb_voltages_are_read_and_other_units_are_not(tmp_path):
    file = write_wfdb(tmp_path, ["C3", "C4", "flow"], ["uV", "mV", "NU"])
    raw = read_wfdb(file)
    assert raw.ch_names == ["C3", "C4"]
    np.testing.assert_allclose(np.abs(raw.get_data()).max(axis=1), [40e-6, 40e-3], rtol=0.01)


def test_wanted_wfdb_signals_must_be_voltages(tmp_path):
    file = write_wfdb(tmp_path, ["C3", "flow"], ["uV", "NU"])
    assert read_wfdb(file, lambda name: name == "C3").ch_names == ["C3"]
    with pytest.raises(ValueError, match="NU, not in V, mV, uV"):
        read_wfdb(file, lambda name: True)
    only = tmp_path / "only"
    only.mkdir()
    with pytest.raises(ValueError, match="NU, not in V, mV, uV"):
        read_wfdb(write_wfdb(only, ["flow"], ["NU"]))


def test_a_missing_wfdb_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match="damaged or truncated"):
        read_wfdb(tmp_path / "absent.hea")


def test_fif_keeps_its_channel_types(tmp_path):
    info = mne.create_info(["C3", "HEOG"], 100.0, ["eeg", "eog"])
    raw = mne.io.RawArray(np.vstack([WAVE, WAVE]) * 1e-5, info, verbose="error")
    raw.save(tmp_path / "a_raw.fif", verbose="error")
    assert kinds(read_recording(tmp_path / "a_raw.fif")) == {"C3": "eeg", "HEOG": "eog"}
