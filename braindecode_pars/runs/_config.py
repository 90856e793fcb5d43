"""The configuration of a pretraining run: defaults, a file, and what is given on top."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from braindecode_pars._parameters import (
    check_parameters,
    choice,
    instance,
    integer,
    number,
    optional,
    positive,
)
from braindecode_pars.paper import ENCODER, PRETRAINING

__all__ = ["RunConfig"]

_SHARE = number("in [0, 1)", lambda value: 0 <= value < 1)
_RULES = dict(
    task_params=instance("a dict of arguments", Mapping),
    window_seconds=positive(1e12),
    patch_seconds=positive(1e12),
    embed_dim=integer(1),
    num_layers=integer(1),
    num_heads=integer(1),
    mlp_dim=integer(1),
    drop_prob=_SHARE,
    epochs=integer(1),
    steps_per_epoch=optional(integer(1)),
    batch_size=integer(1),
    micro_batch_size=optional(integer(1)),
    lr=positive(1e12),
    weight_decay=number("of 0 or more", lambda value: value >= 0),
    warmup=_SHARE,
    exclude_subjects=instance("a list of subjects", list, tuple),
    precision=choice("float32", "bfloat16"),
    compile=choice(False, True),
    seed=integer(0),
    device=choice("auto", "cpu", "cuda", "mps"),
    num_workers=optional(integer(0)),
)


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
        from braindecode_pars.pretext import PRETEXT_TASKS  # takes seconds, and help shows defaults

        given = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        check_parameters(given, {**_RULES, "task": choice(*sorted(PRETEXT_TASKS))})
        # As the command line and files of every format give them, whatever their order.
        plain = {"exclude_subjects": tuple(sorted(set(map(str, self.exclude_subjects))))}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if hasattr(value, "item"):  # a NumPy number
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
