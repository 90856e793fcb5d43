"""Names and values of earlier versions, which files of users contain."""

import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

from braindecode_pars import evaluation
from braindecode_pars._common import tables
from braindecode_pars._common.files import read_checked, write_checked
from braindecode_pars.baselines import CENTERED
from braindecode_pars.pretrained.cards import read_card

SCORE = dict(protocol="", dataset="", subject="1", n_train_subjects=2, seed=0, metric="kappa")
EARLIER_VALUES = {
    "none": "none",
    "one window at a time": "past unlabeled",
    "unlabelled windows of the test person": "all unlabeled",
    "labelled windows of the test person": "labeled",
}


@pytest.mark.parametrize("earlier", EARLIER_VALUES)
@pytest.mark.parametrize("ending", [", subject-centred (transductive)", ", centred"])
def test_earlier_scores_are_read(earlier, ending):
    scores = pd.DataFrame([dict(SCORE, method=f"PARS{ending}", value=0.5, access=earlier)])
    [row] = tables.checked_scores(scores, ["value"]).to_dict("records")
    assert row["test_subject_data"] == EARLIER_VALUES[earlier]
    assert row["method"] == f"PARS{CENTERED}"
    assert tables.TestSubjectData(earlier) == EARLIER_VALUES[earlier]


def test_an_earlier_card_has_a_license():
    card = read_card({"about": {"licence": "CC0", "name": "a"}})
    assert card.about == {"license": "CC0", "name": "a"}


def test_folds_of_an_earlier_evaluation_are_used_again(tmp_path, nights):
    methods = {"constant": DummyClassifier()}
    scores = evaluation.compare(methods, nights, out=tmp_path, verbose=0)
    files = [f for f in (tmp_path / "cache").glob("*.json") if f.name != "settings.json"]
    for file in files:
        content = read_checked(file)
        assert content.pop("test_subject_data") == "none"
        write_checked(file, content | {"access": "labelled windows of the test person"})
    again = evaluation.compare(methods, nights, out=tmp_path, verbose=0)
    assert len(files) == 4
    assert again["value"].equals(scores["value"])
    assert set(again["test_subject_data"]) == {"labeled"}
