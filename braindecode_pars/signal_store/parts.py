"""Stores of several parts: a corpus divided between machines, and a folder that joins stores.

A joined store has one index and is read as if its samples were in one file. Each corpus in it can
have a share of the examples of pretraining.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from braindecode_pars._common.checks import check_same_rate, integer, positive
from braindecode_pars._common.files import (
    check_may_write,
    checksum_of,
    differences,
    read_checked,
    write_checked,
)
from braindecode_pars._common.subjects import SubjectKeys
from braindecode_pars.signal_store.index import INDEX, Index, Labels, StoredRecording, read_labels
from braindecode_pars.signal_store.samples import DTYPES
from braindecode_pars.signal_store.sources import (
    Preparation,
    Source,
    is_numbered,
    name_without_piece,
    next_number,
    numbered_on,
)

PARTS = "parts.json"
FORMAT, VERSION = "braindecode_pars joined SignalStores", 1


def is_store(folder: str | Path) -> bool:
    """Whether a folder is a store, of its own samples or of those of other stores."""
    folder = Path(folder).expanduser()
    return (folder / INDEX).exists() or (folder / PARTS).exists()


def check_not_joined(folder: Path) -> None:
    """Check that recordings can be added to a store."""
    if (folder / PARTS).exists():
        raise ValueError(
            f"{folder} joins other stores and has no samples of its own, so that nothing can be "
            "added to it. Create a store of the new recordings, and join all stores in a new "
            "folder; no sample is copied."
        )


def check_may_join(folder: Path) -> None:
    """Check that a folder is new or empty."""
    if (folder / PARTS).exists():
        raise ValueError(
            f"{folder} already joins stores; open it with SignalStore.open, or pass a new folder."
        )
    check_may_write(folder, "joined stores", is_ours=False)


@dataclass(frozen=True)
class Parts:
    """Content of ``parts.json``.

    Attributes
    ----------
    checksums : mapping of Path to str
        Checksum of each store with its labels, by its absolute path. In the file, paths are
        relative to the folder, so that all of them can be moved together.
    shares : mapping of str to float
        Share of each corpus in the examples of pretraining.
    """

    checksums: Mapping[Path, str]
    shares: Mapping[str, float]

    def write(self, folder: Path) -> None:
        """Write the file, completely or not at all."""
        parts = [
            dict(path=Path(os.path.relpath(path, folder.resolve())).as_posix(), checksum=checksum)
            for path, checksum in self.checksums.items()
        ]
        content = dict(format=FORMAT, version=VERSION, shares=dict(self.shares), parts=parts)
        write_checked(folder / PARTS, content)

    @classmethod
    def read(cls, folder: Path) -> Parts:
        """Read the file, and check that the stores are there.

        Raises
        ------
        FileNotFoundError
            When a store is missing.
        ValueError
            When the file is damaged, was edited, or has another version.
        """
        try:
            content = read_checked(folder / PARTS)
        except ValueError as error:
            raise ValueError(f"{error} Join the stores again in a new folder.") from error
        found = content.get("format"), content.get("version")
        if found != (FORMAT, VERSION):
            raise ValueError(
                f"{folder / PARTS} has the format {found[0]!r} of version {found[1]}, but this "
                f"package reads {FORMAT!r} of version {VERSION}; update the package, or join the "
                "stores again."
            )
        parts = {_absolute(folder, part): part["checksum"] for part in content["parts"]}
        for path in parts:
            if not is_store(path):
                raise FileNotFoundError(
                    f"{path} is missing, one of the {len(parts)} stores that {folder} joins by "
                    "their paths relative to it. Move it there, or join the stores again in a new "
                    "folder."
                )
        return cls(parts, content["shares"])

    def check(self, folder: Path, found: Sequence[tuple[Path, str]]) -> None:
        """Check that stores have the checksums with which they were joined."""
        for path, checksum in found:
            if checksum != self.checksums[path]:
                raise ValueError(
                    f"{path} has other recordings, labels, splits or shares than when {folder} "
                    "joined it; join the stores again in a new folder."
                )


def _absolute(folder: Path, part: Mapping[str, Any]) -> Path:
    return Path(os.path.normpath(folder.resolve() / part["path"]))


class Part(NamedTuple):
    """A part of a division, as a store remembers it.

    Attributes
    ----------
    number, n_parts : int
        Number of the part, from 1, and number of parts.
    n_recordings : int
        Number of recordings in all parts, including those that cannot be stored.
    recordings : str
        Checksum of all these recordings; see :func:`checksum_of_sources`.
    """

    number: int
    n_parts: int
    n_recordings: int
    recordings: str = ""

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Part | None:
        """Return the part in the settings of a store; None for a store of all recordings."""
        entries = settings.get("part")
        return None if entries is None else cls(**entries)


def check_part(part: Any) -> tuple[int, int] | None:
    """Return the number of a part and the number of parts; None for all recordings.

    Raises
    ------
    TypeError
        When ``part`` is not two integers.
    ValueError
        When a number is below 1, or the number of the part is above that of parts.

    Examples
    --------
    >>> from braindecode_pars.signal_store.parts import check_part
    >>> check_part((3, 8))
    (3, 8)
    """
    if part is None:
        return None
    if not isinstance(part, (tuple, list)) or len(part) != 2:
        raise TypeError(
            "part must be None or a tuple of two integers, such as (3, 8) for the third of eight "
            f"parts, got {part!r}."
        )
    for name, number in zip(("The number of the part", "The number of parts"), part, strict=True):
        integer(1).check(name, number)
    number, n_parts = map(int, part)
    if number > n_parts:
        raise ValueError(f"part is {number} of {n_parts}; parts are numbered from 1 to {n_parts}.")
    return number, n_parts


def recordings_of_part(sources: list[Source], number: int, n_parts: int) -> list[Source]:
    """Return the recordings of one part: consecutive ones, of equal numbers but for one.

    Parameters
    ----------
    sources : list of Source
        All recordings, in an order that is the same on every machine.
    number, n_parts : int
        Number of the part, from 1, and number of parts.

    Raises
    ------
    ValueError
        When there are fewer recordings than parts.
    """
    n = len(sources)
    if n < n_parts:
        raise ValueError(f"{n} recordings cannot be divided into {n_parts} parts; use fewer parts.")
    return sources[n * (number - 1) // n_parts : n * number // n_parts]


def checksum_of_sources(sources: Iterable[Source]) -> str:
    """Return a checksum that tells one list of recordings from another, without reading them.

    It is the same on machines that have copies of the files at other places, with other times, or
    only the files of their own part: the path in its folder identifies a file. A recording of a
    dataset has only a number as its name, so its subject, length, channels, rate and labels count.

    Parameters
    ----------
    sources : iterable of Source
        Recordings of all parts.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    known = [
        [source.name]
        if isinstance(source.origin, Path)
        else [source.name, source.description.get("subject"), source.state]
        for source in sources
    ]
    return checksum_of(json.dumps(known).encode())


