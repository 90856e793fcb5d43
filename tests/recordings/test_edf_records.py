"""Discontinuous EDF files: gaps are marked, and annotations stay with their samples."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from support.edf_files import write_edf_records

from braindecode_pars.recordings.cutting import continuous_stretches
from braindecode_pars.recordings.edf_records import EdfRecords
from braindecode_pars.recordings.readers import read_edf, read_recording

#: Six records of a second; two seconds are missing after the second, an hour after the fifth.
ONSETS = [0, 1, 4, 5, 6, 3607]
SIGNALS = np.arange(600)[None] + np.array([[0], [1000]])


@pytest.mark.parametrize("suffix", ["edf", "bdf"])
def test_gaps_are_marked(tmp_path, suffix):
    kind = f"{suffix.upper()}+D"
    file = write_edf_records(tmp_path / f"a.{suffix}", SIGNALS, ONSETS, kind=kind)
    raw = read_recording(file)
    np.testing.assert_allclose(raw.get_data() * 1e6, SIGNALS, atol=0.01)  # as in the file
    assert continuous_stretches(raw) == [(0, 200), (200, 500), (500, 600)]


def test_the_marks_are_those_of_mne(tmp_path):
    """MNE's filters treat them as the boundaries of concatenated recordings."""
    raw = read_edf(write_edf_records(tmp_path / "a.edf", SIGNALS, ONSETS))
    info = mne.create_info(2, 100.0, "eeg")
    parts = [mne.io.RawArray(np.zeros((2, n)), info, verbose="error") for n in (200, 300, 100)]
    joined = mne.concatenate_raws(parts, verbose="error")
    assert raw.annotations.onset.tolist() == joined.annotations.onset.tolist()
    assert raw.annotations.description.tolist() == joined.annotations.description.tolist()


@pytest.mark.parametrize(
    ("onsets", "kind"),
    [
        ([0.25 + i for i in range(6)], "EDF+D"),  # the start is a fraction of a second
        ([0, 1, 2.0004, 3, 4, 5], "EDF+D"),  # rounded times
        (ONSETS, "EDF+C"),  # the file states that it is continuous
    ],
)
def test_files_without_gaps_are_read_as_by_mne(tmp_path, onsets, kind):
    file = write_edf_records(tmp_path / "a.edf", SIGNALS, onsets, kind=kind)
    assert continuous_stretches(read_edf(file)) == [(0, 600)]


def test_annotations_stay_with_their_samples(tmp_path):
    """The file is 3608 seconds long, its samples only six."""
    texts = {
        0: "+1.5\x14first",
        1: "+2.5\x14during the pause",
        2: "+4.5\x150.5\x14second",
        3: "+1\x154\x14across the pause",
        5: "+3607.5\x14third",
    }
    raw = read_edf(write_edf_records(tmp_path / "a.edf", SIGNALS, ONSETS, texts=texts))
    notes = [
        (a["description"], a["onset"], a["duration"])
        for a in raw.annotations
        if "boundary" not in a["description"]
    ]
    assert notes == [
        ("across the pause", 1.0, 2.0),
        ("first", 1.5, 0.0),
        ("second", 2.5, 0.5),
        ("third", 5.5, 0.0),
    ]


def test_records_without_or_in_disorder_of_times_are_refused(tmp_path):
    file = write_edf_records(tmp_path / "a.edf", SIGNALS, [0, 1, 4, 3, 5, 6])
    with pytest.raises(ValueError, match="not in order"):
        read_edf(file)
    content = file.read_bytes()
    file.write_bytes(content.replace(b"+3\x14\x14", b"\0\0\0\0"))
    with pytest.raises(ValueError, match="record 3"):
        read_edf(file)
    file.write_bytes(content.replace(b"EDF Annotations ", b"Something else  "))
    with pytest.raises(ValueError, match="no times"):
        read_edf(file)


def test_the_header(tmp_path):
    file = write_edf_records(tmp_path / "a.edf", SIGNALS, ONSETS, units=["uV", "mV"])
    records = EdfRecords.read(file)
    assert records.discontinuous
    assert records.labels == ["E0", "E1", "EDF Annotations"]
    assert records.units_of_signals == ["uV", "mV"]
    assert records.widths.tolist() == [200, 200, 120]


def test_short_gaps_add_up(tmp_path):
    """Each is shorter than a sample; without the gaps, the annotation would be 4.5 s late."""
    onsets = [1.009 * i for i in range(600)]
    texts = {500: "+504.6\x14hello"}  # 0.1 s after the start of record 500
    signals = np.zeros((1, 60_000), int)
    raw = read_edf(write_edf_records(tmp_path / "a.edf", signals, onsets, texts=texts))
    (onset,) = raw.annotations.onset[raw.annotations.description == "hello"]
    assert onset == pytest.approx(500.1, abs=0.01)
    # The third record of a stretch would be more than a sample late.
    assert {stop - first for first, stop in continuous_stretches(raw)} == {200}


def test_annotations_of_a_discontinuous_file_without_gaps(tmp_path):
    texts = {0: "+0.5\x14too early", 2: "+3.5\x151\x14of one channel@@E1"}
    onsets = [1 + i for i in range(6)]
    raw = read_edf(write_edf_records(tmp_path / "a.edf", SIGNALS, onsets, texts=texts))
    (annotation,) = raw.annotations
    assert (annotation["onset"], annotation["duration"]) == (2.5, 1.0)
    assert (annotation["description"], annotation["ch_names"]) == ("of one channel", ("E1",))
