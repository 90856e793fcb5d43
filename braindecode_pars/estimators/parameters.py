"""Accepted values of the parameters of the estimators."""

from __future__ import annotations

import math
import os
from numbers import Integral, Real
from types import FunctionType, NoneType
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from skorch.callbacks import Callback, LRScheduler

from braindecode_pars import paper
from braindecode_pars._common import checks
from braindecode_pars._common.checks import (
    boolean,
    choice,
    instance,
    integer,
    optional,
    positive,
    share,
)
from braindecode_pars.encoder import TOKENIZERS
from braindecode_pars.estimators.augmentation import make_augmentation
from braindecode_pars.models import parsnet
from braindecode_pars.models.foundation import InputFormat
from braindecode_pars.pretext.base import PretextTask
from braindecode_pars.recordings.preprocessing import Preprocessing
from braindecode_pars.windows.held_out import SPLIT

_COUNTS = (
    *("embed_dim", "num_layers", "num_heads", "mlp_dim", "min_windows"),
    *("pretrain_batch_size", "finetune_batch_size"),
)

#: Value of a parameter that the data decide.
AUTO = "auto"


def _text_or(text: str, rule: checks.Rule) -> checks.Rule:
    """Return a rule that also accepts a text such as "auto"."""
    return checks.Rule(
        f"{text!r}, or {rule.text}",
        (*rule.kinds, str),
        lambda value: value == text if isinstance(value, str) else rule.holds(value),
    )


def _are_positive(pair: Any) -> bool:
    are_numbers = all(isinstance(x, Real) and not isinstance(x, bool) for x in pair)
    return len(pair) == 2 and are_numbers and all(0 < float(x) < math.inf for x in pair)


def _is_factor(value: Any) -> bool:
    return 0 <= float(value) < math.inf if isinstance(value, Real) else _are_positive(value)


#: Parameter name -> rule. Parameters without a rule are checked where they are used.
RULES = {
    **paper.RULES,
    **parsnet.RULES,
    **dict.fromkeys(_COUNTS, integer(1)),
    **dict.fromkeys(("label_smoothing", "drop_prob"), share()),
    **dict.fromkeys(("pretrain_lr", "finetune_lr", "segment_seconds"), positive()),
    **dict.fromkeys(("C", "gradient_clip"), optional(positive())),
    "continue_pretraining": boolean(),
    **dict.fromkeys(
        ("callbacks", "pretrain_callbacks"), optional(instance("a list of skorch callbacks", list))
    ),
    "pretext": optional(instance("a pretext task, its name or its class", str, type, PretextTask)),
    "pretext_params": optional(instance("a dict of arguments", dict)),
    "network": instance("the name or the class of a braindecode model", str, type),
    "network_params": optional(
        instance("a dict of arguments, or a function of the sampling rate", dict, FunctionType)
    ),
    "weights": optional(instance("a path, or the name of a model", str, os.PathLike)),
    "input_format": optional(instance("an InputFormat", InputFormat)),
    "preprocessing": optional(instance("a Preprocessing, or a dict", Preprocessing, dict)),
    "channels": optional(instance("a list of channel names", list, tuple)),
    "tokenizer": choice(*TOKENIZERS),
    "head": choice(AUTO, *parsnet.HEADS),
    "pretrain_epochs": optional(integer(0)),
    "finetune_epochs": optional(integer(1)),
    "finetune_warmup": optional(share()),
    "freeze_encoder": _text_or(AUTO, boolean()),
    "head_epochs": _text_or(AUTO, integer(0)),
    "encoder_lr_factor": _text_or(
        AUTO,
        checks.Rule(
            "a number of 0 or more, or two positive numbers", (Real, tuple, list), _is_factor
        ),
    ),
    "class_weight": _text_or("balanced", optional(instance("a dict", dict))),
    "validation": _text_or(SPLIT, share()),
    "transformer": checks.Rule(
        "a transformer of windows, such as LogBandPower()",
        (object,),
        lambda given: hasattr(given, "transform") and not isinstance(given, type),
    ),
    "pooling": choice("auto", "channels", "mean_std", "mean"),
    "layer": instance("an integer", Integral),
    "power": choice("both", "absolute", "relative"),
    "band": optional(
        checks.Rule(
            "two increasing frequencies in Hz",
            (tuple, list),
            lambda band: _are_positive(band) and band[0] < band[1],
        )
    ),
    "loss": choice("mse", "huber"),
    "device": instance("the name of a device, or a torch.device", str, torch.device),
    "random_state": checks.Rule(
        "an integer of at least 0, a numpy.random.RandomState, or None",
        (int, np.integer, np.random.RandomState, NoneType),
        lambda value: not isinstance(value, (int, np.integer)) or 0 <= int(value) < 2**32,
    ),
    "verbose": instance("an integer", int, bool, np.integer),
    "checkpoint_dir": optional(instance("a path", str, os.PathLike)),
}


def check_estimator(estimator: BaseEstimator) -> None:
    """Check the parameters of an estimator, before windows are read or a net is trained.

    Raises
    ------
    TypeError, ValueError
        When a value is not accepted. The message contains the estimator, the parameter, the
        accepted values and the received value.
    """
    values = vars(estimator)
    rules = {**RULES, **getattr(estimator, "_own_rules", {})}
    checks.check_parameters(values, rules, type(estimator).__name__)
    Preprocessing.of(values.get("preprocessing"))
    make_augmentation(values.get("augmentation"))
    warmup, validation = values.get("finetune_warmup"), values.get("validation")
    _check_callbacks(values, "callbacks", "pass finetune_warmup=None", warmup, validation)
    _check_callbacks(values, "pretrain_callbacks", "pass pretrain_lr", "always", None)


def _check_callbacks(
    values: dict[str, Any], parameter: str, remedy: str, schedule: Any, validation: Any
) -> None:
    """Check that no callback of a training needs what it has not.

    With a ``schedule``, the rate of a scheduler would be replaced in every step; without
    ``validation``, there is no validation loss.
    """
    for entry in values.get(parameter) or ():
        callback = entry[1] if isinstance(entry, tuple) and len(entry) == 2 else entry
        callback_class = callback if isinstance(callback, type) else type(callback)
        what = f"{parameter} contains {callback_class.__name__}"
        if not issubclass(callback_class, Callback):
            raise TypeError(f"{what}; pass skorch callbacks, alone or as (name, callback).")
        if schedule is not None and issubclass(callback_class, LRScheduler):
            raise ValueError(f"{what}, but every step has a learning rate already; {remedy}.")
        monitored = getattr(callback() if callback is callback_class else callback, "monitor", None)
        if not validation and isinstance(monitored, str) and "valid" in monitored:
            raise ValueError(
                f"{what}, which monitors {monitored}, but there are no validation windows; "
                "monitor train_loss, or hold some out for fine-tuning with validation=0.2."
            )
