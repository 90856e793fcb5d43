"""``braindecode-pars pretrain``: an encoder from a SignalStore, on whatever there is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars.cli.failures import told
from braindecode_pars.cli.values import values
from braindecode_pars.pretext import PRETEXT_TASKS
from braindecode_pars.runs import RunConfig
from braindecode_pars.runs import pretrain as run

__all__ = ["pretrain"]


def _option(name: str, text: str, kind: type, default: str = "", **extra: Any) -> Any:
    """An option that is None where it is not given; its help shows what a run takes then."""
    shown = default or str(getattr(RunConfig, name))
    extra.setdefault("metavar", {int: "N", float: "X", str: "NAME"}.get(kind))
    return Annotated[kind | None, typer.Option(help=text, show_default=shown, **extra)]


def pretrain(
    store: Annotated[Path, typer.Argument(help="Folder of a SignalStore.")],
    out: Annotated[Path, typer.Option(help="Folder for the run and its encoder.")],
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML or JSON file with any of these settings; what is given here beats it."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out from its last checkpoint.")
    ] = False,
    task: _option("task", f"Pretext task: {', '.join(PRETEXT_TASKS)}.", str) = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Argument of the task, such as n_patches=240; may be repeated.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    window_seconds: _option("window_seconds", "Length of the random crops.", float) = None,
    patch_seconds: _option("patch_seconds", "Length of a patch.", float) = None,
    embed_dim: _option("embed_dim", "Size of a token.", int) = None,
    num_layers: _option("num_layers", "Transformer blocks.", int) = None,
    num_heads: _option("num_heads", "Attention heads in each block.", int) = None,
    mlp_dim: _option("mlp_dim", "Hidden size of each block's feed-forward part.", int) = None,
    drop_prob: _option("drop_prob", "Dropout on the residual branches.", float) = None,
    epochs: _option("epochs", "Length of the run, and of its schedule.", int) = None,
    steps_per_epoch: _option("steps_per_epoch", "Steps of an epoch.", int, "one pass") = None,
    batch_size: _option("batch_size", "Examples of a step, of all processes together.", int) = None,
    micro_batch_size: _option(
        "micro_batch_size",
        "Examples that go through the network at a time; less of them take less memory.",
        int,
        "a process' share of the batch",
    ) = None,
    lr: _option("lr", "Learning rate of AdamW after the warm-up.", float) = None,
    weight_decay: _option("weight_decay", "On the weights of linear layers.", float) = None,
    warmup: _option("warmup", "Share of all steps that warms up.", float) = None,
    exclude_subject: Annotated[
        list[str] | None,
        typer.Option(help="A person to leave out; may be repeated.", metavar="ID"),
    ] = None,
    precision: _option("precision", "float32 or bfloat16.", str) = None,
    compile: Annotated[  # noqa: A002
        bool | None, typer.Option("--compile/--no-compile", help="Compile the encoder.")
    ] = None,
    seed: _option("seed", "Of all random draws.", int) = None,
    device: _option("device", "auto, cpu, cuda or mps.", str) = None,
    num_workers: _option(
        "num_workers",
        "Processes that read data ahead, for each training process.",
        int,
        "4 beside a GPU, else 0",
    ) = None,
) -> None:
    """Pretrain an encoder on a store of recordings; the defaults are the paper's.

    On several GPUs or processes of one machine: torchrun --nproc-per-node N -m braindecode_pars
    pretrain ...
    """
    options = locals()
    given = {name: options[name] for name in _SAME_NAME if options[name] is not None}
    with told(f"{out} keeps what was learned up to the last checkpoint; --resume goes on from it."):
        if settings:
            given["task_params"] = values(settings, "--set")
        if exclude_subject:
            given["exclude_subjects"] = exclude_subject
        chosen = RunConfig(**given) if config is None else RunConfig.from_file(config, **given)
        run(store, out, chosen, resume=resume)


#: Options that are called as the configuration calls them.
_SAME_NAME = [
    name
    for name in RunConfig.__dataclass_fields__
    if name not in ("task_params", "exclude_subjects")
]
