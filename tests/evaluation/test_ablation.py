"""Grids are turned into estimators, and scores have the varied settings as columns."""

from __future__ import annotations

import copy
import importlib

import pandas as pd
import pytest
from braindecode.datasets import BaseConcatDataset
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from support.subjects import LoggingClassifier, fits, with_split

from braindecode_pars import PARSClassifier, PatchEncoder, paper
from braindecode_pars._common.tables import SCORES
from braindecode_pars.evaluation import GRIDS, LogBandPower, ablation
from braindecode_pars.evaluation.ablation import configured, settings_of
from braindecode_pars.pretext.base import make_task

SPLIT = {1: "train", 2: "train", 3: "train", 4: "test"}


def test_a_grid_of_values_is_all_combinations():
    named = settings_of(GRIDS["masking"])
    assert len(named) == 15
    assert named["n_patches=20, position_mask_ratio=0.2"] == {
        "n_patches": 20,
        "position_mask_ratio": 0.2,
    }
    assert settings_of({"few": {"n_patches": 3}}) == {"few": {"n_patches": 3}}


def test_settings_become_parameters_or_pretext_params():
    base = PARSClassifier(pretext_params={"position_mask_ratio": 0.8}, mlp_dim=7)
    found = configured(base, {"n_patches": 20, "embed_dim": 32})
    assert found.pretext_params == {"position_mask_ratio": 0.8, "n_patches": 20}
    assert (found.embed_dim, found.mlp_dim) == (32, 7)
    assert base.pretext_params == {"position_mask_ratio": 0.8}
    pipe = configured(
        make_pipeline(LogBandPower(), LogisticRegression()), {"logisticregression__C": 3}
    )
    assert pipe[-1].C == 3
    with pytest.raises(ValueError, match=r"'n_patches' .* LogisticRegression"):
        configured(LogisticRegression(), {"n_patches": 20})


def test_a_joint_task_keeps_the_arguments_of_its_part():
    base = PARSClassifier(**paper.CLASSIFIER)
    found = configured(base, GRIDS["joint"]["PARS + MAE"])
    assert found.pretext == "joint"
    assert found.pretext_params == {"task_params": {"pars": base.pretext_params}}


@pytest.mark.parametrize("name", GRIDS)
def test_every_setting_of_the_grids_makes_a_task(name):
    base = PARSClassifier(**paper.CLASSIFIER)
    for settings in settings_of(GRIDS[name]).values():
        clf = configured(base, settings)
        task = make_task(
            clf.pretext,
            n_times=6000,
            encoder=PatchEncoder(200, 16, 1, 2, 32),
            task_params=clf.pretext_params,
        )
        task = getattr(task, "parts", {"pars": task})["pars"]
        for setting, value in settings.items():
            if setting in ("n_patches", "position_mask_ratio"):
                assert getattr(task, setting) == value


def test_scores_have_a_column_for_each_setting_and_curves_for_each_fit(nights, tmp_path):
    tiny = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32, verbose=0)
    clf = PARSClassifier(pretrain_epochs=2, finetune_epochs=1, **tiny)
    scores, curves = ablation(
        clf,
        with_split(nights, SPLIT),
        {"sampling": ("random", "grid"), "embed_dim": (16,)},
        seeds=[3],
        n_train_subjects=2,
        out=tmp_path,
        verbose=0,
        return_curves=True,
    )
    assert scores.columns.tolist() == [*SCORES, "sampling", "embed_dim"]
    assert scores["method"].unique().tolist() == [
        "sampling=random, embed_dim=16",
        "sampling=grid, embed_dim=16",
    ]
    assert scores["sampling"].tolist() == ["random", "random", "grid", "grid"]
    assert scores["subject"].tolist() == [4, "all"] * 2
    assert set(scores["n_train_subjects"]) == {2}
    assert curves.groupby(["sampling", "phase"])["epoch"].max().to_dict() == {
        ("grid", "fine-tuning"): 1,
        ("grid", "pretraining"): 2,
        ("random", "fine-tuning"): 1,
        ("random", "pretraining"): 2,
    }
    pretraining = curves[curves["phase"] == "pretraining"]
    assert pretraining[["train_loss", "train_loss_relative"]].notna().all(axis=None)
    written = pd.read_csv(tmp_path / "curves.csv", keep_default_na=True)
    assert written["train_loss"].to_numpy() == pytest.approx(curves["train_loss"].to_numpy())


@pytest.mark.parametrize("n_valid", [3, 5])
def test_validation_subjects_are_scored_by_default(nights, tmp_path, monkeypatch, n_valid):
    """200 in the paper; here, three."""
    module = importlib.import_module("braindecode_pars.evaluation.ablation")
    monkeypatch.setattr(module, "N_VALIDATION", 3)
    parts = [BaseConcatDataset([ds]) for _ in range(2) for ds in nights.datasets]
    windows = BaseConcatDataset([copy.deepcopy(part.datasets[0]) for part in parts])
    subjects = [f"S{number}" for number in range(8)]
    windows.set_description({"subject": subjects}, overwrite=True)
    named = ["train", "test", *["valid"] * n_valid]
    split = dict(zip(subjects, [*named, *["train"] * (8 - len(named))], strict=True))
    classifier = LoggingClassifier(tmp_path)
    scores = ablation(classifier, with_split(windows, split), {"a": {}}, seeds=[0, 1], verbose=0)
    tested = set(scores["subject"]) - {"all"}
    assert len(tested) == 3
    assert {split[subject] for subject in tested} == {"valid"}
    # Seeds do not change the choice; training never has "test" nor the other validation subjects.
    trained = {subject for subject in subjects if split[subject] == "train"}
    assert set(scores["n_train_subjects"]) == {len(trained)}
    assert all(set(fit["subjects"]) == trained for fit in fits(tmp_path))


def test_fixed_validation_subjects_are_the_test_subjects(nights):
    windows = with_split(nights, {1: "train", 2: "train", 3: "valid", 4: "valid"})
    clf = PARSClassifier(validation="split")
    with pytest.raises(ValueError, match=r"a .*validation='split'.* test_subjects"):
        ablation(clf, windows, {"a": {}}, verbose=0)


def test_named_settings_can_set_different_parameters(nights, tmp_path):
    scores = ablation(
        LoggingClassifier(tmp_path),
        nights,
        {"plain": {}, "strong": {"strength": 5}},
        test_subjects=[1],
        seeds=[0],
        verbose=0,
    )
    assert scores["method"].tolist() == ["plain", "plain", "strong", "strong"]
    assert scores["strength"].isna().tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        ([1], TypeError, "grid is a list"),
        ({}, ValueError, "grid is empty"),
        ({"strength": ()}, ValueError, "grid is empty"),
        ({"strength": 3}, TypeError, "strength .* 3"),
        ({"strength": "weak"}, TypeError, "strength .* 'weak'"),
        ({"metric": ["f1"]}, ValueError, "'metric'"),
        ({"colour": ["red"]}, ValueError, "'colour' .* LoggingClassifier"),
        ({"strength": [3]}, ValueError, "test_subjects"),
    ],
)
def test_invalid_arguments_raise(nights, tmp_path, grid, error, message):
    with pytest.raises(error, match=message):
        ablation(LoggingClassifier(tmp_path), nights, grid, verbose=0)
