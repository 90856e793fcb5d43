"""What the demo compares."""

from __future__ import annotations

import pytest

from braindecode_pars import PatchEncoder
from braindecode_pars.cli.demo import Scenario, classifiers, embedders
from braindecode_pars.pretrained import EncoderCard, save_encoder


@pytest.fixture
def scenario(tmp_path) -> Scenario:
    """Settings without data, and an encoder to continue with."""
    encoder = PatchEncoder(50, embed_dim=24, num_layers=1, num_heads=2, tokenizer="linear")
    card = EncoderCard(sfreq=100.0, task="mae", task_params=dict(mask_ratio=0.25))
    return Scenario(
        "nights",
        unlabeled=None,
        labeled=None,
        held_out=None,
        pretrain=dict(pretrain_epochs=3),
        finetune=dict(finetune_epochs=2),
        encoder=str(save_encoder(encoder, card, tmp_path / "shipped")),
        continued=dict(pretrain_epochs=1),
    )


def test_an_encoder_continues_with_its_own_task(scenario):
    [(name, embedder)] = embedders(scenario, ["pars"], seed=7).items()
    assert name == "continued"
    assert (embedder.pretext, embedder.pretext_params) == ("mae", dict(mask_ratio=0.25))
    assert (embedder.encoder, embedder.continue_pretraining) == (scenario.encoder, True)
    assert (embedder.pretrain_epochs, embedder.random_state) == (1, 7)


def test_new_encoders_differ_in_the_task_only(scenario):
    scenario.encoder = None
    found = embedders(scenario, ["pars", "droppos"], seed=7)
    assert list(found) == ["PARS", "DropPos"]
    pars, droppos = (embedder.get_params() for embedder in found.values())
    assert pars.pop("pretext") == "pars"
    assert droppos.pop("pretext") == "droppos"
    assert pars == droppos
    assert (pars["pretrain_epochs"], pars["encoder"]) == (3, None)


def test_methods_beside_the_encoder_in_the_package(scenario, tmp_path):
    found = classifiers(scenario, {"continued": tmp_path / "encoder"})
    assert list(found) == ["pretrained", "continued", "scratch", "pretrained probe", "band power"]
    # Fine-tuning is the same.
    pretrained, continued = (found[name].get_params() for name in ("pretrained", "continued"))
    assert pretrained["encoder"] == found["pretrained probe"][0].encoder == scenario.encoder
    assert continued["encoder"] == tmp_path / "encoder"
    assert {**pretrained, "encoder": None} == {**continued, "encoder": None}
    assert {found["scratch"].finetune_epochs, pretrained["finetune_epochs"]} == {2}


def test_scratch_has_the_size_of_the_encoder(scenario, nights):
    scratch = classifiers(scenario, {})["scratch"].set_params(finetune_epochs=1)
    fitted, size = scratch.fit(nights).encoder_.config, PatchEncoder(50).config
    assert fitted["patch_size"] == 50
    assert {name: fitted[name] for name in ("embed_dim", "num_layers", "num_heads")} == dict(
        embed_dim=24, num_layers=1, num_heads=2
    )
    assert (fitted["mlp_dim"], fitted["tokenizer"]) == (size["mlp_dim"], "linear")


def test_methods_of_new_encoders(scenario, tmp_path):
    scenario.encoder = None
    found = classifiers(scenario, {"PARS": tmp_path / "encoder"})
    assert list(found) == ["PARS", "scratch", "band power"]
    assert found["scratch"].embed_dim == embedders(scenario, ["pars"], 0)["PARS"].embed_dim
