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
from braindecode_pars.windows.examples import Examples, WindowLoader

BATCH, N_BATCHES = 512, 20


def reading() -> Iterator[Row]:
    """Compare a SignalStore with lazily read braindecode windows, and with copies in memory."""
    with TemporaryDirectory(prefix="braindecode-pars-benchmark-") as folder:
        # The same recordings as lazy windows and as stores.
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

        # Seconds per window of a DataLoader over the lazy windows.
        loader = DataLoader(SingleChannelWindows(lazy, N_TIMES), batch_size=BATCH, shuffle=True)
        loader_seconds = fastest(lambda: list(loader), rounds=3)[0] / len(loader.dataset)

        # Seconds per window of the stores, and of plain copies from one array in memory.
        store = stores["float32"]
        n_times = store.recordings["n_times"].min()
        array = store.crops(range(len(store)), [0] * len(store), n_times).ravel()
        runs = [_batches(store) for store in stores.values()]
        times = fastest(*runs, _copies(array), rounds=5)
        int16_seconds, float32_seconds, copy_seconds = (t / (BATCH * N_BATCHES) for t in times)

    yield Row("reading, SignalStore of int16", 1 / int16_seconds, "windows/s")
    yield Row("reading, DataLoader over lazy windows of FIF", 1 / loader_seconds, "windows/s")
    value = loader_seconds / int16_seconds
    yield Row("reading, SignalStore / lazy windows", value, aim=15, under=15)
    for dtype, seconds in (("int16", int16_seconds), ("float32", float32_seconds)):
        what = f"reading, SignalStore of {dtype} / copies within memory"
        yield Row(what, copy_seconds / seconds, aim=0.5, under=0.5)


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


LABELED_BATCH = 64


def labels() -> Iterator[Row]:
    """Compare labeled windows of stores with those of files of FIF.

    FIF is in single precision, as a store of float32 is. One of int16 has half the bytes, but
    its samples have to be scaled.
    """
    with TemporaryDirectory(prefix="braindecode-pars-benchmark-") as folder:
        recordings = fif_recordings(Path(folder), n_recordings=8)
        lazy = BaseConcatDataset(
            [fixed_windows(one.raw, target=i % 2) for i, one in enumerate(recordings.datasets)]
        )
        stored = {
            dtype: SignalStore.create(Path(folder) / dtype, lazy, dtype=dtype, verbose=0)
            for dtype in ("float32", "int16")
        }
        runs = [_epoch(store.labeled_windows()) for store in stored.values()]
        times = fastest(_epoch(lazy), *runs, rounds=3)
        lazy_seconds, *of_stores = (seconds / len(lazy) for seconds in times)

    yield Row("labeled windows, of FIF", 1 / lazy_seconds, "windows/s")
    bounds = dict(float32=dict(aim=20, under=10), int16=dict(under=5))
    for (dtype, bound), seconds in zip(bounds.items(), of_stores, strict=True):
        yield Row(f"labeled windows, of a store of {dtype}", 1 / seconds, "windows/s")
        what = f"labeled windows, store of {dtype} / FIF"
        yield Row(what, lazy_seconds / seconds, **bound)


def _epoch(windows: BaseConcatDataset) -> Callable[[], object]:
    """Return a function that reads all windows once, in random order."""
    loader = WindowLoader(Examples(as_windows(windows)), batch_size=LABELED_BATCH, shuffle=True)
    return lambda: [x.shape for x, _ in loader]
