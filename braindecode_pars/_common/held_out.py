"""Adaptive length of pretraining: train as long as the loss on held-out subjects decreases.

:func:`split_held_out` selects the held-out subjects, and :class:`HeldOutSchedule` ends training.
"""

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import skorch
from torch.utils.data import Dataset, Subset

from braindecode_pars._common.tables import HELD_OUT
from braindecode_pars._common.training import AT_CHANCE, steps_in_epoch

#: Minimum decrease of the relative held-out loss (1 = chance level) over the second half of the
#: epochs. If the decrease is smaller, the learning rate decay begins.
WORTHWHILE_FALL = 0.01
#: Number of warm-up steps, which is also the number of steps before the first measurement of the
#: held-out loss.
WARMUP_STEPS = 100
#: Learning rate of the first step, divided by the full learning rate.
START = 0.1
#: Total number of epochs divided by the number of epochs before the learning rate decay. With 1.25,
#: the decay takes the last fifth of all epochs.
WITH_DECAY = 1.25
#: Factor by which the number of steps must increase before the held-out loss is measured again. It
#: limits the time spent on measurements.
MEASURING_FACTOR = 1.25
#: Number of held-out examples per measurement of the held-out loss.
N_MEASURED = 512
#: One in ten subjects is held out, or one in ten windows if subjects are unknown.
ONE_OF = 10
#: Minimum number of subjects for holding out whole subjects. With fewer subjects, windows are held
#: out.
MIN_GROUPS = 3
#: Maximum number of steps per epoch. Because training ends after whole epochs, epochs must be short
#: for large datasets.
EPOCH_STEPS = 250
#: Key in the training history. In the last epoch before the learning rate decay, the entry contains
#: the reason why the decay begins.
DECAY_REASON = "decay_reason"


def split_held_out(examples: Any, seed: int | None) -> tuple[Subset, Subset]:
    """Split pretraining examples into training examples and held-out examples, by subject.

    Parameters
    ----------
    examples : SingleChannelWindows
        Examples from one or more corpora.
    seed : int | None
        Seed of the random split. If None, the seed is 0.

    Returns
    -------
    train, held_out : Subset
        Training and held-out examples. A tenth of the subjects is held out, but at least one
        subject. If there are fewer than three subjects, or if the subject of a window is unknown, a
        tenth of the windows is held out instead. With one or two windows, both subsets contain all
        examples.
    """
    names = examples.windows.corpus_subjects
    codes = np.arange(len(examples))
    if names is not None:
        subjects = pd.factorize(names.astype(object))[0]
        codes = subjects if subjects.max() + 1 >= MIN_GROUPS else codes
    is_held_out = np.isin(codes, choose(codes.max() + 1, seed))
    train, held_out = (np.flatnonzero(is_held_out == value).tolist() for value in (False, True))
    # With one or two windows, no window is held out, and the loss is measured on training windows.
    return Subset(examples, train), Subset(examples, held_out or train)


def choose(n: int, seed: int | None) -> list[int]:
    """Draw a tenth of the numbers in ``range(n)``, but at least one. Draw none if n is below 3."""
    if n < MIN_GROUPS:
        return []
    order = np.random.default_rng(seed or 0).permutation(n)
    return sorted(order[: max(1, round(n / ONE_OF))].tolist())


