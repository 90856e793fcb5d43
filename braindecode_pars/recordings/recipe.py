"""Recipes of corpora: functions that list and preprocess recordings, and cut them into windows.

:meth:`Recipe.load` returns all windows of a corpus. :meth:`Recipe.continuous` and
:meth:`Recipe.labeled` list the recordings for a store (a folder of preprocessed recordings, see
:class:`~braindecode_pars.signal_store.SignalStore`), which reads one recording at a time. A store
for pretraining contains no validation or test subjects, and no subjects that are excluded from
another corpus in the same store.
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
from braindecode_pars.recordings.loading import Recording, choose_subjects, read_corpus

log = logging.getLogger(__name__)

#: Splits of a corpus whose recordings are not used for pretraining.
HELD_OUT = ("valid", "test")
#: Split of recordings whose labels are not published, such as the test set of YSYW.
_UNLABELED = "unlabeled"


@dataclass(frozen=True)
class Recipe:
    """Functions that read a corpus: list and preprocess its recordings, and cut them into windows.

    ``datasets.RECIPES`` contains the recipe of each supported corpus. The settings of a recipe are
    the arguments of ``recordings``, ``prepare`` and ``cut`` that have default values. They are
    passed to :meth:`load`, :meth:`continuous` and :meth:`labeled`.

    Attributes
    ----------
    name : str
        Name of the recipe, such as "tueg".
    card : mapping
        Description of the corpus: ``name``, ``version``, number of ``subjects``, and ``classes``.
    recordings : callable
        Function that receives the folder of the corpus, and returns a list of Recordings. It opens
        no files.
    prepare : callable
        Function that receives a Recording, and returns the preprocessed Raw.
    cut : callable | None
        Function that receives a Recording, and returns its labeled windows, or None if it has no
        windows. The function also accepts the settings of ``prepare``. For a corpus without labels,
        ``cut`` itself is None. For parallel reading and for stores, ``prepare`` and ``cut`` must be
        module-level functions.
    check : callable | None
        Function that receives settings of ``prepare`` and ``cut``, and validates them before a file
        is opened.
    class_names : callable | None
        Function that receives settings of ``cut``, and returns the class names of the targets. If
        None, the class names are ``card["classes"]``.
    expected : callable | None
        Function that receives the list of Recordings, and returns the classes that must have at
        least one window, as in :func:`~braindecode_pars.recordings.loading.read_corpus`.
    leave_out : callable | None
        For a corpus that contains subjects of other corpora: function that receives the Recordings
        and ``exclude``, and returns the included and the excluded Recordings.
    overlap : str
        For a corpus that contains subjects of other corpora: warning that is issued if ``exclude``
        is empty.

    Examples
    --------
    The list for pretraining excludes subject 2, as requested, and subject 100, because it is in the
    test split. Subject 3 has no recording. The list of labeled recordings contains all subjects:

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
        """Load the windows of a corpus, with labels if the corpus has labels.

        Parameters
        ----------
        path : path
            Folder of the corpus.
        subjects : iterable | None
            Subjects to read. If None, read all subjects in the folder, except subjects whose labels
            are not published.
        exclude : sequence
            Lists of subjects to exclude, such as ``[["S001", "S002"]]``. Different spellings of a
            subject are equivalent, such as "S001" and 1. For TUEG, the folders of TUAB and TUSZ are
            also accepted, see :func:`datasets.tueg.leave_out
            <braindecode_pars.datasets.tueg.leave_out>`. A subject in both ``subjects`` and
            ``exclude`` is excluded.
        n_jobs, on_error, verbose
            As in :func:`~braindecode_pars.recordings.loading.read_corpus`.
        **settings
            Settings of the recipe: arguments of the functions ``recordings``, ``prepare`` and
            ``cut`` in the module of the corpus.

        Returns
        -------
        BaseConcatDataset of EEGWindowsDataset
            Windows, with signals in volts, and with the descriptions of their recordings. The
            module of the corpus documents the targets. For a corpus without labels, all targets are
            -1, which means unlabeled.

        Raises
        ------
        FileNotFoundError
            If the folder contains no recording of the corpus, or no recording of a requested
            subject.
        TypeError
            If a setting is unknown, or if ``exclude`` is a path instead of a list.
        ValueError
            If ``on_error`` is "raise", and a recording is damaged, or a channel or labels are
            missing; the message contains the file name. If a setting is invalid. If the labels of a
            requested subject are not published. If all subjects are excluded. If ``exclude``
            contains a folder, but the corpus shares no subjects with other corpora.

        Warns
        -----
        UserWarning
            If the corpus contains subjects of other corpora, but ``exclude`` is empty. If subjects
            in ``exclude`` have no recording.

        Examples
        --------
        >>> from braindecode_pars import datasets
        >>> windows = datasets.eegmat.load("eegmat", ["Subject00"], sfreq=128)  # doctest: +SKIP
        """
        finding, cutting = self._divided(self.cut or self.prepare, settings)
        recordings = choose_subjects(self.recordings(path, **finding), subjects, path)
        # Before any file is opened
        included, excluded, absent = self._excluding(recordings, exclude)
        if absent:
            warn_user(
                f"Some subjects in exclude ({len(absent)}) have no recording: "
                f"{format_list([*absent])}. Check their names: a subject whose name is wrong in "
                "exclude is not excluded."
            )
        if exclude and verbose:
            counts = count_subjects(excluded), count_subjects(recordings), count_subjects(included)
            log.info("Excluded from %s: %s. Total: %s. Remaining: %s.", self.card["name"], *counts)
        if not included:
            raise ValueError(
                f"No recordings remain, because exclude contains all subjects: "
                f"{count_subjects(recordings)}. Remove the subjects that you want to read from "
                "exclude."
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
        """List the recordings of a corpus for pretraining, without opening the files.

        Subjects in the validation or test split of the corpus are excluded.

        Parameters
        ----------
        path : path
            Folder of the corpus.
        exclude : sequence
            Lists of subjects to exclude, as in :meth:`load`. Subjects without a recording do not
            raise an error; they are listed in :attr:`ContinuousCorpus.absent`. For TUEG, the
            folders of TUAB and TUSZ are also accepted, see :func:`datasets.tueg.leave_out
            <braindecode_pars.datasets.tueg.leave_out>`.
        **settings
            Settings of the recipe: arguments of the functions ``recordings`` and ``prepare``.

        Returns
        -------
        ContinuousCorpus
            The recordings, for :meth:`SignalStore.create
            <braindecode_pars.signal_store.SignalStore.create>`.

        Raises
        ------
        FileNotFoundError
            If the folder contains no recording of the corpus.
        TypeError
            If ``exclude`` is a path instead of a list, or if a setting is unknown.
        ValueError
            If all recordings are excluded. If ``exclude`` contains a folder, but the corpus shares
            no subjects with other corpora.

        Warns
        -----
        UserWarning
            If the corpus contains subjects of other corpora, but ``exclude`` is empty.
        """
        finding, preparing = self._divided(self.prepare, settings)
        recordings = self.recordings(path, **finding)
        included, excluded, absent = self._excluding(recordings, exclude)
        held_out, included, excluded = (
            [r for r in part if (r.description.get("split") in HELD_OUT) == is_held_out]
            for part, is_held_out in ((recordings, True), (included, False), (excluded, False))
        )
        if not included:
            raise ValueError(
                f"No recordings remain for pretraining: {path} contains "
                f"{count_subjects(recordings)} of {self.card['name']}, but all subjects are in "
                "exclude, or in the validation or test set. Exclude fewer subjects, or add "
                "recordings of training subjects to the folder."
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
        """List the labeled recordings of a corpus in all splits, without opening the files.

        A store of labeled recordings is intended for fine-tuning. If the store is also used for
        pretraining, :func:`runs.pretrain <braindecode_pars.runs.pretrain>` excludes the validation
        and test subjects.

        Parameters
        ----------
        path : path
            Folder of the corpus.
        subjects : iterable | None
            Subjects to include. If None, include all subjects, except subjects whose labels are not
            published.
        **settings
            Settings of the recipe: arguments of the functions ``recordings``, ``prepare`` and
            ``cut``.

        Returns
        -------
        ContinuousCorpus
            The recordings, for :meth:`SignalStore.create
            <braindecode_pars.signal_store.SignalStore.create>`.

        Raises
        ------
        FileNotFoundError
            If the folder contains no recording of the corpus, or no recording of a requested
            subject.
        TypeError
            If a setting is unknown.
        ValueError
            If the corpus has no labels, or the labels of a requested subject are not published.
        """
        if self.cut is None:
            raise ValueError(
                f"{self.card['name']} has no labels. To pretrain on this corpus, store it without "
                f"labels: braindecode-pars store --recipe {self.name}=FOLDER STORE."
            )
        finding, cutting = self._divided(self.cut, settings)
        recordings = choose_subjects(self.recordings(path, **finding), subjects, path)
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
        """Return included and excluded recordings, and subjects in exclude without recordings."""
        folders, lists = folders_and_lists(exclude)
        if folders and self.leave_out is None:
            raise ValueError(
                f"exclude contains the folder {folders[0]}, but {self.card['name']} shares no "
                "subjects with other corpora. Pass lists of subjects instead."
            )
        if self.overlap and not exclude:
            warn_user(self.overlap)
        listed_subjects = list(dict.fromkeys(subject for subjects in lists for subject in subjects))
        present = SubjectKeys(recording.corpus_subject for recording in recordings)
        absent = tuple(str(name) for name in listed_subjects if name not in present)
        if self.leave_out is not None:
            return *self.leave_out(recordings, exclude), absent
        return *separate_subjects(recordings, listed_subjects), absent

    def _divided(
        self, read: Callable[..., Any], settings: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Validate settings, and return the settings of ``recordings`` and of ``read``."""
        finding = _keywords(self.recordings)
        reading = _keywords(self.prepare) | _keywords(read)
        unknown = [name for name in settings if name not in finding | reading]
        if unknown:
            accepted = ", ".join(sorted(finding | reading)) or "none"
            raise TypeError(
                f"The recipe of {self.card['name']} has no setting {unknown[0]}. Available "
                f"settings: {accepted}."
            )
        reading_kwargs = {name: value for name, value in settings.items() if name in reading}
        if self.check is not None:
            self.check(**reading_kwargs)
        return {name: value for name, value in settings.items() if name in finding}, reading_kwargs

    def _classes(self, cutting: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the class names of the targets, which may depend on settings."""
        if self.class_names is None:
            return tuple(self.card.get("classes", ()))
        known = _keywords(self.class_names)
        return tuple(self.class_names(**{n: v for n, v in cutting.items() if n in known}))

    def _with_labels(self, recordings: list[Recording], *, are_requested: bool) -> list[Recording]:
        """Exclude subjects whose labels are not published. If requested, they raise an error."""
        unlabeled = [r for r in recordings if r.description.get("split") == _UNLABELED]
        if unlabeled and (are_requested or len(unlabeled) == len(recordings)):
            names = format_list([str(recording.subject) for recording in unlabeled])
            raise ValueError(
                f"The labels of these subjects are not published: {names}. Select other subjects. "
                "To use the recordings of these subjects for pretraining, store them without "
                f"labels: braindecode-pars store --recipe {self.name}=FOLDER STORE."
            )
        return [r for r in recordings if r.description.get("split") != _UNLABELED]


def _unlabeled_windows(
    prepare: Callable[..., mne.io.BaseRaw], recording: Recording, **settings: Any
) -> Any:
    return fixed_windows(prepare(recording, **settings))


def _keywords(function: Callable[..., Any]) -> set[str]:
    """Return the settings of a function in a recipe: names of arguments with a default value."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.default is not p.empty} - {"subjects"}


@dataclass(frozen=True)
class ContinuousCorpus:
    """List of the recordings of a corpus, for :meth:`SignalStore.create`.

    :meth:`Recipe.continuous` creates a list without labels, and :meth:`Recipe.labeled` a list with
    labels. The files of the recordings have not been opened yet.

    Attributes
    ----------
    name : str
        Name of the recipe, such as "tueg".
    folder : Path
        Folder of the corpus.
    recordings : tuple of Recording
        Recordings to store.
    read : callable
        Function that receives a Recording, and returns the preprocessed Raw. If the list has
        labels, it returns the windows instead (an EEGWindowsDataset, or None if the recording has
        no windows).
    settings : mapping
        Name and version of the corpus, and settings of the recipe, as values supported by JSON. If
        the list has labels, also ``classes``, the class names in the order of the targets 0, 1, ...
    held_out : tuple of Recording
        Recordings of validation and test subjects, which are not stored.
    excluded : tuple of Recording
        Recordings of other excluded subjects, which are not stored.
    absent : tuple of str
        Subjects in the lists of ``exclude`` that have no recording in the folder.
    n_published : int | None
        Number of subjects of the complete corpus. None if unknown.
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
        """Subjects of the recordings in ``held_out`` and ``excluded``, one entry per recording."""
        return [recording.corpus_subject for recording in (*self.held_out, *self.excluded)]

    @property
    def summary(self) -> str:
        """Number of included subjects, and of excluded subjects for each reason, in one line."""
        total = "" if self.n_published is None else f" of {self.n_published:,} in the full corpus"
        line = f"{self.name}: {count_subjects(self.recordings)}{total}."
        reasons = {
            "in the validation and test sets": self.held_out,
            "excluded by request": self.excluded,
        }
        phrases = [f"{count_subjects(part)} {reason}" for reason, part in reasons.items() if part]
        return f"{line} Excluded: {'; '.join(phrases)}." if phrases else line


def folders_and_lists(
    exclude: Sequence[str | PathLike | Iterable],
) -> tuple[list[str | PathLike], list[list]]:
    """Separate the entries of ``exclude`` into folders of other corpora and lists of subjects.

    Returns
    -------
    folders : list of path
        The folders in ``exclude``.
    lists : list of list
        The lists of subjects in ``exclude``.

    Raises
    ------
    TypeError
        If ``exclude`` is a path, or if an entry is neither a path nor a list.
    """
    if isinstance(exclude, str | PathLike):
        raise TypeError(
            "exclude must be a list, in which each item is a folder or a list of subjects, got the "
            f"path {str(exclude)!r}. Pass [{str(exclude)!r}] instead."
        )
    folders = [item for item in exclude if isinstance(item, str | PathLike)]
    return folders, [list(item) for item in exclude if not isinstance(item, str | PathLike)]


def separate_subjects(
    recordings: Sequence[Recording], subjects: Iterable
) -> tuple[list[Recording], list[Recording]]:
    """Return two lists: recordings of subjects not in ``subjects``, and of ``subjects``."""
    keys = SubjectKeys(subjects)
    included = [recording for recording in recordings if recording.corpus_subject not in keys]
    return included, [recording for recording in recordings if recording.corpus_subject in keys]


def count_subjects(recordings: Sequence[Recording]) -> str:
    """Return the number of subjects and recordings as a text: "1 subject (2 recordings)"."""
    subjects, files = len({recording.subject for recording in recordings}), len(recordings)
    return (
        f"{subjects:,} subject{'' if subjects == 1 else 's'} "
        f"({files:,} recording{'' if files == 1 else 's'})"
    )


def without_left_out(corpora: Sequence[ContinuousCorpus]) -> list[ContinuousCorpus]:
    """Apply the exclusions of each corpus of a store to all corpora of the store.

    For example, TUAB excludes its test subjects. TUEG also contains recordings of these subjects,
    which would otherwise be used for pretraining. The number of excluded recordings is logged.

    Parameters
    ----------
    corpora : sequence of ContinuousCorpus
        Corpora of one store.

    Returns
    -------
    list of ContinuousCorpus
        The corpora, with the recordings of excluded subjects moved from ``recordings`` to
        ``excluded``.
    """
    exclusions = [subject for corpus in corpora for subject in corpus.excluded_subjects]
    remaining_corpora = []
    for corpus in corpora:
        included, dropped = separate_subjects(corpus.recordings, exclusions)
        if dropped:
            message = (
                "%s: excluded %d recordings of subjects that are excluded from another corpus of "
                "the store."
            )
            log.warning(message, corpus.name, len(dropped))
            excluded = (*corpus.excluded, *dropped)
            corpus = replace(corpus, recordings=tuple(included), excluded=excluded)
        remaining_corpora.append(corpus)
    return remaining_corpora
