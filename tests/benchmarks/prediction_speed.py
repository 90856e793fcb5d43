"""Speed of predict_raw."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import mne
import numpy as np
import torch
from benchmarks.measuring import Row, fastest

from braindecode_pars._common.checks import quiet
from braindecode_pars.estimators import PARSClassifier
from braindecode_pars.windows.recorded_steps import remember_steps

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
