"""What headers tell of signals: ranges, filters, rates, frames, and gaps, which are refused."""

from __future__ import annotations

import mne
import numpy as np
import pytest
import wfdb
from support.edf_files import write_edf_records

from braindecode_pars.recordings import readers
from braindecode_pars.recordings.readers import (
    edf_signals,
    open_recording,
    read_edf,
    read_recording,
)
from braindecode_pars.windows.marks import continuous_segments
from braindecode_pars.windows.preprocessing import Preprocessing, agreed
from braindecode_pars.windows.recorded_steps import recorded, remember_edges

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


#: Six records of a second; two seconds are missing after the second, an hour after the fifth.
ONSETS = [0, 1, 4, 5, 6, 3607]
SIGNALS = np.arange(600)[None] + np.array([[0], [1000]])


@pytest.mark.parametrize(("suffix", "letter"), [("edf", "D"), ("bdf", "D"), ("edf", "C")])
def test_a_file_with_gaps_is_refused(tmp_path, suffix, letter):
    """MNE would read its records as if they followed each other, whatever the file calls itself."""
    kind = f"{suffix.upper()}+{letter}"
    file = write_edf_records(tmp_path / f"a.{suffix}", SIGNALS, ONSETS, kind=kind)
    with pytest.raises(ValueError, match="discontinuous"):
        read_recording(file)
    with pytest.warns(UserWarning, match=rf"a\.{suffix} is discontinuous"):
        open_recording(mne.io.read_raw(file, verbose="error"))


@pytest.mark.parametrize(
    ("onsets", "kind"),
    [
        ([0.25 + i for i in range(6)], "EDF+D"),  # the start is a fraction of a second
        ([0, 1, 2.008, 3, 4, 5], "EDF+D"),  # less than a sample
        ([1.0005 * i for i in range(6)], "EDF+C"),  # a clock that drifts
    ],
)
def test_files_without_gaps_are_read_as_by_mne(tmp_path, onsets, kind):
    file = write_edf_records(tmp_path / "a.edf", SIGNALS, onsets, kind=kind)
    assert continuous_segments(read_edf(file)) == [(0, 600)]


def test_units_rates_and_gaps_of_the_header(tmp_path):
    file = write_edf_records(tmp_path / "a.edf", SIGNALS, ONSETS, units=["uV", "mV"])
    signals, has_gaps = edf_signals(file)
    assert (signals["unit"].tolist(), has_gaps) == (["uV", "mV"], True)
    assert signals["sfreq"].tolist() == [100, 100]
    assert signals["is_scaled"].all()
    whole = write_edf_records(tmp_path / "b.edf", SIGNALS, range(6), units=["uV", "mV"])
    assert not edf_signals(whole)[1]


def test_short_gaps_add_up(tmp_path):
    """Each is shorter than a sample."""
    onsets = [1.009 * i for i in range(600)]
    file = write_edf_records(tmp_path / "a.edf", np.zeros((1, 60_000), int), onsets)
    with pytest.raises(ValueError, match="discontinuous"):
        read_edf(file)


def test_an_edge_is_that_of_the_eeg_channels():
    info = mne.create_info(["C3", "C4", "Airflow"], 200.0, ["eeg", "eeg", "misc"])
    remember_edges(info, {"C3": (0.1, 100.0), "C4": (0.2, 70.0), "Airflow": (5.0, 10.0)})
    assert recorded(info).amplifier == recorded(info).band == (0.2, 70.0)
    step = ("filter", dict(l_freq=0.5, h_freq=35.0))
    steps = recorded(info, [dict(fn=step[0], kwargs=step[1])])
    assert (steps.band, steps.amplifier) == ((0.5, 35.0), (0.2, 70.0))
    assert recorded(mne.pick_info(info, [0])).amplifier == (0.1, None)  # 100 Hz is no filter


def test_records_without_or_in_disorder_of_times_are_refused(tmp_path):
    file = write_edf_records(tmp_path / "a.edf", SIGNALS, [0, 1, 4, 3, 5, 6])
    with pytest.raises(ValueError, match="discontinuous"):
        read_edf(file)
    file.write_bytes(file.read_bytes().replace(b"+3\x14\x14", b"\0\0\0\0"))
    with pytest.raises(ValueError, match="damaged"):
        read_edf(file)


def test_several_amplifiers_give_the_narrowest_band():
    bands = [(0.1, 100.0), (0.5, None), (None, 70.0)]
    assert agreed([Preprocessing(amplifier=band) for band in bands]).amplifier == (0.5, 70.0)
    assert agreed([Preprocessing(amplifier=(0.5, 70.0)), Preprocessing()]).amplifier == (0.5, 70.0)
    assert agreed([Preprocessing(sfreq=1)]).amplifier is None
    apart = [Preprocessing(amplifier=band) for band in ((0.1, 10.0), (20.0, 70.0))]
    assert agreed(apart).amplifier is None
