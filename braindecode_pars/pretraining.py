"""PretrainingNet: skorch's training loop for modules that return prediction and target."""

from __future__ import annotations

from typing import Any

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, EarlyStopping
from skorch.dataset import get_len
from torch import Tensor

from braindecode_pars.precision import Precision
from braindecode_pars.seeding import seeded

__all__ = ["NO_DECAY", "NoSilentFailure", "PretrainingNet", "RelativeLoss"]

#: Weight decay is for the weights of linear layers, not for norms, biases and learned tokens.
NO_DECAY = [(pattern, {"weight_decay": 0.0}) for pattern in ("*bias", "*norm*", "*_token")]


class RelativeLoss(Callback):
    """Record the loss relative to chance: 1 is a blind guesser.

    Raw losses of different tasks and settings do not compare; these do. Chance is what the task's
    :meth:`~braindecode_pars.pretext.PretextTask.chance_loss` says. Adds ``train_loss_relative``
    and ``valid_loss_relative`` to the history of a :class:`PretrainingNet`, which has this
    callback already; and for a task with
    :meth:`~braindecode_pars.pretext.PretextTask.part_losses` one of these a part, such as
    ``train_loss_relative_mae``.

    Attributes
    ----------
    chance_ : float
        The task's loss at chance.

    Examples
    --------
    >>> from braindecode_pars.pretext import PARS
    >>> from braindecode_pars.pretraining import PretrainingNet, RelativeLoss
    >>> task = PARS(n_times=600, patch_size=100, embed_dim=16, num_layers=1)
    >>> net = PretrainingNet(task, verbose=0).initialize()
    >>> isinstance(dict(net.callbacks_)["relative_loss"], RelativeLoss)
    True
    """

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.chance_ = net.task_.chance_loss()
        self.part_losses_ = getattr(net.task_, "part_losses", lambda *_: {})

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        del self.part_losses_  # a reference to the module does not belong into a pickle

    def on_epoch_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.sums_: dict[str, list[Any]] = {}

    def on_batch_end(
        self, net: NeuralNet, batch: Any, training: bool, y_pred: Any = None, **kwargs: Any
    ) -> None:
        with torch.no_grad():
            parts = self.part_losses_(*y_pred)
        size = get_len(batch[0])
        for name, loss in parts.items():
            key = f"{'train' if training else 'valid'}_loss_relative_{name}"
            total = self.sums_.setdefault(key, [0.0, 0])
            total[0] += loss.detach() * size  # read at the end: a GPU is not waited for
            total[1] += size

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        for key, (total, size) in self.sums_.items():
            net.history.record(key, float(total) / size)
        for name in ("train_loss", "valid_loss"):
            if name in net.history[-1]:
                net.history.record(f"{name}_relative", net.history[-1, name] / self.chance_)


class NoSilentFailure:
    """Mixin for skorch nets: neither Ctrl-C nor a loss of NaN goes unnoticed.

    skorch swallows Ctrl-C, and whoever waits for the net (a pipeline, a cross-validation) would
    go on with half-trained weights. Here training ends in good order, and it is raised again.

    Raises
    ------
    KeyboardInterrupt
        From ``fit``, after Ctrl-C; the net keeps what it has learned.
    ValueError
        From ``fit``, when the training loss is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from skorch import NeuralNetRegressor
    >>> from braindecode_pars.pretraining import NoSilentFailure
    >>> class Net(NoSilentFailure, NeuralNetRegressor):
    ...     pass
    >>> net = Net(torch.nn.Linear(1, 1), lr=0.1, train_split=None, verbose=0)
    >>> net.fit(np.ones((4, 1), "float32"), np.full((4, 1), np.nan, "float32"))
    Traceback (most recent call last):
        ...
    ValueError: The training loss became nan in epoch 1 of Net at learning rate 0.1; lower ...
    """

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        step = super().train_step(batch, **fit_params)
        if not torch.isfinite(step["loss"]):
            raise ValueError(
                f"The training loss became {step['loss'].item()} in epoch {len(self.history)} of "
                f"{type(self).__name__} at learning rate {self.lr:g}; lower the learning rate."
            )
        return step

    def fit_loop(self, *args: Any, **kwargs: Any) -> Any:
        self.interrupted_ = False
        try:
            return super().fit_loop(*args, **kwargs)
        except KeyboardInterrupt:
            self.interrupted_ = not self._stopped_early()
            raise

    def _stopped_early(self) -> bool:
        """Whether skorch's EarlyStopping has ended training, which it does by KeyboardInterrupt."""
        return any(
            isinstance(callback, EarlyStopping) and callback.misses_ == callback.patience
            for _, callback in self.callbacks_
        )

    def partial_fit(self, *args: Any, **kwargs: Any) -> Any:
        super().partial_fit(*args, **kwargs)
        if self.interrupted_:
            raise KeyboardInterrupt
        return self


