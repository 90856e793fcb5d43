"""The same estimators on several datasets with different splits."""

from __future__ import annotations

from itertools import product

import pytest
from braindecode.datasets import BaseConcatDataset
from support.subjects import LoggingClassifier, fits, with_split

from braindecode_pars.evaluation import transfer

SPLIT = {1: "train", 2: "train", 3: "valid", 4: "test"}


def test_every_dataset_has_its_own_split(nights, tmp_path):
    corpora = {
        "given": with_split(nights, SPLIT),
        "named": BaseConcatDataset(nights.datasets[:3]),
    }
    scores = transfer(
        {"A": LoggingClassifier(tmp_path), "B": LoggingClassifier(tmp_path, 2)},
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
    trained_on = {(fit["seed"], tuple(fit["subjects"])) for fit in fits(tmp_path)}
    assert trained_on == set(product(range(5), ((1, 2, 3), (2,))))


def test_a_dataset_can_be_added_later(nights, tmp_path):
    log_folder, out = tmp_path / "log", tmp_path / "out"
    log_folder.mkdir()
    windows = with_split(nights, SPLIT)
    arguments = dict(seeds=[0], out=out, verbose=0)
    transfer({"A": LoggingClassifier(log_folder)}, {"one": windows}, **arguments)
    scores = transfer(
        {"A": LoggingClassifier(log_folder)}, {"one": windows, "two": windows}, **arguments
    )
    assert len(fits(log_folder)) == 2
    assert scores["dataset"].unique().tolist() == ["one", "two"]


@pytest.mark.parametrize(
    ("corpora", "test_subjects", "error", "message"),
    [
        ({}, None, TypeError, "empty dict"),
        ([1], None, TypeError, "datasets .* list"),
        (
            "nights",
            [4],
            TypeError,
            "test_subjects is a list",
        ),
        ("nights", {"other": [4]}, ValueError, "'other'.* nights"),
        ("nights", None, ValueError, "nights"),
    ],
)
def test_invalid_arguments_raise(nights, tmp_path, corpora, test_subjects, error, message):
    corpora = {"nights": nights} if corpora == "nights" else corpora
    with pytest.raises(error, match=message):
        transfer({"A": LoggingClassifier(tmp_path)}, corpora, test_subjects=test_subjects)
