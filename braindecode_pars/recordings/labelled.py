"""The recordings of a corpus with their labels: for a store, or all of them as windows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict, TypeVar

from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars.recordings.continuous import ContinuousCorpus, divided_settings
from braindecode_pars.recordings.loading import Recording, choose_subjects, read_corpus

#: Split of recordings whose labels are not published, such as the test set of YSYW's challenge.
_UNLABELED = "unlabeled"


@dataclass(frozen=True)
class LabelledCorpus(ContinuousCorpus):
    """Recordings of a corpus with their labels, for :meth:`SignalStore.create`. No file is open.

    Created by :meth:`of`. The subjects of all splits are kept: training, validation and test. A
    store of them is for fine-tuning; :func:`runs.pretrain <braindecode_pars.runs.pretrain>` leaves
    out its validation and test subjects.

    Attributes
    ----------
    name, folder, recordings, settings, n_published
        As in :class:`~braindecode_pars.recordings.continuous.ContinuousCorpus`.
    read : callable
        Function that returns the labelled windows of a Recording, an EEGWindowsDataset; None if it
        has none.
    held_out, excluded, absent
        Empty.
    classes : tuple of str
        Names of the targets 0, 1, ...; empty if unknown.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.recordings.labelled import LabelledCorpus
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("S001R04", "S080R04", "S100R04"):
    ...         Path(folder, f"{name}.edf").touch()
    ...     corpus = LabelledCorpus.of(datasets.physionet_mi, folder, tmin=1)
    >>> [recording.description["split"] for recording in corpus.recordings]
    ['train', 'valid', 'test']
    """

    classes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, recipe: ModuleType, path: str | Path, subjects: Iterable | None = None, **settings: Any
    ) -> LabelledCorpus:
        """Find the labelled recordings of a corpus.

        Parameters
        ----------
        recipe : module
            Module of :mod:`braindecode_pars.datasets`, such as ``datasets.tuab``, or your own with
            a ``CARD``, a function ``recordings`` of a folder, and a function ``cut`` that returns
            the labelled windows of a Recording.
        path : path
            Folder of the corpus.
        subjects : iterable | None
            Subjects to keep; None keeps all.
        **settings
            Arguments of the functions ``recordings`` and ``cut`` of the recipe.

        Returns
        -------
        LabelledCorpus
            The recordings, which are not opened yet.

        Raises
        ------
        FileNotFoundError
            When the folder contains no recording of the corpus, or none of a subject.
        TypeError
            When a setting is not one of the recipe.
        ValueError
            When the corpus has no labels, or all recordings are without.
        """
        if not hasattr(recipe, "cut"):
            raise ValueError(
                f"{recipe.CARD['name']} has no labels: its recipe has no function cut. Store it "
                "without labels, for pretraining."
            )
        finding, cutting = divided_settings(recipe, recipe.cut, settings)
        found = choose_subjects(recipe.recordings(path, **finding), subjects, path)
        labelled = [r for r in found if r.description.get("split") != _UNLABELED]
        classes = _class_names(recipe, cutting)
        card = dict(corpus=recipe.CARD["name"], version=recipe.CARD["version"])
        return cls(
            recipe.__name__.rpartition(".")[-1],
            Path(path).expanduser(),
            tuple(labelled),
            partial(recipe.cut, **cutting),
            dict(**card, classes=list(classes), **settings),
            n_published=recipe.CARD.get("subjects"),
            classes=classes,
        )


def _class_names(recipe: ModuleType, cutting: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the targets, which may depend on settings of the recipe."""
    names = getattr(recipe, "class_names", None)
    if names is None:
        return tuple(recipe.CARD.get("classes", ()))
    known = inspect.signature(names).parameters
    return tuple(names(**{name: value for name, value in cutting.items() if name in known}))


class Reading(TypedDict, total=False):
    """What every ``load`` passes on to :func:`read_corpus`."""

    n_jobs: int
    on_error: str
    verbose: int


F = TypeVar("F", bound=Callable[..., Any])


def with_keywords_of(*others: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator for a function that passes ``**keywords`` on to other functions.

    Its signature then names them, with their defaults.

    Examples
    --------
    >>> import inspect
    >>> from braindecode_pars.recordings.labelled import with_keywords_of
    >>> def prepare(recording, *, sfreq=200.0): ...
    >>> @with_keywords_of(prepare)
    ... def cut(recording, *, window_seconds=10.0, **preparation): ...
    >>> inspect.signature(cut)
    <Signature (recording, *, window_seconds=10.0, sfreq=200.0)>
    """

    def decorate(function: F) -> F:
        own = inspect.signature(function)
        found = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for other in others:
            parameters = inspect.signature(other).parameters.values()
            found += [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        function.__signature__ = own.replace(parameters=found)  # type: ignore[attr-defined]
        return function

    return decorate


@with_keywords_of(read_corpus)
def read_recipe(
    card: Mapping[str, Any],
    recordings: Iterable[Recording],
    cut: Callable[..., EEGWindowsDataset | None],
    check: Callable[..., None] | None = None,
    classes: Sequence[str] | None = None,
    expected: Collection[str] | None = None,
    **settings: Any,
) -> BaseConcatDataset:
    """Read the recordings of a recipe into one dataset of windows: the second half of ``load``.

    Parameters
    ----------
    card : mapping
        Card of the recipe.
    recordings : iterable of Recording
        Recordings to read.
    cut : callable
        Function of a recording and the settings that returns its windows.
    check : callable | None
        Function that checks the settings before a file is opened.
    classes : sequence of str | None
        Names of the targets; None takes those of the card.
    expected : collection of str | None
        As in :func:`read_corpus`.
    n_jobs, on_error, verbose
        As in :func:`read_corpus`.
    **settings
        Keyword arguments of ``cut``.
    """
    reading = {name: settings.pop(name) for name in Reading.__annotations__ if name in settings}
    call = inspect.signature(cut).bind(None, **settings)
    call.apply_defaults()
    if check is not None:
        check(**call.kwargs)
    return read_corpus(
        recordings,
        partial(cut, **call.kwargs),
        card["name"],
        card["classes"] if classes is None else classes,
        expected,
        **reading,
    )
