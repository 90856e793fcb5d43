"""Every classifier is fine-tuned in one way."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from braindecode.augmentation import GaussianNoise
from support.small_estimators import classifier, same_weights
from torch import nn

from braindecode_pars import PARSClassifier
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.estimators._fine_tuning import fine_tuning_net

TRAINING = dict(finetune_epochs=7, finetune_lr=0.02, finetune_batch_size=5, weight_decay=0.3)


def net_of(estimator, **arguments):
    estimator.classes_ = np.arange(3)
    weights = torch.tensor([1.0, 2.0, 3.0])
    return fine_tuning_net(estimator, nn.Linear(4, 3), class_weights=weights, **arguments)


@pytest.mark.parametrize("kind", [PARSClassifier, NetworkClassifier])
def test_the_parameters_of_the_estimator_reach_the_net(kind):
    net = net_of(kind(**TRAINING, augmentation=[GaussianNoise(0.5)]), restore_best=True)
    assert (net.max_epochs, net.lr, net.batch_size) == (7, 0.02, 5)
    decays = [group["weight_decay"] for group in net.optimizer_.param_groups]
    assert sorted(set(decays)) == [0.0, 0.3]
    assert type(net.optimizer_) is torch.optim.AdamW
    assert net.criterion_.weight.tolist() == [1.0, 2.0, 3.0]
    best = dict(net.callbacks_)["restore_best"]
    assert best.load_best
    assert best.patience > 7


def test_without_validation_nothing_is_restored():
    assert "restore_best" not in dict(net_of(PARSClassifier()).callbacks_)


def test_the_augmentation_of_the_caller_is_not_seeded():
    noise = GaussianNoise(0.5)
    before = noise.rng
    net_of(PARSClassifier(augmentation=noise), augmentation_seed=3)
    assert noise.rng is before


def test_sizes_may_be_integers_of_numpy(nights):
    sizes = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32, finetune_batch_size=8)
    sizes |= dict(pretrain_batch_size=8, pretrain_epochs=1, finetune_epochs=1)
    same = {name: np.int64(size) for name, size in sizes.items()}
    one, other = (classifier(**given).fit(nights) for given in (sizes, same))
    assert same_weights(one.net_.module_, other.net_.module_)
