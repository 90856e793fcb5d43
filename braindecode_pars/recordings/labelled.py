"""The recordings of a corpus with their labels, each read and cut when its turn comes.

Which labels are one class, and the target of each class, holds for the whole corpus.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol

from braindecode.datasets import EEGWindowsDataset

from braindecode_pars._common.checks import warn_user
from braindecode_pars.recordings.continuous import ContinuousCorpus, divided
from braindecode_pars.recordings.loading import Recording, choose_subjects

#: Split of recordings whose labels are not published, such as the test set of YSYW's challenge.
_UNLABELED = "unlabeled"


class _Recipe(Protocol):
    """A module as in :mod:`braindecode_pars.datasets`."""

    __name__: str
    CARD: Mapping[str, Any]
    recordings: Callable[..., list[Recording]]
    cut: Callable[..., EEGWindowsDataset | None]


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
    def of(  # type: ignore[override]
        cls, recipe: _Recipe, path: str | Path, subjects: Iterable | None = None, **settings: Any
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
        name = recipe.__name__.rpartition(".")[-1]
        if not hasattr(recipe, "cut"):
            raise ValueError(
                f"{recipe.CARD['name']} has no labels: its recipe has no function cut. Store it "
                "without labels, for pretraining."
            )
        finding, cutting = divided(recipe, recipe.cut, settings)
        found = choose_subjects(recipe.recordings(path, **finding), subjects, path)
        labelled = [r for r in found if r.description.get("split") != _UNLABELED]
        if not labelled:
            raise ValueError(
                f"The labels of all {len(found)} recordings in {path} are unpublished."
            )
        classes = _class_names(recipe, cutting)
        return cls(
            name,
            Path(path).expanduser(),
            tuple(labelled),
            partial(recipe.cut, **cutting),
            dict(
                corpus=recipe.CARD["name"],
                version=recipe.CARD["version"],
                classes=list(classes),
                **settings,
            ),
            n_published=recipe.CARD.get("subjects"),
            classes=classes,
        )


def _class_names(recipe: _Recipe, cutting: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the targets, which may depend on settings of the recipe."""
    names = getattr(recipe, "class_names", None)
    if names is None:
        return tuple(recipe.CARD.get("classes", ()))
    known = inspect.signature(names).parameters
    return tuple(names(**{name: value for name, value in cutting.items() if name in known}))


def check_ordered(name: str, labels: Any) -> None:
    """Check that labels have an order, which is that of the targets.

    Raises
    ------
    TypeError
        When they are a set, whose order is another one in the next process, or no labels at all.
    """
    if isinstance(labels, (set, frozenset)) or not isinstance(labels, Iterable):
        raise TypeError(
            f"{name} must be a list in the order of the targets, or a dict, got {labels!r}."
        )


def classes_of_labels(
    found: Iterable[str], classes: Sequence[str] | Mapping[str, str] | None
) -> dict[str, str]:
    """Return the class of each label, in the order of the targets.

    Parameters
    ----------
    found : iterable of str
        Labels of all files.
    classes : list of str | mapping of str to str | None
        Labels that are used, in the order of the targets; or a class for each label that is used.
        None uses all labels, numbers in their order, others in alphabetical order.

    Returns
    -------
    dict of str to str
        Class by label.

    Raises
    ------
    TypeError
        When ``classes`` are neither a list nor a dict.
    ValueError
        When no file has one of the labels.

    Warns
    -----
    UserWarning
        When labels that become classes differ in upper and lower case only.

    Examples
    --------
    >>> from braindecode_pars.recordings.labelled import classes_of_labels
    >>> classes_of_labels(["10", "9"], None)
    {'9': '9', '10': '10'}
    >>> classes_of_labels(["1", "2"], {"1": "rest", "2": "arithmetic"})
    {'1': 'rest', '2': 'arithmetic'}
    """
    labels = _in_order(set(found))
    if classes is None:
        _warn_of_cases(labels)
        return {label: label for label in labels}
    if isinstance(classes, str):
        raise ValueError(f"classes is the text {classes!r}; give a list of labels, [{classes!r}].")
    check_ordered("classes", classes)
    chosen = dict(classes) if isinstance(classes, Mapping) else {str(c): str(c) for c in classes}
    chosen = {str(label): str(name) for label, name in chosen.items()}
    absent = [label for label in chosen if label not in labels]
    if absent or not chosen:
        raise ValueError(
            f"classes has {', '.join(map(repr, absent)) or 'no label'}, but the labels of the "
            f"files are {', '.join(map(repr, labels))}."
        )
    return chosen


def _in_order(labels: set[str]) -> list[str]:
    are_numbers = all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", label) for label in labels)
    # "1" and "01" are one number, but two labels.
    return (
        sorted(labels, key=lambda label: (float(label), label)) if are_numbers else sorted(labels)
    )


def _warn_of_cases(labels: Sequence[str]) -> None:
    cases: dict[str, list[str]] = {}
    for label in labels:
        cases.setdefault(label.casefold(), []).append(label)
    for same in cases.values():
        if len(same) > 1:
            warn_user(
                f"The labels {' and '.join(map(repr, same))} are different classes. If they are "
                "one, pass classes={label: class}."
            )


def targets_of(classes: Mapping[str, str]) -> dict[str, int]:
    """Return the targets of classes, in the order in which labels have them.

    Examples
    --------
    >>> from braindecode_pars.recordings.labelled import targets_of
    >>> targets_of({"3": "N3", "4": "N3", "5": "R"})
    {'N3': 0, 'R': 1}
    """
    return {name: target for target, name in enumerate(dict.fromkeys(classes.values()))}


def given_classes(
    labels: Mapping[str, str] | Mapping[str, int],
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the class of each description of annotations, and the target of each class.

    Parameters
    ----------
    labels : mapping of str to (str | int)
        Class by description, or target by description; a class is then called as its description.

    Returns
    -------
    classes : dict of str to str
        Class by description.
    targets : dict of str to int
        Target by class, without given targets in the order of the classes.

    Raises
    ------
    ValueError
        When the values are neither all texts nor all integers.

    Examples
    --------
    >>> from braindecode_pars.recordings.labelled import given_classes
    >>> given_classes({"Sleep stage 3": "N3", "Sleep stage 4": "N3", "Sleep stage W": "W"})[1]
    {'N3': 0, 'W': 1}
    """
    classes = {str(name): value for name, value in labels.items() if isinstance(value, str)}
    if labels and len(classes) == len(labels):
        return classes, targets_of(classes)
    targets = {
        str(name): int(value)
        for name, value in labels.items()
        if isinstance(value, Integral) and not isinstance(value, bool)
    }
    if labels and len(targets) == len(labels):
        return {name: name for name in targets}, targets
    raise ValueError(
        "labels must give each description a class, as in {'Sleep stage W': 'W'}, or each a "
        f"target, an integer; got {dict(labels)!r}."
    )
