"""Time of the estimators, of PARSNet beside models of braindecode, and of a predicted night."""

from __future__ import annotations

import multiprocessing
import re
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import braindecode.models
import mne
import numpy as np
import torch
from benchmarks.measuring import Row, fastest
from torch import Tensor, nn
from torch.nn import functional as F

from braindecode_pars import paper
from braindecode_pars._common.checks import quiet
from braindecode_pars.datasets import mental_arithmetic
from braindecode_pars.estimators import PARSClassifier, PARSEmbedder
from braindecode_pars.models import PARSNet
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.recordings.preparation import COMMON_CHANNELS
from braindecode_pars.tokens import grid_patches, instance_norm
from braindecode_pars.windows import as_sklearn
from braindecode_pars.windows.recorded_steps import remember_steps

#: Sizes of the encoder in the package.
SIZES = dict(embed_dim=128, num_layers=4, num_heads=8, mlp_dim=256)
BATCH_SIZE = 32


def estimators(n_epochs: int = 8, rounds: int = 2) -> Iterator[Row]:
    """Time fine-tuning on all subjects of the sample, and embedding their windows.

    A fit predicts its windows once at the end, for a warning: a fifth of three epochs, and little
    of the sixty or more of a real fit.
    """
    windows = mental_arithmetic()
    X, y, _ = as_sklearn(windows)
    x = torch.from_numpy(np.stack(list(X)).astype("float32"))
    labels = torch.from_numpy(np.asarray(y))

    # Fine-tuning: the same number of steps, without the estimator.
    clf = PARSClassifier(None, **SIZES, finetune_epochs=n_epochs, device="cpu", verbose=0)
    with quiet():  # such a short training learns little
        module = clf.fit(windows).net_.module_.train()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)

    def bare_steps() -> None:
        for _ in range(n_epochs):
            batches = torch.randperm(len(x)).split(BATCH_SIZE)
            for chosen in batches:
                optimizer.zero_grad()
                F.cross_entropy(module(x[chosen]), labels[chosen]).backward()
                optimizer.step()

    with quiet():
        fit, bare = fastest(lambda: clf.fit(windows), bare_steps, rounds=rounds)
    what = "fine-tuning on 24 subjects of the sample / bare steps"
    yield Row(what, fit / bare, aim=1.2, over=1.5)

    # Embedding: the same windows through the encoder, without the estimator.
    embedder = PARSEmbedder(encoder="small", device="cpu", verbose=0).fit(windows)
    encoder = load_encoder("small").encoder.eval()

    def bare_encoding() -> None:
        with torch.inference_mode():
            for batch in x.flatten(0, 1).split(BATCH_SIZE * x.shape[1]):
                patches = grid_patches(instance_norm(batch), encoder.patch_size)
                encoder(encoder.tokenize(patches))

    embed, bare = fastest(lambda: embedder.transform(windows), bare_encoding, rounds=rounds)
    rate = x.shape[0] * x.shape[1] / embed
    yield Row("embedding channels of 10 s with the encoder in the package", rate, "per second")
    yield Row("embedding / bare encoder", embed / bare, aim=1.2, over=1.5)


BRAINDECODE_MODELS = ("CBraMod", "Labram", "BIOT", "EEGNet")


def inference(batch_size: int = 4) -> Iterator[Row]:
    """Time windows of 19 channels and 30 s at 200 Hz, with each model at its default size."""
    x = torch.randn(batch_size, len(COMMON_CHANNELS), 6000)
    models: dict[str, Callable[..., nn.Module]] = {
        "PARSNet": PARSNet,
        "PARSNet of the paper's size": partial(PARSNet, **paper.MODEL),
    }
    models |= {name: getattr(braindecode.models, name) for name in BRAINDECODE_MODELS}
    runs = [_prediction(model, x) for model in models.values()]
    for name, seconds in zip(models, fastest(*runs, rounds=2), strict=True):
        yield Row(f"inference, {name}, 19 channels x 30 s", batch_size / seconds, "windows/s")


