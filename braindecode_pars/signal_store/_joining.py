"""Rules for stores that are joined, and their index as if they were one store."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from braindecode_pars._sampling_rate import check_same_rate
from braindecode_pars._subjects import SubjectKeys
from braindecode_pars.signal_store._division import Part, missing_parts
from braindecode_pars.signal_store._index import Index, StoredRecording
from braindecode_pars.signal_store._label_table import read_labels
from braindecode_pars.signal_store._labels import Labels
from braindecode_pars.signal_store._samples import DTYPES
from braindecode_pars.signal_store._shares import check_shares
from braindecode_pars.signal_store._sources import (
    Preparation,
    is_numbered,
    name_without_piece,
    next_number,
    numbered_on,
)
from braindecode_pars.storage._checksum import checksum_of
from braindecode_pars.storage._settings import differences

__all__ = ["checksum_when_joined", "in_order", "joined_index", "joined_labels"]


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
