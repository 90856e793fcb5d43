"""Find recordings to store in a dataset or a folder, and preprocess and encode them."""

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
from braindecode_pars.recordings.braindecode_zarr import is_zarr, read_zarr
from braindecode_pars.recordings.channel_facts import good_eeg
from braindecode_pars.recordings.side_tables import tables_beside
from braindecode_pars.signal_store.index import DTYPES, UNLABELED, label_rows
from braindecode_pars.windows import recorded_steps
from braindecode_pars.windows.preprocessing import Preprocessing


@dataclass(frozen=True)
class StoredForm:
    """Preprocessing of every recording before it is stored.

    Attributes
    ----------
    sfreq : float | None
        New sampling rate in Hz. If None, the sampling rate is unchanged.
    low, high : float | None
        Cutoff frequencies of the high-pass (``low``) and the low-pass filter (``high``) in Hz. If
        None, the filter is omitted.
    mains : float | None
        Line frequency for the notch filter in Hz. If None, no notch filter is applied.
    channels : list of str | None
        Names of EEG channels to keep, matched by electrode as in the estimators: ``C3`` also keeps
        ``EEG C3-REF``. Recordings may lack some of these channels. If None, all EEG channels are
        kept.
    reference : "average" | None
        New reference: the average of the stored channels. If None, the reference is unchanged.
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
        """Return the requested channels that are missing from the stored channels."""
        wanted = self.channels or []
        indices = channel_names.match_channels(wanted, ch_names)
        return tuple(name for name, i in zip(wanted, indices, strict=True) if i is None)

    def apply(
        self, raw: mne.io.BaseRaw, steps: Iterable[Any] = ()
    ) -> tuple[np.ndarray, list[str], float, Preprocessing]:
        """Return the preprocessed EEG signals of a recording, without changing the recording.

        EEG channels are identified by type and name, as in the estimators. Channels marked as bad
        are excluded, as in MNE.

        Parameters
        ----------
        raw : Raw
            Continuous recording.
        steps : iterable
            Preprocessing steps that braindecode recorded for the recording.

        Returns
        -------
        signals : ndarray, shape (n_chans, n_times)
            Signals in volts.
        ch_names : list of str
            Names of the channels.
        sfreq : float
            Sampling rate in Hz.
        preprocessing : Preprocessing
            Preprocessing of the signals, by these steps and by this method.

        Raises
        ------
        ValueError
            If the recording has no samples or none of the channels, or if it has only one
            channel and the reference is the average.
        """
        # Pick EEG channels.
        chs = channel_names.with_types(raw.info["chs"])
        names = good_eeg(chs, raw.info["bads"])
        if self.channels is not None:
            indices = channel_names.match_channels(self.channels, names)
            names = [name for i, name in enumerate(names) if i in indices]
        if not names:
            requested = "" if self.channels is None else f" among {', '.join(self.channels)}"
            raise ValueError(
                f"it has no EEG channel{requested} (or all are marked as bad). Its channels "
                f"are {checks.format_list(raw.ch_names)}."
                f"{channel_names.other_system(self.channels or raw.ch_names, raw.ch_names)}"
            )
        if raw.n_times == 0:
            raise ValueError("it has no samples.")
        signals = raw.get_data(names, verbose="error")
        picked = mne.pick_info(raw.info, mne.pick_channels(raw.ch_names, names, ordered=True))
        preprocessed = mne.io.RawArray(signals, picked, verbose="error")
        # MNE does not filter "misc" channels, and does not average channels of several types.
        preprocessed.set_channel_types(dict.fromkeys(names, "eeg"), verbose="error")
        before, added = preprocessed.info.copy(), []
        # Filter, resample and re-reference. encode rejects signals that are not finite.
        if np.isfinite(signals).all():
            rate = self.sfreq or raw.info["sfreq"]
            edges = dict(low=self.low, high=self.high, mains=self.mains)
            if rate != raw.info["sfreq"] or any(edges.values()):
                preparation.filter_and_resample(preprocessed, sfreq=rate, **edges)
            if self.reference is not None:
                preparation.set_reference(preprocessed, self.reference)
            added = recorded_steps.remembered_steps(preprocessed.info)
            added = added[len(recorded_steps.remembered_steps(before)) :]
            if added:
                signals = preprocessed.get_data()
        # A filter edge of None is as in the recording; the sampling rate is that of the store.
        added = [(name, {k: v for k, v in has.items() if v is not None}) for name, has in added]
        if self.sfreq is not None:
            added.append(("resample", dict(sfreq=self.sfreq)))
        if self.reference is not None and self.channels is not None:
            # Record the names, since a recording to predict may have additional channels.
            missing = self.missing(names)
            named = [name for name in self.channels if name not in missing]
            added.append(("set_eeg_reference", dict(ref_channels=named)))
        sfreq = float(preprocessed.info["sfreq"])
        return signals, names, sfreq, recorded_steps.recorded(before, [*steps, *added], sfreq=sfreq)


class SkippedError(ValueError):
    """Error for a recording that is skipped even with ``on_error="raise"``."""


#: Largest stored int16 number. -32768 is not used, so that the range is symmetric.
_LARGEST = 32767

#: Minimum number of int16 steps per standard deviation of the signal. If the range of the channel
#: results in fewer steps, it is reduced.
_STEPS = 20
#: Minimum ratio of the represented range to the typical range of a channel.
_MARGIN = 10
#: Number of samples of the blocks in which standard deviation and typical range are estimated.
_BLOCK = 128
#: Minimum number of blocks that are not flat. With fewer blocks, the range is not reduced.
_MIN_BLOCKS = 16


def encode(signals: np.ndarray, ch_names: list[str], dtype: str) -> tuple[np.ndarray, ...]:
    """Encode each channel as ``value = offset + scale * stored``.

    With int16, the stored numbers span the range of the channel, and the maximum error of a value
    is half of ``scale``. With float32, the stored numbers are the values.

    A single artifact of one volt would reduce the EEG of the channel to a few distinct int16
    numbers. Therefore, the range is reduced if a step would be larger than a twentieth of the
    typical standard deviation (see :func:`_robust_range`). Samples outside the range are clipped.

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
        Number of clipped samples, which were outside the represented range.
    coarse : ndarray of bool, shape (n_chans,)
        Whether a step of int16 is larger than a twentieth of the channel's standard deviation.

    Raises
    ------
    SkippedError
        If a channel contains NaN or infinite samples, or samples too large for single precision.
        The message contains the channels.
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
    scale, offset = np.ones(n_chans, np.float32), np.zeros(n_chans, np.float32)
    n_clipped, coarse = np.zeros(n_chans, int), np.zeros(n_chans, bool)
    if dtype == "float32":
        return signals.astype(DTYPES[dtype]), scale, offset, n_clipped, coarse
    stored = np.empty(signals.shape, DTYPES[dtype])
    # Channel by channel, because a recording of several hours in float64 requires much memory.
    for channel, values in enumerate(signals):
        lowest, highest = float(low[channel]), float(high[channel])
        if lowest == highest:
            scale[channel], offset[channel] = 0.0, lowest
        else:
            lowest, highest, typical_sd = _robust_range(values, lowest, highest)
            # The offset is rounded, so the range is measured from the rounded offset.
            offset[channel] = middle = float(np.float32(lowest + (highest - lowest) / 2))
            scale[channel] = max(highest - middle, middle - lowest) / _LARGEST
            coarse[channel] = highest - lowest > 1.001 * _widest(typical_sd)  # tolerates rounding
        numbers = np.rint((values - float(offset[channel])) / (float(scale[channel]) or 1.0))
        n_clipped[channel] = (np.abs(numbers) > _LARGEST).sum()
        stored[channel] = numbers.clip(-_LARGEST, _LARGEST)
    return stored, scale, offset, n_clipped, coarse


