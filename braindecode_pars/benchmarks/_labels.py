"""Speed of reading labelled windows, as the estimators read them in batches of 64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from braindecode.datasets import BaseConcatDataset

from braindecode_pars.benchmarks._measuring import Row, fastest
from braindecode_pars.benchmarks._synthetic import fif_recordings
from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows._stored import WindowLoader
from braindecode_pars.windows._window_set import as_window_set

__all__ = ["labels"]

BATCH = 64


def labels() -> Iterator[Row]:
    """Compare labelled windows of stores with those of a cache of FIF, as ``load`` gives them.

    The cache is in single precision, as a store of float32 is. One of int16 has half the bytes, but
    its samples have to be scaled.
    """
    with TemporaryDirectory(prefix="braindecode-pars-benchmark-") as folder:
        recordings = fif_recordings(Path(folder), n_recordings=16)
        cached = BaseConcatDataset(
            [fixed_windows(one.raw, target=i % 2) for i, one in enumerate(recordings.datasets)]
        )
        stored = {
            dtype: SignalStore.create(Path(folder) / dtype, cached, dtype=dtype, verbose=0)
            for dtype in ("float32", "int16")
        }
        runs = [_epoch(store.labelled_windows()) for store in stored.values()]
        times = fastest(_epoch(cached), *runs, rounds=5)
        cached_seconds, *of_stores = (seconds / len(cached) for seconds in times)

    yield Row("labelled windows, of cached FIF", 1 / cached_seconds, "windows/s")
    bounds = dict(float32=dict(aim=20, under=10), int16=dict(under=5))
    for (dtype, bound), seconds in zip(bounds.items(), of_stores, strict=True):
        yield Row(f"labelled windows, of a store of {dtype}", 1 / seconds, "windows/s")
        what = f"labelled windows, store of {dtype} / cached FIF"
        yield Row(what, cached_seconds / seconds, **bound)


def _epoch(windows: BaseConcatDataset) -> Callable[[], object]:
    """Return a function that reads all windows once, in random order."""
    loader = WindowLoader(as_window_set(windows), batch_size=BATCH, shuffle=True)
    return lambda: [x.shape for x, _ in loader]
