"""The table of costs, and the refusal of encoders of unequal sizes."""

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from support.small_estimators import classifier, embedder

from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import LogBandPower, compare, cost_table, score_table, transfer

COLUMNS = ["parameters", "pretraining_steps", "finetuning_steps"]


def test_one_row_for_each_method(short_nights):
    methods = {
        "PARS": classifier(),
        "probe": make_pipeline(embedder(), LogisticRegression()),
        "log band power": make_pipeline(LogBandPower(), LogisticRegression()),
    }
    costs = cost_table(methods, short_nights)
    assert costs["method"].tolist() == list(methods)
    assert costs.loc[0, COLUMNS].tolist() == list(classifier().training_cost(short_nights))
    assert costs.loc[1, COLUMNS].tolist() == list(embedder().training_cost(short_nights))
    assert costs.loc[2, COLUMNS].isna().all()


@pytest.fixture
def unequal():
    return {"PARS": classifier(mlp_dim=48, num_layers=2), "from scratch": classifier(pretext=None)}


def test_unequal_sizes_raise_with_both_numbers(unequal, short_nights):
    sizes = [f"{clf.n_encoder_parameters(short_nights):,}" for clf in unequal.values()]
    text = "PARS .*({0} and {1}|{1} and {0})".format(*sizes)
    with pytest.raises(ValueError, match=text):
        compare(unequal, short_nights, verbose=0)
    with pytest.raises(ValueError, match=text):
        transfer(unequal, {"a": short_nights}, test_subjects={"a": [4]}, seeds=[0], verbose=0)
    # Also a probe, whose encoder is inside a pipeline.
    probe = make_pipeline(embedder(), LogisticRegression())
    with pytest.raises(ValueError, match="probe and PARS"):
        compare({"PARS": unequal["PARS"], "probe": probe}, short_nights, verbose=0)


def test_unequal_sizes_are_allowed_on_request(unequal, short_nights):
    sizes = {name: clf.n_encoder_parameters(short_nights) for name, clf in unequal.items()}
    methods = {**unequal, "log band power": make_methods(["band-power"])["log band power"]}
    wanted = dict(test_subjects=[4], equal_sizes=False, verbose=0)
    scores = compare(methods, short_nights, dataset="a", **wanted)
    # The table says so.
    result = scores.groupby("method")["encoder_parameters"].first().dropna()
    assert result.to_dict() == sizes
    table = score_table(pd.concat([scores, scores]))
    texts = [f"{sizes['PARS']:,}", f"{sizes['from scratch']:,}", "-"]
    assert table["encoder_parameters"].tolist() == texts
    # Equal sizes need no column.
    equal = {"PARS": classifier(), "from scratch": classifier(pretext=None)}
    table = score_table(compare(equal, short_nights, **wanted))
    assert list(table) == ["kappa", "balanced_accuracy"]
