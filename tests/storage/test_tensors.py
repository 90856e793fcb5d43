"""Safetensors and JSON on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from braindecode_pars.storage import LoadReport, _atomic
from braindecode_pars.storage._json import read_json
from braindecode_pars.storage._tensors import load_tensors, read_tensors, write_folder


def test_written_tensors_are_read_back(tmp_path):
    linear = nn.Linear(3, 2)
    described = {"n": np.int64(3), "path": tmp_path, "names": ["ä"]}
    write_folder(
        tmp_path / "a" / "b",
        tensors={"w.safetensors": linear.state_dict()},
        described={"w.json": described},
    )
    folder = tmp_path / "a" / "b"
    assert read_json(folder / "w.json") == {"n": 3, "path": str(tmp_path), "names": ["ä"]}
    other = nn.Linear(3, 2)
    report = load_tensors(other, read_tensors(folder / "w.safetensors"), folder)
    assert report == LoadReport(loaded=("weight", "bias"))
    assert report.complete
    assert str(report) == "2 of 2 tensors loaded"
    assert torch.equal(other.weight, linear.weight)
    assert sorted(path.name for path in folder.iterdir()) == ["w.json", "w.safetensors"]


def test_no_file_is_replaced_before_all_are_written(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text("old")
    calls = []

    def fail_at_the_second(path, content):
        calls.append(path)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        path.write_text("{}")

    monkeypatch.setattr(Path, "write_bytes", fail_at_the_second)
    with pytest.raises(OSError, match=r"cannot be written \(No space left on device\)"):
        write_folder(tmp_path, tensors={}, described={"a.json": {}, "b.json": {}})
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_text() == "old"


def test_a_failed_exchange_is_undone(tmp_path, monkeypatch):
    """Files of two models are never mixed."""
    write_folder(tmp_path, tensors={}, described={"a.json": {"n": 1}, "b.json": {"n": 1}})
    replace, calls = _atomic.os.replace, []

    def fail_at_the_third(source, target):
        calls.append(target)
        if len(calls) == 3:
            raise OSError(13, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(_atomic.os, "replace", fail_at_the_third)
    new = {"a.json": {"n": 2}, "c.json": {"n": 2}, "b.json": {"n": 2}}
    with pytest.raises(OSError, match="its previous content is unchanged"):
        write_folder(tmp_path, tensors={}, described=new)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]
    assert read_json(tmp_path / "a.json") == read_json(tmp_path / "b.json") == {"n": 1}


def test_ctrl_c_while_writing_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(path, content):
        path.write_text("{")
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path, tensors={}, described={"a.json": {}})
    assert list(tmp_path.iterdir()) == []


def test_a_partial_match_is_loaded_only_without_strict():
    linear = nn.Linear(3, 2)
    bias = linear.bias.detach().clone()
    given = {"weight": torch.ones(2, 3), "bias": torch.ones(7), "scale": torch.ones(1)}
    message = r"tensors of somewhere do not match the Linear: 1 of 2 tensors loaded; 1 of "
    with pytest.raises(ValueError, match=message):
        load_tensors(linear, given, "somewhere")
    assert not (linear.weight == 1).all()
    report = load_tensors(linear, given, "somewhere", strict=False)
    assert report == LoadReport(("weight",), (), ("bias",), ("scale",))
    assert (linear.weight == 1).all()
    assert torch.equal(linear.bias, bias)
    with pytest.raises(ValueError, match="0 of 2 tensors loaded; 2 missing"):
        load_tensors(linear, {}, "somewhere", strict=False)


def test_damaged_files_raise(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff{")
    with pytest.raises(ValueError, match="damaged or not a JSON file"):
        read_json(tmp_path / "a")
    with pytest.raises(ValueError, match="damaged or not a safetensors file"):
        read_tensors(tmp_path / "a")
    with pytest.raises(ValueError, match="head contains NaN or infinite values"):
        write_folder(
            tmp_path / "new", tensors={"w": {"head": torch.full((2,), np.nan)}}, described={}
        )
    assert not (tmp_path / "new").exists()


def test_json_is_indented(tmp_path):
    write_folder(tmp_path, tensors={}, described={"a.json": {"b": 1}})
    assert (tmp_path / "a.json").read_text() == json.dumps({"b": 1}, indent=2) + "\n"
