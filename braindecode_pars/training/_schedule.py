"""The learning rate of each step: linear warm-up, then a cosine to zero."""

from __future__ import annotations

import math
from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback
from torch.utils.data import Dataset

__all__ = ["WarmupCosine"]


class WarmupCosine(Callback):
    """Linear warm-up, then cosine annealing to zero, in every step (section 2.5).

    A closed form of the step within one call of ``fit``, as long as the net's ``max_epochs``. The
    defaults are the paper's: from a tenth of the rate, over the first 100 of 1000 epochs.

    Parameters
    ----------
    warmup : float
        Share of all steps spent warming up; the paper's 100 of 1000 epochs.
    start : float
        Share of the learning rate to start from.
    first_epoch : int
        How many of the net's ``max_epochs`` were trained before, by a net that is now resumed.

    Raises
    ------
    ValueError
        From the net's ``fit``, when ``warmup`` is not in [0, 1) or ``start`` not in [0, 1].

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
        r"""Share of the learning rate at some point of training.

        With warm-up over a share :math:`w` from a share :math:`s` of the rate, at :math:`p`

        .. math::
            s + (1 - s) \, p / w \quad (p < w), \qquad
            \tfrac12 \left(1 + \cos \pi \frac{p - w}{1 - w}\right) \quad (p \ge w).

        Parameters
        ----------
        progress : float
            Share of all steps that are done.

        Returns
        -------
        float
            Between 0 and 1.
        """
        if progress < self.warmup:
            return self.start + (1 - self.start) * progress / self.warmup
        annealed = (progress - self.warmup) / (1 - self.warmup)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, annealed)))

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        if not 0 <= self.warmup < 1 or not 0 <= self.start <= 1:
            raise ValueError(
                "warmup must be in [0, 1) and start in [0, 1]; got "
                f"warmup={self.warmup}, start={self.start}."
            )
        self.epoch_ = self.first_epoch - 1
        for group in net.optimizer_.param_groups:
            group.setdefault("initial_lr", group["lr"])

    def on_epoch_begin(self, net: NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        self.epoch_ += 1
        self.batch_ = 0
        self.n_batches_ = len(net.get_iterator(dataset_train, training=True))

    def on_batch_begin(self, net: NeuralNet, training: bool = False, **kwargs: Any) -> None:
        if not training:
            return
        progress = (self.epoch_ + self.batch_ / self.n_batches_) / net.max_epochs
        for group in net.optimizer_.param_groups:
            group["lr"] = group["initial_lr"] * self.factor(progress)
        self.batch_ += 1
