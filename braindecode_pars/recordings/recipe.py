"""A corpus as a value: how its recordings are found, prepared and cut into windows.

:meth:`Recipe.load` returns all windows; :meth:`Recipe.continuous` and :meth:`Recipe.labeled` hand
recordings to a store, which reads each as a whole when its turn comes. A store for pretraining is
without held-out splits, and without people that another corpus of the same store leaves out.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import mne
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars._common.checks import format_list, warn_user
from braindecode_pars._common.subjects import SubjectKeys
from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.recordings.loading import Recording, read_corpus

log = logging.getLogger(__name__)

#: Splits of a corpus that are not trained on.
HELD_OUT = ("valid", "test")
#: Split of recordings whose labels are not published, such as the test set of YSYW's challenge.
_UNLABELED = "unlabeled"


@dataclass(frozen=True)
class Recipe:
    """How a corpus is found, prepared and cut; ``datasets.RECIPES`` has one for each corpus.

    Arguments of the functions with a default are the settings of the recipe.

    Attributes
    ----------
    name : str
        Name of the recipe, such as "tueg".
    card : mapping
        Description of the corpus: ``name``, ``version``, number of ``subjects`` and ``classes``.
    recordings : callable
        Function of the folder, and of the subjects to find (None for all), that lists the
        recordings without opening them.
    prepare : callable
        Function of a Recording that returns the prepared Raw.
    cut : callable | None
        Function of a Recording that returns its labeled windows, or None if it has none. It takes
        the settings of ``prepare``, too. None for a corpus without labels. For parallel reading
        and for stores, ``prepare`` and ``cut`` must be functions of a module.
    check : callable | None
        Function that checks settings of ``prepare`` and ``cut`` before a file is opened.
    class_names : callable | None
        Function of settings of ``cut`` that returns the names of the targets; None for those of the
        card.
    expected : callable | None
        Function of the recordings that returns the classes that must have a window, as in
        :func:`~braindecode_pars.recordings.loading.read_corpus`.
    leave_out : callable | None
        Function of recordings and of ``exclude`` that separates the recordings of people of other
        corpora; for a corpus that contains them.
    overlap : str
        Warning when such a corpus is read and no subject is excluded.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.datasets import RECIPES
    >>> recipe = RECIPES["physionet_mi"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("S001R04", "S002R04", "S100R04"):
    ...         Path(folder, f"{name}.edf").touch()
    ...     corpus = recipe.continuous(folder, exclude=[[2, 3]], sfreq=128)
    ...     labeled = recipe.labeled(folder, tmin=1)
    >>> [recording.subject for recording in corpus.recordings], corpus.absent
    ([1], ('3',))
    >>> [recording.description["split"] for recording in labeled.recordings]
    ['train', 'train', 'test']
    """

    name: str
    card: Mapping[str, Any]
    recordings: Callable[..., list[Recording]]
    prepare: Callable[..., mne.io.BaseRaw]
    cut: Callable[..., EEGWindowsDataset | None] | None = None
    _: KW_ONLY
    check: Callable[..., None] | None = None
    class_names: Callable[..., Sequence[str]] | None = None
    expected: Callable[[Sequence[Recording]], Collection[str]] | None = None
    leave_out: Callable[..., tuple[list[Recording], list[Recording]]] | None = None
    overlap: str = ""

    def load(
        self,
        path: str | Path,
        subjects: Iterable | None = None,
        *,
        exclude: Sequence[str | PathLike | Iterable] = (),
        n_jobs: int = 1,
        on_error: str = "raise",
        verbose: int = 1,
        **settings: Any,
    ) -> BaseConcatDataset:
        """Return the windows of a corpus, labeled if it has labels.

        Parameters
        ----------
        path : path
            Folder of the corpus.
        subjects : iterable | None
            Subjects to read. None reads every subject in the folder that has labels.
        exclude : sequence
            Lists of subjects to leave out, in any spelling; for TUEG also folders, as in
            :func:`datasets.tueg.leave_out <braindecode_pars.datasets.tueg.leave_out>`. A subject in
            both ``subjects`` and ``exclude`` is excluded.
        n_jobs, on_error, verbose
            As in :func:`~braindecode_pars.recordings.loading.read_corpus`.
        **settings
            Settings of the recipe: arguments of ``recordings``, ``prepare`` and ``cut`` of its
            module.

        Returns
        -------
        BaseConcatDataset of EEGWindowsDataset
            Signals in volts. Targets are as the module says, with the descriptions of
            ``recordings``; -1, which means unlabeled, for a corpus without labels.

        Raises
        ------
        FileNotFoundError
            When the folder contains no recording of the corpus, or none of a requested subject.
        TypeError
            When a setting is not one of the recipe, or ``exclude`` is a path instead of a list.
        ValueError
            When a recording is damaged or lacks a channel or labels; the message names the file.
            When a setting is invalid, the labels of a requested subject are not published, every
            subject is excluded, or ``exclude`` has a folder for a corpus that shares no subjects
            with others.

        Warns
        -----
        UserWarning
            When the corpus has subjects of others, and none is excluded. When subjects in
            ``exclude`` have no recording.

        Examples
        --------
        >>> from braindecode_pars import datasets
        >>> windows = datasets.eegmat.load("eegmat", ["Subject00"], sfreq=128)  # doctest: +SKIP
        """
        finding, cutting = self._divided(self.cut or self.prepare, settings)
        recordings = self.recordings(path, subjects, **finding)
        # Before any file is opened
        included, excluded, absent = self._excluding(recordings, exclude)
        if absent:
            warn_user(
                f"{len(absent)} subjects in exclude have no recording: {format_list([*absent])}. Check "
                "their spelling, or they are trained on."
            )
        if self.overlap and not exclude:
            warn_user(self.overlap)
        elif exclude and verbose:
            counts = count_subjects(excluded), count_subjects(recordings), count_subjects(included)
            log.info("Excluded from %s: %s of %s. Remaining: %s.", self.card["name"], *counts)
        if not included:
            raise ValueError(
                f"exclude removes all of {count_subjects(recordings)}; none is left to read."
            )
        if self.cut is not None:
            included = self._with_labels(included, are_requested=subjects is not None)
        read = self.cut or partial(_unlabeled_windows, self.prepare)
        return read_corpus(
            included,
            partial(read, **cutting),
            self.card["name"],
            self._classes(cutting),
            None if self.expected is None else self.expected(included),
            n_jobs=n_jobs,
            on_error=on_error,
            verbose=verbose,
        )

    def continuous(
        self,
        path: str | Path,
        *,
        exclude: Sequence[str | PathLike | Iterable] = (),
        **settings: Any,
    ) -> ContinuousCorpus:
        """Find the recordings of a corpus to pretrain on. No file is opened.

        Subjects in a validation or test split of the corpus are left out, since a store of them is
        for pretraining.

        Parameters
        ----------
        path : path
            Folder of the corpus.
        exclude : sequence
            Lists of subjects to leave out, in any spelling. People without a recording are
            tolerated; they are in :attr:`ContinuousCorpus.absent`. For TUEG also folders of TUAB
            and TUSZ, as in
            :func:`datasets.tueg.leave_out <braindecode_pars.datasets.tueg.leave_out>`.
        **settings
            Arguments of the functions ``recordings`` and ``prepare`` of the recipe.

        Returns
        -------
        ContinuousCorpus
            The recordings, for :meth:`SignalStore.create
            <braindecode_pars.signal_store.SignalStore.create>`.

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
        finding, preparing = self._divided(self.prepare, settings)
        recordings = self.recordings(path, **finding)
        included, excluded, absent = self._excluding(recordings, exclude)
        held_out, included, excluded = (
            [r for r in part if (r.description.get("split") in HELD_OUT) == is_held_out]
            for part, is_held_out in ((recordings, True), (included, False), (excluded, False))
        )
        if self.overlap and not exclude:
            warn_user(self.overlap)
        if not included:
            raise ValueError(
                f"{path} has recordings of {count_subjects(recordings)} of {self.card['name']}, "
                "but all of them are excluded or in its validation and test sets."
            )
        return ContinuousCorpus(
            self.name,
            Path(path).expanduser(),
            tuple(included),
            partial(self.prepare, **preparing),
            dict(corpus=self.card["name"], version=self.card["version"], **settings),
            held_out=tuple(held_out),
            excluded=tuple(excluded),
            absent=absent,
            n_published=self.card.get("subjects"),
        )

    def labeled(
        self, path: str | Path, subjects: Iterable | None = None, **settings: Any
    ) -> ContinuousCorpus:
        """Find the labeled recordings of a corpus, of all splits. No file is opened.

        A store of them is for fine-tuning; :func:`runs.pretrain <braindecode_pars.runs.pretrain>`
        leaves out its validation and test subjects.

        Parameters
        ----------
        path : path
            Folder of the corpus.
        subjects : iterable | None
            Subjects to keep; None keeps all.
        **settings
            Arguments of the functions ``recordings``, ``prepare`` and ``cut`` of the recipe.

        Returns
        -------
        ContinuousCorpus
            The recordings, for :meth:`SignalStore.create
            <braindecode_pars.signal_store.SignalStore.create>`.

        Raises
        ------
        FileNotFoundError
            When the folder contains no recording of the corpus, or none of a subject.
        TypeError
            When a setting is not one of the recipe.
        ValueError
            When the corpus has no labels, or those of a requested subject are not published.
        """
        if self.cut is None:
            raise ValueError(
                f"{self.card['name']} has no labels: its recipe has no function cut. Store it "
                "without labels, for pretraining."
            )
        finding, cutting = self._divided(self.cut, settings)
        recordings = self.recordings(path, subjects, **finding)
        classes = list(self._classes(cutting))
        card = dict(corpus=self.card["name"], version=self.card["version"])
        return ContinuousCorpus(
            self.name,
            Path(path).expanduser(),
            tuple(self._with_labels(recordings, are_requested=subjects is not None)),
            partial(self.cut, **cutting),
            dict(**card, classes=classes, **settings),
            n_published=self.card.get("subjects"),
            has_labels=True,
        )

    def _excluding(
        self, recordings: list[Recording], exclude: Sequence[str | PathLike | Iterable]
    ) -> tuple[list[Recording], list[Recording], tuple[str, ...]]:
        """Return kept and excluded recordings, and the people in lists who have none."""
        folders, lists = folders_and_lists(exclude)
        if folders and self.leave_out is None:
            raise ValueError(
                f"exclude has the folder {folders[0]}, but {self.card['name']} shares no "
                "subjects with other corpora; pass a list of its subjects."
            )
        listed_subjects = list(dict.fromkeys(subject for subjects in lists for subject in subjects))
        present = SubjectKeys(recording.corpus_subject for recording in recordings)
        absent = tuple(str(name) for name in listed_subjects if name not in present)
        if self.leave_out is not None:
            return *self.leave_out(recordings, exclude), absent
        keys = SubjectKeys(listed_subjects)
        included, excluded = (
            [r for r in recordings if (r.corpus_subject in keys) == is_named]
            for is_named in (False, True)
        )
        return included, excluded, absent

    def _divided(
        self, read: Callable[..., Any], settings: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Divide settings into those of ``recordings`` and of a reading function; check them."""
        finding = _keywords(self.recordings)
        reading = _keywords(self.prepare) | _keywords(read)
        unknown = [name for name in settings if name not in finding | reading]
        if unknown:
            accepted = ", ".join(sorted(finding | reading)) or "none"
            raise TypeError(
                f"{self.card['name']} has no setting {unknown[0]}; its settings are {accepted}."
            )
        reading_kwargs = {name: value for name, value in settings.items() if name in reading}
        if self.check is not None:
            self.check(**reading_kwargs)
        return {name: value for name, value in settings.items() if name in finding}, reading_kwargs

    def _classes(self, cutting: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the targets, which may depend on settings."""
        if self.class_names is None:
            return tuple(self.card.get("classes", ()))
        known = _keywords(self.class_names)
        return tuple(self.class_names(**{n: v for n, v in cutting.items() if n in known}))

    def _with_labels(self, recordings: list[Recording], *, are_requested: bool) -> list[Recording]:
        """Leave out the subjects whose labels are not published; a requested one is an error."""
        labeled = [r for r in recordings if r.description.get("split") != _UNLABELED]
        if not labeled or (are_requested and len(labeled) < len(recordings)):
            unlabeled = [str(r.subject) for r in recordings if r not in labeled]
            raise ValueError(
                f"No labels are published for {format_list(unlabeled)}. Request other subjects, or "
                f"store these for pretraining: braindecode-pars store --recipe {self.name}=FOLDER "
                "STORE."
            )
        return labeled


def _unlabeled_windows(
    prepare: Callable[..., mne.io.BaseRaw], recording: Recording, **settings: Any
) -> Any:
    return fixed_windows(prepare(recording, **settings))


def _keywords(function: Callable[..., Any]) -> set[str]:
    """Return the names of the settings of a function of a recipe: arguments with a default."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.default is not p.empty} - {"subjects"}


@dataclass(frozen=True)
class ContinuousCorpus:
    """Whole recordings of a corpus, for :meth:`SignalStore.create`. No file is opened yet.

    Made by :meth:`Recipe.continuous`, or with labels by :meth:`Recipe.labeled`.

    Attributes
    ----------
    name : str
        Name of the recipe, such as "tueg".
    folder : Path
        Folder of the corpus.
    recordings : tuple of Recording
        Recordings to store.
    read : callable
        Function that returns the prepared Raw of a Recording; with labels its windows, an
        EEGWindowsDataset, or None if it has none.
    settings : mapping
        Name, version and settings of the preparation, as values that JSON supports; with labels
        also ``classes``, the names of the targets 0, 1, ...
    held_out, excluded : tuple of Recording
        Recordings of validation and test subjects, and of the other excluded subjects.
    absent : tuple of str
        People in lists in ``exclude`` who have no recording in the folder.
    n_published : int | None
        Number of subjects of the complete corpus.
    has_labels : bool
        Whether the recordings are stored with their labels.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> recipe = datasets.RECIPES["ysyw"]
    >>> corpus = recipe.continuous("challenge-2018/1.0.0", split_seed=1)  # doctest: +SKIP
    """

    name: str
    folder: Path
    recordings: tuple[Recording, ...]
    read: Callable[[Recording], Any]
    settings: Mapping[str, Any]
    held_out: tuple[Recording, ...] = ()
    excluded: tuple[Recording, ...] = ()
    absent: tuple[str, ...] = ()
    n_published: int | None = None
    has_labels: bool = False

    @property
    def excluded_subjects(self) -> list:
        """Validation, test and excluded subjects, once for each of their recordings."""
        return [recording.corpus_subject for recording in (*self.held_out, *self.excluded)]

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
    exclusions = [corpus.excluded_subjects for corpus in corpora]
    remaining_corpora = []
    for i, corpus in enumerate(corpora):
        keys = SubjectKeys(p for other in (*exclusions[:i], *exclusions[i + 1 :]) for p in other)
        dropped = tuple(r for r in corpus.recordings if r.corpus_subject in keys)
        included = tuple(r for r in corpus.recordings if r.corpus_subject not in keys)
        if dropped:
            message = "%s: left out %d recordings of people that the other corpora leave out."
            log.warning(message, corpus.name, len(dropped))
            corpus = replace(corpus, recordings=included, excluded=(*corpus.excluded, *dropped))
        remaining_corpora.append(corpus)
    return remaining_corpora
