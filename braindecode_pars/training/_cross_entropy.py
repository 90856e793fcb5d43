"""Cross-entropy with class weights: of a batch, and exactly of all windows of an epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from skorch import NeuralNet
from skorch.callbacks import PassthroughScoring
from skorch.history import History
from torch import Tensor, nn

__all__ = ["CrossEntropy", "EpochLoss", "label_codes"]


class CrossEntropy(nn.CrossEntropyLoss):
    r"""Cross-entropy with class weights, whose labels are smoothed in training mode only.

    For windows with labels :math:`y_i` and cross-entropies :math:`\ell_i`, the loss is the weighted
    mean :math:`\sum_i w_{y_i} \ell_i / \sum_i w_{y_i}`. With ``label_smoothing``
    :math:`\epsilon` and K classes, torch trains on

    .. math::
        \frac{\sum_i (1 - \epsilon) \, w_{y_i} \ell_i
        - \frac{\epsilon}{K} \sum_i \sum_k w_k \log p_{ik}}{\sum_i w_{y_i}}

    (Szegedy et al. 2016, arXiv:1512.00567, section 7). The sums in both have the same denominator.
    With weights of windows :math:`s_i`, the terms of window i in all sums are multiplied by
    :math:`s_i`.

    In evaluation mode labels are not smoothed. The validation loss therefore scores the predicted
    probabilities, and is comparable between values of ``label_smoothing``.
    """

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss: (batch, n_classes), (batch,) or (batch, 2) -> ().

        With two columns, the second one has the weights of the windows.
        """
        smoothing = self.label_smoothing if self.training else 0.0
        if labels.ndim == 1:
            return F.cross_entropy(logits, labels, self.weight, label_smoothing=smoothing)
        losses = F.cross_entropy(
            logits, label_codes(labels), self.weight, reduction="none", label_smoothing=smoothing
        )  # (batch,)
        return (labels[:, 1] * losses).sum() / self._weights(labels).sum()

    def total_weight(self, labels: Tensor) -> float:
        """Return the denominator of the loss: the sum of the weights of the windows."""
        if self.weight is None and labels.ndim == 1:
            return float(len(labels))
        return self._weights(labels).sum().item()

    def _weights(self, labels: Tensor) -> Tensor:
        """Return the weight of each window, that of its class included: (batch,)."""
        own = labels[:, 1] if labels.ndim == 2 else torch.ones(len(labels))
        if self.weight is None:
            return own
        device = self.weight.device
        return own.to(device) * self.weight[label_codes(labels).to(device)]


def label_codes(labels: Tensor) -> Tensor:
    """Return labels without the weights of windows: (batch,) or (batch, 2) -> (batch,)."""
    return labels if labels.ndim == 1 else labels[:, 0].long()


class EpochLoss(PassthroughScoring):
    """Loss of an epoch with :class:`CrossEntropy`, as if all windows were in one batch.

    skorch's mean over batches counts each batch by its number of windows. A batch with a rare class
    has a larger total weight than others, so that mean depends on which windows share a batch.

    Parameters
    ----------
    name, lower_is_better, on_train
        As in :class:`skorch.callbacks.PassthroughScoring`.
    """

    def on_batch_end(
        self, net: NeuralNet, batch: Any, training: bool = False, **kwargs: Any
    ) -> None:
        if training == self.on_train:
            total = net.criterion_.total_weight(batch[1])
            net.history.record_batch(f"{self.name}_weight", total)

    def get_avg_score(self, history: History) -> float:
        columns = [self.name, f"{self.name}_weight"]
        losses, weights = zip(*history[-1, "batches", :, columns], strict=True)
        return np.average(losses, weights=weights)
