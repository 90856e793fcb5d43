"""The epoch whose state a training has restored."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, EarlyStopping
from skorch.utils import noop
from support.small_estimators import classifier

from braindecode_pars import PARSClassifier

X = np.random.default_rng(0).normal(size=(32, 2, 300)).astype("float32") * 1e-5
Y = np.arange(32) % 2


class Scores(Callback):
    """Given values of a monitored number."""

    def __init__(self, values):
        self.values = values

    def on_epoch_end(self, net, **kwargs):
        net.history.record("score", self.values[len(net.history) - 1])


def fitted(scores, validation):
    best = EarlyStopping(
        "score", load_best=True, patience=100, sink=noop, lower_is_better=False, threshold=0
    )
    training = dict(sfreq=100.0, finetune_epochs=len(scores), finetune_lr=0.02)
    callbacks = [Scores(scores), best]
    clf = classifier(pretext=None, callbacks=callbacks, validation=validation, **training)
    return clf.fit(X, Y)


def restored(clf):
    return clf.history_.query("restored")["epoch"].tolist()


@pytest.mark.parametrize("validation", [0.25, 0])
def test_the_history_names_the_epoch_that_a_callback_of_the_user_restores(validation, tmp_path):
    clf = fitted([1, 2, 9, 0, 0, 0], validation)
    assert restored(clf) == [3]
    best = dict(clf.net_.callbacks_)["EarlyStopping"].best_model_weights_
    assert all(torch.equal(v, best[k]) for k, v in clf.net_.module_.state_dict().items())
    with pytest.warns(UserWarning, match="not saved"):
        loaded = PARSClassifier.load(clf.save(tmp_path / "clf"))
    assert restored(loaded) == [3]


def test_a_callback_whose_best_epoch_is_the_last_changes_nothing():
    """skorch restores nothing then, so that the state with the lowest loss stays."""
    clf = fitted([1, 2, 3, 4, 5, 6], 0.25)
    losses = clf.history_["valid_loss"]
    assert restored(clf) == [losses.idxmin() + 1]
    assert restored(fitted([1, 2, 3], 0)) == [3]
