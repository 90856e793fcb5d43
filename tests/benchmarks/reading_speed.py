"""Speed of reading: single-channel crops for pretraining, labeled windows for fine-tuning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from benchmarks.measuring import N_TIMES, Row, fastest, fif_recordings
from braindecode.datasets import BaseConcatDataset
from braindecode.preprocessing import create_fixed_length_windows
from torch.utils.data import DataLoader

from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import SingleChannelWindows
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.examples import Examples

BATCH = 512  # number of crops per batch
N_BATCHES = 20  # number of batches per measurement


def reading() -> Iterator[Row]:
    """Compare a SignalStore with lazily loaded braindecode windows, and with copies in memory."""
    with TemporaryDirectory(prefix="braindecode-pars-benchmark-") as folder:
        # The same recordings as lazily loaded windows and as stores
        recordings = fif_recordings(Path(folder), n_recordings=8)
        lazy = create_fixed_length_windows(
            recordings,
            window_size_samples=N_TIMES,
            window_stride_samples=N_TIMES,
            on_last_window="drop",
            verbose="error",
        )
        stores = {
            dtype: SignalStore.create(Path(folder) / dtype, recordings, dtype=dtype, verbose=0)
            for dtype in ("int16", "float32")
        }

        # Seconds per window of a DataLoader over the lazily loaded windows
        loader = DataLoader(SingleChannelWindows(lazy, N_TIMES), batch_size=BATCH, shuffle=True)
        loader_seconds = fastest(lambda: list(loader), rounds=3)[0] / len(loader.dataset)

        # Seconds per window of the stores, and of copies from one array in memory
        store = stores["float32"]
        n_times = store.recordings["n_times"].min()
        array = store.crops(range(len(store)), [0] * len(store), n_times).ravel()
        runs = [_batches(store) for store in stores.values()]
        times = fastest(*runs, _copies(array), rounds=5)
        int16_seconds, float32_seconds, copy_seconds = (t / (BATCH * N_BATCHES) for t in times)

    yield Row("reading crops from an int16 SignalStore", 1 / int16_seconds, "windows/s")
    yield Row(
        "reading crops with a DataLoader over lazily loaded FIF windows",
        1 / loader_seconds,
        "windows/s",
    )
    value = loader_seconds / int16_seconds
    yield Row(
        "speed of reading crops, int16 SignalStore / lazily loaded windows",
        value,
        goal=15,
        under=15,
    )
    for dtype, seconds in (("int16", int16_seconds), ("float32", float32_seconds)):
        title = f"speed of reading crops, {dtype} SignalStore / copies within memory"
        yield Row(title, copy_seconds / seconds, goal=0.5, under=0.5)


def _batches(store: SignalStore) -> Callable[[], None]:
    """Return a function that reads random batches from a store."""
    rng = np.random.default_rng(0)

    def run() -> None:
        for _ in range(N_BATCHES):
            store.batch(rng.integers(len(store), size=BATCH), N_TIMES, rng)

    return run


def _copies(array: np.ndarray) -> Callable[[], None]:
    """Return a function that copies the same number of float32 windows from one array."""
    rng = np.random.default_rng(0)

    def run() -> None:
        for _ in range(N_BATCHES):
            out = np.empty((BATCH, N_TIMES), np.float32)
            for i, first in enumerate(rng.integers(len(array) - N_TIMES, size=BATCH).tolist()):
                out[i] = array[first : first + N_TIMES]

    return run


LABELED_BATCH = 64  # number of labeled windows per batch


def labels() -> Iterator[Row]:
    """Compare labeled windows from stores with labeled windows from FIF files.

    FIF files and float32 stores have single precision. An int16 store has half of the bytes, but
    its samples have to be scaled.
    """
    with TemporaryDirectory(prefix="braindecode-pars-benchmark-") as folder:
        recordings = fif_recordings(Path(folder), n_recordings=8)
        lazy = BaseConcatDataset(
            [
                fixed_windows(recording.raw, target=i % 2)
                for i, recording in enumerate(recordings.datasets)
            ]
        )
        stored = {
            dtype: SignalStore.create(Path(folder) / dtype, lazy, dtype=dtype, verbose=0)
            for dtype in ("float32", "int16")
        }
        runs = [_epoch(store.labeled_windows()) for store in stored.values()]
        times = fastest(_epoch(lazy), *runs, rounds=3)
        lazy_seconds, *store_seconds = (seconds / len(lazy) for seconds in times)

    yield Row("reading labeled windows from FIF files", 1 / lazy_seconds, "windows/s")
    bounds = dict(float32=dict(goal=20, under=10), int16=dict(under=5))
    for (dtype, bound), seconds in zip(bounds.items(), store_seconds, strict=True):
        yield Row(f"reading labeled windows from a store of {dtype}", 1 / seconds, "windows/s")
        title = f"speed of reading labeled windows, {dtype} store / FIF files"
        yield Row(title, lazy_seconds / seconds, **bound)


def _epoch(windows: BaseConcatDataset) -> Callable[[], object]:
    """Return a function that reads all windows once, in random order."""
    loader = DataLoader(Examples(as_windows(windows)), batch_size=LABELED_BATCH, shuffle=True)
    return lambda: [x.shape for x, _ in loader]
