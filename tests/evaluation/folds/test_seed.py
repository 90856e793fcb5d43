"""The seed of a fold reaches every random_state of an estimator."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from braindecode_pars import PARSClassifier, PARSEmbedder
from braindecode_pars.evaluation.cache import with_seed


def test_every_part_gets_the_seed():
    pipe = with_seed(make_pipeline(PARSEmbedder(), LogisticRegression()), 7)
    assert [part.random_state for _, part in pipe.steps] == [7, 7]


def test_a_given_encoder_keeps_its_seed():
    classifier = with_seed(PARSClassifier(encoder=PARSEmbedder(random_state=1)), 7)
    assert (classifier.random_state, classifier.encoder.random_state) == (7, 1)
