"""Speed of the estimators, of PARSNet compared with braindecode models, and of predict_raw."""

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

#: Sizes of the bundled encoder
SIZES = dict(embed_dim=128, num_layers=4, num_heads=8, mlp_dim=256)
BATCH_SIZE = 32


def estimators(n_epochs: int = 8, rounds: int = 2) -> Iterator[Row]:
    """Measure fine-tuning on all subjects of the sample dataset, and embedding of their windows.

    At the end, ``fit`` predicts the training windows once, for a warning. This takes as long as a
    fifth of three epochs, which is negligible in a typical training of 60 or more epochs.
    """
    windows = mental_arithmetic()
    X, y, _ = as_sklearn(windows)
    x = torch.from_numpy(np.stack(list(X)).astype("float32"))
    labels = torch.from_numpy(np.asarray(y))

    # Fine-tuning, compared with the same number of training steps without the estimator
    clf = PARSClassifier(None, **SIZES, finetune_epochs=n_epochs, device="cpu", verbose=0)
    with quiet():  # ignore warnings about a short training
        module = clf.fit(windows).net_.module_.train()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)

    def bare_steps() -> None:
        for _ in range(n_epochs):
            batches = torch.randperm(len(x)).split(BATCH_SIZE)
            for batch in batches:
                optimizer.zero_grad()
                F.cross_entropy(module(x[batch]), labels[batch]).backward()
                optimizer.step()

    with quiet():
        fit, bare = fastest(lambda: clf.fit(windows), bare_steps, rounds=rounds)
    title = "duration of fine-tuning on 24 subjects / training steps alone"
    yield Row(title, fit / bare, goal=1.2, over=1.5)

    # Embedding, compared with the encoder without the estimator
    embedder = PARSEmbedder(encoder="small", device="cpu", verbose=0).fit(windows)
    encoder = load_encoder("small").encoder.eval()

    def bare_encoding() -> None:
        with torch.inference_mode():
            for batch in x.flatten(0, 1).split(BATCH_SIZE * x.shape[1]):
                patches = grid_patches(instance_norm(batch), encoder.patch_size)
                encoder(encoder.tokenize(patches))

    embed, bare = fastest(lambda: embedder.transform(windows), bare_encoding, rounds=rounds)
    rate = x.shape[0] * x.shape[1] / embed
    yield Row("embedding of channels of 10 s with a bundled encoder", rate, "channels/s")
    yield Row("duration of embedding / encoder alone", embed / bare, goal=1.2, over=1.5)


BRAINDECODE_MODELS = ("CBraMod", "Labram", "BIOT", "EEGNet")


def inference(batch_size: int = 4) -> Iterator[Row]:
    """Measure prediction of windows (19 channels, 30 s, 200 Hz) with models of default size."""
    x = torch.randn(batch_size, len(COMMON_CHANNELS), 6000)
    models: dict[str, Callable[..., nn.Module]] = {
        "PARSNet": PARSNet,
        "PARSNet (size of the paper)": partial(PARSNet, **paper.MODEL),
    }
    models |= {name: getattr(braindecode.models, name) for name in BRAINDECODE_MODELS}
    runs = [_prediction(model, x) for model in models.values()]
    for name, seconds in zip(models, fastest(*runs, rounds=2), strict=True):
        yield Row(f"inference with {name}, 19 channels x 30 s", batch_size / seconds, "windows/s")


