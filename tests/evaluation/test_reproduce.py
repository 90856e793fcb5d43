"""Reproduction of table 1: pretraining, labeled and test subjects; a second call."""

import pandas as pd
import pytest

from braindecode_pars import PARSClassifier
from braindecode_pars.evaluation import protocols, reproduce
from braindecode_pars.pretrained import load_encoder

SMALL = dict(embed_dim=16, num_layers=1, mlp_dim=16, finetune_epochs=1)
UNTRAINED = "random encoder, head trained"
GIVEN = dict(epochs=1, n_train_subjects=2, seeds=[3], **SMALL)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduction")


@pytest.fixture(scope="module", autouse=True)
def two_tasks():
    """Two of the tasks, because each adds two pretrainings and four fits."""
    with pytest.MonkeyPatch.context() as patch:
        two = {name: protocols.PAPER_TASKS[name] for name in ("DropPos", "PARS")}
        patch.setattr(protocols, "PAPER_TASKS", two)
        yield


@pytest.fixture(scope="module")
def scores(short_nights, folder):
    return reproduce(short_nights, folder, verbose=0, **GIVEN)


@pytest.mark.slow
def test_every_subject_is_tested_once_by_every_method(scores):
    accuracy = scores[scores["metric"] == "balanced_accuracy"]
    tested = accuracy.groupby("method")["subject"].agg(sorted)
    trained = {f"{task}, head trained" for task in ("DropPos", "PARS")}
    assert {*tested.index} == {"from scratch", UNTRAINED, *trained}
    assert (tested.map(tuple) == (1, 2, 3, 4)).all()
    assert set(scores["n_train_subjects"]) == {2}
    assert set(scores["seed"]) == {3}
    pretrained = ~scores["method"].isin(["from scratch", UNTRAINED])
    assert (scores["pretraining_loss"].notna() == pretrained).all()


def test_encoders_have_equal_steps_and_no_test_subjects_in_pretraining(scores, folder):
    cards = {each.parent.name: load_encoder(each.parent).card for each in folder.rglob("enc*.json")}
    assert len(cards) == 4
    for name, card in cards.items():
        seen = {"half0": ["1", "3"], "half1": ["2", "4"]}[name.split("-")[1]]
        assert [subject.split(":")[-1] for subject in map(str, card.subjects)] == seen
    assert len({(card.epochs, card.n_windows, card.n_steps) for card in cards.values()}) == 1


def test_the_same_call_reuses_results_and_another_call_does_not(
    short_nights, scores, folder, monkeypatch
):
    def refuse(*_, **__):
        raise AssertionError("is trained again")

    monkeypatch.setattr(PARSClassifier, "fit", refuse)
    monkeypatch.setattr(PARSClassifier, "pretrained", refuse)
    again = reproduce(short_nights, folder, verbose=0, **GIVEN)
    pd.testing.assert_frame_equal(again, scores)
    with pytest.raises(AssertionError, match="trained again"):
        reproduce(short_nights, folder, verbose=0, **GIVEN | dict(epochs=2))


def test_invalid_arguments_raise_before_training(short_nights, tmp_path):
    with pytest.raises(ValueError, match=r"4 subjects and n_train_subjects=4"):
        reproduce(short_nights, tmp_path / "new", verbose=0)
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"thesis\.txt.* a reproduction"):
        reproduce(short_nights, tmp_path, verbose=0, **GIVEN)
