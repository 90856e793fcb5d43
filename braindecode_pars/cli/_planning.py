"""Print what a pretraining run takes."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from braindecode_pars.cli._console import make_console, print_table
from braindecode_pars.runs import CorpusSize, RunConfig, RunPlan, plan

__all__ = ["show_plan"]


def show_plan(corpus: CorpusSize, config: RunConfig) -> None:
    """Plan a run and print what it takes, one fact a line."""
    console = make_console()
    table = Table(show_header=False)
    for row in _rows(corpus, config, plan(corpus, config)):
        table.add_row(*row)
    print_table(console, table)
    console.print("Nothing was started. The hours hold if data arrive as fast as they are used.")


def _rows(corpus: CorpusSize, config: RunConfig, planned: RunPlan) -> Iterator[tuple[str, str]]:
    """Yield names and values."""
    yield "corpus", corpus.description
    yield "windows in a pass", f"{corpus.n_windows:,} at {corpus.sfreq:g} Hz"
    yield "network", f"{config.task} with {planned.parameters:,} parameters"
    yield "disk of the store", _bytes(planned.store_bytes)
    yield "disk of the run", _bytes(planned.run_bytes)
    yield "memory", f"{_bytes(planned.memory_bytes)} on each device, and temporary tensors"
    yield (
        "steps",
        f"{planned.n_steps:,}: {config.epochs:,} epochs of {planned.steps_per_epoch:,} steps of "
        f"{config.batch_size:,} windows",
    )
    yield "windows in all steps", f"{planned.n_examples:,}"
    yield "tokens", f"{planned.tokens:.3g}"
    yield "FLOPs", f"{planned.flops:.3g}"
    yield "devices", f"{planned.n_devices} ({planned.device})"
    yield (
        "speed",
        f"{planned.windows_per_second:,.4g} windows/s on each, measured on steps of "
        f"{planned.measured_windows} in {config.precision}",
    )
    yield "time", _time(planned.hours)


def _bytes(n_bytes: float) -> str:
    """Return a size in a decimal unit."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.3g} TB"


def _time(hours: float) -> str:
    if hours < 1:
        return f"{hours * 60:.2g} min"
    days = f" ({hours / 24:,.3g} days)" if hours >= 48 else ""
    return f"{hours:,.0f} h{days}" if hours >= 10 else f"{hours:.2g} h"
