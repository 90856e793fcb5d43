"""``braindecode-pars pretrain``: pretrain an encoder on a SignalStore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars.cli._failures import report_failures
from braindecode_pars.cli._names import TASKS
from braindecode_pars.cli._values import values
from braindecode_pars.runs import RunConfig

__all__ = ["pretrain"]


def _option(name: str, text: str, kind: type, default: str = "", **extra: Any) -> Any:
    """Return the type of an option that is None by default; help shows the default of a run.

    With None, options that were not given can be told apart, so that ``--config`` applies.
    """
    shown = default or str(getattr(RunConfig, name))
    extra.setdefault("metavar", {int: "N", float: "X", str: "NAME"}.get(kind))
    return Annotated[kind | None, typer.Option(help=text, show_default=shown, **extra)]


def pretrain(
    store: Annotated[Path, typer.Argument(help="Folder of a SignalStore.")],
    out: Annotated[Path, typer.Option(help="Folder for the run and its encoder.")],
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML or JSON file with any of these settings; options on the command line "
            "override it."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the run in --out from its last checkpoint.")
    ] = False,
    task: _option("task", f"Pretext task: {', '.join(TASKS)}.", str) = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Argument of the task, such as n_patches=240. May be repeated.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Encoder to continue with: a folder, a name in the package such as small, or a "
            "model id. Its sizes replace those below.",
            metavar="FOLDER",
        ),
    ] = None,
    window_seconds: _option("window_seconds", "Length of the crops in seconds.", float) = None,
    patch_seconds: _option("patch_seconds", "Length of a patch in seconds.", float) = None,
    embed_dim: _option("embed_dim", "Size of a token.", int) = None,
    num_layers: _option("num_layers", "Number of transformer blocks.", int) = None,
    num_heads: _option("num_heads", "Number of attention heads in each block.", int) = None,
    mlp_dim: _option("mlp_dim", "Hidden size of the feed-forward layers.", int) = None,
    drop_prob: _option("drop_prob", "Dropout rate on the residual branches.", float) = None,
    tokenizer: _option("tokenizer", "Map from patches to tokens: linear or spectral.", str) = None,
    epochs: _option("epochs", "Number of epochs; the schedule has the same length.", int) = None,
    steps_per_epoch: _option(
        "steps_per_epoch", "Number of steps in an epoch.", int, "one pass over the data"
    ) = None,
    batch_size: _option(
        "batch_size", "Number of examples in a step, over all processes.", int
    ) = None,
    micro_batch_size: _option(
        "micro_batch_size",
        "Number of examples that pass through the network at once. Smaller values need less "
        "memory.",
        int,
        "batch size / number of processes",
    ) = None,
    lr: _option("lr", "Learning rate of AdamW after the warm-up.", float) = None,
    weight_decay: _option(
        "weight_decay", "Weight decay on the weights of linear layers.", float
    ) = None,
    warmup: _option("warmup", "Share of all steps in which the learning rate rises.", float) = None,
    exclude_subject: Annotated[
        list[str] | None,
        typer.Option(help="Subject to exclude. May be repeated.", metavar="ID"),
    ] = None,
    precision: _option("precision", "Precision: float32 or bfloat16.", str) = None,
    compile: Annotated[  # noqa: A002
        bool | None, typer.Option("--compile/--no-compile", help="Compile the encoder.")
    ] = None,
    seed: _option("seed", "Seed of all random draws.", int) = None,
    device: _option("device", "Device: auto, cpu, cuda or mps.", str) = None,
    num_workers: _option(
        "num_workers",
        "Number of processes that load data ahead, for each training process.",
        int,
        "up to 4 on a GPU, 0 on the CPU",
    ) = None,
) -> None:
    """Pretrain an encoder on a store of recordings. The defaults are the paper's settings.

    For several GPUs or processes on one machine: torchrun --nproc-per-node N -m braindecode_pars
    pretrain ...
    """
    given = dict(
        task=task,
        encoder=encoder,
        window_seconds=window_seconds,
        patch_seconds=patch_seconds,
        embed_dim=embed_dim,
        num_layers=num_layers,
        num_heads=num_heads,
        mlp_dim=mlp_dim,
        drop_prob=drop_prob,
        tokenizer=tokenizer,
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
    with report_failures(f"The last checkpoint is in {out}; use --resume to continue."):
        from braindecode_pars import runs

        if settings:
            given["task_params"] = values(settings, "--set")
        chosen = RunConfig(**given) if config is None else RunConfig.from_file(config, **given)
        runs.pretrain(store, out, chosen, resume=resume)
