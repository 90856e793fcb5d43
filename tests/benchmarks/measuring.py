"""Measure durations, ratios of durations and memory, and format the results as a table.

Synthetic recordings contain noise, because speed does not depend on the values.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import mne
import numpy as np
import torch
from braindecode.datasets import BaseConcatDataset, RawDataset

from braindecode_pars.signal_store import SignalStore


@dataclass(frozen=True)
class Row:
    """One row in the table of results.

    A benchmark fails if the value is above ``over`` or below ``under``. These bounds are far enough
    from the goal that measurement noise alone does not exceed them. The title of a ratio is
    ``"this / that"``, and its unit is empty.
    """

    title: str
    value: float
    unit: str = ""
    goal: float | None = None
    over: float | None = None
    under: float | None = None

    @property
    def failed(self) -> bool:
        """Whether the value is beyond a bound."""
        return (self.over is not None and self.value > self.over) or (
            self.under is not None and self.value < self.under
        )

    @property
    def bound(self) -> str:
        """The bound as text, such as "over 1.25"; empty if there is no bound."""
        if self.over is not None:
            return f"over {self.over:g}"
        return "" if self.under is None else f"under {self.under:g}"

    @property
    def measured(self) -> str:
        """The value with at least three digits, and its unit."""
        number = f"{self.value:,.0f}" if abs(self.value) >= 100 else f"{self.value:.3g}"
        return f"{number} {self.unit}".strip()

    def __str__(self) -> str:
        notes = [f"goal {self.goal:g}"] if self.goal is not None else []
        notes += [f"fails if {self.bound}"] if self.bound else []
        return f"{self.title}: {self.measured}" + (f" ({', '.join(notes)})" if notes else "")


def fastest(*runs: Callable[[], object], rounds: int) -> list[float]:
    """Return the shortest time of each function in seconds.

    The functions run alternately, so that all are measured under the same load. The shortest time
    is the best estimate, because other programs on the computer can only add time.
    """

    def seconds(run: Callable[[], object]) -> float:
        # Warm up: the first run has to allocate memory that the previous function released.
        run()
        wait_for_device()
        start = time.perf_counter()
        run()
        wait_for_device()
        return time.perf_counter() - start

    times = [[seconds(run) for run in runs] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def ratio(slow: Callable[[], object], fast: Callable[[], object], rounds: int) -> float:
    """Return the shortest time of ``slow`` divided by the shortest time of ``fast``."""
    slow_seconds, fast_seconds = fastest(slow, fast, rounds=rounds)
    return slow_seconds / fast_seconds


def wait_for_device() -> None:
    """Wait until all asynchronous CUDA operations are finished."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the peak memory of all tensors during a run, in bytes."""
    run()  # warm-up
    with torch.profiler.profile(profile_memory=True) as profile:
        run()

    # Sum the events of the allocator; released memory has a negative size.
    allocated = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            allocated += event.nbytes()
            peak = max(peak, allocated)
    return peak


def circumstances(day: date | None = None) -> str:
    """Return date, processor and versions as one sentence."""
    devices = [f"{_processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"]
    if torch.cuda.is_available():
        devices.append(torch.cuda.get_device_name())
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "braindecode", "skorch"))
    return (
        f"Measured on {day or date.today()}, {' and '.join(devices)}, Python "
        f"{platform.python_version()}, {versions}."
    )


def as_rst(rows: Iterable[Row], where: str) -> str:
    """Return a sentence and the results as reStructuredText; the results are a list-table."""
    lines = [where, "", ".. list-table::", "   :header-rows: 1", ""]
    for cells in [
        ("Measurement", "Result", "Goal", "Fails if"),
        *((row.title, row.measured, _number(row.goal), row.bound) for row in rows),
    ]:
        lines += [f"   {'*' if i == 0 else ' '} - {cell}".rstrip() for i, cell in enumerate(cells)]
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _processor() -> str:
    """Return the name of the processor on Linux, and its architecture on other systems."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    names = [line for line in lines if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.processor()


N_CHANS = 6  # number of channels
SFREQ = 200  # sampling rate in Hz
SECONDS = 1800  # duration of a recording in seconds
#: Number of samples in a window of 30 s.
N_TIMES = 30 * SFREQ


def fif_recordings(folder: Path, n_recordings: int) -> BaseConcatDataset:
    """Write recordings of 30 minutes as FIF files, and return them without loading the samples."""
    info = mne.create_info(N_CHANS, SFREQ, "eeg")
    rng = np.random.default_rng(0)
    datasets = []
    for subject in range(n_recordings):
        file = folder / f"{subject}_raw.fif"
        signals = 1e-5 * rng.standard_normal((N_CHANS, SFREQ * SECONDS))
        mne.io.RawArray(signals, info, verbose="error").save(file, verbose="error")
        raw = mne.io.read_raw_fif(file, preload=False, verbose="error")
        datasets.append(RawDataset(raw, dict(subject=subject)))
    return BaseConcatDataset(datasets)


@contextmanager
def synthetic_store(n_recordings: int = 4) -> Iterator[SignalStore]:
    """Create a store of synthetic recordings in a temporary folder."""
    with TemporaryDirectory(prefix="braindecode-pars-benchmark-") as folder:
        recordings = fif_recordings(Path(folder), n_recordings)
        yield SignalStore.create(Path(folder) / "store", recordings, verbose=0)
