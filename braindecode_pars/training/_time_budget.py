"""End a training when its time is over."""

from __future__ import annotations

import logging
import time
from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback
from torch.utils.data import Dataset

from braindecode_pars._parameters import check_parameters, positive
from braindecode_pars.training._budget import steps_in_epoch

__all__ = ["TIME_IS_OVER", "TimeBudget"]

log = logging.getLogger(__name__)

#: Entry in the last row of the history of a training that a TimeBudget has ended.
TIME_IS_OVER = "time_is_over"


class TimeBudget(Callback):
    """End a training when its time is over, after the step that is running.

    What the training would do at its end is done: the state with the lowest validation loss is
    restored if there is validation, otherwise the last state is kept. If that step is the last of
    its epoch, validation is made, too. An epoch that was cut short has no losses, and in
    pretraining no row. ``history_.attrs["time_is_over"]`` of the estimators names the phase and its
    last epoch, if it has one.

    The learning rate follows the schedule of all epochs and is not yet zero at the end. How many
    steps fit into the time depends on the machine and on what else it does, so that **two fits with
    the same ``random_state`` differ**. Give a number of epochs where results must be repeated.

    Parameters
    ----------
    seconds : float
        Time of a training, from its beginning. At least one step is made. In a net with the
        callback :class:`~braindecode_pars.callbacks.Pretraining`, the time of pretraining counts.

    Attributes
    ----------
    is_over_ : bool
        Whether the time has ended the last training.

    Raises
    ------
    TypeError, ValueError
        From the net's ``fit``, when ``seconds`` is not a positive number.

    Examples
    --------
    >>> from braindecode_pars import PARSClassifier, datasets
    >>> from braindecode_pars.callbacks import TimeBudget
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> budget = TimeBudget(seconds=0.1)
    >>> clf = PARSClassifier(None, finetune_epochs=10_000, callbacks=[budget], verbose=0)
    >>> list(clf.fit(windows).history_.attrs["time_is_over"])
    ['fine-tuning']
    """

    def __init__(self, seconds: float):
        self.seconds = seconds

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        check_parameters(vars(self), dict(seconds=positive()), type(self).__name__)
        self.end_ = time.monotonic() + self.seconds
        self.is_over_ = False

    def on_epoch_begin(self, net: NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        self.n_left_ = steps_in_epoch(net, dataset_train)

    def on_batch_end(self, net: NeuralNet, training: bool = False, **kwargs: Any) -> None:
        self.n_left_ -= training
        if training and self.n_left_ > 0:
            self._end_if_over(net)

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        self._end_if_over(net)

    def _end_if_over(self, net: NeuralNet) -> None:
        if time.monotonic() < self.end_:
            return
        self.is_over_ = True
        net.history.record(TIME_IS_OVER, True)
        epoch = len(net.history)
        log.info("%g s were over in epoch %d of %d.", self.seconds, epoch, net.max_epochs)
        raise KeyboardInterrupt  # the way in which callbacks of skorch end a training