def _prediction(model: Callable[..., nn.Module], x: Tensor) -> Callable[[], Tensor]:
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
    arguments = names if type(net).__name__ == "Labram" else {}

    def run() -> Tensor:
        with torch.inference_mode(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return net(x, **arguments)

    return run


CHANNELS = ["F3", "F4", "C3", "C4", "O1", "O2"]
SFREQ, SECONDS = 100.0, 30
BAND = (0.3, 35.0)

#: Where Linux says how much memory a process had at most.
STATUS = Path("/proc/self/status")


def predict_raw(hours: float = 8.0, rounds: int = 2) -> Iterator[Row]:
    """Time the default model on a night of six channels, against passes over its windows.

    The first night has the rate and the band of the model. The second has 256 Hz and no filter; it
    is compared with the same passes and MNE's own resampling and filter, channel by channel.
    """
    clf = _fitted()
    ready, other = _night(hours, SFREQ), _night(hours, 256.0)
    remember_steps(ready, [("filter", dict(zip(("l_freq", "h_freq"), BAND, strict=True)))])
    module = clf.net_.module_.eval()
    n_windows = int(hours * 3600 / SECONDS)
    windows = torch.randn(n_windows, len(CHANNELS), int(SECONDS * SFREQ)) * 1e-5

    def passes() -> None:
        with torch.inference_mode():
            for batch in windows.split(64):
                module(batch)

    def passes_after_mne() -> None:
        for (signal,) in (other[i][0] for i in range(len(CHANNELS))):
            signal = mne.filter.resample(signal, SFREQ, 256.0, npad="auto", verbose="error")
            mne.filter.filter_data(signal, SFREQ, *BAND, copy=False, verbose="error")
        passes()

    # More rounds for the short ones, of which a busy moment would decide the ratio.
    predicting, bare = fastest(lambda: clf.predict_raw(ready), passes, rounds=4 * rounds)
    prepared, bare_prepared = fastest(
        lambda: clf.predict_raw(other), passes_after_mne, rounds=rounds
    )
    what = f"predict_raw, {hours:g} h of 6 channels"
    yield Row(f"{what} at the model's rate", predicting, "s")
    # Processors with faster matrix products have faster passes and the same preparation: 1.3 to
    # 1.46 on an AMD EPYC; 1.72 on an Intel Xeon with AVX-512, 1.58 since units are compared faster.
    yield Row(f"{what} / bare passes", predicting / bare, aim=1.3, over=1.75)
    yield Row(f"{what} at 256 Hz, with filter", prepared, "s")
    ratio = prepared / bare_prepared
    yield Row(f"{what} at 256 Hz / MNE's preparation and bare passes", ratio, aim=1.0, over=1.5)
    if not STATUS.is_file():
        return  # not Linux
    # A process of its own: the largest memory of a process never falls.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        megabytes = pool.submit(_memory, hours).result()
    yield Row(f"{what} at 256 Hz, memory above the recording's", megabytes, "MB", over=350)


def _fitted() -> PARSClassifier:
    """Return a classifier of the default size, whose training is of no interest."""
    rng = np.random.default_rng(0)
    windows = 1e-5 * rng.standard_normal((20, len(CHANNELS), int(SECONDS * SFREQ)))
    info = mne.create_info(CHANNELS, SFREQ, "eeg")
    epochs = mne.EpochsArray(windows, info, np.c_[np.arange(20), np.zeros((20, 2), int)], verbose=0)
    prepared = dict(band=BAND, notch=[], reference="as recorded", scale=1.0)
    clf = PARSClassifier(None, finetune_epochs=1, preprocessing=prepared, device="cpu", verbose=0)
    with quiet():  # it learns nothing
        return clf.fit(epochs, np.arange(20) % 5)


def _night(hours: float, sfreq: float) -> mne.io.BaseRaw:
    rng = np.random.default_rng(0)
    samples = np.empty((len(CHANNELS), int(hours * 3600 * sfreq)))
    for channel in samples:
        rng.standard_normal(out=channel)
        channel *= 1e-5
    return mne.io.RawArray(samples, mne.create_info(CHANNELS, sfreq, "eeg"), verbose="error")


def _memory(hours: float) -> float:
    """Return how many megabytes this process has at most above those of a night at 256 Hz."""

    def largest() -> float:
        # Not that of resource.getrusage, which a new process inherits from the one that starts it.
        (line,) = re.findall(r"^VmHWM:\s*(\d+) kB$", STATUS.read_text(), re.MULTILINE)
        return int(line) * 1024 / 1e6

    clf = _fitted()
    clf.predict_raw(_night(0.5, 256.0))  # what is loaded and allocated once
    night = _night(hours, 256.0)
    before = largest()
    clf.predict_raw(night)
    return largest() - before
