"""Creation and extension of a store. A kill or a full disk does not lose stored recordings."""

from __future__ import annotations

import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from braindecode_pars._common.checks import check_same_rate, is_same_rate, warn_user
from braindecode_pars._common.files import (
    check_may_write,
    differences,
    is_leftover,
    locked,
    plain,
    remove_leftovers,
)
from braindecode_pars._common.subjects import SubjectKeys, normalized
from braindecode_pars.recordings.continuous import ContinuousCorpus, without_left_out
from braindecode_pars.recordings.loading import skipped_message
from braindecode_pars.recordings.preparation import count_left_out
from braindecode_pars.recordings.search import Subject
from braindecode_pars.signal_store.index import (
    INDEX,
    SAMPLES,
    Index,
    LabelWriter,
    StoredRecording,
    cut_off_labels,
)
from braindecode_pars.signal_store.parts import (
    Part,
    check_shares,
    checksum_of_sources,
    recordings_of_part,
)
from braindecode_pars.signal_store.samples import Encoded, Unusable, read_all
from braindecode_pars.signal_store.sources import (
    Preparation,
    Source,
    corpora_of,
    find_sources,
    name_in_store,
    name_without_piece,
    next_number,
)

log = logging.getLogger(__name__)

#: Warnings about stored recordings.
_REMARKS = {
    "clipped": "The type of the store cannot represent both the signal and rare values far outside "
    "its range. Such samples were clipped: {}. Pass dtype='float32' to keep them.",
    "coarse": "int16 is too coarse for the signal, because large values or drifts take up its "
    "range: {}. Remove them with the argument low=, or pass dtype='float32'.",
    "amplitude": "The amplitude is not that of EEG. {}",
}

#: Message about channels, for the recordings and the names.
_MISSING = "Channels in channels= that %s do not have as good EEG channels: %s."

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
    recordings = without_left_out(corpora_of(recordings)) or recordings
    corpora = {corpus.name: dict(corpus.settings) for corpus in corpora_of(recordings)}
    _check_prepared_once(corpora, preparation)
    shares = check_shares(shares, corpora)
    sources = find_sources(recordings, subject)
    chosen = None
    if part is not None:
        chosen = Part(*part, len(sources), checksum_of_sources(sources))
        sources = recordings_of_part(sources, *part)
    _check_contents(folder)
    with _open_locked(folder) as file:
        # A new index, or that of an unfinished store.
        settings = _settings(dtype, preparation, corpora, chosen)
        index = Index.read(folder) if (folder / INDEX).exists() else Index(settings)
        if index.complete and chosen is not None:
            # Jobs of a cluster are submitted again together, also those that have finished.
            _check_settings(folder, _comparable(index.settings), _comparable(settings))
            _not_begun(folder, index, sources, chosen)
            return
        if index.complete:
            raise ValueError(
                f"{folder} is a finished store of {len(index.recordings)} recordings; open it "
                "with SignalStore.open, and add recordings with its method append."
            )
        if index.recordings:
            # Settings that are newer than the store are not set in it.
            nothing = _settings("", Preparation(), {}, None)
            before = {**nothing, **index.settings}
            _check_settings(folder, _comparable(before), _comparable(settings))
        else:  # nothing is stored yet, so the settings may change
            index = Index(settings)
        index.shares = shares  # they decide nothing about the samples
        index.left_out = _people_left_out(recordings)
        sources = _not_begun(folder, index, sources, chosen)
        writer = _Writer(folder, file, index, "the same call resumes after the stored recordings")
        writer.commit()  # an index without recordings marks the folder as a store
        try:
            _store(writer, sources, preparation, on_time=writer.commit_in_time, **reading)
            index.complete = True
            writer.commit()
        except BaseException:
            # Also on Ctrl-C: commit what is stored, so that the next call can resume.
            index.complete = False
            with suppress(OSError):
                writer.commit()
            raise


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
    recordings = without_left_out(corpora_of(recordings), left_out) or recordings
    with _open_locked(folder) as file:
        # The preparation of the store.
        index = Index.read(folder)
        check_finished(folder, index)
        check_same_rate(sfreq, index.sfreq, "The recordings would be", f"the store {folder}")
        preparation = _preparation_of(index)
        _add_corpora(folder, index, corpora_of(recordings), preparation)
        index.left_out = list(dict.fromkeys([*index.left_out, *_people_left_out(recordings)]))
        index.shares = check_shares(index.shares if shares is None else shares, _corpora_of(index))
        if sfreq is not None:
            preparation = replace(preparation, sfreq=index.sfreq)
        # New recordings of a dataset continue the numbers of stored and skipped recordings.
        names = [*(recording.name for recording in index.recordings), *index.skipped]
        sources = find_sources(recordings, subject, max(len(names), next_number(names)))
        writer = _Writer(folder, file, index, "the store is unchanged")
        try:
            sources = _not_stored(folder, index, sources)
            _store(writer, sources, preparation, may_repeat=False, **reading)
            writer.commit()
        except BaseException:
            # Also on Ctrl-C: cut off new samples, and restore the time that the index contains.
            kept = Index.read(folder)
            file.truncate(kept.n_bytes)
            cut_off_labels(folder, kept.labels)
            os.utime(folder / SAMPLES, ns=(time.time_ns(), kept.mtime_ns))
            raise


