"""The configuration of a pretraining run: defaults, a file, and what is given on top."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from braindecode_pars.paper import ENCODER, PRETRAINING
from braindecode_pars.pretext import PRETEXT_TASKS

__all__ = ["RunConfig"]

_AT_LEAST = dict(
    embed_dim=1,
    num_layers=1,
    num_heads=1,
    mlp_dim=1,
    epochs=1,
    steps_per_epoch=1,
    batch_size=1,
    micro_batch_size=1,
    seed=0,
    num_workers=0,
)
_POSITIVE = ("window_seconds", "patch_seconds", "lr")
_SHARES = ("drop_prob", "warmup")


@dataclass(frozen=True)
class RunConfig:
    """Everything that a pretraining run depends on besides the data; the paper's by default.

    The paper's settings are those of section 2.5. It does not change once it is made.

    Attributes
    ----------
    task : str
        Pretext task, a name in ``PRETEXT_TASKS``.
    task_params : dict
        Further arguments of the task.
    window_seconds, patch_seconds : float
        Length of the random crops and of a patch, in seconds.
    embed_dim, num_layers, num_heads, mlp_dim, drop_prob
        Of the :class:`~braindecode_pars.PatchEncoder`.
    epochs : int
        Length of the run, and of the schedule: linear warm-up, then a cosine to zero.
    steps_per_epoch : int | None
        A checkpoint is written after each epoch. None means as many steps as one pass over the
        data takes.
    batch_size : int
        Examples of a step, of all processes together.
    micro_batch_size : int | None
        Examples that go through the network at a time; gradients are averaged over them. Less
        memory for the same result but for rounding and for the random draws, which are made for
        each micro-batch. None means a process' whole share of the batch.
    lr, weight_decay : float
        Of AdamW; weight decay is for the weights of linear layers only.
    warmup : float
        Share of all steps that warms up.
    exclude_subjects : tuple of str
        People who are not pretrained on, because they are to be tested on.
    precision : "float32" | "bfloat16"
        Of the network's arithmetic.
    compile : bool
        Compile the encoder.
    seed : int
        Of the initial weights, the order of the data, crops and all draws of the task.
    device : "auto" | "cpu" | "cuda" | "mps"
        ``"auto"`` takes CUDA, then MPS, then the CPU.
    num_workers : int | None
        Processes that read data ahead, for each training process. None means four beside a GPU,
        none on the CPU.

    Raises
    ------
    ValueError, TypeError
        For a value that no run could have.

    Examples
    --------
    >>> from braindecode_pars.runs import RunConfig
    >>> RunConfig(task="mae", epochs=100).batch_size
    512
    """

    task: str = "pars"
    task_params: Mapping[str, Any] = field(default_factory=dict)
    window_seconds: float = 30.0
    patch_seconds: float = 1.0
    embed_dim: int = ENCODER["embed_dim"]
    num_layers: int = ENCODER["num_layers"]
    num_heads: int = ENCODER["num_heads"]
    mlp_dim: int = ENCODER["mlp_dim"]
    drop_prob: float = 0.0
    epochs: int = PRETRAINING["max_epochs"]
    steps_per_epoch: int | None = None
    batch_size: int = PRETRAINING["batch_size"]
    micro_batch_size: int | None = None
    lr: float = PRETRAINING["lr"]
    weight_decay: float = PRETRAINING["optimizer__weight_decay"]
    warmup: float = 0.1
    exclude_subjects: tuple[str, ...] = ()
    precision: str = "float32"
    compile: bool = False
    seed: int = 0
    device: str = "auto"
    num_workers: int | None = None

    def __post_init__(self) -> None:
        for name, least in _AT_LEAST.items():
            _check_integer(name, getattr(self, name), least, optional=_default(name) is None)
        for name in _POSITIVE:
            _check_number(name, getattr(self, name), "above 0", lambda number: number > 0)
        for name in _SHARES:
            _check_number(name, getattr(self, name), "in [0, 1)", lambda number: 0 <= number < 1)
        _check_number("weight_decay", self.weight_decay, "of 0 or more", lambda number: number >= 0)
        _check_choice("task", self.task, sorted(PRETEXT_TASKS))
        _check_choice("precision", self.precision, ["float32", "bfloat16"])
        _check_choice("device", self.device, ["auto", "cpu", "cuda", "mps"])
        _check_choice("compile", self.compile, [False, True])
        if not isinstance(self.task_params, Mapping):
            raise TypeError(f"task_params is a dict of arguments, got {self.task_params!r}.")
        if not isinstance(self.exclude_subjects, (list, tuple)):
            raise TypeError(f"exclude_subjects is a list of people, got {self.exclude_subjects!r}.")
        # As the command line and files of every format give them, whatever their order.
        plain = {"exclude_subjects": tuple(sorted(set(map(str, self.exclude_subjects))))}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, (np.integer, np.floating)):
                plain[entry.name] = value.item()
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_file(cls, file: str | Path, **given: Any) -> RunConfig:
        """Read a configuration from a TOML or JSON file.

        Parameters
        ----------
        file : path
            Ends in ``.toml`` or ``.json``; keys are the attributes of this class.
        **given
            Beats the file, as the file beats the defaults; ``task_params`` one by one.

        Returns
        -------
        RunConfig

        Raises
        ------
        FileNotFoundError
            When there is no such file.
        ValueError, TypeError
            When the file is damaged, has a key that is unknown, or a value that no run could have.
        """
        found = _read(Path(file))
        known = [entry.name for entry in fields(cls)]
        unknown = [repr(key) for key in found if key not in known]
        if unknown:
            raise ValueError(
                f"{file} sets {', '.join(unknown)}, which a run does not have; it has "
                f"{', '.join(known)}."
            )
        values = {**found, **given}
        if isinstance(found.get("task_params"), Mapping) and "task_params" in given:
            values["task_params"] = {**found["task_params"], **given["task_params"]}
        return cls(**values)


def _default(name: str) -> Any:
    return getattr(RunConfig, name)


def _read(file: Path) -> dict[str, Any]:
    readers = {".toml": tomllib.loads, ".json": json.loads}
    if file.suffix not in readers:
        raise ValueError(f"A configuration is a .toml or .json file, got {file}.")
    try:
        found = readers[file.suffix](file.read_text(encoding="utf-8"))
    except ValueError as error:  # of TOML, of JSON or of UTF-8
        raise ValueError(f"{file} is damaged or no {file.suffix[1:]} file: {error}.") from error
    if not isinstance(found, dict):
        raise ValueError(f"{file} holds a {type(found).__name__}, not keys and values.")
    return found


def _check_integer(name: str, value: Any, least: int, *, optional: bool) -> None:
    if optional and value is None:
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
    if value >= 2**63:
        raise ValueError(f"{name} must be below 2 ** 63, got {value!r}.")


def _check_number(name: str, value: Any, where: str, is_there: Callable[[Real], bool]) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not is_there(value):
        raise ValueError(f"{name} must be a number {where}, got {value!r}.")
    if value > 1e12:
        raise ValueError(f"{name} must be at most 1e12, got {value!r}.")


def _check_choice(name: str, value: Any, choices: list) -> None:
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        told = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {told}; got {value!r}.")
