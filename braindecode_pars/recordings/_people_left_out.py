"""People whom one corpus of a store leaves out, and who are in another."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from braindecode_pars._subjects import SubjectKeys
from braindecode_pars.recordings.continuous import ContinuousCorpus

__all__ = ["without_left_out"]

log = logging.getLogger(__name__)


def without_left_out(
    corpora: Sequence[ContinuousCorpus], others: Iterable = ()
) -> list[ContinuousCorpus]:
    """Leave people whom one corpus leaves out also out of the others, and log how many they are.

    A test subject of TUAB is also in TUEG, and would be trained on from there.

    Parameters
    ----------
    corpora : sequence of ContinuousCorpus
        Corpora of one store.
    others : iterable
        People whom corpora that are already in the store leave out.

    Returns
    -------
    list of ContinuousCorpus
        The corpora; the recordings of these people are in ``excluded``.

    Raises
    ------
    ValueError
        When no recording of a corpus is left.
    """
    people = [list(others), *(corpus.people_left_out for corpus in corpora)]
    return [
        _without(corpus, SubjectKeys(p for other in (*people[:i], *people[i + 1 :]) for p in other))
        for i, corpus in enumerate(corpora, 1)
    ]


def _without(corpus: ContinuousCorpus, keys: SubjectKeys) -> ContinuousCorpus:
    """Exclude the people in ``keys`` from a corpus."""
    dropped = tuple(r for r in corpus.recordings if r.person in keys)
    if not dropped:
        return corpus
    kept = tuple(r for r in corpus.recordings if r.person not in keys)
    if not kept:
        raise ValueError(
            f"All {len(dropped)} recordings of {corpus.name} are of people whom the other "
            f"corpora exclude or hold out; none is left to store. Omit {corpus.name}, or "
            "exclude fewer people."
        )
    log.warning(
        "%s: left out %d recordings of people whom the other corpora exclude or hold out.",
        corpus.name,
        len(dropped),
    )
    return replace(corpus, recordings=kept, excluded=(*corpus.excluded, *dropped))