def _robust_range(values: np.ndarray, low: float, high: float) -> tuple[float, float, float]:
    """Return the range of a channel to represent in int16, and its typical standard deviation.

    The typical standard deviation is the median over blocks of the signal, without flat blocks,
    which occur when an amplifier is saturated. The full range is represented if its 65,534 steps
    are smaller than a twentieth of the typical standard deviation, which is the case in typical
    recordings. Otherwise, the range is reduced to the wider of two ranges: the range with steps of
    a twentieth of the typical standard deviation, and ten times the range of the signal without the
    5 % lowest and highest blocks. The second range retains slow drifts of an unfiltered amplifier.

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
    typical_sd : float
        Typical standard deviation. Infinite if fewer than 16 blocks remain without the flat blocks.
        For a signal of fewer than 16 blocks, the range is not reduced, and the standard deviation
        is estimated from the median absolute deviation.
    """
    n_blocks = len(values) // _BLOCK
    if n_blocks < _MIN_BLOCKS:
        deviation = np.median(np.abs(values - np.median(values)))
        return low, high, 1.4826 * float(deviation) or np.inf
    blocks = values[: n_blocks * _BLOCK].reshape(n_blocks, _BLOCK)
    # The standard deviation of a flat block is the rounding error of its mean.
    deviations = blocks.std(axis=1)
    alive = deviations > 1e-6 * np.quantile(deviations, 0.9)
    if alive.sum() < _MIN_BLOCKS:
        return low, high, np.inf
    blocks, typical_sd = blocks[alive], float(np.median(deviations[alive]))
    if high - low <= _widest(typical_sd):
        return low, high, typical_sd
    # Reduce the range around the typical values.
    usual_low = np.quantile(blocks.min(axis=1), 0.05, method="higher")
    usual_high = np.quantile(blocks.max(axis=1), 0.95, method="lower")
    middle = usual_low + (usual_high - usual_low) / 2
    half = max(_widest(typical_sd), _MARGIN * (usual_high - usual_low)) / 2
    return max(low, middle - half), min(high, middle + half), typical_sd