def missing_parts(parts: Iterable[Part]) -> list[str]:
    """Return a phrase for each division of which parts are missing.

    Examples
    --------
    >>> from braindecode_pars.signal_store.parts import Part, missing_parts
    >>> missing_parts([Part(1, 4, 90), Part(4, 4, 90), Part(1, 1, 7)])
    ['2, 3 of the 4 parts of 90 recordings']
    """
    found: dict[tuple[int, int, str], set[int]] = defaultdict(set)
    for part in parts:
        found[part.n_parts, part.n_recordings, part.recordings].add(part.number)
    phrases = []
    for (n_parts, n_recordings, _), numbers in found.items():
        absent = [str(n) for n in range(1, n_parts + 1) if n not in numbers]
        if absent:
            phrases.append(
                f"{', '.join(absent)} of the {n_parts} parts of {n_recordings:,} recordings"
            )
    return phrases


def in_order(indexes: Mapping[Path, Index]) -> dict[Path, Index]:
    """Return stores in the given order, but the parts of one division in the order of the parts.

    Names such as ``part-1, part-10, part-2`` are in the order of the alphabet.
    """
    divisions: dict[Any, int] = {}

    def place(item: tuple[Path, Index]) -> tuple[int, int]:
        part = Part.of(item[1].settings)
        key = item[0] if part is None else part[1:]
        return divisions.setdefault(key, len(divisions)), part.number if part else 0

    return dict(sorted(indexes.items(), key=place))


