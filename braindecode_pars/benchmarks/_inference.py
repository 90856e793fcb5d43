"""Inference speed of PARSNet and of models of braindecode on the same windows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import braindecode.models
import mne
import torch
from torch import Tensor, nn

from braindecode_pars.benchmarks._measuring import Row, fastest
from braindecode_pars.models import PARSNet
from braindecode_pars.recordings.preparation import COMMON_CHANNELS

__all__ = ["inference"]

BRAINDECODE_MODELS = ("CBraMod", "Labram", "BIOT", "EEGNet")


def inference(batch_size: int = 4) -> Iterator[Row]:
    """Time windows of 19 channels and 30 s at 200 Hz, with each model at its default size."""
    x = torch.randn(batch_size, len(COMMON_CHANNELS), 6000)
    models: dict[str, type[nn.Module]] = {"PARSNet": PARSNet}
    models |= {name: getattr(braindecode.models, name) for name in BRAINDECODE_MODELS}
    runs = [_prediction(model, x) for model in models.values()]
    for name, seconds in zip(models, fastest(*runs, rounds=3), strict=True):
        yield Row(f"inference, {name}, 19 channels x 30 s", batch_size / seconds, "windows/s")


def _prediction(model: type[nn.Module], x: Tensor) -> Callable[[], Tensor]:
    """Build a model, and return a function that predicts ``x``."""
    info = mne.create_info(list(COMMON_CHANNELS), 200.0, "eeg")
    torch.manual_seed(0)
    with warnings.catch_warnings():
        # MNE warns that it renames a montage, the models that they adapt sizes to the windows.
        warnings.simplefilter("ignore")
        info.set_montage("standard_1020")
        net = model(n_outputs=5, n_chans=19, n_times=6000, sfreq=200.0, chs_info=info["chs"])
    net.eval()

    # LaBraM finds the embedding of each electrode by its name in capitals.
    names = {"ch_names": [name.upper() for name in COMMON_CHANNELS]}
    arguments = names if model.__name__ == "Labram" else {}

    def run() -> Tensor:
        with torch.inference_mode(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return net(x, **arguments)

    return run
