"""Joint pretext tasks: several tasks, or crops of several lengths, that train one encoder."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from braindecode_pars._common import checks
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import (
    PRETEXT_TASKS,
    AllChannelTask,
    PretextTask,
    make_task,
    register,
)

__all__ = ["Joint", "SeveralLengths", "SpaceTimeJoint", "WeightedSum"]

_WEIGHT = checks.number("of at least 0", lambda value: value >= 0)
_RULES = dict(
    sfreq=checks.optional(checks.positive()),
    tasks=checks.optional(checks.instance("a dict that maps task names to weights", Mapping)),
    task_params=checks.optional(
        checks.instance("a dict that maps task names to dicts of arguments", Mapping)
    ),
)


class WeightedSum(nn.Module):
    """Loss of a joint pretext task: weighted sum of the losses of several pretext tasks.

    Parameters
    ----------
    criteria : dict of str to callable
        Dict that maps the name of each task to the class of its loss, or to a function that builds
        the loss.
    factors : dict of str to float
        Dict that maps the name of each task to the factor of its loss. :class:`Joint` uses the
        weight of the task divided by its chance-level loss.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from braindecode_pars.pretext.joint import WeightedSum
    >>> criteria = {"a": nn.MSELoss, "b": nn.L1Loss}
    >>> criterion = WeightedSum(criteria, factors={"a": 1.0, "b": 0.5})
    >>> zeros, ones = torch.zeros(3), torch.ones(3)
    >>> criterion({"a": zeros, "b": zeros}, {"a": ones, "b": ones}).item()  # 1.0 * 1 + 0.5 * 1
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
            Predictions and targets of each task, by task name. Tasks that are not in the dicts are
            ignored.

        Returns
        -------
        Tensor
            Scalar loss.
        """
        tasks = [name for name in self.parts if name in predictions]
        losses = [self.factors[t] * self.parts[t](predictions[t], targets[t]) for t in tasks]
        return torch.stack(losses).sum()


class _WithParts(PretextTask):
    """Base class of tasks that consist of several tasks (parts) with the same encoder.

    The constructor of a subclass calls ``_set_parts``.
    """

    def _set_parts(self, parts: Mapping[str, PretextTask], weights: Mapping[str, float]) -> None:
        self.parts = cast("Mapping[str, PretextTask]", nn.ModuleDict(parts))
        self.weights = weights

    @cached_property
    def chances(self) -> dict[str, float]:
        """Chance-level loss of each task; cached, because PARS may estimate it by simulation."""
        return {name: part.chance_loss() for name, part in self.parts.items()}

    @property
    def criterion(self) -> Callable[[], WeightedSum]:
        """Function that builds the :class:`~braindecode_pars.pretext.joint.WeightedSum`."""
        criteria = {name: part.criterion for name, part in self.parts.items()}
        factors = {name: self.weights[name] / chance for name, chance in self.chances.items()}
        return partial(WeightedSum, criteria, factors)

    def prepare(self, draw: Callable[[int], Tensor]) -> None:
        """Let all tasks compute statistics of the training signals before the first step.

        Parameters
        ----------
        draw : callable
            As in :meth:`PretextTask.prepare <braindecode_pars.pretext.PretextTask.prepare>`. Tasks
            on shorter crops use only the first samples of each signal.
        """
        for part in self.parts.values():
            part.prepare(lambda n, n_times=part.n_times: draw(n)[:, :n_times])  # type: ignore[misc]

    def sham_target(self, target: dict[str, Any]) -> dict[str, Any]:
        """Return the permuted targets of all tasks for sham pretraining.

        Parameters
        ----------
        target : dict of str to Any
            Targets by task name.

        Returns
        -------
        dict of str to Any
            Permuted targets by task name, as returned by :meth:`PretextTask.sham_target
            <braindecode_pars.pretext.PretextTask.sham_target>` of each task.
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
    r"""Joint pretraining with a weighted sum of pretext tasks, such as PARS and MAE.

    All tasks train the same encoder. The loss is :math:`\sum_i w_i L_i / C_i`, where :math:`w_i` is
    the weight, :math:`L_i` the loss and :math:`C_i` the chance-level loss of task :math:`i` (the
    loss of the best prediction that ignores the signal). Dividing by the chance-level loss makes
    losses with different units comparable. The PARS paper proposes the combination of PARS and MAE
    as future work (section 4). The training history contains the relative loss :math:`L_i / C_i` of
    each task in a column such as ``train_loss_relative_mae``.

    Parameters
    ----------
    n_times : int
        Number of samples in a crop (the random segment of a channel that is one training example).
    patch_size : int
        Number of samples in a patch.
    encoder : PatchEncoder | None
        Encoder to train in place, shared by all tasks. If None, a new encoder is built from
        ``encoder_arguments``.
    tasks : dict of str to float | None
        Dict that maps the name of each task in :data:`~braindecode_pars.pretext.PRETEXT_TASKS` to
        its weight. Tasks with weight 0 are ignored. If None, ``{"pars": 1.0, "mae": 1.0}`` is used.
    task_params : dict of str to dict | None
        Dict that maps names of tasks to their additional arguments, for example ``{"mae":
        {"loss_on": "masked"}}``.
    sfreq : float | None
        Sampling rate in Hz, for tasks that require it.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder`, used if ``encoder`` is None.

    Attributes
    ----------
    parts : nn.ModuleDict
        Tasks by name. All tasks have the same ``encoder``.

    Raises
    ------
    ValueError
        If a task is unknown, a weight is negative, or no weight is above 0. Also if ``task_params``
        contains a task that is not in ``tasks``, or an argument of a task is out of range.
    TypeError
        If ``tasks`` or ``task_params`` is not a dict, a weight is not a number, or an argument of
        a task has the wrong type.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import Joint
    >>> task = Joint(n_times=3000, patch_size=100, embed_dim=16, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 3000))
    >>> # PARS: pairs of 32 masked patches; MAE: 30 patches of 100 samples
    >>> {name: tuple(part.shape) for name, part in prediction.items()}
    {'pars': (2, 32, 32), 'mae': (2, 30, 100)}
    """

    #: Default tasks and weights.
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
        checks.check_parameters(locals(), _RULES, type(self).__name__)
        tasks = self.default if tasks is None else tasks
        weights = self._positive_weights(tasks)
        task_params = dict(task_params or {})
        for name in task_params.keys() - tasks.keys():
            raise ValueError(
                f"task_params contains arguments of the task {name!r}, but tasks contains only "
                f"{', '.join(tasks)}. Add the task to tasks, or remove its arguments from "
                "task_params."
            )

        # Build all tasks with the same encoder.
        self.sfreq = sfreq
        params: Any = dict(n_times=n_times, encoder=self.encoder, sfreq=sfreq)
        parts = {
            name: make_task(name, task_params=task_params.get(name), **params) for name in weights
        }
        self._set_parts(parts, weights)

    def forward(
        self, x: Tensor, *args: Tensor, **kwargs: Tensor
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the predictions and the targets of all tasks on the same crops.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times) or (batch, n_chans, n_times)
            Single-channel crops or, if the tasks use all channels, windows of all channels, in any
            unit.
        *args, **kwargs : Tensor
            Electrode positions and channel mask for tasks on all channels, as in
            :meth:`SpaceTimePARS.forward <braindecode_pars.pretext.SpaceTimePARS.forward>`.

        Returns
        -------
        prediction, target : dict of str to Tensor
            Predictions and targets by task name.
        """
        results = {name: part(x, *args, **kwargs) for name, part in self.parts.items()}
        predictions = {name: prediction for name, (prediction, _) in results.items()}
        return predictions, {name: target for name, (_, target) in results.items()}

    def chance_loss(self) -> float:
        """Return the sum of the weights, because each relative loss is 1 at chance level."""
        return sum(self.weights.values())

    def part_losses(self, prediction: dict[str, Any], target: dict[str, Any]) -> dict[str, Tensor]:
        """Return the relative loss of each task, and of its parts (1 = chance level).

        Parameters
        ----------
        prediction, target : dict
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar relative losses by name. For example, ``"mae"`` is the loss of MAE, and
            ``"mae_masked"`` is its loss on the masked patches.
        """
        losses = {}
        for name, part in self.parts.items():
            result = prediction[name], target[name]
            losses[name] = part.criterion()(*result) / self.chances[name]
            inner = part.part_losses(*result)
            losses.update({f"{name}_{key}": value for key, value in inner.items()})
        return losses

    def _positive_weights(self, tasks: Mapping[str, float]) -> dict[str, float]:
        """Check names and weights, and return the weights above 0."""
        accepted = [
            name
            for name, task in sorted(PRETEXT_TASKS.items())
            if task.encoder_kind == self.encoder_kind and not issubclass(task, Joint)
        ]
        for name, weight in tasks.items():
            checks.choice(*accepted).check("each name in tasks", name, type(self).__name__)
            _WEIGHT.check(f"The weight of {name!r}", weight)
        if not any(tasks.values()):
            raise ValueError(
                f"At least one weight in tasks must be above 0, got {dict(tasks)}. Set the weight "
                "of a task to a positive number."
            )
        return {name: float(weight) for name, weight in tasks.items() if weight > 0}


@register("joint_space_time")
class SpaceTimeJoint(AllChannelTask, Joint):
    """Joint pretraining with a weighted sum of pretext tasks on all channels of a window.

    Parameters
    ----------
    n_times, patch_size, task_params, sfreq
        As in :class:`~braindecode_pars.pretext.Joint`.
    encoder : SpaceTimeEncoder | None
        Encoder to train in place, shared by all tasks. If None, a new encoder is built from
        ``encoder_arguments``.
    tasks : dict of str to float | None
        Dict that maps the name of each task to its weight. Only tasks on all channels are accepted,
        such as ``"pars_space_time"``. If None, ``{"features_space_time": 1.0,
        "spectral_space_time": 1.0}`` is used.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.models.SpaceTimeEncoder`, used if ``encoder`` is
        None.

    Raises
    ------
    TypeError, ValueError
        As in :class:`~braindecode_pars.pretext.Joint`, and when ``encoder`` is an encoder of single
        channels.

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
    """Pretext task on crops of several lengths, which trains one encoder.

    There is a separate task for each length, with its own output layers and its own chance-level
    loss (the loss of the best prediction that ignores the signal). The loss of each task is divided
    by its chance-level loss, so that all lengths have the same weight. :func:`runs.pretrain
    <braindecode_pars.runs.pretrain>` uses this class if several window lengths are set.

    Parameters
    ----------
    tasks : sequence of PretextTask
        Tasks on crops of different lengths, with the same encoder.

    Attributes
    ----------
    parts : nn.ModuleDict
        Maps the number of samples in a crop, as a string such as ``"300"``, to the task.
    n_times : int
        Number of samples in the longest crop.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.pretext import MAE
    >>> from braindecode_pars.pretext.joint import SeveralLengths
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> task = SeveralLengths([MAE(n_times, 100, encoder=encoder) for n_times in (1000, 300)])
    >>> prediction, target = task(torch.randn(2, 300))
    >>> {length: tuple(part.shape) for length, part in prediction.items()}  # 3 patches
    {'300': (2, 3, 100)}
    """

    def __init__(self, tasks: Sequence[PretextTask]):
        longest = max(tasks, key=lambda task: task.n_times)
        super().__init__(longest.n_times, longest.patch_size, encoder=longest.encoder)
        parts = {str(task.n_times): task for task in tasks}
        self.shown_name = f"{longest.shown_name} on {' and '.join(parts)} samples"
        self._set_parts(parts, dict.fromkeys(parts, 1.0))

    def forward(self, x: Tensor, **kwargs: Tensor) -> tuple[dict[str, Any], dict[str, Any]]:
        """Apply the task for the length of the crops, and return its prediction and target.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times) or (batch, n_chans, n_times)
            Crops of one of the lengths, in any unit. The channel dimension is present if the tasks
            use all channels.
        **kwargs : Tensor
            Additional arguments of ``forward`` of the task.

        Returns
        -------
        prediction, target : dict of str to Any
            Output of the task, as a dict with one entry. The key is the name of the task: the
            number of samples in a crop, such as ``"300"``.
        """
        name = str(x.shape[-1])
        prediction, target = self.parts[name](x, **kwargs)
        return {name: prediction}, {name: target}

    def chance_loss(self) -> float:
        """Return 1, because the loss is already relative to the chance level."""
        return 1.0

    def part_losses(self, prediction: dict[str, Any], target: dict[str, Any]) -> dict[str, Tensor]:
        """Return the relative losses of the parts of the task that :meth:`forward` applied.

        Parameters
        ----------
        prediction, target : dict
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar relative losses by name. The names do not contain the length, so the training
            history contains means over crops of all lengths.
        """
        ((name, predicted),) = prediction.items()
        return self.parts[name].part_losses(predicted, target[name])
