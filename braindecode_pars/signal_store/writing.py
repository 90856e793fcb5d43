"""Creation of a store. A kill or a full disk loses no recording.

Recordings are read, prepared and encoded in parallel; results keep the order of the recordings.
"""

from __future__ import annotations

import logging
import os
import re
import time
import warnings
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import mne
import numpy as np
import pandas as pd
from scipy.stats import median_abs_deviation

from braindecode_pars._common import checks, files, training
from braindecode_pars.recordings import as_trained, cutting, loading, recipe, search
from braindecode_pars.signal_store.index import (
    COLUMNS,
    SAMPLES,
    WINDOWS,
    Index,
    StoredRecording,
    check_labels,
    is_store,
    labels_of_pieces,
    resampled_labels,
    rows_of_labels,
)
from braindecode_pars.signal_store.sources import (
    SkippedError,
    Source,
    StoredForm,
    corpora_of,
    encode,
    find_sources,
)
from braindecode_pars.windows import amplitudes, marks, preprocessing

log = logging.getLogger(__name__)

#: Warnings about stored recordings, by the kind of the problem.
_WARNINGS = {
    "clipped": "Samples far outside the range of the type were clipped: {}. Pass dtype='float32' "
    "to keep them.",
    "coarse": "int16 is too coarse for the signal, because large values or drifts take up its "
    "range: {}. Remove them with the argument low=, or pass dtype='float32'.",
    "flat": "Channels are flat or clipped in more than a quarter of the recording: {}. Mark them "
    "as bad.",
    "amplitude": "The amplitude is not that of EEG. {}",
    "rows": "Not used: {}.",
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
    options = [name for name, value in asdict(preparation).items() if value is not None]
    if corpora and options:
        raise ValueError(f"{corpora[0].name} prepares its recordings; omit {', '.join(options)}.")
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
    """Append recordings to the flat file, their windows to the table, and both to the index.

    There is no table until a recording has labels.

    Parameters
    ----------
    folder : Path
        Folder of the store.
    file : FileIO
        Flat file, locked.
    index : Index
        Index of the recordings in the file. Bytes after these recordings are overwritten or cut
        off, and rows of the table after its windows.
    """

    def __init__(self, folder: Path, file: FileIO, index: Index):
        self.folder = folder
        self.file = file
        self.index = index
        self.n_bytes = index.n_bytes
        self.table = bytearray(check_labels(folder, index.labels))
        self.n_windows = index.labels.get("n_windows", 0)
        self.kind = index.labels.get("kind")
        self._committed_at = self._cost = 0.0
        check_not_truncated(folder, index)
        file.seek(self.n_bytes)

    def add(self, source: Source, pieces: list[Encoded]) -> None:
        """Append a recording, all its pieces or none, and commit if it is time.

        Raises
        ------
        ValueError
            When the labels are of another type than those before.
        """
        n_bytes, added = self.n_bytes, []
        for piece in pieces:
            # Unbuffered files may write only a part.
            unwritten = piece.stored.reshape(-1).view(np.uint8).data
            while unwritten:
                unwritten = unwritten[self.file.write(unwritten) :]
            first = n_bytes // piece.stored.itemsize
            added.append(replace(piece.recording, first_sample=first))
            n_bytes += piece.stored.nbytes
        tables = {p.recording.name: p.labels for p in pieces if p.labels is not None}
        labels = [label for table in tables.values() for label in table["target"]]
        kinds = {type(label).__name__ for label in labels} | {self.kind} - {None}
        if len(kinds) > 1:
            raise ValueError(
                f"{next(iter(tables))} and recordings before it have labels of different "
                f"types ({', '.join(sorted(map(str, kinds)))}); use one type."
            )
        if labels and self.index.sfreq is not None:  # it is that of the first recording
            self.kind = kinds.pop()
            self.n_windows += len(labels)
            self.table += b"" if self.table else COLUMNS
            for name, table in tables.items():
                self.table += rows_of_labels(name, table, source.description, self.index.sfreq)
        self.index.recordings += added
        self.n_bytes = n_bytes
        # Commit if the last commit was long ago compared with the duration of a commit.
        if self._cost < _COMMIT_SHARE * (time.monotonic() - self._committed_at):
            self.commit()

    def commit(self) -> None:
        """Make all added recordings permanent: first the samples, then the index."""
        start = time.monotonic()
        self.file.truncate(self.n_bytes)  # cuts off what a kill or a full disk left
        os.fsync(self.file.fileno())
        if self.table:
            table = bytes(self.table)
            files.replace_file(self.folder / WINDOWS, table)
            described = dict(n_windows=self.n_windows, n_bytes=len(table), kind=self.kind)
            self.index.labels = {**described, "checksum": files.checksum_of(table)}
        self.index.n_bytes = self.n_bytes
        self.index.mtime_ns = os.fstat(self.file.fileno()).st_mtime_ns
        self.index.write(self.folder)
        self._committed_at = time.monotonic()
        self._cost = self._committed_at - start


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
    levels: dict[str, float] = {}
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
            left_out += [name for piece in usable[:1] for name in piece.left_out]
            problems += [(k, f"{p.label} ({text})") for p in usable for k, text in p.problems]
            # One with an amplitude that EEG cannot have is named for that.
            levels |= {p.label: p.level for p in usable if "amplitude" not in dict(p.problems)}
            writer.add(source, usable)
    if left_out:
        level = logging.WARNING if verbose else logging.INFO
        listed = checks.format_list([*dict.fromkeys(left_out)])
        log.log(level, "Channels that are not EEG, bad or not chosen are left out: %s.", listed)
    _warn_of_problems(problems)
    if len(outliers := amplitudes.is_outlier(pd.Series(levels, dtype=float))):
        checks.warn_user(amplitudes.other_units_text(outliers.tolist(), len(levels)))
    common_steps = preprocessing.agreed([recording.prepared for recording in index.recordings])
    stored = dict.fromkeys(name for recording in index.recordings for name in recording.ch_names)
    preprocessing.warn_of_average(common_steps.reference, [*stored])
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


def _warn_of_problems(problems: list[tuple[str, str]]) -> None:
    """Warn about problems of the signals, by their kind."""
    for kind, text in _WARNINGS.items():
        if problem_texts := [what for of, what in problems if of == kind]:
            checks.warn_user(text.format(checks.format_list(problem_texts, 20)))


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
        {name: value for name, value in option_values.items() if value not in (None, {})}
        for option_values in (index.settings, settings)
    )
    if changes := files.changed_settings(before, now):
        raise ValueError(f"The settings of {folder} differ: {'; '.join(changes)}.")
    # A recording is stored as pieces between gaps, such as "night.edf#2".
    stored = {re.sub(r"#\d+$", "", recording.name): recording for recording in index.recordings}
    names = {source.name for source in sources}
    if foreign := [name for name in stored if name not in names]:
        raise ValueError(f"{folder} was made of other recordings, such as {foreign[0]}.")
    for source in sources:
        earlier = stored.get(source.name)
        if earlier and (earlier.source, earlier.description) != (source.state, source.description):
            raise ValueError(f"{source.label} has changed since it was stored in {folder}.")
    return [source for source in sources if source.name not in stored]


