"""Stores of several parts: a corpus divided between machines, and a folder that joins stores.

A joined store has one index and is read as if its samples were in one file. Each corpus in it can
have a share of the examples of pretraining.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from braindecode_pars._common.checks import check_same_rate, instance, integer, positive
from braindecode_pars._common.files import checksum_of, differences, read_checked, write_checked
from braindecode_pars._common.subjects import SubjectKeys
from braindecode_pars.signal_store.index import INDEX, Index, StoredRecording
from braindecode_pars.signal_store.sources import (
    Source,
    check_same_classes,
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


def write_parts(folder: Path, checksums: Mapping[Path, str], shares: Mapping[str, float]) -> None:
    """Write ``parts.json``, completely or not at all.

    Parameters
    ----------
    folder : Path
        New folder.
    checksums : mapping of Path to str
        Checksum of each store with its labels, by its absolute path. In the file, paths are
        relative to the folder, so that all of them can be moved together.
    shares : mapping of str to float
        Share of each corpus in the examples of pretraining.
    """
    parts = [
        dict(path=Path(os.path.relpath(path, folder.resolve())).as_posix(), checksum=checksum)
        for path, checksum in checksums.items()
    ]
    content = dict(format=FORMAT, version=VERSION, shares=dict(shares), parts=parts)
    write_checked(folder / PARTS, content)


def read_parts(folder: Path) -> tuple[dict[Path, str], dict[str, float]]:
    """Return the checksums and shares in ``parts.json``, as :func:`write_parts` takes them.

    Raises
    ------
    ValueError
        When the file is damaged, was edited, or has another version.
    """
    file = folder / PARTS
    try:
        content = read_checked(file)
        if (content.get("format"), content.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"{file} is not {FORMAT!r} of version {VERSION}.")
    except ValueError as error:
        raise ValueError(f"{error} Join the stores again in a new folder.") from error
    root = folder.resolve()
    checksums = {
        Path(os.path.normpath(root / part["path"])): part["checksum"] for part in content["parts"]
    }
    return checksums, content["shares"]


def divided(sources: list[Source], part: Any) -> tuple[list[Source], dict[str, Any] | None]:
    """Return the recordings of one part, and what the store remembers of the division.

    Parts are consecutive recordings, of equal numbers but for one. The checksum tells one list of
    recordings from another without reading them. It is the same on machines that have copies of the
    files at other places, with other times, or only the files of their own part: the path in its
    folder identifies a file. A recording of a dataset has only a number as its name, so its
    subject, length, channels, rate and labels count.

    Parameters
    ----------
    sources : list of Source
        All recordings, in an order that is the same on every machine.
    part : (int, int) | None
        Number of the part, from 1, and number of parts; None for all recordings.

    Raises
    ------
    TypeError, ValueError
        When ``part`` is not two integers, when a number is not in range, or when there are fewer
        recordings than parts.
    """
    if part is None:
        return sources, None
    if not isinstance(part, (tuple, list)) or len(part) != 2:
        raise TypeError(f"part must be None or two integers, such as (3, 8), got {part!r}.")
    n = len(sources)
    for number in part:
        integer(1).check("part", number)
    number, n_parts = map(int, part)
    if not number <= n_parts <= n:
        raise ValueError(f"{n} recordings have no part {number} of {n_parts}.")
    known = [
        [source.name]
        if isinstance(source.origin, Path)
        else [source.name, source.description.get("subject"), source.state]
        for source in sources
    ]
    checksum = checksum_of(json.dumps(known).encode())
    chosen = sources[n * (number - 1) // n_parts : n * number // n_parts]
    return chosen, dict(number=number, n_parts=n_parts, n_recordings=n, recordings=checksum)


def _division(index: Index) -> tuple | None:
    """Return what the parts of one division have in common; None for a store that is not a part."""
    part = index.settings.get("part")
    return part and (part["n_parts"], part["n_recordings"], part.get("recordings"))


def in_order(indexes: Mapping[Path, Index]) -> dict[Path, Index]:
    """Return stores in the given order, but the parts of one division in the order of the parts.

    Names such as ``part-1, part-10, part-2`` are in the order of the alphabet.
    """
    divisions: dict[Any, int] = {}

    def place(path: Path) -> tuple[int, int]:
        division = _division(indexes[path])
        number = indexes[path].settings["part"]["number"] if division else 0
        return divisions.setdefault(division or path, len(divisions)), number

    return {path: indexes[path] for path in sorted(indexes, key=place)}


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
        When the stores differ in sampling rate, type, preparation or type of labels, when parts of
        a division are missing, when a store has a person that a corpus of another leaves out, when
        a recording is in two stores, or when shares differ or are not those of the corpora.
    """
    (first_path, first), *_ = indexes.items()
    for path, index in indexes.items():
        rates = index.sfreq, first.sfreq
        check_same_rate(*rates, f"{path} is", f"{first_path}", "create it at {expected:g} Hz")
        # Shares that are not given are those of the stores.
        settings, of_first = (
            {**each.settings, "shares": each.shares if shares is None else None}
            for each in (index, first)
        )
        check_settings(path, of_first, settings, beside=("corpora", "part", "sfreq"))
    corpora = joined_corpora(
        {str(path): index.settings.get("corpora", {}) for path, index in indexes.items()}
    )
    _check_complete(indexes)
    for by, of_corpora in indexes.items():
        for path, index in indexes.items():
            check_not_left_out(path, index, of_corpora.left_out, by)
    kinds = {f.labels["kind"] for index in indexes.values() for f in index.files if f.labels}
    if len(kinds) > 1:
        raise ValueError(f"The stores have labels of different types: {', '.join(sorted(kinds))}.")
    # All recordings, with positions in the samples of all stores. The numbers of recordings of
    # datasets continue, as in one store.
    joined = Index({**first.settings, "corpora": corpora, "part": None}, first.sfreq, complete=True)
    joined.shares = check_shares(first.shares if shares is None else shares, corpora)
    joined.left_out = list(dict.fromkeys(p for index in indexes.values() for p in index.left_out))
    taken: set[str] = set()
    known: dict[Any, tuple[Path, str]] = {}  # store and name of a recording, by what identifies it
    n_samples = 0
    for path, index in indexes.items():
        names = [*(recording.name for recording in index.recordings), *index.skipped]
        own = set(map(name_without_piece, names))
        n_before = 0 if taken.isdisjoint(own) else next_number(taken)
        taken |= {numbered_on(name, n_before) for name in own}
        recordings = [
            replace(r, name=numbered_on(r.name, n_before), first_sample=r.first_sample + n_samples)
            for r in index.recordings
        ]
        _check_new(path, recordings, known)
        joined.recordings += recordings
        joined.skipped |= {numbered_on(name, n_before): why for name, why in index.skipped.items()}
        joined.files += tuple(f._replace(n_before=f.n_before + n_before) for f in index.files)
        n_samples += sum(f.samples.n_samples for f in index.files)
    return joined


