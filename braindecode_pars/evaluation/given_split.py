"""Fixed test subjects, and folds that train on some or all of the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from skorch.helper import SliceDataset
from torch.utils.data import ConcatDataset, Dataset, Subset

from braindecode_pars.evaluation.arguments import check_subjects, in_order
from braindecode_pars.evaluation.corpus import Corpus
from braindecode_pars.evaluation.folds import POOLED, Fold

__all__ = ["GivenSplit", "draw_subjects", "given_split_folds"]


@dataclass(frozen=True)
class GivenSplit:
    """Who is trained on and who is tested, once and for all.

    Attributes
    ----------
    train : list
        Subjects with labelled windows who may be trained on; an estimator holds its own
        validation subjects out of them.
    unlabeled : list
        Other subjects, without any label, for the estimators that learn from such windows.
    test : list
    """

    train: list
    unlabeled: list
    test: list

    @classmethod
    def of(
        cls,
        windows_ds: Dataset,
        corpus: Corpus,
        test_subjects: Iterable | None = None,
        train_subjects: Iterable | None = None,
    ) -> GivenSplit:
        """The split that is asked for, or that the recordings' descriptions name.

        Recordings whose description ``split`` is ``"test"`` are never trained on, also where
        ``test_subjects`` are others.

        Raises
        ------
        ValueError
            When there is no split, or a subject is on both sides of it.
        """
        there = corpus.subjects
        reserved = _reserved(windows_ds, corpus)
        if test_subjects is None and not reserved:
            where = f" of {corpus.name}" if corpus.name else ""
            raise ValueError(
                f"Nobody{where} is set apart for testing: no recording's description has 'split' "
                "'test'; name test_subjects, or use leave_one_subject_out."
            )
        test = (
            reserved
            if test_subjects is None
            else check_subjects(test_subjects, there, "test_subjects")
        )
        held_out = {*reserved, *test}
        if train_subjects is not None:
            chosen = check_subjects(train_subjects, there, "train_subjects")
            both = [subject for subject in chosen if subject in held_out]
            if both:
                raise ValueError(
                    f"Subject{'s' if len(both) > 1 else ''} {', '.join(map(str, both))} would be "
                    "trained on and tested; take them out of train_subjects."
                )
        labeled = set(corpus.labeled_subjects)
        rest = [subject for subject in there if subject not in held_out]
        train = [s for s in rest if s in labeled and (train_subjects is None or s in chosen)]
        if not train:
            raise ValueError(
                "No labelled subject is left to train on beside the test subjects "
                f"{', '.join(map(str, test))}."
            )
        return cls(train, [subject for subject in rest if subject not in labeled], test)


def draw_subjects(candidates: Sequence, n: int, seed: int) -> list:
    """The first ``n`` of a random order of the candidates.

    More subjects contain the fewer ones of the same seed.

    Raises
    ------
    ValueError
        When ``n`` is not between 1 and the number of candidates.

    Examples
    --------
    >>> from braindecode_pars.evaluation.given_split import draw_subjects
    >>> set(draw_subjects("abcdef", 2, seed=0)) < set(draw_subjects("abcdef", 4, seed=0))
    True
    """
    if not 1 <= n <= len(candidates):
        raise ValueError(
            f"{n} training subjects were asked for, there are {len(candidates)}; ask for 1 to "
            f"{len(candidates)}."
        )
    order = np.random.RandomState(seed).permutation(len(candidates))
    return [candidates[i] for i in order[:n]]


def given_split_folds(
    protocol: str,
    estimators: Mapping[str, BaseEstimator],
    corpus: Corpus,
    split: GivenSplit,
    seeds: Sequence[int],
    n_train_subjects: Sequence[int] | None = None,
    varied: Mapping[str, dict[str, Any]] | None = None,
) -> list[Fold]:
    """A fold for each number of training subjects (None: all), seed and method.

    Parameters
    ----------
    varied : dict of str to dict | None
        Further columns, by method.
    """
    test = corpus.test_windows(split.test)
    folds = []
    for n in n_train_subjects or [len(split.train)]:
        for seed in seeds:
            drawn = draw_subjects(split.train, n, seed)
            train = corpus.windows_of([*drawn, *split.unlabeled])
            for method, estimator in estimators.items():
                folds.append(
                    Fold(
                        protocol=protocol,
                        dataset=corpus.name,
                        method=method,
                        subject=POOLED,
                        n_train_subjects=n,
                        seed=int(seed),
                        estimator=estimator,
                        train=train,
                        test=test,
                        test_subjects=split.test,
                        varied=(varied or {}).get(method, {}),
                    )
                )
    return folds


def _reserved(windows_ds: Dataset, corpus: Corpus) -> list:
    """Subjects whose recordings are said to be for testing."""
    splits = _entries(windows_ds, "split")
    pairs = set(zip(corpus.groups.tolist(), splits, strict=True))
    test = in_order(subject for subject, split in pairs if split == "test")
    both = [s for s in test if any(subject == s and split != "test" for subject, split in pairs)]
    if both:
        raise ValueError(
            f"Recordings of subject{'s' if len(both) > 1 else ''} {', '.join(map(str, both))} are "
            "in split 'test' and in another one; a person belongs on one side."
        )
    return test


def _entries(dataset: Any, name: str) -> list:
    """An entry of the recordings' descriptions for every window; None where there is none."""
    if isinstance(dataset, SliceDataset):
        entries = _entries(dataset.dataset, name)
        return [entries[i] for i in dataset.indices_]
    if isinstance(dataset, Subset):
        entries = _entries(dataset.dataset, name)
        return [entries[i] for i in dataset.indices]
    if isinstance(dataset, ConcatDataset):
        return [entry for part in dataset.datasets for entry in _entries(part, name)]
    description = getattr(dataset, "description", None)
    entry = None if description is None else description.get(name)
    return [entry] * len(dataset)
