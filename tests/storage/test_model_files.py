"""A model in one file and one folder: every change of the file is found; what is loaded is said."""

from __future__ import annotations

import json
import random

import pytest
import torch
from safetensors.torch import load, save, save_file
from torch import nn

from braindecode_pars._common import model_files
from braindecode_pars._common.model_files import (
    CLASSIFIER,
    EMBEDDER,
    ENCODER,
    FEW_LABELS,
    MODEL_FILES,
    NETWORK,
    REGRESSOR,
    LoadReport,
    build_and_load,
    check_may_save,
    kinds_in,
    load_tensors,
    pack,
    read_model,
    unpack,
    write_model,
)

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": -torch.arange(6.0).reshape(2, 3)}
CONFIG = {"embed_dim": 2, "classes": ["W", "Wach", None], "nested": {"n": 1}}
DESCRIPTIONS = {
    ENCODER: {"encoder": CONFIG, "pretraining": {"task": "pars"}},
    EMBEDDER: {"encoder": CONFIG, "pretraining": {}, "embedder": {"pooling": "mean"}},
    NETWORK: {"network": CONFIG},
    CLASSIFIER: {"network": CONFIG, "classifier": {"classes": ["W", "R"]}},
    REGRESSOR: {"network": CONFIG, "regressor": {"target_mean": 1.5}},
    FEW_LABELS: {"encoder": CONFIG, "pretraining": {}, "classifier": {"classes": ["W", "R"]}},
}


def write(folder, kind):
    write_model(folder, kind, DESCRIPTIONS[kind], TENSORS)


@pytest.fixture
def content():
    return pack("example", CONFIG, TENSORS)


def test_the_same_model_has_the_same_bytes(content):
    model = unpack(content, "memory")
    assert (model.kind, model.description) == ("example", CONFIG)
    assert all(torch.equal(model.tensors[name], TENSORS[name]) for name in TENSORS)
    assert content == pack("example", CONFIG, TENSORS)
    size = int.from_bytes(content[:8], "little")
    assert set(json.loads(content[8 : 8 + size])) == {"a", "b", "__metadata__"}


def test_every_flipped_bit_is_found(content):
    random.seed(0)
    for position in random.sample(range(len(content)), 300):
        damaged = bytearray(content)
        damaged[position] ^= 1 << random.randrange(8)
        with pytest.raises(ValueError, match="memory"):
            unpack(bytes(damaged), "memory")


def test_exchanged_tensors_and_an_edited_description(content):
    text = content.replace(b'\\"Wach\\"', b'\\"Wahn\\"')
    assert text != content
    # Two tensors of the same shape, exchanged by their names in the header.
    exchanged = (
        content.replace(b'"a":', b'"c":').replace(b'"b":', b'"a":').replace(b'"c":', b'"b":')
    )
    assert torch.equal(load(exchanged)["a"], TENSORS["b"])
    for edited in (text, exchanged):
        with pytest.raises(ValueError, match=r"memory.*checksum"):
            unpack(edited, "memory")


def test_a_newer_version_is_named(monkeypatch):
    monkeypatch.setattr(model_files, "VERSION", 3)
    newer = pack("example", {}, TENSORS)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"version 3.* Update"):
        unpack(newer, "memory")


def test_files_of_version_0_1_0_and_of_other_programs_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"memory .* version 0\.1\.0, which is no longer"):
        unpack(save(TENSORS), "memory")
    for content in (b"", b"PK\x03\x04", b"\xff" * 100):
        with pytest.raises(ValueError, match="memory is not a valid"):
            unpack(content, "memory")
    save_file(TENSORS, tmp_path / "model.safetensors")
    before = (tmp_path / "model.safetensors").read_bytes()
    for use in (check_may_save, read_model):
        with pytest.raises(ValueError, match=r"model\.safetensors"):
            use(tmp_path, NETWORK)
    assert (tmp_path / "model.safetensors").read_bytes() == before


def test_weights_that_are_not_finite_are_not_packed():
    with pytest.raises(ValueError, match="head"):
        pack("example", {}, {"head": torch.tensor([1.0, torch.nan])})


