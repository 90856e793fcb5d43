"""Fine-tuning on labeled windows, for PARSClassifier, PARSRegressor and NetworkClassifier.

The encoder can be frozen in all epochs or in the first epochs, or trained with a lower learning
rate than the head (the other layers). Class weights apply to the loss of a batch and to the mean
loss of an epoch. A warning is issued if fine-tuning may have failed to learn.
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
from torch import Tensor, nn

from braindecode_pars._common import checks, computing, findings, training
from braindecode_pars._common.findings import Finding
from braindecode_pars.estimators import augmentation
from braindecode_pars.pretrained import cards
from braindecode_pars.windows import Windows, amplitudes, examples, labels

#: Minimum number of epochs of fine-tuning if finetune_epochs=None.
EPOCHS = 30
#: Minimum number of steps of fine-tuning if finetune_epochs=None. With few windows, a larger
#: minimum decreases the score of training from scratch, see docs/results/development.rst.
STEPS = 60


class FineTuningNet(computing.TrainingNet, skorch.NeuralNetClassifier):
    """skorch net that trains a classifier."""


class RegressionNet(computing.TrainingNet, skorch.NeuralNetRegressor):
    """skorch net that trains a regressor with a single output."""

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
    """Build the skorch net that fine-tunes a network, with the parameters of an estimator.

    Parameters
    ----------
    estimator : PARSClassifier | NetworkClassifier | PARSRegressor
        Estimator whose parameters define the net. It must have the attribute ``fine_tuning_`` (see
        :func:`chosen_settings`) and, if it is a classifier, ``classes_``.
    module : nn.Module
        The network, which is trained in place.
    train, valid : Windows | None
        Labeled training and validation windows. The training windows determine the class weights
        and the default number of epochs. If there are validation windows, the state with the lowest
        validation loss is restored at the end of training. If ``train`` is None, the net can be
        used for predictions only.
    seed : int
        Seed of the random numbers of the augmentation.
    class_weights : Tensor, shape (n_classes,) | None
        Class weights of the cross-entropy of a net without training windows. With ``train``, the
        class weights are computed from the training windows, and this argument is ignored.
    frozen : sequence of str
        Patterns of the names of the weights that are frozen if ``freeze_encoder`` or
        ``head_epochs`` is set.

    Returns
    -------
    FineTuningNet | RegressionNet
        Initialized net, not trained.
    """
    params = {**vars(estimator), **estimator.fine_tuning_}
    net, objective = _objective(estimator, train, class_weights)
    n_layers = len(getattr(getattr(module, "encoder", None), "blocks", ()))
    loader: dict[str, Any] = {}
    if params["augmentation"] is not None:
        # Copy the transforms, and replace the random state of the copy: the attribute ``rng`` of
        # each transform of braindecode, also of nested transforms.
        transforms: Any = copy.deepcopy(augmentation.make_augmentation(params["augmentation"]))
        rng = np.random.RandomState(seed)
        for transform in transforms if isinstance(transforms, list) else [transforms]:
            for part in transform.modules():
                if hasattr(part, "rng"):
                    part.rng = rng
        loader = dict(iterator_train=AugmentedDataLoader, iterator_train__transforms=transforms)
    return net(
        module,
        optimizer=torch.optim.AdamW,
        optimizer__param_groups=param_groups(params, n_layers),
        optimizer__weight_decay=params["weight_decay"],
        lr=params["finetune_lr"],
        batch_size=int(params["finetune_batch_size"]),  # torch does not accept NumPy integers
        iterator_train__shuffle=True,
        train_split=None,
        max_epochs=n_epochs(params, train),
        callbacks=_callbacks(params, frozen, restore_best=valid is not None),
        callbacks__print_log=None,
        device=computing.find_device(params["device"]),
        precision=params.get("precision", "float32"),
        compile=params.get("compile", False),
        **objective,
        **loader,
    ).initialize()


def n_epochs(params: Mapping[str, Any], train: Sequence | None) -> int:
    """Return the number of fine-tuning epochs: ``finetune_epochs``, or the default if it is None.

    The default is 30 epochs or, if 30 epochs have fewer than 60 steps, as many epochs as are needed
    for 60 steps. For example, 36 windows with a batch size of 64 are a single batch, so 30 epochs
    would have only 30 steps; the default is then 60 epochs. If ``train`` is None, the default is 30
    epochs.

    Parameters
    ----------
    params : mapping of str to Any
        Parameters of an estimator: ``finetune_epochs`` and ``finetune_batch_size`` are used.
    train : sequence | None
        Training windows, of which only the number is used.

    Returns
    -------
    int
        Number of epochs.

    Examples
    --------
    >>> from braindecode_pars.estimators.fine_tuning import n_epochs
    >>> params = dict(finetune_epochs=None, finetune_batch_size=64)
    >>> n_epochs(params, range(36)), n_epochs(params, range(1000))
    (60, 30)
    """
    epochs = params["finetune_epochs"]
    if epochs is None and train is not None:
        steps_per_epoch = max(1, math.ceil(len(train) / params["finetune_batch_size"]))
        return max(EPOCHS, math.ceil(STEPS / steps_per_epoch))
    return epochs or EPOCHS


def _objective(
    estimator: Any, train: Windows | None, class_weights: Tensor | None
) -> tuple[type[skorch.NeuralNet], dict[str, Any]]:
    """Return the class of the net, and the arguments of the net that define the loss."""
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
    """Fine-tune a net on labeled windows, in place.

    Parameters
    ----------
    net : FineTuningNet | RegressionNet
        Initialized net.
    train, valid : Windows, Windows | None
        Labeled windows. ``valid`` is None without validation.
    """
    if valid is not None:
        net.train_split = skorch.helper.predefined_split(examples.Examples(valid))
    try:
        net.partial_fit(examples.Examples(train), None)  # fit would reinitialize the net
    finally:
        net.train_split = None  # so that a pickle of the net contains no validation windows


def _callbacks(params: dict[str, Any], frozen: Sequence[str], *, restore_best: bool) -> list:
    callbacks: dict[str, skorch.callbacks.Callback] = {}
    if "encoder" in params:
        callbacks["encoder_dropout"] = EncoderDropout(float(params["drop_prob"]))
    n_frozen = frozen_epochs(params)
    if n_frozen > 0:
        callbacks["freeze_encoder"] = skorch.callbacks.Freezer(frozen)
    if 0 < n_frozen < math.inf:
        callbacks["unfreeze_encoder"] = skorch.callbacks.Unfreezer(frozen, at=int(n_frozen) + 1)
    if (warmup := params["finetune_warmup"]) is not None:
        callbacks["finetune_warmup"] = training.WarmupCosine(float(warmup))
    if (max_norm := params["gradient_clip"]) is not None:
        callbacks["gradient_clip"] = skorch.callbacks.GradientNormClipping(max_norm)
    if restore_best:
        # EarlyStopping can restore the best state. With this patience it never stops early.
        callbacks["restore_best"] = skorch.callbacks.EarlyStopping(
            patience=sys.maxsize, threshold=0.0, load_best=True, sink=skorch.utils.noop
        )
    named = [*callbacks.items(), *(params["callbacks"] or [])]
    if params["verbose"]:
        named.append(("progress", training.ProgressLine("fine-tuning")))
    return named


#: Minimum number of labeled subjects for which a pretrained encoder is fine-tuned by default, see
#: docs/results/development.rst.
MIN_SUBJECTS = 24


def chosen_settings(params: Mapping[str, Any], train: Windows) -> dict[str, Any]:
    """Return :func:`fine_tuning_of` for the subjects and the number of epochs of a fit."""
    subjects = cards.unique_subjects(train.corpus_subjects)
    return fine_tuning_of(params, subjects, n_epochs(params, train))


def fine_tuning_of(
    params: Mapping[str, Any], subjects: list | None, epochs: int = EPOCHS
) -> dict[str, Any]:
    """Replace "auto" in ``freeze_encoder``, ``head_epochs`` and ``encoder_lr_factor`` with values.

    A new encoder (pretrained in the same fit, or trained from scratch) is trained together with the
    head. In contrast, the features of a pretrained ``encoder`` are distorted if the encoder is
    trained before the new head has learned (Kumar et al. 2022), especially with few labeled
    subjects. With fewer than 24 labeled subjects, ``freeze_encoder="auto"`` therefore freezes a
    pretrained ``encoder``. Published weights of a NetworkClassifier are frozen for any number of
    labeled subjects. If ``head_epochs`` or ``encoder_lr_factor`` has a value other than "auto",
    ``freeze_encoder="auto"`` does not freeze the encoder, except with ``encoder_lr_factor=0``.

    Parameters
    ----------
    params : mapping of str to Any
        Parameters of an estimator, as in :func:`fine_tuning_net`.
    subjects : list | None
        Labeled subjects (subjects whose labels are used for training). If None, the subjects are
        unknown, which is treated like fewer than 24 subjects.
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
    >>> # A pretrained encoder with 2 labeled subjects, then a new encoder:
    >>> fine_tuning_of(PARSClassifier(encoder="small").get_params(), [1, 2])["freeze_encoder"]
    True
    >>> fine_tuning_of(PARSClassifier().get_params(), [1, 2])
    {'freeze_encoder': False, 'head_epochs': 0, 'encoder_lr_factor': 1.0}
    """
    chosen: dict[str, Any] = dict(freeze_encoder=False, head_epochs=0, encoder_lr_factor=1.0)
    if params.get("weights") is not None:
        chosen["freeze_encoder"] = True
    elif params.get("encoder") is not None:
        is_frozen = subjects is None or len(subjects) < MIN_SUBJECTS
        chosen = dict(
            freeze_encoder=is_frozen, head_epochs=epochs // 3, encoder_lr_factor=(0.01, 0.1)
        )
    auto = checks.AUTO
    explicit = {name: params[name] for name in chosen if params.get(name, auto) != auto}
    if explicit.keys() & {"head_epochs", "encoder_lr_factor"}:
        chosen["freeze_encoder"] = explicit.get("encoder_lr_factor") == 0
    return chosen | explicit


def n_steps(net: skorch.NeuralNet, train: Windows) -> int:
    """Return the number of training steps of :func:`fine_tune`, over all epochs."""
    return net.max_epochs * training.steps_in_epoch(net, examples.Examples(train))


def frozen_epochs(params: Mapping[str, Any]) -> float:
    """Return the number of initial epochs with a frozen encoder; infinity means all epochs."""
    is_frozen = params["freeze_encoder"] or params["encoder_lr_factor"] == 0
    return math.inf if is_frozen else params["head_epochs"]


def param_groups(
    params: Mapping[str, Any], n_layers: int = 0
) -> list[tuple[str, dict[str, float]]]:
    """Return the parameter groups of the optimizer, starting with the groups of the encoder.

    Each group consists of a name pattern and the options of the matching weights, such as ``lr``.
    ``n_layers`` is the number of transformer layers of the encoder. skorch assigns a weight to the
    first group whose pattern matches the name of the weight. Weights that match no pattern use the
    learning rate and the weight decay of the optimizer.
    """
    groups = []
    factor = params.get("encoder_lr_factor", 1.0)
    layers, factors = [""], [factor]
    if isinstance(factor, (tuple, list)):
        # The last entry matches the final normalization layer
        layers = ["tokenizer.", *(f"blocks.{i}." for i in range(n_layers)), ""]
        factors = [*np.geomspace(factor[0], factor[1], n_layers + 1).tolist(), factor[1]]
    for layer, layer_factor in zip(layers, factors, strict=True):
        beginning = f"encoder.{layer}"
        rate = {"lr": float(params["finetune_lr"]) * float(layer_factor)}
        groups += [(beginning + pattern, {**group, **rate}) for pattern, group in training.NO_DECAY]
        groups.append((f"{beginning}*", rate))
    return [*groups, *training.NO_DECAY]


class EncoderDropout(skorch.callbacks.Callback):
    """Callback that sets the dropout probability of the encoder during training.

    At the end of training, the original dropout probability is restored, so that saved models and
    further pretraining do not use the dropout probability of fine-tuning.

    Parameters
    ----------
    drop_prob : float
        Dropout probability on the residual branches of the encoder during training.
    """

    def __init__(self, drop_prob: float):
        self.drop_prob = drop_prob

    def on_train_begin(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        layers = net.module_.encoder.modules()
        self.initial_ = [(layer, layer.p) for layer in layers if isinstance(layer, nn.Dropout)]
        for layer, _ in self.initial_:
            layer.p = self.drop_prob

    def on_train_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        for layer, drop_prob in self.initial_:
            layer.p = drop_prob
        self.initial_ = []


#: Maximum number of training windows that are predicted, to find classes without any prediction.
_N_PREDICTED = 512


def warn_of_fine_tuning(estimator: Any, train: Windows, valid: Windows | None) -> None:
    """Warn if fine-tuning may have failed to learn, or if a class is never predicted.

    Parameters
    ----------
    estimator : PARSClassifier | NetworkClassifier | PARSRegressor
        Estimator at the end of its ``fit``.
    train, valid : Windows, Windows | None
        Training and validation windows, with class indices or standardized targets as labels.
    """
    is_regression = is_regressor(estimator)
    if valid is not None:
        criterion = estimator.net_.criterion_
        losses = [row["valid_loss"] for row in estimator.net_.history if "valid_loss" in row]
        if is_regression:
            targets = torch.as_tensor(examples.Examples(valid).y)
            mean_loss = criterion(torch.zeros(len(targets)), targets).item()
            training.warn_of_validation(losses, mean_loss, "the mean target")
        else:
            chance = _chance_loss(train, valid, len(estimator.classes_), criterion.weight)
            training.warn_of_validation(losses, chance)
    if is_regression:
        return
    # Find classes of the training windows that the model predicts for none of these windows
    windows = train.take(amplitudes.evenly_spaced(len(train), _N_PREDICTED))
    with checks.quiet():  # fit has already issued warnings about these windows
        predicted = estimator.predict(windows)
    trained = estimator.classes_[np.unique(windows.labels)]
    if absent := sorted({*trained.tolist()} - {*predicted.tolist()}):
        names = [str((estimator.class_names_ or {}).get(label, label)) for label in absent]
        values = dict(classes=", ".join(names), n_windows=len(windows))
        findings.warn(Finding("class_not_predicted", values), findings.NotConverged)


def _chance_loss(train: Windows, valid: Windows, n_classes: int, weight: Tensor | None) -> float:
    """Return the chance-level validation loss: the loss if class frequencies are predicted.

    The frequencies in the training windows are weighted by the class weights.
    """
    class_weights = np.ones(n_classes) if weight is None else weight.cpu().double().numpy()
    frequencies = class_weights * np.bincount(train.labels, minlength=n_classes)
    with np.errstate(divide="ignore"):  # a class without training windows
        losses = -np.log(frequencies / frequencies.sum())
    return float(np.average(losses[valid.labels], weights=class_weights[valid.labels]))


class CrossEntropy(nn.CrossEntropyLoss):
    r"""Cross-entropy loss with class weights, and with label smoothing in training mode only.

    For windows with labels :math:`y_i` and cross-entropies :math:`\ell_i`, the loss is the weighted
    mean :math:`\sum_i w_{y_i} \ell_i / \sum_i w_{y_i}`. With ``label_smoothing``
    :math:`\epsilon` and K classes, the training loss of torch is

    .. math::
        \frac{\sum_i (1 - \epsilon) \, w_{y_i} \ell_i
        - \frac{\epsilon}{K} \sum_i \sum_k w_k \log p_{ik}}{\sum_i w_{y_i}} ,

    where :math:`p_{ik}` is the predicted probability of class k for window i (Szegedy et al. 2016,
    arXiv:1512.00567, section 7).

    In evaluation mode, labels are not smoothed, so that validation losses are comparable between
    values of ``label_smoothing``.
    """

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch: shapes (batch, n_classes) and (batch,) -> ()."""
        smoothing = self.label_smoothing if self.training else 0.0
        return nn.functional.cross_entropy(logits, labels, self.weight, label_smoothing=smoothing)


