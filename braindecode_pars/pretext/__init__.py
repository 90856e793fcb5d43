"""Interchangeable pretext tasks; each returns ``prediction, target`` from ``forward(x)``."""

from braindecode_pars.pretext.base import PRETEXT_TASKS, PretextTask, make_task
from braindecode_pars.pretext.features import SignalFeatures
from braindecode_pars.pretext.grid import MAE, MP3, DropPos
from braindecode_pars.pretext.joint import Joint
from braindecode_pars.pretext.pars import PARS, SpaceTimePARS
from braindecode_pars.pretext.spectral import SpectralMAE

__all__ = [
    "MAE",
    "MP3",
    "PARS",
    "PRETEXT_TASKS",
    "DropPos",
    "Joint",
    "PretextTask",
    "SignalFeatures",
    "SpaceTimePARS",
    "SpectralMAE",
    "make_task",
]
