"""Encoders inside estimators, and whom they have seen."""

from __future__ import annotations

from types import SimpleNamespace

from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline

from braindecode_pars.evaluation.folds._encoder_origin import leak_sentences, seen_before


def encoder(seen, subjects=(), finetune_subjects=()):
    card = SimpleNamespace(
        seen_subjects=set(seen), subjects=subjects, finetune_subjects=finetune_subjects
    )
    return SimpleNamespace(encoder_card_=card)


def test_only_test_subjects_count_and_origins_add_up():
    pipe = make_pipeline(encoder([1, 2]), encoder([3], subjects=None), DummyClassifier())
    assert seen_before(pipe, [3, 2, 9]) == {"subjects": [3, 2], "unknown": True}
    assert seen_before(DummyClassifier(), [1]) == {"subjects": [], "unknown": False}


def test_each_method_is_warned_of_once():
    clean = {"subjects": [], "unknown": False}
    seen = {
        "A": [{"subjects": ["2"], "unknown": False}, {"subjects": ["3", "2"], "unknown": False}],
        "B": [clean, {"subjects": [], "unknown": True}, {"subjects": [], "unknown": True}],
        "C": [clean],
    }
    leak, unknown = leak_sentences(seen)
    assert leak.startswith("A was pretrained on windows of test subjects 2, 3; its score there")
    assert unknown.startswith("It is not known whom the encoder of B was trained on")


def test_a_person_is_the_same_in_a_folder_and_in_a_table():
    """Names of files are strings, tables of datasets have numbers."""
    assert seen_before(encoder(["2", "P3", "007"]), [2, 3, 7])["subjects"] == [2, 7]
