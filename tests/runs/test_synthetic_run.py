"""Runs without recordings: the signals of a step, resuming, the card and what follows from it."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import torch
from held_out_loss import held_out_loss
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from support.small_runs import interrupt, make_store, run, small_config

from braindecode_pars import PARSClassifier, PARSEmbedder, evaluation
from braindecode_pars.datasets import SyntheticSignals
from braindecode_pars.evaluation.folds import seen_before
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.pretrained.cards import EncoderCard, model_card
from braindecode_pars.recordings.preprocessing import Preprocessing
from braindecode_pars.runs import CorpusSize, plan, pretrain
from braindecode_pars.runs.steps import EpochLoader, SyntheticSteps

SOURCE = SyntheticSignals(100, band=(0.5, 40), n_windows=20)


# Steps --------------------------------------------------------------------------------------------


def are_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether a signal is at the same place in both."""
    return bool((one == other).all(dim=1).any())


def test_a_step_depends_only_on_the_seed_and_its_number():
    steps, again = (SyntheticSteps(SOURCE, 300, 8) for _ in range(2))
    found = {step: again[step] for step in (40, 7, 0)}
    for step in (0, 7, 40):
        signals, seed = steps[step]
        assert (signals.dtype, signals.shape) == (torch.float32, (8, 300))
        assert torch.equal(signals, found[step][0])
        assert seed == found[step][1]
    assert len({seed for _, seed in found.values()}) == 3
    for other in (found[7][0], SyntheticSteps(SOURCE, 300, 8, seed=1)[0][0]):
        assert not are_alike(other, found[0][0])


def test_the_signals_of_all_processes_make_up_the_step():
    whole = SyntheticSteps(SOURCE, 300, 12)
    shards = [SyntheticSteps(SOURCE, 300, 12, process=i, n_processes=3) for i in range(3)]
    parts = [shard[5] for shard in shards]
    assert torch.equal(torch.cat([part for part, _ in parts]), whole[5][0])
    assert {seed for _, seed in parts} == {whole[5][1]}
    assert all(torch.equal(shard.first_pass(9), whole.first_pass(9)) for shard in shards)
    assert not are_alike(whole.first_pass(12), whole[0][0])


def test_signals_of_several_lengths_in_turns():
    steps = SyntheticSteps(SOURCE, (300, 500), 6)
    assert [steps[step][0].shape for step in range(3)] == [(6, 300), (6, 500), (6, 300)]
    assert steps.first_pass(3).shape == (3, 500)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_workers_load_the_same_signals(num_workers):
    steps = SyntheticSteps(SOURCE, 300, 4)
    loader = EpochLoader(steps, 6, 12, 3, num_workers=num_workers)
    for first in (6, 9):
        for step, (signals, seed) in zip(range(first, first + 3), loader, strict=True):
            assert torch.equal(signals, steps[step][0])
            assert seed == steps[step][1]


def test_crops_without_a_sample_raise():
    with pytest.raises(ValueError, match="use longer windows"):
        SyntheticSteps(SOURCE, 0, 8)


# Runs ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of two epochs on synthetic signals."""
    return run(SOURCE, tmp_path_factory.mktemp("synthetic") / "run", task="features", epochs=2)


def test_a_run_tells_that_there_are_no_subjects(finished, tmp_path, caplog):
    caplog.set_level("INFO")
    described = json.loads((finished / "run.json").read_text())["store"]
    assert (described["recordings"], described["subjects"]) == ([], [])
    assert (described["sfreq"], described["synthetic"]["band"]) == (100, [0.5, 40])
    card = load_encoder(finished).card
    assert (card.subjects, card.seen_subjects, card.sfreq, card.n_windows) == ([], set(), 100, 20)
    known = dict(sfreq=100.0, band=[0.5, 40.0], window_seconds=3.0)
    assert card.preprocessing.known() == known
    assert card.differences(Preprocessing(reference="average")) == []  # any reference is accepted
    assert "without subjects" in card.about["description"]
    assert json.loads(json.dumps(card.about)) == card.without_names().about  # may be shared
    text = model_card("PatchEncoder", json.loads((finished / "encoder.json").read_text()))
    for line in (
        "- Pretraining: no subjects, 20 windows, 2 epochs",
        "- Corpora: synthetic signals",
        "- Band: 0.5-40 Hz",
        "- Reference: none",
    ):
        assert line in text

    pretrain(SOURCE, tmp_path / "run", small_config(epochs=1, steps_per_epoch=None))
    assert "Synthetic signals at 100 Hz: no recordings, no subjects\n" in caplog.text
    assert "1 epochs, of 3 steps of 8 windows; a pass over the data is 20 windows" in caplog.text
    assert len(pd.read_csv(tmp_path / "run" / "metrics.csv")) == 1


