"""The folder of a run accepts only that run."""

from __future__ import annotations

import errno
import json
import os
import warnings

import pytest
from support.small_runs import make_store, run, run_interrupted

from braindecode_pars._common import results_folder
from braindecode_pars.runs.run_folder import RunFolder


def test_a_run_is_not_mixed_with_another(store, tmp_path):
    out = run_interrupted(8, store, tmp_path / "run")
    with pytest.raises(ValueError, match="already contains a run"):
        run(store, out)
    message = "task_params.n_patches is 5, .* epochs is 6, was 5; lr is 0.0001, was 0.001"
    with pytest.raises(ValueError, match=message):
        run(store, out, resume=True, lr=1e-4, epochs=6, task_params={"n_patches": 5})
    other = make_store(tmp_path / "other", seed=1)
    with pytest.raises(ValueError, match=other.checksum):
        run(other, out, resume=True)
    with pytest.raises(ValueError, match="no run to resume"):
        run(store, tmp_path / "nothing", resume=True)
    run(store, out, resume=True)
    with pytest.raises(ValueError, match="already contains a run"):
        run(store, out)


def test_a_run_without_checkpoints_is_replaced(store, tmp_path):
    run_interrupted(1, store, tmp_path / "run")
    run(store, tmp_path / "run", epochs=1)
    assert len(json.loads((tmp_path / "run/run.json").read_text())["sessions"]) == 1


def test_a_run_that_is_resumed_with_other_versions_warns(store, tmp_path):
    out = run_interrupted(8, store, tmp_path / "run")
    described = json.loads((out / "run.json").read_text())
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*versions")
        RunFolder(out, described, resume=True).begin_session(described["sessions"][0])
    described["sessions"][-1]["versions"]["torch"] = "1.0"
    (out / "run.json").write_text(json.dumps(described))
    with pytest.warns(UserWarning, match=r"torch is .*, was '1.0'"):
        run(store, out, resume=True)


def test_other_folders_are_not_used(store, tmp_path, monkeypatch):
    """Those of models, of a store, and one that another process uses."""
    monkeypatch.setattr(results_folder, "_WAIT_ALONE", 0)
    for name in ("model.safetensors", "encoder.safetensors"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("{}")
        with pytest.raises(ValueError, match=name):
            run(store, tmp_path / name)
        assert [file.name for file in (tmp_path / name).iterdir()] == [name]
    with pytest.raises(ValueError, match=r"samples\.bin.* a run"):
        run(store, store.path)
    with RunFolder(tmp_path / "run").opened(), pytest.raises(BlockingIOError):
        run(store, tmp_path / "run")
    assert [file.name for file in (tmp_path / "run").iterdir()] == [".lock"]


def test_a_run_that_another_has_started_meanwhile_is_not_replaced(store, tmp_path, monkeypatch):
    opened = RunFolder.opened

    def after_another_run(folder):
        with monkeypatch.context() as patched:
            patched.setattr(RunFolder, "opened", opened)
            run(store, tmp_path / "run", epochs=1, seed=1)
        return opened(folder)

    monkeypatch.setattr(RunFolder, "opened", after_another_run)
    with pytest.raises(ValueError, match="already contains a run"):
        run(store, tmp_path / "run")
    assert json.loads((tmp_path / "run/run.json").read_text())["configuration"]["seed"] == 1


def test_a_full_disk_ends_a_run_but_keeps_its_checkpoints(store, tmp_path, monkeypatch):
    out = tmp_path / "run"
    with monkeypatch.context() as patched:
        rename = os.replace

        def full(aside, path):
            if path.name == "step-00000009.safetensors":
                raise OSError(errno.ENOSPC, "No space left on device")
            rename(aside, path)

        patched.setattr(os, "replace", full)
        with pytest.raises(OSError, match=r"step-00000009.*No space left"):
            run(store, out)
    kept = sorted(file.name for file in (out / "checkpoints").iterdir())
    assert kept == ["step-00000003.safetensors", "step-00000006.safetensors"]
    run(store, out, resume=True)


def test_a_damaged_run_json_is_named(store, tmp_path):
    described = run_interrupted(4, store, tmp_path / "run") / "run.json"
    for content in ("{}", '{"configuration": {}, "sessions": []}'):
        described.write_text(content)
        with pytest.raises(ValueError, match=r"run\.json"):
            run(store, tmp_path / "run", resume=True)
    other = tmp_path / "run.json"  # of another program
    other.write_text('{"mine": 1}')
    with pytest.raises(ValueError, match=r"run\.json"):
        run(store, tmp_path)
    assert other.read_text() == '{"mine": 1}'
