"""The same estimators on several datasets, each with its split."""

from __future__ import annotations

import pytest
from braindecode.datasets import BaseConcatDataset
from support.subjects import Watched, fits, with_split

from braindecode_pars.evaluation import transfer

SPLIT = {1: "train", 2: "train", 3: "valid", 4: "test"}


def test_every_dataset_has_its_own_split(nights, tmp_path):
    corpora = {
        "given": with_split(nights, SPLIT),
        "named": BaseConcatDataset(nights.datasets[:3]),
    }
    scores = transfer(
        {"A": Watched(tmp_path), "B": Watched(tmp_path, 2)},
        corpora,
        test_subjects={"named": [1, 3]},
        metrics=["accuracy"],
        verbose=0,
    )
    assert set(scores["protocol"]) == {"transfer"}
    keys = scores.drop_duplicates(["dataset", "subject"])[["dataset", "subject"]]
    assert keys.to_numpy().tolist() == [
        ["given", 4],
        ["given", "all"],
        ["named", 1],
        ["named", 3],
        ["named", "all"],
    ]
    assert scores.groupby("dataset")["n_train_subjects"].unique().map(list).to_dict() == {
        "given": [3],
        "named": [1],
    }
    people = {(fit["seed"], tuple(fit["people"])) for fit in fits(tmp_path)}
    assert people == {(seed, who) for seed in range(5) for who in ((1, 2, 3), (2,))}


def test_a_dataset_may_come_in_later(nights, tmp_path):
    watched, out = tmp_path / "watched", tmp_path / "out"
    watched.mkdir()
    windows = with_split(nights, SPLIT)
    arguments = dict(seeds=[0], out=out, verbose=0)
    transfer({"A": Watched(watched)}, {"one": windows}, **arguments)
    scores = transfer({"A": Watched(watched)}, {"one": windows, "two": windows}, **arguments)
    assert len(fits(watched)) == 2
    assert scores["dataset"].unique().tolist() == ["one", "two"]


@pytest.mark.parametrize(
    ("corpora", "test_subjects", "error", "message"),
    [
        ({}, None, TypeError, "got a dict that is empty"),
        ([1], None, TypeError, "dict of names and windows datasets, at least one, got a list"),
        (
            "nights",
            [4],
            TypeError,
            "test_subjects is a list; give a dict with the names",
        ),
        ("nights", {"other": [4]}, ValueError, "names the dataset 'other'; there are nights"),
        ("nights", None, ValueError, "There are no test subjects of nights"),
    ],
)
def test_a_mistake_is_named(nights, tmp_path, corpora, test_subjects, error, message):
    corpora = {"nights": nights} if corpora == "nights" else corpora
    with pytest.raises(error, match=message):
        transfer({"A": Watched(tmp_path)}, corpora, test_subjects=test_subjects)
