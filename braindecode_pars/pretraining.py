"""Pretraining an encoder: one function, and the skorch net that it trains."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from skorch.dataset import get_len
from skorch.utils import noop
from torch import Tensor

from braindecode_pars._columns import RELATIVE
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import PretextTask, make_task
from braindecode_pars.training._device import find_device
from braindecode_pars.training._failures import NoSilentFailure
from braindecode_pars.training._precision import Precision
from braindecode_pars.training._progress import ProgressLine
from braindecode_pars.training._schedule import WarmupCosine
from braindecode_pars.training._seeding import seeded
from braindecode_pars.training._weight_decay import NO_DECAY
from braindecode_pars.windows import SingleChannelWindows

__all__ = [
    "BATCH_SIZE",
    "EPOCHS",
    "LEARNING_RATE",
    "WEIGHT_DECAY",
    "PretrainingNet",
    "RelativeLoss",
    "pretrain_encoder",
]

log = logging.getLogger(__name__)

#: The defaults of :func:`pretrain_encoder`, of the callback and of the estimators: for two cores
#: and tens of subjects. The paper's settings are in :mod:`~braindecode_pars.paper`.
EPOCHS = 50
LEARNING_RATE = 4e-3
BATCH_SIZE = 64
WEIGHT_DECAY = 1e-4

#: Losses that the progress bar shows, where the history has them.
_SHOWN = {RELATIVE: "loss/chance", "windows_per_second": "windows/s"}


def pretrain_encoder(
    encoder: PatchEncoder,
    windows: Any,
    task: str | type[PretextTask] | PretextTask = "pars",
    *,
    task_params: dict[str, Any] | None = None,
    n_times: int | None = None,
    balance: bool = False,
    epochs: int = EPOCHS,
    lr: float = LEARNING_RATE,
    batch_size: int = BATCH_SIZE,
    weight_decay: float = WEIGHT_DECAY,
    warmup: float = 0.1,
    callbacks: list | None = None,
    on_end: Callable[[PretrainingNet], None] | None = None,
    device: str | torch.device | None = "auto",
    precision: str = "float32",
    compile: bool = False,  # noqa: A002 skorch's name
    seed: int | None = None,
    first_epoch: int = 0,
    verbose: int = 1,
    net: Callable[..., PretrainingNet] | None = None,
) -> PretrainingNet:
    """Pretrain an encoder in place, without labels (section 2).

    The callback :class:`~braindecode_pars.callbacks.Pretraining`, the estimators and
    :func:`runs.pretrain <braindecode_pars.runs.pretrain>` all pretrain by calling this.

    Parameters
    ----------
    encoder : PatchEncoder
        Trained in place.
    windows : torch Dataset | SignalStore | list of these
        As :class:`~braindecode_pars.windows.SingleChannelWindows` takes it, or one of these.
    task : str | type[PretextTask] | PretextTask
        A name in ``PRETEXT_TASKS``, a task class or instance.
    task_params : dict | None
        Further arguments of the task, for example ``{"position_mask_ratio": 0.6}``.
    n_times : int | None
        Samples of the random crops. None takes the length of the first window of the corpus where
        that is shortest.
    balance : bool
        With several corpora, draw as many examples from each.
    epochs : int
        One example an epoch is one random channel and crop of each window.
    lr, batch_size, weight_decay : float, int, float
        Of AdamW.
    warmup : float
        Share of all steps that warms up, see :class:`~braindecode_pars.callbacks.WarmupCosine`.
    callbacks : list of skorch callbacks | None
        Further ones.
    on_end : callable | None
        Called with the net when training ends, also after Ctrl-C.
    device : str | torch.device | None
        ``"auto"`` takes CUDA, then MPS, then the CPU. None means that of the encoder.
    precision, compile
        As in :class:`~braindecode_pars.training.Precision`.
    seed : int | None
        Of all random draws; the caller's random state is then left as it was. None draws from
        torch's global generator.
    first_epoch : int
        Epochs that were trained before, by a run that is now resumed; the schedule and the bar
        begin there.
    verbose : int
        0 is silent, 1 shows a progress bar.
    net : callable | None
        Makes the net from the task and the net's settings; None makes a :class:`PretrainingNet`.

    Returns
    -------
    PretrainingNet
        The trained net, with ``net.history`` and the task in ``net.task_``.

    Raises
    ------
    TypeError, ValueError
        When the task does not fit the windows or the encoder, as in
        :func:`~braindecode_pars.pretext.make_task`; when a window holds NaN, or the loss becomes
        NaN.
    KeyboardInterrupt
        After Ctrl-C; what was learned until then stays in ``encoder``.

    Examples
    --------
    >>> from braindecode_pars import PatchEncoder, datasets
    >>> from braindecode_pars.pretraining import pretrain_encoder
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=16, num_layers=1)
    >>> net = pretrain_encoder(encoder, windows, "mae", epochs=2, verbose=0)
    >>> net.task_.encoder is encoder, len(net.history)
    (True, 2)
    """
    is_ready = getattr(windows, "is_single_channel", False)
    if n_times is None:
        n_times = (windows if is_ready else SingleChannelWindows(windows)).n_times
    device = None if device is None else find_device(device)
    with nullcontext() if seed is None else seeded(seed, device or "cpu"):
        task = make_task(task, n_times=n_times, encoder=encoder, task_params=task_params)
        examples = windows
        if not is_ready:
            examples = SingleChannelWindows(windows, task.n_times, balance=balance)

        all_callbacks: list = [WarmupCosine(warmup, first_epoch=first_epoch), *(callbacks or [])]
        if on_end is not None:
            all_callbacks.append(_OnEnd(on_end))
        if verbose:
            title = f"pretraining ({type(task).__name__})"
            all_callbacks.append(ProgressLine(title, _SHOWN, first_epoch))

        pretraining = (net or PretrainingNet)(
            task,
            max_epochs=epochs,
            lr=lr,
            batch_size=batch_size,
            optimizer__weight_decay=weight_decay,
            callbacks=all_callbacks,
            callbacks__print_log__sink=noop,
            device=device,
            precision=precision,
            compile=compile,
        )
        try:
            return pretraining.fit(examples)
        except KeyboardInterrupt:
            done = len(pretraining.history)
            log.warning(
                "Pretraining was interrupted in epoch %d of %d; the encoder keeps what it has "
                "learned.",
                done,
                epochs,
            )
            raise


class _OnEnd(Callback):
    """Call a function with the net when training has ended."""

    def __init__(self, function: Callable[[PretrainingNet], None]):
        self.function = function

    def on_train_end(self, net: PretrainingNet, **kwargs: Any) -> None:
        self.function(net)


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
            key = f"{RELATIVE}_{name}" if training else f"valid_loss_relative_{name}"
            total = self.sums_.setdefault(key, [0.0, 0])
            total[0] += loss.detach() * size  # read at the end: a GPU is not waited for
            total[1] += size

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        for key, (total, size) in self.sums_.items():
            net.history.record(key, float(total) / size)
        for name in ("train_loss", "valid_loss"):
            if name in net.history[-1]:
                net.history.record(f"{name}_relative", net.history[-1, name] / self.chance_)


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
        As in :class:`~braindecode_pars.training.Precision`.
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
        From ``fit``, as in :class:`~braindecode_pars.training.NoSilentFailure`.

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
        kwargs.setdefault("optimizer__weight_decay", WEIGHT_DECAY)
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
