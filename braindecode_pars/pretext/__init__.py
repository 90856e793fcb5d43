"""Pretext tasks for self-supervised pretraining, with a common interface.

``forward(x)`` of every task returns ``prediction, target``. To add a task to the package, add an
entry to ``TASKS`` in ``_common/names.py``.
"""

from typing import TYPE_CHECKING

from braindecode_pars._common.names import TASKS
from braindecode_pars.pretext.base import PRETEXT_TASKS, AllChannelTask, PretextTask, make_task

if TYPE_CHECKING:
    from braindecode_pars.pretext.features import SignalFeatures, SpaceTimeFeatures  # noqa: F401
    from braindecode_pars.pretext.grid import MAE, MP3, DropPos  # noqa: F401
    from braindecode_pars.pretext.joint import Joint, SpaceTimeJoint  # noqa: F401
    from braindecode_pars.pretext.pars import PARS, SpaceTimePARS  # noqa: F401
    from braindecode_pars.pretext.spectral import SpaceTimeSpectralMAE, SpectralMAE  # noqa: F401

__all__ = [
    "PRETEXT_TASKS",
    "AllChannelTask",
    "PretextTask",
    "make_task",
    *(entry.attribute for entry in TASKS.values()),
]
# Importing a task adds it to PRETEXT_TASKS.
globals().update({entry.attribute: entry.load() for entry in TASKS.values()})
