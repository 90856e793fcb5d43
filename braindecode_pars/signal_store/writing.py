"""Create a store. Recordings that were stored remain if the call is killed or the disk is full.

Recordings are read, preprocessed and encoded in parallel, and stored in their original order.
"""

from __future__ import annotations

import logging
import os
import re
import time
import warnings
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, replace
from io import FileIO
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import mne
import numpy as np
import pandas as pd
from scipy.stats import median_abs_deviation

from braindecode_pars._common import checks, files, findings, training
from braindecode_pars._common.findings import Finding
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.recordings import as_trained, cutting, recipe, search
from braindecode_pars.signal_store.index import (
    COLUMNS,
    INDEX,
    SAMPLES,
    WINDOWS,
    Index,
    StoredRecording,
    check_labels,
    labels_of_segments,
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

#: Warnings about stored recordings, by kind of problem. The braces are replaced with recordings and
#: details of the problem, such as channels.
_WARNINGS = {
    "clipped": "Large artifacts were clipped, because samples are stored as int16. Number of "
    "clipped samples: {}. Pass dtype='float32' to store recordings without clipping.",
    "coarse": "The steps of int16 are too coarse for the signal of some channels, because these "
    "channels have large artifacts or drifts: {}. Apply a high-pass filter (argument low), or pass "
    "dtype='float32'.",
    "flat": "Some channels are flat or clipped for more than a quarter of the recording: {}. Mark "
    "these channels as bad.",
    "amplitude": "The amplitude is implausible for EEG in these recordings: {}",
    "rows": "Some labels or signals of recordings were excluded: {}.",
}

#: Maximum proportion of the run time that is spent on commits. A commit writes the recordings that
#: were added to disk, together with an index of the store that includes these recordings.
_MAX_COMMIT_TIME = 0.05


def create(
    folder: Path,
    recordings: Any,
    subject: search.Subject,
    preparation: StoredForm,
    dtype: str,
    shares: Mapping[str, float],
    **reading: Any,
) -> None:
    """Create a store, or add recordings that are not in the store yet.

    Recordings are committed (written to disk together with the index) at intervals, and when an
    error or Ctrl-C ends the call. See :meth:`SignalStore.create` for the arguments.

    Raises
    ------
    ValueError
        If no recording can be stored. If the folder is neither empty nor a store. If the store was
        created with different arguments or from other recordings; the message lists the
        differences.
    """
    corpora = recipe.without_left_out(corpora_of(recordings))
    of_corpora = {corpus.name: dict(corpus.settings) for corpus in corpora}
    options = [name for name, value in asdict(preparation).items() if value is not None]
    if corpora and options:
        raise ValueError(
            f"The preprocessing of a corpus is defined by its recipe, here {corpora[0].name}. "
            f"Omit these arguments: {', '.join(options)}."
        )
    shares = check_shares(shares, of_corpora)
    sources = find_sources(corpora or recordings, subject)
    settings = {"dtype": dtype, **asdict(preparation), "corpora": of_corpora}
    # If an earlier call was killed early, the folder contains only an empty file of samples.
    samples = folder / SAMPLES
    begun = samples.is_file() and samples.stat().st_size == 0
    store = ResultsFolder(
        folder,
        "a store",
        _not_default(settings),
        marks=(INDEX,),
        allowed_files=(SAMPLES,) if begun else (),
    )
    if store.is_ours:
        Index.read(folder)  # raises an error if another program wrote a file with this name
    with store.opened(), open(samples, "ab", buffering=0) as file:
        index = Index.read(folder) if store.is_ours else Index(settings=settings)
        if index.complete and not all(isinstance(source.origin, Path) for source in sources):
            raise ValueError(
                f"{folder} already contains a complete store, to which recordings of a dataset "
                "cannot be added. Open the store with SignalStore.open, or pass a new folder."
            )
        if index.recordings:
            sources = _not_stored(store, index, sources)
        else:  # no recording is stored yet, so the settings may change
            index = Index(settings=settings)
        index.shares = shares  # can be changed, because samples do not depend on the proportions
        writer, was_complete = _Writer(folder, file, index), index.complete
        writer.commit()  # an index without recordings marks the folder as a store
        try:
            _store(writer, sources, preparation, **reading)
            index.complete = True
            writer.commit()
        except BaseException:
            # After an error or Ctrl-C, commit the added recordings, so that the next call resumes.
            index.complete = was_complete
            with suppress(OSError):
                writer.commit()
            raise


def check_shares(shares: Mapping[str, Any], corpora: Collection[str]) -> dict[str, float]:
    """Check the relative proportions of the corpora in pretraining, and return them as floats.

    Parameters
    ----------
    shares : mapping of str to float
        Relative proportion of each corpus, by name.
    corpora : collection of str
        Names of the corpora in the store.

    Returns
    -------
    dict of str to float
        The proportions as floats.

    Raises
    ------
    TypeError, ValueError
        If a proportion is not a positive number, or if the names in ``shares`` and ``corpora``
        differ.
    """
    if shares and set(shares) != set(corpora):
        names = ", ".join(corpora) or "no corpora, because it was created without recipes"
        raise ValueError(
            f"shares must contain a proportion for each corpus in the store ({names}), and no "
            f"other names. Got: {', '.join(map(str, shares))}."
        )
    for name, share in shares.items():
        checks.positive().check(f"shares[{name!r}]", share)
    return {name: float(share) for name, share in shares.items()}


def check_not_truncated(folder: Path, index: Index) -> None:
    """Check that the file of samples is at least as long as the index states."""
    n_bytes = (folder / SAMPLES).stat().st_size
    if n_bytes < index.n_bytes:
        raise ValueError(
            f"{folder / SAMPLES} is truncated: it has {n_bytes} of {index.n_bytes} bytes. Restore "
            "the file from another copy of the store, or create the store again."
        )


class _Writer:
    """Append recordings to the three files of a store: samples, table of windows, and index.

    The table of windows is created when the first recording with labels is added.

    Parameters
    ----------
    folder : Path
        Folder of the store.
    file : FileIO
        File of samples, opened in append mode. No other process may write to it.
    index : Index
        Index of the recordings that the store already contains. If an earlier call was killed,
        ``samples.bin`` and ``windows.csv`` may contain data after these recordings; such data are
        removed or overwritten.
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

    def add(self, source: Source, pieces: list[Encoded]) -> None:
        """Append all segments of a recording, and commit if the last commit was long ago.

        Raises
        ------
        ValueError
            If the labels have a different type than the labels of earlier recordings, such as
            strings instead of integers.
        """
        n_bytes, added = self.n_bytes, []
        for piece in pieces:
            # One call of write may write only a part of the samples.
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
                f"The labels of {next(iter(tables))} and of earlier recordings have different "
                f"types ({', '.join(sorted(map(str, kinds)))}). Use labels of the same type in all "
                "recordings."
            )
        if labels and self.index.sfreq is not None:  # sfreq is known after the first recording
            self.kind = kinds.pop()
            self.n_windows += len(labels)
            self.table += b"" if self.table else COLUMNS
            for name, table in tables.items():
                self.table += rows_of_labels(name, table, source.description, self.index.sfreq)
        self.index.recordings += added
        self.n_bytes = n_bytes
        # Commit if the time since the last commit is long compared with the duration of a commit.
        if self._cost < _MAX_COMMIT_TIME * (time.monotonic() - self._committed_at):
            self.commit()

    def commit(self) -> None:
        """Write all added recordings to disk: samples and table of windows, then the index."""
        start = time.monotonic()
        self.file.truncate(self.n_bytes)  # remove incomplete recordings of a failed call
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
    """Read recordings, add them to the store, and warn about skipped recordings and problems.

    Parameters
    ----------
    writer : _Writer
        Object that writes the files of the store.
    sources : list of Source
        Recordings to read.
    preparation : StoredForm
        Preprocessing that is applied to each recording.
    n_jobs, on_error, verbose
        See :meth:`SignalStore.create`.
    """
    index, dtype = writer.index, writer.index.settings["dtype"]
    stored_pieces: list[Encoded] = []
    skipped: list[str] = []
    with closing(read_all(sources, preparation, dtype, n_jobs)) as results:
        bar = training.ProgressBar(
            zip(sources, results, strict=True),
            total=len(sources),
            desc="storing",
            unit=" recordings",
            disable=not verbose,
        )
        for source, pieces in bar:
            index.skipped.pop(source.name, None)  # an earlier call may have skipped the recording
            usable = []
            for piece in (_checked(piece, index) for piece in pieces):
                if isinstance(piece, Encoded):
                    usable.append(piece)
                    continue
                if on_error == "raise" and not piece.always_skip:
                    raise ValueError(
                        f"{piece.label} cannot be stored: {piece.reason} To skip recordings that "
                        "cannot be stored, pass on_error='warn'. Recordings that were stored "
                        "before this error remain; the same call resumes after the last of them."
                    )
                index.skipped[piece.name] = piece.reason
                skipped.append(f"{piece.label}: {piece.reason}")
            writer.add(source, usable)
            stored_pieces += [piece._replace(stored=np.empty(0), labels=None) for piece in usable]
    _warn_of_problems(stored_pieces, verbose)
    if index.recordings:
        _warn_of_channels(index, preparation)
    if skipped:
        values = dict(n_recordings=len(stored_pieces) + len(skipped), reasons=skipped)
        findings.warn(Finding("skipped_recordings", values))
    if not index.recordings:
        raise ValueError(
            f"No recording could be stored (number of recordings: {len(sources)}). The warning "
            "before this error contains the reasons."
        )


def _checked(piece: Encoded | Unusable, index: Index) -> Encoded | Unusable:
    """Return ``piece``, or Unusable if its sampling rate differs from earlier recordings."""
    if isinstance(piece, Unusable):
        return piece
    index.sfreq = piece.sfreq if index.sfreq is None else index.sfreq
    if checks.is_same_rate(piece.sfreq, index.sfreq):
        return piece
    reason = (
        f"its sampling rate is {piece.sfreq:g} Hz, but the sampling rate of earlier recordings is "
        f"{index.sfreq:g} Hz. To resample all recordings, create a new store with the argument "
        "sfreq."
    )
    return Unusable(piece.recording.name, piece.label, reason)


def _warn_of_problems(pieces: list[Encoded], verbose: int) -> None:
    """Issue one warning for each kind of signal problem, and log the excluded channels."""
    if left_out := dict.fromkeys(name for piece in pieces for name in piece.left_out):
        severity = logging.WARNING if verbose else logging.INFO
        text = "Excluded channels (not EEG, marked as bad, or not in the argument channels): %s."
        log.log(severity, text, checks.format_list([*left_out]))
    for kind, template in _WARNINGS.items():
        texts = [f"{p.label} ({p.problems[kind]})" for p in pieces if kind in p.problems]
        if texts:
            checks.warn_user(template.format(checks.format_list(texts, 20)))
    # Recordings with an implausible amplitude were already reported above.
    log_amplitudes = {p.label: p.log_amplitude for p in pieces if "amplitude" not in p.problems}
    outliers = amplitudes.find_outlier_recordings(pd.Series(log_amplitudes, dtype=float))
    if len(outliers):
        findings.warn(amplitudes.outlier_finding(outliers.tolist(), len(log_amplitudes)))


def _warn_of_channels(index: Index, preparation: StoredForm) -> None:
    """Warn about unusual channels in an average reference, and about missing channels.

    A requested channel is missing if no stored recording contains it.
    """
    names = [recording.ch_names for recording in index.recordings]
    steps = preprocessing.agreed([recording.known_preprocessing for recording in index.recordings])
    preprocessing.warn_of_average(steps.reference, [*dict.fromkeys(chain.from_iterable(names))])
    missing = set(preparation.channels or ()).intersection(*map(preparation.missing, names))
    if missing:
        checks.warn_user(
            "These requested channels are missing or marked as bad in all stored recordings: "
            f"{', '.join(sorted(missing))}. Check the names in channels=."
        )


def _not_default(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value not in (None, {})}


def _not_stored(store: ResultsFolder, index: Index, sources: list[Source]) -> list[Source]:
    """Return the recordings that are not in the store yet.

    Before that, check that settings and recordings of the store are the same as in this call.
    """
    store.check_settings(_not_default(index.settings))
    # Segments between gaps have names such as "night.edf#2".
    stored = {re.sub(r"#\d+$", "", recording.name): recording for recording in index.recordings}
    names = {source.name for source in sources}
    if foreign := [name for name in stored if name not in names]:
        raise ValueError(
            f"The store {store.path} contains recordings that were not passed in this call, such "
            f"as {foreign[0]}. Pass a new folder, or the same recordings as before."
        )
    for source in sources:
        earlier = stored.get(source.name)
        if earlier and (earlier.source, earlier.description) != (source.state, source.description):
            raise ValueError(
                f"{source.label} has changed since it was stored in {store.path}. Create a new "
                "store in another folder."
            )
    return [source for source in sources if source.name not in stored]


# Reading and encoding -----------------------------------------------------------------------------

#: Length in samples of the excerpts in which the amplitude of a recording is checked.
_CROP = 3000


class Encoded(NamedTuple):
    """Recording, or segment of a recording between gaps, that is ready to be stored.

    Attributes
    ----------
    recording : StoredRecording
        Entry of the recording in the index. Its attribute ``first_sample`` is set later, when the
        samples are written.
    stored : ndarray, shape (n_chans, n_times)
        Samples, converted to the numbers that are stored.
    sfreq : float
        Sampling rate in Hz.
    labels : DataFrame | None
        Labeled windows of the recording.
    label : str
        Name of the recording in messages.
    left_out : list of str
        Names of channels that are not stored.
    problems : dict of str to str
        Details of each problem, by kind of problem ("clipped", "coarse", "flat", "amplitude" or
        "rows").
    log_amplitude : float
        Decimal logarithm of the amplitude (median absolute deviation), to find outliers among the
        recordings. NaN for a flat recording.
    """

    recording: StoredRecording
    stored: np.ndarray
    sfreq: float
    labels: pd.DataFrame | None
    label: str
    left_out: list[str]
    problems: dict[str, str]
    log_amplitude: float


class Unusable(NamedTuple):
    """Recording, or segment of a recording, that cannot be stored.

    Attributes
    ----------
    name, label : str
        Name of the recording in the store, and name in messages.
    reason : str
        Reason why the recording cannot be stored, for messages.
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
    """Read and encode recordings in parallel, and yield the results in the order of ``sources``.

    Parameters
    ----------
    sources : list of Source
        Recordings to read.
    preparation : StoredForm
        Preprocessing of the recordings.
    dtype : str
        Data type of the stored samples.
    n_jobs : int
        Number of processes, as in joblib.

    Yields
    ------
    list of (Encoded | Unusable)
        Segments of one recording between gaps: encoded, or the reason why they cannot be stored.
    """
    # With the default value of max_nbytes, joblib would write large arrays to temporary files.
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator", max_nbytes=None)
    # joblib reads recordings before they are needed. Small chunks limit the memory.
    chunk_size = 8 * joblib.effective_n_jobs(n_jobs)
    for first in range(0, len(sources), chunk_size):
        chunk = sources[first : first + chunk_size]
        results = parallel(joblib.delayed(_read)(source, preparation, dtype) for source in chunk)
        try:
            for result in results:  # noqa: UP028, "yield from" would close results too early
                yield result
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib warns about unused results
                results.close()


def _read(source: Source, preparation: StoredForm, dtype: str) -> list[Encoded | Unusable]:
    try:
        with cutting.collect_excluded_items() as omissions:
            raw, labels = source.open()
        pieces = cutting.split_at_gaps(raw)
        if not pieces:
            raise ValueError("the recording has no samples.")
        tables: Sequence[pd.DataFrame | None] = [None] * len(pieces)
        if labels is not None:
            tables = labels_of_segments(labels, marks.continuous_segments(raw), raw.info["sfreq"])
    except Exception as error:  # readers of files raise errors of many types
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
    rows = [str(omission) for omission in omissions if omission.what in ("rows", "signals")]
    if rows and isinstance(results[0], Encoded):
        results[0].problems["rows"] = "; ".join(rows)
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
    signals, ch_names, sfreq, applied = preparation.apply(piece, source.steps)
    stored, scale, offset, n_clipped, coarse = encode(signals, ch_names, dtype)
    n_times = signals.shape[1]
    clipped = {ch: int(n) for ch, n in zip(ch_names, n_clipped, strict=True) if n}
    positions = {}
    if labels is not None:
        labels = resampled_labels(labels, piece.info["sfreq"], sfreq, n_times)
        # In MNE, the coordinates of an unknown position are NaN or zeros.
        locations = {ch["ch_name"]: ch["loc"][:3] for ch in piece.info["chs"]}
        positions = {
            ch: location.tolist()
            for ch, location in locations.items()
            if ch in ch_names and np.isfinite(location).all() and location.any()
        }
    recording = StoredRecording(
        name=name,
        description=source.description,
        ch_names=ch_names,
        n_times=n_times,
        first_sample=0,
        # Write float32 values with as few digits as possible, for a short index.
        scale=[float(str(value)) for value in scale],
        offset=[float(str(value)) for value in offset],
        checksum=files.checksum_of(stored),
        source=source.state,
        clipped=clipped,
        positions=positions,
        preprocessing=applied.known(),
    )
    # Compute the amplitude in equidistant excerpts of the recording.
    length = min(_CROP, n_times)
    numbers = amplitudes.evenly_spaced(n_times // length, amplitudes.N_WINDOWS)
    excerpts = [signals[:, i * length : (i + 1) * length] for i in numbers]
    deviations = np.concatenate([median_abs_deviation(excerpt, axis=1) for excerpt in excerpts])
    amplitude = np.median(deviations[deviations > 0]) if deviations.any() else np.nan
    # Samples of files are in volts; the unit of a recording in memory is in its preprocessing.
    volts_to_unit = 1.0 if isinstance(source.origin, Path) else applied.scale
    problem = amplitudes.amplitude_problem(excerpts, volts_to_unit)
    details = dict(
        clipped=", ".join(f"{ch} {n} of {n_times}" for ch, n in clipped.items()),
        coarse=", ".join(np.array(ch_names)[coarse]),
        flat=", ".join(as_trained.flat_clipped_channels(piece, ch_names)),
        amplitude=problem.text if problem else "",
    )
    problems = {kind: text for kind, text in details.items() if text}
    left_out = [ch for ch in piece.ch_names if ch not in ch_names]
    label = source.label.replace(source.name, name)
    log_amplitude = float(np.log10(amplitude))
    return Encoded(recording, stored, sfreq, labels, label, left_out, problems, log_amplitude)