@pytest.mark.parametrize("kind", MODEL_FILES)
def test_round_trip_of_a_folder(kind, tmp_path):
    write(tmp_path / "a/b", kind)
    weights, readable = MODEL_FILES[kind]
    assert {file.name for file in (tmp_path / "a/b").iterdir()} == {weights, readable}
    model = read_model(tmp_path / "a/b", *MODEL_FILES)
    assert (model.kind, model.description) == (kind, DESCRIPTIONS[kind])
    assert torch.equal(model.tensors["a"], TENSORS["a"])
    assert kinds_in(tmp_path / "a/b") == [kind]
    check_may_save(tmp_path / "a/b", kind)
    for other in MODEL_FILES.keys() - {kind}:
        for use in (check_may_save, read_model):
            with pytest.raises(ValueError, match=f"{kind}.*{other}"):
                use(tmp_path / "a/b", other)
    shown = DESCRIPTIONS[kind].get("network", DESCRIPTIONS[kind])
    assert (tmp_path / "a/b" / readable).read_text() == json.dumps(shown, indent=2) + "\n"


def test_two_models_in_a_folder(tmp_path):
    write(tmp_path, ENCODER)
    write(tmp_path, NETWORK)
    for kinds in (MODEL_FILES, [ENCODER], [NETWORK]):
        with pytest.raises(ValueError, match=r"encoder\.safetensors and model\.safetensors"):
            read_model(tmp_path, *kinds)


def test_no_model_in_a_folder(tmp_path):
    (tmp_path / "config.json").write_text('{"editor": "vim"}')
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        read_model(tmp_path, NETWORK)
    with pytest.raises(ValueError, match=r"config\.json"):
        check_may_save(tmp_path, NETWORK)


@pytest.mark.parametrize("kind", MODEL_FILES)
def test_an_edited_copy_has_no_effect_but_a_warning(kind, tmp_path):
    write(tmp_path, kind)
    copy = tmp_path / MODEL_FILES[kind][1]
    for edited in (copy.read_bytes().replace(b"2", b"3"), b"\xff"):
        copy.write_bytes(edited)
        with pytest.warns(UserWarning, match=copy.name):
            model = read_model(tmp_path, kind)
        assert model.description == DESCRIPTIONS[kind]
    copy.unlink()
    assert read_model(tmp_path, kind).description == DESCRIPTIONS[kind]


def test_a_clone_of_a_new_repository_may_be_written_into(tmp_path):
    (tmp_path / ".git").mkdir()
    for name in ("README.md", ".gitattributes"):
        (tmp_path / name).write_text("mine")
    check_may_save(tmp_path, NETWORK)
    write(tmp_path, NETWORK)
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_partial_match_is_loaded_only_without_strict():
    linear = nn.Linear(3, 2)
    bias = linear.bias.detach().clone()
    given = {"weight": torch.ones(2, 3), "bias": torch.ones(7), "scale": torch.ones(1)}
    with pytest.raises(ValueError, match=r"somewhere.*Linear: 1 of 2 tensors.*strict=False"):
        load_tensors(linear, given, "somewhere")
    assert not (linear.weight == 1).all()
    report = load_tensors(linear, given, "somewhere", strict=False)
    assert report == LoadReport(("weight",), (), ("bias",), ("scale",))
    assert (linear.weight == 1).all()
    assert torch.equal(linear.bias, bias)
    with pytest.raises(ValueError, match="0 of 2 tensors loaded; 2 missing"):
        load_tensors(linear, {}, "somewhere", strict=False)


def test_building_changes_no_draw_of_the_caller():
    tensors = nn.Linear(3, 2).state_dict()
    before = torch.get_rng_state()
    module, report = build_and_load(lambda: nn.Linear(3, 2), tensors, "a file")
    assert report.complete
    assert torch.equal(module.weight, tensors["weight"])
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ValueError, match=r"a file.*hidden"):
        build_and_load(lambda: nn.Linear(hidden=3), tensors, "a file")
