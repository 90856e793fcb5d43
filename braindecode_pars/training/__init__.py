"""What every training in this package shares, whatever it trains.

``_device`` and ``_seeding`` say where and with which random draws, ``_precision`` in which
arithmetic, ``_schedule`` at which learning rate, ``_weight_decay`` on which weights, ``_failures``
what ends it, ``_progress`` and ``_history`` what is shown and kept of it.
"""

from braindecode_pars.training._failures import NoSilentFailure
from braindecode_pars.training._precision import Precision
from braindecode_pars.training._weight_decay import NO_DECAY

__all__ = ["NO_DECAY", "NoSilentFailure", "Precision"]
