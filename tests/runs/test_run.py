"""Whole runs: their files, their errors, and early ends."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from support.small_runs import run, run_interrupted, same_checkpoint, small_config
from torch import nn
from torch._subclasses import FakeTensorMode

from braindecode_pars import PARSClassifier
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext import PARS, PRETEXT_TASKS
from braindecode_pars.pretext.pairwise import CrossAttentionDecoder
from braindecode_pars.pretrained import EncoderCard, load_encoder, save_encoder
from braindecode_pars.runs import RunConfig, pretrain
from braindecode_pars.runs.planning import CorpusSize
from braindecode_pars.runs.steps import Steps
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows.preprocessing import Preprocessing


def test_a_run_continues_with_an_encoder_and_warns_of_another_reference(store, tiny, tmp_path):
    card = EncoderCard(sfreq=100.0, preprocessing=Preprocessing(reference="average"))
    encoder = save_encoder(PatchEncoder(50, activation=nn.ReLU, **tiny), card, tmp_path / "encoder")
    config = small_config(encoder=str(encoder), epochs=1, steps_per_epoch=1, lr=1e-20)
    with pytest.warns(UserWarning, match="reference as recorded, but average in training"):
        out = pretrain(store, tmp_path / "run", config, verbose=0)
    assert load_encoder(out).card.preprocessing.reference == "as recorded"
    patches = torch.randn(2, 4, 50)
    before, after = (load_encoder(folder).encoder for folder in (encoder, out))
    torch.testing.assert_close(*(e(e.tokenize(patches)) for e in (before, after)))


def test_a_run_writes_encoder_description_and_metrics(store, tmp_path, short_nights, caplog):
    caplog.set_level("INFO")
    out = pretrain(store.path, tmp_path / "run", small_config(task_params={"n_patches": 5}))
    described = json.loads((out / "run.json").read_text())
    assert described["configuration"]["task_params"] == {"n_patches": 5}
    assert described["store"]["checksum"] == store.checksum

    table = pd.read_csv(out / "metrics.csv")
    assert table["step"].tolist() == [3, 6, 9]
    chance = PARS(300, 50, n_patches=5).chance_loss()
    assert np.allclose(table["train_loss"] / chance, table["train_loss_relative"])
    assert np.allclose(24 / table["seconds"], table["windows_per_second"])

    card = load_encoder(out).card
    assert card.subjects == ["subject-0", "subject-1", "subject-3"]  # the third is too short
    assert (card.sfreq, card.task, card.epochs, card.n_windows) == (100, "pars", 3, 12)
    assert card.loss_relative == table["train_loss_relative"].iloc[-1]

    assert "3 epochs of 3 steps of 8 windows; a pass over the data contains 12" in caplog.text
    prepared = Preprocessing(sfreq=100.0, window_seconds=3.0, reference="as recorded")
    assert load_encoder(out).card.preprocessing == prepared
    classifier = PARSClassifier(encoder=out, patch_seconds=0.5, finetune_epochs=1, verbose=0)
    assert classifier.fit(short_nights).encoder_card_.task == "pars"


def test_runs_with_the_same_seed_are_bit_identical_and_silent(store, tmp_path, whole, capsys):
    assert same_checkpoint(run(store, tmp_path / "again", num_workers=1), whole)
    assert not same_checkpoint(run(store, tmp_path / "seeded", seed=1), whole)
    printed = capsys.readouterr()
    assert printed.out + printed.err == ""


def test_excluded_subjects_are_not_read(store, tmp_path, monkeypatch):
    seen = set()
    read = Steps.__getitem__

    def reading(steps, step):
        seen.update(steps.store.recordings["subject"].iloc[steps.recordings_of(step)])
        return read(steps, step)

    monkeypatch.setattr(Steps, "__getitem__", reading)
    out = run(store, tmp_path / "run", exclude_subjects=["subject-0"])
    assert seen == set(load_encoder(out).card.subjects) == {"subject-1", "subject-3"}
    with pytest.raises(ValueError, match="subject-9"):
        run(store, tmp_path / "other", exclude_subjects=["subject-9"])
    assert not (tmp_path / "other").exists()


def test_held_out_subjects_of_a_labeled_store_are_not_trained_on(short_nights, tmp_path):
    """Neither in the run nor in its plan; a store with labels has them for fine-tuning."""
    splits = {1: "train", 2: "valid", 3: "train", 4: "test"}
    labeled = BaseConcatDataset(
        [
            EEGWindowsDataset(one.raw, one.metadata, {"subject": subject, "split": split})
            for one, (subject, split) in zip(short_nights.datasets, splits.items(), strict=True)
        ]
    )
    store = SignalStore.create(tmp_path / "store", labeled, verbose=0)
    assert store.subjects == [1, 2, 3, 4]
    out = run(store, tmp_path / "run", epochs=1, steps_per_epoch=1)
    assert load_encoder(out).card.subjects == [1, 3]
    assert CorpusSize.of_store(store.without_held_out()) == CorpusSize.of_store(
        store.select([1, 3])
    )


def test_precision_and_compilation_reach_the_net(store, tmp_path, monkeypatch):
    compiled = []
    monkeypatch.setattr(nn.Module, "compile", lambda part, **_: compiled.append(type(part)))
    full = run(store, tmp_path / "full", epochs=1)
    assert not compiled
    low = run(store, tmp_path / "low", epochs=1, precision="bfloat16", compile=True)
    assert compiled == [PatchEncoder, CrossAttentionDecoder]
    assert not same_checkpoint(full, low)


def test_a_run_resumes_after_ctrl_c(store, tmp_path, whole, caplog):
    caplog.set_level("INFO")
    out = run_interrupted(8, store, tmp_path / "run")
    assert not (out / "encoder.safetensors").exists()
    pretrain(store, out, small_config(), resume=True)
    files = [folder / "encoder.safetensors" for folder in (out, whole)]
    assert files[0].read_bytes() == files[1].read_bytes()
    sessions = json.loads((out / "run.json").read_text())["sessions"]
    assert [session["first_step"] for session in sessions] == [0, 6]
    again = pretrain(store, out, small_config(device="auto", num_workers=1), resume=True)
    assert again == out
    assert "is already finished" in caplog.text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window_seconds": 21}, "2000"),
        ({"patch_seconds": 4}, "400 samples"),
        ({"micro_batch_size": 3}, "micro_batch_size=3"),
        ({"task_params": {"mask_ratio": 0.5}}, "mask_ratio"),
    ],
)
def test_errors_are_raised_before_anything_is_written(store, tmp_path, changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        run(store, tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_not_finite_ends_the_run(store, tmp_path):
    with pytest.raises(ValueError, match="learning rate"):
        run(store, tmp_path / "run", lr=1e12, epochs=50)


@pytest.mark.parametrize("task", sorted(PRETEXT_TASKS))
def test_every_task_learns_from_crops_of_several_lengths(store, tmp_path, task, monkeypatch):
    monkeypatch.setattr(PRETEXT_TASKS["features"], "N_PREPARED", 50)
    changes = dict(task=task, window_seconds=(2.5, 6, 4), epochs=1, steps_per_epoch=3)
    whole = run(store, tmp_path / "whole", **changes)
    table = pd.read_csv(whole / "metrics.csv")
    assert np.allclose(table["train_loss"], table["train_loss_relative"])
    card = load_encoder(whole).card
    assert (card.n_times, card.preprocessing.window_seconds) == (600, 6)


def test_a_resumed_run_continues_with_the_next_length_in_turn(store, tmp_path):
    changes = dict(window_seconds=(2.5, 6, 4), epochs=2, steps_per_epoch=2)
    cut = run_interrupted(3, store, tmp_path / "cut", **changes)
    run(store, cut, resume=True, **changes)
    assert same_checkpoint(cut, run(store, tmp_path / "whole", **changes))


@pytest.mark.parametrize(("method", "gigabytes"), [("literal", 233), ("factorized", 8.7)])
def test_memory_of_the_decoder_for_long_sequences(method, gigabytes):
    """With 240 patches, all pairs are 512 x 192 x 192 x 1024 floats, or 77 GB.

    Fake tensors have shapes but no memory, so nothing is computed.
    """
    config, task, stored = RunConfig(), PARS(6000, 200, n_patches=240, num_layers=1), {}

    def keep(tensor):
        stored[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with FakeTensorMode(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        decoder = CrossAttentionDecoder(config.embed_dim, config.num_heads, method=method)
        size = (config.batch_size, task.n_patches, config.embed_dim)
        features = torch.empty(size, requires_grad=True)
        decoder(features[:, : task.n_masked], features)
    n_bytes = sum(tensor.untyped_storage().nbytes() for tensor in stored.values())
    assert n_bytes / 1e9 == pytest.approx(gigabytes, rel=0.05)
