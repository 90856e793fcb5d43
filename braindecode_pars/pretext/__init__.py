"""Pretext tasks for self-supervised pretraining, with a common interface.

``forward(x)`` of each task returns ``prediction, target``. The tasks are listed in ``TASKS`` of
``_common/names.py``.
"""

from typing import TYPE_CHECKING

from braindecode_pars._common.names import TASKS
from braindecode_pars.pretext.base import PRETEXT_TASKS, AllChannelTask, PretextTask, make_task

if TYPE_CHECKING:
    from braindecode_pars.pretext.features import (
        SignalFeatures as SignalFeatures,
    )
    from braindecode_pars.pretext.features import (
        SpaceTimeFeatures as SpaceTimeFeatures,
    )
    from braindecode_pars.pretext.grid import MAE as MAE
    from braindecode_pars.pretext.grid import MP3 as MP3
    from braindecode_pars.pretext.grid import DropPos as DropPos
    from braindecode_pars.pretext.joint import Joint as Joint
    from braindecode_pars.pretext.joint import SpaceTimeJoint as SpaceTimeJoint
    from braindecode_pars.pretext.pars import PARS as PARS
    from braindecode_pars.pretext.pars import SpaceTimePARS as SpaceTimePARS
    from braindecode_pars.pretext.spectral import (
        SpaceTimeSpectralMAE as SpaceTimeSpectralMAE,
    )
    from braindecode_pars.pretext.spectral import (
        SpectralMAE as SpectralMAE,
    )

__all__ = [
    "PRETEXT_TASKS",
    "AllChannelTask",
    "PretextTask",
    "make_task",
    *(entry.attribute for entry in TASKS.values()),
]
# Importing a task adds it to PRETEXT_TASKS.
globals().update({entry.attribute: entry.load() for entry in TASKS.values()})
