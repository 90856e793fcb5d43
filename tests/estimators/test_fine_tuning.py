"""Every classifier is fine-tuned in one way."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from braindecode.augmentation import GaussianNoise
from skorch.callbacks import Callback
from support.small_estimators import same_weights
from torch import nn

from braindecode_pars import PARSClassifier
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.estimators.fine_tuning import fine_tune, fine_tuning_net, fine_tuning_of
from braindecode_pars.windows.convert import as_windows

KINDS = [PARSClassifier, NetworkClassifier]
TRAINING = dict(finetune_epochs=7, finetune_lr=0.02, finetune_batch_size=5, weight_decay=0.3)
TRAINING["label_smoothing"] = 0.1


WEIGHTS = torch.tensor([1.0, 2.0, 3.0])


class Model(nn.Module):
    """The smallest model with an encoder."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 5)
        self.final_layer = nn.Linear(5, 3)

    def forward(self, x):
        return self.final_layer(self.encoder(x.squeeze(1)).tanh())


def net_of(estimator, *, class_weights=WEIGHTS, **arguments):
    estimator.classes_ = np.arange(3)
    estimator.fine_tuning_ = fine_tuning_of(estimator.get_params(), None)
    torch.manual_seed(0)
    return fine_tuning_net(estimator, Model(), class_weights=class_weights, **arguments)


def windows(labels, seed):
    noise = torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(seed))
    return as_windows((noise + 0.5 * torch.as_tensor(labels)[:, None])[:, None], labels)


def samples(windows):
    return torch.from_numpy(np.asarray(windows))


TRAIN = windows(np.repeat([0, 1, 2], [20, 8, 3]), seed=8)
#: Ordered, so that the rare last class is in the last batch.
VALID = windows(np.repeat([0, 1, 2], [37, 12, 2]), seed=108)


class EachStep(Callback):
    """Keep the learning rates and the norm of the gradient of each step."""

    def on_train_begin(self, net, **kwargs):
        self.rates, self.norms = [], []

    def on_grad_computed(self, net, named_parameters, **kwargs):
        squares = [(p.grad**2).sum() for _, p in named_parameters if p.grad is not None]
        self.norms.append(torch.stack(squares).sum().sqrt().item())
        names = {id(p): name for name, p in net.module_.named_parameters()}
        self.rates.append(
            {
                names[id(p)]: group["lr"]
                for group in net.optimizer_.param_groups
                for p in group["params"]
            }
        )


def steps(kind, **arguments):
    """Fine-tune for four epochs of four batches."""
    each = EachStep()
    sizes = dict(finetune_epochs=4, finetune_batch_size=8, finetune_lr=0.02, verbose=0)
    fine_tune(net_of(kind(**sizes, callbacks=[each], **arguments)), TRAIN, None)
    assert len(each.norms) == 16
    return each


@pytest.mark.parametrize("kind", KINDS)
def test_the_parameters_of_the_estimator_reach_the_net(kind):
    net = net_of(kind(**TRAINING, augmentation=[GaussianNoise(0.5)]), valid=VALID)
    assert (net.max_epochs, net.lr, net.batch_size) == (7, 0.02, 5)
    decays = [group["weight_decay"] for group in net.optimizer_.param_groups]
    assert sorted(set(decays)) == [0.0, 0.3]
    assert type(net.optimizer_) is torch.optim.AdamW
    assert net.criterion_.weight.tolist() == [1.0, 2.0, 3.0]
    assert net.criterion_.label_smoothing == 0.1
    best = dict(net.callbacks_)["restore_best"]
    assert best.load_best
    assert best.patience > 7


def test_the_rate_is_constant_without_warmup():
    found = steps(PARSClassifier, finetune_warmup=None).rates
    assert {rate for rates in found for rate in rates.values()} == {0.02}


@pytest.mark.parametrize("warmup", [0.0, 0.3])
def test_warmup_and_cosine_over_all_steps_for_encoder_and_head(warmup):
    """The steps in which only the head is trained count too."""
    arguments = dict(finetune_warmup=warmup, encoder_lr_factor=0.1, head_epochs=2)
    for step, rates in enumerate(steps(PARSClassifier, **arguments).rates):
        progress = step / 16
        if progress < warmup:
            expected = 0.02 * (0.1 + 0.9 * progress / warmup)
        else:
            cosine = math.cos(math.pi * (progress - warmup) / (1 - warmup))
            expected = 0.02 * 0.5 * (1 + cosine)
        for name, rate in rates.items():
            factor = 0.1 if name.startswith("encoder.") else 1.0
            assert rate == pytest.approx(expected * factor), (step, name)


def test_the_gradient_is_no_longer_than_its_bound():
    free = steps(PARSClassifier).norms
    bound = float(np.median(free))
    clipped = steps(PARSClassifier, gradient_clip=bound).norms
    assert max(free) > 1.01 * bound
    assert max(clipped) <= bound * (1 + 1e-5)
    # A shorter gradient is left as it is, up to the first that is shortened.
    first = next(step for step, norm in enumerate(free) if norm > bound)
    assert clipped[:first] == free[:first]
    assert clipped[first] == pytest.approx(bound, rel=1e-5)


class States(Callback):
    """Keep the weights after each epoch."""

    def on_train_begin(self, net, **kwargs):
        self.states = []

    def on_epoch_end(self, net, **kwargs):
        self.states.append(copy.deepcopy(net.module_))


def test_the_restored_state_has_the_lowest_loss_over_all_validation_windows():
    states, weights = States(), torch.tensor([0.4, 1.5, 20.0])
    sizes = dict(finetune_epochs=12, finetune_lr=0.02, finetune_batch_size=16, verbose=0)
    clf = NetworkClassifier(**sizes, callbacks=[states])
    net = net_of(clf, class_weights=weights, valid=VALID)
    fine_tune(net, TRAIN, VALID)
    with torch.no_grad():
        x, y = samples(VALID), torch.as_tensor(VALID.y)
        losses = [F.cross_entropy(state(x), y, weights).item() for state in states.states]
    assert net.history[:, "valid_loss"] == pytest.approx(losses, rel=1e-5)
    assert same_weights(net.module_, states.states[np.argmin(losses)])
    # The mean of the batches by their sizes has its minimum in another epoch.
    batches = net.history[:, "batches", :, ["valid_loss", "valid_batch_size"]]
    by_size = [
        np.average(values, weights=sizes)
        for values, sizes in (zip(*of_epoch, strict=True) for of_epoch in batches)
    ]
    assert np.argmin(by_size) != np.argmin(losses)
