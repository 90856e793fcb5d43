"""Pretraining of an encoder: the function that pretrains, and its skorch net."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from numbers import Integral
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

#: Argument of :func:`pretrain_encoder` -> rule. The task and the net check the others.
_RULES = dict(
    encoder=checks.instance("a PatchEncoder", PatchEncoder),
    settings=checks.optional(checks.instance("a PretrainingSettings", PretrainingSettings)),
    n_times=checks.optional(checks.integer(1)),
    sfreq=checks.optional(checks.positive()),
    callbacks=checks.optional(checks.instance("a list of skorch callbacks", list, tuple)),
    seed=checks.optional(checks.integer(0)),
    first_epoch=checks.integer(0),
    verbose=checks.instance("an integer", Integral, bool),
)

#: Seed of the signals that a task measures before the first step.
_FIRST_PASS = 1

#: History column -> name in the progress bar. Columns that the history lacks are not shown.
_SHOWN = {
    tables.RELATIVE: "loss/chance",
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
    """Pretrain an encoder in place, without labels (section 2).

    The callback :class:`~braindecode_pars.callbacks.Pretraining`, the estimators and
    :func:`runs.pretrain <braindecode_pars.runs.pretrain>` all call this function.

    Parameters
    ----------
    encoder : PatchEncoder
        Encoder that is trained in place.
    windows : torch Dataset | SignalStore | list of these
        Windows of one or several corpora, as in
        :class:`~braindecode_pars.windows.SingleChannelWindows`, or a SingleChannelWindows. A task
        that compares channels is given an :class:`~braindecode_pars.windows.AllChannelWindows`.
    settings : PretrainingSettings | None
        Pretext task, epochs, learning rate and so on; None uses the defaults.
    n_times : int | None
        Number of samples in a random crop. With None, the length of the first window of each
        corpus is read, and the shortest of these is used.
    sfreq : float | None
        Sampling rate in Hz of windows that do not know theirs, for tasks that need it.
    held_out_windows : as windows
        Windows of other subjects, for the held-out loss that decides on the length of a training
        without ``epochs``. If None, windows of a tenth of the subjects are held out.
    callbacks : list of skorch callbacks | None
        Further callbacks of the net.
    on_end : callable | None
        Function that is called with the net when training ends, also after Ctrl-C.
    seed : int | None
        Seed of all random draws. It leaves the random state of the caller unchanged. With None, the
        draws come from the global generator of torch.
    first_epoch : int
        Number of epochs that are already trained, when a run resumes. The schedule and the
        progress bar continue from this epoch.
    verbose : int
        Verbosity: 0 prints nothing, 1 shows a progress bar.
    net : callable | None
        Class or function that builds the net from the task and the settings. None builds a
        :class:`PretrainingNet`.

    Returns
    -------
    PretrainingNet
        The trained net, with ``net.history`` and the task in ``net.task_``.

    Raises
    ------
    TypeError, ValueError
        When an argument has the wrong type or is out of range; when the encoder is frozen, or not
        of single precision; when the task does not fit the windows or the encoder, as in
        :func:`~braindecode_pars.pretext.make_task`; when a window contains NaN, or the loss becomes
        NaN.
    KeyboardInterrupt
        After Ctrl-C. ``encoder`` keeps the weights trained so far.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        When the held-out loss, or else the mean training loss of the last tenth of the epochs, is
        above .98 of the loss at chance. A sham pretraining gives no warning.

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
    takes_all = encoder_kind_of(settings.task) == SPACE_TIME
    examples_of = AllChannelWindows if takes_all else SingleChannelWindows
    examples: Any = windows if is_ready else examples_of(windows, n_times)
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
        if not is_ready and task.n_times != examples.n_times:  # the task may use shorter crops
            examples = examples_of(windows, task.n_times)

        # Collect the callbacks.
        options: dict[str, Any] = {}
        all_callbacks: list = [*(callbacks or [])]
        if verbose:
            title = f"{'sham ' * settings.sham}pretraining ({task.shown_name})"
            all_callbacks.append(training.ProgressLine(title, _SHOWN, first_epoch))
        if settings.epochs is not None:
            all_callbacks.insert(0, training.WarmupCosine(settings.warmup, first_epoch=first_epoch))
        else:
            if held_out_windows is None:
                examples, held_out_windows = held_out.split_held_out(examples, seed)
            elif not is_ready:
                held_out_windows = examples_of(held_out_windows, task.n_times)
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
            # The progress bar replaces the printed table.
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
            interrupted = "Pretraining was interrupted in epoch %d; the encoder keeps its weights."
            log.warning(interrupted, len(pretraining.history))
            raise
        on_end(pretraining)
        training.mark_restored_epoch(pretraining)
        _report(pretraining, training.steps_in_epoch(pretraining, examples), settings.sham, verbose)
    return pretraining


