"""Parts that pretraining and fine-tuning share.

- ``_device``: choice of the device.
- ``_seeding``: random draws that follow a seed, also in threads.
- ``_precision``: bfloat16, compilation and TF32.
- ``_budget``: number of epochs where none is given.
- ``_schedule``: learning rate of each step.
- ``_weight_decay``: weights that decay.
- ``_cross_entropy``: class weights in the loss of a batch and of an epoch.
- ``_time_budget``: end of a training when its time is over.
- ``_failures``: errors after Ctrl-C or a NaN loss.
- ``_restored``: the epoch whose state is restored at the end.
- ``_learned``: warnings of a training that may have learned nothing.
- ``_progress`` and ``_history``: progress bar and table of losses.
"""

from braindecode_pars.training._failures import NoSilentFailure
from braindecode_pars.training._precision import Precision
from braindecode_pars.training._weight_decay import NO_DECAY

__all__ = ["NO_DECAY", "NoSilentFailure", "Precision"]
