"""A model in one file: every change of the file is found."""

from __future__ import annotations

import json
import random

import pytest
import torch
from safetensors.torch import load, save

from braindecode_pars._common import model_files as _model_file
from braindecode_pars._common.model_files import pack, unpack

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": -torch.arange(6.0).reshape(2, 3)}
DESCRIPTION = {"sfreq": 200.0, "classes": ["W", "Wach", None], "nested": {"n": 1}}


@pytest.fixture
def content():
    return pack("example", DESCRIPTION, TENSORS)


def test_round_trip(content):
    model = unpack(content, "memory")
    assert (model.kind, model.description) == ("example", DESCRIPTION)
    assert all(torch.equal(model.tensors[name], TENSORS[name]) for name in TENSORS)
    assert content == pack("example", DESCRIPTION, TENSORS)  # the same model, the same bytes


def test_every_flipped_bit_is_found(content):
    random.seed(0)
    for position in random.sample(range(len(content)), 300):
        damaged = bytearray(content)
        damaged[position] ^= 1 << random.randrange(8)
        assert found_out(bytes(damaged)), position


def found_out(damaged: bytes) -> bool:
    """Whether a file is refused, or has lost its description, like that of another program."""
    try:
        return unpack(damaged, "memory").kind is None
    except ValueError as error:
        return str(error).startswith(("memory is damaged", "memory has version"))


def test_exchanged_tensors_and_an_edited_description(content):
    text = content.replace(b'\\"Wach\\"', b'\\"Wahn\\"')
    assert text != content
    with pytest.raises(ValueError, match="damaged or was edited: its content does not match its"):
        unpack(text, "memory")
    # Two tensors of the same shape, exchanged by their names in the header.
    exchanged = (
        content.replace(b'"a":', b'"c":').replace(b'"b":', b'"a":').replace(b'"c":', b'"b":')
    )
    assert torch.equal(load(exchanged)["a"], TENSORS["b"])
    with pytest.raises(ValueError, match="damaged or was edited"):
        unpack(exchanged, "memory")


def test_a_newer_version_is_named(monkeypatch):
    monkeypatch.setattr(_model_file, "VERSION", 3)
    newer = pack("example", {}, TENSORS)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"version 3 of the format, .* reads version 2; update"):
        unpack(newer, "memory")


@pytest.mark.parametrize(
    "metadata", ["[]", "{", "{}", '{"version": 2, "kind": "x", "sha256": "", "description": 3}']
)
def test_a_description_that_is_not_readable(metadata):
    with pytest.raises(ValueError, match=r"its description is not readable|does not match"):
        unpack(save(TENSORS, {"braindecode_pars": metadata}), "memory")


def test_nested_json_ends_in_an_error():
    nested = '{"a": ' * 100_000
    with pytest.raises(ValueError, match="its description is not readable"):
        unpack(save(TENSORS, {"braindecode_pars": nested}), "memory")


def test_other_files(content):
    plain = unpack(save(TENSORS), "memory")
    assert (plain.kind, plain.description) == (None, {})
    for damaged in (b"", b"PK\x03\x04", content[:-1], content + b"0", b"\xff" * 100):
        with pytest.raises(ValueError, match="memory is damaged or not a safetensors file"):
            unpack(damaged, "memory")


def test_weights_that_are_not_finite_are_not_packed():
    with pytest.raises(ValueError, match="head contains NaN or infinite values"):
        pack("example", {}, {"head": torch.tensor([1.0, torch.nan])})


def test_the_header_is_that_of_safetensors(content):
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    assert set(header) == {"a", "b", "__metadata__"}
    assert list(header["__metadata__"]) == ["braindecode_pars"]
