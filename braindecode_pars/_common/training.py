"""What happens around the steps: schedule, progress bar, warnings and history.

The callbacks are those of skorch. A training that may have learned nothing is warned of. The
history is a table.
"""

import io
import logging
import math
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd
import skorch
import torch
import tqdm.auto
import tqdm.utils
from sklearn.exceptions import ConvergenceWarning
from torch.utils.data import Dataset

from braindecode_pars._common import checks, tables

log = logging.getLogger(__name__)

_SCHEDULE_RULES = dict(
    warmup=checks.share(),
    start=checks.number("in [0, 1]", lambda value: 0 <= value <= 1),
    first_epoch=checks.integer(0),
)


@dataclass(eq=False, repr=False)
class WarmupCosine(skorch.callbacks.Callback):
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

    warmup: float = 0.1
    start: float = 0.1
    first_epoch: int = 0

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

    def on_train_begin(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        checks.check_parameters(vars(self), _SCHEDULE_RULES, type(self).__name__)
        self.epoch_ = self.first_epoch - 1
        # Each parameter group keeps its own full learning rate, under torch's name for it.
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


#: Seconds between two lines in a log file.
_INTERVAL = 60.0

#: In a notebook, the bar is a widget.
_IS_WIDGET = tqdm.auto.tqdm.display is not tqdm.std.tqdm.display


class _Stream:
    """A stream whose errors do not end the work that a bar shows the progress of."""

    def __init__(self, stream: Any):
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"  # cp1252 has no "Ł"

    def write(self, text: str) -> None:
        with suppress(Exception):
            self._stream.write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))

    def flush(self) -> None:
        with suppress(Exception):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ProgressBar(tqdm.auto.tqdm):
    """A bar of tqdm that writes to a log file at its start and end, and a line a minute.

    A bar is drawn again and again over itself, which a file keeps as hundreds of lines. A stream
    that is missing, closed or of another encoding raises no error.

    Parameters
    ----------
    *arguments, **options
        As in ``tqdm.tqdm``.

    Examples
    --------
    >>> import io
    >>> from braindecode_pars._common.training import ProgressBar
    >>> log = io.StringIO()
    >>> for _ in ProgressBar(range(1000), file=log):
    ...     pass
    >>> log.getvalue().count("it/s")
    2
    """

    def __init__(self, *arguments: Any, **options: Any):
        self._next_line = 0.0
        if not _IS_WIDGET:
            stream = options.get("file") or sys.stderr or io.StringIO()  # None in a service
            options["file"] = _Stream(stream)
        super().__init__(*arguments, **options)

    @property
    def _writes_lines(self) -> bool:
        with suppress(Exception):  # a log may only write, and a closed stream raises an error
            return not (_IS_WIDGET or self.fp.isatty())
        return True

    def display(self, msg: str | None = None, pos: int | None = None, **options: Any) -> Any:
        """Draw the bar, or write a line if it is time for one, or at the end (``pos=0``)."""
        if not self._writes_lines:
            return super().display(msg, pos, **options)
        if pos == 0 or (msg is None and time.monotonic() >= self._next_line):
            self._next_line = time.monotonic() + _INTERVAL
            self.fp.write(str(self) + "\n" * (pos != 0))  # tqdm ends the last line
            self.fp.flush()
        return False  # there is nothing to clear

    def clear(self, *arguments: Any, **options: Any) -> None:
        """Clear the bar; a line stays."""
        if not self._writes_lines:
            super().clear(*arguments, **options)


_PROGRESS_RULES = dict(
    description=checks.instance("a text", str),
    show=checks.optional(checks.instance("a dict of history entries and short names", Mapping)),
    first_epoch=checks.integer(0),
)


