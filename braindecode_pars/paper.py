"""Published hyperparameters as dicts (sections 2.5 and A.1), and the settings of a pretraining.

``PARSClassifier(**paper.CLASSIFIER)`` has the paper's model and training, for 30-second windows at
200 Hz. ``PretrainingNet(PARS, module__n_times=6000, callbacks=[WarmupCosine()],
**paper.PRETRAINING)`` has only the paper's pretraining.

>>> from braindecode_pars import PARSClassifier, PatchEncoder, paper
>>> PARSClassifier(**paper.CLASSIFIER).pretrain_epochs
1000
>>> encoder = PatchEncoder(patch_size=200, **paper.ENCODER)
>>> f"{sum(parameter.numel() for parameter in encoder.parameters()):,}"
'12,727,808'

This module imports no torch: the command line shows the settings of a run in its help.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from braindecode_pars._common import checks

__all__ = ["CLASSIFIER", "EESM17", "ENCODER", "FINE_TUNING", "MODEL", "PARS", "PRETRAINING"]

#: Parameters of :class:`~braindecode_pars.PatchEncoder`, which then has 12.7 million weights.
ENCODER: dict[str, Any] = dict(
    embed_dim=512, num_layers=8, num_heads=8, mlp_dim=512, tokenizer="linear"
)

#: Parameters of :class:`~braindecode_pars.PARSNet`: the encoder, and the head without electrode
#: positions and amplitudes.
MODEL: dict[str, Any] = dict(
    **ENCODER,
    channel_drop_prob=0.5,
    electrode_position=False,
    amplitude=False,
    head="attention",
)

#: Parameters of :class:`~braindecode_pars.pretext.PARS`, for 30-second windows and one-second
#: patches.
PARS: dict[str, Any] = dict(n_patches=40, position_mask_ratio=0.8)

#: Parameters of :class:`~braindecode_pars._common.computing.TrainingNet`. Combine them with the
#: callback :class:`~braindecode_pars.callbacks.WarmupCosine`, whose defaults are the paper's.
PRETRAINING: dict[str, Any] = dict(
    max_epochs=1000, lr=1e-4, batch_size=512, optimizer__weight_decay=1e-4
)

#: Parameters of :class:`~braindecode_pars.PARSClassifier` for the head and fine-tuning alone, with
#: a pretrained encoder. The batch size is not published; 64 is a choice of this package.
FINE_TUNING: dict[str, Any] = dict(
    **{name: value for name, value in MODEL.items() if name not in ENCODER},
    finetune_epochs=200,
    finetune_batch_size=64,
    finetune_lr=1e-4,
    finetune_warmup=None,
    freeze_encoder=False,
    head_epochs=0,
    encoder_lr_factor=1.0,
    gradient_clip=None,
    label_smoothing=0.0,
    drop_prob=0.0,
    weight_decay=1e-4,
    class_weight="balanced",
    validation=0.2,
)

#: Parameters of :class:`~braindecode_pars.PARSClassifier`: pretraining and fine-tuning.
CLASSIFIER: dict[str, Any] = dict(
    pretext="pars",
    pretext_params=dict(position_mask_ratio=0.8),  # the 40 patches are derived from 30 s
    patch_seconds=1.0,
    **ENCODER,
    pretrain_epochs=1000,
    pretrain_batch_size=512,
    pretrain_lr=1e-4,
    **FINE_TUNING,
)

#: Parameters of :class:`~braindecode_pars.PARSClassifier` for EESM17, with noise on random channels
#: in fine-tuning (appendix A.3). Its level is not published; that of
#: :class:`~braindecode_pars.estimators.ChannelNoise` is a choice of this package.
EESM17: dict[str, Any] = dict(CLASSIFIER, augmentation="ChannelNoise")

#: Defaults of a pretraining. They are made for two CPU cores and tens of subjects; those of the
#: paper are above. Where these epochs have fewer than ``STEPS`` steps, there are more.
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
