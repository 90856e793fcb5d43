"""What skorch's callbacks lack: pretraining before training, warm-up and cosine, one bar."""

from __future__ import annotations

import math
from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback
from torch.utils.data import Dataset
from tqdm.auto import tqdm

from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import PretextTask, make_task
from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.windows import SingleChannelWindows

__all__ = ["Pretraining", "ProgressLine", "WarmupCosine"]


class WarmupCosine(Callback):
    """Linear warm-up, then cosine annealing to zero, in every step (section 2.5).

    A closed form of the step within one call of ``fit``, as long as the net's ``max_epochs``. The
    defaults are the paper's: from a tenth of the rate, over the first 100 of 1000 epochs.

    Parameters
    ----------
    warmup : float
        Share of all steps spent warming up; the paper's 100 of 1000 epochs.
    start : float
        Share of the learning rate to start from.
    first_epoch : int
        How many of the net's ``max_epochs`` were trained before, by a net that is now resumed.

    Raises
    ------
    ValueError
        From the net's ``fit``, when ``warmup`` is not in [0, 1) or ``start`` not in [0, 1].

    Examples
    --------
    >>> from braindecode_pars.callbacks import WarmupCosine
    >>> schedule = WarmupCosine()
    >>> [round(schedule.factor(share), 3) for share in (0, 0.05, 0.1, 0.55, 1)]
    [0.1, 0.55, 1.0, 0.5, 0.0]
    """

    def __init__(self, warmup: float = 0.1, start: float = 0.1, first_epoch: int = 0):
        self.warmup = warmup
        self.start = start
        self.first_epoch = first_epoch

    def factor(self, progress: float) -> float:
        r"""Share of the learning rate at some point of training.

        With warm-up over a share :math:`w` from a share :math:`s` of the rate, at :math:`p`

        .. math::
            s + (1 - s) \, p / w \quad (p < w), \qquad
            \tfrac12 \left(1 + \cos \pi \frac{p - w}{1 - w}\right) \quad (p \ge w).

        Parameters
        ----------
        progress : float
            Share of all steps that are done.

        Returns
        -------
        float
            Between 0 and 1.
        """
        if progress < self.warmup:
            return self.start + (1 - self.start) * progress / self.warmup
        annealed = (progress - self.warmup) / (1 - self.warmup)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, annealed)))

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        if not 0 <= self.warmup < 1 or not 0 <= self.start <= 1:
            raise ValueError(
                "warmup must be in [0, 1) and start in [0, 1]; got "
                f"warmup={self.warmup}, start={self.start}."
            )
        self.epoch_ = self.first_epoch - 1
        for group in net.optimizer_.param_groups:
            group.setdefault("initial_lr", group["lr"])

    def on_epoch_begin(self, net: NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        self.epoch_ += 1
        self.batch_ = 0
        self.n_batches_ = _n_batches(net, dataset_train)

    def on_batch_begin(self, net: NeuralNet, training: bool = False, **kwargs: Any) -> None:
        if not training:
            return
        progress = (self.epoch_ + self.batch_ / self.n_batches_) / net.max_epochs
        for group in net.optimizer_.param_groups:
            group["lr"] = group["initial_lr"] * self.factor(progress)
        self.batch_ += 1


class ProgressLine(Callback):
    """One progress bar for a whole training run, with the last epoch's losses and time left.

    Parameters
    ----------
    description : str
        Stands before the bar.
    show : dict of str to str
        History entries to show behind the bar, and their short names.
    first_epoch : int
        How many of the net's ``max_epochs`` were trained before; the bar begins there.

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
        self.bar_ = None

    def on_epoch_begin(self, net: NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        if self.bar_ is None:
            steps = _n_batches(net, dataset_train)
            self.bar_ = tqdm(
                total=net.max_epochs * steps,
                initial=self.first_epoch * steps,
                desc=self.description,
                unit=" steps",
            )

    def on_batch_end(self, net: NeuralNet, training: bool = False, **kwargs: Any) -> None:
        if training:
            self.bar_.update()

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        show = self.show or {"train_loss": "train", "valid_loss": "valid"}
        row = net.history[-1]
        losses = {short: f"{row[key]:.4g}" for key, short in show.items() if key in row}
        self.bar_.set_postfix(losses, refresh=False)

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if self.bar_ is not None:
            self.bar_.close()
        self.bar_ = None  # a bar cannot be pickled


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
        As in :class:`~braindecode_pars.precision.Precision`.
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
        epochs: int = 100,
        lr: float = 1e-3,
        batch_size: int = 64,
        weight_decay: float = 1e-4,
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

    def pretrain(self, encoder: PatchEncoder, windows: Dataset, device: Any) -> PretrainingNet:
        """Pretrain an encoder in place on a dataset of windows.

        The net calls this by itself; it serves without a net too, after ``initialize()``.

        Parameters
        ----------
        encoder : PatchEncoder
            What is trained.
        windows : torch Dataset
            As :class:`~braindecode_pars.windows.SingleChannelWindows` takes it; those of
            ``unlabeled`` come on top.
        device : torch.device | str
            Where to train.

        Returns
        -------
        PretrainingNet
            The trained net, also in ``net_``.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C; what was trained until then stays in ``encoder``.
        """
        parts = [windows] if self.unlabeled is None else [windows, self.unlabeled]
        n_times = self.n_times or SingleChannelWindows(parts).n_times
        task = make_task(self.task, n_times=n_times, encoder=encoder, task_params=self.task_params)
        callbacks: list = [WarmupCosine(), *(self.callbacks or [])]
        if self.verbose:
            shown = {"train_loss_relative": "loss/chance"}
            callbacks.append(ProgressLine(f"pretraining ({type(task).__name__})", shown))
        self.net_ = PretrainingNet(
            task,
            max_epochs=self.epochs,
            lr=self.lr,
            batch_size=self.batch_size,
            optimizer__weight_decay=self.weight_decay,
            callbacks=callbacks,
            device=device,
            precision=self.precision,
            compile=self.compile,
            callbacks__print_log=None,
        )
        try:
            examples = SingleChannelWindows(parts, task.n_times, balance=self.balance)
            self.net_.fit(examples)
        except KeyboardInterrupt:
            self.interrupted_ = True
            done = len(self.net_.history)
            print(
                f"Pretraining was interrupted in epoch {done} of {self.epochs}; the encoder keeps "
                "what it has learned so far."
            )
            raise
        return self.net_

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
        self.pretrain(encoder, dataset_train, self.device or net.device)

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if self.interrupted_:  # skorch has swallowed it
            raise KeyboardInterrupt


def _n_batches(net: NeuralNet, dataset_train: Dataset) -> int:
    return len(net.get_iterator(dataset_train, training=True))
