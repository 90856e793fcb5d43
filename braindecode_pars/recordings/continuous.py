"""The recordings of a corpus to pretrain on, each read as a whole when its turn comes.

Held-out splits stay out, and so do people that another corpus of the same store leaves out.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

import mne

from braindecode_pars._common.checks import warn_user
from braindecode_pars._common.subjects import SubjectKeys
from braindecode_pars.recordings.loading import Recording


@dataclass(frozen=True)
class ContinuousCorpus:
    """Whole recordings of a corpus, for :meth:`SignalStore.create`. No file is opened yet.

    Created by :meth:`of`. Subjects in a validation or test split of the corpus are left out, since
    a store is for pretraining.

    Attributes
    ----------
    name : str
        Name of the recipe, such as "tueg".
    folder : Path
        Folder of the corpus.
    recordings : tuple of Recording
        Recordings to store.
    read : callable
        Function that returns the prepared Raw of a Recording.
    settings : mapping
        Name, version and settings of the preparation, as values that JSON supports.
    held_out, excluded : tuple of Recording
        Recordings of validation and test subjects, and of the other excluded subjects.
    absent : tuple of str
        People in lists in ``exclude`` who have no recording in the folder.
    n_published : int | None
        Number of subjects of the complete corpus.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.recordings.continuous import ContinuousCorpus
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("S001R04", "S002R04", "S100R04"):
    ...         Path(folder, f"{name}.edf").touch()
    ...     corpus = ContinuousCorpus.of(datasets.physionet_mi, folder, exclude=[[2, 3]], sfreq=128)
    >>> [recording.subject for recording in corpus.recordings], corpus.absent
    ([1], ('3',))
    """

    name: str
    folder: Path
    recordings: tuple[Recording, ...]
    read: Callable[[Recording], mne.io.BaseRaw]
    settings: Mapping[str, Any]
    held_out: tuple[Recording, ...] = ()
    excluded: tuple[Recording, ...] = ()
    absent: tuple[str, ...] = ()
    n_published: int | None = None

    @classmethod
    def of(
        cls,
        recipe: ModuleType,
        path: str | Path,
        *,
        exclude: Sequence[str | PathLike | Iterable] = (),
        **settings: Any,
    ) -> ContinuousCorpus:
        """Find the recordings of a corpus to pretrain on.

        Parameters
        ----------
        recipe : module
            Module of :mod:`braindecode_pars.datasets`, such as ``datasets.tueg``, or your own with
            a ``CARD`` (``name``, ``version`` and number of ``subjects``), a function ``recordings``
            of a folder, and a function ``prepare`` that returns the prepared Raw of a Recording.
        path : path
            Folder of the corpus.
        exclude : sequence
            Lists of subjects to leave out, in any spelling. People without a recording are
            tolerated; they are in :attr:`absent`. For TUEG also folders of TUAB and TUSZ, as in
            :func:`datasets.tueg.leave_out <braindecode_pars.datasets.tueg.leave_out>`.
        **settings
            Arguments of the functions ``recordings`` and ``prepare`` of the recipe.

        Returns
        -------
        ContinuousCorpus
            The recordings, which are not opened yet.

        Raises
        ------
        FileNotFoundError
            When the folder contains no recording of the corpus.
        TypeError
            When ``exclude`` is a path instead of a list, or a setting is not one of the recipe.
        ValueError
            When all recordings are left out, or ``exclude`` has a folder for a corpus that shares
            no subjects with others.

        Warns
        -----
        UserWarning
            When the corpus has subjects of others, and none is excluded.
        """
        finding, preparing = divided_settings(recipe, recipe.prepare, settings)
        found = recipe.recordings(path, **finding)
        held_out = [r for r in found if r.description.get("split") in HELD_OUT]
        kept = [r for r in found if r.description.get("split") not in HELD_OUT]
        if not exclude and (overlap := getattr(recipe, "OVERLAP", None)):
            warn_user(overlap)

        # Folders of other corpora, for recipes whose corpus has the subjects of others.
        folders, lists = folders_and_lists(exclude)
        excluded: list[Recording] = []
        if folders and not hasattr(recipe, "leave_out"):
            raise ValueError(
                f"exclude has the folder {folders[0]}, but {recipe.CARD['name']} shares no "
                "subjects with other corpora; pass a list of its subjects."
            )
        if folders:
            kept, excluded = recipe.leave_out(kept, folders)

        # Lists of subjects, of which some may be in other corpora only.
        listed = list(dict.fromkeys(subject for subjects in lists for subject in subjects))
        keys, present = SubjectKeys(listed), SubjectKeys(recording.person for recording in found)
        excluded += [r for r in kept if r.person in keys]
        kept = [r for r in kept if r.person not in keys]
        if not kept:
            raise ValueError(
                f"{path} has recordings of {count_subjects(found)} of {recipe.CARD['name']}, but "
                "all of them are excluded or in its validation and test sets."
            )
        return cls(
            recipe.__name__.rpartition(".")[-1],
            Path(path).expanduser(),
            tuple(kept),
            partial(recipe.prepare, **preparing),
            dict(corpus=recipe.CARD["name"], version=recipe.CARD["version"], **settings),
            held_out=tuple(held_out),
            excluded=tuple(excluded),
            absent=tuple(str(name) for name in listed if name not in present),
            n_published=recipe.CARD.get("subjects"),
        )

    @property
    def people_left_out(self) -> list:
        """Validation, test and excluded subjects, once for each of their recordings."""
        return [recording.person for recording in (*self.held_out, *self.excluded)]

    @property
    def summary(self) -> str:
        """A line that counts who is stored and who is left out, with the reasons."""
        total = "" if self.n_published is None else f" of the {self.n_published:,} published"
        line = f"{self.name}: {count_subjects(self.recordings)}{total}."
        reasons = {"in its validation and test sets": self.held_out, "excluded": self.excluded}
        phrases = [f"{count_subjects(who)} {reason}" for reason, who in reasons.items() if who]
        return f"{line} Left out: {'; '.join(phrases)}." if phrases else line


def folders_and_lists(
    exclude: Sequence[str | PathLike | Iterable],
) -> tuple[list[str | PathLike], list[list]]:
    """Divide what is excluded into folders of other corpora and lists of subjects.

    Raises
    ------
    TypeError
        When ``exclude`` is a path, or has an entry that is neither.
    """
    if isinstance(exclude, str | PathLike):
        raise TypeError(f"exclude is the path {str(exclude)!r}; pass a list of folders and lists.")
    folders = [item for item in exclude if isinstance(item, str | PathLike)]
    return folders, [list(item) for item in exclude if not isinstance(item, str | PathLike)]


def count_subjects(recordings: Sequence[Recording]) -> str:
    """Return numbers for a sentence, such as "1 subject (2 recordings)"."""
    subjects, files = len({recording.subject for recording in recordings}), len(recordings)
    return (
        f"{subjects:,} subject{'' if subjects == 1 else 's'} "
        f"({files:,} recording{'' if files == 1 else 's'})"
    )


#: Splits of a corpus that are not trained on.
HELD_OUT = ("valid", "test")


def divided_settings(
    recipe: ModuleType, read: Callable[..., Any], settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide settings into arguments of a recipe's ``recordings`` and of its reading function.

    Raises
    ------
    TypeError
        When a setting is of neither function.
    """
    finding, reading = (
        set(inspect.signature(function).parameters) - {"path", "subjects", "recording"}
        for function in (recipe.recordings, read)
    )
    unknown = [name for name in settings if name not in finding | reading]
    if unknown:
        accepted = ", ".join(sorted(finding | reading)) or "none"
        raise TypeError(
            f"{recipe.CARD['name']} has no setting {unknown[0]}; its settings are {accepted}."
        )
    return (
        {name: value for name, value in settings.items() if name in finding},
        {name: value for name, value in settings.items() if name in reading},
    )


log = logging.getLogger(__name__)


def without_left_out(corpora: Sequence[ContinuousCorpus]) -> list[ContinuousCorpus]:
    """Leave people that one corpus leaves out also out of the others, and log how many they are.

    A test subject of TUAB is also in TUEG, and would be trained on from there.

    Parameters
    ----------
    corpora : sequence of ContinuousCorpus
        Corpora of one store.

    Returns
    -------
    list of ContinuousCorpus
        The corpora; the recordings of these people are in ``excluded``.

    Raises
    ------
    ValueError
        When no recording of a corpus is left.
    """
    people = [corpus.people_left_out for corpus in corpora]
    found = []
    for i, corpus in enumerate(corpora):
        keys = SubjectKeys(p for other in (*people[:i], *people[i + 1 :]) for p in other)
        dropped = tuple(r for r in corpus.recordings if r.person in keys)
        kept = tuple(r for r in corpus.recordings if r.person not in keys)
        if dropped:
            message = "%s: left out %d recordings of people that the other corpora leave out."
            log.warning(message, corpus.name, len(dropped))
            corpus = replace(corpus, recordings=kept, excluded=(*corpus.excluded, *dropped))
        found.append(corpus)
    return found
