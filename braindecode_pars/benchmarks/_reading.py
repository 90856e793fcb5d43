"""Reading 30-s crops of one channel, 512 at a time."""

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
    """A store beside lazily read braindecode windows, and beside copies within memory."""
    with TemporaryDirectory(prefix="braindecode-pars-benchmark-") as folder:
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
        loader = DataLoader(SingleChannelWindows(lazy, N_TIMES), batch_size=BATCH, shuffle=True)
        of_loader = fastest(lambda: list(loader), rounds=3)[0] / len(loader.dataset)

        store = stores["float32"]
        whole = store.recordings["n_times"].min()
        array = store.crops(range(len(store)), [0] * len(store), whole).ravel()
        runs = [_batches(store) for store in stores.values()]
        times = fastest(*runs, _copies(array), rounds=5)
        of_int16, of_float32, of_copy = (seconds / (BATCH * N_BATCHES) for seconds in times)
    yield Row("reading, SignalStore of int16", 1 / of_int16, "windows/s")
    yield Row("reading, DataLoader over lazy windows of FIF", 1 / of_loader, "windows/s")
    yield Row("reading, SignalStore / lazy windows", of_loader / of_int16, aim=15, under=15)
    for dtype, seconds in (("int16", of_int16), ("float32", of_float32)):
        what = f"reading, SignalStore of {dtype} / copies within memory"
        yield Row(what, of_copy / seconds, aim=0.5, under=0.5)


def _batches(store: SignalStore) -> Callable[[], None]:
    rng = np.random.default_rng(0)

    def run() -> None:
        for _ in range(N_BATCHES):
            store.batch(rng.integers(len(store), size=BATCH), N_TIMES, rng)

    return run


def _copies(array: np.ndarray) -> Callable[[], None]:
    """As many windows of float32 out of one array, one plain copy each."""
    rng = np.random.default_rng(0)

    def run() -> None:
        for _ in range(N_BATCHES):
            out = np.empty((BATCH, N_TIMES), np.float32)
            for i, first in enumerate(rng.integers(len(array) - N_TIMES, size=BATCH).tolist()):
                out[i] = array[first : first + N_TIMES]

    return run
