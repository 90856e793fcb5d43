"""skorch callbacks: pretraining before fine-tuning, learning rate schedules, progress bar."""

from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from skorch import NeuralNet
from skorch.callbacks import Callback
from torch.utils.data import Dataset

from braindecode_pars._common.held_out import HeldOutSchedule
from braindecode_pars._common.settings import BATCH_SIZE, LEARNING_RATE, WEIGHT_DECAY
from braindecode_pars._common.training import ProgressLine, WarmupCosine
from braindecode_pars.pretext.base import PretextTask, params_of
from braindecode_pars.pretraining import PretrainingNet, PretrainingSettings, pretrain_encoder

__all__ = ["HeldOutSchedule", "Pretraining", "ProgressLine", "WarmupCosine"]


@dataclass(eq=False, repr=False)
class Pretraining(Callback):
    """skorch callback that pretrains the encoder of a network before fine-tuning.

    Use this callback with any skorch net whose module has a
    :class:`~braindecode_pars.PatchEncoder` as its attribute ``encoder``, for example
    ``EEGClassifier(PARSNet, callbacks=[Pretraining("pars", epochs=100)])``. Before the first epoch
    of the net, the callback pretrains ``module_.encoder`` in place, without labels. If the net has
    a ``train_split``, the callback uses only the training set for pretraining, not the validation
    set. With the default settings, pretraining is feasible on a laptop; the settings of the PARS
    paper are in :mod:`~braindecode_pars.paper`.

    Parameters
    ----------
    task : str | type[PretextTask] | PretextTask
        Pretext task: a name in :data:`~braindecode_pars.pretext.PRETEXT_TASKS` (such as
        ``"pars"``), a class or an instance.
    epochs : int | None
        Number of epochs of pretraining. In each epoch, one crop (a random segment of a random
        channel) is drawn from every window. If None, pretraining continues until the loss on
        held-out subjects stops decreasing, or until ``max_steps`` or ``minutes`` is reached, see
        :class:`HeldOutSchedule`. If 0, the encoder is not pretrained.
    max_steps, minutes : int | None, float | None
        Maximum number of steps, and maximum duration in minutes, if ``epochs`` is None. If both are
        None, the maximum is 2000 steps.
    sham : bool
        Whether to use sham pretraining, a control condition: each example gets the target of
        another example, so there is nothing to learn.
    lr, batch_size, weight_decay : float, int, float
        Learning rate, batch size and weight decay of the optimizer AdamW in pretraining. If
        ``epochs`` is a number, the learning rate follows the schedule :class:`WarmupCosine`.
    task_params : dict | None
        Additional arguments of the pretext task, for example ``{"position_mask_ratio": 0.6}``.
    unlabeled : torch Dataset | SignalStore | None
        Additional unlabeled windows for pretraining. They must have the sampling rate of the
        labeled windows, but may have a different montage and a different length. A
        :class:`~braindecode_pars.signal_store.SignalStore` contains the signals of a corpus on
        disk.
    callbacks : list of skorch callbacks | None
        Callbacks of the skorch net that is used for pretraining.
    device : str | torch.device | None
        Device used for pretraining. If None, the device of the fine-tuned net is used.
    n_times : int | None
        Number of samples in a crop. If None, the length of the first labeled window or of the first
        unlabeled window is used, whichever is shorter.
    precision, compile
        As in :class:`~braindecode_pars.pretraining.PretrainingNet`.
    verbose : int
        Verbosity: 0 prints nothing, 1 shows a progress bar.

    Attributes
    ----------
    net_ : PretrainingNet | None
        The net that was used for pretraining. Its ``history`` contains the losses of each epoch.
        None before pretraining.

    Raises
    ------
    TypeError
        In ``fit`` of the net, if ``encoder`` of its module is not a PatchEncoder.
    ValueError, TypeError
        In ``fit`` of the net, if an argument has the wrong type or is out of range, or the pretext
        task is not compatible with the windows.
    KeyboardInterrupt
        In ``fit`` of the net, after Ctrl-C. The encoder keeps the weights trained so far.

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

    task: str | type[PretextTask] | PretextTask = "pars"
    _: KW_ONLY
    epochs: int | None = None
    lr: float = LEARNING_RATE
    batch_size: int = BATCH_SIZE
    weight_decay: float = WEIGHT_DECAY
    max_steps: int | None = None
    minutes: float | None = None
    sham: bool = False
    task_params: dict[str, Any] | None = None
    unlabeled: Dataset | None = None
    callbacks: list | None = None
    device: Any = None
    n_times: int | None = None
    precision: str = "float32"
    compile: bool = False
    verbose: int = 1

    def initialize(self) -> Self:
        self.net_: PretrainingNet | None = None
        self.interrupted_ = False
        return self

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.interrupted_ = False

    def on_epoch_begin(self, net: NeuralNet, dataset_train: Dataset, **kwargs: Any) -> None:
        # skorch passes the training set of the split here, but not to on_train_begin.
        if self.net_ is not None or self.epochs == 0:
            return
        params = params_of(self.task, self.task_params)
        device = net.device if self.device is None else self.device
        settings = PretrainingSettings.of(vars(self), task_params=params, device=device)
        encoder: Any = getattr(net.module_, "encoder", None)  # pretrain_encoder checks it
        sfreq = None
        with suppress(ValueError):  # raised by braindecode models without a sampling rate
            sfreq = getattr(net.module_, "sfreq", None)
        # Pretrain in place. on_train_end raises KeyboardInterrupt again after Ctrl-C.
        try:
            pretrain_encoder(
                encoder,
                dataset_train if self.unlabeled is None else [dataset_train, self.unlabeled],
                settings,
                n_times=self.n_times,
                sfreq=sfreq,
                callbacks=self.callbacks,
                on_end=lambda pretraining: setattr(self, "net_", pretraining),
                verbose=self.verbose,
            )
        except KeyboardInterrupt:
            self.interrupted_ = True
            raise

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if self.interrupted_:  # skorch catches KeyboardInterrupt without raising it again
            raise KeyboardInterrupt
