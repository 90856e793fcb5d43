"""All that a run needs to go on to the bit, in one safetensors file."""

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

#: Checkpoints that a run keeps: should the newest be damaged, there is one before it.
KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after some epochs.

    Attributes
    ----------
    step : int
        Steps done.
    history : list of dict
        One row an epoch, without batches.
    tensors : dict of str to Tensor
        ``module.*``, ``optimizer.*`` and ``random.*``.
    random : dict
        States of Python's and NumPy's global generators, as JSON takes them.
    source : Path | None
        File it was read from.
    """

    step: int
    history: list[dict[str, Any]]
    tensors: dict[str, Tensor]
    random: dict[str, Any]
    source: Path | None = None

    @classmethod
    def of(cls, net: NeuralNet, step: int) -> Checkpoint:
        """Take the state of a net."""
        weights = net.task_.state_dict()
        tensors = {f"module.{name}": weights[name] for name in _first_names(net.task_).values()}
        names = {parameter: name for name, parameter in net.task_.named_parameters()}
        for parameter, state in net.optimizer_.state.items():
            tensors |= {f"optimizer.{key}.{names[parameter]}": t for key, t in state.items()}
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
            When a tensor is not finite: no run could go on from there.
        """
        tensors = {name: t.detach().cpu().contiguous() for name, t in self.tensors.items()}
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                raise ValueError(
                    f"After step {self.step}, {name} holds numbers that are not finite; begin "
                    "anew with a lower learning rate."
                )
        rest = {"step": self.step, "history": self.history, "random": self.random}
        content = safetensors.torch.save(tensors, metadata={"run": json.dumps(rest)})
        replace_file(folder / f"step-{self.step:08d}.safetensors", content)
        for old in _newest_first(folder)[KEPT:]:
            old.unlink()

    @classmethod
    def read(cls, file: Path) -> Checkpoint:
        """Read what :meth:`write` wrote.

        Raises
        ------
        ValueError
            When the file is damaged.
        """
        try:
            with safe_open(file, framework="pt") as content:
                rest = json.loads(content.metadata()["run"])
                # Copies, or the file could not be removed while they are in use.
                tensors = {name: content.get_tensor(name).clone() for name in content.keys()}  # noqa: SIM118
            return cls(rest["step"], rest["history"], tensors, rest["random"], file)
        except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
            raise ValueError(f"{file} is damaged or no checkpoint: {error}.") from error

    def restore(self, net: NeuralNet) -> None:
        """Put an initialised net, and all random generators, into this state.

        Raises
        ------
        ValueError
            When the checkpoint is that of another task or size; the message tells which tensors
            differ.
        """
        weights = self._of("module")
        for name, first in _first_names(net.task_).items():
            if first in weights:
                weights[name] = weights[first]
        report = load_tensors(net.task_, weights, self.source, strict=False)
        if not report.complete:
            different = [*report.missing, *report.reshaped, *report.unexpected]
            more = f" and {len(different) - 10} more" if len(different) > 10 else ""
            raise ValueError(
                f"{self.source} is of another task or size: {report}. What differs: "
                f"{', '.join(different[:10])}{more}."
            )
        self._restore_optimizer(net)
        net.history_.extend(dict(row) for row in self.history)
        torch.set_rng_state(self.tensors["random.cpu"])
        if net.compute_device.type == "cuda" and "random.cuda" in self.tensors:
            torch.cuda.set_rng_state(self.tensors["random.cuda"], net.compute_device)
        version, words, gauss = self.random["python"]
        random.setstate((version, tuple(words), gauss))
        _set_numpy_state(self.random["numpy"])

    def _restore_optimizer(self, net: NeuralNet) -> None:
        """The state of each parameter; learning rates and so on follow from the configuration."""
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
    """Read the newest checkpoint in a folder, or with a warning the newest that is whole.

    Returns
    -------
    Checkpoint | None
        None where there is none.

    Raises
    ------
    ValueError
        When all that are there are damaged.
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
            warnings.warn(f"{' '.join(problems)} Going on from {file.name} instead.", stacklevel=2)
        return checkpoint
    if files:
        raise ValueError(f"No checkpoint is whole: {' '.join(problems)} Begin the run anew.")
    return None


def _first_names(module: nn.Module) -> dict[str, str]:
    """The first name of each tensor by all its names; an encoder that parts share has several."""
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
