"""Load windows from a folder of labeled EEG recordings or a BIDS dataset.

The label of a window is read from one of three sources:

- the annotation that contains the window, in the file of the recording (EDF+, FIF, BrainVision,
  EEGLAB) or in its BIDS table ``_events.tsv``;
- a table with one row per labeled segment, per file or per subject;
- the path of the file.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import mne
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars._common import channel_names, checks
from braindecode_pars._common.subjects import (
    normalized,
    public_corpora,
    public_subject,
    subject_key,
)
from braindecode_pars.recordings import (
    as_trained,
    channel_facts,
    cutting,
    first_look,
    folders,
    label_files,
    loading,
    preparation,
    readers,
    search,
    side_tables,
)
from braindecode_pars.windows import (
    amplitudes,
    convert,
    duplicates,
    marks,
    preprocessing,
    recorded_steps,
)
from braindecode_pars.windows.picking import check_channels

__all__ = ["load"]

#: Columns of participants.tsv that contain the site where a subject was recorded.
_SITES = ("site", "center", "centre", "scanner", "hospital", "lab", "device")


def _with_subjects(
    root: Path, labeled: Sequence[loading.R], subject: search.Subject
) -> list[loading.R]:
    """Return recordings with the subject in the description, in normalized Unicode.

    The source of the labels contains either all subjects or none. If it contains none, the subjects
    are derived from the paths.
    """
    find = search.subject_finder(subject)
    paths = [recording.file.relative_to(root) for recording in labeled]
    names = [recording.description.get("subject") for recording in labeled]
    if names[0] is None:
        if subject is None:
            search.check_guessed_subjects(root, paths)
        names = [*map(find, paths)]
    elif subject is not None:
        raise ValueError(
            "The table of labels, or labels_from, already specifies the subjects, but "
            f"subject={subject!r} was passed as well. Omit subject (--subject)."
        )
    pairs = zip(labeled, names, strict=True)
    return [recording.described(subject=normalized(name)) for recording, name in pairs]


def load(
    path: str | Path,
    subjects: Iterable[str] | None = None,
    *,
    labels: label_files.Labels = None,
    labels_from: str | None = None,
    label_column: str = "label",
    classes: Sequence[str] | Mapping[str, str] | None = None,
    subject: search.Subject = None,
    window_seconds: float | None = None,
    sfreq: float = preparation.SFREQ,
    low: float | None = 0.3,
    high: float | None = 75.0,
    mains: float | None = 60.0,
    reference: str | None = None,
    channels: Sequence[str] | None = None,
    n_jobs: int = 1,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Load labeled windows from a folder of EEG recordings or a BIDS dataset.

    Labeled segments are cut into consecutive windows without overlap. A label without a duration
    results in one window that starts at its onset. Segments without a label, and windows that
    overlap an annotation that begins with "BAD", are not used. Labels are read from one of three
    sources:

    ================  ========================================  ====================================
    source of labels  argument                                  example
    ================  ========================================  ====================================
    annotations       ``labels``: None, a list or a dict        ``{"Sleep stage W": "W"}``
    table             ``labels``: a path or a DataFrame         ``"participants.tsv"``
    file names        ``labels_from``: a regular expression     ``"_(?P<label>rest|task)"``
    ================  ========================================  ====================================

    For a BIDS dataset, annotations are read from the column ``trial_type`` of ``_events.tsv``,
    channel types from ``_channels.tsv``, and the assignment of subjects to splits (such as training
    and test) from the column ``split`` of ``participants.tsv``.

    Only scalp electrodes shared by all recordings are used. They are selected from the headers of
    all files. Different names of an electrode, such as ``EEG T3-LE`` and ``T7``, are equivalent;
    see :func:`~braindecode_pars.recordings.first_look.shared_channels`. Ear and mastoid electrodes,
    unused inputs and signals that are not EEG are excluded, and listed in a warning or in the log.
    If most channels do not have names of electrodes, all EEG channels shared by the recordings are
    used.

    A few recordings with a different montage do not reduce the selection. A channel is usual if at
    least half of the recordings contain it. When channels are selected, a recording with fewer than
    half of the usual channels is ignored, unless more than a quarter of the recordings would be
    ignored. An ignored recording is still loaded if it contains all selected channels. Otherwise,
    it raises an error, or is skipped with ``on_error="warn"``.

    Parameters
    ----------
    path : path
        Folder of recordings (.edf, .bdf, .fif, .hea, .vhdr or .set), including all subfolders. The
        folders ``derivatives`` and ``sourcedata`` of a BIDS dataset are excluded.
    subjects : iterable of str | None
        Subjects to read. If None, read all subjects.
    labels : list | dict | str | path | DataFrame | None
        Source of the labels:

        - List: descriptions of the annotations that are used as labels, in the order of the targets
          0, 1, ....
        - Dict: the keys are the descriptions of the annotations that are used as labels. The values
          are either class names, in the order of the targets, or integer targets.
        - None: use all annotations that are at least as long as a window; if there are none, use
          all annotations without a duration. The classes are in alphabetical order, and do not
          depend on ``subjects``. Annotations of gaps, and annotations that begin with "BAD" or
          "EDGE", are not used.
        - Table with one row per file or per labeled segment: the path of a ``.csv`` or ``.tsv``
          file, absolute or relative to the folder, or a DataFrame. The required columns are
          ``file`` (file name, or path relative to the folder) and ``label``, or the column that
          ``label_column`` names instead. The optional columns are ``subject``, ``onset`` (in
          seconds relative to the first sample) and ``duration`` (in seconds). Without an onset, the
          label applies to the whole recording. Column names are case-insensitive. If ``onset`` or
          ``duration`` is missing, other columns that appear to contain times, such as ``start``,
          raise an error. Rows with an empty label, such as "n/a" or "NaN", are ignored. Files
          without a row are excluded with a warning.
        - Table with one row per subject, and without the column ``file``, such as
          ``"participants.tsv"`` of BIDS. The required columns are ``subject`` or
          ``participant_id``, and the column with the labels (``label_column``); other columns are
          ignored. "sub-01" and "01" refer to the same subject. The label applies to all recordings
          of the subject. Subjects with an empty label are excluded. Subjects without a row are
          excluded with a warning.
    labels_from : str | None
        Regular expression that is searched for in the path of each file relative to the folder. Use
        it instead of ``labels`` if the paths contain the labels. The named group ``label`` matches
        the label, which applies to the whole recording; the optional named group ``subject``
        matches the subject. Files whose path does not match are excluded with a warning.
    label_column : str
        Column of the table that contains the labels, such as ``"diagnosis"``.
    classes : list of str | dict of str to str | None
        Labels to use, and their classes. Pass this argument only if the labels are in a table or in
        file names. A list contains the labels to use, in the order of the targets 0, 1, .... A dict
        maps labels to class names, such as ``{"1": "rest", "2": "arithmetic"}``; other labels are
        not used. If None, use all labels in alphabetical order, or sorted by value if all labels
        are numbers.
    subject : callable | str | None
        Function that receives the path of a file relative to the folder and returns the subject; or
        a regular expression that is searched for in this path and whose only group matches the
        subject. If None, the subject is the BIDS subject, such as "01" in ``sub-01``. For a path
        without a BIDS subject, the subject is the top-level folder, or the file name if the file is
        not in a subfolder. Omit this argument if a table with the columns ``file`` and ``subject``,
        or the group ``subject`` of ``labels_from``, already specifies the subjects.
    window_seconds : float | None
        Length of a window in seconds. If None, use 30 s, or the duration of the labels if all
        labels have the same duration and are shorter than 30 s; this duration is then logged.
    sfreq, low, high, mains
        As in :func:`~braindecode_pars.recordings.preparation.filter_and_resample`. A warning is
        issued if the spectra indicate a line frequency other than ``mains``.
    reference : "average" | None
        If "average", re-reference each recording to the average of the selected channels, which are
        the same in all recordings. If None, the reference is not changed.
    channels : list of str | None
        EEG channels to use, in this order, instead of the channels shared by all recordings. The
        average reference is then the average of these channels. Channels are matched by electrode:
        ``T7`` also selects ``EEG T3-LE``. A recording that lacks one of these channels raises an
        error, or is skipped with ``on_error="warn"``.
    n_jobs, on_error, verbose
        As in :func:`~braindecode_pars.recordings.loading.read_corpus`.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Windows with signals in volts. The description of each recording contains ``subject``,
        ``file`` (path relative to the folder), and the sampling rate, reference and channels before
        preprocessing: ``recorded_sfreq``, ``recorded_reference`` and ``recorded_channels``. If
        available, it also contains ``split`` and ``site``; the site is read from the column
        ``site``, ``center``, ``centre``, ``scanner``, ``hospital``, ``lab`` or ``device`` of
        ``participants.tsv``. As in braindecode, ``window_kwargs`` of each recording contains the
        class names of the targets; the classifiers of this package read their attribute
        ``class_names_`` from it.

    Raises
    ------
    FileNotFoundError
        If the folder contains no recording, or no recording of a requested subject. If the table
        does not exist.
    TypeError
        If ``labels`` or ``classes`` is a set, which has no order, or has an unsupported type.
    ValueError
        If the recordings share no channel. If no annotation is a label, if no file has a label, or
        if all labels are shorter than a window. If a time in a table cannot be read. If a table has
        no column with labels, contains a file that is not in the folder, or contains contradictory
        or missing subjects or labels. If ``label_column`` is passed, but the labels are not in a
        table. If ``labels_from`` is passed together with ``labels``, or has no group ``label``. If
        the subject of a file is ambiguous: names of files or folders, such as ``Subject00_1`` and
        ``Subject00_2``, obviously belong to recordings of the same subject; one or two top-level
        folders, such as ``train`` and ``test``, would be the subjects of ten or more recordings; or
        two BIDS datasets contain a subject with the same name, such as ``sub-01``. With
        ``on_error="raise"``, also if a recording is damaged, lacks channels, or has overlapping
        labels of different classes, or if no windows remain for a subject or a class.

    Warns
    -----
    UserWarning
        If files in the folder are not read, such as unsupported formats, or tables that belong to
        no recording. If an electrode is missing in some recordings (with a table of excluded
        channels). If recordings or labels are excluded (with a table of excluded items). If the
        spectra indicate a line frequency other than ``mains``. If the amplitude of a recording
        differs from the amplitude of the other recordings by a factor of more than 20. If the
        amplitude of a channel differs from the amplitude of the other channels of its recording by
        a factor of more than 30. If two recordings contain the same signals.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> windows = datasets.folder.load("my-bids", window_seconds=4)  # doctest: +SKIP

    Labels in file names, with two recordings per subject:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import mne
    >>> import numpy as np
    >>> rng, info = np.random.default_rng(0), mne.create_info(["C3"], 100.0, "eeg")
    >>> pattern = "(?P<subject>[^_/]+)_(?P<label>[^_.]+)"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("P01_rest", "P01_task", "P02_rest", "P02_task"):
    ...         noise = 1e-5 * rng.standard_normal((1, 2000))
    ...         raw = mne.io.RawArray(noise, info, verbose="error")
    ...         _ = raw.save(Path(folder, f"{name}.fif"), verbose="error")
    ...     windows = datasets.folder.load(
    ...         folder, labels_from=pattern, window_seconds=20, sfreq=100, verbose=0
    ...     )
    >>> windows.description["subject"].tolist(), [target for _, target, _ in windows]
    (['P01', 'P01', 'P02', 'P02'], [0, 1, 0, 1])
    >>> windows.datasets[0].window_kwargs[-1][1]["mapping"]
    {'rest': 0, 'task': 1}
    """
    filters: dict[str, Any] = dict(sfreq=sfreq, low=low, high=high, mains=mains)
    preparation.check_filters(**filters)
    checks.optional(checks.positive()).check("window_seconds", window_seconds)
    checks.choice(preprocessing.AVERAGE, None).check("reference", reference)
    channels = None if channels is None else check_channels(channels)
    root = Path(path).expanduser()
    files = folders.recordings_below(root)
    find = search.subject_finder(subject)
    labeled = label_files.labels_of_files(
        labels, root, files, label_column, lambda file: find(file.relative_to(root)), labels_from
    )
    why = "no row in the table of labels"
    if labels_from is not None:
        why = f"labels_from={labels_from!r} does not match the path"
    left_out = dict.fromkeys(sorted({*files} - {recording.file for recording in labeled}), why)
    if not labeled:
        raise ValueError(
            f"No labels were found for the recordings in {root}. For example, {files[0].name}: "
            f"{why}. Correct labels (--labels) or labels_from (--labels-from)."
        )
    chosen = loading.choose_subjects(_with_subjects(root, labeled, subject), subjects, path)
    # Read the annotations of all files, so that the length of windows and the targets do not depend
    # on the selected subjects.
    are_listed = isinstance(labels, Sequence | Mapping) and not isinstance(labels, str)
    durations: dict[str, list[float]] = {}
    if not are_listed or window_seconds is None:
        durations = label_files.durations_in(labeled)
    names, targets, window_seconds = label_files.classes_and_targets(
        labels if labels_from is None else labels_from, classes, durations, window_seconds
    )
    chosen = _with_origin(root, chosen)
    read_kwargs: dict[str, Any] = dict(names=names, window_seconds=window_seconds)
    average_of: str | list[str] | None = reference and channels
    if channels is None:
        channels, average_of = _first_look(chosen, reference, filters, verbose, **read_kwargs)
    preprocessing.warn_of_average(reference, channels)
    read_kwargs |= dict(targets=targets, channels=channels, reference=average_of, **filters)
    windows = loading.read_corpus(
        chosen,
        partial(_read, **read_kwargs),
        "folder",
        targets,
        set(targets) if subjects is None else set(),
        left_out=left_out,
        n_jobs=n_jobs,
        on_error=on_error,
        verbose=verbose,
    )
    table = convert.as_windows(windows)
    amplitudes.warn_of_amplitude_outliers(table)
    duplicates.warn_of_duplicates(table, [part.description["file"] for part in windows.datasets])
    return windows