def _prediction(model: Callable[..., nn.Module], x: Tensor) -> Callable[[], Tensor]:
    """Build a model, and return a function that predicts ``x``."""
    info = mne.create_info(list(COMMON_CHANNELS), 200.0, "eeg")
    torch.manual_seed(0)
    with warnings.catch_warnings():
        # MNE warns about a renamed montage, models about sizes that they adapt to the windows.
        warnings.simplefilter("ignore")
        info.set_montage("standard_1020")
        net = model(n_outputs=5, n_chans=19, n_times=6000, sfreq=200.0, chs_info=info["chs"])
    net.eval()

    # LaBraM selects the embedding of an electrode by its name in capital letters.
    names = {"ch_names": [name.upper() for name in COMMON_CHANNELS]}
    arguments = names if type(net).__name__ == "Labram" else {}

    def run() -> Tensor:
        with torch.inference_mode(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return net(x, **arguments)

    return run


CHANNELS = ["F3", "F4", "C3", "C4", "O1", "O2"]
SFREQ = 100.0  # sampling rate of the model in Hz
SECONDS = 30  # duration of a window in seconds
BAND = (0.3, 35.0)  # passband of the model in Hz

#: File in which Linux reports the peak memory of this process.
STATUS = Path("/proc/self/status")


def predict_raw(hours: float = 8.0, rounds: int = 2) -> Iterator[Row]:
    """Measure predict_raw of the default model, compared with forward passes on all windows.

    The first recording has the sampling rate and the band of the model. The second recording is
    unfiltered and sampled at 256 Hz; it is compared with the same forward passes after resampling
    and filtering with MNE, channel by channel.
    """
    clf = _fitted()
    preprocessed, unfiltered = _recording(hours, SFREQ), _recording(hours, 256.0)
    remember_steps(preprocessed, [("filter", dict(zip(("l_freq", "h_freq"), BAND, strict=True)))])
    module = clf.net_.module_.eval()
    n_windows = int(hours * 3600 / SECONDS)
    windows = torch.randn(n_windows, len(CHANNELS), int(SECONDS * SFREQ)) * 1e-5

    def passes() -> None:
        with torch.inference_mode():
            for batch in windows.split(64):
                module(batch)

    def passes_after_mne() -> None:
        for (signal,) in (unfiltered[i][0] for i in range(len(CHANNELS))):
            signal = mne.filter.resample(signal, SFREQ, 256.0, npad="auto", verbose="error")
            mne.filter.filter_data(signal, SFREQ, *BAND, copy=False, verbose="error")
        passes()

    # The first two measurements are short, and need more rounds for a reliable ratio.
    seconds, passes_seconds = fastest(
        lambda: clf.predict_raw(preprocessed), passes, rounds=4 * rounds
    )
    unfiltered_seconds, mne_seconds = fastest(
        lambda: clf.predict_raw(unfiltered), passes_after_mne, rounds=rounds
    )
    title = f"predict_raw, {hours:g} h of 6 channels"
    yield Row(f"{title} at the sampling rate of the model", seconds, "s")
    # Faster matrix products increase the ratio, because they make forward passes faster but not
    # preprocessing: 1.3 to 1.46 on an AMD EPYC; 1.72 on an Intel Xeon with AVX-512, and 1.58 there
    # after units were compared faster.
    ratio = seconds / passes_seconds
    yield Row(f"duration of {title} / forward passes alone", ratio, goal=1.3, over=1.75)
    yield Row(f"{title} at 256 Hz, with filter", unfiltered_seconds, "s")
    ratio = unfiltered_seconds / mne_seconds
    yield Row(
        f"duration of {title} at 256 Hz / preprocessing with MNE and forward passes",
        ratio,
        goal=1.0,
        over=1.5,
    )
    if not STATUS.is_file():
        return  # not Linux
    # Use a new process, because the reported peak memory of a process never decreases.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        megabytes = pool.submit(_additional_memory, hours).result()
    yield Row(f"{title} at 256 Hz, additional peak memory", megabytes, "MB", over=350)


def _fitted() -> PARSClassifier:
    """Return a classifier of default size, after one epoch of training on noise."""
    rng = np.random.default_rng(0)
    windows = 1e-5 * rng.standard_normal((20, len(CHANNELS), int(SECONDS * SFREQ)))
    info = mne.create_info(CHANNELS, SFREQ, "eeg")
    epochs = mne.EpochsArray(windows, info, np.c_[np.arange(20), np.zeros((20, 2), int)], verbose=0)
    preprocessing = dict(band=BAND, notch=[], reference="as recorded", scale=1.0)
    clf = PARSClassifier(
        None, finetune_epochs=1, preprocessing=preprocessing, device="cpu", verbose=0
    )
    with quiet():  # ignore warnings about a short training
        return clf.fit(epochs, np.arange(20) % 5)


def _recording(hours: float, sfreq: float) -> mne.io.BaseRaw:
    """Return a recording of noise in volts."""
    rng = np.random.default_rng(0)
    samples = np.empty((len(CHANNELS), int(hours * 3600 * sfreq)))
    for channel in samples:
        rng.standard_normal(out=channel)
        channel *= 1e-5
    return mne.io.RawArray(samples, mne.create_info(CHANNELS, sfreq, "eeg"), verbose="error")


def _additional_memory(hours: float) -> float:
    """Return the increase of the peak memory during predict_raw of a recording at 256 Hz, in MB."""

    def peak_memory() -> float:
        # A new process inherits the value of resource.getrusage from its parent process.
        (line,) = re.findall(r"^VmHWM:\s*(\d+) kB$", STATUS.read_text(), re.MULTILINE)
        return int(line) * 1024 / 1e6

    clf = _fitted()
    clf.predict_raw(_recording(0.5, 256.0))  # memory that is allocated only once
    raw = _recording(hours, 256.0)
    before = peak_memory()
    clf.predict_raw(raw)
    return peak_memory() - before