# Reading and encoding -----------------------------------------------------------------------------

#: Number of samples of the parts whose amplitude is checked.
_CROP = 3000


class Encoded(NamedTuple):
    """A recording, or a piece of it between gaps, as it is stored; ``first_sample`` is still 0.

    Attributes
    ----------
    recording : StoredRecording
        Its entry in the index.
    stored : ndarray, shape (n_chans, n_times)
        Numbers to store.
    sfreq : float
        Sampling rate in Hz.
    labels : DataFrame | None
        Its labeled windows.
    label : str
        Name for messages.
    left_out : list of str
        Names of its channels that are not stored.
    problems : list of (str, str)
        Problems "clipped", "coarse", "amplitude" and "rows", with what to say of them.
    level : float
        Decimal logarithm of its median deviation, to compare recordings; NaN of a flat one.
    """

    recording: StoredRecording
    stored: np.ndarray
    sfreq: float
    labels: pd.DataFrame | None
    label: str
    left_out: list[str]
    problems: list[tuple[str, str]]
    level: float


class Unusable(NamedTuple):
    """A piece of a recording, or a whole recording, that cannot be stored.

    Attributes
    ----------
    name, label : str
        Name in the store, and name for messages.
    reason : str
        Reason, for a message.
    always_skip : bool
        Whether the recording is skipped even with ``on_error="raise"``.
    """

    name: str
    label: str
    reason: str
    always_skip: bool = False


def read_all(
    sources: list[Source], preparation: StoredForm, dtype: str, n_jobs: int
) -> Generator[list[Encoded | Unusable], None, None]:
    """Yield the pieces of each source, in the order of the sources; one piece without gaps."""
    # Without max_nbytes=None, joblib would write large arrays to temporary files.
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator", max_nbytes=None)
    # joblib reads ahead even when results are not used yet; small chunks limit the memory.
    chunk_size = 8 * joblib.effective_n_jobs(n_jobs)
    for first in range(0, len(sources), chunk_size):
        chunk = sources[first : first + chunk_size]
        results = parallel(joblib.delayed(_read)(source, preparation, dtype) for source in chunk)
        try:
            for result in results:  # noqa: UP028, "yield from" would close results too early
                yield result
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib warns about results that are not used
                results.close()


