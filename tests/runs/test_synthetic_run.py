"""Runs without recordings: resuming, the card and what follows from it."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from held_out_loss import held_out_loss
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from support.small_runs import run, run_interrupted, same_checkpoint, small_config

from braindecode_pars import PARSClassifier, PARSEmbedder, evaluation
from braindecode_pars.datasets import SyntheticSignals
from braindecode_pars.evaluation.folds import seen_before
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.pretrained.cards import EncoderCard, model_card
from braindecode_pars.runs import CorpusSize, plan, pretrain
from braindecode_pars.windows.preprocessing import Preprocessing

SOURCE = SyntheticSignals(100, band=(0.5, 40), n_windows=20)


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
def test_a_resumed_run_is_bit_identical(finished, tmp_path, num_workers):
    given = dict(task="features", num_workers=num_workers, epochs=2)
    stopped = run_interrupted(5, SOURCE, tmp_path / "run", **given)
    assert same_checkpoint(run(SOURCE, stopped, resume=True, **given), finished)


def test_a_run_resumes_on_the_same_signals_only(store, tmp_path):
    run_interrupted(5, SOURCE, tmp_path / "run")
    other = SyntheticSignals(100, band=(0.5, 40), exponent=(0, 2), n_windows=20)
    with pytest.raises(ValueError, match=r"synthetic\.exponent\[1\] is 2\.0, was 3\.0"):
        run(other, tmp_path / "run", resume=True)
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


def test_a_run_on_recordings_continues_with_it_and_back(finished, store, tmp_path):
    """Both cards have the subjects of the recordings, and neither tells that there were none."""
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
