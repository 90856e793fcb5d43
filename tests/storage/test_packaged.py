"""Encoders in the package are found by name, wherever an encoder can be given."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest
import torch
from support.small_runs import SMALL, make_store, run
from support.stand_in import NAME, ship
from typer.testing import CliRunner

from braindecode_pars import PARSClassifier, PARSEmbedder, PARSNet, PatchEncoder
from braindecode_pars._common import model_files as _packaged
from braindecode_pars._common.model_files import model_folder, packaged_folder, packaged_names
from braindecode_pars.cli import app
from braindecode_pars.evaluation.cache import describe_estimator
from braindecode_pars.pretrained import EncoderCard, load_encoder, packaged_encoders, save_encoder

WINDOWS = np.random.default_rng(0).normal(size=(8, 2, 600)).astype(np.float32)
LABELS = np.array([0, 1] * 4)


@pytest.fixture
def shipped(monkeypatch, tmp_path):
    """Folder of a stand-in; nothing else is in the package, and there is no network."""

    def fail(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", fail)
    monkeypatch.setattr(socket, "getaddrinfo", fail)
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return ship(monkeypatch, tmp_path / "package")


@pytest.mark.parametrize("name", [NAME, "small"])
def test_a_name_and_its_alias_are_found(shipped, name):
    assert model_folder(name) == shipped
    loaded, card, report = load_encoder(name)
    assert report.complete
    assert torch.equal(loaded.norm.weight, load_encoder(shipped).encoder.norm.weight)
    assert card.about["name"] == NAME


def test_names_cards_and_folders(shipped, tmp_path):
    (tmp_path / "package" / "empty").mkdir()
    assert packaged_names() == [NAME]
    assert packaged_folder("empty") is None
    cards = packaged_encoders()
    assert list(cards) == [NAME]
    assert cards[NAME].subjects == [1, 2, 3]


def test_the_estimators_take_it(shipped):
    features = PARSEmbedder(encoder="small", sfreq=100, verbose=0).fit(WINDOWS).transform(WINDOWS)
    direct = PARSEmbedder(encoder=shipped, sfreq=100, verbose=0).fit(WINDOWS).transform(WINDOWS)
    assert np.array_equal(features, direct)
    clf = PARSClassifier(
        encoder="small", sfreq=100, validation=0, finetune_epochs=1, verbose=0, random_state=0
    )
    clf.fit(WINDOWS, LABELS)
    assert clf.encoder_card_.about["licence"] == "ODC-BY 1.0"
    assert clf.encoder_card_.subjects == [1, 2, 3]


def test_windows_at_another_rate_are_refused_with_the_remedy(shipped):
    embedder = PARSEmbedder(encoder="small", sfreq=250, verbose=0)
    with pytest.raises(ValueError, match=r"at 250 Hz, .* 100 Hz; .* with raw\.resample\(100\)"):
        embedder.fit(WINDOWS)


def test_a_run_continues_with_it(shipped, tmp_path):
    store = make_store(tmp_path / "store", seconds=(20,))
    out = tmp_path / "run"
    options = [
        word
        for name in ("window_seconds", "epochs", "steps_per_epoch", "batch_size", "device")
        for word in (f"--{name.replace('_', '-')}", str(SMALL[name]))
    ]
    result = CliRunner().invoke(
        app, ["pretrain", str(store.path), "--out", str(out), "--encoder", "small", *options]
    )
    assert result.exit_code == 0, result.output
    card = load_encoder(out).card
    assert card.continued_from["about"]["name"] == NAME
    assert card.about == {}
    fast = make_store(tmp_path / "fast", seconds=(20,), sfreq=128.0)
    with pytest.raises(ValueError, match=r"store is sampled at 128 Hz, .* with sfreq=100\."):
        run(fast, tmp_path / "other", encoder="small")


def test_the_fingerprint_is_of_the_content(shipped):
    clf = PARSClassifier(encoder="small")
    before = describe_estimator(clf)
    assert describe_estimator(PARSClassifier(encoder="small")) == before
    save_encoder(PatchEncoder(50, embed_dim=16, num_layers=1), EncoderCard(), shipped)
    assert describe_estimator(clf) != before


def test_a_folder_of_the_user_wins(shipped, tiny):
    own = save_encoder(PatchEncoder(25, **tiny), EncoderCard(task="mae"), Path("small"))
    assert model_folder("small") == own
    assert load_encoder("small").card.task == "mae"
    assert packaged_encoders()[NAME].task == "spectral"  # still the one in the package


def test_a_folder_without_a_model_does_not_hide_it(shipped):
    Path("small").mkdir()
    Path("small", "notes.txt").write_text("notes")
    assert model_folder("small") == shipped
    assert model_folder(Path("small")) == Path("small")
    Path("small", "run.json").write_text("{}")  # a run of the user, which has no encoder yet
    assert model_folder("small") == Path("small")


def test_a_file_of_this_name_does_not_hide_it_and_a_path_is_no_name(shipped):
    Path("small").write_text("notes")
    assert model_folder("small") == shipped
    with pytest.raises(FileNotFoundError, match="small is a file; pass the folder"):
        model_folder(Path("small"))
    with pytest.raises(FileNotFoundError, match="folder does not exist"):
        model_folder(Path(NAME))


def test_an_unknown_name_lists_the_known_ones(shipped, monkeypatch, tmp_path):
    message = f"the folder does not exist. The encoders in the package are 'small', '{NAME}'."
    with pytest.raises(FileNotFoundError, match=message):
        load_encoder("large")
    with pytest.raises(FileNotFoundError, match=r"the folder does not exist\.$"):
        load_encoder("runs/encoders/large")
    monkeypatch.setattr(_packaged, "FOLDER", tmp_path / "nothing")
    assert packaged_encoders() == {}
    with pytest.raises(FileNotFoundError, match="This installation has no encoders of the package"):
        load_encoder("small")


def test_a_damaged_folder(shipped):
    file = shipped / "encoder.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-40])
    for use in (lambda: load_encoder("small"), packaged_encoders):
        with pytest.raises(ValueError, match=rf"{NAME}/encoder\.safetensors is damaged"):
            use()
    file.write_bytes(whole[:-4] + b"\x00\x01\x02\x03")
    with pytest.raises(ValueError, match="does not match its checksum"):
        load_encoder("small")


@pytest.mark.parametrize("load", [PARSClassifier.load, PARSEmbedder.load, PARSNet.from_pretrained])
def test_it_is_no_estimator_or_network(shipped, load):
    with pytest.raises((FileNotFoundError, ValueError), match="it is an encoder, which load_enc"):
        load("small")
