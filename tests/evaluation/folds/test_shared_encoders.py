"""One pretraining for all folds that may share it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from support.small_estimators import classifier, embedder, same_weights
from support.subjects import LoggingClassifier, with_split

from braindecode_pars import PARSClassifier, PARSEmbedder
from braindecode_pars.evaluation import ablation
from braindecode_pars.evaluation.ablation import pretrains
from braindecode_pars.pretrained import load_encoder

GRID = {"position_mask_ratio": (0.4, 0.8)}


@pytest.fixture
def fits(monkeypatch):
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


def test_each_setting_is_pretrained_once_and_resumed(nights, fits, tmp_path):
    _, curves = run(nights, out=tmp_path, return_curves=True)
    assert [e.pretext_params["position_mask_ratio"] for e in fits] == [0.4, 0.8]
    # All subjects but the test subject, also those whose labels are not used.
    assert all(e.encoder_card_.seen_subjects == {1, 2, 3} for e in fits)
    assert {e.random_state for e in fits} == {0}
    folders = [folder for folder in (tmp_path / "encoders").iterdir() if folder.is_dir()]
    assert len(folders) == 2
    by_ratio = {load_encoder(f).card.task_params["position_mask_ratio"]: f for f in folders}
    for fitted in fits:
        saved = load_encoder(by_ratio[fitted.pretext_params["position_mask_ratio"]]).encoder
        assert same_weights(saved, fitted.encoder_)
    # The losses of the pretraining are beside those of each fit.
    phases = curves.groupby(["position_mask_ratio", "seed", "phase"]).size()
    assert set(phases) == {1}
    assert len(phases) == 2 * 2 * 2
    written = pd.read_csv(tmp_path / "curves.csv")
    assert written["train_loss"].to_numpy() == pytest.approx(curves["train_loss"].to_numpy())

    # Other seeds need no pretraining. In memory, the result is the same.
    again = run(nights, out=tmp_path, seeds=[2])
    assert len(fits) == 2
    assert run(nights, seeds=[2])["value"].tolist() == again["value"].tolist()


def test_folds_with_other_test_subjects_have_other_encoders(nights, fits):
    run(nights, test_subjects=None, cv=2, seeds=[0], n_train_subjects=None)
    seen = [tuple(sorted(e.encoder_card_.seen_subjects)) for e in fits]
    assert [len(subjects) for subjects in seen] == [2] * 4  # two folds of two settings
    assert len(set(seen)) == 2
    assert sorted(sum(set(seen), ())) == [1, 2, 3, 4]


def test_reserved_test_subjects_are_never_used(nights, fits):
    windows = with_split(nights, {1: "train", 2: "train", 3: "valid", 4: "test"})
    scores = run(windows, test_subjects=None, seeds=[0])
    assert set(scores["subject"]) == {3, "all"}  # the validation subject
    assert all(e.encoder_card_.seen_subjects == {1, 2} for e in fits)


def test_every_fit_pretrains_on_request(nights, fits):
    run(nights, share_pretraining=False, seeds=[0])
    assert fits == []


def test_the_fits_are_those_of_an_encoder_that_was_pretrained_before(nights):
    """Seeds draw training subjects and fine-tune; the encoder has seed 0."""
    scores = run(nights, seeds=[1], n_train_subjects=3)
    params = {"position_mask_ratio": 0.8}
    train = nights.split([[0, 1, 2]])["0"]
    given = classifier(
        validation=0,
        pretext_params=params,
        encoder=embedder(pretext_params=params).fit(train),
    )
    expected = ablation(
        given, nights, {"lr": {"finetune_lr": 1e-3}}, test_subjects=[4], seeds=[1], verbose=0
    )
    of_setting = scores[scores["position_mask_ratio"] == 0.8]
    assert of_setting["value"].tolist() == expected["value"].tolist()


def test_the_encoder_is_that_of_the_classifier(nights):
    clf = classifier(embed_dim=8, tokenizer="linear", pretext="mae")
    fitted = clf.pretrained(nights)
    assert isinstance(fitted, PARSEmbedder)
    own = embedder(embed_dim=8, tokenizer="linear", pretext="mae").fit(nights)
    assert same_weights(fitted.encoder_, own.encoder_)
    tuned = PARSClassifier(encoder=fitted, finetune_epochs=1, verbose=0).fit(nights)
    assert np.isfinite(tuned.predict_proba(nights)).all()


def test_what_pretrains(tmp_path):
    assert pretrains(classifier())
    for estimator in (
        classifier(pretext=None),
        classifier(encoder="small"),
        classifier(pretrain_epochs=0),
        LogisticRegression(),
        LoggingClassifier(tmp_path),
    ):
        assert not pretrains(estimator)


def test_a_wrong_folder_is_refused_before_pretraining(nights, fits, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"notes\.txt"):
        run(nights, out=tmp_path)
    assert fits == []


def test_subjects_that_cv_leaves_out_are_not_pretrained_on(nights, fits):
    left_out = with_split(nights, {1: "train", 2: "train", 3: "train", 4: "test"})
    train, test = np.arange(48), np.arange(48, 72)
    arguments = dict(test_subjects=None, n_train_subjects=1, seeds=[0])
    run(left_out, cv=[(train, test)], **arguments)
    assert [e.encoder_card_.seen_subjects for e in fits] == [{1, 2}] * 2
    # Two folds with the same test subject share the subjects of both.
    fits.clear()
    run(left_out, cv=[(train[:24], test), (train[24:], test)], **arguments)
    assert [e.encoder_card_.seen_subjects for e in fits] == [{1, 2}] * 2
    # Subjects of split "test" are not pretrained on, even where cv trains on them.
    fits.clear()
    run(left_out, cv=[(np.r_[train, np.arange(72, 96)], test)], **arguments)
    assert [e.encoder_card_.seen_subjects for e in fits] == [{1, 2}] * 2
    with pytest.raises(ValueError, match="no window to pretrain on"):
        run(left_out, cv=[(np.arange(72, 96), test)], **arguments)


def test_fixed_validation_subjects_are_not_pretrained_on(nights, fits):
    windows = with_split(nights, {1: "train", 2: "train", 3: "valid", 4: "train"})
    ablation(
        classifier(validation="split"), windows, {"a": {}}, test_subjects=[4], seeds=[0], verbose=0
    )
    assert [e.encoder_card_.seen_subjects for e in fits] == [{1, 2}]


def test_other_settings_are_refused_before_pretraining(nights, fits, tmp_path):
    def again(name="a", test=4, **params):
        clf = classifier(**{"validation": 0, **params})
        ablation(clf, nights, {name: {}}, test_subjects=[test], seeds=[0], out=tmp_path, verbose=0)

    again()
    saved = (tmp_path / "cache/settings.json").read_text()
    n_fits = len(fits)
    with pytest.raises(ValueError, match=r"methods\.a\.finetune_lr is 0\.5"):
        again(finetune_lr=0.5)
    with pytest.raises(ValueError, match=r"methods\.a\.encoder\.folder"):
        again(test=3)
    assert len(fits) == n_fits == 1
    assert (tmp_path / "cache/settings.json").read_text() == saved
    # An encoder that was deleted is pretrained again, and other methods are added.
    for file in (tmp_path / "encoders").glob("*.json"):
        file.unlink()
    again()
    again("b")
    assert len(fits) == 3
