"""A fit that ends before its first step has the windows and the network of a real fit."""

from __future__ import annotations

import numpy as np
import pytest
from support.small_estimators import classifier

from braindecode_pars import as_sklearn
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.estimators.costs import first_step


def test_windows_and_network_are_those_of_the_fit(nights):
    clf = classifier(finetune_batch_size=7, validation=0.5, checkpoint_dir=None)
    first = first_step(clf, *as_sklearn(nights))
    fitted = clf.fit(nights)
    assert len(first.windows) == 48  # two of four subjects
    batches = fitted.net_.history[0, "batches"]
    trained = [row["train_batch_size"] for row in batches if "train_batch_size" in row]
    assert (first.n_steps, len(first.windows)) == (len(trained), sum(trained))
    own, real = first.net.module_, fitted.net_.module_
    assert {k: v.shape for k, v in own.state_dict().items()} == {
        k: v.shape for k, v in real.state_dict().items()
    }
    assert len(first.net.history) == 0


def test_nothing_is_trained_or_changed(nights, tmp_path):
    clf = classifier(checkpoint_dir=tmp_path / "encoder", callbacks=None)
    before = clf.get_params()
    first_step(clf, *as_sklearn(nights))
    assert clf.get_params() == before
    assert not hasattr(clf, "net_")
    assert not (tmp_path / "encoder").exists()


def test_batches_of_a_recentring_model(nights):
    clf = classifier(recenter="subject", finetune_batch_size=16, validation=0)
    first = first_step(clf, *as_sklearn(nights))
    fitted = clf.fit(nights)
    batches = fitted.net_.history[0, "batches"]
    assert first.n_steps == sum("train_batch_size" in row for row in batches)
    assert len(first.windows) == 96


def test_errors_are_those_of_the_fit(nights):
    X = np.stack([nights[i][0] for i in range(4)])
    with pytest.raises(ValueError, match="braindecode model"):
        first_step(NetworkClassifier("NoNet"), X, [0, 1, 0, 1], None)
