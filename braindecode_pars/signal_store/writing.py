"""Creation of a store. A kill or a full disk does not lose stored recordings."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from braindecode_pars._common import checks, files, training
from braindecode_pars.recordings import loading, recipe, search
from braindecode_pars.signal_store.index import SAMPLES, Index, LabelWriter, is_store
from braindecode_pars.signal_store.samples import Encoded, Unusable, read_all
from braindecode_pars.signal_store.sources import (
    Source,
    StoredForm,
    corpora_of,
    find_sources,
    name_without_piece,
)

log = logging.getLogger(__name__)

#: Warnings about stored recordings, by the kind of the problem.
_WARNINGS = {
    "clipped": "Samples far outside the range of the type were clipped: {}. Pass dtype='float32' "
    "to keep them.",
    "coarse": "int16 is too coarse for the signal, because large values or drifts take up its "
    "range: {}. Remove them with the argument low=, or pass dtype='float32'.",
    "amplitude": "The amplitude is not that of EEG. {}",
    "rows": "Rows of tables are not used: {}.",
}

#: Maximum share of the time that is spent on commits.
_COMMIT_SHARE = 0.05


def create(
    folder: Path,
    recordings: Any,
    subject: search.Subject,
    preparation: StoredForm,
    dtype: str,
    shares: Mapping[str, float],
    **reading: Any,
) -> None:
    """Create a store, or add the recordings that are not in it yet.

    Stored recordings are committed from time to time, and when an error or Ctrl-C ends the call.

    Raises
    ------
    ValueError
        When no recording can be stored, or when the folder is not empty and not a store. Also when
        the store was made with other arguments, or of other recordings; the message names the
        differences.
    """
    corpora = recipe.without_left_out(corpora_of(recordings))
    of_corpora = {corpus.name: dict(corpus.settings) for corpus in corpora}
    given = [name for name, value in asdict(preparation).items() if value is not None]
    if corpora and given:
        raise ValueError(f"{corpora[0].name} prepares its recordings; omit {', '.join(given)}.")
    shares = check_shares(shares, of_corpora)
    sources = find_sources(corpora or recordings, subject)
    settings = {"dtype": dtype, **asdict(preparation), "corpora": of_corpora}
    # The folder is new, empty or a store; an early kill leaves empty samples.
    samples = folder / SAMPLES
    begun = samples.is_file() and samples.stat().st_size == 0
    beside = [SAMPLES] if begun else []
    files.check_may_write(folder, "a store", is_ours=is_store(folder), beside=beside)
    if is_store(folder):
        Index.read(folder)  # another program may have written a file of this name
    with _open_locked(folder) as file:
        index = Index.read(folder) if is_store(folder) else Index(settings=settings)
        if index.complete and not all(isinstance(source.origin, Path) for source in sources):
            raise ValueError(f"{folder} is a finished store; open it, or pass a new folder.")
        if index.recordings:
            sources = _not_stored(folder, index, settings, sources)
        else:  # nothing is stored yet, so the settings may change
            index = Index(settings=settings)
        index.shares = shares  # they decide nothing about the samples
        writer, was_complete = _Writer(folder, file, index), index.complete
        writer.commit()  # an index without recordings marks the folder as a store
        try:
            _store(writer, sources, preparation, **reading)
            index.complete = True
            writer.commit()
        except BaseException:
            # Also on Ctrl-C: commit what is stored, so that the next call can resume.
            index.complete = was_complete
            with suppress(OSError):
                writer.commit()
            raise


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
    checks.instance("a dict of shares by name", Mapping).check("shares", shares)
    if shares and set(shares) != set(corpora):
        known = ", ".join(corpora) or "no corpora of recipes"
        raise ValueError(f"shares has {', '.join(map(str, shares))}, but the store has {known}.")
    for name, share in shares.items():
        checks.positive().check(f"The share of {name}", share)
    return {name: float(share) for name, share in shares.items()}


def check_not_truncated(folder: Path, index: Index) -> None:
    """Check that the flat file is not shorter than its index states."""
    n_bytes = (folder / SAMPLES).stat().st_size
    if n_bytes < index.n_bytes:
        raise ValueError(f"{folder / SAMPLES} is truncated to {n_bytes} of {index.n_bytes} bytes.")


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
    preparation: StoredForm,
    *,
    n_jobs: int,
    on_error: str,
    verbose: int,
) -> None:
    """Read recordings and add them one after another; warn about skipped recordings.

    Parameters
    ----------
    writer : _Writer
        Writer of the store.
    sources : list of Source
        Recordings to read.
    preparation : StoredForm
        StoredForm of the recordings.
    n_jobs, on_error, verbose
        As in :meth:`SignalStore.create`.
    """
    index = writer.index
    skipped: list[str] = []
    left_out: list[str] = []
    problems: list[tuple[str, str]] = []
    n_pieces = 0
    dtype = index.settings["dtype"]
    with closing(read_all(sources, preparation, dtype, n_jobs)) as results:
        bar = training.ProgressBar(
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
            for piece in (_checked(piece, index) for piece in pieces):
                if isinstance(piece, Encoded):
                    usable.append(piece)
                    continue
                if on_error == "raise" and not piece.always_skip:
                    raise ValueError(
                        f"{piece.label} cannot be used: {piece.reason} (on_error='warn' skips it; "
                        "the same call resumes after the stored recordings.)"
                    )
                index.skipped[piece.name] = piece.reason
                skipped.append(f"{piece.label}: {piece.reason}")
            writer.add(source, usable)
            left_out += [name for piece in usable[:1] for name in piece.left_out]
            problems += [(k, f"{p.label} ({text})") for p in usable for k, text in p.problems]
            writer.commit_in_time()
    _tell(left_out, problems, logging.WARNING if verbose else logging.INFO)
    lacking = [set(preparation.missing(r.ch_names)) for r in index.recordings]
    if lacking and (nowhere := set.intersection(*lacking)):
        names = [name for name in preparation.channels or () if name in nowhere]
        checks.warn_user(
            f"No stored recording has {', '.join(names)} of channels= as a good EEG channel."
        )
    if skipped:
        checks.warn_user(loading.skipped_message(skipped, n_pieces))
    if not index.recordings:
        raise ValueError(f"None of {len(sources)} recordings could be stored.")


def _checked(piece: Encoded | Unusable, index: Index) -> Encoded | Unusable:
    """Check that a recording has the rate of the store, which the first one sets."""
    if isinstance(piece, Unusable):
        return piece
    index.sfreq = piece.sfreq if index.sfreq is None else index.sfreq
    if checks.is_same_rate(piece.sfreq, index.sfreq):
        return piece
    reason = (
        f"it is sampled at {piece.sfreq:g} Hz, earlier recordings at {index.sfreq:g} Hz; pass "
        "sfreq= to resample all recordings to one rate."
    )
    return Unusable(piece.recording.name, piece.label, reason)


def _tell(left_out: list[str], problems: list[tuple[str, str]], level: int) -> None:
    """Log which channels are left out, and warn about problems of the signals, by their kind."""
    if left_out:
        names = checks.listed(list(dict.fromkeys(left_out)))
        log.log(level, "Channels that are not EEG, bad or not chosen are left out: %s.", names)
    for kind, text in _WARNINGS.items():
        if found := [what for of, what in problems if of == kind]:
            checks.warn_user(text.format(checks.listed(found, 20)))


@contextmanager
def _open_locked(folder: Path) -> Iterator[FileIO]:
    """Lock the folder and open the flat file for writing."""
    message = f"Another process is writing {folder}; wait until it has finished."
    # Processes that a killed one has started may hold its lock for a moment.
    with files.locked(folder, message, wait=2):
        files.remove_abandoned(folder, at_once=True)
        (folder / SAMPLES).open("ab").close()  # a new one, if there is none
        with open(folder / SAMPLES, "r+b", buffering=0) as file:
            yield file


def _not_stored(
    folder: Path, index: Index, settings: dict[str, Any], sources: list[Source]
) -> list[Source]:
    """Return the recordings that are not stored yet; check that the others are as they were."""
    before, now = (
        {name: value for name, value in each.items() if value not in (None, {})}
        for each in (index.settings, settings)
    )
    if found := files.changed_settings(before, now):
        raise ValueError(f"The settings of {folder} differ: {'; '.join(found)}.")
    stored = {name_without_piece(recording.name): recording for recording in index.recordings}
    names = {source.name for source in sources}
    if foreign := [name for name in stored if name not in names]:
        raise ValueError(f"{folder} was made of other recordings, such as {foreign[0]}.")
    for source in sources:
        earlier = stored.get(source.name)
        if earlier and (earlier.source, earlier.description) != (source.state, source.description):
            raise ValueError(f"{source.label} has changed since it was stored in {folder}.")
    return [source for source in sources if source.name not in stored]