@dataclass(eq=False, repr=False)
class ProgressLine(skorch.callbacks.Callback):
    """Progress bar of a training run, with the losses of the last epoch and the time left.

    Where gradients are accumulated over parts of a step, the bar moves within the step. At the end,
    the bar names the epoch whose state ``EarlyStopping(load_best=True)`` has restored.

    Parameters
    ----------
    description : str
        Text before the bar.
    show : dict of str to str
        History entries to show after the bar, and their short names. None shows the training and
        validation losses.
    first_epoch : int
        Number of the net's ``max_epochs`` that are already trained. The bar starts there.

    Raises
    ------
    TypeError, ValueError
        From the net's ``fit``, when an argument has the wrong type or is out of range.

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
        checks.check_parameters(vars(self), _PROGRESS_RULES, type(self).__name__)
        self.bar_: Any = None

    def on_epoch_begin(self, net: skorch.NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        # The number of steps is known only here, from the training set.
        if self.bar_ is None:
            steps = steps_in_epoch(net, dataset_train)
            # A training that minutes limit has no known length.
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
            epoch = restored_by_callbacks(net)
            if epoch is not None:
                self.bar_.set_postfix_str(f"{self.bar_.postfix}, restored epoch={epoch}")
            self.bar_.close()
        self.bar_ = None  # a bar cannot be pickled


#: Entry in the rows of a history: whether the state of this epoch was restored.
RESTORED = "restored"


def mark_restored_epoch(net: skorch.NeuralNet) -> None:
    """Mark the rows of a history: whether the state of this epoch was restored at the end.

    skorch marks the epochs with the lowest loss so far. The callbacks of a user may restore others.
    """
    epoch = restored_by_callbacks(net)
    for row in net.history if epoch is not None else ():
        row[RESTORED] = row["epoch"] == epoch


def restored_by_callbacks(net: skorch.NeuralNet) -> int | None:
    """Return the epoch that the callbacks of a net restore at the end; None if they do not.

    The last callback decides. skorch's does nothing if its best epoch is the last one.
    """
    kind = skorch.callbacks.EarlyStopping
    loading = [cb for _, cb in net.callbacks_ if isinstance(cb, kind) and cb.load_best]
    epochs = [callback.best_epoch_ for callback in loading if callback.best_epoch_]
    restored = [epoch for epoch in epochs if epoch != net.history[-1, "epoch"]]
    return (restored or epochs or [None])[-1]


#: Number of epochs of a training that is limited by something else.
UNLIMITED = 10**6

#: Loss relative to chance above which pretraining has hardly solved its task. Its encoder may be of
#: use all the same: that of PARS without overlap is, see docs/results/hands.rst.
AT_CHANCE = 0.98

#: How far weights have to be able to move, as a share of their root mean square. Below that,
#: accuracy stayed near chance on simulated nights, at rates from 1e-4 to 1e-3.
MINIMUM_CHANGE = 0.05


class StepCountWarning(skorch.callbacks.Callback):
    """Warn before the first step when all steps together hardly move the weights.

    A step of AdamW changes a weight by about the learning rate at most (Kingma and Ba 2015,
    section 2.1). S steps at the rate r therefore move it by about S r at most, whatever the data.
    This callback compares S r with the root mean square of the weights of each parameter group, and
    warns when no group can move by a twentieth of it.
    """

    def on_epoch_begin(self, net: skorch.NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        if len(net.history) > 1:  # layers are frozen when the first epoch begins
            return
        n_steps, needed = net.max_epochs * steps_in_epoch(net, dataset_train), math.inf
        for group in net.optimizer_.param_groups:
            # Norms begin with ones and biases with zeros, which is not the size of what they learn.
            weights = [p.detach() for p in group["params"] if p.requires_grad and p.ndim > 1]
            if weights and (rate := group.get("initial_lr", group["lr"])):
                size = torch.cat([p.flatten() for p in weights]).square().mean().sqrt().item()
                needed = min(needed, MINIMUM_CHANGE * size / rate)
        if n_steps < needed < math.inf:
            checks.warn_user(
                f"Fine-tuning has {_steps(n_steps)}, too few for weights to move by "
                f"{100 * MINIMUM_CHANGE:.0f} % of their size: that takes about "
                f"{_steps(math.ceil(needed))}. Train for more epochs, with smaller batches, or at "
                "a higher learning rate.",
                ConvergenceWarning,
            )


def loss_at_end(history: Sequence[dict[str, Any]]) -> float:
    """Return the loss relative to chance at the end of pretraining; 0 without any.

    It is the held-out loss, where that is known. Elsewhere it is the mean training loss over the
    last tenth of the epochs, where the learning rate is nearly zero: the loss of one epoch over few
    windows varies.
    """
    if history and tables.HELD_OUT in history[-1]:
        return history[-1][tables.HELD_OUT]
    # An epoch that was cut short has no losses.
    losses = [row[tables.RELATIVE] for row in history if tables.RELATIVE in row]
    last = losses[-max(1, len(losses) // 10) :]
    return sum(last) / len(last) if last else 0.0


def card_losses(history: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the losses of an encoder's card: those of the last epoch, None where unknown."""
    last = history[-1] if history else {}
    return dict(
        loss_relative=last.get(tables.RELATIVE), held_out_loss_relative=last.get(tables.HELD_OUT)
    )


