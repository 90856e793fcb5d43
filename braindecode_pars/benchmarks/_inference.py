"""Windows a second of PARSNet and of braindecode's models, on the same windows."""

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

RIVALS = ("CBraMod", "Labram", "BIOT", "EEGNet")


def inference(batch_size: int = 4) -> Iterator[Row]:
    """19 channels, 30 seconds at 200 Hz, every model at its default size."""
    x = torch.randn(batch_size, len(COMMON_CHANNELS), 6000)
    models = {"PARSNet": PARSNet, **{name: getattr(braindecode.models, name) for name in RIVALS}}
    runs = [_prediction(model, x) for model in models.values()]
    for name, seconds in zip(models, fastest(*runs, rounds=3), strict=True):
        yield Row(f"inference, {name}, 19 channels x 30 s", batch_size / seconds, "windows/s")


def _prediction(model: type[nn.Module], x: Tensor) -> Callable[[], Tensor]:
    info = mne.create_info(list(COMMON_CHANNELS), 200.0, "eeg")
    torch.manual_seed(0)
    with warnings.catch_warnings():
        # MNE's, of a montage that it renames; the models', of sizes adapted to the windows.
        warnings.simplefilter("ignore")
        info.set_montage("standard_1020")
        net = model(n_outputs=5, n_chans=19, n_times=6000, sfreq=200.0, chs_info=info["chs"])
    net.eval()
    # LaBraM has one embedding for each electrode of a list of its own.
    names = {"ch_names": [name.upper() for name in COMMON_CHANNELS]}
    arguments = names if model.__name__ == "Labram" else {}

    def run() -> Tensor:
        with torch.inference_mode(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return net(x, **arguments)

    return run
