"""Callbacks for training: learning rate schedule, progress bar, warnings, and training history."""

import io
import logging
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import skorch
import tqdm.auto
import tqdm.utils
from torch.utils.data import Dataset

from braindecode_pars._common import checks, findings, tables
from braindecode_pars._common.findings import Finding

log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class WarmupCosine(skorch.callbacks.Callback):
    """Learning rate schedule: linear warm-up, then cosine annealing to zero.

    The learning rate is updated in every step. It depends on the number of completed steps divided
    by the total number of steps in ``max_epochs`` epochs. The defaults are the settings of the
    paper (section 2.5): during the first 100 of 1000 epochs, the learning rate increases from a
    tenth of its full value to the full value.

    Parameters
    ----------
    warmup : float
        Proportion of all steps that are warm-up steps, in [0, 1).
    start : float
        Learning rate of the first step, divided by the full learning rate.
    first_epoch : int
        Number of epochs that were already trained, if training is resumed; 0 otherwise.

    Raises
    ------
    TypeError, ValueError
        From ``fit`` of the net, if ``warmup`` is not a number in [0, 1).

    Examples
    --------
    >>> from braindecode_pars.callbacks import WarmupCosine
    >>> schedule = WarmupCosine()
    >>> [round(schedule.factor(progress), 3) for progress in (0, 0.05, 0.1, 0.55, 1)]
    [0.1, 0.55, 1.0, 0.5, 0.0]
    """

    warmup: float = 0.1
    start: float = 0.1
    first_epoch: int = 0

    def factor(self, progress: float) -> float:
        r"""Return the learning rate, divided by its full value, after a proportion of all steps.

        With ``warmup`` :math:`w`, ``start`` :math:`s` and ``progress`` :math:`p`, the factor is

        .. math::
            s + (1 - s) \, p / w \quad (p < w), \qquad
            \tfrac12 \left(1 + \cos \pi \frac{p - w}{1 - w}\right) \quad (p \ge w).

        Parameters
        ----------
        progress : float
            Number of completed steps divided by the total number of steps.

        Returns
        -------
        float
            Factor in [0, 1] by which the full learning rate is multiplied.
        """
        if progress < self.warmup:
            return self.start + (1 - self.start) * progress / self.warmup
        annealed = (progress - self.warmup) / (1 - self.warmup)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, annealed)))

    def on_train_begin(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        checks.proportion().check("warmup", self.warmup, type(self).__name__)
        self.epoch_ = self.first_epoch - 1
        # The full learning rate of each parameter group is stored under the key used by torch.
        for group in net.optimizer_.param_groups:
            group.setdefault("initial_lr", group["lr"])

    def on_epoch_begin(self, net: skorch.NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        self.epoch_ += 1
        self.batch_ = 0
        self.n_batches_ = steps_in_epoch(net, dataset_train)

    def on_batch_begin(self, net: skorch.NeuralNet, training: bool = False, **kwargs: Any) -> None:
        if not training:
            return
        progress = (self.epoch_ + self.batch_ / self.n_batches_) / net.max_epochs
        for group in net.optimizer_.param_groups:
            group["lr"] = group["initial_lr"] * self.factor(progress)
        self.batch_ += 1


#: Minimum time between two lines of the progress bar in a log file, in seconds.
_INTERVAL = 60.0

#: Whether the progress bar is a widget, as in a notebook.
_IS_WIDGET = tqdm.auto.tqdm.display is not tqdm.std.tqdm.display


class ProgressBar(tqdm.auto.tqdm):
    """Progress bar of tqdm that writes at most one line per minute to a log file.

    In a terminal or notebook, the bar is redrawn in place, as usual. In a file, each update would
    add a line.

    Parameters
    ----------
    *arguments, **options
        Arguments of ``tqdm.tqdm``.

    Examples
    --------
    >>> import io
    >>> from braindecode_pars._common.training import ProgressBar
    >>> log = io.StringIO()
    >>> for _ in ProgressBar(range(1000), file=log):
    ...     pass
    >>> log.getvalue().count("it/s")  # one line at the beginning, and one line at the end
    2
    """

    #: Earliest time of the next line in a log file.
    _next_line = 0.0

    def __init__(self, *arguments: Any, **options: Any):
        if options.get("file") is None and sys.stderr is None:  # for example in a system service
            options["file"] = io.StringIO()
        super().__init__(*arguments, **options)

    @property
    def _is_drawn(self) -> bool:
        # A log may only have the methods write and flush.
        return _IS_WIDGET or getattr(self.fp, "isatty", lambda: False)()

    def display(self, msg: str | None = None, pos: int | None = None, **options: Any) -> Any:
        """Draw the bar, or write a line to a log file.

        In a log file, a line is written if the bar ends (``pos`` is then 0), or if a minute has
        passed since the last line.
        """
        if self._is_drawn:
            return super().display(msg, pos, **options)
        if pos == 0 or time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _INTERVAL
            self.fp.write(str(self) + "\n" * (pos != 0))  # tqdm ends the last line
            self.fp.flush()
        return False  # tells tqdm that nothing has to be cleared

    def clear(self, *arguments: Any, **options: Any) -> None:
        """Clear the bar. Lines in a log file are not cleared."""
        if self._is_drawn:
            super().clear(*arguments, **options)


@dataclass(eq=False, repr=False)
class ProgressLine(skorch.callbacks.Callback):
    """Progress bar for training that shows the losses of the last epoch and the remaining time.

    The bar advances with every batch. If gradients are accumulated over several batches, it
    therefore also advances within a step.

    Parameters
    ----------
    description : str
        Text before the bar.
    show : dict of str to str | None
        Entries of the training history that are shown after the bar, with their short names. If
        None, the training and validation losses are shown.
    first_epoch : int
        Number of epochs that were already trained, if training is resumed; 0 otherwise. The bar
        starts at the end of these epochs.

    Examples
    --------
    >>> from braindecode_pars.callbacks import ProgressLine
    >>> from braindecode_pars.pretext import PARS
    >>> from braindecode_pars.pretraining import PretrainingNet
    >>> shown = {"train_loss_relative": "loss/chance"}
    >>> bar = ProgressLine("pretraining", shown)
    >>> net = PretrainingNet(PARS, callbacks=[bar], callbacks__print_log=None)
    """

    description: str = "training"
    show: dict[str, str] | None = None
    first_epoch: int = 0

    def on_train_begin(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        self.bar_: Any = None

    def on_epoch_begin(self, net: skorch.NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        # The training set, and thus the number of steps, is not available in on_train_begin.
        if self.bar_ is None:
            steps = steps_in_epoch(net, dataset_train)
            # If training is limited in minutes, the number of steps is unknown.
            total = net.max_epochs * steps if net.max_epochs < UNLIMITED else None
            if total is not None:
                log.info("%s: %d steps in %d epochs.", self.description, total, net.max_epochs)
            self.bar_ = ProgressBar(
                total=total,
                initial=self.first_epoch * steps,
                desc=self.description,
                unit=" steps",
            )

    def on_batch_end(self, net: skorch.NeuralNet, training: bool = False, **kwargs: Any) -> None:
        if training:
            self.bar_.update()

    def on_epoch_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        show = self.show or {"train_loss": "train", "valid_loss": "valid"}
        row = net.history[-1]
        losses = {short: f"{row[key]:.4g}" for key, short in show.items() if key in row}
        self.bar_.set_postfix(losses, refresh=False)

    def on_train_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        if self.bar_ is not None:
            self.bar_.close()
        self.bar_ = None  # so that the callback can be pickled


#: Value of ``max_epochs`` if the length of training is not limited by the number of epochs.
UNLIMITED = 10**6

#: Relative loss (1 = chance level) above which pretraining is considered to be at chance level. The
#: encoder may be useful nevertheless, for example after pretraining with PARS without overlap, see
#: docs/results/hands.rst.
AT_CHANCE = 0.98


def loss_at_end(history: Sequence[dict[str, Any]]) -> float:
    """Return the relative loss (1 = chance level) at the end of pretraining; 0 if there is no loss.

    If the held-out loss of the last epoch is known, it is returned. Otherwise, the result is the
    mean training loss over the last tenth of the epochs, in which the learning rate is close to
    zero. The mean is used because the loss of a single epoch is noisy if there are only a few
    windows.
    """
    if history and tables.HELD_OUT in history[-1]:
        return history[-1][tables.HELD_OUT]
    # If an epoch was interrupted, its row has no losses.
    losses = [row[tables.RELATIVE] for row in history if tables.RELATIVE in row]
    last = losses[-max(1, len(losses) // 10) :]
    return sum(last) / len(last) if last else 0.0


def card_losses(history: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the relative losses of the last epoch, as stored in the metadata of an encoder.

    Unknown losses are None.
    """
    last = history[-1] if history else {}
    return dict(
        loss_relative=last.get(tables.RELATIVE), held_out_loss_relative=last.get(tables.HELD_OUT)
    )


def warn_of_chance(history: Sequence[dict[str, Any]], steps_per_epoch: int) -> None:
    """Warn if the result of :func:`loss_at_end` is above :data:`AT_CHANCE`.

    Parameters
    ----------
    history : skorch.history.History
        History of a :class:`~braindecode_pars.pretraining.PretrainingNet`.
    steps_per_epoch : int
        Number of steps per epoch.
    """
    relative, n_epochs = loss_at_end(history), sum(tables.RELATIVE in row for row in history)
    if relative > AT_CHANCE:
        values = dict(loss=relative, n_steps=n_epochs * steps_per_epoch)
        findings.warn(Finding("pretraining_at_chance", values), findings.NotConverged)


def warn_of_validation(
    losses: Sequence[float], chance: float, constant: str = "the same probabilities"
) -> None:
    """Warn if the validation loss was lowest after the first epoch, or never below chance level.

    Parameters
    ----------
    losses : sequence of float
        Validation loss of each epoch. If empty, no warning is issued.
    chance : float
        Chance-level validation loss: the loss of predicting the same for all windows.
    constant : str
        What is predicted for all windows at chance level, for the text of the warning.
    """
    if len(losses) > 1 and losses[0] <= min(losses[1:]):
        finding = Finding("first_epoch_best", dict(n_epochs=len(losses)))
        findings.warn(finding, findings.NotConverged)
    if min(losses, default=-math.inf) >= chance:
        finding = Finding("validation_at_chance", dict(chance=chance, constant=constant))
        findings.warn(finding, findings.NotConverged)


def steps_in_epoch(net: skorch.NeuralNet, dataset: Dataset) -> int:
    """Return the number of training steps (batches) of a net in one epoch over a dataset."""
    loader = net.get_iterator(dataset, training=True)
    # braindecode wraps the torch DataLoader in a loader that has no length.
    return len(loader if hasattr(loader, "__len__") else loader.loader)


#: Parameter groups for ``optimizer__param_groups`` of skorch: biases, normalization layers and
#: learned tokens are trained without weight decay.
NO_DECAY = [(pattern, {"weight_decay": 0.0}) for pattern in ("*bias", "*norm*", "*_token")]


def history_row(row: Mapping[str, Any]) -> dict[str, float]:
    """Return only the epoch and the losses from a row of a skorch history."""
    columns = {"epoch", *tables.loss_columns(row)}
    return {name: value for name, value in row.items() if name in columns}


def history_frame(phases: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """Return the training history as a table with one row per epoch.

    The columns are ``phase``, ``epoch``, the losses and, for a pretext task with several losses,
    the loss of each part. ``phases`` contains the skorch history of each phase, such as
    pretraining.
    """
    rows = [
        {**history_row(row), "phase": phase} for phase, history in phases.items() for row in history
    ]
    losses = tables.loss_columns({name for row in rows for name in row})
    return pd.DataFrame(rows, columns=["phase", "epoch", *losses])
