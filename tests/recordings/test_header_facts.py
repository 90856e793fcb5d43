"""What headers tell of each signal: ranges, filters, rates and frames; and what MNE warns of."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import wfdb
from support.edf_files import write_edf_records

from braindecode_pars.recordings import readers
from braindecode_pars.windows.recorded_steps import recorded

NOISE = np.random.default_rng(0).integers(-300, 300, (3, 600))


def edf(file, labels, columns=(), **kwargs):
    """Write a file, with other texts in some columns of the header (first byte, width, texts)."""
    write_edf_records(file, NOISE, range(6), labels=labels, kind="EDF+C", **kwargs)
    content = bytearray(file.read_bytes())
    for first, width, texts in columns:
        for i, text in enumerate(texts):
            begin = 256 + first * 4 + i * width
            content[begin : begin + width] = text.encode().ljust(width)
    file.write_bytes(content)
    return file


@pytest.mark.parametrize(
    "columns",
    [
        [(104, 8, ["-1", "-1", "0"]), (112, 8, ["1", "1", "0"])],  # physical
        [(120, 8, ["-1", "-1", "5"]), (128, 8, ["1", "1", "5"])],  # digital
    ],
)
def test_a_signal_without_a_range_is_not_used(tmp_path, columns):
    file = edf(tmp_path / "a.edf", ["EEG C3", "EEG C4", "EEG Cz"], columns)
    with pytest.warns(UserWarning, match=r"a\.edf: 1 of 3 signals .*EEG Cz \(no valid range\)"):
        raw, _ = readers.open_recording(file)
    assert raw.get_channel_types() == ["eeg", "eeg", "misc"]
    with pytest.raises(ValueError, match=r"EEG Cz \(no valid range\)"):
        readers.read_edf(file)


def test_records_without_length_are_refused(tmp_path):
    file = edf(tmp_path / "a.edf", ["C3", "C4", "Cz"])
    content = bytearray(file.read_bytes())
    content[244:252] = b"0       "
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"data record is 0 s"):
        readers.read_recording(file)


@pytest.mark.parametrize("first", [244, 256 + 104 * 4, 256 + 128 * 4])
def test_an_empty_number_in_the_header_is_an_error(tmp_path, first):
    file = edf(tmp_path / "a.edf", ["C3", "C4", "Cz"])
    content = bytearray(file.read_bytes())
    content[first : first + 8] = b" " * 8
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"'' as the (duration|minimum)"):
        readers.read_recording(file)


@pytest.mark.parametrize(
    ("filters", "band"),
    [
        (["HP:0.1Hz LP:100Hz", "HP:0.1Hz LP:100Hz", "HP:10Hz LP:15Hz"], (0.1, None)),
        (["HP:0,5Hz LP:30Hz", "HP:DC LP:40Hz", "LP:5Hz"], (0.5, 30.0)),
        (["hp:0.5hz lp:30hz", "HP: .5 LP: 40 HZ", ""], (0.5, 30.0)),
        (["HP:0.53s LP:0.03kHz", "HP:500 mHz LP:30Hz", ""], (None, 30.0)),  # a time, other units
        (["", "", "HP:1Hz LP:5Hz"], None),
    ],
)
def test_the_filters_are_those_of_the_eeg(tmp_path, filters, band):
    file = edf(tmp_path / "a.edf", ["EEG C3", "EEG C4", "Airflow"], [(136, 80, filters)])
    assert recorded(readers.read_recording(file).info).band == band


@pytest.mark.parametrize("labels", [["EEG C3", "flow", "flow"], ["EEG C3", "", ""]])
def test_signals_of_one_label_and_several_rates(tmp_path, labels):
    """The rate is that of the EEG, with the header alone, too."""
    file = edf(tmp_path / "a.edf", labels, [(216, 8, ["100", "50", "150"])])
    for preload in (True, False):
        raw = readers.read_recording(file, preload=preload)
        assert (raw.info["sfreq"], raw.n_times, raw.ch_names[0]) == (100.0, 600, "EEG C3")
        assert np.abs(raw.get_data(["EEG C3"])[0] * 1e6 - NOISE[0]).max() < 1e-3


def test_frames_of_several_samples_are_not_averaged(tmp_path):
    eeg = np.round(1000 * np.sin(2 * np.pi * 20 * np.arange(2000) / 200)) / 10
    wfdb.wrsamp(
        "night",
        25,
        ["uV", "uV", "NU"],
        ["C3", "ECG", "flow"],
        e_p_signal=[eeg, np.arange(500.0) % 7, np.ones(250)],
        fmt=["16"] * 3,
        samps_per_frame=[8, 2, 1],
        write_dir=str(tmp_path),
    )
    raw = readers.read_recording(tmp_path / "night.hea")
    assert (raw.info["sfreq"], raw.n_times) == (200.0, 2000)
    assert np.abs(raw.get_data(["C3"])[0] * 1e6 - eeg).max() < 0.1
    header = readers.read_recording(tmp_path / "night.hea", preload=False)
    assert (header.info["sfreq"], header.n_times) == (200.0, 2000)


def test_what_is_not_understood_is_passed_on_once(tmp_path):
    def read():
        with readers.short_errors(tmp_path / "a.fif"):
            for text in ("Something odd", "Something odd", "Channels contain different filters"):
                warnings.warn(text, RuntimeWarning, stacklevel=1)

    with pytest.warns(UserWarning, match=r"^a\.fif: Something odd$") as caught:
        read()
    assert len(caught) == 1
