"""Fine-tuning on labelled windows, shared by all classifiers."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from braindecode.augmentation import AugmentedDataLoader
from sklearn.base import BaseEstimator
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback, EarlyStopping, GradientNormClipping
from skorch.helper import predefined_split
from skorch.utils import noop, to_numpy
from torch import Tensor, nn

from braindecode_pars.augmentation import make_augmentation
from braindecode_pars.estimators._encoder_training import encoder_callbacks, param_groups
from braindecode_pars.estimators._recentring import recentred_iterators
from braindecode_pars.training import NoSilentFailure, Precision
from braindecode_pars.training._budget import default_epochs
from braindecode_pars.training._cross_entropy import CrossEntropy, EpochLoss, label_codes
from braindecode_pars.training._device import find_device
from braindecode_pars.training._learned import EnoughSteps
from braindecode_pars.training._progress import ProgressLine
from braindecode_pars.training._restored import RestoredEpoch
from braindecode_pars.training._schedule import WarmupCosine
from braindecode_pars.training._seeding import OwnDraws
from braindecode_pars.windows._sample_weight import labels_with_weights
from braindecode_pars.windows._stored import WindowLoader
from braindecode_pars.windows._window_set import WindowSet

__all__ = ["FineTuningNet", "fine_tune", "fine_tuning_net"]

#: Fewest epochs and fewest steps of a fine-tuning whose number of epochs is None. On few windows,
#: more steps lower the score from scratch, see docs/results/development.rst.
EPOCHS, STEPS = 30, 60

#: Estimator parameter -> argument of the skorch net. Some estimators lack some parameters.
_ARGUMENTS = dict(
    finetune_lr="lr",
    finetune_batch_size="batch_size",
    weight_decay="optimizer__weight_decay",
    label_smoothing="criterion__label_smoothing",
    precision="precision",
    compile="compile",
)


class FineTuningNet(NoSilentFailure, OwnDraws, Precision, NeuralNetClassifier):
    """A skorch classifier that raises an error on Ctrl-C and when the loss is not finite."""


def fine_tuning_net(
    estimator: BaseEstimator,
    module: type[nn.Module] | nn.Module,
    *,
    class_weights: Tensor | None,
    n_windows: int | None = None,
    restore_best: bool = False,
    augmentation_seed: int = 0,
    **module_arguments: Any,
) -> FineTuningNet:
    """Build and initialise a net with the parameters of an estimator.

    Parameters
    ----------
    estimator : PARSClassifier | NetworkClassifier
        Estimator with the parameters and ``classes_``.
    module : type[nn.Module] | nn.Module
        Class or instance of the network. An instance is trained in place.
    class_weights : Tensor, shape (n_classes,) | None
        Class weights of the cross-entropy.
    n_windows : int | None
        Number of training windows, of which the default number of epochs is a function. None for a
        net that is not trained.
    restore_best : bool
        Whether the state with the lowest validation loss is restored at the end.
    augmentation_seed : int
        Seed of the augmentation.
    **module_arguments
        Arguments of ``module``, when it is a class.

    Returns
    -------
    FineTuningNet
        An initialised net, not yet trained.
    """
    # Translate the estimator's parameters into skorch's arguments.
    params = vars(estimator)
    arguments = {argument: params[name] for name, argument in _ARGUMENTS.items() if name in params}
    # torch refuses numbers of NumPy.
    arguments["batch_size"] = int(arguments["batch_size"])
    epochs = params["finetune_epochs"]
    if epochs is None:
        epochs = _default_epochs(n_windows, arguments["batch_size"])
    arguments["criterion__label_smoothing"] = float(arguments["criterion__label_smoothing"])
    arguments |= {f"module__{name}": value for name, value in module_arguments.items()}
    arguments["iterator_train"] = WindowLoader
    if params["augmentation"] is not None:
        arguments["iterator_train"] = AugmentedDataLoader
        arguments["iterator_train__transforms"] = _seeded_copy(
            make_augmentation(params["augmentation"]), augmentation_seed
        )
    return FineTuningNet(
        module,
        criterion=CrossEntropy,
        criterion__weight=class_weights,
        optimizer=torch.optim.AdamW,
        optimizer__param_groups=param_groups(params),
        iterator_train__shuffle=True,
        iterator_valid=WindowLoader,
        train_split=None,
        classes=np.arange(len(estimator.classes_)),
        max_epochs=epochs,
        callbacks=_callbacks(params, restore_best=restore_best),
        callbacks__train_loss=EpochLoss("train_loss", on_train=True),
        callbacks__valid_loss=EpochLoss("valid_loss"),
        callbacks__valid_acc__target_extractor=_codes,
        callbacks__print_log=None,
        device=find_device(params["device"]),
        **arguments,
    ).initialize()


def _default_epochs(n_windows: int | None, batch_size: int) -> int:
    if n_windows is None:
        return EPOCHS
    return default_epochs(EPOCHS, STEPS, math.ceil(n_windows / batch_size), "Fine-tuning")


def fine_tune(
    net: FineTuningNet, train: WindowSet, valid: WindowSet | None, *, recenter: str | None = None
) -> None:
    """Train a net on labelled windows, in place.

    Parameters
    ----------
    net : FineTuningNet
        Initialised net.
    train, valid : WindowSet, WindowSet | None
        Labelled windows, with or without weights; ``valid`` is None without validation.
    recenter : "subject" | None
        Whether the module recentres by subject. Each batch then has several windows of each of a
        few subjects.

    Raises
    ------
    ValueError
        When the module recentres and subjects are unknown, or have too few windows. Also when all
        windows have weight 0.
    """
    train = labels_with_weights(train, "training")
    valid = None if valid is None else labels_with_weights(valid, "validation")
    iterators: dict[str, Any] = {}
    if recenter is not None:
        train, valid, iterators = recentred_iterators(train, valid, net.batch_size)
    with _changed(net, train_split=None if valid is None else predefined_split(valid), **iterators):
        net.partial_fit(train, None)  # fit would initialise the net again


def _codes(labels: Any) -> np.ndarray:
    """Return labels for skorch's accuracy, which knows no weights of windows."""
    return to_numpy(label_codes(labels))