def _read(source: Source, preparation: StoredForm, dtype: str) -> list[Encoded | Unusable]:
    try:
        with cutting.collect_excluded_items() as omissions:
            raw, labels = source.open()
        pieces = cutting.split_at_gaps(raw)
        if not pieces:
            raise ValueError("it has no samples.")
        tables: Sequence[pd.DataFrame | None] = [None] * len(pieces)
        if labels is not None:
            tables = labels_of_pieces(labels, marks.continuous_stretches(raw), raw.info["sfreq"])
    except Exception as error:  # the caller names the recording, whatever error a reader raises
        return [_unusable(source, source.name, error)]
    for omission in omissions:
        cutting.record_excluded(*omission[:4], is_requested=omission.is_requested)
    names = [source.name]
    if len(pieces) > 1:
        names = [f"{source.name}#{i + 1}" for i in range(len(pieces))]
    results: list[Encoded | Unusable] = []
    for name, piece, table in zip(names, pieces, tables, strict=True):
        try:
            results.append(_encoded(source, name, piece, table, preparation, dtype))
        except Exception as error:
            results.append(_unusable(source, name, error))
    if isinstance(results[0], Encoded):
        row_omissions = [omission for omission in omissions if omission.what in ("rows", "signals")]
        results[0].problems.extend(("rows", str(omission)) for omission in row_omissions)
    return results


def _unusable(source: Source, name: str, error: Exception) -> Unusable:
    label = source.label.replace(source.name, name)
    reason = str(error) or type(error).__name__
    return Unusable(name, label, reason, isinstance(error, SkippedError))


def _encoded(
    source: Source,
    name: str,
    piece: mne.io.BaseRaw,
    labels: pd.DataFrame | None,
    preparation: StoredForm,
    dtype: str,
) -> Encoded:
    signals, ch_names, sfreq, prepared = preparation.apply(piece, source.steps)
    stored, scale, offset, n_clipped, coarse = encode(signals, ch_names, dtype)
    n_times = signals.shape[1]
    clipped = {ch: int(n) for ch, n in zip(ch_names, n_clipped, strict=True) if n}
    positions = {}
    if labels is not None:
        labels = resampled_labels(labels, piece.info["sfreq"], sfreq, n_times)
        # MNE uses NaN or zeros for a position that is not set.
        locations = {ch["ch_name"]: ch["loc"][:3] for ch in piece.info["chs"]}
        known = {ch: p for ch, p in locations.items() if np.isfinite(p).all() and p.any()}
        positions = {ch: p.tolist() for ch, p in known.items() if ch in ch_names}
    recording = StoredRecording(
        name=name,
        description=source.description,
        ch_names=ch_names,
        n_times=n_times,
        first_sample=0,
        # Floats with the fewest digits, for a short index
        scale=[float(str(value)) for value in scale],
        offset=[float(str(value)) for value in offset],
        checksum=files.checksum_of(stored),
        source=source.state,
        clipped=clipped,
        positions=positions,
        preprocessing=prepared.known(),
    )
    # The amplitude of parts of the recording, at equal distances
    length = min(_CROP, n_times)
    numbers = amplitudes.spread_out(n_times // length, amplitudes.N_WINDOWS)
    parts = [signals[:, i * length : (i + 1) * length] for i in numbers]
    spread = np.concatenate([median_abs_deviation(part, axis=1) for part in parts])
    level = float(np.log10(np.median(spread[spread > 0]))) if spread.any() else np.nan
    problems = dict(
        clipped=", ".join(f"{ch} {n} of {n_times}" for ch, n in clipped.items()),
        coarse=", ".join(np.array(ch_names)[coarse]),
        flat=", ".join(as_trained.flat_clipped_channels(piece, ch_names)),
        # A file is read in volts.
        amplitude=amplitudes.amplitude_problem(
            parts, 1.0 if isinstance(source.origin, Path) else prepared.scale
        ),
    )
    left_out = [ch for ch in piece.ch_names if ch not in ch_names]
    found_problems = [(kind, text) for kind, text in problems.items() if text]
    label = source.label.replace(source.name, name)
    return Encoded(recording, stored, sfreq, labels, label, left_out, found_problems, level)
