"""The settings of a pretraining, which the function, the callback, estimators and runs share.

This module imports no torch: the command line shows the settings of a run in its help.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from braindecode_pars._common import checks

#: Defaults of a pretraining. They are made for two CPU cores and tens of subjects; the settings of
#: the paper are in :mod:`~braindecode_pars.paper`.
LEARNING_RATE = 3e-3
BATCH_SIZE = 32
WEIGHT_DECAY = 1e-4
#: Maximum number of steps of a pretraining for which neither epochs, steps nor minutes are given.
MAX_STEPS = 2000

#: Setting -> rule. The task is checked where it is built, the device where it is looked for.
RULES = dict(
    task_params=checks.instance("a dict of arguments", Mapping),
    epochs=checks.optional(checks.integer(0)),
    max_steps=checks.optional(checks.integer(1)),
    minutes=checks.optional(checks.positive()),
    sham=checks.boolean(),
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
        channel. The learning rate follows
        :class:`~braindecode_pars.callbacks.WarmupCosine`. If None, training continues while the
        held-out loss falls, see :class:`~braindecode_pars.callbacks.HeldOutSchedule`.
    max_steps, minutes : int | None, float | None
        Maximum number of steps, and of minutes, where ``epochs`` is None. If both are None, there
        are 2000 steps at most. With ``minutes``, the result depends on the speed of the machine.
    sham : bool
        Whether to train on the targets of other examples, so that nothing can be learned: the
        control of a pretraining. Everything else is equal.
    lr, batch_size, weight_decay : float, int, float
        Learning rate, batch size and weight decay of AdamW.
    warmup : float
        Proportion of warm-up steps, see :class:`~braindecode_pars.callbacks.WarmupCosine`. Without
        ``epochs``, the warm-up has 100 steps.
    precision, compile
        As in :class:`~braindecode_pars._common.computing.TrainingNet`.
    device : str | torch.device | None
        Device of pretraining. ``"auto"`` uses CUDA, then MPS, then the CPU. None uses the device
        of the encoder.

    Raises
    ------
    TypeError, ValueError
        When a setting has the wrong type or is out of range, or ``epochs`` and a limit of steps or
        minutes are both given.

    Examples
    --------
    >>> from braindecode_pars.pretraining import PretrainingSettings
    >>> PretrainingSettings("mae", epochs=100).batch_size
    32
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
    max_steps: int | None = None
    minutes: float | None = None
    sham: bool = False

    @classmethod
    def of(cls, parameters: Mapping[str, Any], **others: Any) -> Self:
        """Return the settings among the parameters of an estimator or a run, and others."""
        names = {setting.name for setting in fields(cls)} & parameters.keys()
        return cls(**{name: parameters[name] for name in names} | others)

    @property
    def step_limit(self) -> float:
        """Maximum number of steps without ``epochs``; NaN when only minutes limit them."""
        default = MAX_STEPS if self.minutes is None else math.nan
        return default if self.max_steps is None else self.max_steps

    def __post_init__(self) -> None:
        checks.check_parameters(vars(self), RULES, type(self).__name__)
        if self.epochs is not None and (self.max_steps or self.minutes) is not None:
            raise ValueError(
                f"epochs={self.epochs} sets the length of pretraining, so that max_steps and "
                "minutes have no effect. Pass epochs alone, or epochs=None with these limits."
            )
        if self.sham and 1 in (self.batch_size, getattr(self, "micro_batch_size", None)):
            raise ValueError(
                "A sham pretraining uses the targets of other examples in a batch; set batch_size "
                "to at least 2, got 1. The same holds for micro_batch_size of a run."
            )
