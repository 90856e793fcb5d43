"""skorch callbacks: pretraining before training, the schedule, one progress bar."""

from __future__ import annotations

from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback
from torch.utils.data import Dataset

from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import PretextTask
from braindecode_pars.pretraining import (
    BATCH_SIZE,
    EPOCHS,
    LEARNING_RATE,
    WEIGHT_DECAY,
    PretrainingNet,
    pretrain_encoder,
)
from braindecode_pars.training._progress import ProgressLine
from braindecode_pars.training._schedule import WarmupCosine

__all__ = ["Pretraining", "ProgressLine", "WarmupCosine"]


class Pretraining(Callback):
    """Pretrain ``module_.encoder`` in place before the first epoch of fine-tuning.

    Works in any skorch net whose module has an ``encoder``, for example
    ``EEGClassifier(PARSNet, callbacks=[Pretraining("pars", epochs=100)])``. Only the training
    part of the internal split is seen, never the validation part. The defaults are for a laptop;
    the paper's settings are in :mod:`~braindecode_pars.paper`.

    Parameters
    ----------
    task : str | type[PretextTask] | PretextTask
        ``"pars"``, another name in ``PRETEXT_TASKS``, a task class or instance.
    epochs : int
        One example an epoch is one random channel and crop of each window. 0 skips pretraining.
    lr, batch_size, weight_decay : float, int, float
        Of AdamW, with :class:`WarmupCosine` as schedule.
    task_params : dict | None
        Further arguments of the task, for example ``{"position_mask_ratio": 0.6}``.
    unlabeled : torch Dataset | None
        Windows without labels to pretrain on as well; other montages and longer windows are
        welcome, another sampling rate is not.
    balance : bool
        With ``unlabeled``, take as many examples from it as from the windows of ``fit``, however
        many there are of each; otherwise every window is one example an epoch.
    callbacks : list of skorch callbacks | None
        For the pretraining net.
    device : str | torch.device | None
        None means that of the net being fine-tuned.
    n_times : int | None
        Samples of the random crops. None takes the first window's, or the first unlabelled one's
        if that is shorter.
    precision, compile
        As in :class:`~braindecode_pars.training.Precision`.
    verbose : int
        0 is silent, 1 shows a progress bar.

    Attributes
    ----------
    net_ : PretrainingNet | None
        After pretraining, with ``net_.history``; None before.

    Raises
    ------
    TypeError
        From the net's ``fit``, when its module has no PatchEncoder as ``encoder``.
    ValueError, TypeError
        There too, when the task does not fit the windows, as in
        :func:`~braindecode_pars.pretext.make_task`.
    KeyboardInterrupt
        There too, after Ctrl-C; the encoder keeps what it has learned.

    Examples
    --------
    >>> from braindecode import EEGClassifier
    >>> from braindecode_pars import PARSNet, datasets
    >>> from braindecode_pars.callbacks import Pretraining
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> pretraining = Pretraining("pars", epochs=2, verbose=0)
    >>> net = EEGClassifier(
    ...     PARSNet,
    ...     module__sfreq=100.0,
    ...     module__embed_dim=16,
    ...     module__num_layers=1,
    ...     callbacks=[pretraining],
    ...     classes=list(range(5)),
    ...     train_split=None,
    ...     max_epochs=1,
    ...     batch_size=8,
    ...     verbose=0,
    ... )
    >>> net = net.fit(windows, y=None)
    >>> len(pretraining.net_.history)
    2
    """

    def __init__(
        self,
        task: str | type[PretextTask] | PretextTask = "pars",
        *,
        epochs: int = EPOCHS,
        lr: float = LEARNING_RATE,
        batch_size: int = BATCH_SIZE,
        weight_decay: float = WEIGHT_DECAY,
        task_params: dict[str, Any] | None = None,
        unlabeled: Dataset | None = None,
        balance: bool = False,
        callbacks: list | None = None,
        device: Any = None,
        n_times: int | None = None,
        precision: str = "float32",
        compile: bool = False,  # noqa: A002 skorch's name
        verbose: int = 1,
    ):
        self.task = task
        self.epochs = epochs
        self.lr = lr
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.task_params = task_params
        self.unlabeled = unlabeled
        self.balance = balance
        self.callbacks = callbacks
        self.device = device
        self.n_times = n_times
        self.precision = precision
        self.compile = compile
        self.verbose = verbose

    def initialize(self) -> Pretraining:
        self.net_ = None
        self.interrupted_ = False
        return self

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.interrupted_ = False

    def on_epoch_begin(self, net: NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        if self.net_ is not None or self.epochs == 0:
            return
        encoder = getattr(net.module_, "encoder", None)
        if not isinstance(encoder, PatchEncoder):
            raise TypeError(
                f"Pretraining needs a module with a PatchEncoder as .encoder, such as PARSNet; "
                f"{type(net.module_).__name__} has none."
            )
        try:
            pretrain_encoder(
                encoder,
                dataset_train if self.unlabeled is None else [dataset_train, self.unlabeled],
                self.task,
                task_params=self.task_params,
                n_times=self.n_times,
                balance=self.balance,
                epochs=self.epochs,
                lr=self.lr,
                batch_size=self.batch_size,
                weight_decay=self.weight_decay,
                callbacks=self.callbacks,
                on_end=self._keep,
                device=self.device or net.device,
                precision=self.precision,
                compile=self.compile,
                verbose=self.verbose,
            )
        except KeyboardInterrupt:
            self.interrupted_ = True
            raise

    def _keep(self, pretraining: PretrainingNet) -> None:
        self.net_ = pretraining

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if self.interrupted_:  # skorch has swallowed it
            raise KeyboardInterrupt
