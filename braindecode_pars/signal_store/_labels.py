"""Labelled windows of one recording: where they lie, and their labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from braindecode.datasets import EEGWindowsDataset

__all__ = ["UNLABELED", "Labels", "labels_of"]

#: Target of an unlabelled window, as in the recipes.
UNLABELED = -1


@dataclass(frozen=True, eq=False)
class Labels:
    """Windows of one recording, or of a piece of it, with their labels.

    Attributes
    ----------
    start, stop : ndarray of int, shape (n_windows,)
        First sample of each window, and the sample after its last.
    label : tuple
        Label of each window: a number or text.
    number : ndarray of int, shape (n_windows,)
        braindecode's ``i_window_in_trial`` of each window.
    """

    start: np.ndarray
    stop: np.ndarray
    label: tuple[Any, ...]
    number: np.ndarray

    def __len__(self) -> int:
        return len(self.label)

    @property
    def any_labelled(self) -> bool:
        """Whether at least one of the windows has a label."""
        return not all(type(value) is int and value == UNLABELED for value in self.label)

    def pieces(self, stretches: list[tuple[int, int]], sfreq: float) -> list[Labels]:
        """Return the windows within each stretch between gaps, in samples of that stretch.

        Parameters
        ----------
        stretches : list of (int, int)
            First sample of each stretch, and the sample after its last.
        sfreq : float
            Sampling rate in Hz, for the message.

        Raises
        ------
        ValueError
            When a window is not within one stretch. The message names the window.
        """
        inside = [(self.start >= first) & (self.stop <= last) for first, last in stretches]
        outside = ~np.any(inside, axis=0)
        if outside.any():
            i = int(outside.argmax())
            end = stretches[-1][1] if stretches else 0
            where = (
                f"is outside the recording, which has {end / sfreq:g} s"
                if self.start[i] < 0 or self.stop[i] > end
                else "contains a gap of the recording"
            )
            raise ValueError(
                f"its window {i} (label {self.label[i]}), from {self.start[i] / sfreq:g} s to "
                f"{self.stop[i] / sfreq:g} s, {where}; correct or remove the window."
            )
        return [
            self._take(np.flatnonzero(mask), first)
            for mask, (first, _) in zip(inside, stretches, strict=True)
        ]

    def _take(self, rows: np.ndarray, first: int) -> Labels:
        return Labels(
            self.start[rows] - first,
            self.stop[rows] - first,
            tuple(self.label[i] for i in rows),
            self.number[rows],
        )

    def resampled(self, before: float, after: float, n_times: int) -> Labels:
        """Return the windows after resampling from one rate to another, to ``n_times`` samples."""
        if before == after:
            return self
        length = np.rint((self.stop - self.start) * after / before).astype(int)
        # Rounding may move the last window beyond the last sample.
        start = np.minimum(np.rint(self.start * after / before).astype(int), n_times - length)
        return replace(self, start=start, stop=start + length)


def labels_of(windows: Any, transforms: Sequence[Callable[[Any], Any]] = ()) -> Labels | None:
    """Return the windows and labels of a recording of a braindecode dataset.

    Parameters
    ----------
    windows : Any
        Recording of a dataset.
    transforms : sequence of callable
        Functions that are applied to each label in turn, such as braindecode's
        ``target_transform``.

    Returns
    -------
    Labels | None
        None for a continuous recording, and when there is no window.

    Raises
    ------
    ValueError
        When a label is missing, or neither a number nor text.
    """
    if not isinstance(windows, EEGWindowsDataset) or windows.targets_from != "metadata":
        return None
    targets = windows.y
    for transform in transforms:
        targets = [transform(target) for target in targets]
    label = tuple(t.item() if isinstance(t, np.generic) else t for t in targets)
    if not label:
        return None
    for i, value in enumerate(label):
        if not isinstance(value, bool | int | float | str) or value != value:
            raise ValueError(
                f"the label of its window {i} is {value!r}; labels must be numbers or texts, and "
                f"{UNLABELED} for a window without one. Without labels, store the continuous "
                "recordings."
            )
    number, start, stop = np.asarray(windows.crop_inds, int).reshape(-1, 3).T
    return Labels(start, stop, label, number)
