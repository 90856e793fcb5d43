"""Data of a command by name, as a folder, and from a Python file."""

from __future__ import annotations

from pathlib import Path

import mne
import numpy as np
import pytest

from braindecode_pars.cli.evaluation_report import load, load_arguments, title

LOAD = """
from braindecode_pars.datasets import simulated

def load(path=None, hours=0.1):
    return simulated.sleep(n_subjects=2, hours=hours, n_chans=2)
"""


def test_a_python_file_with_load(tmp_path):
    file = tmp_path / "my_corpus_of_nights.py"
    file.write_text(LOAD)
    assert len(load(str(file), None, {})) == 24
    assert len(load(str(file), tmp_path, {"hours": 0.2})) == 48
    assert title(str(file)) == "my_corpus_of_nights"
    with pytest.raises(ValueError, match="'minutes'; it has path, hours"):
        load(str(file), None, {"minutes": 3})


def test_an_installed_module_with_load():
    with pytest.raises(ValueError, match=r"json\.decoder"):
        load("json.decoder", None, {})
    with pytest.raises(ValueError, match="'windows'; it has subjects"):
        load("braindecode_pars.datasets.eegmat", Path("data"), {"windows": 3})


def test_a_folder_of_own_recordings(tmp_path):
    for name in ("anna", "ben"):
        info = mne.create_info(["C3", "C4"], 100.0, "eeg")
        noise = 1e-5 * np.random.default_rng(0).standard_normal((2, 6000))
        raw = mne.io.RawArray(noise, info, verbose="error")
        raw.set_annotations(mne.Annotations([0, 30], [30, 30], ["rest", "task"]))
        raw.export(tmp_path / f"{name}.edf", verbose="error")
    settings = dict(window_seconds=10, sfreq=100, verbose=0)
    for dataset, data in ((str(tmp_path), None), ("mine", tmp_path)):
        windows = load(dataset, data, settings)
        assert sorted(set(windows.description["subject"])) == ["anna", "ben"]
        assert len(windows) == 12
    assert (title("mine"), title(str(tmp_path))) == ("mine", tmp_path.name)


def test_labels_of_own_files_as_options(tmp_path):
    """Options of the command line are texts; templates and paths are not taken for literals."""
    info = mne.create_info(["C3"], 100.0, "eeg")
    raw = mne.io.RawArray(1e-5 * np.random.default_rng(0).standard_normal((1, 6000)), info)
    for name in ("P1_rest", "P1_task"):
        raw.export(tmp_path / f"{name}.edf", verbose="error")
    (tmp_path / "labels.csv").write_text("file,label\nP1_rest,0\nP1_task,1\n")
    settings = ["window_seconds=10", "sfreq=100", "verbose=0"]
    for labels in (
        ["labels={subject}_{label}", 'classes=["rest", "task"]'],
        ["labels=labels.csv", r"subject=([^/]+)_\w+\."],
    ):
        windows = load(str(tmp_path), None, load_arguments([*labels, *settings], None))
        assert windows.description["subject"].tolist() == ["P1", "P1"]
        assert [target for _, target, _ in windows] == [0] * 6 + [1] * 6


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ("nowhere.py", r"nowhere\.py"),
        ("tuhab", "'tuhab'; known are .*tuab"),
    ],
)
def test_unknown_data(dataset, message):
    with pytest.raises(ValueError, match=message):
        load(dataset, None, {})


def test_a_file_with_the_name_of_another_module(tmp_path):
    (tmp_path / "json.py").write_text(LOAD)
    with pytest.raises(ValueError, match="json"):
        load(str(tmp_path / "json.py"), None, {})
