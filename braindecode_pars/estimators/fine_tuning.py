"""Fine-tuning of a network on labeled windows: of PARSClassifier, PARSRegressor and a baseline.

The encoder is frozen, thawed later, or trained at a lower rate. The losses have weights, in a batch
and exactly over an epoch. What fine-tuning has not learned is warned of.
"""

import copy
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import skorch.helper
import torch
from braindecode.augmentation import AugmentedDataLoader
from sklearn.base import BaseEstimator, is_regressor
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from braindecode_pars._common import checks, computing, training
from braindecode_pars.estimators import augmentation
from braindecode_pars.pretrained import cards
from braindecode_pars.windows import Windows, amplitudes, examples, labels

#: Fewest epochs and fewest steps of a fine-tuning whose number of epochs is None. On few windows,
#: more steps lower the score from scratch, see docs/results/development.rst.
EPOCHS, STEPS = 30, 60


class FineTuningNet(computing.TrainingNet, skorch.NeuralNetClassifier):
    """The training of a network with labels of classes."""


class RegressionNet(computing.TrainingNet, skorch.NeuralNetRegressor):
    """The training of a network with numbers as labels, which has one output."""

    def get_loss(self, y_pred: Tensor, y_true: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return super().get_loss(y_pred[:, 0].to(y_true.dtype), y_true, *args, **kwargs)


def fine_tuning_net(
    estimator: BaseEstimator,
    module: nn.Module,
    train: Windows | None = None,
    valid: Windows | None = None,
    *,
    seed: int = 0,
    class_weights: Tensor | None = None,
    frozen: Sequence[str] = ("encoder.*",),
) -> skorch.NeuralNet:
    """Build and initialize a net with the parameters of an estimator.

    Parameters
    ----------
    estimator : PARSClassifier | NetworkClassifier | PARSRegressor
        Estimator with the parameters, and ``classes_`` if it has classes.
    module : nn.Module
        The network, which is trained in place.
    train, valid : Windows | None
        Labeled windows, for the class weights and the default number of epochs. With ``valid``,
        the state with the lowest validation loss is restored. None for a net that is not trained.
    seed : int
        Seed of the augmentation.
    class_weights : Tensor, shape (n_classes,) | None
        Class weights of the cross-entropy of a net that is not trained.
    frozen : sequence of str
        Patterns of the names of the parameters that ``freeze_encoder`` and ``head_epochs`` freeze.

    Returns
    -------
    FineTuningNet | RegressionNet
        An initialized net, not yet trained. The estimator has ``fine_tuning_`` then.
    """
    params = dict(vars(estimator))
    # torch refuses numbers of NumPy.
    batch_size, epochs = int(params["finetune_batch_size"]), params["finetune_epochs"]
    if train is not None and epochs is None:
        epochs = default_epochs(len(train), batch_size)
    if not hasattr(estimator, "fine_tuning_"):
        subjects = None if train is None else cards.unique_subjects(train.corpus_subjects)
        estimator.fine_tuning_ = fine_tuning_of(params, subjects, epochs or EPOCHS)
    params |= estimator.fine_tuning_
    net, objective = _objective(estimator, train, class_weights)
    n_layers = len(getattr(getattr(module, "encoder", None), "blocks", ()))
    loader: dict[str, Any] = {"iterator_train": examples.WindowLoader}
    if params["augmentation"] is not None:
        # A copy that draws from its own random state. braindecode's transforms have it in ``rng``,
        # and nested transforms have one too.
        transforms: Any = copy.deepcopy(augmentation.make_augmentation(params["augmentation"]))
        rng = np.random.RandomState(seed)
        for transform in transforms if isinstance(transforms, list) else [transforms]:
            for part in transform.modules():
                if hasattr(part, "rng"):
                    part.rng = rng
        loader |= dict(iterator_train=AugmentedDataLoader, iterator_train__transforms=transforms)
    return net(
        module,
        optimizer=torch.optim.AdamW,
        optimizer__param_groups=param_groups(params, n_layers),
        optimizer__weight_decay=params["weight_decay"],
        lr=params["finetune_lr"],
        batch_size=batch_size,
        iterator_train__shuffle=True,
        iterator_valid=examples.WindowLoader,
        train_split=None,
        max_epochs=epochs or EPOCHS,
        callbacks=_callbacks(params, frozen, restore_best=valid is not None),
        callbacks__print_log=None,
        device=computing.find_device(params["device"]),
        precision=params.get("precision", "float32"),
        compile=params.get("compile", False),
        **objective,
        **loader,
    ).initialize()


def default_epochs(n_windows: int, batch_size: int) -> int:
    """Return the number of epochs of a fine-tuning for which none is given.

    What a training learns depends on its steps. A fixed number of epochs is enough only where an
    epoch has many steps: 30 epochs of 36 windows are 30 steps.

    Examples
    --------
    >>> from braindecode_pars.estimators.fine_tuning import default_epochs
    >>> default_epochs(36, batch_size=64), default_epochs(1000, batch_size=64)
    (60, 30)
    """
    return max(EPOCHS, math.ceil(STEPS / max(1, math.ceil(n_windows / batch_size))))


def _objective(
    estimator: Any, train: Windows | None, class_weights: Tensor | None
) -> tuple[type[skorch.NeuralNet], dict[str, Any]]:
    """Return the class of the net, and the arguments that are those of its loss."""
    if is_regressor(estimator):
        return RegressionNet, dict(criterion=LOSSES[estimator.loss])
    classes = estimator.classes_
    if train is not None:
        class_weights = labels.cross_entropy_weights(train.labels, classes, estimator.class_weight)
    return FineTuningNet, dict(
        criterion=CrossEntropy,
        criterion__weight=class_weights,
        criterion__label_smoothing=float(estimator.label_smoothing),
        classes=np.arange(len(classes)),
        callbacks__train_loss=EpochLoss("train_loss", on_train=True),
        callbacks__valid_loss=EpochLoss("valid_loss"),
    )


def fine_tune(net: skorch.NeuralNet, train: Windows, valid: Windows | None) -> None:
    """Train a net on labeled windows, in place.

    Parameters
    ----------
    net : FineTuningNet | RegressionNet
        Initialized net.
    train, valid : Windows, Windows | None
        Labeled windows; ``valid`` is None without validation.
    """
    if valid is not None:
        net.train_split = skorch.helper.predefined_split(examples.Examples(valid))
    try:
        net.partial_fit(examples.Examples(train), None)  # fit would initialize the net again
        training.mark_restored_epoch(net)
    finally:
        net.train_split = None  # a pickle of the net has no validation windows


def _callbacks(params: dict[str, Any], frozen: Sequence[str], *, restore_best: bool) -> list:
    callbacks: list = []
    if "encoder" in params:
        callbacks.append(("encoder_dropout", EncoderDropout(float(params["drop_prob"]))))
    n_frozen = frozen_epochs(params)
    if n_frozen > 0:
        callbacks.append(("freeze_encoder", skorch.callbacks.Freezer(frozen)))
    if 0 < n_frozen < math.inf:
        unfreezer = skorch.callbacks.Unfreezer(frozen, at=int(n_frozen) + 1)
        callbacks.append(("unfreeze_encoder", unfreezer))
    if params["finetune_warmup"] is not None:
        schedule = training.WarmupCosine(float(params["finetune_warmup"]))
        callbacks.append(("finetune_warmup", schedule))
    if params["gradient_clip"] is not None:
        clipping = skorch.callbacks.GradientNormClipping(params["gradient_clip"])
        callbacks.append(("gradient_clip", clipping))
    callbacks.append(("enough_steps", training.StepCountWarning()))
    if restore_best:
        # EarlyStopping can restore the best state. With this patience it never stops early.
        best = skorch.callbacks.EarlyStopping(
            patience=sys.maxsize, threshold=0.0, load_best=True, sink=skorch.utils.noop
        )
        callbacks.append(("restore_best", best))
    callbacks += params["callbacks"] or []
    if params["verbose"]:
        callbacks.append(("progress", training.ProgressLine("fine-tuning")))
    return callbacks


#: Minimum number of labeled subjects for which a given encoder is trained by default, see
#: docs/results/development.rst.
MANY_PEOPLE = 24


def fine_tuning_of(
    params: Mapping[str, Any], subjects: list | None, epochs: int = EPOCHS
) -> dict[str, Any]:
    """Return how the encoder is trained: what the parameters say, and what "auto" means.

    A new encoder, pretrained in the same fit or not at all, is trained with the head. Fine-tuning
    distorts the features of a given one before the head can use them (Kumar et al. 2022), the more
    so the fewer subjects are labeled. If a learning rate or a number of epochs of the encoder is
    given, "auto" does not freeze it. Published weights of another network are frozen, or trained
    at its learning rate, whoever is labeled.

    Parameters
    ----------
    params : mapping of str to Any
        Parameters of an estimator, as of :func:`fine_tuning_net`.
    subjects : list | None
        Subjects whose labeled windows are trained on; None when they are unknown, which counts as
        few.
    epochs : int
        Number of epochs of fine-tuning.

    Returns
    -------
    dict of str to value
        Values of ``freeze_encoder``, ``head_epochs`` and ``encoder_lr_factor``.

    Examples
    --------
    >>> from braindecode_pars import PARSClassifier
    >>> from braindecode_pars.estimators.fine_tuning import fine_tuning_of
    >>> fine_tuning_of(PARSClassifier(encoder="small").get_params(), [1, 2])["freeze_encoder"]
    True
    >>> fine_tuning_of(PARSClassifier().get_params(), [1, 2])
    {'freeze_encoder': False, 'head_epochs': 0, 'encoder_lr_factor': 1.0}
    """
    chosen: dict[str, Any] = dict(freeze_encoder=False, head_epochs=0, encoder_lr_factor=1.0)
    if params.get("weights") is not None:
        chosen["freeze_encoder"] = True
    elif params.get("encoder") is not None:
        is_frozen = subjects is None or len(subjects) < MANY_PEOPLE
        chosen = dict(
            freeze_encoder=is_frozen, head_epochs=epochs // 3, encoder_lr_factor=(0.01, 0.1)
        )
    auto = checks.AUTO
    explicit = {name: params[name] for name in chosen if params.get(name, auto) != auto}
    if explicit.keys() & {"head_epochs", "encoder_lr_factor"}:
        chosen["freeze_encoder"] = explicit.get("encoder_lr_factor") == 0
    return chosen | explicit


def n_steps(net: skorch.NeuralNet, train: Windows) -> int:
    """Return the number of steps of :func:`fine_tune`."""
    return net.max_epochs * training.steps_in_epoch(net, examples.Examples(train))


def frozen_epochs(params: Mapping[str, Any]) -> float:
    """Return the number of epochs at the beginning in which the encoder is not trained."""
    is_frozen = params["freeze_encoder"] or params["encoder_lr_factor"] == 0
    return math.inf if is_frozen else params["head_epochs"]


def param_groups(
    params: Mapping[str, Any], n_layers: int = 0
) -> list[tuple[str, dict[str, float]]]:
    """Return skorch's parameter groups: first those of the encoder, with their learning rate.

    skorch puts a parameter into the first group whose pattern matches its name. Those that match no
    pattern have the learning rate and the weight decay of the optimizer.
    """
    groups = []
    factor = params.get("encoder_lr_factor", 1.0)
    layers, factors = [""], [factor]
    if isinstance(factor, (tuple, list)):
        layers = ["tokenizer.", *(f"blocks.{i}." for i in range(n_layers)), ""]  # the last norm
        factors = [*np.geomspace(factor[0], factor[1], n_layers + 1).tolist(), factor[1]]
    for layer, layer_factor in zip(layers, factors, strict=True):
        beginning = f"encoder.{layer}"
        rate = {"lr": float(params["finetune_lr"]) * float(layer_factor)}
        groups += [(beginning + pattern, {**group, **rate}) for pattern, group in training.NO_DECAY]
        groups.append((f"{beginning}*", rate))
    return [*groups, *training.NO_DECAY]


class EncoderDropout(skorch.callbacks.Callback):
    """Dropout in the encoder while a net trains.

    Afterwards the encoder has its own probability again, so that neither a saved model nor further
    pretraining has that of fine-tuning.

    Parameters
    ----------
    drop_prob : float
        Dropout probability on the residual branches of the encoder.
    """

    def __init__(self, drop_prob: float):
        self.drop_prob = drop_prob

    def on_train_begin(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        layers = net.module_.encoder.modules()
        self.own_ = [(layer, layer.p) for layer in layers if isinstance(layer, nn.Dropout)]
        for layer, _ in self.own_:
            layer.p = self.drop_prob

    def on_train_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        for layer, drop_prob in self.own_:
            layer.p = drop_prob
        self.own_ = []


#: Largest number of training windows that are predicted.
_N_PREDICTED = 512


def warn_of_fine_tuning(estimator: Any, train: Windows, valid: Windows | None) -> None:
    """Warn when an estimator may have learned nothing, or never predicts one of its classes.

    Parameters
    ----------
    estimator : PARSClassifier | NetworkClassifier | PARSRegressor
        Estimator at the end of its ``fit``.
    train, valid : Windows, Windows | None
        Training and validation windows, with labels as the net learns them.
    """
    numbers = is_regressor(estimator)
    if valid is not None:
        criterion = estimator.net_.criterion_
        losses = [row["valid_loss"] for row in estimator.net_.history if "valid_loss" in row]
        if numbers:
            targets = torch.as_tensor(examples.Examples(valid).y)
            of_mean = criterion(torch.zeros(len(targets)), targets).item()
            training.warn_of_validation(losses, of_mean, "the mean target")
        else:
            chance = _chance_loss(train, valid, len(estimator.classes_), criterion.weight)
            training.warn_of_validation(losses, chance)
    if numbers:
        return
    # Classes of the training windows that the model predicts for no training window
    windows = train.take(_some_of_each(train.labels))
    with checks.quiet():  # fit has warned of the same windows
        predicted = estimator.predict(windows).tolist()
    trained = estimator.classes_[np.unique(train.labels)].tolist()
    absent = [label for label in trained if label not in {*predicted}]
    if absent:
        names = [str((estimator.class_names_ or {}).get(label, label)) for label in absent]
        checks.warn_user(
            f"The classifier predicts {', '.join(names)} for "
            f"none of {len(windows)} training windows. Train for more epochs, or check the labels "
            "and class_weight.",
            ConvergenceWarning,
        )


def _chance_loss(train: Windows, valid: Windows, n_classes: int, weight: Tensor | None) -> float:
    """Return the validation loss of the weighted frequencies of the training labels."""
    of_class = np.ones(n_classes) if weight is None else weight.cpu().double().numpy()
    frequencies = of_class * np.bincount(train.labels, minlength=n_classes)
    with np.errstate(divide="ignore"):  # a class without training windows
        losses = -np.log(frequencies / frequencies.sum())
    return float(np.average(losses[valid.labels], weights=of_class[valid.labels]))


def _some_of_each(y: np.ndarray) -> np.ndarray:
    """Return the positions of windows of each label, spread over all, in their order."""
    classes = np.unique(y)
    n_each = max(1, _N_PREDICTED // len(classes))
    positions = [np.flatnonzero(y == c) for c in classes]
    return np.sort(
        np.concatenate([of[amplitudes.evenly_spaced(len(of), n_each)] for of in positions])
    )


class CrossEntropy(nn.CrossEntropyLoss):
    r"""Cross-entropy with class weights, whose labels are smoothed in training mode only.

    For windows with labels :math:`y_i` and cross-entropies :math:`\ell_i`, the loss is the weighted
    mean :math:`\sum_i w_{y_i} \ell_i / \sum_i w_{y_i}`. With ``label_smoothing``
    :math:`\epsilon` and K classes, torch trains on

    .. math::
        \frac{\sum_i (1 - \epsilon) \, w_{y_i} \ell_i
        - \frac{\epsilon}{K} \sum_i \sum_k w_k \log p_{ik}}{\sum_i w_{y_i}}

    (Szegedy et al. 2016, arXiv:1512.00567, section 7). The sums in both have the same denominator.

    In evaluation mode labels are not smoothed. The validation loss therefore scores the predicted
    probabilities, and is comparable between values of ``label_smoothing``.
    """

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss: (batch, n_classes), (batch,) -> ()."""
        smoothing = self.label_smoothing if self.training else 0.0
        return nn.functional.cross_entropy(logits, labels, self.weight, label_smoothing=smoothing)


#: Loss of standardized targets -> class. Huber's is linear beyond one standard deviation.
LOSSES = {"mse": nn.MSELoss, "huber": nn.HuberLoss}


class EpochLoss(skorch.callbacks.PassthroughScoring):
    """Loss of an epoch with a loss of this module, as if all windows were in one batch.

    skorch's mean over batches counts each batch by its number of windows. A batch with a rare class
    has a larger total weight than others, so that mean depends on which windows share a batch.

    Parameters
    ----------
    name, lower_is_better, on_train
        As in :class:`skorch.callbacks.PassthroughScoring`.
    """

    def on_batch_end(
        self, net: skorch.NeuralNet, batch: Any, training: bool = False, **kwargs: Any
    ) -> None:
        if training == self.on_train:
            # The denominator of the loss: the sum of the weights of the windows' classes
            codes, weight = batch[1], net.criterion_.weight
            total = len(codes) if weight is None else weight[codes.to(weight.device)].sum().item()
            net.history.record_batch(f"{self.name}_weight", float(total))

    def get_avg_score(self, history: skorch.history.History) -> float:
        columns = [self.name, f"{self.name}_weight"]
        losses, weights = zip(*history[-1, "batches", :, columns], strict=True)
        return np.average(losses, weights=weights)
