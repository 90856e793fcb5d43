"""Headers of EDF files, and discontinuous files, which are refused where they have gaps."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from support.edf_files import write_edf_records

from braindecode_pars.recordings.readers import (
    edf_signals,
    open_recording,
    read_edf,
    read_recording,
)
from braindecode_pars.windows.marks import continuous_segments

#: Six records of a second; two seconds are missing after the second, an hour after the fifth.
ONSETS = [0, 1, 4, 5, 6, 3607]
SIGNALS = np.arange(600)[None] + np.array([[0], [1000]])


@pytest.mark.parametrize(("suffix", "letter"), [("edf", "D"), ("bdf", "D"), ("edf", "C")])
def test_a_file_with_gaps_is_refused(tmp_path, suffix, letter):
    """MNE would read its records as if they followed each other, whatever the file calls itself."""
    kind = f"{suffix.upper()}+{letter}"
    file = write_edf_records(tmp_path / f"a.{suffix}", SIGNALS, ONSETS, kind=kind)
    for read in (read_edf, read_recording):
        with pytest.raises(ValueError, match="discontinuous"):
            read(file)


def test_a_raw_of_a_file_with_gaps_is_doubtful(tmp_path):
    file = write_edf_records(tmp_path / "a.edf", SIGNALS, ONSETS)
    raw = mne.io.read_raw_edf(file, verbose="error")
    with pytest.warns(UserWarning, match=r"a\.edf is discontinuous"):
        assert open_recording(raw) == (raw, "a.edf")


@pytest.mark.parametrize(
    ("onsets", "kind"),
    [
        ([0.25 + i for i in range(6)], "EDF+D"),  # the start is a fraction of a second
        ([0, 1, 2.0004, 3, 4, 5], "EDF+D"),  # rounded times
        ([0, 1, 2.008, 3, 4, 5], "EDF+D"),  # less than a sample
        ([1.0005 * i for i in range(6)], "EDF+C"),  # a clock that drifts
    ],
)
def test_files_without_gaps_are_read_as_by_mne(tmp_path, onsets, kind):
    file = write_edf_records(tmp_path / "a.edf", SIGNALS, onsets, kind=kind)
    assert continuous_segments(read_edf(file)) == [(0, 600)]


def test_records_without_or_in_disorder_of_times_are_refused(tmp_path):
    file = write_edf_records(tmp_path / "a.edf", SIGNALS, [0, 1, 4, 3, 5, 6])
    with pytest.raises(ValueError, match="discontinuous"):
        read_edf(file)
    content = file.read_bytes()
    file.write_bytes(content.replace(b"+3\x14\x14", b"\0\0\0\0"))
    with pytest.raises(ValueError, match="damaged"):
        read_edf(file)
    file.write_bytes(content.replace(b"EDF Annotations ", b"Something else  "))
    with pytest.raises(ValueError, match="damaged"):
        read_edf(file)


def test_the_header(tmp_path):
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
