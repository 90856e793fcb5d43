"""Measure times, ratios of times and memory, and describe the results."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

__all__ = ["Row", "fastest", "peak_bytes", "ratio"]


@dataclass(frozen=True)
class Row:
    """One row in the table of results.

    Parameters
    ----------
    what : str
        Name of the measured quantity; ``"this / that"`` for a ratio.
    value : float
        Measured value.
    unit : str
        Unit of the value; an empty string for a ratio.
    aim : float | None
        Target value.
    over, under : float | None
        Upper and lower bound; a value beyond a bound fails. Bounds are so far from the target that
        noise alone does not reach them.

    Examples
    --------
    >>> from braindecode_pars.benchmarks import Row
    >>> print(Row("training loop / bare steps", 1.02, aim=1.0, over=1.25))
    training loop / bare steps: 1.02 (aim 1, fails over 1.25)
    """

    what: str
    value: float
    unit: str = ""
    aim: float | None = None
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
        """The bound in words, such as "over 1.25"; empty without a bound."""
        if self.over is not None:
            return f"over {self.over:g}"
        return "" if self.under is None else f"under {self.under:g}"

    @property
    def measured(self) -> str:
        """The value with three digits or more, and its unit."""
        number = f"{self.value:,.0f}" if abs(self.value) >= 100 else f"{self.value:.3g}"
        return f"{number} {self.unit}".strip()

    def __str__(self) -> str:
        notes = [f"aim {self.aim:g}"] if self.aim is not None else []
        notes += [f"fails {self.bound}"] if self.bound else []
        return f"{self.what}: {self.measured}" + (f" ({', '.join(notes)})" if notes else "")


def fastest(*runs: Callable[[], object], rounds: int) -> list[float]:
    """Return the shortest time of each function in seconds.

    The functions alternate, so that all are measured under the same load. The shortest time is the
    best estimate, because other programs on the machine can only add time.
    """

    def seconds(run: Callable[[], object]) -> float:
        # Warm-up: otherwise this function would pay for memory that the previous one released.
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
    """Wait until CUDA has finished all operations, which run asynchronously."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the peak memory of tensors during a run, in bytes."""
    run()  # warm-up
    with torch.profiler.profile(profile_memory=True) as profile:
        run()

    # Sum the events of the allocator; memory that is released has a negative size.
    allocated = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            allocated += event.nbytes()
            peak = max(peak, allocated)
    return peak
