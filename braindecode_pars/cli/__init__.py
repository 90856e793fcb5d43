"""The command line: ``braindecode-pars demo`` and ``braindecode-pars evaluate``."""

from __future__ import annotations

import typer

from braindecode_pars.cli.demo import demo
from braindecode_pars.cli.evaluate import evaluate

__all__ = ["app"]

app = typer.Typer(
    help="Self-supervised pretraining for EEG.", no_args_is_help=True, add_completion=False
)
app.command()(demo)
app.add_typer(evaluate, name="evaluate")
