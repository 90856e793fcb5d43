"""Grids become estimators and columns, and folds share their pretraining."""

import importlib
import shutil

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from support.small_estimators import classifier, embedder, same_weights
from support.subjects import LoggingClassifier, fits, with_split

from braindecode_pars import PARSClassifier, PARSEmbedder, datasets, paper
from braindecode_pars.evaluation import GRIDS, LogBandPower, ablation
from braindecode_pars.evaluation.ablation import configured, settings_of
from braindecode_pars.pretrained import load_encoder

GRID = {"position_mask_ratio": (0.4, 0.8)}


@pytest.fixture
def pretrained(monkeypatch):
    """Fitted embedders, in order."""
    fitted = []
    fit = PARSEmbedder.fit

    def counted(self, *args, **kwargs):
        fitted.append(fit(self, *args, **kwargs))
        return fitted[-1]

    monkeypatch.setattr(PARSEmbedder, "fit", counted)
    return fitted


def run(windows, grid=GRID, *, clf=None, **arguments):
    defaults = dict(test_subjects=[4], seeds=[0, 1], n_train_subjects=2, verbose=0)
    return ablation(clf or classifier(validation=0), windows, grid, **{**defaults, **arguments})


# Settings -----------------------------------------------------------------------------------------


def test_a_grid_of_values_is_all_combinations():
    named = settings_of({"a": (1, 2), "b": (3, 4)})
    assert list(named) == ["a=1, b=3", "a=1, b=4", "a=2, b=3", "a=2, b=4"]
    assert named["a=1, b=4"] == {"a": 1, "b": 4}
    assert settings_of({"few": {"n_patches": 3}}) == {"few": {"n_patches": 3}}


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([1], "list"),
        ({}, "grid"),
        ({"strength": "weak"}, "'strength'.* 'weak'"),
        ({"metric": ["f1"]}, "'metric'"),
        ({"color": ["red"]}, "'color' .* LoggingClassifier"),
    ],
)
def test_invalid_grids_raise(nights, tmp_path, grid, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ablation(LoggingClassifier(tmp_path), nights, grid, verbose=0)


def test_settings_become_parameters_or_pretext_params():
    base = PARSClassifier(pretext_params={"position_mask_ratio": 0.8}, mlp_dim=7)
    result = configured(base, {"n_patches": 20, "embed_dim": 32})
    assert result.pretext_params == {"position_mask_ratio": 0.8, "n_patches": 20}
    assert (result.embed_dim, result.mlp_dim) == (32, 7)
    assert base.pretext_params == {"position_mask_ratio": 0.8}
    probe = make_pipeline(LogBandPower(), LogisticRegression())
    assert configured(probe, {"logisticregression__C": 3})[-1].C == 3
    # A joint task keeps the arguments of its part.
    base = PARSClassifier(**paper.CLASSIFIER)
    result = configured(base, GRIDS["joint"]["PARS + MAE"])
    assert result.pretext == "joint"
    assert result.pretext_params == {"task_params": {"pars": base.pretext_params}}


def test_invalid_arguments_raise_before_pretraining(nights, pretrained):
    """The second setting: 20 patches of 3 seconds do not fit side by side in 30 seconds."""
    with pytest.raises(ValueError, match="20 patches of 300"):
        run(nights, GRIDS["overlap"], clf=classifier(patch_seconds=3))
    windows = with_split(nights, {1: "train", 2: "train", 3: "valid", 4: "valid"})
    with pytest.raises(ValueError, match="validation='split'"):
        run(windows, {"a": {}}, clf=classifier(validation="split"), test_subjects=None)
    assert pretrained == []


# Scores and subjects ------------------------------------------------------------------------------


def test_scores_have_a_column_for_each_setting(nights, tmp_path):
    grid = {"strength": (1, 5), "random_state": (7,)}
    clf = LoggingClassifier(tmp_path)
    scores = run(nights, grid, clf=clf, seeds=[3], metrics=["kappa"])
    names = ["strength=1, random_state=7", "strength=5, random_state=7"]
    assert scores["method"].unique().tolist() == names
    assert scores[["strength", "random_state"]].to_numpy().tolist() == [[1, 7]] * 2 + [[5, 7]] * 2
    assert scores["subject"].tolist() == [4, "all"] * 2
    assert set(scores["n_train_subjects"]) == {2}
    scores = run(nights, {"plain": {}, "strong": {"strength": 5}}, clf=clf, seeds=[0])
    assert scores["strength"].isna().tolist() == [True, True, False, False]


@pytest.mark.parametrize("n_valid", [3, 5])
def test_validation_subjects_are_scored_by_default(tmp_path, monkeypatch, n_valid):
    """200 in the paper; here, three."""
    module = importlib.import_module("braindecode_pars.evaluation.ablation")
    monkeypatch.setattr(module, "N_VALIDATION", 3)
    windows = datasets.simulated.sleep(n_subjects=8, hours=0.05, n_chans=1)
    named = ["train", "test", *["valid"] * n_valid]
    split = dict(zip(range(1, 9), [*named, *["train"] * (8 - len(named))], strict=True))
    clf = LoggingClassifier(tmp_path)
    arguments = dict(test_subjects=None, n_train_subjects=None, metrics=["accuracy"])
    scores = run(with_split(windows, split), {"a": {}}, clf=clf, **arguments)
    tested = set(scores["subject"]) - {"all"}
    assert len(tested) == 3
    assert {split[subject] for subject in tested} == {"valid"}
    # Seeds do not change the choice; training never has "test" nor the other validation subjects.
    trained = {subject for subject in split if split[subject] == "train"}
    assert set(scores["n_train_subjects"]) == {len(trained)}
    assert all(set(fit["subjects"]) == trained for fit in fits(tmp_path))


# Shared encoders ----------------------------------------------------------------------------------


def test_each_setting_is_pretrained_once_and_resumed(short_nights, pretrained, tmp_path):
    run(short_nights, out=tmp_path, seeds=[0])
    assert [e.pretext_params["position_mask_ratio"] for e in pretrained] == [0.4, 0.8]
    # All subjects but the test subject, also those whose labels are not used.
    assert all(e.encoder_card_.seen_subjects == {1, 2, 3} for e in pretrained)
    assert {e.random_state for e in pretrained} == {0}
    folders = [folder for folder in (tmp_path / "encoders").iterdir() if folder.is_dir()]
    assert len(folders) == 2
    by_ratio = {load_encoder(f).card.task_params["position_mask_ratio"]: f for f in folders}
    for fitted in pretrained:
        saved = load_encoder(by_ratio[fitted.pretext_params["position_mask_ratio"]]).encoder
        assert same_weights(saved, fitted.encoder_)
    # Finished folds need no encoder, and an encoder that is there needs no pretraining.
    shutil.rmtree(folders[0])
    folders[0].mkdir()  # a killed process leaves an empty folder
    run(short_nights, out=tmp_path, seeds=[0])
    assert len(pretrained) == 2
    again = run(short_nights, out=tmp_path, seeds=[2])
    assert len(pretrained) == 3
    # In memory, the result is the same.
    assert run(short_nights, seeds=[2])["value"].tolist() == again["value"].tolist()


T, V, H = "train", "valid", "test"
#: Rows of the subjects 1 to 3, which have six windows each, and of subject 4.
FIRST, LAST = np.arange(18), np.arange(18, 24)


@pytest.mark.parametrize(
    ("splits", "arguments", "seen"),
    [
        # The test subject of split "valid", and the reserved test subject
        ([T, T, V, H], dict(test_subjects=None), [{1, 2}]),
        # Fixed validation subjects
        ([T, T, V, T], dict(clf=classifier(validation="split")), [{1, 2}]),
        # Folds with other test subjects have other encoders.
        ([T, T, T, T], dict(cv=2), [{1, 3}, {2, 4}]),
        # Only the subjects that cv trains on
        ([T, T, T, H], dict(cv=[(FIRST[:12], FIRST[12:])]), [{1, 2}]),
        ([T, T, T, H], dict(cv=[(FIRST[:6], FIRST[12:]), (FIRST[6:12], FIRST[12:])]), [{1}, {2}]),
        # Not the subjects of split "test", even where cv trains on them
        ([T, T, T, H], dict(cv=[(np.r_[FIRST[:12], LAST], FIRST[12:])]), [{1, 2}]),
    ],
)
def test_subjects_that_are_pretrained_on(short_nights, pretrained, splits, arguments, seen):
    windows = with_split(short_nights, dict(zip(range(1, 5), splits, strict=True)))
    if "cv" in arguments:
        arguments = arguments | dict(test_subjects=None, n_train_subjects=1)
    run(windows, {"a": {}}, **{"seeds": [0], "n_train_subjects": None} | arguments)
    by_fold = [e.encoder_card_.seen_subjects for e in pretrained]
    assert sorted(by_fold, key=sorted) == seen


def test_subjects_of_split_test_alone_are_refused(short_nights):
    windows = with_split(short_nights, dict(zip(range(1, 5), [T, T, T, H], strict=True)))
    with pytest.raises(ValueError, match="windows"):
        run(windows, cv=[(LAST, FIRST[12:])], test_subjects=None, n_train_subjects=1)


@pytest.mark.slow
def test_the_fits_are_those_of_an_encoder_that_was_pretrained_before(nights):
    """Seeds draw training subjects and fine-tune; the encoder has seed 0.

    It is fine-tuned as the one that a fit without sharing pretrains: all weights from the start.
    """
    params = {"position_mask_ratio": 0.8}
    arguments = dict(seeds=[1], n_train_subjects=3, metrics=["auroc"])
    scores = run(nights, {"a": params}, **arguments)
    train = nights.split([[0, 1, 2]])["0"]
    encoder = embedder(pretext_params=params).fit(train)
    tuning = dict(freeze_encoder=False, head_epochs=0, encoder_lr_factor=1.0, head="attention")
    pretrained = classifier(validation=0, pretext_params=params, encoder=encoder, **tuning)
    expected = run(nights, {"lr": {"finetune_lr": 1e-3}}, clf=pretrained, **arguments)
    assert scores["value"].tolist() == expected["value"].tolist()


def test_other_settings_are_refused_before_pretraining(short_nights, pretrained, tmp_path):
    def again(**params):
        clf = classifier(**{"validation": 0, **params})
        run(short_nights, {"a": {}}, clf=clf, seeds=[0], out=tmp_path)

    again()
    saved = (tmp_path / "cache/settings.json").read_text()
    with pytest.raises(ValueError, match=r"methods\.a\.finetune_lr is 0\.5"):
        again(finetune_lr=0.5)
    assert len(pretrained) == 1
    assert (tmp_path / "cache/settings.json").read_text() == saved
