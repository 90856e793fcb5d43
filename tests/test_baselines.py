"""The classifiers of make_methods: names, classes and training budget."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars import PARSClassifier
from braindecode_pars.baselines import METHODS, make_methods
from braindecode_pars.estimators import NetworkClassifier


def test_every_method_by_name():
    methods = make_methods(METHODS)
    assert list(methods) == [
        *("PARS", "MAE", "SpectralMAE", "MP3", "DropPos", "Joint", "scratch"),
        *("EEGNet", "ShallowFBCSPNet", "band power"),
    ]
    assert methods["MAE"].pretext == "mae"
    assert methods["scratch"].pretext is None
    assert methods["ShallowFBCSPNet"].network == "ShallowFBCSPNet"


def test_all_methods_have_the_same_training_budget():
    methods = make_methods(["pars", "scratch", "eegnet"], finetune_epochs=7, finetune_lr=0.1)
    assert {clf.finetune_epochs for clf in methods.values()} == {7}
    assert {clf.finetune_lr for clf in methods.values()} == {0.1}
    pars, network = PARSClassifier(), NetworkClassifier()
    for name in set(pars.get_params()) & set(network.get_params()):
        assert getattr(pars, name) == getattr(network, name), name


def test_methods_fit_and_predict(nights, tiny):
    for clf in make_methods(
        ["droppos", "shallow", "band-power"], pretrain_epochs=1, finetune_epochs=1, **tiny
    ).values():
        y = np.concatenate([ds.y for ds in nights.datasets])
        assert set(clf.fit(nights, y).predict(nights)) <= set(y)


def test_an_encoder_adds_a_method():
    assert make_methods(["scratch"], encoder="run1")["pretrained"].encoder == "run1"


def test_an_unknown_method_raises():
    with pytest.raises(ValueError, match="Unknown method 'svm'; known are pars, mae"):
        make_methods(["pars", "svm"])
