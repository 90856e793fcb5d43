"""Several pretext tasks train one encoder: at the same time, or on crops of several lengths."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from braindecode_pars._common.checks import check_parameters, instance, number, optional, positive
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import (
    PRETEXT_TASKS,
    AllChannelTask,
    PretextTask,
    make_task,
    register,
)

__all__ = ["Joint", "SeveralLengths", "SpaceTimeJoint", "WeightedSum"]

_WEIGHT = number("of 0 or more", lambda value: value >= 0)
_RULES = dict(
    sfreq=optional(positive()),
    tasks=optional(instance("a dict of task names and weights", Mapping)),
    task_params=optional(instance("a dict of task names and arguments", Mapping)),
)


class WeightedSum(nn.Module):
    """Weighted sum of the losses of several tasks, each relative to its chance loss.

    Parameters
    ----------
    criteria : dict of str to callable
        Class or constructor of each task's loss, by task name.
    factors : dict of str to float
        Weight of each task divided by its chance loss, by task name.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from braindecode_pars.pretext.joint import WeightedSum
    >>> criteria = {"a": nn.MSELoss, "b": nn.L1Loss}
    >>> criterion = WeightedSum(criteria, factors={"a": 1.0, "b": 0.5})
    >>> zeros, ones = torch.zeros(3), torch.ones(3)
    >>> criterion({"a": zeros, "b": zeros}, {"a": ones, "b": ones}).item()
    1.5
    """

    def __init__(
        self, criteria: Mapping[str, Callable[[], nn.Module]], factors: Mapping[str, float]
    ):
        super().__init__()
        self.parts = nn.ModuleDict({name: criterion() for name, criterion in criteria.items()})
        self.factors = dict(factors)

    def forward(self, predictions: dict[str, Any], targets: dict[str, Any]) -> Tensor:
        """Return the weighted sum of the losses.

        Parameters
        ----------
        predictions, targets : dict
            Predictions and targets of the tasks that have some, by task name.

        Returns
        -------
        Tensor
            Scalar loss.
        """
        tasks = [name for name in self.parts if name in predictions]
        losses = [self.factors[t] * self.parts[t](predictions[t], targets[t]) for t in tasks]
        return torch.stack(losses).sum()


class _WithParts(PretextTask):
    """A task whose parts are tasks on one encoder; subclasses set them in ``_set_parts``."""

    def _set_parts(self, parts: Mapping[str, PretextTask], weights: Mapping[str, float]) -> None:
        self.parts = cast("Mapping[str, PretextTask]", nn.ModuleDict(parts))
        self.weights = weights

    @cached_property
    def chances(self) -> dict[str, float]:
        """Chance loss of each task; computed once, because PARS simulates some."""
        return {name: part.chance_loss() for name, part in self.parts.items()}

    @property
    def criterion(self) -> Callable[[], WeightedSum]:
        """Constructor of the :class:`~braindecode_pars.pretext.joint.WeightedSum` of the parts."""
        criteria = {name: part.criterion for name, part in self.parts.items()}
        factors = {name: self.weights[name] / chance for name, chance in self.chances.items()}
        return partial(WeightedSum, criteria, factors)

    def prepare(self, draw: Callable[[int], Tensor]) -> None:
        """Let all parts measure the signals before the first step.

        Parameters
        ----------
        draw : callable
            As in :meth:`PretextTask.prepare <braindecode_pars.pretext.PretextTask.prepare>`. The
            beginnings of its signals are the signals of shorter parts.
        """
        for part in self.parts.values():
            part.prepare(lambda n, n_times=part.n_times: draw(n)[:, :n_times])  # type: ignore[misc]

    def sham_target(self, target: dict[str, Any]) -> dict[str, Any]:
        """Return the targets of all tasks in a sham pretraining.

        Parameters
        ----------
        target : dict of str to Any
            Targets by task name.

        Returns
        -------
        dict of str to Any
            Output of each task's :meth:`PretextTask.sham_target
            <braindecode_pars.pretext.PretextTask.sham_target>`.
        """
        return {name: self.parts[name].sham_target(part) for name, part in target.items()}

    def use_encoder(self, encoder: PatchEncoder) -> None:
        """Replace the encoder in all tasks.

        Parameters
        ----------
        encoder : PatchEncoder
            As in :meth:`PretextTask.use_encoder
            <braindecode_pars.pretext.PretextTask.use_encoder>`.
        """
        super().use_encoder(encoder)
        for part in self.parts.values():
            part.use_encoder(encoder)


@register("joint")
class Joint(_WithParts):
    r"""A weighted sum of pretext tasks on one encoder.

    The loss is :math:`\sum_i w_i L_i / C_i`, where :math:`w_i` is the weight, :math:`L_i` the
    loss and :math:`C_i` the chance loss of task :math:`i`. The division makes tasks with
    different units of loss comparable. The paper proposes PARS with MAE for future work
    (section 4). The log has the loss of each task relative to its chance loss, as
    ``train_loss_relative_NAME``.

    Parameters
    ----------
    n_times : int
        Number of samples in a signal.
    patch_size : int
        Number of samples in a patch.
    encoder : PatchEncoder | None
        Encoder to train in place; all tasks share it. None builds one.
    tasks : dict of str to float | None
        Weights by task name, a key of :data:`~braindecode_pars.pretext.PRETEXT_TASKS`. A task
        with weight 0 is not built. None means ``{"pars": 1.0, "mae": 1.0}``.
    task_params : dict of str to dict | None
        Further arguments of the tasks, for example ``{"mae": {"loss_on": "masked"}}``.
    sfreq : float | None
        Sampling rate in Hz, for the tasks that need it.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder` when no encoder is given.

    Attributes
    ----------
    parts : nn.ModuleDict
        Tasks by name; all have the same ``encoder``.

    Raises
    ------
    ValueError
        When a task is unknown, a weight is negative, no weight is above 0, or ``task_params``
        names a task that is not in ``tasks``. A task itself may also raise it.
    TypeError
        When ``tasks`` or ``task_params`` is not a dict, or a weight is not a number. A task itself
        may also raise it.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import Joint
    >>> task = Joint(n_times=3000, patch_size=100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 3000))
    >>> {name: tuple(part.shape) for name, part in prediction.items()}
    {'pars': (2, 32, 32), 'mae': (2, 30, 100)}
    """

    #: Tasks and weights where none are given.
    default: ClassVar[dict[str, float]] = {"pars": 1.0, "mae": 1.0}

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        encoder: PatchEncoder | None = None,
        tasks: Mapping[str, float] | None = None,
        task_params: Mapping[str, dict[str, Any]] | None = None,
        sfreq: float | None = None,
        **encoder_arguments: Any,
    ):
        super().__init__(n_times, patch_size, encoder=encoder, **encoder_arguments)

        # Check the arguments.
        check_parameters(locals(), _RULES, type(self).__name__)
        tasks = self.default if tasks is None else tasks
        weights = self._positive_weights(tasks)
        task_params = dict(task_params or {})
        for name in task_params.keys() - tasks.keys():
            raise ValueError(f"task_params has {name!r}, not among the tasks {', '.join(tasks)}.")

        # Build the tasks on one encoder.
        self.sfreq = sfreq
        params: Any = dict(n_times=n_times, encoder=self.encoder, sfreq=sfreq)
        parts = {
            name: make_task(name, task_params=task_params.get(name), **params) for name in weights
        }
        self._set_parts(parts, weights)

    def forward(
        self, x: Tensor, *places: Tensor, **named: Tensor
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the predictions and the targets of all tasks on the same signals.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times) or (batch, n_chans, n_times)
            Signals in any unit; all channels for tasks that compare them.
        *places, **named : Tensor
            Positions and mask for tasks that compare channels, as in :meth:`SpaceTimePARS.forward
            <braindecode_pars.pretext.SpaceTimePARS.forward>`.

        Returns
        -------
        prediction, target : dict of str to Tensor
            Predictions and targets by task name.
        """
        results = {name: part(x, *places, **named) for name, part in self.parts.items()}
        predictions = {name: prediction for name, (prediction, _) in results.items()}
        return predictions, {name: target for name, (_, target) in results.items()}

    def chance_loss(self) -> float:
        """Return the sum of the weights: at chance level, every task's relative loss is 1."""
        return sum(self.weights.values())

    def part_losses(self, prediction: dict[str, Any], target: dict[str, Any]) -> dict[str, Tensor]:
        """Return the loss of each task relative to its chance loss, and the tasks' part losses.

        Parameters
        ----------
        prediction, target : dict
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar losses, such as ``"pars"``, ``"mae"`` and ``"mae_masked"``.
        """
        losses = {}
        for name, part in self.parts.items():
            result = prediction[name], target[name]
            losses[name] = part.criterion()(*result) / self.chances[name]
            inner = part.part_losses(*result)
            losses.update({f"{name}_{key}": value for key, value in inner.items()})
        return losses

    def _positive_weights(self, tasks: Mapping[str, float]) -> dict[str, float]:
        """Check names and weights, and return the tasks with a weight above 0."""
        known = {
            name: repr(name)
            for name, task in sorted(PRETEXT_TASKS.items())
            if task.encoder_kind == self.encoder_kind and not issubclass(task, Joint)
        }
        for name, weight in tasks.items():
            if name not in known:
                what = f"Unknown pretext task {name!r} in {type(self).__name__}"
                raise ValueError(f"{what}; known are {', '.join(known.values())}.")
            _WEIGHT.check(f"The weight of {name!r}", weight)
        if not any(tasks.values()):
            raise ValueError(f"Joint needs a task with a weight above 0; got {dict(tasks)}.")
        return {name: float(weight) for name, weight in tasks.items() if weight > 0}


