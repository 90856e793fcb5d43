"""Base classes and registry of pretext tasks."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from braindecode_pars._common import checks, files
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.models import space_time
from braindecode_pars.tokens import instance_norm

__all__ = ["PRETEXT_TASKS", "AllChannelTask", "PretextTask", "make_task", "register"]

#: Registered pretext tasks: short name -> class.
PRETEXT_TASKS: dict[str, type[PretextTask]] = {}

_RULES = dict(
    n_times=checks.integer(1),
    patch_size=checks.integer(1),
    encoder=checks.optional(checks.instance("a PatchEncoder", PatchEncoder)),
)


def register(name: str) -> Callable[[type[PretextTask]], type[PretextTask]]:
    """Class decorator that registers a custom pretext task, so that it can be passed by name.

    Parameters
    ----------
    name : str
        Short name of the task: its key in :data:`~braindecode_pars.pretext.PRETEXT_TASKS` and its
        attribute ``name``.

    Returns
    -------
    callable
        Decorator that registers the class and returns it unchanged.

    Notes
    -----
    A custom task may be defined in any Python file. After you have imported this file, you can pass
    the short name of the task, for example ``PARSClassifier(pretext="my-mae")``. Alternatively,
    pass the file and the class, for example ``PARSClassifier(pretext="my_task.py:MyMAE")``; the
    estimator then imports the file.

    Examples
    --------
    >>> from braindecode_pars.pretext import MAE, PRETEXT_TASKS
    >>> from braindecode_pars.pretext.base import register
    >>> @register("my-mae")
    ... class MyMAE(MAE):
    ...     pass
    >>> PRETEXT_TASKS["my-mae"] is MyMAE, MyMAE.name
    (True, 'my-mae')
    >>> _ = PRETEXT_TASKS.pop("my-mae")  # remove the example again
    """

    def decorate(task: type[PretextTask]) -> type[PretextTask]:
        PRETEXT_TASKS[name] = task
        task.name = name
        return task

    return decorate


def find_task(name: str) -> type[PretextTask]:
    """Return the class of a pretext task, from its name or its file.

    Parameters
    ----------
    name : str
        A name in :data:`~braindecode_pars.pretext.PRETEXT_TASKS`, or a Python file and the name of
        a class in this file, such as ``"my_task.py:Slope"``. The file is then imported (its code is
        executed), and the class is registered.

    Raises
    ------
    ValueError
        If the name is unknown, the file or its class does not exist, or another task is registered
        under the same name.
    """
    if name in PRETEXT_TASKS:
        return PRETEXT_TASKS[name]
    if not checks.names_file(name):
        names = ", ".join(repr(name) for name in sorted(PRETEXT_TASKS))
        raise ValueError(
            f"Unknown pretext task {name!r}. Use one of {names}. For a custom task, pass the file "
            "and the class, such as 'my_task.py:MyTask'."
        )
    file, _, class_name = name.rpartition(":")
    task = getattr(files.import_file(Path(file)), class_name, None)
    if not (isinstance(task, type) and issubclass(task, PretextTask)):
        raise ValueError(
            f"{file} contains no class {class_name} that is a subclass of PretextTask. Correct the "
            "name of the class after the colon, or define this class as a subclass of PretextTask."
        )
    if PRETEXT_TASKS.setdefault(task.name, task) is not task:
        raise ValueError(
            f"The class {class_name} in {file} has the task name {task.name!r}, which is already "
            "the name of another pretext task. Choose a different name with the decorator "
            "@register(NAME)."
        )
    return task


def custom_tasks() -> dict[str, Any]:
    """Return the registered tasks that are not part of the package, for :func:`register_tasks`.

    Returns
    -------
    dict of str to (str | type)
        Maps the name of each task to its class. If the file of the class can be imported on its own
        (it is neither a script nor part of a Python package), the value is a text with the file and
        the class instead, such as ``"my_task.py:Slope"``.
    """
    tasks: dict[str, Any] = {}
    for name, task in PRETEXT_TASKS.items():
        if not task.__module__.startswith("braindecode_pars."):
            file = Path(getattr(sys.modules.get(task.__module__), "__file__", None) or "")
            # The file is neither a script nor a module of a package.
            is_alone = file.stem == task.__module__
            tasks[name] = f"{file}:{task.__name__}" if is_alone else task
    return tasks


def register_tasks(tasks: Mapping[str, Any]) -> None:
    """Register the :func:`custom_tasks` of another process in this process.

    Tasks whose file is not available to this process are skipped.
    """
    for name in tasks.keys() - PRETEXT_TASKS.keys():
        task = tasks[name]
        with suppress(ValueError):
            PRETEXT_TASKS[name] = find_task(task) if isinstance(task, str) else task


class PretextTask(nn.Module):
    """Base class of pretext tasks for self-supervised pretraining on single channels.

    Inherit from this class to write a custom pretext task. The subclass implements :meth:`forward`
    and :meth:`chance_loss`, sets :attr:`criterion`, and encodes patches with ``self.encoder``. All
    other layers of the task (heads, decoders, mask tokens) are discarded after pretraining; only
    the encoder is used for fine-tuning. Tasks on all channels of a window inherit from
    :class:`AllChannelTask`.

    Parameters
    ----------
    n_times : int
        Number of samples in a crop (the random segment of a window that is one training example).
    patch_size : int
        Number of samples in a patch (a short segment that the encoder represents by one vector).
    encoder : PatchEncoder | None
        Encoder to train in place. If None, a new encoder is built from ``encoder_arguments``.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder`, used if ``encoder`` is None.

    Attributes
    ----------
    encoder : PatchEncoder
        The encoder, which is used for fine-tuning after pretraining.

    Raises
    ------
    ValueError
        If the crop is shorter than a patch, or ``patch_size`` differs from the patch size of
        ``encoder``.
    TypeError
        If an argument has the wrong type, or ``encoder`` is combined with
        ``encoder_arguments``.

    Examples
    --------
    A pretext task that predicts whether a signal was reversed in time:

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

    #: Short name of the task. If the task is registered, this is its key in
    #: :data:`~braindecode_pars.pretext.PRETEXT_TASKS`, and otherwise the class name in lower case.
    name: ClassVar[str]

    #: Kind of the encoder: ``"patch"`` (single channels), or ``"space_time"`` (all channels) in an
    #: :class:`AllChannelTask`.
    encoder_kind: ClassVar[str] = "patch"

    #: Arguments that the estimators pass to the task by default, if they differ from the defaults
    #: of the class. They suit short pretraining: minutes on a CPU, with tens of subjects.
    short_params: ClassVar[Mapping[str, Any]] = {}

    #: Whether the targets are permuted (sham pretraining), so that there is nothing to learn; see
    #: :meth:`sham_target`.
    is_sham = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = cls.__name__.lower()

    @property
    def criterion(self) -> Callable[[], nn.Module]:
        """Class of the loss between ``prediction`` and ``target``, or function that builds it."""
        raise NotImplementedError(
            f"{type(self).__name__} must set the attribute criterion to the class of its loss, "
            "such as torch.nn.MSELoss."
        )

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
                f"The windows have {n_times} samples, but one patch has {patch_size} samples. Use "
                "longer windows or shorter patches."
            )

        # Build an encoder, or check the encoder that was passed.
        if encoder is None:
            params = {"patch_size": patch_size, **encoder_arguments}
            encoder = space_time.build_encoder(self.encoder_kind, **params)
        elif encoder_arguments:
            raise TypeError(
                "encoder cannot be combined with arguments that build a new encoder "
                f"({', '.join(sorted(encoder_arguments))}). Pass either encoder or these arguments."
            )
        elif encoder.patch_size != patch_size:
            raise ValueError(
                f"The encoder was built for patches of {encoder.patch_size} samples, got "
                f"patch_size={patch_size}. Pass patch_size={encoder.patch_size}."
            )
        # The method of a subclass is not called, because it may also replace the encoder in parts
        # of the task that do not exist yet.
        PretextTask.use_encoder(self, encoder)
        # These are converted to Python integers, because NumPy integers cannot be written to JSON.
        self.n_times = int(n_times)
        self.patch_size = int(patch_size)
        #: Name of the task in progress bars and summaries.
        self.shown_name = type(self).__name__

    def normalized(self, x: Tensor) -> Tensor:
        """Normalize single-channel crops, the first step of every task.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Single-channel crops, in any unit.

        Returns
        -------
        Tensor, shape (batch, n_times)
            Output of :func:`~braindecode_pars.tokens.instance_norm`.

        Raises
        ------
        ValueError
            If the shape of ``x`` is not the shape that the task was built for.
        """
        if x.ndim != 2 or x.shape[1] != self.n_times:
            raise ValueError(
                f"x has shape {tuple(x.shape)}, but this {type(self).__name__} was built for "
                f"single-channel crops of shape (batch, {self.n_times}). Pass crops of this shape, "
                "or build the task with a different n_times."
            )
        return instance_norm(x)

    def forward(self, x: Tensor) -> tuple[Any, Any]:
        """Return the predictions of the task and their targets.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Single-channel crops, in any unit.

        Returns
        -------
        prediction, target : Tensor
            Predictions and targets, in the shapes that :attr:`criterion` accepts as arguments.

        Notes
        -----
        If you implement this method, draw random numbers with functions of torch, on the device of
        ``x``. On CUDA, a compiled training step is recorded and replayed, so numbers that are drawn
        in any other way would be the same in every step.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement forward(x), which returns (prediction, target)."
        )

    def chance_loss(self) -> float:
        """Return the chance-level loss: the loss of the best prediction that ignores the signal.

        Returns
        -------
        float
            Value of :attr:`criterion` for this prediction. The relative loss, which is shown during
            training, is the loss divided by this value.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement chance_loss(), which returns the loss of the "
            "best prediction that ignores the signal."
        )

    def part_losses(self, prediction: Any, target: Any) -> dict[str, Tensor]:
        """Return the relative losses of parts of the prediction, for the training history.

        Parameters
        ----------
        prediction, target
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar relative loss of each part (1 = chance level); NaN if the part does not occur in
            this batch. By default, an empty dict.
        """
        return {}

    def become_sham(self) -> None:
        """Switch the task, and all parts of a joint task, to sham pretraining.

        In sham pretraining, each crop has the target of another crop, see :meth:`sham_target`.
        """
        for part in self.modules():
            if isinstance(part, PretextTask):
                part.is_sham = True

    def sham_target(self, target: Any) -> Any:
        """Return permuted targets for sham pretraining, a control in which nothing can be learned.

        The target of each crop is replaced with the target of the previous crop in the batch, so
        that crops and targets are unrelated. Everything else is the same as in real pretraining.
        Override this method if the targets of your task are not a single tensor, or are the same
        for all crops.

        Parameters
        ----------
        target : Tensor, shape (batch, ...)
            Targets from :meth:`forward`.

        Returns
        -------
        Tensor, shape (batch, ...)
            Targets of other crops.
        """
        return target.roll(1, dims=0)

    def prepare(self, draw: Callable[[int], Tensor]) -> None:
        """Compute statistics of the training signals before the first training step.

        By default, this method does nothing. If your task needs statistics, override this method
        and store the statistics in buffers, so that they are saved with the task, and a resumed run
        uses the same values.

        Parameters
        ----------
        draw : callable
            Function that accepts a number n and returns n random training signals, shape (n,
            n_times). The signals may be on a different device than the task. A second call with the
            same n returns the same signals. The function does not change the random numbers of
            training.
        """

    def use_encoder(self, encoder: PatchEncoder) -> None:
        """Replace the encoder. From then on, the task trains the new encoder in place.

        Parameters
        ----------
        encoder : PatchEncoder
            Encoder with the same patch size and token size as the current encoder.

        Raises
        ------
        ValueError
            If the task uses all channels, but ``encoder`` is an encoder of single channels.
        """
        required = space_time.SpaceTimeEncoder
        if self.encoder_kind == space_time.SPACE_TIME and not isinstance(encoder, required):
            raise ValueError(
                f"{type(self).__name__} requires a SpaceTimeEncoder (it encodes all channels "
                f"jointly), got a {type(encoder).__name__} (it encodes single channels). Pass a "
                "SpaceTimeEncoder, or use a single-channel pretext task."
            )
        self.encoder = encoder


class AllChannelTask(PretextTask):
    """Base class of pretext tasks on all channels of a window, which train a SpaceTimeEncoder.

    Parameters
    ----------
    n_times, patch_size, encoder, **encoder_arguments
        As in :class:`PretextTask`. The encoder is a
        :class:`~braindecode_pars.models.SpaceTimeEncoder`.

    Raises
    ------
    TypeError, ValueError
        As in :class:`PretextTask`, and when ``encoder`` is an encoder of single channels.

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
        """Check windows, and fill in default electrode positions and a default channel mask.

        Parameters
        ----------
        x : Tensor, shape (batch, n_chans, n_times)
            Windows in any unit.
        positions : Tensor, shape (batch, n_chans, 3) | None
            Electrode positions in meters in the head frame; NaN for unknown positions. If None, all
            positions are unknown.
        keep : Tensor of bool, shape (batch, n_chans) | None
            Mask that is False for missing channels. If None, no channel is missing.

        Returns
        -------
        x, positions, keep : Tensor
            The windows, with missing channels set to zero, the positions and the mask.

        Raises
        ------
        ValueError
            If the shape of ``x`` is not the shape that the task was built for.
        """
        if x.ndim != 3 or x.shape[-1] != self.n_times:
            raise ValueError(
                f"x has shape {tuple(x.shape)}, but this {type(self).__name__} was built for "
                f"windows of shape (batch, n_chans, {self.n_times}). Pass windows of this shape, "
                "or build the task with a different n_times."
            )
        if keep is None:
            keep = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        if positions is None:
            positions = x.new_full((*x.shape[:2], 3), torch.nan)
        # Missing channels may contain NaN.
        return x.masked_fill(~keep[..., None], 0.0), positions, keep


def channel_weights(keep: Tensor) -> Tensor:
    r"""Return channel weights that exclude missing channels from the mean squared error.

    If predictions and targets are multiplied by these weights, the mean squared error over all
    channels equals the mean squared error over the channels that are not missing. Unlike indexing
    with a mask, the multiplication does not make the CPU wait for the GPU.

    Parameters
    ----------
    keep : Tensor of bool, shape (batch, n_chans)
        Mask that is False for missing channels.

    Returns
    -------
    Tensor of float32, shape (batch, n_chans)
        0 for missing channels, and :math:`\sqrt{N / n}` for the other channels. N is the number of
        channels in all windows of the batch, and n is the number of these channels that are not
        missing.
    """
    return keep * (keep.numel() / keep.sum().clamp(min=1)).sqrt()


def encoder_kind_of(task: Any) -> str:
    """Return the ``encoder_kind`` of a task, which is specified as in :func:`make_task`."""
    resolved_task = find_task(task) if isinstance(task, str) else task
    return getattr(resolved_task, "encoder_kind", PretextTask.encoder_kind)


def params_of(task: Any, task_params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments with which an estimator builds a task.

    These are the ``short_params`` of the task, which are its defaults in an estimator, updated with
    ``task_params``. If the task is an instance, only ``task_params`` are returned, because an
    instance is already built.
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
    """Build a pretext task that trains ``encoder`` in place, from a name, a class or an instance.

    Parameters
    ----------
    task : str | type[PretextTask] | PretextTask
        Pretext task, one of the following:

        - A name in :data:`~braindecode_pars.pretext.PRETEXT_TASKS`.
        - A Python file and the name of a class in this file, such as ``"my_task.py:Slope"``. The
          file is then imported (its code is executed).
        - A class.
        - An instance. It is copied with its ``n_times`` and all other settings, and the copy uses
          ``encoder``. An instance that already uses ``encoder`` is not copied.
    n_times : int
        Number of samples in a window. An instance may have been built for shorter crops.
    encoder : PatchEncoder
        Encoder to train in place. It is never copied.
    task_params : dict | None
        Additional arguments of the task. Must be None or empty if ``task`` is an instance.
    sfreq : float | None
        Sampling rate of the windows in Hz, for tasks that have an argument ``sfreq``. None if
        unknown.

    Returns
    -------
    PretextTask
        Task that trains ``encoder`` in place.

    Raises
    ------
    ValueError
        If the name of the task is unknown (the message lists the known names), or if an instance
        was built for a different patch size, token size or sampling rate, or for longer windows.
    TypeError
        If ``task_params`` contains an argument that the task does not have, ``task_params`` is
        combined with an instance, or ``task`` is not a pretext task.

    Examples
    --------
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.pretext import make_task
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> params = {"mask_ratio": 0.7}
    >>> task = make_task("mae", n_times=3000, encoder=encoder, task_params=params)
    >>> task.name, task.n_masked, task.encoder is encoder  # 0.7 * 30 patches are masked
    ('mae', 21, True)
    """
    task_params = dict(task_params or {})

    # A name or a class: build the task.
    if isinstance(task, str):
        task = find_task(task)
    if isinstance(task, type) and issubclass(task, PretextTask):
        # A task passes unknown arguments on to its encoder. Without this check, the error message
        # would be about arguments of the encoder.
        parameters = inspect.signature(task).parameters.values()
        accepted = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - {"encoder"}
        if unknown := sorted(set(task_params) - accepted):
            raise TypeError(
                f"The pretext task {task.__name__} does not accept the additional arguments passed "
                f"for it: {', '.join(map(repr, unknown))}. Use only the parameters of "
                f"{task.__name__}: {', '.join(sorted(accepted)) or 'none'}."
            )
        if "sfreq" in accepted and sfreq is not None:
            task_params = {"sfreq": sfreq, **task_params}
        task = task(n_times, encoder.patch_size, encoder=encoder, **task_params)
    elif not isinstance(task, PretextTask):
        raise TypeError(
            "A pretext task must be the name of a task, a subclass of PretextTask or an instance "
            f"of such a class, got {type(task).__name__}."
        )
    elif task_params:
        raise TypeError(
            f"Additional arguments ({', '.join(sorted(task_params))}) cannot be used with an "
            "instance of a pretext task. Pass these arguments to the constructor of the task."
        )

    # Check that an instance is compatible with the encoder and the windows.
    patch_size, embed_dim = task.encoder.patch_size, task.encoder.embed_dim
    if (patch_size, embed_dim) != (encoder.patch_size, encoder.embed_dim):
        raise ValueError(
            f"The pretext task was built with patch_size={patch_size} and embed_dim={embed_dim}, "
            f"but the encoder has patch_size={encoder.patch_size} and "
            f"embed_dim={encoder.embed_dim}. Build the task with the sizes of the encoder."
        )
    if task.n_times > n_times:
        raise ValueError(
            f"The pretext task was built for crops of {task.n_times} samples, but the windows have "
            f"only {n_times} samples. Build the task with n_times={n_times}, or use longer windows."
        )
    built_for = f"{type(task).__name__} was built for signals at"
    remedy = "resample the windows, or omit sfreq from the arguments of the task"
    expected = getattr(task, "sfreq", None)
    checks.check_same_rate(sfreq, expected, "The windows are", built_for, remedy)

    # Copy the task, so that the instance that was passed is not changed.
    if task.encoder is encoder:
        return task
    task = copy.deepcopy(task)
    task.use_encoder(encoder)
    return task