def warn_of_chance(history: Sequence[dict[str, Any]], steps_per_epoch: int) -> None:
    """Warn when pretraining has ended above :data:`AT_CHANCE`, see :func:`loss_at_end`.

    Parameters
    ----------
    history : skorch.history.History
        History of a :class:`~braindecode_pars.pretraining.PretrainingNet`.
    steps_per_epoch : int
        Number of steps in an epoch.
    """
    relative, n_epochs = loss_at_end(history), sum(tables.RELATIVE in row for row in history)
    if relative > AT_CHANCE:
        checks.warn_user(
            f"Pretraining ended at {relative:.3f} of the loss at chance after "
            f"{_steps(n_epochs * steps_per_epoch)}. Compare its encoder with one that is not "
            "pretrained, or pretrain for more epochs or on more windows.",
            ConvergenceWarning,
        )


def warn_of_validation(
    losses: Sequence[float], chance: float, constant: str = "the same probabilities"
) -> None:
    """Warn when the validation loss was lowest at first, and when it was never below chance.

    Parameters
    ----------
    losses : sequence of float
        Validation loss of each epoch. Without any, there is no warning.
    chance : float
        Validation loss of the same prediction for every window.
    constant : str
        What this prediction is, for the warning.
    """
    if len(losses) > 1 and losses[0] <= min(losses[1:]):
        checks.warn_user(
            f"The validation loss never fell after the first of {len(losses)} epochs. Lower "
            "finetune_lr, or train and validate on more subjects.",
            ConvergenceWarning,
        )
    if min(losses, default=-math.inf) >= chance:
        checks.warn_user(
            f"The validation loss was never below {chance:.3f}, that of {constant} for every "
            "window. Labels may be better than chance all the same: look at a score. If they are "
            "not, check the labels, or train for more epochs or on more subjects.",
            ConvergenceWarning,
        )


def _steps(n_steps: float) -> str:
    return f"{n_steps:,} step{'' if n_steps == 1 else 's'}"


def steps_in_epoch(net: skorch.NeuralNet, dataset: Dataset) -> int:
    """Return the number of steps in which a net trains on a dataset once."""
    loader = net.get_iterator(dataset, training=True)
    # Nets of braindecode wrap the loader of torch in one without a length.
    return len(loader if hasattr(loader, "__len__") else loader.loader)


#: Parameter groups for skorch's ``optimizer__param_groups``. The weights of linear layers decay;
#: norms, biases and learned tokens do not.
NO_DECAY = [(pattern, {"weight_decay": 0.0}) for pattern in ("*bias", "*norm*", "*_token")]


def history_row(row: Mapping[str, Any]) -> dict[str, float]:
    """Return what a table needs of a row of a skorch history: its epoch, losses and marks."""
    columns = {"epoch", RESTORED, *tables.loss_columns(row)}
    return {name: value for name, value in row.items() if name in columns}


def history_frame(phases: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """Return one row per epoch: ``phase``, ``epoch``, ``restored``, and losses with their parts."""
    rows = [
        {RESTORED: False, **history_row(row), "phase": phase}
        for phase, history in phases.items()
        for row in history
    ]
    losses = tables.loss_columns({name for row in rows for name in row})
    return pd.DataFrame(rows, columns=["phase", "epoch", RESTORED, *losses])
