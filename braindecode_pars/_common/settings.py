"""Settings of pretraining, shared by the pretraining function, callback, estimators and runs.

The command line shows the settings in its help, which must be fast. Therefore, this module does not
import torch.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from braindecode_pars._common import checks

#: Default learning rate. The default settings were chosen for two CPU cores and tens of subjects.
#: The settings of the paper are in :mod:`~braindecode_pars.paper`.
LEARNING_RATE = 3e-3
#: Default number of examples per batch.
BATCH_SIZE = 32
#: Default weight decay of AdamW.
WEIGHT_DECAY = 1e-4
#: Default maximum number of steps, used if epochs, max_steps and minutes are all None.
MAX_STEPS = 2000

#: Rules of the settings. The task is validated when it is built; the device when it is selected.
RULES = dict(
    task_params=checks.instance("a dict of arguments", Mapping),
    epochs=checks.optional(checks.integer(0)),
    max_steps=checks.optional(checks.integer(1)),
    minutes=checks.optional(checks.positive()),
    sham=checks.boolean(),
    lr=checks.positive(),
    batch_size=checks.integer(1),
    weight_decay=checks.number("of 0 or more", lambda value: value >= 0),
    warmup=checks.proportion(),
    precision=checks.choice("float32", "bfloat16"),
    compile=checks.boolean(),
)


@dataclass(frozen=True)
class PretrainingSettings:
    """Settings of pretraining that do not depend on the windows.

    Attributes
    ----------
    task : str | type[PretextTask] | PretextTask
        Pretext task: a name in :data:`~braindecode_pars.pretext.PRETEXT_TASKS` (such as
        ``"pars"``), a class, or an instance. It can also be a class in a Python file, written as
        ``"my_task.py:Slope"``. The code in this file is then executed.
    task_params : dict
        Additional arguments of the pretext task, for example ``{"position_mask_ratio": 0.6}``.
    epochs : int | None
        Number of epochs. In each epoch, one example is drawn from every window: a random crop of a
        random channel. If the number of epochs is set, the learning rate schedule is
        :class:`~braindecode_pars.callbacks.WarmupCosine`. If None, pretraining continues as long as
        the loss on held-out subjects decreases, see
        :class:`~braindecode_pars.callbacks.HeldOutSchedule`.
    max_steps, minutes : int | None, float | None
        Maximum number of steps, and maximum duration in minutes, if ``epochs`` is None. If
        ``max_steps`` and ``minutes`` are both None, the maximum is 2000 steps. If ``minutes`` is
        set, the result depends on the speed of the machine.
    sham : bool
        Whether to use sham pretraining: the same training, but each example gets the target of
        another example, so there is nothing to learn. Sham pretraining is a control condition.
    lr, batch_size, weight_decay : float, int, float
        Learning rate, batch size and weight decay of AdamW.
    warmup : float
        Proportion of all steps that are warm-up steps, see
        :class:`~braindecode_pars.callbacks.WarmupCosine`. If ``epochs`` is None, this setting is
        ignored, and the warm-up has 100 steps.
    precision, compile
        As in :class:`~braindecode_pars.pretraining.PretrainingNet`.
    device : str | torch.device | None
        Device used for pretraining. ``"auto"`` selects CUDA, MPS or the CPU, in this order. If
        None, the device of the encoder is used.

    Raises
    ------
    TypeError, ValueError
        If a setting has the wrong type or is out of range, or if ``epochs`` is combined with
        ``max_steps`` or ``minutes``.

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
        """Create settings from the parameters of an estimator or a run.

        Parameters that are not settings are ignored. ``others`` are additional settings, which take
        precedence over ``parameters``.
        """
        names = {setting.name for setting in fields(cls)} & parameters.keys()
        return cls(**{name: parameters[name] for name in names} | others)

    @property
    def step_limit(self) -> float:
        """Maximum number of steps, if ``epochs`` is None. NaN if only ``minutes`` is set."""
        default = MAX_STEPS if self.minutes is None else math.nan
        return default if self.max_steps is None else self.max_steps

    def __post_init__(self) -> None:
        checks.check_parameters(vars(self), RULES, type(self).__name__)
        if self.epochs is not None and (self.max_steps or self.minutes) is not None:
            raise ValueError(
                f"epochs={self.epochs} cannot be combined with max_steps or minutes. Pass only "
                "epochs, or set epochs=None to limit pretraining by max_steps or minutes."
            )
        if self.sham and 1 in (self.batch_size, getattr(self, "micro_batch_size", None)):
            raise ValueError(
                "With sham=True, each window in a batch gets the targets of another window, so "
                "batch_size (and micro_batch_size of a RunConfig) must be at least 2. Got 1 for "
                "at least one of them."
            )
