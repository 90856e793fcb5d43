"""The length of a pretraining without a fixed number of epochs: it continues while it pays.

What is learned is measured on held-out subjects, whom :func:`split_held_out` chooses.
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

#: Fall of the held-out loss, relative to chance, that is worth twice as many steps.
WORTHWHILE_FALL = 0.01
#: Number of steps of the warm-up, and before the held-out loss is measured for the first time.
WARMUP_STEPS = 100
#: Learning rate of the first step, relative to the full learning rate.
START = 0.1
#: Factor of the number of epochs by the decay, which takes the last fifth of them.
WITH_DECAY = 1.25
#: Factor between the numbers of steps of two measurements, so that they take little of the time.
MEASURING_FACTOR = 1.25
#: Number of held-out examples in a measurement.
N_MEASURED = 512
#: Number of subjects, or windows of unknown subjects, of which one is held out.
ONE_OF = 10
#: Minimum number of subjects to hold one out; with fewer, windows are held out.
MIN_GROUPS = 3
#: Maximum number of steps in an epoch, so that a budget can end inside a pass over many windows.
EPOCH_STEPS = 250
#: Column of the history in the last epoch before the decay of the learning rate: the reason for it.
DECAY_REASON = "decay_reason"


def split_held_out(examples: Any, seed: int | None) -> tuple[Subset, Subset]:
    """Split examples for pretraining into those to train on and those to measure the loss on.

    Parameters
    ----------
    examples : SingleChannelWindows
        Examples of one or several corpora.
    seed : int | None
        Seed of the random choice; None is the same as 0.

    Returns
    -------
    train, held_out : Subset
        One of ten subjects is held out, and at least one. With fewer than three subjects, or
        unknown ones, it is one of ten windows.
    """
    groups = [corpus.corpus_subjects for corpus in examples.corpora]
    codes = np.arange(len(examples))
    if all(names is not None for names in groups):
        subjects = pd.factorize(np.concatenate([np.asarray(p, dtype=object) for p in groups]))[0]
        codes = subjects if subjects.max() + 1 >= MIN_GROUPS else codes
    is_held_out = np.isin(codes, choose(codes.max() + 1, seed))
    train, measured = (np.flatnonzero(is_held_out == part).tolist() for part in (False, True))
    return Subset(examples, train), Subset(examples, measured or train)  # of one window or two


def choose(n: int, seed: int | None) -> list[int]:
    """Choose one of ten, at least one, from ``range(n)``; none of fewer than three."""
    if n < MIN_GROUPS:
        return []
    order = np.random.default_rng(seed or 0).permutation(n)
    return sorted(order[: max(1, round(n / ONE_OF))].tolist())


@dataclass(eq=False, repr=False)
class HeldOutSchedule(skorch.callbacks.Callback):
    """Train while the held-out loss falls, within a budget, then let the learning rate decay.

    The learning rate increases linearly over 100 steps and is then constant. The loss of the same
    held-out examples is measured each time the number of steps has grown by a quarter. The decay,
    linear to zero over a fifth of all epochs, begins when this loss is below 0.98 of the chance
    level and fell by less than 0.01 of it since half of the epochs, or when the rest of the budget
    is needed for the decay. A loss at chance level does not end training, because PARS stays there
    for the first hundred steps. Budgets are rounded to whole epochs, and to at least two. An epoch
    has at most 250 steps, on random windows where there are more.

    The history gets ``valid_loss`` and ``valid_loss_relative`` in epochs with a measurement, among
    them the last one. A resumed run reads its state from the history.

    Parameters
    ----------
    held_out : Dataset
        Examples of subjects that are not trained on.
    max_steps : float
        Maximum number of steps; NaN without a limit.
    minutes : float | None
        Maximum number of minutes.

    References
    ----------
    Hägele et al. 2024, Scaling laws and compute-optimal training beyond fixed training durations,
    arXiv:2405.18392, for a constant learning rate with a decay at the end.

    Examples
    --------
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
        """Return the factor of the learning rate after a number of epochs, whole or not."""
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
        """Return why the decay begins after this epoch; None if it does not."""
        epoch = len(history)
        total = math.ceil(WITH_DECAY * (epoch + 1))  # if the decay began after the next epoch
        if total * self.n_batches_ > self.max_steps:
            return f"the maximum of {self.max_steps:,} steps was reached"
        if self.minutes is not None and elapsed / epoch * total > 60 * self.minutes:
            return f"the maximum of {self.minutes:g} minutes was reached"
        losses = {row["epoch"]: row[HELD_OUT] for row in history if HELD_OUT in row}
        earlier = [loss for number, loss in losses.items() if number <= epoch / 2]
        fall = min(earlier, default=math.inf) - min(losses.values(), default=math.inf)
        if epoch in losses and min(losses.values()) < AT_CHANCE and fall < WORTHWHILE_FALL:
            return "the held-out loss no longer fell"
        return None


def decay_epochs(history: Any) -> tuple[float, float]:
    """Return the number of epochs before the decay, and before its end; infinity if unknown."""
    begun = [row["epoch"] for row in history if DECAY_REASON in row]
    return (begun[0], math.ceil(WITH_DECAY * begun[0])) if begun else (math.inf, math.inf)


class StopAtEnd(skorch.callbacks.EarlyStopping):
    """End training after the last epoch of a :class:`HeldOutSchedule`.

    It is the last callback, so that all others see this epoch.
    """

    def on_epoch_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        if len(net.history) == decay_epochs(net.history)[1]:
            self.misses_ = self.patience  # how EarlyStopping tells its end from Ctrl-C
            raise KeyboardInterrupt
