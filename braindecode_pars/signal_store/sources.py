"""Find the recordings of a dataset, corpus or folder, and preprocess and encode them for a store.

To encode a recording is to convert its samples to the data type of the store, such as int16.
"""

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
    """Preprocessing that is applied to every recording before it is stored.

    Attributes
    ----------
    sfreq : float | None
        New sampling rate in Hz. If None, the sampling rate is unchanged.
    low, high : float | None
        Cutoff frequencies in Hz of the high-pass filter (``low``) and of the low-pass filter
        (``high``). If None, this filter is omitted.
    mains : float | None
        Line frequency for the notch filter in Hz. If None, no notch filter is applied.
    channels : list of str | None
        Names of EEG channels to store. As in the estimators, names are matched by electrode:
        ``C3`` also selects ``EEG C3-REF``. Recordings may lack some of these channels. If None, all
        EEG channels are stored.
    reference : "average" | None
        New reference: "average" is the average of the stored channels. If None, the reference is
        unchanged.
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
        """Return the requested channels that do not match any of the channels in ``ch_names``."""
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
            Preprocessing steps that were applied to the recording earlier, as recorded by
            braindecode.

        Returns
        -------
        signals : ndarray, shape (n_chans, n_times)
            Preprocessed signals in volts.
        ch_names : list of str
            Names of the channels.
        sfreq : float
            Sampling rate in Hz.
        preprocessing : Preprocessing
            Description of the complete preprocessing: the earlier steps in ``steps``, and the steps
            of this method.

        Raises
        ------
        ValueError
            If the recording has none of the requested EEG channels. If the new reference is the
            average, but only one channel would be stored.
        """
        # Pick EEG channels.
        chs = channel_names.with_types(raw.info["chs"])
        names = good_eeg(chs, raw.info["bads"])
        if self.channels is not None:
            indices = channel_names.match_channels(self.channels, names)
            names = [name for i, name in enumerate(names) if i in indices]
        if not names:
            requested = "" if self.channels is None else f" named {', '.join(self.channels)}"
            raise ValueError(
                f"it has no EEG channel{requested} that is not marked as bad. Channels of the "
                f"recording: {checks.format_list(raw.ch_names)}."
                f"{channel_names.other_system(self.channels or raw.ch_names, raw.ch_names)}"
            )
        signals = raw.get_data(names, verbose="error")
        picked = mne.pick_info(raw.info, mne.pick_channels(raw.ch_names, names, ordered=True))
        preprocessed = mne.io.RawArray(signals, picked, verbose="error")
        # Set one type, because MNE does not filter channels of type "misc", and does not compute an
        # average reference over channels of several types.
        preprocessed.set_channel_types(dict.fromkeys(names, "eeg"), verbose="error")
        before, added = preprocessed.info.copy(), []
        # Filter, resample and re-reference. Signals with NaN are rejected later, in encode().
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
        # Omit cutoff frequencies that are None, because these filters did not change the recording.
        added = [(name, {k: v for k, v in has.items() if v is not None}) for name, has in added]
        if self.sfreq is not None:
            added.append(("resample", dict(sfreq=self.sfreq)))
        if self.reference is not None and self.channels is not None:
            # Record the channels of the average, because a recording that is predicted later may
            # have additional channels.
            missing = self.missing(names)
            named = [name for name in self.channels if name not in missing]
            added.append(("set_eeg_reference", dict(ref_channels=named)))
        sfreq = float(preprocessed.info["sfreq"])
        return signals, names, sfreq, recorded_steps.recorded(before, [*steps, *added], sfreq=sfreq)


class SkippedError(ValueError):
    """Error for a recording that is skipped even with ``on_error="raise"``.

    For example, a recording with NaN samples is always skipped.
    """


#: Largest stored int16 number. -32768 is not used, so that the range is symmetric around 0.
_LARGEST = 32767

#: Minimum number of int16 steps per standard deviation of the signal. If storing the full range of
#: a channel would result in fewer steps, a smaller range is stored.
_STEPS = 20
#: Minimum ratio of a reduced range to the typical range of a channel.
_MARGIN = 10
#: Number of samples per block. Standard deviation and typical range are estimated over blocks.
_BLOCK = 128
#: Minimum number of blocks with a signal (not flat). With fewer blocks, the range is not reduced.
_MIN_BLOCKS = 16


