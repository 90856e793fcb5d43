"""Speed of reading batches of 512 single-channel crops of 30 s."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from braindecode.preprocessing import create_fixed_length_windows
from torch.utils.data import DataLoader

from braindecode_pars.benchmarks._measuring import Row, fastest
from braindecode_pars.benchmarks._synthetic import N_TIMES, fif_recordings
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import SingleChannelWindows

__all__ = ["reading"]

BATCH, N_BATCHES = 512, 20


def reading() -> Iterator[Row]:
    """Compare a SignalStore with lazily read braindecode windows, and with copies in memory."""
    with TemporaryDirectory(prefix="braindecode-pars-benchmark-") as folder:
        # The same recordings as lazy windows and as stores.
        recordings = fif_recordings(Path(folder), n_recordings=16)
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
