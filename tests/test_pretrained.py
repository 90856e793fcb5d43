"""Saving and loading a pretrained encoder."""

from __future__ import annotations

import pytest
import torch
from support.model_files import change_description
from torch import nn

from braindecode_pars import PARSNet, PatchEncoder
from braindecode_pars.pretext import PARS
from braindecode_pars.pretrained import EncoderCard, load_encoder, save_encoder
from braindecode_pars.pretrained.cards import fine_tuned_card, read_card, unique_subjects
from braindecode_pars.windows.preprocessing import Preprocessing


@pytest.fixture
def encoder(tiny):
    return PatchEncoder(50, **tiny, activation=nn.ELU)


@pytest.fixture
def folder(encoder, tmp_path):
    card = EncoderCard(sfreq=100.0, task="pars", subjects=["S1", "S2"], n_windows=7, epochs=3)
    return save_encoder(encoder, card, tmp_path / "run" / "encoder")


def test_round_trip(encoder, folder):
    loaded, card, report = load_encoder(folder)
    assert loaded.config == encoder.config
    assert report.complete
    assert len(report.loaded) == len(encoder.state_dict())
    for name, value in encoder.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)
    assert (card.sfreq, card.task, card.subjects) == (100.0, "pars", ["S1", "S2"])
    assert set(card.versions) == {"braindecode_pars", "braindecode", "torch"}


def test_load_from_objects_with_an_encoder(tiny):
    net = PARSNet(2, 3, n_times=600, sfreq=100, **tiny)
    task = PARS(600, 100, encoder=net.encoder)
    for owner in (net, task, net.encoder):
        assert load_encoder(owner)[0] is net.encoder
    with pytest.raises(TypeError, match="Linear"):
        load_encoder(nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("encoder", {"n_heads": 1, "activation": "GELU"}),
        ("encoder", {"num_layers": 1, "activation": "system"}),
        ("pretraining", {"species": "rat"}),
    ],
)
def test_entries_of_a_newer_version_are_named(folder, entry, value):
    change_description(folder, lambda description: description.update({entry: value}))
    name = "system" if "num_layers" in value else next(iter(value))
    with pytest.raises(ValueError, match=f"{folder.name}.*{name}"):
        load_encoder(folder)


def test_facts_are_saved_and_stay_with_the_encoder_that_they_describe(encoder, tmp_path):
    held_out = {"loss_relative": 0.8, "people": "others"}
    facts = {"license": "ODC-BY 1.0", "band": [0.5, 45], "held_out": held_out}
    save_encoder(encoder, EncoderCard(subjects=[1], about=facts), tmp_path / "one")
    before = load_encoder(tmp_path / "one").card
    assert before.about == facts
    before.finetune_subjects = [7]
    after = EncoderCard(subjects=[2]).continues(before)
    assert {1, 2, 7} <= set(after.seen_subjects)  # none of them can test the encoder
    assert after.about == {}
    assert after.continued_from["about"] == facts


def test_a_card_without_facts_loads(folder):
    """Files from before the entry do not have it."""
    change_description(folder, lambda description: description["pretraining"].pop("about"))
    (folder / "encoder.json").unlink()
    assert load_encoder(folder).card.about == {}


def test_subjects_of_several_sets():
    assert unique_subjects([3, 1], [2, 3]) == [1, 2, 3]
    assert unique_subjects(["b"], ["a"]) == ["a", "b"]
    assert unique_subjects(["b"], None) is None
    # Those of an earlier fine-tuning stay on the card.
    card = EncoderCard(subjects=[5], finetune_subjects=[7])
    assert fine_tuned_card(card, 100.0, [2, 1]).finetune_subjects == [1, 2, 7]
    assert fine_tuned_card(card, 100.0, [2, 1], None).finetune_subjects is None


def test_a_reference_of_many_channels_is_an_average():
    card = EncoderCard(preprocessing=Preprocessing(reference="average"))
    for n_names, is_average in ((16, True), (15, False)):
        names = ", ".join(f"E{i}" for i in range(n_names))
        assert (card.differences(Preprocessing(reference=names)) == []) == is_average


def names_in(folder, *names):
    """Return the names that the bytes of the files of a folder contain."""
    content = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    return [name for name in names if name.encode() in content]


def test_a_shared_encoder_has_no_names(encoder, tmp_path):
    before = EncoderCard(subjects=["Anna"], about={"people": ["Anna"], "license": "ODC-BY 1.0"})
    card = EncoderCard(
        subjects=["study:Berta"],
        finetune_subjects=["Carla"],
        about={
            "description": "Of a study.",
            "people": ["Dora"],
            "held_out": {"loss_relative": 0.9, "people": "Emma"},
            "command": "--exclude-subject Frida",
            "machine": "of Gerda",
            "own": "Hanna",
        },
    ).continues(before)
    card.finetune_subjects = ["tueg:Carla"]
    names = ["Anna", "Berta", "Carla", "Dora", "Emma", "Frida", "Gerda", "Hanna"]
    assert names_in(save_encoder(encoder, card, tmp_path / "own"), *names) == names
    folder = save_encoder(encoder, card, tmp_path / "shared", share=True)
    assert names_in(folder, *names) == []
    loaded = load_encoder(folder).card
    assert (loaded.subjects, loaded.finetune_subjects) == (None, None)
    counts = {"n_subjects": 2, "n_finetune_subjects": 1}
    assert loaded.about == {"description": "Of a study.", "corpora": ["tueg"], **counts}
    assert loaded.continued_from["about"] == {"license": "ODC-BY 1.0", "n_subjects": 1}
    assert card.subjects == ["Anna", "study:Berta"]  # the card of the owner is unchanged


def test_unknown_subjects_stay_unknown():
    card = EncoderCard(subjects=None, finetune_subjects=[]).without_names()
    assert (card.subjects, card.finetune_subjects) == (None, [])
    shared = EncoderCard(subjects=["Anna", "Ben"]).without_names()
    assert EncoderCard(subjects=["Carla"]).continues(shared).subjects is None
    assert shared.without_names() == shared  # the numbers stay
    # Salted hashes, which version 0.2.0 has written, name nobody.
    assert read_card({"subjects": ["tueg:scrypt$0$1"]}).subjects is None


def test_a_folder_to_share_has_no_other_files(encoder, tmp_path):
    card = EncoderCard(subjects=["Berta"])
    save_encoder(encoder, card, tmp_path)
    save_encoder(encoder, card, tmp_path, share=True)  # replaces the encoder with names
    assert names_in(tmp_path, "Berta") == []
    (tmp_path / "README.md").write_text("Our own text.")
    save_encoder(encoder, card, tmp_path, share=True)
    assert (tmp_path / "README.md").read_text() == "Our own text."
    (tmp_path / "embedder.json").write_text("{}")
    with pytest.raises(ValueError, match=r"embedder\.json"):
        save_encoder(encoder, card, tmp_path, share=True)
