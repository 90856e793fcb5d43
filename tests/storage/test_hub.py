"""Names of models: folders, encoders in the package, and models on the Hugging Face Hub."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest
import torch
from support.small_runs import make_store, run
from support.stand_in import NAME, ship

from braindecode_pars import PARSNet, PatchEncoder
from braindecode_pars._common.model_files import bundled_folder, bundled_names, model_folder
from braindecode_pars.pretrained import EncoderCard, load_encoder, packaged_encoders, save_encoder

WINDOWS = np.random.default_rng(0).normal(size=(8, 2, 600)).astype(np.float32)
LABELS = np.array([0, 1] * 4)


@pytest.fixture
def no_network(monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", fail)
    monkeypatch.setattr(socket, "getaddrinfo", fail)


@pytest.fixture
def shipped(no_network, monkeypatch, tmp_path):
    """Folder of a stand-in; nothing else is in the package."""
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return ship(monkeypatch, tmp_path / "package")


@pytest.fixture
def hub(no_network, monkeypatch, tmp_path):
    """Cache of the Hub that contains the model owner/eeg."""
    constants = pytest.importorskip("huggingface_hub.constants", reason="huggingface_hub is absent")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    repository = tmp_path / "hub" / "models--owner--eeg"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("c0ffee")
    return repository / "snapshots" / "c0ffee"


def test_the_encoder_of_a_downloaded_model_needs_no_network(hub, tiny):
    net = PARSNet(2, 3, n_times=600, sfreq=100.0, **tiny)
    net.save_pretrained(hub)
    assert load_encoder("owner/eeg").encoder.config == net.encoder.config
    card = load_encoder("owner/eeg").card
    assert (card.subjects, card.sfreq) == (None, 100.0)  # the subjects are unknown
    loaded = PARSNet.from_pretrained("owner/eeg", local_files_only=True)
    assert loaded.load_report.complete


@pytest.mark.parametrize(
    ("source", "fact"),
    [
        ("owner/else", "hf://owner/else"),
        (Path("runs/encoder/1"), "runs/encoder/1"),
        ("large", "features-eegmmidb"),
    ],
)
def test_a_missing_model_is_not_searched_on_the_network(hub, source, fact):
    with pytest.raises(FileNotFoundError, match=fact):
        model_folder(source)


def test_only_the_prefix_downloads(hub, monkeypatch):
    import huggingface_hub

    calls = []

    def download(repo_id, **kwargs):
        calls.append((repo_id, kwargs))
        return str(hub)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert model_folder("hf://owner/eeg@v1") == hub
    model_folder("owner/eeg")
    options = {"allow_patterns": ["*.json", "*.safetensors"]}  # never a pickle
    assert calls == [
        ("owner/eeg", {**options, "local_files_only": False, "revision": "v1"}),
        ("owner/eeg", {**options, "local_files_only": True}),
    ]


@pytest.mark.parametrize("name", [NAME, "small"])
def test_a_name_and_its_alias_are_found(shipped, tmp_path, name):
    (tmp_path / "package" / "empty").mkdir()
    assert model_folder(name) == shipped
    loaded, card, report = load_encoder(name)
    assert report.complete
    assert torch.equal(loaded.norm.weight, load_encoder(shipped).encoder.norm.weight)
    assert card.about["name"] == NAME
    assert bundled_names() == [NAME]
    assert bundled_folder("empty") is None
    assert {name: card.subjects for name, card in packaged_encoders().items()} == {NAME: [1, 2, 3]}


def test_a_run_continues_with_it_at_its_rate(shipped, tmp_path):
    out = run(make_store(tmp_path / "store", seconds=(20,)), tmp_path / "run", encoder="small")
    card = load_encoder(out).card
    assert card.continued_from["about"]["name"] == NAME
    fast = make_store(tmp_path / "fast", seconds=(20,), sfreq=128.0)
    with pytest.raises(ValueError, match="128 Hz"):
        run(fast, tmp_path / "other", encoder="small")


def test_a_folder_of_the_user_wins(shipped, tiny):
    own = save_encoder(PatchEncoder(25, **tiny), EncoderCard(task="mae"), Path("small"))
    assert model_folder("small") == own
    assert load_encoder("small").card.task == "mae"
    assert packaged_encoders()[NAME].task == "spectral"  # still the one in the package


def test_it_is_no_network_without_a_number_of_classes(shipped):
    with pytest.raises(ValueError, match="n_outputs"):
        PARSNet.from_pretrained("small")


def test_a_path_without_a_model_does_not_hide_it_and_a_path_is_no_name(shipped):
    with pytest.raises(FileNotFoundError, match="small"):
        model_folder(Path("small"))
    Path("small").mkdir()
    Path("small", "notes.txt").write_text("notes")
    assert model_folder("small") == shipped
    assert model_folder(Path("small")) == Path("small")
