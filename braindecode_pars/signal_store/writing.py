"""Creation and extension of a store. A kill or a full disk does not lose stored recordings."""

from __future__ import annotations

import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from braindecode_pars._common.checks import check_same_rate, is_same_rate, listed, warn_user
from braindecode_pars._common.files import check_may_write, locked, plain, remove_leftovers
from braindecode_pars._common.progress import ProgressBar
from braindecode_pars._common.subjects import normalized
from braindecode_pars.recordings.continuous import ContinuousCorpus, without_left_out
from braindecode_pars.recordings.loading import skipped_message
from braindecode_pars.recordings.preparation import count_left_out
from braindecode_pars.recordings.search import Subject
from braindecode_pars.signal_store.index import INDEX, SAMPLES, Index, LabelWriter, cut_off_labels
from braindecode_pars.signal_store.parts import (
    check_not_left_out,
    check_settings,
    check_shares,
    divided,
    joined_corpora,
)
from braindecode_pars.signal_store.samples import Encoded, Remarks, Unusable, read_all
from braindecode_pars.signal_store.sources import (
    Preparation,
    Source,
    corpora_of,
    find_sources,
    name_without_piece,
    next_number,
)

log = logging.getLogger(__name__)

#: Warnings about stored recordings, by the kind of the problem.
_WARNINGS = {
    "clipped": "Samples far outside the range of the type were clipped: {}. Pass dtype='float32' "
    "to keep them.",
    "coarse": "int16 is too coarse for the signal, because large values or drifts take up its "
    "range: {}. Remove them with the argument low=, or pass dtype='float32'.",
    "amplitude": "The amplitude is not that of EEG. {}",
}

#: Maximum share of the time that is spent on commits.
_COMMIT_SHARE = 0.05


def create(
    folder: Path,
    recordings: Any,
    subject: Subject,
    preparation: Preparation,
    dtype: str,
    shares: Mapping[str, float],
    part: tuple[int, int] | None,
    **reading: Any,
) -> None:
    """Create a store, or resume the creation of one that was started with the same arguments.

    Stored recordings are committed from time to time, and when an error or Ctrl-C ends the call.

    Raises
    ------
    ValueError
        When no recording can be stored, or when the folder is not empty and not an unfinished
        store. Also when its creation was started with other arguments; the message names the
        differences.
    """
    corpora = without_left_out(corpora_of(recordings))
    of_corpora = {corpus.name: dict(corpus.settings) for corpus in corpora}
    given = [name for name, value in asdict(preparation).items() if value is not None]
    if corpora and given:
        raise ValueError(
            f"The recipe {corpora[0].name} prepares its recordings; omit {', '.join(given)}."
        )
    shares = check_shares(shares, of_corpora)
    sources = find_sources(corpora or recordings, subject)
    sources, chosen = divided(sources, part)
    settings = {"dtype": dtype, **asdict(preparation), "corpora": of_corpora, "part": chosen}
    _check_folder(folder)
    with _open_locked(folder) as file:
        index = Index.read(folder) if (folder / INDEX).exists() else Index(settings)
        if index.complete and part is None:
            raise ValueError(
                f"{folder} is a finished store of {len(index.recordings)} recordings; open it, and "
                "add to it with its method append."
            )
        if index.recordings:
            sources = _not_begun(folder, index, settings, sources)
        else:  # nothing is stored yet, so the settings may change
            index = Index(settings)
        if index.complete:  # jobs of a cluster are submitted again with those that have finished
            return
        index.shares = shares  # they decide nothing about the samples
        index.left_out = _people_left_out(corpora)
        writer = _Writer(folder, file, index)
        kept = "the same call resumes after the stored recordings"
        with _explained(folder, kept):
            writer.commit()  # an index without recordings marks the folder as a store
            try:
                _store(writer, sources, preparation, kept, on_time=writer.commit_in_time, **reading)
                index.complete = True
                writer.commit()
            except BaseException:
                # Also on Ctrl-C: commit what is stored, so that the next call can resume.
                index.complete = False
                with suppress(OSError):
                    writer.commit()
                raise