@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_resumed_run_is_bit_identical(tmp_path, monkeypatch, num_workers):
    given = dict(task="features", num_workers=num_workers, epochs=2)
    whole = run(SOURCE, tmp_path / "whole", **given)
    with monkeypatch.context() as patched:
        interrupt(patched, step=5)
        with pytest.raises(KeyboardInterrupt):
            run(SOURCE, tmp_path / "run", **given)
    resumed = run(SOURCE, tmp_path / "run", resume=True, **given)
    first, second = ((out / "encoder.safetensors").read_bytes() for out in (whole, resumed))
    assert first == second


def test_a_run_resumes_on_the_same_signals_only(tmp_path, monkeypatch):
    interrupt(monkeypatch, step=5)
    with pytest.raises(KeyboardInterrupt):
        run(SOURCE, tmp_path / "run")
    other = SyntheticSignals(100, band=(0.5, 40), exponent=(0, 2), n_windows=20)
    with pytest.raises(ValueError, match=r"synthetic\.exponent\[1\] is 2\.0, was 3\.0"):
        run(other, tmp_path / "run", resume=True)
    store = make_store(tmp_path / "store")
    with pytest.raises(ValueError, match="synthetic is None"):
        run(store, tmp_path / "run", resume=True)


def test_a_plan_needs_no_disk_for_a_store():
    corpus = CorpusSize.of_store(SOURCE)
    assert corpus == (20, 100.0, 0, 1)
    planned = plan(corpus, small_config(steps_per_epoch=None))
    assert (planned.steps_per_epoch, planned.n_steps, planned.store_bytes) == (3, 15, 0)


# What follows from the card -----------------------------------------------------------------------


def test_an_evaluation_neither_warns_of_subjects_nor_knows_any(finished, nights):
    probe = make_pipeline(PARSEmbedder(encoder=finished, verbose=0), DummyClassifier())
    evaluation.leave_one_subject_out({"probe": probe}, nights, test_subjects=[1], verbose=0)
    clf = PARSClassifier(encoder=finished, finetune_epochs=1, freeze_encoder=True, verbose=0)
    assert seen_before(clf.fit(nights), {9: "9"}) == {"subjects": [], "unknown": False}


def test_an_embedder_takes_the_band_and_no_reference(finished):
    embedder = PARSEmbedder.from_pretrained(finished)
    assert embedder.preprocessing_.known() == dict(sfreq=100.0, band=[0.5, 40.0])


def test_a_run_on_recordings_continues_with_it_and_the_other_way_round(finished, tmp_path):
    """Both cards have the subjects of the recordings, and neither tells that there were none."""
    store = make_store(tmp_path / "store")
    given = dict(task="features", epochs=1, steps_per_epoch=1)
    loss = held_out_loss(finished, store, crops_per_recording=2, device="cpu")
    assert loss.n_crops == 6
    there = run(store, tmp_path / "there", encoder=str(finished), **given)
    back = run(SOURCE, tmp_path / "back", encoder=str(there), **given)
    for out in (there, back):
        card = load_encoder(out).card
        assert card.subjects == ["subject-0", "subject-1", "subject-3"]
        assert card.about == {}
    assert EncoderCard(**load_encoder(there).card.continued_from).subjects == []
