"""The table of costs, and the refusal of encoders of unequal sizes."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from support.small_estimators import classifier, embedder

from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import (
    LogBandPower,
    compare,
    cost_table,
    label_efficiency,
    leave_one_subject_out,
    score_table,
    transfer,
)


@pytest.fixture(scope="module")
def nights(short_nights):
    """Four subjects of six windows, because costs and refusals do not depend on the number."""
    return short_nights


COLUMNS = ["parameters", "pretraining_steps", "finetuning_steps"]


def test_one_row_for_each_method(nights):
    methods = {
        "PARS": classifier(),
        "probe": make_pipeline(embedder(), LogisticRegression()),
        "log band power": make_pipeline(LogBandPower(), LogisticRegression()),
    }
    costs = cost_table(methods, nights)
    assert costs.columns.tolist() == ["method", *COLUMNS]
    assert costs["method"].tolist() == list(methods)
    assert costs.loc[0, COLUMNS].tolist() == list(classifier().training_cost(nights))
    assert costs.loc[1, COLUMNS].tolist() == list(embedder().training_cost(nights))
    assert costs.loc[2, COLUMNS].isna().all()


def test_an_estimator_of_the_user(nights):
    class Cost(NamedTuple):
        parameters: int
        finetuning_steps: int

    class Own(BaseEstimator):
        def training_cost(self, X, y, *, groups=None):
            return Cost(len(X), len(np.unique(groups)))

    row = cost_table({"own": Own()}, nights).loc[0]
    assert (row["parameters"], row["finetuning_steps"]) == (24, 4)
    assert pd.isna(row["pretraining_steps"])


@pytest.fixture
def unequal():
    return {"PARS": classifier(mlp_dim=48, num_layers=2), "from scratch": classifier(pretext=None)}


def protocols(methods, nights, **arguments):
    yield lambda: compare(methods, nights, verbose=0, **arguments)
    yield lambda: leave_one_subject_out(methods, nights, verbose=0, **arguments)
    numbers = dict(n_train_subjects=[2], test_subjects=[4], seeds=[0])
    yield lambda: label_efficiency(methods, nights, verbose=0, **numbers, **arguments)
    tested = dict(test_subjects={"nights": [4]}, seeds=[0])
    yield lambda: transfer(methods, {"nights": nights}, verbose=0, **tested, **arguments)


def test_unequal_sizes_raise_with_both_numbers(unequal, nights):
    sizes = [clf.n_encoder_parameters(nights) for clf in unequal.values()]
    for protocol in protocols(unequal, nights):
        with pytest.raises(
            ValueError,
            match=f"PARS .*({sizes[0]:,} and {sizes[1]:,}|{sizes[1]:,} and {sizes[0]:,})",
        ):
            protocol()
    # Also a probe, whose encoder is inside a pipeline.
    methods = {**unequal, "probe": make_pipeline(embedder(), LogisticRegression())}
    del methods["from scratch"]
    with pytest.raises(ValueError, match="probe and PARS"):
        compare(methods, nights, verbose=0)


def test_unequal_sizes_are_allowed_on_request(unequal, nights):
    with pytest.raises(TypeError, match=r"equal_sizes .* 'no'"):
        compare(unequal, nights, equal_sizes="no", verbose=0)
    sizes = {name: clf.n_encoder_parameters(nights) for name, clf in unequal.items()}
    methods = {**unequal, "log band power": make_methods(["band-power"])["log band power"]}
    wanted = dict(test_subjects=[4], equal_sizes=False, verbose=0)
    scores = compare(methods, nights, dataset="a", **wanted)
    # The table says so.
    result = scores.groupby("method")["encoder_parameters"].first().dropna()
    assert result.to_dict() == sizes
    table = score_table(pd.concat([scores, scores]))
    texts = [f"{sizes['PARS']:,}", f"{sizes['from scratch']:,}", "-"]
    assert table["encoder_parameters"].tolist() == texts
    assert list(table) == ["encoder_parameters", "kappa", "balanced_accuracy"]
    # Equal sizes need no column.
    equal = {"PARS": classifier(), "from scratch": classifier(pretext=None)}
    assert list(score_table(compare(equal, nights, **wanted))) == ["kappa", "balanced_accuracy"]
