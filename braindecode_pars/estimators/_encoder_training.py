"""How the encoder takes part in fine-tuning: frozen, later, at a lower rate, with dropout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback, Freezer, Unfreezer
from torch import nn

from braindecode_pars.training import NO_DECAY

__all__ = ["EncoderDropout", "encoder_callbacks", "param_groups"]

_ENCODER = "encoder.*"


def encoder_callbacks(params: Mapping[str, Any]) -> list[tuple[str, Callback]]:
    """Return the callbacks for the encoder; an empty list for an estimator without an encoder."""
    if "freeze_encoder" not in params:
        return []
    return [("encoder_dropout", EncoderDropout(float(params["drop_prob"]))), *_freezing(params)]


def _freezing(params: Mapping[str, Any]) -> list[tuple[str, Callback]]:
    freeze = ("freeze_encoder", Freezer(_ENCODER))
    if params["freeze_encoder"] or params["encoder_lr_factor"] == 0:
        return [freeze]
    if params["head_epochs"] > 0:
        joins_at = int(params["head_epochs"]) + 1
        return [freeze, ("unfreeze_encoder", Unfreezer(_ENCODER, at=joins_at))]
    return []


def param_groups(params: Mapping[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """Return skorch's parameter groups: first those of the encoder, with their learning rate.

    skorch puts a parameter into the first group whose pattern matches its name. Those that match no
    pattern have the learning rate and the weight decay of the optimiser.
    """
    rate = {"lr": float(params["finetune_lr"]) * float(params.get("encoder_lr_factor", 1.0))}
    of_encoder = [(f"encoder.{pattern}", {**group, **rate}) for pattern, group in NO_DECAY]
    return [*of_encoder, (_ENCODER, rate), *NO_DECAY]


class EncoderDropout(Callback):
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

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.own_ = [layer.p for layer in _dropouts(net)]
        for layer in _dropouts(net):
            layer.p = self.drop_prob

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        for layer, drop_prob in zip(_dropouts(net), self.own_, strict=True):
            layer.p = drop_prob


def _dropouts(net: NeuralNet) -> Iterator[nn.Dropout]:
    return (layer for layer in net.module_.encoder.modules() if isinstance(layer, nn.Dropout))
