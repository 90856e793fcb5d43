"""The complete state of a run in one safetensors file; a resumed run is bit-identical."""

from __future__ import annotations

import json
import random
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from sklearn.utils import check_random_state
from skorch import NeuralNet
from torch import Tensor, nn

from braindecode_pars.storage._atomic import replace_file
from braindecode_pars.storage._tensors import load_tensors

__all__ = ["KEPT", "Checkpoint", "newest_checkpoint"]

#: Number of checkpoints that a run keeps. If the newest is damaged, the one before it is used.
KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after some epochs.

    Attributes
    ----------
    step : int
        Number of completed steps.
    history : list of dict
        One row for each epoch, without the rows of its batches.
    tensors : dict of str to Tensor
        Tensors named ``module.*``, ``optimizer.*`` and ``random.*``.
    random : dict
        States of the global random generators of Python and NumPy, in JSON types.
    source : Path | None
        File that the checkpoint was read from.
    """

    step: int
    history: list[dict[str, Any]]
    tensors: dict[str, Tensor]
    random: dict[str, Any]
    source: Path | None = None

    @classmethod
    def of(cls, net: NeuralNet, step: int) -> Checkpoint:
        """Return the current state of a net and of all random generators."""
        # Weights; a tensor with several names is stored once.
        weights = net.task_.state_dict()
        tensors = {f"module.{name}": weights[name] for name in _first_names(net.task_).values()}

        # Moments of the optimizer, by the name of the parameter.
        names = {parameter: name for name, parameter in net.task_.named_parameters()}
        for parameter, state in net.optimizer_.state.items():
            tensors |= {f"optimizer.{key}.{names[parameter]}": t for key, t in state.items()}

        # Random generators.
        tensors["random.cpu"] = torch.get_rng_state()
        if net.compute_device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(net.compute_device)
        states = {"python": random.getstate(), "numpy": _numpy_state()}
        return cls(step, [dict(row) for row in net.history], tensors, states)

    def write(self, folder: Path) -> None:
        """Write ``step-XXXXXXXX.safetensors`` and remove all but the newest :data:`KEPT`.

        Raises
        ------
        ValueError
            When a tensor is not finite, so that a run could not resume from this checkpoint.
        """
        tensors = {name: t.detach().cpu().contiguous() for name, t in self.tensors.items()}
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                raise ValueError(
                    f"After step {self.step}, {name} holds numbers that are not finite; start a "
                    "new run with a lower learning rate."
                )
        metadata = {"step": self.step, "history": self.history, "random": self.random}
        content = safetensors.torch.save(tensors, metadata={"run": json.dumps(metadata)})
        replace_file(folder / f"step-{self.step:08d}.safetensors", content)
        for old in _newest_first(folder)[KEPT:]:
            old.unlink()

    @classmethod
    def read(cls, file: Path) -> Checkpoint:
        """Return the checkpoint in a file that :meth:`write` has written.

        Raises
        ------
        ValueError
            When the file is damaged.
        """
        try:
            with safe_open(file, framework="pt") as content:
                metadata = json.loads(content.metadata()["run"])
                # safetensors maps the file into memory. Windows cannot remove a mapped file, so
                # the tensors are copied.
                tensors = {name: content.get_tensor(name).clone() for name in content.keys()}  # noqa: SIM118
            return cls(metadata["step"], metadata["history"], tensors, metadata["random"], file)
        except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
            raise ValueError(f"{file} is damaged or not a checkpoint: {error}.") from error

    def restore(self, net: NeuralNet) -> None:
        """Set an initialised net and all random generators to this state.

        Raises
        ------
        ValueError
            When the checkpoint belongs to another task or size; the message names the tensors
            that differ.
        """
        # Weights; a tensor with several names was stored under the first one.
        weights = self._of("module")
        for name, first in _first_names(net.task_).items():
            if first in weights:
                weights[name] = weights[first]
        report = load_tensors(net.task_, weights, self.source, strict=False)
        if not report.complete:
            different = [*report.missing, *report.reshaped, *report.unexpected]
            more = f" and {len(different) - 10} more" if len(different) > 10 else ""
            raise ValueError(
                f"{self.source} belongs to another task or size: {report}. These tensors differ: "
                f"{', '.join(different[:10])}{more}."
            )

        # Optimizer and history.
        self._restore_optimizer(net)
        net.history_.extend(dict(row) for row in self.history)

        # Random generators.
        torch.set_rng_state(self.tensors["random.cpu"])
        if net.compute_device.type == "cuda" and "random.cuda" in self.tensors:
            torch.cuda.set_rng_state(self.tensors["random.cuda"], net.compute_device)
        version, words, gauss = self.random["python"]
        random.setstate((version, tuple(words), gauss))
        _set_numpy_state(self.random["numpy"])

    def _restore_optimizer(self, net: NeuralNet) -> None:
        """Restore the moments of each parameter.

        The parameter groups are not in the checkpoint: learning rate and weight decay follow from
        the configuration.
        """
        # The optimizer's state_dict numbers the parameters in the order of its groups.
        names = {parameter: name for name, parameter in net.task_.named_parameters()}
        groups = net.optimizer_.param_groups
        order = [names[parameter] for group in groups for parameter in group["params"]]
        state: dict[int, dict[str, Tensor]] = {}
        for key, tensor in self._of("optimizer").items():
            kind, name = key.split(".", 1)
            state.setdefault(order.index(name), {})[kind] = tensor
        groups = net.optimizer_.state_dict()["param_groups"]
        net.optimizer_.load_state_dict({"state": state, "param_groups": groups})

    def _of(self, part: str) -> dict[str, Tensor]:
        prefix = f"{part}."
        return {
            name.removeprefix(prefix): tensor
            for name, tensor in self.tensors.items()
            if name.startswith(prefix)
        }


def newest_checkpoint(folder: Path) -> Checkpoint | None:
    """Return the newest undamaged checkpoint in a folder; a warning names damaged ones.

    Returns
    -------
    Checkpoint | None
        None if the folder has no checkpoints.

    Raises
    ------
    ValueError
        When all checkpoints are damaged.
    """
    files = _newest_first(folder)
    problems = []
    for file in files:
        try:
            checkpoint = Checkpoint.read(file)
        except ValueError as error:
            problems.append(str(error))
            continue
        if problems:
            warnings.warn(f"{' '.join(problems)} Resuming from {file.name} instead.", stacklevel=2)
        return checkpoint
    if files:
        raise ValueError(f"All checkpoints are damaged: {' '.join(problems)} Start a new run.")
    return None


def _first_names(module: nn.Module) -> dict[str, str]:
    """Map all names of each tensor to its first name.

    The tensors of a shared encoder have several names, as in ``Joint``.
    """
    first: dict[int, str] = {}
    tensors = module.state_dict(keep_vars=True)
    return {name: first.setdefault(id(tensor), name) for name, tensor in tensors.items()}


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.safetensors"), reverse=True)


def _numpy_state() -> dict[str, Any]:
    name, words, *rest = check_random_state(None).get_state()
    return {"name": name, "words": words.tolist(), "rest": rest}


def _set_numpy_state(state: dict[str, Any]) -> None:
    words = np.array(state["words"], dtype=np.uint32)
    check_random_state(None).set_state((state["name"], words, *state["rest"]))