def _with_origin(root: Path, chosen: Sequence[loading.R]) -> list[loading.R]:
    """Add the file path, and the site and split of the subject, to the descriptions.

    The corpus is added if all files have names that are used in one public corpus.
    """
    file = root / "participants.tsv"
    participants = side_tables.read_table(file, root) if file.is_file() else pd.DataFrame()
    site = next((name for name in participants if name in _SITES), "site")
    entries = {
        entry: loading.column_by_subject(participants, column, str(file))
        for entry, column in {"site": site, "split": "split"}.items()
        if column in participants
    }
    public = [public_subject(recording.file.name) for recording in chosen]
    corpora = public_corpora(public) if all(public) else []
    corpus = {"corpus": corpora[0]} if len(corpora) == 1 else {}
    with_origin = []
    for recording in chosen:
        file_name = recording.file.relative_to(root).as_posix()
        key = subject_key(recording.subject)
        values_of_subject = {entry: values.get(key) for entry, values in entries.items()}
        with_origin.append(recording.described(file=file_name, **corpus, **values_of_subject))
    return with_origin


def _first_look(
    chosen: Sequence[label_files.LabeledFile],
    reference: str | None,
    filters: Mapping[str, Any],
    verbose: int,
    **labels: Any,
) -> tuple[list[str], str | list[str] | None]:
    """Read the headers of all recordings, and select the channels and the reference to use."""
    infos, peaks, step = {}, [], -(-len(chosen) // first_look.N_INSPECTED_RECORDINGS)
    for i, recording in enumerate(chosen):
        is_inspected = i % step == 0
        # If a WFDB record is not preloaded, its signals are zeros.
        preload = is_inspected and recording.file.suffix.lower() == ".hea"
        # Errors and warnings are reported when the recording is read.
        with suppress(Exception), cutting.collect_excluded_items(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if (raw := _labeled(recording, preload=preload, **labels)) is not None:
                infos[recording.description["file"]] = raw.info
                peaks += [first_look.line_noise_peaks(raw)] if is_inspected else []
    if not infos:
        return [], reference
    if filters["mains"] is not None:
        first_look.warn_of_line_frequency(peaks, filters["mains"], filters["sfreq"])
    names, are_all = first_look.shared_channels(infos, average=bool(reference), verbose=verbose)
    # If recordings contain further channels, list the channels of the average reference by name.
    return names, reference if are_all else reference and names


def _labeled(
    recording: label_files.LabeledFile,
    *,
    names: Mapping[str, str],
    window_seconds: float,
    preload: bool = True,
) -> mne.io.BaseRaw | None:
    """Open a recording with its labels as annotations; None if it has none, or is too short.

    Channel types are read from the BIDS table ``_channels.tsv`` if there is one.
    """
    segments = recording.segments
    if segments is not None and not segments["label"].isin([*names]).any():
        reason = "no label of the requested classes"
        cutting.record_excluded("recordings", reason, 1, 1, is_requested=True)
        return None
    raw = readers.read_with_tables(recording.file, preload=preload)
    if not cutting.holds_a_window(raw.duration, window_seconds):
        reason = f"shorter than a window of {window_seconds:g} s"
        cutting.record_excluded("recordings", reason, 1, 1)
        return None
    # Replace the annotations: keep gaps and bad segments, and describe labels by class names.
    gaps = marks.marks_of(raw)
    annotations = label_files.annotations_of(recording.file, raw, segments)
    labeled = label_files.labels_within(annotations, names, raw, window_seconds)
    if not len(labeled):
        return None
    labeled.append(gaps.onset, gaps.duration, gaps.description, ch_names=gaps.ch_names)
    return raw.set_annotations(labeled, verbose="error")


def _read(
    recording: label_files.LabeledFile,
    *,
    names: Mapping[str, str],
    targets: Mapping[str, int],
    window_seconds: float,
    channels: Sequence[str],
    reference: str | list[str] | None,
    **filters: float,
) -> EEGWindowsDataset | None:
    """Read a recording, preprocess the selected channels, and create the labeled windows."""
    raw = _labeled(recording, names=names, window_seconds=window_seconds)
    if raw is None:
        return None
    origin = dict(
        recorded_sfreq=float(raw.info["sfreq"]),
        recorded_reference=recorded_steps.recorded(raw.info).reference,
        recorded_channels=", ".join(sorted(raw.ch_names)),
    )
    _pick(raw, channels, is_referenced=reference is not None)
    # Flat channels cannot be detected after average referencing.
    unusable = as_trained.flat_clipped_channels(raw, raw.ch_names)
    if 0 < len(unusable) < len(raw.ch_names):
        origin[amplitudes.FLAT_CLIPPED_CHANNELS] = ", ".join(unusable)
    preparation.filter_and_resample(raw, **filters)
    if reference is not None:
        preparation.set_reference(raw, reference)
    windows = cutting.event_windows(raw, targets, window_seconds)
    if windows is not None:
        windows.set_description(origin)
    return windows


def _pick(raw: mne.io.BaseRaw, channels: Sequence[str], *, is_referenced: bool) -> None:
    """Pick channels by electrode, in the order of ``channels``, and rename them accordingly.

    If a new name indicates a different reference from the old name, no channels are renamed, unless
    the recording will be re-referenced (``is_referenced``).
    """
    eeg = channel_facts.good_eeg(raw.info["chs"], raw.info["bads"])
    picked_names = preparation.find_electrodes(channels, eeg)
    raw.pick(picked_names, verbose="error").reorder_channels(picked_names)
    pairs = [*zip(picked_names, channels, strict=True)]
    if is_referenced or all(
        channel_names.electrode_pair(a)[1] == channel_names.electrode_pair(b)[1] for a, b in pairs
    ):
        recorded_steps.rename_channels(raw, dict(pairs))
