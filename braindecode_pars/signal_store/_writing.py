"""Making and extending a store; neither a kill nor a full disk loses what was stored."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from braindecode_pars._sampling_rate import check_same_rate, is_same_rate
from braindecode_pars.recordings.loading import left_out_sentence
from braindecode_pars.signal_store._index import INDEX, SAMPLES, Index, StoredRecording
from braindecode_pars.signal_store._reading import Encoded, Unusable, read_all
from braindecode_pars.signal_store._sources import Preparation, Source, find_sources
from braindecode_pars.storage._atomic import is_leftover, locked, remove_leftovers
from braindecode_pars.storage._settings import differences

__all__ = ["append", "create"]

#: Share of the time that may be spent on making what was stored last.
_COMMIT_SHARE = 0.05


def create(
    folder: Path,
    recordings: Any,
    subject: Callable[[Path], Any] | None,
    preparation: Preparation,
    dtype: str,
    **reading: Any,
) -> None:
    """Make a store, or go on with one that was begun with the same arguments.

    Every now and then what was stored is committed, and also when an error or Ctrl-C ends it.

    Raises
    ------
    ValueError
        When the folder holds a finished store, one that was begun with other arguments, naming
        the difference, or something else; when no recording can be stored.
    """
    sources = find_sources(recordings, subject)
    _check_contents(folder)
    with _held(folder) as file:
        settings = {"dtype": dtype, **asdict(preparation)}
        index = Index.read(folder) if (folder / INDEX).exists() else Index(settings)
        if index.complete:
            raise ValueError(
                f"{folder} is a finished store of {len(index.recordings)} recordings; open it "
                "with SignalStore.open, and add recordings with its append."
            )
        if index.recordings:
            _check_settings(folder, index.settings, settings)
        else:  # whatever was tried before, nothing was stored
            index = Index(settings)
        _check_same_recordings(folder, index, {source.name for source in sources})
        sources = _not_stored(folder, index, sources)
        writer = _Writer(folder, file, index, "the same call goes on from what was stored")
        writer.commit()
        try:
            _store(writer, sources, preparation, on_time=writer.commit_in_time, **reading)
            index.complete = True
            writer.commit()
        except BaseException:
            index.complete = False
            with suppress(OSError):
                writer.commit()
            raise


def append(
    folder: Path,
    recordings: Any,
    subject: Callable[[Path], Any] | None,
    sfreq: float | None,
    **reading: Any,
) -> None:
    """Add recordings to a finished store: all of them, or none when it ends early.

    Raises
    ------
    ValueError
        When ``sfreq`` is not the store's, when a file that was stored has changed, or no
        recording can be stored.
    """
    with _held(folder) as file:
        index = Index.read(folder)
        check_finished(folder, index)
        check_same_rate(sfreq, index.sfreq, "The recordings would be", f"the store {folder}")
        settings = {name: value for name, value in index.settings.items() if name != "dtype"}
        preparation = Preparation(**settings)
        if sfreq is not None:
            preparation = replace(preparation, sfreq=index.sfreq)
        sources = find_sources(
            recordings, subject, n_before=len(index.recordings) + len(index.skipped)
        )
        writer = _Writer(folder, file, index, "the store is as it was")
        try:
            _store(writer, _not_stored(folder, index, sources), preparation, twice=False, **reading)
            writer.commit()
        except BaseException:
            kept = Index.read(folder)
            file.truncate(kept.n_bytes)
            os.utime(folder / SAMPLES, ns=(time.time_ns(), kept.mtime_ns))
            raise


def check_finished(folder: Path, index: Index) -> None:
    """Refuse a store whose making was interrupted."""
    if not index.complete:
        raise ValueError(
            f"{folder} is an unfinished store: it holds {len(index.recordings)} recordings, and "
            "its making was interrupted. Run the same SignalStore.create or command again; it "
            "goes on from there."
        )


def check_not_truncated(folder: Path, index: Index) -> None:
    """Refuse a flat file that is shorter than its index says."""
    n_bytes = (folder / SAMPLES).stat().st_size
    if n_bytes < index.n_bytes:
        raise ValueError(
            f"{folder / SAMPLES} is truncated: it has {n_bytes} bytes, and {INDEX} says "
            f"{index.n_bytes}. Copy it again, or make the store again."
        )


class _Writer:
    """Appends to the flat file and keeps the index behind it.

    Parameters
    ----------
    folder : Path
    file : FileIO
        The flat file, locked.
    index : Index
        Of what the file holds; anything behind that is overwritten or cut off.
    kept : str
        What becomes of the store where the disk is full, for the message.
    """

    def __init__(self, folder: Path, file: FileIO, index: Index, kept: str):
        self.folder = folder
        self.file = file
        self.index = index
        self.kept = kept
        self.n_bytes = index.n_bytes
        self._committed_at = self._cost = 0.0
        check_not_truncated(folder, index)
        file.seek(self.n_bytes)

    def add(self, source: Source, encoded: Encoded) -> None:
        """Append a recording."""
        with self._told():
            unwritten = memoryview(encoded.stored.reshape(-1).view(np.uint8))
            while unwritten:
                unwritten = unwritten[self.file.write(unwritten) :]
        self.index.recordings.append(
            StoredRecording(
                name=source.name,
                description=source.description,
                ch_names=encoded.ch_names,
                n_times=encoded.stored.shape[1],
                first_sample=self.n_bytes // encoded.stored.itemsize,
                scale=_shortest(encoded.scale),
                offset=_shortest(encoded.offset),
                checksum=encoded.checksum,
                source=source.state,
            )
        )
        self.index.skipped.pop(source.name, None)
        self.n_bytes += encoded.stored.nbytes

    def commit(self) -> None:
        """Make everything that was added last: samples first, then the index that names them."""
        start = time.monotonic()
        with self._told():
            self.file.truncate(self.n_bytes)  # of what a kill or a full disk left behind that
            os.fsync(self.file.fileno())
            self.index.n_bytes = self.n_bytes
            self.index.mtime_ns = os.fstat(self.file.fileno()).st_mtime_ns
        self.index.write(self.folder)
        self._committed_at = time.monotonic()
        self._cost = self._committed_at - start

    def commit_in_time(self) -> None:
        """Commit where that has not been done for so long that it costs little."""
        if self._cost < _COMMIT_SHARE * (time.monotonic() - self._committed_at):
            self.commit()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise type(error)(
                error.errno, f"{self.folder} cannot be written ({error.strerror}); {self.kept}"
            ) from error


def _store(
    writer: _Writer,
    sources: list[Source],
    preparation: Preparation,
    *,
    n_jobs: int,
    on_error: str,
    verbose: int,
    on_time: Callable[[], None] = lambda: None,
    twice: bool = True,
) -> None:
    """Read the recordings and add them one after another; those that are left out are named.

    ``twice`` is whether one may be there already, under another name.
    """
    index = writer.index
    known = {} if twice else {_content(recording): recording.name for recording in index.recordings}
    left_out = []
    with closing(read_all(sources, preparation, index.settings["dtype"], n_jobs)) as results:
        bar = tqdm(
            zip(sources, results, strict=True),
            total=len(sources),
            desc="storing",
            unit=" recordings",
            disable=not verbose,
        )
        for source, result in bar:
            result = _of_one_rate(result, index)
            if isinstance(result, Encoded) and _content(result) in known:
                name = known[_content(result)]
                result = Unusable(f"it is stored already, as {name}.", tolerable=True)
            if isinstance(result, Encoded):
                writer.add(source, result)
            elif on_error == "raise" and not result.tolerable:
                raise ValueError(
                    f"{source.told} cannot be used: {result.why} (on_error='warn' leaves such "
                    f"recordings out; {writer.kept}.)"
                )
            else:
                index.skipped[source.name] = result.why
                left_out.append(f"{source.told}: {result.why}")
            on_time()
    if left_out:
        warnings.warn(left_out_sentence(left_out, len(sources)), stacklevel=4)
    if not index.recordings:
        raise ValueError(f"None of {len(sources)} recordings could be stored.")


def _of_one_rate(result: Encoded | Unusable, index: Index) -> Encoded | Unusable:
    """The first recording says what the rate of all is."""
    if isinstance(result, Unusable):
        return result
    if index.sfreq is None:
        index.sfreq = result.sfreq
    if is_same_rate(result.sfreq, index.sfreq):
        return result
    return Unusable(
        f"it is sampled at {result.sfreq:g} Hz, the recordings before it at {index.sfreq:g} Hz; "
        "pass sfreq= to resample them to one rate."
    )


def _content(recording: Encoded | StoredRecording) -> tuple:
    """What two recordings of the same samples have in common."""
    scale, offset = (tuple(map(float, map(str, v))) for v in (recording.scale, recording.offset))
    return recording.checksum, tuple(recording.ch_names), scale, offset


def _shortest(values: np.ndarray) -> list[float]:
    """Numbers of single precision with no more digits than they need."""
    return [float(str(value)) for value in values]


@contextmanager
def _held(folder: Path) -> Iterator[FileIO]:
    """The flat file, opened for writing by one process only."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    told = f"{folder} is being written by another process; wait until it is done."
    with locked(folder, told):
        remove_leftovers(folder)
        descriptor = os.open(folder / SAMPLES, flags, 0o666)
        with open(descriptor, "r+b", buffering=0) as file:
            yield file


