"""The base class of pretext tasks, and their registry."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from braindecode_pars._common import checks, files
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.models import space_time
from braindecode_pars.tokens import instance_norm

__all__ = ["PRETEXT_TASKS", "AllChannelTask", "PretextTask", "make_task", "register"]

#: The registered pretext tasks by short name.
PRETEXT_TASKS: dict[str, type[PretextTask]] = {}

_RULES = dict(
    n_times=checks.integer(1),
    patch_size=checks.integer(1),
    encoder=checks.optional(checks.instance("a PatchEncoder", PatchEncoder)),
)


def register(name: str) -> Callable[[type[PretextTask]], type[PretextTask]]:
    """Register a task under a short name (a class decorator).

    Parameters
    ----------
    name : str
        Key in :data:`~braindecode_pars.pretext.PRETEXT_TASKS`, and the task's ``name``.

    Returns
    -------
    callable
        Decorator that registers the class and returns the same class. A task of your own may be in
        any file: the name is known once the file is imported, and ``"FILE.py:CLASS"`` imports it.

    Examples
    --------
    >>> from braindecode_pars.pretext import MAE, PRETEXT_TASKS
    >>> from braindecode_pars.pretext.base import register
    >>> @register("my-mae")
    ... class MyMAE(MAE):
    ...     pass
    >>> PRETEXT_TASKS["my-mae"] is MyMAE, MyMAE.name
    (True, 'my-mae')
    >>> _ = PRETEXT_TASKS.pop("my-mae")  # only an example
    """

    def decorate(task: type[PretextTask]) -> type[PretextTask]:
        PRETEXT_TASKS[name] = task
        task.name = name
        return task

    return decorate


def find_task(name: str) -> type[PretextTask]:
    """Return the class of a task, from its name or from its file.

    Parameters
    ----------
    name : str
        A name in :data:`~braindecode_pars.pretext.PRETEXT_TASKS`; or a file and a class in it, such
        as ``"my_task.py:Slope"``. The code of the file is run, and the class is registered.

    Raises
    ------
    ValueError
        For an unknown name, a missing file, a file without this class, and a class whose name is
        that of another task.
    """
    if name in PRETEXT_TASKS:
        return PRETEXT_TASKS[name]
    if not checks.names_file(name):
        known = ", ".join(repr(name) for name in sorted(PRETEXT_TASKS))
        raise ValueError(
            f"Unknown pretext task {name!r}; known are {known}. One of your own is FILE.py:CLASS."
        )
    file, _, wanted = name.rpartition(":")
    task = getattr(files.import_file(Path(file)), wanted, None)
    if not (isinstance(task, type) and issubclass(task, PretextTask)):
        raise ValueError(f"{file} has no class {wanted} that is a PretextTask.")
    if PRETEXT_TASKS.setdefault(task.name, task) is not task:
        raise ValueError(
            f"{wanted} has the name of another task, {task.name!r}; give it one: @register(...)."
        )
    return task


def own_tasks() -> dict[str, Any]:
    """Return the registered tasks that are not the package's, for :func:`know_tasks`.

    A task in a file by itself is FILE.py:CLASS, any other one its class.
    """
    tasks: dict[str, Any] = {}
    for name, task in PRETEXT_TASKS.items():
        if not task.__module__.startswith("braindecode_pars."):
            file = Path(getattr(sys.modules.get(task.__module__), "__file__", None) or "")
            is_alone = file.stem == task.__module__  # not a script, nor a module of a package
            tasks[name] = f"{file}:{task.__name__}" if is_alone else task
    return tasks


def know_tasks(tasks: Mapping[str, Any]) -> None:
    """Register the :func:`own_tasks` of another process; what is not found, no fit knows here."""
    for name in tasks.keys() - PRETEXT_TASKS.keys():
        task = tasks[name]
        with suppress(ValueError):
            PRETEXT_TASKS[name] = find_task(task) if isinstance(task, str) else task


class PretextTask(nn.Module):
    """Base class of the pretext tasks; a task takes one channel of EEG, or all of a window.

    A subclass implements :meth:`forward` and :meth:`chance_loss`, and sets :attr:`criterion`.
    It encodes patches with ``self.encoder``. Its other layers (heads, decoders, mask tokens)
    are discarded after pretraining; fine-tuning uses the encoder only.

    Parameters
    ----------
    n_times : int
        Number of samples in a signal.
    patch_size : int
        Number of samples in a patch.
    encoder : PatchEncoder | None
        Encoder to train in place. None builds one from ``encoder_arguments``.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder`.

    Attributes
    ----------
    encoder : PatchEncoder
        The encoder that fine-tuning starts from.

    Raises
    ------
    ValueError
        When the signal is shorter than a patch, or ``encoder`` has another patch size.
    TypeError
        When an argument has the wrong type, or an encoder is given together with arguments to
        build one.

    Examples
    --------
    A task that predicts whether a signal is reversed in time:

    >>> import math
    >>> import torch
    >>> from torch import nn
    >>> from braindecode_pars.pretext import PretextTask
    >>> from braindecode_pars.tokens import grid_patches
    >>> class Reversal(PretextTask):
    ...     criterion = nn.BCEWithLogitsLoss
    ...
    ...     def __init__(self, n_times, patch_size=200, *, encoder=None, **sizes):
    ...         super().__init__(n_times, patch_size, encoder=encoder, **sizes)
    ...         self.head = nn.Linear(self.encoder.embed_dim, 1)
    ...
    ...     def forward(self, x):
    ...         x = self.normalized(x)
    ...         backwards = torch.rand(len(x), 1, device=x.device) < 0.5
    ...         x = torch.where(backwards, x.flip(-1), x)
    ...         tokens = self.encoder.tokenize(grid_patches(x, self.patch_size))
    ...         logits = self.head(self.encoder(tokens).mean(dim=1))
    ...         return logits, backwards.float()
    ...
    ...     def chance_loss(self):
    ...         return math.log(2)
    >>> task = Reversal(3000, 100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 3000))
    >>> prediction.shape, target.shape, task.name
    (torch.Size([2, 1]), torch.Size([2, 1]), 'reversal')
    """

    #: Short name of the task: its key in :data:`~braindecode_pars.pretext.PRETEXT_TASKS`. An
    #: unregistered task has the name of its class in lower case.
    name: ClassVar[str]

    #: Kind of the encoder that is trained; ``"space_time"`` by an :class:`AllChannelTask`.
    encoder_kind: ClassVar[str] = "patch"

    #: Arguments that replace those of the paper in the defaults of the estimators, which are made
    #: for minutes on a CPU and tens of subjects.
    short_params: ClassVar[Mapping[str, Any]] = {}

    #: Whether the task is a sham, see :meth:`sham_target`.
    is_sham = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = cls.__name__.lower()

    @property
    def criterion(self) -> Callable[[], nn.Module]:
        """Class or constructor of the loss between ``prediction`` and ``target``."""
        raise NotImplementedError(f"{type(self).__name__} must set criterion, a class of losses.")

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        encoder: PatchEncoder | None = None,
        **encoder_arguments: Any,
    ):
        super().__init__()
        checks.check_parameters(locals(), _RULES, type(self).__name__)
        if n_times < patch_size:
            raise ValueError(
                f"A window of {n_times} samples is shorter than one patch of {patch_size} "
                "samples; use longer windows or a shorter patch."
            )

        # Either build an encoder or check the given one.
        if encoder is None:
            params = {"patch_size": patch_size, **encoder_arguments}
            encoder = space_time.build_encoder(self.encoder_kind, **params)
        elif encoder_arguments:
            raise TypeError(
                f"An encoder was given, so {', '.join(sorted(encoder_arguments))} would have no "
                "effect; pass either the encoder or these arguments."
            )
        elif encoder.patch_size != patch_size:
            raise ValueError(
                f"The encoder has patches of {encoder.patch_size} samples, the task {patch_size}."
            )
        PretextTask.use_encoder(self, encoder)  # a subclass may replace that of its parts, too
        # Python's own integers, for code that writes them to JSON.
        self.n_times = int(n_times)
        self.patch_size = int(patch_size)
        #: Name of the task in progress bars and overviews.
        self.shown_name = type(self).__name__

    def normalized(self, x: Tensor) -> Tensor:
        """Return the signals after instance normalization, the first stage of every task.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Signals in any unit.

        Returns
        -------
        Tensor, shape (batch, n_times)
            Output of :func:`~braindecode_pars.tokens.instance_norm`.

        Raises
        ------
        TypeError
            When ``x`` is not a tensor.
        ValueError
            When ``x`` has another shape than the task was built for.
        """
        self.check_signals(x)
        return instance_norm(x)

    def check_signals(self, x: Tensor) -> None:
        """Check that signals are a tensor of the shape that the task was built for."""
        if not isinstance(x, Tensor):
            raise TypeError(f"x is a {type(x).__name__}; a pretext task takes a torch tensor.")
        if x.ndim != 2 or x.shape[1] != self.n_times:
            raise ValueError(
                f"x has shape {tuple(x.shape)}; this {type(self).__name__} was built for single "
                f"channels, shape (batch, {self.n_times})."
            )

    def forward(self, x: Tensor) -> tuple[Any, Any]:
        """Return the predictions of the task and their targets.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Signals in any unit.

        Returns
        -------
        prediction, target : Tensor
            Arguments of :attr:`criterion`, in the shapes that it takes.

        Notes
        -----
        Draw random numbers with torch's functions, on the device of ``x``. On CUDA, a compiled
        training step is recorded and replayed: other draws would be the same in every step.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement forward(x).")

    def chance_loss(self) -> float:
        """Return the loss of the best prediction that ignores the signal.

        Returns
        -------
        float
            Value of :attr:`criterion`. Losses are reported relative to it.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement chance_loss().")

    def part_losses(self, prediction: Any, target: Any) -> dict[str, Tensor]:
        """Return the losses of parts of the prediction, relative to chance, for the log.

        Parameters
        ----------
        prediction, target
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar losses by the name of the part; NaN for a part that is not in this batch. The
            default is an empty dict.
        """
        return {}

    def become_sham(self) -> None:
        """Make the task, and all parts of a joint task, a sham, see :meth:`sham_target`."""
        for part in self.modules():
            if isinstance(part, PretextTask):
                part.is_sham = True

    def sham_target(self, target: Any) -> Any:
        """Return the targets of a sham pretraining, in which nothing can be learned.

        The target of each example becomes that of the previous example in the batch, so that
        signals and targets are unrelated; everything else stays equal.

        Parameters
        ----------
        target : Tensor, shape (batch, ...)
            Targets from :meth:`forward`. A task whose targets have another form, or are the same
            for all examples, overrides this method.

        Returns
        -------
        Tensor, shape (batch, ...)
            Targets of other examples.
        """
        return target.roll(1, dims=0)

    def prepare(self, draw: Callable[[int], Tensor]) -> None:
        """Measure the signals before the first step, where a task needs it; the default is nothing.

        What is measured belongs into buffers, so that it is saved and a resumed run continues with
        it.

        Parameters
        ----------
        draw : callable
            Function of a number n that returns random training signals, shape (n, n_times), on any
            device. Its draws change no other ones, and a second call returns the same signals.
        """

    def use_encoder(self, encoder: PatchEncoder) -> None:
        """Replace the encoder; the task then trains the new one in place.

        Parameters
        ----------
        encoder : PatchEncoder
            Encoder with the same patch size and token size as the current one.

        Raises
        ------
        ValueError
            For an encoder of single channels, when the task compares channels.
        """
        wanted = space_time.SpaceTimeEncoder
        if self.encoder_kind == space_time.SPACE_TIME and not isinstance(encoder, wanted):
            raise ValueError(
                f"{type(self).__name__} compares channels, and trains a SpaceTimeEncoder; a "
                f"{type(encoder).__name__} sees one channel. Use a task of single channels for it."
            )
        self.encoder = encoder


class AllChannelTask(PretextTask):
    """Base class of tasks on all channels of a window, which train a SpaceTimeEncoder.

    Parameters
    ----------
    n_times, patch_size, encoder, **encoder_arguments
        As in :class:`PretextTask`. The encoder is a
        :class:`~braindecode_pars.models.SpaceTimeEncoder`.

    Raises
    ------
    TypeError, ValueError
        As :class:`PretextTask`. Also for an encoder of single channels.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import AllChannelTask
    >>> task = AllChannelTask(n_times=1000, patch_size=100, embed_dim=32, num_layers=1)
    >>> x, positions, keep = task.windows(torch.randn(2, 19, 1000))
    >>> positions.shape, keep.shape
    (torch.Size([2, 19, 3]), torch.Size([2, 19]))
    """

    encoder: space_time.SpaceTimeEncoder
    encoder_kind = space_time.SPACE_TIME

    def windows(
        self, x: Tensor, positions: Tensor | None = None, keep: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return windows, positions and mask, complete.

        Parameters
        ----------
        x : Tensor, shape (batch, n_chans, n_times)
            Windows in any unit.
        positions : Tensor, shape (batch, n_chans, 3) | None
            Electrode positions in meters in the head frame; NaN where unknown. None: all are.
        keep : Tensor of bool, shape (batch, n_chans) | None
            Mask that is False for missing channels. None keeps all.

        Returns
        -------
        x, positions, keep : Tensor
            The same; missing channels are zero.

        Raises
        ------
        ValueError
            When ``x`` has another shape than the task was built for.
        """
        if not isinstance(x, Tensor) or x.ndim != 3 or x.shape[-1] != self.n_times:
            raise ValueError(
                f"x has shape {tuple(getattr(x, 'shape', ()))}; this {type(self).__name__} was "
                f"built for windows, shape (batch, n_chans, {self.n_times})."
            )
        if keep is None:
            keep = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        if positions is None:
            positions = x.new_full((*x.shape[:2], 3), torch.nan)
        return x.masked_fill(~keep[..., None], 0.0), positions, keep  # they may contain NaN


def weights_of(keep: Tensor) -> Tensor:
    r"""Return factors of predictions and targets that leave missing channels out of a mean square.

    The mean over all channels of the squared products is that over the channels that are there.
    There is no choice of rows, for which the CPU would wait for a GPU.

    Parameters
    ----------
    keep : Tensor of bool, shape (batch, n_chans)
        Mask that is False for missing channels.

    Returns
    -------
    Tensor of float32, shape (batch, n_chans)
        :math:`\sqrt{N / n}` for each of the n channels of N that are there, 0 for the others.
    """
    return keep * (keep.numel() / keep.sum().clamp(min=1)).sqrt()


def encoder_kind_of(task: Any) -> str:
    """Return the kind of the encoder that a task trains, given as in :func:`make_task`."""
    resolved_task = find_task(task) if isinstance(task, str) else task
    return getattr(resolved_task, "encoder_kind", PretextTask.encoder_kind)


def params_of(task: Any, task_params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of a task in an estimator: ``short_params``, then ``task_params``.

    A task that is an instance has its arguments already.
    """
    resolved_task: Any = find_task(task) if isinstance(task, str) else task
    short = getattr(resolved_task, "short_params", {}) if isinstance(resolved_task, type) else {}
    return {**short, **(task_params or {})}


def make_task(
    task: str | type[PretextTask] | PretextTask,
    *,
    n_times: int,
    encoder: PatchEncoder,
    task_params: Mapping[str, Any] | None = None,
    sfreq: float | None = None,
) -> PretextTask:
    """Return a task that trains ``encoder`` in place.

    Parameters
    ----------
    task : str | type[PretextTask] | PretextTask
        A name in :data:`~braindecode_pars.pretext.PRETEXT_TASKS`, a class, or an instance; or a
        file and a class in it, ``"my_task.py:Slope"``, whose code is run. An instance keeps its own
        ``n_times`` and settings. It is copied, and the copy uses ``encoder``. An instance that uses
        this encoder already is not copied.
    n_times : int
        Number of samples in a window.
    encoder : PatchEncoder
        Encoder to train in place; it is never copied.
    task_params : dict | None
        Further arguments of the task.
    sfreq : float | None
        Sampling rate of the windows in Hz, for a task that has this argument; None when unknown.

    Returns
    -------
    PretextTask
        Task with ``encoder`` as its encoder.

    Raises
    ------
    ValueError
        For an unknown name (the message lists the known names), an instance that does not fit the
        encoder or the windows, or a task for another sampling rate.
    TypeError
        For an argument that the task does not have, or for anything that is not a task.

    Examples
    --------
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.pretext import make_task
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> params = {"mask_ratio": 0.7}
    >>> task = make_task("mae", n_times=3000, encoder=encoder, task_params=params)
    >>> task.name, task.n_masked, task.encoder is encoder
    ('mae', 21, True)
    """
    kind = checks.instance("a dict of arguments, or None", Mapping, NoneType)
    kind.check("task_params", task_params)
    checks.instance("a PatchEncoder", PatchEncoder).check("encoder", encoder)
    task_params = dict(task_params or {})

    # A name or a class: build the task.
    if isinstance(task, str):
        task = find_task(task)
    if isinstance(task, type) and issubclass(task, PretextTask):
        # A task passes unknown parameters to its encoder, so the message would name the encoder.
        parameters = inspect.signature(task).parameters.values()
        accepted = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - {"encoder"}
        if unknown := sorted(set(task_params) - accepted):
            raise TypeError(
                f"{task.__name__} has no parameter {', '.join(map(repr, unknown))}; it takes "
                f"{', '.join(sorted(accepted)) or 'none'}."
            )
        if "sfreq" in accepted and sfreq is not None:
            task_params = {"sfreq": sfreq, **task_params}
        task = task(n_times, encoder.patch_size, encoder=encoder, **task_params)
    elif not isinstance(task, PretextTask):
        raise TypeError(
            "A pretext task is a name, or a class or instance of PretextTask; got "
            f"{type(task).__name__}."
        )
    elif task_params:
        raise TypeError(
            f"Pass {', '.join(sorted(task_params))} to the constructor: the task is an instance."
        )

    # Check that an instance fits the encoder and the windows.
    patch_size, embed_dim = task.encoder.patch_size, task.encoder.embed_dim
    if (patch_size, embed_dim) != (encoder.patch_size, encoder.embed_dim):
        raise ValueError(
            f"The instance has patches of {patch_size} samples, {embed_dim} features, the "
            f"encoder {encoder.patch_size}, {encoder.embed_dim}; build it with the same sizes."
        )
    if task.n_times > n_times:
        raise ValueError(
            f"The task takes signals of {task.n_times} samples; the windows have only {n_times}."
        )
    remedy = "resample them, or leave sfreq out of the arguments of the task"
    expected = getattr(task, "sfreq", None)
    checks.check_same_rate(
        sfreq, expected, "The windows are", f"{type(task).__name__} works", remedy
    )

    # The copy leaves the user's instance unchanged.
    if task.encoder is encoder:
        return task
    task = copy.deepcopy(task)
    task.use_encoder(encoder)
    return task
