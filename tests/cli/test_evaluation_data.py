"""The data of an evaluation: by name, a folder, a Python file, a store with labels."""

from __future__ import annotations

import mne
import numpy as np
import pandas as pd
import pytest
from support.challenge_records import write
from support.labeled_stores import check_equal
from support.store_command import invoke
from typer.testing import CliRunner

from braindecode_pars import datasets
from braindecode_pars.cli import app
from braindecode_pars.cli.evaluation_report import classifier_settings
from braindecode_pars.cli.terminal import values
from braindecode_pars.datasets import any_source
from braindecode_pars.signal_store import SignalStore

LOAD = """
from braindecode_pars.datasets import simulated

def load(path=None, hours=0.1):
    return simulated.sleep(n_subjects=2, hours=hours, n_chans=2)
"""


def test_a_python_file_with_load(tmp_path):
    file = tmp_path / "my_corpus_of_nights.py"
    file.write_text(LOAD)
    assert len(datasets.load(str(file))) == 24
    assert len(datasets.load(str(file), tmp_path, hours=0.2)) == 48
    assert any_source.title(str(file)) == "my_corpus_of_nights"
    with pytest.raises(TypeError, match="'minutes'"):
        datasets.load(str(file), minutes=3)
    (tmp_path / "json.py").write_text(LOAD)  # the name of another module
    with pytest.raises(ValueError, match="json"):
        datasets.load(str(tmp_path / "json.py"))


@pytest.mark.filterwarnings("ignore:Every class has one recording only")
def test_labels_of_own_files_as_options(tmp_path):
    """Options of the command line are texts; patterns and paths are not taken for literals."""
    info = mne.create_info(["C3"], 100.0, "eeg")
    for seed, name in enumerate(("P1_rest", "P1_task")):
        noise = 1e-5 * np.random.default_rng(seed).standard_normal((1, 6000))
        raw = mne.io.RawArray(noise, info, verbose="error")
        raw.export(tmp_path / f"{name}.edf", verbose="error")
    (tmp_path / "labels.csv").write_text("file,label\nP1_rest,0\nP1_task,1\n")
    settings = ["window_seconds=10", "sfreq=100", "verbose=0"]
    labels = ["labels=labels.csv", r"subject=([^/]+)_\w+\.", 'classes=["0", "1"]']
    windows = datasets.load(str(tmp_path), **values([*labels, *settings], "--load"))
    assert windows.description["subject"].tolist() == ["P1", "P1"]
    assert [target for _, target, _ in windows] == [0] * 6 + [1] * 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.py",), r"nowhere\.py"),
        (("tuhab",), "'tuhab'.*tuab"),
        (("tuab",), "'tuab'.*--data"),
        (("sleep", "nights"), r"'sleep'.*nights.*--data"),
    ],
)
def test_unknown_data(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.load(*arguments)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    root = tmp_path_factory.mktemp("ysyw")
    for subject in [*(f"tr03-000{i}" for i in range(1, 5)), "te03-0009"]:
        write(root, subject)
    return root


@pytest.fixture(scope="module")
def made(records, tmp_path_factory):
    """A store that the command has made, and what the command printed."""
    path = tmp_path_factory.mktemp("stores") / "labels"
    arguments = ["--recipe", f"ysyw={records}", "--labels", path, "--set", "ysyw.split_seed=1"]
    code, output = invoke(*arguments, "--dtype", "float32")
    assert code == 0, output
    return path, output


@pytest.mark.slow
def test_labeled_recordings_of_all_splits_are_stored(made, records):
    path, output = made
    assert "ysyw: 4 subjects (4 recordings) of 1,983 in the full corpus." in output
    assert "Labeled windows: 32 (classes: W, N1, N2, N3, R)." in output
    windows = SignalStore.open(path).labeled_windows()
    assert set(windows.description["split"]) == {"train", "valid", "test"}
    check_equal(windows, datasets.ysyw.load(records, split_seed=1, verbose=0))


def test_a_store_is_the_data_of_a_command(made, tmp_path):
    path, _ = made
    for dataset, data in ((str(path), None), ("ysyw", path), ("mine", path)):
        assert len(datasets.load(dataset, data)) == 32
    assert len(datasets.load(str(path), subjects=["ysyw:tr03-0002"])) == 8
    with pytest.raises(TypeError, match=r"load_store.*'window_seconds'"):
        datasets.load(str(path), window_seconds=10)
    assert (any_source.title(str(path)), any_source.recipe_of(str(path))) == ("YSYW", "ysyw")
    assert any_source.title("mine") == "mine"
    out = tmp_path / "out"
    command = ["evaluate", "leave-one-subject-out", "--dataset", str(path), "--out", str(out)]
    result = CliRunner().invoke(app, [*command, "--method", "band-power"])
    assert result.exit_code == 0, result.output
    scores = pd.read_csv(out / "scores.csv")
    assert set(scores["dataset"]) == {"YSYW"}


def test_the_paper_s_noise_of_eesm17_is_that_of_its_store(made, monkeypatch):
    path, _ = made
    assert "augmentation" not in classifier_settings(None, published=True, dataset=str(path))
    monkeypatch.setattr(any_source, "recipe_of", lambda dataset: "eesm17")
    assert classifier_settings(None, published=True, dataset=str(path))["augmentation"]