@register("joint_space_time")
class SpaceTimeJoint(AllChannelTask, Joint):
    """A weighted sum of tasks on all channels of a window.

    Parameters
    ----------
    n_times, patch_size, task_params, sfreq
        As in :class:`~braindecode_pars.pretext.Joint`.
    encoder : SpaceTimeEncoder | None
        Encoder to train in place; all tasks share it. None builds one.
    tasks : dict of str to float | None
        Weights by the name of a task of all channels. None means spectra and features, with equal
        weights.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.models.SpaceTimeEncoder` when no encoder is given.

    Raises
    ------
    TypeError, ValueError
        As :class:`~braindecode_pars.pretext.Joint`. Also for an encoder of single channels.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SpaceTimeJoint
    >>> weights = {"pars_space_time": 1.0, "spectral_space_time": 1.0}
    >>> task = SpaceTimeJoint(1000, 100, tasks=weights, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 19, 1000))
    >>> sorted(prediction)
    ['pars_space_time', 'spectral_space_time']
    """

    default: ClassVar = {"features_space_time": 1.0, "spectral_space_time": 1.0}


class SeveralLengths(_WithParts):
    """One pretext task on signals of several lengths, which train one encoder.

    Each length has a task of its own, whose heads and chance loss fit it. The loss is relative to
    chance, so that lengths with different chance losses count alike.

    Parameters
    ----------
    tasks : sequence of PretextTask
        Tasks for signals of different lengths, with the same encoder.

    Attributes
    ----------
    parts : nn.ModuleDict
        Tasks by the number of samples, as a text.
    n_times : int
        Number of samples in the longest signal.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.pretext import MAE
    >>> from braindecode_pars.pretext.joint import SeveralLengths
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> task = SeveralLengths([MAE(n_times, 100, encoder=encoder) for n_times in (1000, 300)])
    >>> prediction, target = task(torch.randn(2, 300))
    >>> {length: tuple(part.shape) for length, part in prediction.items()}
    {'300': (2, 3, 100)}
    """

    def __init__(self, tasks: Sequence[PretextTask]):
        longest = max(tasks, key=lambda task: task.n_times)
        super().__init__(longest.n_times, longest.patch_size, encoder=longest.encoder)
        parts = {str(task.n_times): task for task in tasks}
        self.shown_name = f"{longest.shown_name} on {' and '.join(parts)} samples"
        self._set_parts(parts, dict.fromkeys(parts, 1.0))

    def forward(self, x: Tensor, **places: Tensor) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the prediction and the target of the task of this length.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times), or that of the windows of the tasks
            Signals of one of the lengths, in any unit.
        **places : Tensor
            Further arguments of the tasks.

        Returns
        -------
        prediction, target : dict of str to Any
            Output of the task, with the number of samples as the only key.
        """
        name = str(x.shape[-1])
        prediction, target = self.parts[name](x, **places)
        return {name: prediction}, {name: target}

    def chance_loss(self) -> float:
        """Return 1: the loss is relative to chance."""
        return 1.0

    def part_losses(self, prediction: dict[str, Any], target: dict[str, Any]) -> dict[str, Tensor]:
        """Return the part losses of the task of this length.

        Parameters
        ----------
        prediction, target : dict
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar losses by name. The loss of a part is NaN in an epoch without its length.
        """
        ((name, predicted),) = prediction.items()
        return self.parts[name].part_losses(predicted, target[name])
