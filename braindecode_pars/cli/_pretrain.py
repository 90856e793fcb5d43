"""``braindecode-pars pretrain``: an encoder from a SignalStore, on whatever there is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars.cli._failures import failures_told
from braindecode_pars.cli._names import TASKS
from braindecode_pars.cli._values import values
from braindecode_pars.runs import RunConfig

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
    task: _option("task", f"Pretext task: {', '.join(TASKS)}.", str) = None,
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
    given = dict(
        task=task,
        window_seconds=window_seconds,
        patch_seconds=patch_seconds,
        embed_dim=embed_dim,
        num_layers=num_layers,
        num_heads=num_heads,
        mlp_dim=mlp_dim,
        drop_prob=drop_prob,
        epochs=epochs,
        steps_per_epoch=steps_per_epoch,
        batch_size=batch_size,
        micro_batch_size=micro_batch_size,
        lr=lr,
        weight_decay=weight_decay,
        warmup=warmup,
        exclude_subjects=exclude_subject,
        precision=precision,
        compile=compile,
        seed=seed,
        device=device,
        num_workers=num_workers,
    )
    given = {name: value for name, value in given.items() if value is not None}
    with failures_told(f"{out} keeps what was learned until the last checkpoint; use --resume."):
        from braindecode_pars import runs

        if settings:
            given["task_params"] = values(settings, "--set")
        chosen = RunConfig(**given) if config is None else RunConfig.from_file(config, **given)
        runs.pretrain(store, out, chosen, resume=resume)
