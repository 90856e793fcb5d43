"""A folder of recordings becomes a store."""

from __future__ import annotations

import numpy as np
import pytest
from support.store_command import invoke, make_tree, write

from braindecode_pars.signal_store import SignalStore


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree")


def test_a_tree_becomes_a_store(tree, tmp_path):
    path = tmp_path / "store"
    code, output = invoke(tree, path, "--sfreq", 100, "--high", 30, "--dtype", "float32")
    assert code == 0, output
    assert "store: 2 recordings of 2 subjects, 0.1 hours, 2-4 channels at 100 Hz as" in output
    assert "float32, 0.00 GB." in output
    made = SignalStore.open(path)
    assert made.subjects == ["anna", "bert"]
    assert made.dtype == "float32"
    assert made._index.settings["high"] == 30


def test_skipped_recordings_are_listed(tree, tmp_path):
    write(tree / "bert/morning_raw.fif", bad=True)
    (tree / "damaged.edf").write_bytes(b"0")
    arguments = (tree, tmp_path / "store")
    code, output = invoke(*arguments)
    assert code == 1
    assert "damaged.edf cannot be used: it is damaged or truncated" in output
    assert "the same call resumes after the stored recordings" in output
    assert "Traceback" not in output
    code, output = invoke(*arguments, "--on-error", "warn")
    assert code == 0, output
    assert "2 recordings were skipped: bert/morning_raw.fif: channel E0 contains NaN" in output
    assert "damaged.edf: it is damaged" in output


def test_append(tree, tmp_path):
    path = tmp_path / "store"
    invoke(tree, path, "--channel", "E0", "--channel", "E3")
    write(tree / "carl/night_raw.fif", n_chans=5)
    code, output = invoke(tree, path)
    assert code == 1
    assert "is a finished store of 2 recordings" in output
    code, output = invoke(tree, path, "--append")
    assert code == 0, output
    assert "3 recordings of 3 subjects" in output
    names = SignalStore.open(path).recordings["ch_names"].tolist()
    assert names == [["E0"], ["E0", "E3"], ["E0", "E3"]]
    code, output = invoke(tree, path, "--append", "--high", 30)
    assert code == 2
    assert "--append uses the store's own settings; omit --high" in output


def test_the_average_of_the_channels_is_the_reference(tree, tmp_path):
    code, output = invoke(tree, tmp_path / "store", "--reference", "average", "--dtype", "float32")
    assert code == 0, output
    store = SignalStore.open(tmp_path / "store")
    for row in store.recordings.itertuples():
        signals = row.first_signal + np.arange(len(row.ch_names))
        values = store.crops(signals, np.zeros_like(signals), row.n_times)
        assert values.std() > 1e-6
        assert np.abs(values.mean(axis=0)).max() < 1e-10
    code, output = invoke(tree, tmp_path / "store", "--append", "--reference", "average")
    assert code == 2
    assert "--append uses the store's own settings; omit --reference" in output


def test_a_pattern_finds_the_subjects(tmp_path):
    for name in ("S001R04", "S001R08", "S002R04"):
        write(tmp_path / f"tree/{name}_raw.fif")
    code, output = invoke(tmp_path / "tree", tmp_path / "store", "--subject", r"(S\d+)R")
    assert code == 0, output
    assert "3 recordings of 2 subjects" in output
    assert SignalStore.open(tmp_path / "store").subjects == ["S001", "S002"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"(S\d+", "is not a regular expression"),
        (r"S\d+", "has 0 groups; put parentheses around the subject only"),
        (r"(P\d+)", "finds no subject in anna/night_raw.fif"),
    ],
)
def test_patterns_that_find_no_subject(pattern, message, tree, tmp_path):
    code, output = invoke(tree, tmp_path / "store", "--subject", pattern)
    assert code == 1
    assert message in output
