"""Time and memory of predicting a whole night, relative to what cannot be avoided."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import mne
import numpy as np
import torch

from braindecode_pars._warnings import quiet
from braindecode_pars.benchmarks._measuring import Row, fastest
from braindecode_pars.estimators import PARSClassifier

__all__ = ["predict_raw"]

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
    with ready.info._unlock():  # as after the filter
        ready.info["highpass"], ready.info["lowpass"] = BAND
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
    yield Row(f"{what} / bare passes", predicting / bare, aim=1.3, over=1.5)
    yield Row(f"{what} at 256 Hz, with filter", prepared, "s")
    ratio = prepared / bare_prepared
    yield Row(f"{what} at 256 Hz / MNE's preparation and bare passes", ratio, aim=1.0, over=1.5)
    if not STATUS.is_file():
        return  # not Linux
    # A process of its own: the largest memory of a process never falls.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        megabytes = pool.submit(_memory, hours).result()
    yield Row(f"{what} at 256 Hz, memory above the recording's", megabytes, "MB", over=300)


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