def _report(net: PretrainingNet, steps_per_epoch: int, sham: bool, verbose: int) -> None:
    """Log how pretraining ended; warn if it has not learned, unless that is meant."""
    reasons = [row[held_out.DECAY_REASON] for row in net.history if held_out.DECAY_REASON in row]
    if verbose and reasons:
        text = "Pretraining ended after %d steps: %s. Held-out loss relative to chance: %.3f."
        n_steps = len(net.history) * steps_per_epoch
        log.info(text, n_steps, reasons[0], training.loss_at_end(net.history))
    if not sham:
        training.warn_of_chance(net.history, steps_per_epoch)
    elif verbose:
        log.info("Sham pretraining: the loss stays at chance level, as intended.")


_FROZEN = (
    "The encoder is frozen: none of its weights takes gradients. Call encoder.requires_grad_(True) "
    "before pretraining, and freeze it afterwards."
)


def _takes_gradients(encoder: PatchEncoder) -> bool:
    return any(weights.requires_grad for weights in encoder.parameters())


def _check_can_be_trained(encoder: PatchEncoder) -> None:
    """Check that an encoder takes gradients, and has finite weights of single precision."""
    if not _takes_gradients(encoder):
        raise ValueError(_FROZEN)
    all_weights = list(encoder.parameters())
    if other := {weights.dtype for weights in all_weights} - {torch.float32}:
        raise ValueError(f"The encoder has weights of {other.pop()}; pass encoder.float().")
    if any(weights.is_inference() for weights in all_weights):
        raise ValueError(
            "The encoder was made inside torch.inference_mode(), so that it cannot be trained; "
            "make it outside, or copy it there with copy.deepcopy."
        )
    if any(weights.is_meta or not weights.isfinite().all() for weights in all_weights):
        raise ValueError(
            "The encoder has weights that are NaN, infinite, or on the device 'meta', which stores "
            "none; make it anew."
        )


def signals_of(examples: Any) -> torch.Tensor:
    """Return a signal of each example, shape (n, n_times); of several channels, a random one."""
    return examples["x"][:, 0] if isinstance(examples, dict) else examples  # in random order