def joined_index(indexes: Mapping[Path, Index], shares: Mapping[str, Any] | None) -> Index:
    """Return the index of stores whose samples are read one after another.

    Parameters
    ----------
    indexes : mapping of Path to Index
        Indexes of the stores, at least one.
    shares : mapping of str to float | None
        Share of each corpus; None takes those of the stores.

    Raises
    ------
    ValueError
        When the stores differ in sampling rate, type or preparation, when parts of a division are
        missing, when a store has a person whom a corpus of another leaves out, when a recording is
        in two stores, or when shares differ or are not those of the corpora.
    """
    corpora = _common_corpora(indexes)
    _check_complete(indexes)
    _check_left_out(indexes)
    numbered = _numbered_on(indexes)
    _check_different(numbered)
    first = next(iter(indexes.values()))
    return Index(
        {**first.settings, "corpora": corpora, "part": None},
        first.sfreq,
        complete=True,
        n_bytes=sum(index.n_bytes for index in indexes.values()),
        skipped={name: why for index in numbered.values() for name, why in index.skipped.items()},
        recordings=_one_after_another(numbered.values()),
        shares=check_shares(_common_shares(indexes) if shares is None else shares, corpora),
        left_out=list(dict.fromkeys(p for index in indexes.values() for p in index.left_out)),
        labels=_labels_of(index.labels for index in numbered.values()),
    )


def joined_labels(folder: Path, described: Mapping[str, Any], sfreq: float) -> dict[str, Labels]:
    """Return the labelled windows of each recording of a store, from the tables of its parts.

    Parameters
    ----------
    folder : Path
        Folder of the store.
    described : mapping
        Entry ``labels`` of its index.
    sfreq : float
        Sampling rate of the store in Hz.

    Returns
    -------
    dict of str to Labels
        Windows by the name of the recording.
    """
    if "parts" not in described:
        return read_labels(folder, described, sfreq)
    return {
        numbered_on(name, n_before): labels
        for path, n_before, own in described["parts"]
        for name, labels in joined_labels(path, own, sfreq).items()
    }


def checksum_when_joined(checksum: str, index: Index) -> str:
    """Return a checksum of what a joined store uses of a store: also labels, and who is held out.

    Parameters
    ----------
    checksum : str
        Checksum of the recordings of the store.
    index : Index
        Index of the store.

    Returns
    -------
    str
        That of the recordings for a store without labels and splits.
    """
    labels = _checksums_of(index.labels)
    splits = [recording.split for recording in index.recordings]
    if not labels and not any(splits):
        return checksum
    return checksum_of(json.dumps([checksum, labels, splits]).encode())


def _checksums_of(labels: Mapping[str, Any]) -> list[str]:
    """Return the checksums of the tables of a store, in the order of its parts."""
    if "parts" in labels:
        return [checksum for *_, own in labels["parts"] for checksum in _checksums_of(own)]
    return [labels["checksum"]] if labels else []


