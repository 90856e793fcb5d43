"""Hyperparameters of the PARS paper as dicts (sections 2.5 and A.1 of Sandino et al. 2025).

``PARSClassifier(**paper.CLASSIFIER)`` uses the model, the pretraining and the fine-tuning of the
paper, for 30-second windows at 200 Hz. ``PretrainingNet(PARS, module__n_times=6000,
callbacks=[WarmupCosine()], **paper.PRETRAINING)`` runs only the pretraining of the paper.

>>> from braindecode_pars import PARSClassifier, PatchEncoder, paper
>>> PARSClassifier(**paper.CLASSIFIER).pretrain_epochs
1000
>>> encoder = PatchEncoder(patch_size=200, **paper.ENCODER)
>>> f"{sum(parameter.numel() for parameter in encoder.parameters()):,}"
'12,727,808'
"""

from typing import Any

__all__ = ["CLASSIFIER", "EESM17", "ENCODER", "FINE_TUNING", "MODEL", "PARS", "PRETRAINING"]

#: Parameters of :class:`~braindecode_pars.PatchEncoder`. With patches of 200 samples, this encoder
#: has 12.7 million weights.
ENCODER: dict[str, Any] = dict(
    embed_dim=512, num_layers=8, num_heads=8, mlp_dim=512, tokenizer="linear"
)

#: Parameters of :class:`~braindecode_pars.PARSNet`: the sizes of the encoder, and a head that pools
#: the channels by attention and uses neither electrode positions nor amplitudes.
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

#: Parameters of :class:`~braindecode_pars.pretraining.PretrainingNet`. Combine them with the
#: callback :class:`~braindecode_pars.callbacks.WarmupCosine`, whose defaults are the values of the
#: paper.
PRETRAINING: dict[str, Any] = dict(
    max_epochs=1000, lr=1e-4, batch_size=512, optimizer__weight_decay=1e-4
)

#: Parameters of :class:`~braindecode_pars.PARSClassifier` for the head and for fine-tuning of an
#: encoder that is already pretrained. The paper does not state the batch size of fine-tuning; 64 is
#: a choice of this package.
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

#: Parameters of :class:`~braindecode_pars.PARSClassifier` for pretraining and for fine-tuning.
CLASSIFIER: dict[str, Any] = dict(
    pretext="pars",
    # The density is n_patches * patch length / window length. In windows of 30 s with patches of
    # 1 s, a density of 4/3 gives the 40 patches of the paper.
    pretext_params=dict(position_mask_ratio=0.8, density=4 / 3),
    patch_seconds=1.0,
    **ENCODER,
    pretrain_epochs=1000,
    pretrain_batch_size=512,
    pretrain_lr=1e-4,
    **FINE_TUNING,
)

#: Parameters of :class:`~braindecode_pars.PARSClassifier` for the ear-EEG corpus EESM17: the
#: parameters in CLASSIFIER, with noise on random channels in fine-tuning (appendix A.3 of the
#: paper). The paper does not state the amplitude of the noise; the default amplitude of
#: :class:`~braindecode_pars.estimators.ChannelNoise` is a choice of this package.
EESM17: dict[str, Any] = dict(CLASSIFIER, augmentation="ChannelNoise")
