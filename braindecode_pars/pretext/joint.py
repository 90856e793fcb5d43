"""Joint: several pretext tasks on one encoder at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import PRETEXT_TASKS, PretextTask, make_task, register

__all__ = ["Joint", "WeightedSum"]


class WeightedSum(nn.Module):
    """Weighted sum of losses, each in units of its chance.

    Parameters
    ----------
    criteria : dict of str to type[nn.Module]
        Of each part, by name.
    factors : dict of str to float
        Weight of each part divided by its chance loss.

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

    def __init__(self, criteria: Mapping[str, type[nn.Module]], factors: Mapping[str, float]):
        super().__init__()
        self.parts = nn.ModuleDict({name: criterion() for name, criterion in criteria.items()})
        self.factors = dict(factors)

    def forward(self, predictions: dict[str, Any], targets: dict[str, Any]) -> Tensor:
        """Sum the losses up.

        Parameters
        ----------
        predictions, targets : dict
            Of all parts, by name.

        Returns
        -------
        Tensor
            A scalar.
        """
        losses = [
            self.factors[name] * criterion(predictions[name], targets[name])
            for name, criterion in self.parts.items()
        ]
        return torch.stack(losses).sum()


@register("joint")
class Joint(PretextTask):
    r"""A weighted sum of pretext tasks on one encoder.

    The loss is :math:`\sum_i w_i L_i / C_i` with the parts' losses and chance losses, so that
    equal weights mean equal parts, whatever the units of the losses. PARS with MAE is what the
    paper proposes for future work (section 4). Each part's loss relative to its chance is logged
    as ``train_loss_relative_NAME``.

    Parameters
    ----------
    n_times : int
        Samples of the signal.
    patch_size : int
        Samples in a patch.
    encoder : PatchEncoder | None
        Trained in place when given; all parts share it.
    tasks : dict of str to float | None
        Names in :data:`~braindecode_pars.pretext.PRETEXT_TASKS` and their weights; 0 leaves a task
        out. None means ``{"pars": 1.0, "mae": 1.0}``.
    task_params : dict of str to dict | None
        Further arguments of the tasks, for example ``{"mae": {"loss_on": "masked"}}``.
    **encoder_arguments
        Passed to :class:`~braindecode_pars.PatchEncoder` when no encoder is given.

    Attributes
    ----------
    parts : nn.ModuleDict
        The tasks by name; each has the same ``encoder``.

    Raises
    ------
    ValueError
        When a task is unknown, a weight is negative or none is above 0, ``task_params`` names a
        task that is not among them, and as the tasks themselves do.
    TypeError
        When ``tasks`` is not a dict, and as the tasks themselves do.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import Joint
    >>> task = Joint(n_times=3000, patch_size=100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 3000))
    >>> {name: tuple(part.shape) for name, part in prediction.items()}
    {'pars': (2, 32, 32), 'mae': (2, 30, 100)}
    """

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        encoder: PatchEncoder | None = None,
        tasks: Mapping[str, float] | None = None,
        task_params: Mapping[str, dict[str, Any]] | None = None,
        **encoder_arguments: Any,
    ):
        super().__init__(n_times, patch_size, encoder=encoder, **encoder_arguments)
        tasks = {"pars": 1.0, "mae": 1.0} if tasks is None else tasks
        weights = _checked(tasks)
        task_params = dict(task_params or {})
        for name, params in task_params.items():
            if name not in tasks:
                raise ValueError(
                    f"task_params has arguments for {name!r}, which is not among the tasks "
                    f"{', '.join(tasks)}."
                )
            if not isinstance(params, Mapping):
                raise TypeError(f"task_params of {name!r} is a dict of arguments, got {params!r}.")
        self.weights = weights
        self.parts = nn.ModuleDict(
            {
                name: make_task(
                    name, n_times=n_times, encoder=self.encoder, task_params=task_params.get(name)
                )
                for name in weights
            }
        )

        # Once, since that of some settings is a simulation.
        self.chances = {name: part.chance_loss() for name, part in self.parts.items()}

    @property
    def criterion(self) -> partial[WeightedSum]:
        """Makes the :class:`~braindecode_pars.pretext.joint.WeightedSum` of these parts."""
        criteria = {name: part.criterion for name, part in self.parts.items()}
        factors = {name: self.weights[name] / self.chances[name] for name in self.parts}
        return partial(WeightedSum, criteria, factors)

    def use_encoder(self, encoder: PatchEncoder) -> None:
        """Train this encoder from now on, in place, in every part.

        Parameters
        ----------
        encoder : PatchEncoder
            As in :meth:`PretextTask.use_encoder
            <braindecode_pars.pretext.PretextTask.use_encoder>`.
        """
        super().use_encoder(encoder)
        for part in self.parts.values():
            part.use_encoder(encoder)

    def forward(self, x: Tensor) -> tuple[dict[str, Any], dict[str, Any]]:
        """Pose all tasks on the same signals.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            In any unit.

        Returns
        -------
        prediction, target : dict of str to Tensor
            Those of the parts, by name.
        """
        answers = {name: part(x) for name, part in self.parts.items()}
        predictions = {name: prediction for name, (prediction, _) in answers.items()}
        return predictions, {name: target for name, (_, target) in answers.items()}

    def chance_loss(self) -> float:
        """Sum of the weights."""
        return sum(self.weights.values())

    def part_losses(self, prediction: dict[str, Any], target: dict[str, Any]) -> dict[str, Tensor]:
        """Loss of each part relative to its chance, and of the parts' own parts.

        Parameters
        ----------
        prediction, target : dict
            What :meth:`forward` has returned.

        Returns
        -------
        dict of str to Tensor
            Scalars, such as ``"pars"``, ``"mae"`` and ``"mae_masked"``.
        """
        losses = {}
        for name, part in self.parts.items():
            answer = prediction[name], target[name]
            losses[name] = part.criterion()(*answer) / self.chances[name]
            inner = part.part_losses(*answer)
            losses.update({f"{name}_{key}": value for key, value in inner.items()})
        return losses


def _checked(tasks: Mapping[str, float]) -> dict[str, float]:
    """The tasks that have a weight."""
    if not isinstance(tasks, Mapping):
        raise TypeError(f"tasks is a dict of task names and weights, got {tasks!r}.")
    for name, weight in tasks.items():
        if name not in PRETEXT_TASKS or name == "joint":
            known = ", ".join(repr(n) for n in sorted(PRETEXT_TASKS) if n != "joint")
            raise ValueError(f"Unknown pretext task {name!r} in Joint; known are {known}.")
        if not isinstance(weight, Real) or not 0 <= weight < float("inf"):
            raise ValueError(f"The weight of {name!r} must be 0 or more, got {weight!r}.")
    if not any(tasks.values()):
        raise ValueError(
            "Joint needs a task with a weight above 0; got "
            + (", ".join(f"{name}: {weight}" for name, weight in tasks.items()) or "none")
            + "."
        )
    return {name: float(weight) for name, weight in tasks.items() if weight > 0}
