"""Progress bar of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback
from torch.utils.data import Dataset
from tqdm.auto import tqdm

from braindecode_pars._parameters import check_parameters, instance, integer, optional
from braindecode_pars.training._budget import steps_in_epoch
from braindecode_pars.training._restored import restored_by_callbacks

__all__ = ["ProgressLine"]

#: The usual bar of tqdm, with two decimals of the number of steps.
_WITH_PARTS = "{l_bar}{bar}| {n:.2f}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"

_RULES = dict(
    description=instance("a text", str),
    show=optional(instance("a dict of history entries and short names", Mapping)),
    first_epoch=integer(0),
)


class ProgressLine(Callback):
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

    def __init__(
        self,
        description: str = "training",
        show: dict[str, str] | None = None,
        first_epoch: int = 0,
    ):
        self.description = description
        self.show = show
        self.first_epoch = first_epoch

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        check_parameters(vars(self), _RULES, type(self).__name__)
        self.bar_, self.losses_ = None, {}

    def on_epoch_begin(self, net: NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        # The number of steps is known only here, from the training set.
        if self.bar_ is None:
            steps = steps_in_epoch(net, dataset_train)
            self.n_steps_ = self.first_epoch * steps
            self.bar_ = tqdm(
                total=net.max_epochs * steps,
                initial=self.n_steps_,
                desc=self.description,
                unit=" steps",
            )

    def on_part_end(self, net: NeuralNet, n_parts: int, **kwargs: Any) -> None:
        """Move the bar after one of ``n_parts`` parts of a step."""
        self.bar_.bar_format = _WITH_PARTS
        self.bar_.update(1 / n_parts)

    def on_batch_end(self, net: NeuralNet, training: bool = False, **kwargs: Any) -> None:
        if training:
            self.n_steps_ += 1
            self.bar_.update(self.n_steps_ - self.bar_.n)

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        show = self.show or {"train_loss": "train", "valid_loss": "valid"}
        row = net.history[-1]
        self.losses_ = {short: f"{row[key]:.4g}" for key, short in show.items() if key in row}
        self.bar_.set_postfix(self.losses_, refresh=False)

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if self.bar_ is not None:
            epoch = restored_by_callbacks(net)
            restored = {} if epoch is None else {"restored epoch": str(epoch)}
            self.bar_.set_postfix({**self.losses_, **restored}, refresh=False)
            self.bar_.close()
        self.bar_ = None  # a bar cannot be pickled