class RelativeLoss(skorch.callbacks.Callback):
    """Record the loss relative to chance: 1 is the chance level.

    Raw losses of different tasks and settings cannot be compared; relative losses can. The loss
    at chance is :meth:`~braindecode_pars.pretext.PretextTask.chance_loss` of the task.

    This callback adds ``train_loss_relative`` and ``valid_loss_relative`` to the history of a
    :class:`PretrainingNet`, which always has this callback. If the task has
    :meth:`~braindecode_pars.pretext.PretextTask.part_losses`, it also adds one column per part,
    such as ``train_loss_relative_mae``: the mean over the batches that have this part.

    Attributes
    ----------
    chance_ : float
        Loss of the task at chance.

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
        part_losses: Any = getattr(net.task_, "part_losses", lambda *_: {})
        with torch.no_grad():
            parts = part_losses(*y_pred)
        size = skorch.dataset.get_len(batch[0])
        for name, loss in parts.items():
            key = f"{tables.RELATIVE}_{name}" if training else f"valid_loss_relative_{name}"
            total = self.sums_.setdefault(key, [0.0, 0])
            # Tensors stay on the device; float() would wait for a GPU.
            total[0] += loss.detach().nan_to_num() * size
            total[1] += loss.detach().isfinite() * size  # NaN where the batch lacks the part

    def on_epoch_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        for key, (total, size) in self.sums_.items():
            net.history.record(key, float(total / size))
        for name in ("train_loss", "valid_loss"):
            if name in net.history[-1]:
                net.history.record(f"{name}_relative", net.history[-1, name] / self.chance_)


class PretrainingNet(computing.TrainingNet):
    """A skorch net for pretext tasks.

    ``forward(x)`` of the module returns ``(prediction, target)``, the two arguments of the
    criterion. ``chance_loss()`` of the module is the reference of the relative losses. Everything
    else is as in skorch. The learning rate is constant, unless the callbacks contain a schedule
    such as :class:`~braindecode_pars.callbacks.WarmupCosine`.

    Parameters
    ----------
    module : PretextTask (class or instance)
        Pretext task. An instance is trained in place.
    criterion : type[nn.Module] | None
        Loss function. None uses the criterion of the task.
    optimizer : type[Optimizer]
        Class of the optimizer. The default is AdamW, as in the paper, with weight decay on linear
        weights only. The betas are PyTorch's (0.9, 0.999); the paper does not give them.
    lr, max_epochs, batch_size, train_split
        As in skorch. The default learning rate, number of epochs and batch size are those of the
        paper (section 2.5). The default ``train_split=None`` means no internal validation.
    validation_seed : int
        Seed of the random draws of validation (channel, crop, patches, masks). Every epoch uses
        the same draws, so that validation losses can be compared between epochs.
    precision, compile
        As in :class:`~braindecode_pars._common.computing.TrainingNet`.
    **kwargs
        As in :class:`skorch.NeuralNet`.

    Attributes
    ----------
    history : skorch.history.History
        One row per epoch, with the columns of skorch and of :class:`RelativeLoss`.
    module_ : PretextTask
        Trained task. Its ``encoder`` is used for fine-tuning.

    Raises
    ------
    KeyboardInterrupt, ValueError
        From ``fit``, as in :class:`~braindecode_pars._common.computing.TrainingNet`.

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
        """The pretext task. Subclasses that train it inside a wrapper override this property."""
        return self.module_

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        if not _takes_gradients(self.task_.encoder):  # frozen by a callback
            raise ValueError(_FROZEN)
        return super().train_step(batch, **fit_params)

    @property
    def _default_callbacks(self) -> list[tuple[str, skorch.callbacks.Callback]]:
        # RelativeLoss needs the losses that skorch records, and print_log prints its columns.
        *recorders, print_log = super()._default_callbacks
        return [*recorders, ("relative_loss", RelativeLoss()), print_log]

    def initialize_criterion(self) -> PretrainingNet:
        criterion = self.criterion or self.module_.criterion
        self.criterion_ = self.initialized_instance(criterion, self.get_params_for("criterion"))
        return self

    def get_loss(
        self,
        y_pred: tuple[torch.Tensor, torch.Tensor],
        y_true: Any,
        X: Any = None,
        training: bool = False,
    ) -> torch.Tensor:
        loss = self.criterion_(*y_pred)
        # A sham learns nothing from a batch without another example.
        is_alone = self._is_sham and X is not None and skorch.dataset.get_len(X) == 1
        return loss * 0.0 if is_alone else loss

    @property
    def _is_sham(self) -> bool:
        return getattr(self.task_, "is_sham", False)

    def infer(self, *args: Any, **kwargs: Any) -> Any:
        prediction, target = super().infer(*args, **kwargs)
        return prediction, self.task_.sham_target(target) if self._is_sham else target

    def fit_loop(self, X: Any, y: Any = None, epochs: int | None = None, **kwargs: Any) -> Any:
        self.prepare_task(X, y)
        return super().fit_loop(X, y, epochs=epochs, **kwargs)

    def prepare_task(self, X: Any, y: Any = None) -> None:
        """Let the task measure signals before the first step."""
        getattr(self.task_, "prepare", skorch.utils.noop)(partial(self.draw_signals, X, y))

    def draw_signals(self, X: Any, y: Any, n: int) -> torch.Tensor:
        """Return random training signals, shape (n, n_times), the same in every call.

        Each window gives as many as the others; of windows of several channels, these are crops.
        """
        windows, _ = self.get_split_datasets(X, y)
        return torch.cat([signals_of(batch) for batch in self.draw_batches(windows, n)])

    def draw_batches(self, dataset: Any, n: int) -> list[Any]:
        """Return n random examples in batches, the same in every call."""
        with computing.seeded(_FIRST_PASS, self.compute_device):
            order = torch.randperm(len(dataset))
            part = torch.utils.data.Subset(dataset, order[torch.arange(n) % len(order)].tolist())
            batches = self.get_iterator(part, training=False)
            return [skorch.dataset.unpack_data(batch)[0] for batch in batches]

    def mean_loss(self, batches: list[Any]) -> float:
        """Return the mean loss of batches of one size, with the same random draws in every call."""
        with computing.seeded(self.validation_seed, self.compute_device):
            losses = [self.validation_step((batch, None))["loss"] for batch in batches]
            return torch.stack(losses).mean().item()

    def agreed(self, value: float) -> float:
        """Return a value on which all processes of a training agree."""
        return value

    def run_single_epoch(self, iterator: Any, training: bool, *args: Any, **kwargs: Any) -> None:
        if training:
            return super().run_single_epoch(iterator, training, *args, **kwargs)
        # Validation has the same random draws in every epoch.
        with computing.seeded(self.validation_seed, self.compute_device):
            return super().run_single_epoch(iterator, training, *args, **kwargs)
