"""What a run's folder takes: the run itself once more, and nothing else."""

from __future__ import annotations

import json

import pytest
from support.small_runs import interrupt, make_store, run

from braindecode_pars.runs._folder import RunFolder


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("folders") / "store")


def test_a_run_is_not_mixed_with_another(store, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        interrupt(patched, step=8)
        with pytest.raises(KeyboardInterrupt):
            run(store, tmp_path / "run")
    out = tmp_path / "run"
    with pytest.raises(ValueError, match="holds a run already: resume it, or name another"):
        run(store, out)
    told = (
        r"another configuration: task_params.n_patches is 5, was not there; epochs is 6, was 5; "
        r"lr is 0.0001, was 0.001. Put this back"
    )
    with pytest.raises(ValueError, match=told):
        run(store, out, resume=True, lr=1e-4, epochs=6, task_params={"n_patches": 5})
    other = make_store(tmp_path / "other", seed=1)
    with pytest.raises(ValueError, match=f"the store has the checksum {other.checksum}, was"):
        run(other, out, resume=True)
    with pytest.raises(ValueError, match="holds no run to resume"):
        run(store, tmp_path / "nothing", resume=True)
    run(store, out, resume=True)
    with pytest.raises(ValueError, match="holds a run already"):
        run(store, out)


def test_without_a_checkpoint_there_is_nothing_to_mix(store, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        interrupt(patched, step=1)
        with pytest.raises(KeyboardInterrupt):
            run(store, tmp_path / "run")
    run(store, tmp_path / "run", epochs=1)
    assert len(json.loads((tmp_path / "run/run.json").read_text())["sessions"]) == 1


def test_folders_of_something_else_are_left_alone(store, tmp_path):
    for name, told in [
        ("classifier.json", "holds a saved PARSClassifier"),
        ("encoder.safetensors", "holds another encoder"),
    ]:
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text("{}")
        with pytest.raises(ValueError, match=told):
            run(store, folder)
        assert [file.name for file in folder.iterdir()] == [name]
        with pytest.raises(ValueError, match="is a file; name a folder"):
            run(store, folder / name)


def test_one_run_at_a_time_writes_in_a_folder(store, tmp_path):
    folder = RunFolder(tmp_path / "run")
    with folder.held(), pytest.raises(BlockingIOError, match="is being written by another run"):
        run(store, tmp_path / "run")
    assert [file.name for file in (tmp_path / "run").iterdir()] == [".lock"]
    run(store, tmp_path / "run", epochs=1)


def test_a_folder_with_something_else_in_it_is_left_alone(store, tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match="is not empty and holds no run"):
        run(store, tmp_path)
    with pytest.raises(ValueError, match="is not empty and holds no run"):
        run(store, store.path)


@pytest.mark.parametrize("content", ["{}", '{"configuration": 3}', '{"sessions": []}'])
def test_a_damaged_description_is_named(store, tmp_path, monkeypatch, content):
    interrupt(monkeypatch, step=4)
    with pytest.raises(KeyboardInterrupt):
        run(store, tmp_path / "run")
    monkeypatch.undo()
    (tmp_path / "run/run.json").write_text(content)
    with pytest.raises(ValueError, match=r"run\.json does not describe a run"):
        run(store, tmp_path / "run", resume=True)
