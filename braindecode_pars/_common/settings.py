"""The settings of a pretraining, which the function, the callback, estimators and runs share.

This module imports no torch: the command line shows the settings of a run in its help.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from braindecode_pars._common import checks

#: Defaults of a pretraining. They are made for two CPU cores and tens of subjects; the settings of
#: the paper are in :mod:`~braindecode_pars.paper`. Where these epochs have fewer than ``STEPS``
#: steps, there are more.
EPOCHS = 50
STEPS = 600
LEARNING_RATE = 4e-3
BATCH_SIZE = 64
WEIGHT_DECAY = 1e-4

#: Setting -> rule. The task is checked where it is built, the device where it is looked for.
RULES = dict(
    task_params=checks.instance("a dict of arguments", Mapping),
    epochs=checks.optional(checks.integer(0)),
    lr=checks.positive(),
    batch_size=checks.integer(1),
    weight_decay=checks.number("of 0 or more", lambda value: value >= 0),
    warmup=checks.share(),
    precision=checks.choice("float32", "bfloat16"),
    compile=checks.boolean(),
)


@dataclass(frozen=True)
class PretrainingSettings:
    """How an encoder is pretrained, whatever the windows.

    Attributes
    ----------
    task : str | type[PretextTask] | PretextTask
        Pretext task: a name in ``PRETEXT_TASKS``, a class or an instance; or a class in a file,
        such as ``"my_task.py:Slope"``, whose code is run.
    task_params : dict
        Further arguments of the task, for example ``{"position_mask_ratio": 0.6}``.
    epochs : int | None
        Number of epochs. In each epoch, every window gives one example: a random crop of a random
        channel. With None there are 50, or as many more as 600 steps take.
    lr, batch_size, weight_decay : float, int, float
        Learning rate, batch size and weight decay of AdamW.
    warmup : float
        Share of all steps that are warm-up, see :class:`~braindecode_pars.callbacks.WarmupCosine`.
    precision, compile
        As in :class:`~braindecode_pars._common.computing.TrainingNet`.
    device : str | torch.device | None
        Device of pretraining. ``"auto"`` uses CUDA, then MPS, then the CPU. None uses the device
        of the encoder.

    Raises
    ------
    TypeError, ValueError
        When a setting has the wrong type or is out of range.

    Examples
    --------
    >>> from braindecode_pars.pretraining import PretrainingSettings
    >>> PretrainingSettings("mae", epochs=100).batch_size
    64
    """

    task: Any = "pars"
    task_params: Mapping[str, Any] = field(default_factory=dict)
    epochs: int | None = None
    lr: float = LEARNING_RATE
    batch_size: int = BATCH_SIZE
    weight_decay: float = WEIGHT_DECAY
    warmup: float = 0.1
    precision: str = "float32"
    compile: bool = False
    device: Any = "auto"

    def __post_init__(self) -> None:
        checks.check_parameters(vars(self), RULES, type(self).__name__)
