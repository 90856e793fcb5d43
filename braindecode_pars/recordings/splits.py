"""Random but reproducible splits of subjects, and splits that a file lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset

from braindecode_pars._subjects import in_corpus, subject_key
from braindecode_pars._warnings import warn_user

__all__ = ["set_splits", "split_subjects"]


def split_subjects(
    subjects: Iterable, shares: Mapping[str, float], seed: int = 0
) -> dict[object, str]:
    """Divide subjects at random into splits.

    The same subjects and seed give the same splits. The order of the subjects and repetitions do
    not matter.

    Parameters
    ----------
    subjects : iterable
        Subjects to divide.
    shares : mapping of str to float
        Share of the subjects in each split, for example ``{"train": 0.8, "valid": 0.2}``.
    seed : int
        Seed of the random division.

    Returns
    -------
    dict
        Split of each subject.

    Raises
    ------
    ValueError
        When a share is negative, or when the shares do not sum to 1.

    Examples
    --------
    >>> from collections import Counter
    >>> from braindecode_pars.recordings.splits import split_subjects
    >>> shares = {"train": 0.6, "valid": 0.2, "test": 0.2}
    >>> splits = split_subjects(range(10), shares, seed=0)
    >>> sorted(Counter(splits.values()).items())
    [('test', 2), ('train', 6), ('valid', 2)]
    """
    if not np.isclose(sum(shares.values()), 1) or min(shares.values()) < 0:
        raise ValueError(f"shares must not be negative and must sum to 1, got {dict(shares)}.")
    # Sorted first, so that only the seed determines the order.
    shuffled = sorted(set(subjects), key=str)
    shuffled = [shuffled[i] for i in np.random.RandomState(seed).permutation(len(shuffled))]
    ends = np.round(np.cumsum(list(shares.values())) * len(shuffled)).astype(int)
    parts = np.split(np.arange(len(shuffled)), ends[:-1])
    return {shuffled[i]: name for name, part in zip(shares, parts, strict=True) for i in part}


def set_splits(
    windows_ds: BaseConcatDataset, splits: Mapping[Any, str] | str | Path
) -> BaseConcatDataset:
    """Set the split of every recording: the entry ``split`` of its description, by subject.

    ``PARSClassifier(validation="split")`` and the protocols use the splits "train", "valid" and
    "test"; ``windows_ds.split("split")`` divides the data by them.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        Windows with ``subject`` in the descriptions. The descriptions are changed in place.
    splits : mapping | path
        Split by subject, or a table of them: a file ``.csv`` or ``.tsv`` with the columns
        ``subject`` (or BIDS' ``participant_id``) and ``split``. Spellings of one name, such as
        "sub-01" and "1", are one subject. A name may have its corpus in front, as in
        "tuab:aaaaaaab".

    Returns
    -------
    BaseConcatDataset
        ``windows_ds`` itself.

    Raises
    ------
    FileNotFoundError
        When the file does not exist.
    ValueError
        When a subject of the data has no split, or two; or when the file lacks a column.

    Warns
    -----
    UserWarning
        When the splits name subjects that are not in the data.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.recordings.splits import set_splits
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.1, n_chans=2)
    >>> windows = set_splits(windows, {1: "train", 2: "valid", 3: "test"})
    >>> sorted(windows.split("split"))
    ['test', 'train', 'valid']
    """
    split_of = _by_key(splits.items() if isinstance(splits, Mapping) else _read(Path(splits)))
    # A name with the corpus decides before the name alone.
    names = [_spellings(part.description) for part in windows_ds.datasets]
    found = [next((name for name in both if name in split_of), None) for both in names]
    without = sorted({both[-1] for both, name in zip(names, found, strict=True) if name is None})
    if without:
        raise ValueError(
            f"The splits do not name {len(without)} subjects of the data: {_listed(without)}; add "
            "them to the splits, or leave them out of the data."
        )
    absent = sorted(split_of.keys() - {name for both in names for name in both})
    if absent:
        warn_user(
            f"The splits name {len(absent)} subjects that are not in the data: {_listed(absent)}. "
            "The others are used."
        )
    windows_ds.set_description({"split": [split_of[name] for name in found]}, overwrite=True)
    return windows_ds


def _spellings(description: Mapping[str, Any]) -> tuple[str, str]:
    """Return the keys of a subject with the corpus in front, and without it."""
    subject = description.get("subject")
    return subject_key(in_corpus(description.get("corpus"), subject)), subject_key(subject)


def _by_key(pairs: Iterable[tuple[Any, str]]) -> dict[str, str]:
    """Return the split of each subject, whatever the spelling of its name."""
    split_of: dict[str, str] = {}
    for subject, split in pairs:
        before = split_of.setdefault(subject_key(subject), split)
        if before != split:
            raise ValueError(
                f"Subject {subject} is in the splits {before!r} and {split!r}; put it in one."
            )
    return split_of


def _read(file: Path) -> list[tuple[str, str]]:
    """Return pairs of subject and split from a table; subjects without a split are left out."""
    table = pd.read_csv(file.expanduser(), sep="\t" if file.suffix == ".tsv" else ",", dtype=str)
    subject = "participant_id" if "participant_id" in table else "subject"
    absent = [name for name in (subject, "split") if name not in table]
    if absent:
        raise ValueError(
            f"{file} has no column {absent[0]!r}; it needs 'subject' and 'split', and has "
            f"{', '.join(map(str, table))}."
        )
    table = table.dropna(subset=["split"])
    return list(zip(table[subject], table["split"], strict=True))


def _listed(names: list[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