def _check_folder(folder: Path) -> None:
    """Check that a folder is new, empty or a store; an early kill leaves empty samples."""
    is_store, samples = (folder / INDEX).exists(), folder / SAMPLES
    begun = samples.is_file() and samples.stat().st_size == 0
    check_may_write(folder, "a store", is_ours=is_store, beside=[SAMPLES] if begun else [])
    if is_store:
        Index.read(folder)  # another program may have written a file of this name


def append(
    folder: Path,
    recordings: Any,
    subject: Subject,
    sfreq: float | None,
    shares: Mapping[str, float] | None,
    **reading: Any,
) -> None:
    """Add recordings to a finished store: all of them, or none if the call ends early.

    Raises
    ------
    ValueError
        When ``sfreq`` is not the sampling rate of the store, when a stored file has changed, or
        when no recording can be stored.
    """
    left_out = Index.read(folder).left_out  # before a lock is left in a folder that is no store
    corpora = without_left_out(corpora_of(recordings), left_out)
    with _open_locked(folder) as file:
        index = Index.read(folder)
        check_same_rate(sfreq, index.sfreq, "The recordings would be", f"the store {folder}")
        # The settings of the store.
        settings = index.settings
        others = ("dtype", "corpora", "part")
        preparation = Preparation(**{k: value for k, value in settings.items() if k not in others})
        new, added = "the new recordings", {c.name: dict(c.settings) for c in corpora}
        stored = settings.get("corpora", {})
        settings["corpora"] = joined_corpora({str(folder): stored, new: added})
        people = _people_left_out(corpora)  # a new subject may change who is a test subject
        check_not_left_out(folder, index, people, new)
        index.left_out = list(dict.fromkeys([*index.left_out, *people]))
        index.shares = check_shares(index.shares if shares is None else shares, settings["corpora"])
        if sfreq is not None:
            preparation = replace(preparation, sfreq=index.sfreq)
        # New recordings of a dataset continue the numbers of stored and skipped recordings.
        names = [*(recording.name for recording in index.recordings), *index.skipped]
        first = max(len(names), next_number(names))
        sources = find_sources(corpora or recordings, subject, first)
        sources = _not_stored(folder, index, sources)
        # Recordings of a dataset have no names of their own, and are known by their content.
        known = {recording.content: recording.name for recording in index.recordings}
        writer, kept = _Writer(folder, file, index), "the store is unchanged"
        with _explained(folder, kept):
            try:
                _store(writer, sources, preparation, kept, known=known, **reading)
                writer.commit()
            except BaseException:
                # Also on Ctrl-C: cut off new samples, and restore the time in the index.
                before = Index.read(folder)
                file.truncate(before.n_bytes)
                cut_off_labels(folder, before.labels)
                os.utime(folder / SAMPLES, ns=(time.time_ns(), before.mtime_ns))
                raise


@contextmanager
def _explained(folder: Path, kept: str) -> Iterator[None]:
    """Say what is kept when the disk is full, or a process that reads was killed."""
    try:
        yield
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "A process that reads recordings was killed, most likely for lack of memory; "
            f"{kept}. Fewer processes (n_jobs, --jobs) need less memory."
        ) from error
    except OSError as error:
        why = error.strerror or error
        raise type(error)(error.errno, f"{folder} cannot be written: {why}; {kept}") from error


def _people_left_out(corpora: Iterable[ContinuousCorpus]) -> list:
    """Return people that corpora of recipes leave out, each once."""
    people = (person for corpus in corpora for person in corpus.people_left_out)
    return list(dict.fromkeys(normalized(plain(person)) for person in people))


def check_not_truncated(folder: Path, index: Index) -> None:
    """Check that the flat file is not shorter than its index states."""
    n_bytes = (folder / SAMPLES).stat().st_size
    if n_bytes < index.n_bytes:
        raise ValueError(
            f"{folder / SAMPLES} is truncated: it has {n_bytes} of {index.n_bytes} bytes."
        )


