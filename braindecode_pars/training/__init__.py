"""Parts that pretraining and fine-tuning share.

- ``_device``: choice of the device.
- ``_seeding``: random draws that follow a seed, also in threads.
- ``_precision``: bfloat16, compilation and TF32.
- ``_schedule``: learning rate of each step.
- ``_weight_decay``: weights that decay.
- ``_cross_entropy``: class weights in the loss of a batch and of an epoch.
- ``_failures``: errors after Ctrl-C or a NaN loss.
- ``_progress`` and ``_history``: progress bar and table of losses.
"""

from braindecode_pars.training._failures import NoSilentFailure
from braindecode_pars.training._precision import Precision
from braindecode_pars.training._weight_decay import NO_DECAY

__all__ = ["NO_DECAY", "NoSilentFailure", "Precision"]
