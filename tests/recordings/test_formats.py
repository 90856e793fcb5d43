"""Readers of files: units, kinds of channels, gaps that MNE hides, files that are no recordings."""

from __future__ import annotations

import re
from pathlib import Path

import edfio
import mne
import numpy as np
import pytest
import wfdb
from support.edf_files import write_edf_records

from braindecode_pars.recordings.readers import (
    open_recording,
    read_edf,
    read_recording,
    read_wfdb,
)

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


def test_labels_mark_other_kinds_of_signals(tmp_path):
    raw = read_recording(write_edf(tmp_path / "a.edf", ["C3", "ECG", "EMG chin"]))
    assert kinds(raw) == {"C3": "eeg", "ECG": "misc", "EMG chin": "misc"}
    raw = read_recording(write_edf(tmp_path / "b.edf", ["EEG C3", "C4"]))
    assert kinds(raw) == {"EEG C3": "eeg", "C4": "misc"}
    others = ["EOG1", "EMG_chin", "HEOG", "SpO2", "HR", "Pleth", "ROC", "LOC", "Flow", "TRIG"]
    raw = read_recording(write_edf(tmp_path / "c.edf", ["O1", *others]))
    assert kinds(raw) == {"O1": "eeg", **dict.fromkeys(others, "misc")}
    # Only "misc" would mean that nothing is known of the types.
    assert kinds(read_recording(write_edf(tmp_path / "d.edf", ["ECG"]))) == {"ECG": "bio"}


@pytest.mark.parametrize("unit", ["", "UV", "mV/cm"])
def test_a_signal_of_an_unknown_unit_is_excluded(tmp_path, unit):
    """MNE would take the numbers as volts. The ECG may have any unit, and X1 is no EEG."""
    signals = np.tile(np.arange(200), (4, 1))
    labels, units = ["C3", "C4", "ECG", "X1"], ["uV", unit, unit, "%"]
    file = write_edf_records(
        tmp_path / "a.edf", signals, [0, 1], labels=labels, units=units, kind="EDF+C"
    )
    message = rf"C4 \({re.escape(unit or 'no unit')}\)"
    with pytest.warns(UserWarning, match=rf"a\.edf: 1 of 4 signals .*{message}"):
        raw, _ = open_recording(file)
    assert kinds(raw) == {"C3": "eeg", "C4": "misc", "ECG": "misc", "X1": "misc"}
    with pytest.raises(ValueError, match=r"C4 .*, ECG"):
        read_edf(file)
    assert read_edf(file, lambda name: name == "C3").ch_names == labels
    file.write_bytes(file.read_bytes().replace(b"uV", b"??", 1))
    with pytest.raises(ValueError, match=rf"C3 \(\?\?\), {message}.*units='uV'"):
        read_recording(file)  # none is left


def test_all_spellings_of_microvolts_are_read(tmp_path):
    signals = np.tile(np.arange(200), (5, 1))
    units = ["uV", "\u00b5V", "\x83\xcaV", "mV", "V"]
    file = write_edf_records(tmp_path / "a.edf", signals, [0, 1], units=units, kind="EDF+C")
    largest = read_recording(file).get_data().max(axis=1)
    np.testing.assert_allclose(largest, 199 * np.array([1e-6, 1e-6, 1e-6, 1e-3, 1]), rtol=1e-6)


def test_wfdb_voltages_are_read_and_other_units_are_not(tmp_path):
    file = write_wfdb(tmp_path, ["C3", "C4", "flow"], ["uV", "mV", "NU"])
    raw = read_wfdb(file)
    assert raw.ch_names == ["C3", "C4"]
    np.testing.assert_allclose(np.abs(raw.get_data()).max(axis=1), [40e-6, 40e-3], rtol=0.01)


@pytest.mark.parametrize(
    ("field", "problem"),
    [("/uVolt", "uVolt"), ("0", "no valid range")],
)
def test_a_signal_of_unknown_scale_in_wfdb_is_excluded(tmp_path, field, problem):
    """wfdb takes a gain of 0, of an uncalibrated signal, for 200. An ECG may have any unit."""
    file = write_wfdb(tmp_path, ["C3", "C4", "ECG"], ["uV", "uV", "bar"])
    lines = file.read_text().splitlines()
    gain = lines[2].split()[2]
    lines[2] = lines[2].replace(gain, field if field[0] == "0" else gain.replace("/uV", field))
    file.write_text("\n".join(lines))
    with pytest.warns(UserWarning, match=rf"night\.hea: 1 of 3 signals .*C4 \({problem}\)"):
        raw, _ = open_recording(file)
    assert kinds(raw) == {"C3": "eeg", "C4": "misc", "ECG": "misc"}
    assert read_wfdb(file).ch_names == ["C3"]
    with pytest.raises(ValueError, match=rf"C4 \({problem}\)"):
        read_wfdb(file, lambda name: name in ("C3", "C4"))
    file.write_text("\n".join([lines[0], lines[1].replace("/uV", "/xV"), *lines[2:]]))
    with pytest.raises(ValueError, match=rf"C3 \(xV\), C4 \({problem}\)"):
        read_recording(file)  # none is left


def test_a_delay_between_signals_of_wfdb(tmp_path):
    """The samples that the last signal has not at the end belong to no window."""
    file = write_wfdb(tmp_path, ["C3", "C4"], ["uV", "uV"])
    file.write_text(file.read_text().replace(" 16 ", " 16:50 ", 1))
    data = read_recording(file).get_data() * 1e6
    assert data.shape == (2, len(WAVE) - 50)
    np.testing.assert_allclose(data, [40 * WAVE[50:], 40 * WAVE[:-50]], atol=0.01)


def test_a_micro_sign_in_wfdb_is_refused(tmp_path):
    """wfdb leaves it out, and reads volts; in a comment it does not matter."""
    file = write_wfdb(tmp_path, ["C3"], ["uV"])
    file.write_text(file.read_text() + "# 20 \u00b5V\n", encoding="utf-8")
    assert read_wfdb(file).ch_names == ["C3"]
    file.write_text(file.read_text().replace("/uV", "/\u00b5V"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"ASCII.*/\u00b5V"):
        read_wfdb(file)


def test_files_that_are_no_recordings(tmp_path):
    for name in ("notes.txt", "text_raw.fif"):
        (tmp_path / name).write_text("not EEG")
    (tmp_path / "empty.edf").touch()
    problems = {"notes.txt": r"\.hea", "text_raw.fif": "damaged"}
    problems |= {"empty.edf": "damaged", "missing.edf": "not exist"}
    for name, problem in problems.items():
        with pytest.raises(ValueError, match=rf"{name} .*{problem}"):
            open_recording(tmp_path / name)


def test_texts_of_the_header_may_be_filled_up_with_zeros(tmp_path):
    """Zeros behind a label are left out; a unit with them is volts for MNE."""
    signals = np.tile(np.arange(200), (3, 1))
    how = dict(labels=["EEG C3\0\0", "EEG C4\0", "EMG\0"], kind="EDF+C")
    raw = read_recording(write_edf_records(tmp_path / "a.edf", signals, [0, 1], **how))
    assert kinds(raw) == {"EEG C3": "eeg", "EEG C4": "eeg", "EMG": "misc"}
    np.testing.assert_allclose(raw.get_data().max(axis=1), 199e-6, rtol=1e-6)
    write_edf_records(tmp_path / "b.edf", signals, [0, 1], units=["uV", "uV\0", "uV"], **how)
    with pytest.warns(UserWarning, match=r"1 of 3 signals .*EEG C4 \(uV\\0\)"):
        open_recording(tmp_path / "b.edf")