def _check_contents(folder: Path) -> None:
    """A folder may be new, empty, or hold a store; of a kill at the very beginning, no sample."""
    if not folder.exists() or (folder / INDEX).exists():
        return
    samples = folder / SAMPLES
    foreign = [file for file in folder.iterdir() if file != samples and not is_leftover(file)]
    if foreign or (samples.exists() and samples.stat().st_size):
        raise ValueError(f"{folder} is not empty and no store; name an empty folder.")


def _check_settings(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    found = differences(before, now)
    if found:
        raise ValueError(
            f"{folder} was begun with other settings: {'; '.join(found)}. Name another folder, or "
            "put the arguments back to go on with this one."
        )


def _not_stored(folder: Path, index: Index, sources: list[Source]) -> list[Source]:
    """The recordings that are still to be stored; those that were must not have changed."""
    stored = {recording.name: recording for recording in index.recordings}
    for source in sources:
        known = stored.get(source.name)
        if known and (known.source, known.description) != (source.state, source.description):
            raise ValueError(
                f"{source.told} is not what was stored in {folder} under its name; name another "
                "folder to store it as it is now."
            )
    return [source for source in sources if source.name not in stored]


def _check_same_recordings(folder: Path, index: Index, given: set[str]) -> None:
    foreign = [recording.name for recording in index.recordings if recording.name not in given]
    if foreign:
        raise ValueError(
            f"{folder} was begun with other recordings: {foreign[0]} is stored in it and is not "
            "among those given. Name another folder, or give the same recordings again."
        )
