"""The commands of ``braindecode-pars``."""

from __future__ import annotations

import logging

import typer

from braindecode_pars.cli._benchmark import benchmark
from braindecode_pars.cli._demo import demo
from braindecode_pars.cli._encoders import encoders
from braindecode_pars.cli._evaluate import evaluate
from braindecode_pars.cli._plan import plan
from braindecode_pars.cli._predict import predict
from braindecode_pars.cli._pretrain import pretrain
from braindecode_pars.cli._store import store

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False)
app.command()(demo)
app.command()(store)
app.command()(plan)
app.command()(pretrain)
app.add_typer(evaluate, name="evaluate")
app.command()(predict)
app.command()(encoders)
app.command()(benchmark)


class _Echo(logging.Handler):
    """Print the package's log: information on the standard output, warnings on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(self.format(record), err=record.levelno >= logging.WARNING)


@app.callback()
def show_log() -> None:
    """Self-supervised pretraining for EEG."""
    log = logging.getLogger("braindecode_pars")
    log.setLevel(logging.INFO)
    if not any(isinstance(handler, _Echo) for handler in log.handlers):
        log.addHandler(_Echo())
