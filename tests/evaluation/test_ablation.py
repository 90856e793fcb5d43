"""Grids become estimators and columns, and folds share their pretraining."""

import copy
import importlib
import shutil

import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from support.small_estimators import classifier, embedder, same_weights
from support.subjects import LoggingClassifier, fits, with_split

from braindecode_pars import PARSClassifier, PARSEmbedder, PatchEncoder, paper
from braindecode_pars._common.tables import SCORES
from braindecode_pars.evaluation import GRIDS, LogBandPower, ablation
from braindecode_pars.evaluation.ablation import (
    configured,
    pretrains,
    settings_of,
    share_encoders,
)
from braindecode_pars.evaluation.splitters import LabeledSubjects, make_folds
from braindecode_pars.evaluation.splitting import Corpus
from braindecode_pars.pretext.base import make_task
from braindecode_pars.pretrained import load_encoder

SPLIT = {1: "train", 2: "train", 3: "train", 4: "test"}


def test_a_grid_of_values_is_all_combinations():
    named = settings_of(GRIDS["masking"])
    assert len(named) == 15
    first = named["n_patches=20, position_mask_ratio=0.2"]
    assert first == {"n_patches": 20, "position_mask_ratio": 0.2}
    assert settings_of({"few": {"n_patches": 3}}) == {"few": {"n_patches": 3}}


def test_settings_become_parameters_or_pretext_params():
    base = PARSClassifier(pretext_params={"position_mask_ratio": 0.8}, mlp_dim=7)
    result = configured(base, {"n_patches": 20, "embed_dim": 32})
    assert result.pretext_params == {"position_mask_ratio": 0.8, "n_patches": 20}
    assert (result.embed_dim, result.mlp_dim) == (32, 7)
    assert base.pretext_params == {"position_mask_ratio": 0.8}
    probe = make_pipeline(LogBandPower(), LogisticRegression())
    assert configured(probe, {"logisticregression__C": 3})[-1].C == 3
    with pytest.raises(ValueError, match=r"'n_patches' .* LogisticRegression"):
        configured(LogisticRegression(), {"n_patches": 20})
    # A joint task keeps the arguments of its part.
    base = PARSClassifier(**paper.CLASSIFIER)
    result = configured(base, GRIDS["joint"]["PARS + MAE"])
    assert result.pretext == "joint"
    assert result.pretext_params == {"task_params": {"pars": base.pretext_params}}


@pytest.mark.parametrize("name", GRIDS)
def test_every_setting_of_the_grids_makes_a_task(name):
    base = PARSClassifier(**paper.CLASSIFIER)
    for settings in settings_of(GRIDS[name]).values():
        clf, encoder = configured(base, settings), PatchEncoder(200, 16, 1, 2, 32)
        task = make_task(clf.pretext, n_times=6000, encoder=encoder, task_params=clf.pretext_params)
        task = getattr(task, "parts", {"pars": task})["pars"]
        for setting, value in settings.items():
            if setting in ("n_patches", "position_mask_ratio"):
                assert getattr(task, setting) == value


def test_scores_have_a_column_for_each_setting(nights, tmp_path):
    grid = {"sampling": ("random", "grid"), "embed_dim": (16,)}
    wanted = dict(seeds=[3], n_train_subjects=2, out=tmp_path, verbose=0)
    scores = ablation(classifier(pretrain_epochs=2), with_split(nights, SPLIT), grid, **wanted)
    assert scores.columns.tolist() == [
        *SCORES,
        "test_subject_data",
        "chance",
        "sampling",
        "embed_dim",
    ]
    names = ["sampling=random, embed_dim=16", "sampling=grid, embed_dim=16"]
    assert scores["method"].unique().tolist() == names
    assert scores["sampling"].tolist() == ["random", "random", "grid", "grid"]
    assert scores["subject"].tolist() == [4, "all"] * 2
    assert set(scores["n_train_subjects"]) == {2}


