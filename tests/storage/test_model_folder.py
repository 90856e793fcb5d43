"""The folder of a model: one folder, one model."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file
from support.model_files import as_version_0_1_0

from braindecode_pars._common.model_files import (
    CLASSIFIER,
    EMBEDDER,
    ENCODER,
    MODEL_FILES,
    NETWORK,
    check_may_save,
    kinds_in,
    read_model,
    write_model,
)

TENSORS = {"weight": torch.ones(2)}
CONFIG = {"embed_dim": 2, "num_layers": 1, "channel_drop_prob": 0.5, "electrode_position": False}
DESCRIPTIONS = {
    ENCODER: {"encoder": {"embed_dim": 2}, "pretraining": {"task": "pars"}},
    EMBEDDER: {"encoder": {"embed_dim": 2}, "pretraining": {}, "embedder": {"pooling": "mean"}},
    NETWORK: {"network": CONFIG},
    CLASSIFIER: {"network": CONFIG, "classifier": {"classes": ["W", "R"]}},
}


@pytest.mark.parametrize("kind", MODEL_FILES)
def test_round_trip(kind, tmp_path):
    write_model(tmp_path / "a/b", kind, DESCRIPTIONS[kind], TENSORS)
    assert sorted(file.name for file in (tmp_path / "a/b").iterdir()) == sorted(MODEL_FILES[kind])
    model = read_model(tmp_path / "a/b", *MODEL_FILES)
    assert (model.kind, model.description) == (kind, DESCRIPTIONS[kind])
    assert torch.equal(model.tensors["weight"], TENSORS["weight"])


@pytest.mark.parametrize("kind", MODEL_FILES)
@pytest.mark.parametrize("other", MODEL_FILES)
def test_one_folder_has_one_model(kind, other, tmp_path):
    write_model(tmp_path, kind, DESCRIPTIONS[kind], TENSORS)
    if kind == other:
        check_may_save(tmp_path, other)
        return
    with pytest.raises(ValueError, match=f"contains a saved {kind}; save the {other} in another"):
        check_may_save(tmp_path, other)
    with pytest.raises((ValueError, FileNotFoundError), match=f"not .*{other}"):
        read_model(tmp_path, other)


def test_other_files_are_not_overwritten(tmp_path):
    (tmp_path / "config.json").write_text('{"editor": "vim"}')
    with pytest.raises(ValueError, match=r"contains config\.json, and is not the folder of a sa"):
        check_may_save(tmp_path, NETWORK)


def test_two_models_in_a_folder(tmp_path):
    for kind in (ENCODER, NETWORK):
        write_model(tmp_path, kind, DESCRIPTIONS[kind], TENSORS)
    assert kinds_in(tmp_path) == [ENCODER, NETWORK]
    with pytest.raises(ValueError, match=r"contains two models, encoder\.safetensors and mod"):
        read_model(tmp_path, *MODEL_FILES)
    for kind in (ENCODER, NETWORK):
        with pytest.raises(ValueError, match="contains two models"):
            read_model(tmp_path, kind)


def test_a_renamed_file(tmp_path):
    write_model(tmp_path, NETWORK, DESCRIPTIONS[NETWORK], TENSORS)
    (tmp_path / "model.safetensors").rename(tmp_path / "encoder.safetensors")
    with pytest.raises(ValueError, match="contains a saved PARSNet, not a PatchEncoder"):
        read_model(tmp_path, ENCODER)


@pytest.mark.parametrize("kind", MODEL_FILES)
def test_an_edited_copy_has_no_effect_but_a_warning(kind, tmp_path):
    write_model(tmp_path, kind, DESCRIPTIONS[kind], TENSORS)
    copy = tmp_path / MODEL_FILES[kind][1]
    copy.write_text(copy.read_text().replace("2", "3"))
    with pytest.warns(UserWarning, match=r"differs .* and is ignored: .*embed_dim is 3, was 2"):
        model = read_model(tmp_path, kind)
    assert model.description == DESCRIPTIONS[kind]
    copy.write_text("[1]")
    with pytest.warns(UserWarning, match=r"is ignored: .* contains a list, not a JSON object"):
        read_model(tmp_path, kind)
    copy.unlink()
    assert read_model(tmp_path, kind).description == DESCRIPTIONS[kind]


@pytest.mark.parametrize("kind", MODEL_FILES)
def test_a_folder_of_version_0_1_0_loads_with_a_warning(kind, tmp_path):
    write_model(tmp_path, kind, DESCRIPTIONS[kind], TENSORS)
    as_version_0_1_0(tmp_path)
    assert kinds_in(tmp_path) == [kind]
    with pytest.warns(UserWarning, match="has no checksum, because version 0.1.0 .*") as caught:
        model = read_model(tmp_path, *MODEL_FILES)
    assert len(caught) == 1
    assert model.kind == kind
    assert model.description.items() >= DESCRIPTIONS[kind].items()
    # Without its description, or with another one, the file is not ours.
    for text in ("[1]", "{}", None):
        for file in tmp_path.glob("*.json"):
            file.unlink() if text is None else file.write_text(text)
        with pytest.raises(ValueError, match="is not a model of braindecode_pars"):
            read_model(tmp_path, *MODEL_FILES)


@pytest.mark.parametrize("kind", MODEL_FILES)
def test_a_model_of_another_program_is_not_replaced(kind, tmp_path):
    weights, readable = MODEL_FILES[kind]
    save_file(TENSORS, tmp_path / weights)
    (tmp_path / readable).write_text('{"architectures": ["BertModel"], "hidden_size": 768}')
    assert kinds_in(tmp_path) == []
    with pytest.raises(ValueError, match=f"is not the folder of a saved {kind}"):
        check_may_save(tmp_path, kind)
    with pytest.raises(ValueError, match="is not a model of braindecode_pars"):
        read_model(tmp_path, kind)


def test_a_clone_of_a_new_repository_may_be_written_into(tmp_path):
    (tmp_path / ".git").mkdir()
    for name in ("README.md", ".gitattributes"):
        (tmp_path / name).write_text("mine")
    check_may_save(tmp_path, NETWORK)
    write_model(tmp_path, NETWORK, DESCRIPTIONS[NETWORK], TENSORS)
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_copy_is_indented_json(tmp_path):
    write_model(tmp_path, NETWORK, DESCRIPTIONS[NETWORK], TENSORS)
    text = json.dumps(DESCRIPTIONS[NETWORK]["network"], indent=2) + "\n"
    assert (tmp_path / "config.json").read_text() == text
