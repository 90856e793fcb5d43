"""The loss of an epoch does not depend on the division of its windows into batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from skorch import NeuralNetClassifier
from skorch.helper import predefined_split
from torch import nn
from torch.utils.data import TensorDataset

from braindecode_pars.estimators.fine_tuning import CrossEntropy, EpochLoss

WEIGHTS = torch.tensor([0.4, 1.5, 20.0])


def windows(labels: np.ndarray, seed: int) -> TensorDataset:
    """Return windows of four samples, with these labels in this order."""
    X = torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(X, torch.as_tensor(labels))


#: Ordered labels with a rare last class: the first batches have one class, the last one two.
TRAIN = windows(np.repeat([0, 1, 2], [20, 8, 3]), seed=1)
VALID = windows(np.repeat([0, 1, 2], [37, 12, 2]), seed=2)


def trained(weights=WEIGHTS, **arguments) -> NeuralNetClassifier:
    net = NeuralNetClassifier(
        nn.Linear(4, 3),
        criterion=CrossEntropy,
        criterion__weight=weights,
        callbacks__train_loss=EpochLoss("train_loss", on_train=True),
        callbacks__valid_loss=EpochLoss("valid_loss"),
        train_split=predefined_split(VALID),
        verbose=0,
        **{"max_epochs": 2, "lr": 0.1, **arguments},
    )
    return net.fit(TRAIN, None)


def slow_loss(module, data, weights, smoothing=0.0):
    """The weighted mean, window by window; with ``smoothing``, each label is a distribution."""
    numerator = denominator = 0.0
    with torch.no_grad():
        for x, label in data:
            target = np.full(3, smoothing / 3)
            target[label] += 1 - smoothing
            log_p = module(x).double().log_softmax(dim=0)
            numerator -= sum(weights[k] * target[k] * log_p[k].item() for k in range(3))
            denominator += weights[label]
    return numerator / denominator


@pytest.mark.parametrize("batch_size", [1, 16, 64])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_validation_loss_is_the_weighted_mean_over_all_windows(batch_size, smoothing):
    """Without smoothing, also where training smooths its labels."""
    net = trained(batch_size=batch_size, criterion__label_smoothing=smoothing)
    expected = slow_loss(net.module_, VALID, WEIGHTS.tolist())
    assert net.history[-1, "valid_loss"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_training_loss_too_with_smoothed_labels(smoothing):
    net = trained(lr=0.0, batch_size=5, criterion__label_smoothing=smoothing)
    expected = slow_loss(net.module_, TRAIN, WEIGHTS.tolist(), smoothing)
    assert net.history[-1, "train_loss"] == pytest.approx(expected, rel=1e-6)


def test_without_weights_every_window_counts_the_same():
    net = trained(None, batch_size=16)
    expected = slow_loss(net.module_, VALID, [1, 1, 1])
    assert net.history[-1, "valid_loss"] == pytest.approx(expected, rel=1e-6)


def test_the_gradients_are_those_of_torch():
    """Each batch is divided by its own total weight, as in torch, in evaluation mode unsmoothed."""
    logits = torch.randn(7, 3, requires_grad=True)
    labels = torch.tensor([0, 0, 1, 0, 2, 1, 0])
    ours = CrossEntropy(WEIGHTS, label_smoothing=0.2)
    for training, theirs in (
        (True, nn.CrossEntropyLoss(WEIGHTS, label_smoothing=0.2)),
        (False, nn.CrossEntropyLoss(WEIGHTS)),
    ):
        actual, expected = (
            torch.autograd.grad(loss(logits, labels), logits)[0]
            for loss in (ours.train(training), theirs)
        )
        assert torch.equal(actual, expected)