def _widest(typical_sd: float) -> float:
    """Return the widest range whose int16 steps resolve a signal of this standard deviation."""
    return 2 * _LARGEST * typical_sd / _STEPS


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
        State to detect a later change. For a file, its size and modification time. For a recording
        in memory, its length, channels, sampling rate and the checksum of its labels.
    origin : Path | mne.io.BaseRaw
        Recording file, or recording in memory.
    problem : str | None
        Reason why the recording cannot be opened, if it is known without opening the file.
    read : callable | None
        Function that reads and preprocesses the file and may return labeled windows. If None, the
        file is read without preprocessing.
    labels : DataFrame | None
        Labeled windows of a recording in memory, as returned by :func:`~.index.label_rows`.
    steps : tuple
        Preprocessing steps that braindecode recorded for a recording in memory.
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
        """Name of the recording in messages."""
        if isinstance(self.origin, Path):
            return str(self.origin)
        subject = self.description.get("subject")
        return self.name if subject is None else f"{self.name} (subject {subject})"

    def open(self) -> tuple[mne.io.BaseRaw, pd.DataFrame | None]:
        """Return the recording, read from its file if necessary, and its labeled windows.

        Raises
        ------
        ValueError
            If the file is damaged, or ``problem`` is set. If the recording has no labeled window,
            although its recipe creates labeled windows.
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
        Dataset; one or several corpora; folder of recordings; or folder of a Zarr dataset of
        braindecode.
    subject : callable | str | None
        See :func:`~braindecode_pars.recordings.search.subject_finder`.

    Returns
    -------
    list of Source
        Recordings in the order of the dataset or of their paths, including recordings that are
        known to be unreadable.

    Raises
    ------
    TypeError
        If ``recordings`` has an unsupported type, or contains windows without their recording.
    FileNotFoundError
        If the folder does not exist or contains no recording.
    ValueError
        If one or two top-level folders would be the subjects of many recordings. If file names
        apparently number the recordings of one subject. If a label is neither a number nor a
        string. If a recording of a dataset has a ``transform``.
    """
    # recordings is a folder of files, one or several corpora, or a dataset.
    if isinstance(recordings, (str, Path)):
        folder = Path(recordings).expanduser()
        if not is_zarr(folder):
            return _files_of(folder, search.subject_finder(subject))
        recordings = read_zarr(folder)
    if subject is not None:
        raise TypeError(
            "subject= is only supported for a folder of files. For a dataset, the subject is the "
            "entry 'subject' of the descriptions."
        )
    corpora = corpora_of(recordings)
    if corpora:
        return [
            Source(
                f"{corpus.name}/{recording.file.relative_to(corpus.folder).as_posix()}",
                {"corpus": corpus.name, **_plain(recording.description)},
                _state_of(
                    folders.files_beside(recording.file)  # a change of the labels counts as well
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
    # Windows are stored if at least one window has a label.
    tables = [source.labels for source in sources if source.labels is not None]
    if not any((table["target"] != UNLABELED).any() for table in tables):
        return [replace(source, labels=None) for source in sources]
    # The state of a recording includes the checksum of its windows.
    names = ["i_start_in_trial", "i_stop_in_trial", "i_window_in_trial", "target"]
    for i, source in enumerate(sources):
        if source.labels is not None:
            columns = [source.labels[name].tolist() for name in names]
            checksum = files.checksum_of(json.dumps(columns).encode())
            sources[i] = replace(source, state={**source.state, "labels": checksum})
    return sources


def corpora_of(recordings: Any) -> list[recipe.ContinuousCorpus]:
    """Return the corpora of recipes, or an empty list for other recordings.

    Raises
    ------
    ValueError
        If two corpora have the same name, or if their classes differ.
    """
    candidates = recordings if isinstance(recordings, list | tuple) else [recordings]
    corpora = [corpus for corpus in candidates if isinstance(corpus, recipe.ContinuousCorpus)]
    if len(corpora) < len(candidates):
        return []
    names = [corpus.name for corpus in corpora]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ValueError(
            f"recordings contains the corpus {repeated.pop()} twice. Pass it once, with the folder "
            "that contains all of its recordings."
        )
    classes = {corpus.name: corpus.settings.get("classes") or ["none"] for corpus in corpora}
    if any(labels != classes[names[0]] for labels in classes.values()):
        texts = [f"{name}: {', '.join(labels)}" for name, labels in classes.items()]
        raise ValueError(
            f"Corpora in one store must have the same classes, got {'; '.join(texts)}. Create one "
            "store per corpus."
        )
    return corpora


def _plain(description: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): subjects.normalized(files.plain(value)) for key, value in description.items()}


def _leaves(dataset: Any, transforms: tuple[Callable[[Any], Any], ...] = ()) -> list[tuple]:
    """Return the recordings of a dataset, and the label transforms, the innermost first."""
    if isinstance(dataset, ConcatDataset):
        transform = getattr(dataset, "target_transform", None)
        transforms = transforms if transform is None else (transform, *transforms)
        return [leaf for part in dataset.datasets for leaf in _leaves(part, transforms)]
    if isinstance(dataset, WindowsDataset):
        raise TypeError(
            "Windows of an mne.Epochs object do not contain the continuous recording. Create the "
            "windows with use_mne_epochs=False."
        )
    if isinstance(dataset, (RawDataset, EEGWindowsDataset)):
        return [(dataset, transforms)]
    raise TypeError(
        "recordings must be a dataset of continuous recordings or of windows, a folder, or one or "
        f"several ContinuousCorpus objects. A {type(dataset).__name__} is not supported."
    )


def _source_of_leaf(name: str, dataset: Any, transforms: Sequence[Callable[[Any], Any]]) -> Source:
    if dataset.transform is not None:
        raise ValueError(f"{name} has a transform, which cannot be stored. Remove the transform.")
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
            state = _state_of([*search.signal_files(file), *tables_beside(file)])
        sources.append(Source(path.as_posix(), description, state, file, problem))
    if subject is subjects.subject_of_path:
        paths = [Path(source.name) for source in sources if "subject" in source.description]
        search.check_guessed_subjects(root, paths)
    return sources


def _state_of(parts: list[Path]) -> dict[str, int]:
    """Return size and modification time of some files."""
    states = [part.stat() for part in parts if part.exists()]  # skips broken links
    return dict(
        bytes=sum(state.st_size for state in states),
        mtime_ns=max((state.st_mtime_ns for state in states), default=0),
    )
