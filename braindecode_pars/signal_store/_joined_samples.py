"""The samples of several stores, read as if they were one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

__all__ = ["JoinedSamples", "Samples"]


class Samples(Protocol):
    """Samples of a store: a file, or those of several stores. Positions count samples."""

    n_samples: int

    def file_at(self, first: int) -> Path:
        """Return the file that contains a position."""

    def stored(self, first: int, n_samples: int) -> np.ndarray:
        """Return stored numbers of one recording, shape (n_samples,), read-only."""

    def crops(
        self, firsts: np.ndarray, n_times: int, scale: np.ndarray, offset: np.ndarray
    ) -> np.ndarray:
        """Return crops as float32 values in volts, shape (n_crops, n_times)."""


class JoinedSamples:
    """Samples of several stores, one after another; nothing is copied.

    Parameters
    ----------
    parts : sequence of Samples
        Samples of each store, all of one type.

    Attributes
    ----------
    firsts : ndarray of int, shape (n_parts,)
        Position of the first sample of each store.
    n_samples : int
        Number of samples of all stores.
    """

    def __init__(self, parts: Sequence[Samples]):
        ends = np.cumsum([part.n_samples for part in parts])
        self.parts = list(parts)
        self.firsts = np.concatenate([[0], ends[:-1]])
        self.n_samples = int(ends[-1])

    def file_at(self, first: int) -> Path:
        """Return the file that contains a position."""
        part = self._part_of(first)
        return self.parts[part].file_at(first - int(self.firsts[part]))

    def stored(self, first: int, n_samples: int) -> np.ndarray:
        """Return stored numbers of one recording, shape (n_samples,), read-only."""
        part = self._part_of(first)
        return self.parts[part].stored(first - int(self.firsts[part]), n_samples)

    def crops(
        self, firsts: np.ndarray, n_times: int, scale: np.ndarray, offset: np.ndarray
    ) -> np.ndarray:
        """Return crops as float32 values in volts, shape (n_crops, n_times).

        Parameters
        ----------
        firsts : ndarray of int, shape (n_crops,)
            Position of the first sample of each crop.
        n_times : int
            Length of a crop in samples; a crop lies within one recording.
        scale, offset : ndarray of float32, shape (n_crops,)
            Scale and offset of each crop.
        """
        part_of = self._part_of(firsts)
        values = np.empty((len(firsts), n_times), np.float32)
        for part in np.unique(part_of):
            rows = np.flatnonzero(part_of == part)
            own = firsts[rows] - self.firsts[part]
            values[rows] = self.parts[part].crops(own, n_times, scale[rows], offset[rows])
        return values

    def _part_of(self, firsts):
        return np.searchsorted(self.firsts, firsts, side="right") - 1
