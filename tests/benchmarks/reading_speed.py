"""Speed of reading single-channel crops for pretraining."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from benchmarks.measuring import N_TIMES, Row, fastest, fif_recordings
from braindecode.preprocessing import create_fixed_length_windows
from torch.utils.data import DataLoader

from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import SingleChannelWindows

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
