"""Recordings to be stored: from a dataset or a folder; how they are prepared and encoded."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import EEGWindowsDataset, RawDataset, WindowsDataset
from torch.utils.data import ConcatDataset

from braindecode_pars._common import channel_names, checks, files, subjects
from braindecode_pars.recordings import folders, preparation, readers, recipe, search
from braindecode_pars.signal_store.index import DTYPES, UNLABELED, label_rows
from braindecode_pars.windows import recorded_steps
from braindecode_pars.windows.preprocessing import Preprocessing

ACCEPTED = (
    "a BaseConcatDataset of continuous recordings or of their windows, a folder of recordings "
    f"({', '.join(search.ENDINGS)}), or one or several ContinuousCorpus"
)


@dataclass(frozen=True)
class StoredForm:
    """Preparation of every recording before it is stored.

    Attributes
    ----------
    sfreq : float | None
        New sampling rate in Hz; None keeps the rate of the recording.
    low, high : float | None
        Edges of the band-pass in Hz; None for no edge.
    mains : float | None
        Frequency of the notch filter in Hz; None for no notch filter.
    channels : list of str | None
        EEG channels to keep, as far as a recording has them; None keeps all. They are matched by
        their electrodes, as in the estimators: ``C3`` is also ``EEG C3-REF``.
    reference : "average" | None
        New reference: the average of the channels that are stored. None keeps the reference.
    """

    sfreq: float | None = None
    low: float | None = None
    high: float | None = None
    mains: float | None = None
    channels: list[str] | None = None
    reference: str | None = None

    def __post_init__(self) -> None:
        preparation.check_filters(sfreq=self.sfreq, low=self.low, high=self.high, mains=self.mains)
        checks.choice("average", None).check("reference", self.reference)

    def missing(self, ch_names: Sequence[str]) -> tuple[str, ...]:
        """Return the channels to keep that a prepared recording lacks."""
        wanted = self.channels or []
        indices = channel_names.match_channels(wanted, ch_names)
        return tuple(name for name, i in zip(wanted, indices, strict=True) if i is None)

    def apply(
        self, raw: mne.io.BaseRaw, steps: Iterable[Any] = ()
    ) -> tuple[np.ndarray, list[str], float, Preprocessing]:
        """Return the prepared EEG signals of a recording. The recording itself is not changed.

        EEG channels are recognized by type and name, as in the estimators. Those that are marked as
        bad are left out, as in MNE.

        Parameters
        ----------
        raw : Raw
            Continuous recording.
        steps : iterable
            Steps that braindecode has recorded for it.

        Returns
        -------
        signals : ndarray, shape (n_chans, n_times)
            Signals in volts.
        ch_names : list of str
            Names of the channels.
        sfreq : float
            Sampling rate in Hz.
        preprocessing : Preprocessing
            What was done with them, by these steps and here.

        Raises
        ------
        ValueError
            When the recording has none of the channels, or no samples, or only one channel and the
            average of its channels as reference.
        """
        # Pick EEG channels.
        chs = channel_names.with_types(raw.info["chs"])
        names = readers.good_eeg(chs, raw.info["bads"])
        if self.channels is not None:
            indices = channel_names.match_channels(self.channels, names)
            names = [name for i, name in enumerate(names) if i in indices]
        if not names:
            wanted = "" if self.channels is None else f" among {', '.join(self.channels)}"
            raise ValueError(
                f"it has no EEG channel{wanted}, only {checks.format_list(raw.ch_names)}."
                f"{channel_names.other_system(self.channels or raw.ch_names, raw.ch_names)}"
            )
        if raw.n_times == 0:
            raise ValueError("it has no samples.")
        signals = raw.get_data(names, verbose="error")
        picked = mne.pick_info(raw.info, mne.pick_channels(raw.ch_names, names, ordered=True))
        prepared = mne.io.RawArray(signals, picked, verbose="error")
        # MNE would neither filter "misc" nor put electrodes of several types into one average.
        prepared.set_channel_types(dict.fromkeys(names, "eeg"), verbose="error")
        before, added = prepared.info.copy(), []
        # Filter, resample and reference. Signals that are not finite are rejected later by encode.
        if np.isfinite(signals).all():
            rate = self.sfreq or raw.info["sfreq"]
            edges = dict(low=self.low, high=self.high, mains=self.mains)
            if rate != raw.info["sfreq"] or any(edges.values()):
                preparation.filter_and_resample(prepared, sfreq=rate, **edges)
            if self.reference is not None:
                preparation.set_reference(prepared, self.reference)
            added = recorded_steps.remembered_steps(prepared.info)
            added = added[len(recorded_steps.remembered_steps(before)) :]
            if added:
                signals = prepared.get_data()
        # An edge that is not given is as the recording has it, and a rate is that of the store.
        added = [(name, {k: v for k, v in has.items() if v is not None}) for name, has in added]
        if self.sfreq is not None:
            added.append(("resample", dict(sfreq=self.sfreq)))
        if self.reference is not None and self.channels is not None:
            # By name: a recording to predict may have further channels.
            missing = self.missing(names)
            named = [name for name in self.channels if name not in missing]
            added.append(("set_eeg_reference", dict(ref_channels=named)))
        sfreq = float(prepared.info["sfreq"])
        return signals, names, sfreq, recorded_steps.recorded(before, [*steps, *added], sfreq=sfreq)


class SkippedError(ValueError):
    """A recording that is skipped even with ``on_error="raise"``: it has nothing to store."""


#: Largest number in int16; -32768 is not used, so that the range is symmetric.
_LARGEST = 32767

#: Steps of int16 in a standard deviation of the signal, at least. A range that gives fewer is cut.
_STEPS = 20
#: The usual range of a channel may be this many times as wide before anything is cut off.
_MARGIN = 10
#: Spread and usual range are measured in blocks of samples; fewer blocks say nothing about them.
_BLOCK, _FEW_BLOCKS = 128, 16


def encode(signals: np.ndarray, ch_names: list[str], dtype: str) -> tuple[np.ndarray, ...]:
    """Encode each channel as ``value = offset + scale * stored``.

    With int16, the stored numbers span the range of the channel, and the error of a value is at
    most half of ``scale``. With float32, the stored numbers are the values.

    One artifact of a volt would leave the EEG beside it with a few distinct int16 numbers. If a
    step were larger than a twentieth of the usual standard deviation, the range is therefore cut,
    and samples outside are clipped; :func:`_robust_range` describes the rule.

    Parameters
    ----------
    signals : ndarray of float64, shape (n_chans, n_times)
        Signals in volts.
    ch_names : list of str
        Names of the channels, for the error message.
    dtype : "int16" | "float32"
        Type of the stored numbers.

    Returns
    -------
    stored : ndarray, shape (n_chans, n_times)
        Numbers to store, in ``dtype``.
    scale, offset : ndarray of float32, shape (n_chans,)
        Scale and offset of each channel. The scale of a constant channel is 0.
    n_clipped : ndarray of int, shape (n_chans,)
        Number of samples that lay outside the range of the type and were moved to its ends.
    coarse : ndarray of bool, shape (n_chans,)
        Whether a step of int16 is larger than a twentieth of the channel's standard deviation.

    Raises
    ------
    SkippedError
        When a channel contains NaN or infinite samples, or samples too large for single precision.
        The message names the channels.
    """
    # The sum overflows to inf if the values do not fit into single precision.
    low, high = signals.min(axis=1), signals.max(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        bad = ~np.isfinite((high - low).astype(np.float32) + low.astype(np.float32))
    if bad.any():
        names = [name for name, is_bad in zip(ch_names, bad, strict=True) if is_bad]
        raise SkippedError(
            f"channel {checks.format_list(names, 5)} contains NaN or infinite samples."
        )
    n_chans = len(signals)
    stored = np.empty(signals.shape, DTYPES[dtype])
    scale, offset = np.ones(n_chans, np.float32), np.zeros(n_chans, np.float32)
    n_clipped, coarse = np.zeros(n_chans, int), np.zeros(n_chans, bool)
    # Channel by channel, because a whole night in float64 takes much memory.
    for channel, values in enumerate(signals):
        if dtype == "float32":
            stored[channel] = values
            continue
        lowest, highest = float(low[channel]), float(high[channel])
        if lowest == highest:
            scale[channel], offset[channel] = 0.0, lowest
        else:
            lowest, highest, spread = _robust_range(values, lowest, highest)
            # The offset is rounded, so the range is measured from the rounded offset.
            offset[channel] = middle = float(np.float32(lowest + (highest - lowest) / 2))
            scale[channel] = max(highest - middle, middle - lowest) / _LARGEST
            coarse[channel] = highest - lowest > 1.001 * _widest(spread)  # not by rounding
        numbers = np.rint((values - float(offset[channel])) / (float(scale[channel]) or 1.0))
        n_clipped[channel] = (np.abs(numbers) > _LARGEST).sum()
        stored[channel] = numbers.clip(-_LARGEST, _LARGEST)
    return stored, scale, offset, n_clipped, coarse


def _robust_range(values: np.ndarray, low: float, high: float) -> tuple[float, float, float]:
    """Return the range of a channel that int16 represents, and the channel's usual spread.

    The spread is the median standard deviation of blocks of the signal, without blocks that are
    flat, such as those of a saturated amplifier. The full range is kept while its 65,534 steps are
    smaller than a twentieth of the spread, as in every usual recording. Otherwise it is cut to the
    range with steps of that size, or to ten times the range of all but the 5 % lowest and highest
    blocks, whichever is wider. The slow drift of an amplifier without a filter is not cut off.

    Parameters
    ----------
    values : ndarray of float64, shape (n_times,)
        Signal of the channel.
    low, high : float
        Smallest and largest value.

    Returns
    -------
    low, high : float
        Ends of the range.
    spread : float
        Usual standard deviation; infinite if the signal is flat but for some blocks. A signal of
        few blocks is not cut, and its spread is estimated by its median deviation.
    """
    n_blocks = len(values) // _BLOCK
    if n_blocks < _FEW_BLOCKS:  # the standard deviation, estimated by the median deviation
        deviation = np.median(np.abs(values - np.median(values)))
        return low, high, 1.4826 * float(deviation) or np.inf
    blocks = values[: n_blocks * _BLOCK].reshape(n_blocks, _BLOCK)
    # The standard deviation of a flat block is the rounding error of its mean.
    spreads = blocks.std(axis=1)
    alive = spreads > 1e-6 * np.quantile(spreads, 0.9)
    if alive.sum() < _FEW_BLOCKS:
        return low, high, np.inf
    blocks, spread = blocks[alive], float(np.median(spreads[alive]))
    if high - low <= _widest(spread):
        return low, high, spread
    # Cut the range around the usual values.
    usual_low = np.quantile(blocks.min(axis=1), 0.05, method="higher")
    usual_high = np.quantile(blocks.max(axis=1), 0.95, method="lower")
    middle = usual_low + (usual_high - usual_low) / 2
    half = max(_widest(spread), _MARGIN * (usual_high - usual_low)) / 2
    return max(low, middle - half), min(high, middle + half), spread


def _widest(spread: float) -> float:
    """Return the widest range whose steps are small enough for a signal of this spread."""
    return 2 * _LARGEST * spread / _STEPS


@dataclass(frozen=True)
class Source:
    """A recording to be stored.

    Attributes
    ----------
    name : str
        Name of the recording in the store.
    description : dict
        Numbers and strings that describe the recording.
    state : dict
        Size and modification time, or length, channels, rate and a checksum of the labels, to
        detect a later change.
    origin : Path | mne.io.BaseRaw
        File or recording in memory.
    problem : str | None
        Reason why the recording cannot be opened, as far as it is known without opening it.
    read : callable | None
        Function that reads and prepares the file, and may return it cut into labeled windows; None
        reads it as it is.
    labels : DataFrame | None
        Labeled windows of a recording in memory, as of :func:`~.index.label_rows`.
    steps : tuple
        Steps of preprocessing that braindecode has recorded for a recording in memory.
    """

    name: str
    description: Mapping[str, Any]
    state: Mapping[str, Any]
    origin: Path | mne.io.BaseRaw
    problem: str | None = None
    read: Callable[[], mne.io.BaseRaw | EEGWindowsDataset | None] | None = None
    labels: pd.DataFrame | None = None
    steps: tuple = ()

    @property
    def label(self) -> str:
        """Name for messages."""
        if isinstance(self.origin, Path):
            return str(self.origin)
        subject = self.description.get("subject")
        return self.name if subject is None else f"{self.name} (subject {subject})"

    def open(self) -> tuple[mne.io.BaseRaw, pd.DataFrame | None]:
        """Return the recording and its labeled windows; read it if it is a file.

        Raises
        ------
        ValueError
            When the file is damaged, has no labeled window although the recipe cuts labeled
            windows, or cannot be opened for the reason in ``problem``.
        """
        if self.problem is not None:
            raise ValueError(self.problem)
        if self.read is None:
            is_file = isinstance(self.origin, Path)
            return readers.read_with_tables(self.origin) if is_file else self.origin, self.labels
        read = self.read()
        if read is None:
            raise SkippedError("it has no labeled window.")
        return (read.raw, label_rows(read)) if isinstance(read, EEGWindowsDataset) else (read, None)


def find_sources(recordings: Any, subject: search.Subject) -> list[Source]:
    """List recordings without reading them.

    Parameters
    ----------
    recordings : BaseConcatDataset | RawDataset | EEGWindowsDataset | ContinuousCorpus | path
        Dataset, one or several corpora, or folder of files.
    subject : callable | str | None
        As in :func:`~braindecode_pars.recordings.search.subject_finder`.

    Returns
    -------
    list of Source
        Recordings in the order of the dataset or of their paths, including those that are known
        to be unreadable.

    Raises
    ------
    TypeError
        When ``recordings`` has another type, or contains windows without their recording.
    FileNotFoundError
        When the folder does not exist or contains no recording.
    ValueError
        When one or two first folders would be the subjects of many recordings, names of files
        obviously number the recordings of one person, a label is neither a number nor text, or a
        recording of a dataset has a ``transform``.
    """
    # A folder of files, corpora, otherwise a dataset.
    if isinstance(recordings, (str, Path)):
        return _files_of(Path(recordings).expanduser(), search.subject_finder(subject))
    if subject is not None:
        raise TypeError("subject= is for a folder of files; a dataset has descriptions.")
    corpora = corpora_of(recordings)
    if corpora:
        return [
            Source(
                f"{corpus.name}/{recording.file.relative_to(corpus.folder).as_posix()}",
                {"corpus": corpus.name, **_plain(recording.description)},
                _state_of(
                    folders.files_beside(recording.file)  # new labels are another recording, too
                    if corpus.has_labels
                    else search.signal_files(recording.file)
                ),
                recording.file,
                search.why_unreadable(recording.file),
                partial(corpus.read, recording),
            )
            for corpus in corpora
            for recording in corpus.recordings
        ]
    sources = [
        _source_of_leaf(f"recording-{i}", *leaf) for i, leaf in enumerate(_leaves(recordings))
    ]
    # The windows are stored if any of them has a label.
    tables = [source.labels for source in sources if source.labels is not None]
    if not any((table["target"] != UNLABELED).any() for table in tables):
        return [replace(source, labels=None) for source in sources]
    # Then their checksum is a part of the state of a recording.
    names = ["i_start_in_trial", "i_stop_in_trial", "i_window_in_trial", "target"]
    for i, source in enumerate(sources):
        if source.labels is not None:
            columns = [source.labels[name].tolist() for name in names]
            checksum = files.checksum_of(json.dumps(columns).encode())
            sources[i] = replace(source, state={**source.state, "labels": checksum})
    return sources


def corpora_of(recordings: Any) -> list[recipe.ContinuousCorpus]:
    """Return the corpora of recipes; an empty list for other recordings.

    Raises
    ------
    ValueError
        When two corpora have the same name, or only some have labels, or other classes.
    """
    candidates = recordings if isinstance(recordings, list | tuple) else [recordings]
    corpora = [corpus for corpus in candidates if isinstance(corpus, recipe.ContinuousCorpus)]
    if len(corpora) < len(candidates):
        return []
    names = [corpus.name for corpus in corpora]
    for corpus in corpora:
        if names.count(corpus.name) > 1:
            raise ValueError(
                f"The corpus {corpus.name} is given twice; pass the folder above both."
            )
        labels, first_labels = (c.settings.get("classes") or ["none"] for c in (corpus, corpora[0]))
        if labels != first_labels:
            raise ValueError(
                f"{corpora[0].name} has the labels {', '.join(first_labels)}, and {corpus.name} "
                f"has {', '.join(labels)}; make a store for each."
            )
    return corpora


def _plain(description: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): subjects.normalized(files.plain(value)) for key, value in description.items()}


def _leaves(dataset: Any, transforms: tuple[Callable[[Any], Any], ...] = ()) -> list[tuple]:
    """Return the recordings of a dataset, with the functions for labels, the innermost first."""
    if isinstance(dataset, ConcatDataset):
        transform = getattr(dataset, "target_transform", None)
        transforms = transforms if transform is None else (transform, *transforms)
        return [leaf for part in dataset.datasets for leaf in _leaves(part, transforms)]
    if isinstance(dataset, WindowsDataset):
        raise TypeError(
            "Windows of an mne.Epochs do not keep their recording; cut windows with "
            "use_mne_epochs=False."
        )
    if isinstance(dataset, (RawDataset, EEGWindowsDataset)):
        return [(dataset, transforms)]
    raise TypeError(f"recordings contains a {type(dataset).__name__}; it must be {ACCEPTED}.")


def _source_of_leaf(name: str, dataset: Any, transforms: Sequence[Callable[[Any], Any]]) -> Source:
    if dataset.transform is not None:
        raise ValueError(f"{name} has a transform, which a store cannot keep; remove it.")
    try:
        labels = label_rows(dataset, transforms)
    except ValueError as error:
        raise ValueError(f"{name} cannot be used: {error}") from error
    raw = dataset.raw
    entries = {} if dataset.description is None else dataset.description.to_dict()
    state = dict(
        n_times=int(raw.n_times), n_chans=len(raw.ch_names), sfreq=float(raw.info["sfreq"])
    )
    steps = tuple(getattr(dataset, "raw_preproc_kwargs", None) or ())
    return Source(name, _plain(entries), state, raw, labels=labels, steps=steps)


def _files_of(root: Path, subject: Callable[[Path], Any]) -> list[Source]:
    sources = []
    for file in folders.recordings_below(root):
        problem, path = search.why_unreadable(file), file.relative_to(root)
        description, state = {}, {}
        if problem is None:
            description = {"subject": subjects.normalized(files.plain(subject(path)))}
            state = _state_of([*search.signal_files(file), *search.tables_beside(file)])
        sources.append(Source(path.as_posix(), description, state, file, problem))
    if subject is subjects.subject_of_path:
        paths = [Path(source.name) for source in sources if "subject" in source.description]
        search.check_guessed_subjects(root, paths)
    return sources


def _state_of(parts: list[Path]) -> dict[str, int]:
    """Return size and modification time of some files."""
    states = [part.stat() for part in parts if part.exists()]  # skips dead links
    return dict(
        bytes=sum(state.st_size for state in states),
        mtime_ns=max((state.st_mtime_ns for state in states), default=0),
    )
