"""The settings of a pretraining run as options, which several commands share."""

from __future__ import annotations

import functools
import inspect
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars.cli._names import TASKS
from braindecode_pars.cli._values import values
from braindecode_pars.runs import RunConfig

__all__ = ["run_config", "with_run_options"]

log = logging.getLogger(__name__)


def _option(name: str, text: str, kind: type, default: str = "", **extra: Any) -> Any:
    """Return the type of an option that is None by default; help shows the default of a run.

    With None, options that were not given can be told apart, so that ``--config`` applies.
    """
    shown = default or str(getattr(RunConfig, name))
    extra.setdefault("metavar", {int: "N", float: "X", str: "NAME"}.get(kind))
    return Annotated[kind | None, typer.Option(help=text, show_default=shown, **extra)]


#: Options by name. Without a value on the command line they are None.
OPTIONS: dict[str, Any] = dict(
    config=Annotated[
        Path | None,
        typer.Option(
            help="TOML or JSON file with any of these settings; options on the command line "
            "override it."
        ),
    ],
    paper=Annotated[
        bool | None,
        typer.Option(
            "--paper",
            help="Start from the published settings on the CPU too, where the defaults are made "
            "for a laptop.",
        ),
    ],
    task=_option("task", f"Pretext task: {', '.join(TASKS)}.", str),
    settings=Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Argument of the task, such as n_patches=240. May be repeated.",
            metavar="KEY=VALUE",
        ),
    ],
    encoder=Annotated[
        str | None,
        typer.Option(
            help="Encoder to continue with: a folder, a name in the package such as small, or a "
            "model id. Its sizes replace those below.",
            metavar="FOLDER",
        ),
    ],
    window_seconds=_option("window_seconds", "Length of the crops in seconds.", float),
    patch_seconds=_option("patch_seconds", "Length of a patch in seconds.", float),
    embed_dim=_option("embed_dim", "Size of a token.", int),
    num_layers=_option("num_layers", "Number of transformer blocks.", int),
    num_heads=_option("num_heads", "Number of attention heads in each block.", int),
    mlp_dim=_option("mlp_dim", "Hidden size of the feed-forward layers.", int),
    drop_prob=_option("drop_prob", "Dropout rate on the residual branches.", float),
    tokenizer=_option("tokenizer", "Map from patches to tokens: linear or spectral.", str),
    epochs=_option("epochs", "Number of epochs; the schedule has the same length.", int),
    steps_per_epoch=_option(
        "steps_per_epoch", "Number of steps in an epoch.", int, "one pass over the data"
    ),
    batch_size=_option("batch_size", "Number of examples in a step, over all processes.", int),
    micro_batch_size=_option(
        "micro_batch_size",
        "Number of examples that pass through the network at once. Smaller values need less "
        "memory.",
        int,
        "batch size / number of processes",
    ),
    lr=_option("lr", "Learning rate of AdamW after the warm-up.", float),
    weight_decay=_option("weight_decay", "Weight decay on the weights of linear layers.", float),
    warmup=_option("warmup", "Share of all steps in which the learning rate rises.", float),
    exclude_subject=Annotated[
        list[str] | None,
        typer.Option(help="Subject to exclude. May be repeated.", metavar="ID"),
    ],
    precision=_option("precision", "Precision: float32 or bfloat16.", str),
    compile=Annotated[
        bool | None, typer.Option("--compile/--no-compile", help="Compile the encoder.")
    ],
    seed=_option("seed", "Seed of all random draws.", int),
    device=_option("device", "Device: auto, cpu, cuda or mps.", str),
    num_workers=_option(
        "num_workers",
        "Number of processes that load data ahead, for each training process.",
        int,
        "up to 4 on a GPU, 0 on the CPU",
    ),
)


def with_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a run to a command, which receives those that were given as ``given``."""

    @functools.wraps(command)
    def with_options(**arguments: Any) -> None:
        options = {name: arguments.pop(name) for name in OPTIONS}
        given = {name: value for name, value in options.items() if value is not None}
        command(**arguments, given=given)

    # typer reads the parameters of a command from its signature and its annotations.
    own = inspect.signature(command, eval_str=True).parameters.values()
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in OPTIONS.items()
    ]
    with_options.__signature__ = inspect.Signature([p for p in own if p.name != "given"] + added)
    with_options.__annotations__ = {
        parameter.name: parameter.annotation
        for parameter in with_options.__signature__.parameters.values()
    }
    return with_options


def run_config(given: dict[str, Any], resumed: Path | None = None) -> RunConfig:
    """Return the configuration that options ask for; the defaults on the CPU are a laptop's.

    Parameters
    ----------
    given : dict
        Options of the command line, as :func:`with_run_options` passes them.
    resumed : path | None
        Folder of a run to resume. It keeps its defaults on another device.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError
        When an option or a setting in the file is wrong.
    """
    given = dict(given)
    file, paper = given.pop("config", None), given.pop("paper", False)
    if "settings" in given:
        given["task_params"] = values(given.pop("settings"), "--set")
    if "exclude_subject" in given:
        given["exclude_subjects"] = given.pop("exclude_subject")
    published = RunConfig(**given) if file is None else RunConfig.from_file(file, **given)
    if paper:
        return published
    small = RunConfig.for_laptop(file, **given)
    began = None if resumed is None else _configuration_of(resumed)
    if began is not None:
        return max(published, small, key=lambda config: _n_equal(config, began))
    if _device_type(published) != "cpu":
        return published
    if small != published and os.environ.get("RANK", "0") == "0":  # torchrun numbers processes
        log.info(
            "These are defaults for a laptop, because the device is the CPU: %s. --paper asks for "
            "the published ones.",
            _differences(published, small),
        )
    return small


def _device_type(config: RunConfig) -> str:
    from braindecode_pars.training._device import find_device  # imports torch

    return find_device(config.device).type


def _configuration_of(run: Path) -> dict[str, Any] | None:
    """Return the settings that a run began with; None if they cannot be read."""
    try:
        return json.loads((run / "run.json").read_text(encoding="utf-8"))["configuration"]
    except (OSError, ValueError, KeyError, TypeError):
        return None  # the run itself says what is wrong


def _n_equal(config: RunConfig, settings: dict[str, Any]) -> int:
    return sum(settings.get(name) == value for name, value in vars(config).items())


def _differences(one: RunConfig, other: RunConfig) -> str:
    """Return the settings of ``other`` that differ from those of ``one``."""
    pairs = ((name, getattr(other, name)) for name in vars(one))
    return ", ".join(f"{name} {value}" for name, value in pairs if value != getattr(one, name))