#: Losses of standardized targets by name. The Huber loss is linear above one standard deviation.
LOSSES = {"mse": nn.MSELoss, "huber": nn.HuberLoss}


class EpochLoss(skorch.callbacks.PassthroughScoring):
    """Callback that computes the loss of an epoch as if all windows were in one batch.

    skorch averages the losses of the batches, weighted by the number of windows in each batch. With
    class weights, the total weight of a batch also depends on the classes of its windows, so the
    average of skorch would depend on the assignment of windows to batches. This callback weights
    each batch by the sum of the class weights of its windows.

    Parameters
    ----------
    name, lower_is_better, on_train
        As in :class:`skorch.callbacks.PassthroughScoring`.
    """

    def on_batch_end(
        self, net: skorch.NeuralNet, batch: Any, training: bool = False, **kwargs: Any
    ) -> None:
        if training == self.on_train:
            # The denominator of the loss: the sum of the class weights of the windows
            codes, weight = batch[1], net.criterion_.weight
            total = len(codes) if weight is None else weight[codes.to(weight.device)].sum().item()
            net.history.record_batch(f"{self.name}_weight", float(total))

    def get_avg_score(self, history: skorch.history.History) -> float:
        columns = [self.name, f"{self.name}_weight"]
        losses, weights = zip(*history[-1, "batches", :, columns], strict=True)
        return np.average(losses, weights=weights)
