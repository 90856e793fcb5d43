"""Learning rate schedule: linear warm-up, then cosine annealing to zero."""

from __future__ import annotations

import math
from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback
from torch.utils.data import Dataset

from braindecode_pars._parameters import check_parameters, integer, number, share
from braindecode_pars.training._budget import steps_in_epoch

__all__ = ["WarmupCosine"]

_RULES = dict(
    warmup=share(),
    start=number("in [0, 1]", lambda value: 0 <= value <= 1),
    first_epoch=integer(0),
)


class WarmupCosine(Callback):
    """Linear warm-up, then cosine annealing to zero, updated in every step (section 2.5).

    The learning rate is a function of the current step divided by all steps of ``max_epochs``
    epochs. The defaults are the paper's: warm-up from a tenth of the learning rate, over the first
    100 of 1000 epochs.

    Parameters
    ----------
    warmup : float
        Share of all steps that warm up. The default is the paper's 100 of 1000 epochs.
    start : float
        Learning rate of the first step, as a share of the full learning rate.
    first_epoch : int
        Number of the net's ``max_epochs`` that are already trained, for a net that resumes.

    Raises
    ------
    TypeError, ValueError
        From the net's ``fit``, when ``warmup`` is not in [0, 1), ``start`` is not in [0, 1], or
        ``first_epoch`` is not an integer of at least 0.

    Examples
    --------
    >>> from braindecode_pars.callbacks import WarmupCosine
    >>> schedule = WarmupCosine()
    >>> [round(schedule.factor(share), 3) for share in (0, 0.05, 0.1, 0.55, 1)]
    [0.1, 0.55, 1.0, 0.5, 0.0]
    """

    def __init__(self, warmup: float = 0.1, start: float = 0.1, first_epoch: int = 0):
        self.warmup = warmup
        self.start = start
        self.first_epoch = first_epoch

    def factor(self, progress: float) -> float:
        r"""Return the factor of the learning rate at some point of the training.

        With ``warmup`` :math:`w`, ``start`` :math:`s` and ``progress`` :math:`p`, the factor is

        .. math::
            s + (1 - s) \, p / w \quad (p < w), \qquad
            \tfrac12 \left(1 + \cos \pi \frac{p - w}{1 - w}\right) \quad (p \ge w).

        Parameters
        ----------
        progress : float
            Completed steps divided by all steps.

        Returns
        -------
        float
            Factor between 0 and 1.
        """
        if progress < self.warmup:
            return self.start + (1 - self.start) * progress / self.warmup
        annealed = (progress - self.warmup) / (1 - self.warmup)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, annealed)))

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        check_parameters(vars(self), _RULES, type(self).__name__)
        self.epoch_ = self.first_epoch - 1
        # Each parameter group keeps its own full learning rate, under torch's name for it.
        for group in net.optimizer_.param_groups:
            group.setdefault("initial_lr", group["lr"])

    def on_epoch_begin(self, net: NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        self.epoch_ += 1
        self.batch_ = 0
        self.n_batches_ = steps_in_epoch(net, dataset_train)

    def on_batch_begin(self, net: NeuralNet, training: bool = False, **kwargs: Any) -> None:
        if not training:
            return
        progress = (self.epoch_ + self.batch_ / self.n_batches_) / net.max_epochs
        for group in net.optimizer_.param_groups:
            group["lr"] = group["initial_lr"] * self.factor(progress)
        self.batch_ += 1
