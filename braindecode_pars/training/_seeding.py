"""Seeded random draws that do not change the caller's random state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["seeded"]


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch inside the context, on the CPU and on ``device``."""
    device = torch.device(device)
    if device.type == "cpu":
        # An empty list, since the default would save the state of every GPU.
        fork = torch.random.fork_rng(devices=[])
    else:
        index = 0 if device.index is None else device.index
        fork = torch.random.fork_rng(devices=[index], device_type=device.type)
    with fork:
        torch.manual_seed(seed)
        yield
