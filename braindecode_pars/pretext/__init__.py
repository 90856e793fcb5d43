"""Interchangeable pretext tasks: ``forward(x) -> prediction, target``."""

from braindecode_pars.pretext.base import PRETEXT_TASKS, PretextTask, make_task
from braindecode_pars.pretext.pars import PARS

__all__ = ["PARS", "PRETEXT_TASKS", "PretextTask", "make_task"]