def _labels_of(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the entry ``labels`` of the index: the sum, and those of the parts that have some."""
    parts = [part for part in parts if part]
    kinds = {part["kind"] for part in parts}
    if len(kinds) > 1:
        raise ValueError(
            f"The labels of the stores are of different types ({', '.join(sorted(kinds))}); give "
            "all windows labels of one type."
        )
    if not parts:
        return {}
    n_windows = sum(part["n_windows"] for part in parts)
    return dict(n_windows=n_windows, kind=kinds.pop(), parts=[part["of"] for part in parts])


def _common_corpora(indexes: Mapping[Path, Index]) -> dict[str, Any]:
    """Return the settings of all corpora, and check that all recordings are prepared alike."""
    (first_path, first), *others = indexes.items()
    corpora = dict(first.settings.get("corpora", {}))
    for path, index in others:
        check_same_rate(
            index.sfreq, first.sfreq, f"{path} is", f"{first_path}", "create it at {expected:g} Hz"
        )
        own = index.settings.get("corpora", {})
        if bool(own) != bool(corpora):
            by, without = (path, first_path) if own else (first_path, path)
            raise ValueError(
                f"{by} was made from recipes, but {without} was not, so that their recordings are "
                "prepared otherwise; they cannot be joined."
            )
        both = own.keys() & corpora.keys()
        found = differences(
            {**_preparation(first), **{name: corpora[name] for name in both}},
            {**_preparation(index), **{name: own[name] for name in both}},
        )
        if found:
            raise ValueError(
                f"{path} was stored with other settings than the stores before it: "
                f"{'; '.join(found)}. Create it again with the same settings."
            )
        corpora |= own
    classes = [corpus.get("classes") for corpus in corpora.values()]  # None without labels
    if any(found != classes[0] for found in classes):
        raise ValueError(
            f"The corpora {', '.join(corpora)} have other classes, or only some have labels; join "
            "stores of the same labels, or of none."
        )
    return corpora


def _preparation(index: Index) -> dict[str, Any]:
    """Return the settings that the stores have in common. The real rate is compared apart."""
    beside = ("corpora", "part", "sfreq")
    settings = {**asdict(Preparation()), **index.settings}  # newer settings are not set
    return {name: value for name, value in settings.items() if name not in beside}


def _check_complete(indexes: Mapping[Path, Index]) -> None:
    """Check that every part of a divided corpus is there."""
    parts = {path: Part.of(index.settings) for path, index in indexes.items()}
    missing = missing_parts(part for part in parts.values() if part is not None)
    if missing:
        raise ValueError(
            f"Missing: {'; '.join(missing)}. Create them, and join all parts. If they are among "
            "the given stores, these are parts of other recordings, as of a corpus that changed "
            "meanwhile; create all parts again from the same recordings."
        )


def _check_left_out(indexes: Mapping[Path, Index]) -> None:
    """Check that no store has a person whom a corpus of another one leaves out."""
    people = SubjectKeys(p for index in indexes.values() for p in index.left_out)
    for path, index in indexes.items():
        stored = dict.fromkeys(recording.subject for recording in index.recordings)
        found = [subject for subject in stored if subject is not None and subject in people]
        if found:
            by = next(p for p, i in indexes.items() if found[0] in SubjectKeys(i.left_out))
            raise ValueError(
                f"{path} has recordings of {len(found)} people whom the corpora of {by} exclude, "
                f"or hold out for validation and test, such as {found[0]}; they would be trained "
                f"on. Create {path} again without them, by exclude= or --exclude."
            )


def _numbered_on(indexes: Mapping[Path, Index]) -> dict[Path, Index]:
    """Continue the numbers of the recordings of datasets, as one store of all would have them."""
    taken: set[str] = set()
    numbered = {}
    for path, index in indexes.items():
        n_before = 0 if taken.isdisjoint(_names(index)) else next_number(taken)
        numbered[path] = replace(
            index,
            recordings=[replace(r, name=numbered_on(r.name, n_before)) for r in index.recordings],
            skipped={numbered_on(name, n_before): why for name, why in index.skipped.items()},
            labels={**index.labels, "of": (path, n_before, index.labels)} if index.labels else {},
        )
        taken |= _names(numbered[path])
    return numbered


def _names(index: Index) -> set[str]:
    """Return the names of stored and skipped recordings."""
    names = [*(recording.name for recording in index.recordings), *index.skipped]
    return {name_without_piece(name) for name in names}


def _check_different(indexes: Mapping[Path, Index]) -> None:
    """Check that no recording is in two stores: by name, and by content where it has no corpus."""
    found: dict[Any, tuple[Path, str]] = {}
    for path, index in indexes.items():
        own: dict[Any, tuple[Path, str]] = {}
        for recording in index.recordings:
            for key in _keys(recording):
                own[key] = path, recording.name
                if key in found:
                    other, name = found[key]
                    raise ValueError(
                        f"{recording.name} in {path} is {_also(name, recording.name)} in {other}. "
                        "A joined store has every recording once: store each in one part, and "
                        "files of different folders with the same path from the folder above both."
                    )
        found |= own


def _keys(recording: StoredRecording) -> Collection[Any]:
    """Return what identifies a recording; a path in a corpus does, whatever its samples are."""
    name = name_without_piece(recording.name)
    if recording.corpus is not None and not is_numbered(name):
        return [name]
    scales = tuple(recording.scale), tuple(recording.offset)
    return [name, (recording.checksum, tuple(recording.ch_names), *scales)]


def _also(name: str, own_name: str) -> str:
    return "also" if name == own_name else f"also {name}"


def _one_after_another(indexes: Iterable[Index]) -> list[StoredRecording]:
    """Return all recordings, with positions in the samples of all stores."""
    recordings, first = [], 0
    for index in indexes:
        recordings += [replace(r, first_sample=r.first_sample + first) for r in index.recordings]
        first += index.n_bytes // DTYPES[index.settings["dtype"]].itemsize
    return recordings


def _common_shares(indexes: Mapping[Path, Index]) -> dict[str, float]:
    (first_path, first), *others = indexes.items()
    for path, index in others:
        if index.shares != first.shares:
            raise ValueError(
                f"The shares of {path} are {index.shares}, those of {first_path} {first.shares}; "
                "pass the shares of the joined store (shares=, --share)."
            )
    return first.shares


class Samples(Protocol):
    """Samples of a store: a file, or those of several stores. Positions count samples."""

    n_samples: int

    def file_at(self, first: int) -> Path:
        """Return the file that contains a position."""

    def stored(self, first: int, n_samples: int) -> np.ndarray:
        """Return stored numbers of one recording, shape (n_samples,), read-only."""

    def crops(
        self, firsts: np.ndarray, n_times: int, scale: np.ndarray, offset: np.ndarray
    ) -> np.ndarray:
        """Return crops as float32 values in volts, shape (n_crops, n_times)."""


class JoinedSamples:
    """Samples of several stores, one after another; nothing is copied.

    Parameters
    ----------
    parts : sequence of Samples
        Samples of each store, all of one type.

    Attributes
    ----------
    firsts : ndarray of int, shape (n_parts,)
        Position of the first sample of each store.
    n_samples : int
        Number of samples of all stores.
    """

    def __init__(self, parts: Sequence[Samples]):
        ends = np.cumsum([part.n_samples for part in parts])
        self.parts = list(parts)
        self.firsts = np.concatenate([[0], ends[:-1]])
        self.n_samples = int(ends[-1])

    def file_at(self, first: int) -> Path:
        """Return the file that contains a position."""
        part = self._part_of(first)
        return self.parts[part].file_at(first - int(self.firsts[part]))

    def stored(self, first: int, n_samples: int) -> np.ndarray:
        """Return stored numbers of one recording, shape (n_samples,), read-only."""
        part = self._part_of(first)
        return self.parts[part].stored(first - int(self.firsts[part]), n_samples)

    def crops(
        self, firsts: np.ndarray, n_times: int, scale: np.ndarray, offset: np.ndarray
    ) -> np.ndarray:
        """Return crops as float32 values in volts, shape (n_crops, n_times).

        Parameters
        ----------
        firsts : ndarray of int, shape (n_crops,)
            Position of the first sample of each crop.
        n_times : int
            Length of a crop in samples; a crop lies within one recording.
        scale, offset : ndarray of float32, shape (n_crops,)
            Scale and offset of each crop.
        """
        part_of = self._part_of(firsts)
        values = np.empty((len(firsts), n_times), np.float32)
        for part in np.unique(part_of):
            rows = np.flatnonzero(part_of == part)
            own = firsts[rows] - self.firsts[part]
            values[rows] = self.parts[part].crops(own, n_times, scale[rows], offset[rows])
        return values

    def _part_of(self, firsts: Any) -> Any:
        return np.searchsorted(self.firsts, firsts, side="right") - 1


def check_shares(shares: Mapping[str, Any], corpora: Collection[str]) -> dict[str, float]:
    """Return shares as floats, and check that each corpus has one, or none has.

    Parameters
    ----------
    shares : mapping of str to float
        Share by name of the corpus. Only their ratios count.
    corpora : collection of str
        Names of the corpora in the store.

    Raises
    ------
    TypeError, ValueError
        When a share is not a positive number, or when names differ.
    """
    if not isinstance(shares, Mapping):
        raise TypeError(f"shares must be a dict of corpus and share, got {shares!r}.")
    if not shares:
        return {}
    if set(shares) != set(corpora):
        known = ", ".join(corpora) or "no corpora of recipes"
        raise ValueError(
            f"shares has {', '.join(map(str, shares))}, but the store has {known}; give each "
            "corpus a share, or none."
        )
    for name, share in shares.items():
        positive().check(f"The share of {name}", share)
    return {name: float(share) for name, share in shares.items()}


def windows_of_a_pass(n_windows: Mapping[str, int], shares: Mapping[str, float]) -> dict[str, int]:
    r"""Return how many windows of each corpus a pass over the data has.

    The corpus with the fewest windows for its share gives each of them once; the others give a part
    of theirs, so that the numbers are in the ratio of the shares:
    :math:`m_c = \mathrm{round}(s_c \min_k n_k / s_k)`.

    Parameters
    ----------
    n_windows : mapping of str to int
        Number of windows :math:`n_c` of each corpus, at least 1.
    shares : mapping of str to float
        Share :math:`s_c` of each corpus.

    Returns
    -------
    dict of str to int
        Number of windows :math:`m_c`, at least 1 and at most :math:`n_c`.

    Examples
    --------
    >>> from braindecode_pars.signal_store.parts import windows_of_a_pass
    >>> windows_of_a_pass({"tueg": 3_000_000, "ysyw": 756_563}, {"tueg": 1.0, "ysyw": 1.0})
    {'tueg': 756563, 'ysyw': 756563}
    """
    unit = min((n / shares[name] for name, n in n_windows.items()), default=0.0)
    return {name: min(n, max(1, round(unit * shares[name]))) for name, n in n_windows.items()}
