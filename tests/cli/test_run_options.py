"""The options of a run, which several commands share."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict, fields, replace

import pytest

from braindecode_pars.cli.commands import OPTIONS, plan, pretrain, run_config, with_run_options
from braindecode_pars.runs import RunConfig


def test_every_setting_of_a_run_is_an_option():
    names = {"settings": "task_params", "exclude_subject": "exclude_subjects"}
    settings = {names.get(name, name) for name in OPTIONS} - {"config", "paper"}
    assert settings == {field.name for field in fields(RunConfig)}
    for command in (plan, pretrain):
        assert set(OPTIONS) <= set(inspect.signature(command).parameters)


def test_a_command_receives_what_was_given():
    received = []

    @with_run_options
    def command(store: str, *, given: dict) -> None:
        received.append((store, given))

    command(store="here", **{**dict.fromkeys(OPTIONS), "epochs": 3})
    assert received == [("here", {"epochs": 3})]
    assert "given" not in inspect.signature(command).parameters


def test_the_published_settings_on_request(tmp_path):
    assert run_config({"device": "cpu", "paper": True}) == RunConfig(device="cpu")
    assert run_config({"device": "cpu"}) == RunConfig.for_laptop(device="cpu")
    file = tmp_path / "run.toml"
    file.write_text("batch_size = 32\n[task_params]\nn_patches = 9")
    given = {"config": file, "device": "cpu", "settings": ["overlap=false"]}
    config = run_config(given | {"exclude_subject": ["S1"], "paper": True})
    assert (config.batch_size, config.epochs, config.exclude_subjects) == (32, 1000, ("S1",))
    assert config.task_params == {"n_patches": 9, "overlap": False}
    assert "config" in given  # not changed


def test_one_of_several_processes_says_it(monkeypatch, caplog):
    caplog.set_level("INFO", "braindecode_pars")
    for rank, n_lines in (("0", 1), ("1", 1)):
        monkeypatch.setenv("RANK", rank)
        run_config({"device": "cpu"})
        assert caplog.text.count("defaults for a laptop") == n_lines


def test_a_resumed_run_keeps_its_defaults_on_another_device(tmp_path):
    for began in (RunConfig(device="cuda", epochs=3), RunConfig.for_laptop(epochs=3)):
        described = {"configuration": {**asdict(began), "exclude_subjects": []}}
        (tmp_path / "run.json").write_text(json.dumps(described))
        resumed = run_config({"device": "cpu", "epochs": 3}, tmp_path)
        assert resumed == replace(began, device="cpu")
    (tmp_path / "run.json").write_text("damaged")
    assert run_config({"device": "cpu"}, tmp_path) == RunConfig.for_laptop(device="cpu")


def test_mistakes():
    with pytest.raises(ValueError, match="'n_patches'"):
        run_config({"settings": ["n_patches"]})
    with pytest.raises(FileNotFoundError):
        run_config({"config": "absent.toml"})