@contextmanager
def _changed(net: FineTuningNet, **parameters: Any) -> Iterator[None]:
    """Change parameters of a net while it trains; a pickle would contain the validation windows."""
    before = {name: vars(net)[name] for name in parameters if name in vars(net)}
    vars(net).update(parameters)
    try:
        yield
    finally:
        for name in parameters:
            del vars(net)[name]
        vars(net).update(before)


def _callbacks(params: dict[str, Any], *, restore_best: bool) -> list:
    callbacks: list = [*encoder_callbacks(params), *_step_callbacks(params)]
    # Below that, accuracy stayed near chance on simulated nights, at rates from 1e-4 to 1e-3.
    callbacks.append(("enough_steps", EnoughSteps("Fine-tuning", share=0.05)))
    if restore_best:
        # EarlyStopping can restore the best state. With this patience it never stops early.
        best = EarlyStopping(patience=sys.maxsize, threshold=0.0, load_best=True, sink=noop)
        callbacks.append(("restore_best", best))
    callbacks += [*(params["callbacks"] or []), ("restored_epoch", RestoredEpoch())]
    if params["verbose"]:
        callbacks.append(("progress", ProgressLine("fine-tuning")))
    return callbacks


def _step_callbacks(params: dict[str, Any]) -> list[tuple[str, Callback]]:
    """Return the callbacks that change the steps of all parameters."""
    callbacks: list[tuple[str, Callback]] = []
    if params["finetune_warmup"] is not None:
        callbacks.append(("finetune_warmup", WarmupCosine(float(params["finetune_warmup"]))))
    if params["gradient_clip"] is not None:
        callbacks.append(("gradient_clip", GradientNormClipping(params["gradient_clip"])))
    return callbacks


def _seeded_copy(augmentation: Any, seed: int) -> Any:
    """Return a copy of braindecode transforms that draws from its own random state."""
    augmentation = copy.deepcopy(augmentation)
    # braindecode transforms keep their random state in ``rng``; nested transforms have one too.
    rng = np.random.RandomState(seed)
    for transform in augmentation if isinstance(augmentation, list) else [augmentation]:
        for part in transform.modules():
            if hasattr(part, "rng"):
                part.rng = rng
    return augmentation
