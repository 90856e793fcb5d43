"""Create a braindecode dataset of recordings, each of a different subject."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mne
from braindecode.datasets import BaseConcatDataset, RawDataset


def of_raws(raws: Iterable[mne.io.BaseRaw], subjects: Iterable[Any] | None = None):
    """Return a dataset of recordings. If subjects is None, the subjects are 0, 1, ..."""
    raws = list(raws)
    names = range(len(raws)) if subjects is None else subjects
    pairs = zip(raws, names, strict=True)
    return BaseConcatDataset([RawDataset(raw, {"subject": name}) for raw, name in pairs])