def joined_corpora(given: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings of all corpora, and check that recordings are prepared alike.

    Parameters
    ----------
    given : mapping of str to mapping
        Settings of the corpora of each store, by the name of the store; empty for a store that was
        not made from recipes.
    """
    check_same_classes(
        [(f"{name} in {owner}", each) for owner, own in given.items() for name, each in own.items()]
    )
    joined: dict[str, Any] = {}
    first = next(iter(given))
    for owner, corpora in given.items():
        if bool(corpora) != bool(given[first]):
            by, without = (owner, first) if corpora else (first, owner)
            raise ValueError(
                f"{by} was made from recipes, but {without} was not; make separate stores."
            )
        check_settings(owner, {**corpora, **joined}, {**joined, **corpora})
        joined |= corpora
    return joined


def check_settings(
    owner: Any, before: Mapping[str, Any], now: Mapping[str, Any], beside: Collection[str] = ()
) -> None:
    """Check that settings are equal; one that is newer than a store is like one that is not set."""
    given = (
        {name: value for name, value in settings.items() if value not in (None, {})}
        for settings in (before, now)
    )
    found = differences(*given, ignore=beside)
    if found:
        raise ValueError(f"The settings of {owner} differ: {'; '.join(found)}.")


def _check_complete(indexes: Mapping[Path, Index]) -> None:
    """Check that every part of a divided corpus is there."""
    found: dict[tuple, list[int]] = defaultdict(list)
    for index in indexes.values():
        if (division := _division(index)) is not None:
            found[division].append(index.settings["part"]["number"])
    missing = [
        f"{', '.join(absent)} of the {n_parts} parts of {n_recordings:,} recordings"
        for (n_parts, n_recordings, _), numbers in found.items()
        if (absent := [str(n) for n in range(1, n_parts + 1) if n not in numbers])
    ]
    if missing:
        raise ValueError(
            f"Missing: {'; '.join(missing)}. Create them, and join all parts of these recordings."
        )


def check_not_left_out(path: Path, index: Index, people: Iterable, by: Any) -> None:
    """Check that a store has none of the people that the corpora of another one leave out."""
    keys = SubjectKeys(people)
    stored = dict.fromkeys(recording.subject for recording in index.recordings)
    found = [subject for subject in stored if subject is not None and subject in keys]
    if found:
        raise ValueError(
            f"{path} has {len(found)} people that the corpora of {by} exclude or hold out, such as "
            f"{found[0]}. Make it again without them (exclude=, --exclude)."
        )


def _check_new(
    path: Path, recordings: Iterable[StoredRecording], known: dict[Any, tuple[Path, str]]
) -> None:
    """Check that no recording is in an earlier store: by name, and by content without a corpus."""
    own: dict[Any, tuple[Path, str]] = {}
    for recording in recordings:
        name = name_without_piece(recording.name)
        # A path in a corpus identifies a recording, whatever its samples are.
        in_corpus = recording.corpus is not None and numbered_on(name, 1) == name
        for key in [name] if in_corpus else [name, recording.content]:
            own[key] = path, recording.name
            if key in known:
                other, other_name = known[key]
                also = "" if other_name == recording.name else f" {other_name}"
                raise ValueError(
                    f"{recording.name} in {path} is also{also} in {other}. Store each once, "
                    "and several folders from the one above them."
                )
    known |= own


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
    instance("a dict of shares by name", Mapping).check("shares", shares)
    if shares and set(shares) != set(corpora):
        known = ", ".join(corpora) or "no corpora of recipes"
        raise ValueError(f"shares has {', '.join(map(str, shares))}, but the store has {known}.")
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
