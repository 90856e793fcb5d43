"""The net that fine-tunes: skorch's classifier, without silent failures."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from braindecode.augmentation import AugmentedDataLoader
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping, Freezer
from skorch.helper import predefined_split
from skorch.utils import noop
from torch import Tensor, nn

from braindecode_pars.callbacks import ProgressLine
from braindecode_pars.precision import Precision
from braindecode_pars.pretraining import NO_DECAY, NoSilentFailure
from braindecode_pars.window_set import WindowSet

__all__ = ["FineTuningNet", "fine_tuning_net"]


class FineTuningNet(NoSilentFailure, Precision, NeuralNetClassifier):
    """skorch's classifier, which neither swallows Ctrl-C nor trains on after a loss of NaN."""


def fine_tuning_net(
    module: type[nn.Module] | nn.Module,
    n_classes: int,
    *,
    class_weights: Tensor | None,
    valid: WindowSet | None = None,
    epochs: int,
    weight_decay: float,
    freeze_encoder: bool = False,
    augmentation: Any = None,
    augmentation_seed: int = 0,
    callbacks: list | None = None,
    verbose: int = 0,
    **arguments: Any,
) -> FineTuningNet:
    """Build and initialise the net.

    Parameters
    ----------
    module : type[nn.Module] | nn.Module
        Of class PARSNet; an instance is trained in place.
    n_classes : int
    class_weights : Tensor, shape (n_classes,) | None
    valid : WindowSet | None
        Validation windows; the state with the lowest loss on them is restored at the end.
    epochs, weight_decay, freeze_encoder, augmentation, callbacks, verbose
        As in :class:`~braindecode_pars.PARSClassifier`.
    augmentation_seed : int
    **arguments
        Of skorch's net, such as ``lr``, ``batch_size``, ``device`` and ``module__n_chans``, and of
        :class:`~braindecode_pars.precision.Precision`.
    """
    callbacks = list(callbacks or [])
    if valid is not None:  # never stops, only brings back the best state
        best = EarlyStopping(patience=epochs + 1, threshold=0.0, load_best=True, sink=noop)
        callbacks.insert(0, ("restore_best", best))
    if freeze_encoder:
        callbacks.insert(0, ("freeze_encoder", Freezer("encoder.*")))
    if verbose:
        callbacks.append(("progress", ProgressLine("fine-tuning")))
    if augmentation is not None:
        arguments["iterator_train"] = AugmentedDataLoader
        arguments["iterator_train__transforms"] = _seeded_copy(augmentation, augmentation_seed)
    return FineTuningNet(
        module,
        criterion=nn.CrossEntropyLoss,
        criterion__weight=class_weights,
        optimizer=torch.optim.AdamW,
        optimizer__weight_decay=weight_decay,
        optimizer__param_groups=NO_DECAY,
        max_epochs=epochs,
        iterator_train__shuffle=True,
        train_split=None if valid is None else predefined_split(valid),
        classes=np.arange(n_classes),
        callbacks=callbacks,
        callbacks__print_log=None,
        **arguments,
    ).initialize()


def _seeded_copy(augmentation: Any, seed: int) -> Any:
    """braindecode transforms that draw from a random state of their own."""
    augmentation = copy.deepcopy(augmentation)
    rng = np.random.RandomState(seed)
    for transform in augmentation if isinstance(augmentation, list) else [augmentation]:
        for part in transform.modules():
            if hasattr(part, "rng"):
                part.rng = rng
    return augmentation
