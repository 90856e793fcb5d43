"""Ratios of two things measured side by side, and what is to be said of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

__all__ = ["Row", "fastest", "peak_bytes", "ratio"]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Parameters
    ----------
    what : str
        What was measured; of a ratio, ``"this / that"``.
    value : float
        What came out.
    unit : str
        Of the value; nothing for a ratio.
    aim : float | None
        What was hoped for.
    over, under : float | None
        A value beyond is a failure; so far from the aim that noise alone does not reach it.

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
        """Whether a bound is broken."""
        return (self.over is not None and self.value > self.over) or (
            self.under is not None and self.value < self.under
        )

    @property
    def bound(self) -> str:
        """When it fails, in words."""
        if self.over is not None:
            return f"over {self.over:g}"
        return "" if self.under is None else f"under {self.under:g}"

    @property
    def measured(self) -> str:
        """The value with three digits and its unit."""
        number = f"{self.value:,.0f}" if abs(self.value) >= 100 else f"{self.value:.3g}"
        return f"{number} {self.unit}".strip()

    def __str__(self) -> str:
        notes = [f"aim {self.aim:g}"] if self.aim is not None else []
        notes += [f"fails {self.bound}"] if self.bound else []
        return f"{self.what}: {self.measured}" + (f" ({', '.join(notes)})" if notes else "")


def fastest(*runs: Callable[[], object], rounds: int) -> list[float]:
    """Seconds of the fastest of some rounds of each, side by side.

    Neighbours on a shared machine only ever add time. Each runs once unmeasured before it is
    timed: the memory that the other has just given back would be fetched again at its expense.
    """

    def seconds(run: Callable[[], object]) -> float:
        run()
        wait_for_device()
        start = time.perf_counter()
        run()
        wait_for_device()
        return time.perf_counter() - start

    times = [[seconds(run) for run in runs] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def ratio(slow: Callable[[], object], fast: Callable[[], object], rounds: int) -> float:
    """Fastest of some rounds of ``slow`` in units of the fastest of ``fast``."""
    of_slow, of_fast = fastest(slow, fast, rounds=rounds)
    return of_slow / of_fast


def wait_for_device() -> None:
    """Until everything that was sent to CUDA is computed."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def peak_bytes(run: Callable[[], object]) -> int:
    """Most memory that tensors held at once during a run, from the allocator's own events."""
    run()
    with torch.profiler.profile(profile_memory=True) as profile:
        run()
    held = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak
