"""Self-supervised pretraining: a function that pretrains an encoder, and the skorch net it uses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import skorch
import torch

from braindecode_pars._common import checks, computing, held_out, tables, training
from braindecode_pars._common.settings import WEIGHT_DECAY, PretrainingSettings
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.models.space_time import SPACE_TIME
from braindecode_pars.pretext.base import encoder_kind_of, make_task
from braindecode_pars.windows import AllChannelWindows, SingleChannelWindows

__all__ = ["PretrainingNet", "PretrainingSettings", "RelativeLoss", "pretrain_encoder"]

log = logging.getLogger(__name__)

#: Argument of :func:`pretrain_encoder` -> rule. The task and the net check their own arguments.
_RULES = dict(
    encoder=checks.instance("a PatchEncoder", PatchEncoder),
    settings=checks.optional(checks.instance("a PretrainingSettings", PretrainingSettings)),
    n_times=checks.optional(checks.integer(1)),
    sfreq=checks.optional(checks.positive()),
    seed=checks.optional(checks.integer(0)),
    first_epoch=checks.integer(0),
)

#: Seed for drawing the signals from which a task computes statistics before the first step.
_PREPARATION_SEED = 1

#: History column -> name in the progress bar. Columns that are not in the history are not shown.
_PROGRESS_COLUMNS = {
    tables.RELATIVE: "relative loss",
    tables.HELD_OUT: "held-out",
    "windows_per_second": "windows/s",
}


def pretrain_encoder(
    encoder: PatchEncoder,
    windows: Any,
    settings: PretrainingSettings | None = None,
    *,
    n_times: int | None = None,
    sfreq: float | None = None,
    held_out_windows: Any = None,
    callbacks: list | None = None,
    on_end: Callable[[PretrainingNet], None] | None = None,
    seed: int | None = None,
    first_epoch: int = 0,
    verbose: int = 1,
    net: Callable[..., PretrainingNet] | None = None,
) -> PretrainingNet:
    """Pretrain an encoder on unlabeled windows, in place (section 2 of the PARS paper).

    The estimators, the callback :class:`~braindecode_pars.callbacks.Pretraining` and
    :func:`runs.pretrain <braindecode_pars.runs.pretrain>` call this function. Call it directly to
    pretrain a :class:`~braindecode_pars.PatchEncoder` without any of them.

    Parameters
    ----------
    encoder : PatchEncoder
        Encoder to train. Its weights are changed in place.
    windows : torch Dataset | SignalStore | list of these
        Windows of one or several corpora, for example a braindecode windows dataset. A SignalStore
        contains the continuous recordings of a corpus on disk. You can also pass an instance of
        :class:`~braindecode_pars.windows.SingleChannelWindows` or, if the pretext task uses all
        channels, an instance of :class:`~braindecode_pars.windows.AllChannelWindows`.
    settings : PretrainingSettings | None
        Pretext task, number of epochs, learning rate and further settings. If None, the default
        settings are used.
    n_times : int | None
        Number of samples in a crop (the random segment of a window that is one training example).
        If None, the length of the first window of each corpus is read, and the shortest of these
        lengths is used.
    sfreq : float | None
        Sampling rate in Hz, for pretext tasks that require it. It is only used if the windows do
        not contain their sampling rate.
    held_out_windows : same types as windows | None
        Windows of held-out subjects (subjects who are not used for training). If
        ``settings.epochs`` is None, the loss on these windows determines when training ends; if
        ``held_out_windows`` is also None, a tenth of the subjects in ``windows`` is held out. If
        ``settings.epochs`` is a number, ``held_out_windows`` is ignored.
    callbacks : list of skorch callbacks | None
        Additional callbacks of the net.
    on_end : callable | None
        Function that is called when training ends, even after Ctrl-C, with the net as its argument.
    seed : int | None
        Seed of all random numbers. The global random state of torch is restored afterwards. If
        None, the global random number generator of torch is used.
    first_epoch : int
        Number of epochs that were already trained, if a run is resumed. The learning rate schedule
        and the progress bar continue from this epoch.
    verbose : int
        Verbosity: 0 prints nothing, 1 shows a progress bar.
    net : callable | None
        Class or function that builds the net. It is called with the arguments of
        :class:`PretrainingNet`, which is used if ``net`` is None.

    Returns
    -------
    PretrainingNet
        The trained net. ``net.history`` contains the losses of each epoch, and ``net.task_`` is the
        pretext task.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range; if the encoder is frozen, or its
        weights are not float32; if the task is not compatible with the windows or the encoder, as
        in :func:`~braindecode_pars.pretext.make_task`; if a window contains NaN, or the loss
        becomes NaN.
    KeyboardInterrupt
        After Ctrl-C. ``encoder`` keeps the weights trained so far.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the final loss is above 0.98 times the chance-level loss (the loss of the best prediction
        that ignores the signal). The final loss is the loss on held-out subjects if it was
        computed, and otherwise the mean training loss of the last tenth of the epochs. Sham
        pretraining (each window has the targets of another window) issues no warning, because its
        loss is expected to stay at chance level.

    Examples
    --------
    >>> from braindecode_pars import PatchEncoder, datasets
    >>> from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=16, num_layers=1)
    >>> net = pretrain_encoder(encoder, windows, PretrainingSettings("mae", epochs=2), verbose=0)
    >>> net.task_.encoder is encoder, len(net.history)
    (True, 2)
    """
    checks.check_parameters(locals(), _RULES, "pretrain_encoder")
    settings, on_end = settings or PretrainingSettings(), on_end or skorch.utils.noop
    is_ready = getattr(windows, "has_examples", False)
    uses_all_channels = encoder_kind_of(settings.task) == SPACE_TIME
    dataset_class = AllChannelWindows if uses_all_channels else SingleChannelWindows
    examples: Any = windows if is_ready else dataset_class(windows, n_times)
    n_times = examples.n_times if n_times is None else n_times
    rate = examples.sfreq if examples.sfreq is not None else sfreq
    device = None if settings.device is None else computing.find_device(settings.device)
    draw_device = device or next(encoder.parameters()).device
    _check_can_be_trained(encoder)
    seeding = computing.usual_torch() if seed is None else computing.seeded(seed, draw_device)
    with seeding:
        params: Any = dict(n_times=n_times, encoder=encoder, sfreq=rate)
        task = make_task(settings.task, task_params=dict(settings.task_params), **params)
        if settings.sham:
            task.become_sham()
        if not is_ready and task.n_times != examples.n_times:  # the task may require shorter crops
            examples = dataset_class(windows, task.n_times)

        # Collect the callbacks of the net.
        options: dict[str, Any] = {}
        all_callbacks: list = [*(callbacks or [])]
        if verbose:
            title = f"{'sham ' * settings.sham}pretraining ({task.shown_name})"
            all_callbacks.append(training.ProgressLine(title, _PROGRESS_COLUMNS, first_epoch))
        if settings.epochs is not None:
            all_callbacks.insert(0, training.WarmupCosine(settings.warmup, first_epoch=first_epoch))
        else:
            if held_out_windows is None:
                examples, held_out_windows = held_out.split_held_out(examples, seed)
            elif not is_ready:
                held_out_windows = dataset_class(held_out_windows, task.n_times)
            limits = settings.step_limit, settings.minutes
            schedule = held_out.HeldOutSchedule(held_out_windows, *limits)
            all_callbacks = [schedule, *all_callbacks, held_out.StopAtEnd()]
            n_in_epoch = held_out.EPOCH_STEPS * settings.batch_size
            if not is_ready and n_in_epoch < len(examples):
                sampler = torch.utils.data.RandomSampler(examples, num_samples=n_in_epoch)
                options = dict(iterator_train__sampler=sampler, iterator_train__shuffle=False)

        # Train.
        pretraining = (net or PretrainingNet)(
            task,
            max_epochs=training.UNLIMITED if settings.epochs is None else settings.epochs,
            lr=settings.lr,
            batch_size=int(settings.batch_size),  # torch refuses NumPy's integers
            optimizer__weight_decay=settings.weight_decay,
            callbacks=all_callbacks,
            # The progress bar replaces the table that skorch prints.
            callbacks__print_log__sink=skorch.utils.noop,
            device=device,
            precision=settings.precision,
            compile=settings.compile,
            **options,
        )
        try:
            pretraining.fit(examples)
        except KeyboardInterrupt:
            on_end(pretraining)
            interrupted = (
                "Pretraining was interrupted in epoch %d. The encoder keeps the weights trained "
                "so far."
            )
            log.warning(interrupted, len(pretraining.history))
            raise
        on_end(pretraining)
        _report(pretraining, training.steps_in_epoch(pretraining, examples), settings.sham, verbose)
    return pretraining


def _report(net: PretrainingNet, steps_per_epoch: int, sham: bool, verbose: int) -> None:
    """Log the final loss; warn if it is near chance level, except in sham pretraining."""
    reasons = [row[held_out.DECAY_REASON] for row in net.history if held_out.DECAY_REASON in row]
    if verbose and reasons:
        text = (
            "Pretraining ended after %d steps: %s. Final held-out loss: %.3f times the "
            "chance-level loss (below 1 is better than chance)."
        )
        n_steps = len(net.history) * steps_per_epoch
        log.info(text, n_steps, reasons[0], training.loss_at_end(net.history))
    if not sham:
        training.warn_of_chance(net.history, steps_per_epoch)
    elif verbose:
        log.info(
            "Sham pretraining (each window has the targets of another window) finished. Its loss "
            "is expected to stay at chance level, because there is nothing to learn."
        )


_FROZEN_MESSAGE = (
    "The encoder is frozen (requires_grad is False for all weights), so it cannot be pretrained. "
    "Call encoder.requires_grad_(True) before pretraining, and freeze the encoder afterwards."
)


def _is_trainable(encoder: PatchEncoder) -> bool:
    return any(weights.requires_grad for weights in encoder.parameters())


def _check_can_be_trained(encoder: PatchEncoder) -> None:
    """Check that an encoder is not frozen, and that its weights are float32."""
    if not _is_trainable(encoder):
        raise ValueError(_FROZEN_MESSAGE)
    if wrong_dtypes := {weights.dtype for weights in encoder.parameters()} - {torch.float32}:
        raise ValueError(
            f"The encoder has weights of type {wrong_dtypes.pop()}, but pretraining requires "
            "weights of type torch.float32. Convert the encoder with encoder.float()."
        )


class RelativeLoss(skorch.callbacks.Callback):
    """skorch callback that records the relative loss of a pretext task (1 = chance level).

    The relative loss is the loss divided by the chance-level loss, which is the loss of the best
    prediction that ignores the signal
    (:meth:`~braindecode_pars.pretext.PretextTask.chance_loss`). Unlike the losses themselves,
    relative losses of different tasks and settings can be compared.

    Every :class:`PretrainingNet` has this callback. The callback adds the column
    ``train_loss_relative`` to the history of the net and, if a validation loss is computed, the
    column ``valid_loss_relative``. If the loss of the task consists of several parts
    (:meth:`~braindecode_pars.pretext.PretextTask.part_losses`), the callback also adds one column
    per part, such as ``train_loss_relative_mae``: the mean over the batches that contain this part.

    Attributes
    ----------
    chance_ : float
        Chance-level loss of the task.

    Examples
    --------
    >>> from braindecode_pars.pretext import PARS
    >>> from braindecode_pars.pretraining import PretrainingNet, RelativeLoss
    >>> task = PARS(n_times=600, patch_size=100, embed_dim=16, num_layers=1)
    >>> net = PretrainingNet(task, verbose=0).initialize()
    >>> isinstance(dict(net.callbacks_)["relative_loss"], RelativeLoss)
    True
    """

    def on_train_begin(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        self.chance_ = net.task_.chance_loss()

    def on_epoch_begin(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        self.sums_: dict[str, list[Any]] = {}

    def on_batch_end(
        self, net: skorch.NeuralNet, batch: Any, training: bool, y_pred: Any = None, **kwargs: Any
    ) -> None:
        with torch.no_grad():
            parts = net.task_.part_losses(*y_pred)
        size = skorch.dataset.get_len(batch[0])
        for name, loss in parts.items():
            key = f"{tables.RELATIVE}_{name}" if training else f"valid_loss_relative_{name}"
            total = self.sums_.setdefault(key, [0.0, 0])
            # The tensors stay on the device, because float() would make the CPU wait for the GPU.
            total[0] += loss.detach().nan_to_num() * size
            total[1] += loss.detach().isfinite() * size  # NaN if the part is not in the batch

    def on_epoch_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        for key, (total, size) in self.sums_.items():
            net.history.record(key, float(total / size))
        for name in ("train_loss", "valid_loss"):
            if name in net.history[-1]:
                net.history.record(f"{name}_relative", net.history[-1, name] / self.chance_)


class PretrainingNet(computing.TrainingNet):
    """skorch net that trains a pretext task.

    The module of the net is the pretext task. Its ``forward(x)`` returns ``(prediction, target)``,
    the two arguments of the criterion. The history also contains relative losses: the losses
    divided by ``chance_loss()`` of the task. In all other respects, the net is a standard skorch
    net. The learning rate is constant. To change it during training, add a learning rate schedule
    to the callbacks, such as :class:`~braindecode_pars.callbacks.WarmupCosine`.

    Parameters
    ----------
    module : PretextTask (class or instance)
        Pretext task. An instance is trained in place.
    criterion : type[nn.Module] | None
        Class of the loss function. If None, the attribute ``criterion`` of the task is used.
    optimizer : type[Optimizer]
        Class of the optimizer. The default is AdamW, as in the PARS paper, with weight decay only
        for the weights of linear layers. The betas are the defaults of PyTorch (0.9, 0.999),
        because the paper does not state them.
    lr, max_epochs, batch_size, train_split
        As in skorch. The default learning rate, number of epochs and batch size are the values of
        the paper (section 2.5). With the default ``train_split=None``, all windows are used for
        training, and no validation loss is computed.
    validation_seed : int
        Seed of all random choices in validation (channel, crop, patches and masks). The choices are
        the same in every epoch, so that the validation losses of different epochs are comparable.
    precision : "float32" | "bfloat16"
        Precision of the forward pass (torch autocast). Weights, gradients, optimizer state and
        losses are always float32.
    compile : bool
        Whether to compile the encoder and the decoder of the task with ``torch.compile``. The first
        steps then take up to a minute.
    **kwargs
        As in :class:`skorch.NeuralNet`.

    Attributes
    ----------
    history : skorch.history.History
        One row per epoch, with the columns of skorch and of :class:`RelativeLoss`.
    module_ : PretextTask
        The trained task. Use its ``encoder`` for fine-tuning.

    Raises
    ------
    KeyboardInterrupt
        In ``fit``, after Ctrl-C. The net keeps its current weights.
    ValueError
        In ``fit``, if the training loss is NaN or infinite, or if all weights are frozen.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.pretext import PARS
    >>> from braindecode_pars.pretraining import PretrainingNet
    >>> task = PARS(n_times=600, patch_size=100, embed_dim=16, num_layers=1)
    >>> net = PretrainingNet(task, max_epochs=2, batch_size=8, verbose=0)
    >>> signals = np.random.randn(16, 600).astype("float32")
    >>> net = net.fit(signals)
    >>> len(net.history[:, "train_loss_relative"])
    2
    """

    def __init__(
        self,
        module: Any,
        *,
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
        kwargs.setdefault("optimizer__param_groups", training.NO_DECAY)
        kwargs.setdefault("iterator_train__shuffle", True)
        self.validation_seed = validation_seed
        kwargs |= dict(criterion=criterion, optimizer=optimizer, lr=lr, max_epochs=max_epochs)
        super().__init__(module, batch_size=batch_size, train_split=train_split, **kwargs)

    @property
    def task_(self) -> Any:
        """The pretext task. Subclasses that wrap it in another module override this property."""
        return self.module_

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        if not _is_trainable(self.task_.encoder):  # frozen by a callback
            raise ValueError(_FROZEN_MESSAGE)
        return super().train_step(batch, **fit_params)

    @property
    def _default_callbacks(self) -> list[tuple[str, skorch.callbacks.Callback]]:
        # RelativeLoss reads the losses that skorch records, and print_log prints its columns.
        *recorders, print_log = super()._default_callbacks
        return [*recorders, ("relative_loss", RelativeLoss()), print_log]

    def initialize_criterion(self) -> PretrainingNet:
        criterion = self.criterion or self.module_.criterion
        self.criterion_ = self.initialized_instance(criterion, self.get_params_for("criterion"))
        return self

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> Any:
        loss = self.criterion_(*y_pred)
        # Sham pretraining uses the targets of other examples, so it skips a batch of one example.
        is_alone = self.task_.is_sham and X is not None and skorch.dataset.get_len(X) == 1
        return loss * 0.0 if is_alone else loss

    def infer(self, *args: Any, **kwargs: Any) -> Any:
        prediction, target = super().infer(*args, **kwargs)
        return prediction, self.task_.sham_target(target) if self.task_.is_sham else target

    def fit_loop(self, X: Any, y: Any = None, epochs: int | None = None, **kwargs: Any) -> Any:
        self.prepare_task(X, y)
        return super().fit_loop(X, y, epochs=epochs, **kwargs)

    def prepare_task(self, X: Any, y: Any = None) -> None:
        """Let the task compute statistics of training signals before the first training step."""
        self.task_.prepare(partial(self.draw_signals, X, y))

    def draw_signals(self, X: Any, y: Any, n: int) -> torch.Tensor:
        """Return random training signals, shape (n, n_times). Every call returns the same signals.

        Each window contributes the same number of signals. From a window with several channels, a
        signal is a crop of one random channel.
        """
        windows, _ = self.get_split_datasets(X, y)
        batches = self.draw_batches(windows, n)
        # The channels of an example are in random order, so the first channel is a random channel.
        return torch.cat([x["x"][:, 0] if isinstance(x, dict) else x for x in batches])

    def draw_batches(self, dataset: Any, n: int) -> list[Any]:
        """Return n random examples in batches. Every call returns the same examples."""
        with computing.seeded(_PREPARATION_SEED, self.compute_device):
            order = torch.randperm(len(dataset))
            subset = torch.utils.data.Subset(dataset, order[torch.arange(n) % len(order)].tolist())
            batches = self.get_iterator(subset, training=False)
            return [skorch.dataset.unpack_data(batch)[0] for batch in batches]

    def mean_loss(self, batches: list[Any]) -> float:
        """Return the mean loss of batches of equal size. Every call uses the same random draws."""
        with computing.seeded(self.validation_seed, self.compute_device):
            losses = [self.validation_step((batch, None))["loss"] for batch in batches]
            return torch.stack(losses).mean().item()

    def agreed(self, value: float) -> float:
        """Return ``value``. For distributed training, subclasses make it equal in all processes."""
        return value

    def run_single_epoch(self, iterator: Any, training: bool, *args: Any, **kwargs: Any) -> None:
        if training:
            return super().run_single_epoch(iterator, training, *args, **kwargs)
        # Validation uses the same random draws in every epoch.
        with computing.seeded(self.validation_seed, self.compute_device):
            return super().run_single_epoch(iterator, training, *args, **kwargs)