@pytest.mark.parametrize("n_valid", [3, 5])
def test_validation_subjects_are_scored_by_default(nights, tmp_path, monkeypatch, n_valid):
    """200 in the paper; here, three."""
    module = importlib.import_module("braindecode_pars.evaluation.ablation")
    monkeypatch.setattr(module, "N_VALIDATION", 3)
    parts = [BaseConcatDataset([ds]) for _ in range(2) for ds in nights.datasets]
    windows = BaseConcatDataset([copy.deepcopy(part.datasets[0]) for part in parts])
    for part in windows.datasets[4:]:  # eight subjects, none a copy of another
        part.raw._data = part.raw._data[:, ::-1].copy()
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
    grid, wanted = {"plain": {}, "strong": {"strength": 5}}, dict(test_subjects=[1], seeds=[0])
    scores = ablation(LoggingClassifier(tmp_path), nights, grid, verbose=0, **wanted)
    assert scores["method"].tolist() == ["plain", "plain", "strong", "strong"]
    assert scores["strength"].isna().tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        ([1], TypeError, "list"),
        ({}, ValueError, "grid is empty"),
        ({"strength": ()}, ValueError, "grid is empty"),
        ({"strength": 3}, TypeError, "'strength'.* 3"),
        ({"strength": "weak"}, TypeError, "'strength'.* 'weak'"),
        ({"metric": ["f1"]}, ValueError, "'metric'"),
        ({"color": ["red"]}, ValueError, "'color' .* LoggingClassifier"),
        ({"strength": [3]}, ValueError, "test_subjects"),
    ],
)
def test_invalid_arguments_raise(nights, tmp_path, grid, error, message):
    with pytest.raises(error, match=message):
        ablation(LoggingClassifier(tmp_path), nights, grid, verbose=0)


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


def run(windows, **arguments):
    defaults = dict(test_subjects=[4], seeds=[0, 1], n_train_subjects=2, verbose=0)
    return ablation(classifier(validation=0), windows, GRID, **{**defaults, **arguments})


def test_each_setting_is_pretrained_once_and_resumed(nights, pretrained, tmp_path):
    run(nights, out=tmp_path)
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
    # Other seeds need no pretraining. In memory, the result is the same.
    again = run(nights, out=tmp_path, seeds=[2])
    assert len(pretrained) == 2
    assert run(nights, seeds=[2])["value"].tolist() == again["value"].tolist()


def test_folds_with_other_test_subjects_have_other_encoders(nights, pretrained):
    run(nights, test_subjects=None, cv=2, seeds=[0], n_train_subjects=None)
    seen = [tuple(sorted(e.encoder_card_.seen_subjects)) for e in pretrained]
    assert [len(subjects) for subjects in seen] == [2] * 4  # two folds of two settings
    assert len(set(seen)) == 2
    assert sorted(sum(set(seen), ())) == [1, 2, 3, 4]


def test_reserved_test_subjects_are_never_used(nights, pretrained):
    windows = with_split(nights, {1: "train", 2: "train", 3: "valid", 4: "test"})
    scores = run(windows, test_subjects=None, seeds=[0])
    assert set(scores["subject"]) == {3, "all"}  # the validation subject
    assert all(e.encoder_card_.seen_subjects == {1, 2} for e in pretrained)


def test_the_fits_are_those_of_an_encoder_that_was_pretrained_before(nights):
    """Seeds draw training subjects and fine-tune; the encoder has seed 0.

    It is fine-tuned as the one that a fit without sharing pretrains: all weights from the start.
    """
    scores = run(nights, seeds=[1], n_train_subjects=3)
    params = {"position_mask_ratio": 0.8}
    train = nights.split([[0, 1, 2]])["0"]
    encoder = embedder(pretext_params=params).fit(train)
    tuning = dict(freeze_encoder=False, head_epochs=0, encoder_lr_factor=1.0, head="attention")
    given = classifier(validation=0, pretext_params=params, encoder=encoder, **tuning)
    grid = {"lr": {"finetune_lr": 1e-3}}
    expected = ablation(given, nights, grid, test_subjects=[4], seeds=[1], verbose=0)
    of_setting = scores[scores["position_mask_ratio"] == 0.8]
    assert of_setting["value"].tolist() == expected["value"].tolist()


def test_a_shared_encoder_is_not_frozen(nights):
    """A pretrained encoder would be frozen by default with few labeled subjects."""
    corpus = Corpus.of(nights, "", -1)
    splitter = LabeledSubjects(test_subjects=[4])
    folds = make_folds(
        "ablation", {"A": classifier(), "B": LogisticRegression()}, corpus, splitter, [0]
    )
    shared, other = share_encoders(folds, {"": corpus}, None, verbose=0)
    params = shared.estimator.get_params(deep=False)
    tuning = [params[name] for name in ("freeze_encoder", "head_epochs", "encoder_lr_factor")]
    assert tuning == [False, 0, 1.0]
    assert params["encoder"].encoder_card_.subjects == [1, 2, 3]
    assert other is folds[1]


