"""PARSEmbedder: one embedding vector per window."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from support.small_estimators import embedder, same_weights

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn


def test_embedder_in_a_pipeline(nights):
    X, y, groups = as_sklearn(nights)
    probe = make_pipeline(embedder(), LogisticRegression(max_iter=200))
    scores = cross_val_score(probe, X, y, groups=groups, cv=LeaveOneGroupOut(), error_score="raise")
    assert np.isfinite(scores).all()


def test_embedding_is_mean_and_standard_deviation_over_channels(nights):
    emb = embedder().fit(nights)
    embedded = emb.transform(nights)
    assert embedded.shape == (96, 32)
    assert embedded.dtype == np.float32
    channels = [
        emb.transform(np.stack([nights[i][0][[c]] for i in range(96)]))[:, :16] for c in range(3)
    ]
    np.testing.assert_allclose(embedded[:, :16], np.mean(channels, axis=0), atol=1e-5)
    np.testing.assert_allclose(embedded[:, 16:], np.std(channels, axis=0), atol=1e-5)
    mean = embedder(pooling="mean").fit(nights).transform(nights)
    np.testing.assert_array_equal(mean, embedded[:, :16])
    with pytest.raises(ValueError, match="PARSEmbedder: pooling must be one of"):
        embedder(pooling="max").fit(nights)


def test_embedder_is_reproducible_and_pretext_none_is_random(nights):
    one, two = (embedder().fit(nights) for _ in range(2))
    assert same_weights(one.encoder_, two.encoder_)
    random = embedder(pretext=None).fit(nights)
    assert not same_weights(one.encoder_, random.encoder_)
    assert random.encoder_card_.task is None


def test_columns_have_names(nights):
    emb = embedder().set_output(transform="pandas").fit(nights)
    frame = emb.transform(nights)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns[[0, 15, 16, 31]].tolist() == ["mean0", "mean15", "std0", "std15"]
    assert embedder(pooling="mean").fit(nights).get_feature_names_out().shape == (16,)


def test_save_and_load(nights, tmp_path):
    emb = embedder(pooling="mean").fit(nights)
    emb.save(tmp_path / "run")
    again = PARSEmbedder.load(tmp_path / "run")
    np.testing.assert_array_equal(again.transform(nights), emb.transform(nights))
    assert again.load_report_.complete
    assert again.encoder_card_ == emb.encoder_card_
    assert again.history_.equals(emb.history_)
    assert emb.history_["phase"].tolist() == ["pretraining"]
    assert again.get_params() == {**emb.get_params(), "device": "auto"}
    classifier = PARSClassifier(encoder=tmp_path / "run", verbose=0, finetune_epochs=1)
    assert classifier.fit(nights).encoder_card_.subjects == [1, 2, 3, 4]


def test_the_card_lists_the_groups_passed_to_fit(nights):
    array = np.stack([nights[i][0] for i in range(8)])
    card = embedder(sfreq=100).fit(array, groups=["a", "b"] * 4).encoder_card_
    assert card.subjects == ["a", "b"]


def test_a_failed_fit_leaves_the_embedder_unfitted(nights):
    for arguments in (dict(pretext="unknown"), dict(embed_dim=15)):
        emb = embedder(**arguments)
        with pytest.raises(ValueError, match=r"'unknown'|embed_dim"):
            emb.fit(nights)
        with pytest.raises(NotFittedError):
            emb.transform(nights)


def test_not_fitted_yet(nights, tmp_path):
    with pytest.raises(NotFittedError):
        embedder().transform(nights)
    with pytest.raises(NotFittedError):
        embedder().save(tmp_path)
