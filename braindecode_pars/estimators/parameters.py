"""Accepted values of the parameters of the estimators."""

from __future__ import annotations

import os
from collections.abc import Iterator
from numbers import Integral, Real
from types import FunctionType, NoneType
from typing import Any

import numpy as np
import torch
from braindecode.augmentation import Mixup, Transform
from sklearn.base import BaseEstimator
from skorch.callbacks import Callback, LRScheduler

from braindecode_pars._common import checks
from braindecode_pars._common.checks import (
    boolean,
    choice,
    instance,
    integer,
    number,
    optional,
    positive,
    share,
)
from braindecode_pars.encoder import TOKENIZERS
from braindecode_pars.estimators.augmentation import make_augmentation
from braindecode_pars.models.parsnet import HEADS
from braindecode_pars.pretext.base import PretextTask
from braindecode_pars.recordings.preprocessing import Preprocessing
from braindecode_pars.windows.held_out import SPLIT

_FOLDER = instance("a path, or None", str, os.PathLike, NoneType)

#: Values of ``pooling`` of PARSEmbedder.
POOLINGS = ("auto", "channels", "mean_std", "mean")

#: Parameter name -> rule. Parameters without a rule are checked where they are used.
RULES = dict(
    pretext=instance(
        "the name, the class or an instance of a pretext task, or None",
        str,
        type,
        PretextTask,
        NoneType,
    ),
    pretext_params=instance("a dict of arguments, or None", dict, NoneType),
    network=instance("the name or the class of a braindecode model", str, type),
    network_params=instance(
        "a dict of arguments, a function of the sampling rate that returns one, or None",
        dict,
        FunctionType,
        NoneType,
    ),
    continue_pretraining=boolean(),
    freeze_encoder=boolean(),
    sfreq=optional(positive()),
    preprocessing=instance(
        "a Preprocessing, a dict of its entries, or None", Preprocessing, dict, NoneType
    ),
    channels=instance("a list of channel names, or None", list, tuple, NoneType),
    patch_seconds=positive(),
    embed_dim=integer(1),
    num_layers=integer(1),
    num_heads=integer(1),
    mlp_dim=integer(1),
    tokenizer=choice(*TOKENIZERS),
    channel_drop_prob=share(),
    electrode_position=checks.Rule(
        "'auto', True or False",
        (str, bool),
        lambda value: not isinstance(value, str) or value == "auto",
    ),
    amplitude=boolean(),
    head=choice(*HEADS),
    recenter=optional(choice("subject")),
    pretrain_epochs=optional(integer(0)),
    pretrain_batch_size=integer(1),
    pretrain_lr=positive(),
    finetune_epochs=optional(integer(1)),
    finetune_batch_size=integer(1),
    finetune_lr=positive(),
    finetune_warmup=optional(share()),
    head_epochs=integer(0),
    encoder_lr_factor=number("of 0 or more", lambda value: value >= 0),
    gradient_clip=optional(positive()),
    label_smoothing=share(),
    drop_prob=share(),
    weight_decay=number("of 0 or more", lambda value: value >= 0),
    augmentation=instance(
        "a braindecode transform, its name, a dict of name and arguments, a list of these, or None",
        Transform,
        str,
        dict,
        list,
        NoneType,
    ),
    class_weight=checks.Rule(
        "'balanced', a dict, or None",
        (str, dict, NoneType),
        lambda value: not isinstance(value, str) or value == "balanced",
    ),
    validation=checks.Rule(
        "a number in [0, 1), or 'split'",
        (Real, str),
        lambda value: value == SPLIT if isinstance(value, str) else share().holds(value),
    ),
    callbacks=instance("a list of skorch callbacks, or None", list, NoneType),
    pretrain_callbacks=instance("a list of skorch callbacks, or None", list, NoneType),
    pooling=choice(*POOLINGS),
    layer=instance("an integer", Integral),
    min_windows=integer(1),
    precision=choice("float32", "bfloat16"),
    compile=boolean(),
    device=instance("the name of a device, or a torch.device", str, torch.device),
    random_state=checks.Rule(
        "an integer of at least 0, a numpy.random.RandomState, or None",
        (int, np.integer, np.random.RandomState, NoneType),
        lambda value: not isinstance(value, (int, np.integer)) or 0 <= int(value) < 2**32,
    ),
    verbose=instance("an integer", int, bool, np.integer),
    checkpoint_dir=_FOLDER,
)


def check_parameters(estimator: BaseEstimator) -> None:
    """Check the parameters of an estimator, before windows are read or a net is trained.

    Raises
    ------
    TypeError, ValueError
        When a value is not accepted. The message contains the estimator, the parameter, the
        accepted values and the received value.
    """
    values = vars(estimator)
    checks.check_parameters(values, RULES, type(estimator).__name__)
    Preprocessing.of(values.get("preprocessing"))
    _check_augmentation(values.get("augmentation"))
    _check_callbacks(values)


def _check_augmentation(augmentation: Any) -> None:
    augmentation = make_augmentation(augmentation)
    for transform in augmentation if isinstance(augmentation, list) else [augmentation]:
        # A Compose contains other transforms.
        parts = () if transform is None else transform.modules()
        if any(isinstance(part, Mixup) for part in parts):
            raise TypeError(
                "augmentation contains Mixup, which also mixes labels; training needs one label "
                "per window."
            )


def _check_callbacks(values: dict[str, Any]) -> None:
    for callback, name in _callbacks_of(values, "callbacks"):
        # Each step of the schedule would replace the learning rate of the callback.
        if isinstance(callback, LRScheduler) and values["finetune_warmup"] is not None:
            raise ValueError(
                f"callbacks contains {name}, but finetune_warmup={values['finetune_warmup']} sets "
                "the learning rate of every step; pass finetune_warmup=None."
            )
        if _needs_validation(callback) and not values["validation"]:
            raise ValueError(
                f"callbacks contains {name}, which monitors {callback.monitor}, but there are no "
                "validation windows; pass validation=0.2, or monitor train_loss."
            )
    for callback, name in _callbacks_of(values, "pretrain_callbacks"):
        if isinstance(callback, LRScheduler):
            raise ValueError(
                f"pretrain_callbacks contains {name}, but pretraining sets the learning rate of "
                "every step; pass pretrain_lr."
            )
        if _needs_validation(callback):
            raise ValueError(
                f"pretrain_callbacks contains {name}, which monitors {callback.monitor}, but "
                "pretraining has no validation windows; monitor train_loss."
            )


def _callbacks_of(values: dict[str, Any], parameter: str) -> Iterator[tuple[Callback, str]]:
    """Yield the callbacks of a parameter, and the names of their classes, after checks."""
    for entry in values.get(parameter) or ():
        callback = entry[1] if isinstance(entry, tuple) and len(entry) == 2 else entry
        callback_class = callback if isinstance(callback, type) else type(callback)
        name = callback_class.__name__
        if not issubclass(callback_class, Callback):
            raise TypeError(
                f"{parameter} contains an object of type {name}; pass skorch callbacks, alone or "
                "as (name, callback)."
            )
        yield callback() if callback is callback_class else callback, name


def _needs_validation(callback: Callback) -> bool:
    monitored = getattr(callback, "monitor", None)
    return isinstance(monitored, str) and "valid" in monitored