def encode(signals: np.ndarray, ch_names: list[str], dtype: str) -> tuple[np.ndarray, ...]:
    """Convert signals in volts to the numbers that are stored: ``volts = offset + scale * stored``.

    With int16, the range from the lowest to the highest sample of each channel is divided into
    65,534 steps of size ``scale``, so the maximum error of a sample is half of ``scale``. With
    float32, the stored numbers are the volts.

    With int16, a single artifact of one volt would make the steps so large that only a few steps
    would remain for the EEG. Therefore, the range is reduced if a step would be larger than a
    twentieth of the typical standard deviation of the channel (see :func:`_robust_range`). Samples
    outside the reduced range are clipped.

    Parameters
    ----------
    signals : ndarray of float64, shape (n_chans, n_times)
        Signals in volts.
    ch_names : list of str
        Names of the channels, for the error message.
    dtype : "int16" | "float32"
        Data type of the stored numbers.

    Returns
    -------
    stored : ndarray, shape (n_chans, n_times)
        Numbers to store, of type ``dtype``.
    scale, offset : ndarray of float32, shape (n_chans,)
        Scale and offset of each channel. The scale of a constant channel is 0.
    n_clipped : ndarray of int, shape (n_chans,)
        Number of clipped samples of each channel.
    coarse : ndarray of bool, shape (n_chans,)
        Whether a step of int16 is larger than a twentieth of the typical standard deviation of the
        channel, even with a reduced range.

    Raises
    ------
    SkippedError
        If a channel contains NaN or infinite samples, or samples too large for single precision.
        The message names the channels.
    """
    # The sum overflows to inf if the samples are too large for single precision.
    low, high = signals.min(axis=1), signals.max(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        bad = ~np.isfinite((high - low).astype(np.float32) + low.astype(np.float32))
    if names := [name for name, is_bad in zip(ch_names, bad, strict=True) if is_bad]:
        raise SkippedError(
            f"it contains NaN or infinite samples (channels: {checks.format_list(names, 5)})."
        )
    n_chans = len(signals)
    scale, offset = np.ones(n_chans, np.float32), np.zeros(n_chans, np.float32)
    n_clipped, coarse = np.zeros(n_chans, int), np.zeros(n_chans, bool)
    if dtype == "float32":
        return signals.astype(DTYPES[dtype]), scale, offset, n_clipped, coarse
    stored = np.empty(signals.shape, DTYPES[dtype])
    # Convert one channel at a time, because several hours of float64 samples need much memory.
    for channel, values in enumerate(signals):
        lowest, highest = float(low[channel]), float(high[channel])
        if lowest == highest:
            scale[channel], offset[channel] = 0.0, lowest
        else:
            lowest, highest, typical_sd = _robust_range(values, lowest, highest)
            # The offset is rounded to float32, and the scale is computed from the rounded offset.
            offset[channel] = middle = float(np.float32(lowest + (highest - lowest) / 2))
            scale[channel] = max(highest - middle, middle - lowest) / _LARGEST
            # The factor tolerates rounding errors.
            coarse[channel] = highest - lowest > 1.001 * _widest(typical_sd)
        numbers = np.rint((values - float(offset[channel])) / (float(scale[channel]) or 1.0))
        n_clipped[channel] = (np.abs(numbers) > _LARGEST).sum()
        stored[channel] = numbers.clip(-_LARGEST, _LARGEST)
    return stored, scale, offset, n_clipped, coarse


def _robust_range(values: np.ndarray, low: float, high: float) -> tuple[float, float, float]:
    """Return the range of a channel to store as int16, and its typical standard deviation.

    The typical standard deviation is the median of the standard deviations of short blocks of the
    signal. Flat blocks, which occur when an amplifier is saturated, are ignored. If the full range
    is divided into 65,534 steps, each step is usually smaller than a twentieth of the typical
    standard deviation; then the full range is returned.

    Otherwise, a reduced range is returned, the wider of two ranges: the range in which a step is a
    twentieth of the typical standard deviation; and ten times the range of the signal without the
    5 % of blocks with the lowest minimum and the 5 % with the highest maximum. The second range
    includes the slow drifts of an unfiltered amplifier.

    Parameters
    ----------
    values : ndarray of float64, shape (n_times,)
        Signal of the channel.
    low, high : float
        Smallest and largest value of the signal.

    Returns
    -------
    low, high : float
        Lower and upper end of the range to store.
    typical_sd : float
        Typical standard deviation. If fewer than 16 blocks are not flat, it is infinite, so that
        the range is not reduced. For a signal shorter than 16 blocks, the range is not reduced
        either, and the standard deviation is estimated from the median absolute deviation.
    """
    n_blocks = len(values) // _BLOCK
    if n_blocks < _MIN_BLOCKS:
        deviation = np.median(np.abs(values - np.median(values)))
        return low, high, 1.4826 * float(deviation) or np.inf
    blocks = values[: n_blocks * _BLOCK].reshape(n_blocks, _BLOCK)
    # Because of rounding errors, the standard deviation of a flat block may not be exactly 0.
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
    """Return the range in which an int16 step is a twentieth of the typical standard deviation."""
    return 2 * _LARGEST * typical_sd / _STEPS


@dataclass(frozen=True)
class Source:
    """Recording that is to be stored: a file, or a recording in memory.

    Attributes
    ----------
    name : str
        Name of the recording in the store.
    description : dict
        Numbers and strings that describe the recording, such as its subject.
    state : dict
        Properties that reveal whether the recording was changed later. For a file: size and
        modification time. For a recording in memory: length, number of channels, sampling rate and,
        if it has labels, the checksum of its labels.
    origin : Path | mne.io.BaseRaw
        Path of the file, or the recording in memory.
    problem : str | None
        Why the file cannot be read, if this is known before trying to read it.
    read : callable | None
        Function that reads and preprocesses the file. It returns a continuous recording, or labeled
        windows. If None, the file is read without preprocessing.
    labels : DataFrame | None
        Labeled windows of a recording in memory, as returned by :func:`~.index.label_rows`.
    steps : tuple
        Preprocessing steps of a recording in memory, as recorded by braindecode.
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
        """Return the recording, after reading it if it is a file, and its labeled windows.

        Returns
        -------
        raw : Raw
            Continuous recording.
        labels : DataFrame | None
            Labeled windows, as returned by :func:`~.index.label_rows`. None if there are none.

        Raises
        ------
        ValueError
            If the file is damaged, or ``problem`` is set. If the recipe of the corpus creates
            labeled windows, but this recording has none.
        """
        if self.problem is not None:
            raise ValueError(self.problem)
        if self.read is None:
            is_file = isinstance(self.origin, Path)
            return readers.read_with_tables(self.origin) if is_file else self.origin, self.labels
        read = self.read()
        if read is None:
            raise SkippedError("it has no labeled windows.")
        return (read.raw, label_rows(read)) if isinstance(read, EEGWindowsDataset) else (read, None)


def find_sources(recordings: Any, subject: search.Subject) -> list[Source]:
    """List the recordings to store, without reading files.

    Parameters
    ----------
    recordings : BaseConcatDataset | RawDataset | EEGWindowsDataset | ContinuousCorpus | path
        One of: a braindecode dataset; a ContinuousCorpus, or a list of ContinuousCorpus objects; a
        folder of recordings; or the folder of a dataset that braindecode saved in Zarr format.
    subject : callable | str | None
        How to determine the subject of each file in a folder. See
        :func:`~braindecode_pars.recordings.search.subject_finder`.

    Returns
    -------
    list of Source
        Recordings in the order of the dataset, or sorted by path. Recordings that are known to be
        unreadable are included; their attribute ``problem`` contains the reason.

    Raises
    ------
    TypeError
        If ``recordings`` has an unsupported type, or contains windows without the continuous
        recording.
    FileNotFoundError
        If the folder does not exist or contains no recording.
    ValueError
        If the subjects that were guessed from the paths are probably wrong: one or two top-level
        folders would be the subjects of many recordings, or file names such as ``Subject00_1`` and
        ``Subject00_2`` apparently belong to recordings of one subject. If a label is neither a
        number nor a string. If a recording of a dataset has a ``transform``.
    """
    # recordings is a folder of files, one or several corpora, or a dataset.
    if isinstance(recordings, (str, Path)):
        folder = Path(recordings).expanduser()
        if not is_zarr(folder):
            return _files_of(folder, search.subject_finder(subject))
        recordings = read_zarr(folder)
    if subject is not None:
        raise TypeError(
            "subject= can only be used with a folder of files. Omit it: for a dataset or corpus, "
            "the subject is the entry 'subject' of the descriptions."
        )
    if corpora := corpora_of(recordings):
        return [source for corpus in corpora for source in _sources_of_corpus(corpus)]
    leaves = enumerate(_leaves(recordings))
    sources = [_source_of_leaf(f"recording-{i}", *leaf) for i, leaf in leaves]
    # The table of windows is stored if at least one window of the dataset has a label.
    tables = [source.labels for source in sources if source.labels is not None]
    if not any((table["target"] != UNLABELED).any() for table in tables):
        return [replace(source, labels=None) for source in sources]
    # The state of a recording includes a checksum of its windows and labels.
    names = ["i_start_in_trial", "i_stop_in_trial", "i_window_in_trial", "target"]
    for i, source in enumerate(sources):
        if source.labels is not None:
            columns = [source.labels[name].tolist() for name in names]
            checksum = files.checksum_of(json.dumps(columns).encode())
            sources[i] = replace(source, state={**source.state, "labels": checksum})
    return sources


def corpora_of(recordings: Any) -> list[recipe.ContinuousCorpus]:
    """Return ``recordings`` as a list of corpora, or an empty list if it contains no corpora.

    Raises
    ------
    ValueError
        If two corpora have the same name, or if the corpora have different classes.
    """
    candidates = recordings if isinstance(recordings, list | tuple) else [recordings]
    corpora = [corpus for corpus in candidates if isinstance(corpus, recipe.ContinuousCorpus)]
    if len(corpora) < len(candidates):
        return []
    names = [corpus.name for corpus in corpora]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ValueError(
            f"The corpus {repeated.pop()} occurs twice in recordings. Pass each corpus once, with "
            "the folder that contains all of its recordings."
        )
    classes = {corpus.name: corpus.settings.get("classes") or ["none"] for corpus in corpora}
    if any(labels != classes[names[0]] for labels in classes.values()):
        texts = [f"{name}: {', '.join(labels)}" for name, labels in classes.items()]
        raise ValueError(
            "All corpora of a store must have the same classes, but their classes are "
            f"{'; '.join(texts)}. Create one store per corpus."
        )
    return corpora


def _sources_of_corpus(corpus: recipe.ContinuousCorpus) -> list[Source]:
    # The state of a labeled recording includes the files of its labels.
    files_of = folders.files_beside if corpus.has_labels else search.signal_files
    return [
        Source(
            f"{corpus.name}/{recording.file.relative_to(corpus.folder).as_posix()}",
            {"corpus": corpus.name, **_plain(recording.description)},
            _state_of(files_of(recording.file)),
            recording.file,
            search.why_unreadable(recording.file),
            partial(corpus.read, recording),
        )
        for recording in corpus.recordings
    ]


def _plain(description: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): subjects.normalized(files.plain(value)) for key, value in description.items()}


def _leaves(dataset: Any, transforms: tuple[Callable[[Any], Any], ...] = ()) -> list[tuple]:
    """Return each recording of a dataset with its ``target_transform`` functions.

    Datasets can be nested. The functions are in the order in which they are applied: the
    ``target_transform`` of the innermost dataset first.
    """
    if isinstance(dataset, ConcatDataset):
        transform = getattr(dataset, "target_transform", None)
        transforms = transforms if transform is None else (transform, *transforms)
        return [leaf for part in dataset.datasets for leaf in _leaves(part, transforms)]
    if isinstance(dataset, WindowsDataset):
        raise TypeError(
            "A store contains continuous recordings, but windows from an mne.Epochs object do not "
            "contain the continuous recording. Create the windows with use_mne_epochs=False."
        )
    if isinstance(dataset, (RawDataset, EEGWindowsDataset)):
        return [(dataset, transforms)]
    raise TypeError(
        "recordings must be a braindecode dataset of continuous recordings or of windows, a "
        "folder, a ContinuousCorpus or a list of ContinuousCorpus objects, got a "
        f"{type(dataset).__name__}."
    )


def _source_of_leaf(name: str, dataset: Any, transforms: Sequence[Callable[[Any], Any]]) -> Source:
    if dataset.transform is not None:
        raise ValueError(
            f"{name} has a transform, which cannot be stored. Set transform to None in the dataset."
        )
    try:
        labels = label_rows(dataset, transforms)
    except ValueError as error:
        raise ValueError(f"{name} cannot be stored: {error}") from error
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
    """Return the total size and the latest modification time of some files."""
    states = [part.stat() for part in parts if part.exists()]  # ignore broken links
    return dict(
        bytes=sum(state.st_size for state in states),
        mtime_ns=max((state.st_mtime_ns for state in states), default=0),
    )
