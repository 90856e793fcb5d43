"""The published hyperparameters, as plain dicts (sections 2.5 and A.1).

``PARSClassifier(**paper.CLASSIFIER)`` is the paper's model and training, for 30-second windows at
200 Hz. ``PretrainingNet(PARS, module__n_times=6000, callbacks=[WarmupCosine()],
**paper.PRETRAINING)`` is its pretraining alone.

>>> from braindecode_pars import PARSClassifier, PatchEncoder, paper
>>> PARSClassifier(**paper.CLASSIFIER).pretrain_epochs
1000
>>> encoder = PatchEncoder(patch_size=200, **paper.ENCODER)
>>> f"{sum(parameter.numel() for parameter in encoder.parameters()):,}"
'12,727,808'
"""

from __future__ import annotations

from typing import Any

__all__ = ["CLASSIFIER", "ENCODER", "PARS", "PRETRAINING"]

#: For :class:`~braindecode_pars.PatchEncoder`: 12.7 million parameters.
ENCODER: dict[str, Any] = dict(embed_dim=512, num_layers=8, num_heads=8, mlp_dim=512)

#: For :class:`~braindecode_pars.pretext.PARS`, on 30-second windows with one-second patches.
PARS: dict[str, Any] = dict(n_patches=40, position_mask_ratio=0.8)

#: For :class:`~braindecode_pars.pretraining.PretrainingNet`, together with the callback
#: :class:`~braindecode_pars.callbacks.WarmupCosine`, whose defaults are the paper's.
PRETRAINING: dict[str, Any] = dict(
    max_epochs=1000, lr=1e-4, batch_size=512, optimizer__weight_decay=1e-4
)

#: For :class:`~braindecode_pars.PARSClassifier`. The fine-tuning batch size is not published; 64
#: is ours.
CLASSIFIER: dict[str, Any] = dict(
    pretext="pars",
    pretext_params=dict(position_mask_ratio=0.8),  # 40 patches follow from 30-s windows
    patch_seconds=1.0,
    **ENCODER,
    channel_drop_prob=0.5,
    pretrain_epochs=1000,
    pretrain_batch_size=512,
    pretrain_lr=1e-4,
    finetune_epochs=200,
    finetune_batch_size=64,
    finetune_lr=1e-4,
    weight_decay=1e-4,
    class_weight="balanced",
)
