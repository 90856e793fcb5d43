"""A model in one file and one folder, and its card: every change of the file is found."""

from __future__ import annotations

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
from braindecode_pars.pretrained.cards import model_card

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


def test_files_of_other_versions_and_programs_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"memory .* version 0\.1\.0"):
        unpack(save(TENSORS), "memory")
    with pytest.raises(ValueError, match="memory is not a valid"):
        unpack(b"PK\x03\x04", "memory")
    with monkeypatch.context() as patch:
        patch.setattr(model_files, "VERSION", 3)
        newer = pack("example", {}, TENSORS)
    with pytest.raises(ValueError, match=r"version 3.* Update"):
        unpack(newer, "memory")
    save_file(TENSORS, tmp_path / "model.safetensors")
    for use in (check_may_save, read_model):
        with pytest.raises(ValueError, match=r"model\.safetensors"):
            use(tmp_path, NETWORK)


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


def test_a_folder_contains_one_model(tmp_path):
    (tmp_path / "config.json").write_text('{"editor": "vim"}')
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        read_model(tmp_path, NETWORK)
    with pytest.raises(ValueError, match=r"config\.json"):
        check_may_save(tmp_path, NETWORK)
    for kind in (ENCODER, NETWORK):
        write(tmp_path, kind)
    with pytest.raises(ValueError, match=r"encoder\.safetensors and model\.safetensors"):
        read_model(tmp_path, ENCODER)


@pytest.mark.parametrize("kind", [ENCODER, CLASSIFIER])
def test_an_edited_copy_has_no_effect_but_a_warning(kind, tmp_path):
    write(tmp_path, kind)
    copy = tmp_path / MODEL_FILES[kind][1]
    for edited in (copy.read_bytes().replace(b"2", b"3"), b"\xff"):
        copy.write_bytes(edited)
        with pytest.warns(UserWarning, match=copy.name):
            model = read_model(tmp_path, kind)
        assert model.description == DESCRIPTIONS[kind]


def test_a_partial_match_is_loaded_only_without_strict():
    linear = nn.Linear(3, 2)
    bias = linear.bias.detach().clone()
    given = {"weight": torch.ones(2, 3), "bias": torch.ones(7), "scale": torch.ones(1)}
    with pytest.raises(ValueError, match=r"somewhere.*Linear: 1 of 2 tensors.*strict=False"):
        load_tensors(linear, given, "somewhere")
    report = load_tensors(linear, given, "somewhere", strict=False)
    assert report == LoadReport(("weight",), (), ("bias",), ("scale",))
    assert (linear.weight == 1).all()
    assert torch.equal(linear.bias, bias)


def test_building_changes_no_draw_of_the_caller():
    tensors = nn.Linear(3, 2).state_dict()
    before = torch.get_rng_state()
    module, report = build_and_load(lambda: nn.Linear(3, 2), tensors, "a file")
    assert report.complete
    assert torch.equal(module.weight, tensors["weight"])
    assert torch.equal(torch.get_rng_state(), before)


CARD = {
    "task": "pars",
    "sfreq": 100.0,
    "subjects": None,
    "finetune_subjects": ["me"],
    "n_windows": 1200,
    "epochs": 3,
    "loss_relative": 0.81234,
    "about": {
        **{"license": "ODC-BY 1.0", "band": [0.3, None], "description": "Of TUEG."},
        **{"n_subjects": 1, "corpora": ["tueg"]},
    },
}
CLASSIFIER = {
    "network": {"n_times": 3000, "chs_info": [{"ch_name": "C3"}, {"ch_name": "C4"}]},
    "classifier": {
        "classes": {"values": [0, 1]},
        "class_names": ["wake", "sleep"],
        "windows": {"sfreq": 100.0},
        "pretraining": CARD,
    },
}


def header_of(text):
    cards = pytest.importorskip("huggingface_hub", reason="huggingface_hub is absent")
    return cards.ModelCard(text).data.to_dict()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ODC-BY 1.0", {"license": "odc-by"}),
        ('Ours: "ask" 1.0\n', {"license": "other", "license_name": "ours-ask-1.0"}),
        (None, {}),
    ],
)
def test_licenses(name, expected):
    described = {"pretraining": {"about": {"license": name}}, "encoder": {}}
    header = header_of(model_card("PatchEncoder", described))
    assert {key: value for key, value in header.items() if "license" in key} == expected


def test_the_card_of_a_classifier():
    text = model_card("PARSClassifier", CLASSIFIER, source="hf://me/it")
    for line in (
        "2 classes: 0 (wake), 1 (sleep).",
        'PARSClassifier.from_pretrained("hf://me/it")',
        "- Pretraining: 1 subject, 1,200 windows, 3 epochs",
        "- Fine-tuning: 1 subject (me)",
        "- Frequency band: from 0.3 Hz",
        "- Notch filter: unknown",
        "- Channels: C3, C4",
        "- Window length: 30 s",
        ": 0.812.",
        "## License\n\nNot stated: ask the authors before you use the model.\n"
        "License of its encoder: ODC-BY",
    ):
        assert line in text, line