@dataclass(eq=False, repr=False)
class HeldOutSchedule(skorch.callbacks.Callback):
    """Learning rate schedule that ends when the held-out loss stops decreasing, or at a limit.

    The held-out loss is the loss on examples of held-out subjects, and the relative held-out loss
    is the held-out loss divided by the chance-level loss.

    The learning rate increases linearly over 100 steps, is then constant, and finally decays
    linearly to zero. The decay takes the last fifth of all epochs, and training ends with it. The
    decay begins as soon as one of these conditions is met:

    - The relative held-out loss is below 0.98, and has decreased by less than 0.01 in the second
      half of the epochs so far.
    - The steps or minutes that remain until ``max_steps`` or ``minutes`` are only sufficient for
      the decay.

    A loss at chance level does not end training, because the loss of PARS is at chance level during
    the first hundred steps. The held-out loss is computed each time the number of steps has
    increased by 25 %, always on the same examples.

    The limits ``max_steps`` and ``minutes`` are rounded to whole epochs, with at least two epochs.
    An epoch has at most 250 steps; if the dataset has more batches, each epoch uses a random subset
    of the windows.

    The training history contains ``valid_loss`` and ``valid_loss_relative`` in each epoch in which
    the held-out loss was computed, which includes the last epoch. When an interrupted run is
    resumed, the state of the schedule is restored from the history.

    Parameters
    ----------
    held_out : Dataset
        Examples of the held-out subjects.
    max_steps : float
        Maximum number of steps. NaN means no limit.
    minutes : float | None
        Maximum duration in minutes. If None, the duration is not limited.

    References
    ----------
    For a constant learning rate with a decay at the end: Hägele et al. 2024, Scaling laws and
    compute-optimal training beyond fixed training durations, arXiv:2405.18392.

    Examples
    --------
    In this example, each epoch has only one step:

    >>> from braindecode_pars import PatchEncoder, datasets
    >>> from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.1, n_chans=2)
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=16, num_layers=1)
    >>> settings = PretrainingSettings("features", max_steps=10)
    >>> net = pretrain_encoder(encoder, windows, settings, verbose=0)
    >>> len(net.history), *(row["decay_reason"] for row in net.history if "decay_reason" in row)
    (10, 'the maximum of 10 steps was reached')
    """

    held_out: Dataset
    max_steps: float = math.nan
    minutes: float | None = None

    def on_train_begin(self, net: skorch.NeuralNet, X: Any = None, **kwargs: Any) -> None:
        self.batches_ = net.draw_batches(self.held_out, N_MEASURED)
        self.n_batches_ = steps_in_epoch(net, X)
        self.begin_ = time.monotonic() - sum(row["dur"] for row in net.history)
        if not math.isnan(self.max_steps):
            net.max_epochs = max(2, int(self.max_steps // self.n_batches_))
        for group in net.optimizer_.param_groups:
            group.setdefault("initial_lr", group["lr"])

    def on_epoch_begin(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        self.decay_from_, self.end_ = decay_epochs(net.history)

    def on_batch_begin(self, net: skorch.NeuralNet, training: bool = False, **kwargs: Any) -> None:
        if training:
            batch = len(net.history[-1, "batches"]) - 1
            factor = self.factor(len(net.history) - 1 + batch / self.n_batches_)
            for group in net.optimizer_.param_groups:
                group["lr"] = group["initial_lr"] * factor

    def factor(self, epochs: float) -> float:
        """Return the learning rate, divided by its full value, after a number of epochs.

        ``epochs`` may be fractional, such as 2.5 in the middle of the third epoch.
        """
        if epochs >= self.decay_from_:
            return (self.end_ - epochs) / (self.end_ - self.decay_from_)
        return min(1.0, START + (1 - START) * epochs * self.n_batches_ / WARMUP_STEPS)

    def on_epoch_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        epoch = len(net.history)
        last = max((row["epoch"] for row in net.history if HELD_OUT in row), default=0)
        next_step = max(WARMUP_STEPS, MEASURING_FACTOR * last * self.n_batches_)
        if epoch * self.n_batches_ >= next_step or epoch == self.end_:
            loss = net.agreed(net.mean_loss(self.batches_))
            net.history.record("valid_loss", loss)
            net.history.record(HELD_OUT, loss / net.task_.chance_loss())
        if self.end_ == math.inf:
            elapsed = net.agreed(time.monotonic() - self.begin_)
            if reason := self._reason_to_end(net.history, elapsed):
                net.history.record(DECAY_REASON, reason)

    def _reason_to_end(self, history: Any, elapsed: float) -> str | None:
        """Return the reason why the decay begins after this epoch, or None if it does not."""
        epoch = len(history)
        # Total number of epochs if the decay began only after the next epoch
        total = math.ceil(WITH_DECAY * (epoch + 1))
        if total * self.n_batches_ > self.max_steps:
            return f"the maximum of {self.max_steps:,} steps was reached"
        if self.minutes is not None and elapsed / epoch * total > 60 * self.minutes:
            return f"the maximum of {self.minutes:g} minutes was reached"
        losses = {row["epoch"]: row[HELD_OUT] for row in history if HELD_OUT in row}
        earlier = [loss for number, loss in losses.items() if number <= epoch / 2]
        fall = min(earlier, default=math.inf) - min(losses.values(), default=math.inf)
        if epoch in losses and min(losses.values()) < AT_CHANCE and fall < WORTHWHILE_FALL:
            return "the held-out loss no longer decreased"
        return None


def decay_epochs(history: Any) -> tuple[float, float]:
    """Return the last epoch before the decay, and the last epoch of training.

    Both are infinity if the decay has not begun.
    """
    epochs = [row["epoch"] for row in history if DECAY_REASON in row]
    return (epochs[0], math.ceil(WITH_DECAY * epochs[0])) if epochs else (math.inf, math.inf)


class StopAtEnd(skorch.callbacks.EarlyStopping):
    """End training after the last epoch of a :class:`HeldOutSchedule`.

    This must be the last callback of the net, so that all other callbacks process the last epoch.
    """

    def on_epoch_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        if len(net.history) == decay_epochs(net.history)[1]:
            self.misses_ = self.patience  # so that TrainingNet does not treat this as Ctrl-C
            raise KeyboardInterrupt
