"""Every pretext task, in the estimators and as a skorch callback."""

from __future__ import annotations

import numpy as np
import pytest
from braindecode import EEGClassifier
from support.small_estimators import FAST, classifier, embedder, same_weights
from torch import nn

from braindecode_pars import PARSNet
from braindecode_pars.callbacks import Pretraining
from braindecode_pars.pretext import PRETEXT_TASKS

SIZES = {name: FAST[name] for name in ("embed_dim", "num_layers", "num_heads", "mlp_dim")}


@pytest.fixture(params=sorted(PRETEXT_TASKS))
def name(request):
    return request.param


def test_by_name_class_and_instance_in_the_estimators(name, nights):
    task = PRETEXT_TASKS[name]
    by_name, by_class = (classifier(pretext=given).fit(nights) for given in (name, task))
    assert same_weights(by_name.net_.module_, by_class.net_.module_)
    assert by_name.encoder_card_.task == name
    rate = dict(sfreq=100.0) if name == "features" else {}
    by_instance = classifier(pretext=task(3000, 100, **rate, **SIZES)).fit(nights)
    assert by_instance.encoder_card_.task == name
    assert by_instance.history_["train_loss_relative"].notna().any()
    assert np.isfinite(embedder(pretext=name).fit(nights).transform(nights)).all()


def test_every_task_gives_another_encoder(nights):
    encoders = [embedder(pretext=name).fit(nights).encoder_ for name in (*PRETEXT_TASKS, None)]
    for i, one in enumerate(encoders):
        assert not any(same_weights(one, other) for other in encoders[:i])


def test_as_a_skorch_callback(name, nights):
    pretraining = Pretraining(name, epochs=1, verbose=0)
    net = EEGClassifier(
        PARSNet,
        module__sfreq=100.0,
        **{f"module__{key}": value for key, value in SIZES.items()},
        criterion=nn.CrossEntropyLoss,
        callbacks=[("pretraining", pretraining)],
        callbacks__print_log=None,
        classes=list(range(5)),
        train_split=None,
        max_epochs=1,
        batch_size=32,
    )
    net.fit(nights, y=None)
    task = net.callbacks_[-1][1].net_.module_
    assert type(task) is PRETEXT_TASKS[name]
    assert task.encoder is net.module_.encoder


def test_windows_of_one_patch_raise(nights):
    array = np.stack([nights[i][0][:, :150] for i in range(8)])
    for name in ("mae", "spectral", "mp3", "droppos"):
        with pytest.raises(ValueError, match="two patches"):
            classifier(pretext=name, sfreq=100, validation=0).fit(array, [0, 1] * 4)
