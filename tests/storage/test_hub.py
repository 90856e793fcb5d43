"""Pretrained models on the Hugging Face Hub, without a network."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from braindecode_pars import PARSNet, PatchEncoder
from braindecode_pars._common.model_files import model_folder
from braindecode_pars.pretrained import EncoderCard, load_encoder, save_encoder


@pytest.fixture
def no_network(monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", fail)
    monkeypatch.setattr(socket, "getaddrinfo", fail)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Cache of the Hub that contains the model somebody/eeg."""
    constants = pytest.importorskip("huggingface_hub.constants", reason="huggingface_hub is absent")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    repository = tmp_path / "hub" / "models--somebody--eeg"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("c0ffee")
    return repository / "snapshots" / "c0ffee"


def test_a_folder_is_returned_unchanged(tmp_path):
    assert model_folder(tmp_path) == tmp_path
    assert model_folder(str(tmp_path)) == tmp_path


def test_a_downloaded_model_needs_no_network(hub, no_network, tiny):
    encoder = PatchEncoder(50, **tiny)
    save_encoder(encoder, EncoderCard(sfreq=100.0, task="pars"), hub)
    loaded = load_encoder("somebody/eeg")
    assert loaded.encoder.config == encoder.config
    assert loaded.card.task == "pars"


def test_the_encoder_of_a_model_on_the_hub_is_loaded(hub, no_network, tiny):
    net = PARSNet(2, 3, n_times=600, sfreq=100.0, **tiny)
    net.save_pretrained(hub)
    assert load_encoder("somebody/eeg").encoder.config == net.encoder.config
    assert load_encoder("somebody/eeg").card.subjects is None  # unknown
    loaded = PARSNet.from_pretrained("somebody/eeg", local_files_only=True)
    assert loaded.load_report.complete


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("somebody/else", r"nor a downloaded model .*; to download it, pass hf://somebody/else"),
        ("runs/encoder/1", "the folder does not exist"),
        ("encoder", "the folder does not exist"),
        ("/nowhere/at/all", "the folder does not exist"),
        (Path("runs/encoder/1"), "the folder does not exist"),
    ],
)
def test_a_missing_model_is_not_searched_on_the_network(hub, no_network, source, message):
    with pytest.raises(FileNotFoundError, match=message):
        model_folder(source)


def test_only_the_prefix_downloads(hub, monkeypatch):
    import huggingface_hub

    calls = []

    def download(repo_id, **kwargs):
        calls.append((repo_id, kwargs))
        return str(hub)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert model_folder("hf://somebody/eeg@v1") == hub
    model_folder("somebody/eeg")
    options = {"allow_patterns": ["*.json", "*.safetensors"]}  # never a pickle
    assert calls == [
        ("somebody/eeg", {**options, "local_files_only": False, "revision": "v1"}),
        ("somebody/eeg", {**options, "local_files_only": True}),
    ]


def test_a_failed_download_gives_the_reason(hub, monkeypatch):
    import huggingface_hub

    def download(repo_id, **options):
        raise ConnectionError("no route to host\nand a long trace")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    with pytest.raises(FileNotFoundError, match=r"could not be downloaded: no route to host$"):
        model_folder("hf://somebody/eeg")


def test_without_huggingface_hub(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match="pip install huggingface_hub"):
        model_folder("hf://somebody/eeg")
    with pytest.raises(FileNotFoundError, match="not the folder of a saved model"):
        model_folder("somebody/eeg")
