"""Fine-tuning: the one path from labelled windows to a trained net, for every classifier."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from braindecode.augmentation import AugmentedDataLoader
from sklearn.base import BaseEstimator
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping, Freezer
from skorch.helper import predefined_split
from skorch.utils import noop
from torch import Tensor, nn

from braindecode_pars.training import NO_DECAY, NoSilentFailure, Precision
from braindecode_pars.training._device import find_device
from braindecode_pars.training._progress import ProgressLine
from braindecode_pars.windows._window_set import WindowSet

__all__ = ["FineTuningNet", "fine_tune", "fine_tuning_net"]

#: Arguments of skorch's net, by the parameters of the estimators; not all have all of them.
_ARGUMENTS = dict(
    finetune_epochs="max_epochs",
    finetune_lr="lr",
    finetune_batch_size="batch_size",
    weight_decay="optimizer__weight_decay",
    precision="precision",
    compile="compile",
)


class FineTuningNet(NoSilentFailure, Precision, NeuralNetClassifier):
    """skorch's classifier, which neither swallows Ctrl-C nor trains on after a loss of NaN."""


def fine_tuning_net(
    estimator: BaseEstimator,
    module: type[nn.Module] | nn.Module,
    *,
    class_weights: Tensor | None,
    restore_best: bool = False,
    augmentation_seed: int = 0,
    **module_arguments: Any,
) -> FineTuningNet:
    """Build and initialise a net with the parameters of an estimator.

    Parameters
    ----------
    estimator : PARSClassifier | NetworkClassifier
        Has the parameters, and ``classes_``.
    module : type[nn.Module] | nn.Module
        An instance is trained in place.
    class_weights : Tensor, shape (n_classes,) | None
        Of the cross-entropy.
    restore_best : bool
        Whether the state with the lowest validation loss is restored at the end.
    augmentation_seed : int
        Of the augmentation's draws.
    **module_arguments
        Of ``module``, where it is a class.

    Returns
    -------
    FineTuningNet
        Initialised, not trained.
    """
    params = vars(estimator)
    arguments = {argument: params[name] for name, argument in _ARGUMENTS.items() if name in params}
    arguments |= {f"module__{name}": value for name, value in module_arguments.items()}
    if params["augmentation"] is not None:
        arguments["iterator_train"] = AugmentedDataLoader
        arguments["iterator_train__transforms"] = _seeded_copy(
            params["augmentation"], augmentation_seed
        )
    return FineTuningNet(
        module,
        criterion=nn.CrossEntropyLoss,
        criterion__weight=class_weights,
        optimizer=torch.optim.AdamW,
        optimizer__param_groups=NO_DECAY,
        iterator_train__shuffle=True,
        train_split=None,
        classes=np.arange(len(estimator.classes_)),
        callbacks=_callbacks(params, restore_best=restore_best),
        callbacks__print_log=None,
        device=find_device(params["device"]),
        **arguments,
    ).initialize()


def fine_tune(net: FineTuningNet, train: WindowSet, valid: WindowSet | None) -> None:
    """Train a net on labelled windows, in place, with or without validation windows."""
    net.train_split = None if valid is None else predefined_split(valid)
    try:
        net.partial_fit(train, None)
    finally:
        net.train_split = None  # or a pickle would hold the validation windows


def _callbacks(params: dict[str, Any], *, restore_best: bool) -> list:
    callbacks = list(params["callbacks"] or [])
    if restore_best:  # never stops early
        patience = params["finetune_epochs"] + 1
        best = EarlyStopping(patience=patience, threshold=0.0, load_best=True, sink=noop)
        callbacks.insert(0, ("restore_best", best))
    if params.get("freeze_encoder"):
        callbacks.insert(0, ("freeze_encoder", Freezer("encoder.*")))
    if params["verbose"]:
        callbacks.append(("progress", ProgressLine("fine-tuning")))
    return callbacks


def _seeded_copy(augmentation: Any, seed: int) -> Any:
    """braindecode transforms that draw from a random state of their own."""
    augmentation = copy.deepcopy(augmentation)
    rng = np.random.RandomState(seed)
    for transform in augmentation if isinstance(augmentation, list) else [augmentation]:
        for part in transform.modules():
            if hasattr(part, "rng"):
                part.rng = rng
    return augmentation
