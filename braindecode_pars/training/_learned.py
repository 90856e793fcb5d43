"""Warnings of a training that may have learned nothing.

They are scikit-learn's ConvergenceWarning, so that one filter hides them where a training is short
on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from skorch import NeuralNet
from skorch.callbacks import Callback
from torch.utils.data import Dataset

from braindecode_pars._columns import RELATIVE
from braindecode_pars._warnings import warn_user
from braindecode_pars.training._budget import steps_in_epoch
from braindecode_pars.training._time_budget import TIME_IS_OVER

__all__ = ["AT_CHANCE", "EnoughSteps", "warn_of_chance", "warn_of_validation"]

#: Loss relative to chance above which pretraining has hardly solved its task. Its encoder may be of
#: use all the same: that of ``pars-eegmmidb`` is, see docs/results/index.rst.
AT_CHANCE = 0.98


class EnoughSteps(Callback):
    """Warn before the first step when all steps together hardly move the weights.

    A step of AdamW changes a weight by about the learning rate at most (Kingma and Ba 2015,
    section 2.1). S steps at the rate r therefore move it by about S r at most, whatever the data.
    This callback compares S r with the root mean square of the weights of each parameter group, and
    warns when no group can move by ``share`` of it.

    When a TimeBudget has ended the training, the steps that were made count.

    Parameters
    ----------
    phase : str
        Name of the training in the warning.
    share : float
        How far weights have to be able to move, as a share of their root mean square.
    """

    def __init__(self, phase: str, share: float):
        self.phase = phase
        self.share = share

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.needed_, self.n_done_ = None, 0

    def on_epoch_begin(self, net: NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        if self.needed_ is not None:
            return
        n_steps = net.max_epochs * steps_in_epoch(net, dataset_train)
        self.needed_ = min(map(self._steps_needed, net.optimizer_.param_groups), default=0)
        self._warn_if_few(n_steps, "has", "Train for more epochs")
        if n_steps < self.needed_:
            self.needed_ = 0  # one warning is enough

    def on_batch_end(self, net: NeuralNet, training: bool = False, **kwargs: Any) -> None:
        self.n_done_ += training

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if self.needed_ is not None and net.history[-1].get(TIME_IS_OVER, False):
            self._warn_if_few(self.n_done_, "had time for", "Train for longer")

    def _warn_if_few(self, n_steps: int, has: str, advice: str) -> None:
        if n_steps < self.needed_ < math.inf:
            warn_user(
                f"{self.phase} {has} {_steps(n_steps)}, too few for weights to move by "
                f"{100 * self.share:.0f} % of their size: at this learning rate that takes about "
                f"{_steps(self.needed_)}. {advice}, with smaller batches, or at a higher "
                "learning rate.",
                ConvergenceWarning,
            )

    def _steps_needed(self, group: dict[str, Any]) -> float:
        """Return the steps in which a parameter group can move; infinity if it is not trained."""
        # Norms begin with ones and biases with zeros, which is not the size of what they learn.
        weights = [p for p in group["params"] if p.requires_grad and p.ndim > 1]
        rate = group.get("initial_lr", group["lr"])
        if not weights or rate == 0:
            return math.inf
        squares = sum(p.detach().square().sum().item() for p in weights)
        size = math.sqrt(squares / sum(p.numel() for p in weights))
        return math.ceil(self.share * size / rate)


def warn_of_chance(history: Sequence[dict[str, Any]], steps_per_epoch: int) -> None:
    """Warn when pretraining has ended above :data:`AT_CHANCE` of the loss at chance.

    The loss is the mean over the last tenth of the epochs, where the learning rate is nearly zero:
    the loss of one epoch over few windows varies.

    Parameters
    ----------
    history : skorch.history.History
        History of a :class:`~braindecode_pars.pretraining.PretrainingNet`.
    steps_per_epoch : int
        Number of steps in an epoch.
    """
    # An epoch that was cut short has no losses.
    losses = [row[RELATIVE] for row in history if RELATIVE in row]
    last = losses[-max(1, len(losses) // 10) :]
    relative = sum(last) / len(last) if last else 0.0
    if relative > AT_CHANCE:
        warn_user(
            f"Pretraining ended at {relative:.3f} of the loss at chance after "
            f"{_steps(len(losses) * steps_per_epoch)}: it has hardly solved its task. The encoder "
            "may be of use all the same; compare it with one that is not pretrained "
            "(pretext=None). If the loss is still falling (plotting.training_curves), pretrain for "
            "more epochs or on more windows.",
            ConvergenceWarning,
        )


def warn_of_validation(losses: Sequence[float], chance: float) -> None:
    """Warn when the validation loss was lowest at first, and when it was never below chance.

    Parameters
    ----------
    losses : sequence of float
        Validation loss of each epoch. Without any, there is no warning.
    chance : float
        Validation loss of the same probabilities for every window.
    """
    if len(losses) > 1 and losses[0] <= min(losses[1:]):
        warn_user(
            f"The validation loss never fell after the first of {len(losses)} epochs. Lower "
            "finetune_lr, or train and validate on more subjects.",
            ConvergenceWarning,
        )
    if min(losses, default=-math.inf) >= chance:
        warn_user(
            f"The validation loss was never below {chance:.3f}, that of the same probabilities "
            "for every window. Predicted labels may be better than chance all the same; look at a "
            "score. If they are not, train for more epochs or on more subjects, and check the "
            "labels.",
            ConvergenceWarning,
        )


def _steps(n_steps: int) -> str:
    return f"{n_steps:,} step{'' if n_steps == 1 else 's'}"