class _Writer:
    """Append recordings to the flat file and to the index.

    Parameters
    ----------
    folder : Path
        Folder of the store.
    file : FileIO
        Flat file, locked.
    index : Index
        Index of the recordings in the file. Bytes after these recordings are overwritten or cut
        off.
    """

    def __init__(self, folder: Path, file: FileIO, index: Index):
        self.folder = folder
        self.file = file
        self.index = index
        self.n_bytes = index.n_bytes
        self.labels = LabelWriter(folder, index.labels)
        self._committed_at = self._cost = 0.0
        check_not_truncated(folder, index)
        file.seek(self.n_bytes)

    def add(self, source: Source, pieces: list[Encoded]) -> None:
        """Append a recording, all its pieces or none. It is permanent after the next commit."""
        n_bytes, added = self.n_bytes, []
        for piece in pieces:
            # Unbuffered files may write only a part.
            unwritten = piece.stored.reshape(-1).view(np.uint8).data
            while unwritten:
                unwritten = unwritten[self.file.write(unwritten) :]
            first = n_bytes // piece.stored.itemsize
            added.append(replace(piece.recording, first_sample=first))
            n_bytes += piece.stored.nbytes
        labels = {p.recording.name: p.labels for p in pieces if p.labels is not None}
        if labels and self.index.sfreq is not None:  # it is that of the first recording
            self.labels.add(labels, source.description, self.index.sfreq)
        self.index.recordings += added
        self.n_bytes = n_bytes

    def commit(self) -> None:
        """Make all added recordings permanent: first the samples, then the index."""
        start = time.monotonic()
        self.file.truncate(self.n_bytes)  # cuts off what a kill or a full disk left
        os.fsync(self.file.fileno())
        self.index.labels = self.labels.commit()
        self.index.n_bytes = self.n_bytes
        self.index.mtime_ns = os.fstat(self.file.fileno()).st_mtime_ns
        self.index.write(self.folder)
        self._committed_at = time.monotonic()
        self._cost = self._committed_at - start

    def commit_in_time(self) -> None:
        """Commit if the last commit was long ago compared with the duration of a commit."""
        if self._cost < _COMMIT_SHARE * (time.monotonic() - self._committed_at):
            self.commit()


def _store(
    writer: _Writer,
    sources: list[Source],
    preparation: Preparation,
    kept: str,
    *,
    n_jobs: int,
    on_error: str,
    verbose: int,
    on_time: Callable[[], None] = lambda: None,
    known: Mapping[tuple, str] | None = None,
) -> None:
    """Read recordings and add them one after another; warn about skipped recordings.

    Parameters
    ----------
    writer : _Writer
        Writer of the store.
    sources : list of Source
        Recordings to read.
    preparation : Preparation
        Preparation of the recordings.
    kept : str
        What is kept after an error, for the message.
    n_jobs, on_error, verbose
        As in :meth:`SignalStore.create`.
    on_time : callable
        Function that is called after each recording.
    known : mapping of tuple to str | None
        Names of recordings by content, which are not stored again.
    """
    index = writer.index
    skipped: list[str] = []
    remarks: list[list[Remarks]] = []
    n_pieces = 0
    reading = read_all(sources, preparation, index.settings["dtype"], n_jobs)
    with closing(reading) as results:
        bar = ProgressBar(
            zip(sources, results, strict=True),
            total=len(sources),
            desc="storing",
            unit=" recordings",
            disable=not verbose,
        )
        for source, pieces in bar:
            index.skipped.pop(source.name, None)  # by an earlier call
            n_pieces += len(pieces)
            usable = []
            for piece in (_checked(piece, index, known or {}) for piece in pieces):
                if isinstance(piece, Encoded):
                    usable.append(piece)
                    continue
                if on_error == "raise" and not piece.always_skip:
                    text = f"{piece.label} cannot be used: {piece.reason}"
                    raise ValueError(f"{text} (on_error='warn' skips it; {kept}.)")
                index.skipped[piece.name] = piece.reason
                skipped.append(f"{piece.label}: {piece.reason}")
            writer.add(source, usable)
            remarks.append([piece.remarks for piece in usable])
            on_time()
    _tell(remarks, logging.WARNING if verbose else logging.INFO)
    lacking = [set(preparation.missing(r.ch_names)) for r in index.recordings]
    if lacking and (nowhere := set.intersection(*lacking)):
        names = [name for name in preparation.channels or () if name in nowhere]
        warn_user(f"No stored recording has {', '.join(names)} of channels= as a good EEG channel.")
    if skipped:
        warn_user(skipped_message(skipped, n_pieces))
    if not index.recordings:
        raise ValueError(f"None of {len(sources)} recordings could be stored.")