def test_the_encoder_is_that_of_the_classifier(nights):
    given = dict(embed_dim=8, tokenizer="linear", pretext="mae")
    fitted = classifier(**given).pretrained(nights)
    assert same_weights(fitted.encoder_, embedder(**given).fit(nights).encoder_)


def test_pretrains(tmp_path):
    assert pretrains(classifier())
    others = [classifier(**one) for one in (dict(pretext=None), dict(encoder="small"))]
    others += [classifier(pretrain_epochs=0), LogisticRegression(), LoggingClassifier(tmp_path)]
    assert not any(map(pretrains, others))


def test_subjects_that_cv_leaves_out_are_not_pretrained_on(nights, pretrained):
    left_out = with_split(nights, {1: "train", 2: "train", 3: "train", 4: "test"})
    train, test = np.arange(48), np.arange(48, 72)
    arguments = dict(test_subjects=None, n_train_subjects=1, seeds=[0])
    run(left_out, cv=[(train, test)], **arguments)
    assert [e.encoder_card_.seen_subjects for e in pretrained] == [{1, 2}] * 2
    # Two folds with the same test subject share the subjects of both.
    pretrained.clear()
    run(left_out, cv=[(train[:24], test), (train[24:], test)], **arguments)
    assert [e.encoder_card_.seen_subjects for e in pretrained] == [{1, 2}] * 2
    # Subjects of split "test" are not pretrained on, even where cv trains on them.
    pretrained.clear()
    run(left_out, cv=[(np.r_[train, np.arange(72, 96)], test)], **arguments)
    assert [e.encoder_card_.seen_subjects for e in pretrained] == [{1, 2}] * 2
    with pytest.raises(ValueError, match="'test'"):
        run(left_out, cv=[(np.arange(72, 96), test)], **arguments)


def test_fixed_validation_subjects_are_not_pretrained_on(nights, pretrained):
    windows = with_split(nights, {1: "train", 2: "train", 3: "valid", 4: "train"})
    clf, wanted = classifier(validation="split"), dict(test_subjects=[4], seeds=[0], verbose=0)
    ablation(clf, windows, {"a": {}}, **wanted)
    assert [e.encoder_card_.seen_subjects for e in pretrained] == [{1, 2}]


def test_other_settings_are_refused_before_pretraining(nights, pretrained, tmp_path):
    def again(name="a", test=4, **params):
        clf = classifier(**{"validation": 0, **params})
        ablation(clf, nights, {name: {}}, test_subjects=[test], seeds=[0], out=tmp_path, verbose=0)

    again()
    saved = (tmp_path / "cache/settings.json").read_text()
    with pytest.raises(ValueError, match=r"methods\.a\.finetune_lr is 0\.5"):
        again(finetune_lr=0.5)
    assert len(pretrained) == 1
    assert (tmp_path / "cache/settings.json").read_text() == saved
    # Other test subjects have another encoder.
    again(test=3)
    assert [e.encoder_card_.seen_subjects for e in pretrained] == [{1, 2, 3}, {1, 2, 4}]


def test_encoders_are_pretrained_for_missing_folds_only(nights, pretrained, tmp_path):
    run(nights, seeds=[0], out=tmp_path)
    first, _ = (tmp_path / "encoders").iterdir()
    shutil.rmtree(first)
    run(nights, seeds=[0], out=tmp_path)
    assert len(pretrained) == 2
    # An encoder that was deleted is pretrained again for another seed.
    run(nights, seeds=[1], out=tmp_path)
    assert len(pretrained) == 3


def test_invalid_arguments_raise_before_pretraining(nights, pretrained, tmp_path):
    """The second setting: 20 patches of 3 seconds do not fit side by side in 30 seconds."""
    clf = classifier(patch_seconds=3)
    with pytest.raises(ValueError, match="20 patches"):
        ablation(clf, nights, GRIDS["overlap"], test_subjects=[2], verbose=0)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"notes\.txt"):
        run(nights, out=tmp_path)
    assert pretrained == []
