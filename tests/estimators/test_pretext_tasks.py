"""Every pretext task, in the estimators and as a skorch callback."""

from __future__ import annotations

import numpy as np
import pytest
from support.small_estimators import FAST, classifier, embedder, same_weights

from braindecode_pars.pretext import PRETEXT_TASKS


@pytest.fixture(autouse=True)
def few_signals_of_the_first_pass(monkeypatch):
    monkeypatch.setattr(PRETEXT_TASKS["features"], "N_PREPARED", 50)


SIZES = {name: FAST[name] for name in ("embed_dim", "num_layers", "num_heads", "mlp_dim")}


@pytest.mark.parametrize("name", ["pars", "features", "pars_space_time"])
def test_by_instance_in_the_classifier(name, nights):
    """A task, one with a sampling rate, one of all channels; the contract has the others."""
    rate = dict(sfreq=100.0) if name == "features" else {}
    clf = classifier(pretext=PRETEXT_TASKS[name](1000, 100, **rate, **SIZES)).fit(nights)
    assert clf.encoder_card_.task == name
    assert clf.history_["train_loss_relative"].notna().any()


def test_every_task_gives_another_encoder(nights):
    night = nights.datasets[0]
    fitted = [embedder(pretext=name).fit(night) for name in (*PRETEXT_TASKS, None)]
    for i, one in enumerate(fitted):
        assert not any(same_weights(one.encoder_, other.encoder_) for other in fitted[:i])
        assert np.isfinite(one.transform(night)).all()
