"""Channels of windows: which channels each window has, and which of them are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["Channels", "Montage"]


@dataclass(frozen=True, eq=False)
class Montage:
    """Channels of the windows of one or more recordings.

    Attributes
    ----------
    chs_info : list of dict | None
        Channels that are read, as in ``mne.Info["chs"]``; None when unknown.
    bads : frozenset of str
        Channels that are marked as bad.
    rows : ndarray of int, shape (n_chans,) | None
        Rows of a window in the source that are read, in this order. None reads all rows.
    n_rows : int | None
        Number of rows of a window in the source; None when unknown.
    """

    chs_info: list[dict] | None = None
    bads: frozenset[str] = frozenset()
    rows: np.ndarray | None = None
    n_rows: int | None = None

    @property
    def names(self) -> list[str] | None:
        """Names of the channels; None when unknown."""
        return None if self.chs_info is None else [ch["ch_name"] for ch in self.chs_info]

    @property
    def key(self) -> Any:
        """Value that is equal for recordings with the same channels."""
        kinds = tuple(ch.get("kind") for ch in self.chs_info or ())
        rows = None if self.rows is None else tuple(self.rows)
        return self.chs_info is None or (tuple(self.names), kinds), self.bads, rows, self.n_rows

    def pick(self, positions: Sequence[int], chs_info: list[dict] | None = None) -> Montage:
        """Return the montage with the channels at these positions, in this order.

        ``chs_info`` describes the picked channels; None keeps their own descriptions.
        """
        positions = np.asarray(positions, dtype=int)
        if chs_info is None:
            chs_info = [self.chs_info[i] for i in positions]
        if self.rows is None and np.array_equal(positions, np.arange(len(self.chs_info))):
            return replace(self, chs_info=chs_info)
        rows = positions if self.rows is None else self.rows[positions]
        return replace(self, chs_info=chs_info, rows=rows)


@dataclass(frozen=True, eq=False)
class Channels:
    """Channels of every window of a source.

    Attributes
    ----------
    montages : tuple of Montage
        Different montages, in the order of their first windows.
    of_window : ndarray of int, shape (n_windows,)
        Number of each window's montage.
    """

    montages: tuple[Montage, ...]
    of_window: np.ndarray

    @classmethod
    def of_recording(
        cls, n_windows: int, chs_info: list[dict] | None = None, bads: Iterable[str] = ()
    ) -> Channels:
        """Return the channels of windows of one recording; without ``chs_info`` unknown ones."""
        n_rows = None if chs_info is None else len(chs_info)
        montage = Montage(chs_info, frozenset(bads), n_rows=n_rows)
        return cls((montage,), np.zeros(n_windows, dtype=int))

    @classmethod
    def join(cls, parts: Sequence[Channels]) -> Channels:
        """Return the channels of a concatenation of sources."""
        number_of: dict[Any, int] = {}
        montages: list[Montage] = []
        of_window = [np.zeros(0, dtype=int)]
        for part in parts:
            numbers = []
            for montage in part.montages:
                number = number_of.setdefault(montage.key, len(montages))
                if number == len(montages):
                    montages.append(montage)
                numbers.append(number)
            if len(part.of_window):
                of_window.append(np.asarray(numbers)[part.of_window])
        return cls(tuple(montages), np.concatenate(of_window)).take(slice(None))

    def take(self, positions: Any) -> Channels:
        """Return the channels of some windows; montages without a window are left out."""
        of_window = self.of_window[positions]
        _, first, numbers = np.unique(of_window, return_index=True, return_inverse=True)
        order = np.argsort(first)  # montages in the order of their first windows
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        kept = tuple(self.montages[of_window[i]] for i in first[order])
        return Channels(kept, rank[numbers].reshape(-1))

    def replaced(self, montages: Iterable[Montage]) -> Channels:
        """Return the channels with other montages, in the same number and order."""
        return replace(self, montages=tuple(montages))

    @property
    def chs_info(self) -> list[dict] | None:
        """Channels of all windows: None when unknown, empty when they or their order differ."""
        names = {None if m.names is None else tuple(m.names) for m in self.montages}
        if len(names) > 1:
            return []
        return self.montages[0].chs_info if self.montages else None

    @property
    def counts(self) -> np.ndarray:
        """Number of windows of each montage."""
        return np.bincount(self.of_window, minlength=len(self.montages))
