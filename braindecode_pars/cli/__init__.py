"""The command line ``braindecode-pars``: demo, store, pretrain, evaluate, benchmark."""

from __future__ import annotations

import typer

from braindecode_pars.cli.benchmark import benchmark
from braindecode_pars.cli.demo import demo
from braindecode_pars.cli.evaluate import evaluate
from braindecode_pars.cli.pretrain import pretrain
from braindecode_pars.cli.store import store

__all__ = ["app"]

app = typer.Typer(
    help="Self-supervised pretraining for EEG.", no_args_is_help=True, add_completion=False
)
app.command()(demo)
app.command()(store)
app.command()(pretrain)
app.add_typer(evaluate, name="evaluate")
app.command()(benchmark)
