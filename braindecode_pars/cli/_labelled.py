"""A store with labels as the data of ``evaluate``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from braindecode.datasets import BaseConcatDataset

from braindecode_pars.datasets import RECIPES
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.signal_store._parts import is_store

__all__ = ["labelled_windows", "recipe_of"]


def labelled_windows(path: Path, subjects: Iterable | None = None) -> BaseConcatDataset:
    """Return the labelled windows of a store, of some subjects or all.

    Raises
    ------
    ValueError
        When the store has no labels, is damaged, or has no recording of a subject.
    """
    return SignalStore.open(path).select(subjects).labelled_windows()


def recipe_of(dataset: str) -> str:
    """Return the recipe of a store that was made of one corpus; another name as it is."""
    if not is_store(dataset):
        return dataset
    corpora = set(SignalStore.open(dataset, verbose=0).recordings["corpus"])
    name = corpora.pop()
    return name if not corpora and name in RECIPES else dataset