def _checked(
    piece: Encoded | Unusable, index: Index, known: Mapping[tuple, str]
) -> Encoded | Unusable:
    """Check that a recording has the rate of the store, which the first sets, and is new in it."""
    if isinstance(piece, Unusable):
        return piece
    index.sfreq = piece.sfreq if index.sfreq is None else index.sfreq
    name, label = piece.recording.name, piece.remarks.label
    if not is_same_rate(piece.sfreq, index.sfreq):
        reason = (
            f"it is sampled at {piece.sfreq:g} Hz, earlier recordings at {index.sfreq:g} Hz; pass "
            "sfreq= to resample all recordings to one rate."
        )
        return Unusable(name, label, reason)
    twin = known.get(piece.recording.content)
    if twin is not None:
        return Unusable(name, label, f"it is already stored as {twin}.", always_skip=True)
    return piece


def _tell(recordings: list[list[Remarks]], level: int) -> None:
    """Log which channels are left out or missing, and warn about problems of the signals."""
    if line := count_left_out(pieces[0].left_out for pieces in recordings if pieces):
        log.log(level, line)
    missing: dict[tuple[str, ...], list[str]] = defaultdict(list)
    problems: dict[str, list[str]] = defaultdict(list)
    for remarks in (piece for pieces in recordings for piece in pieces):
        missing[remarks.missing].append(remarks.label)
        for kind, text in remarks.problems.items():
            problems[kind].append(f"{remarks.label} ({text})")
    for names, labels in missing.items():
        if names:
            whose = f"{len(labels)} recordings" if len(labels) > 1 else labels[0]
            wanted = ", ".join(names)
            log.log(level, "Channels in channels= that %s lack as good EEG: %s.", whose, wanted)
    for kind, text in _WARNINGS.items():
        if problems[kind]:
            warn_user(text.format(listed(problems[kind], 20)))


@contextmanager
def _open_locked(folder: Path) -> Iterator[FileIO]:
    """Lock the folder and open the flat file for writing."""
    message = f"Another process is writing {folder}; wait until it has finished."
    # Processes that a killed one has started may hold its lock for a moment.
    with locked(folder, message, wait=2):
        remove_leftovers(folder)
        (folder / SAMPLES).open("ab").close()  # a new one, if there is none
        with open(folder / SAMPLES, "r+b", buffering=0) as file:
            yield file


def _not_begun(
    folder: Path, index: Index, settings: dict[str, Any], sources: list[Source]
) -> list[Source]:
    """Return recordings that an earlier, equal call has not stored; check that it was equal."""
    # The recordings of all parts are compared last, since a checksum is no explanation.
    before, now = (
        {**each, "part": each.get("part") and {**each["part"], "recordings": None}}
        for each in (index.settings, settings)
    )
    check_settings(folder, before, now)
    names = {source.name for source in sources}
    foreign = [r.name for r in index.recordings if name_without_piece(r.name) not in names]
    if foreign:
        raise ValueError(f"{folder} was started with other recordings, such as {foreign[0]}.")
    sources = _not_stored(folder, index, sources)
    if index.settings.get("part") != settings["part"]:
        raise ValueError(
            f"{folder} was started before other parts changed; create all parts again."
        )
    return sources


def _not_stored(folder: Path, index: Index, sources: list[Source]) -> list[Source]:
    """Return recordings that are not stored yet; check that stored ones have not changed."""
    stored = {name_without_piece(recording.name): recording for recording in index.recordings}
    for source in sources:
        earlier = stored.get(source.name)
        if earlier and (earlier.source, earlier.description) != (source.state, source.description):
            raise ValueError(f"{source.label} has changed since it was stored in {folder}.")
    return [source for source in sources if source.name not in stored]
