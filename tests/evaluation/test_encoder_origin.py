"""Test subjects that the encoders inside estimators were trained on."""

from types import SimpleNamespace

import pytest
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline

from braindecode_pars import PARSNet
from braindecode_pars.callbacks import Pretraining
from braindecode_pars.datasets import SyntheticSignals
from braindecode_pars.evaluation.folds import seen_before, warn_of_leaks


def encoder(seen, subjects=(), finetune_subjects=()):
    card = SimpleNamespace(
        seen_subjects=set(seen), subjects=subjects, finetune_subjects=finetune_subjects
    )
    return SimpleNamespace(encoder_card_=card)


def people(*subjects):
    return {subject: subject for subject in subjects}


def test_seen_test_subjects_of_all_encoders_are_found():
    pipe = make_pipeline(encoder([1, 2]), encoder([3], subjects=None), DummyClassifier())
    assert seen_before(pipe, people(3, 2, 9)) == {"subjects": ["3", "2"], "unknown": True}
    assert seen_before(DummyClassifier(), people(1)) == {"subjects": [], "unknown": False}


def test_each_method_gets_one_warning():
    seen = [{"subjects": [], "unknown": unknown} for unknown in (0, 0, 0, 1, 1, 0)]
    seen[0]["subjects"], seen[1]["subjects"] = ["2"], ["3", "2"]
    with pytest.warns(UserWarning, match="encoder") as caught:
        leak, unknown = warn_of_leaks("AABBBC", seen)
    assert [str(w.message) for w in caught] == [leak, unknown]
    assert leak.startswith("A was pretrained on windows of test subjects 2, 3;")
    assert "encoder of B" in unknown
    assert warn_of_leaks("AABBBC", seen, [leak, unknown]) == [leak, unknown]


def test_subjects_match_as_numbers_and_as_text():
    """Subjects from file names are strings, subjects from tables are numbers, even floats."""
    assert seen_before(encoder(["2", "P3", "007"]), people(2, 3, 7))["subjects"] == ["2", "7"]
    assert seen_before(encoder([2.0, "P3", 7]), people(2, 3, "07"))["subjects"] == ["2", "07"]
    assert seen_before(encoder(["2", "sub-P3"]), people(2.0, "P3"))["subjects"] == ["2.0", "P3"]


def test_a_net_that_may_have_been_pretrained_elsewhere_is_unknown(tiny):
    network = PARSNet(2, 3, n_times=600, sfreq=100, **tiny)
    assert not seen_before(SimpleNamespace(module=PARSNet, callbacks_=[]), people(1))["unknown"]
    assert seen_before(SimpleNamespace(module=network, callbacks_=[]), people(1))["unknown"]
    for unlabeled, unknown in (
        (None, False),
        (["windows of anybody"], True),
        (SyntheticSignals(), False),
    ):
        callback = Pretraining("pars", epochs=1, unlabeled=unlabeled)
        net = SimpleNamespace(module=PARSNet, callbacks_=[("pretraining", callback)])
        assert seen_before(net, people(1))["unknown"] == unknown