class PretrainingNet(NoSilentFailure, Precision, NeuralNet):
    """A skorch net for pretext tasks.

    The module's ``forward(x)`` returns ``(prediction, target)``, and these two go to the
    criterion; its ``chance_loss()`` is what losses are reported relative to. Everything else is
    skorch's. The learning rate is constant unless a schedule such as
    :class:`~braindecode_pars.callbacks.WarmupCosine` is among the callbacks.

    Parameters
    ----------
    module : PretextTask (class or instance)
        An instance is trained in place.
    criterion : type[nn.Module] | None
        None means the task's own.
    optimizer : type[Optimizer]
        AdamW with the paper's betas (0.9, 0.999), and weight decay on linear weights only.
    lr, max_epochs, batch_size, train_split
        As in skorch. The paper's rate, epochs and batch are the default (section 2.5), and so is
        ``train_split=None``, no internal validation.
    validation_seed : int
        Validation loss is computed with random draws (channel, crop, patches, masks) that start
        from this seed every time, so that epochs compare.
    precision, compile
        As in :class:`~braindecode_pars.precision.Precision`.
    *args, **kwargs
        As in :class:`skorch.NeuralNet`.

    Attributes
    ----------
    history : skorch.history.History
        One row an epoch: what skorch records, and what :class:`RelativeLoss` adds.
    module_ : PretextTask
        The trained task; its ``encoder`` is what crosses to fine-tuning.

    Raises
    ------
    KeyboardInterrupt, ValueError
        From ``fit``, as in :class:`NoSilentFailure`.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.pretext import PARS
    >>> from braindecode_pars.pretraining import PretrainingNet
    >>> task = PARS(n_times=600, patch_size=100, embed_dim=16, num_layers=1)
    >>> net = PretrainingNet(task, max_epochs=2, batch_size=8, verbose=0)
    >>> signals = np.random.randn(16, 600).astype("float32")
    >>> last = net.fit(signals).history[-1]
    >>> sorted(key for key in last if key.startswith("train_loss"))
    ['train_loss', 'train_loss_best', 'train_loss_relative']
    """

    def __init__(
        self,
        module: Any,
        *args: Any,
        criterion: Any = None,
        optimizer: type[torch.optim.Optimizer] = torch.optim.AdamW,
        lr: float = 1e-4,
        max_epochs: int = 1000,
        batch_size: int = 512,
        train_split: Any = None,
        validation_seed: int = 0,
        **kwargs: Any,
    ):
        kwargs.setdefault("optimizer__weight_decay", 1e-4)
        kwargs.setdefault("optimizer__param_groups", NO_DECAY)
        kwargs.setdefault("iterator_train__shuffle", True)
        self.validation_seed = validation_seed
        super().__init__(
            module,
            *args,
            criterion=criterion,
            optimizer=optimizer,
            lr=lr,
            max_epochs=max_epochs,
            batch_size=batch_size,
            train_split=train_split,
            **kwargs,
        )

    @property
    def task_(self) -> Any:
        """The pretext task, also while it is trained inside a wrapper."""
        return self.module_

    @property
    def _default_callbacks(self) -> list[tuple[str, Callback]]:
        *recorders, print_log = super()._default_callbacks
        return [*recorders, ("relative_loss", RelativeLoss()), print_log]

    def initialize_criterion(self) -> PretrainingNet:
        criterion = self.criterion or self.module_.criterion
        self.criterion_ = self.initialized_instance(criterion, self.get_params_for("criterion"))
        return self

    def get_loss(
        self, y_pred: tuple[Tensor, Tensor], y_true: Any, X: Any = None, training: bool = False
    ) -> Tensor:
        return self.criterion_(*y_pred)

    def run_single_epoch(self, iterator: Any, training: bool, *args: Any, **kwargs: Any) -> None:
        if training:
            return super().run_single_epoch(iterator, training, *args, **kwargs)
        with seeded(self.validation_seed, self.compute_device):
            return super().run_single_epoch(iterator, training, *args, **kwargs)
