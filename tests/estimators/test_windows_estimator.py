"""How fits begin and fail, and what clones keep."""

from __future__ import annotations

import pytest
import torch
from sklearn.base import clone

from braindecode_pars import PARSClassifier, PatchEncoder
from braindecode_pars.estimators._windows_estimator import WindowsEstimator, fresh_fit, seeded_fit


class Learner(WindowsEstimator):
    def __init__(self, size=1):
        self.size = size

    def fit(self, error):
        with fresh_fit(self):
            assert not hasattr(self, "old_")
            self.new_ = 2
            raise error


def test_a_fit_that_fails_leaves_nothing():
    learner = Learner()
    learner.old_ = 1
    with pytest.raises(ValueError, match="half way"):
        learner.fit(ValueError("half way"))
    assert vars(learner) == {"size": 1}


def test_ctrl_c_keeps_what_was_learned():
    learner = Learner()
    with pytest.raises(KeyboardInterrupt):
        learner.fit(KeyboardInterrupt())
    assert learner.new_ == 2


def test_a_given_encoder_is_not_cloned():
    encoder = PatchEncoder(100, 16, 1, 2, 32)
    assert clone(PARSClassifier(encoder=encoder)).encoder is encoder
    assert clone(Learner(3)).size == 3


def test_stages_have_seeds_of_their_own():
    draws = []
    for _ in range(2):
        with seeded_fit(0, torch.device("cpu")) as seeds:
            draws.append((*seeds, torch.rand(()).item()))
    assert draws[0] == draws[1]
    assert len(set(seeds)) == 3
