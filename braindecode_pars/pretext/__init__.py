"""Interchangeable pretext tasks; each returns ``prediction, target`` from ``forward(x)``."""

from braindecode_pars.pretext.base import PRETEXT_TASKS, AllChannelTask, PretextTask, make_task
from braindecode_pars.pretext.features import SignalFeatures, SpaceTimeFeatures
from braindecode_pars.pretext.grid import MAE, MP3, DropPos
from braindecode_pars.pretext.joint import Joint, SpaceTimeJoint
from braindecode_pars.pretext.pars import PARS, SpaceTimePARS
from braindecode_pars.pretext.spectral import SpaceTimeSpectralMAE, SpectralMAE

__all__ = [
    "MAE",
    "MP3",
    "PARS",
    "PRETEXT_TASKS",
    "AllChannelTask",
    "DropPos",
    "Joint",
    "PretextTask",
    "SignalFeatures",
    "SpaceTimeFeatures",
    "SpaceTimeJoint",
    "SpaceTimePARS",
    "SpaceTimeSpectralMAE",
    "SpectralMAE",
    "make_task",
]