def _settings(
    dtype: str,
    preparation: Preparation,
    corpora: dict[str, dict[str, Any]],
    part: Part | None,
) -> dict[str, Any]:
    entries = None if part is None else part._asdict()
    return {"dtype": dtype, **asdict(preparation), "corpora": corpora, "part": entries}


def _comparable(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without the checksum of a part's recordings, which are compared by name."""
    part = settings.get("part")
    return settings if part is None else {**settings, "part": {**part, "recordings": None}}


def _people_left_out(recordings: Any) -> list:
    """Return people whom corpora of recipes leave out, each once; none for other recordings."""
    people = (p for corpus in corpora_of(recordings) for p in corpus.people_left_out)
    return list(dict.fromkeys(normalized(plain(person)) for person in people))


def _preparation_of(index: Index) -> Preparation:
    """Preparation of the recordings of a store; settings that are newer than it are not set."""
    others = ("dtype", "corpora", "part")
    return Preparation(**{name: v for name, v in index.settings.items() if name not in others})


def _corpora_of(index: Index) -> dict[str, dict[str, Any]]:
    """Settings of the corpora of recipes in a store, by name."""
    return index.settings.get("corpora", {})


def _check_prepared_once(corpora: Mapping[str, Any], preparation: Preparation) -> None:
    given = [name for name, value in asdict(preparation).items() if value is not None]
    if corpora and given:
        raise ValueError(
            f"The recipe {next(iter(corpora))} prepares its recordings; omit {', '.join(given)}."
        )


def _add_corpora(
    folder: Path, index: Index, corpora: list[ContinuousCorpus], preparation: Preparation
) -> None:
    """Add corpora to the settings of a store. All its recordings are of recipes, or none are."""
    stored = _corpora_of(index)
    new = {corpus.name: dict(corpus.settings) for corpus in corpora}
    if bool(stored) != bool(new):
        of_store, of_call = ("", "not ") if stored else ("not ", "")
        raise ValueError(
            f"{folder} was {of_store}made from recipes, but the new recordings are {of_call}of a "
            "recipe, so they are prepared otherwise; make another store of them."
        )
    _check_prepared_once(new, preparation)
    _check_labels(folder, [*stored.values(), *new.values()])
    for name in stored.keys() & new.keys():
        _check_settings(folder, stored[name], new[name])
    _check_still_trained_on(folder, index, corpora)
    index.settings["corpora"] = {**stored, **new}


def _check_labels(folder: Path, corpora: list[dict[str, Any]]) -> None:
    """Check that all corpora have the same classes, or none has labels."""
    classes = [corpus.get("classes") for corpus in corpora]  # None without labels
    if any(found != classes[0] for found in classes):
        raise ValueError(
            f"The store {folder} and the new recordings have other classes, or only one of them "
            "has labels; make another store of the new recordings."
        )


def _check_still_trained_on(folder: Path, index: Index, corpora: list[ContinuousCorpus]) -> None:
    """Check that no stored recording, or its subject, is left out now, as a new test subject."""
    left_out = {
        name_in_store(corpus, recording)
        for corpus in corpora
        for recording in (*corpus.held_out, *corpus.excluded)
    }
    people = SubjectKeys(person for corpus in corpora for person in corpus.people_left_out)
    stored = [
        r.name
        for r in index.recordings
        if name_without_piece(r.name) in left_out or r.subject in people
    ]
    if stored:
        raise ValueError(
            f"{folder} has {len(stored)} recordings that are left out now, such as {stored[0]}: "
            "they are excluded, or in a validation or test set, which may depend on the subjects "
            "in the folder of the corpus. Make another store, since these would be trained on."
        )


def check_finished(folder: Path, index: Index) -> None:
    """Check that the creation of a store was not interrupted."""
    if not index.complete:
        raise ValueError(
            f"{folder} is an unfinished store: its creation was interrupted after "
            f"{len(index.recordings)} recordings. Run the same SignalStore.create or command "
            "again; it resumes there."
        )


def check_not_truncated(folder: Path, index: Index) -> None:
    """Check that the flat file is not shorter than its index states."""
    n_bytes = (folder / SAMPLES).stat().st_size
    if n_bytes < index.n_bytes:
        raise ValueError(
            f"{folder / SAMPLES} is truncated: it has {n_bytes} bytes, but {INDEX} expects "
            f"{index.n_bytes}. Copy it again, or create the store again."
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
    after_error : str
        State of the store after an error, for the message.
    """

    def __init__(self, folder: Path, file: FileIO, index: Index, after_error: str):
        self.folder = folder
        self.file = file
        self.index = index
        self.after_error = after_error
        self.n_bytes = index.n_bytes
        self.labels = LabelWriter(folder, index.labels)
        self._committed_at = self._cost = 0.0
        check_not_truncated(folder, index)
        file.seek(self.n_bytes)

    def add(self, source: Source, pieces: dict[str, Encoded]) -> None:
        """Append a recording, all its pieces or none. It is permanent after the next commit."""
        n_bytes, added = self.n_bytes, []
        for name, encoded in pieces.items():
            with self._short_errors():
                # Unbuffered files may write only a part.
                unwritten = encoded.stored.reshape(-1).view(np.uint8).data
                while unwritten:
                    unwritten = unwritten[self.file.write(unwritten) :]
            n_clipped = zip(encoded.ch_names, encoded.n_clipped, strict=True)
            added.append(
                StoredRecording(
                    name=name,
                    description=source.description,
                    ch_names=encoded.ch_names,
                    n_times=encoded.stored.shape[1],
                    first_sample=n_bytes // encoded.stored.itemsize,
                    scale=_shortest(encoded.scale),
                    offset=_shortest(encoded.offset),
                    checksum=encoded.checksum,
                    source=source.state,
                    clipped={ch_name: int(n) for ch_name, n in n_clipped if n},
                    positions=encoded.positions,
                    preprocessing=encoded.preprocessing.known(),
                )
            )
            n_bytes += encoded.stored.nbytes
        labels = {name: each.labels for name, each in pieces.items() if each.labels is not None}
        if labels and self.index.sfreq is not None:  # it is that of the first recording
            with self._short_errors():
                self.labels.add(labels, source.description, self.index.sfreq)
        self.index.recordings += added
        self.n_bytes = n_bytes

    def commit(self) -> None:
        """Make all added recordings permanent: first the samples, then the index."""
        start = time.monotonic()
        with self._short_errors():
            self.file.truncate(self.n_bytes)  # cuts off what a kill or a full disk left
            os.fsync(self.file.fileno())
            self.index.labels = self.labels.commit()
            self.index.n_bytes = self.n_bytes
            self.index.mtime_ns = os.fstat(self.file.fileno()).st_mtime_ns
        try:
            self.index.write(self.folder)
        except OSError as error:
            raise type(error)(error.errno, f"{error.strerror}; {self.after_error}") from error
        self._committed_at = time.monotonic()
        self._cost = self._committed_at - start

    def commit_in_time(self) -> None:
        """Commit if the last commit was long ago compared with the duration of a commit."""
        if self._cost < _COMMIT_SHARE * (time.monotonic() - self._committed_at):
            self.commit()

    @contextmanager
    def _short_errors(self) -> Iterator[None]:
        """Add the folder and the state of the store to an OSError."""
        try:
            yield
        except OSError as error:
            raise type(error)(
                error.errno,
                f"{self.folder} cannot be written ({error.strerror}); {self.after_error}",
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
    may_repeat: bool = True,
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
    n_jobs, on_error, verbose
        As in :meth:`SignalStore.create`.
    on_time : callable
        Function that is called after each recording.
    may_repeat : bool
        Whether samples may be stored again under another name. If False, such a recording is
        skipped.
    """
    index = writer.index
    # Names of stored recordings by content.
    stored = {} if may_repeat else {_content(r): r.name for r in index.recordings}
    skipped: list[str] = []
    remarks: dict[str, list[str]] = defaultdict(list)
    left_out: list[dict[str, str]] = []
    missing: dict[tuple[str, ...], list[str]] = defaultdict(list)
    n_pieces = 0
    reading = read_all(sources, preparation, index.settings["dtype"], n_jobs)
    with _explain_kill(writer.after_error), closing(reading) as results:
        bar = tqdm(
            zip(sources, results, strict=True),
            total=len(sources),
            desc="storing",
            unit=" recordings",
            disable=not verbose,
        )
        for source, pieces in bar:
            n_pieces += len(pieces)
            usable, unusable = _sorted_out(source, pieces, index, stored)
            for name, result in unusable.items():
                label = _label_of(source, name)
                if on_error == "raise" and not result.always_skip:
                    raise ValueError(
                        f"{label} cannot be used: {result.reason} (on_error='warn' skips such "
                        f"recordings; {writer.after_error}.)"
                    )
                index.skipped[name] = result.reason
                skipped.append(f"{label}: {result.reason}")
            writer.add(source, usable)
            left_out += [piece.left_out for piece in list(usable.values())[:1]]
            for name, piece in usable.items():
                missing[preparation.missing(piece.ch_names)].append(_label_of(source, name))
                for kind, phrase in _remarks(_label_of(source, name), piece):
                    remarks[kind].append(phrase)
            on_time()
    _log_channels(left_out, missing, logging.WARNING if verbose else logging.INFO)
    nowhere = _missing_everywhere(preparation, index)
    if nowhere:
        warn_user(
            f"No stored recording has {', '.join(nowhere)} of channels= as an EEG channel that is "
            "not marked as bad."
        )
    if skipped:
        warn_user(skipped_message(skipped, n_pieces))
    for kind, phrases in remarks.items():
        warn_user(_REMARKS[kind].format(_listed(phrases)))
    if not index.recordings:
        raise ValueError(f"None of {len(sources)} recordings could be stored.")


@contextmanager
def _explain_kill(after_error: str) -> Iterator[None]:
    """Raise an error that states what is kept when a process that reads was killed."""
    try:
        yield
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "A process that reads recordings was killed, most likely for lack of memory; "
            f"{after_error}. Fewer processes (n_jobs, --jobs) need less memory."
        ) from error


def _label_of(source: Source, piece: str) -> str:
    """Name of a piece of a recording, for messages."""
    return source.label.replace(source.name, piece)


def _missing_everywhere(preparation: Preparation, index: Index) -> list[str]:
    """Return the channels to keep that no stored recording has, such as misspelt ones."""
    montages = {tuple(recording.ch_names) for recording in index.recordings}
    missing = [preparation.missing(ch_names) for ch_names in montages]
    return [name for name in missing[0] if all(name in m for m in missing)] if missing else []


def _log_channels(
    left_out: list[dict[str, str]], missing: dict[tuple[str, ...], list[str]], level: int
) -> None:
    """Log left-out channels in one line, and a line for all recordings that lack the same ones."""
    if (line := count_left_out(left_out)) is not None:
        log.log(level, line)
    for names, labels in missing.items():
        if names:
            recordings = f"{len(labels)} recordings" if len(labels) > 1 else labels[0]
            log.log(level, _MISSING, recordings, ", ".join(names))


def _remarks(label: str, encoded: Encoded) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of what a user should know of a stored recording."""
    counts = dict(zip(encoded.ch_names, encoded.n_clipped, strict=True))
    clipped = [f"{name} {n} of {encoded.stored.shape[1]}" for name, n in counts.items() if n]
    if clipped:
        yield "clipped", f"{label} ({', '.join(clipped)})"
    coarse = np.array(encoded.ch_names)[encoded.coarse]
    if len(coarse):
        yield "coarse", f"{label} ({', '.join(coarse)})"
    if encoded.amplitude_problem:
        yield "amplitude", f"{label}: {encoded.amplitude_problem}"


def _listed(phrases: list[str]) -> str:
    more = f" and {len(phrases) - 20} more recordings" if len(phrases) > 20 else ""
    return f"{'; '.join(phrases[:20])}{more}"


def _sorted_out(
    source: Source, pieces: list[Encoded | Unusable], index: Index, stored: dict[tuple, str]
) -> tuple[dict[str, Encoded], dict[str, Unusable]]:
    """Return the pieces of a recording that can be stored, and the others, by name."""
    usable, unusable = {}, {}
    index.skipped.pop(source.name, None)  # by an earlier call
    for name, piece in zip(source.names_of_pieces(len(pieces)), pieces, strict=True):
        piece = _of_one_rate(piece, index)
        if isinstance(piece, Encoded) and _content(piece) in stored:
            twin = stored[_content(piece)]
            piece = Unusable(f"it is already stored as {twin}.", always_skip=True)
        if isinstance(piece, Encoded):
            usable[name] = piece
        else:
            unusable[name] = piece
    return usable, unusable


def _of_one_rate(result: Encoded | Unusable, index: Index) -> Encoded | Unusable:
    """Check the sampling rate of a recording; the first recording sets the rate of the store."""
    if isinstance(result, Unusable):
        return result
    if index.sfreq is None:
        index.sfreq = result.sfreq
    if is_same_rate(result.sfreq, index.sfreq):
        return result
    return Unusable(
        f"it is sampled at {result.sfreq:g} Hz, earlier recordings at {index.sfreq:g} Hz; pass "
        "sfreq= to resample all recordings to one rate."
    )


def _content(recording: Encoded | StoredRecording) -> tuple:
    """Return a key that is equal for recordings with the same samples and channels."""
    scale, offset = (tuple(map(float, map(str, v))) for v in (recording.scale, recording.offset))
    return recording.checksum, tuple(recording.ch_names), scale, offset


def _shortest(values: np.ndarray) -> list[float]:
    """Convert single-precision numbers to floats with the fewest digits, for a short index."""
    return [float(str(value)) for value in values]


@contextmanager
def _open_locked(folder: Path) -> Iterator[FileIO]:
    """Lock the folder and open the flat file for writing."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    message = f"Another process is writing {folder}; wait until it has finished."
    # Processes that a killed one has started may hold its lock for a moment.
    with locked(folder, message, wait=2):
        remove_leftovers(folder)
        descriptor = os.open(folder / SAMPLES, flags, 0o666)
        with open(descriptor, "r+b", buffering=0) as file:
            yield file


def _check_contents(folder: Path) -> None:
    """Check that a folder is new, empty or a store."""
    # A process that was killed at the very beginning leaves a lock and an empty file of samples.
    samples = folder / SAMPLES
    begun = samples.is_file() and not samples.stat().st_size and not _others(folder)
    is_store = (folder / INDEX).exists()
    check_may_write(folder, "a store", is_ours=begun or is_store)
    if is_store:
        Index.read(folder)  # another program may have written a file of this name


def _others(folder: Path) -> list[Path]:
    return [f for f in folder.iterdir() if f.name != SAMPLES and not is_leftover(f)]


def _check_settings(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    found = differences(before, now)
    if found:
        raise ValueError(
            f"The store {folder} was started with other settings: {'; '.join(found)}. Pass another "
            "folder, or the earlier settings to resume."
        )


def _not_begun(
    folder: Path, index: Index, sources: list[Source], part: Part | None
) -> list[Source]:
    """Return recordings that an earlier, equal call has not stored; check that it was equal."""
    _check_same_recordings(folder, index, {source.name for source in sources})
    sources = _not_stored(folder, index, sources)
    _check_same_division(folder, Part.of(index.settings), part)
    return sources


def _not_stored(folder: Path, index: Index, sources: list[Source]) -> list[Source]:
    """Return recordings that are not stored yet; check that stored ones have not changed."""
    stored = {name_without_piece(recording.name): recording for recording in index.recordings}
    for source in sources:
        earlier = stored.get(source.name)
        if earlier and (earlier.source, earlier.description) != (source.state, source.description):
            raise ValueError(
                f"{source.label} has changed since it was stored in {folder}; pass another folder "
                "to store the new version."
            )
    return [source for source in sources if source.name not in stored]


def _check_same_recordings(folder: Path, index: Index, given: set[str]) -> None:
    stored = (name_without_piece(recording.name) for recording in index.recordings)
    foreign = [name for name in stored if name not in given]
    if foreign:
        raise ValueError(
            f"The store {folder} was started with other recordings: it contains {foreign[0]}, "
            "which is not in recordings. Pass another folder, or the earlier recordings."
        )


def _check_same_division(folder: Path, before: Part | None, now: Part | None) -> None:
    """Check that a part is resumed with the recordings of the other parts unchanged, too."""
    if before is not None and now is not None and before.recordings != now.recordings:
        raise ValueError(
            f"{folder} was started as part {before.number} of {before.n_parts} of other "
            f"{before.n_recordings:,} recordings: those of other parts have changed meanwhile. "
            "Create all parts again from the same recordings, in new folders."
        )
